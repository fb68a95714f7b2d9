//! The JSON of the lease record and of the term. Unreadable contents count as held for the longest possible lease. No
//! content may cause a panic or a shorter wait.

use std::time::Duration;

use crate::zookeeper::client::connection::Stat;
use serde::{Deserialize, Serialize};

use crate::core::action::Entry;
use crate::core::event::{LastRun, Nonce, Record};
use crate::core::lease::LEASE_LONGEST;
use crate::core::order::Slot;
use crate::core::settings::Guarantee;
use crate::zookeeper::schema::recipe;
use crate::zookeeper::schema::settings::Settings;

const VERSION: u32 = 1;

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "lowercase")]
enum State {
    Held,
    Free,
}

/// The writer of the record; empty in a record that was never held.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug, Default)]
struct Holder {
    #[serde(default)]
    id: String,
    #[serde(default)]
    host: String,
    #[serde(default)]
    pid: u32,
    #[serde(default)]
    nonce: String,
    /// The name of its candidate. The holder of a slot stands first in the queue, whatever the priorities of the
    /// others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    candidate: Option<String>,
}

#[derive(Serialize, Deserialize, Debug)]
struct LeaseJson {
    v: u32,
    state: State,
    #[serde(default)]
    holder: Option<Holder>,
    lease_ms: u64,
    /// Only while the holder waits: the mzxid of the last version under which a command may have run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waiting_on: Option<i64>,
    /// The nonce of the holder of that version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waiting_for: Option<String>,
    #[serde(default)]
    token: Option<i64>,
    #[serde(default)]
    guarantee: Option<String>,
    #[serde(default)]
    recipe: Option<String>,
    #[serde(default)]
    leaders: Option<u16>,
    /// Where the candidates are, within the chroot, if not in `<base>/election`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    election: Option<String>,
}

#[derive(Serialize, Deserialize, Debug)]
struct TermJson {
    v: u32,
    #[serde(default)]
    leader: Option<Holder>,
    lease_ms: u64,
}

/// A record as it was read, and what was wrong with it.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub record: Record,
    /// The candidate of the holder.
    pub candidate: Option<String>,
    /// The id of the holder.
    pub id: Option<String>,
    /// The settings in which the writer and we differ.
    pub disagreement: Option<String>,
    pub complaint: Option<String>,
}

/// Reads the lease record of a slot.
pub(crate) fn parse(slot: Slot, data: &[u8], stat: &Stat, settings: &Settings) -> Parsed {
    let unreadable = Record {
        slot,
        version: stat.version,
        mzxid: stat.mzxid,
        held: true,
        waiting_on: None,
        lease: LEASE_LONGEST,
        nonce: Nonce::UNKNOWN,
        agrees: true,
    };
    match parse_lease(data) {
        Ok(json) => {
            let held = json.state == State::Held;
            let disagreement = disagreement(&json, settings);
            let nonce = json.waiting_for.as_deref().and_then(parse_nonce).unwrap_or(Nonce::UNKNOWN);
            let last_run = |mzxid| LastRun { mzxid, nonce };
            let record = Record {
                held,
                // A version that does not exist yet is nonsense.
                waiting_on: json.waiting_on.filter(|&mzxid| held && 0 < mzxid && mzxid < stat.mzxid).map(last_run),
                lease: Duration::from_millis(json.lease_ms).min(LEASE_LONGEST),
                nonce: json.holder.as_ref().and_then(|holder| parse_nonce(&holder.nonce)).unwrap_or(Nonce::UNKNOWN),
                agrees: disagreement.is_none(),
                ..unreadable
            };
            let holder = json.holder.filter(|_| held).unwrap_or_default();
            let id = Some(holder.id).filter(|id| !id.is_empty());
            Parsed { record, candidate: holder.candidate, id, disagreement, complaint: None }
        }
        Err(complaint) => {
            Parsed { record: unreadable, candidate: None, id: None, disagreement: None, complaint: Some(complaint) }
        }
    }
}

/// The lease in a term; `None` if it cannot be read.
pub(crate) fn lease_of_term(data: &[u8]) -> Option<Duration> {
    let json: TermJson = serde_json::from_slice(data).ok()?;
    let readable = json.v == VERSION && json.lease_ms > 0;
    readable.then(|| Duration::from_millis(json.lease_ms).min(LEASE_LONGEST))
}

/// The record that a take-over or a renewal of this candidate writes.
pub(crate) fn held(entry: &Entry, candidate: &str, settings: &Settings) -> Vec<u8> {
    let holder = Holder { candidate: Some(candidate.to_owned()), ..holder(entry.nonce, settings) };
    encode(&LeaseJson {
        waiting_on: entry.waiting_on.map(|last_run| last_run.mzxid),
        waiting_for: entry.waiting_on.map(|last_run| nonce_text(last_run.nonce)),
        ..lease_json(State::Held, Some(holder), entry.lease, entry.token, settings)
    })
}

/// The record that a release writes. It keeps the nonce, which tells our release from another's when the reply was
/// lost.
pub(crate) fn released(entry: &Entry, settings: &Settings) -> Vec<u8> {
    encode(&lease_json(State::Free, Some(holder(entry.nonce, settings)), entry.lease, entry.token, settings))
}

/// The free record of a new base.
pub(crate) fn never_held(own_lease: Duration, settings: &Settings) -> Vec<u8> {
    encode(&lease_json(State::Free, None, own_lease, None, settings))
}

/// The record that replaces a lost one: its holder may still run.
pub(crate) fn held_by_unknown(lease: Duration, settings: &Settings) -> Vec<u8> {
    encode(&lease_json(State::Held, None, lease, None, settings))
}

/// The term that a take-over writes, with the longest lease that may run during it.
pub(crate) fn term(nonce: Nonce, longest: Duration, settings: &Settings) -> Vec<u8> {
    encode(&TermJson { v: VERSION, leader: Some(holder(nonce, settings)), lease_ms: milliseconds(longest) })
}

/// The term of a new base, or the replacement of a lost one.
pub(crate) fn term_of_nobody(lease: Duration) -> Vec<u8> {
    encode(&TermJson { v: VERSION, leader: None, lease_ms: milliseconds(lease) })
}

/// `<instance hex16>-<sending>`.
pub(crate) fn nonce_text(nonce: Nonce) -> String {
    format!("{:016x}-{}", nonce.instance, nonce.sending)
}

fn parse_nonce(text: &str) -> Option<Nonce> {
    let (instance, sending) = text.split_once('-')?;
    let instance = u64::from_str_radix(instance, 16).ok().filter(|_| instance.len() == 16)?;
    Some(Nonce { instance, sending: sending.parse().ok()? })
}

fn parse_lease(data: &[u8]) -> Result<LeaseJson, String> {
    let json: LeaseJson = serde_json::from_slice(data).map_err(|error| error.to_string())?;
    match json {
        LeaseJson { v, .. } if v != VERSION => Err(format!("its format is version {v}")),
        LeaseJson { state: State::Held, lease_ms: 0, .. } => Err("it is held with a lease of 0 ms".to_owned()),
        json => Ok(json),
    }
}

/// A field that the record lacks does not disagree.
fn disagreement(json: &LeaseJson, settings: &Settings) -> Option<String> {
    let leaders = json.leaders.map(|leaders| leaders.to_string());
    // If a recipe has two names, use ours.
    let recipe = json.recipe.as_deref().map(|name| recipe::meaning(name).map_or(name, |recipe| recipe::text(recipe)));
    let choices = [
        ("--leaders", leaders.as_deref(), settings.leaders.to_string().as_str()),
        ("--guarantee", json.guarantee.as_deref(), guarantee_text(settings.guarantee)),
        ("--election-path", json.election.as_deref().or(Some(OWN)), election(settings).unwrap_or(OWN)),
        ("--recipe", recipe, recipe::text(settings.recipe)),
    ]
    .map(|(option, theirs, ours)| {
        theirs.filter(|theirs| *theirs != ours).map(|theirs| format!("{option} is {ours} here and {theirs} there"))
    });
    let holder = json.holder.as_ref().filter(|holder| !holder.host.is_empty());
    let there = holder.map_or_else(String::new, |holder| format!(" ({} on {})", holder.id, holder.host));
    choices.into_iter().flatten().next().map(|said| said + &there)
}

fn lease_json(
    state: State,
    holder: Option<Holder>,
    lease: Duration,
    token: Option<i64>,
    settings: &Settings,
) -> LeaseJson {
    LeaseJson {
        v: VERSION,
        state,
        holder,
        lease_ms: milliseconds(lease),
        waiting_on: None,
        waiting_for: None,
        token,
        guarantee: Some(guarantee_text(settings.guarantee).to_owned()),
        recipe: Some(recipe::text(settings.recipe).to_owned()),
        leaders: Some(settings.leaders),
        election: election(settings).map(str::to_owned),
    }
}

fn holder(nonce: Nonce, settings: &Settings) -> Holder {
    Holder {
        id: settings.id.clone(),
        host: settings.host.clone(),
        pid: settings.pid,
        nonce: nonce_text(nonce),
        candidate: None,
    }
}

/// How a message names the default directory. Records leave it out, so that older versions agree.
const OWN: &str = "not given";

fn election(settings: &Settings) -> Option<&str> {
    settings.is_shared.then_some(settings.election.as_str())
}

fn guarantee_text(guarantee: Guarantee) -> &'static str {
    match guarantee {
        Guarantee::AtMostOne => "at-most-one",
        Guarantee::AtLeastOne => "at-least-one",
    }
}

/// Rounded up: a successor must never wait less than we may run.
fn milliseconds(lease: Duration) -> u64 {
    u64::try_from(lease.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Plain structs of numbers and strings always serialize.
fn encode(json: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(json).unwrap_or_default()
}

#[cfg(test)]
mod tests;
