//! A view of an election from outside: records, queue, members, orders. A znode that cannot be read is listed with the
//! reason.
//!
//! One look takes several round trips. In the end the terms and the records are read again: if others hold them by then, it
//! mixes two moments, and is taken anew. Each term is read before its record.

use std::collections::BTreeMap;
use std::pin::pin;

use futures_util::stream::{self, StreamExt as _};
use serde::Deserialize;

use crate::clock;
use crate::zookeeper::admin::{AdminClient, AdminError, Facts, Znode};
use crate::zookeeper::client::ensure_path::parent;
use crate::zookeeper::schema::candidate_name::{self, Names};
use crate::zookeeper::schema::control::drain::{DRAINS, Drain};
use crate::zookeeper::schema::control::{CONTROL, Disabled, Orders};
use crate::zookeeper::schema::history::{HISTORY, History, Term};
use crate::zookeeper::schema::json::SchemaError;
use crate::zookeeper::schema::lease::Lease;
use crate::zookeeper::schema::member::{MEMBERS, Member};
use crate::zookeeper::schema::paths::LAYOUT;
use crate::zookeeper::schema::queue;
use crate::zookeeper::schema::recipe;
use crate::zookeeper::schema::run_marker::{self, Run};

/// One slot: a lease record and its term. An election with one leader has one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SlotView {
    pub name: Option<String>,
    /// The path of its term, within the chroot.
    pub term_path: String,
    pub lease: Option<(Lease, Facts)>,
    pub term: Option<Facts>,
    /// When the lease ran out, by `ZooKeeper`'s clock; set only after the record was watched.
    pub overdue_since: Option<i64>,
}

/// A candidate with its place in the queue.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Candidate {
    pub name: String,
    pub id: String,
    pub facts: Facts,
}

/// The drain of one host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DrainView {
    pub host: String,
    pub drain: Drain,
    pub written_at: i64,
    /// In force, by our clock.
    pub is_in_force: bool,
}

/// The view of an election.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ElectionView {
    pub base: String,
    /// The directory of the candidates.
    pub directory: String,
    /// Candidates of other libraries may be in it.
    pub is_shared: bool,
    /// It is for jobs that run once for each scheduled time: it has markers of runs.
    pub has_runs: bool,
    /// The newest run of such a job.
    pub(crate) last_run: Option<Run>,
    /// In the order of the queue.
    pub line: Vec<Candidate>,
    pub slots: Vec<SlotView>,
    pub members: BTreeMap<String, (Member, Facts)>,
    /// The orders in force, by our clock.
    pub orders: Orders,
    /// Orders that have lapsed and still stand in the znode.
    pub lapsed: Orders,
    /// Version and write time of the orders' znode, if it exists; the time is by `ZooKeeper`'s clock.
    pub orders_written: Option<Facts>,
    /// The drains of hosts below the root of this election.
    pub drains: Vec<DrainView>,
    /// Children of the election directory that are not named like candidates.
    pub foreign: Vec<String>,
    /// A candidate of another library beside our own znodes: who made the election meant to join another one.
    pub stranger: Option<String>,
    /// The last terms, newest last: only under at-least-one, where a command may outlive its term.
    pub terms: Vec<Term>,
    /// Znodes that could not be read.
    pub unreadable: Vec<Unreadable>,
}

/// A znode that could not be read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Unreadable {
    pub path: String,
    /// The reason; for one that is forbidden, with the remedy.
    pub why: String,
    /// We have no right to read it. Else it makes no sense.
    pub is_forbidden: bool,
    /// It is of a format that only a newer version knows.
    pub is_newer: bool,
}

impl SlotView {
    /// The path of its lease record, within the chroot.
    pub fn lease_path(&self) -> String {
        format!("{}/lease", self.term_path.trim_end_matches("/term"))
    }

    /// The fencing token of its present term; 0: it cannot be read.
    pub fn token(&self) -> i64 {
        self.term.map_or(0, |term| term.mzxid)
    }

    /// Who holds it, in which term, and whether the holder waits. A renewal changes nothing of it.
    fn hold(&self) -> impl PartialEq + use<'_> {
        let lease = self.lease.as_ref().map(|(lease, _)| (lease.state, lease.waiting_on, &lease.holder));
        (&self.term_path, self.term, lease)
    }
}

impl ElectionView {
    /// What each member says of itself, by its id.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.values().map(|(member, _)| member)
    }

    /// The order that disables it, whether our clock says that it has lapsed or not.
    pub fn disabled(&self) -> Option<&Disabled> {
        self.orders.disabled.as_ref().or(self.lapsed.disabled.as_ref())
    }

    pub fn is_unreadable(&self, path: &str) -> bool {
        self.unreadable.iter().any(|unreadable| unreadable.path == path)
    }

    /// Whether the record of this slot is not there, and none was needed yet. Else a record that is missing is lost; so it is where the
    /// term is missing, too.
    pub fn was_never_led(&self, slot: &SlotView) -> bool {
        let is_there = slot.lease.is_some() || self.is_unreadable(&slot.lease_path());
        !is_there && slot.term.is_some_and(|term| term.version == 0)
    }
}

/// Whether these are the children of an election's base. A record or a term that was lost leaves others of our znodes; one or two of
/// these names may be anybody's.
pub(super) fn is_election(children: &[String]) -> bool {
    const CERTAIN: usize = 3;
    let has = |name: &str| children.iter().any(|child| child == name);
    has("lease") && has("term") || has("slots") || LAYOUT.iter().filter(|name| has(name)).count() >= CERTAIN
}

/// So many candidates or members of one election: thousands must be read within the time that a handover takes.
const ZNODES_AT_A_TIME: usize = 64;

/// Where leaders change faster than we look, the last look counts.
const LOOKS: usize = 3;

/// Reads the election under `base`; `None`: there is none.
///
/// # Errors
///
/// There is no answer.
pub async fn election(client: &AdminClient, base: &str) -> Result<Option<ElectionView>, AdminError> {
    let mut last = None;
    for _ in 0..LOOKS {
        let Some(children) = children_of_election(client, base).await? else { return Ok(None) };
        let mut seen = look(client, base, &children).await?;
        let slots = slots(client, base, &children, &mut Vec::new()).await?;
        if slots.iter().map(SlotView::hold).eq(seen.slots.iter().map(SlotView::hold)) {
            // Of the same holders, the latest renewals.
            seen.slots = slots;
            return Ok(Some(seen));
        }
        last = Some(seen);
    }
    Ok(last)
}

/// Reads the slots alone of the election under `base`; `None`: there is none.
///
/// # Errors
///
/// There is no answer.
pub async fn slots_of(client: &AdminClient, base: &str) -> Result<Option<Vec<SlotView>>, AdminError> {
    match children_of_election(client, base).await? {
        Some(children) => slots(client, base, &children, &mut Vec::new()).await.map(Some),
        None => Ok(None),
    }
}

async fn children_of_election(client: &AdminClient, base: &str) -> Result<Option<Vec<String>>, AdminError> {
    Ok(client.children(base).await?.filter(|children| is_election(children)))
}

async fn look(client: &AdminClient, base: &str, children: &[String]) -> Result<ElectionView, AdminError> {
    let has_runs = children.iter().any(|child| child == "runs");
    let stranger = children.iter().find(|child| candidate_name::is_of_a_library(child)).cloned();
    let mut seen = ElectionView { base: base.to_owned(), has_runs, stranger, ..ElectionView::default() };
    seen.slots = slots(client, base, children, &mut seen.unreadable).await?;
    let leases = || seen.slots.iter().filter_map(|slot| slot.lease.as_ref());
    let holders = leases().filter_map(|(lease, _)| lease.holder.as_ref()?.candidate.clone());
    let recipe = leases().find_map(|(lease, _)| recipe::meaning(lease.recipe.as_deref()?));
    let elsewhere = leases().find_map(|(lease, _)| lease.election.clone().filter(|path| is_path(path)));
    let names = Names { recipe: recipe.unwrap_or_default(), is_shared: elsewhere.is_some() };
    let is_outlived = leases().any(|(lease, _)| !lease.dies_in_time());
    let (directory, holders) = (elsewhere.unwrap_or_else(|| format!("{base}/election")), holders.collect::<Vec<_>>());
    (seen.line, seen.foreign) = queue(client, &directory, names, &holders).await?;
    (seen.directory, seen.is_shared) = (directory, names.is_shared);
    seen.members = members(client, base, &mut seen.unreadable).await?;
    if is_outlived {
        seen.terms = history(client, base).await?.and_then(Result::ok).unwrap_or_default().terms;
    }
    if has_runs {
        seen.last_run = last_run(client, base, &mut seen.unreadable).await?;
    }
    let path = format!("{base}/{CONTROL}");
    if let Some(znode) = client.read(&path).await? {
        seen.orders_written = Some(znode.facts);
        let mut given = parsed(&path, Orders::read(&znode.data), &mut seen.unreadable).unwrap_or_default();
        given.date(znode.facts.changed_at);
        seen.orders = given.in_force(clock::time_of_day());
        seen.lapsed = Orders {
            disabled: given.disabled.filter(|_| seen.orders.disabled.is_none()),
            handover: given.handover.filter(|_| seen.orders.handover.is_none()),
            ..Orders::default()
        };
    }
    seen.drains = drains(client, parent(base), &mut seen.unreadable).await?;
    Ok(seen)
}

/// The drains below a root, by host. One that we may not read is listed among the unreadable znodes.
///
/// # Errors
///
/// There is no answer.
pub async fn drains(
    client: &AdminClient,
    root: &str,
    unreadable: &mut Vec<Unreadable>,
) -> Result<Vec<DrainView>, AdminError> {
    let directory = format!("{root}/{DRAINS}");
    let mut hosts = match client.children(&directory).await {
        Ok(hosts) => hosts.unwrap_or_default(),
        Err(AdminError::Forbidden(why)) => {
            unreadable.push(Unreadable { path: directory, why, is_forbidden: true, is_newer: false });
            return Ok(Vec::new());
        }
        Err(failure) => return Err(failure),
    };
    hosts.sort();
    let mut drains = Vec::new();
    for host in hosts {
        let path = format!("{directory}/{host}");
        match client.read(&path).await {
            Ok(Some(Znode { data, facts })) => {
                let Some(drain) = parsed(&path, Drain::read(&data), unreadable) else { continue };
                let written_at = facts.changed_at;
                let is_in_force = drain.is_in_force(written_at, clock::time_of_day());
                drains.push(DrainView { host, drain, written_at, is_in_force });
            }
            Ok(None) => {}
            Err(AdminError::Forbidden(why)) => {
                unreadable.push(Unreadable { path, why, is_forbidden: true, is_newer: false });
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(drains)
}

/// The last terms, newest last; `None`: there is no history.
///
/// # Errors
///
/// There is no answer.
pub async fn history(client: &AdminClient, base: &str) -> Result<Option<Result<History, SchemaError>>, AdminError> {
    let znode = client.read(&format!("{base}/{HISTORY}")).await?;
    Ok(znode.map(|znode| History::read(&znode.data)))
}

/// The marker of the newest run of a job that runs once for each scheduled time.
pub(crate) fn last_run_path(base: &str) -> String {
    format!("{base}/runs/last")
}

/// The last runs of a job that runs once for each scheduled time, newest first.
///
/// # Errors
///
/// There is no answer.
pub(crate) async fn runs(client: &AdminClient, base: &str) -> Result<Vec<Run>, AdminError> {
    let znode = client.read(&last_run_path(base)).await?;
    Ok(znode.map_or_else(Vec::new, |znode| run_marker::listed(&znode.data)))
}

async fn last_run(
    client: &AdminClient,
    base: &str,
    unreadable: &mut Vec<Unreadable>,
) -> Result<Option<Run>, AdminError> {
    let path = last_run_path(base);
    let Some(znode) = client.read(&path).await? else { return Ok(None) };
    Ok(parsed(&path, run_marker::newest(&znode.data, znode.facts.changed_at), unreadable).flatten())
}

async fn slots(
    client: &AdminClient,
    base: &str,
    children: &[String],
    unreadable: &mut Vec<Unreadable>,
) -> Result<Vec<SlotView>, AdminError> {
    let mut places = Vec::new();
    if children.iter().any(|child| child == "slots") {
        let mut slots = client.children(&format!("{base}/slots")).await?.unwrap_or_default();
        slots.sort_by_key(|slot| (slot.parse().unwrap_or(u32::MAX), slot.clone()));
        places.extend(slots.into_iter().map(|slot| (format!("{base}/slots/{slot}"), Some(slot))));
    } else {
        places.push((base.to_owned(), None));
    }
    let mut slots = Vec::new();
    for (place, name) in places {
        let (term_path, lease_path) = (format!("{place}/term"), format!("{place}/lease"));
        let term = client.read(&term_path).await?.map(|term| term.facts);
        let lease = match client.read(&lease_path).await? {
            Some(znode) => parsed(&lease_path, Lease::read(&znode.data), unreadable).map(|lease| (lease, znode.facts)),
            None => None,
        };
        slots.push(SlotView { name, term_path, lease, term, overdue_since: None });
    }
    Ok(slots)
}

/// Whether the text is a valid path; any program may have written it.
fn is_path(text: &str) -> bool {
    let is_step = |step: &str| !matches!(step, "" | "." | "..") && !step.chars().any(char::is_control);
    text.strip_prefix('/').is_some_and(|steps| steps.split('/').all(is_step))
}

async fn queue(
    client: &AdminClient,
    directory: &str,
    names: Names,
    holders: &[String],
) -> Result<(Vec<Candidate>, Vec<String>), AdminError> {
    let holders: Vec<_> = holders.iter().map(String::as_str).collect();
    let (ordered, foreign) = queue::ordered(names, &client.children(directory).await?.unwrap_or_default(), &holders);
    let look_at = async |name: String| (client.read(&format!("{directory}/{name}")).await, name);
    let (mut queue, mut found) = (Vec::new(), pin!(stream::iter(ordered).map(look_at).buffered(ZNODES_AT_A_TIME)));
    while let Some((found, name)) = found.next().await {
        // It may have left since the children were read.
        if let Some(Znode { data, facts }) = found? {
            queue.push(Candidate { id: id_of(&data), name, facts });
        }
    }
    Ok((queue, foreign))
}

/// The participant id: plain text; with the single recipe, a field of JSON.
fn id_of(data: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Seat {
        id: String,
    }
    match serde_json::from_slice::<Seat>(data) {
        Ok(seat) => seat.id,
        Err(_) => String::from_utf8_lossy(data).into_owned(),
    }
}

async fn members(
    client: &AdminClient,
    base: &str,
    unreadable: &mut Vec<Unreadable>,
) -> Result<BTreeMap<String, (Member, Facts)>, AdminError> {
    let directory = format!("{base}/{MEMBERS}");
    let (mut members, ids) = (BTreeMap::new(), client.children(&directory).await?.unwrap_or_default());
    let look_at = async |id: String| (client.read(&format!("{directory}/{id}")).await, id);
    let mut found = pin!(stream::iter(ids).map(look_at).buffered(ZNODES_AT_A_TIME));
    while let Some((found, id)) = found.next().await {
        let Some(znode) = found? else { continue };
        let path = format!("{directory}/{id}");
        if let Some(member) = parsed(&path, Member::read(&znode.data), unreadable) {
            members.insert(id, (member, znode.facts));
        }
    }
    Ok(members)
}

fn parsed<T>(path: &str, read: Result<T, SchemaError>, unreadable: &mut Vec<Unreadable>) -> Option<T> {
    let unparsable = |why: SchemaError| {
        let is_newer = matches!(why, SchemaError::Version(_));
        Unreadable { path: path.to_owned(), why: why.to_string(), is_forbidden: false, is_newer }
    };
    read.map_err(|complaint| unreadable.push(unparsable(complaint))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_plain_text_or_stands_in_the_seats_json() {
        assert_eq!(id_of(b"host:1"), "host:1");
        assert_eq!(id_of(br#"{"v":1,"id":"host:1","nonce":"x"}"#), "host:1");
        assert_eq!(id_of(b"\xff{"), "\u{fffd}{");
    }

    #[test]
    fn an_election_that_has_lost_its_record_is_one_and_a_directory_of_others_is_none() {
        let is_election = |names: &str| super::is_election(&names.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for names in
            ["lease term", "slots", "term election members", "term members history", "election members history"]
        {
            assert!(is_election(names), "{names}");
        }
        let latch = "_c_9f1b-latch-0000000000 _c_9f1c-latch-0000000001 history members";
        for names in
            ["", "election", "term election", "lease members", "election members", "nightly weekly drains", latch]
        {
            assert!(!is_election(names), "{names}");
        }
    }

    #[test]
    fn what_a_record_names_as_the_place_of_its_candidates_is_a_path_or_is_ignored() {
        for path in ["/a", "/a/b", "/a b/.c"] {
            assert!(is_path(path), "{path:?}");
        }
        for text in ["", "/", "a", "a/b", "/a/", "//a", "/a/../b", "/.", "/a\nb", "/a\u{0}"] {
            assert!(!is_path(text), "{text:?}");
        }
    }
}
