//! Several servers behind one name, by an `/etc/hosts` of one's own; a name server that is silent.

use std::io::{ErrorKind, Write as _, copy};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use super::ports::Port;
use super::{Election, wait};

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

/// A name server that takes questions and never answers, and what makes it the one that is asked. `getaddrinfo(3)` cannot be
/// given up, and would wait for minutes with these options.
pub fn silent_name_server(election: &Election) -> (UdpSocket, Command) {
    static COUNT: AtomicU8 = AtomicU8::new(0);
    let [high, low] = std::process::id().to_be_bytes()[2..] else { unreachable!() };
    let address = format!("127.{}.{high}.{low}", 77 + COUNT.fetch_add(1, Ordering::SeqCst));
    let silent = UdpSocket::bind((address.as_str(), 53)).expect("port 53 is for root only");
    silent.set_read_timeout(Some(wait::LIMIT)).unwrap();
    let config = election.diary.directory().join("resolv.conf");
    std::fs::write(&config, format!("nameserver {address}\noptions timeout:30 attempts:5\n")).unwrap();
    let mut wrapper = Command::new("unshare");
    let script = r#"mount --bind "$0" "$(readlink -f /etc/resolv.conf)" && exec "$@""#;
    wrapper.args(["--mount", "sh", "-c", script]).arg(&config);
    (silent, wrapper)
}

/// Waits for a question. With a time limit, a signal to this process ends the wait (`signal(7)`).
pub fn asked(silent: &UdpSocket) {
    wait::for_some("the name server is asked", || match silent.recv(&mut [0; 512]) {
        Err(error) if error.kind() == ErrorKind::Interrupted => None,
        question => Some(question.unwrap()),
    });
}
