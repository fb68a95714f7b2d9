//! A network between hosts and the servers of an ensemble: latency by chance, links that are blocked in one direction or in
//! both, connections that are reset, requests and replies that are lost with their connection. Time is told, as everywhere.
//!
//! A connection keeps its order, and loses nothing unless it is lost itself: what a blocked link holds back arrives when it
//! is healed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::ensemble::Ensemble;
use super::protocol::{ConnectionId, Message, Request, Xid};
use super::rng::Rng;
use super::settings::{Hello, Time};

/// A host on which clients run; its number is the caller's choice.
pub type Host = usize;

/// A client's end of a connection; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub u64);

/// What reached a client. After `Closed` nothing comes any more.
#[derive(Clone, Debug)]
pub struct Received {
    pub at: Time,
    pub socket: SocketId,
    pub message: Message,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// To the server.
    Up,
    /// To the host.
    Down,
}

#[derive(Clone, Debug)]
enum Packet {
    Hello(Hello),
    Request(Xid, Request),
    /// The client closed its end.
    Reset,
    Message(Message),
}

#[derive(Clone, Debug)]
struct Flight {
    socket: SocketId,
    direction: Direction,
    packet: Packet,
}

#[derive(Clone, Debug)]
struct Socket {
    host: Host,
    server: usize,
    connection: Option<ConnectionId>,
    /// Whether the client still listens.
    is_open: bool,
    /// No reply gets through any more, but pings and events do.
    is_mute: bool,
    /// When the last packet arrives, by direction: none overtakes another.
    arrivals: [Time; 2],
}

#[derive(Clone, Debug)]
struct Link {
    latency: [Duration; 2],
    blocked: BTreeSet<Direction>,
    held: Vec<Flight>,
    /// The next request or reply is lost, and its connection with it.
    loses_next: BTreeSet<Direction>,
    /// The next reply is lost, and all later ones of its connection, which stays.
    mutes_next: bool,
}

#[derive(Clone, Debug)]
pub struct Network {
    pub ensemble: Ensemble,
    rng: Rng,
    now: Time,
    latency: [Duration; 2],
    links: BTreeMap<(Host, usize), Link>,
    sockets: BTreeMap<SocketId, Socket>,
    /// Whose ends they are.
    ends: BTreeMap<ConnectionId, SocketId>,
    /// Boxed: inserting and removing moves what is beside it.
    queue: BTreeMap<(Time, u64), Box<Flight>>,
    sequence: u64,
    received: Vec<Received>,
}

impl Network {
    /// Packets take from `latency[0]` to `latency[1]`.
    pub fn new(ensemble: Ensemble, latency: [Duration; 2], seed: u64) -> Self {
        Self {
            ensemble,
            rng: Rng::new(seed, 0x4E45),
            now: Time::ZERO,
            latency,
            links: BTreeMap::new(),
            sockets: BTreeMap::new(),
            ends: BTreeMap::new(),
            queue: BTreeMap::new(),
            sequence: 0,
            received: Vec::new(),
        }
    }

    /// Opens a connection; its first packet is the connect request.
    pub fn dial(&mut self, host: Host, server: usize, hello: Hello, now: Time) -> SocketId {
        self.run_until(now);
        self.sequence += 1;
        let socket = SocketId(self.sequence);
        let opened = Socket { host, server, connection: None, is_open: true, is_mute: false, arrivals: [now; 2] };
        self.sockets.insert(socket, opened);
        self.fly(socket, Direction::Up, Packet::Hello(hello));
        socket
    }

    pub fn send(&mut self, socket: SocketId, xid: Xid, request: Request, now: Time) {
        self.run_until(now);
        self.fly(socket, Direction::Up, Packet::Request(xid, request));
    }

    /// The client closes its end.
    pub fn hang_up(&mut self, socket: SocketId, now: Time) {
        self.run_until(now);
        self.close(socket);
    }

    /// Lets time pass, and gives what has reached clients since the last call, in order.
    pub fn advance(&mut self, now: Time) -> Vec<Received> {
        self.run_until(now);
        std::mem::take(&mut self.received)
    }

    /// When something happens next that needs no input.
    pub fn next(&self) -> Option<Time> {
        if !self.received.is_empty() {
            return Some(self.now);
        }
        let flight = self.queue.keys().next().map(|(at, _)| *at);
        flight.into_iter().chain(self.ensemble.next()).min()
    }

    // What happens to links.

    pub fn set_latency(&mut self, host: Host, server: usize, latency: [Duration; 2]) {
        self.link(host, server).latency = latency;
    }

    /// From now on nothing arrives in this direction.
    pub fn block(&mut self, host: Host, server: usize, direction: Direction, now: Time) {
        self.run_until(now);
        self.link(host, server).blocked.insert(direction);
    }

    /// What was held back arrives now, and nothing is lost any more.
    pub fn heal(&mut self, host: Host, server: usize, now: Time) {
        self.run_until(now);
        let link = self.link(host, server);
        link.blocked.clear();
        link.loses_next.clear();
        link.mutes_next = false;
        for flight in std::mem::take(&mut link.held) {
            self.schedule(now, flight);
        }
    }

    /// All connections over this link are lost: the host learns it now, the server when that gets through.
    pub fn reset(&mut self, host: Host, server: usize, now: Time) {
        self.run_until(now);
        let of_link = self.sockets.iter().filter(|(_, socket)| (socket.host, socket.server) == (host, server));
        for socket in of_link.map(|(socket, _)| *socket).collect::<Vec<_>>() {
            self.lose(socket);
        }
    }

    /// The next request (up) or the next reply (down) over this link is lost, and its connection with it. Pings do not count.
    pub fn lose_next(&mut self, host: Host, server: usize, direction: Direction, now: Time) {
        self.run_until(now);
        self.link(host, server).loses_next.insert(direction);
    }

    /// From the next reply over this link on, its connection carries nothing but pings and events, as after a proxy that
    /// has lost a reply.
    pub fn mute_next(&mut self, host: Host, server: usize, now: Time) {
        self.run_until(now);
        self.link(host, server).mutes_next = true;
    }

    /// From now on the open connections of this host carry nothing but pings and events.
    pub fn mute(&mut self, host: Host, now: Time) {
        self.run_until(now);
        self.sockets.values_mut().filter(|socket| socket.host == host).for_each(|socket| socket.is_mute = true);
    }

    /// Connections that have lost a reply are reset.
    pub fn reset_mute(&mut self, now: Time) {
        self.run_until(now);
        let mute = self.sockets.iter().filter(|(_, socket)| socket.is_mute);
        for socket in mute.map(|(socket, _)| *socket).collect::<Vec<_>>() {
            self.lose(socket);
        }
    }

    // Inside.

    fn link(&mut self, host: Host, server: usize) -> &mut Link {
        let latency = self.latency;
        let new = || Link {
            latency,
            blocked: BTreeSet::new(),
            held: Vec::new(),
            loses_next: BTreeSet::new(),
            mutes_next: false,
        };
        self.links.entry((host, server)).or_insert_with(new)
    }

    fn fly(&mut self, socket: SocketId, direction: Direction, packet: Packet) {
        let Some((host, server)) = self.sockets.get(&socket).map(|known| (known.host, known.server)) else { return };
        let [least, most] = self.link(host, server).latency;
        let spread = most.saturating_sub(least).as_micros() as u64;
        let latency = least + Duration::from_micros(self.rng.below(spread + 1));
        let known = self.sockets.get_mut(&socket).unwrap();
        let arrival = &mut known.arrivals[direction as usize];
        *arrival = (*arrival).max(self.now + latency);
        let at = *arrival;
        self.schedule(at, Flight { socket, direction, packet });
    }

    fn schedule(&mut self, at: Time, flight: Flight) {
        self.sequence += 1;
        self.queue.insert((at, self.sequence), Box::new(flight));
    }

    /// The client hears no more of it; the server learns that it was closed.
    fn close(&mut self, socket: SocketId) {
        if let Some(known) = self.sockets.get_mut(&socket).filter(|known| known.is_open) {
            known.is_open = false;
            self.fly(socket, Direction::Up, Packet::Reset);
        }
    }

    fn lose(&mut self, socket: SocketId) {
        if self.sockets.get(&socket).is_some_and(|known| known.is_open) {
            self.received.push(Received { at: self.now, socket, message: Message::Closed });
            self.close(socket);
        }
    }

    fn arrive(&mut self, flight: Flight) {
        let Some(known) = self.sockets.get(&flight.socket) else { return };
        let (host, server, connection, is_open) = (known.host, known.server, known.connection, known.is_open);
        let link = self.link(host, server);
        if link.blocked.contains(&flight.direction) {
            return link.held.push(flight);
        }
        let may_be_lost = match &flight.packet {
            Packet::Request(_, request) => *request != Request::Ping,
            Packet::Message(Message::Reply { xid, .. }) => *xid >= 0,
            _ => false,
        };
        if is_open && may_be_lost && link.loses_next.remove(&flight.direction) {
            return self.lose(flight.socket);
        }
        if may_be_lost && flight.direction == Direction::Down && self.is_mute(flight.socket, (host, server)) {
            return;
        }
        let now = self.now;
        match (flight.packet, connection) {
            (Packet::Hello(hello), _) => {
                let connection = self.ensemble.connect(server, &hello, now);
                self.sockets.get_mut(&flight.socket).unwrap().connection = Some(connection);
                self.ends.insert(connection, flight.socket);
            }
            (Packet::Request(xid, request), Some(connection)) => self.ensemble.submit(connection, xid, request, now),
            (Packet::Reset, Some(connection)) => {
                self.ensemble.reset(connection, now);
                self.forget(flight.socket);
            }
            (Packet::Message(message), _) if is_open => {
                let is_last = message == Message::Closed;
                self.received.push(Received { at: now, socket: flight.socket, message });
                if is_last {
                    self.forget(flight.socket);
                }
            }
            _ => {}
        }
    }

    fn is_mute(&mut self, socket: SocketId, (host, server): (Host, usize)) -> bool {
        let is_next = std::mem::take(&mut self.link(host, server).mutes_next);
        let known = self.sockets.get_mut(&socket);
        known.is_some_and(|known| {
            known.is_mute |= is_next;
            known.is_mute
        })
    }

    fn forget(&mut self, socket: SocketId) {
        if let Some(connection) = self.sockets.remove(&socket).and_then(|known| known.connection) {
            self.ends.remove(&connection);
        }
    }

    /// What the servers have sent takes off.
    fn take_off(&mut self) {
        for output in self.ensemble.advance(self.now) {
            if let Some(socket) = self.ends.get(&output.connection).copied() {
                self.fly(socket, Direction::Down, Packet::Message(output.message));
            }
        }
    }

    fn run_until(&mut self, now: Time) {
        while let Some(next) = self.due(now) {
            self.now = self.now.max(next);
            let is_flight = self.queue.first_key_value().is_some_and(|((at, _), _)| *at <= self.now);
            if let Some((_, flight)) = if is_flight { self.queue.pop_first() } else { None } {
                self.arrive(*flight);
            }
            self.take_off();
        }
        self.now = self.now.max(now);
    }

    /// The next flight or happening, if it is due by then.
    fn due(&self, now: Time) -> Option<Time> {
        let flight = self.queue.keys().next().map(|(at, _)| *at);
        flight.into_iter().chain(self.ensemble.next()).min().filter(|at| *at <= now)
    }
}
