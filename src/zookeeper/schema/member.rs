//! What a participant says about itself in `<base>/members/<id>`. It is for display; the only decisions that rest
//! on it are whether a drained host gives way, for how long others make room for the target of a handover, and whom a
//! leader asks to vouch for it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::zookeeper::schema::json::{self, SchemaError, VERSION};
use crate::zookeeper::schema::vouching::{Neighbour, parse_instance};

/// The name of the directory below the base.
pub const MEMBERS: &str = "members";

/// Why a member whose host is drained may not lead.
pub const DRAINED: &str = "drained";

/// What stays the same for as long as a participant lives.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug, Default)]
#[serde(default)]
pub struct About {
    /// The containment in force: `subreaper`, `cgroup` or `pid-namespace`. Empty: an earlier build did not say so.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub contain: String,
    /// The file name of the command. Empty: not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// `--meta`, for whoever looks for the service.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
}

/// The JSON of one member. Unknown fields are ignored, missing ones are empty.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug, Default)]
#[serde(default)]
pub struct Member {
    pub v: u32,
    pub id: String,
    pub host: String,
    pub pid: u32,
    /// Where `pid` names a process: the PID namespace, and the boot of the kernel. Empty: not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pid_namespace: String,
    /// Version of the program.
    pub version: String,
    #[serde(flatten)]
    pub about: About,
    /// `armed`: the guard, and a kernel timer behind it, hold the deadline of a tree that may live. `ready`: the guard lives, and
    /// there is no tree. `gone`: the guard is dead, and its tree is being killed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub protection: String,
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
    /// An operator drains its host; it may still be eligible, if no other host could take over.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub drained: bool,
    /// The fencing token of the term that it leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<i64>,
    /// That of the last term that it led, and leads no more: what it says of itself was written after the end of that term.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<i64>,
    /// Its session timeout: the znode of a dead member may stay this long.
    pub session_ms: u64,
    /// Drawn at random by each process.
    pub instance: String,
    /// Where other hosts can ask it for a promise: `ip:port`. Empty: it does not vouch.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub vouch: String,
}

impl Member {
    /// # Errors
    /// The reason why it cannot be parsed.
    pub fn read(data: &[u8]) -> Result<Self, SchemaError> {
        json::read(data, |member: &Self| member.v)
    }

    /// Whether it says that it may not be elected, or why.
    pub fn is_barred(&self) -> bool {
        !self.eligible || !self.why_not.is_empty()
    }

    /// Whether it could lead in the place of a participant on this host that is drained.
    pub fn can_replace(&self, host: &str) -> bool {
        !self.host.is_empty() && self.host != host && self.eligible && !self.drained
    }

    /// How other hosts reach it, if it vouches.
    pub fn neighbour(&self) -> Option<Neighbour> {
        let (instance, address) = (parse_instance(&self.instance)?, self.vouch.parse().ok()?);
        Some(Neighbour { instance, id: json::cut(&self.id), address })
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
        let meta = [("a".to_owned(), "b:1".to_owned())].into();
        let about = About { contain: "cgroup".into(), program: "job".into(), meta };
        let member =
            Member { v: 1, id: "a".into(), eligible: true, why_not: vec!["x".into()], about, ..Member::default() };
        assert_eq!(Member::read(&member.written()), Ok(member));
        let read = Member::read(br#"{"v":1,"id":"b","shoe":44}"#).unwrap();
        assert_eq!((read.id.as_str(), read.eligible, read.protection.as_str()), ("b", false, ""));
        assert_eq!(read.about, About::default());
    }

    #[test]
    fn only_an_eligible_member_of_a_host_that_is_not_drained_can_replace_another() {
        let member = Member { host: "b".into(), eligible: true, ..Member::default() };
        assert!(member.can_replace("a") && !member.can_replace("b"));
        assert!(!Member { eligible: false, ..member.clone() }.can_replace("a"));
        assert!(!Member { drained: true, ..member.clone() }.can_replace("a"));
        assert!(!Member { host: String::new(), ..member }.can_replace("a"));
    }

    #[test]
    fn a_member_that_vouches_says_where_it_is_asked() {
        let member = Member { instance: "000000000000000b".into(), vouch: "10.0.0.2:47".into(), ..Member::default() };
        let read = Member::read(&member.written()).unwrap().neighbour();
        assert_eq!(read.map(|host| (host.instance, host.address.to_string())), Some((11, "10.0.0.2:47".to_owned())));
        for (instance, vouch) in [("b", "10.0.0.2:47"), ("000000000000000b", ""), ("000000000000000b", "web2:47")] {
            let member = Member { instance: instance.into(), vouch: vouch.into(), ..Member::default() };
            assert_eq!(member.neighbour(), None, "{instance} {vouch}");
        }
    }

    #[test]
    fn what_is_no_member_says_why() {
        for text in ["", "[]", "null", r#"{"v":2}"#, "{}", r#"{"v":1,"pid":-1}"#] {
            assert!(Member::read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
