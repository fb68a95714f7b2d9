//! A client of a real server that hides nothing: packets as they come, in their order, with their zxids and codes.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use crate::jute::{self, Reader, Writer};
use crate::memory::{Code, Hello, Message, Op, Reply, Request, Xid, Zxid};
use crate::support::wait;

const PING: Xid = -2;
const AUTH: Xid = -4;
const SET_WATCHES: Xid = -8;
const EVENT: Xid = -1;

/// One connection. What it has received is kept until the test asks for it.
pub struct Wire {
    stream: TcpStream,
    next_xid: Xid,
    pub last_zxid: Zxid,
}

/// Requests and their xids, as on either side.
pub fn xid_of(request: &Request, next: &mut Xid) -> Xid {
    match request {
        Request::Ping => PING,
        Request::Auth { .. } => AUTH,
        Request::SetWatches { .. } => SET_WATCHES,
        _ => {
            *next += 1;
            *next
        }
    }
}

impl Wire {
    /// Connects, and says what the server answered.
    pub fn open(address: SocketAddr, hello: &Hello) -> (Self, Message) {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(wait::LIMIT)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut wire = Self { stream, next_xid: 0, last_zxid: hello.last_zxid };
        let mut packet = Writer::default();
        packet.int(0);
        packet.long(hello.last_zxid);
        packet.int(i32::try_from(hello.timeout_ms).unwrap());
        packet.long(hello.session);
        packet.buffer(&hello.password);
        packet.bool(false);
        wire.send(packet);
        let answer = wire.packet(&Request::Ping).map_or(Message::Closed, |packet| {
            let mut reader = Reader::of(&packet);
            let (_, timeout, session) = (reader.int(), reader.int(), reader.long());
            let (timeout_ms, password) = (u64::try_from(timeout).unwrap(), reader.buffer());
            if session == 0 { Message::Expired } else { Message::Connected { session, timeout_ms, password } }
        });
        (wire, answer)
    }

    /// Sends a request and gives everything that comes up to its reply, or to the end of the connection.
    pub fn ask(&mut self, request: &Request) -> Vec<Message> {
        let xid = xid_of(request, &mut self.next_xid);
        let mut packet = Writer::default();
        packet.int(xid);
        jute::write_request(&mut packet, request);
        self.send(packet);
        let mut seen = Vec::new();
        loop {
            let message = self.packet(request).map_or(Message::Closed, |packet| self.read(&packet, xid, request));
            let is_reply = matches!(message, Message::Reply { .. });
            let is_over = message == Message::Closed;
            let ends =
                *request == Request::Close || matches!(message, Message::Reply { result: Err(Code::AuthFailed), .. });
            seen.push(message);
            if is_over || (is_reply && !ends) {
                return seen;
            }
        }
    }

    fn read(&mut self, packet: &[u8], expected: Xid, request: &Request) -> Message {
        let mut reader = Reader::of(packet);
        let (xid, zxid, error) = (reader.int(), reader.long(), reader.int());
        if xid == EVENT {
            let (kind, _state) = (reader.int(), reader.int());
            return Message::Event { zxid, kind: jute::event_kind(kind), path: reader.string() };
        }
        assert_eq!(xid, expected, "the reply to another request");
        self.last_zxid = self.last_zxid.max(zxid);
        let result: Result<Reply, Code> = match Code::of(error) {
            Some(Code::Ok) => Ok(jute::read_reply(&mut reader, request)),
            Some(code) => Err(code),
            None => panic!("the server said {error} to {request:?}"),
        };
        Message::Reply { xid, zxid, result }
    }

    fn send(&mut self, packet: Writer) {
        // The server may have closed the connection: then the reply says so.
        drop(self.stream.write_all(&packet.framed()));
    }

    fn packet(&mut self, asked: &Request) -> Option<Vec<u8>> {
        let mut length = [0; 4];
        match self.stream.read_exact(&mut length) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("no answer to {asked:?}"),
            Err(_) => return None,
        }
        let mut packet = vec![0; usize::try_from(i32::from_be_bytes(length)).unwrap()];
        self.stream.read_exact(&mut packet).ok()?;
        Some(packet)
    }
}

/// What an operation of a multi is called.
pub fn op_code(op: &Op) -> i32 {
    match op {
        Op::Create { .. } => 15,
        Op::Delete { .. } => 2,
        Op::SetData { .. } => 5,
        Op::Check { .. } => 13,
    }
}
