//! Jobs that run once: their markers in the ensemble, and what must be true of them.
//!
//! A call is for the slot of the time at which its process begins.

use std::collections::HashMap;

use zk_leader_run::core::action::{Conditions, Entry, ExitReason};
use zk_leader_run::core::event::{Denial, Nonce};

use crate::clock::{Real, SECOND};
use crate::ensemble::SessionKey;
use crate::world::World;

/// How long one slot is called for.
const SLOT: Real = 3 * SECOND;

pub type Slot = u64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marker {
    pub slot: Slot,
    pub nonce: Nonce,
    /// Whether it succeeded, once it has ended.
    pub ok: Option<bool>,
}

/// What really happened in each slot.
#[derive(Debug, Default)]
pub struct Facts(HashMap<Slot, Fact>);

#[derive(Clone, Copy, Debug, Default)]
struct Fact {
    starts: u32,
    succeeded: bool,
}

pub fn slot_at(now: Real) -> Slot {
    now / SLOT
}

impl World {
    /// The slot that this process was called for, if the script's jobs run once.
    fn slot_of(&self, instance: usize) -> Option<Slot> {
        let this = &self.instances[instance];
        (self.script.once.is_some() && this.settings.preparations.marks).then_some(this.slot)
    }

    fn marker_of(&self, slot: Slot) -> Option<Marker> {
        self.ensemble.state().runs.iter().find(|marker| marker.slot == slot).copied()
    }

    /// The server's side of `Mark`. That what was read may be old makes no difference: the write names the versions.
    pub fn mark_run(
        &mut self,
        (instance, session, candidacy): (usize, SessionKey, u32),
        conditions: Conditions,
        entry: Entry,
        is_first: bool,
    ) -> Result<bool, Denial> {
        let Some(slot) = self.slot_of(instance) else {
            return self.ensemble.check(session, candidacy, conditions).map(|()| true);
        };
        let retry_failed = self.script.once == Some(Once::RetryFailed);
        if let Some(found) = self.marker_of(slot) {
            let never_began = is_first && found.nonce.instance == entry.nonce.instance;
            if found.nonce == entry.nonce {
                return Ok(true);
            }
            let does_not_count = never_began || (retry_failed && found.ok != Some(true));
            if !does_not_count {
                return Ok(false);
            }
        }
        self.ensemble.check(session, candidacy, conditions)?;
        self.ensemble.set_run(Marker { slot, nonce: entry.nonce, ok: None });
        Ok(true)
    }

    /// The end of the run is sent before the release, on the same session.
    pub fn complete_run(&mut self, instance: usize, conditions: Conditions, entry: Entry) {
        let Some(slot) = self.slot_of(instance) else { return };
        let in_term = self.ensemble.state().term.is_some_and(|term| term.version == conditions.term);
        let marker = self.marker_of(slot).filter(|marker| in_term && marker.nonce == entry.nonce);
        if marker.is_some() && std::mem::take(&mut self.instances[instance].withdraws_run) {
            return self.ensemble.withdraw_run(slot);
        }
        if let (Some(marker), Some(ok)) = (marker, self.instances[instance].ended) {
            if ok && !self.oracle.facts.fact(slot).succeeded {
                self.oracle.fail(format!("the run of slot {slot} is called a success, and was none"));
            }
            self.ensemble.set_run(Marker { ok: Some(ok), ..marker });
        }
    }

    pub fn run_started(&mut self, instance: usize) {
        let Some(slot) = self.slot_of(instance) else { return };
        let is_ours = |marker: &Marker| marker.nonce.instance == instance as u64 + 1;
        if self.marker_of(slot).is_none_or(|marker| !is_ours(&marker)) {
            self.oracle.fail(format!("slot {slot} is started by instance {instance} without a marker"));
        }
        let fact = self.oracle.facts.0.entry(slot).or_default();
        fact.starts += 1;
        if fact.starts > 1 && self.script.once == Some(Once::AtMost) {
            self.oracle.fail(format!("slot {slot} is started a second time, by instance {instance}"));
        }
    }

    /// By itself, with status 0.
    pub fn run_succeeded(&mut self, instance: usize) {
        if let Some(slot) = self.slot_of(instance) {
            self.oracle.facts.0.entry(slot).or_default().succeeded = true;
        }
    }

    /// At least once: nobody is told that it was done before it was.
    pub fn run_was_given_up(&mut self, instance: usize, reason: ExitReason) {
        let Some(slot) = self.slot_of(instance) else { return };
        let is_duplicate = reason == ExitReason::Duplicate;
        if is_duplicate && self.script.once == Some(Once::RetryFailed) && !self.oracle.facts.fact(slot).succeeded {
            self.oracle.fail(format!("slot {slot} is a duplicate for instance {instance}, and was never done"));
        }
    }
}

impl Facts {
    fn fact(&self, slot: Slot) -> Fact {
        self.0.get(&slot).copied().unwrap_or_default()
    }
}

/// What all jobs of a script are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Once {
    AtMost,
    RetryFailed,
}
