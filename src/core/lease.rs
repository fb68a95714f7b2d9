//! The lease arithmetic: from an acknowledged renewal to the instants at which the command is stopped and killed; from
//! the first sight of a record to the instant at which its successor may start. Every margin of the guarantee is
//! defined here. It does not depend on what `ZooKeeper` says about sessions.

use std::time::Duration;

use super::guard_messages::Deadlines;
use super::time::{Sighting, Timestamp};

/// ρ: two hosts' clocks differ by at most 1 % in rate (a premise of the guarantee).
const DRIFT_PERCENT: u32 = 1;
/// I = L / 8, at least 50 ms and at most 5 s.
pub const RENEWALS_PER_LEASE: u32 = 8;
const RENEWAL_SHORTEST: Duration = Duration::from_millis(50);
const RENEWAL_LONGEST: Duration = Duration::from_secs(5);
/// G = L / 40, at most [`SLACK_LONGEST`]: scheduling slack of one kill step.
const SLACK_PER_LEASE: u32 = 40;
const SLACK_LONGEST: Duration = Duration::from_millis(100);
/// The client gives up a silent server after T / 5, so that one dead server does not cost the leadership (T48).
const CONNECTION_TIMEOUT_PER_SESSION: u32 = 5;
/// The default reserve for SIGTERM is L / 4.
const RESERVE_PER_LEASE: u32 = 4;

/// `L_max`: the wait for a record whose lease cannot be read. A longer `--lease` is refused.
pub const LEASE_LONGEST: Duration = Duration::from_secs(120);

/// The user's options, before the session timeout is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wishes {
    /// `--lease`; `None`: the session timeout.
    pub lease: Option<Duration>,
    /// `--stop-reserve`; `None`: a quarter of the lease.
    pub reserve: Option<Duration>,
    /// `--on-pause freeze`: a frozen tree cannot handle SIGTERM, so no reserve is set aside.
    pub frozen_while_paused: bool,
    /// `--grace`; `None`: as long as the lease allows.
    pub grace: Option<Duration>,
    /// `--max-pause` under `--guarantee at-least-one`; it ends the command in place of the lease. `None` under
    /// at-most-one.
    pub max_pause: Option<Duration>,
    /// `--election-path`: candidates of other libraries do not wait for our lease, so it has to end while our session
    /// lives. Best effort: see [`Timing::deadlines_after`].
    pub is_shared: bool,
}

impl Wishes {
    /// All defaults.
    pub const NONE: Self =
        Self { lease: None, reserve: None, frozen_while_paused: false, grace: None, max_pause: None, is_shared: false };
}

/// The validated margins of one session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// L: the length of the lease that one acknowledged renewal gives.
    pub lease: Duration,
    /// I: from the sending of one renewal to the sending of the next.
    pub renewal_interval: Duration,
    /// G: scheduling slack.
    pub slack: Duration,
    /// From `stop_at` to `kill_at`.
    pub reserve: Duration,
    pub connection_timeout: Duration,
    grace: Option<Duration>,
    max_pause: Option<Duration>,
    is_shared: bool,
}

/// When `--grace` ends a pause that began at `paused_at`.
pub fn grace_over_at(grace: Option<Duration>, paused_at: Timestamp) -> Timestamp {
    grace.map_or(Timestamp::NEVER, |grace| paused_at.after(grace))
}

/// Timings that do not add up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TimingError {
    /// L(1 − ρ) − 2G − reserve leaves less than 2 connection timeouts + 2 I; in a shared election, less than 3 I.
    TooTight {
        session_timeout: Duration,
        lease: Duration,
        slack: Duration,
        reserve: Duration,
        left: Duration,
        /// `None` in a shared election, whose short lease need not outlast a silent server.
        connection_timeout: Option<Duration>,
        renewal_interval: Duration,
    },
    /// Longer than [`LEASE_LONGEST`].
    LeaseTooLong { lease: Duration, session_timeout: Duration },
    /// `--max-pause` under the reserve + 2 connection timeouts + 2 I, which would bear no outage. In a session that was granted: under the
    /// reserve + 2 I, so that the command would be stopped between two renewals.
    PauseTooShort { max_pause: Duration, reserve: Duration, connection_timeout: Duration, renewal_interval: Duration },
    /// A pause longer than the lease would allow split brain (T21).
    GraceTooLong { grace: Duration, longest: Duration },
}

impl Timing {
    /// The timing for a session timeout T (requested, or negotiated with the ensemble).
    ///
    /// # Errors
    /// If the margins do not add up. Then no candidate may be created.
    pub fn new(session_timeout: Duration, wishes: &Wishes) -> Result<Self, TimingError> {
        let lease = lease_for(session_timeout, wishes.lease, wishes.is_shared);
        if lease > LEASE_LONGEST {
            return Err(TimingError::LeaseTooLong { lease, session_timeout });
        }
        let reserve = match wishes.reserve {
            _ if wishes.frozen_while_paused => Duration::ZERO,
            Some(reserve) => reserve,
            None => lease / RESERVE_PER_LEASE,
        };
        let timing = Self {
            lease,
            renewal_interval: (lease / RENEWALS_PER_LEASE).clamp(RENEWAL_SHORTEST, RENEWAL_LONGEST),
            slack: slack_of(lease),
            reserve,
            connection_timeout: connection_timeout(session_timeout),
            grace: wishes.grace,
            max_pause: wishes.max_pause,
            is_shared: wishes.is_shared,
        };
        timing.checked(session_timeout)
    }

    fn checked(self, session_timeout: Duration) -> Result<Self, TimingError> {
        let left = self.usable().saturating_sub(self.reserve);
        if left < self.least_left() {
            return Err(TimingError::TooTight {
                session_timeout,
                lease: self.lease,
                slack: 2 * self.slack,
                reserve: self.reserve,
                left,
                connection_timeout: (!self.is_shared).then_some(self.connection_timeout),
                renewal_interval: self.renewal_interval,
            });
        }
        match (self.grace, self.max_pause) {
            (Some(grace), None) if grace > left => Err(TimingError::GraceTooLong { grace, longest: left }),
            // Whoever bears no outage may run; whoever is stopped between two renewals may not.
            (_, Some(max_pause)) if max_pause < self.reserve + 2 * self.renewal_interval => {
                Err(self.pause_too_short(max_pause))
            }
            _ => Ok(self),
        }
    }

    /// That a pause bears no outage. `None`: it does.
    pub fn bears_no_outage(&self) -> Option<TimingError> {
        let shortest = self.reserve + 2 * self.connection_timeout + 2 * self.renewal_interval;
        let max_pause = self.max_pause.filter(|max_pause| *max_pause < shortest)?;
        Some(self.pause_too_short(max_pause))
    }

    fn pause_too_short(&self, max_pause: Duration) -> TimingError {
        let Self { reserve, connection_timeout, renewal_interval, .. } = *self;
        TimingError::PauseTooShort { max_pause, reserve, connection_timeout, renewal_interval }
    }

    /// The time that must be left over for an outage.
    fn least_left(&self) -> Duration {
        if self.is_shared { 3 * self.renewal_interval } else { 2 * self.connection_timeout + 2 * self.renewal_interval }
    }

    /// L(1 − ρ) − 2G: the usable part of the lease, counted from the renewal's sending.
    pub fn usable(&self) -> Duration {
        self.lease.saturating_sub(drift(self.lease)).saturating_sub(2 * self.slack)
    }

    /// Whether an acknowledged write counts only from the sending of the write before it. In a shared election, a
    /// server that is cut off from `ZooKeeper`'s leader may still answer while our session ends and a candidate of
    /// another library starts.
    pub fn needs_two_writes(&self) -> bool {
        self.is_shared && self.max_pause.is_none()
    }

    /// The deadlines after the answer to a write sent at `sent_at`; the acknowledged write before it was sent at
    /// `acked_sent_at`. In a shared election the later write certifies the earlier one, which counts. With L at most half
    /// of T, the tree is dead half a session timeout before the session could expire, by what is known of session tracking
    /// (docs/decisions/0016). That is no proof.
    pub fn deadlines_after(&self, acked_sent_at: Timestamp, sent_at: Timestamp) -> Deadlines {
        self.deadlines(if self.needs_two_writes() { acked_sent_at.min(sent_at) } else { sent_at })
    }

    /// The deadlines of a renewal sent at `sent_at`, once it is acknowledged (and certified, if needed).
    pub fn deadlines(&self, sent_at: Timestamp) -> Deadlines {
        let kill_at = sent_at.after(self.max_pause.unwrap_or_else(|| self.usable()));
        Deadlines { stop_at: kill_at.before(self.reserve), kill_at }
    }

    /// The deadlines of a leader that lives on promises: the oldest of them was asked for at `vouched_at`, and the last
    /// acknowledged write sent at `acked_at`. L(1 − ρ) − 2G from the former, but no more than F(1 − ρ) − 2G from the latter,
    /// for hosts from which nothing was promised wait for F.
    pub fn vouched_deadlines(&self, vouched_at: Timestamp, acked_at: Timestamp, limit: Duration) -> Deadlines {
        let limited = limit.saturating_sub(drift(limit)).saturating_sub(2 * self.slack);
        let kill_at = vouched_at.after(self.usable()).min(acked_at.after(limited));
        Deadlines { stop_at: kill_at.before(self.reserve), kill_at }
    }

    /// Contact counts as lost if no renewal later than that of `sent_at` is acknowledged by then: 4 I, so that commits
    /// of up to 2 I (the next renewal is sent when the last is acknowledged) do not count as lost contact. No deadline
    /// depends on it.
    pub fn contact_lost_at(&self, sent_at: Timestamp) -> Timestamp {
        sent_at.after(4 * self.renewal_interval)
    }

    /// A renewal sent at `sent_at` shows good contact if it is acknowledged before then: 2 I. A command starts, and
    /// contact is regained, by such a renewal only.
    pub fn quick_until(&self, sent_at: Timestamp) -> Timestamp {
        sent_at.after(2 * self.renewal_interval)
    }

    /// The longest tolerated outage: from the last renewal that counts to `stop_at`, less one interval (the outage may
    /// begin just before a renewal; where two writes are needed, the last but one counts), or `--grace`.
    pub fn longest_outage(&self) -> Duration {
        let lived = self.deadlines(Timestamp::ZERO).stop_at;
        let intervals = if self.needs_two_writes() { 2 } else { 1 };
        let outage = Timestamp::ZERO.until(lived).saturating_sub(intervals * self.renewal_interval);
        self.grace.map_or(outage, |grace| grace.min(outage))
    }
}

/// L(1 + ρ): when the successor of a holder with this lease may start. `first_seen` is when it first saw the record's
/// present version; every successful renewal was sent before that.
pub fn wait_over_at(first_seen: Sighting, lease: Duration) -> Sighting {
    first_seen.after(wait_for(lease))
}

/// L(1 + ρ).
pub fn wait_for(lease: Duration) -> Duration {
    lease.saturating_add(drift(lease))
}

/// A connection is given up when a request stays unanswered this long: 2/5 of T. That is longer than one slow commit,
/// behind which all other replies of the session wait, and leaves time to ask another server within the lease.
pub fn silence_limit(session_timeout: Duration) -> Duration {
    session_timeout * 2 / 5
}

/// How long one server may take to open a session: T / 5.
pub fn connection_timeout(session_timeout: Duration) -> Duration {
    session_timeout / CONNECTION_TIMEOUT_PER_SESSION
}

/// L for a session timeout T and `--lease`: at most T; at most T / 2 in a shared election.
pub fn lease_for(session_timeout: Duration, lease: Option<Duration>, is_shared: bool) -> Duration {
    let longest = if is_shared { session_timeout / 2 } else { session_timeout };
    lease.map_or(longest, |lease| lease.min(longest))
}

/// G under a lease of this length.
pub fn slack_of(lease: Duration) -> Duration {
    (lease / SLACK_PER_LEASE).min(SLACK_LONGEST)
}

/// By how much the clocks of two hosts may differ at the end of a lease.
pub fn drift(lease: Duration) -> Duration {
    lease.saturating_mul(DRIFT_PERCENT) / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Duration = Duration::from_secs(15);
    const DEFAULTS: Wishes = Wishes::NONE;
    const SHARED: Wishes = Wishes { is_shared: true, ..DEFAULTS };

    #[test]
    fn the_defaults_fit() {
        let timing = Timing::new(T, &DEFAULTS).unwrap();
        assert_eq!(timing.usable(), Duration::from_millis(14_650));
        assert_eq!(timing.renewal_interval, Duration::from_millis(1875));
        assert_eq!(timing.reserve, Duration::from_millis(3750));
        assert_eq!(timing.slack, Duration::from_millis(100));
    }

    #[test]
    fn a_lease_counts_from_the_sending_and_ends_before_any_successor_starts() {
        let timing = Timing::new(T, &DEFAULTS).unwrap();
        let sent_at = Timestamp::from_nanos(1_000_000_000);
        let deadlines = timing.deadlines(sent_at);
        assert_eq!(sent_at.until(deadlines.kill_at), timing.usable());
        assert_eq!(deadlines.stop_at.until(deadlines.kill_at), timing.reserve);
        assert!(wait_for(T) >= timing.usable() + 2 * timing.slack + 2 * drift(T));
    }

    #[test]
    fn timings_that_do_not_fit_are_refused_with_the_sum() {
        let wishes = Wishes { reserve: Some(Duration::from_secs(10)), ..DEFAULTS };
        let error = Timing::new(T, &wishes).unwrap_err();
        assert!(matches!(error, TimingError::TooTight { left, .. } if left == Duration::from_millis(4650)));
        let wishes = Wishes { lease: Some(Duration::from_secs(200)), ..DEFAULTS };
        assert!(matches!(Timing::new(Duration::from_secs(300), &wishes), Err(TimingError::LeaseTooLong { .. })));
    }

    #[test]
    fn a_grace_longer_than_the_lease_allows_is_refused() {
        let wishes = Wishes { grace: Some(T), ..DEFAULTS };
        assert!(matches!(Timing::new(T, &wishes), Err(TimingError::GraceTooLong { .. })));
    }

    #[test]
    fn freezing_needs_no_reserve() {
        let wishes = Wishes { frozen_while_paused: true, ..DEFAULTS };
        let deadlines = Timing::new(T, &wishes).unwrap().deadlines(Timestamp::ZERO);
        assert_eq!(deadlines.stop_at, deadlines.kill_at);
    }

    #[test]
    fn the_lease_is_never_longer_than_the_session() {
        let wishes = Wishes { lease: Some(Duration::from_secs(60)), ..DEFAULTS };
        assert_eq!(Timing::new(T, &wishes).unwrap().lease, T);
    }

    /// (T / 2)(1 − ρ) − 2G, I = T / 16, reserve = T / 8.
    #[test]
    fn a_shared_election_leaves_half_of_the_session_timeout_unused() {
        let timing = Timing::new(T, &SHARED).unwrap();
        assert_eq!((timing.lease, timing.renewal_interval, timing.reserve), (T / 2, T / 16, T / 8));
        assert_eq!(timing.usable(), Duration::from_millis(7_500 - 75 - 200));
        let at = |millis: u64| Timestamp::from_nanos(millis * 1_000_000);
        let deadlines = timing.deadlines_after(at(1_000), at(2_000));
        assert_eq!(at(1_000).until(deadlines.kill_at), timing.usable(), "the earlier of two writes counts");
        assert_eq!(Timing::new(T, &DEFAULTS).unwrap().deadlines_after(at(1_000), at(2_000)).kill_at, at(16_650));
        let pausing = Wishes { max_pause: Some(T), ..SHARED };
        assert_eq!(Timing::new(T, &pausing).unwrap().deadlines_after(at(1_000), at(2_000)).kill_at, at(17_000));
    }

    #[test]
    fn a_shared_election_needs_three_intervals_and_no_more() {
        for millis in [500, 1_000, 2_000, 4_000, 15_000, 60_000, 200_000] {
            Timing::new(Duration::from_millis(millis), &SHARED).unwrap();
        }
        let wishes = Wishes { reserve: Some(T / 3), ..SHARED };
        let error = Timing::new(T, &wishes).unwrap_err();
        assert!(matches!(error, TimingError::TooTight { connection_timeout: None, .. }), "{error:?}");
        assert_eq!(Timing::new(T, &Wishes { lease: Some(T), ..SHARED }).unwrap().lease, T / 2);
    }
}
