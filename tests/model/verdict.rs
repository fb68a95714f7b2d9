//! What a test asks of a model: that it holds, or that a planted mistake breaks it.
//!
//! Never: a pass because too little was visited, unless the test's name says so.

use crate::check::{Hosts, Model, Outcome, Seen, explore};
use crate::properties::Property;

/// No test of a whole model comes near it.
const EVERYTHING: usize = 100_000_000;

/// The states after which an exploration that is not expected to end is cut: `MODEL_SIZE` million.
fn bound() -> usize {
    let millions = std::env::var("MODEL_SIZE").ok().and_then(|size| size.parse::<usize>().ok());
    millions.map_or(300_000, |millions| millions * 1_000_000)
}

/// Every state that can be reached is visited, and in each the properties hold.
pub fn holds<M: Model>(rules: M) -> Seen<M> {
    let (seen, whole) = examine(rules, EVERYTHING);
    assert!(whole, "not complete after {} states: {rules:?}", seen.states);
    seen
}

/// The properties hold in every state that is visited, which may not be all.
pub fn holds_within_bounds<M: Model>(rules: M) {
    examine(rules, bound());
}

/// What was seen, and whether that is all there is.
fn examine<M: Model>(rules: M, most: usize) -> (Seen<M>, bool) {
    let (seen, whole) = match explore(&rules, Hosts::Interchangeable, M::PROPERTIES, most) {
        Outcome::Complete(seen) => (seen, true),
        Outcome::Cut(seen) => (seen, false),
        Outcome::Broken { property, .. } => panic!("not \"{property}\": {rules:?}\n{}", way_to_break(&rules)),
    };
    let extent = if whole { "all" } else { "the first" };
    println!("{extent} {} states, {} steps deep: {rules:?}", seen.states, seen.depth);
    (seen, whole)
}

/// Where every host keeps its name.
fn way_to_break<M: Model>(rules: &M) -> String {
    match explore(rules, Hosts::Named, M::PROPERTIES, EVERYTHING) {
        Outcome::Broken { way, .. } => rules.trace(&way),
        Outcome::Complete(_) | Outcome::Cut(_) => {
            "only if equal hosts are interchangeable: symmetry.rs is wrong".to_owned()
        }
    }
}

/// The planted mistake lets two trees live. The shortest way there is printed; on it, equal hosts may change their names.
pub fn breaks<M: Model>(rules: M) -> usize {
    match explore(&rules, Hosts::Interchangeable, &M::PROPERTIES[..1], EVERYTHING) {
        Outcome::Broken { property, seen, way } => {
            let states = seen.states;
            println!("not \"{property}\" after {} steps ({states} states):\n{}", way.len(), rules.trace(&way));
            way.len()
        }
        Outcome::Complete(seen) | Outcome::Cut(seen) => {
            panic!("the mistake was not found in {} states: {rules:?}", seen.states)
        }
    }
}

/// Something happens, so that what is said of all states is not said of none.
pub fn happens<M: Model>(rules: M, never: Property<M>) -> usize {
    let name = never.name;
    match explore(&rules, Hosts::Named, &[never], EVERYTHING) {
        Outcome::Broken { way, .. } => {
            println!("{name}:\n{}", rules.trace(&way));
            way.len()
        }
        Outcome::Complete(seen) | Outcome::Cut(seen) => panic!("{name} is true of {} states", seen.states),
    }
}
