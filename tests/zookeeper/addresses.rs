//! Where the servers are: by IPv6, and several behind one name.

use std::io::{Write as _, copy};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use super::{election, server};
use crate::support::ports::Port;

/// Passes on what comes to `listener`, for as long as the test runs.
fn pass_on(listener: TcpListener, to: SocketAddr) {
    fn pipe(mut from: TcpStream, mut to: TcpStream) {
        let _ = copy(&mut from, &mut to);
        let _ = to.flush().and_then(|()| to.shutdown(Shutdown::Both));
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

#[test]
fn behind_one_name_a_silent_server_does_not_hide_the_others() {
    let election = election();
    let port = Port::reserve();
    // The first two take connections and never say a word.
    let _silent = ["127.0.0.2", "127.0.0.3"].map(|address| TcpListener::bind((address, port.number())).unwrap());
    let living = TcpListener::bind(("127.0.0.4", port.number())).unwrap();
    pass_on(living, server().server(0).address());
    let hosts = election.diary.directory().join("hosts");
    std::fs::write(&hosts, "127.0.0.2 ensemble\n127.0.0.3 ensemble\n127.0.0.4 ensemble\n").unwrap();
    let subject = election.host_at(&format!("ensemble:{}", port.number()), "a").command(&["true"]);
    let mut wrapper = Command::new("unshare");
    let script = r#"mount --bind "$0" /etc/hosts && exec "$@""#;
    wrapper.args(["--mount", "sh", "-c", script]).arg(&hosts);
    let mut host = subject.spawn_inside(wrapper);
    assert_eq!(host.code(), 0, "{}", host.log());
}
