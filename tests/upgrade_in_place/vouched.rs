//! Hosts that vouch for one another.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::package::Package;
use crate::support::subject::{children_of, guards_of};
use crate::support::{Election, Proxy, Running, http, wait};

/// What a host says of itself, and which program says it. Its contact with a busy server, and so its phase, may come and go.
fn member(election: &Election, id: &str) -> (Value, Value) {
    let (text, _) = election.admin.find(&election.path(&format!("members/{id}"))).unwrap();
    let mut member: Value = serde_json::from_str(&text).unwrap();
    let [version, ..] = ["version", "phase", "since"].map(|name| member[name].take());
    (member, version)
}

/// As the newest program of this host tells it.
fn status(host: &Running) -> Value {
    let log = host.log();
    let address = log.rsplit("HTTP is served at ").next().unwrap().split_whitespace().next().unwrap();
    http::status(address.parse().unwrap())
}

/// The open files of a process that are sockets, by their inodes.
fn sockets_of(pid: i32) -> BTreeSet<String> {
    let links = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let links = links.filter_map(|link| fs::read_link(link.path()).ok()?.to_str().map(str::to_owned));
    links.filter_map(|link| Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())).collect()
}

/// Those at which this host is asked for promises.
fn udp_sockets_of(host: &Running) -> BTreeSet<String> {
    let table = fs::read_to_string(format!("/proc/{}/net/udp", host.pid())).unwrap();
    let inodes = table.lines().filter_map(|line| line.split_whitespace().nth(9).map(str::to_owned)).collect();
    sockets_of(host.pid()).intersection(&inodes).cloned().collect()
}

/// Whoever held it open would keep the port of a killed supervisor from the one that is started next.
fn is_held_by_the_supervisor_alone(host: &Running) {
    let sockets = udp_sockets_of(host);
    assert!(!sockets.is_empty(), "it has none");
    for pid in [guards_of(host.pid()), children_of(host.pid())].concat() {
        assert!(sockets_of(pid).is_disjoint(&sockets), "{pid} holds it");
    }
}

/// The socket is handed over: others know its port from `ZooKeeper`, and need no word of it.
#[test]
fn hosts_that_vouch_keep_their_ports_and_their_promises_reach_a_leader_that_was_upgraded() {
    let (election, package) = (crate::election(), Package::new());
    let links = ["a", "b"].map(|_| crate::link());
    let host =
        |at: usize, id: &str| election.host_behind(&links[at], id).session_timeout("6s").flag("--vouch").served();
    let leader = package.on(host(0, "a")).spawn();
    let start = election.diary.until_started(1);
    let standby = package.on(host(1, "b")).spawn();
    let is_ready = || status(&leader)["vouching"]["leads"]["ready"] == true;
    wait::until("b is needed, and promises", || {
        !status(&leader)["vouching"]["leads"]["needed"][0].is_null() && is_ready()
    });
    let members = || ["a", "b"].map(|id| member(&election, id));
    let (before, command) = (members(), status(&leader)["command"].clone());
    package.upgrade(&standby);
    package.install();
    package.upgrade(&leader);
    let is_new = || members().iter().zip(&before).all(|((_, now), (_, before))| now != before);
    wait::until("both have said which program they run", is_new);
    let (after, before) = (members().map(|(member, _)| member), before.map(|(member, _)| member));
    for (after, before) in after.iter().zip(&before) {
        assert_eq!(after["vouch"], before["vouch"], "at another port");
        assert_eq!(after, before);
    }
    assert_eq!(status(&leader)["command"], command, "the command is another one");
    [&leader, &standby].into_iter().for_each(is_held_by_the_supervisor_alone);
    links.iter().for_each(Proxy::stall);
    leader.until_logged("The command runs on without ZooKeeper, vouched for by b, until ");
    let promised = || status(&leader)["vouching"]["leads"]["on_promises_for_seconds"].as_f64();
    wait::until("a lease is over", || promised().is_some_and(|seconds| seconds > 7.0));
    links.iter().for_each(Proxy::heal);
    leader.until_logged("ZooKeeper is back after ");
    assert_eq!(election.diary.starts(), [start]);
}
