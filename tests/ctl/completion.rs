//! Names, hosts and ids from the ensemble, in real shells at a real terminal.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{election, server};
use crate::support::diary::now;
use crate::support::terminal::Terminal;
use crate::support::{Election, Running, wait};

/// An election that no other test has, and one participant on a host of its own.
fn nightly(name: &str) -> (Election, Running) {
    let mut election = election();
    name.clone_into(&mut election.name);
    let mut wrapper = Command::new("unshare");
    wrapper.args(["--uts", "sh", "-c", "hostname \"$0\" && exec \"$@\"", &format!("host-of-{name}")]);
    let host = election.steady_host(&format!("{name}:4711")).option("--path", &format!("/zk-leader-run/{name}"));
    let running = host.without("--name").spawn_inside(wrapper);
    election.diary.until_started(1);
    let members = format!("/zk-leader-run/{name}/members");
    wait::until("it has said who it is", || {
        election.admin.exists(&members) && election.admin.children(&members).len() == 1
    });
    (election, running)
}

fn programs() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_zk-leaderctl")).parent().unwrap()
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/completions")
}

/// What a line becomes when the key is pressed, for words after the program's name; `*` stands for the election's name.
fn cases(name: &str) -> Vec<(String, String)> {
    let start = &name[..name.len() - 2];
    let servers = server().connect_string();
    let typed = |line: &str, end: &str, whole: &str| {
        (format!("zk-leaderctl {line} {end}"), format!("zk-leaderctl {line} {whole}"))
    };
    vec![
        typed("status", start, name),
        typed(&format!("-z {servers} history -n 5"), start, name),
        typed(&format!("handover {name} --to"), start, &format!("{name}:4711")),
        typed(&format!("handover {name} --to"), &format!("{name}:4"), &format!("{name}:4711")),
        typed("drain", &format!("host-of-{start}"), &format!("host-of-{name}")),
        // clap's own, as before.
        typed(&format!("handover {name}"), "--wai", "--wait"),
        ("zk-leaderctl hando".to_owned(), "zk-leaderctl handover".to_owned()),
    ]
}

/// Longer than a completion waits for the servers.
const PATIENCE: Duration = wait::secs(5);

/// The first three cases without a server on the command line take it from the environment.
fn each_is_completed(shell: &[&str], name: &str) {
    for (typed, whole) in cases(name) {
        let terminal = Terminal::of(30, shell);
        terminal.until_shown("ready>");
        terminal.types(&typed);
        terminal.until_shown(&typed);
        let (whole, mut last_press) = (format!("ready>{whole}"), None);
        let found = wait::held_within(wait::LIMIT, || {
            // A busy machine may be too slow for the short wait of one press.
            if last_press.is_none_or(|at| now().saturating_sub(at) > PATIENCE) {
                terminal.types("Tab");
                last_press = Some(now());
            }
            terminal.screen().contains(&whole)
        });
        assert!(found, "{typed:?} never became {whole:?}:\n{}", terminal.screen());
    }
}

fn environment() -> String {
    format!("export PATH={}:$PATH ZK_LEADER_RUN_CONNECT={}\n", programs().display(), server().connect_string())
}

#[test]
fn bash_completes_what_the_ensemble_knows() {
    let _nightly = nightly("nightly-bash");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rc");
    let script = format!("{}PS1='ready>'\nsource {}/zk-leaderctl.bash\n", environment(), scripts().display());
    fs::write(&file, script).unwrap();
    each_is_completed(&["bash", "--noprofile", "--rcfile", file.to_str().unwrap(), "-i"], "nightly-bash");
}

#[test]
fn zsh_completes_what_the_ensemble_knows() {
    let _nightly = nightly("nightly-zsh");
    let directory = tempfile::tempdir().unwrap();
    let script = format!(
        "{}PS1='ready>'\nfpath=({} $fpath)\nautoload -Uz compinit\ncompinit -u -d {}/dump\n",
        environment(),
        scripts().display(),
        directory.path().display()
    );
    fs::write(directory.path().join(".zshrc"), script).unwrap();
    let folder = format!("ZDOTDIR={}", directory.path().display());
    each_is_completed(&["env", &folder, "zsh", "-d", "-i"], "nightly-zsh");
}

#[test]
fn fish_completes_what_the_ensemble_knows() {
    let _nightly = nightly("nightly-fish");
    for (typed, whole) in cases("nightly-fish") {
        let script = format!("source {}/zk-leaderctl.fish; complete -C '{typed}'", scripts().display());
        let mut fish = Command::new("fish");
        fish.args(["--no-config", "-c", &script]).env("PATH", format!("{}:/usr/bin:/bin", programs().display()));
        fish.env("ZK_LEADER_RUN_CONNECT", server().connect_string());
        let (word, mut said) = (whole.rsplit(' ').next().unwrap(), String::new());
        // A busy machine may be too slow for the short wait of one question.
        let found = wait::held_within(wait::LIMIT, || {
            let output = fish.stdin(Stdio::null()).output().expect("apt-get install fish");
            let offered = String::from_utf8(output.stdout).unwrap();
            said = format!("{offered}{}", String::from_utf8_lossy(&output.stderr));
            offered.lines().any(|line| line.split('\t').next() == Some(word))
        });
        assert!(found, "{typed}: {said}");
    }
}

fn asked(words: &[&str]) -> String {
    let mut program = Command::new(env!("CARGO_BIN_EXE_zk-leaderctl"));
    let output = program.env_clear().args(["completions", "values"]).args(words).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn without_an_answer_nothing_is_said_and_the_wait_is_short() {
    // A server that takes connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap().to_string();
    let refused = "127.0.0.1:1";
    for server in [&*silent, refused, "no.such.host.invalid", "h:not-a-port", ""] {
        let began = now();
        assert_eq!(asked(&["-z", server, "status", ""]), "");
        assert!(now().saturating_sub(began) < wait::secs(10), "nominal: at most 1.5 s");
    }
    assert_eq!(asked(&["--no-such-option", "status", ""]), "");
}

#[test]
fn a_host_that_is_drained_is_offered_to_undrain() {
    let (election, _host) = nightly("nightly-drain");
    let servers = server().connect_string();
    let root = format!("/drains-{}", election.name);
    election.admin.create_all(&format!("{root}/drains/host-x"));
    assert_eq!(asked(&["-z", &servers, "undrain", "--root", &root, ""]), "");
    election.admin.delete(&format!("{root}/drains/host-x"));
    // Anyone may have made a znode with such a name.
    election.admin.create_all(&format!("{root}/drains/--connect=evil:2181"));
    election.admin.set(&format!("{root}/drains/--connect=evil:2181"), r#"{"v":1,"order":"x"}"#);
    super::operator::ctl(&["drain", "host-y", "--root", &root]);
    wait::until("it is offered", || asked(&["-z", &servers, "undrain", "--root", &root, "h"]) == "host-y\n");
    assert_eq!(asked(&["-z", &servers, "undrain", "--root", &root, "x"]), "");
    assert_eq!(asked(&["-z", &servers, "undrain", "--root", &root, ""]), "host-y\n", "and no option");
}
