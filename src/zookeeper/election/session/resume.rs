//! A session that has lost its connection, taken up by a new client: the same session, hence the same candidate and place.
//!
//! The client library does this by itself, but asks for its watches ahead of a login by SASL. A new client has no watches,
//! and so the login comes first. What was watched counts as changed, and is read again.
//!
//! The lease knows nothing of it: it ends where the last answered renewal has put its end, and only another one moves that.
//!
//! Never: two clients of one session; a session closed because it could not be taken up.

use std::time::Duration;

use crate::zookeeper::client::connection::{Connection, Error};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::clock;
use crate::core::backoff::Backoff;
use crate::core::event::Event;
use crate::core::lease::connection_timeout;
use crate::zookeeper::client::unanswered::Silence;
use crate::zookeeper::election::session::contact::Contact;
use crate::zookeeper::election::session::watches::Watches;

/// The session in a new client, after the old one was ended. Tries for as long as servers may know the session.
///
/// # Errors
/// The session is over, or nothing is known of it any more.
pub(crate) async fn take_up(lost: &Contact) -> Result<Contact, Error> {
    lost.watches.close();
    lost.client.task.end();
    // As long as the client library would have tried.
    let limit = lost.negotiated * 7 / 5;
    let client = timeout(limit, reach(lost)).await.unwrap_or(Err(Error::Timeout))?;
    // The new client does not know how far the old one had read, and takes a server that lags behind.
    let synced = timeout(connection_timeout(lost.negotiated), client.sync("/")).await;
    tracing::debug!(?synced, "Session was taken up");
    Ok(Contact {
        office: lost.office.clone(),
        client,
        number: lost.number,
        negotiated: lost.negotiated,
        watches: Watches::of(lost.watches.candidacy()),
        silence: Silence::default(),
        briefed: watch::Sender::new(*lost.briefed.borrow()),
    })
}

/// What there is to tell when it was taken up: whatever was watched may have changed.
pub(crate) fn news(lost: &Contact) -> Vec<Event> {
    let candidacy = lost.watches.candidacy();
    vec![Event::ContactRestored { session: lost.number }, Event::LineChanged { candidacy }]
}

async fn reach(lost: &Contact) -> Result<Connection, Error> {
    let (office, session) = (&lost.office, lost.client.session());
    let id = lost.client.session_id();
    let mut backoff = Backoff::new(office.settings.instance);
    loop {
        let (servers, pace) = (&office.settings.servers, office.pace());
        let error = match office.settings.access.open(servers, pace, Some(session.clone())).await {
            Ok(client) if client.session_id() == id => return Ok(client),
            // It is another one, and is not ours to close.
            Ok(client) => {
                client.task.end();
                return Err(Error::SessionExpired);
            }
            Err(error) => error,
        };
        if matches!(error, Error::SessionExpired | Error::AuthFailed) {
            return Err(error);
        }
        tracing::debug!(%error, "Session could not be taken up");
        sleep(pause(&mut backoff)).await;
    }
}

fn pause(backoff: &mut Backoff) -> Duration {
    let now = clock::now().lease;
    now.until(backoff.retry_at(now))
}
