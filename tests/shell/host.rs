//! One process of a host: the real supervisor over the ensemble in memory, beside a guard that is only thought of.

use std::cell::{Cell, RefCell};
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::stream::poll_fn;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;
use zk_leader_run::core::action::ExitReason;
use zk_leader_run::core::guard_messages::Grant;
use zk_leader_run::core::{health, machine};
use zk_leader_run::guard::command::environment::Identity;
use zk_leader_run::observe::http;
use zk_leader_run::observe::waiting::Manner;
use zk_leader_run::supervisor::auxiliary::{self, AuxiliaryCommand, Guards};
use zk_leader_run::supervisor::standstill::Memory;
use zk_leader_run::supervisor::{self, Observers, SignalStream, SupervisorConfig, upgrade};
use zk_leader_run::vouching::Network;
use zk_leader_run::zookeeper;
use zk_leader_run::zookeeper::election::release_orphaned::{self, Orphaned};
use zk_leader_run::zookeeper::schema::member::About;

use crate::guard::{self, Body, Descriptor, Guard, Part};
use crate::link::Life;
use crate::memory::rng::Rng;
use crate::oracle::Oracle;
use crate::process::Process;
use crate::script::{ASIDE_LIMIT, HostPlan, STAND_BACK};
use crate::time;
use crate::upgrade::{Executed, Installed, Program};
use crate::wires::Wires;

const SIGTERM: i32 = 15;

/// How a process ended.
#[derive(Debug)]
pub enum End {
    /// With what its next program has to know, if it executes one.
    Exit(ExitReason, Box<Memory>),
    Crashed,
}

/// What one process of a host is made of.
pub struct Plan {
    pub process: Arc<Process>,
    /// With `--vouch`.
    pub network: Option<Arc<dyn Network>>,
    pub machine: machine::Settings,
    pub ensemble: zookeeper::Settings,
    pub host: HostPlan,
    /// Of its process before a standstill.
    pub memory: Memory,
}

/// A process that runs, as others may treat it.
pub struct Running {
    pub process: Arc<Process>,
    /// That of the command first.
    guards: RefCell<Vec<Arc<Body>>>,
    pub id: String,
    /// What it executes when it is asked for an upgrade.
    pub installed: Cell<Program>,
    /// Until then it cannot end, whatever it is asked.
    delayed_until: Cell<Duration>,
    signals: UnboundedSender<i32>,
    /// Those that no program has read.
    raised: RefCell<UnboundedReceiver<i32>>,
    wires: Arc<Wires>,
    life: Life,
    crashed: Notify,
}

impl Running {
    /// SIGTERM. `limit`: how long it may take to end.
    pub fn terminate(&self, oracle: &Oracle, limit: Duration) {
        oracle.stop_requested(self.process.instance, self.delayed_until.get().max(time::elapsed()) + limit);
        self.signals.send(SIGTERM).ok();
    }

    /// This program is installed, and the supervisor is asked to execute it.
    pub fn upgrade(&self, program: Program) {
        self.installed.set(program);
        self.signals.send(libc::SIGRTMIN() + 1).ok();
    }

    /// `execve(2)`, but for what happens to the program that calls it. The next one takes so long to start.
    pub fn execute(&self, oracle: &Arc<Oracle>, length: Duration, session_timeout: Duration) {
        self.wires.note(|| format!("host {} executes another program", self.process.host));
        self.process.execute();
        self.life.end();
        self.delay(oracle, length);
        if let Some(command) = oracle.exchanged(self.process.instance) {
            let oracle = Arc::clone(oracle);
            tokio::task::spawn_local(async move {
                sleep(session_timeout).await;
                oracle.outlived(command);
            });
        }
    }

    /// It is stopped, or its command cannot be killed, for so long.
    pub fn delay(&self, oracle: &Oracle, length: Duration) {
        self.delayed_until.set(self.delayed_until.get().max(time::elapsed() + length));
        oracle.stop_delayed(self.process.instance, length);
    }

    pub fn guards(&self) -> Vec<Arc<Body>> {
        self.guards.borrow().clone()
    }

    /// One of them.
    pub fn guard(&self, number: usize) -> Arc<Body> {
        let guards = self.guards.borrow();
        Arc::clone(&guards[number % guards.len()])
    }

    pub fn processes(&self) -> Vec<Arc<Process>> {
        let guards = self.guards();
        std::iter::once(&self.process).chain(guards.iter().map(|guard| &guard.process)).cloned().collect()
    }

    /// The supervisor dies; its guards do not.
    pub fn crash(&self) {
        self.process.die();
        self.life.end();
        self.crashed.notify_one();
    }

    /// Nothing of it is left.
    pub fn vanish(&self) {
        self.guards().iter().for_each(|guard| guard.vanish());
        self.crash();
    }
}

/// One process, whichever program it executes.
struct Host {
    running: Rc<Running>,
    network: Option<Arc<dyn Network>>,
    machine: machine::Settings,
    ensemble: zookeeper::Settings,
    plan: HostPlan,
    memory: Memory,
    wires: Arc<Wires>,
    oracle: Arc<Oracle>,
}

/// How a program ends, and perhaps its process.
enum Ended {
    End(End),
    Executes(Executed),
}

/// Starts a process. The future is its life.
pub fn start(plan: Plan, wires: &Arc<Wires>, oracle: &Arc<Oracle>) -> (Rc<Running>, impl Future<Output = End> + use<>) {
    let Plan { process, network, machine, ensemble, host, memory } = plan;
    let life = Life::new(wires, &process);
    let ensemble = zookeeper::Settings { access: life.access(), ..ensemble };
    let (signals, raised) = unbounded_channel();
    let running = Rc::new(Running {
        process,
        guards: RefCell::default(),
        id: ensemble.id.clone(),
        installed: Cell::new(Program::GOOD),
        delayed_until: Cell::default(),
        signals,
        raised: RefCell::new(raised),
        wires: Arc::clone(wires),
        life,
        crashed: Notify::new(),
    });
    let (wires, oracle) = (Arc::clone(wires), Arc::clone(oracle));
    let this = Host { running: Rc::clone(&running), network, machine, ensemble, plan: host, memory, wires, oracle };
    (running, this.live())
}

impl Host {
    async fn live(self) -> End {
        let mut before = None;
        loop {
            let program = self.running.process.task(self.run(before));
            let ended = tokio::select! {
                biased;
                () = self.running.crashed.notified() => Ended::End(End::Crashed),
                ended = program => ended,
            };
            match ended {
                Ended::End(end) => return end,
                Ended::Executes(next) => before = Some(next),
            }
        }
    }

    async fn run(&self, before: Option<Executed>) -> Ended {
        let ((handles, guards), before) = match before {
            None => (self.start_guards(None), None),
            Some(executed) => {
                sleep(executed.program.starts_after).await;
                let Some((document, guard)) = executed.open(&self.machine) else { return Ended::End(End::Crashed) };
                (self.start_guards(Some(guard)), Some(document))
            }
        };
        let running = Rc::clone(&self.running);
        let signals = SignalStream::of(poll_fn(move |context| running.raised.borrow_mut().poll_recv(context)));
        // Drawn anew by each program.
        let instance = self.machine.instance + (u64::from(self.running.process.program()) << 52);
        let (machine, ensemble) = (machine::Settings { instance, ..self.machine }, self.ensemble.clone());
        let ensemble = zookeeper::Settings { instance, ..ensemble };
        let installed = Installed::new(&self.running, &self.oracle, &machine, ensemble.session_timeout, guards);
        let config = SupervisorConfig {
            network: self.network.clone(),
            memory: self.memory.clone(),
            ..config(&ensemble, &self.plan, upgrade::Plan::new(installed.settings(), before))
        };
        let supervised = supervisor::supervise(machine, ensemble, handles, signals, config);
        match AssertUnwindSafe(Box::pin(supervised)).catch_unwind().await {
            Ok(end) => {
                let (reason, memory) = end.expect("no sockets");
                Ended::End(End::Exit(reason, Box::new(memory)))
            }
            Err(panic) => Ended::Executes(Executed::caught(panic)),
        }
    }

    /// The guard of the command, or the one that an earlier program has left and one for the next command; and those of
    /// what runs around and beside it.
    fn start_guards(&self, left: Option<Guard>) -> (Guards<supervisor::guard_interface::Guard>, Vec<Descriptor>) {
        let host = &self.plan;
        let mut bodies = Vec::new();
        let mut keep = |guard: Guard| {
            bodies.push(guard.body());
            supervisor::guard_interface::Guard::Simulated(Box::new(guard))
        };
        let own = self.start_guard(Part::Command, None, 0);
        let (command, next) = match left {
            None => (own, None),
            Some(left) => (left, Some(own)),
        };
        let descriptors = [&command].into_iter().chain(&next).map(Guard::descriptor).collect();
        let (command, next) = (keep(command), next.map(&mut keep));
        let mut number = 0;
        let mut start = |part, most| {
            number += 1;
            keep(self.start_guard(part, most, number))
        };
        let mut aside = |is_there: bool| is_there.then(|| start(Part::Aside, None));
        let handles = Guards {
            command,
            next,
            hook: aside(host.has_hook),
            health: aside(host.has_health),
            eligible: aside(host.has_eligible),
            fence: None,
            before_start: host.steps.before_start.map(|most| start(Part::BeforeStart, Some(most))),
            after_stop: host.steps.after_stop.map(|most| start(Part::AfterStop, Some(most))),
        };
        *self.running.guards.borrow_mut() = bodies;
        (handles, descriptors)
    }

    fn start_guard(&self, part: Part, most: Option<Duration>, number: u64) -> Guard {
        let (Running { process, .. }, ensemble, oracle) = (&*self.running, &self.ensemble, &self.oracle);
        let number = u64::from(process.program()) << 8 | number;
        Guard::start(guard::Plan {
            part,
            most: most.unwrap_or(Duration::MAX),
            oracle: Arc::clone(oracle),
            process: Process::new(process.host, process.instance, &process.clock, oracle),
            temper: self.plan.temper,
            lease: ensemble.own_lease(ensemble.session_timeout),
            once: ensemble.once.as_ref().filter(|_| part == Part::Command).map(|once| format!("{:?}", once.per)),
            kernel_rate: self.plan.kernel_rate,
            rng: Rng::new(process.instance, 0x4755 + number),
            release: Box::new(release(
                Arc::clone(&self.wires),
                Arc::clone(oracle),
                Arc::clone(process),
                ensemble.clone(),
            )),
        })
    }
}

/// Without a fence command and pages.
fn config(settings: &zookeeper::Settings, host: &HostPlan, upgrade: upgrade::Plan) -> SupervisorConfig {
    let zookeeper::Settings { id, base, host: name, pid, .. } = settings.clone();
    let identity = Identity { id: id.clone(), path: base.clone() };
    let shown = http::Identity { name: "job".to_owned(), id, path: base, host: name, pid, about: About::default() };
    let command = |timeout| AuxiliaryCommand { command: String::new(), timeout };
    let aside = |is_there: bool| is_there.then(|| command(ASIDE_LIMIT));
    let health = health::Settings { interval: Duration::from_secs(2), failures: 2, grace: Duration::from_secs(1) };
    SupervisorConfig {
        observers: Observers { identity: shown, manner: Manner::InLog, http: None, systemd: None },
        auxiliary: auxiliary::Settings {
            identity,
            hook: aside(host.has_hook),
            health: aside(host.has_health).map(|check| (check, health)),
            eligible: aside(host.has_eligible).map(|check| (check, STAND_BACK)),
            fence: None,
            before_start: host.steps.before_start.map(command),
            after_stop: host.steps.after_stop.map(command),
        },
        preempt_after: None,
        network: None,
        upgrade: Some(upgrade),
        memory: Memory::default(),
    }
}

/// As the guard becomes the releaser.
fn release(wires: Arc<Wires>, oracle: Arc<Oracle>, of: Arc<Process>, settings: zookeeper::Settings) -> impl Fn(&Grant) {
    move |grant| {
        let process = Process::new(of.host, of.instance + (1 << 48), &of.clock, &oracle);
        let life = Life::new(&wires, &process);
        let settings = zookeeper::Settings { access: life.access(), instance: process.instance, ..settings.clone() };
        let (slot, token, session) = (grant.slot, grant.token, grant.session);
        let orphaned = Orphaned { slot, token, candidate: grant.candidate.as_str().to_owned(), session };
        let freeing = async move { release_orphaned::free_record(settings, &orphaned).await };
        tokio::task::spawn_local(process.task(async move { drop(freeing.await) }));
    }
}
