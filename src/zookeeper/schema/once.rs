//! How often a command may run, whichever host runs it. The markers are in `run_marker`.

use std::time::Duration;

/// `--slot` or `--once-per`, and what goes with them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Once {
    pub per: Per,
    /// A run that failed or never ended does not count: at least once. Otherwise: at most once.
    pub retry_failed: bool,
    /// How many slot markers are kept; at least 1.
    pub keep_slots: usize,
}

impl Once {
    /// No other host repeats a run that failed or never ended.
    pub fn is_at_most_once(&self) -> bool {
        !self.retry_failed
    }
}

/// The unit of which a command may run once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Per {
    /// A key that all hosts derive alike, usually from the scheduled time: any text of 1 to 128 bytes.
    Slot(String),
    /// A length of time. Runs that start within half of it count as one.
    Period(Duration),
}
