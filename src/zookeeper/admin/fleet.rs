//! The elections below a root, as many at a time as a session bears.
//!
//! Never: a write.

use std::iter::successors;
use std::pin::pin;

use futures_util::stream::{self, StreamExt as _};

use crate::zookeeper::admin::view::{ElectionView, SlotView, election, is_election};
use crate::zookeeper::admin::{AdminClient, AdminError};
use crate::zookeeper::client::ensure_path::parent;
use crate::zookeeper::schema::control::drain::DRAINS;

/// So many elections are read at the same time over the one session: each takes about ten round trips.
const AT_A_TIME: usize = 16;

/// The children of a root.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Below {
    /// The root itself is an election.
    pub is_election: bool,
    pub names: Vec<String>,
    /// Znodes that we have no right to read.
    pub closed: Vec<String>,
}

/// The elections below a root, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct All {
    pub elections: Vec<(String, ElectionView)>,
    /// Those that we have no right to read.
    pub closed: Vec<String>,
}

/// The elections below `root`; `None`: it does not exist.
///
/// # Errors
///
/// There is no answer, or every znode is closed to us.
pub async fn elections(client: &AdminClient, root: &str) -> Result<Option<Below>, AdminError> {
    let Some(children) = client.children(root).await? else { return Ok(None) };
    let (mut below, mut refused) = (Below { is_election: is_election(&children), ..Below::default() }, None);
    let look_into = async |name: String| (client.children(&format!("{root}/{name}")).await, name);
    let mut found = pin!(stream::iter(children).map(look_into).buffered(AT_A_TIME));
    while let Some((found, name)) = found.next().await {
        match found {
            Ok(Some(children)) if is_election(&children) => below.names.push(name),
            Ok(_) => {}
            // No election.
            Err(AdminError::Forbidden(_)) if name == DRAINS => {}
            Err(forbidden @ AdminError::Forbidden(_)) => {
                below.closed.push(name);
                refused = Some(forbidden);
            }
            Err(failure) => return Err(failure),
        }
    }
    below.names.sort();
    below.closed.sort();
    // Report a missing right only if no election could be read.
    refused.filter(|_| below.names.is_empty()).map_or(Ok(Some(below)), Err)
}

/// Reads these elections below `root`, in this order.
///
/// # Errors
///
/// There is no answer about one of them.
pub async fn all(client: &AdminClient, root: &str, names: Vec<String>) -> Result<All, AdminError> {
    let look_at = async |name: String| (election(client, &format!("{root}/{name}")).await, name);
    let mut found = pin!(stream::iter(names).map(look_at).buffered(AT_A_TIME));
    let mut all = All::default();
    while let Some((found, name)) = found.next().await {
        match found {
            Ok(Some(election)) => all.elections.push((name, election)),
            // It was deleted between two reads.
            Ok(None) => {}
            Err(AdminError::Forbidden(_)) => all.closed.push(name),
            Err(failure) => return Err(failure),
        }
    }
    Ok(all)
}

/// The election that a znode belongs to, if it does: the highest place above it with a record and a term, as each slot of several leaders
/// has them, too. What is closed to us is taken for none.
///
/// # Errors
///
/// There is no answer.
pub async fn owner_of(client: &AdminClient, path: &str) -> Result<Option<String>, AdminError> {
    let is_there = async |znode: String| match client.read(&znode).await {
        Ok(found) => Ok(found.is_some()),
        Err(AdminError::Forbidden(_)) => Ok(false),
        Err(failure) => Err(failure),
    };
    let places = successors(Some(path), |path| Some(parent(path)).filter(|parent| !parent.is_empty()));
    for place in places.collect::<Vec<_>>().into_iter().rev() {
        if is_there(format!("{place}/term")).await? && is_there(format!("{place}/lease")).await? {
            return Ok(Some(place.to_owned()));
        }
    }
    Ok(None)
}

/// Reads these elections again. One that is gone by now, or closed to us, stays as it was seen. What was found out about a
/// record holds as long as nobody writes it.
///
/// # Errors
///
/// There is no answer about one of them.
pub async fn look_again(client: &AdminClient, elections: Vec<&mut ElectionView>) -> Result<(), AdminError> {
    let bases: Vec<_> = elections.iter().map(|seen| seen.base.clone()).collect();
    let look_at = async |base: String| election(client, &base).await;
    let mut found = pin!(stream::iter(bases).map(look_at).buffered(AT_A_TIME));
    for seen in elections {
        let mut again = match found.next().await {
            Some(Ok(Some(again))) => again,
            Some(Ok(None) | Err(AdminError::Forbidden(_))) | None => continue,
            Some(Err(failure)) => return Err(failure),
        };
        for slot in &mut again.slots {
            let is_same = |old: &&SlotView| old.term_path == slot.term_path && old.lease == slot.lease;
            slot.overdue_since = seen.slots.iter().find(is_same).and_then(|old| old.overdue_since);
        }
        *seen = again;
    }
    Ok(())
}
