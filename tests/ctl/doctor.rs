//! What the doctor finds, and what it does not complain about.

use super::election;
use super::operator::ctl;
use crate::support::Election;

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
    let _host = election.host("a").spawn();
    election.diary.until_started(1);
    assert_eq!(complaints(&election), (0, vec![]));
    let said = ctl(&["doctor", &election.name]).output;
    assert!(said.contains("is a standalone, version 3."), "{said}");
    assert!(said.contains("timeouts from 400ms to 10m are granted"), "{said}");
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
}
