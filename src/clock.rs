//! The only reader of the clock, for both processes.
//!
//! Never: wall-clock time in a decision; a sleep.

use std::cell::Cell;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use crate::core::time::{Now, Sighting, Timestamp, milliseconds};

/// BOOTTIME − MONOTONIC moves only by suspend. A change by more than this is one; a smaller one is the error of reading
/// two clocks in turn.
pub const JUMP: u64 = 10_000_000; // ns

/// Two readings that lie further apart were torn by the scheduler, and are taken again.
const TORN: Duration = Duration::from_micros(500);
const TRIES: usize = 8;

thread_local! {
    /// Without a destructor, so that a first look at it allocates nothing.
    static SIMULATED: Cell<Option<fn() -> Now>> = const { Cell::new(None) };
}

/// From now on, [`now`] asks `clock` in this thread: for tests that run this program in virtual time. `None`: the real clocks.
pub fn simulate(clock: Option<fn() -> Now>) {
    SIMULATED.set(clock);
}

/// One moment on both clocks (see [`crate::core::time`]).
pub fn now() -> Now {
    if let Some(clock) = SIMULATED.get() {
        return clock();
    }
    let observer = Sighting::ZERO.after(read(ClockId::CLOCK_MONOTONIC_RAW));
    Now { lease: Timestamp::from_nanos(observer.as_nanos().saturating_add_signed(suspended())), observer }
}

/// `CLOCK_MONOTONIC`, for systemd; decides nothing.
pub fn monotonic() -> Duration {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Milliseconds since 1970, for people to read.
#[expect(clippy::disallowed_methods, reason = "shown to people, and decides nothing")]
pub fn time_of_day() -> i64 {
    if let Some(clock) = SIMULATED.get() {
        return milliseconds(Duration::from_nanos(clock().lease.as_nanos()));
    }
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    milliseconds(since)
}

/// BOOTTIME − MONOTONIC in nanoseconds (`clock_gettime(2)`): the time spent in suspend since boot. In a time namespace either
/// is shifted, and this may be negative (`time_namespaces(7)`).
fn suspended() -> i64 {
    if let Some(clock) = SIMULATED.get() {
        return clock().suspended();
    }
    let mut offset = 0;
    for _ in 0..TRIES {
        let before = read(ClockId::CLOCK_MONOTONIC);
        let boot = read(ClockId::CLOCK_BOOTTIME);
        let after = read(ClockId::CLOCK_MONOTONIC);
        offset = Now { lease: Timestamp::ZERO.after(boot), observer: Sighting::ZERO.after(before) }.suspended();
        if after.saturating_sub(before) < TORN {
            break;
        }
    }
    offset
}

/// Every Linux since 2.6.39 has these clocks; the vDSO cannot fail on them.
fn read(clock: ClockId) -> Duration {
    clock_gettime(clock).map_or(Duration::ZERO, Duration::from)
}

/// Notices that the host was suspended between two looks.
#[derive(Debug)]
pub struct SuspendWatch {
    suspended: i64,
}

impl SuspendWatch {
    pub fn new() -> Self {
        Self { suspended: suspended() }
    }

    /// Whether BOOTTIME − MONOTONIC jumped since the last look: then the lease is forfeit.
    pub fn jumped(&mut self) -> bool {
        let suspended = suspended();
        let jumped = suspended.abs_diff(self.suspended) > JUMP;
        if jumped {
            self.suspended = suspended;
        }
        jumped
    }
}

impl Default for SuspendWatch {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_run_forward_and_nothing_jumps_without_a_suspend() {
        let mut watch = SuspendWatch::new();
        let first = now();
        let second = now();
        assert!(first.lease <= second.lease.after(TORN) && first.observer <= second.observer);
        assert!(first.observer.as_nanos() > 0);
        assert!(!watch.jumped());
    }
    /// Clocks of such a namespace, so long after the boot of its host.
    fn awake(seconds: u64) -> Now {
        let [lease, observer] = [seconds, 1_000_000].map(Duration::from_secs);
        Now { lease: Timestamp::ZERO.after(lease), observer: Sighting::ZERO.after(observer) }
    }

    #[test]
    fn a_suspend_is_noticed_in_a_time_namespace_whose_monotonic_clock_is_far_ahead() {
        simulate(Some(|| awake(10)));
        let mut watch = SuspendWatch::new();
        let is_noticed_too_soon = watch.jumped();
        simulate(Some(|| awake(11)));
        let is_noticed = watch.jumped();
        simulate(None);
        assert!(is_noticed && !is_noticed_too_soon);
    }
}
