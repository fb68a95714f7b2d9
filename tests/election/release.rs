//! The end of a command: nothing is released while anything of its tree lives.

use nix::sys::signal::Signal;

use super::{election, link, millis, secs};
use crate::support::{Diary, diary, subject, wait};

/// T3
#[test]
fn the_candidate_and_the_lease_are_kept_and_renewed_until_a_slow_command_is_gone() {
    let election = election();
    let mut host =
        election.host("a").session_timeout("6s").witness(&election.diary, &["linger=8000", "status=5"]).spawn();
    let start = election.diary.until_started(1);
    let candidates = election.candidates();
    let version = election.record_version();
    host.signal(Signal::SIGTERM);
    election.diary.until_noted("signal=15");
    while subject::is_alive(start.pid) {
        let (seen, state) = (election.candidates(), election.state());
        if subject::is_alive(start.pid) {
            assert_eq!((&seen, state.as_str()), (&candidates, "held"));
        }
        wait::pass(millis(20));
    }
    assert_eq!(host.code(), 5, "a requested stop does not hide the command's own status");
    assert!(election.record_version() - version > 4, "renewed for longer than the lease");
    assert_eq!((election.state().as_str(), election.candidates().len()), ("free", 0));
}

/// T3
#[test]
fn a_successor_of_a_slow_command_starts_only_when_it_is_gone() {
    let election = election();
    let host = election.steady_host("a").witness(&election.diary, &["linger=1500", "daemonise"]).spawn();
    election.diary.until_noted("orphan");
    let _next = election.steady_host("b").spawn();
    election.until_candidates(2);
    host.signal(Signal::SIGTERM);
    election.diary.until_started(2);
    election.diary.assert_no_overlap();
    assert_eq!(election.diary.starts()[1].told[1], "clean", "and then without a wait");
}

#[test]
fn a_command_that_ignores_the_stop_is_killed_after_the_stop_timeout() {
    let election = election();
    let witness = ["ignore-term", "daemonise"];
    let mut host =
        election.steady_host("a").witness(&election.diary, &witness).option("--stop-timeout", "300ms").spawn();
    election.diary.until_noted("orphan");
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 128 + 9);
    assert!(!election.diary.somebody_lives());
    assert_eq!((election.state().as_str(), election.candidates().len()), ("free", 0));
}

/// T6
#[test]
fn background_children_of_a_shell_are_gone_before_we_are() {
    let scripts =
        ["\"$0\" \"$1\" & wait", "\"$0\" \"$1\" & exec sleep 1000", "(\"$0\" \"$1\" ignore-term &) ; sleep 1000"];
    for script in scripts {
        let election = election();
        let (witness, path) = (subject::example("witness"), election.diary.path());
        let words = ["sh", "-c", script, witness.to_str().unwrap(), path.to_str().unwrap()];
        let mut host = election.steady_host("a").command(&words).spawn();
        election.diary.until_started(1);
        host.signal(Signal::SIGTERM);
        assert_eq!(host.code(), 0, "{script}: {}", host.log());
        assert!(!election.diary.somebody_lives(), "{script}");
        assert_eq!(election.state(), "free");
    }
}

/// T7
#[test]
fn a_daemon_left_by_a_command_that_ends_by_itself_is_gone_before_the_release() {
    let election = election();
    let witness = ["daemonise", "exit-after=3000", "status=3"];
    let mut first = election.steady_host("a").witness(&election.diary, &witness).spawn();
    election.diary.until_noted("orphan");
    let _next = election.steady_host("b").spawn();
    assert_eq!(first.code(), 3);
    election.diary.until_started(2);
    election.diary.assert_no_overlap();
}

/// T40
#[test]
fn a_release_that_is_not_confirmed_takes_a_second_and_one_line_and_keeps_the_status() {
    let election = election();
    let link = link();
    // With this timeout nothing else of note happens meanwhile: the contact counts as lost after 5 s.
    let mut host =
        election.host_behind(&link, "a").session_timeout("20s").witness(&election.diary, &["status=9"]).spawn();
    election.diary.until_started(1);
    link.stall();
    let stopped_at = diary::now();
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 9, "{}", host.log());
    let took = diary::now().saturating_sub(stopped_at);
    assert!(took > millis(900) && took < secs(8), "{took:?}");
    let log = host.log_without_standstills();
    let warnings: Vec<_> =
        log.lines().filter(|line| line.contains(" warning: ") || line.contains(" error: ")).collect();
    assert_eq!(warnings.len(), 1, "{log}");
    assert!(!election.diary.somebody_lives());
}

/// The witnesses of all these tests prove nothing if the lock does not see a daemon.
#[test]
fn the_diary_sees_a_daemon_that_has_outlived_its_command() {
    let diary = Diary::new();
    let mut witness = std::process::Command::new(subject::example("witness"));
    let mut child = witness.arg(diary.path()).args(["daemonise", "exit-after=200"]).spawn().unwrap();
    let daemon = diary.until_noted("orphan").pid;
    child.wait().unwrap();
    let is_seen = diary.somebody_lives();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(daemon), Signal::SIGKILL).unwrap();
    assert!(is_seen);
    diary.until_nobody_lives();
}
