//! What a server makes of the transactions that it applies: znodes and sessions.

use std::collections::BTreeMap;

use super::protocol::{Acl, Code, ConnectionId, OpReply, Reply, SessionId, Xid, Zxid};
use super::settings::Version;
use super::tree::{At, Change, Tree};

/// Where a request came from, so that one server knows that the transaction is the answer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub server: usize,
    pub connection: ConnectionId,
    pub xid: Xid,
}

/// What the leader decided; every server does the same with it.
#[derive(Clone, Debug)]
pub enum Txn {
    CreateSession {
        timeout_ms: u64,
    },
    CloseSession {
        paths: Vec<String>,
    },
    Step(Step),
    SetAcl {
        path: String,
        acl: Vec<Acl>,
    },
    Multi(Vec<Step>),
    /// A multi of which an operation is impossible; nothing of it is done.
    Aborted(Vec<Code>),
    /// A request that is impossible costs a zxid too.
    Error(Code),
}

#[derive(Clone, Debug)]
pub enum Step {
    Create { path: String, data: Vec<u8>, acl: Vec<Acl>, is_ephemeral: bool },
    Delete { path: String },
    SetData { path: String, data: Vec<u8> },
    Check,
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub zxid: Zxid,
    /// By the leader's clock.
    pub time: i64,
    pub session: SessionId,
    pub origin: Option<Origin>,
    pub txn: Txn,
}

impl Entry {
    fn at(&self) -> At {
        At { zxid: self.zxid, time: self.time }
    }
}

#[derive(Clone, Debug)]
pub struct State {
    pub tree: Tree,
    /// The sessions that there are, and their timeouts.
    pub sessions: BTreeMap<SessionId, u64>,
    pub last_zxid: Zxid,
    version: Version,
}

impl State {
    pub fn new(version: Version) -> Self {
        Self { tree: Tree::new(), sessions: BTreeMap::new(), last_zxid: 0, version }
    }

    /// The reply to who asked for it, and what watches hear of it, in this order.
    pub fn apply(&mut self, entry: &Entry) -> (Result<Reply, Code>, Vec<Change>) {
        let mut changes = Vec::new();
        self.last_zxid = self.last_zxid.max(entry.zxid);
        let result = match &entry.txn {
            Txn::CreateSession { timeout_ms } => {
                self.sessions.insert(entry.session, *timeout_ms);
                Ok(Reply::Done)
            }
            Txn::CloseSession { paths } => {
                self.sessions.remove(&entry.session);
                changes.extend(paths.iter().filter_map(|path| self.tree.delete(path, entry.at())));
                Ok(Reply::Done)
            }
            Txn::Step(step) => Ok(match self.step(step, entry, &mut changes) {
                OpReply::Created { path, stat } => Reply::Created { path, stat: stat.unwrap() },
                OpReply::Set(stat) => Reply::Stat(stat),
                OpReply::Deleted | OpReply::Checked | OpReply::Failed(_) => Reply::Done,
            }),
            Txn::SetAcl { path, acl } => Ok(Reply::Stat(self.tree.set_acl(path, acl.clone()))),
            Txn::Multi(steps) => {
                let replies = steps.iter().map(|step| self.step(step, entry, &mut changes)).collect();
                Ok(Reply::Multi(self.as_this_version_tells(replies)))
            }
            Txn::Aborted(codes) => Ok(Reply::Multi(codes.iter().map(|code| OpReply::Failed(*code)).collect())),
            Txn::Error(code) => Err(*code),
        };
        (result, changes)
    }

    pub fn step(&mut self, step: &Step, entry: &Entry, changes: &mut Vec<Change>) -> OpReply {
        match step {
            Step::Create { path, data, acl, is_ephemeral } => {
                let owner = if *is_ephemeral { entry.session } else { 0 };
                let (stat, change) = self.tree.create(path, data.clone(), acl.clone(), owner, entry.at());
                changes.push(change);
                OpReply::Created { path: path.clone(), stat: Some(stat) }
            }
            Step::Delete { path } => {
                changes.extend(self.tree.delete(path, entry.at()));
                OpReply::Deleted
            }
            Step::SetData { path, data } => {
                let (stat, change) = self.tree.set_data(path, data.clone(), entry.at());
                changes.push(change);
                OpReply::Set(stat)
            }
            Step::Check => OpReply::Checked,
        }
    }

    /// ZOOKEEPER-4026: a create in a multi was answered without its stat.
    fn as_this_version_tells(&self, replies: Vec<OpReply>) -> Vec<OpReply> {
        let forgets = self.version == Version::V3_8;
        let told = |reply| match reply {
            OpReply::Created { path, .. } if forgets => OpReply::Created { path, stat: None },
            reply => reply,
        };
        replies.into_iter().map(told).collect()
    }
}
