//! One round of reads: the term before the record, both on one session; what is missing is created and read again.
//!
//! The requests of a round are sent, in this order, before the first reply is awaited: the client library sends when a
//! method is called, not when its future is polled.
//!
//! Never: a record that is older than the term it is shown with.

use std::future::Future;
use std::sync::Arc;

use zookeeper_client::{Error, OneshotWatcher, Stat};

use super::fault::Fault;
use super::layout;
use super::session::Contact;
use super::watches::Watch;
use crate::core::event::{Candidacy, Event, Place, Record};

/// How often what is missing is created and read again within one request. Peers that race create it too.
pub(super) const ROUNDS: usize = 8;

/// The answer to a request, and what is to be watched once it was given.
#[derive(Debug)]
pub(super) struct Answer {
    pub event: Event,
    pub watches: Watching,
}

#[derive(Debug)]
pub(super) enum Watching {
    /// What is watched stays as it is.
    Unchanged,
    /// This and nothing else.
    Only(Vec<Watch>),
    /// These, too.
    Also(Vec<Watch>),
    /// The record, by this watch, which is armed.
    Record(OneshotWatcher),
}

impl From<Event> for Answer {
    fn from(event: Event) -> Self {
        Self { event, watches: Watching::Unchanged }
    }
}

/// Reads the record, with one watch on it.
pub(super) async fn observe(contact: Arc<Contact>, candidacy: Candidacy) -> Result<Answer, Fault> {
    let lease = &contact.office.paths.lease;
    for _ in 0..ROUNDS {
        // A watch that is armed since before this read reports all that comes after it.
        let read = if contact.watches.has_record(candidacy) {
            contact.client.get_data(lease).await.map(|(data, stat)| (data, stat, Watching::Unchanged))
        } else {
            let read = contact.client.get_and_watch_data(lease).await;
            read.map(|(data, stat, watcher)| (data, stat, Watching::Record(watcher)))
        };
        match read {
            Ok((data, stat, watches)) => {
                let record = contact.office.record(&data, &stat);
                return Ok(Answer { event: Event::Observed { candidacy, record }, watches });
            }
            Err(Error::NoNode) => repair(&contact).await?,
            Err(error) => return Err(error.into()),
        }
    }
    Err(too_many_rounds())
}

/// The term's version and the record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Books {
    pub term_version: i32,
    pub record: Record,
}

type Data = Result<(Vec<u8>, Stat), Error>;

/// The reads of term and record, sent now.
pub(super) fn books(contact: &Contact) -> impl Future<Output = (Data, Data)> + Send + use<> {
    let term = contact.client.get_data(&contact.office.paths.term);
    let record = contact.client.get_data(&contact.office.paths.lease);
    async { tokio::join!(term, record) }
}

/// `None` if one of them is missing.
pub(super) fn judge(contact: &Contact, (term, record): (Data, Data)) -> Result<Option<Books>, Fault> {
    match (term, record) {
        (Ok((_, term)), Ok((data, stat))) => {
            Ok(Some(Books { term_version: term.version, record: contact.office.record(&data, &stat) }))
        }
        (Err(Error::NoNode), _) | (_, Err(Error::NoNode)) => Ok(None),
        (Err(error), _) | (_, Err(error)) => Err(error.into()),
    }
}

/// Creates what is missing of our znodes.
pub(super) async fn repair(contact: &Contact) -> Result<(), Fault> {
    let settings = &contact.office.settings;
    let own_lease = settings.own_lease(contact.negotiated);
    layout::repair(&contact.client, &contact.office.paths, settings, own_lease).await
}

/// After [`ROUNDS`] rounds.
pub(super) fn too_many_rounds() -> Fault {
    Fault::unknown("our znodes kept disappearing while they were created")
}

/// What of the record and the base is watched from a place: the next in line watches the record, so that it knows when it
/// was last renewed; a holder is told by its renewals, and watches that record and term are there at all. While it waits
/// it does not renew, and watches the record too.
pub(super) fn of_the_books(contact: &Contact, place: Place, record: &Record) -> Vec<Watch> {
    let ours = record.held && record.nonce.instance == contact.office.settings.instance;
    match place {
        _ if ours => of_a_holder(record.mzxid, record.waiting_on.is_some()),
        Place::First if !record.held => Vec::new(),
        Place::First | Place::Next => vec![Watch::record(record.mzxid)],
        Place::Behind(_) => Vec::new(),
    }
}

pub(super) fn of_a_holder(mzxid: i64, waits: bool) -> Vec<Watch> {
    let record = waits.then(|| Watch::record(mzxid));
    record.into_iter().chain([Watch::BASE]).collect()
}
