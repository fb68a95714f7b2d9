//! Requests to an ensemble and its replies, and the interface that an ensemble in memory implements.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
pub use zookeeper_client::{Error, EventType, MultiWriteError as MultiError, MultiWriteResult as MultiResult, Stat};

use super::acl::{Create, Entry};

/// The reply to a request that was sent.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// The reply to a multi that was sent.
pub type PendingMulti<'a> = Pin<Box<dyn Future<Output = Result<Vec<MultiResult>, MultiError>> + Send + 'a>>;

/// A request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Answer: [`Reply::Created`].
    Create { path: String, data: Vec<u8>, with: Create },
    /// Answer: [`Reply::Done`]. Without a version: any.
    Delete { path: String, version: Option<i32> },
    /// Answer: [`Reply::Stat`].
    Exists { path: String, watch: bool },
    /// Answer: [`Reply::Data`].
    Get { path: String, watch: bool },
    /// Answer: [`Reply::Done`].
    Set { path: String, data: Vec<u8>, version: Option<i32> },
    /// Answer: [`Reply::Children`].
    Children { path: String, watch: bool },
    /// Answer: [`Reply::Acl`].
    GetAcl { path: String },
    /// Answer: [`Reply::Done`].
    Sync { path: String },
    /// All or nothing. Answer: [`Reply::Multi`].
    Multi(Vec<Operation>),
}

/// In a check: any data version.
pub const ANY_VERSION: i32 = -1;

/// One operation of a multi.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    Check { path: String, version: i32 },
    Create { path: String, data: Vec<u8>, with: Create },
    Set { path: String, data: Vec<u8>, version: Option<i32> },
    Delete { path: String, version: Option<i32> },
}

/// A reply.
#[derive(Debug)]
pub enum Reply {
    Done,
    Created(Stat, Sequence),
    Stat(Option<Stat>, Option<Watcher>),
    Data(Vec<u8>, Stat, Option<Watcher>),
    Children(Vec<String>, Stat, Option<Watcher>),
    Acl(Vec<Entry>),
    Multi(Result<Vec<MultiResult>, (usize, Error)>),
}

/// The digits that the server appends to the name of a sequential znode; unused for other znodes.
pub type Sequence = String;

/// An ensemble that is not reached by a socket.
pub trait Ensemble: Send + Sync + fmt::Debug {
    /// Opens a session with this timeout, or another connection of an existing one.
    fn open(&self, timeout: Duration, session: Option<SessionToken>) -> Pending<'_, Arc<dyn Link>>;
    /// A connection of this session that is lost already.
    fn lost(&self, session: SessionToken) -> Arc<dyn Link>;
}

/// A connection to such an ensemble. When the last handle is dropped, the session is closed.
pub trait Link: Send + Sync + fmt::Debug {
    /// Sends the request at once.
    fn send(&self, request: Request) -> Pending<'static, Reply>;
    fn states(&self) -> watch::Receiver<State>;
    fn session(&self) -> SessionToken;
    /// Cuts the connection; the session lives on until it expires.
    fn abandon(&self);
}

/// An ensemble that replaces servers reached by sockets.
#[derive(Clone, Debug)]
pub struct Simulated(pub Arc<dyn Ensemble>);

impl PartialEq for Simulated {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Simulated {}

/// What another connection needs to resume a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionToken {
    pub id: i64,
    pub password: Vec<u8>,
    /// As negotiated.
    pub timeout: Duration,
}

/// The state of a connection, as the client knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Connected,
    /// The connection is lost. The session may live on.
    Lost,
    /// The session is over: expired, closed, or its credentials were refused.
    Over,
}

/// A one-shot watch that is armed.
pub struct Watcher(Pin<Box<dyn Future<Output = EventType> + Send>>);

impl Watcher {
    pub fn new(event: impl Future<Output = EventType> + Send + 'static) -> Self {
        Self(Box::pin(event))
    }

    /// Waits for the event; [`EventType::Session`] if the session ends before.
    pub async fn changed(self) -> EventType {
        self.0.await
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}
