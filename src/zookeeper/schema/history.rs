//! The last terms in `<base>/history`, newest last: leader, start, end, and how the term ended.
//!
//! Times are of the hosts' own clocks and only for display; no decision rests on them.

use serde::{Deserialize, Serialize};

use crate::zookeeper::schema::json::{self, SchemaError, VERSION};

/// The name of the znode below the base.
pub const HISTORY: &str = "history";

/// How a term ended if its own host wrote no end and the successor found the lease free: its guard released it.
const KILLED: &str = "killed, released";

/// Number of terms kept.
pub(crate) const KEPT: usize = 50;

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
    /// How it began: `first`, `clean` or `unclean`.
    pub takeover: String,
    /// How it ended: a reason as in the log; `killed, released` if the guard of a killed supervisor released the lease;
    /// `unclean` if its successor had to wait for the lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
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
            self.terms.push(term.clone());
        }
        self.terms.sort_by_key(|term| term.token);
        // First, because what follows compares each with each: a stranger may have written many.
        let surplus = self.terms.len().saturating_sub(KEPT);
        self.terms.drain(..surplus);
        for index in 1..self.terms.len() {
            let Some((before, [after, ..])) = self.terms.split_at_mut_checked(index) else { continue };
            let before = before.iter_mut().rfind(|before| before.slot == after.slot);
            if let Some(open) = before.filter(|open| open.ended.is_none()) {
                open.until = open.until.or(Some(after.since));
                let killed = after.takeover == "clean";
                open.ended = Some(if killed { KILLED.to_owned() } else { after.takeover.clone() });
            }
        }
    }
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

    #[test]
    fn a_term_in_one_slot_does_not_end_one_in_another() {
        let mut history = History::default();
        for (token, slot) in [(1, 0), (2, 1), (3, 0)] {
            history.put(&Term { slot, ..term(token) });
        }
        let ended: Vec<_> = history.terms.iter().map(|term| term.ended.is_some()).collect();
        assert_eq!(ended, [true, false, false]);
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut history = History::default();
        (1..200).for_each(|token| history.put(&term(token)));
        assert_eq!((history.terms.len(), history.terms[0].token), (KEPT, 150));
    }

    #[test]
    fn what_is_no_history_says_why() {
        for text in ["", "[]", r#"{"v":3}"#, r#"{"v":1,"terms":5}"#] {
            assert!(History::read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
