//! `ZooKeeper`: writes are applied one after the other, each under its own conditions, and nothing else is believed of it.
//!
//! Never: a session, a candidate, a member.

use super::rules::Rules;
use super::world::{Former, Holder, Record, Sort, World, Write};
use crate::world::{Condition, Version};

/// Whether the write would be applied now.
pub fn commits(world: &World, write: &Write) -> bool {
    let version = match write.sort {
        Sort::Creation => world.record.is_none(),
        Sort::TakeOver | Sort::Renewal | Sort::Release => {
            world.record.is_some() && write.condition.record == Version::Present
        }
    };
    version && write.condition.term
}

impl Rules {
    /// Whether nothing that names these versions can ever be applied.
    pub fn is_past(&self, condition: Condition) -> bool {
        !condition.term || !self.deletions && condition.record != Version::Present
    }

    /// Whether the write can never be applied, whatever comes.
    pub fn is_dead(&self, write: &Write) -> bool {
        self.is_past(write.condition)
    }
}

/// Applies a write that commits. `round`: the new version has a number that somebody remembers of a deleted record.
/// Returns what the writer is told of the versions.
pub fn apply(rules: &Rules, world: &mut World, write: &Write, round: bool) -> Condition {
    let created = write.sort == Sort::Creation;
    let took_over = write.sort == Sort::TakeOver;
    let zero = world.record.is_some_and(|record| record.untouched);
    keep_former(rules, world);
    for condition in world.conditions() {
        condition.record = match condition.record {
            Version::Present => Version::Past { zero },
            Version::Lost { zero: true } if created => Version::Present,
            Version::Lost { zero: false } if round => Version::Present,
            version => version,
        };
        condition.term = condition.term && !took_over;
    }
    if took_over && rules.deletions {
        world.term_limit = write.puts.limit;
    }
    world.record = Some(Record { untouched: created && rules.deletions, ..write.puts });
    Condition::PRESENT
}

fn keep_former(rules: &Rules, world: &mut World) {
    if let Some(record) = world.record.filter(|_| rules.lagging) {
        world.former = Some(Former { record: Record { untouched: false, ..record }, condition: Condition::PRESENT });
    }
}

/// An operator deletes the record.
pub fn delete(rules: &Rules, world: &mut World) {
    keep_former(rules, world);
    let Some(record) = world.record.take() else { return };
    for condition in world.conditions() {
        condition.record = match condition.record {
            Version::Present => Version::Lost { zero: record.untouched },
            Version::Past { zero } | Version::Lost { zero } => Version::Lost { zero },
        };
    }
}

/// Whether a version number could come round again with the next write.
pub fn may_come_round(rules: &Rules, world: &World) -> bool {
    rules.deletions && world.clone().conditions().any(|condition| condition.record == Version::Lost { zero: false })
}

/// The record is missing: it is created as held by unknown, with the limit of `term` and an empty roster.
pub fn creation(rules: &Rules, world: &World, host: usize) -> Write {
    use super::rules::Mistake::{LostRecordMadeWithItsMakersLimit, LostRecordMadeWithoutLimit};
    let limit = match rules.mistake {
        Some(LostRecordMadeWithoutLimit) => 0,
        Some(LostRecordMadeWithItsMakersLimit) => rules.limits[host],
        _ => world.term_limit,
    };
    let puts = Record { free: false, holder: Holder::Nobody, limit, ..Record::FREE };
    let condition = Condition { record: Version::Past { zero: false }, term: true };
    Write { sort: Sort::Creation, puts, condition }
}
