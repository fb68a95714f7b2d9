//! The supervisor's onlooker: sees each event and each action pass, and publishes the status after every turn of the loop.
//!
//! Never: a wait; a change to what passes.

use tokio::sync::watch;

use super::pulse::{Feed, Pulse};
use super::status::Status;
use crate::core::action::Action;
use crate::core::event::Event;
use crate::core::machine::{Machine, Snapshot};
use crate::core::time::Now;

/// See the module's page.
#[derive(Debug)]
pub struct Lookout {
    status: Status,
    statuses: watch::Sender<Status>,
    pulse: Pulse,
}

impl Lookout {
    pub fn new(now: Now, snapshot: Snapshot) -> Self {
        let status = Status::new(now, snapshot);
        Self { status, statuses: watch::Sender::new(status), pulse: Pulse::default() }
    }

    /// What programs that look on read from.
    pub fn feed(&self) -> Feed {
        Feed::new(self.pulse.clone(), self.statuses.subscribe())
    }

    /// What the loop waits for besides its events.
    pub fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    /// The machine hears an event, under our eyes.
    pub fn watch(&mut self, machine: &mut Machine, now: Now, event: Event) -> Vec<Action> {
        self.status.hear(&event);
        let actions = machine.handle(now, event);
        for action in &actions {
            self.status.heed(now, action);
        }
        self.status.turn(now, machine.snapshot());
        self.statuses.send_replace(self.status);
        actions
    }
}
