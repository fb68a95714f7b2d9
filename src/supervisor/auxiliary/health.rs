//! `--health-cmd`: checks periodically whether this host may lead. A check that hangs is killed at its timeout, and has
//! failed.

use super::runner::{Outcome, Runner, complaint};
use crate::clock;
use crate::core::event::{Event, Ineligibility};
use crate::core::guard_messages::Grant;
use crate::core::health::{self, Health};
use crate::core::time::Timestamp;
use crate::guard::briefing::Briefing;
use crate::observe::words;

pub(super) struct HealthWatch {
    health: Health,
    settings: health::Settings,
    pub runner: Runner,
    /// The term that the command runs in.
    term: Option<Grant>,
}

impl HealthWatch {
    pub(super) fn new(runner: Runner, settings: health::Settings) -> Self {
        let health = Health::new(settings, clock::now().lease);
        Self { health, settings, runner, term: None }
    }

    pub(super) fn command_started(&mut self, now: Timestamp, term: Option<Grant>) {
        self.term = term;
        self.health.command_started(now);
    }

    /// Goes on as healthy, beside the command of this grant, which is not new.
    pub(super) fn resume(&mut self, now: Timestamp, term: Option<Grant>) {
        self.term = term;
        self.health.resume(now);
    }

    pub(super) fn is_healthy(&self) -> bool {
        self.health.is_healthy()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.runner.is_idle() || self.runner.is_gone()
    }

    pub(super) fn command_ended(&mut self) {
        self.term = None;
    }

    /// A changed verdict for the machine. Cancel-safe.
    pub(super) async fn verdict(&mut self) -> Event {
        loop {
            if self.runner.is_gone() {
                return std::future::pending().await;
            }
            let now = clock::now().lease;
            if self.health.begin_check(now) && !self.runner.start(now, Timestamp::NEVER, self.briefing()) {
                if let Some(is_healthy) = self.health.checked(now, false) {
                    return ineligible(!is_healthy);
                }
                continue;
            }
            let next = tokio::time::sleep(now.until(self.health.check_at()));
            let outcome = tokio::select! {
                biased;
                outcome = self.runner.ended() => outcome,
                () = next => continue,
            };
            let Some(outcome) = outcome else { continue };
            if outcome == Outcome::GuardGone {
                return self.runner.gone();
            }
            if let Some(is_healthy) = self.judge(outcome) {
                return ineligible(!is_healthy);
            }
        }
    }

    fn judge(&mut self, outcome: Outcome) -> Option<bool> {
        let changed = self.health.checked(clock::now().lease, outcome == Outcome::Succeeded);
        let failures = self.health.failures();
        match (changed, complaint(outcome, self.runner.timeout)) {
            (Some(true), _) => {
                tracing::info!(why = "healthy", "Healthy: the health command succeeded");
            }
            (Some(false), Some(why)) => {
                let why_not = "this host does not lead until it succeeds";
                tracing::warn!(failures, why = "unhealthy", "Unhealthy: the health command failed: {why}; {why_not}");
            }
            // The first failure tells why this host does not contend.
            (_, Some(why)) if self.health.is_healthy() || failures == 1 => {
                let (then, interval) = (self.what_follows(), words::length(self.settings.interval));
                tracing::warn!(failures, "The health command failed: {why}; {then}; it is asked again in {interval}");
            }
            (_, Some(why)) => tracing::debug!(failures, "The health command failed: {why}"),
            (_, None) => {}
        }
        changed
    }

    /// From a failure that has not changed the verdict.
    fn what_follows(&self) -> String {
        match self.health.failures() {
            _ if !self.health.is_healthy() => "this host does not stand in line until it succeeds".to_owned(),
            0 => "it does not count within --health-grace".to_owned(),
            _ => format!("{} failures in a row make this host unhealthy", self.settings.failures),
        }
    }

    fn briefing(&self) -> Briefing {
        let role = if self.term.is_some() { "leader" } else { "standby" };
        self.runner.briefing(self.term.as_ref(), [("ZK_LEADER_ROLE", role)])
    }
}

pub(super) fn ineligible(on: bool) -> Event {
    Event::Ineligible { reason: Ineligibility::Unhealthy, on }
}
