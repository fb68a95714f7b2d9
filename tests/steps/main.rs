//! The steps around the command, `--before-start` and `--after-stop`, against real servers.
//!
//! Never: a sleep in place of a condition.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod deadlines;
mod endings;
mod examples;
mod failures;

use support::standalone::{election, link};
use support::wait::{millis, secs};
use support::{Election, Subject, subject, wait};

/// A step of `host` that notes what it is told and the state of the record as a file, and then does `what`.
fn noting(election: &Election, host: &str, name: &str, what: &str) -> String {
    let page = election.diary.directory().join("steps");
    let page = page.display();
    format!(r#"echo "{name} {host} $ZK_LEADER_WHY $ZK_LEADER_TOKEN $ZK_LEADER_ID" >>{page}; {what}"#)
}

/// A host whose steps note what they are told, and whose lease runs out in no test.
fn host(election: &Election, id: &str) -> Subject {
    with_steps(election.steady_host(id), election, id, "true", "true")
}

fn with_steps(subject: Subject, election: &Election, id: &str, before: &str, after: &str) -> Subject {
    let before = noting(election, id, "before", before);
    subject.option("--before-start", &before).option("--after-stop", &noting(election, id, "after", after))
}

/// What the steps were told, in order: `before a elected`.
fn noted(election: &Election) -> Vec<String> {
    let text = std::fs::read_to_string(election.diary.directory().join("steps")).unwrap_or_default();
    text.lines().map(|line| line.split(' ').take(3).collect::<Vec<_>>().join(" ")).collect()
}

#[track_caller]
fn until_noted(election: &Election, note: &str) {
    let found = wait::held_within(wait::LIMIT, || noted(election).iter().any(|line| line == note));
    assert!(found, "never noted {note:?}: {:?}", noted(election));
}

/// The witness as a step: with the same diary, so that it and any command at once are an overlap.
fn witness(election: &Election, options: &str) -> String {
    let (program, diary) = (subject::example("witness"), election.diary.path());
    format!("exec {} {} {options}", program.display(), diary.display())
}
