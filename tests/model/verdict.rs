//! What a test asks of a model: that it holds, or that a planted mistake breaks it.

use crate::check::{Outcome, Seen, explore};
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
    match explore(&rules, &ALL, EVERYTHING) {
        Outcome::Complete(seen) => {
            println!("complete: {} states, {} steps deep: {rules:?}", seen.states, seen.depth);
            seen
        }
        Outcome::Cut(seen) => panic!("not complete after {} states: {rules:?}", seen.states),
        Outcome::Broken { property, way, .. } => panic!("not \"{property}\": {rules:?}\n{}", trace(&rules, &way)),
    }
}

/// The properties hold in every state that is visited, which may not be all.
pub fn holds_within_bounds(rules: Rules) {
    match explore(&rules, &ALL, bound()) {
        Outcome::Complete(seen) => println!("complete: {} states, {} steps deep: {rules:?}", seen.states, seen.depth),
        Outcome::Cut(seen) => println!("cut: {} states, {} steps deep: {rules:?}", seen.states, seen.depth),
        Outcome::Broken { property, way, .. } => panic!("not \"{property}\": {rules:?}\n{}", trace(&rules, &way)),
    }
}

/// The planted mistake lets two trees live. The shortest way there is printed.
pub fn breaks(rules: Rules) {
    match explore(&rules, &[PROMISE], EVERYTHING) {
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
    match explore(&rules, &[never], EVERYTHING) {
        Outcome::Broken { way, .. } => {
            println!("{}:\n{}", never.name, trace(&rules, &way));
            way.len()
        }
        Outcome::Complete(seen) | Outcome::Cut(seen) => panic!("{} is true of {} states", never.name, seen.states),
    }
}
