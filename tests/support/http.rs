//! Asks one question over HTTP, the way a load balancer does.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use super::{Running, wait};

/// What was answered.
#[derive(Clone, Debug)]
pub struct Reply {
    pub code: u16,
    pub body: String,
}

/// Where a host serves HTTP, by its log: it was told `127.0.0.1:0`.
pub fn address_of(host: &Running) -> SocketAddr {
    const SAID: &str = "HTTP is served at ";
    wait::for_some("the address of HTTP is logged", || {
        let log = host.log();
        let said = log.split(SAID).nth(1)?.split_whitespace().next()?;
        said.parse().ok()
    })
}

/// `GET path`.
pub fn get(address: SocketAddr, path: &str) -> io::Result<Reply> {
    ask(address, "GET", path, wait::LIMIT)
}

/// The code of `GET path`; 0 without an answer.
pub fn code(address: SocketAddr, path: &str) -> u16 {
    get(address, path).map_or(0, |reply| reply.code)
}

/// `/status`.
pub fn status(address: SocketAddr) -> Value {
    serde_json::from_str(&get(address, "/status").unwrap().body).unwrap()
}

pub fn ask(address: SocketAddr, method: &str, path: &str, limit: Duration) -> io::Result<Reply> {
    let mut stream = TcpStream::connect_timeout(&address, limit)?;
    converse(&mut stream, method, path, limit)
}

/// One request on a fresh connection, over TCP.
fn converse(stream: &mut TcpStream, method: &str, path: &str, limit: Duration) -> io::Result<Reply> {
    stream.set_read_timeout(Some(limit))?;
    stream.write_all(request(method, path).as_bytes())?;
    read(stream)
}

pub fn request(method: &str, path: &str) -> String {
    format!("{method} {path} HTTP/1.0\r\nHost: test\r\nConnection: close\r\n\r\n")
}

/// The reply that comes until the connection ends.
pub fn read(stream: &mut impl Read) -> io::Result<Reply> {
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let code = text.split(' ').nth(1).and_then(|code| code.parse().ok());
    let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    let (Some(code), Some(body)) = (code, body) else { return Err(io::ErrorKind::InvalidData.into()) };
    Ok(Reply { code, body })
}
