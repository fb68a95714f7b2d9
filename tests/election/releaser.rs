//! The supervisor is killed: what the guard starts in its place frees the lease when the tree is gone, and nothing else.

use nix::sys::signal::Signal;

use super::{election, link, millis, secs};
use crate::support::proxy::request;
use crate::support::wait::AT_ONCE;
use crate::support::{Subject, diary, subject, wait};

/// T9
#[test]
fn a_killed_supervisors_lease_is_freed_and_its_successor_need_not_wait() {
    for recipe in ["sequential", "single"] {
        let election = election();
        let link = link();
        let host = |subject: Subject| subject.option("--recipe", recipe).session_timeout("20s");
        let first = host(election.host("a")).witness(&election.diary, &["ignore-term", "daemonise"]).spawn();
        election.diary.until_noted("orphan");
        let _second = host(election.host_behind(&link, "b")).spawn();
        let create = [request::CREATE, request::CREATE2];
        wait::until("the next one lines up", || link.forwarded().iter().any(|kind| create.contains(kind)));
        let killed_at = diary::now();
        first.kill();
        let start = election.diary.until_started(2);
        let took = start.at.saturating_sub(killed_at);
        assert!(took < AT_ONCE, "{recipe}: nominal is 100 ms; took {took:?}");
        assert_eq!(start.told[1], "clean");
        election.diary.assert_no_overlap();
    }
}

#[test]
fn a_killed_supervisors_lease_is_freed_though_its_configuration_file_says_something_else_by_then() {
    let election = election();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.toml");
    // What is typed counts.
    let (name, nowhere) = (&election.name, "127.0.0.1:1");
    std::fs::write(&file, format!("connect = '{nowhere}'\nname = '{name}'\nsession-timeout = '20s'\n")).unwrap();
    let host = election.host("a").without("--name").without("--session-timeout");
    let host = host.option("--config", file.to_str().unwrap()).spawn();
    election.diary.until_started(1);
    std::fs::write(&file, "connect = '127.0.0.1:1'\nnonsense").unwrap();
    host.kill();
    wait::until("the record is free", || election.state() == "free");
}

/// As by a deployment that has replaced it.
#[test]
fn a_killed_supervisors_lease_is_freed_though_its_command_is_not_there_any_more() {
    let election = election();
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("job");
    std::fs::copy("/bin/sleep", &program).unwrap();
    let host = election.steady_host("a").command(&[program.to_str().unwrap(), "1000"]).spawn();
    host.until_logged("Command started");
    std::fs::remove_file(&program).unwrap();
    host.kill();
    let is_free = wait::held_within(secs(10), || election.state() == "free");
    assert!(is_free, "the next leader waits for the lease of 20 s: {}", host.log());
}

/// T9: at ten points of the renewal cycle.
#[test]
fn supervisors_killed_one_after_the_other_never_overlap() {
    let election = election();
    for run in 1..=10 {
        let host =
            election.host("a").session_timeout("6s").witness(&election.diary, &["ignore-term", "daemonise"]).spawn();
        election.diary.until_started(run);
        wait::pass(millis(75) * u32::try_from(run).unwrap());
        let guard = host.guard_pid();
        host.kill();
        drop(host);
        wait::until("the releaser has done its work", || !subject::is_alive(guard));
        assert_eq!((election.state().as_str(), election.candidates().len()), ("free", 0), "run {run}");
    }
    election.diary.assert_no_overlap();
}

#[test]
fn a_supervisor_killed_during_its_wait_for_a_lease_frees_nothing() {
    let election = election();
    election.prepare();
    election.admin.set(&election.path("lease"), "unreadable, so it may be held");
    let host = election.host("a").spawn();
    wait::until("it has taken the record over", || election.admin.read(&election.path("lease")).contains("\"a\""));
    let guard = host.guard_pid();
    host.kill();
    drop(host);
    wait::until("the guard is gone", || !subject::is_alive(guard));
    election.until_candidates(0);
    assert_eq!(election.state(), "held");
}

#[test]
fn a_releaser_that_cannot_reach_the_ensemble_gives_up_and_the_lease_runs_out() {
    let election = election();
    let link = link();
    let first = election.host_behind(&link, "a").witness(&election.diary, &["ignore-term", "daemonise"]).spawn();
    election.diary.until_noted("orphan");
    let _second = election.host("b").spawn();
    election.until_candidates(2);
    let guard = first.guard_pid();
    link.cut();
    first.kill();
    let start = election.diary.until_started(2);
    assert_eq!((start.id.as_str(), start.told[1].as_str()), ("b", "unclean"));
    wait::until("the releaser has given up", || !subject::is_alive(guard));
    election.diary.assert_no_overlap();
}

#[test]
fn a_releaser_that_comes_late_does_not_touch_the_next_term() {
    let election = election();
    let link = link();
    let host = election.host_behind(&link, "a").session_timeout("8s");
    let first = host.witness(&election.diary, &["ignore-term"]).spawn();
    election.diary.until_started(1);
    let _second = election.steady_host("b").spawn();
    election.until_candidates(2);
    let guard = first.guard_pid();
    let killed_at = diary::now();
    link.stall();
    first.kill();
    election.diary.until_nobody_lives();
    election.admin.delete(&election.first());
    wait::until("the next one takes over, and waits", || election.record()["holder"]["id"] == "b");
    link.heal();
    wait::until("the releaser is through", || !subject::is_alive(guard));
    assert_eq!((&election.record()["holder"]["id"], election.state().as_str()), (&"b".into(), "held"));
    let start = election.diary.until_started(2);
    assert_eq!(start.told[1], "unclean");
    assert!(start.at.saturating_sub(killed_at) > secs(5), "it served its wait");
    election.diary.assert_no_overlap();
}

/// systemd and Ctrl-C signal a whole group: the guard, too.
#[test]
fn signals_that_came_to_the_guard_do_not_end_its_releaser() {
    let election = election();
    let host = election.host("a").session_timeout("20s").spawn();
    election.diary.until_started(1);
    let guard = host.guard_pid();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGUSR1] {
        host.signal_guard(signal);
    }
    host.kill();
    drop(host);
    wait::until("the releaser has done its work", || !subject::is_alive(guard));
    assert_eq!(election.state(), "free");
}
