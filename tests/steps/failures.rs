//! Steps that fail, hang, leave processes behind, or cannot be killed; stops and deaths while one runs.

use nix::sys::signal::Signal;

use super::{election, host, noted, secs, until_noted, wait, with_steps, witness};
use crate::support::subject::{children_of, guards_of, is_alive};
use crate::support::tracer::Tracer;
use crate::support::{Election, Running, diary, http};

/// The first process of the step that runs in the guard of this number.
fn step_of(host: &Running, guard: usize) -> i32 {
    let guard = wait::for_some("the step has a guard", || guards_of(host.pid()).get(guard).copied());
    wait::for_some("the step runs", || children_of(guard).into_iter().next())
}

const BEFORE_START: usize = 1;

#[track_caller]
fn kill_guard(host: &Running, number: usize) {
    let guard = wait::for_some("the step has a guard", || guards_of(host.pid()).get(number).copied());
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(guard), Signal::SIGKILL).unwrap();
}

fn leads_instead(election: &Election, why: &str, first: &Running) {
    first.until_logged(&format!("--before-start failed: {why}"));
    first.until_logged("the command of --before-start failed or took too long");
    let _second = host(election, "b").spawn();
    assert_eq!(election.diary.until_started(1).id, "b");
    assert_eq!(noted(election)[..2], ["before a elected", "after a before-start-failed"]);
    election.diary.assert_no_overlap();
}

#[test]
fn a_host_whose_before_start_fails_stands_back_and_says_why() {
    let election = election();
    let first = with_steps(election.steady_host("a"), &election, "a", "exit 3", "true").spawn();
    leads_instead(&election, "it exited with status 3", &first);
}

/// Status 0 would tell cron that the run is somebody else's.
#[test]
fn a_run_whose_before_start_fails_is_no_success_though_nobody_was_elected_in_time() {
    let election = election();
    let mut host = with_steps(election.steady_host("a"), &election, "a", "exit 3", "true")
        .option("--wait", "0")
        .option("--conflict-exit-code", "0")
        .spawn();
    host.until_logged("--before-start failed: it exited with status 3");
    assert_eq!(host.code(), 75, "{}", host.log());
    host.until_logged("following -> done: this host was elected, but --before-start or --fence-cmd failed");
    assert!(election.diary.starts().is_empty());
}

#[test]
fn a_before_start_that_hangs_and_forks_is_ended_with_its_tree_and_another_host_leads() {
    let election = election();
    let hangs = "trap '' TERM; sleep 98765 & sleep 98765; sleep 98765";
    let first = with_steps(election.steady_host("a"), &election, "a", hangs, "true");
    let first = first.option("--before-start-timeout", "2s").spawn();
    let step = step_of(&first, BEFORE_START);
    let children = wait::for_some("it forks", || Some(children_of(step)).filter(|children| children.len() == 2));
    leads_instead(&election, "it took longer than 2s and was killed", &first);
    assert!(!is_alive(step) && !children.into_iter().any(is_alive));
}

#[test]
fn a_before_start_longer_than_the_lease_is_waited_for_while_the_lease_is_renewed() {
    let election = election();
    let _first = with_steps(election.host("a").session_timeout("6s"), &election, "a", "sleep 9", "true").spawn();
    until_noted(&election, "before a elected");
    let _second = host(&election, "b").spawn();
    let begun_at = diary::now();
    let start = election.diary.until_started(1);
    assert_eq!(start.id, "a");
    assert!(start.at.saturating_sub(begun_at) > secs(4), "the step was awaited");
    assert_eq!(noted(&election), ["before a elected"]);
}

#[test]
fn a_stop_request_ends_before_start_and_a_second_one_kills_it() {
    let election = election();
    for (what, signals) in [("sleep 98765", 1), ("trap '' TERM; sleep 98765; sleep 98765", 2)] {
        let mut first = with_steps(election.steady_host("a"), &election, "a", what, "true").spawn();
        step_of(&first, BEFORE_START);
        first.until_logged("Running --before-start");
        first.signal(Signal::SIGTERM);
        if signals == 2 {
            first.until_logged("preparing -> stopping");
            // At once it would be the same request.
            wait::pass(std::time::Duration::from_millis(500));
            first.signal(Signal::SIGTERM);
        }
        assert_eq!(first.code(), 0, "{what}");
        first.until_logged("--before-start was stopped before it had ended");
        assert!(!first.log().contains("--before-start failed"), "{}", first.log());
        assert_eq!(election.state(), "free", "{what}");
    }
    assert_eq!(election.diary.starts(), []);
    until_noted(&election, "after a stop-requested");
}

/// It is not killed at once: SIGTERM tells it, and it has its time.
#[test]
fn a_before_start_that_a_stop_request_ends_can_undo_what_it_has_begun() {
    let election = election();
    let [begun, undone] = ["begun", "undone"].map(|name| election.diary.directory().join(name));
    let undoes = format!("trap 'touch {}; exit 1' TERM", undone.display());
    let what = format!("{undoes}; touch {}; while :; do sleep 0.05; done", begun.display());
    let mut first = with_steps(election.steady_host("a"), &election, "a", &what, "true").spawn();
    wait::until("the step has begun", || begun.exists());
    first.signal(Signal::SIGTERM);
    assert_eq!(first.code(), 0);
    assert!(undone.exists(), "it was killed without a word: {}", first.log());
    assert_eq!(election.state(), "free");
}

/// The whole tree of a step dies with its supervisor, whose lease is left to run out.
#[test]
fn a_supervisor_killed_during_a_step_takes_the_step_along_and_nobody_starts_before_its_lease_is_over() {
    for during_after_stop in [false, true] {
        let election = election();
        let step = witness(&election, "ignore-term daemonise");
        let option = if during_after_stop { "--after-stop" } else { "--before-start" };
        let first = election.host("a").option(option, &step).spawn();
        election.diary.until_started(1);
        if during_after_stop {
            first.signal(Signal::SIGTERM);
            election.diary.until_started(2);
        }
        let _second = host(&election, "b").spawn();
        election.until_candidates(2);
        let killed_at = diary::now();
        first.kill();
        let next = if during_after_stop { 3 } else { 2 };
        let start = election.diary.until_started(next);
        assert_eq!((start.id.as_str(), start.told[1].as_str()), ("b", "unclean"), "{option}");
        assert!(start.at.saturating_sub(killed_at) > secs(1), "{option}: nobody freed the record");
        election.diary.assert_no_overlap();
    }
}

#[test]
fn a_host_whose_step_lost_its_guard_ends_with_70_when_the_steps_tree_is_gone() {
    let election = election();
    let step = witness(&election, "ignore-term daemonise");
    let mut first = election.steady_host("a").option("--before-start", &step).spawn();
    election.diary.until_started(1);
    kill_guard(&first, BEFORE_START);
    assert_eq!(first.code(), 70);
    assert!(!election.diary.somebody_lives());
    assert_eq!(election.state(), "free");
}

/// Decision 25: a host without its steps must not lead.
#[test]
fn a_host_whose_idle_step_lost_its_guard_ends_with_70_whether_it_leads_or_waits() {
    let election = election();
    let mut leader = election.steady_host("a").option("--after-stop", "true").spawn();
    election.diary.until_started(1);
    let mut standby = election.steady_host("b").option("--after-stop", "true").spawn();
    election.until_candidates(2);
    for host in [&mut standby, &mut leader] {
        kill_guard(host, 1);
        assert_eq!(host.code(), 70, "{}", host.log());
        assert!(host.log().contains("the guard process of a check or step of this host died"), "{}", host.log());
    }
    assert!(!election.diary.somebody_lives());
    assert_eq!((election.state().as_str(), election.diary.starts().len()), ("free", 1));
}

/// The record is neither freed nor renewed for a step that survives SIGKILL.
#[test]
fn a_step_that_survives_sigkill_costs_its_host_the_lease_and_the_next_one_its_wait() {
    let election = election();
    let first = with_steps(election.host("a"), &election, "a", "exec sleep 98765", "true");
    // Long enough to catch it before.
    let first = first.option("--before-start-timeout", "4s").option("--http", "127.0.0.1:0").spawn();
    let (step, page) = (step_of(&first, BEFORE_START), http::address_of(&first));
    let tracer = Tracer::of(step);
    assert_eq!(http::status(page)["protection"], "armed", "as for the command");
    let _second = host(&election, "b").spawn();
    election.until_candidates(2);
    let start = election.diary.until_started(1);
    assert_eq!((start.id.as_str(), start.told[1].as_str()), ("b", "unclean"));
    assert!(!first.log().contains("--before-start failed:"), "it lives");
    wait::until("each report is counted, so that the alert lasts", || {
        let metrics = http::get(page, "/metrics").unwrap().body;
        let line = metrics.lines().find(|line| line.starts_with("zk_leader_run_stuck_reports_total")).unwrap();
        line.rsplit(' ').next().unwrap().parse::<u32>().unwrap() > 1
    });
    drop(tracer);
    first.until_logged("--before-start failed:");
    assert_eq!(noted(&election), ["before a elected", "before b elected"]);
}
