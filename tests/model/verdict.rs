//! What a test asks of a model: that it holds, or that a planted mistake breaks it.
//!
//! Never: a pass because too little was visited, unless the test's name says so.

use crate::check::{Hosts, Outcome, Seen, explore};
use crate::properties::{ALL, PROMISE, Property};
use crate::rules::Rules;
use crate::trace::trace;

/// No test of a whole model comes near it.
const EVERYTHING: usize = 100_000_000;

/// The states, in millions, after which an exploration that is not expected to end is cut: `MODEL_SIZE`.
fn bound() -> usize {
    let millions = std::env::var("MODEL_SIZE").ok().and_then(|size| size.parse::<usize>().ok());
    millions.unwrap_or(1) * 1_000_000
}

/// Every state that can be reached is visited, and in each the properties hold.
pub fn holds(rules: Rules) -> Seen {
    let (seen, whole) = examine(rules, EVERYTHING);
    assert!(whole, "not complete after {} states: {rules:?}", seen.states);
    seen
}

/// The properties hold in every state that is visited, which may not be all.
pub fn holds_within_bounds(rules: Rules) {
    examine(rules, bound());
}

/// What was seen, and whether that is all there is.
fn examine(rules: Rules, most: usize) -> (Seen, bool) {
    let (seen, whole) = match explore(&rules, Hosts::Interchangeable, &ALL, most) {
        Outcome::Complete(seen) => (seen, true),
        Outcome::Cut(seen) => (seen, false),
        Outcome::Broken { property, .. } => panic!("not \"{property}\": {rules:?}\n{}", way_to_break(&rules)),
    };
    let extent = if whole { "all" } else { "the first" };
    println!("{extent} {} states, {} steps deep: {rules:?}", seen.states, seen.depth);
    (seen, whole)
}

/// Where every host keeps its name.
fn way_to_break(rules: &Rules) -> String {
    match explore(rules, Hosts::Named, &ALL, EVERYTHING) {
        Outcome::Broken { way, .. } => trace(rules, &way),
        Outcome::Complete(_) | Outcome::Cut(_) => {
            "only if equal hosts are interchangeable: symmetry.rs is wrong".to_owned()
        }
    }
}

/// The planted mistake lets two trees live. The shortest way there is printed; on it, equal hosts may change their names.
pub fn breaks(rules: Rules) {
    match explore(&rules, Hosts::Interchangeable, &[PROMISE], EVERYTHING) {
        Outcome::Broken { property, seen, way } => {
            let states = seen.states;
            println!("not \"{property}\" after {} steps ({states} states):\n{}", way.len(), trace(&rules, &way));
        }
        Outcome::Complete(seen) | Outcome::Cut(seen) => {
            panic!("the mistake was not found in {} states: {rules:?}", seen.states)
        }
    }
}

/// Something happens, so that what is said of all states is not said of none.
pub fn happens(rules: Rules, never: Property) -> usize {
    match explore(&rules, Hosts::Named, &[never], EVERYTHING) {
        Outcome::Broken { way, .. } => {
            println!("{}:\n{}", never.name, trace(&rules, &way));
            way.len()
        }
        Outcome::Complete(seen) | Outcome::Cut(seen) => panic!("{} is true of {} states", never.name, seen.states),
    }
}
