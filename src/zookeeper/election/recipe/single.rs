//! The single recipe: every participant tries to create the same ephemeral znode. Its creator is first, all others are
//! next.
//!
//! All use the same name, so the znode is ours only if this session owns it and it has our nonce, and it is the same
//! only while its czxid is. Within one candidacy it is not created again once it was lost.

use std::sync::Arc;

use crate::zookeeper::client::connection::{Error, Stat};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::core::event::{Candidacy, Event, Place, Record, View};
use crate::core::guard_messages::CandidateName;
use crate::zookeeper::client::error::{RequestError, Right};
use crate::zookeeper::election::read::{self, Answer, ROUNDS, Watching};
use crate::zookeeper::election::session::contact::Contact;
use crate::zookeeper::election::session::watches::Watch;
use crate::zookeeper::election::shared::{Candidate, Znode};
use crate::zookeeper::schema::candidate_name::SINGLE;
use crate::zookeeper::schema::json;

/// The JSON of the znode; in one of another program, every field may be missing.
#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct CandidateJson {
    v: u32,
    id: String,
    nonce: String,
}

/// Our relation to the znode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    /// We created it, in this candidacy.
    Us,
    /// We created it, in an earlier candidacy of this session.
    OurPast,
    Other,
}

/// If the znode is ours: checks that it still is. Otherwise: tries to create it. Reads term and record in the same round.
pub(crate) async fn look(contact: Arc<Contact>, candidacy: Candidacy) -> Result<Answer, RequestError> {
    for _ in 0..ROUNDS {
        let candidate = contact.shared.candidate(contact.number, candidacy)?;
        let answer = match candidate.znode.clone() {
            Some(own) => keep(&contact, &candidate, &own).await?,
            None => take(&contact, candidate).await?,
        };
        if let Some(answer) = answer {
            return Ok(answer);
        }
        read::repair(&contact).await?;
    }
    Err(read::too_many_rounds())
}

/// `None`: one of our znodes is missing.
async fn keep(contact: &Contact, candidate: &Candidate, own: &Znode) -> Result<Option<Answer>, RequestError> {
    let found = contact.client.check_stat(&contact.shared.paths.candidate(SINGLE));
    let round = read::round(contact);
    let (found, round) = tokio::join!(found, round);
    if found?.is_none_or(|stat| stat.czxid != own.czxid) {
        return Err(RequestError::CANDIDATE_GONE);
    }
    let slots = read::judge(contact, round).await?;
    let shown = slots.and_then(|slots| read::shown(contact, Place::First, Some(0), &slots));
    Ok(shown.map(|shown| seen(contact, candidate, Place::First, Some(own.czxid), shown)))
}

/// `None`: one of our znodes is missing, or the single recipe's candidate has just changed.
async fn take(contact: &Contact, mut candidate: Candidate) -> Result<Option<Answer>, RequestError> {
    let (client, path) = (&contact.client, contact.shared.paths.candidate(SINGLE));
    candidate.tried = true;
    contact.shared.remember(&candidate);
    let content = CandidateJson { v: 1, id: contact.shared.settings.id.clone(), nonce: candidate.uuid.to_string() };
    let data = json::written(&content);
    let options = contact.shared.settings.acl.ephemeral();
    let created = client.create(&path, &data, &options);
    let found = client.get_data(&path);
    let round = read::round(contact);
    let (created, found, round) = tokio::join!(created, found, round);
    let czxid = match (created, found) {
        (Ok((created, _)), _) => {
            contact.shared.joined(&created);
            Some(created.czxid)
        }
        (Err(Error::NodeExists), Ok((data, found))) => match owner(&data, &found, contact.id(), candidate.uuid) {
            Owner::Us => {
                contact.shared.joined(&found);
                Some(found.czxid)
            }
            Owner::Other => None,
            Owner::OurPast => {
                tracing::debug!("Candidate of an earlier candidacy was given up");
                client.delete(&path, None).await?;
                return Ok(None);
            }
        },
        (Err(Error::NodeExists), Err(Error::NoNode)) | (Err(Error::NoNode), _) => return Ok(None),
        (Err(Error::NodeExists), Err(error)) => return Err(RequestError::from(error).without(Right::Read, &path)),
        (Err(error), _) => return Err(RequestError::from(error).without(Right::Create, &contact.shared.paths.election)),
    };
    candidate.znode = czxid.map(|czxid| Znode { name: SINGLE.to_owned(), czxid });
    contact.shared.remember(&candidate);
    let place = if czxid.is_some() { Place::First } else { Place::Next };
    let slots = read::judge(contact, round).await?;
    let shown = slots.and_then(|slots| read::shown(contact, place, Some(0), &slots));
    Ok(shown.map(|shown| seen(contact, &candidate, place, czxid, shown)))
}

fn owner(data: &[u8], stat: &Stat, session: i64, uuid: Uuid) -> Owner {
    let nonce = serde_json::from_slice::<CandidateJson>(data).unwrap_or_default().nonce;
    match stat.ephemeral_owner == session {
        true if nonce == uuid.to_string() => Owner::Us,
        true => Owner::OurPast,
        false => Owner::Other,
    }
}

fn seen(
    contact: &Contact,
    candidate: &Candidate,
    place: Place,
    czxid: Option<i64>,
    (term_version, record): (i32, Record),
) -> Answer {
    let mut watches = vec![Watch::candidate(SINGLE, czxid)];
    watches.extend(read::watches_on_record(contact, place, &record));
    let view = View {
        place,
        candidate: CandidateName::new(SINGLE).unwrap_or(CandidateName::EMPTY),
        session_id: contact.id(),
        term_version,
        record,
        outranks: false,
        is_revoked: false,
    };
    let event = Event::Seen { candidacy: candidate.candidacy, view };
    Answer { event, watches: Watching::Only(watches) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zookeeper::testing::stat;

    #[test]
    fn a_seat_is_ours_only_with_our_session_and_our_nonce() {
        let (us, past) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let json = |nonce: Uuid| format!(r#"{{"v":1,"id":"a \"b\"","nonce":"{nonce}"}}"#);
        let owned = Stat { ephemeral_owner: 7, ..stat() };
        assert_eq!(owner(json(us).as_bytes(), &owned, 7, us), Owner::Us);
        assert_eq!(owner(json(us).as_bytes(), &owned, 8, us), Owner::Other);
        assert_eq!(owner(json(past).as_bytes(), &owned, 7, us), Owner::OurPast);
        for foreign in ["", "garbage", "[]", r#"{"nonce":5}"#] {
            assert_eq!(owner(foreign.as_bytes(), &owned, 8, us), Owner::Other);
        }
    }
}
