//! Who is woken by a change of the record, and who is not.

use zk_leader_run::core::event::{Event, Place};

use crate::chroot::Chroot;
use crate::host::{BASE, ELECTION, FIRST, Host, LEASE, TERM, settings};
use crate::support::proxy::request;
use crate::support::standalone::link;
use crate::support::wait::SETTLED;
use crate::support::{Admin, Proxy};

const RECORD_CHANGED: Event = Event::RecordChanged { candidacy: FIRST };

#[tokio::test]
async fn the_next_in_line_gets_one_event_and_makes_one_read_for_each_renewal() {
    let chroot = Chroot::new();
    let proxy = link();
    let (mut holder, _, mut conditions) = Host::leading(settings(&chroot.connect_string(), 1)).await;
    let (mut next, view) = Host::entered(settings(&chroot.behind(&proxy), 2)).await;
    assert_eq!(view.place, Place::Next);
    assert_eq!(next.hints_within(SETTLED).await, []);
    let requests = |proxy: &Proxy| proxy.forwarded().into_iter().filter(|kind| *kind != request::PING).count();
    let before = requests(&proxy);
    for _ in 0..5 {
        conditions = holder.renew(conditions).await.unwrap();
        next.wait_for(RECORD_CHANGED).await;
        assert_eq!(next.observe().await.unwrap().version, conditions.record);
    }
    assert_eq!(next.hints_within(SETTLED).await, []);
    assert_eq!(requests(&proxy) - before, 5);
}

/// A change between the two would be heard of when the watch is renewed, minutes later.
#[tokio::test]
async fn the_operators_orders_are_watched_before_they_are_read() {
    let chroot = Chroot::new();
    let (proxy, path) = (link(), format!("{BASE}/control"));
    let (_host, _) = Host::entered(settings(&chroot.behind(&proxy), 1)).await;
    let about = proxy.requests().into_iter().filter(|request| request.text.contains(&path)).map(|request| request.kind);
    assert_eq!(about.take(2).collect::<Vec<_>>(), [request::EXISTS, request::GET_DATA]);
}

#[tokio::test]
async fn those_behind_the_next_sleep_through_renewals() {
    let chroot = Chroot::new();
    let (mut holder, _, mut conditions) = Host::leading(settings(&chroot.connect_string(), 1)).await;
    let (_next, _) = Host::entered(settings(&chroot.connect_string(), 2)).await;
    let (mut third, view) = Host::entered(settings(&chroot.connect_string(), 3)).await;
    assert_eq!(view.place, Place::Behind(2));
    for _ in 0..3 {
        conditions = holder.renew(conditions).await.unwrap();
    }
    assert_eq!(third.hints_within(SETTLED).await, []);
}

#[tokio::test]
async fn a_holder_sends_its_renewals_and_nothing_else() {
    let chroot = Chroot::new();
    let proxy = link();
    let (mut holder, _, mut conditions) = Host::leading(settings(&chroot.behind(&proxy), 1)).await;
    assert_eq!(holder.hints_within(SETTLED).await, []);
    let before = proxy.forwarded().len();
    for _ in 0..5 {
        conditions = holder.renew(conditions).await.unwrap();
    }
    assert_eq!(holder.hints_within(SETTLED).await, []);
    let sent: Vec<_> = proxy.forwarded()[before..].iter().copied().filter(|kind| *kind != request::PING).collect();
    assert_eq!(sent, [request::MULTI; 5]);
}

#[tokio::test]
async fn a_holder_is_told_at_once_that_its_record_or_term_was_deleted() {
    for path in [LEASE, TERM] {
        let chroot = Chroot::new();
        let admin = Admin::to(&chroot.connect_string());
        let (mut holder, _, _) = Host::leading(settings(&chroot.connect_string(), 1)).await;
        assert_eq!(holder.hints_within(SETTLED).await, []);
        admin.create(&format!("{BASE}/control"), "{}");
        assert_eq!(holder.hints_within(SETTLED).await, [], "another child of the base is none of its business");
        admin.delete(path);
        holder.wait_for(RECORD_CHANGED).await;
    }
}

#[tokio::test]
async fn an_adopted_take_over_is_watched_like_any_other() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let proxy = link();
    let (mut holder, view) = Host::entered(settings(&chroot.behind(&proxy), 1)).await;
    proxy.drop_next_reply_to(&[request::MULTI]);
    holder.take_over(&view, 1).await.unwrap_err();
    holder.look(FIRST).await.unwrap();
    holder.hints_within(SETTLED).await;
    admin.delete(LEASE);
    holder.wait_for(RECORD_CHANGED).await;
}

#[tokio::test]
async fn one_who_is_first_behind_a_held_record_sees_it_renewed() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (mut holder, view, conditions) = Host::leading(settings(&chroot.connect_string(), 1)).await;
    let (mut next, _) = Host::entered(settings(&chroot.connect_string(), 2)).await;
    // An operator deletes the holder's candidate (T54); the holder has not noticed yet.
    admin.create_ephemeral(&format!("{ELECTION}/keep"), "");
    admin.delete(&format!("{ELECTION}/{}", view.candidate.as_str()));
    next.wait_for(Event::LineChanged { candidacy: FIRST }).await;
    let seen = next.look(FIRST).await.unwrap();
    assert_eq!((seen.place, seen.record.held, seen.record.nonce), (Place::First, true, holder.nonce(1)));
    holder.release(conditions).await.unwrap();
    next.wait_for(RECORD_CHANGED).await;
    assert!(!next.observe().await.unwrap().held);
}

#[tokio::test]
async fn a_change_during_a_cut_is_told_after_it() {
    let chroot = Chroot::new();
    let proxy = link();
    let (mut holder, _, conditions) = Host::leading(settings(&chroot.connect_string(), 1)).await;
    let (mut next, _) = Host::entered(settings(&chroot.behind(&proxy), 2)).await;
    assert_eq!(next.hints_within(SETTLED).await, []);
    proxy.cut();
    next.wait_for(Event::ContactLost { session: zk_leader_run::core::event::SessionNumber(1) }).await;
    holder.renew(conditions).await.unwrap();
    proxy.heal();
    // What is watched may have changed: everything is read again.
    next.wait_for(Event::LineChanged { candidacy: FIRST }).await;
}

/// Its wait begins with what it sees of the next leader, not with that one's end.
#[tokio::test]
async fn who_is_next_behind_its_own_old_record_is_told_of_the_take_over() {
    let chroot = Chroot::new();
    let second = zk_leader_run::core::event::Candidacy(2);
    let (mut former, view, _) = Host::leading(settings(&chroot.connect_string(), 1)).await;
    let (mut other, _) = Host::entered(settings(&chroot.connect_string(), 2)).await;
    Admin::to(&chroot.connect_string()).delete(&format!("{ELECTION}/{}", view.candidate.as_str()));
    let view = former.enter(second).await.unwrap();
    assert_eq!((view.place, view.record.nonce.instance), (Place::Next, 1));
    former.hints_within(SETTLED).await;
    let view = other.look(FIRST).await.unwrap();
    other.take_over(&view, 1).await.unwrap();
    former.wait_for(Event::RecordChanged { candidacy: second }).await;
}

#[tokio::test]
async fn a_later_candidacy_is_not_woken_for_an_earlier_one() {
    let chroot = Chroot::new();
    let second = zk_leader_run::core::event::Candidacy(2);
    let (mut holder, _, conditions) = Host::leading(settings(&chroot.connect_string(), 1)).await;
    let (mut next, _) = Host::entered(settings(&chroot.connect_string(), 2)).await;
    next.enter(second).await.unwrap();
    next.hints_within(SETTLED).await;
    holder.renew(conditions).await.unwrap();
    assert_eq!(next.hint(Some).await, Event::RecordChanged { candidacy: second });
    assert_eq!(next.hints_within(SETTLED).await, []);
}
