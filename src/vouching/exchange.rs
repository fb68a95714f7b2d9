//! What [`Direct`](super::Direct) and its background task share: judges each datagram that comes, and tells what is left.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, watch};

use super::dropped::{Dropped, Mismatches, Reason};
use super::memory::Memory;
use super::message::{LENGTH, Message, Said};
use super::network::Network;
use crate::clock;
use crate::core::event::Event;
use crate::core::vouching::{Question, Reply, Word};
use crate::zookeeper::schema::vouching::{Neighbourhood, Secret};

/// A network that gives an error is asked again after this time.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Exchange {
    pub network: Arc<dyn Network>,
    /// Ours.
    pub instance: u64,
    pub neighbourhood: watch::Receiver<Neighbourhood>,
    pub events: UnboundedSender<Event>,
    pub memory: Mutex<Memory>,
    /// Somebody has confirmed that we are gone.
    pub confirmed: Notify,
    pub dropped: Arc<Dropped>,
}

impl Exchange {
    /// Never ends.
    pub async fn receive(self: Arc<Self>) {
        // One byte more, by which one that is too long is seen.
        let mut buffer = [0; LENGTH + 1];
        let mut mismatches = Mismatches::default();
        loop {
            let taken = match self.network.receive(&mut buffer).await {
                Ok((length, from)) => {
                    self.take(buffer.get(..length).unwrap_or_default(), from).map_err(|why| (why, from))
                }
                Err(error) => {
                    tracing::trace!(%error, "No datagram could be received");
                    self.dropped.count(Reason::Network);
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            if let Err((why, from)) = taken {
                tracing::trace!(%from, why = why.word(), "A datagram was dropped");
                let is_first = self.dropped.count(why);
                let is_news = match (why, self.credentials()) {
                    (Reason::Secret, Some((_, secret))) => mismatches.note(secret, from, clock::now().observer),
                    _ => is_first,
                };
                if is_news {
                    tell(why, from);
                }
            }
        }
    }

    /// Of the election and its secret, if both are known.
    pub fn credentials(&self) -> Option<(i64, Secret)> {
        let neighbourhood = self.neighbourhood.borrow();
        neighbourhood.election.zip(neighbourhood.secret)
    }

    /// What is remembered of this election.
    pub fn remember<T>(&self, election: i64, act: impl FnOnce(&mut Memory) -> T) -> T {
        let mut memory: MutexGuard<'_, Memory> = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        act(memory.of(election))
    }

    fn take(&self, datagram: &[u8], from: SocketAddr) -> Result<(), Reason> {
        let (election, secret) = self.credentials().ok_or(Reason::Unready)?;
        let message = Message::parse(datagram, election, &secret)?;
        let Message { said, token, leader, member, seq } = message;
        let addressee = match said {
            Said::Ask { .. } | Said::Heard => member,
            Said::Answer { .. } | Said::Gone => leader,
        };
        if addressee != self.instance {
            return Err(Reason::Addressee);
        }
        match said {
            Said::Ask { lease } => {
                let question = Question { leader, token, seq, lease };
                self.remember(election, |memory| memory.asks(&question, from))?;
                self.tell(Word::Asked(question));
            }
            Said::Answer { promises } => {
                let reply = Reply { member, leader, token, seq, promises };
                self.remember(election, |memory| memory.answered(&reply))?;
                self.tell(Word::Answered(reply));
            }
            Said::Gone => {
                if self.remember(election, |memory| memory.gone(member))? {
                    self.tell(Word::Left { instance: member });
                }
                self.network.send(from, &Message { said: Said::Heard, ..message }.write(election, &secret));
            }
            Said::Heard => {
                self.remember(election, |memory| memory.heard(leader, token))?;
                self.confirmed.notify_one();
            }
        }
        Ok(())
    }

    pub fn ask(&self, to: u64, question: &Question) {
        let Some((election, secret)) = self.credentials() else { return };
        let Some(address) = self.neighbourhood.borrow().of(to).map(|neighbour| neighbour.address) else { return };
        self.remember(election, |memory| memory.ask(to, question));
        let Question { leader, token, seq, lease } = *question;
        let message = Message { said: Said::Ask { lease }, token, leader, member: to, seq };
        self.network.send(address, &message.write(election, &secret));
    }

    pub fn reply(&self, reply: &Reply) {
        let Some((election, secret)) = self.credentials() else { return };
        let now = clock::now().observer;
        let Some(address) = self.remember(election, |memory| memory.reply(now, reply)) else { return };
        let Reply { member, leader, token, seq, promises } = *reply;
        let message = Message { said: Said::Answer { promises }, token, leader, member, seq };
        self.network.send(address, &message.write(election, &secret));
    }

    pub fn forget_terms(&self) {
        if let Some((election, _)) = self.credentials() {
            self.remember(election, Memory::forget_terms);
        }
    }

    /// Tells those to whom we promised something of late that we are gone. Whether anybody has not confirmed it yet.
    pub fn say_gone(&self) -> bool {
        let Some((election, secret)) = self.credentials() else { return false };
        let promisees = self.promisees(election);
        for one in &promisees {
            let (token, leader, seq) = (one.token, one.leader, one.seq);
            let message = Message { said: Said::Gone, token, leader, member: self.instance, seq };
            self.network.send(one.address, &message.write(election, &secret));
        }
        !promisees.is_empty()
    }

    /// Whether everybody has confirmed that we are gone.
    pub fn is_confirmed(&self) -> bool {
        self.credentials().is_none_or(|(election, _)| self.promisees(election).is_empty())
    }

    fn promisees(&self, election: i64) -> Vec<super::memory::Promisee> {
        let now = clock::now().observer;
        self.remember(election, |memory| memory.promisees(now))
    }

    /// Nobody listens any more once the supervisor ends.
    fn tell(&self, word: Word) {
        self.events.send(Event::Vouching(word)).ok();
    }
}

/// Once for each reason that people should look into; the rest is only counted.
fn tell(why: Reason, from: SocketAddr) {
    const LEARNS: &str = "see that it reaches ZooKeeper, from which it learns that by itself";
    const LEARN: &str = "see that it and this host reach ZooKeeper, from which they learn it by themselves";
    let (what, remedy) = match why {
        Reason::Length | Reason::Format => ("is none of this program", "see which version runs there"),
        Reason::Election => ("is of another election, or of this one before its znodes were made anew", LEARNS),
        Reason::Secret => ("is not authentic: its sender has another secret of this election than this host", LEARN),
        _ => return,
    };
    tracing::warn!(
        %from,
        why = why.word(),
        "A datagram from {from} at --vouch-address {what}; it was ignored, and others like it will only be counted \
         (vouch_datagrams_dropped_total); if {from} is a host of this election, {remedy}; else let no stranger reach this \
         address"
    );
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::os::fd::BorrowedFd;
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures_util::future::BoxFuture;
    use tokio::sync::mpsc::unbounded_channel;
    use tokio::time::timeout;

    use super::*;

    /// It fails so many times, and then is silent.
    #[derive(Debug)]
    struct Broken(AtomicU32);

    impl Network for Broken {
        fn address(&self) -> SocketAddr {
            SocketAddr::from(([127, 0, 0, 1], 1))
        }
        fn send(&self, _: SocketAddr, _: &[u8]) {}
        fn receive<'a>(&'a self, _: &'a mut [u8]) -> BoxFuture<'a, io::Result<(usize, SocketAddr)>> {
            let left = self.0.load(Ordering::Relaxed);
            self.0.store(left.saturating_sub(1), Ordering::Relaxed);
            Box::pin(async move {
                if left > 0 { Err(io::ErrorKind::NetworkDown.into()) } else { std::future::pending().await }
            })
        }
        fn descriptor(&self) -> Option<BorrowedFd<'_>> {
            None
        }
    }

    /// Who never waits takes the only thread, and the supervisor's loop stands still.
    #[tokio::test(start_paused = true)]
    async fn a_network_that_fails_is_asked_again_after_a_pause() {
        let network = Arc::new(Broken(AtomicU32::new(1_000)));
        let exchange = Exchange {
            network: network.clone(),
            instance: 1,
            neighbourhood: watch::channel(Neighbourhood::default()).1,
            events: unbounded_channel().0,
            memory: Mutex::default(),
            confirmed: Notify::new(),
            dropped: Arc::default(),
        };
        let received = timeout(PAUSE * 21 / 2, Arc::new(exchange).receive()).await;
        assert!(received.is_err());
        assert_eq!(1_000 - network.0.load(Ordering::Relaxed), 11);
    }
}
