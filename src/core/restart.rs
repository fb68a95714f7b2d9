//! What follows when the command ends by itself while we lead: restart it, exit, or let another host lead. A command
//! that could not be executed does not come here, unless the reason may pass.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::guard_messages::ChildStatus;
use super::time::Timestamp;

/// The status of a run that `--timeout` ended, as in timeout(1).
pub const TIMED_OUT: u8 = 124;

/// The status of a command that could not be executed, as in a shell.
const NOT_EXECUTED: u8 = 126;

/// `--restart`: the endings after which the command is restarted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum RestartOn {
    /// Every ending but status 0.
    #[default]
    Failure,
    /// Every ending.
    Always,
}

/// A set of exit statuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statuses {
    bits: [u64; 4],
}

impl Statuses {
    #[must_use]
    pub fn with(mut self, status: u8) -> Self {
        if let Some(bits) = self.bits.get_mut(usize::from(status / 64)) {
            *bits |= 1 << (status % 64);
        }
        self
    }

    pub fn contains(&self, status: u8) -> bool {
        self.bits.get(usize::from(status / 64)).is_some_and(|bits| bits >> (status % 64) & 1 == 1)
    }

    pub fn iter(&self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(|status| self.contains(*status))
    }
}

/// The restart options. The defaults are those of the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    pub on: RestartOn,
    /// The delay before the first restart; doubled with each failure in a row.
    pub delay: Duration,
    /// The limit of the delay. A run that lasted this long resets the doubling.
    pub longest_delay: Duration,
    /// Restarts after failures within `window`; `None`: no limit.
    pub most: Option<u32>,
    pub window: Duration,
    /// Statuses that are not restarted; a signal counts as 128 + its number.
    pub no_restart: Statuses,
    /// The minimum time from one start to the next, across terms.
    pub min_interval: Duration,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            on: RestartOn::Failure,
            delay: Duration::from_secs(1),
            longest_delay: Duration::from_secs(60),
            most: Some(5),
            window: Duration::from_secs(600),
            no_restart: Statuses::default(),
            min_interval: Duration::ZERO,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ending {
    pub status: ChildStatus,
    /// `--timeout` ended it: a failure, whatever the status.
    pub timed_out: bool,
}

impl Ending {
    fn is_success(self) -> bool {
        !self.timed_out && self.status == ChildStatus::Exited(0)
    }

    /// The status as a shell reports it.
    fn code(self) -> Option<u8> {
        if self.timed_out {
            return Some(TIMED_OUT);
        }
        self.status.as_in_a_shell().or_else(|| self.status.failed_for_now().then_some(NOT_EXECUTED))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// No restart.
    Over,
    /// Restart, not before this.
    Again { at: Timestamp },
    /// `--max-restarts` is used up: another host leads.
    TooOften,
}

/// The starts and failures of this process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct History {
    started_at: Option<Timestamp>,
    /// Failures in a row, none of them after a long run.
    in_a_row: u32,
    /// The failures within the window, oldest first. Kept after a resignation, so that a host that comes back starts
    /// with its old count.
    failed_at: Vec<Timestamp>,
    /// A start could not be prepared, or there were too many, and no other host has led since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_resigned: bool,
    /// When that was last so, whoever has led since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resigned_at: Option<Timestamp>,
}

impl History {
    pub fn started(&mut self, now: Timestamp) {
        self.started_at = Some(now);
    }

    /// This host could not start the command, or it failed too often.
    pub fn resigns(&mut self, now: Timestamp) {
        (self.has_resigned, self.resigned_at) = (true, Some(now));
    }

    /// Before this, no other host should stop its command for one of ours.
    pub fn asks_from(&self, rules: &Rules) -> Timestamp {
        let failed = self.resigned_at.map_or(Timestamp::ZERO, |at| at.after(rules.window));
        failed.max(self.next_start_at(rules))
    }

    /// When the minimum interval allows the next start.
    pub fn next_start_at(&self, rules: &Rules) -> Timestamp {
        self.started_at.map_or(Timestamp::ZERO, |at| at.after(rules.min_interval))
    }

    /// A run ended at `now`, and only its ending decides about another one.
    pub fn ended(&mut self, now: Timestamp, rules: &Rules, ending: Ending) -> Verdict {
        let unwanted = ending.code().is_none_or(|code| rules.no_restart.contains(code));
        if unwanted || (ending.is_success() && rules.on == RestartOn::Failure) {
            return Verdict::Over;
        }
        if ending.is_success() {
            self.in_a_row = 0;
            return Verdict::Again { at: now.after(rules.delay) };
        }
        self.failed_at.retain(|at| at.until(now) < rules.window);
        if let Some(most) = rules.most {
            self.failed_at.push(now);
            if u32::try_from(self.failed_at.len()).unwrap_or(u32::MAX) > most {
                return Verdict::TooOften;
            }
        }
        if self.started_at.is_none_or(|at| at.until(now) >= rules.longest_delay) {
            self.in_a_row = 0;
        }
        let doubled = rules.delay.saturating_mul(1 << self.in_a_row.min(24));
        self.in_a_row = self.in_a_row.saturating_add(1);
        Verdict::Again { at: now.after(doubled.min(rules.longest_delay)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: Ending = Ending { status: ChildStatus::Exited(1), timed_out: false };
    const SUCCEEDED: Ending = Ending { status: ChildStatus::Exited(0), timed_out: false };

    fn at(seconds: u64) -> Timestamp {
        Timestamp::ZERO.after(Duration::from_secs(seconds))
    }

    /// The delays after runs of these lengths in seconds, all with this ending; `None`: no restart.
    fn delays(rules: &Rules, ending: Ending, runs: &[u64]) -> Vec<Option<u64>> {
        let (mut history, mut now) = (History::default(), at(0));
        let mut run = |length: &u64| {
            history.started(now);
            now = now.after(Duration::from_secs(*length));
            let Verdict::Again { at } = history.ended(now, rules, ending) else { return None };
            let delay = now.until(at).as_secs();
            now = at;
            Some(delay)
        };
        runs.iter().map(&mut run).collect()
    }

    #[test]
    fn the_delay_doubles_to_its_limit_and_a_calm_run_forgives() {
        let rules = Rules { most: None, ..Rules::default() };
        let expected = [1, 2, 4, 8, 16, 32, 60, 60, 1, 2].map(Some);
        assert_eq!(delays(&rules, FAILED, &[0, 0, 0, 0, 0, 0, 59, 0, 60, 0]), expected);
    }

    #[test]
    fn the_budget_is_of_restarts_within_the_window() {
        let rules = Rules { most: Some(2), window: Duration::from_secs(100), ..Rules::default() };
        assert_eq!(delays(&rules, FAILED, &[0, 0, 0]), [Some(1), Some(2), None]);
        assert_eq!(delays(&rules, FAILED, &[0, 99, 99, 99]), [Some(1), Some(1), Some(1), Some(1)]);
        let none = Rules { most: Some(0), ..rules };
        assert_eq!(delays(&none, FAILED, &[0]), [None]);
    }

    #[test]
    fn who_resigned_is_not_forgiven_within_the_window() {
        let rules = Rules { most: Some(1), ..Rules::default() };
        let mut history = History::default();
        for (second, verdict) in [(0, Verdict::Again { at: at(1) }), (1, Verdict::TooOften), (60, Verdict::TooOften)] {
            history.started(at(second));
            assert_eq!(history.ended(at(second), &rules, FAILED), verdict);
        }
        history.started(at(900));
        assert!(matches!(history.ended(at(900), &rules, FAILED), Verdict::Again { .. }));
    }

    #[test]
    fn a_success_ends_it_unless_it_is_always_restarted_and_then_costs_no_budget() {
        assert_eq!(delays(&Rules::default(), SUCCEEDED, &[5]), [None]);
        let always = Rules { on: RestartOn::Always, most: Some(1), ..Rules::default() };
        assert_eq!(delays(&always, SUCCEEDED, &[0; 5]), [Some(1); 5]);
    }

    #[test]
    fn statuses_that_must_not_be_restarted_end_it() {
        let rules = Rules { no_restart: Statuses::default().with(78).with(143).with(124), ..Rules::default() };
        let again = |status, timed_out| delays(&rules, Ending { status, timed_out }, &[0]) == [Some(1)];
        assert!(!again(ChildStatus::Exited(78), false));
        assert!(!again(ChildStatus::Signaled(15), false));
        assert!(!again(ChildStatus::Signaled(15), true), "124: its time was over");
        assert!(again(ChildStatus::Exited(77), false));
        assert!(again(ChildStatus::Signaled(9), false));
        assert!(again(ChildStatus::Exited(0), false) == delays(&rules, SUCCEEDED, &[0])[0].is_some());
    }

    #[test]
    fn a_run_that_timed_out_has_failed_whatever_its_status() {
        let ending = Ending { status: ChildStatus::Exited(0), timed_out: true };
        assert_eq!(delays(&Rules::default(), ending, &[0, 0]), [Some(1), Some(2)]);
    }

    #[test]
    fn a_command_that_could_not_be_executed_is_restarted_only_if_the_cause_may_pass() {
        let delays = |errno| {
            delays(&Rules::default(), Ending { status: ChildStatus::NotExecuted(errno), timed_out: false }, &[0, 0])
        };
        for passing in [5, 11, 12, 23, 24, 26, 28, 116] {
            assert_eq!(delays(passing), [Some(1), Some(2)], "{passing}");
        }
        for lasting in [1, 2, 7, 8, 13, 19, 20, 40] {
            assert_eq!(delays(lasting), [None, None], "{lasting}");
        }
    }

    #[test]
    fn starts_keep_their_distance() {
        let rules = Rules { min_interval: Duration::from_secs(30), ..Rules::default() };
        let mut history = History::default();
        assert_eq!(history.next_start_at(&rules), Timestamp::ZERO);
        history.started(at(5));
        assert_eq!(history.next_start_at(&rules), at(35));
    }

    #[test]
    fn a_set_of_statuses_holds_all_of_them() {
        let set = [0, 63, 64, 255].into_iter().fold(Statuses::default(), Statuses::with);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 255]);
    }
}
