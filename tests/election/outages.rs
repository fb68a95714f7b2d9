//! What lost contact, lost replies and slow commits cost: the session is kept, and found again soon after a server answers.

use std::collections::HashSet;

use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::{election, link, secs};
use crate::support::proxy::request;
use crate::support::{Election, Ensemble, Proxy, diary, wait};

/// An outage about three quarters as long as this lease tolerates: one missed try more would not be.
#[test]
fn an_outage_that_the_lease_tolerates_is_ridden_out_by_the_same_command() {
    let election = election();
    let link = link();
    let _host = election.host_behind(&link, "a").session_timeout("20s").spawn();
    let start = election.diary.until_started(1);
    for outage in [secs(1), secs(9)] {
        election.until_renewed(1);
        link.cut();
        wait::pass(outage);
        link.heal();
        election.until_renewed(1);
        assert_eq!(election.diary.until_alive().pid, start.pid);
    }
    assert_eq!(election.diary.starts().len(), 1);
    assert!(!election.diary.has("signal=15"));
}

/// A server that was down has expired nothing: the same session, the same candidate, which stands in nobody's way.
#[test]
fn after_a_long_outage_of_the_servers_the_same_session_leads_again_soon() {
    let ensemble = Ensemble::single();
    let election = Election::on(&ensemble.connect_string());
    let link = Proxy::to(ensemble.server(0).address());
    let _host = election.host_behind(&link, "a").session_timeout("4s").spawn();
    let before = election.diary.until_started(1);
    ensemble.server(0).kill();
    link.cut();
    let tries = link.accepted();
    wait::pass(secs(10));
    let tries = link.accepted() - tries;
    election.diary.until_nobody_lives();
    // Healed first: from its start the server counts how long the session has been silent.
    link.heal();
    ensemble.server(0).restart();
    let serves_at = diary::now();
    let after = election.diary.until_started(2);
    let took = after.at.saturating_sub(serves_at);
    assert_eq!(before.told[2..], after.told[2..], "candidate and session");
    // Every 125 to 250 ms. Doubled from 100 ms on there would be eight at the most.
    assert!(tries > 16, "only {tries} tries in 10 s");
    assert!(took < secs(10), "led again after {took:?}");
    election.diary.assert_no_overlap();
}

#[test]
fn after_an_outage_in_which_the_session_expired_a_command_runs_again_soon() {
    let election = election();
    let link = link();
    let _host = election.host_behind(&link, "a").session_timeout("4s").spawn();
    let before = election.diary.until_started(1);
    link.cut();
    wait::pass(secs(10));
    election.until_candidates(0);
    let healed_at = diary::now();
    link.heal();
    let after = election.diary.until_started(2);
    let took = after.at.saturating_sub(healed_at);
    assert_ne!(before.told[3], after.told[3], "a new session");
    assert!(took < secs(10), "led again after {took:?}");
    election.diary.assert_no_overlap();
}

/// Else the log said of a cut of some seconds that it has lasted for hours, and not its reason.
#[test]
fn an_outage_of_a_session_that_was_taken_up_counts_from_its_own_beginning() {
    let election = election();
    let link = link();
    let host = election.host_behind(&link, "a").session_timeout("20s").spawn();
    election.diary.until_started(1);
    let told = || host.log().matches("Cannot reach ZooKeeper: ").count();
    for outage in 1..=2 {
        link.cut();
        wait::until("the outage is told", || told() == outage || host.log().contains("Without ZooKeeper for "));
        assert_eq!(told(), outage, "told as a part of the one before:\n{}", host.log());
        link.heal();
        host.until_logged_times("Contact with ZooKeeper was restored", outage);
    }
}

/// Pings are answered all the while.
#[test]
fn a_lost_answer_to_the_watch_on_the_leader_leaves_nobody_deaf() {
    let election = election();
    let (first_link, link) = (self::link(), self::link());
    let first = election.host_behind(&first_link, "a").spawn();
    election.diary.until_started(1);
    link.lose_only_the_reply_to(request::GET_DATA, &election.first());
    let _next = election.host_behind(&link, "b").spawn();
    link.wait_until_lost(1);
    // Nothing is released: only the deletion of its candidate tells.
    first_link.cut();
    first.kill();
    assert_eq!(election.diary.until_started(2).id, "b");
    election.diary.assert_no_overlap();
}

#[test]
fn a_lost_answer_to_the_read_of_the_orders_leaves_no_leader_deaf() {
    let election = election();
    let link = link();
    let _host = election.host_behind(&link, "a").session_timeout("8s").spawn();
    election.diary.until_started(1);
    for kind in [request::GET_DATA, request::EXISTS] {
        let lost = usize::from(kind == request::EXISTS);
        link.lose_only_the_reply_to(kind, "/control");
        let order = format!(r#"{{"v":1,"disabled":{{"order":"{kind}","by":"x","at_ms":1,"reason":"r"}}}}"#);
        order_by_hand(&election, &order);
        link.wait_until_lost(lost + 1);
        election.diary.until_nobody_lives();
        order_by_hand(&election, r#"{"v":1}"#);
        election.diary.until_started(lost + 2);
    }
}

fn order_by_hand(election: &Election, orders: &str) {
    let path = election.path("control");
    if election.admin.exists(&path) {
        election.admin.set(&path, orders);
    } else {
        election.admin.create(&path, orders);
    }
}

/// All other replies, those to pings among them, stand behind the slow ones.
#[test]
fn steady_commits_of_a_quarter_of_the_session_timeout_do_not_end_a_term() {
    let election = election();
    let link = link();
    let _host = election.host_behind(&link, "a").session_timeout("12s").spawn();
    let start = election.diary.until_started(1);
    link.delay_replies_to(request::MULTI, "/lease", secs(3));
    let version = election.record_version();
    let connections = link.accepted();
    wait::until("it was renewed for longer than a lease", || election.record_version() >= version + 5);
    assert_eq!(election.diary.until_alive().pid, start.pid);
    assert_eq!((election.diary.starts().len(), link.accepted()), (1, connections));
    assert!(!election.diary.has("signal=15"));
}

/// Otherwise a request waits a round trip for the acknowledgement of the one before it (Nagle's algorithm).
#[test]
fn requests_are_sent_at_once_also_after_a_reconnect() {
    let election = election();
    let link = link();
    let host = election.host_behind(&link, "a").session_timeout("16s").spawn();
    election.diary.until_started(1);
    let delaying = || {
        let process = pidfd_open(Pid::from_raw(host.pid()).unwrap(), PidfdFlags::empty()).unwrap();
        let numbers = std::fs::read_dir(format!("/proc/{}/fd", host.pid())).unwrap().flatten();
        let numbers: HashSet<i32> = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        let copies =
            numbers.into_iter().filter_map(|number| pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).ok());
        let sockets = copies.map(std::net::TcpStream::from);
        let ours: Vec<_> =
            sockets.filter(|socket| socket.peer_addr().is_ok_and(|peer| peer == link.address())).collect();
        ours.iter().map(|socket| !socket.nodelay().unwrap()).collect::<Vec<_>>()
    };
    wait::until("the first connection is tuned", || delaying() == [false]);
    let version = election.record_version();
    link.reset();
    wait::until("it renews through another connection", || election.record_version() > version + 1);
    wait::until("that is tuned, too", || delaying() == [false]);
}
