//! Completions for bash, zsh and fish: made from the declarations of the options, committed, never stale, and tried.

use std::fmt::Write as _;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ValueHint};
use clap_complete::{Shell, generate};
use nix::sys::signal::Signal;
use tempfile::TempDir;
use zk_leader_run::cli::completion;
use zk_leader_run::commands;

use super::*;

const RUN: &str = "zk-leader-run";
const CTL: &str = "zk-leaderctl";

#[test]
fn completions_are_not_stale() {
    for (file, script) in scripts() {
        golden(&format!("packaging/completions/{file}"), &script);
    }
}

fn scripts() -> [(&'static str, String); 6] {
    let (run, ctl) = (with_choices(cli::command()), cli::ctl::command());
    [
        ("zk-leader-run.bash", bash(&run)),
        ("_zk-leader-run", generated(Shell::Zsh, &run, RUN)),
        ("zk-leader-run.fish", generated(Shell::Fish, &run, RUN) + &fish_command(&run)),
        ("zk-leaderctl.bash", bash_ctl(&generated(Shell::Bash, &ctl, CTL))),
        ("_zk-leaderctl", zsh_ctl(&generated(Shell::Zsh, &ctl, CTL))),
        ("zk-leaderctl.fish", fish_ctl(&generated(Shell::Fish, &ctl, CTL))),
    ]
}

/// A directory of them, to be tried.
fn written() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (file, script) in scripts() {
        std::fs::write(directory.path().join(file), script).unwrap();
    }
    directory
}

#[test]
fn bash_completes_options_choices_and_the_command() {
    let scripts = written();
    for (typed, expected) in [
        (&["--reci"][..], &["--recipe"][..]),
        (&["--recipe", "s"], &["sequential", "single"]),
        (&["--recipe", "=", "si"], &["single"]),
        (&["--stop-signal", "US"], &["USR1", "USR2"]),
        (&["--on-pause", "f"], &["freeze"]),
        (&["-z", "h1", ":", "2181,h2", ":", "2181", "--", "trunc"], &["truncate"]),
        (&["--foreground", "--name", "x", "trunc"], &["truncate"]),
        (&["--name", "sh"], &[]),
        (&["trunc"], &["truncate"]),
    ] {
        let words = typed.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let script = format!(
            "source zk-leader-run.bash; COMP_WORDS=(zk-leader-run {words}); COMP_CWORD={}; \
             _zk_leader_run; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            typed.len()
        );
        assert_eq!(offered(&scripts, "bash", &script), expected, "{typed:?}");
    }
    let script = "source zk-leaderctl.bash; COMP_WORDS=(zk-leaderctl sta); COMP_CWORD=1; \
                  _zk__leaderctl zk-leaderctl sta zk-leaderctl; printf '%s\\n' \"${COMPREPLY[@]}\"";
    assert_eq!(offered(&scripts, "bash", script), ["status"]);
    for (typed, expected) in [
        (&["disable", "--rea"][..], &["--reason"][..]),
        (&["status", "--wat"], &["--watch"]),
        (
            &["-z", "zk1", "handover", "--t"],
            &["--timeout", "--tls", "--tls-any-name", "--tls-ca", "--tls-cert", "--tls-key", "--to"],
        ),
    ] {
        let (word, before) = (typed[typed.len() - 1], typed[typed.len() - 2]);
        let script = format!(
            "source zk-leaderctl.bash; COMP_WORDS=(zk-leaderctl {}); COMP_CWORD={}; \
             _zk__leaderctl zk-leaderctl {word} {before}; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            typed.join(" "),
            typed.len()
        );
        assert_eq!(offered(&scripts, "bash", &script), expected, "{typed:?}");
    }
}

#[test]
fn fish_completes_options_choices_and_the_command() {
    let scripts = written();
    for (file, typed, expected) in [
        (RUN, "zk-leader-run --reci", "--recipe"),
        (RUN, "zk-leader-run --recipe si", "single"),
        (RUN, "zk-leader-run --name x trunc", "truncate"),
        (RUN, "zk-leader-run --foreground -- trunc", "truncate"),
        (CTL, "zk-leaderctl sta", "status"),
    ] {
        let script = format!("source {file}.fish; complete -C '{typed}' | string split -f1 \\t");
        assert!(offered(&scripts, "fish", &script).contains(&expected.to_owned()), "{typed}");
    }
}

/// A key that is pressed by mistake must not look for a server on this host.
#[test]
fn nothing_is_asked_where_no_server_was_named() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let address = server.local_addr().unwrap().to_string();
    let load = |words: &[&str], variables: &[(&str, &str)]| {
        let process_environment = ProcessEnvironment {
            variables: variables.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            ..ProcessEnvironment::default()
        };
        ctl::load(["zk-leaderctl"].iter().chain(words).map(OsString::from), &process_environment).unwrap()
    };
    assert!(load(&["list", "-z", "h"], &[]).is_connect_given);
    assert!(load(&["list"], &[("ZK_LEADER_RUN_CONNECT", "h")]).is_connect_given);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "connect = \"h\"\n").unwrap();
    assert!(load(&["list", "--config", file.path().to_str().unwrap()], &[]).is_connect_given);
    assert!(!load(&["list"], &[]).is_connect_given);

    let completion = completion::of(&["status".to_owned(), String::new()]).unwrap();
    let asked = ctl::Asked { is_connect_given: false, ..load(&["list", "-z", &address], &[]) };
    assert_eq!(commands::completion::values(&completion, &asked), "");
    assert_eq!(server.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn zsh_understands_its_completions() {
    let scripts = written();
    for name in [RUN, CTL] {
        let output = shell(&scripts, "zsh").arg("-n").arg(format!("_{name}")).output().expect(HELP);
        assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

const HELP: &str = "these tests try the completions in each shell: apt-get install bash fish zsh";

fn shell(scripts: &TempDir, name: &str) -> Command {
    let mut shell = Command::new(name);
    shell.current_dir(scripts.path()).stdin(Stdio::null());
    shell
}

fn offered(scripts: &TempDir, name: &str, script: &str) -> Vec<String> {
    let mut shell = shell(scripts, name);
    if name == "bash" {
        shell.args(["--noprofile", "--norc"]);
    }
    let output = shell.args(["-c", script]).output().expect(HELP);
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let offered = String::from_utf8(output.stdout).unwrap();
    let mut offered: Vec<_> = offered.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    offered.sort();
    offered.dedup();
    offered
}

fn generated(shell: Shell, command: &clap::Command, name: &str) -> String {
    let mut script = Vec::new();
    generate(shell, &mut command.clone(), name, &mut script);
    // clap_complete calls a subcommand by one name where it finds it, and by another where it completes it.
    let mut script = String::from_utf8(script).unwrap();
    if shell == Shell::Bash {
        script = script.replace("zk__subcmd__leaderctl", "zk__leaderctl");
    }
    script.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

/// The choices of an option are asked of the program itself.
fn with_choices(command: clap::Command) -> clap::Command {
    command.mut_args(|argument| match argument.get_long().map(choices) {
        Some(choices) if !choices.is_empty() && takes_values(&argument) => {
            argument.value_parser(PossibleValuesParser::new(choices))
        }
        _ => argument,
    })
}

fn choices(option: &str) -> Vec<&'static str> {
    let signals = Signal::iterator().map(|signal| signal.as_str().trim_start_matches("SIG"));
    match option {
        "stop-signal" | "on-resume" => return signals.collect(),
        "on-pause" => return ["run", "freeze"].into_iter().chain(signals).collect(),
        _ => {}
    }
    let text = parse(&[&format!("--{option}=\u{1}"), "true"], &[]).err().map(|stop| stop.text).unwrap_or_default();
    match text.split_once("is not a choice; write ") {
        Some((_, words)) => {
            words.trim_end().replace(" or ", ", ").split(", ").map(|word| &*word.to_owned().leak()).collect()
        }
        None => Vec::new(),
    }
}

fn takes_values(argument: &Arg) -> bool {
    argument.get_long().is_some() && argument.get_action().takes_values()
}

/// `-z` and `--connect` for each option that takes a value.
fn with_values(command: &clap::Command) -> Vec<String> {
    let options = command.get_arguments().filter(|argument| takes_values(argument));
    let names = options.flat_map(|option| {
        let short = option.get_short().map(|short| format!("-{short}"));
        short.into_iter().chain(option.get_long().map(|long| format!("--{long}")))
    });
    names.collect()
}

/// What follows the options is completed as if it stood alone.
fn fish_command(command: &clap::Command) -> String {
    let options = with_values(command).join(" ");
    format!("complete -c {RUN} -x -a '(__fish_complete_subcommand -- {options})'\n")
}

/// clap's own script for bash knows nothing of a command that follows.
fn bash(command: &clap::Command) -> String {
    let mut options: Vec<String> = Vec::new();
    let mut cases = String::new();
    for argument in command.get_arguments().filter(|argument| argument.get_long().is_some()) {
        let long = argument.get_long().unwrap();
        options.push(format!("--{long}"));
        let choices = argument.get_possible_values();
        if takes_values(argument) && !choices.is_empty() {
            let words: Vec<_> = choices.iter().map(clap::builder::PossibleValue::get_name).collect();
            let words = words.join(" ");
            writeln!(cases, "                --{long}) COMPREPLY=($(compgen -W '{words}' -- \"$cur\")) ;;").unwrap();
        } else if argument.get_value_hint() == ValueHint::FilePath {
            writeln!(cases, "                --{long}) COMPREPLY=($(compgen -f -- \"$cur\")) ;;").unwrap();
        }
    }
    BASH.replace("OPTIONS", &options.join(" "))
        .replace("VALUED", &with_values(command).join("|"))
        .replace("CASES", &cases)
}

const BASH: &str = r#"# bash completion for zk-leader-run: its options and their choices, then the command as if it stood alone.
_zk_leader_run() {
    local cur=${COMP_WORDS[COMP_CWORD]} at=1 option='' ended=''
    COMPREPLY=()
    while ((at < COMP_CWORD)); do
        option=${COMP_WORDS[at]}
        ((at++))
        case $option in
        --)
            ended=1
            break
            ;;
        VALUED)
            [[ ${COMP_WORDS[at]} == = ]] && ((at++))
            # A value with colons is several words to readline.
            while [[ ${COMP_WORDS[at + 1]} == [:=]* ]]; do ((at += 2)); done
            if ((at >= COMP_CWORD)); then
                cur=${cur#=}
                case $option in
CASES                esac
                return
            fi
            ((at++))
            ;;
        -*) ;;
        *)
            ((at--))
            break
            ;;
        esac
    done
    if [[ -z $ended && $cur == -* ]] && ((at == COMP_CWORD)); then
        COMPREPLY=($(compgen -W 'OPTIONS' -- "$cur"))
    elif declare -F _command_offset >/dev/null; then
        _command_offset "$at"
    elif ((at == COMP_CWORD)); then
        COMPREPLY=($(compgen -c -- "$cur"))
    else
        COMPREPLY=($(compgen -f -- "$cur"))
    fi
}
complete -F _zk_leader_run zk-leader-run
"#;

/// clap's script is asked only where the ensemble knows nothing.
fn bash_ctl(script: &str) -> String {
    let calls = "complete -F _zk__leaderctl ";
    assert_eq!(script.matches(calls).count(), 2, "{script}");
    let (functions, registered) = script.split_at(script.find("\nif [[").unwrap());
    functions.to_owned() + BASH_CTL + &registered.replace(calls, "complete -F _zk_leaderctl ")
}

const BASH_CTL: &str = r#"
# Names, hosts and ids, which the ensemble knows. $1: the program.
_zk_leaderctl_values() {
    local word words=() full values value
    COMPREPLY=()
    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
        # HOST:PORT is several words to readline.
        if ((${#words[@]})) && [[ $word == [:=]* || ${words[-1]} == *[:=] ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
    done
    full=${words[-1]}
    for word in "${!words[@]}"; do
        value=${words[word]}
        value=${value#[\"\']} value=${value%[\"\']}
        [[ $value =~ ^\$\{?([A-Za-z_][A-Za-z_0-9]*)\}?$ ]] && value=${!BASH_REMATCH[1]}
        words[word]=$value
    done
    mapfile -t values < <("$1" completions values "${words[@]}" 2>/dev/null)
    # What stands before the last colon stays on the line.
    full=${full%"${full##*[:=]}"} full=${full#--*=}
    for value in "${values[@]}"; do
        printf -v value %q "${value#"$full"}"
        COMPREPLY+=("$value")
    done
    ((${#COMPREPLY[@]}))
}

_zk_leaderctl() {
    _zk_leaderctl_values "$1" || _zk__leaderctl "$@"
}
"#;

/// Where these stand, the ensemble may know more.
const ASKED: [&str; 4] = ["'::name -- ", "':host -- ", "'--to=[", "'--name=["];

fn zsh_ctl(script: &str) -> String {
    let asks = |line: &str| ASKED.iter().any(|start| line.starts_with(start));
    let ask =
        |line: &str| if asks(line) { line.replace(":_default'", ":_zk_leaderctl_values'") } else { line.to_owned() };
    let script: String = script.lines().flat_map(|line| [ask(line), "\n".to_owned()]).collect();
    let (begin, first) = (
        "_zk-leaderctl() {\n",
        "    # All words of the line: below, there are only those behind the subcommand.\n    \
                          local -a zk_leaderctl_line=(\"${(@)words[1,CURRENT]}\")\n",
    );
    assert_eq!(script.matches(begin).count(), 1);
    script.replace(begin, &format!("{ZSH_CTL}\n{begin}{first}"))
}

const ZSH_CTL: &str = r#"# Names, hosts and ids, which the ensemble knows.
_zk_leaderctl_values() {
    local -a typed values
    local word
    for word in "${(@Q)zk_leaderctl_line}"; do
        [[ $word =~ '^\$\{?([A-Za-z_][A-Za-z_0-9]*)\}?$' ]] && word=${(P)match[1]}
        typed+=("$word")
    done
    values=("${(@f)$(_call_program values "${(@q)typed[1]}" completions values "${(@q)typed[2,-1]}" 2>/dev/null)}")
    values=(${values:#})
    (($#values)) && compadd -a values || _default
}
"#;

fn fish_ctl(script: &str) -> String {
    let is_asked = |line: &str| line.contains("using_subcommand handover\" -l to ") || line.contains("put\" -l name ");
    let ask =
        |line: &str| format!("{line}{}\n", if is_asked(line) { " -f -a '(__fish_zk_leaderctl_values)'" } else { "" });
    let script: String = script.lines().map(ask).collect();
    assert_eq!(script.matches("__fish_zk_leaderctl_values").count(), 2);
    let verbs = cli::ctl::command();
    let verbs = verbs
        .get_subcommands()
        .filter(|verb| verb.get_positionals().any(|value| ["name", "host"].contains(&value.get_id().as_str())));
    let line = |verb: &clap::Command| {
        let name = verb.get_name();
        format!(
            "complete -c {CTL} -n \"__fish_zk_leaderctl_using_subcommand {name}\" -f -a '(__fish_zk_leaderctl_values)'\n"
        )
    };
    FISH_CTL.to_owned() + &script + &verbs.map(line).collect::<String>()
}

const FISH_CTL: &str = r"# Names, hosts and ids, which the ensemble knows.
function __fish_zk_leaderctl_values
    set -l typed (commandline -opc)
    $typed[1] completions values $typed[2..] (commandline -ct) 2>/dev/null
end

";
