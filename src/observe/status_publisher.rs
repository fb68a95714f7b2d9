//! The supervisor's onlooker: sees each event and each action pass, and publishes the status after every turn of the loop.
//!
//! Never: a wait; a change to what passes.

use std::sync::Arc;

use tokio::sync::watch;

use super::http::Identity;
use super::liveness::{Feed, Liveness};
use super::metrics::Metrics;
use super::status::Status;
use crate::core::action::Action;
use crate::core::event::Event;
use crate::core::machine::{Machine, Snapshot};
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

    /// The machine hears an event, under our eyes.
    pub fn watch(&mut self, machine: &mut Machine, now: Now, event: Event) -> Vec<Action> {
        if self.status.concerns(&event) {
            self.status.hear(&event);
            self.metrics.hear(now, &event);
        }
        let actions = machine.handle(now, event);
        for action in &actions {
            self.status.heed(now, action);
            self.metrics.heed(action);
        }
        self.status.turn(now, machine.snapshot());
        self.statuses.send_replace(self.status);
        actions
    }
}
