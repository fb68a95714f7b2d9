//! `ZooKeeper`'s wire format by hand, as little of it as the floor and the harness need: requests are gathered and leave in one
//! write, replies come in their order (`zookeeper.jute`, `ZooDefs.OpCode`).

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

pub mod request {
    pub const CREATE: i32 = 1;
    pub const DELETE: i32 = 2;
    pub const EXISTS: i32 = 3;
    pub const GET_DATA: i32 = 4;
    pub const SET_DATA: i32 = 5;
    pub const GET_CHILDREN: i32 = 8;
    pub const PING: i32 = 11;
    pub const CHECK: i32 = 13;
    pub const MULTI: i32 = 14;
    pub const CREATE2: i32 = 15;
    pub const CLOSE_SESSION: i32 = -11;
}

/// Not an answer but a watch that fired.
pub const EVENT: i32 = -1;
const XID_OF_PINGS: i32 = -2;
/// In `Stat`, behind two zxids and two times.
const VERSION_IN_STAT: usize = 32;
/// `CreateMode.EPHEMERAL_SEQUENTIAL`.
const EPHEMERAL_SEQUENTIAL: i32 = 3;
const ALL_RIGHTS: i32 = 31;

/// The fields of one record, one after the other.
#[derive(Clone, Default)]
pub struct Fields(Vec<u8>);

impl Fields {
    pub fn int(mut self, value: i32) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub fn long(mut self, value: i64) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub fn flag(mut self, value: bool) -> Self {
        self.0.push(u8::from(value));
        self
    }

    pub fn bytes(self, value: &[u8]) -> Self {
        let mut fields = self.int(i32::try_from(value.len()).unwrap());
        fields.0.extend(value);
        fields
    }

    pub fn text(self, value: &str) -> Self {
        self.bytes(value.as_bytes())
    }

    pub fn create(self, path: &str, data: &[u8], ephemeral_sequential: bool) -> Self {
        let fields = self.text(path).bytes(data).int(1).int(ALL_RIGHTS).text("world").text("anyone");
        fields.int(if ephemeral_sequential { EPHEMERAL_SEQUENTIAL } else { 0 })
    }

    /// One operation of a multi; [`Fields::end`] is to follow the last.
    pub fn operation(mut self, kind: i32, fields: &Self) -> Self {
        self = self.int(kind).flag(false).int(-1);
        self.0.extend(&fields.0);
        self
    }

    pub fn end(self) -> Self {
        self.int(-1).flag(true).int(-1)
    }
}

#[derive(Debug)]
pub struct Reply {
    pub xid: i32,
    pub error: i32,
    body: Vec<u8>,
}

impl Reply {
    pub fn ok(self) -> io::Result<Self> {
        if self.error == 0 { Ok(self) } else { Err(io::Error::other(format!("ZooKeeper's error {}", self.error))) }
    }

    fn int_at(&self, at: usize) -> i32 {
        i32::from_be_bytes(self.body[at..at + 4].try_into().unwrap())
    }

    fn bytes_at(&self, at: usize) -> &[u8] {
        let length = usize::try_from(self.int_at(at)).unwrap_or(0);
        &self.body[at + 4..at + 4 + length]
    }

    /// The created path, or what else is one text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes_at(0)).into_owned()
    }

    /// Of the `Stat` behind the data.
    pub fn version_of_data(&self) -> i32 {
        self.int_at(4 + self.bytes_at(0).len() + VERSION_IN_STAT)
    }

    pub fn children(&self) -> Vec<String> {
        let mut at = 4;
        let child = |_| {
            let child = self.bytes_at(at);
            at += 4 + child.len();
            String::from_utf8_lossy(child).into_owned()
        };
        (0..self.int_at(0)).map(child).collect()
    }
}

pub struct Connection {
    stream: TcpStream,
    xid: i32,
    gathered: Vec<u8>,
}

impl Connection {
    /// Opens a session.
    pub fn open(address: &str, timeout: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut connection = Self { stream, xid: 0, gathered: Vec::new() };
        let millis = i32::try_from(timeout.as_millis()).unwrap();
        connection.gather(&Fields::default().int(0).long(0).int(millis).long(0).bytes(&[0; 16]).flag(false));
        connection.send()?;
        connection.frame().map(|_| connection)
    }

    pub fn ask(&mut self, kind: i32, fields: &Fields) {
        self.xid += 1;
        let mut framed = Fields::default().int(self.xid).int(kind);
        framed.0.extend(&fields.0);
        self.gather(&framed);
    }

    pub fn ping(&mut self) -> io::Result<()> {
        self.gather(&Fields::default().int(XID_OF_PINGS).int(request::PING));
        self.send()
    }

    pub fn send(&mut self) -> io::Result<()> {
        let gathered = std::mem::take(&mut self.gathered);
        self.stream.write_all(&gathered)
    }

    /// The next reply or event.
    pub fn hear(&mut self) -> io::Result<Reply> {
        loop {
            let frame = self.frame()?;
            let reply = Reply { xid: 0, error: 0, body: frame };
            let (xid, error) = (reply.int_at(0), reply.int_at(12));
            if xid != XID_OF_PINGS {
                return Ok(Reply { xid, error, body: reply.body[16..].to_vec() });
            }
        }
    }

    /// One request, and its answer.
    pub fn call(&mut self, kind: i32, fields: &Fields) -> io::Result<Reply> {
        self.ask(kind, fields);
        self.send()?;
        self.hear()
    }

    pub fn children(&mut self, path: &str) -> io::Result<Vec<String>> {
        let reply = self.call(request::GET_CHILDREN, &Fields::default().text(path).flag(false))?;
        Ok(if reply.error == 0 { reply.children() } else { Vec::new() })
    }

    /// With all that is above it; whatever exists is left as it is.
    pub fn make(&mut self, path: &str, data: &[u8]) -> io::Result<()> {
        for (at, _) in path.match_indices('/').skip(1) {
            self.call(request::CREATE, &Fields::default().create(&path[..at], b"", false))?;
        }
        self.call(request::CREATE, &Fields::default().create(path, data, false)).map(drop)
    }

    pub fn close(mut self) -> io::Result<()> {
        self.call(request::CLOSE_SESSION, &Fields::default()).map(drop)
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    fn gather(&mut self, fields: &Fields) {
        self.gathered.extend(i32::try_from(fields.0.len()).unwrap().to_be_bytes());
        self.gathered.extend(&fields.0);
    }

    fn frame(&mut self) -> io::Result<Vec<u8>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut frame = vec![0; usize::try_from(i32::from_be_bytes(length)).unwrap()];
        self.stream.read_exact(&mut frame)?;
        Ok(frame)
    }
}
