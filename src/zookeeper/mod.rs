//! The supervisor's interface to `ZooKeeper`: carries out the machine's requests and answers each with one event.
//!
//! A request reads in one round (`election::read`) or writes in one multi (`election::transactions`). The session and
//! the watches report changes as events of their own.
//!
//! It does not decide about leadership, and writes only what the machine ordered. The pure parts are `schema::queue`
//! (order of the candidates), `schema::lease` (the lease record), `bootstrap::missing` (what to create) and
//! `client::error`.

pub mod admin;
pub mod client;
pub mod election;
pub mod publish;
pub mod schema;
pub mod standstill;
#[cfg(test)]
pub(crate) mod testing;
pub mod upgrade;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use crate::background;
use crate::clock;
use crate::core::action::{Conditions, Entry};
use crate::core::event::{Candidacy, Denial, Event, Request, SessionNumber};
use crate::core::guard_messages::{ChildStatus, Slot};
use crate::core::operator_orders::Orders;
use crate::core::settings::Recipe;
use crate::core::time::millis;
use client::error::RequestError;
use client::task::Task;
use election::read::{Answer, Watching};
use election::recipe::{sequential, single};
use election::session::arm;
use election::session::companion::Companion;
use election::session::contact::Contact;
use election::session::{CurrentContact, Session};
use election::shared::Shared;
use election::{preempt, read, run_once, transactions};
use publish::leader_query::LeaderQuery;
use publish::{DrainNotice, MemberStatus, Publisher};
use schema::history::Term;
use schema::lease::{Holder, PendingFence};
use schema::vouching::Neighbourhood;

pub use schema::settings::Settings;

/// Every method but [`Election::close`] returns at once. It must be called on a tokio runtime.
#[derive(Debug)]
pub struct Election {
    shared: Arc<Shared>,
    publisher: Arc<Publisher>,
    companion: Arc<Companion>,
    session: Option<Session>,
    /// Sessions that were given up and are being closed.
    closing: Vec<Task>,
}

impl Election {
    pub fn new(settings: Settings, events: UnboundedSender<Event>) -> Self {
        let publisher = Arc::<Publisher>::default();
        let beside = Arc::clone(&publisher);
        let companion = Companion::new(move |contact| publish::keep(Arc::clone(&beside), contact));
        let shared = Arc::new(Shared::new(settings, events));
        Self { shared, publisher, companion: Arc::new(companion), session: None, closing: Vec::new() }
    }

    /// Gives up the present session and opens another. Answer: `Connected`, `Unreachable` or `Rejected`.
    pub fn connect(&mut self, session: SessionNumber) {
        let last = self.session.as_ref().and_then(Session::open_contact);
        self.shared.note_turn(last.is_some_and(|contact| !contact.unanswered.is_silent()));
        self.retire();
        self.session = Some(Session::open(Arc::clone(&self.shared), Arc::clone(&self.companion), session));
    }

    /// Reads for status reports; uses the session that is open at the time of the query.
    pub fn surveyor(&self) -> LeaderQuery {
        LeaderQuery::new(Arc::clone(&self.shared), Arc::clone(&self.companion))
    }

    /// Creates our candidate, or finds it again. Answer: `Seen`.
    pub fn enter(&self, candidacy: Candidacy) {
        match self.shared.settings.recipe {
            Recipe::Single => self.ask(candidacy, Request::Enter, move |contact| single::look(contact, candidacy)),
            _ => self.ask(candidacy, Request::Enter, move |contact| sequential::enter(contact, candidacy)),
        }
    }

    /// Reads the queue, the term and the record. Answer: `Seen`.
    pub fn look(&self, candidacy: Candidacy) {
        match self.shared.settings.recipe {
            Recipe::Single => self.ask(candidacy, Request::Look, move |contact| single::look(contact, candidacy)),
            _ => self.ask(candidacy, Request::Look, move |contact| sequential::look(contact, candidacy)),
        }
    }

    /// Reads the record of a slot and watches it. Answer: `Observed`.
    pub fn observe(&self, candidacy: Candidacy, slot: Slot) {
        self.ask(candidacy, Request::Observe, move |contact| read::observe(contact, candidacy, slot));
    }

    /// The session goes on over another connection, because this server has missed or lost writes.
    pub fn leave_server(&self) {
        if let Some(contact) = self.session.as_ref().and_then(Session::open_contact) {
            tracing::warn!(
                why = "server-differs",
                "This server shows a lease record that the ensemble does not have: it has missed or lost writes; the servers are asked again, over another connection"
            );
            contact.client.give_up();
        }
    }

    /// The earlier leaders that must be fenced in our term.
    pub fn unfenced(&self) -> Vec<PendingFence> {
        self.shared.pending_fences.ours()
    }

    /// Whose leases keep others from leading, as read last. Beside other libraries that is not known: the first in line leads.
    pub fn lease_holders(&self) -> Vec<String> {
        let is_known = !self.shared.settings.is_shared;
        let leases = self.shared.pending_fences.leases();
        leases.iter().filter(|_| is_known).filter_map(Holder::name).collect()
    }

    /// Whose lease our last take-over had to wait for.
    pub fn leader_before(&self) -> Option<String> {
        self.shared.pending_fences.before().and_then(|leader| leader.name())
    }

    /// A command is started in our term: all pending fences are done.
    pub fn settle(&self) {
        self.shared.pending_fences.settle();
    }

    /// Answer: `TookOver`.
    pub fn take_over(&self, candidacy: Candidacy, conditions: Conditions, entry: Entry, longest: Duration) {
        let work = move |contact| transactions::take_over(contact, candidacy, conditions, entry, longest);
        self.ask(candidacy, Request::TakeOver, work);
    }

    /// Answer: `Renewed`.
    pub fn renew(&self, candidacy: Candidacy, conditions: Conditions, entry: Entry) {
        self.ask(candidacy, Request::Renew, move |contact| transactions::renew(contact, candidacy, conditions, entry));
    }

    /// Writes the marker of the run before it starts, unless it has run already. Answer: `Marked`.
    pub fn mark(&self, candidacy: Candidacy, conditions: Conditions, entry: Entry, is_first: bool) {
        let work = move |contact| run_once::mark(contact, candidacy, conditions, entry, is_first);
        self.ask(candidacy, Request::Mark, work);
    }

    /// How the marked run ended. The release writes it into the marker.
    pub fn end_run(&self, status: ChildStatus, ok: bool) {
        self.shared.end_run(status, ok);
    }

    /// The marked run never began. The release takes its marker back.
    pub fn withdraw_run(&self) {
        self.shared.withdraw_run();
    }

    /// Answer: `Released`.
    pub fn release(&self, candidacy: Candidacy, conditions: Conditions, entry: Entry, keeps_candidate: bool) {
        let work = move |contact| transactions::release(contact, candidacy, conditions, entry, keeps_candidate);
        self.ask(candidacy, Request::Release, work);
    }

    /// Publishes this status in our member znode soon.
    pub fn describe(&self, status: MemberStatus) {
        self.publisher.describe(status);
    }

    /// Writes this term into the history soon.
    pub fn write_down(&self, term: Term) {
        let settings = &self.shared.settings;
        let max_pause_ms = settings.max_pause.map(millis);
        let (id, host) = (settings.id.clone(), settings.host.clone());
        self.publisher.write_down(Term { id, host, max_pause_ms, ..term });
    }

    /// What is known of the hosts that vouch for one another, as it changes. It outlives sessions.
    pub fn neighbourhood(&self) -> watch::Receiver<Neighbourhood> {
        self.shared.neighbourhood()
    }

    /// The operators' orders, as they change.
    pub fn orders(&self) -> watch::Receiver<Orders> {
        self.shared.orders()
    }

    /// The drain of our host, for display.
    pub fn drain(&self) -> watch::Receiver<Option<DrainNotice>> {
        self.publisher.drain()
    }

    /// Asks the leader, whose priority is lower, to hand over. The queue shows whether it does.
    pub fn preempt(&self) {
        if let Some(contact) = self.session.as_ref().and_then(Session::contact) {
            let asking = preempt::ask(Arc::clone(&contact));
            background::spawn(async move {
                match timeout(contact.negotiated, AssertUnwindSafe(asking).catch_unwind()).await {
                    Ok(Ok(Ok(()))) => {}
                    Ok(Ok(Err(error))) => tracing::debug!(?error, "The leader could not be asked to hand over"),
                    Ok(Err(_)) | Err(_) => tracing::debug!("The leader could not be asked to hand over"),
                }
            });
        }
    }

    /// Closes all sessions. `false`: the servers did not confirm it within that time; then the sessions expire.
    pub async fn close(&mut self, within: Duration) -> bool {
        if let Some(contact) = self.session.as_ref().and_then(Session::contact) {
            // A term that has just ended is written into the history; its record is free already.
            if self.publisher.has_terms() {
                sleep(COURTESY).await;
            }
            let writing = AssertUnwindSafe(self.publisher.write_history(&contact)).catch_unwind();
            match timeout(within.min(LAST_WORDS), writing).await {
                Ok(Ok(Ok(()))) => {}
                Ok(_) => tracing::debug!("The history was not written"),
                Err(_) => tracing::debug!("The history was not written in time"),
            }
        }
        self.retire();
        let closed = async {
            for service in &mut self.closing {
                service.over().await;
            }
        };
        timeout(within, closed).await.is_ok()
    }

    fn retire(&mut self) {
        self.closing.retain(|service| !service.is_over());
        self.closing.extend(self.session.take().and_then(Session::retire));
    }

    /// Does `work` in the present session. Without an answer within the session timeout the outcome is unknown.
    fn ask<F>(&self, candidacy: Candidacy, request: Request, work: impl FnOnce(Arc<Contact>) -> F + Send + 'static)
    where
        F: Future<Output = Result<Answer, RequestError>> + Send + 'static,
    {
        let session = self.session.as_ref();
        let session = session.and_then(|session| Some((session.contact()?, session.current(), session.retired())));
        let Some((contact, current, mut retired)) = session else {
            return self.shared.tell(Event::Unanswered { candidacy, request });
        };
        let asked_at = clock::now().lease;
        background::spawn(async move {
            let limit = contact.negotiated;
            let known = async {
                let answer = timeout(limit, put(current, work)).await;
                // What was not answered starts no command. Its connection may be lost, and the orders not known to it any more.
                let by = match &answer {
                    Ok((Some(by), Ok(_) | Err(RequestError::Denied(_) | RequestError::Forbidden(_)))) => Arc::clone(by),
                    _ => return answer,
                };
                if !by.briefed().await {
                    let unknown = RequestError::unknown("the connection was lost before the orders were known");
                    return Ok((Some(by), Err(unknown)));
                }
                answer
            };
            let (by, answer) = tokio::select! {
                biased;
                answer = known => {
                    answer.unwrap_or_else(|_| (None, Err(RequestError::unknown("no answer within the session timeout"))))
                }
                () = retired.wait() => (None, Err(RequestError::unknown("the session was given up"))),
            };
            // Given up for its silence, it does not seem connected any more.
            let was_silent = by.as_ref().is_some_and(|contact| contact.client.was_silent());
            let contact = by.unwrap_or(contact);
            log(&contact, candidacy, request, &answer);
            let error = match &answer {
                Err(error @ (RequestError::Refused(_) | RequestError::Unknown(_))) => Some(error.to_string()),
                _ => None,
            };
            let unanswered = contact.unanswered.note(error.is_none(), asked_at, clock::now().lease);
            give(&contact, candidacy, request, answer).await;
            if unanswered >= contact.negotiated && (was_silent || contact.seems_connected()) {
                give_up(&contact, error.as_deref());
            }
        });
    }
}

/// The error is that of the last request.
fn give_up(contact: &Contact, error: Option<&str>) {
    tracing::warn!(error, "No request has succeeded for the session timeout; the session is given up, for a new one");
    contact.shared.tell(Event::SessionOver { session: contact.number });
}

/// A pause that lets the successor's requests go first: ours would stand before them in the server's queue, and each
/// writes to its disk.
const COURTESY: Duration = Duration::from_millis(5);
/// Closing a session waits at most this long for the history.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Does `work` as soon as there is a connection.
async fn put<F>(
    current: CurrentContact,
    work: impl FnOnce(Arc<Contact>) -> F,
) -> (Option<Arc<Contact>>, Result<Answer, RequestError>)
where
    F: Future<Output = Result<Answer, RequestError>>,
{
    let Some(contact) = current.contact().await else {
        return (None, Err(RequestError::unknown("the session is over")));
    };
    // The client library panics on replies that are too short. Such a reply is no answer.
    let answer = AssertUnwindSafe(work(Arc::clone(&contact))).catch_unwind().await;
    (Some(contact), answer.unwrap_or_else(|_| Err(RequestError::unknown("the reply made no sense"))))
}

/// Tells the answer first. The watches are armed after the requests that follow from it, so a take-over does not wait
/// for them.
async fn give(contact: &Arc<Contact>, candidacy: Candidacy, request: Request, answer: Result<Answer, RequestError>) {
    let (event, watching) = match answer {
        Ok(Answer { event, watches }) => (event, watches),
        Err(RequestError::Denied(denial)) => (Event::Denied { candidacy, request, denial }, Watching::Unchanged),
        Err(RequestError::Forbidden(refusal)) => {
            (Event::Denied { candidacy, request, denial: Denial::Forbidden(refusal.grounds()) }, Watching::Unchanged)
        }
        Err(RequestError::Refused(_) | RequestError::Unknown(_)) => {
            (Event::Unanswered { candidacy, request }, Watching::Unchanged)
        }
    };
    contact.shared.tell(event);
    yield_now().await;
    match watching {
        Watching::Unchanged => {}
        Watching::Only(watches) => arm::set(contact, candidacy, watches),
        Watching::Also(watches) => arm::add(contact, candidacy, watches),
        Watching::Record(slot, watcher) => arm::keep_record(contact, candidacy, slot, watcher),
    }
}

fn log(contact: &Contact, candidacy: Candidacy, request: Request, answer: &Result<Answer, RequestError>) {
    contact.shared.report_refused(request, answer.as_ref().err(), contact.negotiated);
    let candidacy = candidacy.0;
    match answer {
        Ok(_) if request == Request::Renew => tracing::trace!(candidacy, "Renewal was acknowledged"),
        Ok(Answer { event, .. }) => tracing::debug!(candidacy, ?request, ?event, "Request was answered"),
        Err(RequestError::Forbidden(refusal)) => {
            tracing::error!(why = "forbidden", "Forbidden by ZooKeeper: {refusal}");
        }
        Err(RequestError::Denied(denial)) => tracing::debug!(candidacy, ?request, ?denial, "Request was denied"),
        Err(RequestError::Refused(complaint)) => {
            tracing::debug!(candidacy, ?request, %complaint, "Request was refused");
        }
        Err(RequestError::Unknown(error)) => tracing::debug!(candidacy, ?request, error, "Request was not answered"),
    }
}
