//! Visits every state of a model, nearest first, and prints the way to the first one that breaks a property.
//!
//! Never: threads (the tests are many, and a counterexample is the same on every run).

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::mem::{self, Discriminant, discriminant};

use crate::properties::Property;

/// What can be explored: a start, and what may happen next.
pub trait Model: Copy + Debug + 'static {
    type World: Clone + Hash + Debug;
    type Move: Copy + PartialEq + Debug;
    /// What must hold in every state; the first is the promise.
    const PROPERTIES: &'static [Property<Self>];

    fn start(&self) -> Self::World;
    /// Appends every move that is possible.
    fn moves(&self, world: &Self::World, moves: &mut Vec<Self::Move>);
    fn after(&self, world: &Self::World, step: Self::Move) -> Self::World;
    /// Gives equal hosts their numbers by what they look like.
    fn name_hosts(&self, world: &mut Self::World);
    /// A way from the start, as it can be read.
    fn trace(&self, way: &[(Self::Move, Self::World)]) -> String;
}

/// A world that is led step by step; each step must be one that the model allows.
pub struct Story<M: Model> {
    pub rules: M,
    pub world: M::World,
}

impl<M: Model> Story<M> {
    pub fn of(rules: M) -> Self {
        Self { rules, world: rules.start() }
    }

    pub fn step(&mut self, step: M::Move) {
        assert!(self.is_possible(step), "{step:?} is not possible: {:?}", self.world);
        self.world = self.rules.after(&self.world, step);
    }

    pub fn is_possible(&self, step: M::Move) -> bool {
        let mut possible = Vec::new();
        self.rules.moves(&self.world, &mut possible);
        possible.contains(&step)
    }
}

/// What became of an exploration.
pub enum Outcome<M: Model> {
    /// Every state that can be reached was visited, and in each the properties hold.
    Complete(Seen<M>),
    /// So many were visited, and in each the properties hold.
    Cut(Seen<M>),
    /// One was found where this property does not hold; every step to it.
    Broken { property: &'static str, seen: Seen<M>, way: Way<M> },
}

/// Steps, each with what comes of it.
pub type Way<M> = Vec<(<M as Model>::Move, <M as Model>::World)>;

/// How much was seen.
pub struct Seen<M: Model> {
    pub states: usize,
    /// Steps from the start to the farthest of them.
    pub depth: usize,
    /// The kinds of steps that led to a state that was new.
    pub steps: HashSet<Discriminant<M::Move>>,
}

/// Whether worlds that differ only in the names of equal hosts are one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hosts {
    /// Each keeps its name, for a way that people read.
    Named,
    Interchangeable,
}

impl Hosts {
    fn after<M: Model>(self, rules: &M, world: &M::World, step: M::Move) -> M::World {
        let mut next = rules.after(world, step);
        if self == Self::Interchangeable {
            rules.name_hosts(&mut next);
        }
        next
    }
}

/// Visits at most about `most` states.
pub fn explore<M: Model>(rules: &M, hosts: Hosts, properties: &[Property<M>], most: usize) -> Outcome<M> {
    let start = rules.start();
    let mut parents = Parents::from_iter([(fingerprint(&start), 0)]);
    let mut layer = vec![start];
    let mut seen = Seen { states: 0, depth: 0, steps: HashSet::new() };
    let mut steps = Vec::new();
    while !layer.is_empty() && parents.len() <= most {
        let mut next = Vec::new();
        for world in &layer {
            let parent = fingerprint(world);
            rules.moves(world, &mut steps);
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
fn way_to<M: Model>(rules: &M, hosts: Hosts, parents: &Parents, last: u64) -> Way<M> {
    let prints = std::iter::successors(Some(last), |print| parents.get(print).copied().filter(|parent| *parent != 0));
    let prints: Vec<_> = prints.collect();
    let mut world = rules.start();
    let steps = prints.iter().rev().skip(1).map(|print| {
        let mut steps = Vec::new();
        rules.moves(&world, &mut steps);
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

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.state = fold(self.state ^ word, 0xa409_3822_299f_31d1);
    }

    #[inline]
    fn write_u8(&mut self, byte: u8) {
        self.word = self.word << 8 | u64::from(byte);
        self.bytes += 1;
        if self.bytes % 8 == 0 {
            let word = mem::take(&mut self.word);
            self.write_u64(word);
        }
    }

    /// Numbers of hosts and writes.
    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.write_u8(u8::try_from(word).unwrap());
    }

    /// Which variant it is.
    #[inline]
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
