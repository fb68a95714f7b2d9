//! Real supervisors' machines and real guards' policies against a model of everything else, in virtual time: at every
//! instant at most one tree lives, and when the faults are over exactly one does.
//!
//! `SIM_SEED=n cargo test --test simulation` replays one script and prints what happened;
//! `SIM_SCRIPTS=n` sets how many are run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::format_push_string,
    clippy::needless_pass_by_value,
    reason = "tests"
)]

mod clock;
mod coverage;
mod direct;
mod ensemble;
mod faults;
mod guarding;
mod host;
mod minimise;
mod oracle;
mod orders;
mod outages;
mod release;
#[path = "../support/replacement.rs"]
mod replacement;
mod requests;
mod rng;
mod runs;
mod script;
mod sessions;
mod steps;
mod supervising;
mod verdict;
mod vouched;
mod waits;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};

use zk_leader_run::core::action::PhaseName;
use zk_leader_run::core::settings::Guarantee;

use coverage::{Coverage, Given};
use script::Script;
use verdict::judge;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[derive(Default)]
struct Findings {
    starts: u64,
    /// Scripts in which somebody vouches.
    vouched: u64,
    coverage: Coverage,
    failed: Option<u64>,
}

/// Runs the scripts of the seeds below `count` on two threads, up to the first that fails.
fn run_scripts(count: u64, guarantee: Guarantee) -> Findings {
    let next = AtomicU64::new(0);
    let worker = || {
        let mut findings = Findings::default();
        while findings.failed.is_none() {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= count {
                break;
            }
            let script = Script::draw(seed, guarantee);
            findings.vouched += u64::from(script.longest_limit() > 0);
            let verdict = judge(&script, false);
            findings.starts += verdict.starts;
            findings.coverage.add(&verdict.coverage);
            findings.failed = verdict.violation.is_some().then_some(seed);
        }
        if findings.failed.is_some() {
            next.store(count, Ordering::Relaxed);
        }
        findings
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(worker);
        let mut all = worker();
        let other = other.join().unwrap();
        all.starts += other.starts;
        all.vouched += other.vouched;
        all.coverage.add(&other.coverage);
        all.failed = all.failed.into_iter().chain(other.failed).min();
        all
    })
}

/// Prints the shortest script that still fails, and what happened in it.
fn show(seed: u64, guarantee: Guarantee) {
    let script = minimise::shortest(Script::draw(seed, guarantee));
    let verdict = judge(&script, true);
    println!("{script:#?}\n{}", verdict.log.join("\n"));
    if let Some(violation) = verdict.violation {
        panic!("SIM_SEED={seed} replays it: {violation}");
    }
}

/// Runs `count` scripts (or the one of `SIM_SEED`), and asks for what they must have met.
fn hold(guarantee: Guarantee, count: u64) -> Option<Coverage> {
    if let Some(seed) = number("SIM_SEED") {
        show(seed, guarantee);
        return None;
    }
    let count = number("SIM_SCRIPTS").unwrap_or(count);
    let findings = run_scripts(count, guarantee);
    if let Some(seed) = findings.failed {
        show(seed, guarantee);
        panic!("SIM_SEED={seed} failed, and then did not: the simulation depends on something besides its seed");
    }
    let Findings { starts, vouched, coverage, .. } = findings;
    println!("{count} scripts, {vouched} of them with vouching, {starts} starts, {} cells visited", coverage.visited());
    assert!(guarantee == Guarantee::AtLeastOne || vouched * 4 > count, "only {vouched} of {count} scripts vouch");
    println!("{}", coverage.table());
    Some(coverage)
}

#[test]
fn never_do_two_trees_live_at_once_and_every_election_heals() {
    let Some(coverage) = hold(Guarantee::AtMostOne, 100_000) else { return };
    // What is never met is never tested.
    for event in
        ["renewed", "unanswered", "denied-conflict", "session-over", "clock-jumped", "guard-gone", "stop-requested"]
    {
        for phase in
            [PhaseName::Waiting, PhaseName::Preparing, PhaseName::Leading, PhaseName::Paused, PhaseName::Stopping]
        {
            assert!(coverage.visits(phase, event) > 0, "{event} was never read in {phase:?}");
        }
    }
    for event in ["orphans-ended", "before-start-badly", "after-stop-well", "after-stop-badly", "step-guard-gone"] {
        assert!(coverage.visits(PhaseName::Stopping, event) > 0, "{event} was never read in a stop");
    }
    for event in ["marked", "duplicate", "fenced", "before-start-well", "before-start-badly", "step-guard-gone"] {
        assert!(coverage.visits(PhaseName::Preparing, event) > 0, "{event} was never read in time");
    }
    for phase in [PhaseName::Following, PhaseName::Waiting, PhaseName::Preparing, PhaseName::Leading, PhaseName::Paused]
    {
        assert!(coverage.visits(phase, "barred") > 0, "nobody was barred in {phase:?}");
    }
    for phase in [PhaseName::Following, PhaseName::Waiting, PhaseName::Leading, PhaseName::Paused, PhaseName::Stopping]
    {
        assert!(coverage.visits(phase, "check-gone") > 0, "nobody lost a check in {phase:?}");
    }
    for order in [Given::HandOver, Given::Request, Given::Drain] {
        assert!(coverage.heeded(order) > 0, "no leader gave way to this: {order:?}");
    }
    assert!(coverage.passages(PhaseName::Leading, PhaseName::Preparing) > 0, "nothing was restarted");
    assert!(coverage.passages(PhaseName::Preparing, PhaseName::Leading) > 0, "no restart ended well");
    assert!(coverage.passages(PhaseName::Paused, PhaseName::Leading) > 0, "no pause ended well");
    assert!(coverage.passages(PhaseName::Waiting, PhaseName::Leading) > 0, "no wait was served");
    assert!(coverage.passages(PhaseName::Vouched, PhaseName::Leading) > 0, "no outage was lived through");
    assert!(coverage.passages(PhaseName::Vouched, PhaseName::Preparing) > 0, "nothing was restarted in an outage");
    assert!(coverage.passages(PhaseName::Waiting, PhaseName::Following) > 0, "no wait was broken off");
}

#[test]
fn at_least_once_elections_heal_to_exactly_one_tree() {
    let Some(coverage) = hold(Guarantee::AtLeastOne, 20_000) else { return };
    assert!(coverage.visits(PhaseName::Paused, "connected") > 0, "no run outlived its session");
    assert!(coverage.passages(PhaseName::Paused, PhaseName::Leading) > 0, "no pause ended well");
}

#[test]
fn a_script_is_replayed_exactly_by_its_seed() {
    for seed in 0..50 {
        let script = Script::draw(seed, Guarantee::AtMostOne);
        let (once, again) = (judge(&script, true), judge(&script, true));
        assert_eq!(once.log, again.log, "seed {seed}");
    }
}
