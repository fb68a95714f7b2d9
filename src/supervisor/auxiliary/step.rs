//! `--before-start` and `--after-stop`: run when the machine says so, by the deadlines that it gives.

use super::runner::{Outcome, Runner, complaint};
use crate::clock;
use crate::core::action::Why;
use crate::core::event::{Event, StepOutcome};
use crate::core::guard_messages::{Deadlines, Grant};
use crate::core::settings::StepKind;
use crate::core::time::Timestamp;
use crate::observe::words;

pub(super) struct Step {
    kind: StepKind,
    pub runner: Runner,
    /// The token of the term whose step runs.
    token: Option<i64>,
    /// The present run could not be started.
    is_refused: bool,
    /// When the present run has used up its timeout.
    time_is_up: Timestamp,
    /// When the guard ends the present run: not after the lease.
    kill_at: Timestamp,
}

impl Step {
    pub(super) fn new(kind: StepKind, mut runner: Runner) -> Self {
        runner.counts_survivors = true;
        let (time_is_up, kill_at) = (Timestamp::NEVER, Timestamp::NEVER);
        Self { kind, runner, token: None, is_refused: false, time_is_up, kill_at }
    }

    pub(super) fn begin(&mut self, grant: &Grant, why: Why, deadlines: Deadlines) {
        tracing::info!(token = grant.token, "Running {}", option(self.kind));
        let briefing = self.runner.briefing(Some(grant), [("ZK_LEADER_WHY", words::reason_code(why))]);
        self.token = Some(grant.token);
        self.time_is_up = clock::now().lease.after(self.runner.timeout);
        self.kill_at = deadlines.kill_at;
        self.is_refused = !self.runner.start_under(deadlines, briefing);
    }

    pub(super) fn extend(&mut self, deadlines: Deadlines) {
        self.kill_at = self.kill_at.max(deadlines.kill_at);
        self.runner.extend(deadlines);
    }

    pub(super) fn stop(&self, by: Timestamp) {
        self.runner.stop_by(by);
    }

    /// The answer to the machine: the whole tree of the run is gone; or the guard is, between two runs. Cancel-safe.
    pub(super) async fn ended(&mut self) -> Event {
        loop {
            let outcome = match self.token {
                Some(_) if self.is_refused => {
                    if self.runner.is_lost() {
                        Outcome::GuardGone
                    } else {
                        Outcome::Stopped
                    }
                }
                _ => match self.runner.ended().await {
                    // The record may be freed after a step: survivors of SIGKILL belong to it.
                    Some(_) if self.runner.has_survivors() => continue,
                    outcome => outcome.unwrap_or(Outcome::TimedOut),
                },
            };
            if let Some(token) = self.token.take() {
                let outcome = self.judge(outcome);
                self.is_refused = false;
                return Event::StepEnded { step: self.kind, token, outcome };
            }
            if outcome == Outcome::GuardGone {
                return self.runner.gone();
            }
        }
    }

    fn judge(&self, outcome: Outcome) -> StepOutcome {
        let option = option(self.kind);
        match (complaint(outcome, self.runner.timeout), outcome) {
            (None, _) => {
                tracing::info!("{option} succeeded");
                StepOutcome::Succeeded
            }
            (Some(why), Outcome::GuardGone) => {
                tracing::error!("{option} failed: {why}");
                StepOutcome::GuardGone
            }
            // The runner has said why it could not be started.
            _ if self.is_refused => StepOutcome::Failed,
            // Why it was, the change of phase says.
            (Some(_), Outcome::Stopped) if self.kind == StepKind::BeforeStart => {
                tracing::info!("{option} was stopped before it had ended");
                StepOutcome::Failed
            }
            (Some(_), Outcome::Stopped) => {
                tracing::error!("{option} failed: it was killed before it had ended");
                StepOutcome::Failed
            }
            (Some(_), Outcome::TimedOut) if self.is_ended_by_the_lease() => {
                tracing::error!("{option} failed: the lease ended first, and it was killed");
                StepOutcome::Failed
            }
            (Some(why), _) => {
                tracing::error!("{option} failed: {why}");
                StepOutcome::Failed
            }
        }
    }

    /// A run that had nearly all of its time was too slow for that.
    fn is_ended_by_the_lease(&self) -> bool {
        self.kill_at.after(self.runner.timeout / 10) < self.time_is_up
    }
}

/// Says that a step is left out.
pub fn skip(kind: StepKind) {
    tracing::warn!(
        "{} is not run: the lease is over, or another host may start already; what is left here, the next leader's --before-start takes \
         over",
        option(kind)
    );
}

pub(super) const fn option(kind: StepKind) -> &'static str {
    match kind {
        StepKind::BeforeStart => "--before-start",
        StepKind::AfterStop => "--after-stop",
    }
}
