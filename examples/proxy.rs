//! A TCP relay for the demonstration: `proxy LISTEN TARGET`. Stop it (SIGSTOP) and the host behind it is cut off.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(listen), Some(target)) = (arguments.next(), arguments.next()) else {
        return Err(io::Error::other("usage: proxy LISTEN TARGET"));
    };
    for client in TcpListener::bind(listen)?.incoming() {
        let client = client?;
        let Ok(server) = TcpStream::connect(&target) else { continue };
        relay(client.try_clone()?, server.try_clone()?);
        relay(server, client);
    }
    Ok(())
}

fn relay(mut from: TcpStream, mut to: TcpStream) {
    thread::spawn(move || {
        // Whichever side ends, or breaks, ends both.
        io::copy(&mut from, &mut to).ok();
        from.shutdown(Shutdown::Both).ok();
        to.shutdown(Shutdown::Both).ok();
    });
}
