//! How often a command may run, whichever host runs it.
//!
//! Never: a marker; those are the business of `runs`.

use std::time::Duration;

/// `--slot` or `--once-per`, and what goes with them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Once {
    pub per: Per,
    /// A run that failed or never ended does not count: at least once. Else: at most once.
    pub retry_failed: bool,
    /// How many markers of slots are kept; at least 1.
    pub keep_slots: usize,
}

/// What a command may run once for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Per {
    /// A key that all hosts derive alike, usually from the scheduled time. Any text of 1 to 128 bytes.
    Slot(String),
    /// A length of time, half of which lies between the runs that count as one and those that do not.
    Period(Duration),
}
