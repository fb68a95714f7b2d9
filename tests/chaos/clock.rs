//! The clock of the diaries, which all namespaces share.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// `CLOCK_BOOTTIME`.
pub fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap().into()
}
