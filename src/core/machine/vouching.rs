//! Vouching, as a member that promises and as a leader that lives on promises ([`crate::core::vouching`]).
//!
//! Promises prolong a lease that `ZooKeeper` gave; they give none. A promise that comes after `kill_at` counts for nothing: from then on
//! its giver may have sent a take-over before it promised.

use std::time::Duration;

use super::Machine;
use super::phase::{Link, Phase};
use crate::core::action::Action;
use crate::core::event::{Place, Record, View};
use crate::core::guard_messages::{Deadlines, Order};
use crate::core::lease::{Timing, wait_over_at};
use crate::core::time::{Now, Sighting, Timestamp};
use crate::core::vouching::{Question, Reply, Roster, Vouchers, Vouching};

impl Machine {
    /// Whether the command may live on promises.
    pub(super) fn vouches(&self) -> bool {
        self.settings.vouch.is_some()
    }

    // As a member.

    /// A promise is given in any phase. The time is read after the question came.
    pub(super) fn asked(&mut self, now: Now, question: Question) {
        if !self.vouches() || !self.promise.is_news(question) {
            return;
        }
        let leaves = self.stop_requested || self.departure.is_some() || matches!(self.phase, Phase::Done);
        let refuses = self.newest_token > question.token || leaves || self.is_impatient(now);
        let promises = !refuses && self.promise.give(now.observer, question);
        let Question { leader, token, seq, .. } = question;
        let reply = Reply { member: self.settings.instance, leader, token, seq, promises };
        self.actions.push(Action::Reply { reply });
    }

    /// First in line, in contact, and nothing new from the holder for two leases, though its candidate is gone: it alone is cut
    /// off, and should hand over.
    fn is_impatient(&self, now: Now) -> bool {
        let Some((_, since)) = self.first_since.filter(|_| self.in_contact) else { return false };
        let lease = self.standing.view.map(|view| view.record.lease);
        self.phase == Phase::Following && lease.is_some_and(|lease| now.observer >= since.after(2 * lease))
    }

    /// Notes since when we have been first behind this version of a held record.
    pub(super) fn note_first(&mut self, now: Now, view: View) {
        let version = view.record.mzxid;
        let is_first = view.place == Place::First && view.record.held && self.held_term.is_none();
        self.first_since = match self.first_since {
            _ if !is_first => None,
            Some((of, since)) if of == version => Some((of, since)),
            _ => Some((version, now.observer)),
        };
    }

    pub(super) fn note_token(&mut self, record: Record) {
        self.newest_token = self.newest_token.max(record.token);
    }

    /// Before this no take-over of this record may be sent, for what we have promised. A record that the term to which we
    /// promised, or a later one, has freed is free.
    pub(super) fn promised_until(&self, record: Record) -> Sighting {
        let is_freed = !record.held && !self.promise.is_newer_than(record.token);
        if is_freed { Sighting::ZERO } else { self.promise.until() }
    }

    /// Whether a take-over of this record is sent only when the wait is over. Who claims such a record earlier deposes a
    /// leader for whom everybody vouches.
    pub(super) fn claims_late(&self, record: Record, now: Now) -> bool {
        record.held && record.vouching.is_some() || now.observer < self.promised_until(record)
    }

    /// Before this the command may not be started under this record.
    pub(super) fn not_before(&self, record: Record) -> Sighting {
        let delay = self.settings.service.takeover_delay;
        let inherited = self.inherited(record);
        let over = inherited.map_or(Sighting::ZERO, |(lease, seen)| wait_over_at(seen, lease).after(delay));
        over.max(self.promised_until(record))
    }

    /// The lease that may still run under the record, and since when we know that it was not renewed. A holder that lives on
    /// promises needs ours if its record names us; if not, it may live for its limit.
    fn inherited(&self, record: Record) -> Option<(Duration, Sighting)> {
        let over = !record.held || self.finished == Some(record.nonce);
        let unnamed = record.vouching.filter(|vouching| !vouching.roster.names(self.settings.instance));
        let lease = unnamed.map_or(record.lease, |vouching| vouching.limit.max(record.lease));
        self.sightings.of(record).filter(|_| !over).map(|seen| (lease, seen))
    }

    /// When a record is claimed that is not claimed before the wait is over.
    pub(super) fn claim_due_at(&self) -> Timestamp {
        self.standing.claim_at.filter(|_| self.pending.is_none() && self.timing().is_some()).unwrap_or(Timestamp::NEVER)
    }

    /// First in line behind a holder that needs no promise of ours: whoever is in its roster waits for one lease, and we
    /// for its limit. So we go to the end of the line, once in each lease.
    pub(super) fn lets_others_go_first(&mut self, now: Now, record: Record) -> bool {
        let is_named = record.vouching.is_none_or(|vouching| vouching.roster.names(self.settings.instance));
        if is_named || !record.held || now.lease < self.moved_at.after(record.lease) {
            return false;
        }
        self.moved_at = now.lease;
        self.candidacy.0 += 1;
        self.pending = None;
        self.standing = super::Standing::default();
        self.link = Link::Down { retry_at: now.lease };
        self.reconnect_when_due(now);
        true
    }

    // As a leader.

    /// What the next write of a held record says; from its sending on, whoever it names is needed.
    pub(super) fn vouching_of_write(&mut self, now: Now, lease: Duration) -> Option<Vouching> {
        let limit = self.settings.vouch?;
        let own = self.settings.instance;
        let line = self.line.iter().filter(|instance| *instance != own).collect();
        let roster = self.vouchers.roster(line, now.lease, lease);
        self.vouchers.name(roster);
        self.written = roster;
        Some(Vouching { limit, roster })
    }

    /// The vouchers of a new term: those of its take-over.
    pub(super) fn begin_vouching(&mut self, roster: Roster, timing: Timing) {
        self.vouchers = Vouchers::default();
        self.vouchers.name(roster);
        self.tenure = Some(timing);
    }

    pub(super) fn end_vouching(&mut self) {
        (self.vouchers, self.tenure) = (Vouchers::default(), None);
    }

    /// Our last write was acknowledged; no earlier one can be applied any more. The lease that the promises are for is that of
    /// the session.
    pub(super) fn vouched_write_acknowledged(&mut self, timing: &Timing) {
        self.vouchers.acknowledged(self.written);
        if self.tenure.is_some_and(|tenure| tenure.lease != timing.lease) {
            self.vouchers.forget_promises();
        }
        self.tenure = Some(*timing);
    }

    /// Our own record was read. Another write of ours may still be under way.
    pub(super) fn vouching_was_read(&mut self, record: Record) {
        if let Some(vouching) = record.vouching {
            self.vouchers.name(vouching.roster);
        }
    }

    pub(super) fn answered(&mut self, now: Now, reply: Reply) {
        let is_ours = self.held_term.is_some_and(|held| held.grant.token == reply.token);
        if let Some(tenure) = self.tenure.filter(|_| is_ours && reply.leader == self.settings.instance) {
            self.vouchers.answered(&tenure, reply);
            self.live_on_promises(now);
        }
    }

    /// What this instance has promised, it keeps: it takes nothing over any more.
    pub(super) fn has_left(&mut self, now: Now, instance: u64) {
        self.vouchers.is_gone(instance);
        self.live_on_promises(now);
    }

    /// Asks those who are due, and counts what is promised.
    pub(super) fn pass_vouching(&mut self, now: Now) {
        if !self.is_prolonged(now) {
            return;
        }
        if let (Some(held), Some(tenure)) = (self.held_term, self.tenure) {
            let due = self.vouchers.ask(now.lease, &tenure, self.settings.instance, held.grant.token);
            self.actions.extend(due.into_iter().map(|(to, question)| Action::Ask { to, question }));
        }
        self.live_on_promises(now);
    }

    pub(super) fn vouching_due_at(&self, now: Now) -> Timestamp {
        let (Some(tenure), Some(held), Some(limit)) = (self.tenure, self.held_term, self.settings.vouch) else {
            return Timestamp::NEVER;
        };
        let Some(present) = held.deadlines.filter(|_| self.is_prolonged(now)) else { return Timestamp::NEVER };
        // With nobody to ask, time itself prolongs the lease, up to the limit.
        let last = tenure.vouched_deadlines(Timestamp::NEVER, held.acked_sent_at, limit).kill_at;
        let next = present.kill_at.before(tenure.usable()).after(tenure.renewal_interval);
        let grows = self.vouchers.is_empty() && last >= worthwhile(present, &tenure);
        self.vouchers.ask_at().min(if grows { next } else { Timestamp::NEVER })
    }

    /// Whether the lease may still be prolonged.
    fn is_prolonged(&self, now: Now) -> bool {
        let may = match self.phase {
            Phase::Stopping { lapsed, .. } => !lapsed,
            Phase::Waiting | Phase::Preparing { .. } | Phase::Leading | Phase::Vouched | Phase::Paused { .. } => true,
            Phase::Following | Phase::Releasing { .. } | Phase::Done => false,
        };
        let runs = self.held_term.is_some_and(|held| {
            !held.is_forfeit && held.deadlines.is_none_or(|deadlines| now.lease < deadlines.kill_at)
        });
        may && runs && self.vouches()
    }

    /// `kill_at` moves to what the promises and the limit allow, if it has not come.
    fn live_on_promises(&mut self, now: Now) {
        let (Some(limit), Some(tenure), true) = (self.settings.vouch, self.tenure, self.is_prolonged(now)) else {
            return;
        };
        let Some(vouched_at) = self.vouchers.vouched_at(now.lease) else { return };
        let Some(held) = &mut self.held_term else { return };
        let Some(present) = held.deadlines else { return };
        let deadlines = tenure.vouched_deadlines(vouched_at, held.acked_sent_at, limit);
        if deadlines.kill_at < worthwhile(present, &tenure) {
            return;
        }
        held.deadlines = Some(deadlines);
        if let Some(run) = self.run {
            self.order(Order::Extend { run, deadlines });
        }
        self.extend_step();
    }

    /// Whether everybody who is needed has promised within two intervals; within four, while that is so already.
    pub(super) fn is_vouched_for(&self, now: Now) -> bool {
        let (Some(tenure), true) = (self.tenure, self.is_prolonged(now)) else { return false };
        let until = |at| {
            if self.phase == Phase::Vouched { tenure.contact_lost_at(at) } else { tenure.quick_until(at) }
        };
        self.vouchers.vouched_at(now.lease).is_some_and(|at| now.lease < until(at))
    }

    /// When the oldest promise does not count as recent any more.
    pub(super) fn vouched_until(&self, now: Now) -> Timestamp {
        match (self.tenure, self.vouchers.vouched_at(now.lease)) {
            (Some(tenure), Some(at)) if !self.vouchers.is_empty() => tenure.contact_lost_at(at),
            _ => Timestamp::NEVER,
        }
    }

    /// Our session is over, and the command lives on: a new candidate is made, wherever it stands.
    pub(super) fn goes_on_without_session(&self, now: Now) -> bool {
        self.is_prolonged(now) && self.deadlines().is_some() && self.run.is_some()
    }
}

/// `kill_at` moves at least so far: not in each turn.
fn worthwhile(present: Deadlines, tenure: &Timing) -> Timestamp {
    present.kill_at.after(tenure.renewal_interval / 4)
}
