//! Each file is one incident: what happened, and what the machine did about it.
//!
//! ```text
//! # anything
//! settings grace=0s
//! at 1.000s connected t=4s
//!     => enter candidacy=1
//!     next never
//! upgraded at 1.500s settings grace=0s
//!     next never
//! started-anew at 1.600s settings
//!     next never
//! ```

use std::fmt::Write;
use std::time::Duration;

use zk_leader_run::core::action::PhaseName;

use crate::harness::Supervisor;
use crate::{difference, parse, render, testdata};

/// The story with what the machine does in it, as the file should be.
fn play(text: &str) -> String {
    let (mut told, mut stage) = (String::new(), None);
    for line in text.lines() {
        if line.starts_with("    ") {
            continue;
        }
        told.push_str(line);
        told.push('\n');
        if line.starts_with("settings") {
            stage = Some(Supervisor::new(&parse::settings(line)));
        } else if let Some((how, rest)) = line.split_once(" at ").filter(|(how, _)| !how.contains(' ')) {
            let before = stage.as_ref().expect("settings come first");
            let (at, settings) = rest.split_once(' ').expect("a time and settings");
            let (at, settings) = (parse::duration(at), parse::settings(settings));
            let next = match how {
                "upgraded" => before.upgraded(at, &settings),
                "started-anew" => before.started_anew(at, &settings),
                _ => continue,
            };
            writeln!(told, "    next {}", render::deadline(next.next_deadline(at))).unwrap();
            stage = Some(next);
        } else if let Some(rest) = line.strip_prefix("at ") {
            let stage = stage.as_mut().expect("settings come first");
            let (at, event) = rest.split_once(' ').expect("a time and an event");
            let at = parse::duration(at);
            for action in stage.tell(at, event) {
                writeln!(told, "    => {}", render::action(&action)).unwrap();
            }
            writeln!(told, "    next {}", render::deadline(stage.next_deadline(at))).unwrap();
        }
    }
    told
}

#[test]
fn every_incident_goes_as_its_transcript_says() {
    let mut files: Vec<_> = std::fs::read_dir(testdata()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|kind| kind == "txt"));
    files.retain(|path| path.file_stem().is_some_and(|name| name != "transitions"));
    files.sort();
    assert!(files.len() >= 15, "only {} transcripts were found", files.len());
    let differences = files.iter().filter_map(|path| difference(path, &play(&std::fs::read_to_string(path).unwrap())));
    let differences: Vec<_> = differences.collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The deadline would hide that nothing is done: the lease runs for three more seconds.
#[test]
fn the_end_of_the_session_stops_the_command_at_once() {
    let told = play(
        "settings\nat 0s ticked\nat 0s connected\nat 0.1s seen first record=5 free\nat 0.1s took-over\nat 0.1s started\n\
         at 0.2s session-over\n",
    );
    let (_, ending) = told.split_once("session-over\n").unwrap();
    assert!(ending.contains("guard: stop run=1"), "{ending}");
}

/// A service manager gives up a process that says that it stops, and then stays until an outage is over.
#[test]
fn a_process_that_stays_to_free_its_lease_is_not_ending_until_it_is_asked_to_end() {
    let mut stage = Supervisor::new(&parse::settings("settings vouch-limit=40s"));
    let story =
        ["ticked", "connected", "seen first record=5 free", "took-over", "started", "tree-ended exited:0 its-own"];
    for (at, event) in (0..).zip(story) {
        stage.tell(Duration::from_millis(at), event);
    }
    assert_eq!((stage.phase(), stage.is_ending()), (PhaseName::Releasing, false));
    stage.tell(Duration::from_secs(1), "stop-requested");
    assert_eq!((stage.phase(), stage.is_ending()), (PhaseName::Releasing, true));
}

/// A story up to a command that runs, and what comes then.
fn told(settings: &str, then: &[&str]) -> Supervisor {
    let mut stage = Supervisor::new(&parse::settings(settings));
    let story = ["ticked", "connected", "seen first record=5 free", "took-over", "started"];
    for (at, event) in (0..).zip(story.iter().chain(then)) {
        stage.tell(Duration::from_millis(at), event);
    }
    stage
}

#[test]
fn a_process_that_is_asked_to_end_during_a_handover_says_so() {
    let stage = told("settings", &["barred handing-over"]);
    assert_eq!((stage.phase(), stage.is_ending()), (PhaseName::Stopping, false));
    let stage = told("settings", &["barred handing-over", "stop-requested"]);
    assert_eq!((stage.phase(), stage.is_ending()), (PhaseName::Stopping, true));
}

#[test]
fn only_a_request_to_stop_after_another_one_does_not_wait() {
    let steps = "settings after-stop=5s";
    for (settings, begun) in [
        (steps, ["stop-requested", "ticked"]),
        (steps, ["tree-ended exited:0 its-own", "stop-requested"]),
        ("settings", ["barred handing-over", "stop-requested"]),
    ] {
        let first = begun.iter().position(|event| *event == "stop-requested").unwrap();
        assert!(!told(settings, &begun[..first]).hastens_stop(), "{begun:?}");
        assert!(told(settings, &begun).hastens_stop(), "{begun:?}");
    }
}

#[test]
fn a_disabled_election_is_disabled_on_a_host_that_cannot_lead_either() {
    let stage = told("settings", &["barred disabled", "barred unhealthy"]);
    assert!(stage.is_disabled());
    assert!(!told("settings", &["barred unhealthy"]).is_disabled());
}

/// In the first session after an outage that has ended its term, it frees the record that it left. What others are told of that term ends
/// with it, and does not begin anew.
#[test]
fn who_frees_the_record_of_a_term_that_is_over_does_not_say_that_it_leads() {
    let mut stage = Supervisor::new(&parse::settings("settings vouch-limit=40s"));
    let told = |stage: &mut Supervisor, at, event| {
        stage.tell(parse::duration(at), event);
        (stage.phase(), stage.holds_a_term())
    };
    for event in ["ticked", "connected", "seen first record=5 free", "took-over", "started", "session-over"] {
        told(&mut stage, "0.1s", event);
    }
    assert_eq!(told(&mut stage, "0.2s", "barred unhealthy"), (PhaseName::Stopping, true));
    assert_eq!(told(&mut stage, "0.3s", "tree-ended exited:0 ordered"), (PhaseName::Following, false));
    told(&mut stage, "1s", "ticked");
    assert_eq!(told(&mut stage, "1.1s", "connected"), (PhaseName::Releasing, false));
    told(&mut stage, "1.2s", "observed candidacy=2 record=6 ours");
    assert_eq!(told(&mut stage, "1.3s", "released candidacy=2"), (PhaseName::Following, false));
}
