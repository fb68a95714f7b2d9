//! Steps under a lease that ends: their trees are dead before another host starts anything.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{election, host, link, millis, noted, wait, witness};
use crate::support::election::{SESSION_TIMEOUT, STEADY};
use crate::support::subject::{children_of, guards_of};

const STUBBORN: &str = "ignore-term daemonise";

#[test]
fn a_before_start_whose_host_is_cut_off_is_dead_before_the_next_leader_begins() {
    let election = election();
    let link = link();
    let step = witness(&election, STUBBORN);
    let first = election.host_behind(&link, "a").option("--before-start", &step).spawn();
    election.diary.until_started(1);
    let _second = host(&election, "b").spawn();
    election.until_candidates(2);
    link.stall();
    assert_eq!(election.diary.until_started(2).id, "b");
    election.diary.assert_no_overlap();
    first.until_logged("preparing -> stopping");
}

/// Neither a stopped supervisor nor a stopped guard of the step keeps it alive.
#[test]
fn a_step_whose_supervisor_or_guard_is_stopped_is_dead_before_the_next_leader_begins() {
    for stop_guard in [false, true] {
        let election = election();
        let step = witness(&election, STUBBORN);
        let first = election.host("a").option("--before-start", &step).spawn();
        election.diary.until_started(1);
        let guard = wait::for_some("the step has a guard", || guards_of(first.pid()).get(1).copied());
        let _second = host(&election, "b").spawn();
        election.until_candidates(2);
        let pids = if stop_guard { vec![first.pid(), guard] } else { vec![first.pid()] };
        for pid in pids {
            kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
        }
        assert_eq!(election.diary.until_started(2).id, "b", "{stop_guard}");
        election.diary.assert_no_overlap();
    }
}

/// A step that hangs delays the release by its own time limit, and not by more.
#[test]
fn an_after_stop_that_hangs_is_ended_at_its_timeout_and_the_record_is_freed() {
    let election = election();
    let step = witness(&election, STUBBORN);
    let host = election.host("a").session_timeout("20s").option("--after-stop", &step);
    let mut host = host.option("--after-stop-timeout", "1s").spawn();
    election.diary.until_started(1);
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0);
    assert!(!election.diary.somebody_lives());
    assert_eq!(election.state(), "free");
    assert!(host.log().contains("--after-stop failed: it took longer than 1s and was killed"), "{}", host.log());
}

/// What the step has not undone, somebody must look for; its own time limit is not to be raised.
#[test]
fn an_after_stop_that_is_ended_before_its_time_says_why() {
    for (its_lease_ends, why) in
        [(true, "the lease ended first, and it was killed"), (false, "it was killed before it had ended")]
    {
        let (election, link) = (election(), link());
        let host =
            election.host_behind(&link, "a").session_timeout(if its_lease_ends { SESSION_TIMEOUT } else { STEADY });
        let host = host.option("--after-stop", "exec sleep 98765");
        let host = host.option("--after-stop-timeout", "30s").option("--log-level", "warn").spawn();
        election.diary.until_started(1);
        host.signal(Signal::SIGTERM);
        wait::until("the step runs", || {
            guards_of(host.pid()).get(1).is_some_and(|guard| !children_of(*guard).is_empty())
        });
        if its_lease_ends {
            link.stall();
        } else {
            // At once it would be the same request.
            wait::pass(millis(500));
            host.signal(Signal::SIGTERM);
        }
        host.until_logged(&format!("--after-stop failed: {why}"));
    }
}

/// A guard that is stopped before it reads the order would leave the machine waiting for ever.
#[test]
fn a_guard_that_does_not_take_the_order_is_killed_and_the_process_ends() {
    let election = election();
    election.prepare();
    let holder = election.steady_host("z").spawn();
    election.diary.until_started(1);
    let mut waiting = host(&election, "a").option("--before-start-timeout", "2s").spawn();
    election.until_candidates(2);
    let guard = wait::for_some("it has guards", || guards_of(waiting.pid()).get(1).copied());
    kill(Pid::from_raw(guard), Signal::SIGSTOP).unwrap();
    wait::pass(millis(100));
    holder.signal(Signal::SIGTERM);
    assert_eq!(waiting.code(), 70);
    assert!(waiting.log().contains("did not take the order in time"), "{}", waiting.log());
    // The time of the step is over at the same moment: either is the reason.
    let reasons = ["after a guard-gone", "after a before-start-failed"];
    wait::until("it ends its term", || noted(&election).iter().any(|note| reasons.contains(&note.as_str())));
    assert_eq!(election.diary.starts().len(), 1);
}
