//! Every situation × every event × {fresh, stale}: the phase that follows, and what is done. The operator's table too.

use std::fmt::Write;
use std::time::Duration;

use zk_leader_run::core::action::Action;

use crate::harness::Supervisor;
use crate::{agrees_with_file, parse, render, testdata};

const HEAD: &str = "\
What the supervisor does about each event in each situation: the phase that follows, and its requests and orders.
`noted`: remembered, nothing to do. Written by tests/machine (UPDATE=1 rewrites it). Times count from the start of the
process; T is 4 s: a renewal is due every 0.5 s, and the lease of one that was sent at 0.1 s ends with the stop signal
at 2.86 s and SIGKILL at 3.86 s. An answer that is not awaited does nothing, and neither does one with the id of an
earlier session, candidacy or run.
";

const LINED_UP: &[&str] = &["0 ticked", "0 connected", "0.1 seen next record=5 other"];
const TAKING_OVER: &[&str] = &["0 ticked", "0 connected", "0.1 seen first record=5 free"];
const WAITING: &[&str] = &["0 ticked", "0 connected", "0.1 seen first record=5 other", "0.1 took-over"];
/// By its nonce: the answer to its take-over was lost.
const ADOPTED: &[&str] = &[
    "0 ticked",
    "0 connected",
    "0.1 seen first record=5 free",
    "0.9 unanswered take-over",
    "1 ticked",
    "1.2 seen first record=6 ours mzxid=110 term=0",
];
const LEADING: &[&str] = &["0 ticked", "0 connected", "0.1 seen first record=5 free", "0.1 took-over", "0.1 started"];

const RESTARTING: &[&str] =
    &["on-exit=restart", "0 ticked", "0 connected", "0.1 seen first record=5 free", "0.1 took-over", "0.1 started"];
const MARKING: &[&str] = &["marks", "0 ticked", "0 connected", "0.1 seen first record=5 free", "0.1 took-over"];
const FENCING: &[&str] = &[
    "fences",
    "0 ticked",
    "0 connected",
    "0.1 seen next record=5 other",
    "4.9 line-changed",
    "4.9 seen first record=5 other",
    "4.9 took-over",
];

/// Elected, `--before-start` runs.
const BEFORE_START: &[&str] =
    &["before-start=9s,after-stop=2s", "0 ticked", "0 connected", "0.1 seen first record=5 free", "0.1 took-over"];

fn after(before: &[&'static str], more: &[&'static str]) -> Vec<&'static str> {
    before.iter().chain(more).copied().collect()
}

/// Its name, when the event comes, and what has happened by then.
type Situation = (&'static str, &'static str, Vec<&'static str>);

fn situations() -> Vec<Situation> {
    let mut situations = before_the_stop();
    situations.extend(from_the_stop_on());
    situations.extend(around_the_command());
    situations
}

fn around_the_command() -> Vec<Situation> {
    let ran = after(BEFORE_START, &["0.2 step-ended before-start well", "0.2 started"]);
    let lost = after(&ran, &["0.6 ticked", "2.86 ticked"]);
    vec![
        ("preparing: before the start", "0.3", BEFORE_START.to_vec()),
        ("preparing: before the start, renewing", "0.7", after(BEFORE_START, &["0.6 ticked"])),
        ("stopping before the start", "0.3", after(BEFORE_START, &["0.2 stop-requested"])),
        ("stopping before the start for lack of a lease", "3.5", after(BEFORE_START, &["0.6 ticked", "3.47 ticked"])),
        ("stopping: after the command's own end", "0.3", after(&ran, &["0.3 tree-ended exited:0 its-own"])),
        (
            "stopping: after a requested stop, renewing",
            "0.7",
            after(&ran, &["0.3 stop-requested", "0.3 tree-ended signaled:15 ordered", "0.6 ticked"]),
        ),
        ("stopping: after a loss", "2.95", after(&lost, &["2.9 tree-ended signaled:15 deadline"])),
    ]
}

fn before_the_stop() -> Vec<Situation> {
    vec![
        ("following: no session yet", "0.2", vec!["0 ticked"]),
        ("following: between two sessions", "0.01", vec!["0 ticked", "0 unreachable"]),
        ("following: entering", "0.2", vec!["0 ticked", "0 connected"]),
        ("following: next in line", "0.2", LINED_UP.to_vec()),
        ("following: observing the record", "0.2", after(LINED_UP, &["0.1 record-changed"])),
        ("following: looking", "0.2", after(LINED_UP, &["0.1 line-changed"])),
        ("following: taking over", "0.2", TAKING_OVER.to_vec()),
        ("waiting", "0.2", WAITING.to_vec()),
        ("waiting: the renewal that ends it under way", "4.2", after(WAITING, &["4.14 ticked"])),
        ("waiting: that renewal refused", "4.2", after(WAITING, &["4.14 ticked", "4.15 denied renew conflict"])),
        ("waiting for a first answer to our own lease", "1.3", ADOPTED.to_vec()),
        ("leading", "0.2", LEADING.to_vec()),
        ("leading, a renewal under way", "0.7", after(LEADING, &["0.6 ticked"])),
        ("leading, a renewal refused", "0.7", after(LEADING, &["0.6 ticked", "0.6 denied renew conflict"])),
        ("leading, looking", "0.2", after(LEADING, &["0.1 line-changed"])),
        ("paused", "2.2", after(LEADING, &["0.6 ticked", "2.1 ticked"])),
        ("preparing: fencing", "5", FENCING.to_vec()),
        ("preparing: marking", "0.2", MARKING.to_vec()),
        ("preparing: a back-off", "0.3", after(RESTARTING, &["0.2 tree-ended exited:1 its-own"])),
        (
            "preparing: a back-off, renewing",
            "0.7",
            after(RESTARTING, &["0.2 tree-ended exited:1 its-own", "0.6 ticked"]),
        ),
    ]
}

fn from_the_stop_on() -> Vec<Situation> {
    vec![
        ("stopping on request", "0.2", after(LEADING, &["0.1 stop-requested"])),
        ("stopping on request, renewing", "0.7", after(LEADING, &["0.1 stop-requested", "0.6 ticked"])),
        ("stopping for lack of a lease", "2.9", after(LEADING, &["0.6 ticked", "2.86 ticked"])),
        ("stopping because we are barred", "0.2", after(LEADING, &["0.1 barred unhealthy"])),
        ("stopping because all are disabled", "0.2", after(LEADING, &["0.1 barred disabled"])),
        ("following: kept out", "0.2", after(LINED_UP, &["0.1 barred unhealthy", "0.1 connected"])),
        ("following: disabled", "0.2", after(LINED_UP, &["0.1 barred disabled"])),
        (
            "stopping, its candidate gone, observing the record",
            "0.3",
            after(LEADING, &["0.1 line-changed", "0.2 denied look candidate-gone"]),
        ),
        ("releasing", "0.2", after(LEADING, &["0.1 tree-ended exited:0 its-own"])),
        (
            "releasing, a conflict",
            "0.2",
            after(LEADING, &["0.1 tree-ended exited:0 its-own", "0.1 denied release conflict"]),
        ),
        ("done", "0.2", after(LEADING, &["0.1 tree-ended exited:0 its-own", "0.1 released"])),
    ]
}

const EVENTS: &[&str] = &[
    "ticked",
    "clock-jumped",
    "connected",
    "unreachable",
    "rejected",
    "contact-lost",
    "contact-restored",
    "session-over",
    "seen first record=5 free",
    "seen first record=6 other",
    "seen first record=6 ours",
    "seen first record=6 other agrees=no",
    "seen next record=6 other",
    "seen next record=5 free agrees=no",
    "seen behind record=6 other",
    "observed record=6 ours",
    "observed record=6 ours state=free",
    "observed record=7 ours",
    "observed record=5 other",
    "observed record=6 other",
    "observed record=7 other",
    "observed record=7 waiting-on=106 other",
    "observed record=7 other agrees=no",
    "observed record=7 free",
    "line-changed",
    "record-changed",
    "took-over",
    "renewed",
    "marked fresh",
    "marked duplicate",
    "released",
    "denied enter forbidden",
    "denied look candidate-gone",
    "denied observe conflict",
    "denied take-over conflict",
    "denied take-over candidate-gone",
    "denied renew conflict",
    "denied renew candidate-gone",
    "denied renew forbidden",
    "denied mark conflict",
    "denied mark candidate-gone",
    "denied release conflict",
    "denied release candidate-gone",
    "unanswered enter",
    "unanswered look",
    "unanswered observe",
    "unanswered take-over",
    "unanswered renew",
    "unanswered mark",
    "unanswered release",
    "fenced well",
    "fenced badly",
    "step-ended before-start well",
    "step-ended before-start badly",
    "step-ended before-start guard-gone",
    "step-ended after-stop well",
    "step-ended after-stop badly",
    "step-ended after-stop guard-gone",
    "barred unhealthy",
    "unbarred unhealthy",
    "barred disabled",
    "unbarred disabled",
    "barred handing-over",
    "unbarred handing-over",
    "id-taken",
    "taken",
    "started",
    "stopping",
    "command-ended exited:0",
    "tree-ended exited:0 its-own",
    "tree-ended signaled:15 ordered",
    "tree-ended signaled:9 deadline",
    "tree-ended not-executed:2 its-own",
    "stuck",
    "guard-gone",
    "check-gone",
    "check-gone stood-still",
    "orphans-ended",
    "stop-requested",
    "hung-up",
    "signal-received 10",
];

/// The same event with the id of an earlier question; `None` if it names none.
fn stale(event: &str) -> Option<String> {
    let name = event.split(' ').next().unwrap_or_default();
    let id = match name {
        "connected" | "unreachable" | "rejected" | "contact-lost" | "contact-restored" | "session-over" => "session=0",
        "taken" | "started" | "stopping" | "command-ended" | "tree-ended" | "stuck" => "run=0",
        "seen" | "observed" | "line-changed" | "record-changed" | "took-over" | "renewed" | "released" | "denied"
        | "unanswered" | "marked" => "candidacy=0",
        "fenced" | "step-ended" => "token=0",
        _ => return None,
    };
    let (head, rest) = event.split_once(' ').unwrap_or((event, ""));
    Some(format!("{head} {id} {rest}").trim_end().to_string())
}

fn at(text: &str) -> Duration {
    parse::duration(&format!("{text}s"))
}

/// What the event does; `None` if nothing at all.
fn cell(before: &Supervisor, when: Duration, event: &str) -> Option<String> {
    let mut stage = before.clone();
    let actions = stage.tell(when, event);
    if actions.is_empty() && stage.memory() == before.memory() {
        return None;
    }
    let done = actions.iter().filter(|action| !matches!(action, Action::Announce(_))).map(render::action);
    let mut done: Vec<String> = done.collect();
    if done.is_empty() && stage.phase() == before.phase() {
        let next = stage.next_deadline(when);
        let known = next == before.next_deadline(when);
        done.push(if known { "noted".to_string() } else { format!("noted, next {}", render::deadline(next)) });
    }
    Some(format!("{}: {}", render::words(&stage.phase()), done.join("; ")).trim_end_matches([' ', ':']).to_string())
}

fn stage_after(story: &[&str], when: Duration) -> Supervisor {
    let (settings, story) = match story {
        [settings, story @ ..] if !settings.contains(' ') => (*settings, story),
        story => ("", story),
    };
    let mut stage = Supervisor::new(&parse::settings(&format!("settings {}", settings.replace(',', " "))));
    for line in story {
        let (at_text, event) = line.split_once(' ').unwrap();
        stage.tell(at(at_text), event);
    }
    stage.tell(when, "ticked");
    stage
}

fn table() -> String {
    let mut table = HEAD.to_string();
    for (name, when, story) in situations() {
        let when = at(when);
        let stage = stage_after(&story, when);
        let next = stage.next_deadline(when);
        writeln!(table, "\n{name} (at {}, next {})", render::length(when), render::deadline(next)).unwrap();
        if let Some(next) = next {
            let due = Duration::from_nanos(next.as_nanos());
            let done = cell(&stage, due, "ticked").unwrap_or_default();
            writeln!(table, "  {:<36} {done}", "(at the next deadline)").unwrap();
        }
        let mut idle = Vec::new();
        for event in EVENTS {
            match cell(&stage, when, event) {
                Some(done) => writeln!(table, "  {event:<36} {done}").unwrap(),
                None => idle.push(*event),
            }
        }
        writeln!(table, "  nothing, and a stale id never anything: {}", idle.join(" | ")).unwrap();
    }
    table
}

#[test]
fn the_transition_table_is_as_it_was_reviewed() {
    agrees_with_file(&testdata().join("transitions.txt"), &table());
}

#[test]
fn i6_no_answer_with_a_stale_id_changes_anything_in_any_situation() {
    for (name, when, story) in situations() {
        let stage = stage_after(&story, at(when));
        for event in EVENTS.iter().filter_map(|event| stale(event)) {
            assert_eq!(cell(&stage, at(when), &event), None, "{name}: {event}");
        }
    }
}
