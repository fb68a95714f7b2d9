//! `--fence-cmd`: runs once for each earlier leader that may still be active, before the command starts. It succeeds
//! only if each of them was fenced. A run whose answer is no longer needed is killed.

use std::collections::VecDeque;

use super::runner::{Outcome, Runner, complaint};
use crate::clock;
use crate::core::event::Event;
use crate::core::guard_messages::Grant;
use crate::core::time::Timestamp;
use crate::guard::briefing::Briefing;
use crate::zookeeper::schema::lease::PendingFence;

pub(super) struct Fence {
    pub runner: Runner,
    wanted: Option<Wanted>,
    /// The leader that the present run fences; `None`: no run, or the run is being killed.
    fencing: Option<PendingFence>,
}

/// The request of the machine.
struct Wanted {
    grant: Grant,
    left: VecDeque<PendingFence>,
}

impl Fence {
    pub(super) fn new(runner: Runner) -> Self {
        Self { runner, wanted: None, fencing: None }
    }

    /// Fences all of these leaders for the machine.
    pub(super) fn begin(&mut self, grant: Grant, unfenced: Vec<PendingFence>) {
        self.wanted = Some(Wanted { grant, left: unfenced.into() });
    }

    pub(super) fn is_idle(&self) -> bool {
        self.runner.is_idle() || self.runner.is_gone()
    }

    /// The machine no longer needs the answer.
    pub(super) fn end(&mut self) {
        self.wanted = None;
        if self.fencing.take().is_some() {
            self.runner.stop();
        }
    }

    /// The answer to the machine. Cancel-safe.
    pub(super) async fn verdict(&mut self) -> Event {
        loop {
            // Beside survivors of SIGKILL no run is started: that leader is not fenced.
            if self.fencing.is_none() && (self.runner.is_idle() || self.runner.has_survivors()) {
                if let Some(event) = self.fence_next() {
                    return event;
                }
            }
            let Some(outcome) = self.runner.ended().await else { continue };
            if outcome == Outcome::GuardGone {
                self.end();
                return self.runner.gone();
            }
            if let Some(event) = self.ended(outcome) {
                return event;
            }
        }
    }

    fn fence_next(&mut self) -> Option<Event> {
        let wanted = self.wanted.as_mut()?;
        let Some(next) = wanted.left.pop_front() else { return Some(self.answer(true)) };
        let briefing = briefing(&self.runner, &wanted.grant, &next);
        tracing::info!(id = next.id, host = next.host, token = next.token, "Fencing an earlier leader");
        if !self.runner.start(clock::now().lease, Timestamp::NEVER, briefing) {
            return Some(self.answer(false));
        }
        self.fencing = Some(next);
        None
    }

    fn ended(&mut self, outcome: Outcome) -> Option<Event> {
        let fenced = self.fencing.take()?;
        let Some(why) = complaint(outcome, self.runner.timeout) else {
            tracing::info!(id = fenced.id, host = fenced.host, token = fenced.token, "Earlier leader was fenced");
            return None;
        };
        tracing::error!(id = fenced.id, host = fenced.host, token = fenced.token, "Fencing failed: {why}");
        Some(self.answer(false))
    }

    fn answer(&mut self, is_fenced: bool) -> Event {
        let token = self.wanted.take().map_or(0, |wanted| wanted.grant.token);
        Event::Fenced { token, is_fenced }
    }
}

fn briefing(runner: &Runner, grant: &Grant, previous: &PendingFence) -> Briefing {
    let (pid, token) = (previous.pid.to_string(), previous.token.to_string());
    let told = [
        ("ZK_LEADER_PREVIOUS_ID", &*previous.id),
        ("ZK_LEADER_PREVIOUS_HOST", &*previous.host),
        ("ZK_LEADER_PREVIOUS_PID", &*pid),
        ("ZK_LEADER_PREVIOUS_TOKEN", &*token),
    ];
    Briefing { stdin: previous.json().into_bytes(), ..runner.briefing(Some(grant), told) }
}
