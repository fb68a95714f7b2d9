//! The credentials of a session, and the one place that opens a connection. No log, message or debug output contains a
//! secret.

use std::fmt;
use std::io;
use std::mem;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::{sleep, timeout};
#[cfg(feature = "sasl-digest")]
use zookeeper_client::SaslOptions;
use zookeeper_client::{Client, Connector, SessionInfo};

use crate::background::room_for_threads;
use crate::clock;
use crate::core::lease::{connection_timeout, silence_limit};
use crate::zookeeper::client::address::Address;
use crate::zookeeper::client::connection::{Connection, Error, Resumable};
use crate::zookeeper::client::error::Refusal;
use crate::zookeeper::client::kerberos;
use crate::zookeeper::client::kerberos::Principal;
use crate::zookeeper::client::requests::Simulated;
use crate::zookeeper::client::resolve::{obstacle, shuffled, spread};
use crate::zookeeper::client::socket;
use crate::zookeeper::client::task::{self, Task};
use crate::zookeeper::client::tls::Certificates;

/// What every session shows to the servers.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Access {
    /// Identities of the scheme `digest`: a server accepts any, and ACLs say what each may do.
    pub digests: Vec<Login>,
    /// A login by SASL DIGEST-MD5; a server refuses a wrong password.
    pub sasl: Option<Login>,
    /// A login by SASL GSSAPI to servers with this principal; Kerberos knows our own.
    pub kerberos: Option<Principal>,
    /// For servers with the prefix `tcp+tls://`.
    pub tls: Option<Certificates>,
    /// Replaces servers that are reached by sockets.
    pub simulated: Option<Simulated>,
}

/// A user with a password.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Login {
    pub user: String,
    pub password: Secret,
}

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Only for the client library.
    fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("********")
    }
}

/// Time limits of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// T as it is requested.
    pub session: Duration,
    /// For one server: at most 3/5 of `session`, or the client library (0.11.2) takes 2/5 of it instead.
    pub connection: Duration,
    /// For all servers together, each of which has an equal part of it.
    pub all: Option<Duration>,
}

impl Pace {
    /// For a session timeout that was asked for, or negotiated.
    pub fn of(session: Duration) -> Self {
        Self { session, connection: connection_timeout(session), all: None }
    }

    /// A name may stand for several servers.
    fn of_servers(self, count: usize) -> Self {
        let count = u32::try_from(count).unwrap_or(u32::MAX).max(1);
        let connection = self.all.map_or(self.connection, |all| (all / count).max(SHORTEST_TRY));
        Self { connection, ..self }
    }
}

/// For one of many servers.
const SHORTEST_TRY: Duration = Duration::from_millis(100);

/// A server (with Netty, when it is busy) may answer our credentials before its own greeting. The client library cannot
/// parse that, so we ask such a server again: eight times in about a second.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(640);
/// An attempt that took longer failed for another reason.
const QUICK: Duration = Duration::from_millis(500);

/// The client library's thread, which stays, was started.
static IS_STARTED: AtomicBool = AtomicBool::new(false);

/// Whether the client library has room to connect to this server: with its first connection it starts a thread, and it looks a
/// name up in another. An address needs none later, so a full host keeps no leader from its next connection.
///
/// # Errors
/// See [`room_for_threads`].
pub(crate) fn room_for(server: &str) -> io::Result<()> {
    let is_address = Address::of(server).host.parse::<IpAddr>().is_ok();
    if is_address && IS_STARTED.load(Ordering::Relaxed) { Ok(()) } else { room_for_threads() }
}

impl Access {
    /// Whether the servers know nothing of us but our address.
    pub fn is_anonymous(&self) -> bool {
        let has_key = self.tls.as_ref().is_some_and(Certificates::holds_key);
        self.digests.is_empty() && self.sasl.is_none() && self.kerberos.is_none() && !has_key
    }

    /// Whether this process holds a secret.
    pub fn holds_secrets(&self) -> bool {
        !self.is_anonymous()
    }

    /// What it is that every server refuses.
    pub(crate) fn refusal(&self) -> Refusal {
        if self.kerberos.is_some() { Refusal::Login } else { Refusal::Credentials }
    }

    /// Reads changed certificate files, for the next connection of an open session too.
    pub(crate) fn refresh(&self) {
        self.tls.iter().for_each(Certificates::refresh);
    }

    /// Opens a session, or another connection of one. Each server is tried once, in a random order; those that fail at once
    /// may be asked again, with pauses of at most `pace.connection` in all. Our credentials are refused if no server takes
    /// them, and one refuses them.
    pub(crate) async fn open(
        &self,
        servers: &str,
        pace: Pace,
        session: Option<Resumable>,
    ) -> Result<Connection, Error> {
        let session = match (&self.simulated, session) {
            (Some(simulated), session) => return simulated.open(pace.session, session).await,
            (None, Some(Resumable::Network(session))) => Some(session),
            (None, _) => None,
        };
        let names = servers.split(',').count();
        // A login by Kerberos needs the server's name.
        let spread = if self.kerberos.is_some() {
            servers.to_owned()
        } else {
            spread(servers, pace.of_servers(names).connection).await
        };
        let (mut servers, mut refusal) = (shuffled(&spread), None);
        let pace = pace.of_servers(servers.len());
        // All pauses together are shorter than twice the last one.
        let (mut pause, longest) = (SHORTEST_PAUSE, LONGEST_PAUSE.min(pace.connection / 2));
        loop {
            let found = self.open_at_one_of((&mut servers, &spread), pace, session.as_ref(), &mut refusal).await;
            let failure = match found {
                Err(error) if error != Error::SessionExpired => error,
                opened_or_over => return opened_or_over,
            };
            if servers.is_empty() || pause > longest {
                return Err(refusal.unwrap_or(failure));
            }
            sleep(pause).await;
            pause *= 2;
        }
    }

    /// Leaves the servers that may be asked again, of all.
    async fn open_at_one_of(
        &self,
        (servers, all): (&mut Vec<&str>, &str),
        pace: Pace,
        session: Option<&SessionInfo>,
        refusal: &mut Option<Error>,
    ) -> Result<Connection, Error> {
        let mut failure = Error::NoHosts;
        for server in mem::take(servers) {
            let began = clock::now().lease;
            match self.open_at((server, all), pace, session.cloned()).await {
                Err(Error::SessionExpired) => return Err(Error::SessionExpired),
                // The others may know us: each server has a configuration of its own.
                Err(error @ (Error::NoAuth | Error::AuthFailed)) => {
                    tracing::debug!(server, %error, "Server refuses our credentials");
                    *refusal = Some(error);
                }
                Err(error) => {
                    tracing::debug!(server, %error, "Server was not connected to");
                    failure = if error == Error::Timeout { error } else { Error::NoHosts };
                    if self.shows_identities() && began.until(clock::now().lease) < QUICK {
                        servers.push(server);
                    }
                }
                Ok(connection) => {
                    socket::tune(server, pace.session);
                    return Ok(connection);
                }
            }
        }
        Err(failure)
    }

    async fn open_at(
        &self,
        (server, all): (&str, &str),
        pace: Pace,
        session: Option<SessionInfo>,
    ) -> Result<Connection, Error> {
        let opening = self.open_once((server, all), pace, session);
        let (client, task) = timeout(pace.connection, opening).await.unwrap_or((Err(Error::Timeout), None));
        Ok(Connection::network(client?, task.ok_or(Error::ClientClosed)?))
    }

    async fn open_once(
        &self,
        (server, all): (&str, &str),
        pace: Pace,
        session: Option<SessionInfo>,
    ) -> (Result<Client, Error>, Option<Task>) {
        if let Err(error) = room_for(server) {
            tracing::debug!(server, "{error}");
            return (Err(Error::NoHosts), None);
        }
        // The client library would ask for the name again, in another thread, which stays for as long as no name server answers.
        if let Some(why) = obstacle(Address::of(server), pace.connection).await {
            tracing::debug!(server, "{why}");
            return (Err(Error::NoHosts), None);
        }
        let opened = self.open_with_room((server, all), pace, session).await;
        IS_STARTED.store(true, Ordering::Relaxed);
        opened
    }

    /// Tickets for all servers are kept fresh: the next login may be at another one.
    async fn open_with_room(
        &self,
        (server, all): (&str, &str),
        pace: Pace,
        session: Option<SessionInfo>,
    ) -> (Result<Client, Error>, Option<Task>) {
        let Some(principal) = &self.kerberos else {
            return task::capture(self.connect(server, pace, session)).await;
        };
        let (access, to, takes_up) = (self.clone(), server.to_owned(), session.is_some());
        let opening = move || async move { access.connect(&to, pace, session).await };
        kerberos::open(principal, all, opening, takes_up).await
    }

    /// Credentials are sent before all requests, and before it is known whether a server accepts us.
    fn shows_identities(&self) -> bool {
        self.sasl.is_some() || self.kerberos.is_some() || !self.digests.is_empty()
    }

    async fn connect(&self, server: &str, pace: Pace, session: Option<SessionInfo>) -> Result<Client, Error> {
        let connector = self.connector(pace)?;
        let connector = match session {
            Some(session) => connector.with_session(session),
            None => connector,
        };
        connector.connect(server).await
    }

    #[cfg_attr(not(feature = "kerberos"), expect(clippy::unnecessary_wraps, reason = "as with Kerberos"))]
    fn connector(&self, pace: Pace) -> Result<Connector, Error> {
        let connector = Client::connector()
            .with_session_timeout(pace.session)
            .with_connection_timeout(silence_limit(pace.session).max(pace.connection))
            .with_fail_eagerly();
        let digest = |Login { user, password }: &Login| format!("{user}:{}", password.reveal()).into_bytes();
        let connector =
            self.digests.iter().map(digest).fold(connector, |connector, auth| connector.with_auth("digest", &auth));
        #[cfg(feature = "sasl-digest")]
        let connector = match self.sasl.clone() {
            Some(Login { user, password }) => connector.with_sasl(SaslOptions::digest_md5(user, password.0)),
            None => connector,
        };
        #[cfg(feature = "kerberos")]
        let connector = match &self.kerberos {
            Some(principal) => connector.with_sasl(kerberos::options(principal)?),
            None => connector,
        };
        self.refresh();
        #[cfg(feature = "tls")]
        let connector = match &self.tls {
            Some(certificates) => connector.with_tls(certificates.options()),
            None => connector,
        };
        Ok(connector)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        let login = Login { user: "bob".into(), password: Secret::new("hunter2") };
        let access = Access { digests: vec![login.clone()], sasl: Some(login), ..Access::default() };
        let printed = format!("{access:?} {access:#?}");
        assert!(printed.contains("bob") && !printed.contains("hunter2"), "{printed}");
    }

    fn known() -> Access {
        let login = Login { user: "bob".into(), password: Secret::new("hunter2") };
        Access { digests: vec![login], ..Access::default() }
    }

    /// The server closes every connection without a word.
    #[tokio::test]
    async fn who_shows_an_identity_tries_such_a_server_eight_times_and_others_try_it_once() {
        assert!(Access::default().is_anonymous() && known().holds_secrets() && !Access::default().holds_secrets());
        let (patient, hurried) = (Duration::from_secs(5), Duration::from_millis(600));
        for (access, connection, tries) in
            [(Access::default(), patient, 1), (known(), patient, 8), (known(), hurried, 6)]
        {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let server = listener.local_addr().unwrap().to_string();
            let pace = Pace { session: 5 * connection, connection, all: None };
            let mut seen = 0;
            let opening = access.open(&server, pace, None);
            let mut opening = std::pin::pin!(opening);
            let opened = loop {
                tokio::select! {
                    accepted = listener.accept() => { drop(accepted.unwrap()); seen += 1 }
                    opened = &mut opening => break opened,
                }
            };
            assert_eq!((opened.unwrap_err(), seen), (Error::NoHosts, tries));
        }
    }

    /// They are asked in a random order.
    #[tokio::test]
    async fn a_server_that_closes_every_connection_keeps_nobody_from_another() {
        const SESSIONS: usize = 64;
        let tests = tokio::task::LocalSet::new();
        tests
            .run_until(Box::pin(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                let (bad, (good, _)) = (listener.local_addr().unwrap(), server(0).await);
                let seen = std::rc::Rc::new(std::cell::Cell::new(0));
                let count = std::rc::Rc::clone(&seen);
                tokio::task::spawn_local(async move {
                    while listener.accept().await.is_ok() {
                        count.set(count.get() + 1);
                    }
                });
                let pace = Pace::of(Duration::from_secs(10));
                for session in 0..SESSIONS {
                    let before = seen.get();
                    let opened = known().open(&format!("{bad},{good}"), pace, None).await;
                    assert!(opened.is_ok(), "{opened:?}");
                    let asked = seen.get() - before;
                    assert!(asked <= 1, "asked {asked} times for session {session}");
                }
                assert!(seen.get() > 0, "never first");
            }))
            .await;
    }

    /// A server that accepts every session, and answers every request with this error code. How often it was asked.
    async fn server(error: i32) -> (String, std::rc::Rc<std::cell::Cell<usize>>) {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, asked) = (listener.local_addr().unwrap().to_string(), std::rc::Rc::default());
        let count: std::rc::Rc<std::cell::Cell<usize>> = std::rc::Rc::clone(&asked);
        tokio::task::spawn_local(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.set(count.get() + 1);
                tokio::task::spawn_local(async move {
                    let mut is_open = false;
                    while let Ok(length) = stream.read_i32().await {
                        let mut request = vec![0; usize::try_from(length).unwrap()];
                        stream.read_exact(&mut request).await.unwrap();
                        let body = if is_open {
                            [&request[..4], &1_i64.to_be_bytes(), &error.to_be_bytes()].concat()
                        } else {
                            let (timeout, session) = (10_000_i32.to_be_bytes(), 7_i64.to_be_bytes());
                            [&[0; 4][..], &timeout, &session, &16_i32.to_be_bytes(), &[7; 16], &[0]].concat()
                        };
                        is_open = true;
                        stream.write_i32(i32::try_from(body.len()).unwrap()).await.unwrap();
                        stream.write_all(&body).await.unwrap();
                    }
                });
            }
        });
        (address, asked)
    }

    /// They are tried in a random order.
    #[tokio::test]
    async fn credentials_are_bad_only_if_every_server_that_answers_refuses_them() {
        const REFUSED: i32 = -115;
        let pace = Pace::of(Duration::from_secs(10));
        let tests = tokio::task::LocalSet::new();
        tests
            .run_until(Box::pin(async {
                let ((good, _), (bad, first), (worse, second)) =
                    (server(0).await, server(REFUSED).await, server(REFUSED).await);
                let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
                for _ in 0..16 {
                    let opened = Access::default().open(&format!("{bad},{good},{worse}"), pace, None).await;
                    assert!(opened.is_ok(), "{opened:?}");
                }
                let before = (first.get(), second.get());
                let opened = Access::default().open(&format!("{bad},{silent},{worse}"), pace, None).await;
                assert_eq!(opened.unwrap_err(), Error::AuthFailed);
                assert_eq!((first.get(), second.get()), (before.0 + 1, before.1 + 1), "both were asked");
            }))
            .await;
    }
}
