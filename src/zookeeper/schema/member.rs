//! What a participant says about itself in `<base>/members/<id>`. It is for display; no decision rests on it.

use serde::{Deserialize, Serialize};

use crate::zookeeper::schema::json::{self, SchemaError, VERSION};

/// The name of the directory below the base.
pub const MEMBERS: &str = "members";

/// The JSON of one member. Unknown fields are ignored, missing ones are empty.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug, Default)]
#[serde(default)]
pub struct Member {
    pub v: u32,
    pub id: String,
    pub host: String,
    pub pid: u32,
    /// Version of the program.
    pub version: String,
    /// `leader` or `follower`.
    pub role: String,
    /// As in the log: `following`, `waiting`, `leading`, …
    pub phase: String,
    /// Start of this phase: milliseconds since 1970 by the member's own clock.
    pub since: i64,
    /// Whether it may be elected.
    pub eligible: bool,
    /// The reasons why it may not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why_not: Vec<String>,
    /// The verdict of its health command, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,
    /// The fencing token of the term that it leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<i64>,
    /// Its session timeout: the znode of a dead member may stay this long.
    pub session_ms: u64,
    /// Drawn at random by each process.
    pub instance: String,
}

impl Member {
    /// # Errors
    /// The reason why it cannot be parsed.
    pub fn read(data: &[u8]) -> Result<Self, SchemaError> {
        json::read(data, |member: &Self| member.v)
    }

    pub fn written(&self) -> Vec<u8> {
        json::written(&Self { v: VERSION, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_read_as_it_was_written_and_unknown_fields_are_ignored() {
        let member = Member { v: 1, id: "a".into(), eligible: true, why_not: vec!["x".into()], ..Member::default() };
        assert_eq!(Member::read(&member.written()), Ok(member));
        let read = Member::read(br#"{"v":1,"id":"b","shoe":44}"#).unwrap();
        assert_eq!((read.id.as_str(), read.eligible), ("b", false));
    }

    #[test]
    fn what_is_no_member_says_why() {
        for text in ["", "[]", "null", r#"{"v":2}"#, "{}", r#"{"v":1,"pid":-1}"#] {
            assert!(Member::read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
