//! The network comes and goes around the length of the session: order, places and candidates stay right.

use std::collections::BTreeSet;

use nix::sys::signal::Signal;

use super::{LEASE, election, link, secs};
use crate::support::ensemble::TICK;
use crate::support::{Proxy, diary, wait};

/// T21
#[test]
fn a_disconnect_about_as_long_as_the_session_never_makes_two_leaders() {
    // T is fifteen ticks: from T - 1 tick to T + 2 ticks, by when the server has surely ended the session.
    for ticks in 0..=3 {
        let election = election();
        let links = [link(), link()];
        let witness = ["ignore-term", "daemonise"];
        let hosts = ["0", "1"].map(|id| {
            let index: usize = id.parse().unwrap();
            election.host_behind(&links[index], id).witness(&election.diary, &witness).spawn()
        });
        election.until_candidates(2);
        let leader: usize = election.diary.until_started(1).id.parse().unwrap();
        links[leader].stall();
        wait::pass(TICK * (14 + ticks));
        links[leader].heal();
        election.diary.until_started(2);
        election.diary.until_alive();
        election.until_candidates(2);
        election.diary.assert_no_overlap();
        drop(hosts);
    }
}

/// T17: the session expires on the server while we are disconnected.
#[test]
fn leadership_after_an_expired_session_comes_only_with_a_new_candidate() {
    let election = election();
    let link = link();
    let _host = election.host_behind(&link, "a").witness(&election.diary, &["ignore-term"]).spawn();
    election.diary.until_started(1);
    link.stall();
    election.until_candidates(0);
    link.heal();
    election.diary.until_started(2);
    let terms = election.diary.starts();
    assert_ne!(terms[0].told[2], terms[1].told[2], "another candidate");
    assert_ne!(terms[0].told[3], terms[1].told[3], "of another session");
    let owner = election.admin.stat(&election.first()).unwrap().ephemeral_owner;
    assert_eq!(
        u64::from_str_radix(terms[1].told[3].trim_start_matches("0x"), 16).unwrap(),
        u64::from_ne_bytes(owner.to_ne_bytes())
    );
    assert_eq!(election.candidates(), [terms[1].told[2].clone()]);
    election.diary.assert_no_overlap();
}

/// T42: whether the connection hangs or breaks, and whether the session survives that.
#[test]
fn a_waiter_that_was_cut_off_while_its_predecessor_went_away_is_woken() {
    for (fault, expires) in [(Proxy::stall as fn(&Proxy), false), (Proxy::cut, false), (Proxy::stall, true)] {
        let election = election();
        let link = link();
        let mut first = election.steady_host("a").spawn();
        election.diary.until_started(1);
        let _second = election.host_behind(&link, "b").spawn();
        election.until_candidates(2);
        fault(&link);
        first.signal(Signal::SIGTERM);
        assert_eq!(first.code(), 0);
        if expires {
            election.until_candidates(0);
        }
        link.heal();
        let healed_at = diary::now();
        let start = election.diary.until_started(2);
        assert_eq!(start.id, "b");
        let took = start.at.saturating_sub(healed_at);
        assert!(took < secs(10), "woken only after {took:?}");
    }
}

/// T43
#[test]
fn a_waiter_whose_session_expired_lines_up_at_the_end() {
    let election = election();
    let link = link();
    let first = election.steady_host("a").spawn();
    election.diary.until_started(1);
    let second = election.host_behind(&link, "b").spawn();
    election.until_candidates(2);
    let _third = election.steady_host("c").spawn();
    election.until_candidates(3);
    let before = election.candidates();
    link.stall();
    election.until_candidates(2);
    link.heal();
    election.until_candidates(3);
    let after = election.candidates();
    assert_eq!([&after[0], &after[1]], [&before[0], &before[2]]);
    assert!(!before.contains(&after[2]));
    first.signal(Signal::SIGTERM);
    assert_eq!(election.diary.until_started(2).id, "c");
    election.diary.assert_no_overlap();
    drop(second);
}

/// T20: stopped while it is disconnected, as a waiter and as the leader.
#[test]
fn a_host_stopped_while_disconnected_leaves_no_znode_behind() {
    for leads in [false, true] {
        let election = election();
        let link = link();
        let holder = (!leads).then(|| election.steady_host("holder").spawn());
        election.until_candidates(usize::from(!leads));
        let mut host = election.host_behind(&link, "a").spawn();
        election.until_candidates(1 + usize::from(!leads));
        if leads {
            election.diary.until_started(1);
        }
        let others: BTreeSet<_> = election.candidates().into_iter().take(usize::from(!leads)).collect();
        link.cut();
        host.signal(Signal::SIGTERM);
        assert_eq!(host.code(), 0, "{}", host.log());
        link.heal();
        wait::until("its candidate is gone", || election.candidates().into_iter().collect::<BTreeSet<_>>() == others);
        wait::pass(secs(1));
        assert_eq!(election.candidates().into_iter().collect::<BTreeSet<_>>(), others, "and it does not come back");
        drop(holder);
    }
}

/// T37
#[test]
fn a_leader_behind_a_firewall_that_drops_gives_up_its_command_and_goes_on_trying() {
    let election = election();
    let link = link();
    let host = election.host_behind(&link, "a").spawn();
    let start = election.diary.until_started(1);
    link.stall();
    let cut_at = diary::now();
    election.diary.until_nobody_lives();
    assert!(election.diary.end_of(start.token).saturating_sub(cut_at) < LEASE);
    // Long enough for the client to have given its session up.
    wait::pass(LEASE);
    link.heal();
    election.diary.until_started(2);
    election.diary.assert_no_overlap();
    drop(host);
}
