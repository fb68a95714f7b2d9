//! Candidates: how they are found again, and whom they stand behind.

use std::time::Duration;

use zk_leader_run::core::event::{Candidacy, Denial, Event, Place, Request};
use zk_leader_run::core::settings::Recipe;
use zk_leader_run::zookeeper::Settings;

use crate::chroot::Chroot;
use crate::host::{ELECTION, FIRST, Host, No, settings};
use crate::support::Admin;
use crate::support::proxy::request;
use crate::support::standalone::link;
use crate::support::wait::SETTLED;

const SECOND: Candidacy = Candidacy(2);

#[tokio::test]
async fn a_lost_create_reply_leaves_one_candidate() {
    let chroot = Chroot::new();
    for recipe in [Recipe::Sequential, Recipe::CuratorLock, Recipe::Kazoo, Recipe::JavaLes] {
        leaves_one_candidate(&chroot, recipe).await;
    }
}

async fn leaves_one_candidate(chroot: &Chroot, recipe: Recipe) {
    let settings = |servers: &str, instance| Settings {
        recipe,
        base: format!("/zk-leader-run/{recipe:?}"),
        election: format!("/zk-leader-run/{recipe:?}/election"),
        ..settings(servers, instance)
    };
    let admin = Admin::to(&chroot.connect_string());
    let (_first, before) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    let children = || admin.children(&format!("/zk-leader-run/{recipe:?}/election"));
    let proxy = link();
    let mut host = Host::connected(settings(&chroot.behind(&proxy), 2)).await;
    proxy.drop_next_reply_to(&[request::CREATE2]);
    assert_eq!(host.enter(FIRST).await, Err(No::Unanswered));
    assert_eq!((proxy.replies_dropped(), children().len()), (1, 2), "{recipe:?}");
    let view = host.enter(FIRST).await.unwrap();
    assert_eq!(view.place, Place::Next, "{recipe:?}");
    assert_ne!(view.candidate, before.candidate, "{recipe:?}");
    assert!(children().contains(&view.candidate.as_str().to_owned()), "{recipe:?}");
    assert_eq!(children().len(), 2, "{recipe:?}: the one that was created is the one that is used");
    assert_eq!(host.enter(FIRST).await.unwrap().candidate, view.candidate);
}

/// Where names tell nothing, the session tells which candidates are ours: also those of a candidacy that was given up before
/// its create was answered.
#[tokio::test]
async fn a_candidate_without_a_uuid_whose_candidacy_was_given_up_is_found_and_deleted() {
    let chroot = Chroot::new();
    let settings = |servers: &str, instance| Settings { recipe: Recipe::JavaLes, ..settings(servers, instance) };
    let (_first, before) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    let proxy = link();
    let mut host = Host::connected(settings(&chroot.behind(&proxy), 2)).await;
    proxy.drop_next_reply_to(&[request::CREATE2]);
    assert_eq!(host.enter(FIRST).await, Err(No::Unanswered));
    let view = host.enter(SECOND).await.unwrap();
    assert_eq!((before.candidate.as_str(), view.candidate.as_str()), ("n_0000000000", "n_0000000002"));
    let children = Admin::to(&chroot.connect_string()).children(ELECTION);
    assert_eq!(children, ["n_0000000000", "n_0000000002"], "that of the earlier candidacy is gone");
}

#[tokio::test]
async fn a_candidate_with_our_uuid_and_another_owner_is_not_adopted() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (_first, others) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    let proxy = link();
    let mut host = Host::connected(settings(&chroot.behind(&proxy), 2)).await;
    proxy.drop_next_reply_to(&[request::CREATE2]);
    assert_eq!(host.enter(FIRST).await, Err(No::Unanswered));
    let ours = admin.children(ELECTION).into_iter().find(|child| child != others.candidate.as_str()).unwrap();
    admin.delete(&format!("{ELECTION}/{ours}"));
    let (prefix, _) = ours.rsplit_once('-').unwrap();
    let theirs = admin.create_sequential(&format!("{ELECTION}/{prefix}-"), "not ours");
    let view = host.enter(FIRST).await.unwrap();
    assert!(!theirs.ends_with(view.candidate.as_str()));
    assert_eq!(
        admin.stat(&format!("{ELECTION}/{}", view.candidate.as_str())).unwrap().ephemeral_owner,
        view.session_id
    );
}

#[tokio::test]
async fn a_late_second_candidate_of_ours_is_deleted_and_does_not_count() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (mut host, view) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    let name = view.candidate.as_str();
    let (prefix, _) = name.rsplit_once('-').unwrap();
    admin.create_sequential(&format!("{ELECTION}/{prefix}-"), "late");
    assert_eq!(host.look(FIRST).await.unwrap().place, Place::First);
    // The deletion was sent before this look, on the same session.
    host.look(FIRST).await.unwrap();
    assert_eq!(admin.children(ELECTION), [name]);
}

#[tokio::test]
async fn a_new_candidacy_does_not_stand_behind_an_old_one_of_the_same_session() {
    let chroot = Chroot::new();
    let (mut host, old) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    let new = host.enter(SECOND).await.unwrap();
    assert_ne!(old.candidate, new.candidate);
    assert_eq!(new.place, Place::First);
    host.look(SECOND).await.unwrap();
    assert_eq!(Admin::to(&chroot.connect_string()).children(ELECTION), [new.candidate.as_str()]);
    assert_eq!(host.enter(FIRST).await, Err(No::Unanswered), "an old candidacy does not come back");
}

#[tokio::test]
async fn a_candidate_of_an_older_session_is_not_ours() {
    let chroot = Chroot::new();
    let proxy = link();
    let mut short = settings(&chroot.behind(&proxy), 1);
    short.session_timeout = Duration::from_secs(15);
    let (mut host, old) = Host::entered(short).await;
    // The old session is not closed before its client gives up the silent connection, after a fifth of that.
    proxy.strand();
    host.connect(2).await;
    for _ in 0..2 {
        assert_eq!(host.take_over(&old, 1).await, Err(No::Denied(Denial::CandidateGone)));
        assert_eq!(host.look(FIRST).await, Err(No::Denied(Denial::CandidateGone)));
    }
    let new = host.enter(SECOND).await.unwrap();
    assert_eq!(new.place, Place::Next, "the old one still stands there");
    assert!(new.candidate != old.candidate && new.session_id != old.session_id);
    host.wait_for(Event::LineChanged { candidacy: SECOND }).await;
    assert_eq!(host.look(SECOND).await.unwrap().place, Place::First);
}

#[tokio::test]
async fn the_same_candidacy_in_a_new_session_gets_a_new_candidate() {
    let chroot = Chroot::new();
    let (mut host, old) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    host.connect(2).await;
    let new = host.enter(FIRST).await.unwrap();
    assert!(new.candidate != old.candidate && new.session_id != old.session_id);
}

#[tokio::test]
async fn foreign_children_are_ignored() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (_first, _) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    for foreign in ["foo", "n_0000000000", "config", "latch-", "é-latch-00000é0000", "_c_-lock-0000000000"] {
        admin.create(&format!("{ELECTION}/{foreign}"), "");
    }
    let (_second, view) = Host::entered(settings(&chroot.connect_string(), 2)).await;
    assert_eq!(view.place, Place::Next);
}

#[tokio::test]
async fn a_latch_of_curator_stands_in_the_same_line() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    admin.create_all(ELECTION);
    let theirs = format!("{ELECTION}/_c_6a0b7f0e-6a5f-4f7c-9d5b-2f1f6f0c9a11-latch-");
    let theirs = admin.create_sequential(&theirs, "curator");
    let (mut host, view) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    assert_eq!(view.place, Place::Next);
    admin.delete(&theirs);
    host.wait_for(Event::LineChanged { candidacy: FIRST }).await;
    assert_eq!(host.look(FIRST).await.unwrap().place, Place::First);
}

#[tokio::test]
async fn a_departure_wakes_the_two_behind_and_nobody_else() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let mut hosts = Vec::new();
    for instance in 1..=5 {
        hosts.push(Host::entered(settings(&chroot.connect_string(), instance)).await);
    }
    let places: Vec<_> = hosts.iter().map(|(_, view)| view.place).collect();
    assert_eq!(places, [Place::First, Place::Next, Place::Behind(2), Place::Behind(3), Place::Behind(4)]);
    for (host, _) in &mut hosts {
        assert_eq!(host.hints_within(SETTLED).await, [], "arming a watch is not a change");
    }
    admin.delete(&format!("{ELECTION}/{}", hosts[1].1.candidate.as_str()));
    for woken in [1, 2, 3] {
        hosts[woken].0.wait_for(Event::LineChanged { candidacy: FIRST }).await;
    }
    for (host, _) in &mut hosts {
        assert_eq!(host.hints_within(SETTLED).await, [], "only the deleted one itself and the two behind it, and once");
    }
    assert_eq!(hosts[2].0.look(FIRST).await.unwrap().place, Place::Next);
    assert_eq!(hosts[3].0.look(FIRST).await.unwrap().place, Place::Behind(2));
}

#[tokio::test]
async fn the_loss_of_our_own_candidate_is_told_at_once() {
    let chroot = Chroot::new();
    let (mut host, view, conditions) = Host::leading(settings(&chroot.connect_string(), 1)).await;
    Admin::to(&chroot.connect_string()).delete(&format!("{ELECTION}/{}", view.candidate.as_str()));
    host.wait_for(Event::LineChanged { candidacy: FIRST }).await;
    assert_eq!(host.look(FIRST).await, Err(No::Denied(Denial::CandidateGone)));
    assert_eq!(host.renew(conditions).await, Err(No::Denied(Denial::CandidateGone)));
}

#[tokio::test]
async fn a_request_for_an_unknown_candidacy_is_answered_too() {
    let chroot = Chroot::new();
    let mut host = Host::connected(settings(&chroot.connect_string(), 1)).await;
    assert_eq!(host.look(Candidacy(9)).await, Err(No::Denied(Denial::CandidateGone)));
    let mut nobody = Host::new(settings(&chroot.connect_string(), 2));
    for ask in [zk_leader_run::zookeeper::Election::enter, zk_leader_run::zookeeper::Election::look] {
        ask(&nobody.election, FIRST);
    }
    assert_eq!(nobody.answer(FIRST, Request::Enter).await, Err(No::Unanswered));
    assert_eq!(nobody.answer(FIRST, Request::Look).await, Err(No::Unanswered));
}
