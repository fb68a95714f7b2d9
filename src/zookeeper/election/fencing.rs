//! The leaders to fence before a term's command starts, as read from the record and as written into ours.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::core::action::Conditions;
use crate::core::event::Nonce;
use crate::zookeeper::schema::lease::{Holder, PendingFence};

/// What a take-over of a slot means.
#[derive(Clone, Debug)]
pub(crate) struct Succession {
    /// What it will be conditional on.
    pub conditions: Conditions,
    /// The leaders that it has to fence.
    pub to_fence: Vec<PendingFence>,
    /// Whose lease it has to wait for.
    pub lease_of: Option<Holder>,
}

/// Pending fences that were read, and those that our record carries.
#[derive(Debug, Default)]
pub(crate) struct PendingFences(Mutex<Pages>);

#[derive(Debug, Default)]
struct Pages {
    /// Of each slot.
    read: Vec<Succession>,
    ours: Option<(Nonce, Vec<PendingFence>)>,
    /// Whose lease the last take-over had to wait for.
    before: Option<Holder>,
}

impl PendingFences {
    /// A round has read every slot; it replaces what was read before.
    pub fn note(&self, read: Vec<Succession>) {
        self.lock().read = read;
    }

    /// A take-over on these conditions is sent: the leaders that its record carries. If the record was never read, its
    /// leader is unknown.
    pub fn take_over(&self, nonce: Nonce, conditions: Conditions) -> Vec<PendingFence> {
        let mut pages = self.lock();
        let read = pages.read.iter().find(|read| read.conditions == conditions).cloned();
        let unknown = Succession { conditions, to_fence: vec![PendingFence::default()], lease_of: None };
        let Succession { to_fence, lease_of, .. } = read.unwrap_or(unknown);
        (pages.ours, pages.before) = (Some((nonce, to_fence.clone())), lease_of);
        to_fence
    }

    /// The leaders that the record of this take-over carries.
    pub fn carried(&self, nonce: Nonce) -> Vec<PendingFence> {
        let pages = self.lock();
        pages.ours.as_ref().filter(|(ours, _)| *ours == nonce).map(|(_, list)| list.clone()).unwrap_or_default()
    }

    /// The leaders that we must fence.
    pub fn ours(&self) -> Vec<PendingFence> {
        self.lock().ours.as_ref().map(|(_, list)| list.clone()).unwrap_or_default()
    }

    /// Of each slot that was held when it was read last, whose lease a take-over would wait for.
    pub fn leases(&self) -> Vec<Holder> {
        self.lock().read.iter().filter_map(|read| read.lease_of.clone()).collect()
    }

    /// Whose lease the last take-over had to wait for.
    pub fn before(&self) -> Option<Holder> {
        self.lock().before.clone()
    }

    /// Whether a take-over was sent, and its term has not been released since.
    pub fn has_led(&self) -> bool {
        self.lock().ours.is_some()
    }

    /// For the next program of this process: the nonce of the last take-over, and what its record carries.
    pub fn hand_over(&self) -> Option<(Nonce, Vec<PendingFence>)> {
        self.lock().ours.clone()
    }

    pub fn take_up(&self, ours: Option<(Nonce, Vec<PendingFence>)>) {
        self.lock().ours = ours;
    }

    /// The term was released.
    pub fn forget(&self) {
        self.lock().ours = None;
    }

    /// A command is started: all of them were fenced, or no fence command is set.
    pub fn settle(&self) {
        if let Some((_, list)) = &mut self.lock().ours {
            list.clear();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::guard_messages::Slot;

    const US: u64 = 0xabc;

    fn holder() -> PendingFence {
        PendingFence { id: "b".into(), token: 9, ..PendingFence::default() }
    }

    #[test]
    fn they_carry_what_was_read_under_these_versions_until_a_command_starts() {
        let pending = PendingFences::default();
        let conditions = Conditions { slot: Slot(0), record: 4, term: 2 };
        // It has failed to fence `b`, and its own lease runs.
        let lease_of = Some(Holder { id: "a".into(), ..Holder::default() });
        pending.note(vec![Succession { conditions, to_fence: vec![holder()], lease_of: lease_of.clone() }]);
        let nonce = Nonce { instance: US, sending: 1 };
        let unknown = pending.take_over(nonce, Conditions { slot: Slot(1), ..conditions });
        assert_eq!(unknown, [PendingFence::default()]);
        assert_eq!(pending.take_over(nonce, conditions), vec![holder()]);
        assert_eq!((pending.carried(nonce).len(), pending.ours().len()), (1, 1));
        assert!(pending.carried(Nonce { instance: US, sending: 2 }).is_empty());
        pending.settle();
        assert!(pending.carried(nonce).is_empty());
        assert_eq!((pending.before(), pending.leases()), (lease_of.clone(), Vec::from_iter(lease_of)));
    }
}
