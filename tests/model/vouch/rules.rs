//! What one model of vouching is made of: which hosts, under which adversary, and with which planted mistake.
//!
//! Never: state; a rule says what a step does, not where the world stands.

use crate::rules::{DRIFTING, STEADY};
use crate::world::HOSTS;

/// One model to be explored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent choices")]
pub struct Rules {
    /// L, in whole units; the same on every host.
    pub lease: u8,
    /// F of each host (`--vouch-limit`), in the units of L; as many hosts as there are limits other than zero.
    pub limits: [u8; HOSTS],
    /// Whether the host has the option; without it, it writes no limit and no roster, and answers nobody.
    pub vouches: [bool; HOSTS],
    /// Whether the hosts' clocks run at different and changing rates.
    pub drift: bool,
    /// Whether a host may restart at any moment, as a new instance.
    pub restarts: bool,
    /// Whether a follower may leave, and say so.
    pub leavers: bool,
    /// Whether a server may show the version before the present one.
    pub lagging: bool,
    /// Whether an operator deletes the record, as often as he likes.
    pub deletions: bool,
    /// Whether datagrams may arrive after time has passed. If not, they arrive at once, or never.
    pub late_datagrams: bool,
    /// How many writes that nobody waits for any more may still be on their way: at most `world::LATE`.
    pub late_writes: usize,
    pub mistake: Option<Mistake>,
}

/// A planted mistake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    PromiseWithoutPromisedUntil,
    PromiseDatedByAnOldReading,
    NeededIsTheAcknowledgedRosterOnly,
    NeededIsTheLastSentRosterOnly,
    AdoptionForgetsWritesUnderWay,
    OnceAMemberAlways,
    NewcomerWaitsALease,
    NewcomersCountNotRestarted,
    NewcomersOwnLimit,
    LeaderIgnoresTheLimit,
    CountedFromTheAnswer,
    OneAnswerIsEnough,
    AnswerAfterKillAtCounts,
    LeaseFromPromisesAlone,
    LeaverTakesOver,
    GoneCountsForTheHost,
    TakeOverSentBeforeTheWaitIsOver,
    NoDriftMargin,
    LostRecordMadeWithoutLimit,
    LostRecordMadeWithItsMakersLimit,
    OldHostTakesOverAfterALease,
    InstanceAndCountOutliveTheProcess,
    OldAnswerTakenForTheNewest,
}

impl Rules {
    /// Two or three hosts, on which nothing fails but `ZooKeeper` and the network.
    pub const fn new(lease: u8, limits: [u8; HOSTS]) -> Self {
        Self {
            lease,
            limits,
            vouches: [true; HOSTS],
            drift: false,
            restarts: false,
            leavers: false,
            lagging: false,
            deletions: false,
            late_datagrams: false,
            late_writes: 0,
            mistake: None,
        }
    }

    pub const fn with_drift(self) -> Self {
        Self { drift: true, ..self }
    }

    pub const fn with_restarts(self) -> Self {
        Self { restarts: true, ..self }
    }

    pub const fn with_leavers(self) -> Self {
        Self { leavers: true, ..self }
    }

    pub const fn with_lagging_servers(self) -> Self {
        Self { lagging: true, ..self }
    }

    pub const fn with_deletions(self) -> Self {
        Self { deletions: true, ..self }
    }

    pub const fn with_late_datagrams(self) -> Self {
        Self { late_datagrams: true, ..self }
    }

    pub const fn with_late_writes(self, late_writes: usize) -> Self {
        Self { late_writes, ..self }
    }

    /// The last host has no such option.
    pub const fn with_one_that_does_not_vouch(self) -> Self {
        Self { vouches: [true, self.limits[2] > 0, false], ..self }
    }

    pub const fn but(self, mistake: Mistake) -> Self {
        Self { mistake: Some(mistake), ..self }
    }

    pub fn is(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    pub fn hosts(&self) -> impl Iterator<Item = usize> + use<> {
        let limits = self.limits;
        (0..HOSTS).filter(move |&host| limits[host] > 0)
    }

    /// Slowest and fastest advance of a clock in one step.
    pub fn rates(&self) -> [u8; 2] {
        if self.drift { DRIFTING } else { STEADY }
    }

    /// (1 − ρ) of it: what it is worth to the leader.
    pub fn usable(&self, time: u8) -> u8 {
        time * self.units_of_clock(4)
    }

    /// (1 + ρ) of it: how long the others hold back.
    pub fn wait(&self, time: u8) -> u8 {
        time * self.units_of_clock(6)
    }

    /// The age after which nothing is told apart any more.
    pub fn oldest(&self) -> u8 {
        self.wait(self.limits.into_iter().max().unwrap_or_default().max(self.lease))
    }

    fn units_of_clock(&self, with_margin: u8) -> u8 {
        match (self.drift, self.is(Mistake::NoDriftMargin)) {
            (false, _) => 1,
            (true, true) => 5,
            (true, false) => with_margin,
        }
    }
}
