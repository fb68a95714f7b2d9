//! Signals to this process: to stop, or for the command.

use super::Machine;
use crate::core::event::Event;
use crate::core::guard_messages::Order;
use crate::core::time::Now;

/// SIGHUP has the same number on every Linux.
const HANGUP: i32 = 1;

impl Machine {
    pub(super) fn note_of_signal(&mut self, now: Now, event: &Event) {
        match *event {
            Event::StopRequested => self.stop_was_requested(now),
            // No command is there to receive SIGHUP (T5).
            Event::HungUp if self.run.is_none() && !self.is_between_runs() && !self.stop_requested => {
                self.stop_was_requested(now);
            }
            Event::HungUp => self.forward(HANGUP),
            Event::SignalReceived { signal } => self.forward(signal),
            _ => {}
        }
    }

    fn forward(&mut self, signal: i32) {
        if let Some(run) = self.run {
            self.order(Order::Signal { run, signal });
        }
    }
}
