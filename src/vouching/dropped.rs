//! What was dropped, by reason.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::core::time::Sighting;
use crate::zookeeper::schema::vouching::Secret;

/// Longer than a host that reaches `ZooKeeper` takes to learn a new secret, and shorter than a leader that is cut off with the old
/// one still asks: it stops its command within one lease.
const PATIENCE: Duration = Duration::from_secs(2);

/// Datagrams of one series come at least this often.
const GAP: Duration = Duration::from_secs(15);

/// So many senders are kept apart. Anybody can pretend to be many.
const SENDERS: usize = 16;

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

/// The datagrams that do not fit our secret. When it is made anew, one host learns it before another, and what is under way is
/// of the old one: only what goes on is worth a word, once for each sender and each secret of ours.
#[derive(Debug, Default)]
pub(super) struct Mismatches {
    ours: Option<Secret>,
    senders: Vec<Series>,
}

/// Of one sender.
#[derive(Debug)]
struct Series {
    from: SocketAddr,
    first: Sighting,
    newest: Sighting,
    is_told: bool,
}

impl Mismatches {
    /// One more from this sender, while this is our secret. Whether it is to be told.
    pub fn note(&mut self, ours: Secret, from: SocketAddr, now: Sighting) -> bool {
        if self.ours.replace(ours) != Some(ours) {
            self.senders.clear();
        }
        let Some(series) = self.senders.iter_mut().find(|series| series.from == from) else {
            // Who was told of keeps its place: a stranger is not told of again and again.
            self.senders.retain(|series| series.is_told || series.newest.until(now) < GAP);
            if self.senders.len() < SENDERS {
                self.senders.push(Series { from, first: now, newest: now, is_told: false });
            }
            return false;
        };
        if series.newest.until(now) >= GAP {
            series.first = now;
        }
        series.newest = now;
        let is_news = !series.is_told && series.first.until(now) >= PATIENCE;
        series.is_told |= is_news;
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_does_not_fit_for_long_is_told_once_for_each_sender_and_each_secret_of_ours() {
        let mut mismatches = Mismatches::default();
        let mut told = |ours: u8, from: u16, second| {
            let (secret, from) = (Secret([ours; Secret::LENGTH]), SocketAddr::from(([10, 0, 0, 1], from)));
            mismatches.note(secret, from, Sighting::ZERO.after(Duration::from_secs(second)))
        };
        assert!(!told(1, 1, 100) && !told(1, 1, 101), "ours may be the old one");
        assert!(!told(2, 1, 102) && !told(2, 1, 103), "ours is new, and theirs may be the old one");
        assert!(!told(2, 1, 118) && !told(2, 1, 119), "it has just begun anew");
        assert!(told(2, 1, 120), "it goes on");
        assert!(!told(2, 1, 121) && !told(2, 1, 170), "it was told");
        assert!(!told(2, 2, 171) && told(2, 2, 173), "of another host, it was not");
        assert!(!told(3, 1, 174) && told(3, 1, 176), "of this secret, it was not");
    }

    #[test]
    fn a_stranger_with_many_addresses_is_told_of_a_few_times() {
        let mut mismatches = Mismatches::default();
        let mut told = |from: u16, second| {
            let (secret, from) = (Secret([1; Secret::LENGTH]), SocketAddr::from(([10, 0, 0, 1], from)));
            mismatches.note(secret, from, Sighting::ZERO.after(Duration::from_secs(second)))
        };
        for from in 0..100 {
            assert!(!told(from, 100));
        }
        assert!(!told(200, 116) && told(200, 118), "who is silent makes room");
        for second in 120..1000 {
            (0..100).for_each(|from| _ = told(from, second));
        }
        assert_eq!(mismatches.senders.iter().filter(|series| series.is_told).count(), SENDERS);
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
