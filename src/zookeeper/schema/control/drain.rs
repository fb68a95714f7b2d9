//! An operator drains a host, in `<root>/drains/<host>`: in every election below this root, its leaders hand over and its
//! standbys are not eligible, as long as another host could take over.
//!
//! A drain counts from the last write of its znode, by `ZooKeeper`'s clock. Like every order it only stops and delays.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::moment::moment;
use super::remedy::{about_host, word};
use super::{UNTIL_ENDED, ends_at, span};
use crate::zookeeper::schema::json::{self, SchemaError, VERSION};

/// The name of the directory below a root.
pub const DRAINS: &str = "drains";

/// The JSON of the znode. Unknown fields are ignored.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug, Default)]
pub struct Drain {
    pub v: u32,
    /// Unique for each order.
    pub order: String,
    #[serde(default)]
    pub reason: String,
    /// The operator, for status reports.
    #[serde(default)]
    pub by: String,
    /// For how long; `None`: until it is withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<u64>,
    /// Obeyed even if no other host could take over.
    #[serde(default)]
    pub force: bool,
}

impl Drain {
    /// # Errors
    ///
    /// The reason why it cannot be parsed; then it orders nothing.
    pub fn read(data: &[u8]) -> Result<Self, SchemaError> {
        let drain: Self = json::read(data, |drain: &Self| drain.v)?;
        let drain = Self { reason: json::cut(&drain.reason), by: json::cut(&drain.by), ..drain };
        if drain.order.is_empty() { Err(SchemaError::OrderWithoutId) } else { Ok(drain) }
    }

    pub fn written(&self) -> Vec<u8> {
        json::written(&Self { v: VERSION, ..self.clone() })
    }

    /// By `ZooKeeper`'s clock; `None`: it has no limit.
    pub fn ends_at(&self, written_at: i64) -> Option<i64> {
        ends_at(Some(written_at), self.for_ms?)
    }

    /// `now`: by `ZooKeeper`'s clock.
    pub fn is_in_force(&self, written_at: i64, now: i64) -> bool {
        self.ends_at(written_at).is_none_or(|end| now < end)
    }

    /// Operator, end and reason.
    pub fn said(&self, written_at: i64) -> String {
        format!("by {} {}: {:?}", self.by, self.end(written_at), self.reason)
    }

    /// `until 2026-11-21 03:00:00 UTC`, `until somebody ends it`.
    pub fn end(&self, written_at: i64) -> String {
        self.ends_at(written_at).map_or_else(|| UNTIL_ENDED.to_owned(), |end| format!("until {}", moment(end)))
    }

    /// What orders the same, even if no other host could take over.
    pub fn forced(&self, host: &str, root: &str) -> String {
        let reason = if self.reason.is_empty() { "forced" } else { &self.reason };
        let lasts = self.lasts().map_or_else(String::new, |it| format!(" --for {}", word(&span(it).to_string())));
        format!("{} --force --reason {}{lasts}", about_host("drain", host, root), word(reason))
    }

    pub fn lasts(&self) -> Option<Duration> {
        self.for_ms.map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_is_read_as_it_was_written_and_says_who_why_and_until_when() {
        let drain = Drain {
            v: 1,
            order: "1".into(),
            reason: "kernel".into(),
            by: "root@adm".into(),
            for_ms: Some(7_200_000),
            force: true,
        };
        assert_eq!(Drain::read(&drain.written()), Ok(drain.clone()));
        assert_eq!(drain.ends_at(1_795_222_800_000), Some(1_795_230_000_000));
        assert_eq!(drain.said(1_795_222_800_000), "by root@adm until 2026-11-21 03:00:00 UTC: \"kernel\"");
        let open = Drain { for_ms: None, ..drain };
        assert_eq!((open.ends_at(5), open.said(5).as_str()), (None, "by root@adm until somebody ends it: \"kernel\""));
        let eternal = Drain { for_ms: Some(u64::MAX), ..open };
        assert!(eternal.ends_at(5) == Some(i64::MAX) && !eternal.said(5).is_empty());
    }

    /// Of whoever may write it.
    #[test]
    fn a_text_that_is_too_long_is_not_kept() {
        let drain =
            Drain { order: "1".into(), reason: "\u{7f}".repeat(200_000), by: "b".repeat(3000), ..Drain::default() };
        let read = Drain::read(&drain.written()).unwrap();
        assert_eq!((read.reason.len(), read.by.len()), (2048, 2048));
    }

    #[test]
    fn what_is_no_drain_says_why() {
        for text in ["", "[]", "{}", r#"{"v":1}"#, r#"{"v":2,"order":"1"}"#, r#"{"v":1,"order":""}"#] {
            assert!(Drain::read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
