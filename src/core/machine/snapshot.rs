//! The machine's state at one moment, for observers. Whether a lease still runs is judged when the snapshot is *read*.

use super::{After, Machine, Phase};
use crate::core::action::{ExitReason, PhaseName, Why};
use crate::core::event::{SessionNumber, View};
use crate::core::guard_messages::{Deadlines, Grant, RunId};
use crate::core::lease::Timing;
use crate::core::settings::OnPause;

/// See the module page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snapshot {
    pub phase: PhaseName,
    /// The newest session of this process, open or not.
    pub session: SessionNumber,
    /// The timing of the session, while it is open.
    pub timing: Option<Timing>,
    /// The newest look at the election in this candidacy; `None` until our candidate was seen.
    pub view: Option<View>,
    pub held_term: Option<Held>,
    /// Why this process may not lead now, if so.
    pub barred: Option<Why>,
    /// The run whose tree may be alive.
    pub run: Option<RunId>,
    /// The command was frozen.
    pub frozen: bool,
    /// The process will exit when nothing runs any more.
    pub is_ending: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    pub grant: Grant,
    /// `None`: it waits for the lease before its own.
    pub deadlines: Option<Deadlines>,
}

impl Machine {
    pub fn snapshot(&self) -> Snapshot {
        let paused = matches!(self.phase, Phase::Paused { .. });
        Snapshot {
            phase: self.phase(),
            session: self.session,
            timing: self.timing().copied(),
            view: self.standing.view,
            held_term: self.held_term.map(|held| Held { grant: held.grant, deadlines: held.deadlines }),
            barred: self.ineligibilities.is_any().then(|| self.ineligibilities.why()),
            run: self.run,
            is_ending: self.is_ending(),
            frozen: paused && self.settings.on_pause == OnPause::Freeze,
        }
    }

    fn is_ending(&self) -> bool {
        match self.phase {
            Phase::Stopping { after, .. } | Phase::Releasing { after, .. } => {
                matches!(after, After::Exit(reason) if reason != ExitReason::StoodStill)
            }
            Phase::Done => !self.standstill.starts_anew(),
            Phase::Following
            | Phase::Waiting
            | Phase::Preparing { .. }
            | Phase::Leading
            | Phase::Vouched
            | Phase::Paused { .. } => false,
        }
    }
}
