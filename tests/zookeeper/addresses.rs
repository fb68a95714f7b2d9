//! Where the servers are: by IPv6, and several behind one name.

use std::io::{Write as _, copy};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::thread;

use nix::sys::signal::Signal;

use super::{election, server};
use crate::support::Election;
use crate::support::ports::Port;

/// Passes on what comes to `listener`, for as long as the test runs.
fn pass_on(listener: TcpListener, to: SocketAddr) {
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

#[test]
fn an_ipv6_address_is_as_good_as_another() {
    let election = election();
    let listener =
        TcpListener::bind("[::1]:0").expect("there is no IPv6 loopback: sysctl net.ipv6.conf.lo.disable_ipv6=0");
    let servers = listener.local_addr().unwrap().to_string();
    pass_on(listener, server().server(0).address());
    let mut host = election.host_at(&servers, "a").command(&["true"]).spawn();
    assert_eq!(host.code(), 0, "{}", host.log());
    assert!(servers.starts_with("[::1]:"));
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

#[test]
fn behind_one_name_a_silent_server_does_not_hide_the_others() {
    let election = election();
    let (servers, wrapper) = two_silent_and("ensemble", server().server(0).address(), &election);
    let mut host = election.host_at(&servers, "a").command(&["true"]).spawn_inside(wrapper);
    assert_eq!(host.code(), 0, "{}", host.log());
}

/// `getaddrinfo(3)` cannot be given up, and would wait for minutes with these options.
#[test]
fn a_name_server_that_never_answers_does_not_hold_up_the_exit() {
    let election = election();
    let [high, low] = std::process::id().to_be_bytes()[2..] else { unreachable!() };
    let name_server = format!("127.77.{high}.{low}");
    let silent = UdpSocket::bind((name_server.as_str(), 53)).expect("port 53 is for root only");
    let config = election.diary.directory().join("resolv.conf");
    std::fs::write(&config, format!("nameserver {name_server}\noptions timeout:30 attempts:5\n")).unwrap();
    let mut wrapper = Command::new("unshare");
    let script = r#"mount --bind "$0" "$(readlink -f /etc/resolv.conf)" && exec "$@""#;
    wrapper.args(["--mount", "sh", "-c", script]).arg(&config);
    let mut host = election.host_at("ensemble.test:2181", "a").spawn_inside(wrapper);
    silent.recv(&mut [0; 512]).unwrap();
    host.signal(Signal::SIGTERM);
    host.status();
}
