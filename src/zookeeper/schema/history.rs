//! The last terms in `<base>/history`, newest last: leader, start, end, and how the term ended.
//!
//! Times are of the hosts' own clocks and only for display; no decision of a host rests on them. What `zk-leaderctl` says of
//! commands that may outlive their terms does: no other znode tells of them.

use serde::{Deserialize, Serialize};

use crate::core::guard_messages::Takeover;
use crate::zookeeper::schema::json::{self, SchemaError, VERSION};

/// The name of the znode below the base.
pub const HISTORY: &str = "history";

/// How a term began, or ended, where the successor found the lease held.
pub const UNCLEAN: &str = Takeover::Unclean.word();

/// How a term ended if its own host wrote no end and the successor found the lease free: its guard released it.
const KILLED: &str = "killed, released";

/// The end of what a host writes of a term whose lease it could not release.
pub const NOT_RELEASED: &str = ", not released";
/// In its place if the next leader found the lease free: the answer to the release was lost, or the guard released it.
const RELEASED_LATER: &str = ", released later";
/// How a term began whose own host still held the lease, and knew that its command was dead: nobody released it.
const OWN_LEASE: &str = "own lease";

/// Number of terms kept.
pub(crate) const KEPT: usize = 50;

/// So far the clocks of two hosts may differ, in milliseconds.
const CLOCKS_DIFFER_BY: i64 = 600_000;

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug, Default)]
#[serde(default)]
pub struct Term {
    pub token: i64,
    /// With several leaders: the slot. Terms of different slots overlap.
    #[serde(skip_serializing_if = "is_first_slot")]
    pub slot: u16,
    /// Counts the terms of the slot.
    pub term: i32,
    pub id: String,
    pub host: String,
    /// Milliseconds since 1970.
    pub since: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
    /// How it began: `first`, `clean`, `unclean`, or `own lease` if the same host had not released the lease before.
    pub takeover: String,
    /// How it ended: a reason as in the log, with `, not released` or `, released later`; `killed, released` if the guard
    /// of a killed supervisor released the lease; `unclean` if its successor had to wait for the lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Only under at-least-one: for how long without contact its command may run, whoever leads meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pause_ms: Option<u64>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug, Default)]
pub struct History {
    pub v: u32,
    #[serde(default)]
    pub terms: Vec<Term>,
}

impl History {
    /// # Errors
    /// The reason why it cannot be parsed.
    pub fn read(data: &[u8]) -> Result<Self, SchemaError> {
        json::read(data, |history: &Self| history.v)
    }

    pub fn written(&self) -> Vec<u8> {
        json::written(&Self { v: VERSION, ..self.clone() })
    }

    /// Merges one term: a known beginning stays. An earlier term that is still open has ended by then, as
    /// `term.takeover` tells.
    pub fn put(&mut self, term: &Term) {
        if let Some(known) = self.terms.iter_mut().find(|known| known.token == term.token) {
            known.until = term.until.or(known.until);
            known.ended = term.ended.clone().or(known.ended.take());
        } else {
            let next = self.terms.iter().position(|known| known.is_next_after(term));
            let last_before = || self.terms.iter().rposition(|known| known.is_before(term)).map_or(0, |at| at + 1);
            self.terms.insert(next.unwrap_or_else(last_before), term.clone());
        }
        // First, because what follows compares each with each: a stranger may have written many.
        let surplus = self.terms.len().saturating_sub(KEPT);
        self.terms.drain(..surplus);
        for index in 1..self.terms.len() {
            let Some((before, [after, ..])) = self.terms.split_at_mut_checked(index) else { continue };
            let before = before.iter_mut().rfind(|before| before.slot == after.slot);
            if let Some(before) = before {
                before.end_at(after);
            }
        }
    }
}

impl Term {
    /// Tokens grow, also where the clocks of two hosts disagree and where a host writes its term down after the next one. They
    /// start lower again if the history was taken to another ensemble: then the later term has the lower token.
    fn is_before(&self, new: &Self) -> bool {
        self.token < new.token || self.since < new.since
    }

    /// Whether the other one, which is written down late, came right before this one, whatever the clocks of the two hosts say. In a
    /// history that was taken to another ensemble, the other one began long after it.
    fn is_next_after(&self, other: &Self) -> bool {
        let is_next = self.slot == other.slot && Some(self.term) == other.term.checked_add(1);
        is_next && self.token > other.token && other.since.saturating_sub(self.since) < CLOCKS_DIFFER_BY
    }

    /// Until when its command may run although a later term has begun; `None`: it does not. Its own host has not said that it has
    /// ended, and nobody has found its lease free. Whoever took the lease over did so after the last contact.
    pub fn outlives_until(&self, now: i64) -> Option<i64> {
        let is_told = self.ended.as_ref().is_some_and(|ended| ended != UNCLEAN);
        self.max_pause_ms.filter(|_| !is_told).map(|pause| later(self.until.unwrap_or(now), pause))
    }

    /// The same of the term before this one, which nobody has written down, if its pause is as long as ours.
    pub fn outlived_until(&self) -> Option<i64> {
        self.max_pause_ms.filter(|_| self.takeover == UNCLEAN && self.term > 1).map(|pause| later(self.since, pause))
    }

    /// What the beginning of the next term in its slot tells of its end.
    fn end_at(&mut self, next: &mut Self) {
        let is_clean = next.takeover == Takeover::Clean.word();
        let Some(ended) = &self.ended else {
            self.until = self.until.or(Some(next.since.max(self.since)));
            self.ended = Some(if is_clean { KILLED.to_owned() } else { next.takeover.clone() });
            return;
        };
        match ended.strip_suffix(NOT_RELEASED).filter(|_| is_clean) {
            Some(_) if (&self.id, &self.host) == (&next.id, &next.host) => OWN_LEASE.clone_into(&mut next.takeover),
            Some(why) => self.ended = Some(format!("{why}{RELEASED_LATER}")),
            None => {}
        }
    }

    /// The same term, whose own host has released its lease after all.
    #[must_use]
    pub fn released_later(mut self) -> Self {
        let why = self.ended.as_deref().and_then(|ended| ended.strip_suffix(NOT_RELEASED));
        self.ended = why.map(|why| format!("{why}{RELEASED_LATER}")).or(self.ended);
        self
    }
}

/// Whether the next leader wrote how a term ended, and when its own term began in place of the end.
pub fn is_told_by_the_next(ended: &str) -> bool {
    [UNCLEAN, KILLED, OWN_LEASE].contains(&ended)
}

/// A time, so many milliseconds later.
pub fn later(time: i64, pause: u64) -> i64 {
    time.saturating_add(i64::try_from(pause).unwrap_or(i64::MAX))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
fn is_first_slot(slot: &u16) -> bool {
    *slot == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(token: i64) -> Term {
        Term { token, id: "a".into(), since: token, takeover: "unclean".into(), ..Term::default() }
    }

    #[test]
    fn a_term_is_put_once_and_its_end_is_added() {
        let mut history = History::default();
        history.put(&term(1));
        history.put(&Term { until: Some(5), ended: Some("released".into()), ..term(1) });
        assert_eq!(history.terms.len(), 1);
        assert_eq!(history.terms[0].ended.as_deref(), Some("released"));
        assert_eq!(History::read(&history.written()).unwrap().terms, history.terms);
    }

    #[test]
    fn a_term_that_nobody_has_ended_is_ended_by_its_successor() {
        let mut history = History::default();
        history.put(&term(1));
        history.put(&term(7));
        assert_eq!((history.terms[0].until, history.terms[0].ended.as_deref()), (Some(7), Some("unclean")));
        assert_eq!(history.terms[1].ended, None);
    }

    /// Only its own host writes how a term ended. A successor that found the lease free knows only that it was
    /// released.
    #[test]
    fn a_term_whose_host_was_killed_did_not_end_cleanly_though_its_lease_was_released() {
        let mut history = History::default();
        history.put(&term(1));
        history.put(&Term { takeover: "clean".into(), ..term(7) });
        assert_eq!(history.terms[0].ended.as_deref(), Some("killed, released"));
    }

    /// The reply to the release was lost, or the guard released the lease after its supervisor had given up.
    #[test]
    fn a_term_is_not_called_unreleased_before_one_that_began_with_a_free_lease() {
        let unreleased = || Term { until: Some(5), ended: Some("lease-ending, not released".into()), ..term(1) };
        let next = Term { id: "b".into(), takeover: "clean".into(), ..term(7) };
        // The host may be back, and write its term down, after its successor.
        for terms in [[unreleased(), next.clone()], [next, unreleased()]] {
            let mut history = History::default();
            for term in &terms {
                history.put(term);
            }
            assert_eq!(history.terms[0].ended.as_deref(), Some("lease-ending, released later"));
            assert_eq!(history.terms[1].takeover, "clean");
        }
        let mut history = History::default();
        history.put(&unreleased());
        history.put(&Term { id: "b".into(), ..term(7) });
        assert_eq!(history.terms[0].ended.as_deref(), Some("lease-ending, not released"), "its lease had to run out");
    }

    /// It is known to have no command any more, and nobody else had the lease meanwhile.
    #[test]
    fn a_host_that_takes_up_its_own_lease_is_not_said_to_begin_cleanly() {
        let mut history = History::default();
        history.put(&Term { until: Some(5), ended: Some("session-over, not released".into()), ..term(1) });
        history.put(&Term { takeover: "clean".into(), ..term(7) });
        history.put(&Term { takeover: "clean".into(), until: Some(9), ended: Some("released".into()), ..term(7) });
        assert_eq!(history.terms[0].ended.as_deref(), Some("session-over, not released"));
        assert_eq!(
            (history.terms[1].takeover.as_str(), history.terms[1].ended.as_deref()),
            ("own lease", Some("released"))
        );
    }

    #[test]
    fn a_term_in_one_slot_does_not_end_one_in_another() {
        let mut history = History::default();
        for (token, slot) in [(1, 0), (2, 1), (3, 0)] {
            history.put(&Term { slot, ..term(token) });
        }
        let ended: Vec<_> = history.terms.iter().map(|term| term.ended.is_some()).collect();
        assert_eq!(ended, [true, false, false]);
    }

    /// Under at-least-one; another one has taken over, and released since.
    #[test]
    fn a_command_outlives_its_term_for_its_pause_unless_its_end_is_known() {
        let outlives = |pause, ended: Option<&str>, until| {
            let ended = ended.map(str::to_owned);
            Term { max_pause_ms: pause, until, ended, ..term(1) }.outlives_until(50)
        };
        assert_eq!(outlives(Some(9), Some("unclean"), Some(7)), Some(16));
        assert_eq!(outlives(Some(9), None, None), Some(59), "the next leader has not written yet that it has begun");
        for told in ["deposed, not released", "killed, released", "released", "own lease"] {
            assert_eq!(outlives(Some(9), Some(told), Some(7)), None, "{told}");
        }
        assert_eq!(outlives(None, Some("unclean"), Some(7)), None, "it died with its lease");
        assert_eq!(outlives(Some(u64::MAX), Some("unclean"), Some(7)), Some(i64::MAX));
        let before_it = |term: i32, takeover: &str| {
            Term { term, takeover: takeover.into(), since: 7, max_pause_ms: Some(9), ..Term::default() }
                .outlived_until()
        };
        assert_eq!([before_it(2, "unclean"), before_it(2, "clean"), before_it(1, "unclean")], [Some(16), None, None]);
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut history = History::default();
        (1..200).for_each(|token| history.put(&term(token)));
        assert_eq!((history.terms.len(), history.terms[0].token), (KEPT, 150));
    }

    /// The history was taken to another ensemble.
    #[test]
    fn a_later_term_with_a_lower_token_stands_last() {
        let mut history = History::default();
        history.put(&Term { until: Some(1800), ended: Some("released".into()), ..term(1771) });
        let open = Term { since: 2000, takeover: "first".into(), ..term(15) };
        history.put(&open);
        assert_eq!(history.terms.last(), Some(&open));
        history.put(&Term { since: 2100, ..term(19) });
        let tokens: Vec<_> = history.terms.iter().map(|term| (term.token, term.until)).collect();
        assert_eq!(tokens, [(1771, Some(1800)), (15, Some(2100)), (19, None)]);
        (0..50).for_each(|number| history.put(&term(1_000_000_000_000 + number)));
        let late = Term { since: 2_000_000_000_000, ..open };
        history.put(&late);
        assert_eq!((history.terms.len(), history.terms.last()), (KEPT, Some(&late)));
    }

    /// Else the term of the present leader would be told as ended.
    #[test]
    fn a_term_that_is_written_late_by_a_host_whose_clock_is_fast_stands_before_the_next_one() {
        let mut history = History::default();
        history.put(&Term { term: 2, ..term(12) });
        history.put(&Term { term: 1, since: 1012, ..term(10) });
        let told: Vec<_> = history.terms.iter().map(|term| (term.token, term.ended.is_some())).collect();
        assert_eq!(told, [(10, true), (12, false)]);
    }

    #[test]
    fn a_term_does_not_end_before_it_began_though_the_clocks_disagree() {
        let mut history = History::default();
        history.put(&term(10));
        history.put(&Term { since: 8, ..term(11) });
        let told: Vec<_> = history.terms.iter().map(|term| (term.token, term.until)).collect();
        assert_eq!(told, [(10, Some(10)), (11, None)]);
    }

    #[test]
    fn what_is_no_history_says_why() {
        for text in ["", "[]", r#"{"v":3}"#, r#"{"v":1,"terms":5}"#] {
            assert!(History::read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
