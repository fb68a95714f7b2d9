//! Help, version and trial: answers on standard output.

use super::*;

#[test]
fn help_version_and_trial_are_answers_on_standard_output() {
    for (typed, file) in [
        (&["-h"][..], "help-short.txt"),
        (&["--help"], "help-long.txt"),
        (
            &["--dry-run", "--name", "nightly", "--id", "me", "-z", "h1,h2/prod", "--", "sh", "-c", "echo 'a b'"],
            "dry-run.txt",
        ),
        (
            &[
                "--dry-run",
                "--id=me",
                "--wait=0",
                "--guarantee=at-least-one",
                "--on-pause=freeze",
                "--grace=3s",
                "--stop-reserve=2s",
                "--on-loss=exit",
                "--on-exit=rejoin",
                "--stop-timeout=0",
                "--contain=cgroup",
                "--foreground",
                "--lease=20s",
                "true",
            ],
            "dry-run-at-least-one.txt",
        ),
        (
            &["--dry-run", "--id=me", "--recipe=kazoo", "--election-path=/jobs/election", "--lease=10s", "true"],
            "dry-run-beside-others.txt",
        ),
    ] {
        let output = run(typed, &[]);
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{typed:?}");
        golden(&format!("tests/golden/{file}"), &String::from_utf8(output.stdout).unwrap());
    }
    for typed in ["-V", "--version"] {
        let output = run(&[typed], &[]);
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(output.stdout, concat!("zk-leader-run ", env!("CARGO_PKG_VERSION"), "\n").as_bytes());
    }
}

/// Beside other libraries, the command is stopped early only if it must not run twice.
#[test]
fn a_trial_beside_other_libraries_says_that_the_command_runs_on_at_least_once() {
    let said = |guarantee: &str| {
        let output = run(&["--dry-run", "--recipe=kazoo", "--election-path=/jobs/election", guarantee, "true"], &[]);
        assert_eq!(output.status.code(), Some(0));
        let text = String::from_utf8(output.stdout).unwrap();
        (text.contains("it is stopped half of a session timeout early"), text.contains("it runs on beside theirs"))
    };
    assert_eq!(said("--guarantee=at-most-one"), (true, false));
    assert_eq!(said("--guarantee=at-least-one"), (false, true));
}

#[test]
fn a_trial_says_how_long_an_outage_is_ridden_out_on_promises() {
    let typed = ["--dry-run", "--id=me", "-z", "h1,h2", "--vouch", "--vouch-address=10.0.0.7:4711", "true"];
    let output = run(&typed, &[]);
    assert_eq!(output.status.code(), Some(0));
    golden("tests/golden/dry-run-vouched.txt", &String::from_utf8(output.stdout).unwrap());
}

/// 30 s of reserve, 2.4 s of drift and 0.2 s of slack.
#[test]
fn a_trial_says_how_long_nobody_leads_after_a_leader_that_alone_is_cut_off_whatever_its_lease() {
    let output = run(&["--dry-run", "--session-timeout=120s", "-z", "h1,h2", "--vouch", "true"], &[]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("then the next one after 32.6s"), "{told}");
}

#[test]
fn man_and_completions_print_what_a_package_places() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for (program, name) in
        [(env!("CARGO_BIN_EXE_zk-leader-run"), "zk-leader-run"), (env!("CARGO_BIN_EXE_zk-leaderctl"), "zk-leaderctl")]
    {
        let printed = |words: &[&str], file: String| {
            let output = Command::new(program).args(words).env_clear().output().unwrap();
            let expected = std::fs::read(root.join(file)).unwrap();
            assert!(output.status.success() && output.stdout == expected, "{name} {words:?}");
        };
        printed(&["man"], format!("docs/man/{name}.1"));
        printed(&["completions", "bash"], format!("packaging/completions/{name}.bash"));
        printed(&["completions", "fish"], format!("packaging/completions/{name}.fish"));
        printed(&["completions", "zsh"], format!("packaging/completions/_{name}"));
        let refused = Command::new(program).args(["completions", "tcsh"]).env_clear().output().unwrap();
        assert_eq!(refused.status.code(), Some(64));
        assert!(String::from_utf8_lossy(&refused.stderr).contains("\"tcsh\" is not a choice; write bash, fish or zsh"));
    }
}

#[test]
fn the_help_of_man_and_completions_is_a_line_and_connects_to_nothing() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let address = server.local_addr().unwrap().to_string();
    for program in [env!("CARGO_BIN_EXE_zk-leader-run"), env!("CARGO_BIN_EXE_zk-leaderctl")] {
        for (words, part) in [
            (&["man", "--help"][..], " man prints the manual page"),
            (&["man", "-h"], " man prints the manual page"),
            (&["completions", "--help"], " completions SHELL prints what that shell needs"),
            (&["completions", "bash", "-h"], "SHELL is bash, fish or zsh"),
        ] {
            let variables = [("ZK_LEADER_RUN_CONNECT", address.as_str()), ("ZK_LEADER_RUN_CONNECT_TIMEOUT", "1s")];
            let mut asked = Command::new(program);
            let output = asked.args(words).env_clear().envs(variables).stdin(Stdio::null()).output().unwrap();
            let said = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {said}");
            assert!(said.contains(part) && said.lines().count() == 1, "{words:?}: {said}");
        }
    }
    assert_eq!(server.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

/// A script that keeps the answer in a file must not go on without it.
#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let (run, ctl) = (env!("CARGO_BIN_EXE_zk-leader-run"), env!("CARGO_BIN_EXE_zk-leaderctl"));
    for (program, words) in [
        (run, &["--help"][..]),
        (run, &["man"]),
        (run, &["--dry-run", "true"]),
        (ctl, &["--version"]),
        (ctl, &["completions", "fish"]),
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = Command::new(program).args(words).env_clear().env("PATH", "/usr/bin:/bin").stdout(full).output();
        let output = output.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let name = program.rsplit('/').next().unwrap();
        let sentence = "the answer could not be written to standard output: No space left on device";
        let is_said = said.starts_with(&format!("{name}: {sentence}"));
        assert!(output.status.code() == Some(74) && is_said, "{words:?}: {:?} {said}", output.status);
    }
    // Who closes a pipe has read enough.
    let mut asked = Command::new(run);
    let mut asked = asked.arg("man").env_clear().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(asked.stdout.take());
    assert_eq!(asked.wait_with_output().unwrap().status.code(), Some(0));
}

#[test]
fn a_command_called_man_is_run_if_more_is_said() {
    for typed in [&["--dry-run", "--", "man"][..], &["--dry-run", "man"], &["--dry-run", "completions", "bash"]] {
        let said = String::from_utf8(run(typed, &[("PATH", "/nowhere")]).stderr).unwrap();
        assert!(said.contains("was not found") || said.contains("not found"), "{typed:?}: {said}");
    }
}

#[test]
fn the_help_of_a_subcommand_is_about_its_own_options() {
    let ctl = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_zk-leaderctl")).args(words).env_clear().output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let help = ctl(&["handover", "--help"]);
    assert!(help.contains("--to <ID>") && help.contains("The common options (--connect"), "{help}");
    assert!(!help.contains("--tls-any-name") && !help.contains("Access to ZooKeeper"), "{help}");
    assert!(ctl(&["--help"]).contains("--tls-any-name"));
    golden("tests/golden/ctl-help.txt", &[ctl(&["-h"]), ctl(&["handover", "-h"])].join("\n"));
}

#[test]
fn a_trial_connects_to_nothing() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let output = run(&["--dry-run", "-z", &server.local_addr().unwrap().to_string(), "true"], &[]);
    assert!(output.status.success());
    assert_eq!(server.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn no_line_of_help_is_wider_than_a_screen() {
    for typed in ["-h", "--help"] {
        let help = String::from_utf8(run(&[typed], &[]).stdout).unwrap();
        for line in help.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}

#[test]
fn the_short_help_is_short() {
    let help = String::from_utf8(run(&["-h"], &[]).stdout).unwrap();
    assert!(help.lines().count() <= 120, "-h has {} lines", help.lines().count());
}
