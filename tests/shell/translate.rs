//! What the client asks and what the servers answer, in the words of `tests/memory` and back.

use zk_leader_run::zookeeper::client::acl::{Create, CreateMode, Entry, Rights};
use zk_leader_run::zookeeper::client::requests::{
    ANY_VERSION, Error, EventType, MultiResult, Operation, Reply, Request, Stat, Watcher,
};

use crate::memory;
use crate::memory::{Code, EventKind, Op, OpReply};

pub fn request(request: &Request) -> memory::Request {
    match request.clone() {
        Request::Create { path, data, with } => memory::Request::Write(create(path, data, &with)),
        Request::Delete { path, version } => memory::Request::Write(Op::Delete { path, version: any(version) }),
        Request::Set { path, data, version } => {
            memory::Request::Write(Op::SetData { path, data, version: any(version) })
        }
        Request::Exists { path, watch } => memory::Request::Exists { path, watch },
        Request::Get { path, watch } => memory::Request::GetData { path, watch },
        Request::Children { path, watch } => memory::Request::GetChildren { path, watch },
        Request::GetAcl { path } => memory::Request::GetAcl { path },
        Request::Sync { path } => memory::Request::Sync { path },
        Request::Multi(operations) => memory::Request::Multi(operations.into_iter().map(operation).collect()),
    }
}

fn operation(operation: Operation) -> Op {
    match operation {
        Operation::Check { path, version } => Op::Check { path, version },
        Operation::Create { path, data, with } => create(path, data, &with),
        Operation::Set { path, data, version } => Op::SetData { path, data, version: any(version) },
        Operation::Delete { path, version } => Op::Delete { path, version: any(version) },
    }
}

fn any(version: Option<i32>) -> i32 {
    version.unwrap_or(ANY_VERSION)
}

fn create(path: String, data: Vec<u8>, with: &Create) -> Op {
    let mode = match with.mode {
        CreateMode::Persistent => memory::CreateMode::Persistent,
        CreateMode::Ephemeral => memory::CreateMode::Ephemeral,
        CreateMode::PersistentSequential => memory::CreateMode::PersistentSequential,
        CreateMode::EphemeralSequential => memory::CreateMode::EphemeralSequential,
        other @ CreateMode::Container => panic!("no such znodes in memory: {other:?}"),
    };
    let line = |entry: Entry| memory::Acl::new(permissions(entry.rights()), entry.scheme(), entry.raw_id());
    Op::Create { path, data, acl: with.acl().map(line).collect(), mode }
}

const LETTERS: [(char, i32); 5] =
    [('r', memory::READ), ('w', memory::WRITE), ('c', memory::CREATE), ('d', memory::DELETE), ('a', memory::ADMIN)];

fn permissions(rights: Rights) -> i32 {
    let letters = rights.to_string();
    LETTERS.iter().filter(|(letter, _)| letters.contains(*letter)).map(|(_, bit)| bit).sum()
}

fn entry(acl: &memory::Acl) -> Entry {
    let letters: String =
        LETTERS.iter().filter(|(_, bit)| acl.permissions & bit != 0).map(|(letter, _)| *letter).collect();
    Entry::new(&acl.id.scheme, &acl.id.id, Rights::of(&letters).expect("a right"))
}

/// The answer to `asked`. A watch that was asked for is made by `watch`.
pub fn reply(
    asked: &Request,
    result: Result<memory::Reply, Code>,
    watch: impl FnOnce() -> Option<Watcher>,
) -> Result<Reply, Error> {
    let reply = match result {
        Err(Code::NoNode) if matches!(asked, Request::Exists { .. }) => return Ok(Reply::Stat(None, watch())),
        Err(code) => return Err(error(code)),
        Ok(reply) => reply,
    };
    Ok(match (asked, reply) {
        (Request::Create { path, .. }, memory::Reply::Created { path: created, stat: of }) => {
            Reply::Created(stat(&of), created.strip_prefix(path.as_str()).unwrap_or_default().to_owned())
        }
        (Request::Exists { .. }, memory::Reply::Stat(of)) => Reply::Stat(Some(stat(&of)), watch()),
        (Request::Get { .. }, memory::Reply::Data { data, stat: of }) => Reply::Data(data, stat(&of), watch()),
        (Request::Children { .. }, memory::Reply::Children { names, stat: of }) => {
            Reply::Children(names, stat(&of), watch())
        }
        (Request::GetAcl { .. }, memory::Reply::Acl { acl, .. }) => Reply::Acl(acl.iter().map(entry).collect()),
        (Request::Multi(_), memory::Reply::Multi(replies)) => Reply::Multi(multi(replies)),
        (Request::Delete { .. } | Request::Set { .. } | Request::Sync { .. }, _) => Reply::Done,
        (asked, reply) => panic!("{asked:?} was answered by {reply:?}"),
    })
}

fn multi(replies: Vec<OpReply>) -> Result<Vec<MultiResult>, (usize, Error)> {
    let failed = |reply: &OpReply| match reply {
        OpReply::Failed(Code::Ok) => None,
        OpReply::Failed(code) => Some(*code),
        _ => None,
    };
    if let Some((index, code)) = replies.iter().enumerate().find_map(|(at, one)| Some((at, failed(one)?))) {
        return Err((index, error(code)));
    }
    let done = |reply| match reply {
        OpReply::Created { path, stat: of } => {
            MultiResult::Create { path, stat: of.map_or_else(invalid, |of| stat(&of)) }
        }
        OpReply::Set(of) => MultiResult::SetData { stat: stat(&of) },
        OpReply::Deleted => MultiResult::Delete,
        OpReply::Checked => MultiResult::Check,
        OpReply::Failed(code) => panic!("a multi that failed with {code:?} alone"),
    };
    Ok(replies.into_iter().map(done).collect())
}

fn stat(of: &memory::Stat) -> Stat {
    Stat {
        czxid: of.czxid,
        mzxid: of.mzxid,
        pzxid: of.pzxid,
        ctime: of.ctime,
        mtime: of.mtime,
        version: of.version,
        cversion: of.cversion,
        aversion: of.aversion,
        ephemeral_owner: of.ephemeral_owner,
        data_length: of.data_length,
        num_children: of.num_children,
    }
}

/// As the client library shows a stat that an old server has forgotten.
fn invalid() -> Stat {
    let none = memory::Stat {
        czxid: -1,
        mzxid: -1,
        pzxid: -1,
        ctime: 0,
        mtime: 0,
        version: -1,
        cversion: -1,
        aversion: -1,
        ephemeral_owner: -1,
        data_length: -1,
        num_children: -1,
    };
    stat(&none)
}

pub fn error(code: Code) -> Error {
    match code {
        Code::NoNode => Error::NoNode,
        Code::NoAuth => Error::NoAuth,
        Code::BadVersion => Error::BadVersion,
        Code::NoChildrenForEphemerals => Error::NoChildrenForEphemerals,
        Code::NodeExists => Error::NodeExists,
        Code::NotEmpty => Error::NotEmpty,
        Code::SessionExpired | Code::UnknownSession => Error::SessionExpired,
        Code::InvalidAcl => Error::InvalidAcl,
        Code::AuthFailed => Error::AuthFailed,
        Code::SessionMoved => Error::SessionMoved,
        Code::RuntimeInconsistent => Error::RuntimeInconsistent,
        Code::Ok | Code::BadArguments => Error::UnexpectedError(format!("{code:?}")),
    }
}

pub fn event(kind: EventKind) -> EventType {
    match kind {
        EventKind::Created => EventType::NodeCreated,
        EventKind::Deleted => EventType::NodeDeleted,
        EventKind::DataChanged => EventType::NodeDataChanged,
        EventKind::ChildrenChanged => EventType::NodeChildrenChanged,
    }
}
