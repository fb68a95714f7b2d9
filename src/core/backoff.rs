//! How long to stand back after a failure: 100 ms doubling to a limit, with jitter, so that hosts do not retry in step.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::time::Timestamp;

const SHORTEST: Duration = Duration::from_millis(100);
/// For requests that a server answers, or should: many hosts must not keep it busy.
pub const LONGEST: Duration = Duration::from_secs(10);
/// For new sessions: after an outage of any length, the first server that serves is found this soon.
pub const LONGEST_WITHOUT_SESSION: Duration = Duration::from_millis(500);
/// Failures further apart than this are not of one kind: the doubling starts again.
const FORGIVEN_AFTER: Duration = Duration::from_secs(20);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Backoff {
    longest: Duration,
    attempts: u32,
    last_failed_at: Timestamp,
    random: u64,
}

impl Backoff {
    pub fn new(seed: u64, longest: Duration) -> Self {
        // xorshift stays at zero for ever.
        Self { longest, attempts: 0, last_failed_at: Timestamp::ZERO, random: seed | 1 }
    }

    /// When to try again after a failure at `now`.
    pub fn retry_at(&mut self, now: Timestamp) -> Timestamp {
        if self.last_failed_at.until(now) > FORGIVEN_AFTER {
            self.attempts = 0;
        }
        self.last_failed_at = now;
        let longest = SHORTEST.saturating_mul(1 << self.attempts.min(16)).min(self.longest);
        self.attempts += 1;
        now.after(longest / 2 + longest.mul_f64(self.fraction() / 2.0))
    }

    pub fn reset(&mut self) {
        self.attempts = 0;
    }

    /// In 0.0..1.0; xorshift64 (Marsaglia 2003).
    fn fraction(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let top = u32::try_from(self.random >> 32).unwrap_or(0);
        f64::from(top) / (f64::from(u32::MAX) + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_to_its_limit_with_jitter_and_forgives_after_a_calm_time() {
        for longest in [LONGEST, LONGEST_WITHOUT_SESSION] {
            let mut backoff = Backoff::new(7, longest);
            let mut now = Timestamp::from_nanos(0);
            let mut waits = Vec::new();
            for _ in 0..12 {
                let at = backoff.retry_at(now);
                waits.push(now.until(at));
                now = at;
            }
            assert!(waits[0] >= SHORTEST / 2 && waits[0] <= SHORTEST);
            assert!(waits[11] >= longest / 2 && waits.iter().all(|wait| *wait <= longest), "{waits:?}");
            assert!(waits.windows(2).any(|w| w[1] != 2 * w[0]), "no jitter: {waits:?}");
            let calm = now.after(Duration::from_secs(60));
            assert!(calm.until(backoff.retry_at(calm)) <= SHORTEST);
        }
    }
}
