//! Jobs that are called on every host and run once: slots, periods, duplicates, interrupted runs.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::{election, link, millis, secs};
use crate::support::{Election, Running, Subject, subject, wait};

const DUPLICATE: &str = "This call is a duplicate";
const INTERRUPTED: &str = "A run was interrupted";

/// A short job for one slot.
fn job(election: &Election, id: &str, slot: &str) -> Subject {
    election.steady_host(id).witness(&election.diary, &["exit-after=100"]).option("--slot", slot)
}

fn last_run(election: &Election) -> Value {
    let text = election.admin.read(&election.path("runs/last"));
    serde_json::from_str::<Value>(&text).unwrap()["run"].clone()
}

#[test]
fn a_call_for_a_slot_that_has_run_is_a_duplicate_runs_nothing_and_exits_with_0() {
    let election = election();
    let mut first = job(&election, "a", "noon").witness(&election.diary, &["status=3", "exit-after=1"]).spawn();
    assert_eq!(first.code(), 3, "the status is the command's own: {}", first.log());
    for warned in ["warning: The command exited with status 3", "warning: The run counts as failed status=3"] {
        assert!(first.log().contains(warned), "{}", first.log());
    }
    let mut second = job(&election, "b", "noon").option("--log-level", "warn").spawn();
    assert_eq!(second.code(), 0, "{}", second.log());
    assert_eq!(second.log().matches(DUPLICATE).count(), 1, "{}", second.log());
    assert!(second.log().contains("; nothing is run; --retry-failed runs it again"), "{}", second.log());
    assert_eq!((election.diary.starts().len(), election.state().as_str()), (1, "free"));
    let mut third = job(&election, "b", "evening").spawn();
    assert_eq!(third.code(), 0);
    assert!(third.log().contains("The last run failed: a run by a on "), "{}", third.log());
    let run = last_run(&election);
    assert_eq!(
        (run["slot"].as_str(), run["id"].as_str(), run["status"].as_u64()),
        (Some("evening"), Some("b"), Some(0))
    );
    assert_eq!(election.diary.starts().len(), 2);
}

/// timeout(1) has the same status.
#[test]
fn a_run_that_took_too_long_is_stored_as_the_program_ends() {
    let election = election();
    let mut host = election.steady_host("a").option("--slot", "noon").option("--timeout", "100ms").spawn();
    assert_eq!((host.code(), last_run(&election)["status"].as_u64()), (124, Some(124)), "{}", host.log());
    assert_eq!(last_run(&election)["ok"].as_bool(), Some(false));
    assert!(host.log().contains("warning: The run counts as failed status=124"), "{}", host.log());
}

#[test]
fn of_five_hosts_that_call_for_one_slot_one_runs_it_and_all_succeed() {
    let election = election();
    for (slot, wait) in [("waits", "20s"), ("if free now", "0")] {
        let before = election.diary.starts().len();
        let call = |host: usize| {
            let id = format!("{slot} {host}");
            job(&election, &id, slot).option("--wait", wait).option("--conflict-exit-code", "0").spawn()
        };
        let hosts: Vec<_> = (0..5).map(call).collect();
        for mut host in hosts {
            assert_eq!(host.code(), 0, "{}", host.log());
        }
        assert_eq!(election.diary.starts().len(), before + 1, "{slot}");
    }
    election.diary.assert_no_overlap();
}

/// T34: at most once.
/// Its command never began, so the others are not told that there was a run.
#[test]
fn a_slot_whose_first_leader_cannot_prepare_is_run_by_another() {
    let election = election();
    let step = |id| job(&election, id, "noon").option("--before-start", "test $ZK_LEADER_ID = b");
    let mut first = step("a").option("--stand-back", "10m").spawn();
    wait::until("the first one has released", || {
        first.log().contains("--before-start failed") && election.state() == "free"
    });
    let mut second = step("b").spawn();
    assert_eq!(second.code(), 0, "{}", second.log());
    assert_eq!(election.diary.starts().iter().map(|start| start.id.as_str()).collect::<Vec<_>>(), ["b"]);
    assert_eq!((last_run(&election)["id"].as_str(), last_run(&election)["ok"].as_bool()), (Some("b"), Some(true)));
    first.signal(Signal::SIGTERM);
    assert_eq!(first.code(), 0);
    let mut third = step("b").spawn();
    assert_eq!((third.code(), election.diary.starts().len()), (0, 1), "it has run now");
}

#[test]
fn an_interrupted_run_is_not_repeated_but_reported_when_the_next_one_starts() {
    let election = election();
    let first = election.steady_host("a").option("--slot", "noon").spawn();
    election.diary.until_started(1);
    let mut waits = job(&election, "b", "noon").spawn();
    election.until_candidates(2);
    first.kill();
    assert_eq!(waits.code(), 0, "{}", waits.log());
    assert!(waits.log().contains(DUPLICATE), "{}", waits.log());
    assert_eq!(election.diary.starts().len(), 1);
    let mut next = job(&election, "c", "evening").spawn();
    assert_eq!(next.code(), 0);
    assert!(next.log().contains(INTERRUPTED) && next.log().contains("noon"), "{}", next.log());
    let mut after = job(&election, "d", "night").spawn();
    assert_eq!(after.code(), 0);
    assert!(!after.log().contains(INTERRUPTED), "it was said once: {}", after.log());
}

/// T34: at least once.
#[test]
fn with_retry_failed_an_interrupted_or_failed_run_is_repeated_until_it_succeeds() {
    let election = election();
    let call = |id, witness: &[&str]| {
        let host = election.steady_host(id).option("--slot", "noon").flag("--retry-failed");
        host.witness(&election.diary, witness).spawn()
    };
    let first = call("a", &[]);
    election.diary.until_started(1);
    let mut second = call("b", &["exit-after=50", "status=9"]);
    election.until_candidates(2);
    let mut third = call("c", &["exit-after=50"]);
    election.until_candidates(3);
    let mut fourth = call("d", &[]);
    election.until_candidates(4);
    first.kill();
    assert_eq!((second.code(), third.code(), fourth.code()), (9, 0, 0), "{}", fourth.log());
    assert!(second.log().contains(INTERRUPTED), "{}", second.log());
    let ids: Vec<_> = election.diary.starts().into_iter().map(|start| start.id).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    election.diary.assert_no_overlap();
}

#[test]
fn a_slot_whose_leadership_is_lost_ends_with_76_and_is_not_tried_again() {
    let election = election();
    let link = link();
    let mut host = election.host_behind(&link, "a").option("--slot", "noon").spawn();
    election.diary.until_started(1);
    link.stall();
    assert_eq!(host.code(), 76, "{}", host.log());
    let mut other = job(&election, "b", "noon").spawn();
    assert_eq!(other.code(), 0, "{}", other.log());
    assert_eq!(election.diary.starts().len(), 1);
}

/// What was run once is told by the marker, and not by who holds the lease: a call that is stopped while it waits, or gives
/// up, has marked nothing.
#[test]
fn a_call_that_gives_up_waiting_leaves_the_slot_to_the_others() {
    let election = election();
    let holder = election.steady_host("holder").spawn();
    election.diary.until_started(1);
    assert_eq!(job(&election, "impatient", "noon").option("--wait", "200ms").spawn().code(), 75);
    let mut stopped = job(&election, "stopped", "noon").spawn();
    election.until_candidates(2);
    stopped.signal(Signal::SIGTERM);
    assert_eq!(stopped.code(), 0);
    holder.signal(Signal::SIGTERM);
    assert_eq!(job(&election, "b", "noon").spawn().code(), 0);
    assert_eq!(election.diary.last_start().id, "b");
}

/// A job that writes down its start and its end.
fn noting_job(election: &Election, id: &str, slot: &str, file: &Path) -> Subject {
    let script = r#"echo start >>"$0"; sleep 0.3; echo end >>"$0""#;
    let host = election.host(id).option("--slot", slot).option("--wait", "25s");
    host.command(&["sh", "-c", script, file.to_str().unwrap()])
}

/// The holder of the record, if it is one of these. It may be dead for as long as its session lives.
fn holder<'a>(election: &Election, mut hosts: impl Iterator<Item = &'a Running>) -> Option<&'a Running> {
    let (text, _) = election.admin.find(&election.path("lease"))?;
    let record: Value = serde_json::from_str(&text).ok()?;
    let pid = record["holder"]["pid"].as_i64().filter(|_| record["state"] == "held")?;
    hosts.find(|host| i64::from(host.pid()) == pid)
}

/// Multiples of the golden ratio: spread over the time between two slots, no two alike.
fn jitter(turn: usize) -> Duration {
    millis(500).mul_f64((f64::from(u32::try_from(turn).unwrap()) * 0.618_034).fract())
}

/// Three hosts are called every half a second for a slot, and whoever leads is killed in between: the supervisor alone, or
/// together with its guard. What each slot has noted, and all that was logged.
fn slots_under_fire(number: usize, slots: usize, options: &[&str]) -> (Vec<String>, String) {
    let election = election();
    let notes = |slot: usize| election.diary.directory().join(format!("slot-{slot}"));
    let mut hosts: Vec<Running> = Vec::new();
    for slot in 0..slots {
        // The calls of the last slot may still run or wait, those before it are done, however long the leases took; their ids
        // may be others' by now.
        for host in hosts.iter_mut().rev().skip(3) {
            host.status();
        }
        for host in 0..3 {
            let call = noting_job(&election, &format!("{slot}.{host}"), &slot.to_string(), &notes(slot));
            hosts.push(options.iter().fold(call, |call, option| call.flag(option)).spawn());
        }
        wait::pass(jitter(slot + 7 * number));
        if let Some(doomed) = holder(&election, hosts.iter().rev().take(6)) {
            if slot % 3 == 2 {
                for pid in subject::guards_of(doomed.pid()) {
                    kill(Pid::from_raw(pid), Signal::SIGKILL).ok();
                }
            }
            doomed.kill();
        }
        wait::pass(millis(500).saturating_sub(jitter(slot + 7 * number)));
    }
    for host in &mut hosts {
        host.status();
    }
    let mut last = noting_job(&election, "last", "last", &election.diary.directory().join("last"));
    last = options.iter().fold(last, |call, option| call.flag(option));
    let mut last = last.spawn();
    assert_eq!(last.code(), 0, "{}", last.log());
    let logs = hosts.iter().chain([&last]).map(Running::log).collect();
    ((0..slots).map(|slot| std::fs::read_to_string(notes(slot)).unwrap_or_default()).collect(), logs)
}

/// Some of these at once: what takes its time here is waiting.
fn fire(options: &'static [&'static str]) -> Vec<(Vec<String>, String)> {
    let slots: usize = std::env::var("CHAOS_RUNS").map_or(8, |runs| runs.parse().unwrap());
    let elections: Vec<_> =
        (0..3).map(|number| std::thread::spawn(move || slots_under_fire(number, slots, options))).collect();
    elections.into_iter().map(|election| election.join().unwrap()).collect()
}

/// Whether somebody has said that this slot's run never ended.
fn is_reported(log: &str, slot: usize) -> bool {
    log.lines().any(|line| line.contains(INTERRUPTED) && line.contains(&format!("slot={slot} ")))
}

/// T34: leaders are killed within half a second of a slot's edge.
#[test]
fn chaos_no_slot_runs_twice_and_what_was_missed_is_reported() {
    let mut missed = 0;
    for (slots, log) in fire(&[]) {
        for (slot, noted) in slots.iter().enumerate() {
            assert!(["", "start\n", "start\nend\n"].contains(&noted.as_str()), "slot {slot} ran twice: {noted:?}");
            let is_whole = noted.ends_with("end\n");
            assert!(is_whole || is_reported(&log, slot), "slot {slot} was missed in silence: {noted:?}\n{log}");
            missed += usize::from(!is_whole);
        }
    }
    assert!(missed > 0, "no run was hit");
}

/// T34
#[test]
fn chaos_with_retry_failed_every_slot_runs_to_its_end() {
    for (slots, log) in fire(&["--retry-failed"]) {
        for (slot, noted) in slots.iter().enumerate() {
            assert!(noted.ends_with("start\nend\n"), "slot {slot} never ended well: {noted:?}\n{log}");
        }
    }
}

#[test]
fn a_run_within_half_a_period_before_a_call_makes_it_a_duplicate() {
    let election = election();
    let call = |id: &str| {
        let witness = ["exit-after=10"];
        let mut host = election.steady_host(id).option("--once-per", "1m").witness(&election.diary, &witness).spawn();
        assert_eq!(host.code(), 0, "{}", host.log());
        host.log().contains(DUPLICATE)
    };
    assert!(!call("a"));
    assert!(call("b") && call("c"));
    // As if it had begun earlier, by the server's clock.
    let path = election.path("runs/last");
    let mut json: Value = serde_json::from_str(&election.admin.read(&path)).unwrap();
    let started = json["run"]["started_ms"].as_i64().unwrap();
    json["run"]["started_ms"] = (started - 31_000).into();
    election.admin.set(&path, &json.to_string());
    assert!(!call("d"));
    assert!(call("e"));
    let ids: Vec<_> = election.diary.starts().into_iter().map(|start| start.id).collect();
    assert_eq!(ids, ["a", "d"]);
    let _ = secs(0);
}

/// Whoever may write a marker may write any number into it, also one that no calendar has.
#[test]
fn a_run_whose_times_are_nonsense_is_told_of_and_a_duplicate_all_the_same() {
    let election = election();
    assert_eq!(job(&election, "a", "noon").spawn().code(), 0);
    for marker in [election.path("runs/slot-noon"), election.path("runs/last")] {
        let mut json: Value = serde_json::from_str(&election.admin.read(&marker)).unwrap();
        assert!(json["run"]["started_ms"].is_i64(), "{json}");
        json["run"]["started_ms"] = i64::MAX.into();
        election.admin.set(&marker, &json.to_string());
    }
    let mut again = job(&election, "b", "noon").spawn();
    assert_eq!(again.code(), 0, "{}", again.log());
    assert!(again.log().contains("after the year 9999"), "{}", again.log());
    assert_eq!(election.diary.starts().len(), 1);
}
