//! Signals to this process: to stop, or for the command.

use crate::core::action::{ExitReason, Why};
use crate::core::event::Event;
use crate::core::guard_messages::Order;
use crate::core::machine::Machine;
use crate::core::machine::phase::{After, Phase};
use crate::core::time::Now;

/// SIGHUP has the same number on every Linux.
const HANGUP: i32 = 1;

impl Machine {
    pub(in crate::core::machine) fn note_of_signal(&mut self, now: Now, event: &Event) {
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

    fn stop_was_requested(&mut self, now: Now) {
        let again = std::mem::replace(&mut self.stop_requested, true);
        let exit = After::Exit(ExitReason::StopRequested(None));
        match self.phase {
            Phase::Following if again => self.leave(now, exit, Why::StopRequested),
            Phase::Following => self.depart(now, ExitReason::StopRequested(None), Why::StopRequested),
            Phase::Waiting | Phase::Preparing { .. } if !self.is_live() => {
                self.begin_release(now, exit, Why::StopRequested);
            }
            Phase::Waiting | Phase::Preparing { .. } | Phase::Leading | Phase::Vouched | Phase::Paused { .. } => {
                self.order_stop(now.lease.after(self.settings.stop_timeout));
                self.begin_stop(now, exit, Why::StopRequested, false);
            }
            Phase::Stopping { .. } if again => self.order_kill(now),
            Phase::Stopping { .. } => self.end_by(exit),
            Phase::Releasing { .. } => self.hasten_release(now, exit),
            Phase::Done => {}
        }
    }
}
