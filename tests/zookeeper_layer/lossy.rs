//! Every reply in turn is lost, on the way in and on the way out.

use zk_leader_run::core::event::{Candidacy, Denial, Place};
use zk_leader_run::core::settings::Recipe;
use zk_leader_run::zookeeper::Settings;

use crate::chroot::Chroot;
use crate::host::{FIRST, Host, No, settings};
use crate::support::standalone::link;
use crate::support::{Admin, wait};

/// A base of its own for each loss.
fn on_base(number: usize, recipe: Recipe, connect: &str) -> Settings {
    let base = format!("/lossy/{number}/job");
    Settings { election: format!("{base}/election"), base, recipe, ..settings(connect, 1) }
}

#[tokio::test]
async fn whichever_reply_is_lost_on_the_way_in_there_is_one_candidate_and_one_free_record() {
    every_way_in(Recipe::Sequential).await;
}

#[tokio::test]
async fn whichever_reply_is_lost_on_the_way_to_the_seat_it_is_ours_and_the_record_is_free() {
    every_way_in(Recipe::Single).await;
}

async fn every_way_in(recipe: Recipe) {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let proxy = link();
    for spared in 0.. {
        let settings = on_base(spared, recipe, &chroot.behind(&proxy));
        let election = settings.election.clone();
        let mut host = Host::connected(settings).await;
        proxy.drop_reply_after(spared);
        let mut view = host.enter(FIRST).await;
        let lost = proxy.replies_dropped() == spared + 1;
        proxy.drop_no_reply();
        while view == Err(No::Unanswered) {
            view = host.enter(FIRST).await;
        }
        let view = view.unwrap();
        assert!(view.place == Place::First && !view.record.held, "{view:?}");
        let children = admin.children(&election);
        assert_eq!(children, [view.candidate.as_str()], "after the loss of the reply to request {spared}");
        assert!(host.election.close(wait::LIMIT).await);
        if !lost {
            assert!(spared > 10, "only {spared} requests were sent");
            return;
        }
    }
}

#[tokio::test]
async fn whichever_reply_is_lost_on_the_way_out_the_record_is_freed_once() {
    for recipe in [Recipe::Sequential, Recipe::Single] {
        every_way_out(recipe).await;
    }
}

async fn every_way_out(recipe: Recipe) {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let proxy = link();
    for spared in 0.. {
        let settings = on_base(spared, recipe, &chroot.behind(&proxy));
        let (base, election) = (settings.base.clone(), settings.election.clone());
        let (mut host, _, conditions) = Host::leading(settings).await;
        // A reply to arming a watch is none that this test is about.
        host.look(FIRST).await.unwrap();
        host.hints_within(wait::SETTLED).await;
        let before = proxy.replies_dropped();
        proxy.drop_reply_after(spared);
        let mut released = host.release(conditions).await;
        let lost = proxy.replies_dropped() > before;
        proxy.drop_no_reply();
        while released == Err(No::Unanswered) {
            released = host.release(conditions).await;
        }
        assert_eq!(released, Ok(()));
        let record = admin.find(&format!("{base}/lease")).unwrap();
        assert!(record.0.contains(r#""state":"free""#), "{record:?}");
        assert_eq!((record.1.version, admin.children(&election)), (conditions.record + 1, vec![]));
        if !lost {
            assert!(spared > 0);
            return;
        }
    }
}

/// A record of an earlier session is freed before anybody looks whether the candidate of this one was created.
#[tokio::test]
async fn whichever_reply_is_lost_on_the_way_in_no_candidate_of_ours_stands_in_our_way_after_a_release() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let proxy = link();
    for spared in 0.. {
        let settings = on_base(spared, Recipe::Sequential, &chroot.behind(&proxy));
        let election = settings.election.clone();
        let (mut host, first, conditions) = Host::leading(settings).await;
        proxy.strand();
        host.connect(2).await;
        let before = proxy.replies_dropped();
        proxy.drop_reply_after(spared);
        let entered = host.enter(Candidacy(2)).await;
        let lost = proxy.replies_dropped() > before;
        proxy.drop_no_reply();
        if entered == Err(No::Unanswered) {
            while host.release_as(Candidacy(2), conditions).await == Err(No::Unanswered) {}
            let mut entered = host.enter(Candidacy(3)).await;
            while entered == Err(No::Unanswered) {
                entered = host.enter(Candidacy(3)).await;
            }
            let view = host.look(Candidacy(3)).await.unwrap();
            let mut ours = admin.children(&election);
            ours.retain(|name| name != first.candidate.as_str());
            assert_eq!(ours, [view.candidate.as_str()], "after the loss of the reply to request {spared}");
        }
        if !lost {
            assert!(spared > 3, "only {spared} requests were sent");
            return;
        }
    }
}

#[tokio::test]
async fn a_release_after_somebody_elses_is_a_conflict() {
    let chroot = Chroot::new();
    let (mut host, _, conditions) = Host::leading(settings(&chroot.connect_string(), 1)).await;
    let free = r#"{"v":1,"state":"free","lease_ms":1,"holder":{"nonce":"0000000000000009-1"}}"#;
    Admin::to(&chroot.connect_string()).set(crate::host::LEASE, free);
    assert_eq!(host.release(conditions).await, Err(No::Denied(Denial::Conflict)));
}
