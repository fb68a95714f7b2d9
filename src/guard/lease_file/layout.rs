//! The 64 bytes of a lease file: how far the command may rely on its lease. Eight words in the host's byte order:
//!
//! | Offset | Bytes | Content |
//! |---|---|---|
//! | 0 | 8 | `ZKLEASE` and the version of this layout, 1 |
//! | 8 | 8 | sequence counter: odd while the rest is being written |
//! | 16 | 8 | fencing token |
//! | 24 | 4 | number of the term |
//! | 28 | 4 | state: 1 leading, 2 paused, 3 stopping; any other: over |
//! | 32 | 8 | `stop_at`, ns of the lease's clock |
//! | 40 | 8 | `kill_at`, ns of the lease's clock; 0 if it is over |
//! | 48 | 16 | the host's boot id |
//!
//! Decoding arbitrary bytes returns a possible value or an error.

use std::time::Duration;

use crate::core::guard_messages::Deadlines;
use crate::core::time::Timestamp;
use crate::guard::protocol::{Reader, Writer};

/// The length of the file in bytes.
pub const SIZE: usize = 64;
/// The length of the file in words.
pub const WORDS: usize = SIZE / 8;
/// The word of the sequence counter.
pub const SEQUENCE: usize = 1;
/// The word of term and state.
pub const STATE: usize = 3;
/// The word of `kill_at`.
pub const KILL_AT: usize = 5;
/// The state of a lease that is over.
const OVER: u32 = 4;

const MAGIC: [u8; 8] = *b"ZKLEASE\x01";

/// What the command may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaseState {
    Leading,
    /// Contact is lost; the lease still runs.
    Paused,
    /// The stop signal was sent; the command may finish its work until `kill_at`.
    Stopping,
    Over,
}

/// The state of a lease, as the guard publishes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaseView {
    pub token: i64,
    pub term: i32,
    pub state: LeaseState,
    /// The latest instants that the guard will let the command live to.
    pub deadlines: Deadlines,
}

impl LeaseView {
    pub const NONE: Self = Self {
        token: 0,
        term: 0,
        state: LeaseState::Over,
        deadlines: Deadlines { stop_at: Timestamp::ZERO, kill_at: Timestamp::ZERO },
    };

    /// The file under this sequence counter.
    pub fn encode(&self, sequence: u64, boot_id: u128) -> [u8; SIZE] {
        let Deadlines { stop_at, kill_at } = self.deadlines;
        let mut file = Writer::<SIZE>::new();
        file.put(MAGIC).put(sequence.to_ne_bytes()).put(self.token.to_ne_bytes());
        file.put(self.term.to_ne_bytes()).put(self.state.number().to_ne_bytes());
        file.put(stop_at.as_nanos().to_ne_bytes()).put(kill_at.as_nanos().to_ne_bytes());
        file.put(boot_id.to_be_bytes());
        file.bytes
    }

    /// Reads a file, and the boot id in it. `None`: this is no lease file of this version, or it is being written.
    pub fn decode(file: &[u8]) -> Option<(Self, u128)> {
        let mut file = Reader::of::<SIZE>(file)?;
        (file.take()? == MAGIC).then_some(())?;
        (u64::from_ne_bytes(file.take()?) % 2 == 0).then_some(())?;
        let (token, term) = (i64::from_ne_bytes(file.take()?), i32::from_ne_bytes(file.take()?));
        let state = LeaseState::of_number(u32::from_ne_bytes(file.take()?));
        let view = Self { token, term, state, deadlines: file.deadlines()? };
        Some((view, u128::from_be_bytes(file.take()?)))
    }

    /// How long the command may still act; zero if it may not.
    pub fn left(&self, now: Timestamp) -> Duration {
        if self.state == LeaseState::Over { Duration::ZERO } else { now.until(self.deadlines.kill_at) }
    }
}

impl LeaseState {
    fn number(self) -> u32 {
        match self {
            Self::Leading => 1,
            Self::Paused => 2,
            Self::Stopping => 3,
            Self::Over => OVER,
        }
    }

    fn of_number(number: u32) -> Self {
        match number {
            1 => Self::Leading,
            2 => Self::Paused,
            3 => Self::Stopping,
            _ => Self::Over,
        }
    }
}

/// The words of a file.
pub fn words(file: &[u8; SIZE]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(file.chunks_exact(8)) {
        *word = bytes.try_into().map_or(0, u64::from_ne_bytes);
    }
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn views() -> impl Strategy<Value = LeaseView> {
        let (leading, paused) = (Just(LeaseState::Leading), Just(LeaseState::Paused));
        let state = prop_oneof![leading, paused, Just(LeaseState::Stopping), Just(LeaseState::Over)];
        (any::<i64>(), any::<i32>(), state, any::<u64>(), any::<u64>()).prop_map(|(token, term, state, stop, kill)| {
            let deadlines = Deadlines { stop_at: Timestamp::from_nanos(stop), kill_at: Timestamp::from_nanos(kill) };
            LeaseView { token, term, state, deadlines }
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_what_is_read(view in views(), sequence: u64, boot_id: u128) {
            let file = view.encode(sequence, boot_id);
            let read = (sequence % 2 == 0).then_some((view, boot_id));
            prop_assert_eq!(LeaseView::decode(&file), read);
            prop_assert_eq!(words(&file).map(u64::to_ne_bytes).concat(), file);
        }

        #[test]
        fn garbage_is_no_lease_or_could_have_been_written(noise in proptest::collection::vec(any::<u8>(), 0..80)) {
            prop_assert_eq!(LeaseView::decode(&noise), None);
            let mut file = [MAGIC.to_vec(), vec![0; 8], noise].concat();
            file.resize(SIZE, 0);
            prop_assert!(LeaseView::decode(&file).is_some());
            file.pop();
            prop_assert_eq!(LeaseView::decode(&file), None);
        }
    }

    #[test]
    fn the_fields_stand_where_the_readers_of_other_languages_look_for_them() {
        let deadlines = Deadlines { stop_at: Timestamp::from_nanos(5), kill_at: Timestamp::from_nanos(6) };
        let view = LeaseView { token: 3, term: 4, state: LeaseState::Stopping, deadlines };
        let file = view.encode(2, 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10);
        let words = words(&file);
        assert_eq!(&file[..8], b"ZKLEASE\x01");
        assert_eq!((words[SEQUENCE], words[2], words[4], words[KILL_AT]), (2, 3, 5, 6));
        assert_eq!((&file[24..28], &file[28..32]), (&4_i32.to_ne_bytes()[..], &3_u32.to_ne_bytes()[..]));
        assert_eq!(file[48..], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
    }

    #[test]
    fn a_lease_that_is_over_has_nothing_left_whatever_its_end() {
        let deadlines = Deadlines { stop_at: Timestamp::NEVER, kill_at: Timestamp::from_nanos(10) };
        let of = |state| LeaseView { state, deadlines, ..LeaseView::NONE };
        assert_eq!(of(LeaseState::Over).left(Timestamp::ZERO), Duration::ZERO);
        for state in [LeaseState::Leading, LeaseState::Paused, LeaseState::Stopping] {
            let left = [0, 9, 10, 11].map(|now| of(state).left(Timestamp::from_nanos(now)).as_nanos());
            assert_eq!(left, [10, 1, 0, 0], "{state:?}");
        }
    }
}
