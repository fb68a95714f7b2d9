//! A new order where one stands already, of whichever operator.
//!
//! Never: an order that ends earlier than was said, or loses its `--force`, without a word.

use std::time::Duration;

use serde_json::{Value, json};

use crate::commands::CommandError;
use crate::core::time::milliseconds;
use crate::zookeeper::schema::control::Disabled;
use crate::zookeeper::schema::control::drain::Drain;

/// The order that stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::commands) struct Present {
    by: String,
    /// `until …`
    end: String,
    reason: String,
    /// By `ZooKeeper`'s clock, milliseconds since 1970.
    given_at: i64,
    /// `None`: it has no limit.
    ends_at: Option<i64>,
    /// Of a drain.
    force: Option<bool>,
}

impl Present {
    pub fn disabled(order: &Disabled) -> Self {
        let (by, end, reason) = (order.by.clone(), order.end(), order.reason.clone());
        let given_at = order.since.unwrap_or_default();
        Self { by, end, reason, given_at, ends_at: order.ends_at(), force: None }
    }

    pub fn drain(drain: &Drain, written_at: i64) -> Self {
        let (by, end, reason) = (drain.by.clone(), drain.end(written_at), drain.reason.clone());
        Self { by, end, reason, given_at: written_at, ends_at: drain.ends_at(written_at), force: Some(drain.force) }
    }

    /// Operator, end and reason.
    pub fn said(&self) -> String {
        format!("the order of {} {}: {:?}", self.by, self.end, self.reason)
    }

    /// For programs, with the names of `status`.
    pub fn json(&self) -> Value {
        let Self { by, reason, given_at, ends_at, force, .. } = self;
        match force {
            None => json!({ "by": by, "reason": reason, "since": given_at, "until": ends_at }),
            Some(force) => json!({ "by": by, "reason": reason, "since": given_at, "until": ends_at, "force": force }),
        }
    }

    /// Whether it ends by itself.
    pub fn may_lapse(&self) -> bool {
        self.ends_at.is_some()
    }

    /// Whether it is in force at this time of day. If that is not known, it is.
    pub fn stands_at(&self, now: Option<i64>) -> bool {
        self.ends_at.zip(now).is_none_or(|(end, now)| now < end)
    }

    /// Whether a new order, given now, may take its place: `remedy` ends this one.
    pub fn gives_way(&self, now: i64, lasts: Option<Duration>, force: bool, remedy: &str) -> Result<(), CommandError> {
        let lacks = match () {
            () if self.ends_before(now, lasts) => "would end earlier than",
            () if self.force == Some(true) && !force => "lacks the --force of",
            () => return Ok(()),
        };
        let sentence = format!("refused: this order {lacks} {}; {remedy} ends that one", self.said());
        Err(CommandError::refused(sentence))
    }

    /// No later order counts from an earlier time, whatever the clock says.
    fn ends_before(&self, now: i64, lasts: Option<Duration>) -> bool {
        let Some(lasts) = lasts.map(milliseconds) else { return false };
        let end = now.max(self.given_at).saturating_add(lasts);
        self.ends_at.is_none_or(|present| end < present)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;
    const NOW: i64 = 1_795_226_400_000;

    fn drain(for_ms: Option<u64>, force: bool) -> Present {
        let (by, reason) = ("anna@adm".into(), "restore".into());
        Present::drain(&Drain { reason, by, for_ms, force, ..Drain::default() }, NOW)
    }

    #[test]
    fn an_order_gives_way_only_to_one_that_ends_no_earlier_and_is_forced_if_it_is() {
        let gives_way = |present: (Option<u64>, bool), lasts: Option<u64>, force| {
            drain(present.0, present.1).gives_way(NOW, lasts.map(Duration::from_millis), force, "R").is_ok()
        };
        assert!(!gives_way((Some(HOUR), false), Some(3000), false), "it would end in 3 s");
        assert!(!gives_way((None, false), Some(HOUR), false), "it has no limit");
        assert!(gives_way((Some(HOUR), false), Some(HOUR), false), "the same, given anew");
        assert!(gives_way((Some(HOUR), false), None, false) && gives_way((None, false), None, false));
        assert!(!gives_way((Some(HOUR), true), Some(HOUR), false) && gives_way((Some(HOUR), true), None, true));
        assert!(gives_way((Some(HOUR), false), Some(HOUR), true));
    }

    #[test]
    fn a_clock_that_is_slow_does_not_make_the_same_order_end_earlier() {
        let mut present = drain(Some(HOUR), false);
        present.given_at += 600_000;
        present.ends_at = present.ends_at.map(|end| end + 600_000);
        assert!(present.gives_way(NOW, Some(Duration::from_millis(HOUR)), false, "R").is_ok());
    }

    #[test]
    fn an_order_stands_until_it_is_known_to_have_lapsed() {
        let (hour, open) = (drain(Some(HOUR), false), drain(None, false));
        let end = NOW + i64::try_from(HOUR).unwrap();
        assert!(hour.stands_at(Some(end - 1)) && !hour.stands_at(Some(end)) && hour.stands_at(None));
        assert!(open.stands_at(Some(i64::MAX)) && open.stands_at(None));
    }

    #[test]
    fn a_refusal_says_whose_order_stands_and_what_ends_it() {
        let refused = drain(None, true).gives_way(NOW, Some(Duration::from_secs(3)), false, "zk-leaderctl undrain db1");
        let sentence = "refused: this order would end earlier than the order of anna@adm until somebody ends it: \"restore\"; \
                        zk-leaderctl undrain db1 ends that one";
        assert_eq!(refused, Err(CommandError::refused(sentence)));
        let refused = drain(None, true).gives_way(NOW, None, false, "R").unwrap_err().sentence;
        assert!(refused.starts_with("refused: this order lacks the --force of the order of anna@adm"), "{refused}");
    }
}
