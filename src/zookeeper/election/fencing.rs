//! The leaders to fence before a term's command starts, as read from the record and as written into ours.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::core::action::Conditions;
use crate::core::event::Nonce;
use crate::zookeeper::schema::lease::PendingFence;

/// Pending fences that were read, and those that our record carries.
#[derive(Debug, Default)]
pub(crate) struct PendingFences(Mutex<Pages>);

#[derive(Debug, Default)]
struct Pages {
    /// By the versions that a take-over will be conditional on.
    read: Vec<(Conditions, Vec<PendingFence>)>,
    ours: Option<(Nonce, Vec<PendingFence>)>,
    /// Whose lease the last take-over had to wait for.
    before: Option<PendingFence>,
}

impl PendingFences {
    /// A round has read every slot; it replaces what was read before.
    pub fn note(&self, read: Vec<(Conditions, Vec<PendingFence>)>) {
        self.lock().read = read;
    }

    /// A take-over on these conditions is sent: the leaders that its record carries. If the record was never read, its
    /// leader is unknown.
    pub fn take_over(&self, nonce: Nonce, conditions: Conditions) -> Vec<PendingFence> {
        let mut pages = self.lock();
        let list = pages.read.iter().find(|(read, _)| *read == conditions).map(|(_, list)| list.clone());
        let list = list.unwrap_or_else(|| vec![PendingFence::default()]);
        pages.ours = Some((nonce, list.clone()));
        pages.before = list.last().cloned();
        list
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
    pub fn leases(&self) -> Vec<PendingFence> {
        self.lock().read.iter().filter_map(|(_, list)| list.last().cloned()).collect()
    }

    /// Whose lease the last take-over had to wait for.
    pub fn before(&self) -> Option<PendingFence> {
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
        pending.note(vec![(conditions, vec![holder()])]);
        let nonce = Nonce { instance: US, sending: 1 };
        let unknown = pending.take_over(nonce, Conditions { slot: Slot(1), ..conditions });
        assert_eq!(unknown, [PendingFence::default()]);
        assert_eq!(pending.take_over(nonce, conditions), vec![holder()]);
        assert_eq!((pending.carried(nonce).len(), pending.ours().len()), (1, 1));
        assert!(pending.carried(Nonce { instance: US, sending: 2 }).is_empty());
        pending.settle();
        assert!(pending.carried(nonce).is_empty());
        assert_eq!((pending.before(), pending.leases()), (Some(holder()), vec![holder()]));
    }
}
