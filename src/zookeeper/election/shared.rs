//! The state that all sessions share: the settings, the channel to the supervisor, and our candidate. No lock is held
//! over an await.

mod outage;
mod upgrade;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::zookeeper::client::connection::Stat;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use uuid::Uuid;

use crate::clock;
use crate::core::action::Entry;
use crate::core::event::{Candidacy, Event, Request, SessionNumber};
use crate::core::guard_messages::{ChildStatus, Slot};
use crate::core::operator_orders::{Drain, Orders, Prospect};
use crate::core::settings::Recipe;
use crate::core::vouching::{Roster, Word};
use crate::random;
use crate::zookeeper::client::error::RequestError;
use crate::zookeeper::client::outage::Outage;
use crate::zookeeper::election::fencing::PendingFences;
use crate::zookeeper::election::refusals::Refusals;
use crate::zookeeper::schema::lease::{self, Holder, Parsed, PendingFence};
use crate::zookeeper::schema::paths::Paths;
use crate::zookeeper::schema::run_marker::OpenRun;
use crate::zookeeper::schema::settings::Settings;
use crate::zookeeper::schema::vouching::{Neighbour, Neighbourhood};

pub use upgrade::Kept;

#[derive(Debug)]
pub(crate) struct Shared {
    pub settings: Settings,
    pub paths: Paths,
    /// The operators' orders, and the request of a candidate of higher priority.
    orders: watch::Sender<Orders>,
    pub pending_fences: PendingFences,
    neighbourhood: watch::Sender<Neighbourhood>,
    /// Who could take over, as was last told.
    line: Mutex<Option<Roster>>,
    events: UnboundedSender<Event>,
    candidate: Mutex<Option<Candidate>>,
    /// The instances of earlier programs of this process, which restarted itself after a standstill.
    earlier: OnceLock<Vec<u64>>,
    /// The ctime of our first candidate in any session: when this process joined, by `ZooKeeper`'s clock.
    joined_ms: OnceLock<i64>,
    /// The run of the present term, if it was marked.
    run: Mutex<Option<OpenRun>>,
    /// For each slot, the mzxid of the last record that was reported as unreadable.
    complained_of: Mutex<HashMap<Slot, i64>>,
    disagreement_reported: AtomicBool,
    difference_reported: AtomicBool,
    program_reported: AtomicBool,
    foreign_reported: AtomicBool,
    ownership_reported: AtomicBool,
    /// What stands beside the election and is refused, with the refusal that was logged.
    refused_aside: Mutex<HashMap<&'static str, String>>,
    /// When to log that the servers refuse our requests.
    refusals: Mutex<Refusals>,
    /// When to log that the servers cannot be reached; `None`: one has a session of ours.
    outage: Mutex<Option<Outage>>,
    was_reached: AtomicBool,
    takes_turns: AtomicBool,
}

/// The present candidate: one for each candidacy and session.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub candidacy: Candidacy,
    pub session: SessionNumber,
    /// In its name (sequential recipe) or its data (single recipe).
    pub uuid: Uuid,
    /// A create was sent: before another one, look for its outcome (T15).
    pub tried: bool,
    /// Set once we know that it exists.
    pub znode: Option<Znode>,
    /// Earlier ones of this session that may still exist; they are deleted when seen.
    pub former: Vec<Uuid>,
}

/// Late creates come within a round or two; this only bounds the memory.
const FORMER_MOST: usize = 16;

/// Our candidate's znode.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Znode {
    pub name: String,
    /// Differs from that of a later znode with the same name.
    pub czxid: i64,
}

impl Candidate {
    /// The UUIDs of znodes that it may leave behind.
    fn litter(&self) -> Vec<Uuid> {
        let own = self.tried.then_some(self.uuid);
        own.into_iter().chain(self.former.iter().copied()).take(FORMER_MOST).collect()
    }
}

impl Shared {
    pub fn new(settings: Settings, events: UnboundedSender<Event>) -> Self {
        Self {
            paths: Paths::new(&settings),
            orders: watch::Sender::new(Orders::default()),
            pending_fences: PendingFences::default(),
            neighbourhood: watch::Sender::default(),
            line: Mutex::default(),
            settings,
            events,
            candidate: Mutex::default(),
            earlier: OnceLock::new(),
            joined_ms: OnceLock::new(),
            run: Mutex::default(),
            complained_of: Mutex::default(),
            disagreement_reported: AtomicBool::new(false),
            difference_reported: AtomicBool::new(false),
            program_reported: AtomicBool::new(false),
            foreign_reported: AtomicBool::new(false),
            ownership_reported: AtomicBool::new(false),
            refused_aside: Mutex::default(),
            refusals: Mutex::default(),
            outage: Mutex::default(),
            was_reached: AtomicBool::new(false),
            takes_turns: AtomicBool::new(false),
        }
    }

    /// The supervisor may have ended; then the event is dropped.
    pub fn tell(&self, event: Event) {
        self.events.send(event).ok();
    }

    /// The candidate of this candidacy in this session; a new candidacy gets a new UUID.
    pub fn candidate(&self, session: SessionNumber, candidacy: Candidacy) -> Result<Candidate, RequestError> {
        let mut memory = self.lock();
        let known = memory.as_ref().filter(|known| known.session == session);
        match known {
            Some(known) if known.candidacy == candidacy => Ok(known.clone()),
            Some(known) if known.candidacy > candidacy => Err(RequestError::unknown("a later candidacy has begun")),
            known => {
                let former = known.map(Candidate::litter).unwrap_or_default();
                let uuid = random::uuid();
                let fresh = Candidate { candidacy, session, uuid, tried: false, znode: None, former };
                Ok(memory.insert(fresh).clone())
            }
        }
    }

    /// The znode of this candidacy; a znode of another session is not ours (T17).
    pub fn znode(&self, session: SessionNumber, candidacy: Candidacy) -> Result<Znode, RequestError> {
        let memory = self.lock();
        let ours = memory.as_ref().filter(|known| known.candidacy == candidacy && known.session == session);
        ours.and_then(|known| known.znode.clone()).ok_or(RequestError::CANDIDATE_GONE)
    }

    /// Name and UUID of the candidate in this session, if we know that it exists.
    pub fn own(&self, session: SessionNumber) -> Option<(String, Uuid)> {
        let memory = self.lock();
        let known = memory.as_ref().filter(|known| known.session == session)?;
        Some((known.znode.clone()?.name, known.uuid))
    }

    pub fn orders(&self) -> watch::Receiver<Orders> {
        self.orders.subscribe()
    }

    /// What we know of the hosts that vouch for one another, as it changes.
    pub fn neighbourhood(&self) -> watch::Receiver<Neighbourhood> {
        self.neighbourhood.subscribe()
    }

    /// Changes what we know of them.
    pub fn learn(&self, change: impl FnOnce(&mut Neighbourhood)) {
        self.neighbourhood.send_if_modified(|known| {
            let before = known.clone();
            change(known);
            *known != before
        });
    }

    /// These hosts were seen in line or in a roster.
    pub fn met(&self, seen: impl Iterator<Item = Neighbour>) {
        let own = self.settings.instance;
        if self.settings.vouch.is_some() {
            self.learn(|known| known.note(seen.filter(|host| host.instance != own)));
        }
    }

    /// The hosts in line that can be asked were read, the first first.
    pub fn lined_up(&self, line: Vec<Neighbour>) {
        let roster: Roster = line.iter().map(|host| host.instance).collect();
        self.met(line.into_iter());
        let mut told = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if told.replace(roster) != Some(roster) {
            self.tell(Event::Vouching(Word::Line(roster)));
        }
    }

    /// The record that a take-over or a renewal of this candidate writes.
    pub fn held(&self, entry: &Entry, candidate: &str, unfenced: Vec<PendingFence>) -> Vec<u8> {
        lease::held(entry, candidate, unfenced, &self.neighbourhood.borrow(), &self.settings)
    }

    /// The operators' orders were read.
    pub fn ordered(&self, orders: Orders) {
        self.change_orders(|known| Orders { disabled: orders.disabled, handover: orders.handover, ..known });
    }

    /// What may have become of a handover was read.
    pub fn foresee(&self, prospect: Prospect) {
        self.change_orders(|known| Orders { prospect: Some(prospect), ..known });
    }

    /// Whether our host is drained was read.
    pub fn drained(&self, drain: Option<Drain>) {
        self.change_orders(|known| Orders { drain, ..known });
    }

    /// A candidate of higher priority asks for the term with this token.
    pub fn asked_for(&self, token: i64) {
        self.change_orders(|known| Orders { asked_for: Some(token), ..known });
    }

    fn change_orders(&self, change: impl FnOnce(Orders) -> Orders) {
        self.orders.send_if_modified(|known| {
            let changed = change(*known);
            std::mem::replace(known, changed) != changed
        });
    }

    /// The znode to delete with a release, of any session.
    pub fn last_znode(&self, candidacy: Candidacy) -> Option<Znode> {
        self.lock().as_ref().filter(|known| known.candidacy == candidacy)?.znode.clone()
    }

    /// Stores the state of `candidate`, unless a newer one has replaced it.
    pub fn remember(&self, candidate: &Candidate) {
        let mut memory = self.lock();
        if memory.as_ref().is_some_and(|known| known.uuid == candidate.uuid) {
            *memory = Some(candidate.clone());
        }
    }

    /// The server says that the candidate was deleted.
    pub fn forget(&self, candidacy: Candidacy) {
        if let Some(known) = self.lock().as_mut().filter(|known| known.candidacy == candidacy) {
            (known.tried, known.znode) = (false, None);
        }
    }

    /// Our candidate was created; the first one tells when we joined.
    pub fn joined(&self, created: &Stat) {
        self.joined_ms.get_or_init(|| created.ctime);
    }

    /// The instances of all programs of this process that are remembered, newest first.
    pub fn instances(&self) -> Vec<u64> {
        std::iter::once(self.settings.instance).chain(self.earlier.get().into_iter().flatten().copied()).collect()
    }

    /// When this process joined, if it did.
    pub fn first_joined_ms(&self) -> Option<i64> {
        self.joined_ms.get().copied()
    }

    /// Not called without a candidate. If it were, every run would count.
    pub fn joined_ms(&self) -> i64 {
        self.first_joined_ms().unwrap_or(i64::MIN)
    }

    pub fn open_run(&self, run: OpenRun) {
        *self.lock_run() = Some(run);
    }

    pub fn end_run(&self, status: ChildStatus, ok: bool) {
        if let Some(run) = self.lock_run().as_mut() {
            run.end(status, ok);
        }
    }

    pub fn withdraw_run(&self) {
        if let Some(run) = self.lock_run().as_mut() {
            run.is_withdrawn = true;
        }
    }

    /// The run, if its end is to be written.
    pub fn ended_run(&self) -> Option<OpenRun> {
        self.lock_run().clone()
    }

    pub fn close_run(&self) {
        *self.lock_run() = None;
    }

    fn lock_run(&self) -> MutexGuard<'_, Option<OpenRun>> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Parses the lease record of a slot; reports an unreadable one once.
    pub fn parse(&self, slot: Slot, data: &[u8], stat: &Stat) -> Parsed {
        let parsed = lease::parse(slot, data, stat, &self.settings);
        let is_new = |_: &_| self.lock_complaints().insert(slot, stat.mzxid) != Some(stat.mzxid);
        if let Some(complaint) = parsed.lease.as_ref().err().filter(is_new) {
            let path = &self.paths.of(slot).lease;
            tracing::warn!(path, %complaint, "Lease record could not be read; it counts as held for the longest lease");
        }
        parsed.holder().into_iter().for_each(|holder| self.report_program(holder));
        parsed.lease.iter().for_each(|lease| self.met(lease.neighbours()));
        parsed
    }

    /// Reports once that the leader has another command than we: two jobs may share a name by mistake, and one of them would
    /// never run.
    fn report_program(&self, holder: &Holder) {
        let own = &self.settings.about.program;
        let Some(program) = holder.program.as_ref().filter(|program| !own.is_empty() && *program != own) else {
            return;
        };
        if !self.program_reported.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                why = "another-command",
                "{} on {} leads here with another command ({program}) than ours ({own}); if these are two jobs, ours does not run: \
                 give each its own --name",
                holder.id,
                holder.host
            );
        }
    }

    /// Reports once why we shall be refused.
    pub fn report_disagreement(&self, disagreement: &str) {
        if !self.disagreement_reported.swap(true, Ordering::Relaxed) {
            let path = &self.paths.base;
            tracing::error!(
                path,
                why = "disagreement",
                "Contenders disagree: {disagreement}; give every host of this election the same, or choose another --name for this job; if \
                 no host with the other settings is left, start one with them and stop it when it leads, which frees the record"
            );
        }
    }

    /// Reports once that we shall be refused if the next holder has the same settings as the free record.
    pub fn report_difference(&self, disagreement: &str) {
        if !self.difference_reported.swap(true, Ordering::Relaxed) {
            let path = &self.paths.base;
            tracing::warn!(
                path,
                "The free record is of other settings ({disagreement}); refused if its next holder has them"
            );
        }
    }

    /// Reports once the children of the election directory that are not named like candidates.
    pub fn report_foreign(&self, children: &[String]) {
        if !children.is_empty() && !self.foreign_reported.swap(true, Ordering::Relaxed) {
            let (path, count) = (&self.paths.election, children.len());
            let first = children.first().map_or("", String::as_str);
            // In Curator's directories they are contenders: it compares them by their whole names, and so do we.
            let curators = matches!(self.settings.recipe, Recipe::Sequential | Recipe::CuratorLock);
            let treated = if self.settings.is_shared && curators { "counted, as Curator does" } else { "ignored" };
            tracing::warn!(path, count, first, "Foreign children of the election directory were {treated}");
        }
    }

    pub fn ownership_reported(&self) -> bool {
        self.ownership_reported.load(Ordering::Relaxed)
    }

    pub fn report_ownership_no_more(&self) {
        self.ownership_reported.store(true, Ordering::Relaxed);
    }

    /// Logs that the servers refuse a request again and again, for a reason that the machine does not know.
    pub fn report_refused(&self, request: Request, error: Option<&RequestError>, patience: Duration) {
        let complaint = match error {
            Some(RequestError::Refused(complaint)) => Some(complaint),
            None => None,
            Some(_) => return,
        };
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = refusals.note(request, complaint.is_some(), clock::now().lease, patience);
        if let Some(complaint) = complaint.filter(|_| is_due) {
            tracing::warn!(
                why = "refused",
                "ZooKeeper refuses what this host needs for the election: {complaint}; trying again"
            );
        }
    }

    /// Logs a failure beside the election if a right is missing, or a quota is used up: then it does not pass by itself.
    pub fn report_aside(&self, what: &'static str, error: &RequestError) {
        if !matches!(error, RequestError::Forbidden(_) | RequestError::Refused(_)) {
            return tracing::debug!(?error, "{what}");
        }
        let refusal = error.to_string();
        if self.lock_refused_aside().insert(what, refusal.clone()) != Some(refusal) {
            tracing::warn!("{what}: {error}");
        }
    }

    /// It succeeded: the next refusal is logged again.
    pub fn succeeded_aside(&self, what: &'static str) {
        self.lock_refused_aside().remove(what);
    }

    /// A session is opened in place of another one, which was well: we leave the line, so that others go first.
    pub fn note_turn(&self, is_turn: bool) {
        self.takes_turns.store(is_turn, Ordering::Relaxed);
    }

    pub fn takes_turns(&self) -> bool {
        self.takes_turns.load(Ordering::Relaxed)
    }

    fn lock_refused_aside(&self) -> MutexGuard<'_, HashMap<&'static str, String>> {
        self.refused_aside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_complaints(&self) -> MutexGuard<'_, HashMap<Slot, i64>> {
        self.complained_of.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Candidate>> {
        self.candidate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
