//! Visits every state of a model, nearest first, and prints the way to the first one that breaks a property.
//!
//! Never: threads (the tests are many, and a counterexample is the same on every run).

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::mem::{Discriminant, discriminant};

use crate::moves::{Move, after, moves};
use crate::properties::Property;
use crate::rules::Rules;
use crate::symmetry;
use crate::world::World;

/// What became of an exploration.
pub enum Outcome {
    /// Every state that can be reached was visited, and in each the properties hold.
    Complete(Seen),
    /// So many were visited, and in each the properties hold.
    Cut(Seen),
    /// One was found where this property does not hold; every step to it.
    Broken { property: &'static str, seen: Seen, way: Vec<(Move, World)> },
}

/// How much was seen.
#[derive(Default)]
pub struct Seen {
    pub states: usize,
    /// Steps from the start to the farthest of them.
    pub depth: usize,
    /// The kinds of steps that led to a state that was new.
    pub steps: HashSet<Discriminant<Move>>,
}

/// Whether worlds that differ only in the names of equal hosts are one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hosts {
    /// Each keeps its name, for a way that people read.
    Named,
    Interchangeable,
}

impl Hosts {
    fn after(self, rules: &Rules, world: &World, step: Move) -> World {
        let mut next = after(rules, world, step);
        if self == Self::Interchangeable {
            symmetry::name_hosts(rules, &mut next);
        }
        next
    }
}

/// Visits at most about `most` states.
pub fn explore(rules: &Rules, hosts: Hosts, properties: &[Property], most: usize) -> Outcome {
    let start = World::new();
    let mut parents = Parents::from_iter([(fingerprint(&start), 0)]);
    let mut layer = vec![start];
    let mut seen = Seen::default();
    let mut steps = Vec::new();
    while !layer.is_empty() && parents.len() <= most {
        let mut next = Vec::new();
        for world in &layer {
            let parent = fingerprint(world);
            moves(rules, world, &mut steps);
            for step in steps.drain(..) {
                let world = hosts.after(rules, world, step);
                let Entry::Vacant(place) = parents.entry(fingerprint(&world)) else { continue };
                place.insert(parent);
                seen.steps.insert(discriminant(&step));
                if let Some(broken) = properties.iter().find(|property| !(property.holds)(rules, &world)) {
                    seen.states = parents.len();
                    let way = way_to(rules, hosts, &parents, fingerprint(&world));
                    return Outcome::Broken { property: broken.name, seen, way };
                }
                next.push(world);
            }
        }
        layer = next;
        seen.depth += 1;
    }
    seen.states = parents.len();
    if layer.is_empty() { Outcome::Complete(seen) } else { Outcome::Cut(seen) }
}

/// From the start to the state with this fingerprint: back along the parents, then forth again.
fn way_to(rules: &Rules, hosts: Hosts, parents: &Parents, last: u64) -> Vec<(Move, World)> {
    let prints = std::iter::successors(Some(last), |print| parents.get(print).copied().filter(|parent| *parent != 0));
    let prints: Vec<_> = prints.collect();
    let mut world = World::new();
    let steps = prints.iter().rev().skip(1).map(|print| {
        let mut steps = Vec::new();
        moves(rules, &world, &mut steps);
        let mut tries = steps.into_iter().map(|step| (step, hosts.after(rules, &world, step)));
        let (step, next) = tries.find(|(_, next)| fingerprint(next) == *print).unwrap();
        world = next.clone();
        (step, next)
    });
    steps.collect()
}

/// States by their fingerprint, each with its parent's; 0 is the start's.
type Parents = HashMap<u64, u64, BuildHasherDefault<Identity>>;

/// 64 bits of a state. Among 30 million states two are taken for one with a probability of 1 : 40 000.
pub fn fingerprint(world: &impl Hash) -> u64 {
    let mut hasher = Folding::default();
    world.hash(&mut hasher);
    hasher.finish().max(1)
}

/// Multiplies eight bytes to 128 bits and folds them, as wyhash does.
pub struct Folding {
    state: u64,
    /// What is not folded in yet.
    word: u64,
    bytes: u32,
}

impl Default for Folding {
    fn default() -> Self {
        Self { state: 0x243f_6a88_85a3_08d3, word: 0, bytes: 0 }
    }
}

impl Hasher for Folding {
    fn finish(&self) -> u64 {
        fold(fold(self.state ^ self.word, 0xa409_3822_299f_31d1), 0x1319_8a2e_0370_7344)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u8(byte);
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.word = self.word << 8 | u64::from(byte);
        self.bytes += 1;
        if self.bytes % 8 == 0 {
            self.state = fold(self.state ^ self.word, 0xa409_3822_299f_31d1);
            self.word = 0;
        }
    }

    /// Numbers of hosts and writes.
    fn write_usize(&mut self, word: usize) {
        self.write_u8(u8::try_from(word).unwrap());
    }

    /// Which variant it is.
    fn write_isize(&mut self, word: isize) {
        self.write_usize(word.unsigned_abs());
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is wanted")]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    (product >> 64) as u64 ^ product as u64
}

/// A fingerprint needs no further hashing.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, print: u64) {
        self.0 = print;
    }
}
