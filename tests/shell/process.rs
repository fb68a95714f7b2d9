//! A process of a host: its tasks run only while it runs, and read the clock of its host.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use zk_leader_run::background::Task;
use zk_leader_run::core::time::{Now, Sighting, Timestamp};

use crate::oracle::{Instance, Oracle};
use crate::time;

/// What the hosts' clocks show at the start.
const OFFSET: Duration = Duration::from_secs(1_000);
const MILLION: i128 = 1_000_000;

thread_local! {
    static CURRENT: RefCell<Option<Arc<Process>>> = const { RefCell::new(None) };
}

/// The clocks of a host. They run at a constant rate; in suspend the successor's clock stands still.
#[derive(Debug)]
pub struct Clock {
    drift_ppm: i128,
    suspended: Mutex<Duration>,
}

impl Clock {
    pub fn new(drift_ppm: i64) -> Arc<Self> {
        Arc::new(Self { drift_ppm: drift_ppm.into(), suspended: Mutex::default() })
    }

    pub fn now(&self) -> Now {
        let real = (OFFSET + time::elapsed()).as_nanos() as i128;
        let shown = (real + real * self.drift_ppm / MILLION) as u64;
        let suspended = self.suspended.lock().expect("no panic").as_nanos() as u64;
        Now { lease: Timestamp::from_nanos(shown), observer: Sighting::from_nanos(shown - suspended) }
    }

    pub fn was_suspended(&self, length: Duration) {
        *self.suspended.lock().expect("no panic") += length;
    }

    /// The real time that passes while it shows this much.
    pub fn real(&self, shown: Duration) -> Duration {
        let nanos = shown.as_nanos() as i128;
        Duration::from_nanos((nanos - nanos * self.drift_ppm / MILLION) as u64)
    }
}

#[derive(Debug, Default)]
struct State {
    wakers: Vec<Waker>,
    /// When it ran last, and how often at that moment.
    ran: (Duration, u32),
    /// How often it ran in this second.
    second: (u64, u32),
}

/// More steps than this at one instant are a busy loop.
const IMPATIENCE: u32 = 10_000;

#[derive(Debug)]
pub struct Process {
    pub host: usize,
    pub instance: Instance,
    pub clock: Arc<Clock>,
    oracle: Arc<Oracle>,
    /// How many things stop it at present.
    stops: AtomicU32,
    is_dead: AtomicBool,
    /// How many programs it has executed in the place of its first one.
    programs: AtomicU32,
    state: Mutex<State>,
}

impl Process {
    pub fn new(host: usize, instance: Instance, clock: &Arc<Clock>, oracle: &Arc<Oracle>) -> Arc<Self> {
        let (clock, oracle) = (Arc::clone(clock), Arc::clone(oracle));
        let (stops, is_dead, programs) = (AtomicU32::new(0), AtomicBool::new(false), AtomicU32::new(0));
        Arc::new(Self { host, instance, clock, oracle, stops, is_dead, programs, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic under the lock")
    }

    /// SIGSTOP.
    pub fn stop(&self) {
        self.stops.fetch_add(1, Ordering::Relaxed);
    }

    /// SIGCONT.
    pub fn go_on(&self) {
        if self.stops.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.state().wakers.drain(..).for_each(Waker::wake);
        }
    }

    /// SIGKILL: nothing of it runs any more.
    pub fn die(&self) {
        self.is_dead.store(true, Ordering::Relaxed);
    }

    /// `execve(2)`: nothing of the program before runs any more.
    pub fn execute(&self) {
        self.programs.fetch_add(1, Ordering::Relaxed);
    }

    pub fn program(&self) -> u32 {
        self.programs.load(Ordering::Relaxed)
    }

    pub fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }

    pub fn is_stopped(&self) -> bool {
        self.stops.load(Ordering::Relaxed) > 0
    }

    /// A task of the program that this process executes now. Without its type: the compiler would write code for each.
    pub fn task<'a, T>(self: &Arc<Self>, inner: impl Future<Output = T> + 'a) -> Scoped<LocalBoxFuture<'a, T>> {
        self.scope(Box::pin(inner))
    }

    fn scope<F>(self: &Arc<Self>, inner: F) -> Scoped<F> {
        Scoped { process: Arc::clone(self), program: self.program(), inner }
    }

    fn may_run(&self, program: u32, waker: &Waker) -> bool {
        if self.is_dead() || program != self.program() {
            return false;
        }
        let mut state = self.state();
        if self.is_stopped() {
            state.wakers.push(waker.clone());
            return false;
        }
        let now = time::elapsed();
        let (at, times) = state.ran;
        state.ran = if at == now { (at, times + 1) } else { (now, 0) };
        if times > IMPATIENCE {
            drop(state);
            self.die();
            self.oracle.fail(&format!("a process of host {} runs for ever at one instant", self.host));
            return false;
        }
        let (second, steps) = state.second;
        state.second = if second == now.as_secs() { (second, steps + 1) } else { (now.as_secs(), 1) };
        let steps = state.second.1;
        drop(state);
        if steps % 100 == 0 {
            self.oracle.ran(self.host, steps);
        }
        true
    }
}

/// A future of a process.
pub struct Scoped<F> {
    process: Arc<Process>,
    program: u32,
    inner: F,
}

impl<F: Future + Unpin> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        if !self.process.may_run(self.program, context.waker()) {
            return Poll::Pending;
        }
        let before = CURRENT.replace(Some(Arc::clone(&self.process)));
        let polled = Pin::new(&mut self.inner).poll(context);
        CURRENT.set(before);
        polled
    }
}

/// A background task belongs to the process that starts it.
pub fn inherit(task: Task) -> Task {
    match CURRENT.with_borrow(Clone::clone) {
        Some(process) => Box::pin(process.scope(task)),
        None => task,
    }
}

/// The clock of the process that reads it.
pub fn reading() -> Now {
    CURRENT.with_borrow(|process| match process {
        Some(process) => process.clock.now(),
        None => Clock { drift_ppm: 0, suspended: Mutex::default() }.now(),
    })
}
