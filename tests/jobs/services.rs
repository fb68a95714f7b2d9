//! Services and limits on time: restarts within one term, a crash loop that moves on, runs that take too long or begin too late.

use nix::sys::signal::Signal;
use serde_json::json;

use super::{election, millis, secs};
use crate::support::wait::AT_ONCE;
use crate::support::{Election, Subject, diary, subject, wait};

/// A host that starts its command again.
fn service(election: &Election, id: &str) -> Subject {
    election.steady_host(id).option("--on-exit", "restart").option("--restart-delay", "100ms")
}

/// One that fails at once.
fn crashing(election: &Election, id: &str) -> Subject {
    service(election, id).witness(&election.diary, &["exit-after=20", "status=1"])
}

/// One that has failed, and rests for longer than the test lasts.
fn resting(election: &Election, id: &str) -> crate::support::Running {
    let host = crashing(election, id).option("--restart-delay", "10m").option("--restart-max-delay", "10m").spawn();
    host.until_logged("leading -> preparing");
    host
}

/// T27: it fails three times in its own term; then the host that can run it does.
#[test]
fn a_crash_looping_leader_moves_on_to_the_host_that_can_run_it() {
    let election = election();
    let go = election.diary.directory().join("go");
    // Until the other one is in line.
    let crashes = r#"until [ -e "$0" ]; do sleep 0.02; done; exec "$@" exit-after=20 status=1"#;
    let (witness, diary) = (subject::example("witness"), election.diary.path());
    let words = ["sh", "-c", crashes, go.to_str().unwrap(), witness.to_str().unwrap(), diary.to_str().unwrap()];
    let bad = service(&election, "bad").command(&words);
    let bad = bad.option("--max-restarts", "2").option("--stand-back", "2s").spawn();
    election.until_candidates(1);
    let _good = service(&election, "good").spawn();
    election.until_candidates(2);
    std::fs::write(go, "").unwrap();
    let last = election.diary.until_started(4);
    let starts = election.diary.starts();
    let ids: Vec<_> = starts.iter().map(|start| start.id.as_str()).collect();
    assert_eq!(ids, ["bad", "bad", "bad", "good"]);
    assert!(starts[0].token == starts[2].token && starts[2].token < last.token, "{starts:?}");
    assert_eq!(last.told[1], "clean", "it was released, not left to expiry");
    assert!(bad.log().contains("more often than --max-restarts"), "{}", bad.log());
    // It comes back, behind the good one.
    bad.until_logged("eligible again");
    election.until_candidates(2);
    election.diary.until_alive();
    assert_eq!(election.diary.starts().len(), 4);
    election.diary.assert_no_overlap();
}

/// The pause is longer than the lease: it is renewed, and whoever waits goes on waiting.
#[test]
fn a_restart_costs_neither_the_lease_nor_the_token() {
    let election = election();
    let witness = ["exit-after=20", "status=1"];
    let host = service(&election, "a").session_timeout("6s").option("--restart-delay", "8s");
    let host = host.witness(&election.diary, &witness).spawn();
    let first = election.diary.until_started(1);
    let (candidate, version) = (election.first(), election.record_version());
    let _next = election.steady_host("b").spawn();
    election.until_candidates(2);
    let second = election.diary.until_started(2);
    assert_eq!((second.id.as_str(), second.token), ("a", first.token), "{}", host.log());
    assert_eq!(second.told, first.told);
    assert!(second.at > first.at + secs(8));
    assert_eq!((election.first(), election.term().version), (candidate, 1));
    assert!(election.record_version() - version > 8, "renewed for longer than the lease");
    election.diary.assert_no_overlap();
}

#[test]
fn a_stop_in_a_back_off_ends_us_at_once_with_the_record_freed() {
    let election = election();
    let mut host = resting(&election, "a");
    // The command's, of which there is none now.
    host.signal(Signal::SIGHUP);
    wait::pass(millis(300));
    assert_eq!(election.state(), "held");
    let asked_at = diary::now();
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0, "{}", host.log());
    assert!(diary::now().saturating_sub(asked_at) < AT_ONCE);
    assert_eq!((election.state().as_str(), election.candidates().len()), ("free", 0));
    assert!(!host.log().contains("killed supervisor"), "nobody was killed: {}", host.log());
}

/// T9: there is no tree to be ended, but a lease to be freed.
#[test]
fn a_supervisor_that_is_killed_in_a_back_off_costs_its_successor_no_wait() {
    let election = election();
    let host = resting(&election, "a");
    let _next = election.steady_host("b").spawn();
    election.until_candidates(2);
    let killed_at = diary::now();
    host.kill();
    let second = election.diary.until_started(2);
    assert_eq!((second.id.as_str(), second.told[1].as_str()), ("b", "clean"));
    let took = second.at.saturating_sub(killed_at);
    assert!(took < AT_ONCE, "nominal: milliseconds; took {took:?}");
    election.diary.assert_no_overlap();
}

/// The default id ends with the pid of the supervisor, and the releaser has another.
#[test]
fn a_release_for_a_killed_supervisor_is_told_in_its_name() {
    let election = election();
    let host = election.steady_host("a").without("--id").spawn();
    let id = election.diary.until_started(1).id;
    host.kill();
    host.until_logged(&format!(" {id}]: warning: The supervisor was killed; its lease was released"));
}

#[test]
fn a_service_ends_with_a_success_or_a_status_that_must_not_be_restarted() {
    let election = election();
    let code = |script: &str| {
        let host = service(&election, "a").option("--no-restart-status", "78,143");
        host.command(&["sh", "-c", script]).spawn().code()
    };
    assert_eq!(code("exit 0"), 0);
    assert_eq!(code("exit 78"), 78);
    assert_eq!(code("kill -TERM $$"), 143);
    assert_eq!(election.state(), "free");
}

/// A command that vanishes cannot be started again.
#[test]
fn a_command_that_cannot_be_executed_any_more_is_not_restarted() {
    let election = election();
    let script = election.diary.directory().join("vanishes");
    std::fs::write(&script, "#!/bin/sh\nrm \"$0\"\nexit 1\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    let mut host = service(&election, "a").command(&[script.to_str().unwrap()]).spawn();
    assert_eq!(host.code(), 127, "{}", host.log());
    assert_eq!(election.state(), "free");
}

#[test]
fn with_restart_always_a_success_is_started_again() {
    let election = election();
    let witness = ["exit-after=10", "status=0"];
    let host = service(&election, "a").option("--restart", "always").option("--max-restarts", "1");
    let _host = host.witness(&election.diary, &witness).spawn();
    election.diary.until_started(4);
    election.diary.assert_no_overlap();
}

#[test]
fn a_run_that_takes_too_long_is_stopped_with_status_124() {
    let election = election();
    let limited = |stop: &str| election.steady_host("a").option("--timeout", "300ms").option("--stop-timeout", stop);
    let mut gentle = limited("10s").witness(&election.diary, &["linger=500", "status=0"]).spawn();
    assert_eq!(gentle.code(), 124, "{}", gentle.log());
    let mut deaf = limited("200ms").witness(&election.diary, &["ignore-term", "daemonise"]).spawn();
    assert_eq!(deaf.code(), 124, "{}", deaf.log());
    assert!(!election.diary.somebody_lives());
    assert_eq!((election.state().as_str(), election.candidates().len()), ("free", 0));
    let mut fast = limited("10s").option("--timeout", "1m").command(&["sh", "-c", "exit 3"]).spawn();
    assert_eq!(fast.code(), 3);
}

/// Whoever reads warnings only learns how a command failed, and that it did not stop in time.
#[test]
fn a_command_that_fails_or_does_not_stop_in_time_is_a_warning_and_one_that_does_as_told_is_none() {
    let election = election();
    let host = || election.steady_host("a").option("--log-level", "warn");
    let mut fails = host().command(&["sh", "-c", "exit 3"]).spawn();
    assert_eq!((fails.code(), fails.log().contains("warning: The command exited with status 3")), (3, true));
    let mut well = host().witness(&election.diary, &["exit-after=10"]).spawn();
    // On a busy machine it may say that it stood still.
    assert!(well.code() == 0 && !well.log().contains("The command"), "{}", well.log());
    for (witness, told) in [(&[][..], ""), (&["ignore-term"], "The command was killed by SIGKILL: it still ran when ")]
    {
        let started = election.diary.starts().len();
        let stop_timeout = if witness.is_empty() { "15s" } else { "200ms" };
        let mut stopped = host().option("--stop-timeout", stop_timeout).witness(&election.diary, witness).spawn();
        election.diary.until_started(started + 1);
        stopped.signal(Signal::SIGTERM);
        stopped.code();
        let log = stopped.log();
        assert!(log.contains(told) && log.contains("The command") != told.is_empty(), "{log}");
    }
}

#[test]
fn a_run_that_takes_too_long_counts_as_a_failure_and_the_next_one_has_all_of_the_time() {
    let election = election();
    let host = service(&election, "a").option("--timeout", "3s").option("--max-restarts", "1");
    let host = host.option("--stand-back", "10m").spawn();
    let first = election.diary.until_started(1);
    let second = election.diary.until_started(2);
    assert_eq!(second.token, first.token);
    host.until_logged("more often than --max-restarts");
    election.until_candidates(0);
    // On a busy machine it notes its start late.
    assert!(election.diary.last_seen(second.pid) > second.at + secs(1), "{:?}", election.diary.starts());
    assert_eq!((election.diary.starts().len(), election.state().as_str()), (2, "free"));
}

#[test]
fn a_run_that_would_begin_too_late_is_skipped_with_status_0() {
    let election = election();
    let _holder = election.steady_host("holder").spawn();
    let start = election.diary.until_started(1);
    let mut late = election.steady_host("late").option("--start-deadline", "6s").spawn();
    assert_eq!(late.code(), 0, "{}", late.log());
    assert_eq!(
        late.log()
            .matches("following -> done: the command was not started within --start-deadline; this run is skipped; holder on ")
            .count(),
        1,
        "{}",
        late.log()
    );
    election.until_candidates(1);
    assert_eq!(election.diary.until_alive().pid, start.pid);
}

#[test]
fn a_run_that_has_begun_in_time_may_take_longer_than_the_start_deadline() {
    let election = election();
    let mut host = service(&election, "a").option("--start-deadline", "6s").spawn();
    let start = election.diary.until_started(1);
    wait::pass(millis(6_200));
    assert_eq!(election.diary.until_alive().pid, start.pid);
    // Nor does it end its restarts.
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(start.pid), Signal::SIGKILL).unwrap();
    assert_eq!(election.diary.until_started(2).token, start.token);
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0);
}

/// Leaves a record as a holder does that died: held for a second more, from this time on or a little later.
fn hold(election: &Election) -> std::time::Duration {
    election.prepare();
    let mut record = election.record();
    (record["state"], record["lease_ms"]) = (json!("held"), json!(1_000));
    record["holder"]["nonce"] = json!("00000000000000ff-1");
    let held_at = diary::now();
    election.admin.set(&election.path("lease"), &record.to_string());
    held_at
}

#[test]
fn a_takeover_delay_is_waited_for_after_a_leader_that_did_not_release() {
    let election = election();
    let held_at = hold(&election);
    let mut host = election.steady_host("a").option("--takeover-delay", "1500ms").spawn();
    let start = election.diary.until_started(1);
    assert!(start.at > held_at + millis(2_500), "{held_at:?} {start:?}");
    assert_eq!(start.told[1], "unclean");
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0);
    // After a release there is no delay.
    let begun_at = diary::now();
    let _next = election.steady_host("b").option("--takeover-delay", "1h").spawn();
    assert!(election.diary.until_started(2).at < begun_at + secs(10));
}

#[test]
fn a_stop_in_a_takeover_delay_leaves_the_record_held_so_that_the_next_one_waits_too() {
    let election = election();
    hold(&election);
    let mut host = election.steady_host("a").option("--takeover-delay", "1h").spawn();
    wait::until("it takes over", || election.record()["holder"]["id"] == "a");
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0);
    assert_eq!((election.state().as_str(), election.candidates().len()), ("held", 0));
}

#[test]
fn starts_keep_their_distance_across_terms() {
    let election = election();
    let host = election.steady_host("a").option("--on-exit", "rejoin").option("--min-start-interval", "800ms");
    let _host = host.witness(&election.diary, &["exit-after=10"]).spawn();
    election.diary.until_started(4);
    let starts = election.diary.starts();
    for three in starts.windows(3) {
        // On a busy machine a command notes its start long after it was ordered, but the second was not ordered before the
        // first was there.
        assert!(three[2].at > three[0].at + millis(800), "{starts:?}");
    }
    assert!(starts.is_sorted_by(|one, next| one.token < next.token), "other terms: {starts:?}");
}

/// A daemon of one run may not live beside the next one, though the term is the same.
#[test]
fn a_restart_waits_until_the_whole_tree_of_the_last_run_is_gone() {
    let election = election();
    let witness = ["daemonise", "exit-after=100", "status=1"];
    let _host = service(&election, "a").option("--restart-delay", "1ms").witness(&election.diary, &witness).spawn();
    election.diary.until_started(3);
    election.diary.assert_no_overlap();
    let first = &election.diary.starts()[0];
    assert!(!subject::is_alive(first.pid));
}

/// `examples/service`, with shorter times: the host on which it breaks gives way to the next one.
#[test]
fn the_example_service_runs_on_one_host_and_moves_on_when_it_breaks_there() {
    let election = election();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/service");
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let host = |id: &str| {
        let broken = election.diary.directory().join(id).to_str().unwrap().to_owned();
        let host = election.steady_host(id).option("--config", &path("service.toml")).option("--restart-delay", "50ms");
        host.env("BROKEN", &broken).command(&[&path("my-service.sh")]).spawn()
    };
    let runs = |host: &crate::support::Running| host.output().matches("my-service: token").count();
    let first = host("a");
    wait::until("it runs on the first host", || runs(&first) == 1);
    let mut second = host("b");
    election.until_candidates(2);
    std::fs::write(election.diary.directory().join("a"), "").unwrap();
    wait::until("it runs on the second host", || runs(&second) == 1);
    assert_eq!(runs(&first), 4, "three restarts: {}", first.log());
    election.until_candidates(1);
    second.signal(Signal::SIGTERM);
    assert_eq!(second.code(), 0);
    wait::until("it says so", || second.output().ends_with("my-service: stopped\n"));
}
