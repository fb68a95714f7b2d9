//! One session with the ensemble, from opening to giving up. Its events are hints for the machine, which also decides
//! when to open the next one.
//!
//! The session is not detached: when the last handle of its client is dropped it is closed, and its candidate is
//! deleted. The lease record stays, so closing a session too early costs a wait and never safety.

pub(crate) mod arm;
pub(crate) mod companion;
pub(crate) mod contact;
mod resume;
mod time_without_answer;
pub(crate) mod watches;

use std::convert::Infallible;
use std::future::pending;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use crate::zookeeper::client::connection::{Error, State, States};
use futures_util::FutureExt as _;
use futures_util::future::OptionFuture;
use tokio::sync::{Mutex, watch};
use tokio::time::{sleep, timeout};

use crate::background;
use crate::clock;
use crate::core::event::{Event, SessionNumber};
use crate::core::time::millis;
use crate::core::vouching::LIMIT_LEASES;
use crate::zookeeper::client::error::{Refusal, no_session};
use crate::zookeeper::client::task::Task;
use crate::zookeeper::election::read;
use crate::zookeeper::election::shared::Shared;
use crate::zookeeper::schema::control::remedy::word;
use crate::zookeeper::schema::settings::Settings;
use companion::Companion;
use contact::Contact;

/// Resolves when the session is given up: a new one is opened, or the election is closed.
#[derive(Clone, Debug)]
pub(crate) struct Retired(watch::Receiver<()>);

impl Retired {
    pub async fn wait(&mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

/// A session that is being opened, is open, or is over.
#[derive(Debug)]
pub(crate) struct Session {
    current: CurrentContact,
    // Dropped: everything that waits on this session stops waiting.
    retired: watch::Sender<()>,
}

/// The state of the connection.
#[derive(Clone, Debug, Default)]
enum ConnectionState {
    #[default]
    None,
    Open(Arc<Contact>),
    /// The connection was lost, and a new client tries to resume the session.
    Lost(Arc<Contact>),
}

/// The connection of a session, which may change.
#[derive(Clone, Debug)]
pub(crate) struct CurrentContact {
    way: watch::Receiver<ConnectionState>,
    /// Requests that wait for a connection leave in the order in which they came: a `watch` wakes them in any.
    turn: Arc<Mutex<()>>,
}

impl CurrentContact {
    fn new(way: watch::Receiver<ConnectionState>) -> Self {
        Self { way, turn: Arc::default() }
    }

    fn last(&self) -> Option<Arc<Contact>> {
        match &*self.way.borrow() {
            ConnectionState::None => None,
            ConnectionState::Open(contact) | ConnectionState::Lost(contact) => Some(Arc::clone(contact)),
        }
    }

    /// Waits while the session is being resumed. `None`: it is over.
    pub async fn contact(mut self) -> Option<Arc<Contact>> {
        let _turn = self.turn.lock().await;
        match &*self.way.wait_for(|way| matches!(way, ConnectionState::Open(_))).await.ok()? {
            ConnectionState::Open(contact) => Some(Arc::clone(contact)),
            ConnectionState::None | ConnectionState::Lost(_) => None,
        }
    }
}

impl Session {
    /// Answers with exactly one of `Connected`, `Unreachable` and `Rejected`, then follows the session's state.
    pub fn open(shared: Arc<Shared>, companion: Arc<Companion>, number: SessionNumber) -> Self {
        let ((retired, receiver), (way, current)) = (watch::channel(()), watch::channel(ConnectionState::None));
        background::spawn(serve(shared, companion, number, way, Retired(receiver)));
        Self { current: CurrentContact::new(current), retired }
    }

    /// Goes on with a session of an earlier program of this process, as after a lost connection: it is resumed, and
    /// followed to its end.
    pub fn take_up(shared: Arc<Shared>, companion: Arc<Companion>, lost: Contact) -> Self {
        let lost = Arc::new(lost);
        let (retired, receiver) = watch::channel(());
        let (way, current) = watch::channel(ConnectionState::Lost(Arc::clone(&lost)));
        background::spawn(async move {
            let resumed = resume(&shared, &companion, (Arc::clone(&lost), TAKEN_OVER), &way);
            Box::pin(until_retired(&shared, lost.number, Retired(receiver), resumed)).await;
        });
        Self { current: CurrentContact::new(current), retired }
    }

    /// The last connection, while it is open.
    pub fn open_contact(&self) -> Option<Arc<Contact>> {
        match &*self.current.way.borrow() {
            ConnectionState::Open(contact) => Some(Arc::clone(contact)).filter(|contact| contact.seems_connected()),
            ConnectionState::None | ConnectionState::Lost(_) => None,
        }
    }

    /// The last connection.
    pub fn contact(&self) -> Option<Arc<Contact>> {
        self.current.last()
    }

    pub fn current(&self) -> CurrentContact {
        self.current.clone()
    }

    pub fn retired(&self) -> Retired {
        Retired(self.retired.subscribe())
    }

    /// Drops the client, so that the session is closed in the background; the returned task ends when it is. After a
    /// session timeout the server has expired it anyway, also one that is being resumed.
    pub fn retire(self) -> Option<Task> {
        let contact = self.contact()?;
        contact.watches.close();
        contact.client.task.end_after(contact.negotiated);
        Some(contact.service())
    }
}

async fn serve(
    shared: Arc<Shared>,
    companion: Arc<Companion>,
    number: SessionNumber,
    way: watch::Sender<ConnectionState>,
    retired: Retired,
) {
    let served = async {
        match Contact::open(&shared, number).await {
            Ok(contact) => see_through(&shared, &companion, contact, &way).await,
            Err(error) => failed(&shared, number, &error).await,
        }
    };
    Box::pin(until_retired(&shared, number, retired, served)).await;
}

/// If `work` panics, the machine still hears that its session is over.
async fn until_retired(shared: &Shared, session: SessionNumber, mut retired: Retired, work: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = retired.wait() => {}
        ended = AssertUnwindSafe(work).catch_unwind() => if ended.is_err() {
            shared.tell(Event::SessionOver { session });
        }
    }
}

/// What was asked for was checked with the settings at the start; what is granted may be longer.
fn report_grant(settings: &Settings, negotiated: Duration) {
    let asked = settings.session_timeout;
    if negotiated == asked {
        return;
    }
    let granted = humantime::format_duration(negotiated).to_string();
    tracing::warn!(
        "ZooKeeper grants a session timeout of {granted} instead of {}: the lease follows it; write --session-timeout {}, or \
         change minSessionTimeout or maxSessionTimeout of the servers",
        humantime::format_duration(asked),
        word(&granted)
    );
    let shortest = LIMIT_LEASES * settings.own_lease(negotiated);
    if let Some(limit) = settings.vouch.map(|vouch| vouch.limit).filter(|limit| *limit < shortest) {
        tracing::warn!(
            "--vouch-limit {} is less than two leases, which are {} with that: an outage may stop the command as without --vouch; \
             raise it on every host, or let the servers grant a shorter session timeout",
            humantime::format_duration(limit),
            humantime::format_duration(shortest)
        );
    }
}

/// Follows the session to its end, through its connections.
async fn see_through(
    shared: &Arc<Shared>,
    companion: &Companion,
    contact: Contact,
    way: &watch::Sender<ConnectionState>,
) {
    let (number, negotiated, servers) = (contact.number, contact.negotiated, &shared.settings.servers);
    let negotiated_ms = millis(negotiated);
    let session = format!("{:#x}", contact.client.session_id());
    // The first one is what everybody expects, and one in place of another that was given up in good order.
    let was_reached = shared.was_reached();
    if was_reached && !shared.takes_turns() {
        tracing::info!(session, negotiated_ms, servers, "Session was opened anew, in place of the one before");
    } else {
        tracing::debug!(session, negotiated_ms, servers, "Session was opened");
    }
    report_grant(&shared.settings, negotiated);
    shared.reached();
    let news = vec![Event::Connected { session: number, negotiated }];
    if let Some(lost) = keep(shared, companion, Arc::new(contact), way, (news, was_reached)).await {
        resume(shared, companion, (lost, RESTORED), way).await;
    }
}

const RESTORED: &str = "Contact with ZooKeeper was restored";

/// Of an upgrade: the session was not in trouble.
const TAKEN_OVER: &str = "Contact with ZooKeeper was taken over from the program before";

/// Follows a session that has lost its connection to its end. `told`: once it has one again.
async fn resume(
    shared: &Arc<Shared>,
    companion: &Companion,
    (mut lost, mut told): (Arc<Contact>, &'static str),
    way: &watch::Sender<ConnectionState>,
) {
    let mut pauses = resume::Pauses::new(&lost);
    loop {
        way.send_replace(ConnectionState::Lost(Arc::clone(&lost)));
        let taken_up = async {
            sleep(pauses.next()).await;
            resume::take_up(&lost).await
        };
        let taken_up = tokio::select! {
            biased;
            taken_up = taken_up => taken_up,
            never = wonder(&lost) => match never {},
        };
        let contact = match taken_up {
            Ok(resumed) => Arc::new(resumed),
            Err(error) => {
                tracing::info!(%error, "Session ended");
                return shared.tell(Event::SessionOver { session: lost.number });
            }
        };
        shared.reached();
        tracing::info!("{told}");
        told = RESTORED;
        let begun = clock::now().lease;
        match keep(shared, companion, contact, way, (resume::news(&lost), true)).await {
            Some(again) => lost = again,
            None => return,
        }
        pauses.lasted(begun.until(clock::now().lease));
    }
}

/// Serves one connection to its end. Returns it if the session is to be resumed by another. `is_again`: another one was lost before.
async fn keep(
    shared: &Arc<Shared>,
    companion: &Companion,
    contact: Arc<Contact>,
    way: &watch::Sender<ConnectionState>,
    (news, is_again): (Vec<Event>, bool),
) -> Option<Arc<Contact>> {
    let session = contact.number;
    let (states, mut service) = (contact.client.states(), contact.service());
    let watched = states.clone();
    service.stand_still_when(move || watched.latest() == State::Lost);
    let (present, beside, useless) = (Arc::downgrade(&contact), companion.join(&contact), contact.client.useless());
    let glimpse = OptionFuture::from(is_again.then(|| read::glimpse(Arc::clone(&contact))));
    way.send_replace(ConnectionState::Open(contact));
    for event in news {
        shared.tell(event);
    }
    let is_lost = tokio::select! {
        biased;
        is_lost = follow(shared, session, states) => is_lost,
        () = useless.notified() => {
            lose(shared, session);
            true
        }
        never = stay_after(glimpse) => match never {},
        () = beside => false,
        // The task reports a state before it ends, unless it ends by a bug.
        () = service.over() => {
            tracing::warn!("Session ended without a word");
            shared.tell(Event::SessionOver { session });
            false
        }
    };
    let contact = present.upgrade()?;
    contact.ended();
    is_lost.then_some(contact)
}

/// What is read besides may be nonsense, which the client library answers with a panic.
async fn stay_after<T>(work: impl Future<Output = T>) -> Infallible {
    drop(AssertUnwindSafe(work).catch_unwind().await);
    pending().await
}

fn lose(shared: &Shared, session: SessionNumber) {
    tracing::info!("Contact with ZooKeeper was lost");
    shared.begin_outage();
    shared.settings.access.refresh();
    shared.tell(Event::ContactLost { session });
}

/// A refusal of our credentials by every server that answers is fatal, but not of a ticket that was good: it may be of an earlier key of the
/// servers, and passes with a new one. Any other is fatal only before the first session; later it may pass,
/// and the diagnosis must not delay the next attempt.
async fn failed(shared: &Arc<Shared>, session: SessionNumber, error: &Error) {
    shared.begin_outage();
    if matches!(error, Error::AuthFailed | Error::NoAuth) {
        let refusal = shared.settings.access.refusal();
        if refusal == Refusal::Login && shared.was_reached() {
            shared.report_outage(refusal.to_string(), false);
            return shared.tell(Event::Unreachable { session });
        }
        tracing::error!(servers = shared.settings.servers, why = "refused", "No session: {refusal}");
        return shared.tell(Event::Rejected { session, grounds: refusal.grounds() });
    }
    if shared.was_reached() {
        shared.tell(Event::Unreachable { session });
        return ask_why(shared, no_session(error));
    }
    match shared.diagnose(no_session(error)).await {
        Some(diagnosis) if diagnosis.is_final => {
            shared.tell(Event::Rejected { session, grounds: diagnosis.grounds });
        }
        _ => shared.tell(Event::Unreachable { session }),
    }
}

/// While the session is being resumed, the servers are asked this often why they do not answer.
const ASKED_EVERY: Duration = Duration::from_secs(10);

/// Renewed certificates must be known before the next connection needs them.
const CERTIFICATES_ARE_READ_EVERY: Duration = Duration::from_secs(10);

/// Waits until the session is over or has lost its connection (`true`). Reads renewed certificates meanwhile.
async fn follow(shared: &Shared, session: SessionNumber, mut states: States) -> bool {
    loop {
        match states.latest() {
            State::Lost => {
                lose(shared, session);
                return true;
            }
            // The next session shows whether our credentials are bad.
            State::Over => {
                tracing::info!("Session ended");
                shared.tell(Event::SessionOver { session });
                return false;
            }
            State::Connected => {}
        }
        if timeout(CERTIFICATES_ARE_READ_EVERY, states.changed()).await.is_err() {
            shared.settings.access.refresh();
        }
    }
}

/// While the session is being resumed, asks the servers why they refuse us: early enough to be logged beside the end of
/// the command, and then every [`ASKED_EVERY`].
async fn wonder(lost: &Contact) -> Infallible {
    sleep(lost.negotiated / 4).await;
    // After an upgrade, a session is taken up again though contact was not lost.
    lost.shared.begin_outage();
    loop {
        ask_why(&lost.shared, no_session(&Error::NoHosts));
        sleep(ASKED_EVERY).await;
    }
}

/// Asks in the background.
fn ask_why(shared: &Arc<Shared>, error: String) {
    let shared = Arc::clone(shared);
    background::spawn(async move { shared.diagnose(error).await });
}
