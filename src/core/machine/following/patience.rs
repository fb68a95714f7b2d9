//! How long this process waits for its turn: `--wait` and `--start-deadline`.

use crate::core::action::{ExitReason, Why};
use crate::core::lease::Timing;
use crate::core::machine::Machine;
use crate::core::machine::phase::Phase;
use crate::core::time::{Now, Timestamp};

impl Machine {
    /// After this time the command is not started any more.
    pub(in crate::core::machine) fn give_up_at(&self) -> Timestamp {
        self.waits_until().min(self.too_late_at)
    }

    /// The end of `--wait`. Whoever prepares the start is elected, and waits no more. The ensemble has a time limit of its own.
    /// With `--wait 0`, a start that could not be prepared was the only one.
    fn waits_until(&self) -> Timestamp {
        // Where --after-stop took longer than --stand-back, it stands back no more.
        if self.only_if_free() && (self.ineligibilities.stand_back_until.is_some() || self.history.has_resigned) {
            return Timestamp::ZERO;
        }
        let is_elected = matches!(self.phase, Phase::Preparing { .. });
        if is_elected || !self.was_connected() { Timestamp::NEVER } else { self.elect_by }
    }

    /// A session is open: however short `--wait` is, there is time for one look and a take-over.
    pub(in crate::core::machine) fn allow_a_look(&mut self, now: Now, timing: &Timing) {
        if self.only_if_free() && self.held_term.is_none() {
            self.elect_by = now.lease.after(timing.lease);
        } else if !self.was_connected() {
            self.elect_by = self.elect_by.max(now.lease.after(timing.renewal_interval));
        }
    }

    /// The reason to give up then.
    pub(in crate::core::machine) fn impatience(&self) -> (ExitReason, Why) {
        if self.history.has_resigned {
            (ExitReason::NotPrepared, Why::NotPrepared)
        } else if self.waits_until() <= self.too_late_at {
            (ExitReason::NotElected, Why::WaitOver)
        } else {
            (ExitReason::TooLate, Why::TooLate)
        }
    }
}
