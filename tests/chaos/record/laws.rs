//! What the design allows a host to write (docs/design.md, The lease). `ZooKeeper` carries out what it is asked, also what a host
//! must not ask: such a history is linearizable, and this file is what refuses it.
//!
//! Contents that are no JSON say nothing. Never: a look at what the hosts said of themselves elsewhere.

use serde_json::Value;

use super::judge::Which;
use super::protocol::Op;
use super::stream::Nanos;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Law {
    Conditional,
    Candidate,
    Term,
    Holder,
    Wait,
}

impl Law {
    pub const ALL: [Self; 5] = [Self::Conditional, Self::Candidate, Self::Term, Self::Holder, Self::Wait];

    pub const fn broken(self) -> &'static str {
        match self {
            Self::Conditional => "a write that is not conditional on the versions of record and term",
            Self::Candidate => "a lease that is not conditional on its holder's candidate",
            Self::Term => "a new holder that begins no term",
            Self::Holder => "a record renewed or freed by who does not hold it",
            Self::Wait => "a lease that begins before the last one is over",
        }
    }
}

/// When a write was asked for, and the address of the host that did; empty where it is not known.
#[derive(Clone, Debug)]
pub struct Asked {
    pub at: Nanos,
    pub host: String,
}

/// What a record does not say of itself.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Past {
    last_run: Option<LastRun>,
    /// The host that wrote this, with a nonce of its own.
    holder: Option<(Option<String>, String)>,
}

/// The last version of a record under which a command may have run.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct LastRun {
    /// `None`: of nobody knows whom.
    instance: Option<String>,
    /// Before this, that version was not there.
    since: Nanos,
    lease: Nanos,
}

/// The records before a write.
#[derive(Clone, Copy)]
pub struct Before<'a> {
    pub lease: Option<&'a str>,
    /// Of the present term, if it was told.
    pub token: Option<i64>,
    pub past: &'a Past,
}

/// A lease record, as far as a law speaks of it.
struct Content {
    is_held: bool,
    lease: Nanos,
    nonce: Option<String>,
    candidate: Option<String>,
    waiting_on: Option<i64>,
    waiting_for: Option<String>,
    token: Option<i64>,
}

impl Content {
    fn of(data: &str) -> Option<Self> {
        let json: Value = serde_json::from_str(data).ok()?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(Self {
            is_held: json.get("state")? == "held",
            lease: json.get("lease_ms")?.as_i64()? * 1_000_000,
            nonce: text(&json["holder"]["nonce"]),
            candidate: text(&json["holder"]["candidate"]),
            waiting_on: json["waiting_on"].as_i64(),
            waiting_for: text(&json["waiting_for"]),
            token: json["token"].as_i64(),
        })
    }

    fn instance(&self) -> Option<String> {
        self.nonce.as_ref().and_then(|nonce| nonce.split_once('-')).map(|(instance, _)| instance.to_owned())
    }
}

/// The token of the lease that a write of this content gives back.
pub fn gives_back(data: &str) -> Option<i64> {
    Content::of(data).filter(|content| !content.is_held)?.token
}

impl Past {
    /// After a write of this content.
    pub fn after(&self, data: &str, by: &Asked) -> Self {
        let Some(content) = Content::of(data) else { return self.clone() };
        let last_run = match (content.is_held, content.waiting_on) {
            (true, None) => Some(LastRun { instance: content.instance(), since: by.at, lease: content.lease }),
            (true, Some(_)) => self.last_run.clone(),
            (false, _) => None,
        };
        let is_known = self.holder.as_ref().is_some_and(|(nonce, _)| *nonce == content.nonce);
        let holder = if is_known { self.holder.clone() } else { Some((content.nonce, by.host.clone())) };
        Self { last_run, holder }
    }

    /// Whether this host took the lease with this nonce, as far as is known.
    fn is_of(&self, nonce: Option<&String>, by: &Asked) -> bool {
        let known = self.holder.as_ref().filter(|(of, host)| of.as_ref() == nonce && !host.is_empty());
        known.is_none_or(|(_, host)| *host == by.host)
    }
}

/// Whether this write, on these records, keeps a law.
pub fn keeps(law: Law, known: Before, ops: &[(Which, Op)], by: &Asked) -> bool {
    let set = |of: Which| {
        ops.iter().find_map(|(which, op)| match op {
            Op::Set { data, version, .. } if *which == of => Some((data, *version)),
            _ => None,
        })
    };
    let Some((data, version)) = set(Which::Lease) else {
        return law != Law::Conditional || set(Which::Term).is_none();
    };
    if law == Law::Conditional {
        let is_fixed = |(which, op): &(Which, Op)| {
            *which == Which::Term && matches!(op, Op::Set { version, .. } | Op::Check { version, .. } if *version >= 0)
        };
        return version >= 0 && ops.iter().any(is_fixed);
    }
    let (Some(after), Some(before)) = (Content::of(data), known.lease) else { return true };
    let Some(before) = Content::of(before) else { return true };
    let is_new = after.is_held && after.nonce != before.nonce;
    match law {
        Law::Candidate => !after.is_held || after.candidate.is_some_and(|name| is_checked(ops, &name)),
        Law::Term => !is_new || set(Which::Term).is_some_and(|(term, _)| leader(term) == after.nonce),
        Law::Holder if is_new => true,
        Law::Holder => {
            let is_own = before.is_held && after.nonce == before.nonce && known.past.is_of(after.nonce.as_ref(), by);
            let is_of_term = after.token.zip(known.token).is_none_or(|(said, token)| said == token);
            let is_waited_for = !after.is_held && before.waiting_for.is_some() && before.waiting_for == after.nonce;
            // Made anew after it was lost, in this term, whose releaser has seen its tree end: nobody else may have one.
            let is_made_anew = before.is_held && before.nonce.is_none() && !after.is_held;
            let is_of_last_tree = is_made_anew && after.token.is_some() && after.token == known.token;
            set(Which::Term).is_none() && (is_own && is_of_term || is_waited_for || is_of_last_tree)
        }
        Law::Wait if after.is_held && after.waiting_on.is_none() => known.past.last_run.as_ref().is_none_or(|last| {
            let is_own = last.instance.is_some() && last.instance == after.instance();
            is_own || by.at >= last.since + last.lease
        }),
        Law::Conditional | Law::Wait => true,
    }
}

/// Checked or, with several leaders, touched.
fn is_checked(ops: &[(Which, Op)], candidate: &str) -> bool {
    let is_it = |path: &str| path.rsplit_once('/').is_some_and(|(_, name)| name == candidate);
    ops.iter().any(|(_, op)| matches!(op, Op::Check { path, .. } | Op::Set { path, .. } if is_it(path)))
}

/// The nonce of a term's leader.
fn leader(term: &str) -> Option<String> {
    let json: Value = serde_json::from_str(term).ok()?;
    json["leader"]["nonce"].as_str().map(str::to_owned)
}

#[cfg(test)]
#[path = "laws_tests.rs"]
mod laws_tests;
