//! Where nothing but the ensemble fails, and not for longer than the limit, the leader of before leads afterwards, and the
//! command has run on.

use std::time::Duration;

use zk_leader_run::core::action::PhaseName;
use zk_leader_run::core::settings::{Guarantee, Recipe, StepLimits};

use crate::clock::{MILLI, Real, SECOND};
use crate::direct::outage;
use crate::host::Instance;
use crate::number;
use crate::rng::Rng;
use crate::script::{Fault, HostPlan, Script, Step, Target, When, tame};
use crate::world::World;

const LEASE: Real = 4 * SECOND;
/// A command that ends by itself ends within this time.
const LONGEST_RUN: Real = 4 * SECOND;
/// Everybody is in line, and the leader knows them.
const CALM: Real = 4 * LEASE;
/// After the outage: sessions, candidates, and the next renewal.
const RETURN: Real = 4 * LEASE;

struct Story {
    script: Script,
    begins: Real,
    ends: Real,
    /// The outage is shorter than the limit, by the time that it takes to come back.
    is_lived_through: bool,
}

/// Hosts with any clocks, of which all vouch, and one outage.
fn draw(seed: u64) -> Option<Story> {
    let drawn = Script::draw(seed, Guarantee::AtMostOne);
    let rng = &mut Rng::new(seed, 5);
    let length = outage(rng, LEASE);
    let limit = rng.between(2 * LEASE, 3 * length + 4 * LEASE);
    let vouch = Some(Duration::from_nanos(limit));
    let tamed = |plan: HostPlan| HostPlan {
        settings: zk_leader_run::core::machine::Settings { steps: StepLimits::default(), vouch, ..tame(&plan) },
        session_timeout: Duration::from_nanos(LEASE),
        restarted: false,
        priority: 0,
        preempt_after: None,
        ..plan
    };
    let hosts: Vec<HostPlan> = drawn.hosts.into_iter().map(tamed).collect();
    if hosts.iter().any(|host| host.settings.wishes.is_shared) {
        return None;
    }
    let begins = CALM + rng.below(2 * LEASE);
    let ends = begins + length;
    let steps = vec![Step { when: When::At(begins), target: Target::Everyone, fault: Fault::Cut(length) }];
    let (recipe, guarantee) = (Recipe::Sequential, Guarantee::AtMostOne);
    let script = Script { seed, recipe, is_shared: false, guarantee, once: None, hosts, steps, healed_at: Real::MAX };
    Some(Story { script, begins, ends, is_lived_through: length + 2 * LEASE < limit })
}

fn leader(world: &World) -> Option<usize> {
    world.instances.iter().position(Instance::has_tree)
}

/// What is wrong, if anything; and whether the command had to run on.
fn judge(story: &Story, is_logged: bool) -> (Option<String>, bool, Vec<String>) {
    let mut world = World::new(&story.script, is_logged);
    world.run_until(story.begins - LONGEST_RUN);
    let before_calm = world.oracle.starts;
    world.run_until(story.begins - MILLI);
    let before = leader(&world);
    let starts = world.oracle.starts;
    let runs_for_good = before.is_some() && starts == before_calm;
    world.run_until(story.ends + RETURN);
    let after = leader(&world);
    let leads = after.is_some_and(|index| world.instances[index].machine.phase() == PhaseName::Leading);
    let went_on = leads && before == after && world.oracle.starts == starts;
    let wrong = match world.oracle.violation.take() {
        Some(violation) => Some(violation),
        None if story.is_lived_through && runs_for_good && !went_on => {
            Some(format!("the outage ended the command: {before:?} led before, {after:?} after it"))
        }
        None => None,
    };
    let was_judged = story.is_lived_through && runs_for_good;
    (wrong, was_judged, world.log.unwrap_or_default())
}

#[test]
fn where_nothing_but_the_ensemble_fails_the_same_leader_goes_on() {
    let seeds = number("SIM_SEED").map_or(0..number("SIM_OUTAGES").unwrap_or(300), |seed| seed..seed + 1);
    let (mut lived_through, mut stories) = (0, 0);
    for (seed, story) in seeds.filter_map(|seed| Some((seed, draw(seed)?))) {
        let (wrong, was_judged, _) = judge(&story, false);
        if let Some(wrong) = wrong {
            let (_, _, log) = judge(&story, true);
            panic!("{}\nSIM_SEED={seed} replays it: {wrong}", log.join("\n"));
        }
        lived_through += u64::from(was_judged);
        stories += 1;
    }
    println!("{lived_through} of {stories} outages were to be lived through");
    assert!(stories == 1 || lived_through * 4 > stories, "only {lived_through} of {stories}");
}
