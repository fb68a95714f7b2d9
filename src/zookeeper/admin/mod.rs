//! The client of `zk-leaderctl`, with a short session of its own. Methods that only read change nothing; it never joins
//! an election. One time limit bounds every request.

pub mod fleet;
pub mod view;

use std::future::Future;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use crate::zookeeper::client::connection::{Connection, Error, Multi, MultiError, Stat};
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tokio::time::{sleep, timeout};

use crate::zookeeper::client::acl::{Acl, Entry};
use crate::zookeeper::client::address::Address;
use crate::zookeeper::client::connect::{Access, Pace};
use crate::zookeeper::client::diagnose;
use crate::zookeeper::client::ensure_path::parent;
use crate::zookeeper::client::error::{self, Part, PathAccess, Refusal, RequestError, Right, if_there_at};
use crate::zookeeper::client::four_letter;
pub use crate::zookeeper::client::requests::ANY_VERSION;
use crate::zookeeper::client::resolve::UNKNOWN_NAME;

/// The ensemble, and how long to try.
#[derive(Clone, Debug)]
pub struct Destination {
    /// `host:port,…`, without a chroot.
    pub servers: String,
    /// Empty, or an absolute path in front of every path.
    pub chroot: String,
    pub access: Access,
    /// For the connection, and again for each request.
    pub limit: Duration,
    /// T as requested; the session ends with the client.
    pub session_timeout: Duration,
    pub tries: Tries,
}

/// How often each server is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tries {
    /// For those who come again by themselves.
    Twice,
    /// Until the limit: the servers may elect their leader, or are started anew.
    UntilLimit,
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AdminError {
    /// No server could be reached within the limit.
    #[error("{0}")]
    Unreachable(String),
    /// The servers refuse the connection, until somebody changes the configuration: TLS, or a login by Kerberos.
    #[error("{0}")]
    Rejected(String),
    /// Authentication or an ACL forbids the request: the reason and the remedy.
    #[error("{0}")]
    Forbidden(String),
    /// The server does not carry it out for another reason, such as a quota: the reason and the remedy.
    #[error("{0}")]
    Refused(String),
    /// The connection was lost, or no answer came within the limit. A write may have been applied.
    #[error("{0}")]
    Unknown(String),
}

impl From<RequestError> for AdminError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Forbidden(refusal) => Self::Forbidden(refusal.to_string()),
            RequestError::Refused(complaint) => Self::Refused(complaint.to_string()),
            RequestError::Denied(_) | RequestError::Unknown(_) => Self::Unknown(error.to_string()),
        }
    }
}

/// The stat of a znode. Times are milliseconds since 1970 by `ZooKeeper`'s clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    pub version: i32,
    pub czxid: i64,
    pub mzxid: i64,
    pub created_at: i64,
    pub changed_at: i64,
    /// The session that owns it; 0 for a persistent one.
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

/// The outcome of a conditional write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    Done,
    /// A version differs, or a znode exists or is missing against the expectation. Nothing was written.
    Conflict,
}

/// The expected state of a znode to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Before {
    /// It is created with the ACL of its guard.
    Missing,
    /// The same where the guard is a root that many share: everyone may read what is created, as they may read the root, and
    /// only who may change the root may change it.
    MissingForAll,
    /// It exists with this version, or with any.
    There(Option<i32>),
}

/// Who may have been silent.
fn silence(servers: &str) -> &'static str {
    let has_names = servers.split(',').any(|server| Address::of(server).host.parse::<IpAddr>().is_err());
    if has_names { "no answer in time, from a server or a name server" } else { "no answer in time" }
}

/// The pauses before each server is tried once more.
const SECOND_TRY_AFTER: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A name server that says so has answered.
const NAME_SERVER_LIMIT: Duration = Duration::from_secs(1);

/// Why the last try has failed.
enum Failure {
    /// None has failed.
    None,
    /// No server was asked yet.
    NotAsked,
    Known(String),
}

/// Tries until there is a session, or no try is left.
async fn opened(destination: &Destination, last: &mut Failure) -> Result<Connection, AdminError> {
    let Destination { servers, access, limit, session_timeout, tries, .. } = destination;
    let pace = Pace { session: *session_timeout, connection: *limit, all: Some(*limit) };
    let (mut pause, mut is_first) = (SECOND_TRY_AFTER, true);
    loop {
        let error = match AssertUnwindSafe(access.open(servers, pace, None)).catch_unwind().await {
            Ok(Ok(client)) => return Ok(client),
            Ok(Err(Error::NoAuth | Error::AuthFailed)) => {
                return Err(AdminError::Forbidden(access.refusal().to_string()));
            }
            Ok(Err(error)) => error,
            Err(_) => return Err(AdminError::Unreachable("the server's answer made no sense".to_owned())),
        };
        if matches!(last, Failure::None) {
            *last = Failure::NotAsked;
        }
        // A busy server may close a connection while it is made: nobody is asked why.
        if !(is_first && matches!(error, Error::NoHosts)) {
            let diagnosis = diagnose::of(servers, access).await;
            let is_final = diagnosis.as_ref().is_some_and(|diagnosis| diagnosis.is_final);
            let why = diagnosis.map_or_else(|| error::no_session(&error), |diagnosis| diagnosis.text);
            if is_final {
                return Err(AdminError::Rejected(why));
            }
            if *tries == Tries::Twice || !has_addresses(servers).await {
                return Err(AdminError::Unreachable(why));
            }
            *last = Failure::Known(why);
        }
        is_first = false;
        sleep(pause).await;
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

/// Whether a server's name is known, or may be.
async fn has_addresses(servers: &str) -> bool {
    let hosts = servers.split(',').map(|server| Address::of(server).host);
    let unresolved = join_all(hosts.map(|host| four_letter::unresolved(host, NAME_SERVER_LIMIT))).await;
    unresolved.iter().any(|why| !why.as_ref().is_some_and(|why| why.starts_with(UNKNOWN_NAME)))
}

/// An open session.
#[derive(Debug)]
pub struct AdminClient {
    client: Connection,
    chroot: String,
    limit: Duration,
}

impl AdminClient {
    /// Opens a session. Whatever waiting does not change ends the tries.
    ///
    /// # Errors
    ///
    /// No server answered within the limit, or the ensemble refuses us.
    pub async fn open(destination: &Destination) -> Result<Self, AdminError> {
        let Destination { servers, chroot, access, limit, .. } = destination;
        let mut last = Failure::None;
        let opened = timeout(*limit, opened(destination, &mut last)).await;
        let client = match (opened, last) {
            (Ok(opened), _) => opened?,
            (Err(_), Failure::Known(why)) => return Err(AdminError::Unreachable(why)),
            (Err(_), Failure::NotAsked) => {
                let why = diagnose::of(servers, access).await.map(|diagnosis| diagnosis.text);
                return Err(AdminError::Unreachable(why.unwrap_or_else(|| error::no_session(&Error::NoHosts))));
            }
            (Err(_), Failure::None) => {
                return Err(AdminError::Unreachable(format!("{servers}: {}", silence(servers))));
            }
        };
        Ok(Self { client, chroot: chroot.clone(), limit: *limit })
    }

    /// T as negotiated.
    pub fn session_timeout(&self) -> Duration {
        self.client.session_timeout()
    }

    /// `None`: it does not exist.
    ///
    /// # Errors
    ///
    /// There is no answer.
    pub async fn read(&self, path: &str) -> Result<Option<Znode>, AdminError> {
        let path = self.full(path);
        let found = self.ask(&path, self.client.get_data(&path)).await?;
        Ok(found.map(|(data, stat)| Znode { data, facts: stat.into() }))
    }

    /// The names of the children; `None`: the znode does not exist.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn children(&self, path: &str) -> Result<Option<Vec<String>>, AdminError> {
        let path = self.full(path);
        let found = self.ask(&path, self.client.get_children(&path)).await?;
        Ok(found.map(|(children, _)| children))
    }

    /// Lets the connected server catch up with `ZooKeeper`'s leader.
    ///
    /// # Errors
    ///
    /// There is no answer.
    pub async fn catch_up(&self, path: &str) -> Result<(), AdminError> {
        let path = self.full(path);
        self.ask(&path, self.client.sync(&path)).await.map(drop)
    }

    /// Its ACL; `None`: it does not exist.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn acl(&self, path: &str) -> Result<Option<Vec<Entry>>, AdminError> {
        let path = self.full(path);
        self.ask(&path, self.client.get_acl(&path)).await
    }

    /// Whether it has this data version, confirmed by a quorum: a check that is committed like a write and writes
    /// nothing.
    ///
    /// # Errors
    ///
    /// There is no answer.
    pub async fn has_version(&self, path: &str, version: i32) -> Result<bool, AdminError> {
        let path = self.full(path);
        let mut multi = self.client.multi();
        multi.check(&path, version);
        self.commit(multi, &[PathAccess(Part::Other, Right::Read, &path)]).await.map(|written| written == Written::Done)
    }

    /// Writes a znode if `guard` exists with this version (or any: [`ANY_VERSION`]), in one multi.
    ///
    /// # Errors
    ///
    /// There is no answer, and it may have been written; or it is forbidden.
    pub async fn write(
        &self,
        guard: (&str, i32),
        path: &str,
        data: &[u8],
        before: Before,
    ) -> Result<Written, AdminError> {
        let (guarding, path) = (self.full(guard.0), self.full(path));
        let mut multi = self.client.multi();
        multi.check(&guarding, guard.1);
        let written = if let Before::There(version) = before {
            multi.set(&path, data, version);
            PathAccess(Part::Other, Right::Write, &path)
        } else {
            let Some(acl) = self.acl_for_a_child(&guarding).await? else { return Ok(Written::Conflict) };
            let acl = if before == Before::MissingForAll { acl.read_by_all() } else { acl };
            multi.create(&path, data, &acl.persistent());
            PathAccess(Part::Other, Right::Create, parent(&path))
        };
        self.commit(multi, &[PathAccess(Part::Other, Right::Read, &guarding), written]).await
    }

    /// Writes a znode that has this version.
    ///
    /// # Errors
    ///
    /// There is no answer, and it may have been written; or it is forbidden.
    pub async fn overwrite(&self, path: &str, data: &[u8], version: i32) -> Result<Written, AdminError> {
        let path = self.full(path);
        let mut multi = self.client.multi();
        multi.set(&path, data, Some(version));
        self.commit(multi, &[PathAccess(Part::Other, Right::Write, &path)]).await
    }

    /// `Conflict`: it does not exist, or has another version than this, if one is given.
    ///
    /// # Errors
    ///
    /// There is no answer, and it may have been deleted; or it is forbidden.
    pub async fn delete(&self, path: &str, version: Option<i32>) -> Result<Written, AdminError> {
        let path = self.full(path);
        let mut multi = self.client.multi();
        multi.delete(&path, version);
        self.commit(multi, &[PathAccess(Part::Other, Right::Delete, parent(&path))]).await
    }

    /// The ACL of a znode, for a new child; `None`: the znode does not exist.
    async fn acl_for_a_child(&self, path: &str) -> Result<Option<Acl>, AdminError> {
        let found = self.ask(path, self.client.get_acl(path)).await?.map(Acl::of_znode);
        let masked = || Refusal::Right(Right::SeeAcl, path.to_owned()).to_string();
        found.map(|acl| acl.ok_or_else(|| AdminError::Forbidden(masked()))).transpose()
    }

    /// Ends the session, and waits shortly for the server's confirmation.
    pub async fn close(self) {
        const PATIENCE: Duration = Duration::from_millis(500);
        let mut task = self.client.task.clone();
        drop(self);
        if timeout(PATIENCE, task.over()).await.is_err() {
            tracing::debug!("Closing the session was not confirmed; it is left to expiry");
        }
    }

    async fn commit(&self, multi: Multi<'_>, steps: &[PathAccess<'_>]) -> Result<Written, AdminError> {
        match self.in_time(multi.commit()).await? {
            Ok(_) => Ok(Written::Done),
            Err(MultiError::OperationFailed {
                source: Error::BadVersion | Error::NoNode | Error::NodeExists, ..
            }) => Ok(Written::Conflict),
            Err(error) => Err(RequestError::of_multi(&error, steps).into()),
        }
    }

    /// Reads at this path; `None`: there is no such znode.
    async fn ask<T>(&self, path: &str, read: impl Future<Output = Result<T, Error>>) -> Result<Option<T>, AdminError> {
        Ok(if_there_at(path, self.in_time(read).await?)?)
    }

    async fn in_time<T>(&self, request: impl Future<Output = T>) -> Result<T, AdminError> {
        match timeout(self.limit, AssertUnwindSafe(request).catch_unwind()).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(AdminError::Unknown("the server's answer made no sense".to_owned())),
            Err(_) => Err(AdminError::Unknown("no answer in time".to_owned())),
        }
    }

    /// The root is the chroot itself: no other path may end with a slash.
    fn full(&self, path: &str) -> String {
        match (self.chroot.as_str(), path) {
            ("", path) => path.to_owned(),
            (chroot, "/") => chroot.to_owned(),
            (chroot, path) => format!("{chroot}{path}"),
        }
    }
}
