//! The network between clients and the ensemble in memory.

use std::time::Duration;

use crate::lab::{create, set};
use crate::memory::network::{Direction, Network, Received, SocketId};
use crate::memory::{CreateMode, Ensemble, Hello, Message, Request, Settings, Time, Xid};

const LATENCY: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(30)];
const SETTLED: Duration = Duration::from_secs(1);

struct Wires {
    network: Network,
    now: Time,
}

impl Wires {
    /// Of one server, with a session from host 0.
    fn connected(seed: u64) -> (Self, SocketId) {
        let network = Network::new(Ensemble::new(Settings::of(1), seed), LATENCY, seed);
        let mut wires = Self { network, now: Time::ZERO };
        let socket = wires.network.dial(0, 0, Hello::new(10_000), wires.now);
        assert!(matches!(wires.settle()[..], [Received { message: Message::Connected { .. }, .. }]));
        (wires, socket)
    }

    fn send(&mut self, socket: SocketId, xid: Xid, request: Request) {
        self.network.send(socket, xid, request, self.now);
    }

    fn settle(&mut self) -> Vec<Received> {
        self.now += SETTLED;
        self.network.advance(self.now)
    }

    fn has(&self, path: &str) -> bool {
        self.network.ensemble.tree(0).node(path).is_ok()
    }
}

fn persistent(path: &str) -> Request {
    create(path, CreateMode::Persistent)
}

fn is_closed(received: &[Received]) -> bool {
    matches!(received, [Received { message: Message::Closed, .. }])
}

#[test]
fn a_lost_reply_leaves_the_write_done_and_a_lost_request_does_not() {
    for (direction, is_done) in [(Direction::Down, true), (Direction::Up, false)] {
        let (mut wires, socket) = Wires::connected(1);
        wires.network.lose_next(0, 0, direction, wires.now);
        wires.send(socket, -2, Request::Ping);
        assert_eq!(wires.settle().len(), 1, "a ping is not what is lost");
        wires.send(socket, 1, persistent("/a"));
        assert!(is_closed(&wires.settle()));
        assert_eq!(wires.has("/a"), is_done);
        wires.send(socket, 2, persistent("/b"));
        assert!(wires.settle().is_empty() && !wires.has("/b"), "the connection is gone");
    }
}

#[test]
fn a_blocked_link_holds_back_what_arrives_when_it_is_healed() {
    let (mut wires, socket) = Wires::connected(1);
    wires.network.block(0, 0, Direction::Down, wires.now);
    wires.send(socket, 1, persistent("/a"));
    assert!(wires.settle().is_empty() && wires.has("/a"));
    wires.network.block(0, 0, Direction::Up, wires.now);
    wires.send(socket, 2, persistent("/b"));
    assert!(wires.settle().is_empty() && !wires.has("/b"));
    wires.network.heal(0, 0, wires.now);
    assert_eq!(wires.settle().len(), 2);
    assert!(wires.has("/b"));
}

#[test]
fn a_server_does_not_learn_of_a_reset_behind_a_blocked_link() {
    let (mut wires, socket) = Wires::connected(1);
    wires.send(socket, 1, Request::Exists { path: "/a".to_owned(), watch: true });
    wires.settle();
    wires.network.block(0, 0, Direction::Up, wires.now);
    wires.network.reset(0, 0, wires.now);
    assert!(is_closed(&wires.settle()));
    let session = |wires: &Wires| wires.network.ensemble.sessions(0).count();
    wires.now += Duration::from_secs(15);
    wires.settle();
    assert_eq!(session(&wires), 0, "it has expired");
}

#[test]
fn no_packet_overtakes_another_and_chance_is_the_seeds() {
    let run = |seed| {
        let (mut wires, socket) = Wires::connected(seed);
        wires.send(socket, 0, persistent("/a"));
        for xid in 1..50 {
            wires.send(socket, xid, set("/a", &xid.to_string()));
        }
        let received = wires.settle();
        let xid = |one: &Received| match one.message {
            Message::Reply { xid, .. } => xid,
            _ => panic!("{one:?}"),
        };
        assert_eq!(received.iter().map(xid).collect::<Vec<_>>(), (0..50).collect::<Vec<_>>());
        received.iter().map(|one| one.at).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
