//! A connection within a session: its client, its watches, and whether the orders are known.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, watch};
use tokio::time::timeout;

use crate::core::event::{Candidacy, SessionNumber};
use crate::core::lease::connection_timeout;
use crate::zookeeper::client::connect::Pace;
use crate::zookeeper::client::connection::{Connection, Error, State};
use crate::zookeeper::client::task::Task;
use crate::zookeeper::election::session::time_without_answer::UnansweredSince;
use crate::zookeeper::election::session::watches::Watches;
use crate::zookeeper::election::shared::Shared;

/// Without an event for this long, watched znodes are read again, in case an event was lost.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(300);

/// A connection within a session.
#[derive(Debug)]
pub(crate) struct Contact {
    pub shared: Arc<Shared>,
    pub client: Connection,
    pub number: SessionNumber,
    pub negotiated: Duration,
    pub watches: Watches,
    pub unanswered: UnansweredSince,
    pub(crate) briefed: watch::Sender<Briefed>,
    /// Answers that wait for that are given in the order in which they came.
    pub(crate) turn: Mutex<()>,
}

/// Whether the operators' orders are known: those for the election, and whether our host is drained.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Briefed {
    orders: bool,
    drain: bool,
    /// The connection has ended: nobody learns of them over it any more.
    is_over: bool,
}

impl Briefed {
    const ON_ALL: Self = Self { orders: true, drain: true, is_over: false };

    const fn is_on_all(self) -> bool {
        self.orders && self.drain
    }
}

impl Contact {
    /// Makes one attempt to open a session. The client library's own time limit counts from the last byte received.
    pub async fn open(shared: &Arc<Shared>, number: SessionNumber) -> Result<Self, Error> {
        let asked = shared.settings.session_timeout;
        let opening = shared.settings.access.open(&shared.settings.servers, Pace::of(asked), None);
        let opening = timeout(asked + connection_timeout(asked), opening);
        let client = opening.await.map_err(|_| Error::Timeout)??;
        let negotiated = client.session_timeout();
        let (shared, watches, unanswered) = (Arc::clone(shared), Watches::default(), UnansweredSince::default());
        let briefed = watch::Sender::default();
        Ok(Self { shared, client, number, negotiated, watches, unanswered, briefed, turn: Mutex::default() })
    }

    /// A session of an earlier program of this process, whose connection is lost. The orders are known.
    pub fn lost(shared: &Arc<Shared>, number: SessionNumber, candidacy: Candidacy, client: Connection) -> Self {
        let (shared, watches, unanswered) = (Arc::clone(shared), Watches::of(candidacy), UnansweredSince::default());
        let (negotiated, briefed) = (client.session_timeout(), watch::Sender::new(Briefed::ON_ALL));
        Self { shared, client, number, negotiated, watches, unanswered, briefed, turn: Mutex::default() }
    }

    /// As far as the client library knows.
    pub fn seems_connected(&self) -> bool {
        // A connection that was given up keeps its last state.
        self.client.state() == State::Connected && !self.client.task.is_over()
    }

    /// The operators' orders were read, or cannot be read.
    pub fn brief_orders(&self) {
        self.briefed.send_modify(|briefed| briefed.orders = true);
    }

    /// The operators' orders have changed. A server sends this event before the answers to all that was written later: such an
    /// answer must not start a command that the new orders forbid.
    pub fn orders_changed(&self) {
        self.briefed.send_modify(|briefed| briefed.orders = false);
    }

    /// Whether our host is drained has changed.
    pub fn drain_changed(&self) {
        self.briefed.send_modify(|briefed| briefed.drain = false);
    }

    /// Whether our host is drained was read, or cannot be read.
    pub fn brief_drain(&self) {
        self.briefed.send_modify(|briefed| briefed.drain = true);
    }

    /// The connection has ended: whoever waits for the orders waits in vain.
    pub fn ended(&self) {
        self.briefed.send_modify(|briefed| briefed.is_over = true);
    }

    /// Waits a short time for the orders. They are requested first, and cost no round of their own; when they have changed, one.
    /// `false`: the connection ended before.
    pub async fn briefed(&self) -> bool {
        let mut briefed = self.briefed.subscribe();
        let known = async {
            let _turn = self.turn.lock().await;
            let last = briefed.wait_for(|briefed| briefed.is_on_all() || briefed.is_over).await;
            last.is_ok_and(|briefed| briefed.is_on_all())
        };
        let in_time = timeout(self.negotiated / 4, known).await;
        if in_time.is_err() {
            self.brief_orders();
            self.brief_drain();
        }
        in_time.unwrap_or(true)
    }

    /// How long a living leader's record may stay unchanged. With several leaders, of which only one is watched: two of
    /// our renewal intervals.
    pub fn patience(&self) -> Duration {
        let settings = &self.shared.settings;
        if settings.leaders > 1 { settings.own_lease(self.negotiated) / 4 } else { LOOK_AGAIN }
    }

    /// The client library's task, which ends with the session.
    pub fn service(&self) -> Task {
        self.client.task.clone()
    }

    /// The server's id of this session.
    pub fn id(&self) -> i64 {
        self.client.session_id()
    }
}
