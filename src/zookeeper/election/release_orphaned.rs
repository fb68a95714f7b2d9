//! Frees the record of a term whose supervisor was killed, in a session of its own, once the guard has seen that the
//! process tree is empty. The successor then starts in milliseconds instead of after the lease.
//!
//! The term is known by its fencing token, and the write is conditional on its version, so a later term is never
//! changed. That the term's own wait was over follows from its having had a tree, under at-most-one. No attempt is made
//! after the session timeout.

use std::sync::Arc;
use std::time::Duration;

use crate::zookeeper::client::connection::{Error, Stat};
use futures_util::future::LocalBoxFuture;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{Instant, sleep, timeout_at};

use crate::core::action::{Conditions, Entry};
use crate::core::event::{Denial, Record, SessionNumber};
use crate::core::guard_messages::Slot;
use crate::zookeeper::client::error::RequestError;
use crate::zookeeper::election::session::contact::Contact;
use crate::zookeeper::election::shared::Shared;
use crate::zookeeper::election::transactions::{Leaving, free};
use crate::zookeeper::schema::lease::Parsed;
use crate::zookeeper::schema::settings::Settings;

/// Between two attempts to open a session.
const PAUSE: Duration = Duration::from_millis(100);

/// What the server refuses, such as for a quota, it will hardly take at once: the pause is doubled, up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The term whose supervisor was killed.
#[derive(Clone, Debug)]
pub struct Orphaned {
    pub slot: Slot,
    pub token: i64,
    pub candidate: String,
    /// The server's id of the session that owns the candidate.
    pub session: i64,
}

/// The outcome for the record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Freed,
    /// It is free already, or of a later term.
    NotOurs,
}

/// Frees the record if it is still the orphaned term's; tries for at most the session timeout.
///
/// # Errors
///
/// The reason of the failure; then the lease runs out as it would have without us.
pub fn free_record(settings: Settings, orphaned: &Orphaned) -> LocalBoxFuture<'_, Result<Outcome, RequestError>> {
    Box::pin(freed(settings, orphaned))
}

async fn freed(settings: Settings, orphaned: &Orphaned) -> Result<Outcome, RequestError> {
    let limit = settings.session_timeout;
    // Events are not read here.
    let (events, _) = unbounded_channel();
    let shared = Arc::new(Shared::new(settings, events));
    let by = Instant::now() + limit;
    let mut last = None;
    let done = timeout_at(by, release_in_time(&shared, orphaned, &mut last)).await;
    let (outcome, contact) = done.unwrap_or_else(|_| {
        Err(last.unwrap_or_else(|| RequestError::unknown("no answer within the session timeout")))
    })?;
    let mut service = contact.service();
    drop(contact);
    if timeout_at(by, service.over()).await.is_err() {
        tracing::debug!("Closing the session was not confirmed; it is left to expiry");
    }
    Ok(outcome)
}

/// Tries until the caller's limit, and keeps the last failure. A server that gives no answer, or shows what the ensemble does not have, is
/// left, if possible for another one.
async fn release_in_time(
    shared: &Arc<Shared>,
    orphaned: &Orphaned,
    last: &mut Option<RequestError>,
) -> Result<(Outcome, Contact), RequestError> {
    let (mut open_contact, mut pause) = (None, PAUSE);
    loop {
        let contact = match open_contact.filter(Contact::seems_connected) {
            Some(contact) => contact,
            None => open(shared).await?,
        };
        match release(&contact, orphaned).await {
            Err(error @ (RequestError::Refused(_) | RequestError::Unknown(_))) => {
                tracing::debug!(%error, "The lease could not be released; trying again");
                open_contact = matches!(error, RequestError::Refused(_)).then_some(contact);
                *last = Some(error);
            }
            outcome => return outcome.map(|outcome| (outcome, contact)),
        }
        sleep(pause).await;
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// Tries until the caller's limit.
async fn open(shared: &Arc<Shared>) -> Result<Contact, Error> {
    loop {
        match Contact::open(shared, SessionNumber::default()).await {
            Err(error @ (Error::AuthFailed | Error::NoAuth)) => return Err(error),
            Err(error) => tracing::debug!(%error, "Ensemble was not reached"),
            Ok(contact) => return Ok(contact),
        }
        sleep(PAUSE).await;
    }
}

/// A renewal that was pending when the supervisor died may still be applied. Then the version has changed, and we read
/// again.
async fn release(contact: &Contact, orphaned: &Orphaned) -> Result<Outcome, RequestError> {
    let mut refused = None;
    loop {
        let paths = contact.shared.paths.of(orphaned.slot);
        let candidate = contact.shared.paths.candidate(&orphaned.candidate);
        // All are sent at once; the term is read first.
        let (term, lease) = (contact.client.check_stat(&paths.term), contact.client.get_data(&paths.lease));
        let (term, lease, candidate) = tokio::join!(term, lease, contact.client.check_stat(&candidate));
        let (term, (data, stat)) = (term?, lease?);
        let read = contact.shared.parse(orphaned.slot, &data, &stat);
        let record = read.record;
        let Some(conditions) = conditions(term.as_ref(), &record, orphaned) else { return Ok(Outcome::NotOurs) };
        let entry = Entry {
            nonce: record.nonce,
            token: Some(orphaned.token),
            lease: record.lease,
            waiting_on: None,
            vouching: None,
        };
        let candidate = candidate_of(&read, candidate.ok().flatten(), orphaned).map(Leaving::Deleted);
        match free(contact, conditions, &entry, candidate.as_ref()).await {
            Ok(()) => return Ok(Outcome::Freed),
            Err(RequestError::Denied(Denial::Conflict)) if refused == Some(conditions) => {
                return Err(RequestError::unknown("this server has missed or lost writes"));
            }
            Err(RequestError::Denied(Denial::Conflict)) => refused = Some(conditions),
            Err(error) => return Err(error),
        }
    }
}

/// The candidate to delete: the one that the record names. The term may have gone on in a later session, with another one than
/// the guard knows. With the single recipe, the znode of the same name may be a successor's by now.
fn candidate_of(read: &Parsed, known: Option<Stat>, orphaned: &Orphaned) -> Option<String> {
    match read.holder().and_then(|holder| holder.candidate.as_ref()) {
        Some(later) if *later != orphaned.candidate => Some(later.clone()),
        _ => known.filter(|stat| stat.ephemeral_owner == orphaned.session).map(|_| orphaned.candidate.clone()),
    }
}

/// The conditions of the write, if the record is the orphaned term's and still held.
fn conditions(term: Option<&Stat>, record: &Record, orphaned: &Orphaned) -> Option<Conditions> {
    let term = term.filter(|term| term.mzxid == orphaned.token && record.held)?;
    Some(Conditions { slot: record.slot, record: record.version, term: term.version })
}
