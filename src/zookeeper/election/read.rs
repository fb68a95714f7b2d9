//! One round of reads: the term before the record, both in one session, so that no term is shown with an older record. No
//! decision needs that order: each write is conditional on both versions, so what follows from two moments is refused.
//! Missing znodes are created, and the round is repeated.
//!
//! The requests of a round are sent, in this order, before the first reply is awaited: the client library sends when a
//! method is called, not when its future is polled.

use std::future::Future;
use std::sync::Arc;

use crate::zookeeper::client::connection::{Error, Stat, Watcher};
use futures_util::future::join_all;

use crate::core::action::Conditions;
use crate::core::event::{Candidacy, Denial, Event, Place, Record};
use crate::core::guard_messages::Slot;
use crate::zookeeper::client::error::{RequestError, Right, if_there_at};
use crate::zookeeper::election::bootstrap;
use crate::zookeeper::election::fencing::Succession;
use crate::zookeeper::election::session::contact::Contact;
use crate::zookeeper::election::session::watches::Watch;
use crate::zookeeper::schema::lease::pending_fences::to_fence;
use crate::zookeeper::schema::lease::{self, Lease, Parsed, PendingFence};
use crate::zookeeper::schema::queue::Holder;

/// How many rounds one request may take. Peers create missing znodes too.
pub(crate) const ROUNDS: usize = 8;

/// The answer to a request, and what to watch afterwards.
#[derive(Debug)]
pub(crate) struct Answer {
    pub event: Event,
    pub watches: Watching,
}

#[derive(Debug)]
pub(crate) enum Watching {
    /// The watches stay as they are.
    Unchanged,
    /// These watches and no others.
    Only(Vec<Watch>),
    /// These watches too.
    Also(Vec<Watch>),
    /// The record of this slot, by this watch, which is armed.
    Record(Slot, Watcher),
}

impl From<Event> for Answer {
    fn from(event: Event) -> Self {
        Self { event, watches: Watching::Unchanged }
    }
}

/// Reads the record with one watch on it. A missing record is a conflict.
pub(crate) async fn observe(contact: Arc<Contact>, candidacy: Candidacy, slot: Slot) -> Result<Answer, RequestError> {
    let of_slot = contact.shared.paths.of(slot);
    let lease = &of_slot.lease;
    // Only one that has led needs the term's version, to free a record that waits for it.
    let term = contact.shared.pending_fences.has_led().then(|| contact.client.check_stat(&of_slot.term));
    // A watch that was armed before this read reports every later change.
    let read = if contact.watches.has_record(candidacy, slot) {
        contact.client.get_data(lease).await.map(|(data, stat)| (data, stat, Watching::Unchanged))
    } else {
        let read = contact.client.get_and_watch_data(lease).await;
        read.map(|(data, stat, watcher)| (data, stat, Watching::Record(slot, watcher)))
    };
    let term_version = match term {
        Some(term) => {
            let term = term.await.map_err(|error| RequestError::from(error).without(Right::Read, &of_slot.term))?;
            term.map(|stat| stat.version)
        }
        None => Some(0),
    };
    match (read, term_version) {
        (Ok((data, stat, watches)), Some(term_version)) => {
            let mut parsed = contact.shared.parse(slot, &data, &stat);
            if parsed.lease.is_err() {
                let term = if_there_at(&of_slot.term, contact.client.get_data(&of_slot.term).await)?;
                count_as_lost(contact.as_ref(), &mut parsed, term.as_ref().map(|(said, _)| said.as_slice())).await?;
            }
            let Parsed { record, disagreement, .. } = parsed;
            if let Some(disagreement) = disagreement.filter(|_| record.held) {
                contact.shared.report_disagreement(&disagreement);
            }
            Ok(Answer { event: Event::Observed { candidacy, record, term_version }, watches })
        }
        // The next look creates it again; the holder must know at once.
        (Err(Error::NoNode), _) | (Ok(_), None) => Err(RequestError::Denied(Denial::Conflict)),
        (Err(error), _) => Err(RequestError::from(error).without(Right::Read, lease)),
    }
}

/// Reads the records beside all other requests. A look of which one answer is lost shows nothing, and the wait for a leader that is
/// lost counts from when its record was first seen.
pub(crate) async fn glimpse(contact: Arc<Contact>) {
    let slots = contact.shared.paths.slots().map(|slot| (slot, contact.shared.paths.of(slot).lease));
    let reads: Vec<_> = slots.map(|(slot, lease)| (slot, contact.client.get_data(&lease))).collect();
    for (slot, read) in reads {
        if let Ok((data, stat)) = read.await {
            let record = contact.shared.parse(slot, &data, &stat).record;
            contact.shared.tell(Event::Glimpsed { record });
        }
    }
}

/// The term and the record of one slot.
#[derive(Debug)]
pub(crate) struct SlotState {
    pub term_version: i32,
    pub record: Record,
    pub holder: Holder,
    /// The id of the holder, and the start of its term by `ZooKeeper`'s clock (milliseconds since 1970). For display.
    pub id: Option<String>,
    pub begun_at: i64,
    disagreement: Option<String>,
    /// The leaders to fence by who takes it over, and whose lease that one has to wait for.
    unfenced: Vec<PendingFence>,
    lease_of: Option<lease::Holder>,
}

type Data = Result<(Vec<u8>, Stat), Error>;

/// The results of one round; with several leaders also the number that the base states.
#[derive(Debug)]
pub(crate) struct Round {
    /// Of several leaders: whether there is a common term, and the record of their number.
    marker: Option<(Result<Option<Stat>, Error>, Data)>,
    slots: Vec<(Data, Data)>,
}

impl Round {
    /// Neither a term nor a record.
    pub fn found_nothing(&self) -> bool {
        let is_missing = |data: &Data| matches!(data, Err(Error::NoNode));
        self.slots.iter().all(|(term, record)| is_missing(term) && is_missing(record))
    }
}

/// Sends the reads of the terms and records now: of each slot, the term before the record.
pub(crate) fn round(contact: &Contact) -> impl Future<Output = Round> + Send + use<'_> {
    let (client, paths) = (&contact.client, &contact.shared.paths);
    let marker = paths.is_for_several().then(|| (client.check_stat(&paths.term), client.get_data(&paths.lease)));
    let slots: Vec<_> = paths
        .slots()
        .map(|slot| paths.of(slot))
        .map(|of| (client.get_data(&of.term), client.get_data(&of.lease)))
        .collect();
    async {
        let marker = async {
            let (term, record) = marker?;
            Some(tokio::join!(term, record))
        };
        let slots = join_all(slots.into_iter().map(|(term, record)| async { tokio::join!(term, record) }));
        let (marker, slots) = tokio::join!(marker, slots);
        Round { marker, slots }
    }
}

/// One state for each slot; `None` if a znode is missing. If the base is for another number of leaders: only the
/// placeholder that says so.
pub(crate) async fn judge(contact: &Contact, round: Round) -> Result<Option<Vec<SlotState>>, RequestError> {
    if let Some((term, marker)) = round.marker {
        let Some((data, stat)) = if_there_at(&contact.shared.paths.lease, marker)? else { return Ok(None) };
        let marker = contact.shared.parse(Slot(0), &data, &stat);
        if marker.disagreement.is_some() {
            return Ok(Some(vec![SlotState::of(&stat, &marker)]));
        }
        // Nobody leads under it, but history and time are written under it.
        if term?.is_none() {
            return Ok(None);
        }
    }
    let mut slots = Vec::new();
    for (slot, of_slot) in contact.shared.paths.slots().zip(round.slots) {
        match of_slot {
            (Ok((said, term)), Ok((data, stat))) => {
                let mut parsed = contact.shared.parse(slot, &data, &stat);
                count_as_lost(contact, &mut parsed, Some(&said)).await?;
                let lease = parsed.lease.as_ref().ok();
                let unfenced = to_fence(lease, &said, &term, &contact.shared.instances());
                let lease_of = lease.filter(|lease| lease.is_held()).and_then(Lease::last_to_run);
                slots.push(SlotState { unfenced, lease_of, ..SlotState::of(&term, &parsed) });
            }
            (Err(Error::NoNode), _) | (_, Err(Error::NoNode)) => return Ok(None),
            (Err(error), _) => {
                return Err(RequestError::from(error).without(Right::Read, &contact.shared.paths.of(slot).term));
            }
            (_, Err(error)) => {
                return Err(RequestError::from(error).without(Right::Read, &contact.shared.paths.of(slot).lease));
            }
        }
    }
    Ok(Some(slots))
}

/// A record that cannot be read says not for how long its command may live on promises; its term may.
async fn count_as_lost(contact: &Contact, parsed: &mut Parsed, term: Option<&[u8]>) -> Result<(), RequestError> {
    if parsed.lease.is_err() {
        parsed.count_as_lost(bootstrap::vouched_under(&contact.client, &contact.shared.paths, term).await?);
    }
    Ok(())
}

impl SlotState {
    /// The fencing token of the slot's term, if a candidate is known to hold it.
    pub fn token(&self) -> Option<i64> {
        match self.holder {
            Holder::Candidate { token, .. } => Some(token),
            Holder::Nobody | Holder::Unknown | Holder::Lost => None,
        }
    }

    fn succession(&self) -> Succession {
        let Record { slot, version: record, .. } = self.record;
        let conditions = Conditions { slot, record, term: self.term_version };
        Succession { conditions, to_fence: self.unfenced.clone(), lease_of: self.lease_of.clone() }
    }

    fn of(term: &Stat, parsed: &Parsed) -> Self {
        let writer = parsed.holder();
        let id = writer.map(|writer| writer.id.clone()).filter(|id| !id.is_empty());
        let (record, disagreement) = (parsed.record, parsed.disagreement.clone());
        let holder = match writer.and_then(|writer| writer.candidate.clone()) {
            _ if !record.held => Holder::Nobody,
            None if id.is_none() => Holder::Lost,
            None => Holder::Unknown,
            Some(name) => Holder::Candidate { name, token: term.mzxid },
        };
        let (term_version, begun_at) = (term.version, term.mtime);
        Self { term_version, record, holder, id, begun_at, disagreement, unfenced: Vec::new(), lease_of: None }
    }
}

fn is_renewed(record: &Record) -> bool {
    record.held && record.waiting_on.is_none()
}

/// The slot that the machine sees and acts on: our own; else the one that we may take; else the one that was written
/// last, because it tells most about all of them. A take-over follows from what is shown, so the leaders to fence are
/// noted here.
pub(crate) fn shown(
    contact: &Contact,
    place: Place,
    slot: Option<usize>,
    slots: &[SlotState],
) -> Option<(i32, Record)> {
    contact.shared.pending_fences.note(slots.iter().map(SlotState::succession).collect());
    let instance = contact.shared.settings.instance;
    let ours = slots.iter().filter(|state| state.record.held && state.record.nonce.instance == instance);
    let ours = ours.max_by_key(|state| state.token());
    let last = || slots.iter().max_by_key(|state| (is_renewed(&state.record), state.record.mzxid));
    let shown = ours.or_else(|| slots.get(slot?)).or_else(last)?;
    let mut record = shown.record;
    if let Some(disagreement) = slots.iter().find_map(|state| state.disagreement.as_deref()) {
        // The number of leaders stays, also while there is no leader.
        record.agrees = false;
        record.held |= contact.shared.paths.is_for_several();
        match place {
            _ if record.held => contact.shared.report_disagreement(disagreement),
            Place::First => {}
            Place::Next | Place::Behind(_) => contact.shared.report_difference(disagreement),
        }
    }
    Some((shown.term_version, record))
}

/// Creates our missing znodes.
pub(crate) async fn repair(contact: &Contact) -> Result<(), RequestError> {
    let settings = &contact.shared.settings;
    let own_lease = settings.own_lease(contact.negotiated);
    bootstrap::repair(&contact.client, &contact.shared.paths, settings, own_lease).await
}

/// Creates the base, if it does not exist, before all that is sent from now on.
pub(crate) fn create_whole(contact: &Contact) -> impl Future<Output = ()> + Send + use<'_> {
    let settings = &contact.shared.settings;
    let own_lease = settings.own_lease(contact.negotiated);
    bootstrap::create_whole(&contact.client, &contact.shared.paths, settings, own_lease)
}

/// After [`ROUNDS`] rounds.
pub(crate) fn too_many_rounds() -> RequestError {
    RequestError::unknown("our znodes kept disappearing while they were created")
}

/// The watches on the record and the base. The next in the queue watches the record, to know its last renewal. A holder
/// learns of changes by its renewals, and watches that record and term exist. A holder that waits does not renew, so it
/// watches the record too, as does who is next in line again, under a record of its own.
pub(crate) fn watches_on_record(contact: &Contact, place: Place, record: &Record) -> Vec<Watch> {
    let ours = record.held && record.nonce.instance == contact.shared.settings.instance;
    match place {
        _ if ours => of_a_holder(record.slot, record.mzxid, record.waiting_on.is_some() || place == Place::Next),
        Place::First if !record.held => Vec::new(),
        Place::First | Place::Next => vec![Watch::record(record.slot, record.mzxid)],
        Place::Behind(_) => Vec::new(),
    }
}

pub(crate) fn of_a_holder(slot: Slot, mzxid: i64, waits: bool) -> Vec<Watch> {
    let record = waits.then(|| Watch::record(slot, mzxid));
    record.into_iter().chain([Watch::base(slot)]).collect()
}
