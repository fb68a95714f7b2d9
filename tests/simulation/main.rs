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
mod ensemble;
mod faults;
mod guarding;
mod host;
mod oracle;
mod release;
mod requests;
mod rng;
mod script;
mod sessions;
mod supervising;
mod verdict;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};

use zk_leader_run::core::settings::Guarantee;

use coverage::Coverage;
use script::Script;
use verdict::judge;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Runs many scripts on two threads; panics with the transcript of the first that fails.
fn run_scripts(count: u64, guarantee: Guarantee) -> (u64, Coverage) {
    let next = AtomicU64::new(0);
    let worker = || {
        let (mut starts, mut coverage, mut failed) = (0, Coverage::default(), None);
        while failed.is_none() {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= count {
                break;
            }
            let verdict = judge(&Script::draw(seed, guarantee), false);
            starts += verdict.starts;
            coverage.add(&verdict.coverage);
            failed = verdict.violation.is_some().then_some(seed);
        }
        if failed.is_some() {
            next.store(count, Ordering::Relaxed);
        }
        (starts, coverage, failed)
    };
    let results = std::thread::scope(|scope| {
        let workers = [scope.spawn(worker), scope.spawn(worker)];
        workers.map(|worker| worker.join().unwrap())
    });
    let (mut starts, mut coverage) = (0, Coverage::default());
    for (some, cells, failed) in results {
        if let Some(seed) = failed {
            fail(seed, guarantee);
        }
        starts += some;
        coverage.add(&cells);
    }
    (starts, coverage)
}

fn fail(seed: u64, guarantee: Guarantee) {
    let script = Script::draw(seed, guarantee);
    let verdict = judge(&script, true);
    println!("{script:#?}\n{}", verdict.log.join("\n"));
    panic!("seed {seed}: {}", verdict.violation.unwrap_or_default());
}

#[test]
fn never_do_two_trees_live_at_once_and_every_election_heals() {
    if let Some(seed) = number("SIM_SEED") {
        return fail(seed, Guarantee::AtMostOne);
    }
    let count = number("SIM_SCRIPTS").unwrap_or(100_000);
    let (starts, coverage) = run_scripts(count, Guarantee::AtMostOne);
    println!("{count} scripts, {starts} starts, {} cells\n{}", coverage.visited(), coverage.table());
}
