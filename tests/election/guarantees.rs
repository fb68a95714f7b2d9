//! `--guarantee at-least-one`: the command runs on until there is evidence of another leader.

use nix::sys::signal::Signal;

use super::{LEASE, election, link, millis, secs};
use crate::support::{Election, Subject, diary, wait};

fn at_least_one(election: &Election, subject: Subject) -> Subject {
    subject.option("--guarantee", "at-least-one").witness(&election.diary, &[])
}

#[test]
fn at_least_one_runs_on_through_an_outage_longer_than_the_session() {
    let election = election();
    let link = link();
    let mut host = at_least_one(&election, election.host_behind(&link, "a")).spawn();
    let start = election.diary.until_started(1);
    link.stall();
    election.until_candidates(0);
    wait::pass(secs(2));
    link.heal();
    election.until_candidates(1);
    election.until_renewed(3);
    assert_eq!(election.diary.until_alive().pid, start.pid);
    assert_eq!(election.diary.starts().len(), 1);
    assert!(!election.diary.has("signal=15"));
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0);
    assert_eq!((election.state().as_str(), election.candidates().len()), ("free", 0));
}

#[test]
fn at_least_one_stops_when_it_learns_of_another_leader() {
    let election = election();
    let link = link();
    let _first = at_least_one(&election, election.host_behind(&link, "a")).spawn();
    let first = election.diary.until_started(1);
    let _second = at_least_one(&election, election.host("b").session_timeout("4s")).spawn();
    election.until_candidates(2);
    link.stall();
    let second = election.diary.until_started(2);
    assert_eq!(second.id, "b");
    // Both run: that is the evil that was chosen.
    wait::until("the first is seen after the second began", || election.diary.last_seen(first.pid) > second.at);
    link.heal();
    wait::until("the first is told", || election.diary.events("signal=15").iter().any(|entry| entry.pid == first.pid));
    election.until_candidates(2);
    assert_eq!(election.diary.until_alive().pid, second.pid);
    assert!(second.token > first.token, "the resource can tell them apart");
}

#[test]
fn at_least_one_starts_without_waiting_for_a_lease() {
    let election = election();
    let first = at_least_one(&election, election.host("a").session_timeout("20s")).spawn();
    election.diary.until_started(1);
    let _second = at_least_one(&election, election.host("b").session_timeout("4s")).spawn();
    election.until_candidates(2);
    first.kill();
    election.diary.until_nobody_lives();
    let gone_at = diary::now();
    election.admin.delete(&election.first());
    let second = election.diary.until_started(2);
    assert!(second.at.saturating_sub(gone_at) < secs(10), "the lease of the first would have run for 17 s and more");
}

#[test]
fn at_least_one_stops_after_max_pause_without_contact() {
    let election = election();
    let link = link();
    let _host = at_least_one(&election, election.host_behind(&link, "a")).option("--max-pause", "7s").spawn();
    let start = election.diary.until_started(1);
    let healthy_at = diary::now();
    link.stall();
    let cut_at = diary::now();
    election.diary.until_nobody_lives();
    let end = election.diary.end_of(start.token);
    // The last renewal was sent up to 375 ms before; then 7 s, less the 750 ms kept for SIGTERM.
    assert!(end > healthy_at + LEASE, "no later than without the option: {:?}", end.saturating_sub(healthy_at));
    assert!(end < cut_at + millis(7200), "{:?}", end.saturating_sub(cut_at));
}
