//! Waits until something holds, with a generous limit; the only clock and the only sleep of the test kit.
#![allow(clippy::disallowed_methods, reason = "a test waits for what other processes do")]

use std::time::{Duration, Instant};

/// Long enough for a busy machine; a passing test never gets near it.
pub const LIMIT: Duration = Duration::from_secs(30);

/// Long enough for an event on loopback to be noticed, if there is one.
pub const SETTLED: Duration = Duration::from_millis(500);

/// What must happen within a second, by the contract: the rest is for a machine that is busy with other tests. It is less than a
/// steady host's command would live without its guard's or its supervisor's help.
pub const AT_ONCE: Duration = Duration::from_secs(8);

/// Between two looks: a sixteenth of what was waited so far, within these. A look may cost a process, or read a long log.
const STEPS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(25));

/// Waits until `holds`, at most [`LIMIT`]; else panics with `what`.
#[track_caller]
pub fn until(what: &str, holds: impl FnMut() -> bool) {
    assert!(held_within(LIMIT, holds), "waited {LIMIT:?} in vain until {what}");
}

/// Waits until `ready` gives something, at most [`LIMIT`]; else panics with `what`.
#[track_caller]
pub fn for_some<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    until(what, || {
        found = ready();
        found.is_some()
    });
    found.expect("it was found")
}

/// Whether `holds` came true within `limit`.
pub fn held_within(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    loop {
        if holds() {
            return true;
        }
        let waited = started.elapsed();
        if waited >= limit {
            return false;
        }
        std::thread::sleep((waited / 16).clamp(STEPS.0, STEPS.1));
    }
}

pub const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

pub const fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Lets `length` pass, for tests of what must *not* happen meanwhile.
pub fn pass(length: Duration) {
    std::thread::sleep(length);
}
