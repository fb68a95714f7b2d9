//! A short list on the stack: the kill path does not allocate. One input causes at most seven steps.

use super::GuardAction;

/// The steps for one input, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GuardActions {
    steps: [Option<GuardAction>; Self::CAPACITY],
    length: usize,
}

impl GuardActions {
    pub const CAPACITY: usize = 8;

    pub(super) fn push(&mut self, step: GuardAction) {
        debug_assert!(self.length < Self::CAPACITY, "no room for {step:?}");
        if let Some(place) = self.steps.get_mut(self.length) {
            *place = Some(step);
            self.length += 1;
        }
    }
}

impl IntoIterator for GuardActions {
    type Item = GuardAction;
    type IntoIter = std::iter::Flatten<std::array::IntoIter<Option<GuardAction>, { GuardActions::CAPACITY }>>;

    fn into_iter(self) -> Self::IntoIter {
        self.steps.into_iter().flatten()
    }
}
