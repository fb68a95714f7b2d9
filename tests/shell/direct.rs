//! The network between the hosts: datagrams that come late, twice, changed, in any order, or never, and that one host may not
//! get from another.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::sleep;
use zk_leader_run::vouching::Network;

use crate::memory::rng::Rng;
use crate::oracle::Instance;
use crate::process::Process;

/// What a socket of the kernel keeps for a process that does not read.
const KEPT: usize = 256;
/// Datagrams that a replayer has recorded.
const RECORDED: usize = 64;

/// How bad the network is: percent of the datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    pub lost: u64,
    pub doubled: u64,
    /// Up to `late_most` later.
    pub late: u64,
    pub late_most: Duration,
    /// So many come beside it that somebody has made from what he has heard: as they were, or changed; to anybody.
    pub forged: u64,
}

#[derive(Debug)]
pub struct Air {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    rng: Rng,
    latency: [Duration; 2],
    weather: Weather,
    sockets: BTreeMap<SocketAddr, Arc<Socket>>,
    /// From one host to another, how often it was silenced and not healed.
    silenced: BTreeMap<(usize, usize), u32>,
    recorded: VecDeque<Vec<u8>>,
    sent: u64,
}

/// Of one process, whichever program it executes.
#[derive(Debug)]
struct Socket {
    air: Arc<Air>,
    process: Arc<Process>,
    mailbox: Mutex<Mailbox>,
}

#[derive(Debug, Default)]
struct Mailbox {
    datagrams: VecDeque<(SocketAddr, Vec<u8>)>,
    /// Also those of programs that this process has replaced.
    wakers: Vec<Waker>,
}

/// Where a process is asked.
pub fn address(host: usize, instance: Instance) -> SocketAddr {
    let host = u8::try_from(host + 1).expect("few");
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), 1 + (instance % 60_000) as u16)
}

fn host(address: SocketAddr) -> usize {
    match address.ip() {
        IpAddr::V4(ip) => usize::from(ip.octets()[3]) - 1,
        IpAddr::V6(_) => unreachable!("all are of version 4"),
    }
}

impl Air {
    pub fn new(latency: [Duration; 2], weather: Weather, seed: u64) -> Arc<Self> {
        let inner = Inner {
            rng: Rng::new(seed, 0x5544_5031),
            latency,
            weather,
            sockets: BTreeMap::new(),
            silenced: BTreeMap::new(),
            recorded: VecDeque::new(),
            sent: 0,
        };
        Arc::new(Self { inner: Mutex::new(inner) })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no panic under the lock")
    }

    pub fn socket(self: &Arc<Self>, process: &Arc<Process>) -> Arc<dyn Network> {
        let (air, process) = (Arc::clone(self), Arc::clone(process));
        let socket = Arc::new(Socket { air, process, mailbox: Mutex::default() });
        self.lock().sockets.insert(socket.address(), Arc::clone(&socket));
        socket
    }

    /// Its process has ended.
    pub fn close(&self, host: usize, instance: Instance) {
        self.lock().sockets.remove(&address(host, instance));
    }

    /// From now on nothing of `from` reaches `to`.
    pub fn silence(&self, from: usize, to: usize) {
        *self.lock().silenced.entry((from, to)).or_default() += 1;
    }

    pub fn heal(&self, from: usize, to: usize) {
        self.lock().silenced.entry((from, to)).and_modify(|times| *times = times.saturating_sub(1));
    }

    /// From now on nothing is lost, late or forged.
    pub fn clear_up(&self) {
        self.lock().weather = Weather::default();
    }

    /// All datagrams so far.
    pub fn sent(&self) -> u64 {
        self.lock().sent
    }

    fn carry(self: &Arc<Self>, from: SocketAddr, to: SocketAddr, datagram: &[u8]) {
        let mut inner = self.lock();
        inner.sent += 1;
        if inner.recorded.len() == RECORDED {
            inner.recorded.pop_front();
        }
        inner.recorded.push_back(datagram.to_vec());
        let Weather { lost, doubled, forged, .. } = inner.weather;
        let copies = if inner.rng.chance(lost) { 0 } else { 1 + usize::from(inner.rng.chance(doubled)) };
        for _ in 0..copies {
            self.fly(&mut inner, from, to, datagram.to_vec());
        }
        if inner.rng.chance(forged) {
            let (to, forgery) = inner.forge(to);
            self.fly(&mut inner, from, to, forgery);
        }
    }

    fn fly(self: &Arc<Self>, inner: &mut Inner, from: SocketAddr, to: SocketAddr, datagram: Vec<u8>) {
        let delay = inner.delay();
        let air = Arc::clone(self);
        tokio::spawn(async move {
            sleep(delay).await;
            air.arrive(from, to, datagram);
        });
    }

    fn arrive(&self, from: SocketAddr, to: SocketAddr, datagram: Vec<u8>) {
        let inner = self.lock();
        let is_silenced = inner.silenced.get(&(host(from), host(to))).is_some_and(|times| *times > 0);
        let socket = inner.sockets.get(&to).filter(|socket| !is_silenced && !socket.process.is_dead()).cloned();
        drop(inner);
        if let Some(socket) = socket {
            socket.keep(from, datagram);
        }
    }
}

impl Inner {
    fn delay(&mut self) -> Duration {
        let between = |rng: &mut Rng, [least, most]: [Duration; 2]| {
            least + Duration::from_micros(rng.below(most.saturating_sub(least).as_micros() as u64 + 1))
        };
        let Weather { late, late_most, .. } = self.weather;
        if self.rng.chance(late) {
            between(&mut self.rng, [Duration::ZERO, late_most])
        } else {
            between(&mut self.rng, self.latency)
        }
    }

    /// Something that was heard before, perhaps changed, and to whom it is said now.
    fn forge(&mut self, to: SocketAddr) -> (SocketAddr, Vec<u8>) {
        let heard = self.rng.below(self.recorded.len() as u64) as usize;
        let mut forgery = self.recorded[heard].clone();
        if self.rng.chance(50) && !forgery.is_empty() {
            let at = self.rng.below(forgery.len() as u64) as usize;
            forgery[at] ^= 1 << self.rng.below(8);
        }
        let other = self.rng.below(self.sockets.len().max(1) as u64) as usize;
        let to = self.sockets.keys().nth(other).copied().filter(|_| self.rng.chance(50)).unwrap_or(to);
        (to, forgery)
    }
}

impl Socket {
    fn lock(&self) -> MutexGuard<'_, Mailbox> {
        self.mailbox.lock().expect("no panic under the lock")
    }

    fn keep(&self, from: SocketAddr, datagram: Vec<u8>) {
        let mut mailbox = self.lock();
        if mailbox.datagrams.len() < KEPT {
            mailbox.datagrams.push_back((from, datagram));
        }
        let wakers = std::mem::take(&mut mailbox.wakers);
        drop(mailbox);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Network for Socket {
    fn address(&self) -> SocketAddr {
        address(self.process.host, self.process.instance)
    }

    fn send(&self, to: SocketAddr, datagram: &[u8]) {
        self.air.carry(self.address(), to, datagram);
    }

    fn receive<'a>(&'a self, buffer: &'a mut [u8]) -> BoxFuture<'a, io::Result<(usize, SocketAddr)>> {
        Box::pin(poll_fn(move |context| {
            let mut mailbox = self.lock();
            let Some((from, datagram)) = mailbox.datagrams.pop_front() else {
                mailbox.wakers.push(context.waker().clone());
                return Poll::Pending;
            };
            let length = datagram.len().min(buffer.len());
            buffer[..length].copy_from_slice(&datagram[..length]);
            Poll::Ready(Ok((length, from)))
        }))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
