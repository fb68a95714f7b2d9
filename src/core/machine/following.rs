//! Sessions and the queue: from no session to the take-over of the record.

mod patience;
mod refusals;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Machine;
use super::phase::{After, Departure, Link, Phase};
use super::term::{HeldTerm, Sending};
use crate::core::action::{Action, Conditions, Entry, ExitReason, Why};
use crate::core::event::{Nonce, Place, Record, Request, SessionNumber, View};
use crate::core::guard_messages::{Grant, Slot, Takeover};
use crate::core::lease::Timing;
use crate::core::time::{Now, Sighting, Timestamp};

/// Our place in the queue.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Standing {
    /// This process is ineligible: the session is open without a candidate.
    pub(super) is_out: bool,
    /// It is not ineligible, but has to free its last record first.
    #[serde(skip)]
    pub(super) frees_first: bool,
    /// Our candidate was seen: send `Look`, not `Enter`.
    pub(super) entered: bool,
    pub(super) view: Option<View>,
    /// The last take-over that was sent in this candidacy.
    #[serde(skip)]
    pub(super) sending: Option<Sending>,
    /// Something changed while a request was pending.
    #[serde(skip)]
    pub(super) stale: bool,
    #[serde(skip)]
    pub(super) retry_at: Option<Timestamp>,
    /// The versions of record and term on which a take-over was last refused.
    #[serde(default)]
    pub(super) refused_on: Option<(i32, i32)>,
    /// The slot of that record; `None`: the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refused_in: Option<Slot>,
    /// When the record may be claimed, which is not claimed before the wait is over.
    #[serde(default)]
    pub(super) claim_at: Option<Timestamp>,
}

/// The holder's settings differ from ours. A free record has no holder: the first candidate writes its own settings.
fn differs(record: Record) -> bool {
    record.held && !record.agrees
}

impl Machine {
    pub(super) fn following_deadline(&self) -> Timestamp {
        let link = match self.link {
            Link::Down { retry_at } => retry_at,
            Link::Opening | Link::Open(_) => Timestamp::NEVER,
        };
        let look = self.look_due_at();
        if let Some(Departure { by, .. }) = self.departure {
            return look.min(by);
        }
        let connect = if self.was_connected() { Timestamp::NEVER } else { self.connect_by };
        let stand_back = self.ineligibilities.stand_back_until.unwrap_or(Timestamp::NEVER);
        let claim = self.claim_due_at();
        link.min(look).min(connect).min(stand_back).min(self.give_up_at()).min(claim)
    }

    pub(super) fn pass_following(&mut self, now: Now) {
        if !self.was_connected() && now.lease >= self.connect_by.min(self.too_late_at) {
            return self.leave(now, After::Exit(ExitReason::Unreachable), Why::Unreachable);
        }
        if let Some(Departure { reason, why, by }) = self.departure {
            if now.lease >= by {
                return self.leave(now, After::Exit(reason), why);
            }
        } else if now.lease >= self.give_up_at() {
            let (reason, why) = self.impatience();
            return self.depart(now, reason, why);
        }
        if self.departure.is_none() {
            self.heed_bars_in_line(now);
        }
        self.reconnect_when_due(now);
        if self.standing.retry_at.is_some_and(|at| now.lease >= at) || now.lease >= self.claim_due_at() {
            self.look_again();
        }
    }

    pub(super) fn reconnect_when_due(&mut self, now: Now) {
        let Link::Down { retry_at } = self.link else { return };
        if now.lease >= retry_at {
            self.session = SessionNumber(self.session.0 + 1);
            self.link = Link::Opening;
            self.actions.push(Action::Connect { session: self.session });
        }
    }

    pub(super) fn connected(&mut self, now: Now, negotiated: Duration) {
        match Timing::new(negotiated, &self.settings.wishes) {
            Ok(timing) => {
                self.link = Link::Open(timing);
                self.connect_by = Timestamp::NEVER;
                self.allow_a_look(now, &timing);
                if !self.frees_what_it_left(now) {
                    self.enter_in_turn(now);
                }
            }
            Err(error) => self.give_up(now, ExitReason::BadTiming(error), Why::Misconfigured),
        }
    }

    fn was_connected(&self) -> bool {
        self.candidacy.0 > 0
    }

    /// Pending answers about the candidate before become void (T51).
    pub(super) fn begin_candidacy(&mut self, standing: Standing) {
        self.candidacy.0 += 1;
        self.pending = None;
        self.standing = standing;
    }

    /// Creates a new candidate, if eligible.
    pub(super) fn enter_anew(&mut self) {
        // A successor must not wait for a tree that survives SIGKILL.
        let is_stuck = matches!(self.phase, Phase::Stopping { lapsed, .. } if lapsed || !self.vouches());
        let is_out = self.ineligibilities.keep_out() || is_stuck;
        self.begin_candidacy(Standing { is_out, ..Standing::default() });
        if self.timing().is_some() && !self.standing.is_out {
            self.request(Request::Enter, Action::Enter { candidacy: self.candidacy });
        }
    }

    pub(super) fn enter_later(&mut self, now: Now) {
        let at = self.backoff.retry_at(now.lease);
        self.enter_anew_at(now, at);
    }

    pub(super) fn enter_anew_at(&mut self, now: Now, at: Timestamp) {
        if now.lease >= at || self.ineligibilities.keep_out() {
            return self.enter_anew();
        }
        self.begin_candidacy(Standing { retry_at: Some(at), ..Standing::default() });
    }

    /// Reads everything again, now or after the pending request. A pending `Observe` is dropped: the look returns more,
    /// and a successor saves one round trip. A holder's `Observe` is kept, because it judges a conflict.
    pub(super) fn look_again(&mut self) {
        self.pending = self.pending.filter(|pending| *pending != Request::Observe || self.held_term.is_some());
        self.standing.stale = self.pending.is_some();
        let is_out = self.standing.is_out || self.phase == Phase::Done;
        if self.pending.is_some() || self.timing().is_none() || is_out {
            return;
        }
        (self.standing.retry_at, self.standing.claim_at) = (None, None);
        let candidacy = self.candidacy;
        if self.standing.entered {
            self.request(Request::Look, Action::Look { candidacy });
        } else {
            self.request(Request::Enter, Action::Enter { candidacy });
        }
    }

    pub(super) fn observe(&mut self) {
        if self.pending.is_none() && self.timing().is_some() {
            let slot = self.slot();
            self.request(Request::Observe, Action::Observe { candidacy: self.candidacy, slot });
        }
    }

    /// Our slot, or the one that we were shown last.
    fn slot(&self) -> Slot {
        let shown = self.standing.view.map(|view| view.record.slot).unwrap_or_default();
        self.held_term.map_or(shown, |held| held.conditions.slot)
    }

    pub(super) fn line_changed(&mut self, now: Now) {
        match self.phase {
            Phase::Stopping { .. } => self.renew_soon(now),
            Phase::Releasing { .. } | Phase::Done => {}
            _ => self.look_again(),
        }
    }

    pub(super) fn record_changed(&mut self, now: Now) {
        if self.held_term.is_some() {
            return self.reassure(now);
        }
        match self.standing.view.map(|view| view.place) {
            Some(Place::Next) if self.pending.is_none() => self.observe(),
            _ => self.look_again(),
        }
    }

    pub(super) fn seen(&mut self, now: Now, view: View) {
        self.standing.entered = true;
        self.standing.view = Some(view);
        self.note_record(now, view.record);
        self.note_first(now, view);
        if self.held_term.is_some() {
            return self.seen_as_holder(now, view);
        }
        if self.phase != Phase::Following {
            return;
        }
        // The first candidate need not look twice: a change since then makes the take-over fail.
        if self.standing.stale && view.place != Place::First {
            return self.look_again();
        }
        self.standing.stale = false;
        if differs(view.record) {
            return self.leave(now, After::Exit(ExitReason::Disagreement), Why::Misconfigured);
        }
        if self.departure.is_some() {
            return self.settle_departure(now, view);
        }
        // Applied after all, though its reply was lost: whoever may not lead frees it.
        if (view.place == Place::First || self.ineligibilities.is_any()) && self.recognises(now, view) {
            return;
        }
        self.standing.sending = None;
        if self.ineligibilities.keep_out() {
            return;
        }
        if view.place == Place::First && !self.ineligibilities.disabled {
            self.claim(now, view);
        } else if self.only_if_free() {
            self.leave(now, After::Exit(ExitReason::NotElected), Why::WaitOver);
        } else if view.place == Place::First {
            self.make_room(now, view.record);
        }
    }

    pub(super) fn observed(&mut self, now: Now, record: Record, term_version: i32) {
        self.note_record(now, record);
        // A take-over of ours was applied after all: the look that follows recognises it.
        if self.phase == Phase::Following && self.standing.sending.is_some_and(|sent| sent.nonce == record.nonce) {
            return self.look_again();
        }
        if self.held_term.is_some() {
            self.observed_as_holder(now, record, term_version);
            if self.standing.stale && self.at_least_once() {
                self.look_again();
            }
            return;
        }
        if self.phase == Phase::Following && differs(record) {
            return self.leave(now, After::Exit(ExitReason::Disagreement), Why::Misconfigured);
        }
        // A holder that was first may stand behind us now: it keeps its candidate, or the record was created again.
        let is_nobodys = !record.held || record.nonce == Nonce::UNKNOWN;
        if self.phase == Phase::Following && (self.standing.stale || is_nobodys) {
            self.look_again();
        }
    }

    pub(super) fn only_if_free(&self) -> bool {
        self.settings.wait.is_some_and(|wait| wait.is_zero()) && self.runs == 0
    }

    /// First in line: take the record over.
    fn claim(&mut self, now: Now, view: View) {
        let not_before = self.not_before(view.record);
        if self.only_if_free() && now.observer < self.start_from(not_before) {
            return self.leave(now, After::Exit(ExitReason::NotElected), Why::WaitOver);
        }
        let Some(timing) = self.timing().copied() else { return };
        let waits = now.observer < self.start_from(not_before);
        if waits && self.claims_late(view.record, now) {
            return self.wait_in_turns(now, view.record, not_before);
        }
        // While we wait we have no lease: the record carries the inherited one, which our own successor would wait for.
        let lease = if waits { view.record.lease } else { timing.lease };
        let waiting_on = waits.then(|| view.record.last_run());
        self.sendings += 1;
        let nonce = Nonce { instance: self.settings.instance, sending: self.sendings };
        let term = view.term_version.wrapping_add(1);
        let slot = view.record.slot;
        let vouching = if waits { None } else { self.vouching_of_write(now, timing.lease) };
        let roster = vouching.map(|vouching| vouching.roster).unwrap_or_default();
        self.standing.sending = Some(Sending { nonce, slot, sent_at: now.lease, not_before, waits, roster, term });
        let action = Action::TakeOver {
            candidacy: self.candidacy,
            conditions: Conditions { slot, record: view.record.version, term: view.term_version },
            entry: Entry { nonce, token: None, lease, waiting_on, vouching },
            longest: lease.max(timing.lease),
        };
        self.request(Request::TakeOver, action);
    }

    /// Whether a take-over of ours was applied though its reply was lost. If so, the term begins.
    fn recognises(&mut self, now: Now, view: View) -> bool {
        let ours = |sent: &Sending| view.record.held && sent.nonce == view.record.nonce;
        let Some(sending) = self.standing.sending.filter(ours) else { return false };
        // A multi has one zxid, and there was no renewal since: the record's mzxid is the term's. The term's version is
        // not taken from the view, which read the term first, perhaps before the take-over was applied.
        let conditions = Conditions { slot: view.record.slot, record: view.record.version, term: sending.term };
        self.begin_term(now, sending, sending.sent_at, conditions, view.record.mzxid);
        true
    }

    /// The process is leaving: the record shows whether its pending take-over was applied.
    fn settle_departure(&mut self, now: Now, view: View) {
        if !self.recognises(now, view) {
            self.go(now);
        }
    }

    /// Ends the process, if it is to end; no pending request delays that any more.
    pub(super) fn go(&mut self, now: Now) {
        if let Some(Departure { reason, why, .. }) = self.departure {
            self.leave(now, After::Exit(reason), why);
        }
    }

    /// When the command may start: at-least-once does not wait.
    pub(super) fn start_from(&self, not_before: Sighting) -> Sighting {
        if self.at_least_once() { Sighting::ZERO } else { not_before }
    }

    pub(super) fn took_over(&mut self, now: Now, nonce: Nonce, sent_at: Timestamp, answer: (i32, i64, i32)) {
        let (record, token, term) = answer;
        if let Some(sending) = self.standing.sending.filter(|sending| sending.nonce == nonce) {
            let conditions = Conditions { slot: sending.slot, record, term };
            self.begin_term(now, sending, sent_at, conditions, token);
        }
    }

    fn begin_term(&mut self, now: Now, sending: Sending, sent_at: Timestamp, conditions: Conditions, token: i64) {
        let (Some(timing), Some(view)) = (self.timing().copied(), self.standing.view) else { return };
        self.standing.sending = None;
        // In a shared election the first renewal certifies the take-over.
        let starts_at_once = !sending.waits && !timing.needs_two_writes();
        let deadlines = starts_at_once.then(|| timing.deadlines(sent_at));
        let too_late = deadlines.is_some_and(|deadlines| now.lease >= deadlines.kill_at);
        if self.phase != Phase::Following || too_late {
            return self.look_again();
        }
        let takeover = sending.takeover(conditions.term);
        self.unreleased = None;
        self.note_token(token);
        self.begin_vouching(sending.roster, timing);
        self.held_term = Some(HeldTerm {
            nonce: sending.nonce,
            grant: Grant {
                token,
                term: conditions.term,
                session: view.session_id,
                takeover,
                slot: conditions.slot,
                candidate: view.candidate,
            },
            conditions,
            acked_sent_at: sent_at,
            deadlines,
            not_before: sending.not_before,
            renew_at: if starts_at_once { sent_at.after(timing.renewal_interval) } else { now.lease },
            conflict: None,
            is_unfenced: self.settings.preparations.fences && takeover == Takeover::Unclean,
            is_unmarked: self.settings.preparations.marks,
            mark_at: now.lease,
            has_started: false,
            needs_before_start: self.settings.steps.before_start.is_some(),
            needs_after_stop: false,
            is_forfeit: false,
        });
        self.backoff.reset();
        self.reconnect.reset();
        self.settle_in(now, &sending, starts_at_once);
    }

    /// The record is ours: exit, wait or start.
    fn settle_in(&mut self, now: Now, sending: &Sending, starts_at_once: bool) {
        if let Some(Departure { reason, why, .. }) = self.departure {
            self.begin_release(now, After::Exit(reason), why);
        } else if self.ineligibilities.is_any() {
            self.resign(now);
        } else if self.standing.view.is_some_and(|view| view.is_revoked) {
            self.yield_seat(now, After::Rejoin, Why::Revoked);
        } else if sending.waits {
            self.enter_phase(now, Phase::Waiting, Why::TookOver);
        } else if starts_at_once {
            self.prepare(now);
        } else {
            self.enter_phase(now, Phase::Waiting, Why::Confirming);
        }
    }

    pub(super) fn session_over(&mut self, now: Now) {
        self.link = Link::Down { retry_at: self.reconnect_at(now) };
        // A term on promises goes on, and with it the run.
        self.is_mark_lost |= self.pending.take() == Some(Request::Mark) && self.held_term.is_some();
        self.standing = Standing::default();
        match self.phase {
            _ if self.goes_on_without_session(now) => {}
            Phase::Waiting | Phase::Preparing { .. } => {
                self.loses_candidate_without_run(now, Why::SessionOver);
            }
            Phase::Leading | Phase::Vouched | Phase::Paused { .. } => self.candidate_lost(now, Why::SessionOver),
            // A deadline that needs no session ends the tree already.
            Phase::Stopping { .. } => self.hasten_stop(now, Why::SessionOver),
            Phase::Following => self.go(now),
            Phase::Done => {}
            // Its nonce is enough to free the record in another session.
            Phase::Releasing { after, .. } if self.may_linger(after) => {}
            Phase::Releasing { after, .. } => self.leave(now, after, Why::ReleaseUnconfirmed),
        }
    }
}
