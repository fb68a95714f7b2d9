//! What was dropped, by reason.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::core::time::Sighting;
use crate::zookeeper::schema::vouching::Secret;

/// Far longer than any host that reaches `ZooKeeper` takes to learn a new secret.
const PATIENCE: Duration = Duration::from_secs(15);

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

/// A series of datagrams that do not fit our secret. When it is made anew, one host learns it before another, and what is under
/// way is of the old one: only what goes on is worth a word, once.
#[derive(Debug, Default)]
pub(super) struct Mismatches {
    ours: Option<Secret>,
    first: Sighting,
    newest: Sighting,
    is_told: bool,
}

impl Mismatches {
    /// One more, while this is our secret. Whether it is to be told.
    pub fn note(&mut self, ours: Secret, now: Sighting) -> bool {
        let is_of_series = self.ours == Some(ours) && self.newest.until(now) < PATIENCE;
        if !is_of_series {
            (self.ours, self.first) = (Some(ours), now);
        }
        self.newest = now;
        let is_news = !self.is_told && self.first.until(now) >= PATIENCE;
        self.is_told |= is_news;
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_does_not_fit_for_long_is_told_once() {
        let mut mismatches = Mismatches::default();
        let mut told = |ours: u8, second| {
            let secret = Secret([ours; Secret::LENGTH]);
            mismatches.note(secret, Sighting::ZERO.after(Duration::from_secs(second)))
        };
        assert!(!told(1, 100) && !told(1, 110), "ours may be the old one");
        assert!(!told(2, 116) && !told(2, 122), "ours is new, and theirs may be the old one");
        assert!(!told(2, 137) && !told(2, 151), "it has just begun anew");
        assert!(told(2, 152), "it goes on");
        assert!(!told(2, 160) && !told(2, 170), "it was told");
    }

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
