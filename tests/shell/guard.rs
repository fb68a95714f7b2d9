//! A guard: the real policy, over a command tree that is only thought of.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};
use zk_leader_run::clock;
use zk_leader_run::core::order::{ChildStatus, Order, Report};
use zk_leader_run::guard::policy::{CommandSignal, Input, Policy, Step};

use crate::memory::rng::Rng;
use crate::oracle::{Instance, Oracle, Tree};
use crate::time;

const MILLI: u64 = 1_000;

/// The supervisor's end; when it is dropped, the guard knows that the supervisor is gone.
#[derive(Debug)]
pub struct Guard {
    orders: UnboundedSender<Order>,
    reports: UnboundedReceiver<Report>,
    task: AbortHandle,
}

/// How commands behave.
#[derive(Clone, Copy, Debug)]
pub struct Temper {
    /// Percent that end by themselves within eight seconds.
    pub ends: u64,
    /// Percent that must be killed.
    pub ignores_stop: u64,
}

/// At most this long after a deadline anything is done; a fourth of the shortest slack.
pub const LATE: Duration = Duration::from_millis(25);

impl Guard {
    pub fn start(oracle: Arc<Oracle>, host: usize, instance: Instance, temper: Temper, rng: Rng) -> Self {
        let ((orders, ordered), (told, reports)) = (unbounded_channel(), unbounded_channel());
        let hand = Hand {
            oracle,
            host,
            instance,
            temper,
            rng,
            told,
            happenings: Vec::new(),
            lives: false,
            is_stubborn: false,
        };
        let task = tokio::spawn(hand.work(ordered)).abort_handle();
        Self { orders, reports, task }
    }

    pub fn order(&self, order: Order) {
        self.orders.send(order).ok();
    }

    /// `None`: it is gone.
    pub async fn report(&mut self) -> Option<Report> {
        self.reports.recv().await
    }

    /// SIGKILL, or the end of the whole host.
    pub fn kill(&self) -> AbortHandle {
        self.task.abort();
        self.task.clone()
    }
}

struct Hand {
    oracle: Arc<Oracle>,
    host: usize,
    instance: Instance,
    temper: Temper,
    rng: Rng,
    told: UnboundedSender<Report>,
    happenings: Vec<(Instant, Input)>,
    /// The command itself.
    lives: bool,
    is_stubborn: bool,
}

impl Drop for Hand {
    fn drop(&mut self) {
        // The command dies by its parent-death signal, and the rest by the supervisor's hand.
        self.oracle.gone(self.instance, clock::now().lease);
    }
}

impl Hand {
    async fn work(mut self, mut ordered: UnboundedReceiver<Order>) {
        let (mut policy, mut is_supervised) = (Policy::new(), true);
        loop {
            let happening = self.happenings.iter().map(|(at, _)| *at).min();
            let deadline = policy.next_deadline().map(time::instant_of);
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
                return;
            }
        }
    }

    fn happened(&mut self) -> Input {
        let now = Instant::now();
        let Some(due) = self.happenings.iter().position(|(at, _)| *at <= now) else { return Input::Ticked };
        let (_, input) = self.happenings.remove(due);
        if let Input::CommandEnded(_) = input {
            if !std::mem::take(&mut self.lives) {
                return Input::Ticked;
            }
        }
        if input == Input::TreeEmpty {
            self.happenings.clear();
            self.oracle.gone(self.instance, clock::now().lease);
        }
        input
    }

    /// Whether it was the last.
    fn play(&mut self, policy: &mut Policy, input: Input) -> bool {
        let now = clock::now().lease;
        if let Input::Ordered(Order::Extend { deadlines, .. }) = input {
            self.oracle.extended(self.instance, now, deadlines);
        }
        for step in policy.handle(now, input) {
            match step {
                Step::Spawn(grant) => self.spawn(input, grant.token),
                Step::Signal(CommandSignal::Stop) => self.stop(),
                Step::Signal(CommandSignal::Forwarded(_)) | Step::Freeze | Step::Thaw => {}
                Step::StopRest => self.soon(5, Input::TreeEmpty),
                Step::KillTree => {
                    let at = Instant::now() + Duration::from_micros(self.rng.below(10 * MILLI));
                    self.happenings.push((at, Input::CommandEnded(ChildStatus::Signaled(9))));
                    self.happenings.push((at, Input::TreeEmpty));
                }
                Step::Report(report) => {
                    self.told.send(report).ok();
                }
                Step::Quit { .. } => return true,
            }
        }
        false
    }

    fn spawn(&mut self, input: Input, token: i64) {
        let Input::Ordered(Order::Start { deadlines, .. }) = input else { return };
        let tree = Tree { host: self.host, token, kill_at: deadlines.kill_at, slack: LATE };
        self.oracle.spawned(self.instance, tree);
        (self.lives, self.is_stubborn) = (true, self.rng.chance(self.temper.ignores_stop));
        self.soon(2, Input::Executed { pid: 1_000 });
        if self.rng.chance(self.temper.ends) {
            let status = ChildStatus::Exited(u8::from(self.rng.chance(50)));
            let at = Instant::now() + Duration::from_micros(self.rng.below(8_000 * MILLI));
            self.happenings.push((at, Input::CommandEnded(status)));
        }
    }

    fn stop(&mut self) {
        if !self.is_stubborn {
            self.soon(300, Input::CommandEnded(ChildStatus::Signaled(15)));
        }
    }

    fn soon(&mut self, most: u64, input: Input) {
        let at = Instant::now() + Duration::from_micros(self.rng.below(most * MILLI));
        self.happenings.push((at, input));
    }
}
