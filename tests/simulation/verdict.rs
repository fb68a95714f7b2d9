//! Runs a script to its end: the faults, the healing, and then every host in turn must be able to lead.

use zk_leader_run::core::action::PhaseName;

use crate::clock::{MILLI, Real, SECOND};
use crate::coverage::Coverage;
use crate::host::Process;
use crate::requests::is_of;
use crate::script::Script;
use crate::world::World;

#[derive(Debug)]
pub struct Verdict {
    pub violation: Option<String>,
    pub starts: u64,
    pub coverage: Coverage,
    pub log: Vec<String>,
}

pub fn judge(script: &Script, logged: bool) -> Verdict {
    let mut world = World::new(script, logged);
    world.run_until(script.healed_at);
    if world.oracle.violation.is_none() {
        world.heal();
        world.settles();
    }
    if world.oracle.violation.is_none() {
        world.everyone_leads_in_turn();
    }
    Verdict {
        violation: world.oracle.violation,
        starts: world.oracle.starts,
        coverage: world.coverage,
        log: world.log.unwrap_or_default(),
    }
}

impl World {
    fn longest_timeout(&self) -> Real {
        self.script.hosts.iter().map(|host| host.session_timeout.as_nanos() as Real).max().unwrap_or(0)
    }

    /// Exactly one tree, one candidate for each host, nothing left of the dead.
    fn settles(&mut self) {
        let longest = self.longest_timeout();
        // Far less than the longest pause under at-least-once: evidence of another leader must end it.
        let limit = self.now + 6 * longest + 40 * SECOND + 2 * self.script.longest_limit();
        // Every client finds out first what is left of its session.
        self.run_until(self.now + longest / 5 + 100 * MILLI);
        while self.oracle.violation.is_none() {
            if self.is_settled() {
                return;
            }
            if self.now >= limit {
                return self.fails_to_settle("not settled long after all faults were over");
            }
            self.run_until(self.now + 250 * MILLI);
        }
    }

    fn fails_to_settle(&mut self, text: &str) {
        let living = self.living();
        let phases: Vec<_> = living.iter().map(|&index| self.instances[index].machine.phase()).collect();
        let trees = self.instances.iter().filter(|instance| instance.has_tree()).count();
        let state = self.ensemble.state();
        let (candidates, record) = (&state.candidates, state.record);
        let text = format!("liveness: {text}: {living:?} {phases:?}, {trees} trees, {candidates:?}, {record:?}");
        self.oracle.fail(text);
    }

    fn living(&self) -> Vec<usize> {
        let lives = |&index: &usize| self.instances[index].supervisor != Process::Dead;
        (0..self.instances.len()).filter(lives).collect()
    }

    fn is_settled(&self) -> bool {
        let living = self.living();
        let phase = |index: usize| self.instances[index].machine.phase();
        let leading = living.iter().filter(|&&index| phase(index) == PhaseName::Leading).count();
        let following = living.iter().filter(|&&index| phase(index) == PhaseName::Following).count();
        let trees = self.instances.iter().filter(|instance| instance.has_tree()).count();
        let leads = |index: usize| phase(index) == PhaseName::Leading;
        let holder = living.iter().copied().find(|&index| leads(index));
        let record = self.ensemble.state().record.filter(|record| record.held);
        let expected =
            if self.script.recipe == zk_leader_run::core::settings::Recipe::Single { 1 } else { living.len() };
        let awake = self.hosts.iter().all(|host| host.suspended_until <= self.now);
        (leading, trees) == (1, 1)
            && awake
            && record.zip(holder).is_some_and(|(record, holder)| is_of(record.nonce, holder))
            && following + 1 == living.len()
            && (self.is_final || living.len() == self.hosts.len())
            && self.ensemble.state().candidates.len() == expected
            && living.iter().all(|&index| self.instances[index].awaited.is_none())
            && living.iter().all(|&index| self.instances[index].client.is_some_and(|client| client.key.is_some()))
    }

    /// Stops one leader after the other for good: whoever is stuck is found out.
    fn everyone_leads_in_turn(&mut self) {
        self.is_final = true;
        while self.oracle.violation.is_none() {
            let leader = self.living().into_iter().find(|&index| self.instances[index].has_tree());
            let Some(leader) = leader else { break };
            self.request_stop(leader);
            let limit = self.now + 25 * SECOND + 2 * self.longest_timeout() + 2 * self.script.longest_limit();
            loop {
                self.run_until(self.now + 50 * MILLI);
                let gone = !self.living().contains(&leader);
                if self.oracle.violation.is_some() || (gone && (self.living().is_empty() || self.is_settled())) {
                    break;
                }
                if self.now >= limit {
                    return self.fails_to_settle("no successor after a clean stop");
                }
            }
        }
        if self.oracle.violation.is_none() {
            self.nothing_is_left();
        }
    }

    fn nothing_is_left(&mut self) {
        // Sessions whose owners could not close them expire.
        self.run_until(self.now + 2 * self.longest_timeout());
        let state = self.ensemble.state();
        // Under at-least-once a run may end before the wait for the one before it is over.
        let may_be_held = self.abandoned || !self.is_at_most_once();
        let free = may_be_held || state.record.is_some_and(|record| !record.held);
        if !self.living().is_empty() || !state.candidates.is_empty() || !free {
            self.fails_to_settle("something is left after the last one was stopped");
        }
    }
}
