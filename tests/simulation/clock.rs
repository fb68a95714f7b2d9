//! The hosts' clocks as functions of real time, which nobody in the simulation can read.

use zk_leader_run::core::time::{Now, Sighting, Timestamp};

/// Nanoseconds of real time since the start of the script.
pub type Real = u64;

pub const MILLI: Real = 1_000_000;
pub const SECOND: Real = 1_000 * MILLI;

const MILLION: i128 = 1_000_000;

/// One host's oscillator: starts anywhere, runs up to 1 % fast or slow, is not stopped by anything but a suspend.
#[derive(Clone, Debug)]
pub struct HostClock {
    pub offset: u64,
    pub drift_ppm: i64,
    pub suspended: Real,
}

impl HostClock {
    pub fn now(&self, real: Real) -> Now {
        let awake = i128::from(real) - i128::from(self.suspended);
        let raw = u64::try_from(awake * (MILLION + i128::from(self.drift_ppm)) / MILLION).unwrap() + self.offset;
        Now { lease: Timestamp::from_nanos(raw + self.suspended), observer: Sighting::from_nanos(raw) }
    }

    /// The first instant at which the holder's clock shows `at`.
    pub fn real_of(&self, at: Timestamp) -> Real {
        let raw = i128::from(at.as_nanos()) - i128::from(self.suspended) - i128::from(self.offset);
        let rate = MILLION + i128::from(self.drift_ppm);
        let awake = (raw.max(0) * MILLION + rate - 1) / rate;
        u64::try_from(awake).unwrap_or(u64::MAX / 2) + self.suspended
    }
}
