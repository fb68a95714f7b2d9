//! The ensemble as its caller sees it: what reaches servers, what they send, and what happens to them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::mail::{Envelope, Input, Mail, Order};
use super::protocol::{ConnectionId, Message, Request, SessionId, Xid};
use super::rng::Rng;
use super::server::{Phase, Server};
use super::settings::{Hello, Settings, Time};
use super::tree::Tree;

/// What a server sent to a client, and when.
#[derive(Clone, Debug)]
pub struct Output {
    pub at: Time,
    pub connection: ConnectionId,
    pub message: Message,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Down,
    Looking,
    Following(usize),
    /// Also a standalone server.
    Leading,
}

#[derive(Clone, Debug)]
pub(super) enum Happening {
    Mail(Envelope),
    /// A follower applies what it was told to.
    Apply {
        server: usize,
        link: u64,
        mail: Mail,
    },
    Beat,
    Tick {
        server: usize,
        link: u64,
    },
    Election,
}

#[derive(Clone, Debug)]
pub struct Ensemble {
    pub(super) settings: Settings,
    pub(super) rng: Rng,
    pub(super) now: Time,
    pub(super) servers: Vec<Server>,
    pub(super) epoch: i64,
    /// The last link that was made.
    pub(super) links: u64,
    /// From whom nothing gets through to whom.
    pub(super) blocked: BTreeSet<(usize, usize)>,
    pub(super) held: Vec<Envelope>,
    /// Boxed: inserting and removing moves what is beside it.
    queue: BTreeMap<(Time, u64), Box<Happening>>,
    sequence: u64,
    outputs: Vec<Output>,
    next_connection: u64,
}

impl Ensemble {
    /// Servers that have elected a leader and serve.
    pub fn new(settings: Settings, seed: u64) -> Self {
        let mut rng = Rng::new(seed, 0x5A4B);
        let servers = (0..settings.servers).map(|index| Server::new(index, &settings, rng.next())).collect();
        let mut ensemble = Self {
            settings,
            rng,
            now: Time::ZERO,
            servers,
            epoch: 0,
            links: 0,
            blocked: BTreeSet::new(),
            held: Vec::new(),
            queue: BTreeMap::new(),
            sequence: 0,
            outputs: Vec::new(),
            next_connection: 0,
        };
        ensemble.elect();
        ensemble.schedule(ensemble.settings.tick / 2, Happening::Beat);
        ensemble
    }

    /// A connect request arrives at a server.
    pub fn connect(&mut self, server: usize, hello: &Hello, now: Time) -> ConnectionId {
        self.run_until(now);
        self.next_connection += 1;
        let connection = ConnectionId(self.next_connection);
        self.input(server, Input::Connect(connection, hello.clone()));
        connection
    }

    /// A request arrives. It is lost if the server has closed the connection, as it would be.
    pub fn submit(&mut self, connection: ConnectionId, xid: Xid, request: Request, now: Time) {
        self.run_until(now);
        if let Some(server) = self.server_of(connection) {
            self.input(server, Input::Submit(connection, xid, request));
        }
    }

    /// The client's end of the connection is closed: its session goes on, its watches do not.
    pub fn reset(&mut self, connection: ConnectionId, now: Time) {
        self.run_until(now);
        if let Some(server) = self.server_of(connection) {
            self.input(server, Input::Reset(connection));
        }
    }

    /// Lets time pass, and gives what was sent since the last call, in order.
    pub fn advance(&mut self, now: Time) -> Vec<Output> {
        self.run_until(now);
        std::mem::take(&mut self.outputs)
    }

    /// When something happens next that needs no input. Not before then is there anything to `advance` for.
    pub fn next(&self) -> Option<Time> {
        let first = self.queue.keys().next().map(|(at, _)| *at);
        if self.outputs.is_empty() { first } else { Some(self.now) }
    }

    // What happens to servers.

    /// SIGKILL: its connections are reset at once; what it has stored stays.
    pub fn kill(&mut self, server: usize, now: Time) {
        self.run_until(now);
        self.leave(server);
        self.servers[server].phase = Phase::Down;
        self.servers[server].is_paused = false;
        self.servers[server].inbox.clear();
    }

    /// It serves when it has found a leader, which takes an election.
    pub fn start(&mut self, server: usize, now: Time) {
        self.run_until(now);
        if !self.servers[server].is_up() {
            self.servers[server].phase = Phase::Looking;
            self.schedule_election();
        }
    }

    /// SIGSTOP.
    pub fn pause(&mut self, server: usize, now: Time) {
        self.run_until(now);
        self.servers[server].is_paused = self.servers[server].is_up();
    }

    /// SIGCONT: it reads what has come meanwhile. Sessions that are over by its clock may expire before it does.
    pub fn resume(&mut self, server: usize, now: Time) {
        self.run_until(now);
        self.servers[server].is_paused = false;
        let link = self.servers[server].leading().map(|leading| leading.link);
        if let Some(link) = link.filter(|_| self.rng.chance(50)) {
            self.expire(server, link);
        }
        for input in std::mem::take(&mut self.servers[server].inbox) {
            self.input(server, input);
        }
        self.notice_closed_links(server);
        self.schedule_election();
    }

    /// From now on nothing gets through from one server to the other; what is sent waits.
    pub fn cut(&mut self, from: usize, to: usize, now: Time) {
        self.run_until(now);
        self.blocked.insert((from, to));
    }

    /// A server hears no other, and is heard by none; its clients are not touched.
    pub fn isolate(&mut self, server: usize, now: Time) {
        for other in (0..self.servers.len()).filter(|other| *other != server).collect::<Vec<_>>() {
            self.cut(server, other, now);
            self.cut(other, server, now);
        }
    }

    /// All servers hear each other again.
    pub fn heal(&mut self, now: Time) {
        self.run_until(now);
        self.blocked.clear();
        for envelope in std::mem::take(&mut self.held) {
            self.schedule(now, Happening::Mail(envelope));
        }
        for server in (0..self.servers.len()).filter(|server| !self.servers[*server].is_paused).collect::<Vec<_>>() {
            self.notice_closed_links(server);
        }
        self.schedule_election();
    }

    /// From now on this server applies as much later what is committed.
    pub fn lag(&mut self, server: usize, lag: Duration, now: Time) {
        self.run_until(now);
        self.servers[server].lag = lag;
    }

    /// The leader, if there is one, ends a session before its time, as after a pause of its own.
    pub fn end_session(&mut self, session: SessionId, now: Time) {
        self.run_until(now);
        if let Some(leader) = self.leader() {
            self.decide(leader, None, session, &[], Order::Request(Request::Close));
        }
    }

    /// Sets a server's clock wrong by so many milliseconds.
    pub fn skew(&mut self, server: usize, skew_ms: i64, now: Time) {
        self.run_until(now);
        self.servers[server].skew_ms = skew_ms;
    }

    // What a test may know.

    pub fn role(&self, server: usize) -> Role {
        match &self.servers[server].phase {
            Phase::Down => Role::Down,
            Phase::Looking => Role::Looking,
            Phase::Following { leader, .. } => Role::Following(*leader),
            Phase::Leading(_) => Role::Leading,
        }
    }

    /// The leader of the newest epoch, if one leads.
    pub fn leader(&self) -> Option<usize> {
        let leaders = (0..self.servers.len()).filter(|server| self.servers[*server].leading().is_some());
        leaders.max_by_key(|server| self.servers[*server].leading().map(|leading| leading.link))
    }

    /// The znodes as this server has applied them.
    pub fn tree(&self, server: usize) -> &Tree {
        &self.servers[server].state.tree
    }

    /// The sessions that this server knows.
    pub fn sessions(&self, server: usize) -> impl Iterator<Item = SessionId> + '_ {
        self.servers[server].state.sessions.keys().copied()
    }

    pub fn is_connected(&self, connection: ConnectionId) -> bool {
        self.server_of(connection).is_some()
    }

    /// A server's clock: milliseconds since the Unix epoch.
    pub fn wall_ms(&self, server: usize) -> i64 {
        self.settings.wall_ms + self.now.as_millis() as i64 + self.servers[server].skew_ms
    }

    // Inside.

    pub(super) fn schedule(&mut self, at: Time, happening: Happening) {
        self.sequence += 1;
        self.queue.insert((at.max(self.now), self.sequence), Box::new(happening));
    }

    pub(super) fn send(&mut self, connection: ConnectionId, message: Message) {
        self.outputs.push(Output { at: self.now, connection, message });
    }

    fn server_of(&self, connection: ConnectionId) -> Option<usize> {
        let awaits = |input: &Input| matches!(input, Input::Connect(waiting, _) if *waiting == connection);
        let knows = |server: &Server| server.connections.contains_key(&connection) || server.inbox.iter().any(awaits);
        self.servers.iter().position(knows)
    }

    fn run_until(&mut self, now: Time) {
        while let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((at, _), happening) = entry.remove_entry();
            self.now = self.now.max(at);
            match *happening {
                Happening::Mail(envelope) => self.deliver(envelope),
                Happening::Apply { server, link, mail } => self.apply_now(server, link, &mail),
                Happening::Beat => self.beat(),
                Happening::Tick { server, link } => self.expire(server, link),
                Happening::Election => self.elect(),
            }
        }
        self.now = self.now.max(now);
    }
}

/// Where the servers' order is that of a Java `HashSet`, nobody may count on any.
pub(super) fn shuffle<T>(rng: &mut Rng, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.below(last as u64 + 1) as usize);
    }
}
