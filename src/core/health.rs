//! Turns the outcomes of a health command into a verdict, and schedules the next check.
//!
//! The state is unhealthy before the first check. One success makes it healthy; the chosen number of failures in a row
//! makes it unhealthy. Failures during the start-up period of a command do not count.

use std::time::Duration;

use super::time::Timestamp;

/// The user's options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// From the end of one check to the start of the next.
    pub interval: Duration,
    /// Failures in a row that make the state unhealthy; at least one.
    pub failures: u32,
    /// The start-up period: failures do not count for this long after a start of the command.
    pub grace: Duration,
}

/// See the module page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Health {
    settings: Settings,
    is_healthy: bool,
    failures: u32,
    check_at: Timestamp,
    is_checking: bool,
    grace_until: Timestamp,
}

impl Health {
    /// Unhealthy until the first check, which is due now, succeeds.
    pub fn new(settings: Settings, now: Timestamp) -> Self {
        Self {
            settings,
            is_healthy: false,
            failures: 0,
            check_at: now,
            is_checking: false,
            grace_until: Timestamp::ZERO,
        }
    }

    /// An earlier program of this process has found it healthy. The start-up period counts anew.
    pub fn resume(&mut self, now: Timestamp) {
        self.is_healthy = true;
        self.command_started(now);
    }

    pub fn command_started(&mut self, now: Timestamp) {
        self.grace_until = now.after(self.settings.grace);
        // Without a start-up period, commands that are restarted again and again would hide that each check fails.
        if self.settings.grace > Duration::ZERO {
            self.failures = 0;
        }
    }

    /// The time of the next check; [`Timestamp::NEVER`] while one runs.
    pub fn check_at(&self) -> Timestamp {
        if self.is_checking { Timestamp::NEVER } else { self.check_at }
    }

    /// Begins a check if one is due, and tells whether it did.
    pub fn begin_check(&mut self, now: Timestamp) -> bool {
        let is_due = now >= self.check_at();
        self.is_checking |= is_due;
        is_due
    }

    /// A check has ended. `Some`: the verdict changed to this.
    pub fn checked(&mut self, now: Timestamp, succeeded: bool) -> Option<bool> {
        self.is_checking = false;
        self.check_at = now.after(self.settings.interval);
        if succeeded {
            self.failures = 0;
            return self.judge(true);
        }
        if now < self.grace_until {
            return None;
        }
        self.failures = self.failures.saturating_add(1);
        if self.failures >= self.settings.failures { self.judge(false) } else { None }
    }

    pub fn is_healthy(&self) -> bool {
        self.is_healthy
    }

    /// Failures in a row that count.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    fn judge(&mut self, is_healthy: bool) -> Option<bool> {
        let has_changed = self.is_healthy != is_healthy;
        self.is_healthy = is_healthy;
        has_changed.then_some(is_healthy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn health() -> Health {
        let settings = Settings { interval: 10 * SECOND, failures: 3, grace: 60 * SECOND };
        Health::new(settings, Timestamp::ZERO)
    }

    fn at(seconds: u32) -> Timestamp {
        Timestamp::ZERO.after(seconds * SECOND)
    }

    #[test]
    fn who_was_never_asked_is_not_healthy_and_one_success_is_enough() {
        let mut health = health();
        assert!(!health.is_healthy() && health.begin_check(at(0)));
        assert_eq!(health.checked(at(1), false), None);
        assert_eq!(health.checked(at(2), true), Some(true));
        assert_eq!(health.checked(at(3), true), None);
    }

    #[test]
    fn failures_count_in_a_row_and_a_success_forgives_them() {
        let mut health = health();
        health.checked(at(1), true);
        let outcomes = [false, false, true, false, false, false, false].map(|ok| health.checked(at(2), ok));
        assert_eq!(outcomes, [None, None, None, None, None, Some(false), None]);
        assert_eq!(health.checked(at(3), true), Some(true));
    }

    #[test]
    fn failures_in_the_start_up_period_of_a_command_do_not_count_and_do_not_heal() {
        let mut health = health();
        health.checked(at(1), true);
        health.checked(at(2), false);
        health.command_started(at(10));
        for second in 11..69 {
            assert_eq!(health.checked(at(second), false), None);
        }
        let outcomes = [70, 71, 72].map(|second| health.checked(at(second), false));
        assert_eq!(outcomes, [None, None, Some(false)]);
        health.command_started(at(80));
        assert_eq!(health.checked(at(81), false), None);
        assert!(!health.is_healthy());
    }

    #[test]
    fn without_a_start_up_period_a_command_that_is_restarted_hides_no_failure() {
        let mut health = Health::new(Settings { grace: Duration::ZERO, ..health().settings }, Timestamp::ZERO);
        health.checked(at(1), true);
        let outcomes = [10, 20, 30].map(|second| {
            health.command_started(at(second));
            health.checked(at(second + 1), false)
        });
        assert_eq!(outcomes, [None, None, Some(false)]);
    }

    #[test]
    fn one_check_at_a_time_and_the_next_one_an_interval_after_its_end() {
        let mut health = health();
        assert!(health.begin_check(at(0)));
        assert!(!health.begin_check(at(30)));
        assert_eq!(health.check_at(), Timestamp::NEVER);
        health.checked(at(30), true);
        assert!(!health.begin_check(at(39)));
        assert_eq!(health.check_at(), at(40));
        assert!(health.begin_check(at(40)));
    }
}
