//! Where the servers are: by IPv6, and several behind one name.

use std::net::{TcpListener, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};

use nix::sys::signal::Signal;

use super::{election, server};
use crate::support::addresses::{pass_on, two_silent_and};
use crate::support::wait::AT_ONCE;
use crate::support::{Election, Running, Subject, diary, wait};

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

/// A name server that takes questions and never answers, and what makes it the one that is asked. `getaddrinfo(3)` cannot be
/// given up, and would wait for minutes with these options.
fn silent_name_server(election: &Election) -> (UdpSocket, Command) {
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

#[test]
fn a_name_server_that_never_answers_does_not_hold_up_the_exit() {
    let election = election();
    let (silent, wrapper) = silent_name_server(&election);
    let mut host = election.host_at("ensemble.test:2181", "a").spawn_inside(wrapper);
    silent.recv(&mut [0; 512]).unwrap();
    ends_at_once(&mut host);
}

#[test]
fn a_name_server_that_never_answers_holds_up_no_operator() {
    let election = election();
    let ask = |words: &[&str], limit: &str| {
        let (silent, mut wrapper) = silent_name_server(&election);
        wrapper.arg(env!("CARGO_BIN_EXE_zk-leaderctl")).args(words);
        wrapper.args(["--connect", "ensemble.test:2181", "--connect-timeout", limit]);
        let asked = Subject::start(wrapper);
        silent.recv(&mut [0; 512]).unwrap();
        asked
    };
    let questions: [&[&str]; 5] =
        [&["status", "a"], &["list"], &["doctor", "a"], &["enable", "a"], &["token-check", "5", "a"]];
    for words in questions {
        ends_at_once(&mut ask(words, "10m"));
        let mut hasty = ask(words, "200ms");
        let asked_at = diary::now();
        assert_eq!(hasty.code(), 2, "{words:?}: {}", hasty.log());
        let took = diary::now().saturating_sub(asked_at);
        assert!(took < AT_ONCE, "{words:?}: {took:?}");
    }
}

/// By SIGTERM.
#[track_caller]
fn ends_at_once(process: &mut Running) {
    let sent_at = diary::now();
    process.signal(Signal::SIGTERM);
    process.status();
    let took = diary::now().saturating_sub(sent_at);
    assert!(took < AT_ONCE, "{took:?}: {}", process.log());
}
