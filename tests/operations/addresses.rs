//! Where the servers are: by IPv6, and several behind one name.

use std::net::{Ipv4Addr, TcpListener};

use nix::sys::signal::Signal;

use super::{election, link, server};
use crate::support::addresses::{NameServer, asked, name_server, pass_on, silent_name_server, two_silent_and};
use crate::support::apart::Apart;
use crate::support::wait::AT_ONCE;
use crate::support::{Running, Subject, diary, http, wait};

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

/// They are asked in a random order, within one limit.
#[test]
fn behind_one_name_a_silent_server_hides_the_others_from_no_operator() {
    let election = election();
    for _ in 0..4 {
        let (servers, mut wrapper) = two_silent_and("ensemble", server().server(0).address(), &election);
        wrapper.arg(env!("CARGO_BIN_EXE_zk-leaderctl")).args([
            "list",
            "--connect",
            &servers,
            "--connect-timeout",
            "9s",
        ]);
        let mut asker = Subject::start(wrapper);
        assert_eq!(asker.code(), 0, "{}", asker.log());
    }
}

#[test]
fn a_name_server_that_never_answers_does_not_hold_up_the_exit() {
    let election = election();
    let (silent, wrapper) = silent_name_server(&election);
    let mut host = election.host_at("ensemble.test:2181", "a").spawn_inside(wrapper);
    asked(&silent);
    ends_at_once(&mut host);
}

/// Each question takes a thread, which cannot be given up, of the little memory that this process may have.
#[test]
fn a_name_server_that_never_answers_is_not_asked_by_more_and_more_threads() {
    let election = election();
    let (_silent, wrapper) = silent_name_server(&election);
    let host = election.host_at("one.test:2181,two.test:2181,three.test:2181", "a").spawn_inside(wrapper);
    host.until_logged("Without ZooKeeper for 1");
    let threads = std::fs::read_dir(format!("/proc/{}/task", host.pid())).unwrap().count();
    assert!(threads <= 6, "{threads} threads: one for each name, our own, and the client library's");
    assert!(host.log().contains("no name server answers in time"), "{}", host.log());
}

#[test]
fn a_name_server_that_never_answers_holds_up_no_operator() {
    let election = election();
    let ask = |words: &[&str], limit: &str| {
        let (silent, mut wrapper) = silent_name_server(&election);
        wrapper.arg(env!("CARGO_BIN_EXE_zk-leaderctl")).args(words);
        wrapper.args(["--connect", "ensemble.test:2181", "--connect-timeout", limit]);
        let asker = Subject::start(wrapper);
        asked(&silent);
        asker
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

fn named() -> String {
    format!("ensemble.test:{}", server().server(0).address().port())
}

/// A wrong setting (78) would end the unit for good.
#[test]
fn a_host_that_vouches_waits_until_the_name_servers_answer() {
    let election = election();
    let name_server = NameServer::start(None);
    let host = || election.host_at(&named(), "a").flag("--vouch");
    let mut limited = host().option("--connect-timeout", "1s").spawn_inside(name_server.wrapper(&[], &election));
    assert_eq!(limited.code(), 69, "{}", limited.log());
    let mut stopped = host().spawn_inside(name_server.wrapper(&[], &election));
    stopped.until_logged("no address of this host leads to a server");
    ends_at_once(&mut stopped);
    let host = host().served().option("--on-exit", "exit").command(&["true"]);
    let mut host = host.spawn_inside(name_server.wrapper(&[], &election));
    host.until_logged("Cannot reach ZooKeeper: no address of this host leads to a server");
    // It lives, and whoever restarts those that do not mends no outage.
    let told = ["/livez", "/readyz", "/leader"].map(|page| http::code(http::address_of(&host), page));
    assert_eq!(told, [200, 503, 503]);
    name_server.tell(Ipv4Addr::LOCALHOST);
    assert_eq!(host.code(), 0, "{}", host.log());
}

/// Else all hosts would ask it in vain for as long as it runs.
#[test]
fn a_host_whose_network_comes_up_after_it_tells_others_an_address_that_they_can_ask() {
    let (election, apart) = (election(), Apart::new());
    let own = apart.server_at("127.0.0.1", server().server(0).address());
    let host = election.host_at(&format!("{own},192.0.2.1:2181"), "a").session_timeout("60s").flag("--vouch");
    let host = host.spawn_inside(apart.wrapper());
    host.until_logged("no address of this host but 127.0.0.1 leads to a server");
    apart.ip("address add 192.0.2.7/24 dev lo");
    let member = election.path("members/a");
    wait::until("it says where it is asked", || election.admin.exists(&member));
    let member = election.admin.read(&member);
    assert!(member.contains(r#""vouch":"192.0.2.7:"#), "{member}");
    assert!(!host.log().contains("No other host can ask this one"), "{}", host.log());
}

/// A name may be wrong for good.
#[test]
fn where_only_a_server_of_its_own_is_found_a_host_goes_on_after_a_session_timeout_and_says_what_that_means() {
    let (election, apart) = (election(), Apart::new());
    let own = apart.server_at("127.0.0.1", server().server(0).address());
    let host = election.host_at(&format!("{own},192.0.2.1:2181"), "a").session_timeout("4s").flag("--vouch");
    let host = host.command(&["true"]).option("--on-exit", "exit");
    let mut host = host.spawn_inside(apart.wrapper());
    assert_eq!(host.code(), 0, "{}", host.log());
    for told in ["host but 127.0.0.1 leads", "warning: No other host can ask this one at 127.0.0.1 to vouch"] {
        assert!(host.log().contains(told), "{}", host.log());
    }
}

/// `getaddrinfo(3)` needs five seconds to pass over it; a connection may take three.
#[test]
fn a_first_name_server_that_is_silent_costs_neither_a_place_in_line_nor_the_leadership() {
    let (election, link) = (election(), link());
    let (_silent, silent) = name_server();
    let wrapper = NameServer::start(Some(Ipv4Addr::LOCALHOST)).wrapper(&[silent], &election);
    let servers = format!("ensemble.test:{}", link.address().port());
    let host = election.host_at(&servers, "a").session_timeout("15s").spawn_inside(wrapper);
    election.diary.until_started(1);
    let token = election.term().mzxid;
    for times in 1..=2 {
        link.reset();
        host.until_logged_times("Contact with ZooKeeper was restored", times);
    }
    assert_eq!(election.term().mzxid, token);
    assert_eq!(election.diary.starts().len(), 1, "the command ran on");
}

#[test]
fn a_host_that_vouches_and_whose_name_server_never_answers_ends_at_once() {
    let election = election();
    let (silent, wrapper) = silent_name_server(&election);
    let mut host = election.host_at("ensemble.test:2181", "a").flag("--vouch").spawn_inside(wrapper);
    asked(&silent);
    ends_at_once(&mut host);
    assert!(host.log().contains("we were asked to stop"), "{}", host.log());
}

/// There is no change of phase yet.
#[test]
fn a_host_that_vouches_says_why_it_ends_without_an_address() {
    let election = election();
    let (_silent, wrapper) = silent_name_server(&election);
    let host = election.host_at("ensemble.test:2181", "a").flag("--vouch").option("--connect-timeout", "1s");
    let mut host = host.spawn_inside(wrapper);
    assert_eq!(host.code(), 69, "{}", host.log());
    assert!(host.log().contains("error: ZooKeeper was not reached in time"), "{}", host.log());
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
