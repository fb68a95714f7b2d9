//! Resumes a session that has lost its connection in a new client: the session, and with it the candidate and its
//! place, stay the same.
//!
//! The client library reconnects too, but doubles its pauses without a limit, gives the session up after 7/5 of its
//! timeout although no server has expired it, and sets its watches before a login by SASL. A new client has no watches,
//! so the login comes first. All that was watched counts as changed, and is read again.
//!
//! The lease is not affected: it ends where the last acknowledged renewal has put its end, and only another renewal
//! moves that. A session has one client at a time.

use std::time::Duration;

use crate::zookeeper::client::connect::Pace;
use crate::zookeeper::client::connection::{Connection, Error};
use tokio::sync::{Mutex, watch};
use tokio::time::{sleep, timeout};

use crate::clock;
use crate::core::backoff::{Backoff, LONGEST_WITHOUT_SESSION};
use crate::core::event::Event;
use crate::core::lease::{RENEWALS_PER_LEASE, connection_timeout};
use crate::zookeeper::election::session::contact::Contact;
use crate::zookeeper::election::session::watches::Watches;

/// Resumes the session in a new client, after the old one was ended. Tries until a server says that the session is
/// over: a server that was down has expired nothing.
///
/// # Errors
///
/// The session is over.
pub(crate) async fn take_up(lost: &Contact) -> Result<Contact, Error> {
    lost.watches.close();
    lost.client.task.end();
    let client = reach(lost).await?;
    let granted = client.session_timeout();
    report_change(lost.client.session_timeout(), granted);
    let settings = &lost.shared.settings;
    // Nobody there waits for our lease: it must not outlast the session. That is left to expire, with our candidate, while the command
    // is killed.
    if settings.is_shared && settings.own_lease(granted) < settings.own_lease(lost.negotiated) {
        client.task.end();
        return Err(Error::SessionExpired);
    }
    // The new client does not know how far the old one had read, and could accept a server that lags behind.
    let synced = timeout(connection_timeout(lost.negotiated), client.sync("/")).await;
    tracing::debug!(?synced, "Session was taken up");
    Ok(Contact {
        shared: lost.shared.clone(),
        client,
        number: lost.number,
        negotiated: lost.negotiated,
        watches: Watches::of(lost.watches.candidacy()),
        // A server that accepts sessions and answers nothing must not keep this one, and its candidate, for ever.
        unanswered: lost.unanswered.carried(matches!(synced, Ok(Ok(())))),
        // The orders may have changed meanwhile.
        briefed: watch::Sender::default(),
        turn: Mutex::default(),
    })
}

/// The servers were restarted with other settings. The record says by which timeout its lease counts, so that stays where others wait
/// for that lease.
fn report_change(before: Duration, granted: Duration) {
    if granted != before {
        tracing::warn!(
            "ZooKeeper now grants this session a timeout of {} instead of {}: the lease follows it with the next session; see \
             minSessionTimeout and maxSessionTimeout of the servers",
            humantime::format_duration(granted),
            humantime::format_duration(before)
        );
    }
}

/// The events after a session was resumed: every watched znode may have changed.
pub(crate) fn news(lost: &Contact) -> Vec<Event> {
    let candidacy = lost.watches.candidacy();
    vec![Event::ContactRestored { session: lost.number }, Event::LineChanged { candidacy }]
}

/// Between connections that are lost as soon as they are made, as by a server that closes them at a request. An outage costs no
/// pause.
pub(super) struct Pauses {
    backoff: Backoff,
    in_vain: u32,
    /// A connection that lasted as long was of use.
    useful: Duration,
}

impl Pauses {
    /// So many in a row cost nothing.
    const FREE: u32 = 2;

    pub fn new(lost: &Contact) -> Self {
        let backoff = Backoff::new(lost.shared.settings.instance, LONGEST_WITHOUT_SESSION);
        Self { backoff, in_vain: 0, useful: lost.negotiated / 8 }
    }

    pub fn lasted(&mut self, length: Duration) {
        if length < self.useful {
            self.in_vain += 1;
        } else {
            self.in_vain = 0;
            self.backoff.reset();
        }
    }

    pub fn next(&mut self) -> Duration {
        if self.in_vain <= Self::FREE {
            return Duration::ZERO;
        }
        let now = clock::now().lease;
        now.until(self.backoff.retry_at(now))
    }
}

async fn reach(lost: &Contact) -> Result<Connection, Error> {
    tracing::debug!("Session is being taken up");
    let (shared, session) = (&lost.shared, lost.client.session());
    let id = lost.client.session_id();
    let longest = (shared.settings.own_lease(lost.negotiated) / RENEWALS_PER_LEASE / 2).min(LONGEST_WITHOUT_SESSION);
    let mut backoff = Backoff::new(shared.settings.instance, longest);
    let lost_at = clock::now().lease;
    loop {
        let (servers, pace) = (&shared.settings.servers, Pace::of(lost.negotiated));
        let is_late = lost_at.until(clock::now().lease) > lost.negotiated;
        // A try prolongs the session even if its answer is lost (a link of one direction), and our candidate must not stand in the
        // way of others for ever: after a session timeout, only servers that have just given us another session are asked for ours.
        let probe = if is_late { shared.settings.access.open(servers, pace, None).await.map(Some) } else { Ok(None) };
        let opened = match probe {
            Ok(_probe) => shared.settings.access.open(servers, pace, Some(session.clone())).await,
            Err(error) => Err(error),
        };
        let error = match opened {
            Ok(client) if client.session_id() == id => return Ok(client),
            // It is another session, and not ours to close.
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
        let now = clock::now().lease;
        sleep(now.until(backoff.retry_at(now))).await;
    }
}
