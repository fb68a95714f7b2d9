//! What one model is made of: how many hosts, with which leases, under which adversary, and with which planted mistake.
//!
//! Never: state; a rule says what a step does, not where the world stands.

use crate::world::HOSTS;

/// One model to be explored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent choices")]
pub struct Rules {
    /// The lease L of each host, in whole units; as many hosts as there are leases other than zero.
    pub leases: [u8; HOSTS],
    pub protocols: [Protocol; HOSTS],
    /// Whether the hosts' clocks run at different and changing rates.
    pub drift: bool,
    /// Whether an operator deletes the lease record, as often as he likes.
    pub deletions: bool,
    /// Whether a supervisor that was killed leaves a releaser behind.
    pub releaser: bool,
    /// How many writes that nobody waits for any more may still be on their way.
    pub late_writes: usize,
    /// Whether a holder remembers since when it has seen its own record, as the code does, for when it follows again.
    pub watchful_holders: bool,
    pub mutation: Option<Mutation>,
}

/// How a take-over writes the record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// SPEC section 3: *held* from the take-over on.
    Held,
    /// Decision 6, as the product does it: *waiting* until the previous lease is over, then *held* by one more write.
    Waiting,
}

/// A planted mistake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutation {
    NoWait,
    LeaseCountedFromTheReply,
    AdoptionExtendsTheLease,
    OneNonceForTwoSendings,
    CountNotRestarted,
    NoMaximumOverChains,
    OwnLeaseWhileWaiting,
    NoDriftMargin,
    FreedWhileTheTreeLives,
    FreedDuringOwnWait,
    FreedByTheReleaserDuringTheWait,
    FreedWithoutVersions,
    FreedWithoutNonce,
    FinishedBeforeTheWaitIsOver,
    RestartedAfterTheRelease,
    RecreatedWithOwnLease,
    RecreatedWhateverTheTerm,
    TermKeepsOwnLease,
    TermNotChecked,
    TermReadAfterTheRecord,
    // Only of decision 6:
    StartedWhileWaiting,
    HeldKeepsTheCount,
    WaitingCarriesOwnLease,
    HeldBeforeTheWaitIsOver,
    WaitingCountsAsFree,
    FreedWhoeverIsWaitedFor,
    // Harmless, at least as long as nobody deletes the record:
    CountFromTheReply,
    LateRenewalsCount,
    VersionNotCheckedByTheRelease,
    TermNotCheckedByTheRelease,
    ReleaserKnowsTheTermOnly,
}

/// How far the clocks of two hosts advance in one step of real time, at the slowest and at the fastest. ρ is 1/5 here:
/// one unit of lease is 5 units of every clock, 4 = 5(1 − ρ) for the holder and 6 = 5(1 + ρ) for the successor.
pub const DRIFTING: [u8; 2] = [2, 3];
pub const STEADY: [u8; 2] = [1, 1];

impl Rules {
    pub const fn new(leases: [u8; HOSTS]) -> Self {
        Self {
            leases,
            protocols: [Protocol::Held; HOSTS],
            drift: false,
            deletions: false,
            releaser: true,
            late_writes: 2,
            watchful_holders: false,
            mutation: None,
        }
    }

    pub const fn with_drift(self) -> Self {
        Self { drift: true, ..self }
    }

    pub const fn with_deletions(self) -> Self {
        Self { deletions: true, ..self }
    }

    pub const fn without_releaser(self) -> Self {
        Self { releaser: false, ..self }
    }

    pub const fn with_late_writes(self, late_writes: usize) -> Self {
        Self { late_writes, ..self }
    }

    pub const fn with_watchful_holders(self) -> Self {
        Self { watchful_holders: true, ..self }
    }

    /// Every host follows decision 6.
    pub const fn proposed(self) -> Self {
        self.upgraded([Protocol::Waiting; HOSTS])
    }

    pub const fn upgraded(self, protocols: [Protocol; HOSTS]) -> Self {
        Self { protocols, ..self }
    }

    pub const fn but(self, mutation: Mutation) -> Self {
        Self { mutation: Some(mutation), ..self }
    }

    pub fn is(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    pub fn hosts(&self) -> impl Iterator<Item = usize> + use<> {
        let leases = self.leases;
        (0..HOSTS).filter(move |&host| leases[host] > 0)
    }

    pub fn longest(&self) -> u8 {
        self.leases.into_iter().max().unwrap_or_default()
    }

    /// Slowest and fastest advance of a clock in one step.
    pub fn rates(&self) -> [u8; 2] {
        if self.drift { DRIFTING } else { STEADY }
    }

    /// L(1 − ρ): what an acknowledged write is worth to its holder, from its sending.
    pub fn usable(&self, lease: u8) -> u8 {
        lease * self.units_of_clock(4)
    }

    /// L(1 + ρ): how long a successor waits, from its first sight of the record's present version.
    pub fn wait(&self, lease: u8) -> u8 {
        lease * self.units_of_clock(6)
    }

    fn units_of_clock(&self, with_margin: u8) -> u8 {
        match (self.drift, self.is(Mutation::NoDriftMargin)) {
            (false, _) => 1,
            (true, true) => 5,
            (true, false) => with_margin,
        }
    }
}
