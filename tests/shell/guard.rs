//! A guard: the real policy, over a command tree that is only thought of. Beside it the sentinel and the kernel's timer.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};
use zk_leader_run::core::guard_messages::{ChildStatus, Grant, Order, Report, Slot};
use zk_leader_run::guard::briefing::AuxiliaryCommand;
use zk_leader_run::guard::handle::upgrade::HandedOver;
use zk_leader_run::guard::policy::{CommandSignal, GuardAction, Input, Policy};
use zk_leader_run::supervisor::guard_interface::Simulated;

use crate::memory::rng::Rng;
use crate::oracle::{Instance, Oracle, Paused, Tree};
use crate::process::Process;
use crate::time;

const MILLI: u64 = 1_000;
/// The limit of G, the part of a lease that is set aside for the kill.
const SLACK_LONGEST: Duration = Duration::from_millis(100);
const SLACK_PER_LEASE: u32 = 40;
/// How often the guard looks whether what it killed is gone.
const LOOKED_EVERY: Duration = Duration::from_millis(5);

/// How commands behave.
#[derive(Clone, Copy, Debug)]
pub struct Temper {
    /// Percent that end by themselves within eight seconds.
    pub ends: u64,
    /// Percent that must be killed.
    pub ignores_stop: u64,
    /// Percent that take up to three seconds to execute.
    pub starts_slowly: u64,
}

/// What a guard runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Part {
    Command,
    /// Its tree may not live beside another, and not without the lease.
    BeforeStart,
    AfterStop,
    /// A hook or a check, which may live at any time.
    Aside,
}

/// What a guard is started with.
pub struct Plan {
    pub part: Part,
    /// How long one run of a step may take.
    pub most: Duration,
    pub oracle: Arc<Oracle>,
    pub process: Arc<Process>,
    pub temper: Temper,
    pub lease: Duration,
    /// Of `--slot`.
    pub once: Option<String>,
    /// The kernel's timer runs at this percentage of the real rate, from 90 to 110.
    pub kernel_rate: u32,
    pub rng: Rng,
    /// What becomes of a term whose supervisor was killed.
    pub release: Box<dyn Fn(&Grant)>,
}

/// What the kernel and the sentinel know of a guard and its tree.
pub struct Body {
    pub process: Arc<Process>,
    pub part: Part,
    most: Duration,
    oracle: Arc<Oracle>,
    rng: Mutex<Rng>,
    state: Mutex<State>,
    tree_ended: watch::Sender<()>,
    /// The kernel's timer was set.
    armed: Notify,
    once: Option<String>,
    slack: Duration,
}

#[derive(Default)]
struct State {
    task: Option<AbortHandle>,
    lives: bool,
    /// How many there were.
    trees: u64,
    is_killed: bool,
    /// SIGKILL cannot end its tree before.
    undying_until: Option<Instant>,
    lethal_at: Option<Instant>,
}

impl Body {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic under the lock")
    }

    fn key(&self) -> (Instance, Part) {
        (self.process.instance, self.part)
    }

    /// SIGKILL to the guard. The sentinel ends what it leaves.
    pub fn kill(self: &Arc<Self>) {
        if self.process.is_dead() {
            return;
        }
        self.process.die();
        self.state().task.iter().for_each(AbortHandle::abort);
        tokio::task::spawn_local(Arc::clone(self).end_tree());
    }

    /// The whole host is gone.
    pub fn vanish(&self) {
        self.process.die();
        let mut state = self.state();
        state.task.iter().for_each(AbortHandle::abort);
        state.undying_until = None;
        drop(state);
        self.tree_is_gone();
    }

    /// From now on SIGKILL has no effect on the tree, for at least so long.
    pub fn hold_in_the_kernel(&self, length: Duration) {
        let mut state = self.state();
        if state.lives {
            state.undying_until = state.undying_until.max(Some(Instant::now() + length));
            drop(state);
            self.oracle.set_unkillable(self.key(), time::elapsed() + length);
        }
    }

    /// SIGKILL works again.
    pub fn let_go(self: &Arc<Self>) {
        let mut state = self.state();
        let is_due = state.undying_until.take().is_some() && state.is_killed;
        drop(state);
        if is_due {
            tokio::task::spawn_local(Arc::clone(self).end_tree());
        }
    }

    /// SIGKILL to the whole tree.
    async fn end_tree(self: Arc<Self>) {
        let most = (self.slack.as_micros() as u64) / 4;
        let at = Instant::now() + Duration::from_micros(self.rng.lock().expect("no panic").below(most));
        let (tree, at) = {
            let mut state = self.state();
            state.is_killed = true;
            (state.trees, state.undying_until.map_or(at, |until| until.max(at)))
        };
        sleep_until(at).await;
        if self.state().trees == tree {
            self.tree_is_gone();
        }
    }

    fn tree_is_gone(&self) {
        let mut state = self.state();
        let lived = std::mem::take(&mut state.lives);
        (state.is_killed, state.undying_until) = (false, None);
        drop(state);
        // The guard that took its place has the same key.
        if lived {
            self.oracle.gone(self.key());
        }
        self.tree_ended.send_replace(());
    }

    /// The kernel's timer, which counts while the whole host stands still and kills when it goes on.
    async fn kernel_timer(self: Arc<Self>) {
        loop {
            let lethal_at = self.state().lethal_at;
            let expires = async {
                match lethal_at {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.armed.notified() => {}
                () = expires => self.expire().await,
            }
        }
    }

    async fn expire(self: &Arc<Self>) {
        self.oracle.moves(self.process.host).await;
        if self.state().lethal_at.is_some_and(|at| at <= Instant::now()) {
            self.state().lethal_at = None;
            self.kill();
        }
    }
}

/// The supervisor's end; when it is dropped, the guard knows that the supervisor is gone.
pub struct Guard {
    body: Arc<Body>,
    socket: Arc<Socket>,
}

struct Socket {
    orders: UnboundedSender<Order>,
    reports: Mutex<UnboundedReceiver<Report>>,
}

/// What stays open while the supervisor's process executes another program.
pub struct Descriptor(Arc<Body>, Weak<Socket>);

impl Descriptor {
    /// `None`: it was closed.
    pub fn open(&self) -> Option<Guard> {
        Some(Guard { body: Arc::clone(&self.0), socket: self.1.upgrade()? })
    }
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "guard of {:?}", self.body.key())
    }
}

impl Guard {
    pub fn start(plan: Plan) -> Self {
        let ((orders, ordered), (told, reports)) = (unbounded_channel(), unbounded_channel());
        let Plan { part, most, oracle, process, temper, lease, once, kernel_rate, mut rng, release } = plan;
        let body = Arc::new(Body {
            process: Arc::clone(&process),
            part,
            most,
            oracle,
            rng: Mutex::new(Rng::new(process.instance, rng.below(u64::from(u32::MAX)))),
            state: Mutex::default(),
            tree_ended: watch::Sender::new(()),
            armed: Notify::new(),
            once,
            slack: (lease / SLACK_PER_LEASE).min(SLACK_LONGEST),
        });
        let hand = Hand {
            body: Arc::clone(&body),
            temper,
            kernel_rate,
            rng,
            told,
            happenings: Vec::new(),
            is_stubborn: false,
            is_command_alive: false,
            release,
        };
        let task = tokio::task::spawn_local(process.task(hand.work(ordered))).abort_handle();
        body.state().task = Some(task);
        tokio::task::spawn_local(Arc::clone(&body).kernel_timer());
        let socket = Arc::new(Socket { orders, reports: Mutex::new(reports) });
        Self { body, socket }
    }

    pub fn descriptor(&self) -> Descriptor {
        Descriptor(Arc::clone(&self.body), Arc::downgrade(&self.socket))
    }

    pub fn body(&self) -> Arc<Body> {
        Arc::clone(&self.body)
    }
}

impl Simulated for Guard {
    fn send(&self, order: &Order) -> io::Result<()> {
        self.socket.orders.send(*order).map_err(|_| ErrorKind::BrokenPipe.into())
    }

    fn send_auxiliary(&self, command: &AuxiliaryCommand) -> io::Result<()> {
        let AuxiliaryCommand { run, deadlines, ref briefing } = *command;
        let number = |name: &str| {
            let variables = briefing.variables.iter().filter_map(|variable| variable.to_str().ok());
            variables.filter_map(|variable| variable.strip_prefix(name)).find_map(|value| value.parse::<i64>().ok())
        };
        let token = number("ZK_LEADER_TOKEN=").unwrap_or_default();
        let slot = Slot(number("ZK_LEADER_SLOT=").and_then(|slot| slot.try_into().ok()).unwrap_or_default());
        self.send(&Order::Start { run, deadlines, grant: Grant { token, slot, ..Grant::default() } })
    }

    fn hand_over(&mut self) -> Option<HandedOver> {
        let numbers = json!({
            "socket": 3, "guard": 2, "guard_pidfd": 4, "sentinel": 3, "containment": { "subreaper": { "why": "" } },
            "has_terminal": false, "born_with": [],
        });
        (!self.body.process.is_dead()).then(|| serde_json::from_value(numbers).expect("its layout"))
    }

    fn kill(&self) {
        self.body.kill();
    }

    fn recv(&mut self) -> LocalBoxFuture<'_, Option<Report>> {
        Box::pin(poll_fn(|context| self.socket.reports.lock().expect("no panic").poll_recv(context)))
    }

    fn end_orphans(&mut self) -> LocalBoxFuture<'_, ()> {
        self.body.kill();
        Box::pin(async {
            let mut ended = self.body.tree_ended.subscribe();
            while self.body.state().lives {
                drop(ended.changed().await);
            }
        })
    }

    fn dismiss(self: Box<Self>) -> LocalBoxFuture<'static, ()> {
        let Self { body, socket } = *self;
        let Socket { orders, reports } = Arc::into_inner(socket).expect("its process executes nothing else any more");
        drop(orders);
        Box::pin(async move {
            let mut reports = reports.into_inner().expect("no panic");
            while reports.recv().await.is_some() {}
            drop(body);
        })
    }
}

/// The guard's process.
struct Hand {
    body: Arc<Body>,
    temper: Temper,
    kernel_rate: u32,
    rng: Rng,
    told: UnboundedSender<Report>,
    happenings: Vec<(Instant, Input)>,
    is_stubborn: bool,
    is_command_alive: bool,
    release: Box<dyn Fn(&Grant)>,
}

impl Hand {
    async fn work(mut self, mut ordered: UnboundedReceiver<Order>) {
        let (mut policy, mut is_supervised) = (Policy::new(15), true);
        loop {
            self.arm(&policy);
            let now = self.body.process.clock.now().lease;
            let deadline = policy.sleep(now).map(|left| Instant::now() + self.body.process.clock.real(left));
            let happening = self.happenings.iter().map(|(at, _)| *at).min();
            let wake = async {
                match happening.into_iter().chain(deadline).min() {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let input = tokio::select! {
                biased;
                order = ordered.recv(), if is_supervised => {
                    is_supervised = order.is_some();
                    order.map_or(Input::SupervisorGone, Input::Ordered)
                }
                () = wake => self.happened(),
            };
            if self.play(&mut policy, input) {
                self.body.state().lethal_at = None;
                return;
            }
        }
    }

    fn arm(&self, policy: &Policy) {
        let left = policy.lethal_in(self.body.process.clock.now().lease);
        let real = |left| self.body.process.clock.real(left) * 100 / self.kernel_rate;
        self.body.state().lethal_at = left.map(|left| Instant::now() + real(left));
        self.body.armed.notify_one();
    }

    fn happened(&mut self) -> Input {
        let now = Instant::now();
        let due = self.happenings.iter().enumerate().filter(|(_, (at, _))| *at <= now).min_by_key(|(_, (at, _))| *at);
        let Some(due) = due.map(|(index, _)| index) else { return Input::Ticked };
        let (at, input) = self.happenings.remove(due);
        let survives = {
            let state = self.body.state();
            state.lives && (state.is_killed || state.undying_until.is_some_and(|until| until > now))
        };
        match input {
            Input::CommandEnded(_) | Input::TreeEmpty if survives => {
                self.happenings.push((at + LOOKED_EVERY, input));
                return Input::Surviving { survivors: 1 };
            }
            Input::CommandEnded(_) if !std::mem::take(&mut self.is_command_alive) => return Input::Ticked,
            Input::TreeEmpty => {
                self.happenings.clear();
                self.body.tree_is_gone();
            }
            _ => {}
        }
        input
    }

    /// Whether it was the last.
    fn play(&mut self, policy: &mut Policy, input: Input) -> bool {
        let now = self.body.process.clock.now().lease;
        if let Input::Ordered(Order::Extend { deadlines, .. }) = input {
            self.body.oracle.extended(self.body.key(), now, deadlines);
        }
        for step in policy.handle(now, input) {
            match step {
                GuardAction::Spawn(grant) => self.spawn(input, &grant),
                GuardAction::Signal(CommandSignal::Stop) => self.stop(),
                GuardAction::Signal(CommandSignal::Forwarded(_)) => {}
                GuardAction::Freeze => self.body.oracle.paused(self.body.key(), Paused::Frozen),
                GuardAction::Thaw => self.body.oracle.paused(self.body.key(), Paused::No),
                GuardAction::StopRest | GuardAction::KeepRest => self.soon(5, Input::TreeEmpty),
                GuardAction::KillTree => {
                    self.body.oracle.paused(self.body.key(), Paused::Ends);
                    tokio::task::spawn_local(Arc::clone(&self.body).end_tree());
                    let at = Instant::now() + LOOKED_EVERY;
                    self.happenings.push((at, Input::CommandEnded(ChildStatus::Signaled(9))));
                    self.happenings.push((at, Input::TreeEmpty));
                }
                GuardAction::Report(report) => {
                    self.told.send(report).ok();
                }
                GuardAction::Quit { release } => {
                    if let Some(grant) = release.iter().find(|_| self.body.part == Part::Command) {
                        (self.release)(grant);
                    }
                    return true;
                }
            }
        }
        false
    }

    fn spawn(&mut self, input: Input, grant: &Grant) {
        let Input::Ordered(Order::Start { deadlines, .. }) = input else { return };
        let (host, clock) = (self.body.process.host, Arc::clone(&self.body.process.clock));
        let mut tree = Tree::new(host, clock, grant, deadlines.kill_at, self.body.slack);
        tree.may_last(self.body.most);
        {
            let mut state = self.body.state();
            (state.lives, state.trees) = (true, state.trees + 1);
        }
        self.is_command_alive = true;
        if self.body.part != Part::Aside {
            self.body.oracle.spawned(self.body.key(), tree);
        }
        self.body.once.iter().for_each(|key| self.body.oracle.run_once(self.body.process.instance, key));
        self.is_stubborn = self.rng.chance(self.temper.ignores_stop);
        let is_slow = self.rng.chance(self.temper.starts_slowly);
        self.soon(if is_slow { 3_000 } else { 2 }, Input::Executed { pid: 1_000 });
        if self.body.part == Part::Command { self.live_on() } else { self.run_briefly() }
    }

    /// A command may end by itself.
    fn live_on(&mut self) {
        if self.rng.chance(self.temper.ends) && !self.body.oracle.is_calm() {
            let status = ChildStatus::Exited(u8::from(self.rng.chance(50)));
            self.soon(8_000, Input::CommandEnded(status));
        }
    }

    /// Any other one ends, soon or late, well or not, or hangs.
    fn run_briefly(&mut self) {
        let chance = if self.body.oracle.is_calm() { 0 } else { self.rng.below(100) };
        match chance {
            0..60 => self.soon(100, Input::CommandEnded(ChildStatus::Exited(0))),
            60..75 => self.soon(500, Input::CommandEnded(ChildStatus::Exited(1))),
            75..90 => self.soon(8_000, Input::CommandEnded(ChildStatus::Exited(0))),
            _ => {}
        }
    }

    fn stop(&mut self) {
        self.body.oracle.paused(self.body.key(), Paused::Ends);
        if !self.is_stubborn {
            self.soon(300, Input::CommandEnded(ChildStatus::Signaled(15)));
        }
    }

    fn soon(&mut self, most: u64, input: Input) {
        let at = Instant::now() + Duration::from_micros(self.rng.below(most * MILLI));
        self.happenings.push((at, input));
    }
}
