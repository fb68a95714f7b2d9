//! One connection within one session: requests, and the state of the connection.
//!
//! A request is sent when its method is called, not when the returned future is first polled, so that several requests
//! travel in one round. Each has one of three outcomes: the server's answer, the server's refusal, or "fate unknown"
//! ([`super::error::RequestError::Unknown`]).
//!
//! There are two implementations: the `zookeeper-client` crate, and any implementation of
//! [`super::requests::Ensemble`], with which the tests run this program against an ensemble in memory, in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::{FutureExt as _, TryFutureExt as _};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use zookeeper_client::{Client, CreateSequence, OneshotWatcher, SessionState, StateWatcher};

use super::acl::{Create, Entry};
pub use super::requests::{Error, EventType, MultiError, MultiResult, PendingMulti, Stat, State, Watcher};
use super::requests::{Link, Operation, Pending, Reply, Request, Sequence, SessionToken, Simulated};
use super::task::Task;
use crate::core::lease::silence_limit;

/// A connection of either implementation.
#[derive(Clone, Debug)]
pub(crate) enum Resumable {
    Network(zookeeper_client::SessionInfo),
    Simulated(SessionToken),
}

impl From<SessionState> for State {
    fn from(state: SessionState) -> Self {
        match state {
            SessionState::SyncConnected | SessionState::ConnectedReadOnly => Self::Connected,
            SessionState::Disconnected => Self::Lost,
            SessionState::AuthFailed | SessionState::Expired | SessionState::Closed => Self::Over,
        }
    }
}

/// The states of a connection. Only the latest is kept, so a short one can be missed.
#[derive(Clone, Debug)]
pub(crate) enum States {
    Network(StateWatcher),
    Simulated(watch::Receiver<State>),
}

impl States {
    pub fn latest(&self) -> State {
        match self {
            Self::Network(states) => states.peek_state().into(),
            Self::Simulated(states) => *states.borrow(),
        }
    }

    /// Waits for the next state; never returns after [`State::Over`].
    pub async fn changed(&mut self) -> State {
        match self {
            Self::Network(states) => states.changed().await.into(),
            Self::Simulated(states) => match states.changed().await {
                Ok(()) => *states.borrow_and_update(),
                Err(_) => std::future::pending().await,
            },
        }
    }
}

impl From<OneshotWatcher> for Watcher {
    fn from(watcher: OneshotWatcher) -> Self {
        Self::new(async { watcher.changed().await.event_type })
    }
}

/// One connection within one session.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    link: Wire,
    /// The task that keeps the connection alive.
    pub task: Task,
    /// Notified when the connection is to be given up.
    useless: Arc<Notify>,
    was_silent: Arc<AtomicBool>,
}

#[derive(Clone, Debug)]
enum Wire {
    Network(Client),
    Simulated(Arc<dyn Link>),
}

impl Simulated {
    pub(super) async fn open(&self, timeout: Duration, session: Option<Resumable>) -> Result<Connection, Error> {
        let session = match session {
            Some(Resumable::Simulated(session)) => Some(session),
            Some(Resumable::Network(_)) | None => None,
        };
        self.0.open(timeout, session).await.map(Connection::simulated)
    }

    /// A connection of this session that is lost already.
    pub(crate) fn lost(&self, session: SessionToken) -> Connection {
        Connection::simulated(self.0.lost(session))
    }
}

/// Takes what was asked for out of a reply of its kind.
macro_rules! fitting {
    ($reply:pat => $asked:expr) => {
        |reply| match reply {
            $reply => Some($asked),
            _ => None,
        }
    };
}

impl Connection {
    pub fn network(client: Client, task: Task) -> Self {
        Self { link: Wire::Network(client), task, useless: Arc::default(), was_silent: Arc::default() }
    }

    fn simulated(link: Arc<dyn Link>) -> Self {
        let task = Task::of_link(&link);
        Self { link: Wire::Simulated(link), task, useless: Arc::default(), was_silent: Arc::default() }
    }

    pub fn create<'a>(&'a self, path: &'a str, data: &[u8], with: &Create) -> Pending<'a, (Stat, Sequence)> {
        let request = || Request::Create { path: path.to_owned(), data: data.to_vec(), with: with.clone() };
        let created = |(stat, sequence): (_, CreateSequence)| (stat, sequence.to_string());
        let fitting = fitting!(Reply::Created(stat, sequence) => (stat, sequence));
        self.ask(|client| client.create(path, data, &with.options()).map_ok(created), request, fitting)
    }

    pub fn delete<'a>(&'a self, path: &str, version: Option<i32>) -> Pending<'a, ()> {
        let request = || Request::Delete { path: path.to_owned(), version };
        self.ask(|client| client.delete(path, version), request, DONE)
    }

    pub fn check_stat<'a>(&'a self, path: &str) -> Pending<'a, Option<Stat>> {
        let request = || Request::Exists { path: path.to_owned(), watch: false };
        let fitting = fitting!(Reply::Stat(stat, _) => stat);
        self.ask(|client| client.check_stat(path), request, fitting)
    }

    pub fn check_and_watch_stat<'a>(&'a self, path: &str) -> Pending<'a, (Option<Stat>, Watcher)> {
        let request = || Request::Exists { path: path.to_owned(), watch: true };
        let found = |(stat, watcher): (_, OneshotWatcher)| (stat, watcher.into());
        let fitting = fitting!(Reply::Stat(stat, Some(watcher)) => (stat, watcher));
        self.ask(|client| client.check_and_watch_stat(path).map_ok(found), request, fitting)
    }

    pub fn get_data<'a>(&'a self, path: &str) -> Pending<'a, (Vec<u8>, Stat)> {
        let request = || Request::Get { path: path.to_owned(), watch: false };
        let fitting = fitting!(Reply::Data(data, stat, _) => (data, stat));
        self.ask(|client| client.get_data(path), request, fitting)
    }

    pub fn get_and_watch_data<'a>(&'a self, path: &str) -> Pending<'a, (Vec<u8>, Stat, Watcher)> {
        let request = || Request::Get { path: path.to_owned(), watch: true };
        let found = |(data, stat, watcher): (_, _, OneshotWatcher)| (data, stat, watcher.into());
        let fitting = fitting!(Reply::Data(data, stat, Some(watcher)) => (data, stat, watcher));
        self.ask(|client| client.get_and_watch_data(path).map_ok(found), request, fitting)
    }

    pub fn set_data<'a>(&'a self, path: &str, data: &[u8], version: Option<i32>) -> Pending<'a, ()> {
        let request = || Request::Set { path: path.to_owned(), data: data.to_vec(), version };
        self.ask(|client| client.set_data(path, data, version).map_ok(drop), request, DONE)
    }

    pub fn get_children<'a>(&'a self, path: &str) -> Pending<'a, (Vec<String>, Stat)> {
        let request = || Request::Children { path: path.to_owned(), watch: false };
        let fitting = fitting!(Reply::Children(children, stat, _) => (children, stat));
        self.ask(|client| client.get_children(path), request, fitting)
    }

    pub fn get_and_watch_children<'a>(&'a self, path: &str) -> Pending<'a, (Vec<String>, Stat, Watcher)> {
        let request = || Request::Children { path: path.to_owned(), watch: true };
        let found = |(children, stat, watcher): (_, _, OneshotWatcher)| (children, stat, watcher.into());
        let fitting = fitting!(Reply::Children(children, stat, Some(watcher)) => (children, stat, watcher));
        self.ask(|client| client.get_and_watch_children(path).map_ok(found), request, fitting)
    }

    pub fn get_acl<'a>(&'a self, path: &str) -> Pending<'a, Vec<Entry>> {
        let request = || Request::GetAcl { path: path.to_owned() };
        let entries = |(acl, _)| Entry::all_of(acl);
        let fitting = fitting!(Reply::Acl(entries) => entries);
        self.ask(|client| client.get_acl(path).map_ok(entries), request, fitting)
    }

    /// Waits until the connected server has all that was committed when the request reached `ZooKeeper`'s leader.
    pub fn sync<'a>(&'a self, path: &str) -> Pending<'a, ()> {
        self.ask(|client| client.sync(path), || Request::Sync { path: path.to_owned() }, DONE)
    }

    /// Sends a request now, by the client library or over a simulated link, whose reply must fit.
    fn ask<'a, T: Send + 'a, F: Future<Output = Result<T, Error>> + Send + 'a>(
        &'a self,
        by_library: impl FnOnce(&'a Client) -> F,
        request: impl FnOnce() -> Request,
        fitting: impl FnOnce(Reply) -> Option<T> + Send + 'a,
    ) -> Pending<'a, T> {
        match &self.link {
            Wire::Network(client) => self.limited(by_library(client)),
            Wire::Simulated(link) => {
                let reply = link.send(request());
                self.limited(reply.map(|reply| fitting(reply?).ok_or_else(misfit)))
            }
        }
    }

    /// A request without an answer in time has an unknown fate. Replies come in order, so this connection is useless
    /// then.
    fn limited<'a, T: Send + 'a>(
        &'a self,
        reply: impl Future<Output = Result<T, Error>> + Send + 'a,
    ) -> Pending<'a, T> {
        let limit = silence_limit(self.session_timeout());
        Box::pin(async move {
            timeout(limit, reply).await.unwrap_or_else(|_| {
                if !self.was_silent.swap(true, Ordering::Relaxed) {
                    tracing::info!("A request found no answer; the connection is given up");
                }
                self.give_up();
                Err(Error::Timeout)
            })
        })
    }

    /// Its server is of no use: the session goes on over another connection.
    pub fn give_up(&self) {
        self.useless.notify_one();
    }

    /// Notified when the connection is to be given up, as when a request found no answer in time.
    pub fn useless(&self) -> Arc<Notify> {
        Arc::clone(&self.useless)
    }

    /// Whether a request found no answer in time.
    pub fn was_silent(&self) -> bool {
        self.was_silent.load(Ordering::Relaxed)
    }

    /// A transaction: all its operations are applied, or none.
    pub fn multi(&self) -> Multi<'_> {
        Multi { connection: self, operations: Vec::new() }
    }

    pub fn states(&self) -> States {
        match &self.link {
            Wire::Network(client) => States::Network(client.state_watcher()),
            Wire::Simulated(link) => States::Simulated(link.states()),
        }
    }

    pub fn state(&self) -> State {
        self.states().latest()
    }

    /// The server's id of the session.
    pub fn session_id(&self) -> i64 {
        match &self.link {
            Wire::Network(client) => client.session_id().0,
            Wire::Simulated(link) => link.session().id,
        }
    }

    /// As negotiated with the server.
    pub fn session_timeout(&self) -> Duration {
        match &self.link {
            Wire::Network(client) => client.session_timeout(),
            Wire::Simulated(link) => link.session().timeout,
        }
    }

    /// What a later connection needs to resume this session.
    pub fn session(&self) -> Resumable {
        match &self.link {
            Wire::Network(client) => Resumable::Network(client.session().clone()),
            Wire::Simulated(link) => Resumable::Simulated(link.session()),
        }
    }
}

/// A multi that is being built.
#[derive(Debug)]
pub(crate) struct Multi<'a> {
    connection: &'a Connection,
    operations: Vec<Operation>,
}

impl<'a> Multi<'a> {
    /// The znode exists, with this data version unless it is -1.
    pub fn check(&mut self, path: &str, version: i32) {
        self.operations.push(Operation::Check { path: path.to_owned(), version });
    }

    pub fn create(&mut self, path: &str, data: &[u8], with: &Create) {
        self.operations.push(Operation::Create { path: path.to_owned(), data: data.to_vec(), with: with.clone() });
    }

    pub fn set(&mut self, path: &str, data: &[u8], version: Option<i32>) {
        self.operations.push(Operation::Set { path: path.to_owned(), data: data.to_vec(), version });
    }

    pub fn delete(&mut self, path: &str, version: Option<i32>) {
        self.operations.push(Operation::Delete { path: path.to_owned(), version });
    }

    pub fn commit(self) -> PendingMulti<'a> {
        let Self { connection, operations } = self;
        let reply: PendingMulti<'a> = match &connection.link {
            Wire::Network(client) => match write(client, operations) {
                Ok(mut writer) => Box::pin(writer.commit()),
                Err(source) => Box::pin(async { Err(MultiError::RequestFailed { source }) }),
            },
            Wire::Simulated(link) => {
                let reply = link.send(Request::Multi(operations));
                Box::pin(async {
                    match reply.await? {
                        Reply::Multi(Ok(results)) => Ok(results),
                        Reply::Multi(Err((index, source))) => Err(MultiError::OperationFailed { index, source }),
                        _ => Err(misfit().into()),
                    }
                })
            }
        };
        Box::pin(async move {
            let reply = async { Ok::<_, Error>(reply.await) };
            connection.limited(reply).await?
        })
    }
}

const DONE: fn(Reply) -> Option<()> = |reply| matches!(reply, Reply::Done).then_some(());

/// An answer that does not fit the request.
fn misfit() -> Error {
    Error::UnexpectedError("the reply does not fit the request".to_owned())
}

fn write(client: &Client, operations: Vec<Operation>) -> Result<zookeeper_client::MultiWriter<'_>, Error> {
    let mut writer = client.new_multi_writer();
    for operation in operations {
        match operation {
            Operation::Check { path, version } => writer.add_check_version(&path, version)?,
            Operation::Create { path, data, with } => writer.add_create(&path, &data, &with.options())?,
            Operation::Set { path, data, version } => writer.add_set_data(&path, &data, version)?,
            Operation::Delete { path, version } => writer.add_delete(&path, version)?,
        }
    }
    Ok(writer)
}
