//! The configuration file: which one is read, what it may say, who may write it, and what `--print-config` makes of it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;

/// A file of settings.
struct Written {
    path: PathBuf,
    _directory: TempDir,
}

fn written(text: &str) -> Written {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.toml");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    Written { path, _directory: directory }
}

impl Written {
    fn name(&self) -> &str {
        self.path.to_str().unwrap()
    }

    /// What the program says to these words and variables with this file.
    fn parse(&self, typed: &[&str], variables: &[(&str, &str)]) -> Result<Config, EarlyExit> {
        parse(&[&["--config", self.name()], typed].concat(), variables)
    }

    /// The one sentence, with FILE for the file's name.
    fn refused(&self, typed: &[&str]) -> (u8, String) {
        let stop = self.parse(typed, &[]).expect_err("it was accepted");
        assert_eq!((stop.stream, stop.text.lines().count()), (Stream::Stderr, 1), "{}", stop.text);
        (stop.status, stop.text.replace(self.name(), "FILE"))
    }
}

#[test]
fn the_file_wins_over_the_default_and_the_variable_and_the_option_over_the_file() {
    let file = written("stop-timeout = \"20s\"\nforeground = true\nconflict-exit-code = 3\n");
    let stop_timeout = |typed: &[&str], variables: &[(&str, &str)]| file.parse(typed, variables).unwrap().stop_timeout;
    let twin = [("ZK_LEADER_RUN_STOP_TIMEOUT", "30s")];
    assert_eq!(stop_timeout(&["true"], &[]), Duration::from_secs(20));
    assert_eq!(stop_timeout(&["true"], &twin), Duration::from_secs(30));
    assert_eq!(stop_timeout(&["--stop-timeout=40s", "true"], &twin), Duration::from_secs(40));
    assert_eq!(
        stop_timeout(&["--stop-timeout=10s", "true"], &[]),
        Duration::from_secs(10),
        "typed, though the default"
    );
    let config = file.parse(&["true"], &[]).unwrap();
    assert_eq!((config.foreground, config.conflict_exit_code), (true, 3));
    assert!(!file.parse(&["true"], &[("ZK_LEADER_RUN_FOREGROUND", "false")]).unwrap().foreground);
    assert!(config.notices.is_empty());
}

#[test]
fn the_section_of_the_election_counts_whatever_names_it() {
    let file =
        written("stop-timeout = \"20s\"\n[election.nightly]\nstop-timeout = \"30s\"\n[election.true]\nid = \"t\"\n");
    let config = |typed: &[&str], variables: &[(&str, &str)]| file.parse(typed, variables).unwrap();
    assert_eq!(config(&["/bin/false"], &[]).stop_timeout, Duration::from_secs(20));
    assert_eq!(config(&["--name=nightly", "true"], &[]).stop_timeout, Duration::from_secs(30));
    assert_eq!(config(&["true"], &[("ZK_LEADER_RUN_NAME", "nightly")]).stop_timeout, Duration::from_secs(30));
    assert_eq!(config(&["/bin/true"], &[]).id, "t");
    let named = written("name = \"nightly\"\n[election.nightly]\nid = \"n\"\n");
    assert_eq!(named.parse(&["true"], &[]).unwrap().id, "n");
}

#[test]
fn the_usual_file_is_read_if_there_is_one_and_no_other_is_named() {
    assert_eq!(ProcessEnvironment::of_this_process().usual_file, Path::new("/etc/zk-leader-run/config.toml"));
    let usual = written("id = \"usual\"\n");
    let other = written("name = \"n\"\n");
    let id = |typed: &[&str], usual_file: &Path| {
        let path = vec![("PATH".into(), "/usr/bin:/bin".into())];
        let process_environment = ProcessEnvironment {
            variables: path,
            host: "host".into(),
            pid: 1,
            usual_file: usual_file.to_owned(),
            credentials: Vec::new(),
        };
        load::load(["zk-leader-run"].iter().chain(typed).map(OsString::from), &process_environment)
            .map(|config| config.id)
    };
    assert_eq!(id(&["true"], &usual.path), Ok("usual".to_owned()));
    assert_eq!(id(&["true"], &usual.path.with_extension("none")), Ok("host:1".to_owned()));
    assert_eq!(id(&["--config", other.name(), "true"], &usual.path), Ok("host:1".to_owned()));
    assert_eq!(id(&["--config", "/dev/null", "true"], &usual.path), Ok("host:1".to_owned()));
    let no_file = id(&["true"], usual.path.parent().unwrap()).unwrap_err();
    assert_eq!(no_file.status, 78);
    assert!(no_file.text.contains("cannot be read: Is a directory"), "{}", no_file.text);
}

#[test]
fn a_mistake_in_the_file_names_the_file_the_line_the_key_the_value_and_the_remedy() {
    let cases = [
        ("\nsesion-timeout = \"5s\"", "FILE:2: 'sesion-timeout' is not a key; did you mean session-timeout?"),
        (
            "foreground = \"yes\"",
            "FILE:1: 'foreground' is the text 'yes'; write foreground = true or foreground = false",
        ),
        ("dry-run = true", "FILE:1: 'dry-run' is not a setting; write --dry-run on the command line"),
        ("config = \"x\"", "FILE:1: 'config' is not a setting; write --config on the command line"),
        ("grace = 5", "FILE:1: grace: '5' has no unit; write 5s or 5ms"),
        ("\n\ngrace = \"soon\"", "FILE:3: grace: 'soon' is not a duration; write it like 1500ms, 5s or 1m30s"),
        (
            "recipe = \"sequental\"",
            "FILE:1: recipe: 'sequental' is not a choice; write sequential, curator-latch, curator-lock, kazoo, java-les or single; did you mean sequential?",
        ),
        (
            "[election.true]\ngrace = \"soon\"",
            "FILE:2: grace: 'soon' is not a duration; write it like 1500ms, 5s or 1m30s",
        ),
        (
            "[election.other]\ngrace = true",
            "FILE:2: 'grace' is the truth value true; write grace = \"DURATION\", with the quotes",
        ),
    ];
    for (text, sentence) in cases {
        assert_eq!(written(text).refused(&["true"]), (78, format!("zk-leader-run: {sentence}\n")), "{text}");
    }
    let (status, sentence) = written("stop-reserve = \"10s\"").refused(&["true"]);
    assert_eq!(status, 78);
    assert!(sentence.starts_with("zk-leader-run: FILE:1: stop-reserve: '10s'"), "{sentence}");
}

#[test]
fn a_file_that_cannot_be_read_is_refused_with_the_way_out() {
    each_is_refused(&[
        typed(
            &["--config", "/nonexistent.toml", "true"],
            78,
            ["--config:", "'/nonexistent.toml' cannot be read", "leave it out"],
        ),
        typed(&["--config", "/etc", "true"], 78, ["/etc:", "cannot be read: Is a directory", "a TOML file"]),
        typed(&["--config", "/dev/zero", "true"], 78, ["/dev/zero:", "longer than 1 MiB", "settings"]),
        variable(
            &[("ZK_LEADER_RUN_CONFIG", "/x")],
            78,
            ["ZK_LEADER_RUN_CONFIG:", "'/x' cannot be read", "leave it out"],
        ),
    ]);
    let file = written("");
    fs::write(&file.path, b"name = \"\xff\"").unwrap();
    assert_eq!(
        file.refused(&["true"]),
        (78, "zk-leader-run: FILE: this is not UTF-8 text; write it in UTF-8\n".into())
    );
}

#[test]
fn a_file_that_everybody_may_write_is_refused_and_a_strangers_is_worth_a_notice() {
    let file = written("id = \"me\"");
    fs::set_permissions(&file.path, Permissions::from_mode(0o666)).unwrap();
    let (status, sentence) = file.refused(&["true"]);
    assert_eq!(status, 78);
    assert!(sentence.ends_with("FILE: everybody can write to this file, which decides what runs here; chmod o-w it\n"));
    fs::set_permissions(&file.path, Permissions::from_mode(0o644)).unwrap();
    // Only root can give a file away; the rule itself has a test of its own.
    if chown(&file.path, Some(4711), None).is_ok() {
        let notices = file.parse(&["true"], &[]).unwrap().notices.concat();
        assert!(notices.ends_with("decides what runs here, and user 4711, who owns it, can write to it"), "{notices}");
    }
}

#[test]
fn every_option_but_the_questions_is_a_key_of_the_file() {
    for argument in cli::command().get_arguments().filter(|argument| reference::is_setting(argument)) {
        let option = argument.get_long().unwrap();
        let line = if argument.get_action().takes_values() {
            format!("{option} = \"\\u0001\"")
        } else {
            format!("{option} = 1")
        };
        let (status, sentence) = written(&line).refused(&["true"]);
        assert_eq!(status, 78, "{sentence}");
        let found = sentence.starts_with(&format!("zk-leader-run: FILE:1: {option}: '\\u{{1}}' "))
            || sentence.starts_with(&format!("zk-leader-run: FILE:1: '{option}' is the number 1"));
        assert!(found, "{sentence}");
    }
}

#[test]
fn print_config_shows_each_value_and_where_it_came_from() {
    let file = written(
        "connect = \"zk1,zk2\"\nsession-timeout = \"20s\"\nforeground = true\n[election.nightly]\nid = \"a \\\"b\\\\\"\n",
    );
    let typed = ["--print-config", "--name", "nightly", "--stop-timeout=1m", "--", "sh"];
    let output = run(
        &[&["--config", file.name()], &typed[..]].concat(),
        &[("ZK_LEADER_RUN_SESSION_TIMEOUT", "30s"), ("ZK_LEADER_RUN_DRY_RUN", "no")],
    );
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
    let page = String::from_utf8(output.stdout).unwrap().replace(file.name(), "FILE");
    golden("tests/golden/print-config.toml", &page);
}

#[test]
fn what_print_config_prints_is_a_file_of_the_same_settings() {
    let typed = [
        "--name",
        "n",
        "--id=a \u{e9}\"\\",
        "--hook=a\nb\tc",
        "--wait=0",
        "--foreground",
        "--conflict-exit-code=3",
        "true",
    ];
    let page = |typed: &[&str], file: &str| match parse(&[&["--print-config", "--config", file], typed].concat(), &[]) {
        Err(EarlyExit { text, stream: Stream::Stdout, status: 0 }) => text,
        other => panic!("{other:?}"),
    };
    let first = page(&typed, "/dev/null");
    let again = written(&first);
    // All of them now come from the file.
    let second = page(&[], again.name());
    let settings = |page: &str| -> Vec<String> {
        let settings = page.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        settings.map(|line| line.rsplit_once(" # ").unwrap().0.trim_end().to_owned()).collect()
    };
    assert_eq!(settings(&first), settings(&second));
    assert_eq!(settings(&first).len(), 6, "{first}");
    assert_eq!(second.matches(again.name()).count(), 1 + 6, "{second}");
    // It works as a file, too: no default counts as given.
    let config = again.parse(&["true"], &[]).unwrap();
    assert_eq!((config.name.as_str(), config.foreground, config.conflict_exit_code), ("n", true, 3));
    assert_eq!(config.notices, Vec::<String>::new());
}

#[test]
fn without_a_command_the_settings_can_be_printed_all_the_same() {
    let stop = refused(&["--print-config"], &[]);
    assert_eq!((stop.stream, stop.status), (Stream::Stdout, 0));
    assert!(
        stop.text.starts_with("# Settings of zk-leader-run, each with its origin; no configuration file was read.\n")
    );
}

/// A run says so, too: the setting that was meant may be missing.
#[test]
fn a_variable_that_nobody_knows_is_told_with_the_settings() {
    let Err(stop) = parse(&["--print-config"], &[("ZK_LEADER_RUN_SERVICE_HOST", "10.0.0.1")]) else { panic!("it ran") };
    let note = "# Note: the variable 'ZK_LEADER_RUN_SERVICE_HOST' is unknown and ignored";
    assert_eq!((stop.stream, stop.text.lines().nth(1)), (Stream::Stdout, Some(note)));
}

#[test]
fn a_releaser_is_told_what_the_file_said_and_reads_no_file() {
    let file = written("connect = \"zk1\"\nforeground = true\nstop-timeout = \"20s\"\nid = \"other\"\n");
    let typed = ["--config", file.name(), "--id=me", "true"];
    let config = parse(&typed, &[("ZK_LEADER_RUN_STOP_TIMEOUT", "30s")]).unwrap();
    let options = config.file.clone().unwrap().options;
    assert_eq!(options, ["--connect=zk1", "--foreground"], "what a variable or an option outdoes does not count");
    fs::write(&file.path, "connect = \"elsewhere\"\nnonsense").unwrap();
    let arguments = std::iter::once(OsString::from(load::RELEASER)).chain(options).chain(typed.map(OsString::from));
    let path = vec![("PATH".into(), "/usr/bin:/bin".into()), ("ZK_LEADER_RUN_STOP_TIMEOUT".into(), "30s".into())];
    let process_environment = ProcessEnvironment {
        variables: path,
        host: "host".into(),
        pid: 4711,
        usual_file: file.path.clone(),
        credentials: Vec::new(),
    };
    let told = load::load(arguments, &process_environment).unwrap();
    assert_eq!(told, Config { file: None, ..config });
}

/// It would read the file, which the supervisor does not.
#[test]
fn a_releaser_logs_in_as_its_supervisor_did_where_the_variable_outdoes_the_file() {
    let file = written("connect = \"zk1\"\nauth-file = \"/nowhere/identities\"\n");
    let typed = ["--config", file.name(), "--acl=open", "true"];
    let with =
        |secret: &str| parse(&typed, &[("ZK_LEADER_RUN_AUTH", secret)]).map(|config| config.file.unwrap().options);
    assert_eq!(with("digest:a:b").unwrap(), ["--connect=zk1"]);
    assert!(with("").is_err(), "then the file counts, which is not there");
}

#[test]
fn zk_leaderctl_looks_for_an_election_where_its_section_says() {
    let file = written("connect = 'zk1'\n[election.nightly]\nconnect = 'zk9/prod'\npath = '/jobs/nightly'\n");
    let asked = |typed: &[&str]| asked(&file, typed, &[]);
    let base = |path: &str| format!("Base(ZnodePath({path:?}))");
    let nightly = asked(&["status", "nightly"]);
    assert_eq!((nightly.servers.as_str(), format!("{:?}", nightly.selector)), ("zk9:2181", base("/jobs/nightly")));
    let other = asked(&["status", "other"]);
    assert_eq!((other.servers.as_str(), format!("{:?}", other.selector)), ("zk1:2181", base("/zk-leader-run/other")));
}

/// What `zk-leaderctl WORDS` asks, with this file and these variables.
fn asked(file: &Written, words: &[&str], variables: &[(&str, &str)]) -> ctl::Asked {
    let arguments = [&["zk-leaderctl", "--config", file.name()], words].concat();
    let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let process_environment = ProcessEnvironment { variables, ..ProcessEnvironment::default() };
    ctl::load(arguments.iter().map(OsString::from), &process_environment).unwrap()
}

/// What it asks about.
fn selected(file: &Written, words: &[&str], variables: &[(&str, &str)]) -> String {
    format!("{:?}", asked(file, words, variables).selector)
}

/// An operator in an outage gets a word within seconds, however long zk-leader-run tries.
#[test]
fn zk_leaderctl_waits_as_long_as_its_own_command_line_says() {
    let file = written("connect = 'zk1'\nconnect-timeout = '40s'\n[election.a]\nconnect-timeout = '50s'\n");
    let limit = |words: &[&str]| asked(&file, words, &[("ZK_LEADER_RUN_CONNECT_TIMEOUT", "1h")]).limit;
    assert_eq!(limit(&["status", "a"]), Duration::from_secs(5));
    assert_eq!(limit(&["status", "a", "--connect-timeout", "7s"]), Duration::from_secs(7));
    assert_eq!(limit(&["--connect-timeout", "8s", "list"]), Duration::from_secs(8));
}

/// Else `list` would look for elections below an election, and find none.
#[test]
fn list_takes_no_path_of_one_election_for_its_root() {
    let (filed, empty) = (written("name = 'nightly'\npath = '/jobs/nightly'\n"), written(""));
    let variable = [("ZK_LEADER_RUN_PATH", "/jobs/nightly")];
    let below = |path: &str| format!("OnlyOneBelow(ZnodePath({path:?}))");
    assert_eq!(selected(&filed, &["list"], &[]), below("/zk-leader-run"));
    assert_eq!(selected(&empty, &["list"], &variable), below("/zk-leader-run"));
    assert_eq!(selected(&filed, &["list", "--path", "/jobs"], &variable), below("/jobs"));
    assert_eq!(selected(&filed, &["status"], &[]), "Base(ZnodePath(\"/jobs/nightly\"))", "a question about one");
}

#[test]
fn a_leaders_command_asks_about_its_own_election_whatever_the_file_names() {
    let file = written("name = 'web'\n");
    let asked = |typed: &[&str], variables: &[(&str, &str)]| selected(&file, typed, variables);
    let base = |path: &str| format!("Base(ZnodePath({path:?}))");
    let own = [("ZK_LEADER_PATH", "/jobs/ledger")];
    assert_eq!(asked(&["token-check", "7"], &own), base("/jobs/ledger"));
    assert_eq!(asked(&["put", "--fenced", "--token", "7", "/a", "b"], &own), base("/jobs/ledger"));
    assert_eq!(asked(&["token-check", "7", "other"], &own), base("/zk-leader-run/other"));
    assert_eq!(asked(&["token-check", "7"], &[]), base("/zk-leader-run/web"));
    assert_eq!(asked(&["status"], &own), base("/zk-leader-run/web"), "an operator's question");
}
