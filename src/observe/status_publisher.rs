//! Publishes the status after every turn of the supervisor's loop, and counts its events and actions. It does not wait.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::http::Identity;
use super::liveness::{Feed, Liveness};
use super::metrics::Metrics;
use super::status::Status;
use crate::core::action::Action;
use crate::core::event::Event;
use crate::core::machine::Snapshot;
use crate::core::time::Now;

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

    /// The command that an earlier program of this process has started.
    pub fn resume(&mut self, command: Option<i32>) {
        self.status.command = command;
    }

    /// The command, as our guard's child, while it runs.
    pub fn command(&self) -> Option<i32> {
        self.status.command
    }

    /// An upgrade is under way, or not any more.
    pub fn upgrading(&mut self, since: Option<Duration>) {
        if self.status.upgrading.is_some() != since.is_some() {
            self.status.upgrading = since;
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

    /// The machine has handled an event; it asked for these actions, and is in this state now.
    pub fn publish(&mut self, now: Now, event: &Event, actions: &[Action], snapshot: Snapshot) {
        if self.status.is_current(event) {
            self.status.on_event(event);
            self.metrics.on_event(now, event);
        }
        for action in actions {
            self.status.on_action(now, action);
            self.metrics.on_action(action);
        }
        self.status.on_turn(now, snapshot);
        self.statuses.send_replace(self.status);
    }
}
