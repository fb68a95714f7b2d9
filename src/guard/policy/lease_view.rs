//! The lease as the guard's machine sees it, for the lease file: never longer than the deadlines that it keeps.

use super::{Life, Phase, Policy};
use crate::core::guard_messages::Deadlines;
use crate::guard::lease_file::layout::{LeaseState, LeaseView};

impl Policy {
    /// What the command may rely on until the next input. Deadlines that pass meanwhile end it by themselves.
    pub fn lease(&self) -> LeaseView {
        self.life.as_ref().map_or(LeaseView::NONE, Life::lease)
    }
}

impl Life {
    fn lease(&self) -> LeaseView {
        let Deadlines { stop_at, kill_at } = self.deadlines;
        let (state, kill_at) = match self.phase {
            Phase::Running if self.paused => (LeaseState::Paused, kill_at),
            Phase::Running => (LeaseState::Leading, kill_at),
            Phase::Stopping { by, .. } | Phase::Ended { until: by } => (LeaseState::Stopping, kill_at.min(by)),
            Phase::Killing { .. } => return LeaseView::NONE,
        };
        let deadlines = Deadlines { stop_at: stop_at.min(kill_at), kill_at };
        LeaseView { token: self.grant.token, term: self.grant.term, state, deadlines }
    }
}
