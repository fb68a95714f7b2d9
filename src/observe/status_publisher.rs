//! Publishes the status after every turn of the supervisor's loop, and counts its events and actions. It does not wait.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::http::Identity;
use super::liveness::{Feed, Liveness};
use super::metrics::Metrics;
use super::status::{Role, Status, Upgrade};
use crate::core::action::{Action, PhaseName, Why};
use crate::core::event::Event;
use crate::core::machine::Snapshot;
use crate::core::time::{Now, Timestamp};

/// See the module's page.
#[derive(Debug)]
pub struct StatusPublisher {
    status: Status,
    statuses: watch::Sender<Status>,
    liveness: Liveness,
    metrics: Arc<Metrics>,
}

impl StatusPublisher {
    pub fn new(now: Now, snapshot: Snapshot, identity: &Identity) -> Self {
        let status = Status::new(now, snapshot);
        let statuses = watch::Sender::new(status);
        let metrics = Arc::new(Metrics::new(&identity.name, identity.participant()));
        Self { status, statuses, liveness: Liveness::default(), metrics }
    }

    /// An earlier program of this process has handed over: when the phase began and why, the command that it has started, if any,
    /// and whether it has led. That upgrade is over at this time of `CLOCK_MONOTONIC`.
    pub fn resume(&mut self, phase: (Timestamp, Option<Why>), command: Option<i32>, has_led: bool, at: Duration) {
        (self.status.since, self.status.why) = phase;
        let Snapshot { phase, held_term, .. } = self.status.snapshot;
        // Who leads has started the command of this term.
        if let Some(held) = held_term.filter(|_| phase == PhaseName::Leading) {
            self.metrics.resume(held.grant.token);
        }
        self.metrics.take_session_up();
        self.status.command = command;
        self.status.reached = if has_led { Role::Leader } else { Role::Standby };
        self.status.upgrade = Upgrade { requests: 1, requested_at: at, is_under_way: false };
    }

    /// When the present phase began.
    pub fn since(&self) -> Timestamp {
        self.status.since
    }

    /// Why the present phase began.
    pub fn why(&self) -> Option<Why> {
        self.status.why
    }

    /// The command, as our guard's child, while it runs.
    pub fn command(&self) -> Option<i32> {
        self.status.command
    }

    /// Whether the command has run in this process.
    pub fn has_led(&self) -> bool {
        self.status.reached == Role::Leader
    }

    /// An upgrade was asked for, at this time of `CLOCK_MONOTONIC` or before.
    pub fn upgrade_requested(&mut self, at: Duration) {
        let requests = self.status.upgrade.requests.wrapping_add(1);
        self.status.upgrade = Upgrade { requests, requested_at: at, ..self.status.upgrade };
    }

    /// Whether an upgrade is under way.
    pub fn upgrading(&mut self, is_under_way: bool) {
        if self.status.upgrade.is_under_way != is_under_way {
            self.status.upgrade.is_under_way = is_under_way;
            self.statuses.send_replace(self.status);
        }
    }

    /// For readers of the status.
    pub fn feed(&self) -> Feed {
        Feed::new(self.liveness.clone(), self.statuses.subscribe())
    }

    /// The metrics.
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.metrics)
    }

    /// The loop waits for this besides its events.
    pub fn liveness(&self) -> &Liveness {
        &self.liveness
    }

    /// The loop has ended, and the last hooks still run: answers whoever asks for a turn.
    pub async fn outlast_loop(&self) -> Infallible {
        loop {
            self.liveness.asked().await;
            self.statuses.send_replace(self.status);
        }
    }

    /// The machine has handled an event; it asked for these actions, and is in this state now.
    pub fn publish(&mut self, now: Now, event: &Event, actions: &[Action], snapshot: Snapshot) {
        if self.status.is_current(event) {
            self.metrics.on_event(now, event, self.status.has_lapsed(now));
            self.status.on_event(now, event);
        }
        for action in actions {
            self.status.on_action(now, action);
            self.metrics.on_action(action);
        }
        self.status.on_turn(now, snapshot);
        self.statuses.send_replace(self.status);
    }
}
