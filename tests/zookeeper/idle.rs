//! What an idle election costs the ensemble.

use super::{election, link, secs};
use crate::support::proxy::request;
use crate::support::wait;

#[test]
fn an_idle_holder_only_renews_the_next_in_line_reads_once_per_renewal_and_the_others_only_ping() {
    let election = election();
    let links = [link(), link(), link()];
    let mut hosts = Vec::new();
    for (index, link) in links.iter().enumerate() {
        // A renewal every second.
        hosts.push(election.host_behind(link, &index.to_string()).session_timeout("8s").spawn());
        election.until_candidates(index + 1);
    }
    election.diary.until_started(1);
    let version = election.record_version();
    wait::until("the line is calm", || election.record_version() > version);
    let before = links.each_ref().map(|link| link.forwarded().len());
    let version = election.record_version();
    wait::pass(secs(6));
    let renewals = usize::try_from(election.record_version() - version).unwrap();
    let sent = [0, 1, 2].map(|index: usize| links[index].forwarded().split_off(before[index]));
    let count = |host: usize, kind| sent[host].iter().filter(|sent| **sent == kind).count();
    let others = |host: usize, kind| sent[host].iter().filter(|sent| ![kind, request::PING].contains(sent)).count();
    assert!((5..=7).contains(&renewals), "{renewals} renewals in 6 s");
    assert!(count(0, request::MULTI).abs_diff(renewals) <= 1 && others(0, request::MULTI) == 0, "{:?}", sent[0]);
    assert!(count(1, request::GET_DATA).abs_diff(renewals) <= 1 && others(1, request::GET_DATA) == 0, "{:?}", sent[1]);
    assert!(count(2, request::PING) > 0 && others(2, request::PING) == 0, "{:?}", sent[2]);
    // At most two pings per interval, for each of them.
    assert!([0, 1, 2].iter().all(|host| count(*host, request::PING) <= 2 * 6 + 2), "{sent:?}");
}

#[test]
fn a_handover_wakes_only_the_next_two_in_line() {
    let election = election();
    let links: Vec<_> = (0..6).map(|_| link()).collect();
    let mut hosts = Vec::new();
    for (index, link) in links.iter().enumerate() {
        hosts.push(election.host_behind(link, &index.to_string()).session_timeout("8s").spawn());
        election.until_candidates(index + 1);
    }
    election.diary.until_started(1);
    let others = |index: usize| links[index].forwarded().iter().filter(|kind| **kind != request::PING).count();
    wait::pass(secs(1));
    let before: Vec<_> = (0..6).map(others).collect();
    hosts[0].kill();
    election.admin.delete(&election.first());
    wait::until("the next one takes over", || election.record()["holder"]["id"] == "1");
    wait::pass(secs(1));
    let woken: Vec<_> = (1..6).filter(|index| others(*index) > before[*index]).collect();
    assert_eq!(woken, [1, 2], "the new first, and the new next");
}
