//! Several servers behind one name, by an `/etc/hosts` of one's own; a name server that is silent.

use std::io::{ErrorKind, Write as _, copy};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
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
    let (silent, address) = name_server();
    silent.set_read_timeout(Some(wait::LIMIT)).unwrap();
    let wrapper = asking(&[address], "timeout:30 attempts:5", election);
    (silent, wrapper)
}

/// A name server that says "try again later", until it is told an address: then every name has that one.
pub struct NameServer {
    address: String,
    answer: Arc<Mutex<Option<Ipv4Addr>>>,
}

impl NameServer {
    pub fn start(answer: Option<Ipv4Addr>) -> Self {
        let (socket, address) = name_server();
        let answer = Arc::new(Mutex::new(answer));
        let told = Arc::clone(&answer);
        thread::spawn(move || {
            let mut question = [0; 512];
            while let Ok((length, asker)) = socket.recv_from(&mut question) {
                let told = *told.lock().unwrap();
                socket.send_to(&reply(&question[..length], told), asker).ok();
            }
        });
        Self { address, answer }
    }

    pub fn tell(&self, answer: Ipv4Addr) {
        *self.answer.lock().unwrap() = Some(answer);
    }

    /// From now on it says that it fails.
    pub fn fail(&self) {
        *self.answer.lock().unwrap() = None;
    }

    /// What makes it the one that is asked, after these others.
    pub fn wrapper(&self, before: &[String], election: &Election) -> Command {
        let asked: Vec<_> = before.iter().chain([&self.address]).cloned().collect();
        asking(&asked, "timeout:5 attempts:2", election)
    }
}

/// To a question with one name (RFC 1035, section 4).
fn reply(question: &[u8], answer: Option<Ipv4Addr>) -> Vec<u8> {
    const SERVER_FAILURE: u8 = 2;
    const IPV4: u8 = 1;
    let name_ends = 12 + question[12..].iter().position(|length| *length == 0).unwrap();
    let end = name_ends + 5;
    let is_of_ipv4 = question[name_ends + 2] == IPV4;
    let given = answer.filter(|_| is_of_ipv4);
    let code = if answer.is_none() { SERVER_FAILURE } else { 0 };
    let header = [&question[..2], &[0x81, 0x80 | code, 0, 1, 0, u8::from(given.is_some()), 0, 0, 0, 0]].concat();
    let record = given.map(|address| [&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4], &address.octets()[..]].concat());
    [&header, &question[12..end], &record.unwrap_or_default()].concat()
}

/// One that is silent, at an address of its own.
pub fn name_server() -> (UdpSocket, String) {
    static COUNT: AtomicU8 = AtomicU8::new(0);
    let [high, low] = std::process::id().to_be_bytes()[2..] else { unreachable!() };
    let address = format!("127.{}.{high}.{low}", 77 + COUNT.fetch_add(1, Ordering::SeqCst));
    let socket = UdpSocket::bind((address.as_str(), 53)).expect("port 53 is for root only");
    (socket, address)
}

fn asking(name_servers: &[String], options: &str, election: &Election) -> Command {
    let config = election.diary.directory().join("resolv.conf");
    let lines: Vec<_> = name_servers.iter().map(|address| format!("nameserver {address}\n")).collect();
    std::fs::write(&config, format!("{}options {options}\n", lines.concat())).unwrap();
    let mut wrapper = Command::new("unshare");
    let script = r#"mount --bind "$0" "$(readlink -f /etc/resolv.conf)" && exec "$@""#;
    wrapper.args(["--mount", "sh", "-c", script]).arg(&config);
    wrapper
}

/// Waits for a question. With a time limit, a signal to this process ends the wait (`signal(7)`).
pub fn asked(silent: &UdpSocket) {
    wait::for_some("the name server is asked", || match silent.recv(&mut [0; 512]) {
        Err(error) if error.kind() == ErrorKind::Interrupted => None,
        question => Some(question.unwrap()),
    });
}
