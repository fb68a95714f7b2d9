//! A TCP proxy that speaks enough of `ZooKeeper`'s framing to lose exactly one reply; it lives in a thread of its own.
//!
//! A stall is a black hole: connections stay open, nothing is lost, everything is delivered on `heal`.
//! A cut resets (RST) every connection, and every new one until `heal`.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use nix::sys::socket::{setsockopt, sockopt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::fates::Fates;
use super::tamper::Tampering;
use super::traffic::Request;
use super::wait;

/// The request types (`ZooDefs.OpCode`) that tests care for.
pub mod request {
    pub const CREATE: i32 = 1;
    pub const DELETE: i32 = 2;
    pub const EXISTS: i32 = 3;
    pub const GET_DATA: i32 = 4;
    pub const SET_DATA: i32 = 5;
    pub const SYNC: i32 = 9;
    pub const PING: i32 = 11;
    pub const GET_CHILDREN2: i32 = 12;
    pub const MULTI: i32 = 14;
    pub const CREATE2: i32 = 15;
    pub const CLOSE_SESSION: i32 = -11;
}

/// A server as seen through a network that can be broken. Dropped: every connection is reset.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    network: watch::Sender<Network>,
    line: Arc<Line>,
    _stop: tokio::sync::oneshot::Sender<()>,
}

/// The state of the network between the two sides.
#[derive(Clone, Copy, Debug)]
struct Network {
    requests_flow: bool,
    replies_flow: bool,
    refusing: bool,
    /// Connections of an earlier generation are reset.
    generation: u64,
    /// Connections with a lower number are a black hole.
    stranded_below: usize,
}

const HEALTHY: Network =
    Network { requests_flow: true, replies_flow: true, refusing: false, generation: 0, stranded_below: 0 };

/// What all connections share.
#[derive(Debug)]
struct Line {
    target: SocketAddr,
    /// What is carried is not understood.
    is_blind: bool,
    lossy: Mutex<Option<Loss>>,
    lost: AtomicUsize,
    connections: AtomicUsize,
    /// Replies stall from the next request of one of these types that names this path on.
    holding: Mutex<Option<(Vec<i32>, String)>>,
    network: watch::Sender<Network>,
    /// How many connections were made, and perhaps reset.
    accepted: AtomicUsize,
    /// All requests that were forwarded.
    forwarded: Mutex<Vec<Request>>,
    tampering: Tampering,
    fates: Fates,
}

/// The reply to one request to come is lost.
#[derive(Debug)]
struct Loss {
    /// Of these types; empty: of any but a ping.
    kinds: Vec<i32>,
    /// So many of them are answered before.
    spared: usize,
}

impl Proxy {
    /// A proxy to a server that may, but need not, listen already.
    pub fn to(target: SocketAddr) -> Self {
        Self::carrying(target, false)
    }

    /// A proxy to a port that speaks TLS: it forwards what it cannot read, and so can lose no chosen reply.
    pub fn blind_to(target: SocketAddr) -> Self {
        Self::carrying(target, true)
    }

    fn carrying(target: SocketAddr, is_blind: bool) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (network, seen) = watch::channel(HEALTHY);
        let line = Arc::new(Line::to(target, is_blind, network.clone()));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let shared = Arc::clone(&line);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    () = listen(listener, seen, shared) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { address, network, line, _stop: stop }
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same, as text.
    pub fn connect_string(&self) -> String {
        self.address.to_string()
    }

    /// Resets every connection, and every new one until [`Proxy::heal`].
    pub fn cut(&self) {
        self.change(|network| {
            network.refusing = true;
            network.generation += 1;
        });
    }

    /// Resets every connection once; the next one passes.
    pub fn reset(&self) {
        self.change(|network| network.generation += 1);
    }

    /// Black hole in both directions. Nothing is lost: [`Proxy::heal`] delivers it.
    pub fn stall(&self) {
        self.change(|network| (network.requests_flow, network.replies_flow) = (false, false));
    }

    /// Black hole from the client to the server only.
    pub fn stall_requests(&self) {
        self.change(|network| network.requests_flow = false);
    }

    /// Black hole from the server to the client only.
    pub fn stall_replies(&self) {
        self.change(|network| network.replies_flow = false);
    }

    /// Black hole for the connections that are open now; later ones pass. A `heal` delivers these, too.
    pub fn strand(&self) {
        let count = self.line.connections.load(Ordering::SeqCst);
        self.change(|network| network.stranded_below = count);
    }

    /// Ends a cut or a stall.
    pub fn heal(&self) {
        self.change(|network| *network = Network { generation: network.generation, ..HEALTHY });
    }

    /// Forwards the next request that is not a ping, swallows its reply, and then resets that connection.
    /// Requests behind it are not forwarded.
    pub fn drop_next_reply(&self) {
        self.drop_reply_after(0);
    }

    /// The same for the next request of one of these types (see [`request`]).
    pub fn drop_next_reply_to(&self, requests: &[i32]) {
        *self.line.lossy.lock().unwrap() = Some(Loss { kinds: requests.to_vec(), spared: 0 });
    }

    /// The same, after so many other requests that are not pings.
    pub fn drop_reply_after(&self, spared: usize) {
        *self.line.lossy.lock().unwrap() = Some(Loss { kinds: Vec::new(), spared });
    }

    /// Loses no reply that it has not lost yet.
    pub fn drop_no_reply(&self) {
        *self.line.lossy.lock().unwrap() = None;
    }

    /// Forwards the next request of one of these types, and is a black hole for replies from just before its reply on, until
    /// [`Proxy::heal`].
    pub fn hold_replies_from(&self, requests: &[i32]) {
        self.hold_replies_about("", requests);
    }

    /// The same for the next request that names this path.
    pub fn hold_replies_about(&self, path: &str, requests: &[i32]) {
        *self.line.holding.lock().unwrap() = Some((requests.to_vec(), path.to_owned()));
    }

    /// How often a client has connected so far, refused connections included.
    pub fn accepted(&self) -> usize {
        self.line.accepted.load(Ordering::SeqCst)
    }

    /// How many replies were lost so far.
    pub fn replies_dropped(&self) -> usize {
        self.line.lost.load(Ordering::SeqCst)
    }

    /// Waits until that many replies were lost.
    #[track_caller]
    pub fn wait_until_dropped(&self, count: usize) {
        wait::until("the proxy dropped the reply", || self.replies_dropped() >= count);
    }

    /// The types of all requests that were forwarded so far, pings too.
    pub fn forwarded(&self) -> Vec<i32> {
        self.line.forwarded.lock().unwrap().iter().map(|request| request.kind).collect()
    }

    /// All requests that were forwarded so far, pings too.
    pub fn requests(&self) -> Vec<Request> {
        self.line.forwarded.lock().unwrap().clone()
    }

    /// From now on the client gets what `tamper` makes of each reply, its length in front.
    pub fn tamper(&self, tamper: impl FnMut(Vec<u8>) -> Vec<u8> + Send + 'static) {
        self.line.tampering.set(tamper);
    }

    /// Later replies are as the server sent them; connections that were spoilt are reset.
    pub fn stop_tampering(&self) {
        self.line.tampering.stop();
        self.reset();
    }

    pub(super) fn fates(&self) -> &Fates {
        &self.line.fates
    }

    fn change(&self, change: impl FnOnce(&mut Network)) {
        self.network.send_modify(change);
    }
}

async fn listen(listener: std::net::TcpListener, network: watch::Receiver<Network>, line: Arc<Line>) {
    listener.set_nonblocking(true).unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        line.accepted.fetch_add(1, Ordering::SeqCst);
        if network.borrow().refusing {
            reset(client);
        } else {
            tokio::spawn(connect(client, network.clone(), Arc::clone(&line)));
        }
    }
}

async fn connect(client: TcpStream, network: watch::Receiver<Network>, line: Arc<Line>) {
    let generation = network.borrow().generation;
    let number = line.connections.fetch_add(1, Ordering::SeqCst);
    let network = Flow { network, number };
    let mut changes = network.network.clone();
    let Ok(server) = TcpStream::connect(line.target).await else { return reset(client) };
    let (swallow, swallowing) = watch::channel(None);
    let ended = tokio::select! {
        ended = carry_requests(&client, &server, network.clone(), &line, swallow) => ended,
        ended = carry_replies(&server, &client, network, &line, swallowing) => ended,
        _ = changes.wait_for(|network| network.generation != generation) => Err(io::ErrorKind::ConnectionReset.into()),
    };
    if ended.is_err() {
        reset(client);
        reset(server);
    }
}

/// The network as one connection has it.
#[derive(Clone)]
struct Flow {
    network: watch::Receiver<Network>,
    number: usize,
}

impl Flow {
    async fn requests(&mut self) {
        let number = self.number;
        self.network.wait_for(|network| network.requests_flow && number >= network.stranded_below).await.ok();
    }

    async fn replies(&mut self) {
        let number = self.number;
        self.network.wait_for(|network| network.replies_flow && number >= network.stranded_below).await.ok();
    }
}

/// Closes with RST instead of FIN (`socket(7)`, `SO_LINGER`).
fn reset(stream: TcpStream) {
    setsockopt(&stream, sockopt::Linger, &nix::libc::linger { l_onoff: 1, l_linger: 0 }).ok();
    drop(stream);
}

async fn carry_requests(
    client: &TcpStream,
    server: &TcpStream,
    mut network: Flow,
    line: &Line,
    swallow: watch::Sender<Option<i32>>,
) -> io::Result<()> {
    let mut frames = Frames::of(client, line.is_blind);
    // The first frame is the connect request, which has no header.
    let Some(connect) = frames.next().await? else { return Ok(()) };
    let mut pending = Some(connect);
    while let Some(frame) = pending {
        network.requests().await;
        send(server, &frame).await?;
        pending = frames.next().await?;
        let Some((xid, kind)) = pending.as_deref().filter(|_| !line.is_blind).and_then(header) else { continue };
        let request = Request::new(kind, pending.as_deref().unwrap_or_default());
        line.fates.decide(network.number, xid, &request);
        line.hold_replies_if_due(&request);
        line.forwarded.lock().unwrap().push(request);
        if line.loses_reply_to(kind) {
            swallow.send(Some(xid)).ok();
            network.requests().await;
            send(server, pending.as_deref().unwrap_or_default()).await?;
            return std::future::pending().await;
        }
    }
    Ok(())
}

async fn carry_replies(
    server: &TcpStream,
    client: &TcpStream,
    mut network: Flow,
    line: &Line,
    swallow: watch::Receiver<Option<i32>>,
) -> io::Result<()> {
    let mut frames = Frames::of(server, line.is_blind);
    let mut connected = false;
    while let Some(frame) = frames.next().await? {
        if connected && swallow.borrow().is_some() && header(&frame).map(|(xid, _)| xid) == *swallow.borrow() {
            line.lost.fetch_add(1, Ordering::SeqCst);
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let is_delivered = !connected || line.fates.delivers(network.number, &frame).await;
        connected = true;
        if !is_delivered {
            continue;
        }
        network.replies().await;
        send(client, &line.tampering.apply(frame)).await?;
    }
    Ok(())
}

impl Line {
    fn to(target: SocketAddr, is_blind: bool, network: watch::Sender<Network>) -> Self {
        Self {
            target,
            is_blind,
            network,
            lossy: Mutex::default(),
            lost: AtomicUsize::new(0),
            holding: Mutex::default(),
            connections: AtomicUsize::new(0),
            accepted: AtomicUsize::new(0),
            forwarded: Mutex::default(),
            tampering: Tampering::default(),
            fates: Fates::default(),
        }
    }

    /// Carries out the order to hold replies back, if this request is meant.
    fn hold_replies_if_due(&self, request: &Request) {
        let is_due = |(kinds, path): &mut (Vec<i32>, String)| {
            kinds.contains(&request.kind) && request.text.contains(path.as_str())
        };
        if self.holding.lock().unwrap().take_if(is_due).is_some() {
            self.network.send_modify(|network| network.replies_flow = false);
        }
    }

    /// Takes the order to lose a reply, if this request is meant.
    fn loses_reply_to(&self, kind: i32) -> bool {
        let mut lossy = self.lossy.lock().unwrap();
        let taken = lossy.take_if(|loss| loss.is_about(kind) && loss.spared == 0).is_some();
        if let Some(loss) = lossy.as_mut().filter(|loss| loss.is_about(kind)) {
            loss.spared -= 1;
        }
        taken
    }
}

impl Loss {
    fn is_about(&self, kind: i32) -> bool {
        if self.kinds.is_empty() { kind != request::PING } else { self.kinds.contains(&kind) }
    }
}

/// The first two numbers of a frame, after its length: xid and type (of a request).
fn header(frame: &[u8]) -> Option<(i32, i32)> {
    let number = |at: usize| frame.get(at..at + 4)?.try_into().ok().map(i32::from_be_bytes);
    Some((number(4)?, number(8)?))
}

/// Reads whole frames: four bytes of length, then so many bytes; or, blind, whatever comes.
struct Frames<'a> {
    stream: &'a TcpStream,
    is_blind: bool,
    bytes: VecDeque<u8>,
}

impl<'a> Frames<'a> {
    fn of(stream: &'a TcpStream, is_blind: bool) -> Self {
        Self { stream, is_blind, bytes: VecDeque::new() }
    }

    /// The next frame with its length in front; `None` when the other side has closed.
    async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(frame) = self.take() {
                return Ok(Some(frame));
            }
            self.stream.readable().await?;
            let mut chunk = [0; 16 * 1024];
            match self.stream.try_read(&mut chunk) {
                Ok(0) => return Ok(None),
                Ok(count) => self.bytes.extend(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        if self.is_blind {
            return (!self.bytes.is_empty()).then(|| self.bytes.drain(..).collect());
        }
        let length: Vec<u8> = self.bytes.iter().take(4).copied().collect();
        let length = usize::try_from(i32::from_be_bytes(length.try_into().ok()?)).ok()? + 4;
        (self.bytes.len() >= length).then(|| self.bytes.drain(..length).collect())
    }
}

async fn send(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
