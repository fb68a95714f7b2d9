//! `--health-cmd` and `--eligible-cmd`: who may lead, and that asking never holds up anything.

use std::path::PathBuf;

use nix::sys::signal::Signal;

use super::{election, secs};
use crate::support::subject::{children_of, guards_of, is_alive};
use crate::support::wait::AT_ONCE;
use crate::support::{Diary, Running, Subject, diary, wait};

/// A file whose existence is the health of a host.
fn sign(diary: &Diary, id: &str) -> PathBuf {
    diary.directory().join(format!("healthy-{id}"))
}

fn set(diary: &Diary, id: &str, is_healthy: bool) {
    if is_healthy {
        std::fs::write(sign(diary, id), "").unwrap();
    } else {
        std::fs::remove_file(sign(diary, id)).unwrap();
    }
}

/// Asks often, and believes two failures.
fn asked(host: Subject, command: &str) -> Subject {
    host.option("--health-cmd", command)
        .option("--health-interval", "100ms")
        .option("--health-failures", "2")
        .option("--health-timeout", "5s")
}

fn host(election: &crate::support::Election, id: &str) -> Subject {
    asked(election.steady_host(id), &format!("test -e {}", sign(&election.diary, id).display()))
}

#[test]
fn an_unhealthy_standby_does_not_contend_and_can_be_stopped_at_once() {
    let election = election();
    election.prepare();
    let mut sick = host(&election, "a").spawn();
    sick.until_logged(
        "exited with status 1; this host does not stand in line until it succeeds; it is asked again in 100ms",
    );
    assert_eq!(election.candidates(), Vec::<String>::new());
    let _well = election.steady_host("b").spawn();
    assert_eq!(election.diary.until_started(1).id, "b");
    set(&election.diary, "a", true);
    election.until_candidates(2);
    set(&election.diary, "a", false);
    election.until_candidates(1);
    let stopped_at = diary::now();
    sick.signal(Signal::SIGTERM);
    assert_eq!(sick.code(), 0);
    assert!(diary::now().saturating_sub(stopped_at) < AT_ONCE);
    assert_eq!(election.diary.starts().len(), 1);
}

#[test]
fn an_unhealthy_leader_stops_its_command_hands_over_cleanly_and_comes_back() {
    let election = election();
    set(&election.diary, "a", true);
    let first = host(&election, "a").witness(&election.diary, &["daemonise"]).spawn();
    assert_eq!(election.diary.until_started(1).id, "a");
    let _second = election.steady_host("b").spawn();
    election.until_candidates(2);
    set(&election.diary, "a", false);
    let successor = election.diary.until_started(2);
    assert_eq!((successor.id.as_str(), successor.told[1].as_str()), ("b", "clean"));
    election.diary.until_noted("signal=15");
    election.diary.assert_no_overlap();
    election.until_candidates(1);
    first.until_logged("Unhealthy: the health command failed: it exited with status 1");
    set(&election.diary, "a", true);
    election.until_candidates(2);
    assert_eq!(election.diary.starts().len(), 2, "b keeps it");
}

/// T30
#[test]
fn a_health_check_that_hangs_has_failed_and_is_killed_with_all_it_started() {
    let election = election();
    set(&election.diary, "a", true);
    let command = format!("test -e {} || {{ sleep 999 & sleep 999; }}", sign(&election.diary, "a").display());
    let first = asked(election.steady_host("a"), &command).option("--health-timeout", "2s").spawn();
    election.diary.until_started(1);
    let guard = wait::for_some("health has a guard", || guards_of(first.pid()).get(1).copied());
    let _second = election.steady_host("b").spawn();
    election.until_candidates(2);
    set(&election.diary, "a", false);
    let sleeper = wait::for_some("a check hangs", || {
        let check = *children_of(guard).first()?;
        children_of(check).first().copied()
    });
    let hung_at = diary::now();
    assert_eq!(election.diary.until_started(2).id, "b");
    let resigned = diary::now().saturating_sub(hung_at);
    assert!(resigned < secs(20), "two checks of 2 s each, and a stop: {resigned:?}");
    first.until_logged("Unhealthy: the health command failed: it took longer than 2s and was killed");
    wait::until("what the check started is gone", || !is_alive(sleeper));
    election.diary.assert_no_overlap();
}

#[test]
fn failures_during_the_start_up_period_of_the_command_do_not_count() {
    let election = election();
    let slow_to_come_up = asked(election.steady_host("a"), r#"test "$ZK_LEADER_ROLE" = standby"#);
    let host = slow_to_come_up.option("--health-grace", "5s").spawn();
    let start = election.diary.until_started(1);
    host.until_logged("Unhealthy");
    election.diary.until_noted("signal=15");
    let lived = election.diary.last_seen(start.pid).saturating_sub(start.at);
    // On a busy machine it notes its start long after the period has begun; without one it would live for some tenths of a second.
    assert!(lived > secs(2), "{lived:?}");
}

#[test]
fn a_leader_whose_health_cannot_be_asked_any_more_hands_over_and_the_process_ends() {
    let election = election();
    set(&election.diary, "a", true);
    let mut first = host(&election, "a").witness(&election.diary, &["daemonise", "linger=300"]).spawn();
    election.diary.until_started(1);
    let _second = election.steady_host("b").spawn();
    election.until_candidates(2);
    kill_guard_of_check(&first);
    assert_eq!(election.diary.until_started(2).id, "b");
    assert_eq!(first.code(), 70);
    assert!(first.log().contains("The guard of --health-cmd died"), "{}", first.log());
    assert!(!first.log().contains("Unhealthy"), "{}", first.log());
    election.diary.assert_no_overlap();
}

/// It would be unhealthy, or not eligible, until somebody looks.
#[test]
fn a_standby_that_cannot_be_asked_any_more_ends() {
    let election = election();
    let _leader = election.steady_host("z").spawn();
    election.diary.until_started(1);
    let mut unasked = election.steady_host("a").option("--eligible-cmd", "sleep 999").spawn();
    unasked.until_logged("Session was opened");
    kill_guard_of_check(&unasked);
    assert_eq!(unasked.code(), 70);
    assert!(unasked.log().contains("The guard of --eligible-cmd died"), "{}", unasked.log());
    let mut sick = host(&election, "b").spawn();
    sick.until_logged("The health command failed: it exited with status 1");
    kill_guard_of_check(&sick);
    assert_eq!(sick.code(), 70);
    assert!(election.diary.somebody_lives());
}

/// Stopped with all its processes while a check runs: the kernel kills the guard of the check. Nothing of it is left, and no lease is
/// involved, so the host need not be lost.
#[test]
fn a_host_that_was_frozen_during_a_check_contends_again() {
    let election = election();
    let _leader = election.steady_host("z").spawn();
    election.diary.until_started(1);
    let frozen = |id: &str| {
        let check = format!("[ -e {sign} ] || exec sleep 998", sign = sign(&election.diary, id).display());
        asked(election.host(id), &check).option("--health-timeout", "1s")
    };
    for (id, limit) in [("a", None), ("b", Some("1h"))] {
        set(&election.diary, id, true);
        let mut host = limit.iter().fold(frozen(id), |host, limit| host.option("--wait", limit)).spawn();
        host.until_logged("Healthy");
        set(&election.diary, id, false);
        let guard = wait::for_some("the check has a guard", || guards_of(host.pid()).get(1).copied());
        let check = wait::for_some("a check runs", || children_of(guard).first().copied());
        freeze(&host, guard, check);
        set(&election.diary, id, true);
        host.signal(Signal::SIGCONT);
        if limit.is_some() {
            assert_eq!(host.code(), 70, "its wait would begin anew");
            assert!(host.log().contains("The guard of --health-cmd died"), "{}", host.log());
            continue;
        }
        host.until_logged("rejoining, with new guards: this host stood still");
        host.until_logged_times("Healthy", 2);
        election.until_candidates(2);
        assert!(!host.has_exited() && !is_alive(check), "{}", host.log());
    }
    assert_eq!(election.diary.starts().len(), 1);
}

/// Until the kernel has killed the guard of the check.
fn freeze(host: &Running, guard: i32, check: i32) {
    for pid in [check, guard] {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    }
    host.signal(Signal::SIGSTOP);
    wait::until("the kernel has killed the guard", || !is_alive(guard));
}

#[track_caller]
fn kill_guard_of_check(host: &Running) {
    let guard = wait::for_some("the check has a guard", || guards_of(host.pid()).get(1).copied());
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(guard), Signal::SIGKILL).unwrap();
}

#[test]
fn an_eligibility_command_is_asked_until_it_agrees_and_then_never_again() {
    let election = election();
    election.prepare();
    let count = election.diary.directory().join("asked");
    let command = format!("echo x >>{}; test -e {}", count.display(), sign(&election.diary, "a").display());
    let asked = || std::fs::read_to_string(&count).unwrap_or_default().lines().count();
    let host = election.steady_host("a").option("--eligible-cmd", &command).option("--stand-back", "100ms");
    let host = host.option("--on-exit", "rejoin").witness(&election.diary, &["exit-after=50"]).spawn();
    host.until_logged(
        "Not eligible: the eligibility command refused: it exited with status 1; this host does not stand in line",
    );
    wait::until("it is asked again", || asked() > 2);
    assert_eq!(election.candidates().len(), 0);
    set(&election.diary, "a", true);
    election.diary.until_started(1);
    let questions = asked();
    election.diary.until_started(4);
    assert_eq!(asked(), questions);
}

/// There is no znode of it yet.
#[test]
fn the_first_host_of_an_election_says_why_it_does_not_lead() {
    let election = election();
    let host = election.steady_host("a").option("--eligible-cmd", "exit 1").spawn();
    host.until_logged("Waiting: not in line; the eligibility command reports that this host may not lead");
}
