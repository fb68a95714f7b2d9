//! The order of the steps, and why a term ends: each way in which it can.

use std::process::Command;

use nix::sys::signal::Signal;

use super::{election, host, link, noted, until_noted, wait, with_steps, witness};
use crate::support::Election;

fn ctl(election: &Election, words: &[&str]) {
    let mut ctl = Command::new(env!("CARGO_BIN_EXE_zk-leaderctl"));
    let told = ctl.args(["-z", election.servers()]).args(words).output().unwrap();
    assert!(told.status.success(), "{words:?}: {}", String::from_utf8_lossy(&told.stderr));
}

/// With the witness as every step: no two of all these trees live at once, on one host or on two.
#[test]
fn each_step_and_each_command_runs_alone_also_when_they_leave_daemons() {
    let election = election();
    let steps = |id: &str| {
        let step = witness(&election, "daemonise exit-after=100");
        election.steady_host(id).option("--before-start", &step).option("--after-stop", &step)
    };
    let first = steps("a").witness(&election.diary, &["daemonise", "linger=100"]).spawn();
    election.diary.until_started(2);
    let _second = steps("b").spawn();
    election.until_candidates(2);
    first.signal(Signal::SIGTERM);
    let starts = [election.diary.until_started(5), election.diary.until_started(3), election.diary.until_started(4)];
    let ids = starts.map(|start| start.id);
    assert_eq!(ids, ["b", "a", "b"], "step, command and step here; step and command there");
    election.diary.assert_no_overlap();
}

#[test]
fn a_requested_stop_runs_after_stop_when_the_tree_is_dead_and_before_the_release() {
    let election = election();
    let slow = with_steps(election.host("a").session_timeout("6s"), &election, "a", "true", "sleep 8");
    // Longer than the lease, which is renewed meanwhile.
    let mut first = slow.witness(&election.diary, &["daemonise"]).spawn();
    let start = election.diary.until_started(1);
    let _second = host(&election, "b").spawn();
    election.until_candidates(2);
    first.signal(Signal::SIGTERM);
    until_noted(&election, "after a stop-requested");
    assert!(!election.diary.somebody_lives(), "the tree is dead");
    assert_eq!((election.state().as_str(), election.record()["holder"]["id"].as_str()), ("held", Some("a")));
    assert_eq!(election.diary.until_started(2).id, "b");
    assert_eq!(first.code(), 0);
    assert_eq!(noted(&election), ["before a elected", "after a stop-requested", "before b elected"]);
    let text = std::fs::read_to_string(election.diary.directory().join("steps")).unwrap();
    let told = format!("before a elected {} a", start.token);
    assert_eq!(text.lines().next(), Some(told.as_str()), "the same variables as the command");
    assert!(first.log().contains("--after-stop succeeded"));
    election.diary.assert_no_overlap();
}

#[test]
fn every_way_to_end_a_term_in_order_runs_after_stop_and_says_why() {
    let election = election();
    let sick = election.diary.directory().join("sick");
    let check = format!("test ! -e {}", sick.display());
    let health = |id| host(&election, id).option("--health-cmd", &check).option("--health-interval", "100ms");
    let first = health("a").option("--health-failures", "1").option("--stand-back", "100ms").spawn();
    election.diary.until_started(1);
    ctl(&election, &["disable", "--reason", "test", &election.name]);
    until_noted(&election, "after a disabled");
    ctl(&election, &["enable", &election.name]);
    election.diary.until_started(2);
    std::fs::write(&sick, "").unwrap();
    until_noted(&election, "after a unhealthy");
    std::fs::remove_file(&sick).unwrap();
    election.diary.until_started(3);
    let _second = host(&election, "b").spawn();
    election.until_candidates(2);
    ctl(&election, &["handover", &election.name]);
    until_noted(&election, "after a handing-over");
    assert_eq!(election.diary.until_started(4).id, "b");
    drop(first);
    election.diary.assert_no_overlap();
}

#[test]
fn the_commands_own_end_runs_after_stop_once_a_term() {
    for (on_exit, why) in [("exit", "command-ended"), ("rejoin", "command-ended"), ("restart", "crash-loop")] {
        let election = election();
        let host = host(&election, "a").option("--on-exit", on_exit).option("--stand-back", "10m");
        let host = host.option("--max-restarts", "2").option("--restart-delay", "10ms");
        let host = host.option("--min-start-interval", "1s").witness(&election.diary, &["exit-after=100", "status=3"]);
        let mut host = host.spawn();
        until_noted(&election, &format!("after a {why}"));
        let runs = if on_exit == "restart" { 3 } else { 1 };
        assert!(election.diary.starts().len() >= runs, "{on_exit}");
        assert_eq!(noted(&election)[..2], ["before a elected".to_owned(), format!("after a {why}")], "{on_exit}");
        if on_exit == "exit" {
            assert_eq!(host.code(), 3);
        }
    }
}

/// The command obeys SIGTERM at `stop_at`: a quarter of the lease is left for the step.
#[test]
fn a_leader_that_is_cut_off_runs_after_stop_under_what_is_left_of_its_lease() {
    let election = election();
    let link = link();
    let step = witness(&election, "daemonise ignore-term");
    let first = election.host_behind(&link, "a").session_timeout("12s").option("--after-stop", &step).spawn();
    election.diary.until_started(1);
    let _second = host(&election, "b").spawn();
    election.until_candidates(2);
    link.stall();
    assert_eq!(election.diary.until_started(2).id, "a", "the step");
    assert_eq!(election.diary.until_started(3).id, "b", "the next leader");
    election.diary.assert_no_overlap();
    first.until_logged("--after-stop failed");
}

#[test]
fn a_candidate_that_is_deleted_leaves_the_step_what_is_left_of_the_lease() {
    let election = election();
    let _first = host(&election, "a").witness(&election.diary, &["linger=500"]).spawn();
    election.diary.until_started(1);
    let _second = host(&election, "b").spawn();
    election.until_candidates(2);
    election.admin.delete(&election.first());
    assert_eq!(election.diary.until_started(2).id, "b");
    assert_eq!(noted(&election), ["before a elected", "after a candidate-gone", "before b elected"]);
    election.diary.assert_no_overlap();
}

/// The command ignores SIGTERM until the lease is over.
#[test]
fn a_lease_that_ended_first_leaves_after_stop_out_and_says_so() {
    let election = election();
    let link = link();
    let first = with_steps(election.host_behind(&link, "a"), &election, "a", "true", "true");
    let first = first.witness(&election.diary, &["ignore-term"]).spawn();
    election.diary.until_started(1);
    let _second = host(&election, "b").spawn();
    election.until_candidates(2);
    link.stall();
    assert_eq!(election.diary.until_started(2).id, "b");
    first.until_logged("--after-stop is not run: the lease is over");
    assert_eq!(noted(&election), ["before a elected", "before b elected"]);
    election.diary.assert_no_overlap();
}

#[test]
fn a_killed_guard_does_not_cost_the_step() {
    let election = election();
    let mut first = host(&election, "a").witness(&election.diary, &["daemonise"]).spawn();
    election.diary.until_started(1);
    first.signal_guard(Signal::SIGKILL);
    assert_eq!(first.code(), 70);
    assert_eq!(noted(&election), ["before a elected", "after a guard-gone"]);
    assert_eq!(election.state(), "free");
}

/// The next leader takes over what is left.
#[test]
fn a_killed_supervisor_runs_no_step_and_the_next_one_begins_with_its_own() {
    let election = election();
    let first = host(&election, "a").spawn();
    election.diary.until_started(1);
    let _second = host(&election, "b").spawn();
    election.until_candidates(2);
    first.kill();
    assert_eq!(election.diary.until_started(2).id, "b");
    assert_eq!(noted(&election), ["before a elected", "before b elected"]);
    election.diary.assert_no_overlap();
    wait::until("nothing of it is left", || election.record()["holder"]["id"] == "b");
}
