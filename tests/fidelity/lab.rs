//! An ensemble in memory with clients that keep what they hear, in virtual time.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::memory::{
    Acl, Code, ConnectionId, CreateMode, Ensemble, EventKind, Hello, Message, Op, Reply, Request, SessionId, Settings,
    Time, Zxid,
};

pub const TICK: Duration = Duration::from_secs(2);
/// Long enough for a request, its proposal and its commit.
const SOON: Duration = Duration::from_millis(10);

pub struct Lab {
    pub ensemble: Ensemble,
    pub now: Time,
    heard: BTreeMap<ConnectionId, Vec<Message>>,
}

/// A session and its connection.
#[derive(Clone, Debug)]
pub struct Client {
    pub connection: ConnectionId,
    pub session: SessionId,
    pub password: Vec<u8>,
    pub timeout_ms: u64,
}

impl Lab {
    pub fn of(servers: usize) -> Self {
        Self::with(Settings::of(servers), 1)
    }

    pub fn with(settings: Settings, seed: u64) -> Self {
        Self { ensemble: Ensemble::new(settings, seed), now: Time::ZERO, heard: BTreeMap::new() }
    }

    pub fn pass(&mut self, length: Duration) {
        let until = self.now + length;
        while self.now < until {
            self.now = self.ensemble.next().filter(|next| *next < until).unwrap_or(until).max(self.now);
            for output in self.ensemble.advance(self.now) {
                self.heard.entry(output.connection).or_default().push(output.message);
            }
            if self.ensemble.next().is_none_or(|next| next >= until) {
                self.now = until;
            }
        }
        for output in self.ensemble.advance(self.now) {
            self.heard.entry(output.connection).or_default().push(output.message);
        }
    }

    /// What it has heard since it was asked last.
    pub fn heard(&mut self, connection: ConnectionId) -> Vec<Message> {
        self.heard.remove(&connection).unwrap_or_default()
    }

    pub fn is_closed(&mut self, client: &Client) -> bool {
        self.pass(Duration::ZERO);
        !self.ensemble.is_connected(client.connection) && self.heard(client.connection).contains(&Message::Closed)
    }

    pub fn try_connect(&mut self, server: usize, hello: &Hello) -> Vec<Message> {
        let connection = self.ensemble.connect(server, hello, self.now);
        self.pass(SOON);
        self.heard(connection)
    }

    pub fn connect(&mut self, server: usize) -> Client {
        self.connect_with(server, &Hello::new(10_000)).expect("a session")
    }

    pub fn connect_with(&mut self, server: usize, hello: &Hello) -> Option<Client> {
        let connection = self.ensemble.connect(server, hello, self.now);
        self.pass(SOON);
        match self.heard(connection).pop() {
            Some(Message::Connected { session, timeout_ms, password }) => {
                Some(Client { connection, session, password, timeout_ms })
            }
            _ => None,
        }
    }

    /// The same session, at another server.
    pub fn reconnect(&mut self, client: &Client, server: usize, last_zxid: Zxid) -> Option<Client> {
        self.connect_with(server, &Hello::again(client.timeout_ms, client.session, &client.password, last_zxid))
    }

    pub fn put(&mut self, client: &Client, request: Request) {
        self.ensemble.submit(client.connection, 1, request, self.now);
    }

    /// The reply, if it comes soon; events before it are not shown.
    pub fn ask(&mut self, client: &Client, request: Request) -> Option<Result<Reply, Code>> {
        self.put(client, request);
        self.pass(SOON);
        self.reply(client)
    }

    pub fn reply(&mut self, client: &Client) -> Option<Result<Reply, Code>> {
        let mut replies = self.heard(client.connection).into_iter().filter_map(|message| match message {
            Message::Reply { result, .. } => Some(result),
            _ => None,
        });
        replies.next_back()
    }

    pub fn events(&mut self, client: &Client) -> Vec<(EventKind, String)> {
        let events = self.heard(client.connection).into_iter().filter_map(|message| match message {
            Message::Event { kind, path, .. } => Some((kind, path)),
            _ => None,
        });
        events.collect()
    }

    /// What this client reads.
    pub fn read(&mut self, client: &Client, path: &str) -> Option<String> {
        match self.ask(client, get(path)) {
            Some(Ok(Reply::Data { data, .. })) => Some(String::from_utf8(data).unwrap()),
            _ => None,
        }
    }

    pub fn exists_at(&self, server: usize, path: &str) -> bool {
        self.ensemble.tree(server).node(path).is_ok()
    }
}

pub fn get(path: &str) -> Request {
    Request::GetData { path: path.to_owned(), watch: false }
}

pub fn set(path: &str, data: &str) -> Request {
    Request::Write(Op::SetData { path: path.to_owned(), data: data.as_bytes().to_vec(), version: -1 })
}

pub fn create(path: &str, mode: CreateMode) -> Request {
    Request::Write(Op::Create { path: path.to_owned(), data: Vec::new(), acl: Acl::open(), mode })
}

pub fn delete(path: &str) -> Request {
    Request::Write(Op::Delete { path: path.to_owned(), version: -1 })
}
