//! Readings of the two clocks of the lease argument, with saturating arithmetic. `core` does not read a clock; each
//! function is given the time.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The holder's clock: `CLOCK_MONOTONIC_RAW` + (`CLOCK_BOOTTIME` − `CLOCK_MONOTONIC`). It counts suspend and is not
/// slewed by `adjtimex(2)`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LeaseClock {}

/// The successor's clock: `CLOCK_MONOTONIC_RAW`. It stops in suspend, so it can only make a wait longer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ObserverClock {}

/// One reading of clock `C`, in nanoseconds since an arbitrary start. Readings of different clocks cannot be compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp<C> {
    nanos: u64,
    clock: PhantomData<C>,
}

/// An instant on the holder's clock, as are all deadlines of a running command.
pub type Timestamp = Stamp<LeaseClock>;

/// An instant on the successor's clock: when a record was first seen, when a wait is over.
pub type Sighting = Stamp<ObserverClock>;

/// In whole milliseconds, in which times of day are counted; the longest length for those that do not fit.
pub fn milliseconds(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}

/// In whole milliseconds, in which lengths are written for programs and in znodes, under names that end in `_ms`.
pub fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// Cut off to whole milliseconds, for people.
pub fn in_millis(length: Duration) -> Duration {
    Duration::from_millis(millis(length))
}

impl<C: Copy> Default for Stamp<C> {
    fn default() -> Self {
        Self::ZERO
    }
}

impl<C: Copy> Stamp<C> {
    pub const ZERO: Self = Self::from_nanos(0);
    /// Later than every reachable instant: 584 years.
    pub const NEVER: Self = Self::from_nanos(u64::MAX);

    pub const fn from_nanos(nanos: u64) -> Self {
        Self { nanos, clock: PhantomData }
    }

    pub const fn as_nanos(self) -> u64 {
        self.nanos
    }

    /// The instant `length` later, at most [`Stamp::NEVER`].
    #[must_use]
    pub fn after(self, length: Duration) -> Self {
        Self::from_nanos(self.nanos.saturating_add(nanos_of(length)))
    }

    /// The instant `length` earlier, at least [`Stamp::ZERO`].
    #[must_use]
    pub fn before(self, length: Duration) -> Self {
        Self::from_nanos(self.nanos.saturating_sub(nanos_of(length)))
    }

    /// The time from here to `later`; zero if that has passed.
    #[must_use]
    pub fn until(self, later: Self) -> Duration {
        Duration::from_nanos(later.nanos.saturating_sub(self.nanos))
    }
}

/// In nanoseconds: another program of this host and boot reads the same clock.
impl<C> Serialize for Stamp<C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.nanos.serialize(serializer)
    }
}

impl<'de, C: Copy> Deserialize<'de> for Stamp<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Self::from_nanos)
    }
}

impl<C> fmt::Debug for Stamp<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{:?}", Duration::from_nanos(self.nanos))
    }
}

/// One moment on both clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now {
    pub lease: Timestamp,
    pub observer: Sighting,
}

impl Now {
    /// What the holder's clock counts besides, in nanoseconds: the time spent in suspend. In a time namespace it may be
    /// negative; only its changes mean something.
    pub fn suspended(self) -> i64 {
        let [lease, observer] =
            [self.lease.nanos, self.observer.nanos].map(|nanos| i64::try_from(nanos).unwrap_or(i64::MAX));
        lease.saturating_sub(observer)
    }
}

fn nanos_of(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Timestamp::NEVER.after(Duration::from_secs(1)), Timestamp::NEVER);
        assert_eq!(Timestamp::ZERO.before(Duration::from_secs(1)), Timestamp::ZERO);
        assert_eq!(Timestamp::from_nanos(5).until(Timestamp::from_nanos(2)), Duration::ZERO);
        assert_eq!(Timestamp::ZERO.after(Duration::MAX), Timestamp::NEVER);
    }
}
