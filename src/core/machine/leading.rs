//! Holding the record: the wait, the start, renewals, pauses, and the loss of the record.

mod contact;

use std::time::Duration;

use super::Machine;
use super::phase::Step;
use super::phase::{Link, Phase};
use super::term::HeldTerm;
use crate::core::action::{Action, Entry, Why};
use crate::core::event::{Denial, Place, Record, Request, View};
use crate::core::guard_messages::{Order, RunId};
use crate::core::time::{Now, Timestamp};

/// An unanswered request is repeated after this part of a renewal interval.
const RETRIES_PER_RENEWAL: u32 = 4;

impl Machine {
    pub(super) fn waiting_deadline(&self, now: Now) -> Timestamp {
        let Some(held) = &self.held_term else { return now.lease };
        let kill_at = held.deadlines.map_or(Timestamp::NEVER, |deadlines| deadlines.kill_at);
        let requests = self.renewal_due_at(now).min(self.look_due_at()).min(self.reconnect_due_at(now));
        requests.min(kill_at).min(self.give_up_at())
    }

    /// When an unanswered look is repeated.
    pub(super) fn look_due_at(&self) -> Timestamp {
        self.standing.retry_at.filter(|_| self.pending.is_none() && self.timing().is_some()).unwrap_or(Timestamp::NEVER)
    }

    pub(super) fn look_when_due(&mut self, now: Now) {
        if now.lease >= self.look_due_at() {
            self.look_again();
        }
    }

    pub(super) fn leading_deadline(&self, now: Now) -> Timestamp {
        let (Some(held), Some(deadlines)) = (&self.held_term, self.deadlines()) else { return Timestamp::NEVER };
        let contact = match (self.phase, self.term_timing()) {
            (Phase::Leading, Some(timing)) => timing.contact_lost_at(held.acked_sent_at),
            (Phase::Vouched, _) => self.vouched_until(now),
            (Phase::Paused { since }, _) => self.grace_over_at(since),
            _ => Timestamp::NEVER,
        };
        let reconnect = match self.link {
            Link::Down { retry_at } if self.at_least_once() || self.vouches() => retry_at,
            _ => Timestamp::NEVER,
        };
        let limits = deadlines.stop_at.min(self.start_by).min(self.run_until);
        contact.min(limits).min(self.renewal_due_at(now)).min(self.look_due_at()).min(reconnect)
    }

    pub(super) fn pass_waiting(&mut self, now: Now) {
        let Some(held) = self.held_term else { return };
        if now.lease >= self.give_up_at() {
            let (reason, why) = self.impatience();
            return self.begin_release(now, super::After::Exit(reason), why);
        }
        let Some(deadlines) = held.deadlines else {
            self.renew_when_due(now);
            return self.look_when_due(now);
        };
        if now.lease >= deadlines.kill_at {
            self.lose_term(now, Why::LeaseEnding);
            return self.look_again();
        }
        self.reconnect_in_term(now);
        self.renew_when_due(now);
        self.look_when_due(now);
        self.prepare(now);
    }

    pub(super) fn pass_leading(&mut self, now: Now) {
        let (Some(_), Some(deadlines)) = (self.held_term, self.deadlines()) else { return };
        if now.lease >= deadlines.kill_at {
            return self.kill_tree(now, Why::LeaseEnding);
        }
        if now.lease >= deadlines.stop_at {
            return self.stop_tree(now, Why::LeaseEnding, deadlines.kill_at);
        }
        if now.lease >= self.run_until {
            return self.end_run(now);
        }
        self.judge_contact(now);
        match self.phase {
            Phase::Paused { since } if now.lease >= self.grace_over_at(since) => {
                return self.stop_tree(now, Why::GraceOver, self.stop_by(now));
            }
            _ => {}
        }
        if self.at_least_once() || self.vouches() {
            self.reconnect_when_due(now);
        }
        self.renew_when_due(now);
        self.look_when_due(now);
    }

    /// Orders the start if the wait is over and the lease has runway (I2): a recent renewal, or a recent promise of everybody
    /// who is needed, and `stop_at` ahead.
    pub(super) fn start(&mut self, now: Now) {
        let (Some(held), Some(timing)) = (self.held_term, self.term_timing()) else { return };
        let Some(deadlines) = held.deadlines else { return };
        let over = now.observer >= self.start_from(held.not_before);
        let contact = now.lease < timing.quick_until(held.acked_sent_at) || self.is_vouched_for(now);
        if !over || !contact || now.lease >= deadlines.stop_at || self.is_live() {
            match self.phase {
                Phase::Waiting => {}
                // The preparations are done.
                Phase::Preparing { .. } => self.phase = Phase::Preparing { step: Step::Ready },
                _ => self.enter_phase(now, Phase::Waiting, Why::TookOver),
            }
            return;
        }
        if held.needs_before_start {
            return self.run_before_start(now);
        }
        self.standstill.is_survived();
        self.runs += 1;
        let run = RunId(self.runs);
        self.run = Some(run);
        self.start_by = deadlines.stop_at;
        self.order(Order::Start { run, deadlines, grant: held.grant });
        let why = if held.has_started { Why::Restarted } else { Why::Elected };
        self.note_start(now);
        self.enter_phase(now, Phase::Leading, why);
    }

    fn note_start(&mut self, now: Now) {
        let service = &self.settings.service;
        (self.elect_by, self.too_late_at) = (Timestamp::NEVER, Timestamp::NEVER);
        self.run_until = service.timeout.map_or(Timestamp::NEVER, |timeout| now.lease.after(timeout));
        self.history.started(now.lease);
        self.rest_until = self.history.next_start_at(&service.restart);
        // From now on a tree may live under this record.
        self.finished = None;
        if let Some(held) = &mut self.held_term {
            held.has_started = true;
            held.needs_after_stop = self.settings.steps.after_stop.is_some();
        }
    }

    pub(super) fn renewal_due_at(&self, now: Now) -> Timestamp {
        let can_renew = self.pending.is_none()
            && self.timing().is_some()
            && self.standing.view.is_some_and(|view| view.place == Place::First || self.vouches());
        self.held_term.filter(|_| can_renew).map_or(Timestamp::NEVER, |held| held.renewal_due_at(now))
    }

    pub(super) fn renew_when_due(&mut self, now: Now) {
        if now.lease < self.renewal_due_at(now) {
            return;
        }
        if let (Some(timing), Some(held)) = (self.term_timing(), &mut self.held_term) {
            held.renew_at = now.lease.after(timing.renewal_interval);
            let (conditions, entry) = (held.conditions, held.entry(timing.lease));
            let entry = Entry { vouching: self.vouching_of_write(now, timing.lease), ..entry };
            self.request(Request::Renew, Action::Renew { candidacy: self.candidacy, conditions, entry });
        }
    }

    pub fn renew_soon(&mut self, now: Now) {
        if let Some(held) = &mut self.held_term {
            held.renew_at = now.lease;
        }
    }

    /// Checks that the record is still ours. A renewal tells at once. While the record waits, and under at-least-once
    /// without the first place, we may not renew and only read.
    pub(super) fn reassure(&mut self, now: Now) {
        if self.runs_out() {
            return self.observe_again();
        }
        let is_first = self.standing.view.is_some_and(|view| view.place == Place::First);
        let has_lease = self.deadlines().is_some();
        if has_lease && (is_first || !self.at_least_once()) {
            self.renew_soon(now);
        } else {
            self.look_again();
        }
    }

    pub(super) fn renewed(&mut self, now: Now, sent_at: Timestamp, version: i32) {
        let (Some(timing), Some(held)) = (self.term_timing(), &mut self.held_term) else {
            // The renewal of a term that was lost meanwhile.
            return self.look_again();
        };
        held.conditions.record = version;
        held.conflict = None;
        self.vouched_write_acknowledged();
        match self.phase {
            Phase::Stopping { lapsed: true, .. } | Phase::Following | Phase::Done => return,
            Phase::Releasing { .. } => return self.release_with_marker(),
            Phase::Waiting
            | Phase::Preparing { .. }
            | Phase::Leading
            | Phase::Vouched
            | Phase::Paused { .. }
            | Phase::Stopping { .. } => {}
        }
        let vouches = self.vouches();
        let Some(held) = &mut self.held_term else { return };
        let extended = held.extend(now, sent_at, &timing);
        if vouches {
            held.note_acknowledged(now, sent_at);
        } else if extended.is_none() {
            return;
        }
        self.standstill.is_survived();
        if let (Some(run), Some(deadlines)) = (self.run, extended) {
            self.order(Order::Extend { run, deadlines });
        }
        self.extend_step();
        if now.lease < timing.quick_until(sent_at) {
            self.regain_contact(now);
        }
    }

    pub(super) fn seen_as_holder(&mut self, now: Now, view: View) {
        let stale = std::mem::take(&mut self.standing.stale);
        if self.phase == Phase::Waiting && !view.record.held {
            self.lose_term(now, Why::WaitSpared);
            return self.seen(now, view);
        }
        if !self.holds(view.record) {
            return self.deposed(now);
        }
        match (self.at_least_once(), view.place) {
            _ if matches!(self.phase, Phase::Releasing { .. }) => self.release_with_marker(),
            (true, Place::First) => self.adopt(now, view.record, view.term_version),
            // Another candidate stands before our new one: the record will tell when it has taken over.
            (true, _) if stale => self.look_again(),
            (true, _) => self.observe(),
            // Perhaps under a new candidate, and wherever that stands.
            (false, _) if self.vouches() => {
                self.note_candidate(view);
                self.adopt(now, view.record, view.term_version);
            }
            (false, _) => {}
        }
        if view.is_revoked {
            self.revoked(now);
        }
    }

    pub(super) fn observed_as_holder(&mut self, now: Now, record: Record, term_version: i32) {
        // Another slot's record says nothing about ours.
        let Some(held) = self.held_term.filter(|held| held.conditions.slot == record.slot) else {
            return;
        };
        let ours = record.nonce == held.nonce;
        match self.phase {
            Phase::Releasing { .. } if ours && !record.held => self.released(now),
            // The successor waits for exactly this term, whose tree is empty: we may free its record.
            Phase::Releasing { .. } if !ours && self.waits_for_us(record) => self.adopt(now, record, term_version),
            // The successor waits for our lease. Versions only grow, unless the whole base was deleted.
            Phase::Stopping { lapsed: true, .. }
                if !ours && self.is_waited_for(record) && record.version > held.conditions.record => {}
            // A conflict without a newer version of ours: another candidate owns the term.
            _ if !ours || !record.held || held.conflict == Some(record.version) => self.deposed(now),
            _ => self.adopt(now, record, held.conditions.term),
        }
    }

    /// Handles a change that arrived while a holder's request was pending.
    pub(super) fn look_at_what_changed(&mut self) {
        if !self.standing.stale || self.pending.is_some() {
            return;
        }
        if self.runs_out() {
            self.observe_again();
        } else if self.phase.goes_on() {
            self.look_again();
        }
    }

    /// The record's holder waits for exactly this term of ours.
    fn waits_for_us(&self, record: Record) -> bool {
        let last_run = record.waiting_on.map(|last_run| last_run.nonce);
        let fits = |held: &HeldTerm| last_run == Some(held.nonce) && held.conflict != Some(record.version);
        record.held && self.held_term.as_ref().is_some_and(fits)
    }

    /// The record's holder starts nothing before our lease is over; under at-least-once there is no wait.
    fn is_waited_for(&self, record: Record) -> bool {
        record.held && (record.waiting_on.is_some() || self.at_least_once())
    }

    fn holds(&self, record: Record) -> bool {
        record.held && self.held_term.is_some_and(|held| held.nonce == record.nonce)
    }

    /// Our own lost reply: adopt the version only. `kill_at` moves only by an answer.
    fn adopt(&mut self, now: Now, record: Record, term_version: i32) {
        self.vouching_was_read(record);
        if let Some(held) = &mut self.held_term {
            held.conditions.record = record.version;
            held.conditions.term = term_version;
            held.conflict = None;
            held.renew_at = now.lease;
        }
        if matches!(self.phase, Phase::Releasing { .. }) {
            // Under another one's term nothing of ours is to be marked.
            self.is_mark_lost &= self.held_term.is_some_and(|held| held.nonce == record.nonce);
            self.release_with_marker();
        }
    }

    pub(super) fn denied_as_holder(&mut self, now: Now, request: Request, denial: Denial) {
        match (request, denial) {
            (Request::Renew, Denial::Conflict) => {
                if let Some(held) = &mut self.held_term {
                    held.conflict = Some(held.conditions.record);
                }
                self.observe();
            }
            (Request::Enter, _) => self.enter_later(now),
            (_, Denial::Conflict | Denial::Forbidden(_)) => self.deposed(now),
            (_, Denial::CandidateGone) => match self.phase {
                Phase::Waiting | Phase::Preparing { .. } => {
                    if self.loses_candidate_without_run(now, Why::CandidateGone) {
                        self.enter_later(now);
                    }
                }
                Phase::Stopping { .. } => {
                    self.standing.view = None;
                    self.lapse();
                    self.hasten_stop(now, Why::CandidateGone);
                    self.observe_again();
                }
                _ => self.candidate_lost(now, Why::CandidateGone),
            },
        }
    }

    pub(super) fn unanswered_as_holder(&mut self, now: Now, request: Request) {
        if matches!(request, Request::Enter | Request::Look | Request::Observe) && self.at_least_once() {
            self.standing.retry_at = Some(self.backoff.retry_at(now.lease));
        }
        let pause = self.timing().map_or(Duration::ZERO, |timing| timing.renewal_interval / RETRIES_PER_RENEWAL);
        let again_at = now.lease.after(pause);
        if self.runs_out() || matches!(request, Request::Enter | Request::Look) && !self.at_least_once() {
            self.standing.retry_at = Some(again_at);
        }
        if let Some(held) = &mut self.held_term {
            if request == Request::Mark {
                held.mark_at = again_at;
            } else {
                held.renew_at = again_at;
            }
        }
    }

    /// Another candidate holds the record.
    fn deposed(&mut self, now: Now) {
        self.forfeit();
        match self.phase {
            Phase::Waiting | Phase::Preparing { .. } if !self.is_live() => {
                self.lose_term(now, Why::Deposed);
                self.look_again();
            }
            Phase::Preparing { .. }
            | Phase::Leading
            | Phase::Vouched
            | Phase::Paused { .. }
            | Phase::Stopping { .. }
                if self.at_least_once() =>
            {
                self.stop_tree(now, Why::Deposed, now.lease.after(self.settings.stop_timeout));
            }
            Phase::Waiting
            | Phase::Preparing { .. }
            | Phase::Leading
            | Phase::Vouched
            | Phase::Paused { .. }
            | Phase::Stopping { .. } => self.kill_tree(now, Why::Deposed),
            Phase::Releasing { after, .. } => self.leave(now, after, Why::Deposed),
            Phase::Following | Phase::Done => {}
        }
    }

    /// The candidate was deleted, with its session or by hand. The lease still runs, but cannot be renewed.
    pub(super) fn candidate_lost(&mut self, now: Now, why: Why) {
        if self.nobody_waits() {
            return self.kill_tree(now, why);
        }
        if !self.at_least_once() {
            self.stop_tree(now, why, self.stop_by(now));
            return self.observe_again();
        }
        if self.phase == Phase::Leading {
            self.pause(now, why);
        }
        if self.timing().is_some() {
            self.enter_later(now);
        }
    }
}
