//! The JSON of the lease record and of the term. Unreadable contents count as held for the longest possible lease. No
//! content may cause a panic or a shorter wait.

pub(crate) mod pending_fences;

use std::time::Duration;

use crate::zookeeper::client::connection::Stat;
use serde::{Deserialize, Deserializer, Serialize};

use crate::core::action::Entry;
use crate::core::event::{LastRun, Nonce, Record};
use crate::core::guard_messages::Slot;
use crate::core::lease::LEASE_LONGEST;
use crate::core::settings::Guarantee;
use crate::core::vouching::{LIMIT_LONGEST, Roster, Vouching};
use crate::zookeeper::schema::json::{self, SchemaError, VERSION};
use crate::zookeeper::schema::recipe;
use crate::zookeeper::schema::settings::Settings;
use crate::zookeeper::schema::vouching::{Neighbour, Neighbourhood, instance_text, parse_instance};

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Held,
    Free,
}

/// The writer of the record; empty in a record that was never held.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug, Default)]
#[serde(default)]
pub struct Holder {
    pub id: String,
    pub host: String,
    pub pid: u32,
    pub nonce: String,
    /// The name of its candidate. The holder of a slot stands first in the queue, whatever the priorities of the
    /// others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<String>,
    /// The file name of its command, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

impl Holder {
    /// For people; `None` if it is not known.
    pub fn name(&self) -> Option<String> {
        match (self.id.as_str(), self.host.as_str()) {
            ("", _) => None,
            (id, host) if host.is_empty() || id == host => Some(id.to_owned()),
            (id, host) => Some(format!("{id} on {host}")),
        }
    }
}

/// An earlier leader that was not fenced yet, from its record.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug, Default)]
#[serde(default)]
pub struct PendingFence {
    pub id: String,
    pub host: String,
    pub pid: u32,
    pub nonce: String,
    pub token: i64,
}

impl PendingFence {
    /// One line of JSON for the fence command's standard input.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// The lease record. Unknown fields are ignored.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Lease {
    v: u32,
    pub state: State,
    #[serde(default)]
    pub holder: Option<Holder>,
    pub lease_ms: u64,
    /// Only while the holder waits: the mzxid of the last version under which a command may have run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_on: Option<i64>,
    /// The nonce of the holder of that version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waiting_for: Option<String>,
    #[serde(default)]
    pub token: Option<i64>,
    #[serde(default)]
    pub guarantee: Option<String>,
    #[serde(default)]
    pub recipe: Option<String>,
    #[serde(default)]
    pub leaders: Option<u16>,
    /// Where the candidates are, within the chroot, if not in `<base>/election`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub election: Option<String>,
    /// The earlier leaders that must be fenced before a command is started under this record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfenced: Vec<PendingFence>,
    /// How long after this write the command may live on promises. `None`: not at all.
    #[serde(default, deserialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub vouch_ms: Option<u64>,
    /// Whose promises it needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roster: Vec<Voucher>,
}

/// A host whose promise the holder needs.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug, Default)]
#[serde(default)]
pub struct Voucher {
    /// 16 hexadecimal digits.
    pub instance: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// Where it can be asked: `ip:port`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
}

/// The leader of a term, and how long a command may run after a write during it.
#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct Term {
    v: u32,
    #[serde(default)]
    pub leader: Option<Holder>,
    lease_ms: u64,
    /// F of the leader. `None`: it does not live on promises.
    #[serde(default, deserialize_with = "number", skip_serializing_if = "Option::is_none")]
    vouch_ms: Option<u64>,
}

/// For how long a command may run after a write that nobody can read any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Longest {
    pub lease: Duration,
    /// On promises, of whomever. `None`: not at all.
    pub vouched: Option<Duration>,
}

/// A record as it was read.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub record: Record,
    /// What it says, or why it could not be read.
    pub lease: Result<Lease, SchemaError>,
    /// The settings in which the writer and we differ.
    pub disagreement: Option<String>,
}

impl Parsed {
    /// The holder of a held record, as far as it is known.
    pub fn holder(&self) -> Option<&Holder> {
        self.lease.as_ref().ok().filter(|lease| lease.is_held())?.holder.as_ref()
    }

    /// It cannot be read. So it counts as a lost one: its command may live on promises for this long, and nobody knows whose.
    pub fn count_as_lost(&mut self, vouched: Option<Duration>) {
        self.record.vouching = vouched.map(|limit| Vouching { limit, roster: Roster::EMPTY });
    }
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
        token: 0,
        vouching: None,
        agrees: true,
    };
    let lease = Lease::read(data);
    let Ok(json) = &lease else { return Parsed { record: unreadable, lease, disagreement: None } };
    let disagreement = disagreement(json, settings);
    let nonce = |text: Option<&str>| text.and_then(parse_nonce).unwrap_or(Nonce::UNKNOWN);
    let last_run = |mzxid| LastRun { mzxid, nonce: nonce(json.waiting_for.as_deref()) };
    let record = Record {
        held: json.is_held(),
        // A version that does not exist yet is nonsense.
        waiting_on: json.waiting_on.filter(|&mzxid| json.is_held() && 0 < mzxid && mzxid < stat.mzxid).map(last_run),
        lease: Duration::from_millis(json.lease_ms).min(LEASE_LONGEST),
        nonce: nonce(json.holder.as_ref().map(|holder| holder.nonce.as_str())),
        token: json.token_of(stat),
        vouching: json.vouching(),
        agrees: disagreement.is_none(),
        ..unreadable
    };
    Parsed { record, lease, disagreement }
}

/// What a term says; `None` if it cannot be read.
pub(crate) fn longest_of_term(data: &[u8]) -> Option<Longest> {
    let term = Term::read(data).ok().filter(|term| term.lease_ms > 0)?;
    Some(Longest { lease: Duration::from_millis(term.lease_ms).min(LEASE_LONGEST), vouched: term.vouch_ms.map(limit) })
}

/// The record that a take-over or a renewal of this candidate writes. Only one that does not wait names a roster.
pub(crate) fn held(
    entry: &Entry,
    candidate: &str,
    unfenced: Vec<PendingFence>,
    known: &Neighbourhood,
    settings: &Settings,
) -> Vec<u8> {
    let vouching = entry.vouching.filter(|_| entry.waiting_on.is_none());
    let holder = Holder { candidate: Some(candidate.to_owned()), ..holder(entry.nonce, settings) };
    json::written(&Lease {
        waiting_on: entry.waiting_on.map(|last_run| last_run.mzxid),
        waiting_for: entry.waiting_on.map(|last_run| nonce_text(last_run.nonce)),
        unfenced,
        roster: vouching.map(|vouching| roster(vouching.roster, known)).unwrap_or_default(),
        ..Lease::new(State::Held, Some(holder), entry.lease, entry.token, settings)
            .vouched(vouching.map(|vouching| vouching.limit))
    })
}

/// The record that a release writes. It keeps the nonce, which tells our release from another's when the reply was
/// lost.
pub(crate) fn released(entry: &Entry, settings: &Settings) -> Vec<u8> {
    json::written(&Lease::new(State::Free, Some(holder(entry.nonce, settings)), entry.lease, entry.token, settings))
}

/// The free record of a new base.
pub(crate) fn never_held(own_lease: Duration, settings: &Settings) -> Vec<u8> {
    json::written(&Lease::new(State::Free, None, own_lease, None, settings))
}

/// The record that replaces a lost one: its holder may still run.
pub(crate) fn held_by_unknown(longest: Longest, settings: &Settings) -> Vec<u8> {
    json::written(&Lease::new(State::Held, None, longest.lease, None, settings).vouched(longest.vouched))
}

/// The term that a take-over writes, with how long a command may run after any write of it.
pub(crate) fn term(nonce: Nonce, longest: Longest, settings: &Settings) -> Vec<u8> {
    json::written(&Term { leader: Some(holder(nonce, settings)), ..Term::new(longest) })
}

/// The term of a new base, or the replacement of a lost one.
pub(crate) fn term_of_nobody(longest: Longest) -> Vec<u8> {
    json::written(&Term::new(longest))
}

/// `<instance hex16>-<sending>`.
pub(crate) fn nonce_text(nonce: Nonce) -> String {
    format!("{}-{}", instance_text(nonce.instance), nonce.sending)
}

fn parse_nonce(text: &str) -> Option<Nonce> {
    let (instance, sending) = text.split_once('-')?;
    Some(Nonce { instance: parse_instance(instance)?, sending: sending.parse().ok()? })
}

impl Lease {
    /// # Errors
    /// The reason why it cannot be parsed.
    pub fn read(data: &[u8]) -> Result<Self, SchemaError> {
        let lease: Self = json::read(data, |lease: &Self| lease.v)?;
        let vouched = lease.guarantee.as_deref() == Some(VOUCHED);
        match lease.state {
            State::Held if lease.lease_ms == 0 => Err(SchemaError::NoLease),
            // Without the limit, the wait would be shorter.
            State::Held if vouched && lease.vouch_ms.is_none() => Err(SchemaError::NoLimit),
            State::Held | State::Free => Ok(lease),
        }
    }

    pub fn is_held(&self) -> bool {
        self.state == State::Held
    }

    /// Whether no command lives longer than its lease, or than the promises for it: under at-least-one it may.
    pub fn dies_in_time(&self) -> bool {
        self.guarantee.as_deref().is_some_and(|text| meaning_of_guarantee(text) == guarantee_text(Guarantee::AtMostOne))
    }

    /// Who wrote it. `None`: it was never held, or is held and was made anew in place of one that was lost.
    pub fn known_holder(&self) -> Option<&Holder> {
        self.holder.as_ref().filter(|holder| !holder.id.is_empty())
    }

    /// For how long after this write its command may run: the lease, or F of a holder that lives on promises.
    pub fn longest(&self) -> Duration {
        let lease = Duration::from_millis(self.lease_ms).min(LEASE_LONGEST);
        self.vouching().map_or(lease, |vouching| vouching.limit.max(lease))
    }

    /// The hosts of the roster that can be reached.
    pub(crate) fn neighbours(&self) -> impl Iterator<Item = Neighbour> + '_ {
        self.roster.iter().take(Roster::LONGEST).filter_map(|voucher| {
            let (instance, address) = (parse_instance(&voucher.instance)?, voucher.address.parse().ok()?);
            Some(Neighbour { instance, id: json::cut(&voucher.id), address })
        })
    }

    fn new(state: State, holder: Option<Holder>, lease: Duration, token: Option<i64>, settings: &Settings) -> Self {
        Self {
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
            unfenced: Vec::new(),
            vouch_ms: None,
            roster: Vec::new(),
        }
    }

    /// Whose command may live on promises for this long. Versions that know of no rosters refuse it.
    fn vouched(self, limit: Option<Duration>) -> Self {
        let guarantee = if limit.is_some() { Some(VOUCHED.to_owned()) } else { self.guarantee };
        Self { guarantee, vouch_ms: limit.map(milliseconds), ..self }
    }

    /// A take-over cannot name its own zxid, which is the token of the term that it begins.
    fn token_of(&self, stat: &Stat) -> i64 {
        let of_a_take_over = || self.holder.as_ref().filter(|_| self.is_held()).map(|_| stat.mzxid);
        self.token.or_else(of_a_take_over).unwrap_or_default()
    }

    /// Whatever else it says. A roster that cannot be read names nobody, so that whoever reads it waits for the limit.
    fn vouching(&self) -> Option<Vouching> {
        let written = self.vouch_ms.filter(|_| self.is_held())?;
        let instances: Option<Roster> = self.roster.iter().map(|voucher| parse_instance(&voucher.instance)).collect();
        Some(Vouching { limit: limit(written), roster: instances.unwrap_or_default() })
    }
}

fn roster(roster: Roster, known: &Neighbourhood) -> Vec<Voucher> {
    let voucher = |instance| {
        let (id, address) =
            known.of(instance).map(|host| (host.id.clone(), host.address.to_string())).unwrap_or_default();
        Voucher { instance: instance_text(instance), id, address }
    };
    roster.iter().map(voucher).collect()
}

/// A limit that is there and is no number makes the whole unreadable: without it, the wait would be shorter.
fn number<'de, D: Deserializer<'de>>(field: D) -> Result<Option<u64>, D::Error> {
    u64::deserialize(field).map(Some)
}

fn limit(written_ms: u64) -> Duration {
    Duration::from_millis(written_ms).min(LIMIT_LONGEST)
}

impl Term {
    fn new(longest: Longest) -> Self {
        let Longest { lease, vouched } = longest;
        Self { v: VERSION, leader: None, lease_ms: milliseconds(lease), vouch_ms: vouched.map(milliseconds) }
    }

    pub fn read(data: &[u8]) -> Result<Self, SchemaError> {
        json::read(data, |term: &Self| term.v)
    }
}

/// A field that the record lacks does not disagree.
fn disagreement(json: &Lease, settings: &Settings) -> Option<String> {
    let leaders = json.leaders.map(|leaders| leaders.to_string());
    // If a recipe has two names, use ours.
    let recipe = json.recipe.as_deref().map(|name| recipe::meaning(name).map_or(name, |recipe| recipe::text(recipe)));
    let choices = [
        ("--leaders", leaders.as_deref(), settings.leaders.to_string().as_str()),
        ("--guarantee", json.guarantee.as_deref().map(meaning_of_guarantee), guarantee_text(settings.guarantee)),
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

fn holder(nonce: Nonce, settings: &Settings) -> Holder {
    Holder {
        id: settings.id.clone(),
        host: settings.host.clone(),
        pid: settings.pid,
        nonce: nonce_text(nonce),
        candidate: None,
        program: Some(settings.about.program.clone()).filter(|program| !program.is_empty()),
    }
}

/// How a message names the default directory. Records leave it out, so that older versions agree.
const OWN: &str = "not given";

fn election(settings: &Settings) -> Option<&str> {
    settings.is_shared.then_some(settings.election.as_str())
}

/// The guarantee of a record with a roster: at-most-one. Versions before rosters compare texts, and refuse it.
const VOUCHED: &str = "at-most-one, vouched";

fn meaning_of_guarantee(text: &str) -> &str {
    if text == VOUCHED { guarantee_text(Guarantee::AtMostOne) } else { text }
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

#[cfg(test)]
mod tests;
