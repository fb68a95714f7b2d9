//! An upgrade in place: one program writes the machine out, and the next one, in the same process, goes on with it.
//!
//! A machine is handed over only in a quiet moment: it follows or leads, no request to `ZooKeeper` is unanswered, and
//! nothing is being stopped or prepared. Every other state is left to its own program. The copy equals the original: it
//! believes in no longer lease, and in no later version.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::phase::{Link, Phase};
use super::{Machine, Settings};
use crate::core::action::Why;
use crate::core::lease::{Timing, TimingError};
use crate::core::time::{Now, Timestamp};

/// Increase it with every change of the layout or of the meaning of a field.
const VERSION: u32 = 1;

/// A machine without its settings. The next program has its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandedOver {
    version: u32,
    instance: u64,
    /// In force; it is fixed for the session.
    lease: Duration,
    machine: Machine,
}

impl HandedOver {
    /// In force: a command dies so long after its last renewal.
    pub fn lease(&self) -> Duration {
        self.lease
    }
}

/// Why a machine is not handed over now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotNow {
    /// It neither follows nor leads, or is about to end.
    Busy,
    /// This host may not lead now.
    Barred,
    /// There is no session, or it has lost contact.
    NoContact,
    /// A request has no answer yet, or is due.
    Unanswered,
    /// The guard has not reported the start of the command.
    Starting,
    /// No renewal has been acknowledged recently enough.
    Stale,
    /// The lease of the term is that of an earlier session.
    EarlierLease,
}

impl fmt::Display for NotNow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "this host neither waits in line nor runs its command: a step runs, or it is about to end",
            Self::Barred => "this host may not lead now",
            Self::NoContact => "there is no contact with ZooKeeper",
            Self::Unanswered => "a request to ZooKeeper has no answer",
            Self::Starting => "the command is being started",
            Self::Stale => "no renewal of the lease was acknowledged",
            Self::EarlierLease => "ZooKeeper has given a session timeout of another length since this term began",
        })
    }
}

/// Why a machine that was handed over cannot go on here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misfit {
    Version(u32),
    Timing(TimingError),
    /// The lease in force is this long.
    Lease(Duration),
    Incomplete,
}

impl Machine {
    /// Whether this term, if there is one, has a renewal that was sent at `since` or later, and was acknowledged.
    fn is_fresh(&self, since: Timestamp) -> bool {
        self.held_term.is_none_or(|term| term.acked_sent_at >= since)
    }

    /// Marks the records of this process.
    pub fn instance(&self) -> u64 {
        self.settings.instance
    }

    /// The session of the program before is being resumed: until it is, there is no contact, and nobody says so. A renewal is due
    /// then.
    pub fn resume_session(&mut self, now: Now) {
        self.lose_touch();
        self.renew_soon(now);
    }

    /// # Errors
    /// If this is no moment to be replaced. A leader must have renewed its lease at `since` or later.
    pub fn hand_over(&self, now: Now, since: Timestamp) -> Result<HandedOver, NotNow> {
        let Link::Open(timing) = self.link else { return Err(NotNow::NoContact) };
        self.judge_moment(now, &timing, since)?;
        let (instance, lease) = (self.settings.instance, timing.lease);
        Ok(HandedOver { version: VERSION, instance, lease, machine: self.clone() })
    }

    fn judge_moment(&self, now: Now, timing: &Timing, since: Timestamp) -> Result<(), NotNow> {
        let leads = self.phase == Phase::Leading && self.run.is_some() && self.deadlines().is_some();
        let follows = self.phase == Phase::Following && self.run.is_none() && self.held_term.is_none();
        let ends = self.step.is_some() || self.stop_requested || self.gone.command || self.departure.is_some();
        let waits = self.standing.stale || self.standing.retry_at.is_some() || self.standing.sending.is_some();
        let kill_at_is_the_only_limit = self.dead_by == Timestamp::NEVER;
        let contact = self.held_term.is_none_or(|term| now.lease < timing.contact_lost_at(term.acked_sent_at));
        if !leads && !follows || ends || !kill_at_is_the_only_limit || !self.actions.is_empty() {
            Err(NotNow::Busy)
        } else if self.ineligibilities.is_any() || self.standing.is_out {
            Err(NotNow::Barred)
        } else if self.start_by != Timestamp::NEVER {
            Err(NotNow::Starting)
        } else if self.pending.is_some() || waits || !self.standing.entered {
            Err(NotNow::Unanswered)
        } else if self.held_term.is_some() && self.term_timing().is_some_and(|term| term.lease != timing.lease) {
            Err(NotNow::EarlierLease)
        } else if !self.is_fresh(since) || !contact {
            Err(NotNow::Stale)
        } else {
            Ok(())
        }
    }

    /// The copy of a machine that another program has handed over. `negotiated`: T of its session.
    ///
    /// # Errors
    /// If it is of another version, or does not fit these settings.
    pub fn take_up(settings: &Settings, negotiated: Duration, state: HandedOver) -> Result<Self, Misfit> {
        let HandedOver { version, instance, lease, mut machine } = state;
        if version != VERSION {
            return Err(Misfit::Version(version));
        }
        let timing = Timing::new(negotiated, &settings.wishes).map_err(Misfit::Timing)?;
        if timing.lease != lease {
            return Err(Misfit::Lease(lease));
        }
        let leads = machine.phase == Phase::Leading;
        if leads != (machine.run.is_some() && machine.deadlines().is_some()) || leads != machine.held_term.is_some() {
            return Err(Misfit::Incomplete);
        }
        if let Some(held) = &mut machine.held_term {
            held.needs_after_stop = settings.steps.after_stop.is_some();
        }
        let vouching = machine.vouching.with(leads.then_some(timing));
        Ok(Self { settings: Settings { instance, ..*settings }, link: Link::Open(timing), vouching, ..machine })
    }
}

/// The two phases in which a machine is handed over: whether it leads.
pub(super) mod quiet_phase {
    use serde::de::{Deserialize as _, Deserializer};
    use serde::ser::{Error as _, Serialize as _, Serializer};

    use super::Phase;

    pub fn serialize<S: Serializer>(phase: &Phase, serializer: S) -> Result<S::Ok, S::Error> {
        match phase {
            Phase::Leading => true.serialize(serializer),
            Phase::Following => false.serialize(serializer),
            _ => Err(S::Error::custom("the machine is busy")),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Phase, D::Error> {
        let leads = bool::deserialize(deserializer)?;
        Ok(if leads { Phase::Leading } else { Phase::Following })
    }
}

/// Replaced when the machine is taken up.
pub(super) fn no_link() -> Link {
    Link::Opening
}

/// Outside of a stop.
pub(super) fn no_stop() -> Why {
    Why::StopRequested
}

pub(super) fn never() -> Timestamp {
    Timestamp::NEVER
}
