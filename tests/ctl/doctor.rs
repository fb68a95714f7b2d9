//! What the doctor finds, and what it does not complain about.

use std::time::Duration;

use super::operator::{ctl, ctl_at};
use super::{election, server};
use crate::support::election::STEADY;
use crate::support::{Election, Proxy, wait};

/// What it says is wrong.
fn complaints(election: &Election) -> (i32, Vec<String>) {
    let said = ctl(&["doctor", &election.name, "--json"]);
    let findings = said.json()["findings"].as_array().unwrap().clone();
    let wrong = findings.iter().filter(|finding| finding["grade"] == "WRONG");
    (said.code, wrong.map(|finding| finding["said"].as_str().unwrap().to_owned()).collect())
}

#[test]
fn a_healthy_election_has_no_complaint() {
    let election = election();
    let _host = election.steady_host("a").spawn();
    election.diary.until_started(1);
    assert_eq!(complaints(&election), (0, vec![]));
    // Where the machine is busy, it may have been too slow for the shortest of all sessions.
    let (granted, mut said) = ("timeouts from 400ms to 10m are granted", String::new());
    let found = wait::held_within(wait::LIMIT, || {
        said = ctl(&["doctor", &election.name]).output;
        said.contains(granted)
    });
    assert!(found && said.contains("is a standalone server, version 3."), "{said}");
}

/// Whoever runs one host wants to know it before that host fails.
#[test]
fn a_leader_without_anybody_to_take_over_is_noted_with_the_reason() {
    let election = election();
    let notes = || {
        let said = ctl(&["doctor", &election.name, "--json"]);
        let findings = said.json()["findings"].as_array().unwrap().clone();
        let notes = findings.iter().filter(|finding| finding["grade"] == "note" && finding["what"] == "members");
        (said.code, notes.map(|finding| finding["said"].as_str().unwrap().to_owned()).collect::<Vec<_>>())
    };
    let _leader = election.host("a").session_timeout(STEADY).spawn();
    election.diary.until_started(1);
    wait::until("a has said who it is", || election.admin.exists(&election.path("members/a")));
    let alone = "if a fails, nobody takes over: no other host takes part; start zk-leader-run on another one";
    assert_eq!(notes(), (0, vec![alone.to_owned()]));
    let barred = election.host("b").session_timeout(STEADY).option("--eligible-cmd", "exit 1").spawn();
    barred.until_logged("reports that this host may not lead");
    let why = "not eligible by its own command";
    let told = format!(
        "if a fails, nobody takes over: no other host may be elected: b ({why}); see their logs, and mend it on one of them, or start zk-leader-run on another one"
    );
    wait::until("b has said why", || notes() == (0, vec![told.clone()]));
    let _standby = election.host("c").session_timeout(STEADY).spawn();
    wait::until("c could", || notes() == (0, vec![]));
}

/// Too slow to open a session as short as the doctor would like to.
#[test]
fn of_a_slow_network_the_doctor_says_how_slow_it_is() {
    let election = election();
    election.prepare();
    let link = Proxy::to(server().server(0).address());
    link.tamper(|reply| {
        wait::pass(Duration::from_millis(120));
        reply
    });
    // It complains of the link, which knows no four-letter words. A busy machine may be slower still.
    let (granted, mut said) = ("timeouts from 1s to 10m are granted", String::new());
    let found = wait::held_within(wait::LIMIT, || {
        said = ctl_at(&link.connect_string(), &["doctor", &election.name], &[]).output;
        said.contains(granted)
    });
    assert!(found && said.contains("the shortest --session-timeout that fits these servers is"), "{said}");
}

#[test]
fn what_would_hold_an_election_up_is_found_and_named() {
    let election = election();
    election.prepare();
    let persistent = format!("_c_{}-latch-0000000000", uuid::Uuid::nil());
    election.admin.create(&election.path(&format!("election/{persistent}")), "nobody");
    election.admin.create(&election.path("election/stray"), "");
    election.admin.set(&election.path("lease"), "{");
    election.admin.create(&election.path("control"), "[]");
    let (code, wrong) = complaints(&election);
    assert_eq!(code, 1);
    for part in [&persistent, "stray", "lease cannot be read", "control cannot be read"] {
        assert!(wrong.iter().any(|said| said.contains(part)), "nothing about {part}: {wrong:#?}");
    }
    assert_eq!(wrong.len(), 4, "{wrong:#?}");
    // The remedy that it tells.
    let said = ctl(&["enable", &election.name]);
    assert!(said.code == 0 && said.output.contains("its orders could not be read, and are written anew"), "{said:?}");
    let (_, wrong) = complaints(&election);
    assert!(wrong.len() == 3 && !wrong.iter().any(|said| said.contains("control")), "{wrong:#?}");
    // Who orders over a newer format might take back what it cannot read.
    election.admin.set(&election.path("control"), r#"{"v":2}"#);
    let (_, wrong) = complaints(&election);
    let newer = "its format is version 2; use the newer zk-leaderctl that knows it";
    assert!(wrong.iter().any(|said| said.ends_with(newer)), "{wrong:#?}");
    assert_eq!(ctl(&["enable", &election.name]).code, 2);
}

/// Who makes an election with `--path` in the directory of another library's election means to take part there.
#[test]
fn an_election_in_the_directory_of_another_library_is_told_with_what_to_delete_at_last() {
    let election = election();
    election.prepare();
    assert!(!complaints(&election).1.iter().any(|said| said.contains("another library")));
    let (base, stranger) = (election.path(""), format!("_c_{}-latch-0000000000", uuid::Uuid::nil()));
    let base = base.trim_end_matches('/');
    election.admin.create(&format!("{base}/{stranger}"), "");
    let (code, wrong) = complaints(&election);
    assert!(code == 1 && wrong.len() == 1, "{wrong:#?}");
    let begin = format!("{base} is an election of another library, too: it holds the candidate {stranger}; ");
    let end = format!("once none of them runs with --path {base}, delete what we have made there: election, lease, ");
    assert!(wrong[0].starts_with(&begin) && wrong[0].contains(&end), "{wrong:#?}");
}

#[test]
fn a_history_that_cannot_be_read_is_told() {
    let election = election();
    election.prepare();
    let history = election.path("history");
    wait::until("there is one", || election.admin.exists(&history));
    election.admin.set(&history, "{");
    let (code, wrong) = complaints(&election);
    assert!(code == 1 && wrong.iter().any(|said| said.ends_with("delete it, it is only for people")), "{wrong:#?}");
}

#[test]
fn a_record_that_is_missing_is_told_whatever_else_cannot_be_read() {
    let election = election();
    election.prepare();
    election.admin.create_all(&election.path("members"));
    election.admin.create(&election.path("members/a"), "{");
    election.admin.delete(&election.path("lease"));
    // An election has a lease record, or slots.
    for slot in ["slots/0/term", "slots/0/lease", "slots/1/term"] {
        election.admin.create_all(&election.path(slot));
    }
    election.admin.set(&election.path("slots/0/lease"), r#"{"v":1,"state":"free","lease_ms":5}"#);
    let (code, wrong) = complaints(&election);
    let missing = format!("{} or its record is missing", election.path("slots/1/term"));
    assert!(code == 1 && wrong.iter().any(|said| said.contains(&missing)), "{wrong:#?}");
    assert!(wrong.iter().any(|said| said.contains("members/a cannot be read")), "{wrong:#?}");
}

/// It died while it waited for the lease before it to run out, and nobody else is there.
#[test]
fn a_leader_that_died_while_it_waited_is_not_said_to_wait_for_ever() {
    let election = election();
    election.prepare();
    let record = r#"{"v":1,"state":"held","lease_ms":1000,"waiting_on":9,"guarantee":"at-most-one",
        "holder":{"id":"a","host":"h","pid":1,"candidate":"x"}}"#;
    election.admin.set(&election.path("lease"), record);
    wait::until("its wait is over", || ctl(&["status", &election.name]).output.contains("overdue"));
    let said = ctl(&["list", "-o", "plain"]).output;
    assert!(said.lines().any(|line| line.starts_with(&election.name) && line.ends_with("lease overdue")), "{said}");
    let (code, wrong) = complaints(&election);
    assert!(code == 1 && wrong.iter().any(|said| said.contains("a has not renewed its lease for ")), "{wrong:#?}");
    let said = ctl(&["disable", &election.name, "--wait"]);
    assert!(said.code == 0 && said.output.contains("the lease before that of a ran out at 20"), "{said:?}");
}

/// It died, and the promises for it have run out: its command does not run any more, and `status` says so.
#[test]
fn a_leader_whose_promises_have_run_out_is_not_said_to_run_on() {
    let election = election();
    election.prepare();
    let record = r#"{"v":1,"state":"held","lease_ms":1000,"vouch_ms":1000,"guarantee":"at-most-one, vouched",
        "holder":{"id":"a","host":"h","pid":1,"candidate":"x"}}"#;
    election.admin.set(&election.path("lease"), record);
    wait::until("its lease is over", || ctl(&["status", &election.name]).output.contains("overdue"));
    let said = ctl(&["doctor", &election.name]);
    assert!(said.code == 1 && said.output.contains("a has not renewed its lease for "), "{said:?}");
    assert!(!said.output.contains("may run on promises"), "{said:?}");
}

/// Nobody is in line, and nobody renews it: only the record itself tells that a command may run.
#[test]
fn a_record_that_was_lost_is_told_with_the_time_before_which_no_host_can_lead() {
    let election = election();
    election.prepare();
    let record = r#"{"v":1,"state":"held","lease_ms":1000,"vouch_ms":86400000,"guarantee":"at-most-one, vouched"}"#;
    election.admin.set(&election.path("lease"), record);
    let (code, wrong) = complaints(&election);
    let begin = format!(
        "{} was lost and made anew: the command of its unknown holder may run until 20",
        election.path("lease")
    );
    let wait = " UTC, and no host leads before, unless its own host frees the record; wait, or stop ";
    let is_told = |said: &String| said.starts_with(&begin) && said.contains(wait);
    assert!(code == 1 && wrong.len() == 1 && wrong.iter().any(is_told), "it is not told: {wrong:#?}");
    let said = ctl(&["status", &election.name]);
    assert!(said.code == 2 && said.output.contains("not known: the record was lost, and "), "{said:?}");
    assert!(!said.output.contains("vouched for"), "{said:?}");

    election.admin.set(&election.path("lease"), r#"{"v":1,"state":"held","lease_ms":1000,"guarantee":"at-most-one"}"#);
    wait::until("its time is over", || ctl(&["status", &election.name]).output.contains("holder's lease has run out"));
    let (code, wrong) = complaints(&election);
    let is_told =
        |said: &String| said.contains(" was lost and made anew: the lease of its unknown holder ran out at 20");
    assert!(code == 1 && wrong.len() == 1 && wrong.iter().any(is_told), "{wrong:#?}");
}

#[test]
fn a_disabled_election_and_a_free_lease_that_nobody_takes_are_told() {
    let election = election();
    election.prepare();
    let candidate = format!("_c_{}-latch-0000000000", uuid::Uuid::nil());
    election.admin.create_ephemeral(&election.path(&format!("election/{candidate}")), "deaf");
    assert_eq!(ctl(&["disable", &election.name, "--reason", "upgrade"]).code, 0);
    let said = ctl(&["doctor", &election.name]);
    assert!(
        said.code == 0 && said.output.contains("upgrade") && said.output.contains("zk-leaderctl enable"),
        "{said:?}"
    );
    assert_eq!(ctl(&["enable", &election.name]).code, 0);
    let (code, wrong) = complaints(&election);
    assert!(
        code == 1 && wrong.iter().any(|said| said.contains("deaf is first in line and does not take it")),
        "{wrong:?}"
    );
}

/// Who leads a slot takes no other one.
#[test]
fn a_free_slot_of_several_is_told_only_if_somebody_in_line_leads_none() {
    let election = election();
    let host = |id: &str| election.steady_host(id).option("--leaders", "3").spawn();
    let _hosts = ["a", "b"].map(host);
    let slots = || ctl(&["status", &election.name, "--json"]).json()["slots"].as_array().cloned().unwrap_or_default();
    wait::until("two lead", || slots().iter().filter(|slot| slot["state"] == "led").count() == 2);
    let (code, wrong) = complaints(&election);
    assert!(code == 0 && wrong.is_empty(), "no host is left for the third slot: {wrong:#?}");
    let candidate = format!("_c_{}-latch-2000000000", uuid::Uuid::nil());
    election.admin.create_ephemeral(&election.path(&format!("election/{candidate}")), "deaf");
    let (code, wrong) = complaints(&election);
    let is_told = |said: &String| said.contains("deaf is first in line and does not take it");
    assert!(code == 1 && wrong.iter().any(is_told), "{wrong:#?}");
}

/// Its leader is cut off, and has not heard of the order; or nobody knows who held the record that was lost.
#[test]
fn of_a_disabled_election_a_leader_whose_command_may_still_run_is_told() {
    let election = election();
    election.prepare();
    assert_eq!(ctl(&["disable", &election.name, "--reason", "upgrade"]).code, 0);
    let is_told = |record: String, told: &str| {
        election.admin.set(&election.path("lease"), &record);
        let (_, wrong) = wait::for_some("it is told", || Some(complaints(&election)).filter(|(code, _)| *code == 1));
        assert!(wrong.iter().any(|said| said.contains(told)), "{wrong:#?}");
        assert!(ctl(&["doctor", &election.name]).output.contains("zk-leaderctl enable"));
    };
    for guarantee in [r#""at-least-one""#, r#""at-most-one, vouched","vouch_ms":600000"#] {
        let held = format!(r#"{{"v":1,"state":"held","lease_ms":1500,"guarantee":{guarantee}"#);
        is_told(format!(r#"{held},"holder":{{"id":"a","host":"h","pid":1}}}}"#), "a has not renewed its lease for ");
    }
    let lost = r#"{"v":1,"state":"held","lease_ms":60000,"guarantee":"at-most-one"}"#;
    is_told(lost.to_owned(), "lease was lost and made anew: the command of its unknown holder may run until ");
}

#[test]
fn a_free_lease_that_no_host_may_take_is_told_unless_one_may_by_then() {
    let election = election();
    election.prepare();
    election.admin.create_all(&election.path("members"));
    let barred = |id: &str, why: &str| {
        format!(
            r#"{{"v":1,"id":"{id}","host":"{id}","pid":1,"role":"follower","phase":"following","why_not":["{why}"]}}"#
        )
    };
    let b = election.path("members/b");
    election.admin.create(&election.path("members/a"), &barred("a", "unhealthy"));
    election.admin.create(&b, &barred("b", "drained"));
    let begin = "the lease is free, and no host may be elected: a (unhealthy), b (";
    let undrain = format!("{begin}drained); zk-leaderctl undrain b lets that host lead");
    assert_eq!(complaints(&election), (1, vec![undrain]));
    election.admin.set(&b, &barred("b", "makes room for a handover"));
    let mend = format!("{begin}makes room for a handover); see their logs, and mend it on one of them");
    assert_eq!(complaints(&election), (1, vec![mend]));
    election
        .admin
        .set(&b, r#"{"v":1,"id":"b","host":"b","pid":1,"role":"follower","phase":"following","eligible":true}"#);
    assert_eq!(complaints(&election), (0, vec![]), "it may line up");
}

#[test]
fn a_leader_that_hangs_is_told() {
    let election = election();
    let host = election.host("a").session_timeout("8s").spawn();
    election.diary.until_started(1);
    assert_eq!(complaints(&election), (0, vec![]));
    host.signal(nix::sys::signal::Signal::SIGSTOP);
    let (code, wrong) = wait::for_some("it is late", || Some(complaints(&election)).filter(|(code, _)| *code != 0));
    host.signal(nix::sys::signal::Signal::SIGCONT);
    assert!(code == 1 && wrong[0].contains("a has not renewed its lease for "), "{wrong:?}");
}

/// Two jobs under one name: the second would wait for ever without a word.
#[test]
fn hosts_with_different_commands_are_told_by_the_standby_and_by_the_doctor() {
    let election = election();
    let first = election.steady_host("a").spawn();
    election.diary.until_started(1);
    wait::until("it has said who it is", || election.admin.exists(&election.path("members/a")));
    assert!(!ctl(&["doctor", &election.name]).output.contains("the commands differ"));
    let second = election.steady_host("b").command(&["sleep", "999"]).spawn();
    second.until_logged("leads here with another command (witness) than ours (sleep)");
    wait::until("it has said who it is", || election.admin.exists(&election.path("members/b")));
    let said = ctl(&["doctor", &election.name]);
    assert!(
        said.code == 0 && said.output.contains("the commands differ: sleep (as on b), witness (as on a)"),
        "{said:?}"
    );
    assert!(!first.log().contains("another command"), "{}", first.log());
}
