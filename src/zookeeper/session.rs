//! One session with the ensemble: opened, followed and given up. What it says about itself is passed on as hints.
//!
//! The session is not a detached one: when the last handle of its client is dropped it is closed, and its candidate goes
//! with it. The lease record does not go with it, so a session that is closed too early costs a wait and never safety.
//!
//! Never: a second try; when to try again is the machine's decision.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;
use zookeeper_client::{Client, Error, SessionState, StateWatcher};

use super::access::Pace;
use super::board;
use super::fault::Refusal;
use super::office::Office;
use super::service::Service;
use super::silence::Silence;
use super::watches::Watches;
use crate::core::event::{Event, Grounds, SessionNumber};
use crate::core::lease::connection_timeout;

/// An established session.
#[derive(Debug)]
pub(super) struct Contact {
    pub office: Arc<Office>,
    pub client: Client,
    pub number: SessionNumber,
    pub negotiated: Duration,
    pub watches: Watches,
    pub silence: Silence,
    service: Service,
    /// Whether the operators' orders are known.
    briefed: watch::Sender<bool>,
}

impl Contact {
    /// Opens a session, this once. The client library's own limit counts from the last byte that came.
    pub async fn open(office: &Arc<Office>, number: SessionNumber) -> Result<Self, Error> {
        let asked = office.settings.session_timeout;
        let opening = timeout(asked + connection_timeout(asked), connect(office));
        let (client, service) = opening.await.map_err(|_| Error::Timeout)?;
        let (client, service) = (client?, service.ok_or(Error::ClientClosed)?);
        let negotiated = client.session_timeout();
        let (office, watches, silence) = (Arc::clone(office), Watches::default(), Silence::default());
        let briefed = watch::Sender::new(false);
        Ok(Self { office, client, number, negotiated, watches, silence, service, briefed })
    }

    /// As far as the client library knows.
    pub fn seems_connected(&self) -> bool {
        matches!(self.client.state(), SessionState::SyncConnected | SessionState::ConnectedReadOnly)
    }

    /// The operators' orders were read, or cannot be.
    pub fn brief(&self) {
        self.briefed.send_replace(true);
    }

    /// Waits for that, but not for long. They are asked for before anything else, and cost no round of their own.
    pub async fn briefed(&self) {
        let mut briefed = self.briefed.subscribe();
        let in_time = timeout(self.negotiated / 4, briefed.wait_for(|briefed| *briefed)).await.is_ok();
        if !in_time {
            self.brief();
        }
    }

    /// With several leaders: for how long the record of one that lives may stay as it is. Two renewal intervals of ours.
    pub fn patience(&self) -> Option<Duration> {
        let settings = &self.office.settings;
        (settings.leaders > 1).then(|| settings.own_lease(self.negotiated) / 4)
    }

    /// The client library's task, which ends when the session does.
    pub fn service(&self) -> Service {
        self.service.clone()
    }

    /// The server's id of this session.
    pub fn id(&self) -> i64 {
        self.client.session_id().0
    }
}

/// Resolves when the session is given up: a new one is opened, or the desk is closed.
#[derive(Clone, Debug)]
pub(super) struct Retired(watch::Receiver<()>);

impl Retired {
    pub async fn wait(&mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

/// A session that is being opened, is open, or is over.
#[derive(Debug)]
pub(super) struct Session {
    contact: Arc<OnceLock<Arc<Contact>>>,
    // Dropped: everything that waits on this session stops waiting.
    retired: watch::Sender<()>,
}

impl Session {
    /// Answers with exactly one of `Connected`, `Unreachable` and `Rejected`, then follows the session's state.
    pub fn open(office: Arc<Office>, number: SessionNumber) -> Self {
        let (retired, receiver) = watch::channel(());
        let contact = Arc::new(OnceLock::new());
        tokio::spawn(serve(office, number, Arc::clone(&contact), Retired(receiver)));
        Self { contact, retired }
    }

    pub fn contact(&self) -> Option<Arc<Contact>> {
        self.contact.get().cloned()
    }

    pub fn retired(&self) -> Retired {
        Retired(self.retired.subscribe())
    }

    /// Lets go of the client, so that the session is closed in the background; the service tells when it is. After a
    /// session timeout the server has expired it anyway.
    pub fn retire(self) -> Option<Service> {
        let contact = self.contact.get()?;
        contact.watches.close();
        contact.service.end_after(contact.negotiated);
        Some(contact.service.clone())
    }
}

async fn serve(office: Arc<Office>, number: SessionNumber, slot: Arc<OnceLock<Arc<Contact>>>, mut retired: Retired) {
    let opened = tokio::select! {
        opened = Contact::open(&office, number) => opened,
        () = retired.wait() => return,
    };
    let contact = match opened {
        Ok(contact) => contact,
        Err(error) => {
            return tokio::select! {
                () = failed(&office, number, &error) => {}
                () = retired.wait() => {}
            };
        }
    };
    let (states, negotiated, mut service) = (contact.client.state_watcher(), contact.negotiated, contact.service());
    let (session, servers) = (contact.client.session_id(), &office.settings.servers);
    tracing::info!(%session, ?negotiated, servers, "Session was opened");
    office.reached();
    let contact = Arc::new(contact);
    office.greet(&contact);
    let board = board::keep(Arc::downgrade(&contact));
    let _ = slot.set(contact);
    drop(slot);
    office.tell(Event::Connected { session: number, negotiated });
    tokio::select! {
        biased;
        () = retired.wait() => {}
        () = follow(&office, number, negotiated, states) => {}
        () = board => {}
        // It says so by a state before it ends, unless it ends by a bug.
        () = service.over() => {
            tracing::warn!("Session ended without a word");
            office.tell(Event::SessionOver { session: number });
        }
    }
}

async fn connect(office: &Office) -> (Result<Client, Error>, Option<Service>) {
    let asked = office.settings.session_timeout;
    let pace = Pace { session: asked, connection: connection_timeout(asked) };
    office.settings.access.open(&office.settings.servers, pace).await
}

/// As long as no server has ever taken us, what none of them will take ends us; afterwards it may be a slip of theirs, which
/// passes, and asking must not delay the next try. Who was away the first time may refuse us the next.
async fn failed(office: &Arc<Office>, session: SessionNumber, error: &Error) {
    if matches!(error, Error::AuthFailed | Error::NoAuth) {
        tracing::error!(servers = office.settings.servers, "No session: {}", Refusal::Credentials);
        return office.tell(Event::Rejected { session, grounds: Grounds::Credentials });
    }
    office.not_reached(error);
    if office.was_reached() {
        office.tell(Event::Unreachable { session });
        return ask_why(office);
    }
    match office.diagnose().await {
        Some(diagnosis) if diagnosis.is_final => {
            office.tell(Event::Rejected { session, grounds: diagnosis.grounds });
        }
        _ => office.tell(Event::Unreachable { session }),
    }
}

/// Renewed certificates are known before the next connection needs them.
const CERTIFICATES_ARE_READ_EVERY: Duration = Duration::from_secs(10);

/// The watcher keeps the latest state only, so states are compared with what was told before.
async fn follow(office: &Arc<Office>, session: SessionNumber, negotiated: Duration, mut states: StateWatcher) {
    let mut connected = true;
    let mut state = states.state();
    loop {
        match state {
            SessionState::Disconnected if connected => {
                connected = false;
                office.settings.access.refresh();
                tracing::info!("Contact was lost");
                office.tell(Event::ContactLost { session });
            }
            SessionState::SyncConnected | SessionState::ConnectedReadOnly if !connected => {
                connected = true;
                office.reached();
                tracing::info!("Contact was restored");
                office.tell(Event::ContactRestored { session });
            }
            SessionState::AuthFailed => {
                // The client library asks for its watches before a login by SASL is over, so that a server which demands one
                // refuses the session that it has taken before. Whether our credentials are bad, the next session shows.
                tracing::warn!("Session was rejected: authentication failed");
                return office.tell(Event::SessionOver { session });
            }
            SessionState::Expired | SessionState::Closed => {
                tracing::info!(%state, "Session ended");
                return office.tell(Event::SessionOver { session });
            }
            SessionState::Disconnected | SessionState::SyncConnected | SessionState::ConnectedReadOnly => {}
        }
        state = next(office, &mut states, if connected { None } else { Some(negotiated) }).await;
    }
}

/// The next state. Meanwhile renewed certificates are read; and without contact in a session as long as `lost`, the servers are
/// asked once what they have against us, early enough to be read beside the end of the command.
async fn next(office: &Arc<Office>, states: &mut StateWatcher, lost: Option<Duration>) -> SessionState {
    if let Some(negotiated) = lost {
        match timeout(negotiated / 4, states.changed()).await {
            Ok(state) => return state,
            Err(_) => ask_why(office),
        }
    }
    loop {
        match timeout(CERTIFICATES_ARE_READ_EVERY, states.changed()).await {
            Ok(state) => return state,
            Err(_) => office.settings.access.refresh(),
        }
    }
}

/// Nobody waits for the answer.
fn ask_why(office: &Arc<Office>) {
    let office = Arc::clone(office);
    tokio::spawn(async move { office.diagnose().await });
}
