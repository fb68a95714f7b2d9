//! What a script's steps do to the world.

use zk_leader_run::core::action::PhaseName;
use zk_leader_run::core::event::{Event, Ineligibility};

use crate::clock::{MILLI, Real};
use crate::host::{Instance, Process, Weather};
use crate::requests::is_of;
use crate::script::{Fault, Target};
use crate::world::{Occurrence, World};

impl World {
    pub fn strike(&mut self, step: usize) {
        if self.healed {
            return;
        }
        let step = self.script.steps[step].clone();
        self.note(|| format!("fault: {:?} for {:?}", step.fault, step.target));
        match step.target {
            Target::Everyone => (0..self.hosts.len()).for_each(|host| self.befall(host, step.fault)),
            Target::Host(host) => self.befall(host, step.fault),
            Target::Holder => {
                let host = self.holder();
                self.befall(host, step.fault);
            }
            Target::Waiter => {
                if let Some(host) = self.waiter() {
                    self.befall(host, step.fault);
                }
            }
        }
    }

    fn holder(&self) -> usize {
        let running = self.instances.iter().find(|instance| instance.has_tree());
        let first = || {
            let candidate = self.ensemble.state().candidates.first()?;
            Some(self.instances.get(self.ensemble.sessions[candidate.owner].instance)?.host)
        };
        running.map(|instance| instance.host).or_else(first).unwrap_or(0)
    }

    fn waiter(&self) -> Option<usize> {
        let record = self.ensemble.state().record?;
        let waits = |instance: &Instance| instance.machine.phase() == PhaseName::Waiting;
        let mut holders = self.instances.iter().enumerate().filter(|(index, _)| is_of(record.nonce, *index));
        holders.find(|(_, instance)| waits(instance)).map(|(_, instance)| instance.host)
    }

    fn befall(&mut self, host: usize, fault: Fault) {
        let now = self.now;
        let Some(instance) = self.hosts[host].instance else { return };
        let weather = &mut self.hosts[host].weather;
        match fault {
            Fault::Cut(length) => self.cut(host, length),
            Fault::Slow(length, slowest) => {
                *weather = Weather { slow_until: now + length, slowest, ..*weather };
            }
            Fault::Lossy(length) => weather.lossy_until = now + length,
            Fault::Deaf(length) => weather.deaf_until = now + length,
            Fault::Blind(length) => weather.blind_until = now + length,
            Fault::Lag(length) => weather.lag_until = now + length,
            Fault::Sever(length) => weather.severed_until = now + length,
            Fault::SeverTowards(length) => weather.hears_nobody_until = now + length,
            Fault::Suspend(length) => self.suspend(host, length),
            Fault::DeleteElection => self.ensemble.delete_candidates(|_| true),
            Fault::DeleteRecord => self.ensemble.delete_record(),
            Fault::Ineligibility(bar, length) => {
                self.hosts[host].bars.push((bar, now + length));
                self.push(now + length, Occurrence::BarLifted { bar });
                self.tell(instance, Event::Ineligible { reason: bar, on: true }, 0);
            }
            Fault::Disable(length) => self.disable(length),
            Fault::Drain { lasts, force } => self.drain(host, lasts, force),
            Fault::HandOver { to, lasts } => self.order_handover(to, lasts),
            _ if now < self.hosts[host].suspended_until => {}
            _ => self.befall_process(instance, fault),
        }
    }

    fn befall_process(&mut self, instance: usize, fault: Fault) {
        match fault {
            Fault::ExpireSession => self.expire_session(instance),
            Fault::HangSupervisor(length) => self.hang_supervisor(instance, length),
            Fault::HangGuard(length) => self.hang_guard(instance, length),
            Fault::HangBoth(length) => {
                self.hang_supervisor(instance, length);
                self.hang_guard(instance, length);
            }
            Fault::CrashSupervisor => self.crash_supervisor(instance),
            Fault::LoseCheck => self.tell(instance, Event::CheckGone { stood_still: instance % 2 == 1 }, 0),
            Fault::KillGuard => self.guard_dies(instance, false),
            Fault::CommandEnds => {
                if let Some(tree) = self.instances[instance].tree {
                    let status = self.own_end(instance);
                    self.push(self.now, Occurrence::CommandEnds { instance, run: tree.run, status });
                }
            }
            Fault::RequestStop { twice } => {
                self.request_stop(instance);
                if twice {
                    self.request_stop(instance);
                }
            }
            Fault::Unkillable(length) => {
                let until = self.now + length;
                if let Some(tree) = self.instances[instance].tree.as_mut().filter(|tree| tree.lives()) {
                    tree.unkillable_until = until;
                }
            }
            Fault::Signal => self.tell(instance, Event::HungUp, 0),
            Fault::DeleteCandidate => {
                let session = self.instances[instance].client.and_then(|client| client.key);
                self.ensemble.delete_candidates(|candidate| Some(candidate.owner) == session);
            }
            _ => {}
        }
    }

    fn disable(&mut self, length: Real) {
        let (now, bar) = (self.now, Ineligibility::Disabled);
        for host in 0..self.hosts.len() {
            self.hosts[host].bars.push((bar, now + length));
            if let Some(instance) = self.hosts[host].instance {
                let delay = self.rng(instance).below(10 * MILLI);
                self.tell(instance, Event::Ineligible { reason: bar, on: true }, delay);
            }
        }
        self.push(now + length, Occurrence::BarLifted { bar });
    }

    pub fn bar_lifted(&mut self, bar: Ineligibility) {
        let now = self.now;
        for host in 0..self.hosts.len() {
            self.hosts[host].bars.retain(|(_, until)| now < *until);
            let lifted = self.hosts[host].bars.iter().all(|(other, _)| *other != bar);
            if let Some(instance) = self.hosts[host].instance.filter(|_| lifted) {
                self.tell(instance, Event::Ineligible { reason: bar, on: false }, 10 * MILLI);
            }
        }
    }

    /// A new process finds out what bars it.
    pub fn tell_bars(&mut self, instance: usize) {
        for (bar, _) in self.hosts[self.instances[instance].host].bars.clone() {
            self.tell(instance, Event::Ineligible { reason: bar, on: true }, 0);
        }
    }

    pub fn request_stop(&mut self, instance: usize) {
        self.instances[instance].stops_requested += 1;
        let delay = self.rng(instance).below(MILLI);
        self.tell(instance, Event::StopRequested, delay);
    }

    /// However early; the client learns of it at once, late, or when it reconnects.
    fn expire_session(&mut self, instance: usize) {
        let Some(client) = self.instances[instance].client else { return };
        let Some(session) = client.key else { return };
        self.close_session(session);
        let timeout = self.timeout_of(instance).as_nanos() as Real;
        let rng = self.rng(instance);
        let delay = if rng.chance(60) { rng.below(10 * MILLI) } else { rng.below(timeout * 2) };
        self.push(self.now + delay, Occurrence::Reconnects { instance, number: client.number });
    }

    fn hang_supervisor(&mut self, instance: usize, length: Real) {
        let this = &mut self.instances[instance];
        if this.supervisor != Process::Running {
            return;
        }
        this.supervisor = Process::Hung;
        if this.guard.process == Process::Dead {
            self.tree_is_gone(instance);
        }
        self.may_expire(instance);
        self.push(self.now + length, Occurrence::HangEnds { instance, supervisor: true });
    }

    fn crash_supervisor(&mut self, instance: usize) {
        if self.instances[instance].supervisor == Process::Dead {
            return;
        }
        self.note(|| format!("instance {instance} crashes"));
        self.supervisor_ends(instance);
        self.may_expire(instance);
    }

    fn suspend(&mut self, host: usize, length: Real) {
        let until = self.now + length;
        if self.now < self.hosts[host].suspended_until {
            return;
        }
        self.hosts[host].suspended_from = self.now;
        self.hosts[host].suspended_until = until;
        self.push(until, Occurrence::Resumes { host });
        for instance in 0..self.instances.len() {
            if self.instances[instance].host == host {
                self.may_expire(instance);
            }
        }
    }
}
