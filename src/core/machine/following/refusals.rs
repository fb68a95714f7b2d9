//! Requests that were refused, or whose outcome is unknown.

use crate::core::action::Action;
use crate::core::event::{Denial, Request};
use crate::core::guard_messages::Slot;
use crate::core::machine::Machine;
use crate::core::machine::phase::Phase;
use crate::core::time::Now;

impl Machine {
    pub(in crate::core::machine) fn denied(&mut self, now: Now, request: Request, denial: Denial) {
        match (self.phase, denial) {
            (Phase::Releasing { .. }, _) => self.release_denied(now, request, denial),
            (Phase::Following, _) if self.departure.is_some() => self.go(now),
            (_, Denial::Forbidden(grounds)) => self.forbidden(now, grounds),
            (Phase::Following, Denial::Conflict) if request == Request::TakeOver => self.claim_refused(now),
            (Phase::Following, Denial::Conflict) => self.look_again(),
            (Phase::Following, Denial::CandidateGone) => self.enter_later(now),
            (Phase::Done, _) => {}
            _ => self.denied_as_holder(now, request, denial),
        }
    }

    /// The record or the term has another version than we were shown: read again. A refusal comes behind all that led to it: a
    /// server that shows the refused versions once more has missed or lost writes (ZOOKEEPER-4643, ZOOKEEPER-4646), and does not
    /// find back by itself. Another one is asked, later, because it may be as far behind.
    fn claim_refused(&mut self, now: Now) {
        self.standing.sending = None;
        let shown = self.standing.view.map(|view| (view.record.version, view.term_version));
        let slot = self.standing.view.map(|view| view.record.slot).filter(|slot| *slot != Slot::default());
        let before = std::mem::replace(&mut self.standing.refused_on, shown);
        let slot_before = std::mem::replace(&mut self.standing.refused_in, slot);
        if (before, slot_before) == (shown, slot) {
            self.standing.retry_at = Some(self.backoff.retry_at(now.lease));
            self.actions.push(Action::LeaveServer);
        } else {
            self.look_again();
        }
    }

    /// The outcome is unknown: read before the next write.
    pub(in crate::core::machine) fn unanswered(&mut self, now: Now, request: Request) {
        self.is_mark_lost |= request == Request::Mark && self.held_term.is_some();
        match self.phase {
            // Out of the queue there is nothing to look at.
            Phase::Following if self.standing.is_out => {}
            Phase::Following => self.standing.retry_at = Some(self.backoff.retry_at(now.lease)),
            Phase::Waiting
            | Phase::Preparing { .. }
            | Phase::Leading
            | Phase::Vouched
            | Phase::Paused { .. }
            | Phase::Stopping { .. } => {
                self.unanswered_as_holder(now, request);
            }
            // A release may last as long as an outage, and as long as servers refuse it.
            Phase::Releasing { after, .. }
                if request == Request::Observe || request == Request::Release && self.may_linger(after) =>
            {
                self.standing.retry_at = Some(self.reconnect.retry_at(now.lease));
            }
            Phase::Releasing { .. } => self.observe(),
            Phase::Done => {}
        }
    }
}
