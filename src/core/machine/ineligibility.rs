//! Reasons why this process may not lead now, and how it gives way.
//!
//! Most of them *keep out*: we leave the line, or stop the command, free the record and leave, and come back when all
//! are lifted. *Disabled* is everyone's: nobody runs the command, and nobody loses his place.
//!
//! Leaving the line is opening a new session (decision 4): whatever the old one has created goes with it, a candidate
//! whose create was never answered too.
//!
//! Never: a withdrawal while the tree lives (I4); a take-over that was sent is answered before we go.

use super::phase::{After, Link, Phase};
use super::{Machine, Standing};
use crate::core::action::{Action, ExitReason, PhaseName, Transition, Why};
use crate::core::event::{Ineligibility, Request};
use crate::core::time::{Now, Timestamp};

/// What bars us now.
#[expect(clippy::struct_excessive_bools, reason = "each is a reason of its own, and all may hold at once")]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ineligibilities {
    pub unhealthy: bool,
    pub ineligible: bool,
    pub disabled: bool,
    pub handing_over: bool,
    /// We resigned, and it is another host's turn until then.
    pub stand_back_until: Option<Timestamp>,
}

impl Ineligibilities {
    fn set(&mut self, bar: Ineligibility, on: bool) {
        match bar {
            Ineligibility::Unhealthy => self.unhealthy = on,
            Ineligibility::Ineligible => self.ineligible = on,
            Ineligibility::Disabled => self.disabled = on,
            Ineligibility::HandingOver => self.handing_over = on,
        }
    }

    /// Whether we may not stand in line.
    pub fn keep_out(&self) -> bool {
        self.unhealthy || self.ineligible || self.handing_over || self.stand_back_until.is_some()
    }

    pub fn is_any(&self) -> bool {
        self.keep_out() || self.disabled
    }

    /// The foremost of the reasons.
    pub(super) fn why(&self) -> Why {
        match self {
            Self { unhealthy: true, .. } => Why::Unhealthy,
            Self { ineligible: true, .. } => Why::Ineligible,
            Self { handing_over: true, .. } => Why::HandingOver,
            Self { stand_back_until: Some(_), .. } => Why::StandingBack,
            _ => Why::Disabled,
        }
    }

    pub(super) fn pass(&mut self, now: Now) {
        self.stand_back_until = self.stand_back_until.filter(|until| now.lease < *until);
    }
}

impl Machine {
    /// What bars us now, for whoever has to explain it.
    pub fn bars(&self) -> Ineligibilities {
        self.bars
    }

    pub(super) fn barred(&mut self, now: Now, bar: Ineligibility, on: bool) {
        let before = self.bars;
        self.bars.set(bar, on);
        match self.phase {
            // `pass_following` sees to the line.
            Phase::Following if before.disabled && !self.bars.disabled => self.look_again(),
            Phase::Waiting | Phase::Preparing { .. } | Phase::Leading | Phase::Paused { .. } if self.bars.is_any() => {
                self.resign(now);
            }
            _ => {}
        }
    }

    /// Who came later goes; but no command is ended for the sake of a name.
    pub(super) fn id_taken(&mut self, now: Now) {
        let exit = After::Exit(ExitReason::IdTaken);
        match self.phase {
            Phase::Following => self.depart(now, ExitReason::IdTaken, Why::Misconfigured),
            Phase::Waiting => self.begin_release(now, exit, Why::Misconfigured),
            Phase::Preparing { .. }
            | Phase::Leading
            | Phase::Paused { .. }
            | Phase::Stopping { .. }
            | Phase::Releasing { .. }
            | Phase::Done => {}
        }
    }

    /// Another contender asks us to yield; who has nothing to yield need not.
    pub(super) fn revoked(&mut self, now: Now) {
        if matches!(self.phase, Phase::Waiting | Phase::Preparing { .. } | Phase::Leading | Phase::Paused { .. }) {
            self.yield_seat(now, After::Rejoin, Why::Revoked);
        }
    }

    /// Gives way for what bars us.
    pub(super) fn resign(&mut self, now: Now) {
        let (after, why) = self.after_bars();
        self.yield_seat(now, after, why);
    }

    /// Gives way, the tree first, with the lease renewed meanwhile.
    pub(super) fn yield_seat(&mut self, now: Now, after: After, why: Why) {
        match self.run {
            Some(_) => {
                self.order_stop(now.lease.after(self.settings.stop_timeout));
                self.begin_stop(now, after, why, false);
            }
            None => self.begin_release(now, after, why),
        }
    }

    pub(super) fn after_bars(&self) -> (After, Why) {
        (if self.bars.keep_out() { After::Rejoin } else { After::Stay }, self.bars.why())
    }

    pub(super) fn stand_back(&mut self, now: Now) {
        self.bars.stand_back_until = Some(now.lease.after(self.settings.service.stand_back));
    }

    /// Leaves the line, or enters it again, as the bars say.
    pub(super) fn heed_bars_in_line(&mut self, now: Now) {
        if self.timing().is_none() || self.standing.is_out == self.bars.keep_out() {
            return;
        }
        if self.standing.is_out {
            self.announce_in_line(Why::BarsLifted);
            self.enter_anew();
        } else if self.pending != Some(Request::TakeOver) {
            self.announce_in_line(self.bars.why());
            self.leave_line(now);
        }
    }

    /// By a new session, in which we stay out of it for now.
    pub(super) fn leave_line(&mut self, now: Now) {
        self.candidacy.0 += 1;
        self.pending = None;
        self.standing = Standing { is_out: true, ..Standing::default() };
        self.link = Link::Down { retry_at: now.lease };
        self.reconnect_when_due(now);
    }

    /// First in line, but nobody may run the command.
    pub(super) fn heed_disabled(&mut self, now: Now) {
        if self.only_if_free() {
            self.leave(now, After::Exit(ExitReason::NotElected), Why::WaitOver);
        }
    }

    fn announce_in_line(&mut self, why: Why) {
        let (from, to) = (PhaseName::Following, PhaseName::Following);
        let next_in = None;
        self.actions.push(Action::Announce(Transition {
            from,
            to,
            why,
            token: None,
            grant: None,
            lease_left: None,
            next_in,
        }));
    }
}
