//! How long this process waits for its turn: `--wait` and `--start-deadline`.

use crate::core::action::{ExitReason, Why};
use crate::core::machine::Machine;
use crate::core::machine::phase::Phase;
use crate::core::time::Timestamp;

impl Machine {
    /// After this time the command is not started any more.
    pub(in crate::core::machine) fn give_up_at(&self) -> Timestamp {
        self.waits_until().min(self.too_late_at)
    }

    /// The end of `--wait`. Whoever prepares the start is elected, and waits no more.
    fn waits_until(&self) -> Timestamp {
        if matches!(self.phase, Phase::Preparing { .. }) { Timestamp::NEVER } else { self.elect_by }
    }

    /// The reason to give up then.
    pub(in crate::core::machine) fn impatience(&self) -> (ExitReason, Why) {
        if self.waits_until() <= self.too_late_at {
            (ExitReason::NotElected, Why::WaitOver)
        } else {
            (ExitReason::TooLate, Why::TooLate)
        }
    }
}
