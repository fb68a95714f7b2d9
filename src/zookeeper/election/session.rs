//! One session with the ensemble: opened, followed and given up. What it says about itself is passed on as hints.
//!
//! The session is not a detached one: when the last handle of its client is dropped it is closed, and its candidate goes
//! with it. The lease record does not go with it, so a session that is closed too early costs a wait and never safety.
//!
//! Never: a second try; when to try again is the machine's decision.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use zookeeper_client::{Client, Error, SessionState, StateWatcher};

use crate::core::event::{Event, Grounds, SessionNumber};
use crate::core::lease::connection_timeout;
use crate::zookeeper::client::error::{Refusal, no_session};
use crate::zookeeper::client::task::Service;
use crate::zookeeper::client::unanswered::Silence;
use crate::zookeeper::election::resume;
use crate::zookeeper::election::shared::Office;
use crate::zookeeper::election::watches::Watches;
use crate::zookeeper::publish;

/// An established session.
#[derive(Debug)]
pub(crate) struct Contact {
    pub office: Arc<Office>,
    pub client: Client,
    pub number: SessionNumber,
    pub negotiated: Duration,
    pub watches: Watches,
    pub silence: Silence,
    pub(crate) service: Service,
    /// Whether the operators' orders are known.
    pub(crate) briefed: watch::Sender<bool>,
}

impl Contact {
    /// Opens a session, this once. The client library's own limit counts from the last byte that came.
    pub async fn open(office: &Arc<Office>, number: SessionNumber) -> Result<Self, Error> {
        let asked = office.settings.session_timeout;
        let opening = office.settings.access.open(&office.settings.servers, office.pace(), None);
        let opening = timeout(asked + connection_timeout(asked), opening);
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
pub(crate) struct Retired(watch::Receiver<()>);

impl Retired {
    pub async fn wait(&mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

/// A session that is being opened, is open, or is over.
#[derive(Debug)]
pub(crate) struct Session {
    line: Line,
    // Dropped: everything that waits on this session stops waiting.
    retired: watch::Sender<()>,
}

/// What there is to talk through.
#[derive(Clone, Debug, Default)]
enum Way {
    #[default]
    None,
    Open(Arc<Contact>),
    /// The connection was lost, and a new client is to take the session up.
    Lost(Arc<Contact>),
}

/// The way to the servers, as it comes and goes.
#[derive(Clone, Debug)]
pub(crate) struct Line(watch::Receiver<Way>);

impl Line {
    fn last(&self) -> Option<Arc<Contact>> {
        match &*self.0.borrow() {
            Way::None => None,
            Way::Open(contact) | Way::Lost(contact) => Some(Arc::clone(contact)),
        }
    }

    /// Waits while the session is being taken up. `None`: it is over.
    pub async fn contact(mut self) -> Option<Arc<Contact>> {
        match &*self.0.wait_for(|way| matches!(way, Way::Open(_))).await.ok()? {
            Way::Open(contact) => Some(Arc::clone(contact)),
            Way::None | Way::Lost(_) => None,
        }
    }
}

impl Session {
    /// Answers with exactly one of `Connected`, `Unreachable` and `Rejected`, then follows the session's state.
    pub fn open(office: Arc<Office>, number: SessionNumber) -> Self {
        let ((retired, receiver), (way, line)) = (watch::channel(()), watch::channel(Way::None));
        tokio::spawn(serve(office, number, way, Retired(receiver)));
        Self { line: Line(line), retired }
    }

    /// The last contact there was.
    pub fn contact(&self) -> Option<Arc<Contact>> {
        self.line.last()
    }

    pub fn line(&self) -> Line {
        self.line.clone()
    }

    pub fn retired(&self) -> Retired {
        Retired(self.retired.subscribe())
    }

    /// Lets go of the client, so that the session is closed in the background; the service tells when it is. After a
    /// session timeout the server has expired it anyway, as it does one that is being taken up.
    pub fn retire(self) -> Option<Service> {
        let contact = self.contact()?;
        contact.watches.close();
        contact.service.end_after(contact.negotiated);
        Some(contact.service.clone())
    }
}

async fn serve(office: Arc<Office>, number: SessionNumber, way: watch::Sender<Way>, mut retired: Retired) {
    let served = async {
        match Contact::open(&office, number).await {
            Ok(contact) => see_through(&office, contact, &way).await,
            Err(error) => failed(&office, number, &error).await,
        }
    };
    tokio::select! {
        () = served => {}
        () = retired.wait() => {}
    }
}

/// Follows the session to its end, from one contact to the next.
async fn see_through(office: &Arc<Office>, contact: Contact, way: &watch::Sender<Way>) {
    let (number, negotiated, servers) = (contact.number, contact.negotiated, &office.settings.servers);
    let negotiated_ms = u64::try_from(negotiated.as_millis()).unwrap_or(u64::MAX);
    tracing::info!(session = %contact.client.session_id(), negotiated_ms, servers, "Session was opened");
    let asked = office.settings.session_timeout;
    if negotiated != asked {
        let (granted, asked) = (humantime::format_duration(negotiated), humantime::format_duration(asked));
        tracing::warn!(
            "ZooKeeper grants a session timeout of {granted} instead of {asked}: the lease follows it; see minSessionTimeout              and maxSessionTimeout of the servers"
        );
    }
    office.reached();
    let mut contact = Arc::new(contact);
    let mut news = vec![Event::Connected { session: number, negotiated }];
    while let Some(lost) = keep(office, contact, way, news).await {
        way.send_replace(Way::Lost(Arc::clone(&lost)));
        let taken_up = tokio::select! {
            taken_up = resume::take_up(&lost) => taken_up,
            never = wonder(&lost) => match never {},
        };
        match taken_up {
            Ok(resumed) => contact = Arc::new(resumed),
            Err(error) => {
                tracing::info!(%error, "Session ended");
                return office.tell(Event::SessionOver { session: number });
            }
        }
        office.reached();
        tracing::info!("Contact was restored");
        news = resume::news(&lost);
    }
}

/// Serves one contact to its end. It is returned if the session is to be taken up by another.
async fn keep(
    office: &Arc<Office>,
    contact: Arc<Contact>,
    way: &watch::Sender<Way>,
    news: Vec<Event>,
) -> Option<Arc<Contact>> {
    let (session, negotiated) = (contact.number, contact.negotiated);
    let (states, mut service) = (contact.client.state_watcher(), contact.service());
    let must_be_taken_up = office.settings.access.must_be_taken_up();
    if must_be_taken_up {
        let states = states.clone();
        service.stand_still_when(move || states.peek_state() == SessionState::Disconnected);
    }
    office.greet(&contact);
    let (present, board) = (Arc::downgrade(&contact), publish::keep(Arc::downgrade(&contact)));
    way.send_replace(Way::Open(contact));
    for event in news {
        office.tell(event);
    }
    tokio::select! {
        biased;
        is_lost = follow(office, session, negotiated, states, must_be_taken_up) => {
            return present.upgrade().filter(|_| is_lost);
        }
        () = board => {}
        // It says so by a state before it ends, unless it ends by a bug.
        () = service.over() => {
            tracing::warn!("Session ended without a word");
            office.tell(Event::SessionOver { session });
        }
    }
    None
}

/// As long as no server has ever taken us, what none of them will take ends us; afterwards it may be a slip of theirs, which
/// passes, and asking must not delay the next try. Who was away the first time may refuse us the next.
async fn failed(office: &Arc<Office>, session: SessionNumber, error: &Error) {
    if matches!(error, Error::AuthFailed | Error::NoAuth) {
        tracing::error!(servers = office.settings.servers, "No session: {}", Refusal::Credentials);
        return office.tell(Event::Rejected { session, grounds: Grounds::Credentials });
    }
    if office.was_reached() {
        office.tell(Event::Unreachable { session });
        return ask_why(office, Some(no_session(error)));
    }
    match office.diagnose(Some(no_session(error))).await {
        Some(diagnosis) if diagnosis.is_final => {
            office.tell(Event::Rejected { session, grounds: diagnosis.grounds });
        }
        _ => office.tell(Event::Unreachable { session }),
    }
}

/// Renewed certificates are known before the next connection needs them.
const CERTIFICATES_ARE_READ_EVERY: Duration = Duration::from_secs(10);

/// Until the session is over, which it tells, or has lost contact (`true`) and the client library is not to restore it. The
/// watcher keeps the latest state only, so states are compared with what was told before.
async fn follow(
    office: &Arc<Office>,
    session: SessionNumber,
    negotiated: Duration,
    mut states: StateWatcher,
    must_be_taken_up: bool,
) -> bool {
    let mut connected = true;
    let mut state = states.state();
    loop {
        match state {
            SessionState::Disconnected if connected => {
                connected = false;
                office.settings.access.refresh();
                tracing::info!("Contact was lost");
                office.tell(Event::ContactLost { session });
                if must_be_taken_up {
                    return true;
                }
            }
            SessionState::SyncConnected | SessionState::ConnectedReadOnly if !connected => {
                connected = true;
                office.reached();
                tracing::info!("Contact was restored");
                office.tell(Event::ContactRestored { session });
            }
            // Whether our credentials are bad, the next session shows.
            SessionState::AuthFailed | SessionState::Expired | SessionState::Closed => {
                tracing::info!(%state, "Session ended");
                office.tell(Event::SessionOver { session });
                return false;
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
            Err(_) => ask_why(office, None),
        }
    }
    loop {
        match timeout(CERTIFICATES_ARE_READ_EVERY, states.changed()).await {
            Ok(state) => return state,
            Err(_) => office.settings.access.refresh(),
        }
    }
}

/// The same while the session is being taken up.
async fn wonder(lost: &Contact) -> Infallible {
    sleep(lost.negotiated / 4).await;
    ask_why(&lost.office, None);
    pending().await
}

/// Nobody waits for the answer.
fn ask_why(office: &Arc<Office>, error: Option<String>) {
    let office = Arc::clone(office);
    tokio::spawn(async move { office.diagnose(error).await });
}
