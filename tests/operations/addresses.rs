//! Where the servers are: by IPv6, and several behind one name.

use std::net::{TcpListener, UdpSocket};
use std::process::Command;

use nix::sys::signal::Signal;

use super::{election, server};
use crate::support::addresses::{pass_on, two_silent_and};

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
