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
use zk_leader_run::core::machine;
use zk_leader_run::guard::command::environment::Identity;
use zk_leader_run::observe::http;
use zk_leader_run::observe::waiting::Manner;
use zk_leader_run::supervisor::auxiliary::{self, Handles};
use zk_leader_run::supervisor::{self, Observers, SignalStream, SupervisorConfig};
use zk_leader_run::zookeeper;
use zk_leader_run::zookeeper::election::release_orphaned::{self, Orphaned};

use crate::guard::{self, Body, Guard, Temper};
use crate::link::Life;
use crate::memory::rng::Rng;
use crate::oracle::Oracle;
use crate::process::Process;
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
    pub temper: Temper,
    pub kernel_rate: u32,
}

/// A process that runs, as others may treat it.
pub struct Running {
    pub process: Arc<Process>,
    pub guard: Arc<Body>,
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

    /// The supervisor dies; its guard does not.
    pub fn crash(&self) {
        self.process.die();
        self.life.end();
        self.crashed.notify_one();
    }

    /// Nothing of it is left.
    pub fn vanish(&self) {
        self.guard.vanish();
        self.crash();
    }
}

/// Starts a process. The future is its life.
pub fn start(plan: Plan, wires: &Arc<Wires>, oracle: &Arc<Oracle>) -> (Rc<Running>, impl Future<Output = End> + use<>) {
    let Plan { process, machine, ensemble, temper, kernel_rate } = plan;
    let life = Life::new(wires, &process);
    let settings = zookeeper::Settings { access: life.access(), ..ensemble.clone() };
    let (signals, mut raised) = unbounded_channel();
    let of_guard = Process::new(process.host, process.instance, &process.clock, oracle);
    let (guard, body) = Guard::start(guard::Plan {
        oracle: Arc::clone(oracle),
        process: Arc::clone(&of_guard),
        temper,
        lease: ensemble.own_lease(ensemble.session_timeout),
        once: ensemble.once.as_ref().map(|once| format!("{:?}", once.per)),
        kernel_rate,
        rng: Rng::new(process.instance, 0x4755),
        release: Box::new(release(Arc::clone(wires), Arc::clone(oracle), Arc::clone(&process), ensemble)),
    });
    let running = Rc::new(Running {
        process: Arc::clone(&process),
        guard: body,
        id: settings.id.clone(),
        delayed_until: Cell::default(),
        signals,
        life,
        crashed: Notify::new(),
    });
    let config = config(&settings);
    let command = supervisor::guard_interface::Guard::Simulated(Box::new(guard));
    let (before_start, after_stop) = (None, None);
    let guards = Handles { command, hook: None, health: None, eligible: None, fence: None, before_start, after_stop };
    let signals = SignalStream::of(poll_fn(move |context| raised.poll_recv(context)));
    let supervised = process.task(supervisor::supervise(machine, settings, guards, signals, config));
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

/// Without hooks, checks and pages.
fn config(settings: &zookeeper::Settings) -> SupervisorConfig {
    let zookeeper::Settings { id, base, host, pid, .. } = settings.clone();
    let identity = Identity { id: id.clone(), path: base.clone() };
    let shown = http::Identity { name: "job".to_owned(), id, path: base, host, pid };
    SupervisorConfig {
        observers: Observers { identity: shown, manner: Manner::InLog, http: None, systemd: None },
        auxiliary: auxiliary::Settings {
            identity,
            hook: None,
            health: None,
            eligible: None,
            fence: None,
            before_start: None,
            after_stop: None,
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
