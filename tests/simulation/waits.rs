//! How long nobody runs when those who come next lose their places while they wait.

use std::time::Duration;

use zk_leader_run::core::action::PhaseName;
use zk_leader_run::core::machine::Settings;
use zk_leader_run::core::settings::{Guarantee, Recipe, StepLimits};

use crate::clock::{MILLI, Real, SECOND};
use crate::script::{Fault, HostPlan, Mark, Script, Step, Target, When, tame};
use crate::world::World;

const LEASE: Real = 4 * SECOND;
/// When the holder loses its session, under a record that it has just renewed.
const LOST_AT: Real = 5 * SECOND;

/// So often, whoever waits loses its session after a second.
struct Chain {
    recipe: Recipe,
    hosts: usize,
    deaths: u32,
    /// With its session it loses its life.
    crashes: bool,
}

impl Chain {
    fn script(&self) -> Script {
        let drawn = (0..).map(|seed| Script::draw(seed, Guarantee::AtMostOne));
        let plans = drawn.flat_map(|script| script.hosts);
        let plan = plans
            .into_iter()
            .find(|host| host.session_timeout == Duration::from_secs(4) && !host.settings.wishes.is_shared)
            .unwrap();
        let plan = HostPlan {
            drift_ppm: 0,
            settings: Settings { steps: StepLimits::default(), vouch: None, ..tame(&plan) },
            restarted: false,
            priority: 0,
            preempt_after: None,
            ..plan
        };
        let mut steps = vec![Step { when: When::At(LOST_AT), target: Target::Holder, fault: Fault::ExpireSession }];
        for count in 1..=self.deaths {
            let when = When::After { mark: Mark::WaitBegan, count, delay: SECOND };
            steps.push(Step { when, target: Target::Waiter, fault: Fault::ExpireSession });
            if self.crashes {
                steps.push(Step { when, target: Target::Waiter, fault: Fault::CrashSupervisor });
            }
        }
        let hosts = vec![plan; self.hosts];
        let (recipe, guarantee) = (self.recipe, Guarantee::AtMostOne);
        Script { seed: 1, recipe, is_shared: false, guarantee, once: None, hosts, steps, healed_at: 60 * SECOND }
    }

    /// The second start comes when one wait is over.
    fn costs_one_wait(&self) {
        let mut world = World::new(&self.script(), true);
        world.run_until(LOST_AT - MILLI);
        assert_eq!(world.oracle.starts, 1, "{:?}", self.recipe);
        world.run_until(LOST_AT + LEASE + LEASE / 100 + SECOND / 4);
        let log = world.log.take().unwrap_or_default().join("\n");
        assert_eq!(world.oracle.violation, None);
        let waits = world.coverage.passages(PhaseName::Following, PhaseName::Waiting);
        assert!(waits > u64::from(self.deaths.min(3)), "{log}\nonly {waits} waits, {:?}", self.recipe);
        assert_eq!(world.oracle.starts, 2, "{log}\n{waits} waits, and nobody runs, {:?}", self.recipe);
    }
}

#[test]
fn one_wait_is_enough_however_many_successors_lose_their_sessions_in_it() {
    for recipe in [Recipe::Sequential, Recipe::Single] {
        Chain { recipe, hosts: 4, deaths: 30, crashes: false }.costs_one_wait();
    }
}

/// Whoever is behind the next two in line has not seen the record yet, and counts from when it does.
#[test]
fn one_wait_is_enough_though_the_successor_dies_in_it() {
    for recipe in [Recipe::Sequential, Recipe::Single] {
        Chain { recipe, hosts: 3, deaths: 1, crashes: true }.costs_one_wait();
    }
}

/// SIGTERM to the leader, whose tree survives SIGKILL: the lease runs out after `--stop-timeout`, and its place in line is given
/// away. Nothing is released before the tree is gone after all: the oracle sees to that.
#[test]
fn a_tree_that_survives_sigkill_costs_its_successor_the_stop_timeout_and_a_lease() {
    for recipe in [Recipe::Sequential, Recipe::Single] {
        let script = Chain { recipe, hosts: 2, deaths: 0, crashes: false }.script();
        let stop_timeout = script.hosts[0].settings.stop_timeout.as_nanos() as Real;
        let faults = [Fault::Unkillable(60 * SECOND), Fault::RequestStop { twice: false }];
        // The start is marked when it is ordered, and executed a millisecond later.
        let when = When::After { mark: Mark::Started, count: 1, delay: 2 * MILLI };
        let steps = faults.map(|fault| Step { when, target: Target::Holder, fault });
        let mut world = World::new(&Script { steps: steps.to_vec(), healed_at: 120 * SECOND, ..script }, true);
        world.run_until(stop_timeout + LEASE / 2);
        assert_eq!(world.oracle.starts, 1, "{recipe:?}: the lease runs");
        // Both started within a second; what survives SIGKILL is given one, too, and so is our place in line.
        world.run_until(SECOND + stop_timeout + LEASE + LEASE / 100 + 3 * SECOND);
        let log = world.log.take().unwrap_or_default().join("\n");
        assert_eq!((world.oracle.starts, &world.oracle.violation), (2, &None), "{log}\n{recipe:?}");
        assert!(!log.contains("=> Release"), "{log}\n{recipe:?}");
    }
}
