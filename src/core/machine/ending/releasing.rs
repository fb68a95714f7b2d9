//! How long a release may take. In an outage it may be worth waiting for.

use super::RELEASE_LIMIT;
use crate::core::action::{ExitReason, Why};
use crate::core::machine::Machine;
use crate::core::machine::phase::{After, Phase};
use crate::core::time::{Now, Timestamp};

impl Machine {
    /// Where the command has ended by itself in an outage, whoever is not named in the record would wait for the limit: so we stay as
    /// long as that, if we must, to free it.
    pub(in crate::core::machine) fn may_linger(&self, after: After) -> bool {
        let has_ended = matches!(after, After::Exit(ExitReason::CommandEnded(_) | ExitReason::TimedOut));
        has_ended && self.limit().is_some() && !self.stop_requested
    }

    /// `ZooKeeper` is away, and we stay.
    pub(in crate::core::machine) fn lingers(&self, after: After) -> bool {
        self.may_linger(after) && !self.vouching.in_contact
    }

    /// By when a release is confirmed, or given up.
    pub(in crate::core::machine) fn release_until(&self, now: Now, after: After) -> Timestamp {
        let soon = now.lease.after(RELEASE_LIMIT);
        let limit = self.limit().zip(self.held_term).filter(|_| self.may_linger(after));
        limit.map_or(soon, |(limit, held)| held.acked_sent_at.after(limit).max(soon))
    }

    pub(in crate::core::machine) fn pass_releasing(&mut self, now: Now, until: Timestamp, after: After) {
        if now.lease >= until {
            return self.leave(now, after, Why::ReleaseUnconfirmed);
        }
        self.reconnect_in_term(now);
        if now.lease >= self.look_due_at() {
            self.standing.retry_at = None;
            self.observe();
        }
    }

    /// The process was asked to stop: it does not wait for the end of an outage.
    pub(in crate::core::machine) fn hasten_release(&mut self, now: Now, exit: After) {
        if let Phase::Releasing { until, .. } = &mut self.phase {
            *until = (*until).min(now.lease.after(RELEASE_LIMIT));
        }
        self.end_by(exit);
    }
}
