//! Asks the supervisor's loop for one turn, and tells whether it came: the only proof that it lives. Nothing ticks when
//! nobody asks.
//!
//! Never: a wait without a limit; a turn that is not asked for.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use super::status::Status;

/// The loop's end: wakes it when somebody asks.
#[derive(Clone, Debug, Default)]
pub struct Liveness(Arc<Notify>);

impl Liveness {
    /// Resolves when a turn is asked for. Cancel-safe.
    pub async fn asked(&self) {
        self.0.notified().await;
    }
}

/// The observers' end: what the loop has published, and the way to ask for more.
#[derive(Clone, Debug)]
pub struct Feed {
    liveness: Liveness,
    statuses: watch::Receiver<Status>,
}

impl Feed {
    pub fn new(liveness: Liveness, statuses: watch::Receiver<Status>) -> Self {
        Self { liveness, statuses }
    }

    /// As of the loop's last turn.
    pub fn status(&self) -> Status {
        *self.statuses.borrow()
    }

    /// As of a turn that was asked for now; `None` if the loop does not turn within `limit`.
    pub async fn fresh(&self, limit: Duration) -> Option<Status> {
        let mut statuses = self.statuses.clone();
        statuses.mark_unchanged();
        self.liveness.0.notify_one();
        timeout(limit, statuses.changed()).await.ok()?.ok()?;
        Some(*statuses.borrow())
    }

    /// Resolves after the next turn; `false`: there will be none.
    pub async fn turned(&mut self) -> bool {
        self.statuses.changed().await.is_ok()
    }
}
