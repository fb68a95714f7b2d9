//! What is created where something is missing.

use std::time::Duration;

use zk_leader_run::core::event::{Candidacy, Denial, Event, Nonce, Place};
use zk_leader_run::core::lease::LEASE_LONGEST;

use crate::chroot::Chroot;
use crate::host::{BASE, ELECTION, FIRST, Host, LEASE, No, SESSION_TIMEOUT, TERM, settings};
use crate::support::proxy::request;
use crate::support::standalone::link;
use crate::support::{Admin, Ensemble, wait};

#[tokio::test]
async fn a_new_base_is_created_in_one_multi_with_a_free_record() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (_host, view) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    assert_eq!((view.place, view.term_version), (Place::First, 0));
    assert!(!view.record.held && view.record.agrees);
    assert_eq!((view.record.lease, view.record.nonce), (SESSION_TIMEOUT, Nonce::UNKNOWN));
    let created = [BASE, ELECTION, LEASE, TERM].map(|path| admin.stat(path).unwrap());
    assert!(created.iter().all(|stat| stat.czxid == created[0].czxid && stat.ephemeral_owner == 0), "{created:?}");
    assert_eq!(admin.children(BASE), ["election", "lease", "term"]);
    assert_eq!(admin.children(ELECTION), [view.candidate.as_str()]);
    let (data, stat) = admin.find(&format!("{ELECTION}/{}", view.candidate.as_str())).unwrap();
    assert_eq!((data.as_str(), stat.ephemeral_owner), ("host1:1", view.session_id));
}

#[tokio::test]
async fn a_chroot_that_does_not_exist_is_created_like_any_ancestor() {
    let ensemble = Ensemble::single();
    let mut chrooted = settings(&ensemble.connect_string(), 1);
    chrooted.chroot = "/tenant/a".to_owned();
    let (_host, view) = Host::entered(chrooted).await;
    assert_eq!(view.place, Place::First);
    let admin = Admin::to(&ensemble.connect_string());
    assert_eq!(admin.children(&format!("/tenant/a{ELECTION}")), [view.candidate.as_str()]);
    assert!(!admin.exists("/zk-leader-run"));
}

#[tokio::test]
async fn an_election_elsewhere_is_created_there() {
    let chroot = Chroot::new();
    let mut foreign = settings(&chroot.connect_string(), 1);
    foreign.election = "/curator/latch/job".to_owned();
    let (_host, view) = Host::entered(foreign).await;
    assert!(!view.record.held);
    let admin = Admin::to(&chroot.connect_string());
    assert_eq!(admin.children("/curator/latch/job"), [view.candidate.as_str()]);
    assert_eq!(admin.children(BASE), ["lease", "term"]);
}

#[tokio::test]
async fn hosts_that_race_to_create_the_base_share_one() {
    let chroot = Chroot::new();
    let servers = chroot.connect_string();
    let mut hosts = Vec::new();
    for instance in 1..=6 {
        hosts.push(Host::connected(settings(&servers, instance)).await);
    }
    for host in &hosts {
        host.election.enter(FIRST);
    }
    let mut places = Vec::new();
    for host in &mut hosts {
        let answer = host.answer(FIRST, zk_leader_run::core::event::Request::Enter).await;
        let Ok(Event::Seen { view, .. }) = answer else { panic!("{answer:?}") };
        assert!(!view.record.held && view.record.version == 0);
        places.push(view.place);
    }
    assert_eq!(places.iter().filter(|place| **place == Place::First).count(), 1, "{places:?}");
    assert_eq!(Admin::to(&servers).children(ELECTION).len(), 6);
}

#[tokio::test]
async fn a_start_on_an_existing_base_sends_all_its_requests_before_any_reply() {
    let chroot = Chroot::new();
    let (_first, _) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    let proxy = link();
    let mut host = Host::connected(settings(&chroot.behind(&proxy), 2)).await;
    proxy.stall_replies();
    host.election.enter(FIRST);
    let round = [request::CREATE2, request::GET_DATA, request::GET_DATA, request::GET_CHILDREN2];
    // The orders of operators were read before, when the session was opened.
    let of_the_orders = |kind: &i32| *kind != request::CREATE2;
    let sent = || proxy.forwarded().into_iter().skip_while(of_the_orders).collect::<Vec<_>>();
    let arrived = async {
        while !sent().starts_with(&round) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(wait::LIMIT, arrived).await.unwrap_or_else(|_| panic!("sent {:?}", sent()));
    proxy.heal();
    let answer = host.answer(FIRST, zk_leader_run::core::event::Request::Enter).await.unwrap();
    assert!(matches!(answer, Event::Seen { view, .. } if view.place == Place::Next), "{answer:?}");
}

/// The answer to the creation is held back: what follows does not wait for it.
#[tokio::test]
async fn a_new_base_is_created_in_the_round_that_creates_the_candidate() {
    let chroot = Chroot::new();
    Admin::to(&chroot.connect_string()).create_all("/zk-leader-run");
    let proxy = link();
    let mut host = Host::connected(settings(&chroot.behind(&proxy), 1)).await;
    proxy.hold_replies_from(&[request::MULTI]);
    host.election.enter(FIRST);
    let round = [request::MULTI, request::CREATE2, request::GET_DATA, request::GET_DATA, request::GET_CHILDREN2];
    let sent = || proxy.forwarded().into_iter().skip_while(|kind| *kind != request::MULTI).collect::<Vec<_>>();
    let arrived = async {
        while !sent().starts_with(&round) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(wait::LIMIT, arrived).await.unwrap_or_else(|_| panic!("sent {:?}", sent()));
    proxy.heal();
    let answer = host.answer(FIRST, zk_leader_run::core::event::Request::Enter).await.unwrap();
    assert!(
        matches!(answer, Event::Seen { view, .. } if view.place == Place::First && !view.record.held),
        "{answer:?}"
    );
}

#[tokio::test]
async fn an_election_directory_that_vanished_is_created_again() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (mut host, _) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    let before = admin.stat(LEASE).unwrap();
    admin.delete_tree(ELECTION);
    host.wait_for(Event::LineChanged { candidacy: FIRST }).await;
    assert_eq!(host.look(FIRST).await, Err(No::Denied(Denial::CandidateGone)));
    assert_eq!(host.enter(Candidacy(2)).await.unwrap().place, Place::First);
    assert_eq!(admin.stat(LEASE).unwrap(), before, "the record is none of its business");
}

#[tokio::test]
async fn a_lost_record_is_held_by_unknown_for_the_longer_of_two_leases() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (mut host, view) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    for (in_the_term, expected) in [(SESSION_TIMEOUT * 2, SESSION_TIMEOUT * 2), (SESSION_TIMEOUT / 2, SESSION_TIMEOUT)]
    {
        admin.set(TERM, &format!(r#"{{"v":1,"lease_ms":{}}}"#, in_the_term.as_millis()));
        admin.delete(LEASE);
        let record = host.look(FIRST).await.unwrap().record;
        assert!(record.held && record.agrees && record.mzxid != view.record.mzxid);
        assert_eq!((record.lease, record.nonce, record.version), (expected, Nonce::UNKNOWN, 0));
    }
    admin.set(TERM, "not json");
    admin.delete(LEASE);
    assert_eq!(host.observe().await, Err(No::Denied(Denial::Conflict)), "a look makes it again");
    assert_eq!(host.look(FIRST).await.unwrap().record.lease, LEASE_LONGEST);
}

/// Others take over for longer and longer while we read for how long, and the record is gone again. A record that is made by what one
/// of the earlier terms said would let us start beside the last one.
#[tokio::test]
async fn a_lost_record_is_made_by_what_the_term_says_that_it_is_made_under() {
    let chroot = Chroot::new();
    let (proxy, admin) = (link(), Admin::to(&chroot.connect_string()));
    let (mut host, _) = Host::entered(settings(&chroot.behind(&proxy), 1)).await;
    let says = |times: u32| format!(r#"{{"v":1,"lease_ms":{}}}"#, (SESSION_TIMEOUT * times).as_millis());
    admin.set(TERM, &says(2));
    admin.delete(LEASE);
    let (changing, mut longer) = (Admin::to(&chroot.connect_string()), 3..5);
    proxy.tamper(move |frame| {
        let is_of_term = frame.windows(8).any(|part| part == b"lease_ms");
        if is_of_term {
            longer.next().into_iter().for_each(|times| changing.set(TERM, &says(times)));
        }
        frame
    });
    let seen = host.look(FIRST).await.unwrap().record;
    assert_eq!((seen.held, seen.lease), (true, SESSION_TIMEOUT * 4));
}

#[tokio::test]
async fn the_loss_of_the_term_is_the_loss_of_the_base() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (mut host, view) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    admin.delete(TERM);
    let seen = host.look(FIRST).await.unwrap();
    assert_eq!((seen.record, seen.term_version), (view.record, 0), "the record is still there and says what it says");
    admin.delete(TERM);
    admin.delete(LEASE);
    let record = host.look(FIRST).await.unwrap().record;
    assert_eq!((record.held, record.lease), (true, LEASE_LONGEST));
}

#[tokio::test]
async fn a_base_that_others_used_before_gets_no_free_record() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    admin.create_all(&format!("{BASE}/something"));
    admin.delete(&format!("{BASE}/something"));
    let (_host, view) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    assert_eq!((view.record.held, view.record.lease), (true, LEASE_LONGEST));
}

#[tokio::test]
async fn an_empty_base_that_an_operator_made_is_as_good_as_none() {
    let chroot = Chroot::new();
    Admin::to(&chroot.connect_string()).create_all(BASE);
    let (_host, view) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    assert!(!view.record.held);
}

#[tokio::test]
async fn an_unreadable_record_counts_as_held_and_can_be_taken_over() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (mut host, _) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    admin.set(LEASE, "\u{0}{garbage");
    let view = host.look(FIRST).await.unwrap();
    assert!(view.record.held && view.record.agrees);
    assert_eq!((view.record.lease, view.record.nonce), (LEASE_LONGEST, Nonce::UNKNOWN));
    host.take_over(&view, 1).await.unwrap();
    let record = host.look(FIRST).await.unwrap().record;
    assert_eq!((record.nonce, record.lease), (host.nonce(1), SESSION_TIMEOUT));
}

#[tokio::test]
async fn a_peer_with_another_guarantee_is_seen_to_disagree() {
    let chroot = Chroot::new();
    let (_first, _, _) = Host::leading(settings(&chroot.connect_string(), 1)).await;
    let mut other = settings(&chroot.connect_string(), 2);
    other.guarantee = zk_leader_run::core::settings::Guarantee::AtLeastOne;
    let (_second, view) = Host::entered(other).await;
    assert!(view.record.held && !view.record.agrees);
}

#[tokio::test]
async fn our_own_lease_is_the_wish_unless_the_session_is_shorter() {
    let chroot = Chroot::new();
    for (name, wish, expected) in
        [("short", Duration::from_secs(7), Duration::from_secs(7)), ("long", Duration::from_secs(90), SESSION_TIMEOUT)]
    {
        let mut wishing = settings(&chroot.connect_string(), 1);
        wishing.base = format!("/zk-leader-run/{name}");
        wishing.election = format!("/zk-leader-run/{name}/election");
        wishing.lease = Some(wish);
        let (_host, view) = Host::entered(wishing).await;
        assert_eq!(view.record.lease, expected);
    }
}
