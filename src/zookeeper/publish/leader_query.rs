//! Reads who leads and our place in the queue, for status messages. Writes and watches nothing; the machine does not
//! use the result.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::timeout;

use crate::core::settings::Recipe;
use crate::zookeeper::client::error::{RequestError, if_there};
use crate::zookeeper::election::read::{self, SlotState};
use crate::zookeeper::election::session::companion::Companion;
use crate::zookeeper::election::session::contact::Contact;
use crate::zookeeper::election::shared::Shared;
use crate::zookeeper::schema::queue::{self, Holder};

/// Without an answer within this time we count as disconnected.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct LeaderQuery(Arc<Shared>, Arc<Companion>);

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaderReport {
    /// Our place in the queue, from 1; `None` if we are not in it, or the recipe has none.
    pub place: Option<u32>,
    /// The holder of the lease record.
    pub leader: Option<Leader>,
}

/// The holder, as its lease record describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leader {
    /// `None`: the record counts as held, and was lost or cannot be read.
    pub id: Option<String>,
    /// The start of its term, by `ZooKeeper`'s clock: milliseconds since 1970.
    pub since: i64,
    /// Its candidate is not in line any more, and its command may live on promises.
    pub is_away: bool,
}

impl LeaderQuery {
    pub(crate) fn new(shared: Arc<Shared>, companion: Arc<Companion>) -> Self {
        Self(shared, companion)
    }

    /// The configured servers.
    pub fn servers(&self) -> &str {
        &self.0.settings.servers
    }

    /// The base of the election, within the chroot.
    pub fn base(&self) -> &str {
        &self.0.settings.base
    }

    /// `None` without a connection. One round of reads.
    pub async fn look(&self) -> Option<LeaderReport> {
        let contact = self.1.newest()?;
        let read = AssertUnwindSafe(timeout(PATIENCE, read(&contact))).catch_unwind();
        match read.await {
            Ok(Ok(Ok(survey))) => Some(survey),
            // The client library panics on replies that are too short.
            Ok(Ok(Err(_)) | Err(_)) | Err(_) => None,
        }
    }
}

async fn read(contact: &Contact) -> Result<LeaderReport, RequestError> {
    let round = read::round(contact);
    let children = contact.client.get_children(&contact.shared.paths.election);
    let (round, children) = tokio::join!(round, children);
    // Before the first host is in line there is nothing.
    let children = if_there(children)?.map(|(children, _)| children).unwrap_or_default();
    let Some(slots) = read::judge(contact, round).await? else { return Ok(LeaderReport { place: None, leader: None }) };
    // With several leaders: all of them, since the start of the earliest term.
    let held = || slots.iter().filter(|state| state.holder != Holder::Nobody);
    let ids: Vec<_> = held().filter_map(|state| state.id.clone()).collect();
    let id = Some(ids.join(", ")).filter(|ids| !ids.is_empty());
    let is_away = slots.iter().any(|state| may_live_without(&children, state));
    let leader = held().map(|state| state.begun_at).min().map(|since| Leader { id, since, is_away });
    let leader =
        if contact.shared.settings.is_shared { first(contact, &children, &slots, leader).await? } else { leader };
    Ok(LeaderReport { place: place(contact, &children, &slots), leader })
}

/// Its holder has lost its session, and may live on what others promise.
fn may_live_without(children: &[String], state: &SlotState) -> bool {
    let is_gone = matches!(&state.holder, Holder::Candidate { name, .. } if !children.contains(name));
    is_gone && state.record.vouching.is_some()
}

/// In an election shared with other libraries the first candidate leads. The record may be the last leader's, which was
/// left to run out.
async fn first(
    contact: &Contact,
    children: &[String],
    slots: &[SlotState],
    leader: Option<Leader>,
) -> Result<Option<Leader>, RequestError> {
    let names = contact.shared.settings.names();
    let Some(first) = queue::in_order(names, children).into_iter().next() else { return Ok(None) };
    if slots.iter().any(|state| matches!(&state.holder, Holder::Candidate { name, .. } if *name == first)) {
        return Ok(leader);
    }
    let found = if_there(contact.client.get_data(&contact.shared.paths.candidate(&first)).await)?;
    Ok(found.map(|(data, stat)| {
        let id = String::from_utf8_lossy(&data).into_owned();
        let id = if id.is_empty() { first } else { id };
        Leader { id: Some(id), since: stat.ctime, is_away: false }
    }))
}

fn place(contact: &Contact, children: &[String], slots: &[SlotState]) -> Option<u32> {
    if contact.shared.settings.recipe == Recipe::Single {
        return None;
    }
    let (own, uuid) = contact.shared.own(contact.number)?;
    let holders: Vec<_> = slots.iter().map(|state| state.holder.clone()).collect();
    let standing = queue::standing(contact.shared.settings.names(), children, &own, &[uuid], &holders)?;
    Some(u32::try_from(standing.rank).unwrap_or(u32::MAX).saturating_add(1))
}
