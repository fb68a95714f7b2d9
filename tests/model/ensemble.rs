//! `ZooKeeper`: writes are applied one after the other, each under its own conditions, and nothing else is believed of it.
//!
//! Never: a session, a candidate, an order of the line.

use crate::rules::{Mutation, Protocol, Rules};
use crate::world::{Condition, Former, HOSTS, Nonce, Record, Sort, State, Version, World, Write};

impl Rules {
    /// Whether the write would be applied now.
    pub fn commits(&self, world: &World, write: &Write) -> bool {
        let released = write.sort == Sort::Release;
        let unconditional = released && self.is(Mutation::FreedWithoutVersions);
        let any_version = unconditional || released && self.is(Mutation::VersionNotCheckedByTheRelease);
        let version = any_version || write.condition.record == Version::Present;
        let term = write.condition.term || !self.checks_term(write.sort);
        match write.sort {
            Sort::Creation => world.record.is_none() && term,
            Sort::TakeOver | Sort::Renewal | Sort::Release => world.record.is_some() && version && term,
        }
    }

    fn checks_term(&self, sort: Sort) -> bool {
        match sort {
            Sort::Creation => !self.is(Mutation::RecreatedWhateverTheTerm),
            Sort::Release if self.is(Mutation::TermNotCheckedByTheRelease) => false,
            Sort::Release if self.is(Mutation::FreedWithoutVersions) => false,
            Sort::TakeOver | Sort::Renewal | Sort::Release => !self.is(Mutation::TermNotChecked),
        }
    }

    /// Whether the write can never be applied, whatever comes.
    pub fn is_dead(&self, write: &Write) -> bool {
        let no_version = write.sort == Sort::Creation
            || write.sort == Sort::Release
                && (self.is(Mutation::FreedWithoutVersions) || self.is(Mutation::VersionNotCheckedByTheRelease));
        let never_again = !self.deletions && write.condition.record != Version::Present;
        (never_again && !no_version) || (!write.condition.term && self.checks_term(write.sort))
    }

    /// Whether a release may go through, or be tried again, though a version that it names is past.
    pub fn frees_carelessly(&self) -> bool {
        self.is(Mutation::FreedWithoutVersions)
            || self.is(Mutation::VersionNotCheckedByTheRelease)
            || self.is(Mutation::TermNotCheckedByTheRelease)
            || self.is(Mutation::ReleaserKnowsTheTermOnly)
    }

    /// Whether a release may be sent for a record that does not carry the own nonce.
    pub fn frees_what_is_not_its_own(&self) -> bool {
        self.is(Mutation::FreedWithoutNonce)
            || self.is(Mutation::ReleaserKnowsTheTermOnly)
            || self.is(Mutation::FreedWhoeverIsWaitedFor)
    }

    /// Whether nothing that names these versions can ever be applied.
    pub fn is_past(&self, condition: Condition) -> bool {
        let never_again = !self.deletions && condition.record != Version::Present;
        let any_term = self.is(Mutation::TermNotChecked) || self.is(Mutation::TermReadAfterTheRecord);
        never_again || (!condition.term && !any_term)
    }
}

/// Applies a write that commits. `round`: the new version has a number that somebody remembers of a deleted record.
/// Returns what the writer is told of the versions.
pub fn apply(rules: &Rules, world: &mut World, write: &Write, round: bool) -> Condition {
    let created = write.sort == Sort::Creation;
    let zero = world.record.is_some_and(|record| record.untouched);
    let took_over = write.sort == Sort::TakeOver;
    if let Some(record) = world.record {
        world.former = Former::of(record);
    }
    for condition in world.conditions() {
        condition.record = match condition.record {
            Version::Present => Version::Past { zero },
            Version::Lost { zero: true } if created => Version::Present,
            Version::Lost { zero: false } if round => Version::Present,
            version => version,
        };
        condition.term = condition.term && !took_over;
    }
    restart_counts(rules, world, write);
    if took_over {
        world.term_lease = term_lease(rules, write);
    }
    world.record = Some(Record { untouched: created, ..write.puts });
    Condition::PRESENT
}

/// What the wait counts from: in the earlier protocol, each version; under decision 6, each version that is not *waiting*.
fn restart_counts(rules: &Rules, world: &mut World, write: &Write) {
    let was_waiting = world.record.is_some_and(|record| record.state == State::Waiting);
    let goes_on = write.puts.state == State::Waiting || rules.is(Mutation::HeldKeepsTheCount) && was_waiting;
    for host in (0..HOSTS).filter(|&host| rules.protocols[host] == Protocol::Held || !goes_on) {
        world.hosts[host].known.iter_mut().for_each(|known| known.counts = false);
        world.former.counts[host] = false;
    }
}

fn term_lease(rules: &Rules, write: &Write) -> u8 {
    let own = match write.puts.nonce {
        Nonce::Of(host) => rules.leases[usize::from(host)],
        Nonce::Stranger | Nonce::FinishedOf(_) => 0,
    };
    if rules.is(Mutation::TermKeepsOwnLease) && own > 0 { own } else { write.puts.lease.max(own) }
}

/// An operator deletes the record.
pub fn delete(world: &mut World) {
    let Some(record) = world.record.take() else { return };
    world.former = Former::of(record);
    let untouched = record.untouched;
    for condition in world.conditions() {
        condition.record = match condition.record {
            Version::Present => Version::Lost { zero: untouched },
            Version::Past { zero } | Version::Lost { zero } => Version::Lost { zero },
        };
    }
}

/// Whether a version number could come round again with the next write.
pub fn may_come_round(rules: &Rules, world: &World) -> bool {
    rules.deletions && world.clone().conditions().any(|condition| condition.record == Version::Lost { zero: false })
}
