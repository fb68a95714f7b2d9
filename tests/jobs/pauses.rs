//! What the command sees of a lost contact: nothing, a freeze, a signal, or its end after `--grace`.

use std::time::Duration;

use super::{election, link, secs};
use crate::support::{Diary, Proxy, diary, wait};

/// The longest silence of the command since `since`.
fn longest_silence(diary: &Diary, since: Duration) -> Duration {
    let stamps: Vec<_> = diary.entries().into_iter().filter(|entry| entry.at > since).map(|entry| entry.at).collect();
    stamps.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max().unwrap_or_default()
}

/// T36 in small: by default the command notices nothing of a blip.
#[test]
fn a_blip_shorter_than_the_lease_is_not_noticed_by_the_command() {
    for fault in [Proxy::stall, Proxy::cut, Proxy::stall_replies] {
        let election = election();
        let link = link();
        let _host = election.host_behind(&link, "a").session_timeout("8s").spawn();
        let start = election.diary.until_started(1);
        let candidates = election.candidates();
        fault(&link);
        wait::pass(secs(3));
        link.heal();
        election.until_renewed(1);
        assert_eq!(election.diary.until_alive().pid, start.pid);
        assert_eq!((election.diary.starts().len(), election.candidates()), (1, candidates));
        assert!(!election.diary.has("signal=15"));
    }
}

#[test]
fn on_pause_freeze_holds_the_whole_tree_and_lets_it_go_on_afterwards() {
    for contain in ["cgroup", "subreaper", "pid-namespace"] {
        let election = election();
        let link = link();
        let host = election.host_behind(&link, "a").session_timeout("8s").witness(&election.diary, &["daemonise"]);
        let _host = host.option("--on-pause", "freeze").option("--contain", contain).spawn();
        election.diary.until_noted("orphan");
        let cut_at = diary::now();
        link.stall();
        // Contact counts as lost after at most 4 s, and the tree is killed after 7.
        let silent_since = || election.diary.entries().last().unwrap().at;
        wait::until(&format!("{contain}: the tree is frozen, its daemon too"), || {
            diary::now().saturating_sub(silent_since()) > secs(1)
        });
        link.heal();
        election.diary.until_alive();
        assert!(longest_silence(&election.diary, cut_at) > secs(1), "{contain}");
        assert_eq!(election.diary.starts().len(), 1, "{contain}");
    }
}

#[test]
fn a_frozen_tree_is_killed_at_the_end_of_the_lease() {
    for contain in ["cgroup", "subreaper", "pid-namespace"] {
        let election = election();
        let link = link();
        let host = election.host_behind(&link, "a").witness(&election.diary, &["daemonise"]);
        let _first = host.option("--on-pause", "freeze").option("--contain", contain).spawn();
        election.diary.until_noted("orphan");
        let _second = election.host("b").spawn();
        election.until_candidates(2);
        link.stall();
        assert_eq!(election.diary.until_started(2).id, "b", "{contain}");
        election.diary.assert_no_overlap();
    }
}

#[test]
fn on_pause_and_on_resume_send_the_command_a_signal_each() {
    let election = election();
    let link = link();
    let host = election.host_behind(&link, "a").session_timeout("8s");
    let _host = host.option("--on-pause", "USR1").option("--on-resume", "SIGUSR2").spawn();
    let start = election.diary.until_started(1);
    link.stall();
    election.diary.until_noted("signal=10");
    assert!(!election.diary.has("signal=12"));
    link.heal();
    election.diary.until_noted("signal=12");
    assert_eq!(election.diary.until_alive().pid, start.pid);
    assert_eq!((election.diary.events("signal=10").len(), election.diary.events("signal=12").len()), (1, 1));
}

#[test]
fn grace_0_stops_the_command_as_soon_as_contact_is_lost() {
    let election = election();
    let link = link();
    let _host = election.host_behind(&link, "a").session_timeout("20s").option("--grace", "0").spawn();
    election.diary.until_started(1);
    let cut_at = diary::now();
    link.cut();
    let told = election.diary.until_noted("signal=15");
    assert!(told.at.saturating_sub(cut_at) < secs(7), "the lease alone would have allowed 12 s and more");
}

#[test]
fn grace_bounds_the_pause() {
    let election = election();
    let link = link();
    let host = election.host_behind(&link, "a").session_timeout("20s").option("--grace", "2s");
    let _host = host.option("--on-pause", "USR1").spawn();
    election.diary.until_started(1);
    link.cut();
    let paused = election.diary.until_noted("signal=10");
    let told = election.diary.until_noted("signal=15");
    let pause = told.at.saturating_sub(paused.at);
    assert!(pause > Duration::from_millis(1900) && pause < secs(7), "{pause:?}");
}

#[test]
fn contact_that_is_back_within_the_grace_changes_nothing() {
    let election = election();
    let link = link();
    let host = election.host_behind(&link, "a").session_timeout("20s").option("--grace", "8s");
    let _host = host.option("--on-pause", "USR1").option("--on-resume", "USR2").spawn();
    let start = election.diary.until_started(1);
    link.cut();
    election.diary.until_noted("signal=10");
    link.heal();
    election.diary.until_noted("signal=12");
    assert_eq!(election.diary.until_alive().pid, start.pid);
    assert!(!election.diary.has("signal=15"));
}

/// T21
#[test]
fn a_grace_longer_than_the_lease_allows_is_refused_before_anything_is_written() {
    let election = election();
    let mut host = election.host("a").session_timeout("4s").option("--grace", "4s").spawn();
    assert_eq!(host.code(), 78, "{}", host.log());
    assert!(host.log().contains("--grace"), "{}", host.log());
    assert!(!election.admin.exists(&election.path("lease")));
}
