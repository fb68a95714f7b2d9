//! `--priority N`: who waits less. Whoever leads stays.

use nix::sys::signal::Signal;

use super::{election, secs};
use crate::support::{Election, Running, diary, wait};

fn line_up(election: &Election, hosts: &[(&str, &str)]) -> Vec<Running> {
    let mut running = Vec::new();
    for (count, (id, priority)) in hosts.iter().enumerate() {
        running.push(election.host(id).session_timeout("4s").option("--priority", priority).spawn());
        election.until_candidates(count + 1);
        // Whoever came first leads before anyone else comes.
        election.diary.until_started(1);
    }
    running
}

fn ids(election: &Election) -> Vec<String> {
    election.diary.starts().into_iter().map(|start| start.id).collect()
}

#[test]
fn the_higher_priority_leads_first_and_equals_lead_in_the_order_in_which_they_came() {
    let election = election();
    let hosts = [("low", "-3"), ("a", "0"), ("b", "7"), ("c", "0"), ("d", "7"), ("e", "999"), ("f", "-999")];
    let mut running = line_up(&election, &hosts);
    let order = ["low", "e", "b", "d", "a", "c", "f"];
    for (turn, id) in order.iter().enumerate() {
        assert_eq!(election.diary.until_started(turn + 1).id, *id);
        let at = hosts.iter().position(|(host, _)| host == id).unwrap();
        running[at].signal(Signal::SIGTERM);
        assert_eq!(running[at].code(), 0);
    }
    assert_eq!(ids(&election), order);
    election.diary.assert_no_overlap();
}

#[test]
fn a_leader_is_not_replaced_because_a_higher_one_comes() {
    let election = election();
    let hosts = line_up(&election, &[("a", "0"), ("b", "0"), ("c", "5")]);
    let version = election.record_version();
    wait::until("the leader renews", || election.record_version() > version + 3);
    assert_eq!(ids(&election), ["a"]);
    assert_eq!(election.record()["holder"]["id"], "a");
    // After a crash of the leader, too, the higher one is first.
    hosts[0].kill();
    assert_eq!(election.diary.until_started(2).id, "c");
    election.diary.assert_no_overlap();
}

#[test]
fn who_moves_up_before_others_has_its_wait_behind_it_all_the_same() {
    let election = election();
    let hosts = line_up(&election, &[("a", "0"), ("b", "0"), ("c", "5")]);
    wait::pass(secs(4));
    let gone_at = diary::now();
    for pid in crate::support::subject::children_of(hosts[0].pid()) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    }
    hosts[0].signal(Signal::SIGSTOP);
    let start = election.diary.until_started(2);
    assert_eq!((start.id.as_str(), start.told[1].as_str()), ("c", "unclean"));
    assert!(start.at.saturating_sub(gone_at) < secs(8), "T and two ticks, and not a whole lease more");
    election.diary.assert_no_overlap();
}
