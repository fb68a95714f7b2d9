//! What another program of ours needs to resume a session: its id and its password.
//!
//! The client library shows no password, and takes none: it moves both by the wire only. So we listen at a port of
//! `127.0.0.1`, and the library connects to it: as a client that resumes the session it sends us the password; as the
//! client of a server that grants a session it takes the one that we send. The servers see nothing of this.
//!
//! The password is a secret: it is never printed, and is sent to no connection but one of this process.

mod peer;
mod wire;

use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use zookeeper_client::{Client, Connector, SessionInfo};

use super::connection::{Connection, Resumable};
use super::requests::SessionToken;
use super::task;

/// For one exchange within this process, on a machine that is busy.
const LIMIT: Duration = Duration::from_secs(4);
/// The library allows 2/5 of it for a connection.
const SESSION: Duration = Duration::from_secs(10);

/// See the module page.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionKey {
    /// The server's id of the session.
    pub id: i64,
    password: Vec<u8>,
    /// T as negotiated.
    pub negotiated: Duration,
}

impl SessionKey {
    /// For an ensemble that is simulated.
    pub(crate) fn token(&self) -> SessionToken {
        SessionToken { id: self.id, password: self.password.clone(), timeout: self.negotiated }
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionKey({:#x})", self.id)
    }
}

/// The key of this session.
///
/// # Errors
/// If this process cannot connect to itself.
pub(crate) async fn of(session: Resumable, negotiated: Duration) -> io::Result<SessionKey> {
    let session = match session {
        Resumable::Network(session) => session,
        Resumable::Simulated(SessionToken { id, password, .. }) => return Ok(SessionKey { id, password, negotiated }),
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let server = listener.local_addr()?.to_string();
    let shown = async { wire::read_request(&mut own(&listener).await?).await };
    let (id, password) = tokio::select! {
        shown = in_time(shown) => shown?,
        never = shows(&server, &session) => return Err(never),
    };
    if id == session.id().0 {
        Ok(SessionKey { id, password, negotiated })
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}

/// A connection of this session that is lost already.
///
/// # Errors
/// If this process cannot connect to itself.
pub(crate) async fn connection(key: &SessionKey) -> io::Result<Connection> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let server = listener.local_addr()?.to_string();
    let granted = async {
        let mut client = own(&listener).await?;
        wire::read_request(&mut client).await?;
        wire::grant(&mut client, key.id, &key.password, key.negotiated).await?;
        Ok(client)
    };
    let connecting = task::capture(connector().connect(&server));
    let connecting = async {
        let (session, service) = connecting.await;
        Ok((session.map_err(io::Error::other)?, service.ok_or(io::ErrorKind::NotConnected)?))
    };
    let (_granted, (session, service)) = Box::pin(in_time(async { tokio::try_join!(granted, connecting) })).await?;
    service.end();
    Ok(Connection::network(session, service))
}

fn connector() -> Connector {
    Client::connector().with_session_timeout(SESSION).with_fail_eagerly()
}

/// Shows the session's password to `server`, which does not answer.
async fn shows(server: &str, session: &SessionInfo) -> io::Error {
    match connector().with_session(session.clone()).connect(server).await {
        Ok(_) => io::ErrorKind::InvalidData.into(),
        Err(error) => io::Error::other(error),
    }
}

/// The next connection of this process; those of other processes are closed.
async fn own(listener: &TcpListener) -> io::Result<TcpStream> {
    let port = listener.local_addr()?.port();
    loop {
        let (stream, address) = listener.accept().await?;
        if peer::is_ours(address, port) {
            return Ok(stream);
        }
    }
}

async fn in_time<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(LIMIT, work).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> SessionKey {
        SessionKey { id: 0x1234_5678_9abc, password: (0..16).collect(), negotiated: Duration::from_millis(4321) }
    }

    #[tokio::test]
    async fn a_session_is_the_same_after_both_ways() {
        let mut lost = connection(&key()).await.unwrap();
        assert_eq!((lost.session_id(), lost.session_timeout()), (key().id, key().negotiated));
        lost.task.over().await;
        let again = of(lost.session(), lost.session_timeout()).await.unwrap();
        assert_eq!(again, key());
    }

    #[tokio::test]
    async fn the_password_is_not_shown_to_another_process() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut other = std::process::Command::new("bash")
            .args(["-c", &format!("exec 3<>/dev/tcp/127.0.0.1/{port}; read -t 10 <&3; exit 0")])
            .spawn()
            .unwrap();
        let (stranger, address) = listener.accept().await.unwrap();
        assert!(!peer::is_ours(address, port));
        let own = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        assert!(peer::is_ours(own.local_addr().unwrap(), port));
        drop(stranger);
        other.wait().unwrap();
    }

    #[test]
    fn a_password_is_not_printed() {
        assert_eq!(format!("{:?}", key()), "SessionKey(0x123456789abc)");
    }
}
