//! The encoding of `ZooKeeper`'s requests and replies, as far as the scripts need it.

use crate::memory::{Acl, Code, CreateMode, EventKind, Id, Op, OpReply, Reply, Request, Stat};
use crate::wire::op_code;

#[derive(Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    pub fn int(&mut self, value: i32) {
        self.0.extend(value.to_be_bytes());
    }

    pub fn long(&mut self, value: i64) {
        self.0.extend(value.to_be_bytes());
    }

    pub fn bool(&mut self, value: bool) {
        self.0.push(value.into());
    }

    pub fn buffer(&mut self, value: &[u8]) {
        self.int(i32::try_from(value.len()).unwrap());
        self.0.extend(value);
    }

    fn string(&mut self, value: &str) {
        self.buffer(value.as_bytes());
    }

    fn strings(&mut self, values: &[String]) {
        self.int(i32::try_from(values.len()).unwrap());
        for value in values {
            self.string(value);
        }
    }

    fn acl(&mut self, acl: &[Acl]) {
        self.int(i32::try_from(acl.len()).unwrap());
        for entry in acl {
            self.int(entry.permissions);
            self.string(&entry.id.scheme);
            self.string(&entry.id.id);
        }
    }

    fn op(&mut self, op: &Op) {
        match op {
            Op::Create { path, data, acl, mode } => {
                self.string(path);
                self.buffer(data);
                self.acl(acl);
                self.int(match mode {
                    CreateMode::Persistent => 0,
                    CreateMode::Ephemeral => 1,
                    CreateMode::PersistentSequential => 2,
                    CreateMode::EphemeralSequential => 3,
                });
            }
            Op::Delete { path, version } | Op::Check { path, version } => {
                self.string(path);
                self.int(*version);
            }
            Op::SetData { path, data, version } => {
                self.string(path);
                self.buffer(data);
                self.int(*version);
            }
        }
    }

    fn multi_header(&mut self, code: i32, is_last: bool) {
        self.int(code);
        self.bool(is_last);
        self.int(-1);
    }

    /// With its length in front.
    pub fn framed(self) -> Vec<u8> {
        let mut packet = i32::try_from(self.0.len()).unwrap().to_be_bytes().to_vec();
        packet.extend(self.0);
        packet
    }
}

/// The type and the body of a request.
pub fn write_request(packet: &mut Writer, request: &Request) {
    packet.int(type_of(request));
    match request {
        Request::Write(op) => packet.op(op),
        Request::Multi(ops) => {
            for op in ops {
                packet.multi_header(op_code(op), false);
                packet.op(op);
            }
            packet.multi_header(-1, true);
        }
        Request::SetAcl { path, acl, version } => {
            packet.string(path);
            packet.acl(acl);
            packet.int(*version);
        }
        Request::Exists { path, watch } | Request::GetData { path, watch } | Request::GetChildren { path, watch } => {
            packet.string(path);
            packet.bool(*watch);
        }
        Request::GetAcl { path } | Request::GetEphemerals { prefix: path } | Request::Sync { path } => {
            packet.string(path);
        }
        Request::SetWatches { since, data, exists, children } => {
            packet.long(*since);
            for paths in [data, exists, children] {
                packet.strings(paths);
            }
        }
        Request::Auth { scheme, data } => {
            packet.int(0);
            packet.string(scheme);
            packet.buffer(data);
        }
        Request::Ping | Request::Close => {}
    }
}

fn type_of(request: &Request) -> i32 {
    match request {
        Request::Write(op) => op_code(op),
        Request::Multi(_) => 14,
        Request::SetAcl { .. } => 7,
        Request::Exists { .. } => 3,
        Request::GetData { .. } => 4,
        Request::GetChildren { .. } => 12,
        Request::GetAcl { .. } => 6,
        Request::GetEphemerals { .. } => 103,
        Request::Sync { .. } => 9,
        Request::SetWatches { .. } => 101,
        Request::Auth { .. } => 100,
        Request::Ping => 11,
        Request::Close => -11,
    }
}

pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn of(packet: &'a [u8]) -> Self {
        Self(packet)
    }

    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    pub fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.take(4).try_into().unwrap())
    }

    pub fn long(&mut self) -> i64 {
        i64::from_be_bytes(self.take(8).try_into().unwrap())
    }

    fn bool(&mut self) -> bool {
        self.take(1)[0] != 0
    }

    pub fn buffer(&mut self) -> Vec<u8> {
        let length = self.int();
        // -1 is null.
        self.take(usize::try_from(length).unwrap_or(0)).to_vec()
    }

    pub fn string(&mut self) -> String {
        String::from_utf8(self.buffer()).unwrap()
    }

    fn strings(&mut self) -> Vec<String> {
        (0..self.int()).map(|_| self.string()).collect()
    }

    fn acl(&mut self) -> Vec<Acl> {
        let mut entries = Vec::new();
        for _ in 0..self.int() {
            let permissions = self.int();
            let scheme = self.string();
            entries.push(Acl { permissions, id: Id { scheme, id: self.string() } });
        }
        entries
    }

    fn stat(&mut self) -> Stat {
        let (czxid, mzxid, ctime, mtime) = (self.long(), self.long(), self.long(), self.long());
        let (version, cversion, aversion, ephemeral_owner) = (self.int(), self.int(), self.int(), self.long());
        let (data_length, num_children, pzxid) = (self.int(), self.int(), self.long());
        Stat {
            czxid,
            mzxid,
            pzxid,
            ctime,
            mtime,
            version,
            cversion,
            aversion,
            ephemeral_owner,
            data_length,
            num_children,
        }
    }

    fn multi(&mut self) -> Vec<OpReply> {
        let mut replies = Vec::new();
        loop {
            let (code, is_last, _error) = (self.int(), self.bool(), self.int());
            if is_last {
                return replies;
            }
            replies.push(match code {
                1 => OpReply::Created { path: self.string(), stat: None },
                15 => OpReply::Created { path: self.string(), stat: Some(self.stat()) },
                2 => OpReply::Deleted,
                5 => OpReply::Set(self.stat()),
                13 => OpReply::Checked,
                _ => OpReply::Failed(Code::of(self.int()).expect("a known code")),
            });
        }
    }
}

pub fn read_reply(reader: &mut Reader, request: &Request) -> Reply {
    match request {
        Request::Write(Op::Create { .. }) => Reply::Created { path: reader.string(), stat: reader.stat() },
        Request::Write(Op::SetData { .. }) | Request::SetAcl { .. } | Request::Exists { .. } => {
            Reply::Stat(reader.stat())
        }
        Request::Multi(_) => Reply::Multi(reader.multi()),
        Request::GetData { .. } => Reply::Data { data: reader.buffer(), stat: reader.stat() },
        Request::GetChildren { .. } => Reply::Children { names: reader.strings(), stat: reader.stat() },
        Request::GetAcl { .. } => Reply::Acl { acl: reader.acl(), stat: reader.stat() },
        Request::GetEphemerals { .. } => Reply::Ephemerals(reader.strings()),
        _ => Reply::Done,
    }
}

pub fn event_kind(number: i32) -> EventKind {
    match number {
        1 => EventKind::Created,
        2 => EventKind::Deleted,
        3 => EventKind::DataChanged,
        4 => EventKind::ChildrenChanged,
        _ => panic!("an event {number}"),
    }
}
