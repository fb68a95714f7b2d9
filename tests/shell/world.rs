//! One run: hosts, wires and servers, and what happens to them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::task::LocalSet;
use tokio::time::{sleep, sleep_until};
use zk_leader_run::core::action::ExitReason;
use zk_leader_run::supervisor::standstill::Memory;

use crate::direct::Air;
use crate::faults::Undo;
use crate::host::{self, End, Plan, Running};
use crate::judgement::Measured;
use crate::memory::Ensemble;
use crate::memory::network::Network;
use crate::oracle::{Instance, Oracle};
use crate::process::{Clock, Process};
use crate::script::Script;
use crate::strike::{Fault, Strike};
use crate::time::{self, Virtual};
use crate::wires::{Log, Wires};

/// What a run came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    pub violation: Option<String>,
    pub starts: u64,
    /// Upgrades in place, and the commands that lived through one.
    pub exchanges: (u64, u64),
    /// The most requests of one host in one second, beyond what its starts explain.
    pub busiest: u64,
    pub requests: u64,
    /// Between the hosts.
    pub datagrams: u64,
    /// The most steps of one process in one second.
    pub wakings: u32,
    pub measured: Measured,
    pub lasted: Duration,
    /// Of all that happened, if it was logged so.
    pub hash: u64,
}

/// A host asks no more than this in any second, beyond what the starts of its processes explain.
const BUSY: u64 = 200;

pub struct World {
    this: Weak<Self>,
    pub script: Script,
    pub wires: Arc<Wires>,
    pub air: Arc<Air>,
    pub oracle: Arc<Oracle>,
    clocks: Vec<Arc<Clock>>,
    /// By host.
    pub running: RefCell<Vec<Option<Rc<Running>>>>,
    /// The faults that last, and how each is ended.
    active: RefCell<BTreeMap<u64, Undo>>,
    last_instance: Cell<Instance>,
    /// How often an operator has enabled the election.
    pub enabled: Cell<u64>,
    /// Processes are not started again.
    pub is_final: Cell<bool>,
}

pub fn judge(script: &Script, log: Log) -> Verdict {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let _virtual = Virtual::begin();
        LocalSet::new().run_until(World::run(script.clone(), log)).await
    })
}

impl World {
    async fn run(script: Script, log: Log) -> Verdict {
        let network = Network::new(Ensemble::new(script.ensemble(), script.seed), script.latency, script.seed);
        let wires = Wires::new(network, script.servers, script.seed, log);
        let carrier = tokio::spawn(Arc::clone(&wires).carry());
        let world = Rc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            wires,
            air: Air::new(script.latency, script.weather, script.seed),
            oracle: Oracle::new(),
            clocks: script.hosts.iter().map(|host| Clock::new(host.drift_ppm)).collect(),
            running: RefCell::new(script.hosts.iter().map(|_| None).collect()),
            active: RefCell::default(),
            last_instance: Cell::new(script.seed << 16),
            enabled: Cell::new(0),
            is_final: Cell::new(false),
            script,
        });
        for host in 0..world.script.hosts.len() {
            tokio::task::spawn_local(Rc::clone(&world).keep(host));
        }
        let strike = |strike| tokio::task::spawn_local(Rc::clone(&world).strike(strike)).abort_handle();
        let strikes = world.script.strikes.iter().cloned().map(strike).collect();
        let measured = world.last_judgement(strikes).await;
        carrier.abort();
        world.verdict(measured)
    }

    fn verdict(&self, measured: Measured) -> Verdict {
        // Without the operators, who ask until they have their answer.
        let hosts = self.script.hosts.len();
        let (busiest, requests) = self.wires.with(|inner, _| inner.busiest(hosts));
        if busiest > BUSY {
            self.oracle.fail(&format!("{busiest} requests of one host in one second"));
        }
        let (violation, starts, wakings) = (self.oracle.violation(), self.oracle.starts(), self.oracle.wakings());
        let (exchanges, lasted, hash) = (self.oracle.exchanges(), time::elapsed(), self.wires.hash());
        let datagrams = self.air.sent();
        Verdict { violation, starts, exchanges, busiest, requests, datagrams, wakings, measured, lasted, hash }
    }

    pub fn this(&self) -> Rc<Self> {
        self.this.upgrade().expect("it runs")
    }

    pub fn next_instance(&self) -> Instance {
        self.last_instance.set(self.last_instance.get() + 1);
        self.last_instance.get()
    }

    /// As systemd would.
    async fn keep(self: Rc<Self>, host: usize) {
        let (mut is_started, mut memory) = (true, Memory::default());
        while !self.is_final.get() {
            self.oracle.moves(host).await;
            if is_started {
                self.wires.with(|inner, now| inner.start(host, now));
            }
            let (instance, plan) = (self.next_instance(), self.script.hosts[host]);
            let process = Process::new(host, instance, &self.clocks[host], &self.oracle);
            let plan = Plan {
                network: plan.vouch.map(|_| self.air.socket(&process)),
                process,
                machine: self.script.machine(host, instance),
                ensemble: self.script.zookeeper(host, instance),
                host: plan,
                memory: std::mem::take(&mut memory),
            };
            let (running, life) = host::start(plan, &self.wires, &self.oracle);
            self.running.borrow_mut()[host] = Some(running);
            let end = life.await;
            self.running.borrow_mut()[host] = None;
            self.air.close(host, instance);
            self.wires.note(|| format!("host {host}: {end:?}"));
            self.oracle.ended(instance);
            let after = self.script.hosts[host].restarts_after;
            is_started = !matches!(end, End::Exit(ExitReason::StoodStill, _));
            match end {
                End::Exit(ExitReason::StoodStill, known) => memory = *known,
                End::Exit(..) => sleep(after).await,
                End::Crashed => sleep(after * 2).await,
            }
        }
    }

    async fn strike(self: Rc<Self>, strike: Strike) {
        let Strike { at, is_at_leader, faults } = strike;
        sleep_until(time::instant(at)).await;
        let leader = self.oracle.leader().filter(|_| is_at_leader);
        let last = faults.into_iter().map(async |(after, mut fault)| {
            sleep(after).await;
            leader.into_iter().zip(fault.host()).for_each(|(leader, host)| *host = leader);
            self.befall(&fault).await;
        });
        join_all(last).await;
    }

    async fn befall(self: &Rc<Self>, fault: &Fault) {
        self.wires.note(|| format!("FAULT {fault:?}"));
        let Some((length, undo)) = self.begin(fault) else { return };
        let number = self.next_instance();
        self.active.borrow_mut().insert(number, undo);
        sleep(length.min(Duration::from_secs(86_400))).await;
        self.wires.note(|| format!("over: {fault:?}"));
        let undo = self.active.borrow_mut().remove(&number);
        if let Some(undo) = undo {
            undo(self);
        }
    }

    pub fn heal(&self) {
        self.oracle.calm();
        self.air.clear_up();
        self.wires.note(|| "all faults are over".to_owned());
        let active = std::mem::take(&mut *self.active.borrow_mut());
        for undo in active.into_values() {
            undo(self);
        }
        let running = self.running.borrow();
        running.iter().flatten().flat_map(|running| running.guards()).for_each(|guard| guard.let_go());
        drop(running);
        self.network(|network, now| {
            for server in 0..self.script.servers {
                network.ensemble.start(server, now);
                network.ensemble.resume(server, now);
                network.ensemble.lag(server, Duration::ZERO, now);
                for host in 0..self.script.hosts.len() {
                    network.heal(host, server, now);
                    network.set_latency(host, server, self.script.latency);
                }
            }
            network.ensemble.heal(now);
        });
    }

    /// SIGTERM, which must end the process in time.
    pub fn terminate(&self, host: usize) {
        let running = self.running.borrow();
        let Some(running) = &running[host] else { return };
        running.terminate(&self.oracle, self.script.stop_limit(host));
    }
}
