//! The marker of a run: written before the start or not at all, found again after a lost reply, completed with the release.

use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;
use zk_leader_run::core::action::{Conditions, Entry};
use zk_leader_run::core::event::{Denial, Event, Request};
use zk_leader_run::core::guard_messages::ChildStatus;
use zk_leader_run::zookeeper::Settings;
use zk_leader_run::zookeeper::schema::once::{Once, Per};

use crate::chroot::Chroot;
use crate::host::{ELECTION, FIRST, Host, No, TERM, settings};
use crate::support::proxy::request;
use crate::support::standalone::link;
use crate::support::{Admin, wait};

const RUNS: &str = "/zk-leader-run/job/runs";
const LAST: &str = "/zk-leader-run/job/runs/last";
const SLOT: &str = "/zk-leader-run/job/runs/slot-noon";

fn slot(key: &str) -> Once {
    Once { per: Per::Slot(key.to_owned()), retry_failed: false, keep_slots: 100 }
}

fn retrying(once: Once) -> Once {
    Once { retry_failed: true, ..once }
}

fn every(period: Duration) -> Once {
    Once { per: Per::Period(period), ..slot("") }
}

fn of(servers: &str, instance: u64, once: &Once) -> Settings {
    Settings { once: Some(once.clone()), ..settings(servers, instance) }
}

/// May it run?
async fn mark(host: &mut Host, conditions: Conditions) -> Result<bool, No> {
    let entry = Entry { token: Some(9), ..host.entry(1) };
    host.election.mark(FIRST, conditions, entry, true);
    match host.answer(FIRST, Request::Mark).await? {
        Event::Marked { is_fresh, .. } => Ok(is_fresh),
        other => panic!("not an answer: {other:?}"),
    }
}

/// A whole call: lines up, marks, ends with this status if it may run, and releases.
async fn call(settings: Settings, status: Option<u8>) -> bool {
    let (mut host, _, conditions) = Host::leading(settings).await;
    let may_run = mark(&mut host, conditions).await.unwrap();
    if let Some(status) = status.filter(|_| may_run) {
        host.election.end_run(ChildStatus::Exited(status), status == 0);
    }
    host.release(conditions).await.unwrap();
    assert!(host.election.close(wait::LIMIT).await);
    may_run
}

fn json(admin: &Admin, path: &str) -> Value {
    serde_json::from_str(&admin.read(path)).unwrap()
}

#[tokio::test]
async fn a_slot_runs_once_whatever_became_of_it_and_the_next_slot_runs() {
    let chroot = Chroot::new();
    let servers = chroot.connect_string();
    for (key, status) in [("well", Some(0)), ("ill", Some(3)), ("never ended", None)] {
        assert!(call(of(&servers, 1, &slot(key)), status).await, "{key}");
        assert!(!call(of(&servers, 2, &slot(key)), Some(0)).await, "{key}");
    }
}

#[tokio::test]
async fn with_failures_retried_a_slot_runs_until_it_has_succeeded() {
    let chroot = Chroot::new();
    let servers = chroot.connect_string();
    let once = retrying(slot("noon"));
    assert!(call(of(&servers, 1, &once), Some(3)).await);
    assert!(call(of(&servers, 2, &once), None).await);
    assert!(call(of(&servers, 3, &once), Some(0)).await);
    assert!(!call(of(&servers, 4, &once), Some(0)).await);
}

#[tokio::test]
async fn the_markers_tell_who_ran_when_by_the_servers_clock_and_how_it_ended() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (mut host, _, conditions) = Host::leading(of(&chroot.connect_string(), 1, &slot("noon"))).await;
    assert!(mark(&mut host, conditions).await.unwrap());
    let begun = admin.stat(LAST).unwrap().mtime;
    for path in [SLOT, LAST] {
        let run = &json(&admin, path)["run"];
        assert_eq!(
            (run["id"].as_str(), run["slot"].as_str(), run["token"].as_i64()),
            (Some("host1:1"), Some("noon"), Some(9))
        );
        assert!(run.get("ok").is_none() && admin.stat(path).unwrap().mtime == begun);
    }
    host.election.end_run(ChildStatus::Signaled(9), false);
    host.release(conditions).await.unwrap();
    for path in [SLOT, LAST] {
        let run = &json(&admin, path)["run"];
        assert_eq!(
            (run["ok"].as_bool(), run["status"].as_u64(), run["started_ms"].as_i64()),
            (Some(false), Some(137), Some(begun))
        );
    }
    let ended = admin.stat(LAST).unwrap().mtime;
    assert!(call(of(&chroot.connect_string(), 2, &slot("one")), Some(0)).await);
    let earlier = &json(&admin, LAST)["earlier"][0];
    assert_eq!((earlier["slot"].as_str(), earlier["ended_ms"].as_i64()), (Some("noon"), Some(ended)));
}

/// A call that may run, and does not begin to.
/// `times`: once more for each reply that was lost.
async fn withdrawn(settings: Settings, times: usize) {
    let (mut host, _, conditions) = Host::leading(settings).await;
    for _ in 0..times {
        assert!(mark(&mut host, conditions).await.unwrap());
    }
    host.election.withdraw_run();
    host.release(conditions).await.unwrap();
    assert!(host.election.close(wait::LIMIT).await);
}

#[tokio::test]
async fn a_run_that_never_began_leaves_the_markers_as_they_were() {
    let chroot = Chroot::new();
    let servers = chroot.connect_string();
    let admin = Admin::to(&servers);
    let told = |path| {
        let marker = json(&admin, path);
        let earlier =
            marker["earlier"].as_array().map(|runs| runs.iter().map(|run| run["nonce"].clone()).collect::<Vec<_>>());
        (marker["run"]["nonce"].clone(), marker["run"]["ok"].clone(), earlier)
    };
    let noon = retrying(slot("noon"));
    assert!(call(of(&servers, 1, &noon), Some(3)).await);
    assert!(call(of(&servers, 2, &slot("one")), Some(0)).await);
    let (before, ended) = ([told(SLOT), told(LAST)], admin.stat(LAST).unwrap().mtime);
    for (once, times) in [(&noon, 1), (&noon, 2), (&slot("new"), 1), (&slot("new"), 2), (&every(Duration::ZERO), 2)] {
        withdrawn(of(&servers, 3, once), times).await;
        assert_eq!([told(SLOT), told(LAST)], before);
        assert_eq!(json(&admin, LAST)["run"]["ended_ms"].as_i64(), Some(ended));
    }
    assert!(!call(of(&servers, 5, &slot("noon")), Some(0)).await, "its failure counts");
    // Its marker was deleted, to run it again.
    admin.delete(SLOT);
    withdrawn(of(&servers, 3, &slot("noon")), 1).await;
    assert_eq!(json(&admin, SLOT)["run"], Value::Null);
    // Of our own run that never began, and that a lost release has left marked, the run before it is told, too.
    assert!(call(of(&servers, 1, &noon), Some(3)).await);
    let (mut lost, _, conditions) = Host::leading(of(&servers, 3, &noon)).await;
    assert!(mark(&mut lost, conditions).await.unwrap());
    drop(lost);
    withdrawn(of(&servers, 3, &noon), 1).await;
    assert_eq!((told(SLOT).1, told(SLOT).2), (Value::Bool(false), None));
    // It may have been marked for the first time.
    let (mut lost, _, conditions) = Host::leading(of(&servers, 3, &slot("lost"))).await;
    assert!(mark(&mut lost, conditions).await.unwrap());
    drop(lost);
    withdrawn(of(&servers, 3, &slot("lost")), 1).await;
    assert!(call(of(&servers, 4, &slot("lost")), Some(0)).await, "it never ran");
    assert!(call(of(&servers, 4, &slot("new")), Some(0)).await);
}

#[tokio::test]
async fn no_marker_is_written_without_our_candidate_or_under_another_term() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (mut host, view, conditions) = Host::leading(of(&chroot.connect_string(), 1, &slot("noon"))).await;
    let wrong = Conditions { term: conditions.term - 1, ..conditions };
    assert_eq!(mark(&mut host, wrong).await, Err(No::Denied(Denial::Conflict)));
    admin.delete(&format!("{ELECTION}/{}", view.candidate.as_str()));
    assert_eq!(mark(&mut host, conditions).await, Err(No::Denied(Denial::CandidateGone)));
    assert!(!admin.exists(SLOT) && json(&admin, LAST)["run"].is_null());
}

#[tokio::test]
async fn a_marker_whose_reply_was_lost_is_ours_whichever_reply_it_was() {
    let chroot = Chroot::new();
    let proxy = link();
    let admin = Admin::to(&chroot.connect_string());
    for (way, once) in [slot("noon"), every(Duration::from_secs(60))].into_iter().enumerate() {
        for spared in 0.. {
            let base = format!("/lossy/{way}-{spared}/job");
            let election = format!("{base}/election");
            let settings = Settings { election, base: base.clone(), ..of(&chroot.behind(&proxy), 1, &once) };
            let (mut host, _, conditions) = Host::leading(settings).await;
            host.hints_within(wait::SETTLED).await;
            let before = proxy.replies_dropped();
            proxy.drop_reply_after(spared);
            let mut marked = mark(&mut host, conditions).await;
            let lost = proxy.replies_dropped() > before;
            proxy.drop_no_reply();
            while marked == Err(No::Unanswered) {
                marked = mark(&mut host, conditions).await;
            }
            assert_eq!(marked, Ok(true), "after the loss of reply {spared}");
            host.election.end_run(ChildStatus::Exited(0), true);
            // The reply that is lost may be one to the trimming.
            while host.release(conditions).await == Err(No::Unanswered) {}
            let written = json(&admin, &format!("{base}/runs/last"));
            assert_eq!((written["run"]["ok"].as_bool(), written["earlier"].is_null()), (Some(true), true), "{written}");
            assert!(host.election.close(wait::LIMIT).await);
            if !lost {
                assert!(spared >= 4, "only {spared} requests were sent");
                break;
            }
        }
    }
}

#[tokio::test]
async fn the_end_that_a_lost_reply_hid_is_written_down_with_the_next_try() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let proxy = link();
    for spared in 0..2 {
        let key = format!("noon{spared}");
        let (mut host, _, conditions) = Host::leading(of(&chroot.behind(&proxy), 1, &slot(&key))).await;
        assert!(mark(&mut host, conditions).await.unwrap());
        host.hints_within(wait::SETTLED).await;
        host.election.end_run(ChildStatus::Exited(0), true);
        let before = proxy.replies_dropped();
        proxy.drop_reply_after(spared);
        let mut released = host.release(conditions).await;
        assert_eq!(proxy.replies_dropped(), before + 1);
        while released == Err(No::Unanswered) {
            released = host.release(conditions).await;
        }
        assert_eq!(released, Ok(()));
        assert_eq!(json(&admin, LAST)["run"]["ok"].as_bool(), Some(true), "reply {spared} was lost");
        assert!(host.election.close(wait::LIMIT).await);
    }
}

/// Marks, while somebody else writes this between our reading and our writing.
async fn marked_while_another_writes(chroot: &Chroot, path: &'static str, change: impl Fn(&mut Value)) -> bool {
    let (proxy, admin) = (link(), Admin::to(&chroot.connect_string()));
    let (mut host, _, conditions) = Host::leading(of(&chroot.behind(&proxy), 2, &retrying(slot("noon")))).await;
    host.hints_within(wait::SETTLED).await;
    let mut written = json(&admin, path);
    change(&mut written);
    let mut replies = 0;
    proxy.tamper(move |frame| {
        replies += usize::from(frame[4] < 0x80);
        // Of the last run, and of the slot.
        if replies == 2 {
            admin.set(path, &written.to_string());
        }
        frame
    });
    let may_run = mark(&mut host, conditions).await.unwrap();
    proxy.stop_tampering();
    may_run
}

#[tokio::test]
async fn a_slot_that_another_one_has_run_since_it_was_read_does_not_run_again() {
    let chroot = Chroot::new();
    assert!(call(of(&chroot.connect_string(), 1, &retrying(slot("noon"))), Some(3)).await);
    let succeeds = |marker: &mut Value| (marker["run"]["ok"], marker["run"]["status"]) = (true.into(), 0.into());
    assert!(!marked_while_another_writes(&chroot, SLOT, succeeds).await);
}

#[tokio::test]
async fn a_run_that_another_one_has_marked_since_it_was_read_is_not_lost() {
    let chroot = Chroot::new();
    assert!(call(of(&chroot.connect_string(), 1, &retrying(slot("noon"))), Some(3)).await);
    assert!(marked_while_another_writes(&chroot, LAST, |marker| marker["run"]["slot"] = "evening".into()).await);
    let last = json(&Admin::to(&chroot.connect_string()), LAST);
    assert_eq!(last["earlier"][0]["slot"], "evening", "{last}");
}

#[tokio::test]
async fn an_end_that_comes_in_another_term_is_not_written_down() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (mut host, _, conditions) = Host::leading(of(&chroot.connect_string(), 1, &slot("noon"))).await;
    assert!(mark(&mut host, conditions).await.unwrap());
    host.election.end_run(ChildStatus::Exited(0), true);
    admin.set(TERM, &admin.read(TERM));
    assert_eq!(host.release(conditions).await, Err(No::Denied(Denial::Conflict)));
    assert!([SLOT, LAST].iter().all(|path| json(&admin, path)["run"].get("ok").is_none()));
}

#[tokio::test]
async fn a_run_that_began_within_half_a_period_before_a_call_joined_makes_it_a_duplicate() {
    let chroot = Chroot::new();
    let (servers, admin) = (chroot.connect_string(), Admin::to(&chroot.connect_string()));
    let once = every(Duration::from_secs(8));
    // It joins now, and waits behind the first.
    let (mut first, _, conditions) = Host::leading(of(&servers, 1, &once)).await;
    let (mut second, _) = Host::entered(of(&servers, 2, &once)).await;
    assert!(mark(&mut first, conditions).await.unwrap());
    let started = admin.stat(LAST).unwrap().mtime;
    first.election.end_run(ChildStatus::Exited(0), true);
    first.release(conditions).await.unwrap();
    // Long after the first began: what counts is when it joined.
    wait::until("half the period is over", || {
        let path = format!("{RUNS}/clock");
        admin.create(&path, "");
        let now = admin.stat(&path).unwrap().mtime;
        admin.delete(&path);
        now > started + 4_500
    });
    let view = second.look(FIRST).await.unwrap();
    let (conditions, _) = second.take_over(&view, 1).await.unwrap();
    assert!(!mark(&mut second, conditions).await.unwrap());
    second.release(conditions).await.unwrap();
    assert!(call(of(&servers, 3, &once), Some(0)).await, "a call that joins now is one of the next period");
    assert!(!call(of(&servers, 4, &once), Some(0)).await);
    assert!(!call(of(&servers, 5, &once), Some(0)).await);
}

#[tokio::test]
async fn a_candidate_of_a_later_session_joined_when_the_first_did() {
    let chroot = Chroot::new();
    let (servers, admin) = (chroot.connect_string(), Admin::to(&chroot.connect_string()));
    let once = every(Duration::from_secs(600));
    let (mut host, _) = Host::entered(of(&servers, 1, &once)).await;
    let joined = admin.stat(&format!("{ELECTION}/{}", admin.children(ELECTION)[0])).unwrap().ctime;
    host.connect(2).await;
    let view = host.enter(FIRST).await.unwrap();
    let later = admin.stat(&format!("{ELECTION}/{}", view.candidate.as_str())).unwrap().ctime;
    assert!(later > joined);
    let (conditions, _) = host.take_over(&view, 1).await.unwrap();
    // A run that began just late enough to count for the first candidate, and too early to count for the later one.
    admin.create(RUNS, "");
    admin.create(LAST, &format!(r#"{{"v":1,"run":{{"id":"x","ok":true,"started_ms":{}}}}}"#, joined - 299_999));
    assert!(!mark(&mut host, conditions).await.unwrap());
}

/// The reply to its create was lost. A run from long before it joined is none that counts.
#[tokio::test]
async fn a_candidate_that_was_found_again_joined_when_it_was_created() {
    let chroot = Chroot::new();
    let (admin, proxy) = (Admin::to(&chroot.connect_string()), link());
    let once = every(Duration::from_secs(600));
    let (mut first, _) = Host::entered(of(&chroot.connect_string(), 1, &once)).await;
    assert!(first.election.close(wait::LIMIT).await);
    let mut host = Host::connected(of(&chroot.behind(&proxy), 2, &once)).await;
    proxy.drop_next_reply_to(&[request::CREATE2]);
    assert_eq!(host.enter(FIRST).await, Err(No::Unanswered));
    let view = host.enter(FIRST).await.unwrap();
    let joined = admin.stat(&format!("{ELECTION}/{}", view.candidate.as_str())).unwrap().ctime;
    let (conditions, _) = host.take_over(&view, 1).await.unwrap();
    admin.create(RUNS, "");
    admin.create(LAST, &format!(r#"{{"v":1,"run":{{"id":"x","ok":true,"started_ms":{}}}}}"#, joined - 300_001));
    assert!(mark(&mut host, conditions).await.unwrap());
}

#[tokio::test]
async fn old_slots_are_trimmed_and_the_newest_are_not() {
    let chroot = Chroot::new();
    let (servers, admin) = (chroot.connect_string(), Admin::to(&chroot.connect_string()));
    for turn in 0_i32..6 {
        let once = Once { keep_slots: 3, ..slot(&format!("{turn}")) };
        assert!(call(of(&servers, 1, &once), Some(0)).await);
        let expected = ((turn - 2).max(0)..=turn).map(|turn| format!("slot-{turn}"));
        let expected: Vec<_> = ["last".to_owned()].into_iter().chain(expected).collect();
        wait::until("they are trimmed", || admin.children(RUNS) == expected);
    }
    assert_eq!(json(&admin, LAST)["earlier"].as_array().unwrap().len(), 5, "the history remembers them");
}

#[tokio::test]
async fn old_slots_are_trimmed_over_a_link_of_long_round_trips() {
    let chroot = Chroot::new();
    let (proxy, admin) = (link(), Admin::to(&chroot.connect_string()));
    // As two round trips of 250 ms.
    proxy.delay_replies_to(request::GET_CHILDREN2, RUNS, Duration::from_millis(500));
    for turn in 0..6 {
        let once = Once { keep_slots: 3, ..slot(&format!("{turn}")) };
        assert!(call(of(&chroot.behind(&proxy), 1, &once), Some(0)).await);
    }
    wait::until("they are trimmed", || admin.children(RUNS) == ["last", "slot-3", "slot-4", "slot-5"]);
}

#[tokio::test]
async fn trimming_that_is_cut_short_has_deleted_some() {
    let chroot = Chroot::new();
    let (proxy, admin) = (link(), Admin::to(&chroot.connect_string()));
    for turn in 0..6 {
        assert!(call(of(&chroot.connect_string(), 1, &slot(&format!("{turn}"))), Some(0)).await);
    }
    let once = Once { keep_slots: 2, ..slot("6") };
    let (mut host, _, conditions) = Host::leading(of(&chroot.behind(&proxy), 2, &once)).await;
    host.hints_within(wait::SETTLED).await;
    let mut answers = 0;
    proxy.tamper(move |frame| {
        answers += usize::from(frame[4] < 0x80);
        // To two reads, to the marker, and to the reads of the slots' names and of all seven slots.
        if answers == 11 {
            wait::pass(Duration::from_secs(3));
        }
        frame
    });
    assert!(mark(&mut host, conditions).await.unwrap());
    let trimmed = async {
        while admin.children(RUNS).len() != 4 {
            host.hints_within(wait::SETTLED).await;
        }
    };
    timeout(wait::LIMIT, trimmed).await.expect("some are trimmed");
}

/// It runs again, as its run had failed. Without its marker it could run twice.
#[tokio::test]
async fn an_old_slot_that_is_marked_again_while_slots_are_trimmed_is_not() {
    let chroot = Chroot::new();
    let (proxy, admin) = (link(), Admin::to(&chroot.connect_string()));
    let keeping = |key: &str, keep_slots| Once { keep_slots, ..slot(key) };
    assert!(call(of(&chroot.connect_string(), 1, &keeping("old", 9)), Some(3)).await);
    let (mut host, _, conditions) = Host::leading(of(&chroot.behind(&proxy), 2, &keeping("noon", 1))).await;
    host.hints_within(wait::SETTLED).await;
    let (old, mut answers) = (format!("{RUNS}/slot-old"), 0);
    let path = old.clone();
    proxy.tamper(move |frame| {
        answers += usize::from(frame[4] < 0x80);
        // To two reads, to the marker, and to the reads of the slots' names and of both slots.
        if answers == 6 {
            admin.set(&path, &admin.read(&path));
        }
        frame
    });
    assert!(mark(&mut host, conditions).await.unwrap());
    // Trimming has a limit of its own, and may be cut short.
    host.hints_within(wait::SETTLED).await;
    host.release(conditions).await.unwrap();
    assert!(Admin::to(&chroot.connect_string()).exists(&old));
}

#[tokio::test]
async fn an_unreadable_marker_is_a_run_that_was() {
    let chroot = Chroot::new();
    let (servers, admin) = (chroot.connect_string(), Admin::to(&chroot.connect_string()));
    assert!(call(of(&servers, 1, &slot("other")), Some(0)).await);
    admin.create(SLOT, "garbage");
    assert!(!call(of(&servers, 2, &slot("noon")), Some(0)).await);
    assert!(call(of(&servers, 3, &retrying(slot("noon"))), Some(0)).await);
    admin.set(LAST, "garbage");
    assert!(!call(of(&servers, 4, &every(Duration::from_secs(600))), Some(0)).await);
    assert!(call(of(&servers, 5, &slot("one")), Some(0)).await, "another slot is not held up by the history");
}
