//! What systemd is told, at a socket in its place.

use nix::sys::signal::Signal;

use super::{election, link, secs};
use crate::support::{Notified, Subject, wait};

fn notifying(host: Subject, notified: &Notified) -> Subject {
    host.env("NOTIFY_SOCKET", notified.socket().to_str().unwrap())
}

/// T33: READY is neither too soon nor too late, and every change is told.
#[test]
fn a_standby_is_ready_and_one_that_is_to_lead_is_ready_when_it_leads() {
    let election = election();
    let [first, second, third] = [(); 3].map(|()| Notified::listening());
    // A lease longer than --stop-timeout would count for the time that a stop may take.
    let mut leader = notifying(election.host("a").session_timeout("10s"), &first).spawn();
    election.diary.until_started(1);
    let standby = notifying(election.steady_host("b"), &second).spawn();
    election.until_candidates(2);
    let _eager = notifying(election.steady_host("c"), &third).option("--ready-on", "leading").spawn();
    first.until_told(&format!("STATUS=leading, token {}", election.term().mzxid));
    second.until_told("READY=1");
    second.until_told("STATUS=following, next in line");
    third.until_told("STATUS=following, in line behind 2 others");
    assert_eq!(third.count("READY=1"), 0);
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.code(), 0);
    first.until_told("STOPPING=1");
    // The ten seconds of --stop-timeout, and what closing may take.
    first.until_told("EXTEND_TIMEOUT_USEC=25000000");
    assert_eq!(first.count("READY=1"), 1);
    second.until_told(&format!("STATUS=leading, token {}", election.term().mzxid));
    assert_eq!(second.count("READY=1"), 1);
    standby.signal(Signal::SIGTERM);
    third.until_told("READY=1");
}

/// systemd must not kill what it has configured itself to wait for.
#[test]
fn a_stop_may_take_as_long_as_the_last_step_and_the_last_hook_too() {
    let election = election();
    let notified = Notified::listening();
    let host = election.steady_host("a").option("--hook", "true").option("--hook-timeout", "100s");
    let host = host.option("--after-stop", "true").option("--after-stop-timeout", "1000s");
    let mut host = notifying(host, &notified).spawn();
    election.diary.until_started(1);
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0);
    notified.until_told("EXTEND_TIMEOUT_USEC=1125000000");
}

#[test]
fn a_lost_lease_is_no_stop_and_a_unit_that_cannot_reach_the_ensemble_is_not_ready() {
    let election = election();
    let link = link();
    let notified = Notified::listening();
    link.stall();
    let host = notifying(election.host_behind(&link, "a"), &notified).spawn();
    notified.until_told("STATUS=following, no contact with ZooKeeper");
    wait::pass(secs(1));
    assert_eq!(notified.count("READY=1"), 0);
    link.heal();
    notified.until_told("READY=1");
    election.diary.until_started(1);
    link.stall();
    election.diary.until_nobody_lives();
    link.heal();
    election.diary.until_started(2);
    assert_eq!(notified.count("STOPPING=1"), 0, "{:?}", notified.lines());
    drop(host);
}

/// By the third in line, too, whose loop nothing else wakes: the next one hears of each renewal.
#[test]
fn the_watchdog_is_fed_while_both_the_loop_and_the_guard_answer() {
    let election = election();
    let notified = Notified::listening();
    let _leader = election.steady_host("a").spawn();
    election.diary.until_started(1);
    let _next = election.steady_host("b").spawn();
    election.until_candidates(2);
    let standby = notifying(election.steady_host("c"), &notified).env("WATCHDOG_USEC", "600000").spawn();
    let signs = || notified.count("WATCHDOG=1");
    let fed = || {
        let before = signs();
        wait::until("the watchdog is fed", || signs() >= before + 2);
    };
    // What was on its way may come late.
    let starved = || {
        let is_starved = wait::held_within(secs(15), || {
            let before = signs();
            wait::pass(secs(2));
            signs() == before
        });
        assert!(is_starved, "fed by half of us");
    };
    fed();
    standby.signal_guard(Signal::SIGSTOP);
    starved();
    standby.signal_guard(Signal::SIGCONT);
    fed();
    standby.signal(Signal::SIGSTOP);
    starved();
    standby.signal(Signal::SIGCONT);
    fed();
}

#[test]
fn the_watchdog_is_fed_while_the_last_hooks_run_and_nobody_complains() {
    let election = election();
    let notified = Notified::listening();
    let begun = election.diary.directory().join("last");
    let hook = format!("if test $ZK_LEADER_EVENT = released; then touch {}; sleep 6; fi", begun.display());
    let leader = election.steady_host("a").option("--hook", &hook);
    let mut leader = notifying(leader, &notified).env("WATCHDOG_USEC", "600000").spawn();
    election.diary.until_started(1);
    leader.signal(Signal::SIGTERM);
    wait::until("the last hook runs", || begun.exists());
    let before = notified.count("WATCHDOG=1");
    wait::until("the watchdog is fed", || notified.count("WATCHDOG=1") >= before + 4);
    assert_eq!(leader.code(), 0, "{}", leader.log());
    assert!(!leader.log().contains("does not answer"), "{}", leader.log());
}

#[test]
fn a_watchdog_of_another_process_and_no_socket_are_none_of_ours() {
    let election = election();
    let notified = Notified::listening();
    let stranger =
        notifying(election.steady_host("a"), &notified).env("WATCHDOG_USEC", "200000").env("WATCHDOG_PID", "1").spawn();
    notified.until_told("READY=1");
    wait::pass(secs(1));
    assert_eq!(notified.count("WATCHDOG=1"), 0);
    drop(stranger);
    let nowhere = election.steady_host("b").env("NOTIFY_SOCKET", "relative").spawn();
    nowhere.until_logged("NOTIFY_SOCKET 'relative' cannot be used");
    election.diary.until_started(2);
}
