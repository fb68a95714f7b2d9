//! The sequential recipe: one ephemeral sequential candidate, found again after a lost reply, and its place in the
//! queue. A candidate of another session is never ours.

use std::future::Future;
use std::sync::Arc;

use crate::zookeeper::client::connection::{Error, Stat};
use futures_util::future::{OptionFuture, join_all};

use crate::core::event::{Candidacy, Event, View};
use crate::core::guard_messages::CandidateName;
use crate::core::settings::Recipe;
use crate::zookeeper::client::error::{RequestError, Right, if_there, if_there_at};
use crate::zookeeper::election::read::{self, Answer, ROUNDS, SlotState, Watching};
use crate::zookeeper::election::session::contact::Contact;
use crate::zookeeper::election::session::watches::Watch;
use crate::zookeeper::election::shared::{Candidate, Znode};
use crate::zookeeper::schema::queue::{self, Holder, Standing};

/// Curator's `Revoker` writes this.
const REVOKE: &[u8] = b"__REVOKE__";

/// Creates our candidate, or finds it again, and reads the queue. One round if the base exists, two if only its
/// ancestors do.
pub(crate) async fn enter(contact: Arc<Contact>, candidacy: Candidacy) -> Result<Answer, RequestError> {
    let (mut is_base_new, mut was_tried) = (false, false);
    for _ in 0..ROUNDS {
        let mut candidate = contact.shared.candidate(contact.number, candidacy)?;
        if is_to_find(&contact, &candidate) && find(&contact, &mut candidate).await? {
            return look(contact, candidacy).await;
        }
        // The server carries out a session's requests in order: the base exists when the candidate is created.
        let base = std::mem::take(&mut is_base_new).then(|| read::create_whole(&contact));
        let (entered, _) = tokio::join!(create(&contact, candidate), OptionFuture::from(base));
        match entered? {
            Entered::Seen(answer) => return Ok(*answer),
            Entered::NothingThere if !was_tried => {
                (is_base_new, was_tried) = (true, true);
                continue;
            }
            Entered::NothingThere | Entered::Incomplete => {}
        }
        read::repair(&contact).await?;
        if contact.shared.znode(contact.number, candidacy).is_ok() {
            return look(contact, candidacy).await;
        }
    }
    Err(read::too_many_rounds())
}

/// Reads the queue, the term and the record in one round.
pub(crate) async fn look(contact: Arc<Contact>, candidacy: Candidacy) -> Result<Answer, RequestError> {
    for _ in 0..ROUNDS {
        let znode = contact.shared.znode(contact.number, candidacy)?;
        let candidate = contact.shared.candidate(contact.number, candidacy)?;
        // The queue is read after the records: a candidate that a record names and the queue lacks is then gone, and
        // not yet to come.
        let round = read::round(&contact);
        let children = contact.client.get_children(&contact.shared.paths.election);
        let told = told(&contact, &znode);
        let (children, round, told) = tokio::join!(children, round, told);
        let children = if_there_at(&contact.shared.paths.election, children)?;
        let (children, _) = children.ok_or(RequestError::CANDIDATE_GONE)?;
        match read::judge(&contact, round).await? {
            Some(slots) => return seen(&contact, &candidate, &znode, &children, &slots, told?),
            None => read::repair(&contact).await?,
        }
    }
    Err(read::too_many_rounds())
}

/// What others have written into our candidate.
#[derive(Clone, Copy, Default)]
struct Told {
    is_revoked: bool,
    /// The zxid of the last write, if it was not ours.
    touch: Option<i64>,
}

/// Users of Curator's locks write into the holder's candidate to ask it to yield. Sent now.
fn told<'a>(contact: &'a Contact, znode: &Znode) -> impl Future<Output = Result<Told, RequestError>> + Send + use<'a> {
    let is_asked = contact.shared.settings.recipe == Recipe::CuratorLock;
    let path = contact.shared.paths.candidate(&znode.name);
    let read = is_asked.then(|| contact.client.get_data(&path));
    async move {
        let Some(read) = read else { return Ok(Told::default()) };
        let (data, stat) = if_there(read.await)?.ok_or(RequestError::CANDIDATE_GONE)?;
        let touch = Some(stat.mzxid).filter(|mzxid| *mzxid != stat.czxid);
        Ok(Told { is_revoked: data == REVOKE, touch })
    }
}

/// What became of an attempt to create the candidate.
enum Entered {
    Seen(Box<Answer>),
    /// Neither election directory nor term nor record: the base may not exist.
    NothingThere,
    /// One of our znodes is missing.
    Incomplete,
}

/// Creates the candidate and reads everything in one round.
async fn create(contact: &Contact, mut candidate: Candidate) -> Result<Entered, RequestError> {
    let (client, paths) = (&contact.client, &contact.shared.paths);
    candidate.tried = true;
    contact.shared.remember(&candidate);
    let settings = &contact.shared.settings;
    let prefix = settings.names().prefix(candidate.uuid, settings.priority);
    let path = paths.candidate(&prefix);
    let options = settings.acl.ephemeral_sequential();
    let created = client.create(&path, settings.id.as_bytes(), &options);
    let round = read::round(contact);
    let children = client.get_children(&paths.election);
    let (created, children, round) = tokio::join!(created, children, round);
    let znode = match created {
        Ok((stat, sequence)) => {
            contact.shared.joined(&stat);
            Znode { name: format!("{prefix}{sequence}"), czxid: stat.czxid }
        }
        Err(Error::NoNode) => {
            contact.shared.forget(candidate.candidacy);
            return Ok(if round.found_nothing() { Entered::NothingThere } else { Entered::Incomplete });
        }
        Err(error) => return Err(RequestError::from(error).without(Right::Create, &paths.election)),
    };
    candidate.znode = Some(znode.clone());
    contact.shared.remember(&candidate);
    let Some((children, _)) = if_there_at(&paths.election, children)? else { return Ok(Entered::Incomplete) };
    let Some(slots) = read::judge(contact, round).await? else { return Ok(Entered::Incomplete) };
    let answer = seen(contact, &candidate, &znode, &children, &slots, Told::default())?;
    Ok(Entered::Seen(Box::new(answer)))
}

/// Whether a znode of ours may exist that we do not know. Where names have no UUID, that of an earlier candidacy counts
/// too: it could not be found later.
fn is_to_find(contact: &Contact, candidate: &Candidate) -> bool {
    candidate.tried || !contact.shared.settings.names().carry_uuids() && !candidate.former.is_empty()
}

/// Looks for the result of an earlier create (T15): adopts the first candidate of this session and deletes the others.
async fn find(contact: &Contact, candidate: &mut Candidate) -> Result<bool, RequestError> {
    let (client, paths) = (&contact.client, &contact.shared.paths);
    // The server is not behind the one that got the create: it is the same, or the connection began with a `sync`
    // (`session::resume`), which a server answers before all later reads of the session.
    let children = if_there_at(&paths.election, client.get_children(&paths.election).await)?;
    let children = children.map_or_else(Vec::new, |(children, _)| children);
    let names = contact.shared.settings.names();
    if !names.carry_uuids() {
        return find_by_owner(contact, candidate, queue::in_order(names, &children)).await;
    }
    for name in queue::own(names, &children, candidate.uuid) {
        let stat = client.check_stat(&paths.candidate(&name)).await?;
        if let Some(stat) = stat.filter(|stat| stat.ephemeral_owner == contact.id()) {
            adopt(contact, candidate, name, &stat);
            return Ok(true);
        }
    }
    Ok(false)
}

/// Where names have no UUID, the session tells ours. This finds all that was created before, because a session's
/// requests are carried out in order: no request sent earlier can take effect later.
async fn find_by_owner(contact: &Contact, candidate: &mut Candidate, line: Vec<String>) -> Result<bool, RequestError> {
    let stats: Vec<_> =
        line.iter().map(|name| contact.client.check_stat(&contact.shared.paths.candidate(name))).collect();
    let mut found = false;
    for (name, stat) in line.into_iter().zip(join_all(stats).await) {
        let Some(stat) = stat?.filter(|stat| stat.ephemeral_owner == contact.id()) else { continue };
        if candidate.tried && !found {
            found = true;
            adopt(contact, candidate, name, &stat);
        } else {
            tracing::debug!(name, "Candidate of ours was one too many, and is deleted");
            if_there(contact.client.delete(&contact.shared.paths.candidate(&name), None).await)?;
        }
    }
    candidate.former.clear();
    contact.shared.remember(candidate);
    Ok(found)
}

fn adopt(contact: &Contact, candidate: &mut Candidate, name: String, stat: &Stat) {
    contact.shared.joined(stat);
    tracing::debug!(name, "Candidate was found again after a lost reply");
    candidate.znode = Some(Znode { name, czxid: stat.czxid });
    contact.shared.remember(candidate);
}

fn seen(
    contact: &Contact,
    candidate: &Candidate,
    znode: &Znode,
    children: &[String],
    slots: &[SlotState],
    told: Told,
) -> Result<Answer, RequestError> {
    let uuids: Vec<_> = std::iter::once(candidate.uuid).chain(candidate.former.iter().copied()).collect();
    let holders: Vec<_> = slots.iter().map(|state| state.holder.clone()).collect();
    let names = contact.shared.settings.names();
    let standing =
        queue::standing(names, children, &znode.name, &uuids, &holders).ok_or(RequestError::CANDIDATE_GONE)?;
    contact.shared.report_foreign(&standing.foreign);
    for double in &standing.doubles {
        tracing::debug!(double, "Candidate of ours was one too many, and is deleted");
        // Sent now; the next look shows whether it was applied.
        drop(contact.client.delete(&contact.shared.paths.candidate(double), None));
    }
    let Standing { place, slot, outranks, .. } = standing;
    let nothing = || RequestError::unknown("there is no slot");
    let (term_version, record) = read::shown(contact, place, slot, slots).ok_or_else(nothing)?;
    let mut watches = watches_of_line(contact, &znode.name, &standing, slots, told);
    watches.extend(read::watches_on_record(contact, place, &record));
    let view = View {
        place,
        candidate: CandidateName::new(&znode.name).unwrap_or(CandidateName::EMPTY),
        session_id: contact.id(),
        term_version,
        record,
        outranks,
        is_revoked: told.is_revoked,
    };
    Ok(Answer { event: Event::Seen { candidacy: candidate.candidacy, view }, watches: Watching::Only(watches) })
}

/// Our own candidate and those before it that matter. With several leaders a take-over does not delete a candidate but
/// touches it; the tokens of the terms tell which touches were seen.
fn watches_of_line(contact: &Contact, own: &str, standing: &Standing, slots: &[SlotState], told: Told) -> Vec<Watch> {
    if !contact.shared.paths.is_for_several() {
        let own = match contact.shared.settings.recipe {
            Recipe::CuratorLock => Watch::contender(own, told.touch),
            _ => Watch::candidate(own, None),
        };
        let before = standing.before.iter().map(|name| Watch::candidate(name, None));
        return std::iter::once(own).chain(before).collect();
    }
    let term = |of: &String| {
        let tokens = slots.iter().filter_map(|state| match &state.holder {
            Holder::Candidate { name, token } if name == of => Some(*token),
            _ => None,
        });
        tokens.max()
    };
    let before = standing.before.iter().map(|name| Watch::contender(name, term(name)));
    std::iter::once(Watch::own(own)).chain(before).collect()
}
