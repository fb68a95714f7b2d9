//! An established session: its client, its watches, and what is known of its answers.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::core::event::SessionNumber;
use crate::core::lease::connection_timeout;
use crate::zookeeper::client::connection::{Connection, Error, State};
use crate::zookeeper::client::task::Task;
use crate::zookeeper::election::session::unanswered::UnansweredSince;
use crate::zookeeper::election::session::watches::Watches;
use crate::zookeeper::election::shared::Shared;

/// Without an event, what is watched is read again after this time: an event that was lost must not be missed for ever.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(300);

/// An established session.
#[derive(Debug)]
pub(crate) struct Contact {
    pub shared: Arc<Shared>,
    pub client: Connection,
    pub number: SessionNumber,
    pub negotiated: Duration,
    pub watches: Watches,
    pub unanswered: UnansweredSince,
    /// Whether the operators' orders are known.
    pub(crate) briefed: watch::Sender<bool>,
}

impl Contact {
    /// Opens a session, this once. The client library's own limit counts from the last byte that came.
    pub async fn open(shared: &Arc<Shared>, number: SessionNumber) -> Result<Self, Error> {
        let asked = shared.settings.session_timeout;
        let opening = shared.settings.access.open(&shared.settings.servers, shared.pace(), None);
        let opening = timeout(asked + connection_timeout(asked), opening);
        let client = opening.await.map_err(|_| Error::Timeout)??;
        let negotiated = client.session_timeout();
        let (shared, watches, unanswered) = (Arc::clone(shared), Watches::default(), UnansweredSince::default());
        let briefed = watch::Sender::new(false);
        Ok(Self { shared, client, number, negotiated, watches, unanswered, briefed })
    }

    /// As far as the client library knows.
    pub fn seems_connected(&self) -> bool {
        self.client.state() == State::Connected
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

    /// For how long the record of a leader that lives may stay as it is: with several leaders, of whom only one is watched, two
    /// renewal intervals of ours.
    pub fn patience(&self) -> Duration {
        let settings = &self.shared.settings;
        if settings.leaders > 1 { settings.own_lease(self.negotiated) / 4 } else { LOOK_AGAIN }
    }

    /// The client library's task, which ends when the session does.
    pub fn service(&self) -> Task {
        self.client.task.clone()
    }

    /// The server's id of this session.
    pub fn id(&self) -> i64 {
        self.client.session_id()
    }
}
