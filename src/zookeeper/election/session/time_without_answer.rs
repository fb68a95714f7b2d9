//! For how long a session has given no good answer: a connection on which every request fails is of no use, though bytes come.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::core::time::Timestamp;

#[derive(Debug, Default)]
pub(crate) struct UnansweredSince {
    /// When the first of the requests without an answer was sent.
    since: Mutex<Option<Timestamp>>,
}

impl UnansweredSince {
    /// A request was sent at `asked_at`, and `now` it is known whether it found an answer; a denial is one. For how long
    /// none did.
    pub fn note(&self, answered: bool, asked_at: Timestamp, now: Timestamp) -> Duration {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        *since = if answered { None } else { since.or(Some(asked_at)) };
        since.map_or(Duration::ZERO, |since| since.until(now))
    }

    /// The last request found no answer.
    pub fn is_silent(&self) -> bool {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// For the next connection of the session: it counts on, unless that connection has found an answer.
    pub fn carried(&self, answered: bool) -> Self {
        let since = *self.since.lock().unwrap_or_else(PoisonError::into_inner);
        Self { since: Mutex::new(since.filter(|_| !answered)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_counts_from_the_first_request_without_an_answer_to_the_next_answer() {
        let (silence, at) = (UnansweredSince::default(), |seconds: u64| Timestamp::from_nanos(seconds * 1_000_000_000));
        assert_eq!(silence.note(true, at(1), at(2)), Duration::ZERO);
        assert_eq!(silence.note(false, at(2), at(3)), Duration::from_secs(1));
        assert_eq!(silence.note(false, at(4), at(7)), Duration::from_secs(5));
        assert_eq!(silence.note(true, at(7), at(8)), Duration::ZERO);
        assert_eq!(silence.note(false, at(9), at(9)), Duration::ZERO);
        assert_eq!(silence.carried(false).note(false, at(10), at(12)), Duration::from_secs(3));
        assert_eq!(silence.carried(true).note(false, at(10), at(12)), Duration::from_secs(2));
    }
}
