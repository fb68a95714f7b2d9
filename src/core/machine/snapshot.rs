//! The machine's state at one moment, for observers. Whether a lease still runs is judged when the snapshot is *read*.

use std::time::Duration;

use super::{After, Machine, Phase};
use crate::core::action::{ExitReason, PhaseName, Why};
use crate::core::event::{SessionNumber, View};
use crate::core::guard_messages::{Deadlines, Grant, RunId};
use crate::core::lease::Timing;
use crate::core::settings::{OnPause, StepKind};
use crate::core::time::{Sighting, Timestamp};
use crate::core::vouching::Needed;

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
    /// The present term.
    pub held_term: Option<Held>,
    /// Why this process may not lead now, if so.
    pub barred: Option<Why>,
    /// An operator's order keeps every host from running the command, whatever else bars this one.
    pub disabled: bool,
    /// The run whose tree may be alive.
    pub run: Option<RunId>,
    /// The step around the command that may be alive.
    pub step: Option<StepKind>,
    /// The command was frozen.
    pub frozen: bool,
    /// When a command without contact gets the stop signal, as [`crate::core::lease::Wishes::grace`] says; otherwise never.
    pub grace_over_at: Timestamp,
    /// The process will exit when nothing runs any more.
    pub is_ending: bool,
    /// `None`: without `--vouch`.
    pub vouching: Option<Vouched>,
    /// No leader of lower priority is asked to make room for us before this.
    pub asks_from: Timestamp,
    /// Not asked to vouch for the last leader, which is gone or cut off, this host waits until then.
    pub unasked_until: Option<Sighting>,
}

/// Vouching, as it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vouched {
    /// F, `--vouch-limit`.
    pub limit: Duration,
    /// What this host has promised: no take-over before this.
    pub promised_until: Sighting,
    /// The leader to whom the newest promise was given, and its lease.
    pub promised_to: Option<(u64, Duration)>,
    /// While this host leads under a lease of its own.
    pub leads: Option<Vouchees>,
}

/// On whose promises a leader can live, and how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vouchees {
    /// Everybody who is needed, in the order of the roster; the first eight.
    pub needed: [Option<Needed>; 8],
    /// The sending of the last acknowledged write.
    pub written_at: Timestamp,
    /// The end of F, whatever anybody promises.
    pub limit_at: Timestamp,
    /// A promise is recent for so long: two intervals.
    pub recent: Duration,
}

impl Vouchees {
    pub fn needed(&self) -> impl Iterator<Item = Needed> {
        self.needed.into_iter().flatten()
    }

    /// Whether an outage that begins now would be lived through: everybody who is needed has promised recently.
    pub fn is_ready(&self, now: Timestamp) -> bool {
        self.needed().all(|host| host.promised_at.is_some_and(|at| now < at.after(self.recent)))
    }
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
            held_term: self
                .held_term
                .filter(|_| !self.settles_past_term())
                .map(|held| Held { grant: held.grant, deadlines: held.deadlines }),
            barred: self.ineligibilities.is_any().then(|| self.ineligibilities.why()),
            disabled: self.ineligibilities.disabled,
            run: self.run,
            step: self.step.map(|step| step.kind),
            is_ending: self.is_ending(),
            frozen: paused && self.settings.on_pause == OnPause::Freeze,
            grace_over_at: match self.phase {
                Phase::Paused { since } => self.grace_over_at(since),
                _ => Timestamp::NEVER,
            },
            vouching: self.vouched(),
            asks_from: self.history.asks_from(&self.settings.service.restart),
            unasked_until: self.unasked_until(),
        }
    }

    /// Whether a request to stop is another one now, which does not wait.
    pub fn hastens_stop(&self) -> bool {
        self.stop_requested && self.is_ending()
    }

    fn is_ending(&self) -> bool {
        match self.phase {
            Phase::Stopping { after, .. } | Phase::Releasing { after, .. } => {
                // Whoever stops services gives up those that take long to end.
                let is_exit = matches!(after, After::Exit(reason) if reason != ExitReason::StoodStill);
                self.stop_requested || is_exit && !self.may_linger(after)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_nanos(millis * 1_000_000)
    }

    fn vouchees(promised: &[Option<u64>]) -> Vouchees {
        let needed = |index: usize| {
            let promised_at = promised.get(index)?.map(at);
            Some(Needed { instance: index as u64 + 2, promised_at, silent_since: None })
        };
        let (needed, recent) = (std::array::from_fn(needed), Duration::from_secs(2));
        Vouchees { needed, written_at: at(0), limit_at: at(100_000), recent }
    }

    #[test]
    fn a_leader_is_ready_while_everybody_who_is_needed_has_promised_within_two_intervals() {
        let both = vouchees(&[Some(1_000), Some(1_500)]);
        assert!(both.is_ready(at(2_999)));
        assert!(!both.is_ready(at(3_000)), "the oldest promise counts");
        assert!(!vouchees(&[Some(1_000), None]).is_ready(at(1_001)), "one is not enough");
        assert!(vouchees(&[]).is_ready(at(50_000)), "nobody could take over");
    }
}
