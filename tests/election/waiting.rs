//! How long a host waits: for leadership, and for the ensemble.

use super::{election, link, secs};
use crate::support::election::STEADY;
use crate::support::ensemble::Build;
use crate::support::wait::AT_ONCE;
use crate::support::{Election, Ensemble, Running, diary, wait};

/// T16
#[test]
fn hosts_that_give_up_waiting_leave_only_the_holder_in_the_election() {
    let election = election();
    let _holder = election.steady_host("holder").spawn();
    election.diary.until_started(1);
    let holder = election.candidates();
    for _ in 0..3 {
        let waiting: Vec<Running> =
            (0..8).map(|_| election.steady_host("waits").option("--wait", "1s").spawn()).collect();
        for mut host in waiting {
            assert_eq!(host.code(), 75, "{}", host.log());
        }
        assert_eq!(election.candidates(), holder);
    }
    assert_eq!(election.diary.starts().len(), 1);
}

#[test]
fn wait_0_runs_the_command_only_if_leadership_is_free_now() {
    let election = election();
    let at_once = || election.steady_host("now").option("--wait", "0");
    assert_eq!(at_once().command(&["sh", "-c", "exit 7"]).spawn().code(), 7);
    let _holder = election.steady_host("holder").spawn();
    election.diary.until_started(1);
    let begun_at = diary::now();
    assert_eq!(at_once().spawn().code(), 75);
    assert_eq!(at_once().option("--conflict-exit-code", "3").spawn().code(), 3);
    assert!(diary::now().saturating_sub(begun_at) < 2 * AT_ONCE, "each would wait for 20 s and more");
    assert_eq!((election.candidates().len(), election.diary.starts().len()), (1, 1));
}

#[test]
fn a_host_that_is_elected_within_its_wait_is_not_stopped_by_it() {
    let election = election();
    let _host = election.steady_host("a").option("--wait", "6s").spawn();
    let start = election.diary.until_started(1);
    wait::pass(secs(6));
    assert_eq!(election.diary.until_alive().pid, start.pid);
}

/// T16: a host that gives up during the wait for a lease frees nothing.
#[test]
fn giving_up_while_a_lease_runs_out_leaves_the_record_held() {
    let election = election();
    election.prepare();
    election.admin.set(&election.path("lease"), "unreadable");
    let mut host = election.host("a").option("--wait", "5s").spawn();
    assert_eq!(host.code(), 75, "{}", host.log());
    assert_eq!((election.candidates().len(), election.state().as_str()), (0, "held"));
    assert!(election.record()["lease_ms"].as_u64().unwrap() >= 120_000);
}

/// T37: a firewall that drops, one that refuses, and nobody there at all.
#[test]
fn an_ensemble_that_is_not_reached_within_the_connect_timeout_is_status_69() {
    let (drops, refuses) = (link(), link());
    drops.stall();
    refuses.cut();
    for servers in [drops.connect_string(), refuses.connect_string(), "127.0.0.1:1".to_owned()] {
        let election = election();
        let begun_at = diary::now();
        let mut host = election.host_at(&servers, "a").option("--connect-timeout", "1s").spawn();
        assert_eq!(host.code(), 69, "{servers}: {}", host.log());
        let took = diary::now().saturating_sub(begun_at);
        assert!(took < secs(1) + 2 * AT_ONCE, "{took:?}");
        assert!(election.diary.starts().is_empty());
    }
}

#[test]
fn without_a_connect_timeout_a_host_waits_for_the_ensemble() {
    let election = election();
    let link = link();
    link.cut();
    let _host = election.host_behind(&link, "a").session_timeout(STEADY).spawn();
    wait::until("it has tried several times", || link.accepted() > 3);
    link.heal();
    election.diary.until_started(1);
}

#[test]
fn a_host_without_zookeeper_says_at_once_and_again_which_server_it_cannot_reach_and_why() {
    let election = election();
    let host = election.host_at("127.0.0.1:1", "a").spawn();
    host.until_logged("Cannot reach ZooKeeper: 127.0.0.1:1: connection refused; retrying");
    host.until_logged("Without ZooKeeper for 10s: 127.0.0.1:1: connection refused; retrying");
}

#[test]
fn a_session_timeout_that_is_not_granted_is_told() {
    let build = Build { config: "maxSessionTimeout=8000\n".to_owned(), ..Build::default() };
    let ensemble = Ensemble::built(1, &build);
    let election = Election::on(&ensemble.connect_string());
    let host = election.host("a").session_timeout("10s").spawn();
    let granted = "ZooKeeper grants a session timeout of 8s instead of 10s: the lease follows it";
    host.until_logged(&format!("{granted}; write --session-timeout 8s, or change "));
    // These timings fit what was asked for.
    let mut misfit = election.host("b").session_timeout("10s").option("--stop-reserve", "3s").spawn();
    misfit.until_logged("renewal interval; write --stop-reserve at most 2.52s, or leave it out");
    assert_eq!(misfit.code(), 78);
}

/// Nobody there waits for our lease.
#[test]
fn beside_other_libraries_a_lease_does_not_outlast_a_session_that_was_made_shorter() {
    let ensemble = Ensemble::single();
    let election = Election::on(&ensemble.connect_string());
    let host = election.host("a").session_timeout("60s").option("--recipe", "kazoo");
    let host = host.option("--election-path", &format!("/foreign/{}", election.name)).spawn();
    election.diary.until_started(1);
    let server = ensemble.server(0);
    server.configure("maxSessionTimeout=8000");
    server.restart();
    host.until_logged("ZooKeeper now grants this session a timeout of 8s instead of 1m");
    election.diary.until_started(2);
    assert_eq!(election.record()["lease_ms"], 4000, "half of the session: {}", host.log());
}

#[test]
fn a_session_timeout_that_is_changed_while_a_session_lives_is_told_once() {
    let ensemble = Ensemble::single();
    let election = Election::on(&ensemble.connect_string());
    let host = election.host("a").session_timeout("60s").spawn();
    let server = ensemble.server(0);
    server.configure("maxSessionTimeout=8000");
    for restarts in 1..=2 {
        host.until_logged("leading");
        server.restart();
        host.until_logged_times("Contact with ZooKeeper was restored", restarts);
    }
    let said =
        "ZooKeeper now grants this session a timeout of 8s instead of 1m: the lease follows it with the next session";
    assert_eq!(host.log().matches(said).count(), 1, "{}", host.log());
}
