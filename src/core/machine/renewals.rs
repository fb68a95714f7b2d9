//! Renewals that are sent before the last one is answered, while commits are slow: each is conditional on the version
//! that the one before it writes.
//!
//! A session's requests are carried out in order, so each finds the version that it names; and an answer counts from the
//! sending of its own renewal. If one of them is refused or its outcome is unknown, those behind it name versions that
//! may never exist: no more are sent until all are answered, and a refusal of one of several is no sign of another
//! holder.

use std::collections::VecDeque;

use super::Machine;
use super::phase::{Phase, Step};
use crate::core::action::{Action, Conditions};
use crate::core::event::{Place, Request};
use crate::core::lease::Timing;
use crate::core::time::{Now, Timestamp};

/// One in each renewal interval, until the connection is given up for its silence ([`crate::core::lease::silence_limit`]).
const MOST: usize = 4;

/// The renewals without an answer; none unless a renewal is pending.
#[derive(Clone, Debug, Default)]
pub(super) struct Unanswered {
    /// When each was sent.
    sent: VecDeque<Timestamp>,
    /// There was more than one at a time.
    are_several: bool,
    /// The version that the next one will find, if all are applied.
    next_version: i32,
    /// One of them was refused, or its outcome is unknown.
    has_failed: bool,
    /// The record has to be read before it is written again.
    is_refused: bool,
}

impl Unanswered {
    /// One of them has its answer. Whether it was the last.
    pub fn is_over_with_this(&mut self) -> bool {
        self.sent.pop_front();
        self.sent.is_empty()
    }
}

impl Machine {
    pub(super) fn renewal_due_at(&self, now: Now) -> Timestamp {
        let is_first = self.standing.view.is_some_and(|view| view.place == Place::First);
        let (Some(timing), Some(held), true) = (self.timing(), &self.held_term, is_first) else {
            return Timestamp::NEVER;
        };
        match (self.pending, self.unanswered.sent.back()) {
            (None, _) => held.renewal_due_at(now),
            (Some(Request::Renew), Some(last)) if self.may_renew_ahead(timing) => last.after(timing.renewal_interval),
            (Some(_), _) => Timestamp::NEVER,
        }
    }

    /// Whether the next renewal may be sent before the last is answered. Not where a write must certify the one before
    /// it, and not while something else waits for its turn.
    fn may_renew_ahead(&self, timing: &Timing) -> bool {
        let another_waits = self.standing.stale || self.phase == (Phase::Preparing { step: Step::Mark });
        let goes_well = !self.unanswered.has_failed && self.unanswered.sent.len() < MOST && self.deadlines().is_some();
        goes_well && !another_waits && !timing.needs_two_writes() && !self.at_least_once()
    }

    pub(super) fn renew_when_due(&mut self, now: Now) {
        if now.lease < self.renewal_due_at(now) {
            return;
        }
        let Some((timing, held)) = self.timing().copied().zip(self.held_term.as_mut()) else { return };
        if self.pending.is_none() {
            self.unanswered = Unanswered { next_version: held.conditions.record, ..Unanswered::default() };
        }
        let record = self.unanswered.next_version;
        self.unanswered.next_version = record.wrapping_add(1);
        self.unanswered.are_several |= !self.unanswered.sent.is_empty();
        self.unanswered.sent.push_back(now.lease);
        held.renew_at = now.lease.after(timing.renewal_interval);
        let (conditions, entry) = (Conditions { record, ..held.conditions }, held.entry(timing.lease));
        self.request(Request::Renew, Action::Renew { candidacy: self.candidacy, conditions, entry });
    }

    /// Whether renewals follow each other, and the next will be answered before `stop_at`, with an interval to spare, if
    /// it takes as long as the last one did.
    pub(super) fn is_renewed_in_time(&self, now: Now, timing: &Timing) -> bool {
        let (Some(held), Some(deadlines)) = (&self.held_term, self.deadlines()) else { return false };
        let took = held.acked_sent_at.until(now.lease);
        let oldest = self.unanswered.sent.front().filter(|_| self.pending == Some(Request::Renew));
        let in_time = |sent: &Timestamp| sent.after(took).after(timing.renewal_interval) < deadlines.stop_at;
        self.unanswered.are_several && !self.unanswered.has_failed && oldest.is_some_and(in_time)
    }

    /// Another holder, or a renewal of ours whose answer was lost: the record tells. Of several, one may be refused only
    /// because of the one before it.
    pub(super) fn renewal_conflicts(&mut self) {
        if let Some(held) = self.held_term.as_mut().filter(|_| !self.unanswered.are_several) {
            held.conflict = Some(held.conditions.record);
        }
        self.unanswered.is_refused = true;
    }

    /// After the answer to a request was handled.
    pub(super) fn note_failure(&mut self, request: Request) {
        self.unanswered.has_failed |= request == Request::Renew;
    }

    /// Reads the record once all renewals are answered, if one was refused.
    pub(super) fn read_what_was_refused(&mut self) {
        if self.pending != Some(Request::Renew) && std::mem::take(&mut self.unanswered).is_refused {
            self.observe();
        }
    }

    /// Whatever is under way, its answer will be void.
    pub(super) fn forget_requests(&mut self) {
        (self.pending, self.unanswered) = (None, Unanswered::default());
    }
}
