//! The steps around the command: `--before-start` before the first start of a term, and `--after-stop` at the end of a
//! term, when the tree is empty and before the release.
//!
//! A step has a guard of its own, which ends the step's whole tree at its `kill_at`, never later than that of the lease.
//! No command runs beside it. Until the end of its tree is reported, nothing is released and nothing else is started: a
//! live step is handled as a live tree. A step delays no deadline of the lease.

use std::time::Duration;

use super::Machine;
use super::phase::{After, Phase, Step};
use crate::core::action::{Action, ExitReason, Why};
use crate::core::event::StepOutcome;
use crate::core::guard_messages::Deadlines;
use crate::core::settings::{StepKind, notice_of};
use crate::core::time::{Now, Timestamp};

/// A step whose tree may be alive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LiveStep {
    pub kind: StepKind,
    /// Of its term.
    token: i64,
    /// When its own timeout is over.
    limit: Timestamp,
    notice: Duration,
    deadlines: Deadlines,
    /// Why the term is given up at the end of the step.
    gives_up_for: Why,
}

impl LiveStep {
    /// The deadlines under a lease that ends at `kill_at`.
    fn under(&self, kill_at: Timestamp) -> Deadlines {
        let kill_at = self.limit.min(kill_at);
        Deadlines { stop_at: kill_at.before(self.notice), kill_at }
    }

    /// When the machine has to look at it again.
    fn due_at(&self, now: Now) -> Timestamp {
        if now.lease < self.deadlines.stop_at { self.deadlines.stop_at } else { self.deadlines.kill_at }
    }
}

impl Machine {
    /// Whether the tree of the command or of a step may be alive.
    pub(super) fn is_live(&self) -> bool {
        self.run.is_some() || self.step.is_some()
    }

    /// Whether only `--after-stop` is left.
    pub(super) fn runs_after_command(&self) -> bool {
        self.run.is_none() && self.step.is_some_and(|step| step.kind == StepKind::AfterStop)
    }

    /// The wait is over, and the lease has runway, as for a start.
    pub(super) fn run_before_start(&mut self, now: Now) {
        let (Some(timeout), Some(held)) = (self.settings.steps.before_start, &mut self.held_term) else { return };
        held.needs_after_stop = self.settings.steps.after_stop.is_some();
        match self.phase {
            Phase::Preparing { .. } => self.phase = Phase::Preparing { step: Step::BeforeStart },
            _ => self.enter_phase(now, Phase::Preparing { step: Step::BeforeStart }, Why::Elected),
        }
        self.run_step(now, StepKind::BeforeStart, timeout, Why::Elected);
    }

    fn run_step(&mut self, now: Now, kind: StepKind, timeout: Duration, why: Why) {
        let (Some(held), Some(lease)) = (self.held_term, self.deadlines()) else { return };
        let allowed = timeout.min(now.lease.until(lease.kill_at));
        let (limit, notice) = (now.lease.after(timeout), notice_of(allowed));
        let nothing_yet = Deadlines { stop_at: now.lease, kill_at: now.lease };
        let (token, gives_up_for) = (held.grant.token, Why::TreeEmpty);
        let step = LiveStep { kind, token, limit, notice, deadlines: nothing_yet, gives_up_for };
        let deadlines = step.under(lease.kill_at);
        self.step = Some(LiveStep { deadlines, ..step });
        let lapsed = matches!(self.phase, Phase::Stopping { lapsed: true, .. });
        self.dead_by = if lapsed { deadlines.kill_at } else { limit };
        // From now on a tree may live under this record.
        self.finished = None;
        self.actions.push(Action::RunStep { step: kind, grant: held.grant, why, deadlines });
    }

    /// A renewal has moved the end of the lease.
    pub(super) fn extend_step(&mut self) {
        let (Some(lease), Some(step)) = (self.deadlines(), &mut self.step) else { return };
        let deadlines = step.under(lease.kill_at);
        if deadlines.kill_at > step.deadlines.kill_at {
            step.deadlines = deadlines;
            self.actions.push(Action::ExtendStep { step: step.kind, deadlines });
        }
    }

    pub(super) fn step_due_at(&self, now: Now) -> Timestamp {
        self.step.map_or(Timestamp::NEVER, |step| step.due_at(now))
    }

    /// The deadlines of `--before-start`, which its guard keeps. If only its own time is over, it has failed.
    pub(super) fn pass_before_start(&mut self, now: Now) {
        let Some(step) = self.step else { return };
        if now.lease >= step.deadlines.stop_at && step.deadlines.kill_at < step.limit {
            self.stop_tree(now, Why::LeaseEnding, step.deadlines.kill_at);
        } else if now.lease >= step.limit {
            self.stand_back(now);
            self.begin_stop(now, After::Rejoin, Why::BeforeStartFailed, false);
        }
    }

    pub(super) fn step_ended(&mut self, now: Now, kind: StepKind, token: i64, outcome: StepOutcome) {
        let Some(step) = self.step.take_if(|step| step.kind == kind && step.token == token) else { return };
        self.tree_is_empty(now);
        if outcome == StepOutcome::GuardGone {
            self.notice_late_guard(now);
        }
        if let Phase::Stopping { after, .. } = self.phase {
            let after = self.after_step(after, outcome);
            return self.begin_release(now, after, step.gives_up_for);
        }
        self.phase = Phase::Preparing { step: Step::Ready };
        match (outcome, &mut self.held_term) {
            (StepOutcome::Succeeded, Some(held)) => {
                held.needs_before_start = false;
                self.start(now);
            }
            (StepOutcome::GuardGone, _) => {
                let (after, why) = self.after_guard();
                self.begin_release(now, after, why);
            }
            _ => {
                self.stand_back(now);
                self.begin_release(now, After::Rejoin, Why::BeforeStartFailed);
            }
        }
    }

    /// A process whose step cannot be run again ends.
    fn after_step(&self, after: After, outcome: StepOutcome) -> After {
        match after {
            After::Rejoin | After::Stay if outcome == StepOutcome::GuardGone => self.after_guard().0,
            After::Rejoin | After::Stay | After::Exit(_) => after,
        }
    }

    /// Ends what may not outlive our term. Returns whether a step lives on, at whose end [`Machine::begin_release`] is
    /// to be called again.
    pub(super) fn winds_up(&mut self, now: Now, after: After, why: Why) -> bool {
        let Some(step) = self.step else { return self.runs_after_stop(now, after, why) };
        if step.kind == StepKind::BeforeStart {
            self.order_stop(now.lease.after(self.settings.stop_timeout));
        }
        self.begin_stop(now, after, why, false);
        true
    }

    /// Begins `--after-stop` if it is due. Our guard must not free the record during it: the step's tree lives.
    fn runs_after_stop(&mut self, now: Now, after: After, why: Why) -> bool {
        let has_lease = self.deadlines().is_some_and(|lease| now.lease < lease.kill_at);
        let Some(held) = self.held_term.as_mut().filter(|held| held.needs_after_stop) else { return false };
        held.needs_after_stop = false;
        let Some(timeout) = self.settings.steps.after_stop.filter(|_| has_lease && !held.is_forfeit) else {
            self.actions.push(Action::SkipStep { step: StepKind::AfterStop });
            return false;
        };
        self.retire();
        let (mut first, mut gives_up_for) = (why, Why::TreeEmpty);
        if let Phase::Stopping { lapsed, .. } = self.phase {
            (self.phase, first) = (Phase::Stopping { after, lapsed }, self.stops_for);
            // What was told when the stop began is not told again.
            gives_up_for = if why == first { Why::TreeEmpty } else { why };
        } else {
            self.begin_stop(now, after, why, false);
        }
        self.run_step(now, StepKind::AfterStop, timeout, first);
        self.step.iter_mut().for_each(|step| step.gives_up_for = gives_up_for);
        true
    }

    /// The candidate or the session is gone, and no command runs. What a step began has the rest of the lease, unless
    /// another host may start at once. Returns whether the term is over already.
    pub(super) fn loses_candidate_without_run(&mut self, now: Now, why: Why) -> bool {
        if self.nobody_waits() {
            self.forfeit();
        }
        if self.step.is_some() && self.nobody_waits() {
            self.kill_tree(now, why);
        } else if self.step.is_some() {
            self.stop_tree(now, why, self.stop_by(now));
        } else if !self.runs_after_stop(now, self.after_loss(), why) {
            self.lose_term(now, why);
            return true;
        }
        self.lapse();
        if !self.at_least_once() {
            self.observe_again();
        }
        false
    }

    /// The lease counts for nothing any more, although its end has not come.
    pub(super) fn forfeit(&mut self) {
        if let Some(held) = &mut self.held_term {
            held.is_forfeit = true;
        }
    }

    /// No step may be begun any more in this term.
    pub(super) fn skip_after_stop(&mut self) {
        if let Some(held) = self.held_term.as_mut().filter(|held| held.needs_after_stop) {
            held.needs_after_stop = false;
            self.actions.push(Action::SkipStep { step: StepKind::AfterStop });
        }
    }

    /// The command's guard is gone, and no command runs.
    pub(super) fn guard_gone_without_run(&mut self, now: Now) {
        let gone = After::Exit(ExitReason::GuardGone);
        match self.phase {
            Phase::Stopping { .. } | Phase::Releasing { .. } => self.end_by(gone),
            Phase::Following => self.depart(now, ExitReason::GuardGone, Why::GuardGone),
            _ => self.begin_release(now, gone, Why::GuardGone),
        }
    }
}
