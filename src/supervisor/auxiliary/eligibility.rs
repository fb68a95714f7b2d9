//! `--eligible-cmd`: asked before this host contends, until it agrees once. A condition that may change later belongs
//! to `--health-cmd`.

use std::time::Duration;

use super::runner::{Outcome, Runner, complaint};
use crate::clock;
use crate::core::event::{Event, Ineligibility};
use crate::core::time::Timestamp;
use crate::observe::words;

pub(super) struct Eligibility {
    pub runner: Runner,
    /// From a refusal to the next attempt.
    pause: Duration,
    state: State,
}

enum State {
    AskAt(Timestamp),
    Asking,
    Agreed,
    /// Its guard is gone.
    Gone,
}

impl Eligibility {
    pub(super) fn new(runner: Runner, pause: Duration) -> Self {
        Self { runner, pause, state: State::AskAt(Timestamp::ZERO) }
    }

    /// An earlier program of this process has asked.
    pub(super) fn resume(&mut self) {
        self.state = State::Agreed;
    }

    pub(super) fn has_agreed(&self) -> bool {
        matches!(self.state, State::Agreed)
    }

    /// A changed verdict for the machine. Cancel-safe.
    pub(super) async fn verdict(&mut self) -> Event {
        loop {
            let now = clock::now().lease;
            match self.state {
                State::AskAt(at) if now < at => {
                    let outcome = tokio::select! {
                        biased;
                        outcome = self.runner.ended() => outcome,
                        () = tokio::time::sleep(now.until(at)) => continue,
                    };
                    if outcome == Some(Outcome::GuardGone) {
                        return self.guard_gone();
                    }
                }
                State::AskAt(_) => {
                    let asked = self.runner.start(now, Timestamp::NEVER, self.runner.briefing(None, []));
                    self.state = if asked { State::Asking } else { State::AskAt(now.after(self.pause)) };
                }
                State::Asking => {
                    let Some(outcome) = self.runner.ended().await else { continue };
                    if outcome == Outcome::GuardGone {
                        return self.guard_gone();
                    }
                    let Some(why) = complaint(outcome, self.runner.timeout) else {
                        self.state = State::Agreed;
                        return ineligible(false);
                    };
                    tracing::warn!(
                        "Not eligible: the eligibility command refused: {why}; this host does not stand in line until it agrees; it \
                         is asked again in {}",
                        words::length(self.pause)
                    );
                    self.state = State::AskAt(clock::now().lease.after(self.pause));
                }
                State::Agreed | State::Gone => std::future::pending().await,
            }
        }
    }

    fn guard_gone(&mut self) -> Event {
        self.state = State::Gone;
        self.runner.gone()
    }
}

pub(super) fn ineligible(on: bool) -> Event {
    Event::Ineligible { reason: Ineligibility::Ineligible, on }
}
