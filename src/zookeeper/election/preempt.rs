//! Preemption (`--preempt-after`): the next in the queue asks a leader of lower priority to hand over. The request is
//! one ephemeral znode beside the records. Only the holder watches the children there, so no other host is woken.
//!
//! The request lets no command start. It names the term that is to end, and is void for every other.

use std::sync::Arc;

use crate::zookeeper::client::connection::{Error, MultiError};
use serde::{Deserialize, Serialize};

use crate::core::action::Conditions;
use crate::core::guard_messages::Slot;
use crate::zookeeper::client::error::{Part, PathAccess, RequestError, Right, if_there};
use crate::zookeeper::client::requests::ANY_VERSION;
use crate::zookeeper::election::read::{self, ROUNDS};
use crate::zookeeper::election::session::contact::Contact;
use crate::zookeeper::schema::json::{self, SchemaError, VERSION};
use crate::zookeeper::schema::queue::{self, Standing};

/// The name of the znode below the base.
const PREEMPTION: &str = "preemption";

/// The JSON of the znode. Unknown fields are ignored.
#[derive(Serialize, Deserialize, Debug)]
struct Request {
    v: u32,
    /// The fencing token of the term that is to end.
    token: i64,
    /// The id of the requester, for display.
    #[serde(default)]
    by: String,
    #[serde(default)]
    priority: i16,
}

/// Asks the leader to hand over if we are still next in the queue and its priority is still lower.
pub(crate) async fn ask(contact: Arc<Contact>) -> Result<(), RequestError> {
    for _ in 0..ROUNDS {
        let Some((name, conditions, token)) = outranked(&contact).await? else {
            tracing::debug!("The leader is not asked to hand over: we are not next in line, or no leader is lower");
            return Ok(());
        };
        match create(&contact, &name, conditions, token).await {
            Ok(()) => {
                tracing::info!(token, "The leader's priority is lower: it was asked to hand over to us");
                return Ok(());
            }
            Err(MultiError::OperationFailed { source: Error::NodeExists, .. }) => {
                if !clear(&contact, token).await? {
                    return Ok(());
                }
            }
            Err(error) => {
                let candidate = contact.shared.paths.candidate(&name);
                let term = contact.shared.paths.of(conditions.slot).term;
                let steps =
                    [PathAccess(Part::Candidate, Right::Read, &candidate), PathAccess(Part::Term, Right::Read, &term)];
                return Err(RequestError::of_multi(&error, &steps).without(Right::Create, &contact.shared.paths.base));
            }
        }
    }
    Err(read::too_many_rounds())
}

/// Our candidate and the present term, read anew: a candidate of higher priority may have come since the last view.
async fn outranked(contact: &Contact) -> Result<Option<(String, Conditions, i64)>, RequestError> {
    let Some((name, uuid)) = contact.shared.own(contact.number) else { return Ok(None) };
    let round = read::round(contact);
    let children = contact.client.get_children(&contact.shared.paths.election);
    let (children, round) = tokio::join!(children, round);
    let (children, _) = children?;
    let Some(slots) = read::judge(contact, round).await? else { return Ok(None) };
    let holders: Vec<_> = slots.iter().map(|state| state.holder.clone()).collect();
    let standing = queue::standing(contact.shared.settings.names(), &children, &name, &[uuid], &holders);
    let is_lower = standing.is_some_and(|Standing { outranks, .. }| outranks);
    let leading = slots.first().and_then(|state| Some((state, state.token()?))).filter(|_| is_lower);
    Ok(leading.map(|(state, token)| {
        let (slot, record) = (state.record.slot, state.record.version);
        (name, Conditions { slot, record, term: state.term_version }, token)
    }))
}

async fn create(contact: &Contact, name: &str, conditions: Conditions, token: i64) -> Result<(), MultiError> {
    let (paths, settings) = (&contact.shared.paths, &contact.shared.settings);
    let request = Request { v: VERSION, token, by: settings.id.clone(), priority: settings.priority };
    let request = json::written(&request);
    let of_slot = paths.of(conditions.slot);
    let mut multi = contact.client.multi();
    multi.check(&paths.candidate(name), ANY_VERSION);
    multi.check(&of_slot.term, conditions.term);
    let options = settings.acl.ephemeral();
    multi.create(&path(contact, conditions.slot), &request, &options);
    multi.commit().await.map(drop)
}

/// Deletes a request for an earlier term. `false`: a request for this term exists.
async fn clear(contact: &Contact, token: i64) -> Result<bool, RequestError> {
    let path = path(contact, Slot(0));
    let Some((data, stat)) = if_there(contact.client.get_data(&path).await)? else { return Ok(true) };
    if read(&data).is_ok_and(|request| request.token == token) {
        return Ok(false);
    }
    if_there(contact.client.delete(&path, Some(stat.version)).await)?;
    Ok(true)
}

/// A holder that finds a request among the children notes and deletes it. After an error it must look again: the
/// requester asks once.
pub(crate) async fn heed(contact: &Contact, slot: Slot, children: &[String]) -> Result<(), Error> {
    if !children.iter().any(|child| child == PREEMPTION) {
        return Ok(());
    }
    let path = path(contact, slot);
    let data = match contact.client.get_data(&path).await {
        Ok((data, _)) => data,
        Err(Error::NoNode | Error::NoAuth) => return Ok(()),
        Err(error) => return Err(error),
    };
    match read(&data) {
        Ok(Request { token, by, priority, .. }) => {
            tracing::info!(token, by, priority, "A higher priority is next in line, and asks for the leadership");
            contact.shared.asked_for(token);
        }
        Err(complaint) => tracing::warn!(%complaint, "A request for the leadership could not be read, and is ignored"),
    }
    // If this fails, the next requester deletes it.
    drop(contact.client.delete(&path, None));
    Ok(())
}

fn read(data: &[u8]) -> Result<Request, SchemaError> {
    json::read(data, |request: &Request| request.v)
}

fn path(contact: &Contact, slot: Slot) -> String {
    format!("{}/{PREEMPTION}", contact.shared.paths.of(slot).home)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_a_term_or_is_none() {
        let written = Request { v: 1, token: 7, by: "b".into(), priority: 5 };
        assert_eq!(read(&serde_json::to_vec(&written).unwrap()).unwrap().token, 7);
        assert_eq!(read(br#"{"v":1,"token":8,"colour":"red"}"#).unwrap().token, 8);
        for text in ["", "x", "[]", "{}", r#"{"v":1}"#, r#"{"v":2,"token":7}"#, r#"{"v":1,"token":"7"}"#] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
