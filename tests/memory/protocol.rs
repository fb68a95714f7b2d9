//! What clients and servers say to each other, without its encoding.

pub type Zxid = i64;
pub type SessionId = i64;
/// The number that a client gives a request; the reply bears it too.
pub type Xid = i32;

/// A connection from a client to one server; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// The error codes of the protocol that this ensemble gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// Only in a multi that failed: this operation was tried before the one that failed, and undone.
    Ok,
    RuntimeInconsistent,
    BadArguments,
    UnknownSession,
    NoNode,
    NoAuth,
    BadVersion,
    NoChildrenForEphemerals,
    NodeExists,
    NotEmpty,
    SessionExpired,
    InvalidAcl,
    AuthFailed,
    /// Never reaches a client: the server closes the connection instead.
    SessionMoved,
}

impl Code {
    const NUMBERS: [(Self, i32); 14] = [
        (Self::Ok, 0),
        (Self::RuntimeInconsistent, -2),
        (Self::BadArguments, -8),
        (Self::UnknownSession, -12),
        (Self::NoNode, -101),
        (Self::NoAuth, -102),
        (Self::BadVersion, -103),
        (Self::NoChildrenForEphemerals, -108),
        (Self::NodeExists, -110),
        (Self::NotEmpty, -111),
        (Self::SessionExpired, -112),
        (Self::InvalidAcl, -114),
        (Self::AuthFailed, -115),
        (Self::SessionMoved, -118),
    ];

    pub fn number(self) -> i32 {
        Self::NUMBERS.iter().find(|(code, _)| *code == self).unwrap().1
    }

    pub fn of(number: i32) -> Option<Self> {
        Self::NUMBERS.iter().find(|(_, of)| *of == number).map(|(code, _)| *code)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub czxid: Zxid,
    pub mzxid: Zxid,
    pub pzxid: Zxid,
    /// Milliseconds since the Unix epoch by the clock of the leader.
    pub ctime: i64,
    pub mtime: i64,
    pub version: i32,
    pub cversion: i32,
    pub aversion: i32,
    pub ephemeral_owner: SessionId,
    pub data_length: i32,
    pub num_children: i32,
}

/// Who somebody is, or may be: `digest:user:hash`, `ip:127.0.0.1`, `world:anyone`, `auth:`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    pub scheme: String,
    pub id: String,
}

impl Id {
    pub fn new(scheme: &str, id: &str) -> Self {
        Self { scheme: scheme.to_owned(), id: id.to_owned() }
    }
}

pub const READ: i32 = 1;
pub const WRITE: i32 = 2;
pub const CREATE: i32 = 4;
pub const DELETE: i32 = 8;
pub const ADMIN: i32 = 16;
pub const ALL: i32 = 31;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Acl {
    pub permissions: i32,
    pub id: Id,
}

impl Acl {
    pub fn new(permissions: i32, scheme: &str, id: &str) -> Self {
        Self { permissions, id: Id::new(scheme, id) }
    }

    pub fn open() -> Vec<Self> {
        vec![Self::new(ALL, "world", "anyone")]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CreateMode {
    Persistent,
    Ephemeral,
    PersistentSequential,
    EphemeralSequential,
}

impl CreateMode {
    pub fn is_ephemeral(self) -> bool {
        matches!(self, Self::Ephemeral | Self::EphemeralSequential)
    }

    pub fn is_sequential(self) -> bool {
        matches!(self, Self::PersistentSequential | Self::EphemeralSequential)
    }
}

/// Where a request names a version, this is any.
pub const ANY_VERSION: i32 = -1;

/// What changes the tree, alone or in a multi.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    Create {
        path: String,
        data: Vec<u8>,
        acl: Vec<Acl>,
        mode: CreateMode,
    },
    Delete {
        path: String,
        version: i32,
    },
    SetData {
        path: String,
        data: Vec<u8>,
        version: i32,
    },
    /// Only in a multi.
    Check {
        path: String,
        version: i32,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Request {
    Write(Op),
    Multi(Vec<Op>),
    SetAcl {
        path: String,
        acl: Vec<Acl>,
        version: i32,
    },
    Exists {
        path: String,
        watch: bool,
    },
    GetData {
        path: String,
        watch: bool,
    },
    GetChildren {
        path: String,
        watch: bool,
    },
    GetAcl {
        path: String,
    },
    GetEphemerals {
        prefix: String,
    },
    Sync {
        path: String,
    },
    /// After a reconnect: fires what has happened since, and watches the rest.
    SetWatches {
        since: Zxid,
        data: Vec<String>,
        exists: Vec<String>,
        children: Vec<String>,
    },
    Auth {
        scheme: String,
        data: Vec<u8>,
    },
    Ping,
    Close,
}

/// What one operation of a multi came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpReply {
    /// Servers before 3.7.2, 3.8.2 and 3.9.0 forget the stat.
    Created {
        path: String,
        stat: Option<Stat>,
    },
    Deleted,
    Set(Stat),
    Checked,
    Failed(Code),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Created {
        path: String,
        stat: Stat,
    },
    Stat(Stat),
    Data {
        data: Vec<u8>,
        stat: Stat,
    },
    /// In no order.
    Children {
        names: Vec<String>,
        stat: Stat,
    },
    Acl {
        acl: Vec<Acl>,
        stat: Stat,
    },
    Ephemerals(Vec<String>),
    Multi(Vec<OpReply>),
    /// Deleted, synced, authenticated, watched, pinged, closed.
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    Created,
    Deleted,
    DataChanged,
    ChildrenChanged,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The answer to a connect request.
    Connected { session: SessionId, timeout_ms: u64, password: Vec<u8> },
    /// The other answer: there is no such session (any more), or the password is wrong. The connection is closed.
    Expired,
    /// `zxid`: of the last transaction that the server has applied.
    Reply { xid: Xid, zxid: Zxid, result: Result<Reply, Code> },
    /// `zxid`: of the transaction; servers before 3.9 do not say it (-1).
    Event { zxid: Zxid, kind: EventKind, path: String },
    /// The server closed the connection, or took none.
    Closed,
}
