//! Help, version, trial and the reference: answers on standard output.

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

#[test]
fn the_reference_pages_are_not_stale() {
    golden("docs/options.md", &reference::options(&cli::command()));
    golden("docs/exit-codes.md", &reference::exit_codes());
}
