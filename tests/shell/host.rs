//! One process of a host: the real supervisor over the ensemble in memory, beside a guard that is only thought of.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::poll_fn;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use zk_leader_run::core::action::ExitReason;
use zk_leader_run::core::guard_messages::Grant;
use zk_leader_run::core::{health, machine};
use zk_leader_run::guard::command::environment::Identity;
use zk_leader_run::observe::http;
use zk_leader_run::observe::waiting::Manner;
use zk_leader_run::supervisor::auxiliary::{self, AuxiliaryCommand, Handles};
use zk_leader_run::supervisor::{self, Observers, SignalStream, SupervisorConfig};
use zk_leader_run::zookeeper;
use zk_leader_run::zookeeper::election::release_orphaned::{self, Orphaned};
use zk_leader_run::zookeeper::schema::member::About;

use crate::guard::{self, Body, Guard, Part};
use crate::link::Life;
use crate::memory::rng::Rng;
use crate::oracle::Oracle;
use crate::process::Process;
use crate::script::{ASIDE_LIMIT, HostPlan, STAND_BACK};
use crate::time;
use crate::wires::Wires;

const SIGTERM: i32 = 15;

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Exit(ExitReason),
    Crashed,
}

/// What one process of a host is made of.
pub struct Plan {
    pub process: Arc<Process>,
    pub machine: machine::Settings,
    pub ensemble: zookeeper::Settings,
    pub host: HostPlan,
}

/// A process that runs, as others may treat it.
pub struct Running {
    pub process: Arc<Process>,
    /// That of the command first.
    pub guards: Vec<Arc<Body>>,
    pub id: String,
    /// Until then it cannot end, whatever it is asked.
    delayed_until: Cell<Duration>,
    signals: UnboundedSender<i32>,
    life: Life,
    crashed: Notify,
}

impl Running {
    /// SIGTERM. `limit`: how long it may take to end.
    pub fn terminate(&self, oracle: &Oracle, limit: Duration) {
        oracle.stop_requested(self.process.instance, self.delayed_until.get().max(time::elapsed()) + limit);
        self.signals.send(SIGTERM).ok();
    }

    /// It is stopped, or its command cannot be killed, for so long.
    pub fn delay(&self, oracle: &Oracle, length: Duration) {
        self.delayed_until.set(self.delayed_until.get().max(time::elapsed() + length));
        oracle.stop_delayed(self.process.instance, length);
    }

    pub fn processes(&self) -> Vec<&Arc<Process>> {
        std::iter::once(&self.process).chain(self.guards.iter().map(|guard| &guard.process)).collect()
    }

    /// The supervisor dies; its guards do not.
    pub fn crash(&self) {
        self.process.die();
        self.life.end();
        self.crashed.notify_one();
    }

    /// Nothing of it is left.
    pub fn vanish(&self) {
        self.guards.iter().for_each(|guard| guard.vanish());
        self.crash();
    }
}

/// That of the command, and those of what runs around and beside it.
fn start_guards(plan: &Plan, wires: &Arc<Wires>, oracle: &Arc<Oracle>) -> (Handles, Vec<Arc<Body>>) {
    let Plan { process, ensemble, host, .. } = plan;
    let mut bodies = Vec::new();
    let mut start = |part, most: Option<Duration>| {
        let (guard, body) = Guard::start(guard::Plan {
            part,
            most: most.unwrap_or(Duration::MAX),
            oracle: Arc::clone(oracle),
            process: Process::new(process.host, process.instance, &process.clock, oracle),
            temper: host.temper,
            lease: ensemble.own_lease(ensemble.session_timeout),
            once: ensemble.once.as_ref().filter(|_| part == Part::Command).map(|once| format!("{:?}", once.per)),
            kernel_rate: host.kernel_rate,
            rng: Rng::new(process.instance, 0x4755 + bodies.len() as u64),
            release: Box::new(release(Arc::clone(wires), Arc::clone(oracle), Arc::clone(process), ensemble.clone())),
        });
        bodies.push(body);
        supervisor::guard_interface::Guard::Simulated(Box::new(guard))
    };
    let aside = |is_there: bool| is_there.then_some(Part::Aside);
    let handles = Handles {
        command: start(Part::Command, None),
        hook: aside(host.has_hook).map(|part| start(part, None)),
        health: aside(host.has_health).map(|part| start(part, None)),
        eligible: aside(host.has_eligible).map(|part| start(part, None)),
        fence: None,
        before_start: host.steps.before_start.map(|most| start(Part::BeforeStart, Some(most))),
        after_stop: host.steps.after_stop.map(|most| start(Part::AfterStop, Some(most))),
    };
    (handles, bodies)
}

/// Starts a process. The future is its life.
pub fn start(plan: Plan, wires: &Arc<Wires>, oracle: &Arc<Oracle>) -> (Rc<Running>, impl Future<Output = End> + use<>) {
    let (handles, guards) = start_guards(&plan, wires, oracle);
    let Plan { process, machine, ensemble, host } = plan;
    let life = Life::new(wires, &process);
    let settings = zookeeper::Settings { access: life.access(), ..ensemble };
    let (signals, mut raised) = unbounded_channel();
    let config = config(&settings, &host);
    let running = Rc::new(Running {
        process: Arc::clone(&process),
        guards,
        id: settings.id.clone(),
        delayed_until: Cell::default(),
        signals,
        life,
        crashed: Notify::new(),
    });
    let signals = SignalStream::of(poll_fn(move |context| raised.poll_recv(context)));
    let supervised = process.task(supervisor::supervise(machine, settings, handles, signals, config));
    let this = Rc::clone(&running);
    let life = async move {
        tokio::select! {
            biased;
            () = this.crashed.notified() => End::Crashed,
            reason = supervised => End::Exit(reason.expect("no sockets")),
        }
    };
    (running, life)
}

/// Without a fence command and pages.
fn config(settings: &zookeeper::Settings, host: &HostPlan) -> SupervisorConfig {
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
        upgrade: None,
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
