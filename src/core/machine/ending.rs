//! Endings: stop the tree, release the record once the tree is empty, then rejoin, stay or exit.

mod releasing;
mod signals;

use std::time::Duration;

use super::Machine;
use super::phase::{After, Departure, Link, Phase};
use crate::core::action::{Action, ExitReason, Why};
use crate::core::event::{Denial, Grounds, Request};
use crate::core::guard_messages::{Cause, ChildStatus, Order, RunId};
use crate::core::restart::{Ending, TIMED_OUT, Verdict};
use crate::core::settings::{OnExit, OnLoss};
use crate::core::time::{Now, Timestamp};

/// A release that is not confirmed within this time is left to expiry (T40).
pub const RELEASE_LIMIT: Duration = Duration::from_secs(1);
/// A tree that lives this long after SIGKILL survives it. Its lease is no longer renewed; and this long after the lease
/// has ended, we give up our place in line.
const KILL_LIMIT: Duration = Duration::from_secs(1);

/// What follows the end of a tree.
enum Next {
    Leave(After, Why),
    /// In the same term, not before this time.
    Restart(Timestamp),
}

impl Machine {
    /// A requested stop has time: the lease is renewed until the tree must be dead. The guard enforces `kill_at`.
    pub(super) fn stopping_deadline(&self, now: Now) -> Timestamp {
        let survives_at = self.dead_by.after(KILL_LIMIT);
        let renewal = if self.lapsed() { self.withdraws_at() } else { self.renewal_due_at(now).min(survives_at) };
        let looks = self.runs_out() || self.goes_on_without_session(now);
        let retry = if looks { self.look_due_at() } else { Timestamp::NEVER };
        renewal.min(retry).min(self.reconnect_due_at(now)).min(self.start_by)
    }

    pub(super) fn pass_stopping(&mut self, now: Now) {
        if now.lease >= self.dead_by.after(KILL_LIMIT) {
            self.lapse();
        }
        if !self.lapsed() {
            self.reconnect_in_term(now);
            self.renew_when_due(now);
            if self.goes_on_without_session(now) {
                self.look_when_due(now);
            }
        } else if now.lease >= self.withdraws_at() {
            self.leave_line(now);
        } else if self.runs_out() && now.lease >= self.look_due_at() {
            self.observe_again();
        }
    }

    /// Stops renewing; the lease runs out.
    pub(super) fn lapse(&mut self) {
        if let Phase::Stopping { after, .. } = self.phase {
            self.phase = Phase::Stopping { after, lapsed: true };
            self.dead_by = self.deadlines().map_or(self.dead_by, |deadlines| deadlines.kill_at.min(self.dead_by));
        }
    }

    /// SIGKILL was sent, and processes are still alive.
    pub(super) fn tree_is_stuck(&mut self, now: Now) {
        self.dead_by = self.dead_by.min(now.lease);
        self.begin_stop(now, self.after_loss(), Why::Stuck, true);
        self.lapse();
    }

    /// When to give up our place in line although the tree still lives: its lease is over, and SIGKILL does not end it.
    fn withdraws_at(&self) -> Timestamp {
        let lease_over = self.deadlines().filter(|_| !self.at_least_once()).map(|deadlines| deadlines.kill_at);
        let stands_in_line = matches!(self.link, Link::Open(_)) && !self.standing.is_out && self.is_live();
        if stands_in_line {
            self.dead_by.max(lease_over.unwrap_or(Timestamp::ZERO)).after(KILL_LIMIT)
        } else {
            Timestamp::NEVER
        }
    }

    /// The tree is being stopped, its lease runs out, and a successor waits for that.
    pub(super) fn runs_out(&self) -> bool {
        self.lapsed() && !self.at_least_once()
    }

    /// Reads and watches the record until the tree is gone. If the whole base is deleted, znode by znode, a successor
    /// under a new base would not wait for our lease.
    pub(super) fn observe_again(&mut self) {
        self.standing.stale = self.pending.is_some() && self.runs_out();
        if self.pending.is_none() && self.timing().is_some() {
            self.standing.retry_at = None;
            self.observe();
        }
    }

    fn lapsed(&self) -> bool {
        matches!(self.phase, Phase::Stopping { lapsed: true, .. })
    }

    /// The first process has ended. In a requested stop, what it left behind has the rest of the time. A lease that will not be
    /// prolonged is not spent on it: SIGKILL now, so that the successor need not wait.
    pub(super) fn command_ended(&mut self, now: Now, status: ChildStatus) {
        self.status = Some(status);
        if self.lapsed() {
            self.order_kill(now);
        }
    }

    /// The lease will not be prolonged: the stop signal now, SIGKILL at `by`.
    pub(super) fn stop_tree(&mut self, now: Now, why: Why, by: Timestamp) {
        self.order_stop(by);
        self.begin_stop(now, self.after_loss(), why, true);
    }

    /// The stop signal now, SIGKILL at `by`.
    pub(super) fn order_stop(&mut self, by: Timestamp) {
        match (self.run, self.step) {
            (Some(run), _) => self.order(Order::Stop { run, by }),
            (None, Some(step)) => self.actions.push(Action::StopStep { step: step.kind, by }),
            (None, None) => return,
        }
        self.dead_by = self.dead_by.min(by);
    }

    fn order_kill(&mut self, now: Now) {
        match self.run {
            Some(run) => self.order(Order::Kill { run }),
            None => return self.order_stop(now.lease),
        }
        self.dead_by = self.dead_by.min(now.lease);
    }

    /// When a tree that is stopped before its lease runs out is killed: with the lease. The pause that at-least-once
    /// allows is far longer than a stop may take.
    pub(super) fn stop_by(&self, now: Now) -> Timestamp {
        let kill_at = self.deadlines().map_or(now.lease, |deadlines| deadlines.kill_at);
        if self.at_least_once() { kill_at.min(now.lease.after(self.settings.stop_timeout)) } else { kill_at }
    }

    pub(super) fn kill_tree(&mut self, now: Now, why: Why) {
        self.forfeit();
        self.order_kill(now);
        self.begin_stop(now, self.after_loss(), why, true);
    }

    /// Candidates of other libraries do not wait for a lease: once our candidate is gone, one may have started already.
    pub(super) fn nobody_waits(&self) -> bool {
        self.settings.wishes.is_shared && !self.at_least_once()
    }

    /// The candidate was deleted while the tree is being stopped.
    pub(super) fn hasten_stop(&mut self, now: Now, why: Why) {
        if self.nobody_waits() {
            self.kill_tree(now, why);
        }
    }

    /// The guard saw `stop_at` first, and has sent the stop signal.
    pub(super) fn guard_began_to_stop(&mut self, now: Now) {
        self.begin_stop(now, self.after_loss(), Why::LeaseEnding, true);
        self.lapse();
    }

    /// The stop or the release under way ends the process, unless that was chosen before: the first reason counts.
    pub(super) fn end_by(&mut self, exit: After) {
        match &mut self.phase {
            Phase::Stopping { after, .. } | Phase::Releasing { after, .. } if !matches!(after, After::Exit(_)) => {
                *after = exit;
            }
            _ => {}
        }
    }

    pub(super) fn begin_stop(&mut self, now: Now, after: After, why: Why, lapsed: bool) {
        if let Phase::Stopping { after, lapsed: already } = self.phase {
            self.phase = Phase::Stopping { after, lapsed: lapsed || already };
        } else {
            self.stops_for = why;
            self.enter_phase(now, Phase::Stopping { after, lapsed }, why);
        }
    }

    pub(super) fn after_loss(&self) -> After {
        let has_led = self.held_term.is_some_and(|held| held.has_started);
        match self.settings.on_loss {
            OnLoss::Exit if has_led => After::Exit(ExitReason::LeadershipLost),
            OnLoss::Rejoin | OnLoss::Exit => After::Rejoin,
        }
    }

    /// Ends the process; no record is ours. A pending take-over is awaited, or looked for, first, and its record freed; otherwise the
    /// next leader would wait for a lease without a holder. The first reason counts.
    pub(super) fn depart(&mut self, now: Now, reason: ExitReason, why: Why) {
        if self.departure.is_none() && !self.may_have_taken_over() {
            return self.leave(now, After::Exit(reason), why);
        }
        self.departure.get_or_insert(Departure { reason, why, by: now.lease.after(RELEASE_LIMIT) });
    }

    /// A take-over of ours is under way, or its reply was lost: the record would stay held without a holder.
    pub(super) fn may_have_taken_over(&self) -> bool {
        self.pending == Some(Request::TakeOver) || self.standing.sending.is_some()
    }

    /// Stops the tree, then ends the process for `reason`, unless it ends for another one already.
    pub(super) fn give_up(&mut self, now: Now, reason: ExitReason, why: Why) {
        let after = match self.phase {
            // Why the process ends is decided, and its tree is gone.
            Phase::Releasing { after: after @ After::Exit(_), .. } => after,
            Phase::Stopping { after: after @ After::Exit(_), .. } if self.runs_after_command() => after,
            _ => After::Exit(reason),
        };
        if self.run.is_some() {
            self.stop_tree(now, why, self.stop_by(now));
        } else if !self.winds_up(now, after, why) {
            return self.leave(now, after, why);
        }
        if !self.stop_requested {
            self.phase = Phase::Stopping { after, lapsed: true };
        }
        self.lapse();
    }

    pub(super) fn forbidden(&mut self, now: Now, grounds: Grounds) {
        self.give_up(now, ExitReason::Forbidden(grounds), Why::Forbidden(grounds));
    }

    /// After a suspend the lease is over: kill the tree first (T25).
    pub(super) fn clock_jumped(&mut self, now: Now) {
        match self.phase {
            Phase::Waiting | Phase::Preparing { .. } if !self.is_live() => {
                self.lose_term(now, Why::ClockJumped);
                self.look_again();
            }
            Phase::Waiting
            | Phase::Preparing { .. }
            | Phase::Leading
            | Phase::Vouched
            | Phase::Paused { .. }
            | Phase::Stopping { .. } => self.kill_tree(now, Why::ClockJumped),
            Phase::Following | Phase::Releasing { .. } | Phase::Done => {}
        }
    }

    pub(super) fn tree_ended(&mut self, now: Now, status: ChildStatus, cause: Cause) {
        self.status = Some(status);
        if self.settings.preparations.marks {
            let ok = cause == Cause::ItsOwn && status == ChildStatus::Exited(0);
            let status = if self.is_timed_out(cause) { ChildStatus::Exited(TIMED_OUT) } else { status };
            self.actions.push(Action::EndRun { status, ok });
        }
        let next = self.after_tree(now, status, cause);
        self.tree_is_empty(now);
        match next {
            Next::Leave(after, why) => self.begin_release(now, after, why),
            Next::Restart(at) => self.rest(now, at, Why::Restarting),
        }
    }

    /// `--timeout`: stops the run like a requested stop.
    pub(super) fn end_run(&mut self, now: Now) {
        if self.run.is_none() {
            return;
        }
        self.timed_out = self.run;
        self.order_stop(now.lease.after(self.settings.stop_timeout));
        let after = match self.settings.on_exit {
            OnExit::Exit => After::Exit(ExitReason::TimedOut),
            OnExit::Rejoin | OnExit::Restart => After::Rejoin,
        };
        self.begin_stop(now, after, Why::TimedOut, false);
    }

    pub(super) fn tree_is_empty(&mut self, now: Now) {
        self.run = None;
        (self.start_by, self.run_until, self.dead_by) = (Timestamp::NEVER, Timestamp::NEVER, Timestamp::NEVER);
        self.standing.is_out &= self.ineligibilities.keep_out();
        self.finished = self.held_term.filter(|held| held.wait_is_over(now)).map(|held| held.nonce);
    }

    /// Whether `--timeout` ended the run.
    fn is_timed_out(&self, cause: Cause) -> bool {
        cause == Cause::Ordered && self.timed_out == self.run
    }

    fn after_tree(&mut self, now: Now, status: ChildStatus, cause: Cause) -> Next {
        let stopping = match self.phase {
            Phase::Stopping { after, .. } => Some(after),
            _ => None,
        };
        let timed_out = self.is_timed_out(cause);
        match (cause, status, stopping) {
            (Cause::ItsOwn | Cause::Ordered, ChildStatus::NotExecuted(_), _) if !status.failed_for_now() => {
                Next::Leave(After::Exit(ExitReason::CommandEnded(status)), Why::CommandEnded)
            }
            _ if self.stop_requested => Next::Leave(Self::after_request(stopping, cause, status), Why::TreeEmpty),
            (Cause::ItsOwn, ..) => self.after_run(now, Ending { status, timed_out: false }),
            _ if timed_out => self.after_run(now, Ending { status, timed_out }),
            (_, _, Some(after)) => Next::Leave(after, Why::TreeEmpty),
            // A kill by the guard is not the command's own end (T52).
            (_, _, None) => Next::Leave(self.after_loss(), Why::DeadlineKill),
        }
    }

    /// We were asked to stop. An end that was chosen before that keeps its reason, unless the command ended by itself.
    fn after_request(stopping: Option<After>, cause: Cause, status: ChildStatus) -> After {
        let requested = After::Exit(ExitReason::StopRequested(None));
        let chosen = stopping.filter(|after| *after != requested && cause != Cause::ItsOwn);
        chosen.unwrap_or(After::Exit(ExitReason::StopRequested(Some(status))))
    }

    /// The command ended by itself, or `--timeout` ended it.
    fn after_run(&mut self, now: Now, ending: Ending) -> Next {
        let (reason, why) = match ending {
            Ending { timed_out: true, .. } => (ExitReason::TimedOut, Why::TimedOut),
            Ending { status, .. } => (ExitReason::CommandEnded(status), Why::CommandEnded),
        };
        match (self.settings.on_exit, self.phase) {
            (OnExit::Exit, _) => Next::Leave(After::Exit(reason), why),
            (_, Phase::Stopping { after: after @ After::Exit(end), .. }) if end.is_refusal() => Next::Leave(after, why),
            _ if self.gone.command || self.gone.check => Next::Leave(self.after_gone(), why),
            (OnExit::Rejoin, _) => Next::Leave(After::Rejoin, why),
            (OnExit::Restart, _) => match self.history.ended(now.lease, &self.settings.service.restart, ending) {
                Verdict::Over => Next::Leave(After::Exit(reason), why),
                Verdict::TooOften => {
                    self.stand_back(now);
                    Next::Leave(After::Rejoin, Why::CrashLoop)
                }
                Verdict::Again { at } => self.after_failure(now, at, ending.timed_out),
            },
        }
    }

    /// Restarts in this term, unless a stop has begun, which is not taken back (I5).
    fn after_failure(&self, now: Now, at: Timestamp, timed_out: bool) -> Next {
        match self.phase {
            Phase::Stopping { after, lapsed } if lapsed || !timed_out => Next::Leave(after, Why::TreeEmpty),
            _ if self.ineligibilities.is_any() => {
                let (after, why) = self.after_bars();
                Next::Leave(after, why)
            }
            _ if !self.can_go_on(now) => Next::Leave(self.after_loss(), Why::SessionOver),
            _ => Next::Restart(at),
        }
    }

    /// Frees the record, but only if our own wait is over (I8).
    pub(super) fn begin_release(&mut self, now: Now, after: After, why: Why) {
        if self.winds_up(now, after, why) {
            return;
        }
        let ours_to_free = self.held_term.is_some_and(|held| held.wait_is_over(now) && !held.is_unfenced);
        // Who lingers opens another session.
        if !ours_to_free || self.timing().is_none() && !self.may_linger(after) {
            return self.leave(now, after, why);
        }
        self.enter_phase(now, Phase::Releasing { until: self.release_until(now, after), after }, why);
        self.withdraw_run();
        self.release_with_marker();
    }

    /// One write at a time: an unanswered renewal comes first.
    pub(super) fn send_release(&mut self) {
        let (Some(timing), Some(held)) = (self.term_timing(), self.held_term) else { return };
        if self.pending.is_none() && self.timing().is_some() {
            let (conditions, entry) = (held.conditions, held.entry(timing.lease));
            self.keeps_candidate = matches!(self.phase, Phase::Releasing { after: After::Stay, .. });
            let (candidacy, keeps_candidate) = (self.candidacy, self.keeps_candidate);
            self.request(Request::Release, Action::Release { candidacy, conditions, entry, keeps_candidate });
        }
    }

    /// The server refused a write while we release: the version moved (by our own unanswered renewal), or another
    /// candidate holds the record.
    pub(super) fn release_denied(&mut self, now: Now, request: Request, denial: Denial) {
        let Phase::Releasing { after, .. } = self.phase else { return };
        if matches!(denial, Denial::Forbidden(_)) || request == Request::Observe {
            return self.leave(now, after, Why::ReleaseUnconfirmed);
        }
        self.is_mark_lost &= request != Request::Mark;
        if let Some(held) = self.held_term.as_mut().filter(|_| request == Request::Release) {
            held.conflict = Some(held.conditions.record);
        }
        self.observe();
    }

    pub(super) fn released(&mut self, now: Now) {
        match self.phase {
            Phase::Releasing { after, .. } => self.leave(now, after, Why::Released),
            // The release was given up, and is confirmed after all: the candidate is gone.
            Phase::Following if self.keeps_candidate => self.look_again(),
            Phase::Following => self.enter_anew(),
            _ => {}
        }
    }

    /// Goes on to `after`; no tree is alive.
    pub(super) fn leave(&mut self, now: Now, after: After, why: Why) {
        self.retire();
        self.standing.retry_at = None;
        match after {
            After::Exit(reason) => {
                let reason = self.last_reason(reason);
                self.enter_phase(now, Phase::Done, why);
                self.actions.push(Action::Exit(reason));
            }
            After::Rejoin => {
                self.enter_phase(now, Phase::Following, why);
                self.rejoin(now, why);
            }
            After::Stay => {
                self.enter_phase(now, Phase::Following, why);
                self.look_again();
            }
        }
        self.end_term(why);
    }

    /// Our term is over: if this process dies from now on, the guard has nothing to release.
    pub(super) fn retire(&mut self) {
        let has_led = self.held_term.is_some_and(|held| held.has_started);
        if has_led && self.run.is_none() && !self.gone.command {
            self.order(Order::Retire { run: RunId(self.runs) });
        }
    }

    fn rejoin(&mut self, now: Now, why: Why) {
        let wait_was_over = self.held_term.is_some_and(|held| self.finished == Some(held.nonce));
        match self.link {
            Link::Down { .. } | Link::Opening => {}
            Link::Open(_) if why == Why::Released && !self.keeps_candidate => self.enter_anew(),
            // The candidate may still exist and be first; a second one would stand behind it for ever.
            Link::Open(_) if wait_was_over => self.look_again(),
            // At-least-once without a release: a new session is the way to leave the queue.
            Link::Open(_) => self.link = Link::Down { retry_at: self.backoff.retry_at(now.lease) },
        }
    }
}
