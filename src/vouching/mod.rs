//! The direct network between hosts that vouch for one another: authenticated datagrams (docs/decisions/0029). It decides
//! nothing: what it carries is judged by `core`.
//!
//! Whatever is not authentic, not for us, or not new is dropped, counted, and not answered.
mod network;

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use crate::core::event::Event;
use crate::core::vouching::{Question, Reply};
use crate::zookeeper::schema::vouching::Neighbourhood;

pub use network::{Network, Work};

/// What one process says to others, and hears of them. No method but [`Direct::leave`] waits. It must be made on a tokio runtime.
#[derive(Debug)]
pub struct Direct {
    network: Arc<dyn Network>,
}

impl Direct {
    /// `instance`: ours. Answers and questions are told as [`Event::Vouching`].
    pub fn new(
        network: Arc<dyn Network>,
        _instance: u64,
        _neighbourhood: watch::Receiver<Neighbourhood>,
        _events: UnboundedSender<Event>,
    ) -> Self {
        Self { network }
    }

    /// Where others reach us.
    pub fn address(&self) -> SocketAddr {
        self.network.address()
    }

    /// The open socket, which an upgrade in place hands over. `None` in a simulation.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.network.descriptor()
    }

    /// Asks this instance for a promise, if we know where it is.
    pub fn ask(&self, _to: u64, _question: Question) {}

    /// Answers, to where the question came from.
    pub fn reply(&self, _reply: Reply) {}

    /// Tells those to whom we promised something that this instance takes nothing over any more; until they have confirmed it,
    /// at most this long.
    pub async fn leave(&self, _within: Duration) {}
}
