//! The steps between the take-over and the start, while no tree lives.
//!
//! They come in the order of [`Step`], each only if it is configured, and all but the last only before the first start
//! of a term. Without any, the start follows in the same turn. A start needs runway (I2). A record whose last holder
//! must be fenced is not released before that.

use super::phase::{After, Phase, Step};
use super::term::HeldTerm;
use super::{Link, Machine};
use crate::core::action::{Action, ExitReason, Why};
use crate::core::event::Request;
use crate::core::lease;
use crate::core::settings::OnLoss;
use crate::core::time::{Now, Timestamp};

impl Machine {
    /// Takes the next step, which may be the start.
    pub(super) fn prepare(&mut self, now: Now) {
        let step = self.next_step(now);
        if step == Step::Ready {
            return self.start(now);
        }
        match self.phase {
            Phase::Preparing { .. } => self.phase = Phase::Preparing { step },
            _ => self.enter_phase(now, Phase::Preparing { step }, Why::Elected),
        }
        match (step, self.held_term) {
            (Step::Fence, Some(held)) => self.actions.push(Action::Fence { grant: held.grant }),
            (Step::Mark, _) => self.mark_when_due(now),
            _ => {}
        }
    }

    /// The command failed and is started again in this term.
    pub(super) fn rest(&mut self, now: Now, until: Timestamp, why: Why) {
        self.rest_until = until.max(self.rest_until);
        self.enter_phase(now, Phase::Preparing { step: Step::Backoff }, why);
    }

    fn next_step(&self, now: Now) -> Step {
        match self.held_term {
            Some(held) if held.is_unfenced => Step::Fence,
            Some(held) if held.is_unmarked => Step::Mark,
            _ if now.lease < self.rest_until => Step::Backoff,
            _ => Step::Ready,
        }
    }

    pub(super) fn preparing_deadline(&self, now: Now) -> Timestamp {
        let (Some(held), Some(deadlines)) = (&self.held_term, self.deadlines()) else { return Timestamp::NEVER };
        let step = match self.phase {
            Phase::Preparing { step: Step::Backoff } => self.rest_until,
            Phase::Preparing { step: Step::Mark } if self.can_mark() => held.mark_at,
            _ => Timestamp::NEVER,
        };
        let limits = deadlines.kill_at.min(self.give_up_at()).min(self.step_due_at(now));
        step.min(self.renewal_due_at(now)).min(limits).min(self.look_due_at()).min(self.reconnect_due_at(now))
    }

    pub(super) fn pass_preparing(&mut self, now: Now) {
        let Some(deadlines) = self.deadlines() else { return };
        if now.lease >= self.give_up_at() {
            let (reason, why) = self.impatience();
            return self.begin_release(now, After::Exit(reason), why);
        }
        self.pass_before_start(now);
        if !matches!(self.phase, Phase::Preparing { .. }) {
            return;
        }
        if self.step.is_none() && now.lease >= deadlines.kill_at {
            self.lose_term(now, Why::LeaseEnding);
            return self.look_again();
        }
        self.reconnect_in_term(now);
        self.renew_when_due(now);
        self.look_when_due(now);
        match self.phase {
            Phase::Preparing { step: Step::Mark } => self.mark_when_due(now),
            Phase::Preparing { step: Step::Backoff | Step::Ready } if self.next_step(now) == Step::Ready => {
                self.start(now);
            }
            _ => {}
        }
    }

    /// Whether there is a session with a candidate of ours, and no request is under way.
    fn can_mark(&self) -> bool {
        self.pending.is_none() && self.timing().is_some() && self.standing.view.is_some()
    }

    /// One request at a time: a renewal comes first.
    fn mark_when_due(&mut self, now: Now) {
        let Some(held) = self.held_term.filter(|held| held.is_unmarked && now.lease >= held.mark_at) else {
            return;
        };
        self.mark(&held);
    }

    fn mark(&mut self, held: &HeldTerm) {
        if let (true, Link::Open(timing)) = (self.can_mark(), self.link) {
            let (conditions, entry) = (held.conditions, held.entry(timing.lease));
            let action = Action::Mark { candidacy: self.candidacy, conditions, entry, is_first: self.runs == 0 };
            self.request(Request::Mark, action);
        }
    }

    /// A run that was marked in this term and never began must not keep other hosts from it.
    pub(super) fn withdraw_run(&mut self) {
        let is_marked = self.settings.preparations.marks && self.held_term.is_some_and(|held| !held.is_unmarked);
        if is_marked && !self.held_term.is_some_and(|held| held.has_started) {
            self.actions.push(Action::WithdrawRun);
        }
    }

    /// A marker whose answer was lost is written again before the release: so it is found, and can be taken back.
    pub(super) fn release_with_marker(&mut self) {
        match self.held_term.filter(|_| self.is_mark_lost && self.can_mark()) {
            Some(held) => self.mark(&held),
            None => self.send_release(),
        }
    }

    /// The marker is ours, or another run's (`is_fresh` false).
    pub(super) fn marked(&mut self, now: Now, is_fresh: bool) {
        self.is_mark_lost = false;
        match (self.phase, &mut self.held_term) {
            (Phase::Preparing { step: Step::Mark }, Some(held)) if is_fresh => {
                held.is_unmarked = false;
                self.prepare(now);
            }
            (Phase::Preparing { step: Step::Mark }, Some(_)) => {
                // Our own run was interrupted and is not repeated: that is no success.
                let own = self.runs > 0 && self.settings.on_loss == OnLoss::Exit;
                let (reason, why) = if own {
                    (ExitReason::LeadershipLost, Why::RunLost)
                } else {
                    (ExitReason::Duplicate, Why::Duplicate)
                };
                self.begin_release(now, After::Exit(reason), why);
            }
            (Phase::Releasing { .. }, Some(held)) => {
                held.is_unmarked = !is_fresh;
                self.withdraw_run();
                self.send_release();
            }
            // The term was lost meanwhile.
            (Phase::Following, _) => self.look_again(),
            _ => {}
        }
    }

    /// The fence command ended. After a failure the record stays as it is, so that the next leader has to fence, too.
    pub(super) fn fenced(&mut self, now: Now, token: i64, is_fenced: bool) {
        let Some(held) = self.held_term.as_mut().filter(|held| held.grant.token == token) else {
            return;
        };
        if self.phase != (Phase::Preparing { step: Step::Fence }) {
            return;
        }
        if is_fenced {
            held.is_unfenced = false;
            self.phase = Phase::Preparing { step: Step::Ready };
            return self.prepare(now);
        }
        self.phase = Phase::Preparing { step: Step::Ready };
        self.stand_back(now);
        self.begin_release(now, After::Rejoin, Why::FenceFailed);
    }

    /// The record is lost while no tree lives.
    pub(super) fn lose_term(&mut self, now: Now, why: Why) {
        let has_led = self.held_term.is_some_and(|held| held.has_started);
        self.skip_after_stop();
        if has_led && self.settings.on_loss == OnLoss::Exit {
            return self.leave(now, After::Exit(ExitReason::LeadershipLost), why);
        }
        self.retire();
        self.enter_phase(now, Phase::Following, why);
        self.end_term(why);
    }

    /// The command has run in this term and will run again: there is no process to forward its signals to.
    pub(super) fn is_between_runs(&self) -> bool {
        matches!(self.phase, Phase::Preparing { .. }) && self.held_term.is_some_and(|held| held.has_started)
    }

    /// When `--grace` ends a pause that began then, whether a session is open or not.
    pub(super) fn grace_over_at(&self, paused_at: Timestamp) -> Timestamp {
        lease::grace_over_at(self.settings.wishes.grace, paused_at)
    }

    /// When a pause that began then ends with the stop signal.
    fn stops_at(&self, paused_at: Timestamp) -> Option<Timestamp> {
        let grace_over_at = self.grace_over_at(paused_at);
        self.deadlines().map(|deadlines| deadlines.stop_at.min(deadlines.kill_at).min(grace_over_at))
    }

    /// For the log: how long the new phase will last if nothing happens.
    pub(super) fn next_in(&self, now: Now) -> Option<std::time::Duration> {
        let until = match self.phase {
            Phase::Waiting => self.held_term.map(|held| now.lease.after(now.observer.until(held.not_before))),
            Phase::Preparing { step: Step::Backoff } => Some(self.rest_until),
            Phase::Following => self.ineligibilities.stand_back_until,
            Phase::Paused { since } => self.stops_at(since),
            Phase::Releasing { until, after } => Some(until).filter(|_| self.lingers(after)),
            _ => None,
        };
        until.map(|until| now.lease.until(until))
    }
}
