//! What was dropped, by reason.

use std::sync::atomic::{AtomicU64, Ordering};

/// Why a datagram is worth nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Too short or too long for one of ours.
    Length,
    /// Not ours, or of a version that does not exist yet.
    Format,
    /// Of another election, or of this one before its base was made anew.
    Election,
    /// Not authentic.
    Secret,
    /// We do not know the secret or the election yet.
    Unready,
    /// For another instance than ours.
    Addressee,
    /// Heard before, or older than what was heard.
    Replay,
    /// An answer to nothing that we have said of late.
    Unasked,
    /// The network gave an error instead.
    Network,
}

impl Reason {
    pub const ALL: [Self; 9] = [
        Self::Length,
        Self::Format,
        Self::Election,
        Self::Secret,
        Self::Unready,
        Self::Addressee,
        Self::Replay,
        Self::Unasked,
        Self::Network,
    ];

    /// The value of the metric's label `why`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Format => "format",
            Self::Election => "election",
            Self::Secret => "secret",
            Self::Unready => "unready",
            Self::Addressee => "addressee",
            Self::Replay => "replay",
            Self::Unasked => "unasked",
            Self::Network => "network",
        }
    }
}

/// How many datagrams were dropped since the start of this program, by reason.
#[derive(Debug, Default)]
pub struct Dropped([AtomicU64; Reason::ALL.len()]);

impl Dropped {
    /// Every reason's word, and its count.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Reason::ALL.iter().zip(&self.0).map(|(reason, count)| (reason.word(), count.load(Ordering::Relaxed)))
    }

    pub fn of(&self, reason: Reason) -> u64 {
        self.place(reason).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Whether it is the first for this reason.
    pub(super) fn count(&self, reason: Reason) -> bool {
        self.place(reason).is_some_and(|count| count.fetch_add(1, Ordering::Relaxed) == 0)
    }

    fn place(&self, reason: Reason) -> Option<&AtomicU64> {
        self.0.get(reason as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_count_and_its_own_word() {
        for (at, reason) in Reason::ALL.into_iter().enumerate() {
            let dropped = Dropped::default();
            assert!(dropped.count(reason) && !dropped.count(reason));
            let counted: Vec<_> = dropped.iter().filter(|(_, count)| *count != 0).collect();
            assert_eq!((counted, dropped.of(reason)), (vec![(reason.word(), 2)], 2));
            assert!(Reason::ALL[..at].iter().all(|other| other.word() != reason.word()));
        }
    }
}
