//! Listens on the cable of each server. The kernel stamps the times, so that a busy machine makes no request look later, or
//! answer earlier, than it was.

use std::collections::HashMap;
use std::io::IoSliceMut;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, recvmsg, setsockopt, socket,
    sockopt,
};
use nix::sys::time::{TimeSpec, TimeVal};

use super::super::lab::Node;
use super::super::network::CLIENT_PORT;
use super::history::Exchange;
use super::packet::Segment;
use super::protocol::{Reader, Request};
use super::stream::{Frame, Nanos, Stream};

/// Runs until it is asked for what it heard.
#[derive(Debug)]
pub struct Tap {
    heard: Vec<Arc<Mutex<Heard>>>,
    finished: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Heard {
    server: String,
    connections: HashMap<(Ipv4Addr, u16), Connection>,
    count: usize,
    exchanges: Vec<Exchange>,
    /// Connections of which something passed unheard.
    missed: usize,
}

#[derive(Debug, Default)]
struct Connection {
    number: usize,
    host: String,
    requests: Stream,
    replies: Stream,
    /// By xid: the place in the list.
    open: HashMap<i32, usize>,
}

impl Tap {
    pub fn on(nodes: &[Node]) -> Self {
        let finished = Arc::new(AtomicBool::new(false));
        let listen = |node: &Node| {
            let heard = Arc::new(Mutex::new(Heard { server: node.name.clone(), ..Heard::default() }));
            let (node, shared, finished) = (node.clone(), Arc::clone(&heard), Arc::clone(&finished));
            let (ready, is_ready) = std::sync::mpsc::channel();
            let thread = std::thread::spawn(move || {
                node.enter();
                let socket = open();
                ready.send(()).unwrap();
                listen(&socket, node.address, &shared, &finished);
            });
            is_ready.recv().unwrap();
            (heard, thread)
        };
        let (heard, threads) = nodes.iter().map(listen).unzip();
        Self { heard, finished, threads }
    }

    /// All that was heard, in the order of the requests; or how many connections were not heard as a whole.
    pub fn finish(mut self) -> Result<Vec<Exchange>, usize> {
        self.finished.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
        let mut all = Vec::new();
        let mut missed = 0;
        for heard in &self.heard {
            let mut heard = heard.lock().unwrap();
            missed += heard.missed + heard.connections.values().filter(|connection| connection.missed()).count();
            all.append(&mut heard.exchanges);
        }
        all.sort_by_key(|exchange| exchange.asked);
        if missed == 0 { Ok(all) } else { Err(missed) }
    }
}

/// Of every packet that passes this namespace's cable, in both directions.
fn open() -> OwnedFd {
    let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::EthAll)
        .expect("a tap takes root");
    setsockopt(&socket, sockopt::RcvBufForce, &(64 << 20)).unwrap();
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true).unwrap();
    setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::new(0, 100_000)).unwrap();
    socket
}

fn listen(socket: &OwnedFd, server: Ipv4Addr, heard: &Mutex<Heard>, finished: &AtomicBool) {
    let mut frame = vec![0; 1 << 17];
    let mut control = nix::cmsg_space!(TimeSpec);
    while !finished.load(Ordering::Relaxed) {
        let mut parts = [IoSliceMut::new(&mut frame)];
        let Ok(message) = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty()) else {
            continue;
        };
        let stamp = message.cmsgs().unwrap().find_map(|control| match control {
            ControlMessageOwned::ScmTimestampns(time) => Some(time.tv_sec() * 1_000_000_000 + time.tv_nsec()),
            _ => None,
        });
        let length = message.bytes;
        let Some(segment) = Segment::of(&frame[..length]) else { continue };
        heard.lock().unwrap().take(&segment, stamp.unwrap(), server);
    }
}

impl Heard {
    fn take(&mut self, segment: &Segment, at: Nanos, server: Ipv4Addr) {
        let is_request = segment.to == (server, CLIENT_PORT);
        if !is_request && segment.from != (server, CLIENT_PORT) {
            return;
        }
        let client = if is_request { segment.from } else { segment.to };
        if is_request && segment.is_syn {
            self.begin(client, segment.seq);
        }
        let Self { connections, exchanges, server, .. } = self;
        let Some(connection) = connections.get_mut(&client) else { return };
        connection.add(segment, at, is_request);
        connection.read(exchanges, server);
    }

    /// A first packet that is sent again changes nothing.
    fn begin(&mut self, client: (Ipv4Addr, u16), seq: u32) {
        if self.connections.get(&client).is_some_and(|known| known.requests.begins_after(seq)) {
            return;
        }
        self.count += 1;
        let (number, host, requests) = (self.count, client.0.to_string(), Stream::from_syn(seq));
        let connection = Connection { number, host, requests, ..Connection::default() };
        let before = self.connections.insert(client, connection);
        self.missed += usize::from(before.is_some_and(|before| before.missed()));
    }
}

impl Connection {
    fn add(&mut self, segment: &Segment, at: Nanos, is_request: bool) {
        if !is_request && segment.is_syn && !self.replies.begins_after(segment.seq) {
            self.replies = Stream::from_syn(segment.seq);
        }
        let (own, other) =
            if is_request { (&mut self.requests, &mut self.replies) } else { (&mut self.replies, &mut self.requests) };
        if !segment.is_syn {
            own.add(segment.seq, at, segment.payload);
            segment.ack.into_iter().for_each(|ack| other.confirm(ack));
        }
    }

    fn missed(&self) -> bool {
        self.requests.missed() || self.replies.missed()
    }

    fn read(&mut self, exchanges: &mut Vec<Exchange>, server: &str) {
        while let Some(frame) = self.requests.frame() {
            if let Some((xid, request)) = request_in(&frame) {
                let (server, connection, host) = (server.to_owned(), self.number, self.host.clone());
                let (answered, reply) = (None, None);
                let exchange = Exchange { server, connection, host, asked: frame.first, answered, request, reply };
                if exchange.is_judged() {
                    self.open.insert(xid, exchanges.len());
                    exchanges.push(exchange);
                }
            }
        }
        while let Some(frame) = self.replies.frame() {
            self.answer(&frame, exchanges);
        }
    }

    fn answer(&mut self, frame: &Frame, exchanges: &mut [Exchange]) {
        let mut reader = Reader(&frame.bytes);
        let Some(index) = reader.int().and_then(|xid| self.open.remove(&xid)) else { return };
        let exchange = &mut exchanges[index];
        let reply = reader.reply(&exchange.request).unwrap_or_else(|| panic!("not understood: {frame:?}"));
        (exchange.answered, exchange.reply) = (Some(frame.last), Some(reply));
    }
}

/// What opens a session begins with 0 instead of an xid; pings and the like have negative ones.
fn request_in(frame: &Frame) -> Option<(i32, Request)> {
    let mut reader = Reader(&frame.bytes);
    let (xid, kind) = (reader.int()?, reader.int()?);
    Some((xid, reader.request(kind)?)).filter(|(xid, _)| *xid > 0)
}
