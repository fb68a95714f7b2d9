//! The single-znode recipe: one seat for all.

use zk_leader_run::core::event::{Candidacy, Denial, Event, Place};
use zk_leader_run::core::settings::Recipe;
use zk_leader_run::zookeeper::Settings;

use crate::chroot::Chroot;
use crate::host::{ELECTION, FIRST, Host, LEASE, No, settings};
use crate::support::Admin;
use crate::support::proxy::request;
use crate::support::standalone::link;

const SEAT: &str = "/zk-leader-run/job/election/leader";
const SECOND: Candidacy = Candidacy(2);
const LINE_CHANGED: Event = Event::LineChanged { candidacy: FIRST };
const GONE: No = No::Denied(Denial::CandidateGone);

fn single(servers: &str, instance: u64) -> Settings {
    Settings { recipe: Recipe::Single, ..settings(servers, instance) }
}

#[tokio::test]
async fn who_creates_the_seat_is_first_and_all_others_are_next() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (mut first, view) = Host::entered(single(&chroot.connect_string(), 1)).await;
    assert_eq!((view.place, view.candidate.as_str()), (Place::First, "leader"));
    assert_eq!(admin.stat(SEAT).unwrap().ephemeral_owner, view.session_id);
    let (mut second, behind) = Host::entered(single(&chroot.connect_string(), 2)).await;
    assert_eq!(behind.place, Place::Next);
    let (conditions, _) = first.take_over(&view, 1).await.unwrap();
    second.wait_for(Event::RecordChanged { candidacy: FIRST }).await;
    assert!(second.observe().await.unwrap().held);
    assert_eq!(second.take_over(&behind, 1).await, Err(GONE), "who has no seat takes nothing over");
    first.release(conditions).await.unwrap();
    second.wait_for(LINE_CHANGED).await;
    let seen = second.look(FIRST).await.unwrap();
    assert_eq!((seen.place, seen.record.held), (Place::First, false));
    second.take_over(&seen, 1).await.unwrap();
}

#[tokio::test]
async fn a_lost_create_reply_leaves_the_seat_ours() {
    let chroot = Chroot::new();
    let proxy = link();
    let mut host = Host::connected(single(&chroot.behind(&proxy), 1)).await;
    host.enter(FIRST).await.unwrap();
    Admin::to(&chroot.connect_string()).delete(SEAT);
    proxy.drop_next_reply_to(&[request::CREATE2]);
    assert_eq!(host.enter(SECOND).await, Err(No::Unanswered));
    assert_eq!(proxy.replies_dropped(), 1);
    assert_eq!(host.enter(SECOND).await.unwrap().place, Place::First);
}

#[tokio::test]
async fn a_seat_that_was_lost_is_not_taken_again_in_the_same_candidacy() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (mut host, _, conditions) = Host::leading(single(&chroot.connect_string(), 1)).await;
    admin.delete(SEAT);
    host.wait_for(LINE_CHANGED).await;
    assert_eq!(host.look(FIRST).await, Err(GONE));
    assert!(!admin.exists(SEAT));
    assert_eq!(host.renew(conditions).await, Err(GONE));
    assert_eq!(host.enter(SECOND).await.unwrap().place, Place::First);
}

#[tokio::test]
async fn a_seat_with_another_czxid_is_a_successors() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (mut host, _, conditions) = Host::leading(single(&chroot.connect_string(), 1)).await;
    admin.delete(SEAT);
    let (_other, view) = Host::entered(single(&chroot.connect_string(), 2)).await;
    assert_eq!((view.place, view.record.held), (Place::First, true));
    assert_eq!(host.look(FIRST).await, Err(GONE));
    let theirs = admin.stat(SEAT).unwrap();
    host.release(conditions).await.unwrap();
    assert_eq!(admin.stat(SEAT), Some(theirs), "a release deletes no seat but its own");
    assert!(admin.read(LEASE).contains(r#""state":"free""#));
}

#[tokio::test]
async fn a_seat_of_an_earlier_candidacy_is_given_up_and_taken_anew() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (mut host, _) = Host::entered(single(&chroot.connect_string(), 1)).await;
    let old = admin.stat(SEAT).unwrap();
    assert_eq!(host.enter(SECOND).await.unwrap().place, Place::First);
    assert_ne!(admin.stat(SEAT).unwrap().czxid, old.czxid);
}

#[tokio::test]
async fn a_foreign_seat_is_respected() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    admin.create_all(ELECTION);
    admin.create_ephemeral(SEAT, "someone else's format");
    let (mut host, view) = Host::entered(single(&chroot.connect_string(), 1)).await;
    assert_eq!(view.place, Place::Next);
    admin.delete(SEAT);
    host.wait_for(LINE_CHANGED).await;
    assert_eq!(host.look(FIRST).await.unwrap().place, Place::First);
}
