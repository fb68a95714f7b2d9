//! Contact with `ZooKeeper`: what its loss and its return mean while the command runs, and when it does not.

use crate::core::action::Why;
use crate::core::guard_messages::Order;
use crate::core::machine::Machine;
use crate::core::machine::phase::Phase;
use crate::core::settings::OnPause;
use crate::core::time::Now;

impl Machine {
    /// Moves between leading, vouched for, and paused.
    pub(in crate::core::machine) fn judge_contact(&mut self, now: Now) {
        let Some(held) = self.held_term else { return };
        let timing = self.term_timing();
        let is_lost = timing.is_some_and(|timing| now.lease >= timing.contact_lost_at(held.acked_sent_at));
        match self.phase {
            Phase::Leading if is_lost && self.is_vouched_for(now) => {
                self.enter_phase(now, Phase::Vouched, Why::VouchedFor);
            }
            Phase::Leading if is_lost => self.pause(now, Why::ContactLost),
            Phase::Vouched if !self.is_vouched_for(now) => self.pause(now, Why::ContactLost),
            Phase::Paused { .. } if is_lost && self.is_vouched_for(now) => {
                self.resume_as(now, Phase::Vouched, Why::VouchedFor);
            }
            _ => {}
        }
    }

    /// A renewal was acknowledged in time.
    pub(in crate::core::machine) fn regain_contact(&mut self, now: Now) {
        match self.phase {
            Phase::Paused { .. } => self.resume_as(now, Phase::Leading, Why::ContactRestored),
            Phase::Vouched => self.enter_phase(now, Phase::Leading, Why::ContactRestored),
            _ => {}
        }
    }

    pub(in crate::core::machine) fn contact_lost(&mut self, now: Now) {
        if self.phase == Phase::Leading && !self.is_vouched_for(now) {
            self.pause(now, Why::ContactLost);
        }
        if matches!(self.phase, Phase::Releasing { after, .. } if self.may_linger(after)) {
            self.enter_phase(now, self.phase, Why::ContactLost);
        }
    }

    pub(in crate::core::machine) fn contact_restored(&mut self, now: Now) {
        if self.held_term.is_some() {
            return self.reassure(now);
        }
        // A watch event may have been lost with the connection.
        if self.phase == Phase::Following {
            // What was tried in vain before says nothing about this connection.
            self.backoff.reset();
            self.look_in_turn(now);
        }
    }

    pub(in crate::core::machine) fn pause(&mut self, now: Now, why: Why) {
        let Some(run) = self.run else { return };
        self.order(Order::Pause { run });
        match self.settings.on_pause {
            OnPause::Run => {}
            OnPause::Freeze => self.order(Order::Freeze { run }),
            OnPause::Signal { pause, .. } => self.order(Order::Signal { run, signal: pause }),
        }
        self.enter_phase(now, Phase::Paused { since: now.lease }, why);
    }

    pub(in crate::core::machine) fn resume_as(&mut self, now: Now, phase: Phase, why: Why) {
        let Some(run) = self.run else { return };
        self.order(Order::Resume { run });
        match self.settings.on_pause {
            OnPause::Freeze => self.order(Order::Thaw { run }),
            OnPause::Signal { resume: Some(signal), .. } => self.order(Order::Signal { run, signal }),
            OnPause::Run | OnPause::Signal { resume: None, .. } => {}
        }
        self.enter_phase(now, phase, why);
    }
}
