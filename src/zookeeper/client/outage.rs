//! When to log that no server can be reached: at once, after 10 s, then every minute, and for each new reason.

use std::time::Duration;

use crate::core::time::Timestamp;

const SECOND_LINE: Duration = Duration::from_secs(10);
const MINUTE: Duration = Duration::from_secs(60);
/// Further ones wait for the next line that is due.
const MOST_REASONS: usize = 16;

/// One outage.
#[derive(Debug)]
pub(crate) struct Outage {
    since: Timestamp,
    reason: String,
    /// The reasons that were logged. One that comes again is no news, as of servers that fail in several ways in turn.
    told: Vec<String>,
    lines: u32,
}

/// A line that is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Due {
    Reason,
    /// The outage has lasted for so long.
    Still(Duration),
}

impl Outage {
    /// Contact was lost, or a first attempt failed.
    pub fn begin(since: Timestamp) -> Self {
        Self { since, reason: String::new(), told: Vec::new(), lines: 0 }
    }

    /// Why an attempt has failed. `is_final`: the servers refuse us, and another attempt would not help.
    pub fn report(&mut self, now: Timestamp, reason: String, is_final: bool) {
        match self.due(now, reason) {
            Some(Due::Reason) if is_final => {
                tracing::error!(why = "refused", "Cannot connect to ZooKeeper: {}", self.reason);
            }
            Some(Due::Reason) => {
                tracing::warn!(
                    why = "unreachable",
                    "Cannot reach ZooKeeper: {}; retrying (are the servers up, and is --connect right?)",
                    self.reason
                );
            }
            Some(Due::Still(length)) => {
                let length = humantime::format_duration(length);
                tracing::warn!(why = "unreachable", "Without ZooKeeper for {length}: {}; retrying", self.reason);
            }
            None => tracing::debug!(reason = self.reason, "Ensemble was not reached again"),
        }
    }

    fn due(&mut self, now: Timestamp, reason: String) -> Option<Due> {
        let is_new = !self.told.contains(&reason) && self.told.len() < MOST_REASONS;
        self.reason = reason;
        if is_new {
            self.told.push(self.reason.clone());
            self.lines = self.lines.max(1);
            return Some(Due::Reason);
        }
        let length = self.since.until(now);
        let due_at = if self.lines <= 1 { SECOND_LINE } else { MINUTE * (self.lines - 1) };
        if length < due_at {
            return None;
        }
        let minutes = u32::try_from(length.as_secs() / 60).unwrap_or(u32::MAX);
        self.lines = minutes.saturating_add(2);
        Some(Due::Still(Duration::from_secs(length.as_secs())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_told_at_once_after_ten_seconds_and_every_minute() {
        let mut outage = Outage::begin(Timestamp::ZERO.after(Duration::from_secs(100)));
        let told = |outage: &mut Outage, seconds: u64, reason: &str| {
            outage.due(Timestamp::ZERO.after(Duration::from_secs(100 + seconds)), reason.to_owned())
        };
        let lines: Vec<_> =
            (0..=190).filter_map(|second| Some((second, told(&mut outage, second, "refused")?))).collect();
        let still = |seconds| Due::Still(Duration::from_secs(seconds));
        assert_eq!(lines, [(0, Due::Reason), (10, still(10)), (60, still(60)), (120, still(120)), (180, still(180))]);
        assert_eq!(told(&mut outage, 191, "no quorum"), Some(Due::Reason), "another reason is told at once");
        assert_eq!(told(&mut outage, 192, "no quorum"), None);
        assert_eq!(told(&mut outage, 193, "refused"), None, "it is known");
        assert_eq!(told(&mut outage, 240, "refused"), Some(still(240)));
        let news = (0..100).filter(|n| told(&mut outage, 241, &n.to_string()).is_some());
        assert_eq!(news.count(), MOST_REASONS - 2);
    }

    #[test]
    fn an_outage_is_as_long_as_it_is_though_its_reason_has_changed() {
        let at = |millis: u64| Timestamp::ZERO.after(Duration::from_millis(millis));
        let mut outage = Outage::begin(at(7));
        let mut told = |millis, reason: &str| outage.due(at(millis), reason.to_owned());
        assert_eq!([told(2_500, "refused"), told(24_000, "no quorum")], [Some(Due::Reason); 2]);
        assert_eq!(told(29_007, "no quorum"), Some(Due::Still(Duration::from_secs(29))), "since contact was lost");
    }
}
