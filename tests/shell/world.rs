//! One run: hosts, wires and servers, what happens to them, and what is asked of them at last.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, LocalSet};
use tokio::time::{sleep, sleep_until};

use crate::guard::Temper;
use crate::host::{self, Blow, End, Plan};
use crate::memory::Ensemble;
use crate::memory::network::{Direction, Network};
use crate::oracle::Oracle;
use crate::script::{Fault, Script};
use crate::time::{self, Virtual};
use crate::wires::Wires;

/// What a run came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    pub violation: Option<String>,
    pub starts: u64,
    /// The most requests of one host in one second.
    pub busiest: u64,
    pub requests: u64,
    /// From the end of the faults until somebody led.
    pub healed_in: Duration,
    /// From the end of one tree until the next one started, after an orderly stop.
    pub handed_over_in: Duration,
    pub lasted: Duration,
}

/// A host asks no more than this in any second.
const BUSY: u64 = 200;
/// From the end of a tree that was stopped to the start of the next.
const HANDOVER: Duration = Duration::from_secs(1);

struct World {
    script: Script,
    wires: Arc<Wires>,
    oracle: Arc<Oracle>,
    blows: Vec<UnboundedSender<Blow>>,
    last_instance: Cell<u64>,
    is_healed: Cell<bool>,
    /// Processes are not started again.
    is_final: Cell<bool>,
    running: Cell<usize>,
}

pub fn judge(script: &Script, is_logged: bool) -> Verdict {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let _virtual = Virtual::begin();
        LocalSet::new().run_until(World::run(script.clone(), is_logged)).await
    })
}

impl World {
    async fn run(script: Script, is_logged: bool) -> Verdict {
        let network = Network::new(Ensemble::new(script.ensemble(), script.seed), script.latency, script.seed);
        let wires = Wires::new(network, script.servers, script.seed, is_logged);
        let carrier = tokio::spawn(Arc::clone(&wires).carry());
        let (blows, mut beaten): (Vec<_>, Vec<_>) = script.hosts.iter().map(|_| unbounded_channel()).unzip();
        let world = Rc::new(Self {
            wires,
            oracle: Oracle::new(),
            blows,
            last_instance: Cell::new(script.seed << 16),
            is_healed: Cell::new(false),
            is_final: Cell::new(false),
            running: Cell::new(0),
            script,
        });
        for (host, beaten) in beaten.drain(..).enumerate() {
            tokio::task::spawn_local(Rc::clone(&world).keep(host, beaten));
        }
        let strike = |(at, fault)| tokio::task::spawn_local(Rc::clone(&world).strike(at, fault)).abort_handle();
        let faults = world.script.faults.iter().cloned().map(strike).collect();
        let (healed_in, handed_over_in) = world.last_judgement(faults).await;
        carrier.abort();
        let (busiest, requests) =
            world.wires.with(|inner, _| (inner.asked.values().copied().max().unwrap_or(0), inner.asked.values().sum()));
        if busiest > BUSY {
            world.oracle.fail(&format!("{busiest} requests of one host in one second"));
        }
        let (violation, starts) = (world.oracle.violation(), world.oracle.starts());
        Verdict { violation, starts, busiest, requests, healed_in, handed_over_in, lasted: time::elapsed() }
    }

    /// As systemd would.
    async fn keep(self: Rc<Self>, host: usize, mut blows: UnboundedReceiver<Blow>) {
        while !self.is_final.get() {
            while blows.try_recv().is_ok() {}
            self.last_instance.set(self.last_instance.get() + 1);
            let (instance, plan) = (self.last_instance.get(), self.script.hosts[host]);
            let temper = if self.is_healed.get() { Temper { ends: 0, ..plan.temper } } else { plan.temper };
            let plan = Plan {
                host,
                instance,
                machine: self.script.machine(host, instance),
                ensemble: self.script.zookeeper(host, instance),
                temper,
                stop_limit: self.script.stop_limit(host),
            };
            self.running.set(self.running.get() + 1);
            let end = host::run(plan, &self.wires, &self.oracle, &mut blows).await;
            self.running.set(self.running.get() - 1);
            let after = self.script.hosts[host].restarts_after;
            sleep(if end == End::Crashed { after * 2 } else { after }).await;
        }
    }

    async fn strike(self: Rc<Self>, at: Duration, fault: Fault) {
        sleep_until(time::instant(at)).await;
        self.wires.note(|| format!("FAULT {fault:?}"));
        let length = self.begin(&fault);
        if length > Duration::ZERO {
            sleep(length).await;
            self.wires.note(|| format!("over: {fault:?}"));
            self.end(&fault);
        }
    }

    /// How long it lasts.
    #[expect(clippy::too_many_lines, reason = "one arm for each fault")]
    fn begin(&self, fault: &Fault) -> Duration {
        let servers = self.script.servers;
        self.wires.with(|inner, now| {
            let network = &mut inner.network;
            match *fault {
                Fault::Cut { host, server, way, length } => {
                    for server in (0..servers).filter(|one| server.is_none_or(|server| server == *one)) {
                        let ways = [Direction::Up, Direction::Down];
                        for way in ways.into_iter().filter(|one| way.is_none_or(|way| way == *one)) {
                            network.block(host, server, way, now);
                        }
                    }
                    length
                }
                Fault::Reset { host } => {
                    (0..servers).for_each(|server| network.reset(host, server, now));
                    Duration::ZERO
                }
                Fault::Lose { host, way } => {
                    (0..servers).for_each(|server| network.lose_next(host, server, way, now));
                    Duration::ZERO
                }
                Fault::Slow { host, latency, length } => {
                    (0..servers).for_each(|server| network.set_latency(host, server, [latency / 2, latency]));
                    length
                }
                Fault::ServerDown { server, length } => {
                    network.ensemble.kill(server, now);
                    length
                }
                Fault::ServerPaused { server, length } => {
                    network.ensemble.pause(server, now);
                    length
                }
                Fault::ServerIsolated { server, length } => {
                    network.ensemble.isolate(server, now);
                    length
                }
                Fault::ServerLags { server, lag, length } => {
                    network.ensemble.lag(server, lag, now);
                    length
                }
                Fault::NoQuorum { length } => {
                    (0..=servers / 2).for_each(|server| network.ensemble.kill(server, now));
                    length
                }
                Fault::Blow { host, blow } => {
                    if blow == Blow::PowerLoss {
                        (0..servers).for_each(|server| network.block(host, server, Direction::Up, now));
                    }
                    self.blows[host].send(blow).ok();
                    if blow == Blow::PowerLoss { self.script.hosts[host].restarts_after } else { Duration::ZERO }
                }
            }
        })
    }

    fn end(&self, fault: &Fault) {
        let servers = self.script.servers;
        self.wires.with(|inner, now| {
            let network = &mut inner.network;
            match *fault {
                Fault::Cut { host, .. } | Fault::Blow { host, .. } => {
                    (0..servers).for_each(|server| network.heal(host, server, now));
                }
                Fault::Slow { host, .. } => {
                    (0..servers).for_each(|server| network.set_latency(host, server, self.script.latency));
                }
                Fault::ServerDown { server, .. } => network.ensemble.start(server, now),
                Fault::ServerPaused { server, .. } => network.ensemble.resume(server, now),
                Fault::ServerIsolated { .. } => network.ensemble.heal(now),
                Fault::ServerLags { server, .. } => network.ensemble.lag(server, Duration::ZERO, now),
                Fault::NoQuorum { .. } => (0..servers).for_each(|server| network.ensemble.start(server, now)),
                Fault::Reset { .. } | Fault::Lose { .. } => {}
            }
        });
    }

    fn heal(&self) {
        self.is_healed.set(true);
        let servers = self.script.servers;
        self.wires.note(|| "all faults are over".to_owned());
        self.wires.with(|inner, now| {
            for server in 0..servers {
                let ensemble = &mut inner.network.ensemble;
                ensemble.start(server, now);
                ensemble.resume(server, now);
                ensemble.lag(server, Duration::ZERO, now);
                for host in 0..self.script.hosts.len() {
                    inner.network.heal(host, server, now);
                    inner.network.set_latency(host, server, self.script.latency);
                }
            }
            inner.network.ensemble.heal(now);
        });
    }

    async fn last_judgement(&self, faults: Vec<AbortHandle>) -> (Duration, Duration) {
        let (mut healed_in, mut handed_over_in) = (Duration::ZERO, Duration::ZERO);
        let (oracle, healed_at) = (&self.oracle, self.script.healed_at);
        oracle.watches(healed_at).await;
        faults.iter().for_each(AbortHandle::abort);
        self.heal();
        if !oracle.reaches(healed_at + self.script.heal_limit(), || oracle.leader().is_some()).await {
            oracle.fail("nobody leads though all faults are over");
        }
        healed_in += time::elapsed().saturating_sub(healed_at);
        oracle.watches(time::elapsed() + self.script.heal_limit()).await;
        oracle.reaches(time::elapsed() + self.script.heal_limit(), || oracle.leader().is_some()).await;
        if let (None, Some(leader)) = (oracle.violation(), oracle.leader()) {
            handed_over_in += self.hand_over(leader).await;
        }
        oracle.watches(time::elapsed() + self.script.heal_limit()).await;
        if oracle.violation().is_none() {
            self.stop_all().await;
        }
        (healed_in, handed_over_in)
    }

    /// The leader is asked to stop: another host leads soon.
    async fn hand_over(&self, leader: usize) -> Duration {
        let oracle = &self.oracle;
        self.wires.note(|| format!("host {leader} is asked to stop"));
        self.blows[leader].send(Blow::Sigterm).ok();
        let by = time::elapsed() + self.script.stop_limit(leader);
        oracle.reaches(by, || oracle.leader().is_none()).await;
        if oracle.leader().is_some() {
            return Duration::ZERO;
        }
        let ended = oracle.ended_at();
        let limit = HANDOVER + 30 * self.script.latency[1];
        if !oracle.reaches(ended + limit, || oracle.leader().is_some()).await {
            oracle.fail(&format!("nobody has taken over in {limit:?} after an orderly stop"));
        }
        oracle.started_at().saturating_sub(ended)
    }

    /// All are asked to stop: they end, and leave no session behind.
    async fn stop_all(&self) {
        let oracle = &self.oracle;
        self.wires.note(|| "all are asked to stop".to_owned());
        self.is_final.set(true);
        for blows in &self.blows {
            blows.send(Blow::Sigterm).ok();
        }
        let longest = (0..self.script.hosts.len()).map(|host| self.script.stop_limit(host)).max().unwrap_or_default();
        if !oracle.reaches(time::elapsed() + longest, || self.running.get() == 0).await {
            oracle.fail(&format!("{} processes live on", self.running.get()));
        }
        sleep(Duration::from_secs(1)).await;
        let sessions = self.wires.with(|inner, _| {
            let ensemble = &inner.network.ensemble;
            ensemble.leader().map(|leader| ensemble.sessions(leader).count())
        });
        if sessions != Some(0) {
            oracle.fail(&format!("{sessions:?} sessions are left open by processes that have ended"));
        }
    }
}
