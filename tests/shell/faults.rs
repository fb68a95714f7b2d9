//! What befalls hosts, links and servers.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;
use tokio::task::yield_now;

use crate::guard::Body;
use crate::host::Running;
use crate::memory::network::{Direction, Network};
use crate::memory::{Ensemble, SessionId, Time};
use crate::process::Process;
use crate::script::BASE;
use crate::strike::Fault;
use crate::world::World;

/// Ends a fault.
pub type Undo = Box<dyn FnOnce(&World)>;

impl World {
    /// How long it lasts, and how it is ended.
    pub fn begin(self: &Rc<Self>, fault: &Fault) -> Option<(Duration, Undo)> {
        match *fault {
            Fault::Delete { host } => {
                let candidates = self.network(|network, _| candidates_of(&network.ensemble, host));
                self.delete_all(candidates.into_iter().map(|(path, _)| path).collect());
                None
            }
            Fault::DeleteBelow { name } => {
                self.delete_all(vec![format!("{BASE}/{name}")]);
                None
            }
            Fault::Silence { .. } | Fault::Unheard { .. } => self.strike_air(fault),
            Fault::Stranger { length } => {
                let world = Rc::clone(self);
                let standing = tokio::task::spawn_local(async move { world.stand_in_line().await });
                Some((length, Box::new(move |_| standing.abort())))
            }
            Fault::Operator(act) => {
                let world = Rc::clone(self);
                let acting = tokio::task::spawn_local(async move { world.act(act).await });
                Some((Duration::MAX, Box::new(move |_| acting.abort())))
            }
            Fault::Sigterm { host }
            | Fault::Upgrade { host, .. }
            | Fault::Crash { host }
            | Fault::GuardDies { host, .. }
            | Fault::BothDie { host }
            | Fault::PowerLoss { host }
            | Fault::SupervisorStops { host, .. }
            | Fault::GuardStops { host, .. }
            | Fault::BothStop { host, .. }
            | Fault::HostStops { host, .. }
            | Fault::Suspend { host, .. }
            | Fault::Unkillable { host, .. } => {
                let running = self.running.borrow()[host].clone()?;
                self.strike_host(fault, &running)
            }
            _ => self.strike_network(fault),
        }
    }

    /// An operator deletes these znodes.
    fn delete_all(self: &Rc<Self>, paths: Vec<String>) {
        let world = Rc::clone(self);
        tokio::task::spawn_local(async move {
            join_all(paths.into_iter().map(|path| world.delete(path))).await;
        });
    }

    /// What hosts hear of one another directly.
    fn strike_air(&self, fault: &Fault) -> Option<(Duration, Undo)> {
        match *fault {
            Fault::Silence { host, other, length } => {
                self.air.silence(host, other);
                Some((length, Box::new(move |world| world.air.heal(host, other))))
            }
            Fault::Unheard { host, length } => {
                let others = 0..self.script.hosts.len();
                let ways = others.flat_map(move |other| [(host, other), (other, host)]);
                ways.clone().for_each(|(from, to)| self.air.silence(from, to));
                Some((length, Box::new(move |world| ways.for_each(|(from, to)| world.air.heal(from, to)))))
            }
            _ => None,
        }
    }

    fn strike_host(self: &Rc<Self>, fault: &Fault, running: &Rc<Running>) -> Option<(Duration, Undo)> {
        match *fault {
            Fault::Sigterm { host } => self.terminate(host),
            Fault::Upgrade { program, .. } => running.upgrade(program),
            Fault::Crash { .. } => running.crash(),
            Fault::GuardDies { guard, .. } => running.guard(guard).kill(),
            Fault::BothDie { .. } => {
                running.guards().iter().for_each(Body::kill);
                running.crash();
            }
            Fault::PowerLoss { host } => return Some(self.lose_power(host, running)),
            Fault::SupervisorStops { length, .. } => {
                return Some(self.stop(length, running, vec![Arc::clone(&running.process)]));
            }
            Fault::GuardStops { length, guard, .. } => {
                return Some(self.stop(length, running, vec![Arc::clone(&running.guard(guard).process)]));
            }
            Fault::BothStop { length, .. } => return Some(self.stop(length, running, running.processes())),
            Fault::HostStops { host, length } => return Some(self.stand_still(host, length, running, false)),
            Fault::Suspend { host, length } => return Some(self.stand_still(host, length, running, true)),
            Fault::Unkillable { length, .. } => {
                running.guards().iter().for_each(|guard| guard.hold_in_the_kernel(length));
                running.delay(&self.oracle, length);
            }
            _ => {}
        }
        None
    }

    fn lose_power(&self, host: usize, running: &Running) -> (Duration, Undo) {
        let servers = 0..self.script.servers;
        self.network(|network, now| servers.for_each(|server| network.block(host, server, Direction::Up, now)));
        running.vanish();
        let undo: Undo = Box::new(move |world| {
            let servers = 0..world.script.servers;
            world.network(|network, now| servers.for_each(|server| network.heal(host, server, now)));
        });
        (self.script.hosts[host].restarts_after, undo)
    }

    fn stop(&self, length: Duration, running: &Running, processes: Vec<Arc<Process>>) -> (Duration, Undo) {
        for process in &processes {
            process.stop();
        }
        running.delay(&self.oracle, length);
        let undo: Undo = Box::new(move |world| {
            for process in &processes {
                process.go_on();
            }
            world.wires.wake();
        });
        (length, undo)
    }

    fn stand_still(&self, host: usize, length: Duration, running: &Running, is_suspend: bool) -> (Duration, Undo) {
        let clock = Arc::clone(&running.process.clock);
        let since = clock.now().lease;
        self.oracle.set_still(host, true);
        let (_, go_on) = self.stop(length, running, running.processes());
        let undo: Undo = Box::new(move |world| {
            if is_suspend {
                clock.was_suspended(since.until(clock.now().lease));
            }
            world.oracle.set_still(host, false);
            let world = world.this();
            tokio::task::spawn_local(async move {
                // What the kernel's timer kills does not run again.
                for _ in 0..4 {
                    yield_now().await;
                }
                go_on(&world);
            });
        });
        (length, undo)
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each fault")]
    fn strike_network(&self, fault: &Fault) -> Option<(Duration, Undo)> {
        let servers = self.script.servers;
        self.network(|network, now| match *fault {
            Fault::Cut { host, server, way, length } => {
                for server in (0..servers).filter(|one| server.is_none_or(|server| server == *one)) {
                    let ways = [Direction::Up, Direction::Down];
                    for way in ways.into_iter().filter(|one| way.is_none_or(|way| way == *one)) {
                        network.block(host, server, way, now);
                    }
                }
                lasting(length, move |network, now| (0..servers).for_each(|server| network.heal(host, server, now)))
            }
            Fault::Reset { host } => {
                (0..servers).for_each(|server| network.reset(host, server, now));
                None
            }
            Fault::Expire { host } => {
                let sessions = candidates_of(&network.ensemble, host).into_iter().map(|(_, session)| session);
                sessions.for_each(|session| network.ensemble.end_session(session, now));
                None
            }
            Fault::Lose { host, way } => {
                (0..servers).for_each(|server| network.lose_next(host, server, way, now));
                None
            }
            Fault::Mute { host } => {
                (0..servers).for_each(|server| network.mute_next(host, server, now));
                None
            }
            Fault::Slow { host, latency, length } => {
                (0..servers).for_each(|server| network.set_latency(host, server, [latency / 2, latency]));
                let usual = self.script.latency;
                lasting(length, move |network, _| {
                    (0..servers).for_each(|server| network.set_latency(host, server, usual));
                })
            }
            Fault::ServerDown { server, length } => {
                network.ensemble.kill(server, now);
                lasting(length, move |network, now| network.ensemble.start(server, now))
            }
            Fault::ServerPaused { server, length } => {
                network.ensemble.pause(server, now);
                lasting(length, move |network, now| network.ensemble.resume(server, now))
            }
            Fault::ServerIsolated { server, length } => {
                network.ensemble.isolate(server, now);
                lasting(length, |network, now| network.ensemble.heal(now))
            }
            Fault::ServerLags { server, lag, length } => {
                network.ensemble.lag(server, lag, now);
                lasting(length, move |network, now| network.ensemble.lag(server, Duration::ZERO, now))
            }
            Fault::Outage { length } => {
                (0..servers).for_each(|server| network.ensemble.kill(server, now));
                lasting(length, move |network, now| {
                    (0..servers).for_each(|server| network.ensemble.start(server, now));
                })
            }
            Fault::NoQuorum { length } => {
                (0..=servers / 2).for_each(|server| network.ensemble.kill(server, now));
                lasting(length, move |network, now| {
                    (0..servers).for_each(|server| network.ensemble.start(server, now));
                })
            }
            _ => None,
        })
    }

    pub fn network<T>(&self, act: impl FnOnce(&mut Network, Time) -> T) -> T {
        self.wires.with(|inner, now| act(&mut inner.network, now))
    }
}

/// Paths and owners, as far as the servers' leader knows.
pub fn candidates_of(ensemble: &Ensemble, host: usize) -> Vec<(String, SessionId)> {
    let Some(leader) = ensemble.leader() else { return Vec::new() };
    let (tree, directory, id) = (ensemble.tree(leader), format!("{BASE}/election/"), format!("host{host}:"));
    let nodes = tree.paths().filter(|path| path.starts_with(&directory)).map(|path| (path, tree.node(path).unwrap()));
    let ours = nodes.filter(|(_, node)| String::from_utf8_lossy(&node.data).contains(&id));
    ours.map(|(path, node)| (path.clone(), node.owner)).collect()
}

/// The members' znodes and the history, as far as the servers' leader knows. A member's phase may have come back.
pub fn told(ensemble: &Ensemble) -> Vec<(String, Value)> {
    let Some(leader) = ensemble.leader() else { return Vec::new() };
    let (tree, members, history) = (ensemble.tree(leader), format!("{BASE}/members/"), format!("{BASE}/history"));
    let paths = tree.paths().filter(|path| path.starts_with(&members) || **path == history);
    let read = |path: &String| {
        let mut told: Value = serde_json::from_slice(&tree.node(path).unwrap().data).unwrap();
        told.as_object_mut().unwrap().remove("since");
        (path.clone(), told)
    };
    paths.map(read).collect()
}

#[expect(clippy::unnecessary_wraps, reason = "as the other faults")]
fn lasting(length: Duration, end: impl FnOnce(&mut Network, Time) + 'static) -> Option<(Duration, Undo)> {
    Some((length, Box::new(move |world| world.network(end))))
}
