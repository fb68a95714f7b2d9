//! What operators and other programs do to our znodes by hand.

use nix::sys::signal::Signal;

use super::{election, link, millis, secs};
use crate::support::wait::AT_ONCE;
use crate::support::{Election, diary, subject, wait};

/// T26, T54: the successor has taken the record over by the time that the tree is gone, and waits for its lease.
#[test]
fn a_leader_whose_candidate_is_deleted_stops_at_once_and_its_successor_starts_when_the_tree_is_gone() {
    let election = election();
    // So long a lease that only the deletion can have stopped the command, and only its end have started the next one.
    let host = |id| election.host(id).session_timeout("20s");
    let _first = host("a").witness(&election.diary, &["linger=1000", "daemonise"]).spawn();
    election.diary.until_started(1);
    let second = host("b").spawn();
    election.until_candidates(2);
    let deleted_at = diary::now();
    election.admin.delete(&election.first());
    second.until_logged("following -> waiting");
    let next = election.diary.until_started(2);
    assert_eq!(next.id, "b");
    let took = next.at.saturating_sub(deleted_at);
    assert!(took < secs(1) + AT_ONCE, "nominal: the command's 1 s; it took {took:?}");
    election.diary.assert_no_overlap();
    assert!(election.diary.has("signal=15"));
    election.until_candidates(2);
}

/// As a recursive delete of the shell does it: each znode by itself, the candidate before the record. Under a new base nobody
/// waits for a lease.
#[test]
fn a_base_that_is_deleted_znode_by_znode_kills_the_command_at_once() {
    let election = election();
    let host = election.host("a").session_timeout("20s").witness(&election.diary, &["ignore-term"]).spawn();
    let start = election.diary.until_started(1);
    election.admin.delete(&election.first());
    election.diary.until_noted("signal=15");
    // The record, which is still its own.
    host.until_logged("request=Observe");
    let deleted_at = diary::now();
    for book in ["lease", "term"] {
        election.admin.delete(&election.path(book));
    }
    election.diary.until_nobody_lives();
    let lived = election.diary.end_of(start.token).saturating_sub(deleted_at);
    assert!(lived < AT_ONCE, "nominal: milliseconds; lived for {lived:?}");
}

/// cron mails what it says; a job that runs elsewhere is well with `--wait 0`.
#[test]
fn a_wait_in_vain_is_told_to_who_wants_warnings_only_if_the_status_calls_it_a_failure() {
    let election = election();
    let _leader = election.steady_host("a").spawn();
    election.diary.until_started(1);
    let waits = |wait| election.steady_host("b").option("--log-level", "warn").option("--wait", wait);
    let mut late = waits("2s").spawn();
    assert_eq!(late.code(), 75, "{}", late.log());
    assert_eq!(
        late.log().matches("warning: not elected within --wait; zk-leaderctl status").count(),
        1,
        "{}",
        late.log()
    );
    for mut silent in [waits("0").spawn(), waits("2s").option("--conflict-exit-code", "0").spawn()] {
        silent.code();
        assert_eq!(silent.log_without_standstills(), "");
    }
    let mut told = election.steady_host("b").option("--log-level", "info").option("--wait", "0").spawn();
    assert_eq!(told.code(), 75);
    told.until_logged("done: not elected within --wait; a on ");
}

/// T18
#[test]
fn an_election_directory_that_is_deleted_is_made_again_and_somebody_leads() {
    for waiters in [0, 1] {
        let election = election();
        let hosts: Vec<_> =
            ["a", "b"].into_iter().take(1 + waiters).map(|id| election.steady_host(id).spawn()).collect();
        election.until_candidates(1 + waiters);
        let start = election.diary.until_started(1);
        let mut paths: Vec<_> =
            election.candidates().iter().map(|name| election.path(&format!("election/{name}"))).collect();
        paths.push(election.path("election"));
        election.admin.delete_at_once(&paths);
        let next = election.diary.until_started(2);
        assert!(next.token > start.token);
        election.until_candidates(1 + waiters);
        election.diary.assert_no_overlap();
        assert!(hosts.iter().all(|host| subject::is_alive(host.pid())));
    }
}

/// T18: the same while nobody leads, because a lease must run out first.
#[test]
fn an_election_directory_that_is_deleted_during_the_wait_for_a_lease_is_made_again() {
    let election = election();
    let link = link();
    let first = election.host_behind(&link, "a").session_timeout("6s").spawn();
    election.diary.until_started(1);
    // Nobody can release the lease.
    link.cut();
    first.kill();
    let second = election.steady_host("b").spawn();
    election.until_candidates(2);
    election.admin.delete(&election.first());
    wait::until("the next one waits", || election.record()["holder"]["id"] == "b");
    let paths = [election.first(), election.path("election")];
    election.admin.delete_at_once(&paths);
    assert_eq!(election.diary.until_started(2).id, "b");
    election.until_candidates(1);
    election.diary.assert_no_overlap();
    drop(second);
}

fn repair(election: &Election) {
    election.admin.set(&election.path("lease"), r#"{"v":1,"state":"free","lease_ms":1,"a-later-field":{}}"#);
}

#[test]
fn garbage_in_the_lease_record_stops_the_command_and_nothing_else() {
    for garbage in ["", "garbage", "{\"v\":1", "{\"v\":77,\"state\":\"free\",\"lease_ms\":1}", "[]", "\u{0}\u{1}größe"]
    {
        let election = election();
        let host = election.host("a").session_timeout("6s").spawn();
        election.diary.until_started(1);
        election.admin.set(&election.path("lease"), garbage);
        election.diary.until_nobody_lives();
        wait::until("it holds the record for the longest possible wait", || {
            let (text, _) = election.admin.find(&election.path("lease")).unwrap();
            text.contains("\"held\"") && text.contains("120000")
        });
        assert_eq!(election.diary.starts().len(), 1);
        repair(&election);
        election.diary.until_started(2);
        election.diary.assert_no_overlap();
        assert!(subject::is_alive(host.pid()));
    }
}

#[test]
fn a_leader_stops_at_once_when_another_writes_the_record() {
    let election = election();
    let _host = election.host("a").session_timeout("20s").witness(&election.diary, &["ignore-term"]).spawn();
    let start = election.diary.until_started(1);
    let written_at = diary::now();
    repair(&election);
    // The next renewal tells: they come every 2.5 s. The record being free, the command starts again.
    election.diary.until_started(2);
    let lived = election.diary.end_of(start.token).saturating_sub(written_at);
    assert!(lived < millis(2500) + AT_ONCE, "lived for {lived:?}");
    election.diary.assert_no_overlap();
}

#[test]
fn a_deleted_lease_record_is_replaced_by_a_held_one_and_the_wait_is_served() {
    let election = election();
    let host = |id| election.host(id).session_timeout("6s").witness(&election.diary, &["ignore-term"]).spawn();
    let _first = host("a");
    election.diary.until_started(1);
    let _second = host("b");
    election.until_candidates(2);
    let deleted_at = diary::now();
    election.admin.delete(&election.path("lease"));
    let next = election.diary.until_started(2);
    assert!(next.at.saturating_sub(deleted_at) > secs(6), "whoever held the lost record had 6 s");
    assert_eq!(election.diary.starts()[1].told[1], "unclean");
    election.diary.assert_no_overlap();
}

#[test]
fn a_leader_whose_whole_base_is_deleted_stops_at_once() {
    let election = election();
    let host = election.host("a").session_timeout("20s").witness(&election.diary, &["ignore-term"]).spawn();
    let start = election.diary.until_started(1);
    let base = election.path("").trim_end_matches('/').to_owned();
    // Not before it has said who it is: what is deleted must be all that there is.
    wait::until("all is written", || {
        ["members/a", "history"].iter().all(|name| election.admin.exists(&election.path(name)))
    });
    let below = ["election", "lease", "term", "members/a", "members", "history"].map(|name| election.path(name));
    let deleted_at = diary::now();
    election.admin.delete_at_once(&[[election.first()].as_slice(), &below, &[base]].concat());
    election.diary.until_started(2);
    let lived = election.diary.end_of(start.token).saturating_sub(deleted_at);
    assert!(lived < AT_ONCE, "nominal: milliseconds; lived for {lived:?}");
    election.diary.assert_no_overlap();
    assert!(subject::is_alive(host.pid()));
}

#[test]
fn a_waiter_whose_candidate_is_deleted_lines_up_again() {
    let election = election();
    let mut first = election.steady_host("a").spawn();
    election.diary.until_started(1);
    let _second = election.steady_host("b").spawn();
    election.until_candidates(2);
    let candidate = election.candidates().pop().unwrap();
    election.admin.delete(&election.path(&format!("election/{candidate}")));
    wait::until("it lines up with another candidate", || {
        let candidates = election.candidates();
        candidates.len() == 2 && !candidates.contains(&candidate)
    });
    assert_eq!(election.diary.starts().len(), 1);
    first.signal(Signal::SIGTERM);
    first.code();
    assert_eq!(election.diary.until_started(2).id, "b");
}
