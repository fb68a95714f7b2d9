//! The phases of the machine.

use crate::core::action::{ExitReason, PhaseName, Why};
use crate::core::lease::Timing;
use crate::core::time::Timestamp;

/// What a start waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Step {
    /// The fence command runs.
    Fence,
    /// The run marker is being written.
    Mark,
    /// The minimum interval or the back-off after a failure is not over.
    Backoff,
    /// The command of `--before-start` runs.
    BeforeStart,
    /// Only a fresh renewal is missing.
    Ready,
}

/// What follows when the tree is gone and the record released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum After {
    Rejoin,
    /// Keep our place in the queue.
    Stay,
    Exit(ExitReason),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// No record is ours: connecting, queueing, waiting for our turn.
    Following,
    /// The record is ours; the previous lease may still run.
    Waiting,
    /// The record is ours, no other lease runs, and no tree lives; a step remains before the start.
    Preparing {
        step: Step,
    },
    /// The command runs, or its start was ordered.
    Leading,
    /// The command runs, contact is lost, and every host that could take over promises to hold back.
    Vouched,
    /// The command runs, contact is lost, the lease is not over.
    Paused {
        since: Timestamp,
    },
    /// The tree is being stopped. `lapsed`: for lack of a lease, so nothing prolongs it (I5).
    Stopping {
        after: After,
        lapsed: bool,
    },
    Releasing {
        until: Timestamp,
        after: After,
    },
    Done,
}

impl Phase {
    /// A record is ours, and nothing has begun to end its term.
    pub fn goes_on(self) -> bool {
        match self {
            Self::Waiting | Self::Preparing { .. } | Self::Leading | Self::Vouched | Self::Paused { .. } => true,
            Self::Following | Self::Stopping { .. } | Self::Releasing { .. } | Self::Done => false,
        }
    }

    pub fn name(self) -> PhaseName {
        match self {
            Self::Following => PhaseName::Following,
            Self::Waiting => PhaseName::Waiting,
            Self::Preparing { .. } => PhaseName::Preparing,
            Self::Leading => PhaseName::Leading,
            Self::Vouched => PhaseName::Vouched,
            Self::Paused { .. } => PhaseName::Paused,
            Self::Stopping { .. } => PhaseName::Stopping,
            Self::Releasing { .. } => PhaseName::Releasing,
            Self::Done => PhaseName::Done,
        }
    }
}

/// The process is to end, but waits, for a limited time, until a take-over is answered, or was looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Departure {
    pub reason: ExitReason,
    pub why: Why,
    pub by: Timestamp,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Link {
    Down { retry_at: Timestamp },
    Opening,
    Open(Timing),
}
