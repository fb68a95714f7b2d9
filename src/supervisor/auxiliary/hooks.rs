//! `--hook`: runs at every transition, one hook after the other, while the machine goes on. Only the end of this
//! process waits for hooks, as long as one hook may take.

use std::time::Duration;

use super::runner::{Runner, complaint};
use crate::clock;
use crate::core::action::Transition;
use crate::core::event::Event;
use crate::core::guard_messages::Grant;
use crate::core::hooks::{Hook, HookQueue};
use crate::core::time::Timestamp;
use crate::guard::briefing::Briefing;
use crate::observe::words;

pub(super) struct Hooks {
    queue: HookQueue,
    pub runner: Runner,
    running: Option<Running>,
    /// At the end of this process, no hook runs longer than this.
    finish_by: Timestamp,
}

struct Running {
    hook: Hook,
    allowed: Duration,
}

/// For SIGKILL to end a hook.
const KILL_LIMIT: Duration = Duration::from_secs(1);
/// A hook is not started with less than this part of its time.
const SHORTEST_PART: u32 = 10;

impl Hooks {
    pub(super) fn new(runner: Runner) -> Self {
        let mut queue = HookQueue::default();
        queue.began();
        Self { queue, runner, running: None, finish_by: Timestamp::NEVER }
    }

    /// No hook runs or waits, or none can be run any more.
    pub(super) fn is_idle(&self) -> bool {
        let waits = !self.queue.is_empty() || self.running.is_some() || self.runner.has_survivors();
        !waits || self.runner.is_gone()
    }

    /// Goes on in the term of this grant, or without one.
    pub(super) fn resume(&mut self, grant: Option<Grant>) {
        self.queue = HookQueue::of(grant);
    }

    pub(super) fn transition(&mut self, transition: &Transition) {
        self.queue.transition(transition);
    }

    pub(super) fn started(&mut self) {
        self.queue.started();
    }

    pub(super) fn fenced(&mut self) {
        self.queue.fenced();
    }

    /// Runs hooks one after the other; does not return. Cancel-safe.
    pub(super) async fn run_all(&mut self) -> Event {
        loop {
            self.ended().await;
        }
    }

    /// Starts the next hook if none runs.
    pub(super) fn run_next(&mut self, now: Timestamp) {
        let allowed = now.until(self.finish_by).min(self.runner.timeout);
        if !self.runner.is_idle() || allowed < self.runner.timeout / SHORTEST_PART {
            return;
        }
        let Some(hook) = self.queue.take() else { return };
        if hook.missed > 0 {
            tracing::warn!(missed = hook.missed, "Hooks were left out: events come faster than hooks finish");
        }
        if self.runner.start(now, self.finish_by, self.briefing(hook)) {
            self.running = Some(Running { hook, allowed });
        }
    }

    /// Waits for the end of a hook and starts the next; waits for ever while none runs. Cancel-safe.
    async fn ended(&mut self) {
        let outcome = self.runner.ended().await;
        if let Some((Running { hook, allowed }, outcome)) = self.running.take().zip(outcome) {
            let event = words::hook_event(hook.event);
            match complaint(outcome, allowed) {
                None => tracing::debug!(event, "Hook was run"),
                Some(complaint) => tracing::warn!(event, "Hook failed: {complaint}"),
            }
        }
        self.run_next(clock::now().lease);
    }

    /// Runs the remaining hooks, for as long as one hook may take.
    pub(super) async fn finish(&mut self) {
        let now = clock::now().lease;
        self.finish_by = now.after(self.runner.timeout);
        self.run_next(now);
        let limit = self.runner.timeout + KILL_LIMIT;
        let ended = async {
            while self.running.is_some() {
                self.ended().await;
            }
        };
        if tokio::time::timeout(limit, ended).await.is_err() {
            tracing::warn!("The last hook is not waited for: SIGKILL did not end it in time (uninterruptible sleep?)");
        }
        if !self.queue.is_empty() {
            tracing::warn!(missed = self.queue.len(), "Hooks were left out at the end");
        }
    }

    fn briefing(&self, hook: Hook) -> Briefing {
        let (event, missed) = (words::hook_event(hook.event), hook.missed.to_string());
        let why = hook.why.map(|why| ("ZK_LEADER_WHY", words::reason_code(why)));
        let told = [("ZK_LEADER_EVENT", event)].into_iter().chain(why).chain([("ZK_LEADER_MISSED", &*missed)]);
        self.runner.briefing(hook.grant.as_ref(), told)
    }
}
