//! Take-over, renewal and release: their conditions, and what a lost reply leaves behind.

use std::time::Duration;

use zk_leader_run::clock;
use zk_leader_run::core::action::{Conditions, Entry};
use zk_leader_run::core::event::{Candidacy, Denial, Event, Grounds, Place, Request, SessionNumber};
use zk_leader_run::core::guard_messages::Slot;
use zk_leader_run::zookeeper::admin::{AdminClient, Before, Destination, Tries, Written};
use zk_leader_run::zookeeper::client::connect::Access;

use crate::chroot::Chroot;
use crate::host::{ELECTION, FIRST, Host, LEASE, No, SESSION_TIMEOUT, TERM, settings};
use crate::support::proxy::request;
use crate::support::standalone::link;
use crate::support::wait::{LIMIT, SETTLED};
use crate::support::{Admin, Ensemble, wait};

const CONFLICT: No = No::Denied(Denial::Conflict);

/// By it, it may free the record of a successor that waits for it.
#[tokio::test]
async fn who_has_led_is_told_the_version_of_the_term_with_the_record() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (mut host, _, _) = Host::leading(settings(&chroot.connect_string(), 1)).await;
    admin.set(TERM, &admin.read(TERM));
    host.election.observe(FIRST, Slot(0));
    let answer = host.answer(FIRST, Request::Observe).await.unwrap();
    let Event::Observed { term_version, .. } = answer else { panic!("not an answer: {answer:?}") };
    assert_eq!(term_version, admin.stat(TERM).unwrap().version);
}

#[tokio::test]
async fn a_term_from_take_over_to_release() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (mut host, view) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    let (conditions, token) = host.take_over(&view, 1).await.unwrap();
    let term = admin.stat(TERM).unwrap();
    assert_eq!((token, conditions.term), (term.mzxid, term.version), "the token is the zxid of the term's last write");
    assert_eq!(admin.stat(LEASE).unwrap().mzxid, token, "one multi, one zxid");
    let conditions = host.renew(conditions).await.unwrap();
    let conditions = host.renew(conditions).await.unwrap();
    assert_eq!(admin.stat(LEASE).unwrap().version, conditions.record);
    assert_eq!(admin.stat(TERM).unwrap().mzxid, token, "a renewal leaves the term alone");
    let seen = host.look(FIRST).await.unwrap();
    assert!(seen.record.held && seen.record.nonce == host.nonce(1) && seen.record.lease == SESSION_TIMEOUT);
    host.release(conditions).await.unwrap();
    assert!(admin.read(LEASE).contains(r#""state":"free""#), "{}", admin.read(LEASE));
    assert_eq!(admin.children(ELECTION), [""; 0]);
    let (_next, view) = Host::entered(settings(&chroot.connect_string(), 2)).await;
    assert!(!view.record.held && view.term_version == 1);
}

#[tokio::test]
async fn a_server_is_left_with_the_same_session() {
    let chroot = Chroot::new();
    let (mut host, view) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    host.election.leave_server();
    host.wait_for(Event::ContactLost { session: SessionNumber(1) }).await;
    host.wait_for(Event::ContactRestored { session: SessionNumber(1) }).await;
    let again = host.look(FIRST).await.unwrap();
    assert_eq!((again.session_id, again.candidate), (view.session_id, view.candidate));
    host.take_over(&again, 1).await.unwrap();
}

/// Another term may have begun since `zk-leaderctl put --fenced` has read which one it is.
#[tokio::test]
async fn what_is_fenced_is_written_under_the_term_that_was_read_and_no_other() {
    let ensemble = Ensemble::single();
    let admin = Admin::to(&ensemble.connect_string());
    let (_host, _, conditions) = Host::leading(settings(&ensemble.connect_string(), 1)).await;
    let destination = Destination {
        servers: ensemble.connect_string(),
        chroot: String::new(),
        access: Access::default(),
        limit: LIMIT,
        session_timeout: SESSION_TIMEOUT,
        tries: Tries::Twice,
    };
    let client = AdminClient::open(&destination).await.unwrap();
    for (data, before) in [("made", Before::Missing), ("changed", Before::There(None))] {
        let write = |term| client.write((TERM, term), "/fenced", data.as_bytes(), before);
        assert_eq!(write(conditions.term - 1).await.unwrap(), Written::Conflict);
        assert_eq!(write(conditions.term).await.unwrap(), Written::Done);
        assert_eq!(admin.read("/fenced"), data);
    }
    client.close().await;
}

#[tokio::test]
async fn tokens_grow_from_term_to_term() {
    let chroot = Chroot::new();
    let mut tokens = Vec::new();
    for instance in 1..=5 {
        let (mut host, view) = Host::entered(settings(&chroot.connect_string(), instance)).await;
        let (conditions, token) = host.take_over(&view, 1).await.unwrap();
        assert_eq!(conditions.term, i32::try_from(instance).unwrap());
        host.release(conditions).await.unwrap();
        tokens.push(token);
    }
    assert!(tokens.is_sorted_by(|earlier, later| earlier < later), "{tokens:?}");
}

#[tokio::test]
async fn a_renewal_carries_what_it_was_given() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (mut host, _, conditions) = Host::leading(settings(&chroot.connect_string(), 1)).await;
    let entry = Entry { token: Some(42), lease: Duration::from_millis(77_001), ..host.entry(1) };
    host.election.renew(FIRST, conditions, entry);
    host.answer(FIRST, Request::Renew).await.unwrap();
    let data = admin.read(LEASE);
    assert!(data.contains(r#""token":42"#) && data.contains(r#""lease_ms":77001"#), "{data}");
}

#[tokio::test]
async fn a_write_on_another_version_of_the_record_or_the_term_is_a_conflict_and_writes_nothing() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (mut host, _, conditions) = Host::leading(settings(&chroot.connect_string(), 1)).await;
    let before = [LEASE, TERM, ELECTION].map(|path| admin.find(path).unwrap());
    let Conditions { slot, record, term } = conditions;
    for wrong in [Conditions { slot, record: record - 1, term }, Conditions { slot, record, term: term - 1 }] {
        assert_eq!(host.take_over_on(wrong, 2).await, Err(CONFLICT));
        assert_eq!(host.renew(wrong).await, Err(CONFLICT));
        assert_eq!(host.release(wrong).await, Err(CONFLICT));
    }
    assert_eq!([LEASE, TERM, ELECTION].map(|path| admin.find(path).unwrap()), before);
    host.renew(conditions).await.unwrap();
}

#[tokio::test]
async fn a_record_created_again_with_the_same_version_is_still_a_conflict() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (mut host, _, conditions) = Host::leading(settings(&chroot.connect_string(), 1)).await;
    admin.delete(LEASE);
    let (mut other, view) = Host::entered(settings(&chroot.connect_string(), 2)).await;
    assert!(view.record.held && view.record.version == 0);
    let (theirs, _) = other.take_over(&view, 1).await.unwrap();
    assert_eq!(theirs.record, conditions.record, "by its version alone it could be the same");
    assert_eq!(host.renew(conditions).await, Err(CONFLICT));
    assert_eq!(host.release(conditions).await, Err(CONFLICT));
}

#[tokio::test]
async fn without_its_candidate_nobody_takes_over() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (mut host, view) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    admin.delete(&format!("{ELECTION}/{}", view.candidate.as_str()));
    assert_eq!(host.take_over(&view, 1).await, Err(No::Denied(Denial::CandidateGone)));
    assert_eq!(admin.stat(TERM).unwrap().version, 0);
}

#[tokio::test]
async fn a_write_to_a_record_that_is_gone_is_a_conflict() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (mut host, _, conditions) = Host::leading(settings(&chroot.connect_string(), 1)).await;
    admin.delete(LEASE);
    assert_eq!(host.renew(conditions).await, Err(CONFLICT));
    assert_eq!(host.release(conditions).await, Err(CONFLICT));
    assert!(!admin.exists(LEASE), "a write creates nothing");
}

#[tokio::test]
async fn an_acl_that_forbids_a_write_is_told_from_a_conflict() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (mut host, view, conditions) = Host::leading(settings(&chroot.connect_string(), 1)).await;
    admin.make_read_only(LEASE);
    let forbidden = No::Denied(Denial::Forbidden(Grounds::Right));
    assert_eq!(host.take_over(&view, 2).await, Err(CONFLICT), "the version is looked at first, in the term");
    assert_eq!(host.take_over_on(conditions, 2).await, Err(forbidden));
    assert_eq!(host.renew(conditions).await, Err(forbidden));
    assert_eq!(host.release(conditions).await, Err(forbidden));
    admin.make_read_only(ELECTION);
    assert_eq!(host.enter(Candidacy(2)).await, Err(forbidden));
}

#[tokio::test]
async fn a_lost_take_over_reply_is_recognised_by_its_nonce() {
    let chroot = Chroot::new();
    let proxy = link();
    let (mut host, view) = Host::entered(settings(&chroot.behind(&proxy), 1)).await;
    proxy.drop_next_reply_to(&[request::MULTI]);
    assert_eq!(host.take_over(&view, 7).await, Err(No::Unanswered));
    assert_eq!(proxy.replies_dropped(), 1);
    let seen = host.look(FIRST).await.unwrap();
    assert_eq!((seen.place, seen.record.held, seen.record.nonce), (Place::First, true, host.nonce(7)));
    assert_eq!(seen.record.mzxid, Admin::to(&chroot.connect_string()).stat(TERM).unwrap().mzxid);
    let adopted = Conditions { slot: seen.record.slot, record: seen.record.version, term: seen.term_version };
    host.renew(adopted).await.unwrap();
}

#[tokio::test]
async fn a_lost_release_reply_is_recognised_by_its_nonce() {
    let chroot = Chroot::new();
    let proxy = link();
    let (mut host, _, conditions) = Host::leading(settings(&chroot.behind(&proxy), 1)).await;
    proxy.drop_next_reply_to(&[request::MULTI]);
    assert_eq!(host.release(conditions).await, Err(No::Unanswered));
    host.release(conditions).await.unwrap();
    assert_eq!(Admin::to(&chroot.connect_string()).children(ELECTION), [""; 0]);
}

#[tokio::test]
async fn a_release_frees_the_record_even_if_the_candidate_is_gone() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (mut host, view, conditions) = Host::leading(settings(&chroot.connect_string(), 1)).await;
    admin.delete(&format!("{ELECTION}/{}", view.candidate.as_str()));
    host.release(conditions).await.unwrap();
    assert!(admin.read(LEASE).contains(r#""state":"free""#));
}

#[tokio::test]
async fn a_release_is_one_multi_and_tells_of_the_departure_first() {
    let chroot = Chroot::new();
    let proxy = link();
    let (mut holder, _, conditions) = Host::leading(settings(&chroot.behind(&proxy), 1)).await;
    let (mut next, _) = Host::entered(settings(&chroot.connect_string(), 2)).await;
    assert_eq!(next.hints_within(SETTLED).await, []);
    let before = proxy.forwarded().len();
    holder.release(conditions).await.unwrap();
    let sent: Vec<_> = proxy.forwarded()[before..].iter().copied().filter(|kind| *kind != request::PING).collect();
    assert_eq!(sent, [request::MULTI]);
    assert_eq!(next.hint(Some).await, Event::LineChanged { candidacy: FIRST });
    assert_eq!(next.hint(Some).await, Event::RecordChanged { candidacy: FIRST });
    let seen = next.look(FIRST).await.unwrap();
    assert_eq!((seen.place, seen.record.held), (Place::First, false));
}

#[tokio::test]
async fn a_release_in_a_new_session_frees_the_record_and_deletes_the_old_candidate() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let proxy = link();
    let (mut host, _, conditions) = Host::leading(settings(&chroot.behind(&proxy), 1)).await;
    proxy.strand();
    host.connect(2).await;
    host.release(conditions).await.unwrap();
    assert!(admin.read(LEASE).contains(r#""state":"free""#));
    assert_eq!(admin.children(ELECTION), [""; 0]);
}

#[tokio::test]
async fn a_renewal_counts_from_when_it_was_sent() {
    let chroot = Chroot::new();
    let proxy = link();
    let (mut host, _, conditions) = Host::leading(settings(&chroot.behind(&proxy), 1)).await;
    proxy.stall();
    let before = clock::now().lease;
    host.election.renew(FIRST, conditions, host.entry(1));
    tokio::task::yield_now().await;
    let after = clock::now().lease;
    tokio::time::sleep(Duration::from_millis(300)).await;
    proxy.heal();
    let answer = host.answer(FIRST, Request::Renew).await.unwrap();
    let Event::Renewed { sent_at, .. } = answer else { panic!("{answer:?}") };
    assert!(before <= sent_at && sent_at <= after, "{before:?} {sent_at:?} {after:?}");
}

#[tokio::test]
async fn a_server_that_falls_silent_leaves_the_outcome_unknown() {
    let chroot = Chroot::new();
    let proxy = link();
    let mut short = settings(&chroot.behind(&proxy), 1);
    short.session_timeout = Duration::from_secs(4);
    let (mut host, _, conditions) = Host::leading(short).await;
    proxy.stall_replies();
    assert_eq!(host.renew(conditions).await, Err(No::Unanswered));
    let admin = Admin::to(&chroot.connect_string());
    wait::until("the server applies it all the same", || admin.stat(LEASE).unwrap().version == conditions.record + 1);
}

/// Whoever has released it keeps nobody from leading.
#[tokio::test]
async fn only_the_holder_of_a_lease_is_named_as_the_reason_why_another_one_does_not_lead() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (mut host, _) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    for (state, named) in [("held", vec!["a on x"]), ("free", vec![])] {
        let holder = r#""holder":{"id":"a","host":"x","pid":1}"#;
        admin.set(LEASE, &format!(r#"{{"v":1,"state":"{state}","lease_ms":15000,{holder}}}"#));
        host.look(FIRST).await.unwrap();
        assert_eq!(host.election.lease_holders(), named);
    }
}
