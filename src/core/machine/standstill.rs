//! A host that stands still (stopped, frozen, starved) until its lease is nearly over finds its guard killed by the kernel's
//! timer, and the command with it: leadership is lost as in a partition, and the guard did what it is there for.
//!
//! Never: a tree that is taken for dead because of it; the guard's orphans are ended first, as ever.

use std::time::Duration;

use super::Machine;
use super::phase::After;
use crate::core::action::{ExitReason, Why};
use crate::core::order::ChildStatus;
use crate::core::settings::OnLoss;
use crate::core::time::{Now, Timestamp};

/// SIGKILL: what the kernel does to the command of a guard that dies.
const KILLED: ChildStatus = ChildStatus::Signaled(9);

/// What is known about our own pauses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standstill {
    turned_at: Timestamp,
    /// When the last turn asked for the next one.
    due_at: Timestamp,
    /// The pause that the present lease has not outlived, as far as we know.
    length: Option<Duration>,
    /// It has cost us the guard: this process ends only to start anew.
    starts_anew: bool,
}

impl Standstill {
    pub fn new(now: Now) -> Self {
        Self { turned_at: now.lease, due_at: Timestamp::NEVER, length: None, starts_anew: false }
    }

    /// A renewal was acknowledged.
    pub fn is_survived(&mut self) {
        self.length = None;
    }

    pub fn starts_anew(&self) -> bool {
        self.starts_anew
    }
}

impl Machine {
    /// How long we stood still, if half of what was left of the lease has passed since we should have been woken: the kernel's
    /// timer leaves the guard no more than nine tenths of that.
    pub(super) fn notice_standstill(&mut self, now: Now) {
        let Standstill { turned_at, due_at, .. } = self.standstill;
        let Some(kill_at) = self.run.and(self.deadlines()).map(|deadlines| deadlines.kill_at) else { return };
        let left = turned_at.until(kill_at);
        if !left.is_zero() && due_at.min(kill_at).until(now.lease) > left / 2 {
            self.standstill.length = Some(turned_at.until(now.lease));
        }
    }

    pub(super) fn end_turn(&mut self, now: Now) {
        self.standstill.turned_at = now.lease;
        self.standstill.due_at = self.next_deadline(now).unwrap_or(Timestamp::NEVER);
    }

    /// What follows the guard's death while a tree lived, and why it died.
    pub(super) fn after_guard(&self) -> (After, Why) {
        let Some(length) = self.standstill.length else {
            return (After::Exit(ExitReason::GuardGone), Why::GuardGone);
        };
        let reason = match self.settings.on_loss {
            OnLoss::Rejoin => ExitReason::StoodStill,
            OnLoss::Exit => ExitReason::LeadershipLost,
        };
        (After::Exit(reason), Why::StoodStill { length })
    }

    /// Who was asked to stop does not start anew.
    pub(super) fn last_reason(&mut self, reason: ExitReason) -> ExitReason {
        if reason == ExitReason::StoodStill && self.stop_requested {
            return ExitReason::StopRequested(Some(self.status.unwrap_or(KILLED)));
        }
        self.standstill.starts_anew = reason == ExitReason::StoodStill;
        reason
    }
}
