//! The real `zookeeper` layer and the real machine of several hosts against the ensemble in memory, in virtual time, with
//! faults: at every instant at most one tree lives; when the faults are over somebody leads; a host that is asked to stop
//! ends; no host asks without end.
//!
//! `SHELL_SEED=n cargo test --test shell` replays one script and prints what happened; `SHELL_SCRIPTS=n` sets how many are run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

mod guard;
mod host;
mod link;
#[allow(unused_imports, reason = "each suite uses its own part")]
#[path = "../memory/mod.rs"]
mod memory;
mod oracle;
mod script;
mod time;
mod translate;
mod wires;
mod world;

use std::time::Duration;

use script::Script;
use world::judge;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn never_do_two_trees_live_at_once_and_every_election_heals() {
    if let Some(seed) = number("SHELL_SEED") {
        let script = Script::draw(seed);
        println!("{script:#?}");
        let verdict = judge(&script, true);
        println!("{verdict:#?}");
        return assert_eq!(verdict.violation, None, "SHELL_SEED={seed} replays it");
    }
    let count = number("SHELL_SCRIPTS").unwrap_or(200);
    let (mut starts, mut busiest, mut healed, mut handed) =
        (0, (0, 0), (Duration::default(), 0), (Duration::default(), 0));
    let mut failed = Vec::new();
    for seed in 0..count {
        let verdict = judge(&Script::draw(seed), false);
        starts += verdict.starts;
        busiest = busiest.max((verdict.busiest, seed));
        healed = healed.max((verdict.healed_in, seed));
        handed = handed.max((verdict.handed_over_in, seed));
        if let Some(violation) = verdict.violation {
            println!("SHELL_SEED={seed} replays it: {violation}");
            failed.push(seed);
        }
    }
    println!(
        "{count} scripts, {starts} starts; (most, seed): requests {busiest:?}, healed {healed:?}, handed over {handed:?}"
    );
    assert!(failed.is_empty(), "{} of {count} scripts failed: {failed:?}", failed.len());
}

#[test]
fn a_script_is_replayed_exactly_by_its_seed() {
    for seed in 0..10 {
        let script = Script::draw(seed);
        assert_eq!(judge(&script, false), judge(&script, false), "seed {seed}");
    }
}
