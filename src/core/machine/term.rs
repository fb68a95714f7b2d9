//! What a holder of the record knows about its own term.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::core::action::{Conditions, Entry};
use crate::core::event::Nonce;
use crate::core::guard_messages::{Deadlines, Grant, Slot, Takeover};
use crate::core::lease::Timing;
use crate::core::time::{Now, Sighting, Timestamp};
use crate::core::vouching::Roster;

/// A take-over that was sent. Its reply, or the record if the reply was lost, is judged by the instants of this
/// sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sending {
    pub nonce: Nonce,
    pub slot: Slot,
    pub sent_at: Timestamp,
    /// When the previous lease is over; `Sighting::ZERO` if there was none.
    pub not_before: Sighting,
    /// It wrote a waiting record, which gives us no lease.
    pub waits: bool,
    /// Whom it names as those who could take over.
    pub roster: Roster,
    /// The version that it gives to the term.
    pub term: i32,
}

impl Sending {
    pub fn takeover(&self, term: i32) -> Takeover {
        match self.not_before {
            Sighting::ZERO if term <= 1 => Takeover::First,
            Sighting::ZERO => Takeover::Clean,
            _ => Takeover::Unclean,
        }
    }
}

/// One term of ours, from the take-over to the release.
#[expect(clippy::struct_excessive_bools, reason = "independent facts of one term")]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct HeldTerm {
    pub nonce: Nonce,
    pub grant: Grant,
    /// The versions for our next conditional write.
    pub conditions: Conditions,
    /// When the newest acknowledged write was sent.
    pub acked_sent_at: Timestamp,
    /// `None`: the record waits and gives no lease; the first renewal will.
    pub deadlines: Option<Deadlines>,
    pub not_before: Sighting,
    /// When the next renewal is due.
    pub renew_at: Timestamp,
    /// The record version on which a renewal was refused.
    pub conflict: Option<i32>,
    /// The last holder has to be fenced before a start or a release.
    pub is_unfenced: bool,
    /// The run marker has to be written before a start.
    pub is_unmarked: bool,
    /// When to write the marker (again).
    pub mark_at: Timestamp,
    pub has_started: bool,
    /// `--before-start` has to succeed before a start.
    pub needs_before_start: bool,
    /// `--before-start` or the command was started, so `--after-stop` has to run before the release.
    pub needs_after_stop: bool,
    /// The lease counts for nothing any more, although its end has not come.
    pub is_forfeit: bool,
}

impl HeldTerm {
    /// Whether the previous lease is over, so that only our own tree can live under this record (I8).
    pub fn wait_is_over(&self, now: Now) -> bool {
        now.observer >= self.not_before
    }

    /// When the next renewal may be sent. A waiting record carries the previous holder's lease and stays unchanged
    /// until the wait is over; then the renewal writes our own.
    pub fn renewal_due_at(&self, now: Now) -> Timestamp {
        if self.deadlines.is_some() || self.wait_is_over(now) {
            return self.renew_at;
        }
        now.lease.after(now.observer.until(self.not_before)).max(self.renew_at)
    }

    /// The content of a renewal (without what it says about vouching) or a release.
    pub fn entry(&self, own_lease: Duration) -> Entry {
        let token = Some(self.grant.token);
        Entry { nonce: self.nonce, token, lease: own_lease, waiting_on: None, vouching: None }
    }

    /// The same, where promises may have moved the deadlines further than that renewal does. It counts for the limit.
    pub fn note_acknowledged(&mut self, now: Now, sent_at: Timestamp) {
        if self.deadlines.is_some_and(|present| now.lease < present.kill_at) {
            self.acked_sent_at = self.acked_sent_at.max(sent_at);
        }
    }

    /// A renewal sent at `sent_at` was acknowledged. Returns our deadlines if it moved them. An answer after `kill_at`
    /// counts for nothing (I5), and none brings a deadline closer. The first deadlines of a holder that has waited are
    /// those of its first renewal; where two writes are needed, of its second, which follows at once.
    pub fn extend(&mut self, now: Now, sent_at: Timestamp, timing: &Timing) -> Option<Deadlines> {
        let certified_at = self.acked_sent_at;
        let deadlines = timing.deadlines_after(certified_at, sent_at);
        let counts = self.deadlines.map_or(now.lease < deadlines.stop_at || !timing.needs_two_writes(), |present| {
            now.lease < present.kill_at && deadlines.kill_at > present.kill_at
        });
        if counts || self.deadlines.is_none() {
            self.acked_sent_at = sent_at;
        }
        if counts {
            self.deadlines = Some(deadlines);
        }
        // The certified write is old: another write certifies the newer one.
        let lags = timing.needs_two_writes() && certified_at.after(2 * timing.renewal_interval) < sent_at;
        if lags || self.deadlines.is_none() {
            self.renew_at = now.lease;
        }
        self.deadlines.filter(|_| counts)
    }
}
