//! What an idle election costs the ensemble.

use super::{election, link, secs};
use crate::support::proxy::request;
use crate::support::{diary, wait};

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
    wait::until("the others wait in line", || (1..links.len()).all(|index| links[index].has_watched(index.min(2))));
    election.until_renewed(1);
    let since = diary::now();
    let before = links.each_ref().map(|link| link.requests().len());
    election.until_renewed(6);
    let sent = [0, 1, 2].map(|index: usize| links[index].requests().split_off(before[index]));
    let took = diary::now().saturating_sub(since);
    let asked = |host: usize| sent[host].iter().filter(|request| request.is_of_the_election()).map(|sent| sent.kind);
    let count = |host: usize, kind| sent[host].iter().filter(|request| request.kind == kind).count();
    assert!(took > secs(4), "a renewal every second, and no more: {took:?}");
    // One each second, and perhaps one at either end.
    let seconds = usize::try_from(took.as_secs() + 1).unwrap();
    let (fewest, most) = (6, seconds + 1);
    assert!(
        asked(0).all(|kind| kind == request::MULTI) && (fewest..=most).contains(&asked(0).count()),
        "{:?}",
        sent[0]
    );
    // A read that comes late may stand for two renewals.
    assert!(asked(1).all(|kind| kind == request::GET_DATA) && (1..=most).contains(&asked(1).count()), "{:?}", sent[1]);
    assert_eq!(asked(2).count(), 0, "{:?}", sent[2]);
    // At most two pings per interval, for each of them.
    let most = 2 * seconds + 2;
    assert!(count(2, request::PING) > 0 && (0..3).all(|host| count(host, request::PING) <= most), "{sent:?}");
}

#[test]
fn a_handover_wakes_only_the_next_two_in_line() {
    let election = election();
    let links: Vec<_> = (0..6).map(|_| link()).collect();
    let mut hosts = Vec::new();
    for (index, link) in links.iter().enumerate() {
        hosts.push(election.host_behind(link, &index.to_string()).session_timeout("20s").spawn());
        election.until_candidates(index + 1);
    }
    election.diary.until_started(1);
    wait::until("the others wait in line", || (1..links.len()).all(|index| links[index].has_watched(index.min(2))));
    let asked = || links.iter().map(|link| link.asked().len()).collect::<Vec<_>>();
    let before = asked();
    // What takes its place frees the record, and deletes its candidate.
    hosts[0].kill();
    wait::until("the next one takes over", || election.record()["holder"]["id"] == "1");
    wait::until("the next two have looked", || (1..=2).all(|index| asked()[index] > before[index]));
    wait::pass(secs(1));
    assert_eq!(asked()[3..], before[3..], "nobody else was woken");
}
