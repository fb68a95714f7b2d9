//! What this host has promised to leaders: not to take over before an instant of its own clock.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Question;
use crate::core::lease::{LEASE_LONGEST, wait_for};
use crate::core::time::Sighting;

/// The leaders whose questions are remembered. One of an older term is answered with no.
const LEADERS: usize = 8;

/// The newest question of a leader in a term.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Heard {
    leader: u64,
    token: i64,
    seq: u64,
}

/// All promises of this process. They outlive sessions, and are handed over in an upgrade in place. They end with the
/// process: the next one is another instance, which nobody needs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Promise {
    until: Sighting,
    /// The newest token to which something was promised.
    token: i64,
    heard: VecDeque<Heard>,
    /// To whom the newest promise was given, and for which lease. For display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    given: Option<(u64, Duration)>,
}

impl Promise {
    /// The leader to whom the newest promise was given, and its lease.
    pub fn given(&self) -> Option<(u64, Duration)> {
        self.given
    }

    /// Before this instant no take-over may be sent.
    pub fn until(&self) -> Sighting {
        self.until
    }

    /// Whether a free record whose last token is this one may have been freed before something was promised: a base that
    /// was made anew knows nothing of the term that asked.
    pub fn is_newer_than(&self, token: i64) -> bool {
        token < self.token
    }

    /// Whether this question is a new one. A repeated or an older one is worth nothing.
    pub fn is_news(&mut self, question: Question) -> bool {
        let Question { leader, token, seq, .. } = question;
        let is_of = |heard: &Heard| (heard.leader, heard.token) == (leader, token);
        if self.heard.iter().any(|heard| is_of(heard) && heard.seq >= seq) {
            return false;
        }
        self.heard.retain(|heard| !is_of(heard));
        if self.heard.len() == LEADERS {
            self.heard.pop_front();
        }
        self.heard.push_back(Heard { leader, token, seq });
        true
    }

    /// Promises to hold back for the lease of this question, from `now`: a reading made after the question came. No
    /// promise if the lease is longer than any may be.
    pub fn give(&mut self, now: Sighting, question: Question) -> bool {
        if question.lease > LEASE_LONGEST {
            return false;
        }
        self.until = self.until.max(now.after(wait_for(question.lease)));
        self.token = self.token.max(question.token);
        self.given = Some((question.leader, question.lease));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Sighting {
        Sighting::ZERO.after(Duration::from_secs(seconds))
    }

    fn question(seq: u64, seconds: u64) -> Question {
        Question { leader: 7, token: 40, seq, lease: Duration::from_secs(seconds) }
    }

    #[test]
    fn a_promise_binds_for_a_lease_and_its_drift_and_is_never_taken_back() {
        let mut promise = Promise::default();
        assert!(promise.give(at(10), question(1, 100)));
        assert_eq!(promise.until(), at(111));
        assert!(promise.give(at(11), question(2, 1)));
        assert_eq!(promise.until(), at(111));
        assert!(promise.is_newer_than(39) && !promise.is_newer_than(40));
        assert!(promise.give(at(12), Question { token: 38, ..question(3, 1) }));
        assert!(promise.is_newer_than(39), "what was promised to the later term holds");
    }

    #[test]
    fn nobody_promises_longer_than_the_longest_lease() {
        let mut promise = Promise::default();
        assert!(!promise.give(at(10), question(1, 121)));
        assert_eq!(promise, Promise::default());
        assert!(promise.give(at(10), question(2, 120)), "the longest lease is one");
    }

    #[test]
    fn a_question_counts_once_and_none_before_it() {
        let mut promise = Promise::default();
        assert!(promise.is_news(question(5, 1)));
        assert!(!promise.is_news(question(5, 1)) && !promise.is_news(question(4, 1)));
        assert!(promise.is_news(question(6, 1)));
        assert!(promise.is_news(Question { token: 41, ..question(1, 1) }), "of another term");
    }
}
