//! A model in which nothing happens breaks no promise: here it is shown what does happen.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::mem::discriminant;

use crate::canon::tidy;
use crate::check::{Folding, Model};
use crate::moves::{KINDS, Move, take};
use crate::properties::Property;
use crate::rules::Rules;
use crate::symmetry::name_hosts;
use crate::verdict::{happens, holds};
use crate::world::{Role, World};

#[test]
fn a_command_starts_at_once_on_a_new_base() {
    let never = |rules: &Rules, world: &World| !rules.hosts().any(|host| world.is_live(host));
    let steps = happens(Rules::new([1, 2, 0]), Property { name: "no command runs", holds: never });
    assert_eq!(steps, 5, "read, take-over, applied, answer, start");
}

#[test]
fn a_successor_starts_after_a_holder_that_never_released() {
    let never = |rules: &Rules, world: &World| {
        let lapsed = |role| matches!(role, Role::Holding(tenure) if tenure.kill_at == Some(0));
        !rules.hosts().any(|host| world.is_live(host) && world.hosts.iter().any(|other| lapsed(other.role)))
    };
    happens(Rules::new([2, 2, 0]), Property { name: "no successor starts", holds: never });
}

#[test]
fn a_third_host_waits_for_the_longest_lease_of_a_chain() {
    let never = |_: &Rules, world: &World| {
        let waits = |host| world.tenure(host).is_some_and(|tenure| tenure.not_before == 3);
        !(world.is_live(0) && waits(1) && waits(2) && world.record.is_some_and(|record| record.lease == 3))
    };
    happens(Rules::new([3, 1, 1]), Property { name: "no chain is as long", holds: never });
}

/// All but the end of a tree: it leads to what would be if the tree had not started yet.
#[test]
fn every_kind_of_step_is_taken() {
    let mut taken = holds(Rules::new([1, 2, 0])).steps;
    taken.extend(holds(Rules::new([1, 1, 0]).with_deletions().with_late_writes(1)).steps);
    let not_taken: Vec<_> =
        KINDS.iter().filter(|kind| !matches!(kind, Move::End(_)) && !taken.contains(&discriminant(*kind))).collect();
    assert!(not_taken.is_empty(), "{not_taken:?}");
}

/// Every state that is reached without any bookkeeping is, after it, one of those that are reached with it.
#[test]
fn the_bookkeeping_hides_no_state() {
    let plain = Rules::new([1, 1, 0]).with_late_writes(1);
    for rules in [plain, plain.proposed(), Rules::new([1, 1, 0]).with_late_writes(0).with_deletions()] {
        hides_no_state(&rules, take, keep_books, |rules, world| world.late.retain(|write| !rules.is_dead(write)));
    }
}

fn keep_books(rules: &Rules, world: &mut World) {
    tidy(rules, world);
    name_hosts(rules, world);
}

/// `take` without any bookkeeping, all of it, and as little of it as keeps the states finite.
pub fn hides_no_state<M: Model<World: Eq>>(
    rules: &M,
    take: fn(&M, &mut M::World, M::Move),
    keep_books: fn(&M, &mut M::World),
    keep_finite: fn(&M, &mut M::World),
) {
    let with = reachable(rules, take, keep_books);
    let without = reachable(rules, take, keep_finite);
    println!("{} states, {} without bookkeeping", with.len(), without.len());
    assert_eq!(with.len(), holds(*rules).states, "no two fingerprints are equal");
    for mut world in without {
        keep_books(rules, &mut world);
        assert!(with.contains(&world), "{world:?}");
    }
}

type Worlds<M> = HashSet<<M as Model>::World, BuildHasherDefault<Folding>>;

fn reachable<M: Model<World: Eq>>(
    rules: &M,
    take: fn(&M, &mut M::World, M::Move),
    keep_books: fn(&M, &mut M::World),
) -> Worlds<M> {
    let mut found = Worlds::<M>::from_iter([rules.start()]);
    let mut open = vec![rules.start()];
    let mut steps = Vec::new();
    while let Some(world) = open.pop() {
        rules.moves(&world, &mut steps);
        for step in steps.drain(..) {
            let mut next = world.clone();
            take(rules, &mut next, step);
            keep_books(rules, &mut next);
            if found.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    found
}
