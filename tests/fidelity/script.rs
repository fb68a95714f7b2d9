//! Scripts of requests, and what came of them: on a real server and in memory, in the same words.

use std::collections::BTreeMap;

use crate::memory::{
    ConnectionId, Ensemble, Hello, Message, Op, Request, SessionId, Settings, Time, Version, Xid, Zxid,
};
use crate::support;
use crate::wire::{Wire, xid_of};

/// What one of the clients does. Paths begin with `/t`, which stands for a znode of this script's own.
#[derive(Clone, Debug)]
pub enum Step {
    Open {
        client: usize,
        server: usize,
        timeout_ms: u64,
    },
    Ask {
        client: usize,
        request: Request,
    },
    /// The connection is gone, the session is not.
    Reset {
        client: usize,
    },
    /// Comes back, and sets these watches as of when it was gone.
    Return {
        client: usize,
        server: usize,
        data: Vec<String>,
        exists: Vec<String>,
        children: Vec<String>,
    },
    /// Opens another client's session without its password.
    Steal {
        client: usize,
        of: usize,
    },
    /// Leaves its connection open, and opens its session again through another server.
    Move {
        client: usize,
        to: usize,
        server: usize,
    },
}

/// What the clients received in each step, client by client.
pub type Transcript = Vec<BTreeMap<usize, Vec<Message>>>;

/// What a client knows of its session.
#[derive(Clone, Debug, Default)]
struct Known {
    session: SessionId,
    password: Vec<u8>,
    timeout_ms: u64,
    last_zxid: Zxid,
}

impl Known {
    fn hello(&self) -> Hello {
        Hello::again(self.timeout_ms, self.session, &self.password, self.last_zxid)
    }

    fn learn(&mut self, message: &Message) {
        match message {
            Message::Connected { session, timeout_ms, password } => {
                (self.session, self.timeout_ms, self.password) = (*session, *timeout_ms, password.clone());
            }
            Message::Reply { zxid, .. } => self.last_zxid = self.last_zxid.max(*zxid),
            _ => {}
        }
    }
}

/// Where a script runs.
pub trait Side {
    fn open(&mut self, client: usize, server: usize, hello: &Hello) -> Vec<Message>;
    fn ask(&mut self, client: usize, request: &Request) -> Vec<Message>;
    fn reset(&mut self, client: usize);
    /// What it has received when its server has applied what any client has seen.
    fn catch_up(&mut self, client: usize) -> Vec<Message>;
    /// What the other clients have received by then.
    fn others(&mut self, client: usize) -> BTreeMap<usize, Vec<Message>>;
    fn servers(&self) -> usize;
}

/// Runs it, and closes all sessions. `base` replaces `/t`.
pub fn run(side: &mut dyn Side, steps: &[Step], base: &str) -> Transcript {
    let mut known: BTreeMap<usize, Known> = BTreeMap::new();
    let mut transcript = Vec::new();
    for step in steps {
        let (client, seen) = perform(side, step, base, &mut known);
        let mut all = side.others(client);
        all.entry(client).or_default().splice(0..0, seen);
        for (client, messages) in &mut all {
            for message in &*messages {
                known.entry(*client).or_default().learn(message);
            }
            if matches!(step, Step::Return { .. }) && side.servers() > 1 {
                // The watches are set at once, and the server may not have applied the newest write.
                messages.iter_mut().for_each(forget_zxid);
            }
            if matches!(step, Step::Ask { request: Request::Close, .. }) {
                // Ephemeral znodes are deleted in the order of a Java HashSet.
                messages
                    .sort_by_key(|message| matches!(message, Message::Event { .. }).then(|| format!("{message:?}")));
            }
        }
        transcript.push(all);
    }
    // A session left over would expire in the midst of another script, and cost a zxid.
    for (client, left) in known.into_iter().filter(|(_, left)| left.session != 0) {
        side.reset(client);
        side.open(client, 0, &Hello { last_zxid: 0, ..left.hello() });
        side.ask(client, &Request::Close);
        side.others(client);
    }
    transcript
}

fn forget_zxid(message: &mut Message) {
    if let Message::Reply { zxid, .. } = message {
        *zxid = 0;
    }
}

fn perform(side: &mut dyn Side, step: &Step, base: &str, known: &mut BTreeMap<usize, Known>) -> (usize, Vec<Message>) {
    match step {
        Step::Open { client, server, timeout_ms } => {
            known.insert(*client, Known::default());
            (*client, side.open(*client, *server, &Hello::new(*timeout_ms)))
        }
        Step::Ask { client, request } => (*client, side.ask(*client, &placed(request, base))),
        Step::Reset { client } => {
            side.reset(*client);
            (*client, Vec::new())
        }
        Step::Return { client, server, data, exists, children } => {
            let before = known.entry(*client).or_default();
            let mut seen = side.open(*client, *server, &before.hello());
            let at = |paths: &[String]| paths.iter().map(|path| place(path, base)).collect();
            let since = before.last_zxid;
            let request = Request::SetWatches { since, data: at(data), exists: at(exists), children: at(children) };
            if matches!(seen[..], [Message::Connected { .. }]) {
                seen.extend(side.catch_up(*client));
                seen.extend(side.ask(*client, &request));
            }
            (*client, seen)
        }
        Step::Steal { client, of } => {
            let hello = Hello { password: vec![7; 16], ..known[of].hello() };
            (*client, side.open(*client, 0, &hello))
        }
        Step::Move { client, to, server } => {
            let before = known[client].clone();
            let seen = side.open(*to, *server, &before.hello());
            known.insert(*to, before);
            (*to, seen)
        }
    }
}

fn place(path: &str, base: &str) -> String {
    match path.strip_prefix("/t") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{base}{rest}"),
        _ => path.to_owned(),
    }
}

fn placed(request: &Request, base: &str) -> Request {
    let mut request = request.clone();
    let at = |path: &mut String| *path = place(path, base);
    let op_at = |op: &mut Op| match op {
        Op::Create { path, .. } | Op::Delete { path, .. } | Op::SetData { path, .. } | Op::Check { path, .. } => {
            at(path);
        }
    };
    match &mut request {
        Request::Write(op) => op_at(op),
        Request::Multi(ops) => ops.iter_mut().for_each(op_at),
        Request::SetAcl { path, .. }
        | Request::Exists { path, .. }
        | Request::GetData { path, .. }
        | Request::GetChildren { path, .. }
        | Request::GetAcl { path }
        | Request::GetEphemerals { prefix: path }
        | Request::Sync { path } => at(path),
        Request::SetWatches { data, exists, children, .. } => {
            for paths in [data, exists, children] {
                paths.iter_mut().for_each(at);
            }
        }
        Request::Auth { .. } | Request::Ping | Request::Close => {}
    }
    request
}

/// Real servers.
pub struct Real<'a> {
    ensemble: &'a support::Ensemble,
    /// Followers first, as in memory.
    order: Vec<usize>,
    clients: BTreeMap<usize, Wire>,
    /// The newest zxid of a reply.
    newest: Zxid,
}

impl<'a> Real<'a> {
    pub fn new(ensemble: &'a support::Ensemble) -> Self {
        let leader = support::wait::for_some("a leader", || ensemble.leader());
        let followers = (0..ensemble.servers().len()).filter(|server| *server != leader);
        let order = followers.chain([leader]).collect();
        Self { ensemble, order, clients: BTreeMap::new(), newest: 0 }
    }
}

impl Side for Real<'_> {
    fn open(&mut self, client: usize, server: usize, hello: &Hello) -> Vec<Message> {
        let address = self.ensemble.server(self.order[server]).address();
        // Another server may not have applied yet what the client has seen.
        let (wire, answer) = support::wait::for_some("the server takes the client", || {
            Some(Wire::open(address, hello)).filter(|(_, answer)| *answer != Message::Closed)
        });
        if matches!(answer, Message::Connected { .. }) {
            self.clients.insert(client, wire);
        }
        let is_refusal = answer == Message::Expired;
        [answer].into_iter().chain(is_refusal.then_some(Message::Closed)).collect()
    }

    fn ask(&mut self, client: usize, request: &Request) -> Vec<Message> {
        let Some(wire) = self.clients.get_mut(&client) else { return Vec::new() };
        let seen = wire.ask(request);
        if seen.last() == Some(&Message::Closed) {
            self.clients.remove(&client);
        }
        self.newest = seen.iter().filter_map(zxid).fold(self.newest, Zxid::max);
        seen
    }

    /// A sync is not enough: a leader answers it before it has itself applied what its followers have.
    fn catch_up(&mut self, client: usize) -> Vec<Message> {
        let mut received = Vec::new();
        support::wait::until("the server has applied what any client has seen", || {
            let seen = self.ask(client, &Request::Ping);
            let has_caught_up = seen.iter().filter_map(zxid).all(|zxid| zxid >= self.newest);
            received.extend(without_replies(seen));
            has_caught_up
        });
        received
    }

    fn reset(&mut self, client: usize) {
        self.clients.remove(&client);
    }

    fn others(&mut self, client: usize) -> BTreeMap<usize, Vec<Message>> {
        let others: Vec<usize> = self.clients.keys().copied().filter(|other| *other != client).collect();
        others.into_iter().map(|other| (other, self.catch_up(other))).collect()
    }

    fn servers(&self) -> usize {
        self.ensemble.servers().len()
    }
}

fn zxid(message: &Message) -> Option<Zxid> {
    match message {
        Message::Reply { zxid, .. } => Some(*zxid),
        _ => None,
    }
}

fn without_replies(mut seen: Vec<Message>) -> Vec<Message> {
    seen.retain(|message| !matches!(message, Message::Reply { .. }));
    seen
}

/// The ensemble in memory.
pub struct Memory {
    pub ensemble: Ensemble,
    servers: usize,
    now: Time,
    clients: BTreeMap<usize, (ConnectionId, Xid)>,
    /// What others received while a client connected.
    meanwhile: BTreeMap<usize, Vec<Message>>,
}

impl Memory {
    pub fn new(version: Version, servers: usize) -> Self {
        let settings = Settings { max_session_timeout: support::ensemble::LONGEST_SESSION, ..Settings::of(servers) };
        let settings = Settings { min_session_timeout: 2 * support::ensemble::TICK, version, ..settings };
        let ensemble = Ensemble::new(settings, 1);
        Self { ensemble, servers, now: Time::ZERO, clients: BTreeMap::new(), meanwhile: BTreeMap::new() }
    }

    fn put(&mut self, client: usize, request: &Request) {
        if let Some((connection, next)) = self.clients.get_mut(&client) {
            let xid = xid_of(request, next);
            self.ensemble.submit(*connection, xid, request.clone(), self.now);
        }
    }

    fn keep(&mut self, seen: BTreeMap<usize, Vec<Message>>) {
        for (client, messages) in seen {
            self.meanwhile.entry(client).or_default().extend(messages);
        }
    }

    /// All that is under way arrives.
    fn settle(&mut self) -> BTreeMap<usize, Vec<Message>> {
        self.now += Time::from_millis(20);
        let mut seen: BTreeMap<usize, Vec<Message>> = BTreeMap::new();
        for output in self.ensemble.advance(self.now) {
            let client = self.clients.iter().find(|(_, (connection, _))| *connection == output.connection);
            if let Some(client) = client.map(|(client, _)| *client) {
                seen.entry(client).or_default().push(output.message);
            }
        }
        seen
    }
}

impl Side for Memory {
    fn open(&mut self, client: usize, server: usize, hello: &Hello) -> Vec<Message> {
        let connection = self.ensemble.connect(server, hello, self.now);
        self.clients.insert(client, (connection, 0));
        let seen = self.settle();
        self.keep(seen);
        self.meanwhile.remove(&client).unwrap_or_default()
    }

    fn ask(&mut self, client: usize, request: &Request) -> Vec<Message> {
        self.put(client, request);
        let seen = self.settle();
        self.keep(seen);
        self.meanwhile.remove(&client).unwrap_or_default()
    }

    fn reset(&mut self, client: usize) {
        if let Some((connection, _)) = self.clients.remove(&client) {
            self.ensemble.reset(connection, self.now);
        }
    }

    fn catch_up(&mut self, client: usize) -> Vec<Message> {
        without_replies(self.ask(client, &sync()))
    }

    fn others(&mut self, client: usize) -> BTreeMap<usize, Vec<Message>> {
        let question = sync();
        for other in self.clients.keys().copied().filter(|other| *other != client).collect::<Vec<_>>() {
            self.put(other, &question);
        }
        let seen = self.settle();
        self.keep(seen);
        let meanwhile = std::mem::take(&mut self.meanwhile);
        meanwhile.into_iter().map(|(client, seen)| (client, without_replies(seen))).collect()
    }

    fn servers(&self) -> usize {
        self.servers
    }
}

pub fn sync() -> Request {
    Request::Sync { path: "/".to_owned() }
}
