//! What vouching is for: outages of the ensemble that end nothing, and what still ends the command in time.

use std::time::Duration;

use zk_leader_run::core::action::PhaseName;
use zk_leader_run::core::machine::Settings;
use zk_leader_run::core::settings::{Guarantee, Recipe, StepLimits};

use crate::clock::{MILLI, Real, SECOND};
use crate::host::Instance;
use crate::script::{Fault, HostPlan, Script, Step, Target, When, tame};
use crate::world::World;

const LEASE: Real = 4 * SECOND;
/// When the ensemble, or what is told, goes away: everybody is in line, and in the roster.
const GONE_AT: Real = 10 * SECOND;
const LIMIT: Real = 20 * LEASE;

fn three_hosts(faults: &[(Real, Target, Fault)]) -> World {
    let drawn = (0..).map(|seed| Script::draw(seed, Guarantee::AtMostOne));
    let is_plain = |host: &HostPlan| host.session_timeout == Duration::from_secs(4) && !host.settings.wishes.is_shared;
    let plan = drawn.flat_map(|script| script.hosts).find(is_plain).unwrap();
    let settings = Settings { steps: StepLimits::default(), vouch: Some(Duration::from_nanos(LIMIT)), ..tame(&plan) };
    let plan = HostPlan { drift_ppm: 0, settings, restarted: false, priority: 0, preempt_after: None, ..plan };
    let step =
        |(at, target, fault): &(Real, Target, Fault)| Step { when: When::At(*at), target: *target, fault: *fault };
    let steps = faults.iter().map(step).collect();
    let (recipe, guarantee) = (Recipe::Sequential, Guarantee::AtMostOne);
    let hosts = vec![plan; 3];
    let healed_at = 1_000 * SECOND;
    let script = Script { seed: 1, recipe, is_shared: false, guarantee, once: None, hosts, steps, healed_at };
    World::new(&script, true)
}

fn leader(world: &World) -> Option<usize> {
    world.instances.iter().position(Instance::has_tree)
}

/// A follower's host.
fn standby(world: &mut World) -> usize {
    world.run_until(GONE_AT - 3 * SECOND);
    (0..3).find(|host| Some(*host) != leader(world).map(|index| world.instances[index].host)).unwrap()
}

/// The same script with one fault more, of a standby.
fn with_standby(faults: &[(Real, Target, Fault)], fault: (Real, Fault)) -> World {
    let standby = standby(&mut three_hosts(faults));
    let mut faults = faults.to_vec();
    faults.push((fault.0, Target::Host(standby), fault.1));
    three_hosts(&faults)
}

fn told(world: &mut World) -> String {
    world.log.take().unwrap_or_default().join("\n")
}

#[test]
fn an_outage_of_the_ensemble_ends_nothing_and_afterwards_the_same_term_goes_on() {
    let mut world = three_hosts(&[(GONE_AT, Target::Everyone, Fault::Cut(10 * LEASE))]);
    world.run_until(GONE_AT - MILLI);
    let before = leader(&world);
    world.run_until(GONE_AT + 9 * LEASE);
    assert_eq!(world.instances[before.unwrap()].machine.phase(), PhaseName::Vouched);
    world.run_until(GONE_AT + 10 * LEASE + 2 * LIMIT);
    let (starts, violation, after) = (world.oracle.starts, world.oracle.violation.take(), leader(&world));
    let phase = world.instances[before.unwrap()].machine.phase();
    let log = told(&mut world);
    assert_eq!((starts, violation, after, phase), (1, None, before, PhaseName::Leading), "{log}");
}

#[test]
fn beyond_the_limit_the_command_is_ended_though_everybody_promises() {
    let mut world = three_hosts(&[(GONE_AT, Target::Everyone, Fault::Cut(2 * LIMIT))]);
    world.run_until(GONE_AT + LIMIT - 2 * LEASE);
    assert!(leader(&world).is_some());
    world.run_until(GONE_AT + LIMIT);
    assert!(leader(&world).is_none());
    // The ensemble is back, and so is the command.
    world.run_until(GONE_AT + 4 * LIMIT);
    let (starts, violation) = (world.oracle.starts, world.oracle.violation.take());
    assert!(starts > 1 && violation.is_none(), "{violation:?} {}", told(&mut world));
}

#[test]
fn a_standby_that_dies_in_an_outage_ends_the_command_within_a_lease() {
    let outage = [(GONE_AT, Target::Everyone, Fault::Cut(10 * LEASE))];
    let mut world = with_standby(&outage, (GONE_AT + 3 * LEASE, Fault::CrashSupervisor));
    world.run_until(GONE_AT + 3 * LEASE - MILLI);
    assert!(leader(&world).is_some());
    world.run_until(GONE_AT + 4 * LEASE);
    let lives = leader(&world).is_some();
    assert!(!lives, "{}", told(&mut world));
}

#[test]
fn a_standby_that_leaves_in_an_outage_ends_nothing() {
    let outage = [(GONE_AT, Target::Everyone, Fault::Cut(10 * LEASE))];
    let mut world = with_standby(&outage, (GONE_AT + 3 * LEASE, Fault::RequestStop { twice: false }));
    world.run_until(GONE_AT + 15 * LEASE);
    let (starts, violation, lives) = (world.oracle.starts, world.oracle.violation.take(), leader(&world).is_some());
    assert_eq!((starts, violation, lives), (1, None, true), "{}", told(&mut world));
}

#[test]
fn a_leader_that_alone_is_cut_off_hands_over_in_three_leases_and_a_half() {
    let mut world = three_hosts(&[(GONE_AT, Target::Holder, Fault::Cut(100 * LEASE))]);
    world.run_until(GONE_AT - MILLI);
    let before = leader(&world);
    // Its session lives for a T and a half in this world, and whoever is first then is patient for two leases.
    world.run_until(GONE_AT + 9 * LEASE / 2);
    let (starts, violation, after) = (world.oracle.starts, world.oracle.violation.take(), leader(&world));
    let log = told(&mut world);
    assert_eq!((starts, violation), (2, None), "{log}");
    assert!(after.is_some() && after != before, "{log}");
}

/// A host restarts just after the leader alone was cut off. It has the highest priority, and no record names it.
#[test]
fn a_host_that_nobody_asked_lets_those_who_are_asked_replace_a_leader_that_alone_is_cut_off() {
    let cut_at = GONE_AT + 5 * LEASE;
    let cut = [(cut_at, Target::Holder, Fault::Cut(100 * LEASE))];
    let preferred = standby(&mut three_hosts(&cut));
    let mut world = with_standby(&cut, (GONE_AT, Fault::CrashSupervisor));
    world.run_until(cut_at + MILLI);
    let before = leader(&world).unwrap();
    world.script.hosts[preferred].priority = 5;
    let settings = world.instances[before].settings;
    world.start_instance(preferred, &settings);
    world.run_until(cut_at + 7 * LEASE);
    let (starts, violation, after) = (world.oracle.starts, world.oracle.violation.take(), leader(&world));
    let log = told(&mut world);
    assert_eq!((starts, violation), (2, None), "{log}");
    let host = after.map(|index| world.instances[index].host);
    assert!(
        host.is_some_and(|host| host != preferred && host != world.instances[before].host),
        "{host:?} leads: {log}"
    );
}

#[test]
fn a_host_that_joined_in_an_outage_waits_for_the_limit_and_the_rest_of_the_hosts_do_not() {
    // All that vouched are killed in an outage: who comes after them is named by no record.
    let faults = [
        (GONE_AT, Target::Everyone, Fault::Cut(2 * LEASE)),
        (GONE_AT + LEASE, Target::Everyone, Fault::CrashSupervisor),
    ];
    let mut world = three_hosts(&faults);
    world.run_until(GONE_AT + 2 * LEASE);
    assert!(leader(&world).is_none());
    let settings = world.instances[0].settings;
    world.start_instance(0, &settings);
    world.run_until(GONE_AT + LIMIT);
    assert_eq!(world.oracle.starts, 1);
    world.run_until(GONE_AT + LIMIT + 4 * LEASE);
    // A command that ends by itself is started once more.
    let (starts, violation) = (world.oracle.starts, world.oracle.violation.take());
    assert!(starts > 1 && violation.is_none(), "{starts} starts, {violation:?}: {}", told(&mut world));
}
