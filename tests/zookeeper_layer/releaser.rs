//! What frees a killed supervisor's record, while others change what it has read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use zk_leader_run::core::guard_messages::Slot;
use zk_leader_run::core::settings::Recipe;
use zk_leader_run::zookeeper::Settings;
use zk_leader_run::zookeeper::election::release_orphaned::{self, Orphaned, Outcome};

use crate::chroot::Chroot;
use crate::host::{ELECTION, Host, LEASE, settings};
use crate::support::Admin;
use crate::support::standalone::link;

const RECIPES: [Recipe; 2] = [Recipe::Sequential, Recipe::Single];

fn of(servers: &str, instance: u64, recipe: Recipe) -> Settings {
    Settings { recipe, ..settings(servers, instance) }
}

/// A term whose supervisor is as good as killed; its session lives on.
async fn orphaned(servers: &str, recipe: Recipe) -> (Host, Orphaned) {
    let (mut host, view) = Host::entered(of(servers, 1, recipe)).await;
    let (_, token) = host.take_over(&view, 1).await.unwrap();
    let candidate = view.candidate.as_str().to_owned();
    (host, Orphaned { slot: Slot(0), token, candidate, session: view.session_id })
}

/// The answers to a new session, and to the reads of term, record and candidate.
const ANSWERS: usize = 4;

/// Frees the record; before the last answer arrives, this happens.
async fn freed_while(chroot: &Chroot, orphaned: &Orphaned, recipe: Recipe, happens: impl Fn(&Admin) + Send + 'static) {
    let (proxy, admin) = (link(), Admin::to(&chroot.connect_string()));
    let mut answers = 0;
    proxy.tamper(move |frame| {
        answers += 1;
        if answers == ANSWERS {
            happens(&admin);
        }
        frame
    });
    let freed = release_orphaned::free_record(of(&chroot.behind(&proxy), 9, recipe), orphaned).await;
    assert!(matches!(freed, Ok(Outcome::Freed)), "{freed:?}");
    assert!(Admin::to(&chroot.connect_string()).read(LEASE).contains(r#""state":"free""#));
}

#[tokio::test]
async fn a_renewal_that_comes_after_its_supervisor_s_death_keeps_no_record_held() {
    for recipe in RECIPES {
        let chroot = Chroot::new();
        let (_host, orphaned) = orphaned(&chroot.connect_string(), recipe).await;
        freed_while(&chroot, &orphaned, recipe, |admin| admin.set(LEASE, &admin.read(LEASE))).await;
        assert!(Admin::to(&chroot.connect_string()).children(ELECTION).is_empty());
    }
}

/// There is time for many tries.
#[tokio::test]
async fn a_request_that_fails_is_tried_again() {
    const SYSTEM_ERROR: i32 = -1;
    let chroot = Chroot::new();
    let (_host, orphaned) = orphaned(&chroot.connect_string(), Recipe::Sequential).await;
    let (proxy, mut answers) = (link(), 0);
    proxy.tamper(move |frame| {
        answers += 1;
        match answers {
            ANSWERS => [&16_i32.to_be_bytes()[..], &frame[4..16], &SYSTEM_ERROR.to_be_bytes()].concat(),
            _ => frame,
        }
    });
    let freed = release_orphaned::free_record(of(&chroot.behind(&proxy), 9, Recipe::Sequential), &orphaned).await;
    assert!(matches!(freed, Ok(Outcome::Freed)), "{freed:?}");
}

/// Such as for a quota that is used up.
#[tokio::test]
async fn what_the_server_refuses_each_time_is_tried_ever_more_seldom_in_one_session_and_told() {
    const QUOTA_EXCEEDED: i32 = -125;
    let chroot = Chroot::new();
    let (_host, orphaned) = orphaned(&chroot.connect_string(), Recipe::Sequential).await;
    let (proxy, sessions, refused) = (link(), Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (opened, answered) = (Arc::clone(&sessions), Arc::clone(&refused));
    proxy.tamper(move |frame| match i32::from_be_bytes(frame[4..8].try_into().unwrap()) {
        0 => {
            opened.fetch_add(1, Relaxed);
            frame
        }
        1.. => {
            answered.fetch_add(1, Relaxed);
            [&16_i32.to_be_bytes()[..], &frame[4..16], &QUOTA_EXCEEDED.to_be_bytes()].concat()
        }
        _ => frame,
    });
    let short =
        Settings { session_timeout: Duration::from_secs(4), ..of(&chroot.behind(&proxy), 9, Recipe::Sequential) };
    let error = release_orphaned::free_record(short, &orphaned).await.unwrap_err().to_string();
    assert!(error.starts_with("exceed path quota; raise or delete the quota"), "{error}");
    assert_eq!(sessions.load(Relaxed), 1, "the session is used again");
    // Every 100 ms it would be tried 39 times, with three reads each.
    let tries = refused.load(Relaxed).div_ceil(3);
    assert!((2..=10).contains(&tries), "tried {tries} times");
}

/// It shows an older version of the record, and the ensemble refuses what is conditional on that. Another server frees it.
#[tokio::test]
async fn a_server_that_has_missed_a_write_is_left_after_two_tries() {
    const VERSION_FROM_THE_END: usize = 36;
    let chroot = Chroot::new();
    let (_host, orphaned) = orphaned(&chroot.connect_string(), Recipe::Sequential).await;
    let (proxy, reads) = (link(), Arc::new(AtomicU32::new(0)));
    let (mut sessions, shown) = (0, Arc::clone(&reads));
    proxy.tamper(move |mut frame| {
        sessions += u32::from(i32::from_be_bytes(frame[4..8].try_into().unwrap()) == 0);
        if sessions == 1 && String::from_utf8_lossy(&frame).contains(r#""state":"held""#) {
            shown.fetch_add(1, Relaxed);
            let version = frame.len() - VERSION_FROM_THE_END;
            frame[version + 3] = frame[version + 3].wrapping_sub(1);
        }
        frame
    });
    let freed = release_orphaned::free_record(of(&chroot.behind(&proxy), 9, Recipe::Sequential), &orphaned).await;
    assert!(matches!(freed, Ok(Outcome::Freed)), "{freed:?}");
    assert_eq!(reads.load(Relaxed), 2);
}

#[tokio::test]
async fn a_candidate_that_has_just_gone_keeps_no_record_held() {
    for recipe in RECIPES {
        let chroot = Chroot::new();
        let (_host, orphaned) = orphaned(&chroot.connect_string(), recipe).await;
        let candidate = format!("{ELECTION}/{}", orphaned.candidate);
        freed_while(&chroot, &orphaned, recipe, move |admin| admin.delete(&candidate)).await;
    }
}

#[tokio::test]
async fn the_seat_of_a_successor_stays_though_it_has_the_same_name() {
    let chroot = Chroot::new();
    let (servers, admin) = (chroot.connect_string(), Admin::to(&chroot.connect_string()));
    let (_host, orphaned) = orphaned(&servers, Recipe::Single).await;
    let seat = format!("{ELECTION}/{}", orphaned.candidate);
    admin.delete(&seat);
    let (_next, view) = Host::entered(of(&servers, 2, Recipe::Single)).await;
    let theirs = admin.stat(&seat).unwrap();
    assert_eq!(theirs.ephemeral_owner, view.session_id);
    let freed = release_orphaned::free_record(of(&servers, 9, Recipe::Single), &orphaned).await;
    assert!(matches!(freed, Ok(Outcome::Freed)), "{freed:?}");
    assert_eq!(admin.stat(&seat), Some(theirs));
}
