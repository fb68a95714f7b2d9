//! A short visit to the ensemble in a session of its own: for `zk-leaderctl`, which looks, and writes only what it was told.
//!
//! Every request is bounded by one limit, and a reply that makes no sense is no answer.
//!
//! Never: a candidate; a znode created or changed by a method that only reads; a wait without a limit.

pub mod probe;
pub mod sight;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::timeout;
use zookeeper_client::{Acls, Client, CreateMode, Error, MultiWriteError, Permission, Stat};

use super::access::{Access, Pace};
use super::service::{self, Service};

/// Where to go, and how long to try.
#[derive(Clone, Debug)]
pub struct Destination {
    /// `host:port,…`, without a chroot.
    pub servers: String,
    /// Empty, or an absolute path, put in front of every path.
    pub chroot: String,
    pub access: Access,
    /// For the connection, and again for each request.
    pub limit: Duration,
    /// T as it will be requested; the session lives only as long as the visit.
    pub session_timeout: Duration,
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// No server could be reached within the limit.
    Unreachable(String),
    /// Authentication or an ACL forbids it.
    Forbidden,
    /// The connection was lost, or the answer did not come within the limit; a write may have been applied.
    Unknown(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::NoAuth | Error::AuthFailed | Error::InvalidAcl => Self::Forbidden,
            other => Self::Unknown(other.to_string()),
        }
    }
}

/// What the server knows about a znode besides its data. Times are milliseconds since 1970 by `ZooKeeper`'s clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    pub version: i32,
    pub czxid: i64,
    pub mzxid: i64,
    pub created_at: i64,
    pub changed_at: i64,
    /// The session that it goes with; 0 for a persistent one.
    pub owner: i64,
}

impl From<Stat> for Facts {
    fn from(stat: Stat) -> Self {
        Self {
            version: stat.version,
            czxid: stat.czxid,
            mzxid: stat.mzxid,
            created_at: stat.ctime,
            changed_at: stat.mtime,
            owner: stat.ephemeral_owner,
        }
    }
}

/// A znode as it was read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Znode {
    pub data: Vec<u8>,
    pub facts: Facts,
}

/// What became of a conditional write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    Done,
    /// A version was another one, or a znode exists or not against what was expected. Nothing was written.
    Conflict,
}

/// An open session.
#[derive(Debug)]
pub struct Visit {
    client: Client,
    service: Option<Service>,
    chroot: String,
    limit: Duration,
}

impl Visit {
    /// Opens a session, trying each server once.
    ///
    /// # Errors
    /// No server answered within the limit, or the ensemble refuses us.
    pub async fn open(destination: &Destination) -> Result<Self, Failure> {
        let Destination { servers, chroot, access, limit, session_timeout } = destination;
        let count = u32::try_from(servers.split(',').count()).unwrap_or(1).max(1);
        let pace = Pace { session: *session_timeout, connection: (*limit / count).max(Duration::from_millis(100)) };
        let opened = AssertUnwindSafe(service::capture(access.connect(servers, pace))).catch_unwind();
        let (client, service) = match timeout(*limit, opened).await {
            Ok(Ok(opened)) => opened,
            Ok(Err(_)) => return Err(Failure::Unreachable("the server's answer made no sense".to_owned())),
            Err(_) => return Err(Failure::Unreachable("no answer in time".to_owned())),
        };
        let client = client.map_err(|error| match error {
            Error::NoAuth | Error::AuthFailed => Failure::Forbidden,
            other => Failure::Unreachable(other.to_string()),
        })?;
        Ok(Self { client, service, chroot: chroot.clone(), limit: *limit })
    }

    /// T as the ensemble granted it.
    pub fn session_timeout(&self) -> Duration {
        self.client.session_timeout()
    }

    /// The server's id of this session.
    pub fn session_id(&self) -> i64 {
        self.client.session_id().0
    }

    /// `None`: it does not exist.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn read(&self, path: &str) -> Result<Option<Znode>, Failure> {
        let path = self.full(path);
        let found = self.ask(self.client.get_data(&path)).await?;
        Ok(found.map(|(data, stat)| Znode { data, facts: stat.into() }))
    }

    /// The names of the children; `None`: the znode does not exist.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn children(&self, path: &str) -> Result<Option<Vec<String>>, Failure> {
        let path = self.full(path);
        let found = self.ask(self.client.get_children(&path)).await?;
        Ok(found.map(|(children, _)| children))
    }

    /// Lets the server that we ask catch up with `ZooKeeper`'s leader.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn catch_up(&self, path: &str) -> Result<(), Failure> {
        let path = self.full(path);
        self.ask(self.client.sync(&path)).await.map(drop)
    }

    /// Whether everyone may change, delete or add to it; `None`: it does not exist.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn is_open_to_all(&self, path: &str) -> Result<Option<bool>, Failure> {
        let path = self.full(path);
        let found = self.ask(self.client.get_acl(&path)).await?;
        let rights = [Permission::WRITE, Permission::CREATE, Permission::DELETE, Permission::ADMIN];
        Ok(found.map(|(acl, _)| {
            let world = acl.iter().filter(|entry| entry.scheme() == "world");
            world.into_iter().any(|entry| rights.iter().any(|right| entry.permission().has(*right)))
        }))
    }

    /// Whether it has this data version, by the word of a quorum: a check that is committed like a write and writes nothing.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn has_version(&self, path: &str, version: i32) -> Result<bool, Failure> {
        let mut multi = self.client.new_multi_writer();
        multi.add_check_version(&self.full(path), version)?;
        self.commit(&mut multi).await.map(|written| written == Written::Done)
    }

    /// Writes a znode on condition that `guard` has this version, in one multi. `None` creates it.
    ///
    /// # Errors
    /// There is no answer, and it may have been written; or it is forbidden.
    pub async fn write_fenced(
        &self,
        guard: (&str, i32),
        path: &str,
        data: &[u8],
        exists: bool,
    ) -> Result<Written, Failure> {
        let mut multi = self.client.new_multi_writer();
        multi.add_check_version(&self.full(guard.0), guard.1)?;
        if exists {
            multi.add_set_data(&self.full(path), data, None)?;
        } else {
            multi.add_create(&self.full(path), data, &CreateMode::Persistent.with_acls(Acls::anyone_all()))?;
        }
        self.commit(&mut multi).await
    }

    /// Writes one znode, if `under` exists: where `version` is given it must have that, else it must not exist.
    ///
    /// # Errors
    /// There is no answer, and it may have been written; or it is forbidden.
    pub async fn write(&self, under: &str, path: &str, data: &[u8], version: Option<i32>) -> Result<Written, Failure> {
        const ANY: i32 = -1;
        let mut multi = self.client.new_multi_writer();
        multi.add_check_version(&self.full(under), ANY)?;
        let path = self.full(path);
        match version {
            Some(_) => multi.add_set_data(&path, data, version)?,
            None => multi.add_create(&path, data, &CreateMode::Persistent.with_acls(Acls::anyone_all()))?,
        }
        self.commit(&mut multi).await
    }

    /// Ends the session, and waits a little until the server knows.
    pub async fn close(self) {
        const PATIENCE: Duration = Duration::from_millis(500);
        let Self { client, service, .. } = self;
        drop(client);
        if let Some(mut service) = service {
            let _ = timeout(PATIENCE, service.over()).await;
        }
    }

    async fn commit(&self, multi: &mut zookeeper_client::MultiWriter<'_>) -> Result<Written, Failure> {
        let sent = multi.commit();
        let answer = match timeout(self.limit, AssertUnwindSafe(sent).catch_unwind()).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => return Err(Failure::Unknown("the server's answer made no sense".to_owned())),
            Err(_) => return Err(Failure::Unknown("no answer in time".to_owned())),
        };
        match answer {
            Ok(_) => Ok(Written::Done),
            Err(MultiWriteError::OperationFailed {
                source: Error::BadVersion | Error::NoNode | Error::NodeExists,
                ..
            }) => Ok(Written::Conflict),
            Err(MultiWriteError::OperationFailed { source, .. } | MultiWriteError::RequestFailed { source }) => {
                Err(source.into())
            }
        }
    }

    async fn ask<T>(&self, request: impl Future<Output = Result<T, Error>>) -> Result<Option<T>, Failure> {
        match timeout(self.limit, AssertUnwindSafe(request).catch_unwind()).await {
            Ok(Ok(Ok(answer))) => Ok(Some(answer)),
            Ok(Ok(Err(Error::NoNode))) => Ok(None),
            Ok(Ok(Err(error))) => Err(error.into()),
            Ok(Err(_)) => Err(Failure::Unknown("the server's answer made no sense".to_owned())),
            Err(_) => Err(Failure::Unknown("no answer in time".to_owned())),
        }
    }

    fn full(&self, path: &str) -> String {
        format!("{}{path}", self.chroot)
    }
}
