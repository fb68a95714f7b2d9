//! Several servers behind one name, by an `/etc/hosts` of one's own.

use std::io::{Write as _, copy};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use super::Election;
use super::ports::Port;

/// Passes on what comes to `listener`, for as long as the test runs.
pub fn pass_on(listener: TcpListener, to: SocketAddr) {
    fn pipe(mut from: TcpStream, mut to: TcpStream) {
        copy(&mut from, &mut to).ok();
        to.flush().and_then(|()| to.shutdown(Shutdown::Both)).ok();
    }
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(to) else { continue };
            let (back, forth) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || pipe(forth, server));
            thread::spawn(move || pipe(back, client));
        }
    });
}

/// Two servers that take connections and never say a word, and a living one, behind one name: a connect string, and what
/// makes the name known.
pub fn two_silent_and(name: &str, living: SocketAddr, election: &Election) -> (String, Command) {
    let port = Port::reserve();
    for address in ["127.0.0.2", "127.0.0.3"] {
        // They stay for as long as the tests.
        std::mem::forget(TcpListener::bind((address, port.number())).unwrap());
    }
    pass_on(TcpListener::bind(("127.0.0.4", port.number())).unwrap(), living);
    let servers = format!("{name}:{}", port.number());
    std::mem::forget(port);
    (servers, where_it_stands_for(name, &["127.0.0.2", "127.0.0.3", "127.0.0.4"], election))
}

/// The same with one address before the living one, at which nobody listens.
pub fn one_that_refuses_and(name: &str, living: SocketAddr, election: &Election) -> (String, Command) {
    let port = Port::reserve();
    pass_on(TcpListener::bind(("127.0.0.3", port.number())).unwrap(), living);
    let servers = format!("{name}:{}", port.number());
    std::mem::forget(port);
    (servers, where_it_stands_for(name, &["127.0.0.2", "127.0.0.3"], election))
}

fn where_it_stands_for(name: &str, addresses: &[&str], election: &Election) -> Command {
    let hosts = election.diary.directory().join("hosts");
    let lines: Vec<_> = addresses.iter().map(|address| format!("{address} {name}\n")).collect();
    std::fs::write(&hosts, lines.concat()).unwrap();
    let mut wrapper = Command::new("unshare");
    let script = r#"mount --bind "$0" /etc/hosts && exec "$@""#;
    wrapper.args(["--mount", "sh", "-c", script]).arg(&hosts);
    wrapper
}
