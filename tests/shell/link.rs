//! The ensemble in memory as one life of one host sees it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;
use zk_leader_run::core::lease::connection_timeout;
use zk_leader_run::zookeeper::client::connect::Access;
use zk_leader_run::zookeeper::client::requests::{
    Ensemble, Error, Link, Pending, Reply, Request, SessionToken, Simulated, State,
};

use crate::memory::network::SocketId;
use crate::process::Process;
use crate::wires::{Dialled, Wires};

/// One process of a host: what it asks after its end reaches nobody.
#[derive(Clone)]
pub struct Life {
    wires: Arc<Wires>,
    process: Arc<Process>,
}

impl fmt::Debug for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of host {}", self.process.instance, self.process.host)
    }
}

impl Life {
    pub fn new(wires: &Arc<Wires>, process: &Arc<Process>) -> Self {
        Self { wires: Arc::clone(wires), process: Arc::clone(process) }
    }

    pub fn access(&self) -> Access {
        Access { simulated: Some(Simulated(Arc::new(self.clone()))), ..Access::default() }
    }

    pub fn end(&self) {
        self.wires.die(&self.process);
    }

    /// Each server is tried once, in a random order, as `Access::open` does it.
    async fn open_at_any(&self, asked: Duration, session: Option<SessionToken>) -> Result<Arc<dyn Link>, Error> {
        let servers = self.wires.with(|inner, _| {
            let mut servers: Vec<usize> = (0..inner.servers).collect();
            for last in (1..servers.len()).rev() {
                servers.swap(last, inner.rng.below(last as u64 + 1) as usize);
            }
            servers
        });
        let mut failure = Error::NoHosts;
        for server in servers {
            let Dialled { socket, answer, states } = self.wires.dial(&self.process, server, asked, session.as_ref());
            let mut dialling = Dialling { life: self.clone(), socket, is_open: false };
            match timeout(connection_timeout(asked), answer).await {
                Ok(Ok(Ok(token))) => {
                    dialling.is_open = true;
                    return Ok(Arc::new(Wired { life: self.clone(), socket, token, states }));
                }
                Ok(Ok(Err(Error::SessionExpired))) => return Err(Error::SessionExpired),
                Ok(_) => failure = Error::NoHosts,
                Err(_) => failure = Error::Timeout,
            }
        }
        Err(failure)
    }
}

impl Ensemble for Life {
    fn open(&self, timeout: Duration, session: Option<SessionToken>) -> Pending<'_, Arc<dyn Link>> {
        Box::pin(self.open_at_any(timeout, session))
    }

    fn lost(&self, token: SessionToken) -> Arc<dyn Link> {
        let (socket, (_, states)) = (SocketId(u64::MAX), watch::channel(State::Lost));
        Arc::new(Wired { life: self.clone(), socket, token, states })
    }
}

/// Hangs up unless it has become a link.
struct Dialling {
    life: Life,
    socket: SocketId,
    is_open: bool,
}

impl Drop for Dialling {
    fn drop(&mut self) {
        if !self.is_open {
            self.life.wires.hang_up(self.socket);
        }
    }
}

#[derive(Debug)]
struct Wired {
    life: Life,
    socket: SocketId,
    token: SessionToken,
    states: watch::Receiver<State>,
}

impl Link for Wired {
    fn send(&self, request: Request) -> Pending<'static, Reply> {
        let answer = self.life.wires.send(self.socket, request);
        Box::pin(async { answer.await.unwrap_or(Err(Error::ConnectionLoss)) })
    }

    fn states(&self) -> watch::Receiver<State> {
        self.states.clone()
    }

    fn session(&self) -> SessionToken {
        self.token.clone()
    }

    fn abandon(&self) {
        self.life.wires.hang_up(self.socket);
    }
}

impl Drop for Wired {
    fn drop(&mut self) {
        self.life.wires.close(self.socket);
    }
}
