//! The guard's machine. It orders SIGKILL for the whole tree at `kill_at` or sooner, whatever other orders arrive or
//! fail to arrive.
//!
//! ```text
//!            Start              Stop, or stop_at came          by or kill_at came, or the command ended
//! no tree ──────────▶ Running ───────────────────────▶ Stopping ───────────────────────▶ Killing ──▶ no tree
//!                        └───── Kill, kill_at, the command's end, a jump, no supervisor ────▲   TreeEmpty
//! ```
//!
//! In an ordered stop, the processes that the command leaves behind get the stop signal, too, and the rest of the time. Whoever
//! stops a whole service signals all processes of it at once (systemd's default, `KillMode=control-group`): the command may end before the
//! supervisor has ordered the stop. So if it ended by the stop signal, what it left behind is kept for a moment, for that order.
//!
//! Deadlines are checked before the input: after a pause of the guard, the first steps are those that are overdue. The
//! cause of an ending is the event that began it. The machine does no I/O, reads no clock and does not allocate.

mod action_list;
mod lease_view;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::core::guard_messages::{Cause, ChildStatus, Deadlines, Grant, Order, Report, RunId};
use crate::core::lease::slack_of;
use crate::core::time::Timestamp;

pub use action_list::GuardActions;

/// The guard checks the clock at least this often while a tree lives: its timer runs on BOOTTIME, which is slewed.
const SLICE: Duration = Duration::from_millis(250);
/// A guard that kills and takes no step for this long is itself killed, so that the supervisor ends the tree.
const KILLING_STEP_LONGEST: Duration = Duration::from_secs(1);
/// How long the order to stop may come after the stop signal has ended the command.
const ORDER_LATEST: Duration = Duration::from_millis(250);
/// How often survivors of SIGKILL are reported.
const STUCK_REPORT_EVERY: Duration = Duration::from_secs(5);
/// The first time half of the lease before it is over, because then another host starts, but not sooner than this: they may just be slow.
/// What a command leaves behind that has ended by itself is killed under a lease that is renewed: it has those five seconds, unless
/// the lease runs out.
const STUCK_REPORT_SOONEST: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// Time passed; a deadline may have been reached.
    Ticked,
    /// BOOTTIME − MONOTONIC jumped: the host was suspended, and the lease is over.
    ClockJumped,
    /// The supervisor closed its end, or died.
    SupervisorGone,
    Ordered(Order),
    /// `execve(2)` succeeded.
    Executed {
        pid: i32,
    },
    /// `execve(2)` or an earlier step failed in the new process, which will end.
    NotExecuted {
        errno: i32,
    },
    /// No process could be created.
    NotSpawned {
        errno: i32,
    },
    /// The command ended; it is not reaped yet.
    CommandEnded(ChildStatus),
    /// Killed processes are still there.
    Surviving {
        survivors: u32,
    },
    /// The last process is gone and reaped.
    TreeEmpty,
}

/// A step for the guard to carry out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GuardAction {
    Spawn(Grant),
    Signal(CommandSignal),
    /// The stop signal to every process that the command left behind.
    StopRest,
    /// Nothing to these processes: only report that none is left.
    KeepRest,
    /// SIGKILL to the whole tree, repeated until it is empty.
    KillTree,
    Freeze,
    Thaw,
    Report(Report),
    /// End the guard. Always the last step.
    Quit {
        /// The supervisor died in this term and the tree is empty: the record may be freed.
        release: Option<Grant>,
    },
}

/// A signal to the command alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandSignal {
    /// `--stop-signal`.
    Stop,
    Forwarded(i32),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Running,
    /// The stop signal was sent. `lapsed`: for lack of a lease, which a renewal does not undo (I5).
    Stopping {
        by: Timestamp,
        lapsed: bool,
    },
    /// The stop signal ended the command, and nobody has ordered that yet.
    Ended {
        until: Timestamp,
    },
    Killing {
        next_stuck_report_at: Timestamp,
        /// Already then if the lease, which is renewed until then, is not renewed any more. A renewal moves this.
        or_at: Timestamp,
    },
}

/// One tree, from `Start` until it is empty.
#[derive(Clone, Copy, Debug)]
struct Life {
    run: RunId,
    grant: Grant,
    deadlines: Deadlines,
    /// At most G: it is that of the longest runway so far, which is shorter than L, so it is safe to add.
    slack: Duration,
    phase: Phase,
    frozen: bool,
    /// SIGCONT is forwarded when the tree is thawed: sooner, it would continue processes that were stopped to freeze them.
    continues: bool,
    /// Contact is lost.
    paused: bool,
    cause: Option<Cause>,
    not_executed: Option<i32>,
    status: Option<ChildStatus>,
    survivors: u32,
}

/// See the module page.
#[derive(Debug, Default)]
pub struct Policy {
    stop_signal: i32,
    life: Option<Life>,
    last_run: Option<RunId>,
    /// The term of the last tree, which is gone, until the supervisor reports that the term is over.
    rests: Option<Grant>,
    is_supervisor_gone: bool,
}

impl Policy {
    pub fn new(stop_signal: i32) -> Self {
        Self { stop_signal, ..Self::default() }
    }

    pub fn handle(&mut self, now: Timestamp, input: Input) -> GuardActions {
        let mut steps = GuardActions::default();
        self.pass_time(now, &mut steps);
        self.take(now, input, &mut steps);
        self.pass_time(now, &mut steps);
        steps
    }

    /// When to call `handle` with `Ticked`, unless an input comes first; `None` without a tree.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.life.as_ref().map(|life| match life.phase {
            Phase::Running => life.deadlines.stop_at.min(life.deadlines.kill_at),
            Phase::Stopping { by, .. } => by.min(life.deadlines.kill_at),
            Phase::Ended { until } => until.min(life.deadlines.kill_at),
            Phase::Killing { next_stuck_report_at, or_at } => next_stuck_report_at.min(or_at),
        })
    }

    /// How long the guard may sleep on a clock that runs up to 10 % fast or slow; `None`: until an input. The last
    /// sleep is short, so that the kernel timer, armed before it, leaves nearly all of G for waking up.
    pub fn sleep(&self, now: Timestamp) -> Option<Duration> {
        let life = self.life.as_ref()?;
        let left = now.until(self.next_deadline()?);
        Some(if left > life.slack / 4 { SLICE.min(left / 2) } else { left })
    }

    /// When the kernel is to kill the guard itself, unless the guard moves this: `kill_at` + G, less the 10 % by which
    /// the kernel's timer may be slewed. `None` without a tree.
    pub fn lethal_in(&self, now: Timestamp) -> Option<Duration> {
        let life = self.life.as_ref()?;
        let left = now.until(life.deadlines.kill_at).saturating_add(life.slack);
        let left = match life.phase {
            Phase::Killing { .. } => left.max(KILLING_STEP_LONGEST),
            Phase::Running | Phase::Stopping { .. } | Phase::Ended { .. } => left,
        };
        Some(left.saturating_mul(9) / 10)
    }

    /// Handles the deadlines that have passed.
    fn pass_time(&mut self, now: Timestamp, steps: &mut GuardActions) {
        let Some(life) = self.life.as_mut() else { return };
        match life.phase {
            Phase::Running if now >= life.deadlines.kill_at => life.kill(now, Cause::Deadline, steps),
            Phase::Running if now >= life.deadlines.stop_at => {
                life.stop(Timestamp::NEVER, true, Cause::Deadline, steps);
                steps.push(GuardAction::Report(Report::Stopping { run: life.run }));
            }
            Phase::Stopping { by, .. } if now >= by.min(life.deadlines.kill_at) => {
                life.kill(now, Cause::Deadline, steps);
            }
            Phase::Ended { until } if now >= until.min(life.deadlines.kill_at) => life.kill(now, Cause::ItsOwn, steps),
            Phase::Killing { next_stuck_report_at, or_at } if now >= next_stuck_report_at.min(or_at) => {
                let next_stuck_report_at = now.after(STUCK_REPORT_EVERY);
                life.phase = Phase::Killing { next_stuck_report_at, or_at: Timestamp::NEVER };
                steps.push(GuardAction::Report(Report::Stuck { run: life.run, survivors: life.survivors }));
            }
            Phase::Running | Phase::Stopping { .. } | Phase::Ended { .. } | Phase::Killing { .. } => {}
        }
    }

    fn take(&mut self, now: Timestamp, input: Input, steps: &mut GuardActions) {
        match input {
            Input::Ticked => {}
            Input::ClockJumped => self.kill(now, Cause::Deadline, steps),
            Input::SupervisorGone => self.supervisor_gone(now, steps),
            Input::Ordered(order) => self.ordered(now, order, steps),
            Input::Executed { pid } => {
                if let Some(life) = &self.life {
                    steps.push(GuardAction::Report(Report::Started { run: life.run, pid }));
                }
            }
            Input::NotExecuted { errno } => {
                if let Some(life) = self.life.as_mut() {
                    life.not_executed = Some(errno);
                }
            }
            Input::NotSpawned { errno } => {
                if let Some(life) = self.life.as_mut() {
                    life.not_executed = Some(errno);
                    life.cause.get_or_insert(Cause::ItsOwn);
                    let status = ChildStatus::NotExecuted(errno);
                    steps.push(GuardAction::Report(Report::CommandEnded { run: life.run, status }));
                }
                self.tree_empty(steps);
            }
            Input::CommandEnded(status) => self.command_ended(now, status, steps),
            Input::Surviving { survivors } => {
                if let Some(life) = self.life.as_mut() {
                    life.survivors = survivors;
                }
            }
            Input::TreeEmpty => self.tree_empty(steps),
        }
    }

    fn ordered(&mut self, now: Timestamp, order: Order, steps: &mut GuardActions) {
        if let Order::Start { run, deadlines, grant } = order {
            return self.start(now, run, deadlines, grant, steps);
        }
        if order == (Order::Retire { run: self.last_run.unwrap_or_default() }) && self.life.is_none() {
            self.rests = None;
        }
        let Some(life) = self.life.as_mut().filter(|life| life.is_of(&order)) else { return };
        match (order, life.phase) {
            (Order::Extend { deadlines, .. }, Phase::Running | Phase::Stopping { lapsed: false, .. }) => {
                life.extend(now, deadlines);
            }
            // Nothing but when survivors are reported: the kill goes on.
            (Order::Extend { deadlines, .. }, Phase::Killing { next_stuck_report_at, or_at }) => {
                life.phase = Phase::Killing { next_stuck_report_at, or_at: or_at.max(deadlines.stop_at) };
            }
            (Order::Stop { by, .. }, _) => life.stop_as_ordered(now, by, steps),
            (Order::Kill { .. }, Phase::Running | Phase::Stopping { .. } | Phase::Ended { .. }) => {
                life.kill(now, Cause::Ordered, steps);
            }
            (Order::Signal { signal: SIGCONT, .. }, Phase::Running) if life.frozen => life.continues = true,
            (Order::Signal { signal, .. }, Phase::Running | Phase::Stopping { .. }) => {
                steps.push(GuardAction::Signal(CommandSignal::Forwarded(signal)));
            }
            (Order::Freeze { .. }, Phase::Running) if !life.frozen => {
                life.frozen = true;
                steps.push(GuardAction::Freeze);
            }
            (Order::Thaw { .. }, _) => life.thaw(steps),
            (Order::Pause { .. }, _) => life.paused = true,
            (Order::Resume { .. }, _) => life.paused = false,
            // Too late or already done: a renewal after a lapse (I5), a freeze during a stop, any order during a kill.
            // (`Start` and `Retire` were handled above.)
            (
                Order::Start { .. }
                | Order::Extend { .. }
                | Order::Kill { .. }
                | Order::Signal { .. }
                | Order::Freeze { .. }
                | Order::Retire { .. },
                _,
            ) => {}
        }
    }

    fn start(&mut self, now: Timestamp, run: RunId, deadlines: Deadlines, grant: Grant, steps: &mut GuardActions) {
        // One tree per supervisor (I3), and each run once (I6). No report: it would claim that a tree is gone.
        if self.life.is_some() || self.is_supervisor_gone || self.last_run.is_some_and(|last| run <= last) {
            return;
        }
        self.last_run = Some(run);
        self.rests = None;
        if now >= deadlines.stop_at.min(deadlines.kill_at) {
            let status = ChildStatus::NotExecuted(ETIME);
            return steps.push(GuardAction::Report(Report::TreeEnded { run, status, cause: Cause::Deadline }));
        }
        self.life = Some(Life {
            run,
            grant,
            deadlines,
            slack: slack_of(now.until(deadlines.kill_at)),
            phase: Phase::Running,
            frozen: false,
            continues: false,
            paused: false,
            cause: None,
            not_executed: None,
            status: None,
            survivors: 0,
        });
        steps.push(GuardAction::Report(Report::Taken { run }));
        steps.push(GuardAction::Spawn(grant));
    }

    fn kill(&mut self, now: Timestamp, cause: Cause, steps: &mut GuardActions) {
        if let Some(life) = self.life.as_mut() {
            life.kill(now, cause, steps);
        }
    }

    fn command_ended(&mut self, now: Timestamp, status: ChildStatus, steps: &mut GuardActions) {
        let stopped = u8::try_from(self.stop_signal).map(ChildStatus::Signaled);
        let Some(life) = self.life.as_mut().filter(|life| life.status.is_none()) else { return };
        let status = life.not_executed.map_or(status, ChildStatus::NotExecuted);
        life.status = Some(status);
        match life.phase {
            Phase::Stopping { lapsed: false, .. } => steps.push(GuardAction::StopRest),
            Phase::Running if stopped == Ok(status) => {
                life.phase = Phase::Ended { until: now.after(ORDER_LATEST) };
                steps.push(GuardAction::KeepRest);
            }
            _ => life.kill(now, Cause::ItsOwn, steps),
        }
        steps.push(GuardAction::Report(Report::CommandEnded { run: life.run, status }));
    }

    fn tree_empty(&mut self, steps: &mut GuardActions) {
        let Some(life) = self.life.take() else { return };
        let status = life.status.or(life.not_executed.map(ChildStatus::NotExecuted));
        let status = status.unwrap_or(ChildStatus::Signaled(SIGKILL));
        let cause = life.cause.unwrap_or(Cause::ItsOwn);
        steps.push(GuardAction::Report(Report::TreeEnded { run: life.run, status, cause }));
        self.rests = Some(life.grant);
        if self.is_supervisor_gone {
            steps.push(GuardAction::Quit { release: self.rests });
        }
    }

    fn supervisor_gone(&mut self, now: Timestamp, steps: &mut GuardActions) {
        if std::mem::replace(&mut self.is_supervisor_gone, true) {
            return;
        }
        match self.life.as_mut() {
            Some(life) => life.kill(now, Cause::SupervisorGone, steps),
            None => steps.push(GuardAction::Quit { release: self.rests }),
        }
    }
}

impl Life {
    fn is_of(&self, order: &Order) -> bool {
        let (Order::Start { run, .. }
        | Order::Extend { run, .. }
        | Order::Stop { run, .. }
        | Order::Kill { run }
        | Order::Signal { run, .. }
        | Order::Freeze { run }
        | Order::Thaw { run }
        | Order::Retire { run }
        | Order::Pause { run }
        | Order::Resume { run }) = *order;
        run == self.run
    }

    fn extend(&mut self, now: Timestamp, deadlines: Deadlines) {
        if deadlines.kill_at > self.deadlines.kill_at {
            self.deadlines.kill_at = deadlines.kill_at;
            self.deadlines.stop_at = self.deadlines.stop_at.max(deadlines.stop_at);
            self.slack = self.slack.max(slack_of(now.until(deadlines.kill_at)));
        }
    }

    fn stop(&mut self, by: Timestamp, lapsed: bool, cause: Cause, steps: &mut GuardActions) {
        self.cause.get_or_insert(cause);
        self.phase = Phase::Stopping { by, lapsed };
        self.thaw(steps);
        steps.push(GuardAction::Signal(CommandSignal::Stop));
    }

    /// Without time for the stop signal it is not sent: whether the command dies of it or of SIGKILL would be chance.
    fn stop_as_ordered(&mut self, now: Timestamp, by: Timestamp, steps: &mut GuardActions) {
        match self.phase {
            _ if now >= by => self.kill(now, Cause::Ordered, steps),
            Phase::Running => self.stop(by, false, Cause::Ordered, steps),
            Phase::Stopping { by: earlier, lapsed } => self.phase = Phase::Stopping { by: by.min(earlier), lapsed },
            Phase::Ended { .. } => {
                self.cause.get_or_insert(Cause::Ordered);
                self.phase = Phase::Stopping { by, lapsed: false };
                self.thaw(steps);
                steps.push(GuardAction::StopRest);
            }
            Phase::Killing { .. } => {}
        }
    }

    fn kill(&mut self, now: Timestamp, cause: Cause, steps: &mut GuardActions) {
        self.cause.get_or_insert(cause);
        if !matches!(self.phase, Phase::Killing { .. }) {
            let Deadlines { stop_at, kill_at } = self.deadlines;
            let half = (now.until(kill_at) / 2).clamp(STUCK_REPORT_SOONEST, STUCK_REPORT_EVERY);
            let (first, or_at) = if self.cause == Some(Cause::ItsOwn) {
                (STUCK_REPORT_EVERY, stop_at.max(now.after(STUCK_REPORT_SOONEST)))
            } else {
                (half, Timestamp::NEVER)
            };
            self.phase = Phase::Killing { next_stuck_report_at: now.after(first), or_at };
            steps.push(GuardAction::KillTree);
        }
    }

    fn thaw(&mut self, steps: &mut GuardActions) {
        if std::mem::take(&mut self.frozen) && !matches!(self.phase, Phase::Killing { .. }) {
            steps.push(GuardAction::Thaw);
            if std::mem::take(&mut self.continues) {
                steps.push(GuardAction::Signal(CommandSignal::Forwarded(SIGCONT)));
            }
        }
    }
}

/// "Timer expired" (`errno(3)`): the status of a command that was not started because its time was over.
pub const ETIME: i32 = 62;
/// `signal(7)`
const SIGKILL: u8 = 9;
const SIGCONT: i32 = 18;
