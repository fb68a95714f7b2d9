//! `--before-start` and `--after-stop`: run when the machine says so, by the deadlines that it gives.

use std::ffi::CString;
use std::time::Duration;

use super::runner::{Outcome, Runner, complaint};
use super::variable;
use crate::core::action::Why;
use crate::core::event::{Event, StepOutcome};
use crate::core::guard_messages::{Deadlines, Grant};
use crate::core::settings::StepKind;
use crate::core::time::Timestamp;
use crate::guard::briefing::Briefing;
use crate::guard::command::environment::{self, Identity};
use crate::observe::words;

pub(super) struct Step {
    kind: StepKind,
    runner: Runner,
    timeout: Duration,
    identity: Identity,
    /// The token of the term whose step runs.
    token: Option<i64>,
    /// The present run could not be started.
    is_refused: bool,
}

impl Step {
    pub(super) fn new(kind: StepKind, runner: Runner, timeout: Duration, identity: Identity) -> Self {
        Self { kind, runner, timeout, identity, token: None, is_refused: false }
    }

    pub(super) fn begin(&mut self, grant: &Grant, why: Why, deadlines: Deadlines) {
        tracing::info!(token = grant.token, "Running {}", option(self.kind));
        let mut variables: Vec<CString> = environment::of_term(&self.identity, grant);
        variables.extend(variable("ZK_LEADER_WHY", words::reason_code(why)));
        let briefing = Briefing { variables, stdin: Vec::new() };
        self.token = Some(grant.token);
        self.is_refused = !self.runner.start_under(deadlines, briefing);
    }

    pub(super) fn extend(&self, deadlines: Deadlines) {
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
                self.is_refused = false;
                return Event::StepEnded { step: self.kind, token, outcome: self.judge(outcome) };
            }
            if outcome == Outcome::GuardGone {
                return self.runner.gone();
            }
        }
    }

    fn judge(&self, outcome: Outcome) -> StepOutcome {
        let option = option(self.kind);
        match (complaint(outcome, self.timeout), outcome) {
            (None, _) => {
                tracing::info!("{option} succeeded");
                StepOutcome::Succeeded
            }
            (Some(why), Outcome::GuardGone) => {
                tracing::error!("{option} failed: {why}");
                StepOutcome::GuardGone
            }
            // Why it was, the change of phase says.
            (Some(_), Outcome::Stopped) => {
                tracing::info!("{option} was stopped before it had ended");
                StepOutcome::Failed
            }
            (Some(why), _) => {
                tracing::error!("{option} failed: {why}");
                StepOutcome::Failed
            }
        }
    }

    pub(super) fn into_runner(self) -> Runner {
        self.runner
    }
}

/// Says that a step is left out.
pub fn skip(kind: StepKind) {
    tracing::warn!(
        "{} is not run: the lease ended first; what is left here, the next leader's --before-start takes over",
        option(kind)
    );
}

pub(super) const fn option(kind: StepKind) -> &'static str {
    match kind {
        StepKind::BeforeStart => "--before-start",
        StepKind::AfterStop => "--after-stop",
    }
}
