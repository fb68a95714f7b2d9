//! Each way to hold the tree together, in a failover.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use nix::sys::signal::Signal;

use super::{LEASE, election, link, millis};
use crate::support::tracer::Tracer;
use crate::support::{diary, subject};

const WAYS: [&str; 4] = ["auto", "cgroup", "subreaper", "pid-namespace"];

/// T1, T6, T7
#[test]
fn every_containment_has_the_tree_of_an_isolated_leader_gone_before_its_successor_starts() {
    for contain in WAYS {
        let election = election();
        let link = link();
        let witness = ["ignore-term", "daemonise"];
        let host = election.host_behind(&link, "a").option("--contain", contain);
        let _first = host.witness(&election.diary, &witness).spawn();
        election.diary.until_noted("orphan");
        let _second = election.host("b").option("--contain", contain).witness(&election.diary, &witness).spawn();
        election.until_candidates(2);
        link.stall();
        assert_eq!(election.diary.until_started(2).id, "b", "{contain}");
        election.diary.assert_no_overlap();
    }
}

/// T9
#[test]
fn every_containment_ends_the_tree_at_once_when_the_supervisor_is_killed() {
    for contain in WAYS {
        let election = election();
        let witness = ["ignore-term", "daemonise"];
        let host = election.host("a").session_timeout("8s").option("--contain", contain);
        let mut host = host.witness(&election.diary, &witness).spawn();
        election.diary.until_noted("orphan");
        let killed_at = diary::now();
        host.kill();
        host.status();
        election.diary.until_nobody_lives();
        let took = diary::now().saturating_sub(killed_at);
        assert!(took < millis(4000), "{contain}: nominal is 100 ms, took {took:?}");
    }
}

/// T9, without a right to make cgroups.
#[test]
fn an_ordinary_user_has_the_whole_tree_ended_before_the_successor_starts() {
    let election = election();
    let host = election.host("a").session_timeout("8s").witness(&election.diary, &["ignore-term", "daemonise"]);
    let mut host = host.spawn_as_ordinary_user(election.diary.directory());
    election.diary.until_noted("orphan");
    assert!(host.log().contains("Containment: subreaper"), "{}", host.log());
    let _next = election.host("b").spawn();
    election.until_candidates(2);
    host.kill();
    host.status();
    assert_eq!(election.diary.until_started(2).id, "b");
    election.diary.assert_no_overlap();
}

/// T25
#[test]
fn every_containment_ends_the_tree_when_guard_and_supervisor_are_stopped_together() {
    for contain in ["cgroup", "subreaper", "pid-namespace"] {
        let election = election();
        // Without a PID namespace, what descends from the command may survive this: a stated limit.
        let witness: &[&str] =
            if contain == "pid-namespace" { &["ignore-term", "daemonise"] } else { &["ignore-term"] };
        let mut first = election.host("a").option("--contain", contain).witness(&election.diary, witness).spawn();
        election.diary.until_started(1);
        let _second = election.host("b").spawn();
        election.until_candidates(2);
        first.signal_guard(Signal::SIGSTOP);
        first.signal(Signal::SIGSTOP);
        assert_eq!(election.diary.until_started(2).id, "b", "{contain}");
        election.diary.assert_no_overlap();
        first.signal(Signal::SIGCONT);
        assert_eq!(first.code(), 70, "{contain}: the kernel has killed its guard");
    }
}

#[test]
fn every_containment_stops_and_releases_on_request_and_says_what_it_is() {
    for contain in WAYS {
        let election = election();
        let host = election.host("a").session_timeout("4s").option("--contain", contain);
        let mut host = host.witness(&election.diary, &["daemonise", "status=4"]).spawn();
        election.diary.until_noted("orphan");
        host.signal(Signal::SIGTERM);
        assert_eq!(host.code(), 4, "{contain}: {}", host.log());
        assert!(!election.diary.somebody_lives(), "{contain}");
        assert_eq!(election.state(), "free");
        let named = match contain {
            "pid-namespace" => "PID namespace",
            "subreaper" => "subreaper",
            _ => "cgroup",
        };
        assert!(host.log().contains(&format!("Containment: {named}")), "{contain} is logged:\n{}", host.log());
    }
}

#[test]
fn every_containment_passes_the_commands_status_on() {
    for contain in WAYS {
        let election = election();
        for (script, code) in [("exit 37", 37), ("kill -9 $$", 137)] {
            let host = election.host("a").session_timeout("4s").option("--contain", contain);
            assert_eq!(host.command(&["sh", "-c", script]).spawn().code(), code, "{contain}");
        }
    }
}

#[test]
fn in_a_pid_namespace_the_command_sees_only_its_own_tree() {
    let election = election();
    let host = election.host("a").session_timeout("4s").option("--contain", "pid-namespace");
    let mut host = host.command(&["sh", "-c", "cd /proc && ls -d [0-9]* | wc -l"]).spawn();
    assert_eq!(host.code(), 0, "{}", host.log());
    let seen: usize = host.output().trim().parse().unwrap();
    assert!(seen <= 5, "it sees {seen} processes");
    assert!(subject::is_alive(i32::try_from(std::process::id()).unwrap()));
}

/// By its own rights it may signal none of us, and we are root: only what holds the tree together counts.
#[test]
fn a_command_of_another_user_is_ended_with_all_that_it_left() {
    for contain in ["cgroup", "pid-namespace"] {
        let election = election();
        let directory = election.diary.directory();
        fs::set_permissions(directory, Permissions::from_mode(0o777)).unwrap();
        let witness = directory.join("witness");
        fs::copy(subject::example("witness"), &witness).unwrap();
        let other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", witness.to_str().unwrap()];
        let options = [election.diary.path().to_str().unwrap(), "ignore-term", "daemonise"].map(str::to_owned);
        let command = [&other[..], &options.each_ref().map(String::as_str)].concat();
        let link = link();
        let host = election.host_behind(&link, "a").option("--contain", contain).command(&command).spawn();
        election.diary.until_noted("orphan");
        assert_eq!(election.diary.starts().len(), 1, "{}", host.log());
        let cut_at = diary::now();
        link.stall();
        election.diary.until_nobody_lives();
        let lived = diary::now().saturating_sub(cut_at);
        assert!(lived < LEASE + millis(4000), "{contain}: {lived:?} after its last renewal: {}", host.log());
    }
}

/// T40: what cannot be proven dead is not released, and not renewed for either; nor does it keep our place in line.
#[test]
fn a_process_that_survives_sigkill_delays_its_successor_by_the_stop_timeout_and_a_lease() {
    let election = election();
    let host = election.host("a").session_timeout("4s").option("--stop-timeout", "1s").option("--contain", "subreaper");
    let mut first = host.spawn();
    let start = election.diary.until_started(1);
    let _second = election.host("b").session_timeout("4s").spawn();
    election.until_candidates(2);
    let tracer = Tracer::of(start.pid);
    first.signal(Signal::SIGTERM);
    assert_eq!(election.diary.until_started(2).id, "b");
    assert!(subject::is_alive(first.pid()), "it waits for the end of its tree");
    assert!(!first.log().contains("-> releasing"), "{}", first.log());
    election.until_candidates(1);
    drop(tracer);
    first.status();
    election.diary.assert_no_overlap();
}
