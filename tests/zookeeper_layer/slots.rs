//! Several slots: who is shown which, what a write touches, and what is created again.

use zk_leader_run::core::action::Conditions;
use zk_leader_run::core::event::{Denial, Event, Place, View};
use zk_leader_run::core::guard_messages::Slot;
use zk_leader_run::zookeeper::Settings;
use zk_leader_run::zookeeper::election::release_orphaned::{self, Orphaned, Outcome};

use crate::chroot::Chroot;
use crate::host::{BASE, ELECTION, FIRST, Host, No, SESSION_TIMEOUT, settings};
use crate::support::Admin;
use crate::support::wait::SETTLED;

fn of_two(servers: &str, instance: u64) -> Settings {
    Settings { leaders: 2, ..settings(servers, instance) }
}

fn path(slot: u16, book: &str) -> String {
    format!("{BASE}/slots/{slot}/{book}")
}

/// The versions of both books of a slot.
fn versions(admin: &Admin, slot: u16) -> [i32; 2] {
    ["lease", "term"].map(|book| admin.stat(&path(slot, book)).unwrap().version)
}

fn shown(view: &View) -> (Place, Slot) {
    (view.place, view.record.slot)
}

#[tokio::test]
async fn each_of_the_first_is_shown_a_slot_of_its_own_and_the_next_the_newest_record() {
    let chroot = Chroot::new();
    let servers = chroot.connect_string();
    let (mut first, view, _) = Host::leading(of_two(&servers, 1)).await;
    assert_eq!(shown(&view), (Place::First, Slot(0)));
    let (mut second, view, conditions) = Host::leading(of_two(&servers, 2)).await;
    assert_eq!(shown(&view), (Place::First, Slot(1)));
    let (_third, view) = Host::entered(of_two(&servers, 3)).await;
    assert_eq!(shown(&view), (Place::Next, Slot(1)), "written last");
    let (_fourth, view) = Host::entered(of_two(&servers, 4)).await;
    assert_eq!(view.place, Place::Next);
    let (_fifth, view) = Host::entered(of_two(&servers, 5)).await;
    assert_eq!(view.place, Place::Behind(4));
    second.renew(conditions).await.unwrap();
    assert_eq!(shown(&first.look(FIRST).await.unwrap()), (Place::First, Slot(0)), "a holder is shown its own");
}

#[tokio::test]
async fn two_that_were_shown_one_slot_do_not_both_take_it() {
    let chroot = Chroot::new();
    let servers = chroot.connect_string();
    let (mut first, view) = Host::entered(of_two(&servers, 1)).await;
    let (mut second, _) = Host::entered(of_two(&servers, 2)).await;
    let (conditions, token) = first.take_over(&view, 1).await.unwrap();
    assert_eq!(second.take_over(&view, 1).await, Err(No::Denied(Denial::Conflict)));
    let view = second.look(FIRST).await.unwrap();
    assert_eq!(shown(&view), (Place::First, Slot(1)));
    let (_, other) = second.take_over(&view, 2).await.unwrap();
    assert!(other > token, "tokens grow from slot to slot");
    first.renew(conditions).await.unwrap();
}

#[tokio::test]
async fn what_is_written_to_one_slot_changes_no_other() {
    let chroot = Chroot::new();
    let (servers, admin) = (chroot.connect_string(), Admin::to(&chroot.connect_string()));
    // Both slots are new, so their versions are the same.
    let (mut host, view) = Host::entered(of_two(&servers, 1)).await;
    let conditions = Conditions { slot: Slot(1), record: view.record.version, term: view.term_version };
    let (conditions, token) = host.take_over_on(conditions, 1).await.unwrap();
    assert_eq!(admin.stat(&path(1, "term")).unwrap().mzxid, token);
    let conditions = host.renew(conditions).await.unwrap();
    assert_eq!((versions(&admin, 0), versions(&admin, 1)), ([0, 0], [2, 1]));
    let mixed_up = Conditions { slot: Slot(0), ..conditions };
    assert_eq!(host.renew(mixed_up).await, Err(No::Denied(Denial::Conflict)));
    assert_eq!(host.release(mixed_up).await, Err(No::Denied(Denial::Conflict)));
    host.release(conditions).await.unwrap();
    assert_eq!((versions(&admin, 0), versions(&admin, 1)), ([0, 0], [3, 1]));
}

/// It came before the watch, and no term explains it.
#[tokio::test]
async fn a_touch_that_is_found_when_a_watch_is_armed_is_told_once() {
    let chroot = Chroot::new();
    let (servers, admin) = (chroot.connect_string(), Admin::to(&chroot.connect_string()));
    let (_first, _) = Host::entered(of_two(&servers, 1)).await;
    let (_second, view) = Host::entered(of_two(&servers, 2)).await;
    admin.set(&format!("{ELECTION}/{}", view.candidate.as_str()), "touched");
    let (mut third, _) = Host::entered(of_two(&servers, 3)).await;
    third.wait_for(Event::LineChanged { candidacy: FIRST }).await;
    third.look(FIRST).await.unwrap();
    assert_eq!(third.hints_within(SETTLED).await, []);
}

/// Both slots have the same versions.
#[tokio::test]
async fn a_killed_supervisors_slot_is_freed_and_no_other() {
    let chroot = Chroot::new();
    let (servers, admin) = (chroot.connect_string(), Admin::to(&chroot.connect_string()));
    let (mut first, _, conditions) = Host::leading(of_two(&servers, 1)).await;
    let (mut second, view) = Host::entered(of_two(&servers, 2)).await;
    let (_, token) = second.take_over(&view, 1).await.unwrap();
    assert_eq!((shown(&view), versions(&admin, 0)), ((Place::First, Slot(1)), versions(&admin, 1)));
    let candidate = view.candidate.as_str().to_owned();
    let orphaned = Orphaned { slot: Slot(1), token, candidate, session: view.session_id };
    let freed = release_orphaned::free_record(of_two(&servers, 9), &orphaned).await;
    assert!(matches!(freed, Ok(Outcome::Freed)), "{freed:?}");
    assert_eq!((versions(&admin, 0), versions(&admin, 1)), ([1, 1], [2, 1]));
    assert!(!first.observe_slot(Slot(1)).await.unwrap().held);
    first.renew(conditions).await.unwrap();
}

#[tokio::test]
async fn a_lost_slot_is_created_held_and_the_other_stays_as_it_is() {
    let chroot = Chroot::new();
    let (servers, admin) = (chroot.connect_string(), Admin::to(&chroot.connect_string()));
    let (mut first, view, _) = Host::leading(of_two(&servers, 1)).await;
    assert_eq!(view.record.slot, Slot(0));
    admin.delete(&path(0, "lease"));
    first.hint(|event| matches!(event, Event::RecordChanged { .. }).then_some(())).await;
    admin.delete_tree(&format!("{BASE}/slots/1"));
    let (mut second, view) = Host::entered(of_two(&servers, 2)).await;
    assert!(view.record.held);
    let record = second.observe_slot(Slot(0)).await.unwrap();
    assert!(record.held && record.lease == SESSION_TIMEOUT, "{record:?}");
    let record = second.observe_slot(Slot(1)).await.unwrap();
    assert!(record.held && record.lease > SESSION_TIMEOUT, "nothing told how long: {record:?}");
}

#[tokio::test]
async fn a_base_for_another_number_disagrees_in_every_record_and_is_left_as_it_is() {
    let chroot = Chroot::new();
    let (servers, admin) = (chroot.connect_string(), Admin::to(&chroot.connect_string()));
    let (_first, _) = Host::entered(of_two(&servers, 1)).await;
    for leaders in [1, 3] {
        let (_other, view) = Host::entered(Settings { leaders, ..settings(&servers, 9) }).await;
        assert!(view.record.held && !view.record.agrees, "{leaders}: {view:?}");
    }
    assert_eq!(admin.children(&format!("{BASE}/slots")), ["0", "1"]);
    admin.delete_tree(BASE);
    let (_first, _) = Host::entered(settings(&servers, 1)).await;
    let (_other, view) = Host::entered(of_two(&servers, 2)).await;
    assert!(view.record.held && !view.record.agrees, "{view:?}");
    assert!(!admin.exists(&format!("{BASE}/slots")));
}

#[tokio::test]
async fn a_take_over_wakes_those_behind_it_and_is_no_news_to_whoever_comes_later() {
    let chroot = Chroot::new();
    let servers = chroot.connect_string();
    let (mut first, view) = Host::entered(of_two(&servers, 1)).await;
    let (mut second, _) = Host::entered(of_two(&servers, 2)).await;
    let (mut third, _) = Host::entered(of_two(&servers, 3)).await;
    let changed = Event::LineChanged { candidacy: FIRST };
    first.take_over(&view, 1).await.unwrap();
    third.wait_for(changed).await;
    let view = second.look(FIRST).await.unwrap();
    third.look(FIRST).await.unwrap();
    second.take_over(&view, 1).await.unwrap();
    third.wait_for(changed).await;
    third.look(FIRST).await.unwrap();
    // Whoever comes now sees two that were touched.
    let (mut fourth, _) = Host::entered(of_two(&servers, 4)).await;
    assert_eq!(fourth.hints_within(SETTLED).await, [], "what was seen is no news");
    let mut gone = Vec::new();
    for host in [&mut first, &mut second] {
        let view = host.look(FIRST).await.unwrap();
        assert_eq!(view.place, Place::First);
        gone.push(view.candidate);
    }
    for candidate in gone {
        Admin::to(&servers).delete(&format!("{ELECTION}/{}", candidate.as_str()));
        fourth.wait_for(changed).await;
        fourth.look(FIRST).await.unwrap();
    }
}
