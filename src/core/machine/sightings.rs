//! Since when a record is known not to have been renewed: the start of a successor's wait.
//!
//! A version under which a command may have run has the zxid of its write, and zxids grow in the order of the writes. A
//! host that has seen one zxid knows that every write with a lower one was sent before, even a renewal of another slot.
//! So it is enough to follow one of several records. With one slot, the wait counts from when we *first* saw a record
//! under which no command has run since this version. A waiting record keeps the count, and so does the end of our
//! session.

use serde::{Deserialize, Serialize};

use crate::core::event::Record;
use crate::core::guard_messages::Slot;
use crate::core::time::Sighting;

/// More than the renewals of two leases.
const KEPT: usize = 32;

/// A zxid, the instant at which it was first known, and the slot whose record showed it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Seen {
    zxid: i64,
    slot: Slot,
    at: Sighting,
}

/// Growing zxids. Forgetting old ones makes a wait longer, never shorter.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sightings(Vec<Seen>);

impl Sightings {
    /// Whether the ensemble has lost acknowledged writes: only then do zxids go back.
    pub fn note(&mut self, record: Record, now: Sighting) -> bool {
        let zxid = record.last_run_under();
        let before = self.0.iter().rfind(|seen| seen.slot == record.slot);
        let went_back = before.is_some_and(|seen| zxid < seen.zxid);
        if went_back {
            self.0.clear();
        }
        if self.of(record).is_some() {
            return went_back;
        }
        if self.0.len() == KEPT {
            self.0.remove(0);
        }
        self.0.push(Seen { zxid, slot: record.slot, at: now });
        went_back
    }

    /// The same for a record that may have been read earlier than others that were noted.
    pub fn glimpse(&mut self, record: Record, now: Sighting) {
        if self.of(record).is_none() {
            self.note(record, now);
        }
    }

    /// Since when the last renewal is known to have been sent; `None` if it was never noted.
    pub fn of(&self, record: Record) -> Option<Sighting> {
        self.0.iter().find(|seen| seen.zxid >= record.last_run_under()).map(|seen| seen.at)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::core::event::{LastRun, Nonce};

    fn record(slot: u16, mzxid: i64) -> Record {
        let (slot, lease, nonce) = (Slot(slot), Duration::from_secs(4), Nonce::UNKNOWN);
        Record {
            slot,
            version: 1,
            mzxid,
            held: true,
            waiting_on: None,
            lease,
            nonce,
            token: 0,
            vouching: None,
            agrees: true,
        }
    }

    fn at(seconds: u64) -> Sighting {
        Sighting::ZERO.after(Duration::from_secs(seconds))
    }

    #[test]
    fn a_version_is_known_since_it_was_first_seen() {
        let mut sightings = Sightings::default();
        assert_eq!(sightings.of(record(0, 5)), None);
        for second in 1..4 {
            sightings.note(record(0, 5), at(second));
        }
        sightings.note(record(0, 7), at(4));
        assert_eq!(sightings.of(record(0, 7)), Some(at(4)));
        assert_eq!(sightings.of(record(0, 8)), None);
    }

    #[test]
    fn a_later_write_to_another_slot_tells_that_an_earlier_one_was_made() {
        let mut sightings = Sightings::default();
        for (mzxid, second) in [(10, 1), (20, 2), (30, 3)] {
            sightings.note(record(0, mzxid), at(second));
        }
        sightings.note(record(1, 15), at(9));
        assert_eq!(sightings.of(record(1, 15)), Some(at(2)));
        assert_eq!(sightings.of(record(1, 25)), Some(at(3)));
        assert_eq!(sightings.of(record(1, 31)), None);
    }

    #[test]
    fn a_record_that_waits_keeps_the_count() {
        let mut sightings = Sightings::default();
        sightings.note(record(0, 5), at(1));
        let waits = Record { waiting_on: Some(LastRun { mzxid: 5, nonce: Nonce::UNKNOWN }), ..record(0, 9) };
        sightings.note(waits, at(2));
        assert_eq!(sightings.of(waits), Some(at(1)));
        assert_eq!(sightings.of(Record { waiting_on: None, ..waits }), None);
    }

    #[test]
    fn a_zxid_that_goes_back_makes_everything_forgotten() {
        let mut sightings = Sightings::default();
        sightings.note(record(0, 50), at(1));
        sightings.note(record(0, 40), at(2));
        assert_eq!(sightings.of(record(0, 40)), Some(at(2)));
        assert_eq!(sightings.of(record(0, 50)), None);
    }

    #[test]
    fn a_glimpse_counts_unless_something_newer_was_seen() {
        let mut sightings = Sightings::default();
        sightings.note(record(0, 5), at(1));
        sightings.glimpse(record(0, 7), at(2));
        sightings.note(record(0, 7), at(3));
        assert_eq!(sightings.of(record(0, 7)), Some(at(2)));
        sightings.glimpse(record(0, 6), at(4));
        assert_eq!((sightings.of(record(0, 5)), sightings.of(record(0, 7))), (Some(at(1)), Some(at(2))));
    }

    #[test]
    fn what_is_forgotten_counts_from_later_and_never_from_earlier() {
        let mut sightings = Sightings::default();
        for second in 0..100 {
            sightings.note(record(0, i64::try_from(second).unwrap()), at(second));
        }
        assert_eq!(sightings.of(record(1, 0)), Some(at(100 - KEPT as u64)));
        assert_eq!(sightings.of(record(0, 99)), Some(at(99)));
    }
}
