//! The JSON of znodes, which anybody with the rights may have written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zk_leader_run::zookeeper::schema::control::Orders;
use zk_leader_run::zookeeper::schema::control::drain::Drain;
use zk_leader_run::zookeeper::schema::history::{History, Term};
use zk_leader_run::zookeeper::schema::lease::{Lease, PendingFence};
use zk_leader_run::zookeeper::schema::member::Member;

/// A moment of `ZooKeeper`'s clock, and a later one.
const NOW: i64 = 1_795_229_999_999;
const LATER: i64 = NOW + 60_000;

fuzz_target!(|data: &[u8]| {
    let Some((kind, data)) = data.split_first() else { return };
    match kind % 5 {
        0 => lease(data),
        1 => orders(data),
        2 => drain(data),
        3 => history(data),
        _ => member(data),
    }
});

fn lease(data: &[u8]) {
    let Ok(lease) = Lease::read(data) else { return };
    assert!(!lease.is_held() || lease.lease_ms > 0);
    let written = serde_json::to_vec(&lease).unwrap();
    assert_eq!(Lease::read(&written).as_ref(), Ok(&lease));
    for unfenced in lease.unfenced {
        let line = unfenced.json();
        assert_eq!(line.lines().count(), 1, "a fence command reads one line");
        assert_eq!(serde_json::from_str::<PendingFence>(&line).unwrap(), unfenced);
    }
}

fn orders(data: &[u8]) {
    let Ok(mut orders) = Orders::read(data) else { return };
    assert_eq!(Orders::read(&orders.written()).unwrap(), Orders { v: 1, ..orders.clone() });
    orders.date(NOW);
    let (now, later) = (orders.in_force(NOW), orders.in_force(LATER));
    assert_eq!(now.in_force(LATER), later, "what has lapsed does not come back");
    assert!(later.disabled.is_none() || now.disabled.is_some());
    assert!(later.handover.is_none() || now.handover.is_some());
    let left = |orders: &Orders, at| orders.as_of(at).handover.map(|order| order.for_ms);
    assert!(left(&orders, LATER) <= left(&orders, NOW), "the time that is left only shrinks");
    assert_eq!(orders.has_limit(), orders.lapses_in(NOW).is_some());
    orders.disabled.iter().for_each(|order| drop(order.said("/zk-leader-run/job")));
    orders.handover.iter().for_each(|order| drop(order.said()));
}

fn drain(data: &[u8]) {
    let Ok(drain) = Drain::read(data) else { return };
    assert_eq!(Drain::read(&drain.written()), Ok(Drain { v: 1, ..drain.clone() }));
    assert!(drain.ends_at(NOW).is_none_or(|end| end >= NOW));
    drop((drain.said(NOW), drain.said(i64::MAX), drain.forced("host", "/zk-leader-run")));
}

fn history(data: &[u8]) {
    let Ok(mut history) = History::read(data) else { return };
    assert_eq!(History::read(&history.written()).unwrap().terms, history.terms);
    // Who moved it to another ensemble has lower tokens behind greater ones.
    let was_sorted = history.terms.is_sorted_by_key(|term| term.token);
    let term = Term { token: i64::MAX, id: "last".into(), takeover: "clean".into(), ..Term::default() };
    history.put(&term);
    assert!(history.terms.len() <= 50);
    assert!(!was_sorted || history.terms.is_sorted_by_key(|term| term.token));
    assert!(history.terms.iter().any(|term| term.token == i64::MAX), "the newest is kept");
    let once = history.clone();
    history.put(&term);
    assert_eq!(history, once);
}

fn member(data: &[u8]) {
    let Ok(member) = Member::read(data) else { return };
    assert_eq!(Member::read(&member.written()), Ok(Member { v: 1, ..member.clone() }));
    assert!(!member.can_replace(&member.host));
}
