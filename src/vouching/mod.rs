//! The direct network between hosts that vouch for one another: authenticated datagrams (docs/decisions/0029). It decides
//! nothing: what it carries is judged by `core`.
//!
//! Whatever is not authentic, not for us, or not new is dropped, counted, and not answered.
mod dropped;
mod exchange;
mod memory;
pub mod message;
mod network;
pub mod place;
mod udp;

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::sleep;

use crate::background;
use crate::core::event::Event;
use crate::core::vouching::{Question, Reply};
use crate::zookeeper::schema::vouching::Neighbourhood;

pub use dropped::{Dropped, Reason};
use exchange::Exchange;
pub use memory::Memory;
pub use network::Network;
pub use udp::Socket;

/// So often it is said that this instance is gone, until that is confirmed.
const FAREWELLS: u32 = 3;

/// What one process says to others, and hears of them. No method but [`Direct::leave`] waits. It must be made on a tokio runtime.
#[derive(Debug)]
pub struct Direct {
    exchange: Arc<Exchange>,
    receiver: AbortHandle,
}

impl Direct {
    /// `instance`: ours. `memory`: what the program before this one has handed over. Answers and questions are told as
    /// [`Event::Vouching`].
    pub fn new(
        network: Arc<dyn Network>,
        (instance, memory): (u64, Memory),
        neighbourhood: watch::Receiver<Neighbourhood>,
        events: UnboundedSender<Event>,
    ) -> Self {
        let (memory, confirmed, dropped) = (Mutex::new(memory), Notify::new(), Arc::new(Dropped::default()));
        let exchange = Exchange { network, instance, neighbourhood, events, memory, confirmed, dropped };
        let exchange = Arc::new(exchange);
        let receiver = background::spawn(exchange.clone().receive());
        Self { exchange, receiver }
    }

    /// Where others reach us.
    pub fn address(&self) -> SocketAddr {
        self.exchange.network.address()
    }

    /// Tells people if this host does not have that address any more. Who only answers never fails to send: it is not asked.
    pub fn check(&self) {
        self.exchange.network.check();
    }

    /// The open socket, which an upgrade in place hands over. `None` in a simulation.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.exchange.network.descriptor()
    }

    /// What the next program in this process must know of what was said and heard.
    pub fn hand_over(&self) -> Memory {
        self.exchange.memory.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What was dropped, for metrics.
    pub fn dropped(&self) -> Arc<Dropped> {
        self.exchange.dropped.clone()
    }

    /// Asks this instance for a promise, if we know where it is.
    pub fn ask(&self, to: u64, question: Question) {
        self.exchange.ask(to, &question);
    }

    /// Answers, to where the question came from.
    pub fn reply(&self, reply: Reply) {
        self.exchange.reply(&reply);
    }

    /// Hears those again whose tokens are lower than those of before.
    pub fn forget_terms(&self) {
        self.exchange.forget_terms();
    }

    /// Tells those to whom we promised something of late that this instance takes nothing over any more; until they have
    /// confirmed it, at most this long. It returns at once if there is nobody to tell.
    pub async fn leave(&self, within: Duration) {
        for _ in 0..FAREWELLS {
            if !self.exchange.say_gone() {
                return;
            }
            let confirmed = async {
                while !self.exchange.is_confirmed() {
                    self.exchange.confirmed.notified().await;
                }
            };
            tokio::select! {
                () = confirmed => return,
                () = sleep(within / FAREWELLS) => (),
            }
        }
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        self.receiver.abort();
    }
}
