//! An outage that is lived through on promises, as an operator sees it.

use std::net::SocketAddr;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{election, link, server};
use crate::support::ensemble::Build;
use crate::support::{Election, Ensemble, http, wait};

/// Whatever `zk-leaderctl` prints.
fn ctl(words: &[&str]) -> String {
    let mut ctl = Command::new(env!("CARGO_BIN_EXE_zk-leaderctl"));
    let output = ctl.args(words).args(["-z", &server().connect_string()]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Each of these metrics is 1.
fn assert_measured(at: SocketAddr, names: &[&str]) {
    let metrics = http::get(at, "/metrics").unwrap().body;
    for name in names {
        let name = format!("zk_leader_run_{name}{{");
        let shown = metrics.lines().any(|line| line.starts_with(&name) && line.ends_with(" 1"));
        assert!(shown, "{name} in\n{metrics}");
    }
}

/// Both hosts lose `ZooKeeper`, for three leases.
#[test]
fn who_vouches_is_told_before_an_outage_during_it_and_after_it() {
    let election = election();
    let links = [link(), link()];
    let hooks = election.diary.directory().join("hooks");
    let hook = format!("echo $ZK_LEADER_EVENT >>{}", hooks.display());
    let host =
        |index: usize, id: &str| election.host_behind(&links[index], id).session_timeout("6s").flag("--vouch").served();
    let first = host(0, "a").option("--hook", &hook).spawn();
    election.diary.until_started(1);
    let second = host(1, "b").spawn();
    let at = http::address_of(&first);
    let vouching = || http::status(at)["vouching"]["leads"].clone();
    wait::until("b is needed, and promises", || {
        let leads = vouching();
        leads["needed"][0]["id"] == "b" && leads["ready"] == true
    });
    let said = ctl(&["status", &election.name]);
    assert!(said.contains("by b (127.0.0.1:") && said.contains("; in an outage for up to 10m"), "{said}");
    assert!(said.contains("at-most-one, vouched"), "{said}");
    let found = ctl(&["doctor", &election.name]);
    assert!(
        found.contains("a runs on for 10m at most without ZooKeeper, while all of these hold back: b (127.0.0.1:"),
        "{found}"
    );
    links[0].stall();
    links[1].stall();
    first.until_logged("The command runs on without ZooKeeper, vouched for by b, until ");
    wait::until("three leases are over", || {
        vouching()["on_promises_for_seconds"].as_f64().is_some_and(|age| age > 18.0)
    });
    second.until_logged("The command of a may live by the promises of this host");
    assert_eq!(http::code(at, "/leader"), 200);
    assert_measured(at, &["vouched", "vouch_ready", "vouch_needed"]);
    wait::until("the hook was told", || std::fs::read_to_string(&hooks).unwrap_or_default().contains("vouched\n"));
    links[0].heal();
    links[1].heal();
    first.until_logged("ZooKeeper is back after ");
    second.until_logged("The command of a does not live by the promises of this host any more");
    assert_eq!(election.diary.starts().len(), 1, "the command ran on");
    election.diary.assert_no_overlap();
}

/// It came when the leader and the host that vouches for it were cut off already.
#[test]
fn who_was_not_asked_to_vouch_says_until_when_it_waits() {
    let election = election();
    let links = [link(), link()];
    let host = |index: usize, id: &str| election.host_behind(&links[index], id).flag("--vouch");
    let first = host(0, "a").served().spawn();
    election.diary.until_started(1);
    let _second = host(1, "b").spawn();
    let at = http::address_of(&first);
    wait::until("b promises", || http::status(at)["vouching"]["leads"]["needed"][0]["id"] == "b");
    for link in &links {
        link.stall();
    }
    election.until_candidates(0);
    let third = election.host("c").flag("--vouch").spawn();
    let waits = " UTC (--vouch-limit): a is gone or cut off, and did not ask this host to vouch";
    third.until_logged(waits);
    wait::until("it has left the line twice", || third.log().matches("Session was opened").count() > 2);
    assert_eq!(third.log().matches(waits).count(), 1, "{}", third.log());
    assert!(!third.log().contains("opened anew"), "{}", third.log());
    assert_eq!(election.diary.starts().len(), 1);
}

/// It was deleted while the leader alone is cut off: the host that made it anew was asked to vouch, and is not said not to have been.
#[test]
fn behind_a_record_that_was_lost_it_is_said_that_the_last_leader_is_not_known() {
    let election = election();
    let link = link();
    let first = election.host_behind(&link, "a").flag("--vouch").served().spawn();
    election.diary.until_started(1);
    let second = election.host("b").flag("--vouch").spawn();
    let at = http::address_of(&first);
    wait::until("b promises", || http::status(at)["vouching"]["leads"]["needed"][0]["id"] == "b");
    link.stall();
    election.admin.delete(&election.path("lease"));
    second.until_logged(" UTC: the lease record was lost or cannot be read; its last leader may lead until then");
    let said = ctl(&["status", &election.name]);
    assert!(said.contains("not known: the record was lost, and the command of its unknown holder may run"), "{said}");
    assert_eq!(election.diary.starts().len(), 1);
}

/// Its command has ended; it stays only to free the lease.
#[test]
fn who_is_asked_to_stop_while_it_stays_to_free_its_lease_says_how_long_it_still_does() {
    let election = election();
    let link = link();
    let mut host = election.host_behind(&link, "a").flag("--vouch").spawn();
    let command = election.diary.until_started(1).pid;
    link.stall();
    host.until_logged("The command runs on without ZooKeeper");
    kill(Pid::from_raw(command), Signal::SIGKILL).unwrap();
    host.until_logged("this process stays until it is back");
    host.signal(Signal::SIGTERM);
    host.until_logged("Stop requested: this process waits no longer than 1s for ZooKeeper to free the lease");
    assert_eq!(host.code(), 137, "{}", host.log());
    assert!(!host.log().contains("what still runs"), "{}", host.log());
}

/// As it is asked for, the limit is two leases.
#[test]
fn a_limit_that_is_short_for_the_lease_that_is_granted_is_told() {
    let build = Build { config: "minSessionTimeout=8000\n".to_owned(), ..Build::default() };
    let ensemble = Ensemble::built(1, &build);
    let election = Election::on(&ensemble.connect_string());
    let host = election.host("a").session_timeout("2s").flag("--vouch").option("--vouch-limit", "4s").spawn();
    host.until_logged("warning: --vouch-limit 4s is less than two leases, which are 16s with that: an outage may stop");
}
