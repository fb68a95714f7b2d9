//! Vouching, as a member that promises and as a leader that lives on promises ([`crate::core::vouching`]).
//!
//! Promises prolong a lease that `ZooKeeper` gave; they give none. A promise that comes after `kill_at` counts for nothing: from then on
//! its giver may have sent a take-over before it promised.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ending::RELEASE_LIMIT;
use super::phase::{After, Link, Phase};
use super::snapshot::{Vouched, Vouchees};
use super::{Machine, Standing};
use crate::core::action::{Action, Why};
use crate::core::event::{Event, Place, Record, View};
use crate::core::guard_messages::{Deadlines, Order};
use crate::core::lease::{Timing, wait_over_at};
use crate::core::time::{Now, Sighting, Timestamp};
use crate::core::vouching::{Promise, Question, Reply, Roster, Vouchers, Vouching, Word};

/// What a process knows as a member, and what a leader needs of its members.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    pub(super) in_contact: bool,
    /// The newest token that any record has shown.
    newest_token: i64,
    promise: Promise,
    /// Since when we know that the candidate of this version's holder is gone: we were first behind it.
    first_since: Option<(i64, Sighting)>,
    /// Behind this version of the record, whose holder is gone or cut off and needs no promise of ours, we wait until then. For
    /// display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unasked: Option<(i64, Sighting)>,
    /// We are not in line before this, in favour of others.
    away_until: Timestamp,
    /// Who could take over, as was last told.
    line: Roster,
    vouchers: Vouchers,
    /// The roster of the last write.
    written: Roster,
    /// F of the last acknowledged write, if it had one: a program with another `--vouch-limit` may have taken this term up,
    /// and whoever is in no roster goes by the record.
    #[serde(default)]
    limit: Option<Duration>,
    /// The timing of the session in which the last write was acknowledged; that session may be over.
    #[serde(skip)]
    tenure: Option<Timing>,
    /// The instances of earlier programs of this process, which executed itself anew after standstills.
    #[serde(skip)]
    pub(super) earlier: Vec<u64>,
}

impl State {
    pub fn with(self, tenure: Option<Timing>) -> Self {
        Self { tenure, ..self }
    }
}

impl Machine {
    /// Whether the command may live on promises.
    pub(super) fn vouches(&self) -> bool {
        self.settings.vouch.is_some()
    }

    /// F of the present term: ours, as far as its record gives it.
    pub(super) fn limit(&self) -> Option<Duration> {
        self.settings.vouch.zip(self.vouching.limit).map(|(ours, written)| ours.min(written))
    }

    pub(super) fn heard(&mut self, now: Now, word: Word) {
        match word {
            Word::Asked(question) => self.asked(now, question),
            Word::Answered(reply) => self.answered(now, reply),
            Word::Left { instance } => self.has_left(now, instance),
            Word::Line(line) => self.lined_up(now, line),
        }
    }

    pub(super) fn note_contact(&mut self, event: &Event) {
        match event {
            Event::Connected { .. } | Event::ContactRestored { .. } => self.vouching.in_contact = true,
            Event::ContactLost { .. } | Event::SessionOver { .. } => self.lose_touch(),
            _ => {}
        }
    }

    /// Nothing is known of the holder meanwhile: its silence counts from later.
    pub(super) fn lose_touch(&mut self) {
        (self.vouching.in_contact, self.vouching.first_since) = (false, None);
    }

    pub(super) fn vouched(&self) -> Option<Vouched> {
        let limit = self.settings.vouch?;
        let prolonged = self.held_term.filter(|held| held.deadlines.is_some() && self.may_be_prolonged());
        let terms = self.limit().zip(self.vouching.tenure);
        let leads = prolonged.map(|held| held.acked_sent_at).zip(terms).map(|(written_at, (limit, tenure))| {
            let vouchers = &self.vouching.vouchers;
            let mut all = vouchers.needed();
            Vouchees {
                needed: std::array::from_fn(|_| all.next()),
                written_at,
                limit_at: tenure.vouched_deadlines(Timestamp::NEVER, written_at, limit).kill_at,
                recent: 2 * tenure.renewal_interval,
            }
        });
        let promise = &self.vouching.promise;
        Some(Vouched { limit, promised_until: promise.until(), promised_to: promise.given(), leads })
    }

    /// The end of the wait of a host that was not asked to vouch for a leader that is gone or cut off.
    pub(super) fn unasked_until(&self) -> Option<Sighting> {
        self.vouching.unasked.map(|(_, until)| until).filter(|_| self.phase == Phase::Following)
    }

    // As a member.

    /// A promise is given in any phase. The time is read after the question came.
    fn asked(&mut self, now: Now, question: Question) {
        if !self.vouches() || !self.vouching.promise.is_news(question) {
            return;
        }
        let leaves = self.stop_requested || self.departure.is_some() || matches!(self.phase, Phase::Done);
        let refuses = self.vouching.newest_token > question.token || leaves || self.is_impatient(now);
        let promises = !refuses && self.vouching.promise.give(now.observer, question);
        let Question { leader, token, seq, .. } = question;
        let reply = Reply { member: self.settings.instance, leader, token, seq, promises };
        self.actions.push(Action::Reply { reply });
    }

    /// In contact, and nothing new from the holder for two leases, though its candidate is gone: it alone is cut off, and should
    /// hand over. Whether we are first at this moment does not matter: that candidate does not come back.
    fn is_impatient(&self, now: Now) -> bool {
        let Some((_, since)) = self.vouching.first_since.filter(|_| self.vouching.in_contact) else { return false };
        let lease = self.standing.view.map(|view| view.record.lease);
        self.phase == Phase::Following && lease.is_some_and(|lease| now.observer >= since.after(2 * lease))
    }

    /// Notes when we were first behind this version of a held record. Somebody may stand before us again, in turns.
    pub(super) fn note_first(&mut self, now: Now, view: View) {
        if view.place == Place::First && view.record.held && self.held_term.is_none() {
            self.vouching.first_since.get_or_insert((view.record.mzxid, now.observer));
        }
    }

    /// When this version of the record was first seen, and the newest token. An ensemble that has lost writes begins tokens anew: we
    /// would say no to each of its leaders. Where it has gone on since, only the token is lower than before, not the zxid.
    pub(super) fn note_record(&mut self, now: Now, record: Record) {
        let is_older_term = 0 < record.token && record.token < self.vouching.newest_token;
        if self.sightings.note(record, now.observer) || is_older_term {
            self.vouching.newest_token = 0;
            if self.vouches() {
                self.actions.push(Action::ForgetTerms);
            }
        }
        self.note_token(record.token);
        self.history.has_resigned &= !record.held || record.nonce.instance == self.settings.instance;
        // A holder that lives makes new versions.
        let is_same = |(version, _): &_| record.held && *version == record.mzxid && self.held_term.is_none();
        self.vouching.first_since = self.vouching.first_since.filter(is_same);
        self.vouching.unasked = self.vouching.unasked.filter(is_same);
    }

    pub(super) fn note_token(&mut self, token: i64) {
        self.vouching.newest_token = self.vouching.newest_token.max(token);
    }

    /// The timing of the present term: that of the session in which it began. Its lease never changes: `kill_at` rests on promises that
    /// were given for it, and the record that a later session writes must say at least as much.
    pub(super) fn term_timing(&self) -> Option<Timing> {
        self.vouching.tenure.filter(|_| self.vouches()).or(self.timing().copied())
    }

    /// Before this no take-over of this record may be sent, for what we have promised. A record that the term to which we
    /// promised, or a later one, has freed is free; so is that of a later term of ours of which nothing lives.
    pub(super) fn promised_until(&self, record: Record) -> Sighting {
        let is_left = !record.held || self.finished == Some(record.nonce);
        let is_freed = is_left && !self.vouching.promise.is_newer_than(record.token);
        if is_freed { Sighting::ZERO } else { self.vouching.promise.until() }
    }

    /// Whether a take-over of this record is sent only when the wait is over. Who claims such a record earlier deposes a
    /// leader for whom everybody vouches. (For a free record there is a wait only after a promise.)
    pub(super) fn claims_late(&self, record: Record, now: Now) -> bool {
        !record.held || record.vouching.is_some() || now.observer < self.promised_until(record)
    }

    /// Before this the command may not be started under this record. The lease of a holder that did not release ends by the record, or by
    /// what we have promised; the delay counts from the later end.
    pub(super) fn not_before(&self, record: Record) -> Sighting {
        let delay = self.settings.service.takeover_delay;
        let by_record = self.inherited(record).map_or(Sighting::ZERO, |(lease, seen)| wait_over_at(seen, lease));
        let over = by_record.max(self.promised_until(record));
        if over == Sighting::ZERO { over } else { over.after(delay) }
    }

    /// What the record says about vouching, if its holder needs no promise of ours. Under a record of our own that we do not
    /// know any more, only we could have a tree: whoever had one under a version before was waited for before that record was
    /// sent. So it is with a record of an earlier program of this process. That program executed this one when its tree was
    /// empty, and whoever promised it anything promised not to take over. We wait for a lease all the same.
    fn asks_others(&self, record: Record) -> Option<Vouching> {
        let own = self.settings.instance;
        record.vouching.filter(|vouching| !self.has_written(record.nonce) && !vouching.roster.names(own))
    }

    /// The lease that may still run under the record, and since when we know that it was not renewed. A holder that lives on
    /// promises needs ours if its record names us; if not, it may live for its limit.
    fn inherited(&self, record: Record) -> Option<(Duration, Sighting)> {
        let over = !record.held || self.finished == Some(record.nonce);
        let unnamed = self.asks_others(record);
        let lease = unnamed.map_or(record.lease, |vouching| vouching.limit.max(record.lease));
        self.sightings.of(record).filter(|_| !over).map(|seen| (lease, seen))
    }

    /// When a record is claimed that is not claimed before the wait is over.
    pub(super) fn claim_due_at(&self) -> Timestamp {
        self.standing.claim_at.filter(|_| self.pending.is_none() && self.timing().is_some()).unwrap_or(Timestamp::NEVER)
    }

    /// First in line, and the wait is not over. Behind a holder that needs no promise of ours, whoever is in its roster waits for one
    /// lease, and we for its limit. So we leave the line for one lease, stay in it for the next, and so on: with a higher priority than
    /// theirs we would be before them again at once.
    pub(super) fn wait_in_turns(&mut self, now: Now, record: Record, not_before: Sighting) {
        let is_unasked = record.held && self.asks_others(record).is_some();
        self.vouching.unasked = is_unasked.then_some((record.mzxid, not_before));
        let over_at = now.lease.after(now.observer.until(not_before));
        let leaves_at = self.vouching.away_until.after(record.lease);
        if !is_unasked {
            self.standing.claim_at = Some(over_at);
        } else if now.lease < leaves_at {
            self.standing.claim_at = Some(over_at.min(leaves_at));
        } else {
            self.let_others_go_first(now, over_at.min(now.lease.after(record.lease)));
        }
    }

    /// Disabled, we claim nothing, also after the wait. But those who were asked promise on and on until they have been first.
    pub(super) fn make_room(&mut self, now: Now, record: Record) {
        let not_before = self.not_before(record);
        if record.held && self.asks_others(record).is_some() && now.observer < not_before {
            self.wait_in_turns(now, record, not_before);
        }
    }

    fn let_others_go_first(&mut self, now: Now, until: Timestamp) {
        self.vouching.away_until = until;
        self.begin_candidacy(Standing::default());
        self.link = Link::Down { retry_at: now.lease };
        self.reconnect_when_due(now);
    }

    /// A candidate now, or when the others have had their time.
    pub(super) fn enter_in_turn(&mut self, now: Now) {
        self.enter_anew_at(now, self.vouching.away_until);
    }

    /// The same, where there may be a candidate already.
    pub(super) fn look_in_turn(&mut self, now: Now) {
        if self.standing.entered || now.lease >= self.vouching.away_until {
            self.look_again();
        }
    }

    // As a leader.

    /// What the next write of a held record says; from its sending on, whoever it names is needed.
    pub(super) fn vouching_of_write(&mut self, now: Now, lease: Duration) -> Option<Vouching> {
        let limit = self.settings.vouch?;
        let roster = self.next_roster(now, lease);
        self.vouching.vouchers.name(roster);
        self.vouching.written = roster;
        Some(Vouching { limit, roster })
    }

    fn next_roster(&self, now: Now, lease: Duration) -> Roster {
        let own = self.settings.instance;
        let line = self.vouching.line.iter().filter(|instance| *instance != own).collect();
        self.vouching.vouchers.roster(line, now.lease, lease)
    }

    /// If we die, whoever is in line and not named waits for the limit. So newcomers are named at once.
    fn lined_up(&mut self, now: Now, line: Roster) {
        self.vouching.line = line;
        let Some(tenure) = self.vouching.tenure else { return };
        if self.next_roster(now, tenure.lease).iter().any(|instance| !self.vouching.written.names(instance)) {
            self.renew_soon(now);
        }
    }

    /// The vouchers of a new term: those of its take-over.
    pub(super) fn begin_vouching(&mut self, roster: Roster, timing: Timing) {
        (self.vouching.written, self.vouching.limit) = (roster, self.settings.vouch);
        self.vouching.vouchers = Vouchers::default();
        self.vouching.vouchers.name(roster);
        self.vouching.tenure = Some(timing);
    }

    /// A record that stays held though its tree is empty is remembered, to be freed in the next session.
    pub(super) fn end_term(&mut self, why: Why) {
        self.is_mark_lost = false;
        if let Some(held) = self.held_term.take() {
            let is_settled = matches!(why, Why::Released | Why::Deposed);
            let is_free_to_go = self.finished == Some(held.nonce) && !held.is_unfenced;
            self.unreleased = Some(held).filter(|_| self.vouches() && is_free_to_go && !is_settled);
        }
        (self.vouching.vouchers, self.vouching.tenure, self.vouching.limit) = (Vouchers::default(), None, None);
    }

    /// Our last write was acknowledged; no earlier one can be applied any more.
    pub(super) fn vouched_write_acknowledged(&mut self) {
        self.vouching.vouchers.acknowledged(self.vouching.written);
        self.vouching.limit = self.settings.vouch;
    }

    /// Our own record was read. Another write of ours may still be under way.
    pub(super) fn vouching_was_read(&mut self, record: Record) {
        if let Some(vouching) = record.vouching {
            self.vouching.vouchers.name(vouching.roster);
        }
    }

    fn answered(&mut self, now: Now, reply: Reply) {
        let is_ours = self.held_term.is_some_and(|held| held.grant.token == reply.token);
        if let Some(tenure) = self.vouching.tenure.filter(|_| is_ours && reply.leader == self.settings.instance) {
            self.vouching.vouchers.answered(&tenure, reply);
            self.live_on_promises(now);
        }
    }

    /// What this instance has promised, it keeps: it takes nothing over any more.
    fn has_left(&mut self, now: Now, instance: u64) {
        self.vouching.vouchers.is_gone(instance);
        self.live_on_promises(now);
    }

    /// Asks those who are due, and counts what is promised.
    pub(super) fn pass_vouching(&mut self, now: Now) {
        if !self.is_prolonged(now) {
            return;
        }
        if let (Some(held), Some(tenure)) = (self.held_term, self.vouching.tenure) {
            let due = self.vouching.vouchers.ask(now.lease, &tenure, self.settings.instance, held.grant.token);
            self.actions.extend(due.into_iter().map(|(to, question)| Action::Ask { to, question }));
        }
        self.live_on_promises(now);
    }

    pub(super) fn vouching_due_at(&self, now: Now) -> Timestamp {
        let (Some(tenure), Some(held), Some(limit)) = (self.vouching.tenure, self.held_term, self.limit()) else {
            return Timestamp::NEVER;
        };
        let Some(present) = held.deadlines.filter(|_| self.is_prolonged(now)) else { return Timestamp::NEVER };
        // With nobody to ask, time itself prolongs the lease, up to the limit.
        let last = tenure.vouched_deadlines(Timestamp::NEVER, held.acked_sent_at, limit).kill_at;
        let next = present.kill_at.before(tenure.usable()).after(tenure.renewal_interval);
        let grows = self.vouching.vouchers.is_empty() && last >= worthwhile(present, &tenure);
        self.vouching.vouchers.ask_at().min(if grows { next } else { Timestamp::NEVER })
    }

    /// Whether the lease may still be prolonged.
    fn is_prolonged(&self, now: Now) -> bool {
        let runs = self.deadlines().is_none_or(|deadlines| now.lease < deadlines.kill_at);
        runs && self.may_be_prolonged()
    }

    fn may_be_prolonged(&self) -> bool {
        let may = self.phase.goes_on() || matches!(self.phase, Phase::Stopping { lapsed: false, .. });
        may && self.held_term.is_some_and(|held| !held.is_forfeit) && self.limit().is_some()
    }

    /// `kill_at` moves to what the promises and the limit allow, if it has not come.
    fn live_on_promises(&mut self, now: Now) {
        let (Some(limit), Some(tenure), true) = (self.limit(), self.vouching.tenure, self.is_prolonged(now)) else {
            return;
        };
        let Some(vouched_at) = self.vouching.vouchers.vouched_at(now.lease) else { return };
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
        let (Some(tenure), true) = (self.vouching.tenure, self.is_prolonged(now)) else { return false };
        let until = |at| {
            if self.phase == Phase::Vouched { tenure.contact_lost_at(at) } else { tenure.quick_until(at) }
        };
        self.vouching.vouchers.vouched_at(now.lease).is_some_and(|at| now.lease < until(at))
    }

    /// When the oldest promise does not count as recent any more.
    pub(super) fn vouched_until(&self, now: Now) -> Timestamp {
        match (self.vouching.tenure, self.vouching.vouchers.vouched_at(now.lease)) {
            (Some(tenure), Some(at)) if !self.vouching.vouchers.is_empty() => tenure.contact_lost_at(at),
            _ => Timestamp::NEVER,
        }
    }

    /// Our session is over, and the term goes on: a new candidate is made, wherever it stands.
    pub(super) fn goes_on_without_session(&self, now: Now) -> bool {
        self.is_prolonged(now) && self.deadlines().is_some()
    }

    /// When a term that goes on without a session, or whose record is still to be freed, opens the next one.
    pub(super) fn reconnect_due_at(&self, now: Now) -> Timestamp {
        let is_releasing = matches!(self.phase, Phase::Releasing { .. });
        match self.link {
            Link::Down { retry_at } if is_releasing || self.goes_on_without_session(now) => retry_at,
            _ => Timestamp::NEVER,
        }
    }

    pub(super) fn reconnect_in_term(&mut self, now: Now) {
        if now.lease >= self.reconnect_due_at(now) {
            self.reconnect_when_due(now);
        }
    }

    /// When to try again to open a session. Who lives on promises is in no hurry: at last about once a second.
    pub(super) fn reconnect_at(&mut self, now: Now) -> Timestamp {
        let at = self.reconnect.retry_at(now.lease);
        if self.goes_on_without_session(now) { at.after(now.lease.until(at)) } else { at }
    }

    /// Whether a renewal can succeed (the session is open, and our candidate is first), or promises prolong the lease.
    pub(super) fn can_go_on(&self, now: Now) -> bool {
        let is_first = self.standing.view.is_some_and(|view| view.place == Place::First);
        self.timing().is_some() && is_first || self.goes_on_without_session(now)
    }

    /// The next run of this term belongs to our present candidate.
    pub(super) fn note_candidate(&mut self, view: View) {
        if let Some(held) = &mut self.held_term {
            (held.grant.session, held.grant.candidate) = (view.session_id, view.candidate);
        }
    }

    /// Whether the term that we hold ended before, was told to be over, and is held again only to free its record.
    pub(super) fn settles_past_term(&self) -> bool {
        self.unreleased.is_some()
    }

    /// In the first session after a term that ended without one: frees its record if that is still ours, so that nobody
    /// waits for it. We have no candidate before that. Returns whether there is such a record.
    pub(super) fn frees_what_it_left(&mut self, now: Now) -> bool {
        let left = self.unreleased.filter(|_| self.phase == Phase::Following);
        if left.is_none() && !matches!(self.phase, Phase::Releasing { .. }) {
            return false;
        }
        let frees_first = !self.ineligibilities.keep_out();
        self.begin_candidacy(Standing { is_out: true, frees_first, ..Standing::default() });
        // Who stays to free it is releasing already.
        if left.is_some() {
            self.held_term = left;
            let until = now.lease.after(RELEASE_LIMIT);
            self.enter_phase(now, Phase::Releasing { until, after: After::Rejoin }, Why::ContactRestored);
        }
        self.observe();
        true
    }
}

/// `kill_at` moves at least so far: not in each turn.
fn worthwhile(present: Deadlines, tenure: &Timing) -> Timestamp {
    present.kill_at.after(tenure.renewal_interval / 4)
}
