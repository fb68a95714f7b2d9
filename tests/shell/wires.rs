//! The connections between the hosts and the ensemble in memory, as `zookeeper::client::requests` wants them.
//!
//! Each keeps itself alive and notices silence as the client library does: a ping after 3/20 of the session timeout without a
//! request, lost after 2/5 without a word.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, VecDeque};
use std::hash::Hasher as _;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::{Notify, oneshot, watch};
use tokio::time::sleep_until;
use zk_leader_run::zookeeper::client::requests::{Error, EventType, Reply, Request, SessionToken, State, Watcher};

use crate::memory;
use crate::memory::network::{Host, Network, Received, SocketId};
use crate::memory::rng::Rng;
use crate::memory::{EventKind, Hello, Message, Xid};
use crate::process::Process;
use crate::{time, translate};

const PING: Xid = -2;

#[derive(Debug)]
pub struct Wires {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Debug)]
pub struct Inner {
    pub network: Network,
    pub rng: Rng,
    pub servers: usize,
    wires: BTreeMap<SocketId, Wire>,
    /// Requests of each host, pings aside, in each second.
    asked: BTreeMap<(Host, u64), u64>,
    /// Processes of each host that somebody else has started, in each second.
    started: BTreeMap<(Host, u64), u64>,
    log: Log,
    /// Of all notes.
    hash: DefaultHasher,
}

/// What becomes of the notes on a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Log {
    Nothing,
    /// They are counted in [`Wires::hash`].
    Hashed,
    Printed,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Table {
    Data,
    Exists,
    Children,
}

type Answer = oneshot::Sender<Result<Reply, Error>>;

#[derive(Debug)]
struct Wire {
    process: Arc<Process>,
    /// What has arrived while the process was stopped.
    held: Vec<Message>,
    timeout: Duration,
    opening: Option<oneshot::Sender<Result<SessionToken, Error>>>,
    states: watch::Sender<State>,
    is_lost: bool,
    pending: VecDeque<(Xid, Request, Answer)>,
    watches: BTreeMap<(Table, String), Vec<oneshot::Sender<EventType>>>,
    last_xid: Xid,
    sent_at: Duration,
    heard_at: Duration,
    is_pinging: bool,
    /// Its last handle was dropped.
    is_closing: bool,
}

impl Wire {
    fn is_up(&self) -> bool {
        self.opening.is_none() && !self.is_lost
    }

    fn ping_at(&self) -> Option<Duration> {
        (self.is_up() && !self.is_pinging && !self.process.is_stopped()).then(|| self.sent_at + self.timeout * 3 / 20)
    }

    fn lost_at(&self) -> Option<Duration> {
        (self.is_up() && !self.process.is_stopped()).then(|| self.heard_at + self.timeout * 2 / 5)
    }
}

/// What became of a dial.
pub struct Dialled {
    pub socket: SocketId,
    pub answer: oneshot::Receiver<Result<SessionToken, Error>>,
    pub states: watch::Receiver<State>,
}

impl Wires {
    pub fn new(network: Network, servers: usize, seed: u64, log: Log) -> Arc<Self> {
        let inner = Inner {
            network,
            rng: Rng::new(seed, 0x5753),
            servers,
            wires: BTreeMap::new(),
            asked: BTreeMap::new(),
            started: BTreeMap::new(),
            log,
            hash: DefaultHasher::new(),
        };
        Arc::new(Self { inner: Mutex::new(inner), changed: Notify::new() })
    }

    /// Looks at everything, or changes it.
    pub fn with<T>(&self, look: impl FnOnce(&mut Inner, Duration) -> T) -> T {
        let done = look(&mut self.lock(), time::elapsed());
        self.changed.notify_one();
        done
    }

    /// A process goes on.
    pub fn wake(&self) {
        self.changed.notify_one();
    }

    pub fn note(&self, text: impl FnOnce() -> String) {
        self.lock().note(text);
    }

    /// Two runs with the same hash went the same way, if they were logged so.
    pub fn hash(&self) -> u64 {
        self.lock().hash.finish()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no panic under the lock")
    }

    /// Carries what is sent, for ever.
    pub async fn carry(self: Arc<Self>) {
        loop {
            let next = self.lock().turn(time::elapsed());
            let rest = async {
                match next {
                    Some(at) => sleep_until(time::instant(at)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                () = rest => {}
            }
        }
    }

    pub fn dial(&self, process: &Arc<Process>, server: usize, timeout: Duration, of: Option<&SessionToken>) -> Dialled {
        self.with(|inner, now| {
            let host = process.host;
            let millis = u64::try_from(timeout.as_millis()).expect("short");
            let hello = match of {
                Some(token) => Hello::again(millis, token.id, &token.password, 0),
                None => Hello::new(millis),
            };
            let socket = inner.network.dial(host, server, hello, now);
            let (opening, answer) = oneshot::channel();
            let (states, receiver) = watch::channel(State::Connected);
            let wire = Wire {
                process: Arc::clone(process),
                held: Vec::new(),
                timeout,
                opening: Some(opening),
                states,
                is_lost: false,
                pending: VecDeque::new(),
                watches: BTreeMap::new(),
                last_xid: 0,
                sent_at: now,
                heard_at: now,
                is_pinging: false,
                is_closing: false,
            };
            inner.wires.insert(socket, wire);
            inner.note(|| format!("host {host} dials {server}: {socket:?}, session {:x?}", of.map(|of| of.id)));
            Dialled { socket, answer, states: receiver }
        })
    }

    /// Gone without a word.
    pub fn hang_up(&self, socket: SocketId) {
        self.with(|inner, now| {
            if inner.wires.remove(&socket).is_some() {
                inner.network.hang_up(socket, now);
            }
        });
    }

    /// A process is gone; its kernel says so, unless it is gone, too.
    pub fn die(&self, process: &Arc<Process>) {
        let of_process = |inner: &mut Inner, _| {
            let of_process = inner.wires.iter().filter(|(_, wire)| Arc::ptr_eq(&wire.process, process));
            of_process.map(|(socket, _)| *socket).collect::<Vec<_>>()
        };
        for socket in self.with(of_process) {
            self.hang_up(socket);
        }
    }

    pub fn send(&self, socket: SocketId, request: Request) -> oneshot::Receiver<Result<Reply, Error>> {
        let (answer, receiver) = oneshot::channel();
        self.with(|inner, now| match inner.wires.get_mut(&socket).filter(|wire| wire.is_up()) {
            None => drop(answer.send(Err(Error::ConnectionLoss))),
            Some(wire) => {
                wire.last_xid += 1;
                wire.sent_at = now;
                let (xid, host, asked) = (wire.last_xid, wire.process.host, translate::request(&request));
                wire.pending.push_back((xid, request, answer));
                inner.note(|| format!("host {host} {socket:?} asks {xid}: {asked:?}"));
                *inner.asked.entry((host, now.as_secs())).or_default() += 1;
                inner.network.send(socket, xid, asked, now);
            }
        });
        receiver
    }

    /// The last handle was dropped: the session is closed.
    pub fn close(&self, socket: SocketId) {
        self.with(|inner, now| {
            let Some(wire) = inner.wires.get_mut(&socket) else { return };
            if !wire.is_up() {
                inner.wires.remove(&socket);
                return inner.network.hang_up(socket, now);
            }
            wire.is_closing = true;
            wire.sent_at = now;
            inner.note(|| format!("{socket:?} is closed"));
            inner.network.send(socket, Xid::MAX, memory::Request::Close, now);
        });
    }
}

/// What a process asks from its start to its end, if that comes at once: its run of `--slot` is done.
const FIRST_REQUESTS: u64 = 20;

impl Inner {
    /// Somebody else than the host itself has started a process there.
    pub fn start(&mut self, host: Host, now: Duration) {
        *self.started.entry((host, now.as_secs())).or_default() += 1;
    }

    /// The most requests of one of these hosts in these seconds.
    pub fn asked_in(&self, hosts: usize, seconds: Range<u64>) -> u64 {
        let of_host = |host| self.asked.range((host, seconds.start)..(host, seconds.end)).map(|(_, count)| count).sum();
        (0..hosts).map(of_host).max().unwrap_or(0)
    }

    /// The most requests in one second of one of these hosts, beyond what its starts explain; and all requests. Whoever starts
    /// a process a hundred times in a second has a hundred sessions opened.
    pub fn busiest(&self, hosts: usize) -> (u64, u64) {
        let of_hosts = || self.asked.iter().filter(|((host, _), _)| *host < hosts);
        let started = |host, second| self.started.get(&(host, second)).copied().unwrap_or_default();
        let explained =
            |host, second: u64| (started(host, second.wrapping_sub(1)) + started(host, second)) * FIRST_REQUESTS;
        let beyond = of_hosts().map(|((host, second), count)| count.saturating_sub(explained(*host, *second)));
        (beyond.max().unwrap_or(0), of_hosts().map(|(_, count)| count).sum())
    }

    pub fn note(&mut self, text: impl FnOnce() -> String) {
        match self.log {
            Log::Nothing => {}
            Log::Hashed => self.hash.write(format!("{:?} {}", time::elapsed(), text()).as_bytes()),
            Log::Printed => println!("{:>10.6} {}", time::elapsed().as_secs_f64(), text()),
        }
    }

    /// Delivers what has arrived; says when to look again.
    fn turn(&mut self, now: Duration) -> Option<Duration> {
        let awake = self.wires.iter_mut().filter(|(_, wire)| !wire.held.is_empty() && !wire.process.is_stopped());
        let held = awake.map(|(socket, wire)| (*socket, std::mem::take(&mut wire.held))).collect::<Vec<_>>();
        for (socket, messages) in held {
            for message in messages {
                self.receive(socket, message, now);
            }
        }
        for Received { socket, message, .. } in self.network.advance(now) {
            match self.wires.get_mut(&socket) {
                Some(wire) if wire.process.is_stopped() => wire.held.push(message),
                _ => self.receive(socket, message, now),
            }
        }
        let due = |at: Option<Duration>| at.is_some_and(|at| at <= now);
        let (mut silent, mut idle, mut timer) = (Vec::new(), Vec::new(), None);
        for (socket, wire) in &mut self.wires {
            let (lost_at, ping_at) = (wire.lost_at(), wire.ping_at());
            if due(lost_at) {
                silent.push(*socket);
            } else if due(ping_at) {
                (wire.is_pinging, wire.sent_at) = (true, now);
                idle.push(*socket);
                timer = timer.into_iter().chain(lost_at).min();
            } else {
                timer = timer.into_iter().chain(lost_at).chain(ping_at).min();
            }
        }
        for socket in silent {
            self.note(|| format!("{socket:?} is silent"));
            self.network.hang_up(socket, now);
            self.lose(socket);
        }
        for socket in idle {
            self.network.send(socket, PING, memory::Request::Ping, now);
        }
        timer.into_iter().chain(self.network.next()).min()
    }

    fn receive(&mut self, socket: SocketId, message: Message, now: Duration) {
        let Some(wire) = self.wires.get_mut(&socket) else { return };
        wire.heard_at = now;
        match message {
            Message::Connected { session, timeout_ms, password } => {
                wire.timeout = Duration::from_millis(timeout_ms);
                let token = SessionToken { id: session, password, timeout: wire.timeout };
                let is_wanted = wire.opening.take().is_some_and(|opening| opening.send(Ok(token)).is_ok());
                self.note(|| format!("{socket:?} is connected, session {session:x}"));
                if !is_wanted {
                    self.wires.remove(&socket);
                    self.network.hang_up(socket, now);
                }
            }
            Message::Expired => {
                wire.opening.take().map(|opening| opening.send(Err(Error::SessionExpired)));
                self.wires.remove(&socket);
                self.note(|| format!("{socket:?}: the session has expired"));
            }
            Message::Closed => self.lose(socket),
            Message::Reply { xid: PING, .. } => wire.is_pinging = false,
            Message::Reply { xid: Xid::MAX, .. } => {
                wire.states.send_replace(State::Over);
                self.wires.remove(&socket);
                self.network.hang_up(socket, now);
            }
            Message::Reply { xid, result, .. } => {
                let Some((asked, request, answer)) = wire.pending.pop_front() else { return };
                assert_eq!(asked, xid, "replies come in order");
                let is_found = result.is_ok();
                let reply = translate::reply(&request, result, || wire.watch(&request, is_found));
                drop(answer.send(reply));
                self.note(|| format!("{socket:?} answered {xid}"));
            }
            Message::Event { kind, path, .. } => {
                self.note(|| format!("{socket:?} event {kind:?} {path}"));
                self.wires.get_mut(&socket).into_iter().for_each(|wire| wire.fire(kind, &path));
            }
        }
    }

    fn lose(&mut self, socket: SocketId) {
        let Some(wire) = self.wires.get_mut(&socket) else { return };
        let opening = wire.opening.take();
        let is_over = opening.is_some() || wire.is_closing;
        opening.map(|opening| opening.send(Err(Error::ConnectionLoss)));
        for (_, _, answer) in wire.pending.drain(..) {
            drop(answer.send(Err(Error::ConnectionLoss)));
        }
        wire.states.send_replace(State::Lost);
        wire.is_lost = true;
        if is_over {
            self.wires.remove(&socket);
        }
        self.note(|| format!("{socket:?} is lost"));
    }
}

impl Wire {
    fn watch(&mut self, request: &Request, is_found: bool) -> Option<Watcher> {
        let (table, path) = match request {
            Request::Exists { path, watch: true } => (if is_found { Table::Data } else { Table::Exists }, path),
            Request::Get { path, watch: true } => (Table::Data, path),
            Request::Children { path, watch: true } => (Table::Children, path),
            _ => return None,
        };
        let (sender, receiver) = oneshot::channel();
        self.watches.entry((table, path.clone())).or_default().push(sender);
        Some(Watcher::new(async { receiver.await.unwrap_or(EventType::Session) }))
    }

    /// As `ZKWatchManager` of `ZooKeeper`'s own client.
    fn fire(&mut self, kind: EventKind, path: &str) {
        let tables: &[Table] = match kind {
            EventKind::Created | EventKind::DataChanged => &[Table::Data, Table::Exists],
            EventKind::Deleted => &[Table::Data, Table::Exists, Table::Children],
            EventKind::ChildrenChanged => &[Table::Children],
        };
        for table in tables {
            for watching in self.watches.remove(&(*table, path.to_owned())).unwrap_or_default() {
                watching.send(translate::event(kind)).ok();
            }
        }
    }
}
