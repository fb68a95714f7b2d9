//! The end of the guard. If this host stands still (stopped, frozen, starved) until its lease is nearly over, the kernel's
//! timer kills the guard, and the command with it. Leadership is lost as in a partition, and the guard worked as designed.
//! The guard's orphans are still ended before anything else.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Machine;
use super::phase::{After, Phase};
use crate::core::action::{Action, ExitReason, Why};
use crate::core::event::{Event, Nonce};
use crate::core::guard_messages::ChildStatus;
use crate::core::restart::History;
use crate::core::settings::OnLoss;
use crate::core::time::{Now, Timestamp};

/// SIGKILL: how the kernel ends the command of a dead guard.
const KILLED: ChildStatus = ChildStatus::Signaled(9);

/// Our own pauses.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Standstill {
    turned_at: Timestamp,
    /// When the last turn asked to be woken.
    due_at: Timestamp,
    /// The last pause, if no renewal was acknowledged since.
    length: Option<Duration>,
    /// The pause cost us the guard: the process restarts itself at its end.
    starts_anew: bool,
}

/// How often this process has started its command and failed, and until when it holds back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Past {
    history: History,
    /// Before this the command is not started again.
    rest_until: Timestamp,
    /// Before this it is in no line.
    stand_back_until: Option<Timestamp>,
}

impl Default for Past {
    fn default() -> Self {
        Self { history: History::default(), rest_until: Timestamp::ZERO, stand_back_until: None }
    }
}

impl Standstill {
    pub fn new(now: Now) -> Self {
        Self { turned_at: now.lease, due_at: Timestamp::NEVER, length: None, starts_anew: false }
    }

    pub fn is_survived(&mut self) {
        self.length = None;
    }

    pub fn starts_anew(&self) -> bool {
        self.starts_anew
    }
}

impl Machine {
    /// Notes a standstill if half of the rest of the lease has passed since we should have been woken. The kernel's
    /// timer allows the guard at most nine tenths of that.
    pub(super) fn notice_standstill(&mut self, now: Now) {
        let Standstill { turned_at, due_at, .. } = self.standstill;
        let Some(kill_at) = self.deadlines().filter(|_| self.is_live()).map(|deadlines| deadlines.kill_at) else {
            return;
        };
        let left = turned_at.until(kill_at);
        if !left.is_zero() && due_at.min(kill_at).until(now.lease) > left / 2 {
            self.standstill.length = Some(turned_at.until(now.lease));
        }
    }

    pub(super) fn end_turn(&mut self, now: Now) {
        self.standstill.turned_at = now.lease;
        self.standstill.due_at = self.next_deadline(now).unwrap_or(Timestamp::NEVER);
    }

    /// A guard that dies when its lease is all but over was killed by the kernel's timer: it got no processor time,
    /// although we did. The timer may fire early, by a tenth of the lease.
    pub(super) fn notice_late_guard(&mut self, now: Now) {
        let Some((held, deadlines)) = self.held_term.zip(self.deadlines()) else { return };
        let given = held.acked_sent_at.until(deadlines.kill_at);
        // Promises may have prolonged the lease many times since the last write.
        let given = self.term_timing().filter(|_| self.vouches()).map_or(given, |timing| given.min(timing.usable()));
        let earliest = deadlines.kill_at.before(given / 10);
        if self.standstill.length.is_none() && now.lease >= earliest {
            self.standstill.length = Some(earliest.until(now.lease));
        }
    }

    /// What the next program of this process goes by.
    pub fn past(&self) -> Past {
        let stand_back_until = self.ineligibilities.stand_back_until;
        Past { history: self.history.clone(), rest_until: self.rest_until, stand_back_until }
    }

    /// Goes on where an earlier program of this process has stopped. In the first one nothing is known.
    pub fn recall(&mut self, past: Past) {
        Past {
            history: self.history,
            rest_until: self.rest_until,
            stand_back_until: self.ineligibilities.stand_back_until,
        } = past;
    }

    /// Records of these instances were written by earlier programs of this process.
    pub fn know_earlier(&mut self, instances: Vec<u64>) {
        self.vouching.earlier = instances;
    }

    /// Whether this process has written the record with this nonce.
    pub(super) fn has_written(&self, nonce: Nonce) -> bool {
        nonce.instance == self.settings.instance || self.vouching.earlier.contains(&nonce.instance)
    }

    /// Not with a limit that a new start would forget.
    pub(super) fn may_start_anew(&self) -> bool {
        let is_limited = self.connect_by.min(self.elect_by).min(self.too_late_at) != Timestamp::NEVER;
        self.settings.on_loss == OnLoss::Rejoin && !is_limited
    }

    /// What follows the guard's death while a tree lived, and why it died.
    pub(super) fn after_guard(&self) -> (After, Why) {
        let Some(length) = self.standstill.length else {
            return (After::Exit(ExitReason::GuardGone), Why::GuardGone);
        };
        // A run that had its time is not begun anew.
        if let Phase::Stopping { after: after @ After::Exit(ExitReason::TimedOut), .. } = self.phase {
            return (after, Why::StoodStill { length });
        }
        let requested = After::Exit(ExitReason::StopRequested(None));
        let reason = match self.settings.on_loss {
            // `last_reason` gives it the status.
            _ if matches!(self.phase, Phase::Stopping { after, .. } if after == requested) => ExitReason::StoodStill,
            OnLoss::Rejoin if self.may_start_anew() => ExitReason::StoodStill,
            OnLoss::Rejoin => ExitReason::GuardGone,
            OnLoss::Exit => ExitReason::LeadershipLost,
        };
        (After::Exit(reason), Why::StoodStill { length })
    }

    /// No guard could start the command again. An end that was chosen before keeps its reason.
    pub(super) fn after_gone(&self) -> After {
        match self.phase {
            Phase::Stopping { after: after @ After::Exit(_), .. } => after,
            _ => After::Exit(ExitReason::GuardGone),
        }
    }

    pub(super) fn note_of_guard(&mut self, now: Now, event: &Event) {
        match *event {
            Event::Guard(report) => self.guard_reported(now, report),
            Event::GuardGone => self.guard_gone(now),
            Event::CheckGone { stood_still } => self.check_gone(now, stood_still),
            Event::OrphansEnded => self.orphans_ended(now),
            _ => {}
        }
    }

    pub(super) fn guard_gone(&mut self, now: Now) {
        self.start_by = Timestamp::NEVER;
        self.gone.command = true;
        if self.run.is_none() {
            return self.guard_gone_without_run(now);
        }
        self.notice_late_guard(now);
        let (after, why) = self.after_guard();
        self.actions.push(Action::EndOrphans);
        self.dead_by = self.dead_by.min(now.lease);
        self.begin_stop(now, after, why, true);
        self.phase = Phase::Stopping { after, lapsed: true };
    }

    pub(super) fn orphans_ended(&mut self, now: Now) {
        if let (true, Some(_), Phase::Stopping { after, .. }) = (self.gone.command, self.run, self.phase) {
            let (_, why) = self.after_guard();
            self.tree_is_empty(now);
            self.begin_release(now, after, why);
        }
    }

    /// A process that was asked to stop does not restart itself.
    pub(super) fn last_reason(&mut self, reason: ExitReason) -> ExitReason {
        if reason == ExitReason::StoodStill && self.stop_requested {
            let has_run = self.held_term.is_some_and(|held| held.has_started);
            return ExitReason::StopRequested(has_run.then(|| self.status.unwrap_or(KILLED)));
        }
        self.standstill.starts_anew = reason == ExitReason::StoodStill;
        reason
    }
}
