//! The three writes that decide: take over, renew, release. Each is one multi with exactly the given conditions. Each
//! names the term's version, so that a delayed write cannot succeed on a record that was created again and counts from
//! zero.
//!
//! An order is sent once; before another attempt, the machine reads.

use std::sync::Arc;
use std::time::Duration;

use crate::zookeeper::client::connection::{Multi, MultiResult, Stat};

use crate::clock;
use crate::core::action::{Conditions, Entry};
use crate::core::event::{Candidacy, Denial, Event};
use crate::core::guard_messages::Slot;
use crate::core::settings::Recipe;
use crate::core::time::Timestamp;
use crate::zookeeper::client::error::{Part, PathAccess, RequestError, Right, if_there};
use crate::zookeeper::client::requests::ANY_VERSION;
use crate::zookeeper::election::read::{Answer, Watching, of_a_holder};
use crate::zookeeper::election::run_once;
use crate::zookeeper::election::secret;
use crate::zookeeper::election::session::contact::Contact;
use crate::zookeeper::schema::lease::{self, Longest};

/// Checks the candidate, sets the term, sets the record.
pub(crate) async fn take_over(
    contact: Arc<Contact>,
    candidacy: Candidacy,
    conditions: Conditions,
    entry: Entry,
    longest: Duration,
) -> Result<Answer, RequestError> {
    let (paths, settings) = (&contact.shared.paths, &contact.shared.settings);
    let name = contact.shared.znode(contact.number, candidacy)?.name;
    let candidate = paths.candidate(&name);
    // The first write after a wait may name a limit too, and leaves the term as it is.
    let longest = Longest { lease: longest, vouched: settings.vouch.map(|vouch| vouch.limit) };
    if settings.vouch.is_some() {
        secret::ensure(&contact).await?;
    }
    let unfenced = contact.shared.pending_fences.take_over(entry.nonce, conditions);
    let of_slot = paths.of(conditions.slot);
    let mut multi = contact.client.multi();
    if paths.is_for_several() {
        // The candidate stays in the queue: the touch tells those behind it that they have moved up.
        multi.set(&candidate, settings.id.as_bytes(), None);
    } else {
        multi.check(&candidate, ANY_VERSION);
    }
    multi.set(&of_slot.term, &lease::term(entry.nonce, longest, settings), Some(conditions.term));
    let record = contact.shared.held(&entry, &name, unfenced);
    multi.set(&of_slot.lease, &record, Some(conditions.record));
    let steps = [
        PathAccess(Part::Candidate, Right::Read, &candidate),
        PathAccess(Part::Term, Right::Write, &of_slot.term),
        PathAccess(Part::Record, Right::Write, &of_slot.lease),
    ];
    let (sent_at, results) = send(multi, &steps).await?;
    let [_, MultiResult::SetData { stat: term }, MultiResult::SetData { stat: record }] = results.as_slice() else {
        return Err(not_understood());
    };
    let (version, token) = (record.version, term.mzxid);
    let event = Event::TookOver { candidacy, nonce: entry.nonce, sent_at, version, token, term: term.version };
    let watches = of_a_holder(conditions.slot, token, entry.waiting_on.is_some());
    Ok(Answer { event, watches: Watching::Also(watches) })
}

/// Checks the candidate, checks the term, sets the record.
pub(crate) async fn renew(
    contact: Arc<Contact>,
    candidacy: Candidacy,
    conditions: Conditions,
    entry: Entry,
) -> Result<Answer, RequestError> {
    let paths = &contact.shared.paths;
    let name = contact.shared.znode(contact.number, candidacy)?.name;
    let candidate = paths.candidate(&name);
    let of_slot = paths.of(conditions.slot);
    let mut multi = contact.client.multi();
    multi.check(&candidate, ANY_VERSION);
    multi.check(&of_slot.term, conditions.term);
    let unfenced = contact.shared.pending_fences.carried(entry.nonce);
    let record = contact.shared.held(&entry, &name, unfenced);
    multi.set(&of_slot.lease, &record, Some(conditions.record));
    let steps = [
        PathAccess(Part::Candidate, Right::Read, &candidate),
        PathAccess(Part::Term, Right::Read, &of_slot.term),
        PathAccess(Part::Record, Right::Write, &of_slot.lease),
    ];
    let (sent_at, results) = send(multi, &steps).await?;
    let [_, _, MultiResult::SetData { stat: Stat { version, .. } }] = results.as_slice() else {
        return Err(not_understood());
    };
    Ok(Event::Renewed { candidacy, sent_at, version: *version }.into())
}

/// Checks the term, deletes the candidate (unless it is gone or keeps its place), and frees the record.
///
/// In this order, because the server sends watch events in the order of a multi's operations: the next in the queue
/// looks when its predecessor departs, and sees the free record in the same look.
pub(crate) async fn release(
    contact: Arc<Contact>,
    candidacy: Candidacy,
    conditions: Conditions,
    entry: Entry,
    keeps_candidate: bool,
) -> Result<Answer, RequestError> {
    let closing = run_once::close(&contact);
    let candidate = match (keeps_candidate, contact.shared.paths.is_for_several()) {
        (false, _) => candidate_to_delete(&contact, candidacy).await?.map(Leaving::Deleted),
        (true, true) => contact.shared.last_znode(candidacy).map(|znode| Leaving::Touched(znode.name)),
        (true, false) => None,
    };
    let outcome = free(&contact, conditions, &entry, candidate.as_ref()).await;
    closing.await;
    match outcome {
        Err(RequestError::Denied(Denial::Conflict)) if was_freed_by_us(&contact, conditions.slot, &entry).await? => {
            tracing::debug!("Record was free already: the reply to an earlier release was lost");
        }
        outcome => outcome?,
    }
    // One whose create was not answered may exist: it is looked for, and deleted when it is seen.
    if !keeps_candidate && contact.shared.last_znode(candidacy).is_some() {
        contact.shared.forget(candidacy);
    }
    contact.shared.pending_fences.forget();
    Ok(Event::Released { candidacy }.into())
}

/// The effect of a release on the candidate.
pub(crate) enum Leaving {
    Deleted(String),
    /// It keeps its place. With several leaders, those behind it that now stand before it do not watch its slot's
    /// record; the touch tells them.
    Touched(String),
}

/// Frees the record, also if the candidate is gone already.
pub(crate) async fn free(
    contact: &Contact,
    conditions: Conditions,
    entry: &Entry,
    candidate: Option<&Leaving>,
) -> Result<(), RequestError> {
    match free_together(contact, conditions, entry, candidate).await {
        Err(RequestError::Denied(Denial::CandidateGone)) => free_together(contact, conditions, entry, None).await,
        freed => freed,
    }
}

/// Both in one transaction.
async fn free_together(
    contact: &Contact,
    conditions: Conditions,
    entry: &Entry,
    candidate: Option<&Leaving>,
) -> Result<(), RequestError> {
    let (paths, settings) = (&contact.shared.paths, &contact.shared.settings);
    let of_slot = paths.of(conditions.slot);
    let own = match candidate {
        Some(Leaving::Deleted(name) | Leaving::Touched(name)) => paths.candidate(name),
        None => String::new(),
    };
    let mut multi = contact.client.multi();
    let mut steps = vec![PathAccess(Part::Term, Right::Read, &of_slot.term)];
    multi.check(&of_slot.term, conditions.term);
    match candidate {
        None => {}
        Some(Leaving::Deleted(_)) => {
            steps.push(PathAccess(Part::Candidate, Right::Delete, &paths.election));
            multi.delete(&own, None);
        }
        Some(Leaving::Touched(_)) => {
            steps.push(PathAccess(Part::Candidate, Right::Write, &own));
            multi.set(&own, settings.id.as_bytes(), None);
        }
    }
    steps.push(PathAccess(Part::Record, Right::Write, &of_slot.lease));
    multi.set(&of_slot.lease, &lease::released(entry, settings), Some(conditions.record));
    send(multi, &steps).await.map(drop)
}

/// With the single recipe, the name may be a successor's by now: only a znode with our czxid is deleted.
async fn candidate_to_delete(contact: &Contact, candidacy: Candidacy) -> Result<Option<String>, RequestError> {
    let Some(znode) = contact.shared.last_znode(candidacy) else { return Ok(None) };
    if contact.shared.settings.recipe != Recipe::Single {
        return Ok(Some(znode.name));
    }
    let found = contact.client.check_stat(&contact.shared.paths.candidate(&znode.name)).await?;
    Ok(found.filter(|stat| stat.czxid == znode.czxid).map(|_| znode.name))
}

/// Whether our own release has written the record.
async fn was_freed_by_us(contact: &Contact, slot: Slot, entry: &Entry) -> Result<bool, RequestError> {
    let found = if_there(contact.client.get_data(&contact.shared.paths.of(slot).lease).await)?;
    let record = found.map(|(data, stat)| contact.shared.parse(slot, &data, &stat).record);
    Ok(record.is_some_and(|record| !record.held && record.nonce == entry.nonce))
}

/// The lease counts from here: the clock is read just before the request leaves.
async fn send(multi: Multi<'_>, steps: &[PathAccess<'_>]) -> Result<(Timestamp, Vec<MultiResult>), RequestError> {
    let sent_at = clock::now().lease;
    match multi.commit().await {
        Ok(results) => Ok((sent_at, results)),
        Err(error) => Err(RequestError::of_multi(&error, steps)),
    }
}

/// It was applied, but its results could not be parsed.
fn not_understood() -> RequestError {
    RequestError::unknown("the server's answer to a multi has another shape")
}
