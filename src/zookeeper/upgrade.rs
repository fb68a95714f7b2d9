//! An upgrade in place: one program hands the session and the candidate over to the next, in the same process. Nothing
//! is closed or deleted: the next one resumes the session as after a lost connection, and looks at everything again.

use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::sleep;

use super::Election;
use super::client::address::Address;
use super::client::connect::Access;
use super::client::connection::Connection;
use super::client::kerberos;
use super::client::session_key::{self, SessionKey};
use super::client::task::Task;
use super::election::session::Session;
use super::election::session::contact::Contact;
use super::election::shared::Kept;
use super::schema::history::Term;
use super::schema::settings::Settings;
use crate::clock;
use crate::core::event::Event;

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(10);
/// So many are made, however long this host stood still in one of them: a session that is over by then is given up as any other.
const ATTEMPTS_LEAST: u32 = 3;
/// Less than the new program may take for its answer.
const LOGIN_LIMIT: Duration = Duration::from_secs(3);

/// See the module page. Holds the session's password.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandedOver {
    key: SessionKey,
    kept: Kept,
    unwritten: Vec<Term>,
}

impl HandedOver {
    /// T of the session.
    pub fn negotiated(&self) -> Duration {
        self.key.negotiated
    }

    /// Checks that this program can resume a session, without asking a server.
    ///
    /// # Errors
    /// If this process cannot connect to itself.
    pub async fn rehearse(&self) -> io::Result<()> {
        session_key::connection(&self.key).await.map(drop)
    }
}

/// Checks that a login by Kerberos would succeed at one of these servers, if there is one: to resume the session, the next
/// program has to log in anew.
///
/// # Errors
/// Why it would fail, as a sentence.
pub async fn rehearse_login(servers: &str, access: &Access) -> Result<(), String> {
    let Some(principal) = &access.kerberos else { return Ok(()) };
    let servers: Vec<_> = servers.split(',').collect();
    let patience = LOGIN_LIMIT / u32::try_from(servers.len()).unwrap_or(u32::MAX);
    let mut complaint = None;
    for server in servers {
        complaint = kerberos::complaint(principal, Address::of(server).host, patience).await;
        if complaint.is_none() {
            break;
        }
    }
    complaint.map_or(Ok(()), |complaint| Err(complaint.text))
}

impl Election {
    /// The key of the present session. `None`: there is none, or it is not connected.
    pub fn key(&self) -> Option<impl Future<Output = io::Result<SessionKey>> + Send + use<>> {
        let contact = self.session.as_ref().and_then(Session::open_contact)?;
        let (session, negotiated) = (contact.client.session(), contact.negotiated);
        Some(session_key::of(session, negotiated))
    }

    /// Whether the present session is not the one that this is the key of.
    pub fn has_another_session(&self, key: &SessionKey) -> bool {
        self.session.as_ref().and_then(Session::contact).is_some_and(|contact| contact.id() != key.id)
    }

    /// # Errors
    /// Why this is not the moment.
    pub fn hand_over(&self, key: &SessionKey) -> Result<HandedOver, &'static str> {
        let contact = self.session.as_ref().and_then(Session::open_contact);
        let contact = contact.ok_or("there is no contact with ZooKeeper")?;
        if contact.id() != key.id {
            return Err("the session is a new one");
        }
        if !self.closing.iter().all(Task::is_over) {
            return Err("an earlier session is being closed");
        }
        let kept = self.shared.hand_over(contact.number).ok_or("our candidate is not known to exist")?;
        Ok(HandedOver { key: key.clone(), kept, unwritten: self.publisher.unwritten() })
    }

    /// Goes on with what an earlier program has handed over. The session is being resumed.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn take_up(settings: Settings, events: UnboundedSender<Event>, state: HandedOver) -> io::Result<Self> {
        let HandedOver { key, kept, unwritten } = state;
        let mut election = Self::new(settings, events);
        let (number, candidacy) = (kept.session, kept.candidacy);
        let lost = connection(&key, &election.shared.settings.access).await?;
        let lost = Contact::lost(&election.shared, number, candidacy, lost);
        election.shared.take_up(kept).map_err(io::Error::other)?;
        for term in unwritten {
            election.publisher.write_down(term);
        }
        let companion = Arc::clone(&election.companion);
        election.session = Some(Session::take_up(Arc::clone(&election.shared), companion, lost));
        Ok(election)
    }
}

/// Tried for as long as the session may last: there is no way back any more.
async fn connection(key: &SessionKey, access: &Access) -> io::Result<Connection> {
    if let Some(simulated) = &access.simulated {
        return Ok(simulated.lost(key.token()));
    }
    let (began, mut attempts) = (clock::now().lease, 0);
    loop {
        attempts += 1;
        // The client library panics where no thread can be started.
        let tried = AssertUnwindSafe(session_key::connection(key)).catch_unwind().await;
        match tried.unwrap_or_else(|_| Err(io::Error::other("the client library has panicked"))) {
            Err(error) if attempts < ATTEMPTS_LEAST || began.until(clock::now().lease) < key.negotiated => {
                tracing::warn!(%error, "The session's key was not taken; trying again");
                sleep(PAUSE).await;
            }
            result => return result,
        }
    }
}
