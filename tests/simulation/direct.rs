//! The network on which hosts vouch for one another: late, twice, in any order, or never.

use std::time::Duration;

use zk_leader_run::core::event::Event;
use zk_leader_run::core::vouching::{Question, Reply, Word};

use crate::clock::{MILLI, Real, SECOND};
use crate::host::Process;
use crate::rng::Rng;
use crate::script::{Fault, HostPlan, Step, Target, When};
use crate::world::World;

/// Draws who vouches, and outages that only promises survive.
pub fn draw(rng: &mut Rng, hosts: &mut [HostPlan], (longest, outage): (Real, Real)) -> Vec<Step> {
    let own_limits = rng.chance(20);
    let limit = |rng: &mut Rng| Some(Duration::from_nanos(2 * longest + rng.below(10 * longest + 2 * outage)));
    let common = limit(rng);
    for host in hosts.iter_mut() {
        let has_it = rng.chance(92);
        host.settings.vouch = if own_limits { limit(rng) } else { common }.filter(|_| has_it);
    }
    let mut steps =
        vec![Step { when: When::At(rng.below(4 * longest)), target: Target::Everyone, fault: Fault::Cut(outage) }];
    for _ in 0..rng.between(1, 4) {
        let when = When::At(rng.below(4 * longest + outage));
        let length = if rng.chance(30) { rng.below(longest) } else { rng.below(8 * longest) };
        let apart = rng.below(2 * longest);
        let fault = rng.pick(&[
            Fault::Cut(length),
            Fault::Cut(length),
            Fault::Sever(apart),
            Fault::SeverTowards(apart),
            Fault::CrashSupervisor,
            Fault::RequestStop { twice: false },
            Fault::Suspend(apart),
            Fault::CommandEnds,
            Fault::DeleteRecord,
        ]);
        let target = match fault {
            Fault::Cut(_) => Target::Everyone,
            Fault::CommandEnds => Target::Holder,
            _ => Target::Host(rng.below(hosts.len() as u64) as usize),
        };
        steps.push(Step { when, target, fault });
    }
    steps
}

/// The length of an outage of the whole ensemble: 0.1 to 100 leases, and as often short as long.
pub fn outage(rng: &mut Rng, lease: Real) -> Real {
    let magnitude = rng.pick(&[1, 1, 1, 1, 1, 10, 10, 10, 100]);
    rng.between(lease * magnitude / 10, lease * magnitude)
}

/// An answer that nobody gave: it names another question, or another term.
fn forged(rng: &mut Rng, reply: Reply) -> Reply {
    let other_token = Reply { token: reply.token + 1, promises: true, ..reply };
    rng.pick(&[Reply { seq: reply.seq + 1_000_000, promises: true, ..reply }, other_token])
}

impl World {
    pub fn asks_directly(&mut self, from: usize, to: u64, question: Question) {
        let to = to as usize - 1;
        self.carry(from, to, Event::Vouching(Word::Asked(question)));
    }

    pub fn replies_directly(&mut self, from: usize, reply: Reply) {
        self.carry(from, reply.leader as usize - 1, Event::Vouching(Word::Answered(reply)));
    }

    /// What follows an exit: three datagrams, of which any may be lost.
    pub fn says_gone(&mut self, from: usize) {
        for to in 0..self.instances.len() {
            self.carry(from, to, Event::Vouching(Word::Left { instance: from as u64 + 1 }));
        }
    }

    fn carry(&mut self, from: usize, to: usize, event: Event) {
        if to >= self.instances.len() || self.instances[to].supervisor == Process::Dead {
            return;
        }
        let hosts = [self.instances[from].host, self.instances[to].host];
        let now = self.now;
        let is_deaf = now < self.hosts[hosts[1]].weather.hears_nobody_until;
        let is_severed = is_deaf || hosts.iter().any(|host| now < self.hosts[*host].weather.severed_until);
        let is_lossy = hosts.iter().any(|host| now < self.hosts[*host].weather.lossy_until);
        let rng = &mut self.hosts[hosts[0]].rng;
        let lost = if is_lossy { 40 } else { 3 };
        if is_severed || rng.chance(lost) {
            return;
        }
        let mut copies = if rng.chance(5) { vec![event, event] } else { vec![event] };
        if let (Event::Vouching(Word::Answered(reply)), true) = (event, rng.chance(3)) {
            copies.push(Event::Vouching(Word::Answered(forged(rng, reply))));
        }
        for copy in copies {
            let rng = &mut self.hosts[hosts[0]].rng;
            let latest = rng.pick(&[SECOND, 6 * SECOND, 6 * SECOND, 60 * SECOND]);
            let late = if rng.chance(6) { rng.below(latest) } else { rng.below(2 * MILLI) };
            self.tell(to, copy, late);
        }
    }

    /// What a leader reads about those who could take over.
    pub fn tell_line(&mut self, instance: usize) {
        if self.instances[instance].settings.vouch.is_none() {
            return;
        }
        let state = self.ensemble.state();
        let line = self.ensemble.in_line(&state.candidates, state.record);
        let owners: Vec<usize> =
            line.iter().map(|candidate| self.ensemble.sessions[candidate.owner].instance).collect();
        // Safety does not depend on who is named: half of the scripts leave somebody out now and then.
        let forgets = self.script.seed % 4 > 1;
        let mut line = Vec::new();
        for owner in owners {
            let can_be_asked = owner != instance && self.instances[owner].settings.vouch.is_some();
            if can_be_asked && !(forgets && self.rng(instance).chance(25)) {
                line.push(owner as u64 + 1);
            }
        }
        let line = line.into_iter().collect();
        self.tell(instance, Event::Vouching(Word::Line(line)), 0);
    }
}
