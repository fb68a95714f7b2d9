//! What each contender says about itself, and the terms that are written down.

use serde_json::Value;

use super::election;
use crate::support::{Election, wait};

fn member(election: &Election, id: &str) -> Option<Value> {
    let (text, _) = election.admin.find(&election.path(&format!("members/{id}")))?;
    Some(serde_json::from_str(&text).unwrap())
}

fn phase(election: &Election, id: &str) -> String {
    member(election, id).map_or_else(String::new, |member| member["phase"].as_str().unwrap().to_owned())
}

fn history(election: &Election) -> Vec<Value> {
    let text = election.admin.find(&election.path("history")).map(|(text, _)| text);
    let json: Option<Value> = text.map(|text| serde_json::from_str(&text).unwrap());
    json.map_or_else(Vec::new, |json| json["terms"].as_array().unwrap().clone())
}

#[test]
fn each_contender_says_who_it_is_and_what_it_does() {
    let election = election();
    let mut first = election.steady_host("a").spawn();
    election.diary.until_started(1);
    let _second = election.steady_host("b").spawn();
    wait::until("both have said it", || phase(&election, "a") == "leading" && phase(&election, "b") == "following");
    let said = member(&election, "a").unwrap();
    assert_eq!((said["pid"].as_i64(), said["token"].as_i64()), (Some(first.pid().into()), Some(election.term().mzxid)));
    assert_eq!((&said["role"], &said["eligible"]), (&"leader".into(), &true.into()));
    let stat = election.admin.stat(&election.path("members/a")).unwrap();
    assert_ne!(stat.ephemeral_owner, 0, "it goes with its session");

    first.signal(nix::sys::signal::Signal::SIGTERM);
    first.code();
    wait::until("it is gone, and the other one leads", || {
        member(&election, "a").is_none() && phase(&election, "b") == "leading"
    });
}

#[test]
fn a_second_participant_with_the_id_of_a_live_one_is_refused_and_the_first_goes_on() {
    let election = election();
    let first = election.host("same").session_timeout("4s").spawn();
    election.diary.until_started(1);
    wait::until("it has said who it is", || phase(&election, "same") == "leading");
    // It may write again itself: its contact with a busy server comes and goes.
    let owned = || {
        let stat = election.admin.stat(&election.path("members/same")).unwrap();
        (stat.czxid, stat.ephemeral_owner, member(&election, "same").unwrap()["pid"].as_i64())
    };
    let before = owned();
    assert_eq!(before.2, Some(first.pid().into()));
    let mut second = election.host("same").session_timeout("4s").spawn();
    second.until_logged("Another participant has our id; if it is still there in 9s, this process ends with status 64");
    assert_eq!(second.code(), 64);
    second.until_logged("Another live participant has our id; give each its own with --id");
    second.until_logged(&format!("pid={}", first.pid()));
    assert_eq!(owned(), before, "neither deletes nor writes the other's");
    election.until_candidates(1);
    assert_eq!(election.diary.starts().len(), 1);
}

/// As where another service manager starts a program with our id again and again: none of them is a live one for long.
#[test]
fn another_with_our_id_that_is_started_again_is_told_and_waited_for_anew() {
    let election = election();
    election.prepare();
    // Whoever prepares it may be gone before it says who it is.
    election.admin.create_all(&election.path("members"));
    let (path, other) = (election.path("members/same"), r#"{"v":1,"id":"same","host":"other","pid":1}"#);
    election.admin.create_ephemeral(&path, other);
    let host = election.steady_host("same").spawn();
    let told = "Another participant has our id; if it is still there in 41s";
    host.until_logged(told);
    for times in 2..=3 {
        election.admin.replace_by_ephemeral(&path, other);
        host.until_logged_times(told, times);
    }
    election.admin.delete(&path);
    wait::until("it says itself who it is", || {
        member(&election, "same").is_some_and(|member| member["pid"].as_i64() == Some(host.pid().into()))
    });
}

/// The session of the one before would keep the znode for two minutes.
#[test]
fn a_process_that_is_started_again_with_its_old_id_replaces_the_znode_of_the_one_before() {
    let election = election();
    let first = election.host("same").session_timeout("2m").spawn();
    election.diary.until_started(1);
    wait::until("it has said who it is", || phase(&election, "same") == "leading");
    first.kill();
    let second = election.host("same").session_timeout("2m").spawn();
    election.diary.until_started(2);
    wait::until("the znode is its own", || {
        member(&election, "same").is_some_and(|member| member["pid"].as_i64() == Some(second.pid().into()))
    });
    assert!(!second.log().contains("participant has our id"), "{}", second.log());
}

#[test]
fn a_base_that_was_made_by_hand_costs_no_wait() {
    let election = election();
    election.admin.create_all(election.path("").trim_end_matches('/'));
    let _host = election.steady_host("a").spawn();
    assert_eq!(election.diary.until_started(1).told[1], "first");
    wait::until("it has said who it is", || phase(&election, "a") == "leading");
}

#[test]
fn every_term_is_written_down_with_its_end() {
    let election = election();
    assert_eq!(election.steady_host("a").command(&["true"]).spawn().code(), 0);
    let terms = history(&election);
    assert_eq!(terms.len(), 1, "at the exit, at the latest: {terms:?}");
    assert_eq!((&terms[0]["id"], &terms[0]["ended"]), (&"a".into(), &"command-ended".into()));
    assert_eq!(terms[0]["token"].as_i64(), Some(election.term().mzxid));

    // Frozen with its guard until its session and its lease are over: nobody can write its end.
    let frozen = election.host("b").spawn();
    election.diary.until_started(1);
    wait::until("its beginning is written", || history(&election).len() == 2);
    frozen.signal(nix::sys::signal::Signal::SIGSTOP);
    let _next = election.steady_host("c").spawn();
    election.diary.until_started(2);
    wait::until("its successor has written it", || history(&election).len() == 3);
    let terms = history(&election);
    assert_eq!((&terms[1]["id"], &terms[1]["ended"]), (&"b".into(), &"unclean".into()), "{terms:?}");
    assert_eq!((&terms[2]["id"], &terms[2]["ended"]), (&"c".into(), &Value::Null));
}

#[test]
fn a_history_that_cannot_be_read_is_begun_again() {
    let election = election();
    election.prepare();
    election.admin.set(&election.path("history"), "garbage");
    election.prepare();
    assert_eq!(history(&election).len(), 1);
}

/// Its session may be longer than ours, and outlives its process for as long.
#[test]
fn another_one_with_our_id_is_waited_for_as_long_as_its_own_session_may_outlive_it() {
    let election = election();
    let _first = election.steady_host("first").spawn();
    election.diary.until_started(1);
    wait::until("there are members", || member(&election, "first").is_some());
    let other = r#"{"v":1,"id":"same","host":"elsewhere","pid":7,"session_ms":20000}"#;
    election.admin.create_ephemeral(&election.path("members/same"), other);
    let second = election.host("same").session_timeout("2s").spawn();
    second.until_logged("Another participant has our id; if it is still there in 41s");
}
