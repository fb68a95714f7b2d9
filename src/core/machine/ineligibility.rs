//! Reasons why this process may not lead now, and how it steps down.
//!
//! Most reasons remove us from the queue: we leave it, or stop the command, free the record and leave, and come back
//! when none is left. *Disabled* holds for every host: no host runs the command, and every candidate keeps its place.
//!
//! We leave the queue by opening a new session (decision 4): all znodes of the old one are deleted with it, even a
//! candidate whose create was never answered. We do not leave while the tree lives (I4), nor before a pending take-over
//! is answered, or was looked for.

use super::phase::{After, Link, Phase};
use super::{Machine, Standing};
use crate::core::action::{Action, ExitReason, PhaseName, Transition, Why};
use crate::core::event::Ineligibility;
use crate::core::time::{Now, Timestamp};

/// The reasons that hold now.
#[expect(clippy::struct_excessive_bools, reason = "each is a reason of its own, and all may hold at once")]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ineligibilities {
    pub unhealthy: bool,
    pub ineligible: bool,
    pub disabled: bool,
    pub handing_over: bool,
    pub drained: bool,
    /// This process resigned; other hosts go first until then.
    pub stand_back_until: Option<Timestamp>,
}

impl Ineligibilities {
    fn set(&mut self, reason: Ineligibility, on: bool) {
        match reason {
            Ineligibility::Unhealthy => self.unhealthy = on,
            Ineligibility::Ineligible => self.ineligible = on,
            Ineligibility::Disabled => self.disabled = on,
            Ineligibility::HandingOver => self.handing_over = on,
            Ineligibility::Drained => self.drained = on,
        }
    }

    /// Whether this process must leave the queue.
    pub fn keep_out(&self) -> bool {
        let is_barred = self.unhealthy || self.ineligible || self.handing_over || self.drained;
        is_barred || self.stand_back_until.is_some()
    }

    pub fn is_any(&self) -> bool {
        self.keep_out() || self.disabled
    }

    /// The most important reason.
    pub(super) fn why(&self) -> Why {
        match self {
            Self { unhealthy: true, .. } => Why::Unhealthy,
            Self { ineligible: true, .. } => Why::Ineligible,
            Self { handing_over: true, .. } => Why::HandingOver,
            Self { drained: true, .. } => Why::Drained,
            Self { stand_back_until: Some(_), .. } => Why::StandingBack,
            _ => Why::Disabled,
        }
    }

    pub(super) fn pass(&mut self, now: Now) {
        self.stand_back_until = self.stand_back_until.filter(|until| now.lease < *until);
    }
}

impl Machine {
    /// The reasons that hold now, for status and logs.
    pub fn ineligibilities(&self) -> Ineligibilities {
        self.ineligibilities
    }

    pub(super) fn ineligible(&mut self, now: Now, reason: Ineligibility, on: bool) {
        let before = self.ineligibilities;
        self.ineligibilities.set(reason, on);
        match self.phase {
            // `pass_following` handles the queue.
            Phase::Following if before.disabled && !self.ineligibilities.disabled => self.look_in_turn(now),
            phase if phase.goes_on() && self.ineligibilities.is_any() => self.resign(now),
            _ => {}
        }
    }

    /// The participant that came later exits; but a command that runs is not stopped for a duplicate id.
    pub(super) fn id_taken(&mut self, now: Now) {
        let exit = After::Exit(ExitReason::IdTaken);
        match self.phase {
            Phase::Following => self.depart(now, ExitReason::IdTaken, Why::Misconfigured),
            Phase::Waiting => self.begin_release(now, exit, Why::Misconfigured),
            Phase::Preparing { .. }
            | Phase::Leading
            | Phase::Vouched
            | Phase::Paused { .. }
            | Phase::Stopping { .. }
            | Phase::Releasing { .. }
            | Phase::Done => {}
        }
    }

    /// The last verdict of the check would hold for ever. The process ends as by a request to stop, so that whoever
    /// started it can start one with a guard; after a standstill it does so itself.
    pub(super) fn check_gone(&mut self, now: Now, stood_still: bool) {
        self.gone.check = true;
        let (reason, why) = if stood_still && self.may_start_anew() {
            (ExitReason::StoodStill, Why::CheckLate)
        } else {
            (ExitReason::GuardGone, Why::CheckGone)
        };
        let exit = After::Exit(reason);
        match self.phase {
            Phase::Following => self.depart(now, reason, why),
            Phase::Waiting | Phase::Preparing { .. } | Phase::Leading | Phase::Vouched | Phase::Paused { .. } => {
                self.yield_seat(now, exit, why);
            }
            Phase::Stopping { .. } | Phase::Releasing { .. } | Phase::Done => self.end_by(exit),
        }
    }

    /// Another client asks us to yield. Ignored without a record.
    pub(super) fn revoked(&mut self, now: Now) {
        if self.phase.goes_on() {
            self.yield_seat(now, After::Rejoin, Why::Revoked);
        }
    }

    /// Steps down for the reasons that hold.
    pub(super) fn resign(&mut self, now: Now) {
        let (after, why) = self.after_bars();
        self.yield_seat(now, after, why);
    }

    /// Stops the tree first, with the lease renewed meanwhile, then steps down.
    pub(super) fn yield_seat(&mut self, now: Now, after: After, why: Why) {
        if self.is_live() {
            self.order_stop(now.lease.after(self.settings.stop_timeout));
            self.begin_stop(now, after, why, false);
        } else {
            self.begin_release(now, after, why);
        }
    }

    pub(super) fn after_bars(&self) -> (After, Why) {
        (if self.ineligibilities.keep_out() { After::Rejoin } else { After::Stay }, self.ineligibilities.why())
    }

    pub(super) fn stand_back(&mut self, now: Now) {
        self.history.resigns(now.lease);
        self.ineligibilities.stand_back_until = Some(now.lease.after(self.settings.service.stand_back));
    }

    /// Leaves or enters the queue, as the reasons require.
    pub(super) fn heed_bars_in_line(&mut self, now: Now) {
        if self.timing().is_none() || self.standing.is_out == self.ineligibilities.keep_out() {
            return;
        }
        if self.standing.is_out {
            if !self.standing.frees_first {
                self.announce_in_line(now, Why::EligibleAgain);
            }
            self.enter_in_turn(now);
        } else if !self.may_have_taken_over() {
            self.announce_in_line(now, self.ineligibilities.why());
            self.leave_line(now);
        }
    }

    /// Opens a new session, without a candidate for now.
    pub(super) fn leave_line(&mut self, now: Now) {
        self.begin_candidacy(Standing { is_out: true, ..Standing::default() });
        self.link = Link::Down { retry_at: now.lease };
        self.reconnect_when_due(now);
    }

    fn announce_in_line(&mut self, now: Now, why: Why) {
        let (from, to) = (PhaseName::Following, PhaseName::Following);
        let next_in = self.next_in(now);
        self.actions.push(Action::Announce(Transition {
            from,
            to,
            why,
            token: None,
            grant: None,
            lease_left: None,
            next_in,
        }));
    }
}
