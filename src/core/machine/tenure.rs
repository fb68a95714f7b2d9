//! What a holder of the record knows about its own term.

use std::time::Duration;

use crate::core::action::{Conditions, Entry};
use crate::core::event::Nonce;
use crate::core::order::{Deadlines, Grant};
use crate::core::time::{Now, Sighting, Timestamp};

/// A take-over that was sent, as its reply (or the record, if the reply was lost) will be judged by: with the instants of
/// this very sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sending {
    pub nonce: Nonce,
    pub sent_at: Timestamp,
    /// The previous lease is over then: `Sighting::ZERO` if there was none.
    pub not_before: Sighting,
    /// The longest lease that it wrote: ours, or an inherited one.
    pub lease: Duration,
    /// The version of the term that it makes.
    pub term: i32,
}

/// One term of ours, from the take-over to the release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tenure {
    pub nonce: Nonce,
    pub grant: Grant,
    /// The versions that our next write is conditional on.
    pub conditions: Conditions,
    /// When the newest acknowledged write was sent.
    pub acked_sent_at: Timestamp,
    pub deadlines: Deadlines,
    pub not_before: Sighting,
    /// What the record must say while the wait is not over.
    pub longest_lease: Duration,
    /// When the next renewal is due.
    pub renew_at: Timestamp,
    /// A renewal on this version of the record was refused.
    pub conflict: Option<i32>,
    /// The last holder has to be fenced before anything starts, or is released.
    pub is_unfenced: bool,
    /// The marker of this run has to be written before anything starts.
    pub is_unmarked: bool,
    /// When the marker is to be written (again).
    pub mark_at: Timestamp,
    /// The command was started in this term.
    pub has_started: bool,
}

impl Tenure {
    /// Whether the previous lease is over, so that no tree but ours can live under this record (I8).
    pub fn wait_is_over(&self, now: Now) -> bool {
        now.observer >= self.not_before
    }

    /// What a renewal writes: chains of take-overs keep the longest lease until one wait has been served.
    pub fn entry(&self, now: Now, own_lease: Duration) -> Entry {
        let lease = if self.wait_is_over(now) { own_lease } else { self.longest_lease.max(own_lease) };
        Entry { nonce: self.nonce, token: Some(self.grant.token), lease }
    }

    /// A renewal sent at `sent_at` was acknowledged with these deadlines. Returns whether it moved ours: one that is
    /// answered after `kill_at` counts for nothing (I5), and none brings a deadline closer.
    pub fn extend(&mut self, now: Now, sent_at: Timestamp, deadlines: Deadlines) -> bool {
        let counts = now.lease < self.deadlines.kill_at && deadlines.kill_at > self.deadlines.kill_at;
        if counts {
            self.acked_sent_at = sent_at;
            self.deadlines = deadlines;
        }
        counts
    }
}
