//! Who could take over and can be asked for a promise: the members of the first candidates in line. Only a host that vouches
//! asks. It reads when a candidate or a member comes or goes, and tells what has changed.
//!
//! It decides nothing: which of them a leader needs is decided by `core::vouching`.

use std::sync::Weak;
use std::time::Duration;

use futures_util::future::{join_all, select_all};
use tokio::time::{sleep, timeout};

use super::{COALESCED, backoff, done, pause};
use crate::core::vouching::Roster;
use crate::zookeeper::client::connection::{Error, Stat, Watcher};
use crate::zookeeper::client::error::{RequestError, if_there, if_there_at};
use crate::zookeeper::election::secret;
use crate::zookeeper::election::session::contact::{Contact, LOOK_AGAIN};
use crate::zookeeper::schema::member::{MEMBERS, Member};
use crate::zookeeper::schema::queue;
use crate::zookeeper::schema::vouching::Neighbour;

/// So many candidates are asked who they are: several times a roster, as members without the option are in line too.
const ASKED: usize = 4 * Roster::LONGEST;
/// Where one of our znodes is missing and being made.
const MISSING: Duration = Duration::from_secs(1);

/// Keeps what we know of the neighbours up to date until it is dropped.
pub(super) async fn follow(contact: Weak<Contact>) {
    let begun = contact.upgrade().map(|contact| (backoff(&contact), contact.shared.settings.vouch.is_some()));
    let Some((mut backoff, true)) = begun else { return };
    while let Some(present) = contact.upgrade() {
        let read = done(&present.shared, "The hosts that could vouch for us cannot be read", read(&present)).await;
        drop(present);
        let Some(watchers) = read else {
            sleep(pause(&mut backoff)).await;
            continue;
        };
        backoff.reset();
        let patience = if watchers.len() == WATCHES { LOOK_AGAIN } else { MISSING };
        changed(watchers, patience).await;
        sleep(COALESCED).await;
    }
}

/// On the base, the secret, the candidates and the members.
const WATCHES: usize = 4;

async fn changed(watchers: Vec<Watcher>, patience: Duration) {
    if watchers.is_empty() {
        return sleep(patience).await;
    }
    let changes = watchers.into_iter().map(|watcher| Box::pin(watcher.changed()));
    drop(timeout(patience, select_all(changes)).await);
}

/// Reads all, with a watch on each that exists. Of the candidates and members, only comings and goings count.
async fn read(contact: &Contact) -> Result<Vec<Watcher>, RequestError> {
    let (client, paths) = (&contact.client, &contact.shared.paths);
    let members = format!("{}/{MEMBERS}", paths.base);
    let base = client.get_and_watch_children(&paths.base);
    let of_line = client.get_and_watch_children(&paths.election);
    let of_members = client.get_and_watch_children(&members);
    let (base, of_line, of_members) = tokio::join!(base, of_line, of_members);
    let mut watchers = Vec::new();
    if let Some((_, stat, watcher)) = if_there_at(&paths.base, base)? {
        watchers.push(watcher);
        watchers.extend(secret::read(contact, stat.czxid).await?);
    }
    let children = if_there_at(&paths.election, of_line)?.map(|(children, _, watcher)| {
        watchers.push(watcher);
        children
    });
    watchers.extend(if_there_at(&members, of_members)?.map(|(_, _, watcher)| watcher));
    let names = contact.shared.settings.names();
    let (line, _) = queue::ordered(names, &children.unwrap_or_default(), &[]);
    contact.shared.lined_up(neighbours(contact, &members, &line).await?);
    Ok(watchers)
}

/// The members of the first candidates, if they can be asked: not ourselves.
async fn neighbours(contact: &Contact, members: &str, line: &[String]) -> Result<Vec<Neighbour>, RequestError> {
    let own = contact.shared.settings.instance;
    let found = line.iter().take(ASKED).map(|name| neighbour(contact, members, name));
    let found = join_all(found).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(found.into_iter().flatten().filter(|host| host.instance != own).collect())
}

/// A candidate says its id, which names its member.
async fn neighbour(contact: &Contact, members: &str, candidate: &str) -> Result<Option<Neighbour>, RequestError> {
    let found = if_there(contact.client.get_data(&contact.shared.paths.candidate(candidate)).await)?;
    let Some((id, Stat { ephemeral_owner, .. })) = found else { return Ok(None) };
    match contact.client.get_data(&format!("{members}/{}", String::from_utf8_lossy(&id))).await {
        Ok((data, stat)) => Ok(of_session(ephemeral_owner, &data, &stat)),
        Err(Error::NoNode | Error::BadArguments(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The member, if it can be asked. One of another session is of another process.
fn of_session(owner: i64, data: &[u8], stat: &Stat) -> Option<Neighbour> {
    Member::read(data).ok().filter(|_| stat.ephemeral_owner == owner)?.neighbour()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zookeeper::testing::stat;

    #[test]
    fn a_member_of_another_session_than_its_candidate_is_not_asked() {
        let member = Member { instance: "000000000000000b".into(), vouch: "10.0.0.2:47".into(), ..Member::default() };
        let stat = Stat { ephemeral_owner: 5, ..stat() };
        let asked = |owner| of_session(owner, &member.written(), &stat).map(|host| host.instance);
        assert_eq!((asked(5), asked(6), asked(0)), (Some(11), None, None));
    }
}
