//! One host: a socket, what it knows of the others, and what it was told.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;
use tokio::time::timeout;
use zk_leader_run::core::event::Event;
use zk_leader_run::core::vouching::{Question, Reply, Word};
use zk_leader_run::vouching::message::{LENGTH, Message, Said};
use zk_leader_run::vouching::{Direct, Memory, Reason, Socket};
use zk_leader_run::zookeeper::schema::vouching::{Neighbour, Neighbourhood, Secret};

/// Long enough for a busy machine; a passing test never gets near it.
pub const LIMIT: Duration = Duration::from_secs(60);
pub const ELECTION: i64 = 0x1_0000_0002;
pub const SECRET: Secret = Secret([7; Secret::LENGTH]);
pub const OTHER_SECRET: Secret = Secret([8; Secret::LENGTH]);
pub const TOKEN: i64 = 41;
pub const LEADER: u64 = 1;
pub const MEMBER: u64 = 2;

pub fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// Of one that is asked by the leader.
pub fn question(seq: u64) -> Question {
    Question { leader: LEADER, token: TOKEN, seq, lease: Duration::from_secs(15) }
}

pub fn yes(member: u64, seq: u64) -> Reply {
    Reply { member, leader: LEADER, token: TOKEN, seq, promises: true }
}

/// Between leader and member.
pub fn message(said: Said, seq: u64) -> Message {
    Message { said, token: TOKEN, leader: LEADER, member: MEMBER, seq }
}

pub fn asks(seq: u64) -> Message {
    message(Said::Ask { lease: Duration::from_secs(15) }, seq)
}

pub struct Host {
    pub direct: Direct,
    pub knows: watch::Sender<Neighbourhood>,
    told: UnboundedReceiver<Event>,
}

impl Host {
    pub fn new(instance: u64) -> Self {
        Self::at(instance, Socket::bind(loopback()).unwrap())
    }

    pub fn at(instance: u64, socket: Socket) -> Self {
        let (events, told) = unbounded_channel();
        let neighbourhood = Neighbourhood { election: Some(ELECTION), secret: Some(SECRET), neighbours: Vec::new() };
        let (knows, neighbourhood) = watch::channel(neighbourhood);
        Self {
            direct: Direct::new(Arc::new(socket), (instance, Memory::default()), neighbourhood, events),
            knows,
            told,
        }
    }

    /// Knows this instance from now on, or where it is now.
    pub fn meet(&self, instance: u64, address: SocketAddr) {
        self.knows.send_modify(|known| {
            known.neighbours.retain(|neighbour| neighbour.instance != instance);
            known.neighbours.push(Neighbour { instance, id: instance.to_string(), address });
        });
    }

    pub fn secret(&self, secret: Option<Secret>) {
        self.knows.send_modify(|known| known.secret = secret);
    }

    /// What it is told next.
    pub async fn hears(&mut self) -> Word {
        match timeout(LIMIT, self.told.recv()).await.expect("nothing was heard").unwrap() {
            Event::Vouching(word) => word,
            event => panic!("{event:?}"),
        }
    }

    /// What it is told within this time.
    pub async fn hears_within(&mut self, time: Duration) -> Option<Word> {
        match timeout(time, self.told.recv()).await.ok()?.unwrap() {
            Event::Vouching(word) => Some(word),
            event => panic!("{event:?}"),
        }
    }

    /// Nothing was told that nobody has asked for yet.
    pub fn heard_nothing(&mut self) {
        let told = self.told.try_recv();
        assert!(told.is_err(), "{told:?}");
    }

    /// Until so many datagrams were dropped for this reason.
    pub async fn drops(&self, why: Reason, count: u64) {
        let dropped = self.direct.dropped();
        let all = async {
            while dropped.of(why) < count {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let in_time = timeout(LIMIT, all).await.is_ok();
        assert!(
            in_time && dropped.of(why) == count,
            "{count} of {why:?} expected: {:?}",
            dropped.iter().collect::<Vec<_>>()
        );
    }
}

/// A leader and a member that know each other.
pub fn pair() -> (Host, Host) {
    let (leader, member) = (Host::new(LEADER), Host::new(MEMBER));
    leader.meet(MEMBER, member.direct.address());
    member.meet(LEADER, leader.direct.address());
    (leader, member)
}

/// Whoever has a socket.
pub struct Stranger {
    socket: tokio::net::UdpSocket,
    /// The same one, which knows what is there without the runtime.
    plain: std::net::UdpSocket,
}

impl Stranger {
    pub async fn new() -> Self {
        let socket = tokio::net::UdpSocket::bind(loopback()).await.unwrap();
        let plain = std::os::fd::AsFd::as_fd(&socket).try_clone_to_owned().unwrap().into();
        Self { socket, plain }
    }

    pub fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    pub async fn sends(&self, host: &Host, datagram: &[u8]) {
        self.socket.send_to(datagram, host.direct.address()).await.unwrap();
    }

    /// The next datagram, and whence.
    pub async fn receives(&self) -> (Vec<u8>, SocketAddr) {
        let mut buffer = [0; LENGTH + 1];
        let (length, from) = timeout(LIMIT, self.socket.recv_from(&mut buffer)).await.expect("nothing came").unwrap();
        (buffer[..length].to_vec(), from)
    }

    pub async fn passes_on(&self, datagram: &[u8], to: SocketAddr) {
        self.socket.send_to(datagram, to).await.unwrap();
    }

    /// On loopback a datagram is there as soon as it is sent.
    pub fn received_nothing(&self) {
        let received = self.plain.recv(&mut [0; LENGTH]);
        assert_eq!(received.map_err(|error| error.kind()), Err(std::io::ErrorKind::WouldBlock));
    }
}

/// What is said in one thread.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Until the second of them is dropped.
    pub fn of_this_thread() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let to = log.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || to.clone()).finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// How often this was said.
    pub fn count(&self, text: &str) -> usize {
        self.to_string().matches(text).count()
    }
}

impl std::fmt::Display for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0.lock().unwrap()))
    }
}
