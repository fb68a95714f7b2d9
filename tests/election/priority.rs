//! `--priority N`: who waits less. Whoever leads stays.

use nix::sys::signal::Signal;

use super::{election, link, secs};
use crate::support::election::STEADY;
use crate::support::traffic::Request;
use crate::support::{Election, Running, Subject, diary, wait};

fn line_up(election: &Election, hosts: &[(&str, &str)]) -> Vec<Running> {
    line_up_with(STEADY, election, hosts)
}

/// The first one has this T, the others wait for no end of their own leases.
fn line_up_with(session_timeout: &str, election: &Election, hosts: &[(&str, &str)]) -> Vec<Running> {
    let mut running = Vec::new();
    for (count, (id, priority)) in hosts.iter().enumerate() {
        let timeout = if count == 0 { session_timeout } else { STEADY };
        running.push(election.host(id).session_timeout(timeout).option("--priority", priority).spawn());
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
    election.until_renewed(1);
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
    let hosts = line_up_with("4s", &election, &[("a", "0"), ("b", "0"), ("c", "5")]);
    wait::pass(secs(4));
    let gone_at = diary::now();
    for pid in crate::support::subject::guards_of(hosts[0].pid()) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    }
    hosts[0].signal(Signal::SIGSTOP);
    let start = election.diary.until_started(2);
    assert_eq!((start.id.as_str(), start.told[1].as_str()), ("c", "unclean"));
    assert!(start.at.saturating_sub(gone_at) < secs(8), "T and two ticks, and not a whole lease more");
    election.diary.assert_no_overlap();
}

/// The record is made again, and says of nobody that he holds it; the last in line, without a priority, is told of nothing.
#[test]
fn a_record_that_was_deleted_is_taken_by_whoever_knows_of_it() {
    let election = election();
    let _hosts = line_up_with("6s", &election, &[("a", "5"), ("b", "5"), ("c", "0")]);
    election.admin.delete(&election.path("lease"));
    election.diary.until_started(2);
    election.diary.assert_no_overlap();
}

/// The leader keeps its candidate, and stands behind the higher one as soon as it holds nothing.
#[test]
fn who_stands_before_a_leader_that_was_disabled_and_enabled_while_it_stopped_leads_next() {
    let election = election();
    let leader = election.steady_host("a").witness(&election.diary, &["linger=1500"]).spawn();
    election.diary.until_started(1);
    let _next = election.steady_host("b").option("--priority", "7").spawn();
    election.until_candidates(2);
    let control = election.path("control");
    election.admin.create(&control, r#"{"v":1,"disabled":{"order":"1"}}"#);
    election.diary.until_noted("signal=15");
    election.admin.set(&control, r#"{"v":1}"#);
    assert_eq!(election.diary.until_started(2).id, "b");
    election.diary.assert_no_overlap();
    drop(leader);
}

/// Next in line for this long, it asks.
const SOON: &str = "500ms";

fn preempting(election: &Election, id: &str, priority: &str, after: &str) -> Subject {
    let host = election.steady_host(id).option("--priority", priority);
    host.option("--preempt-after", after)
}

/// A leader of priority 0 that has begun, and somebody like it behind it.
fn two_of_priority_0(election: &Election) -> Vec<Running> {
    line_up(election, &[("a", "0"), ("b", "0")])
}

#[test]
fn a_lower_leader_hands_over_to_a_higher_one_that_wants_it_and_goes_to_the_end_of_the_line() {
    let election = election();
    let hosts = two_of_priority_0(&election);
    let high = preempting(&election, "c", "5", SOON).spawn();
    let start = election.diary.until_started(2);
    assert_eq!((start.id.as_str(), start.told[1].as_str()), ("c", "clean"));
    high.until_logged("it was asked to hand over to us");
    hosts[0].until_logged("A higher priority is next in line, and asks for the leadership token=");
    election.until_candidates(3);
    // Nobody is higher than c; the old leader comes after the one that waited longer.
    assert!(!election.admin.exists(&election.path("preemption")), "the request has done its work");
    high.signal(Signal::SIGTERM);
    assert_eq!(election.diary.until_started(3).id, "b");
    hosts[1].signal(Signal::SIGTERM);
    assert_eq!(election.diary.until_started(4).id, "a");
    election.diary.assert_no_overlap();
}

#[test]
fn among_equals_and_without_the_option_nobody_has_to_go() {
    let election = election();
    let _leader = line_up(&election, &[("a", "0")]);
    // Each is next in line for a while: the equal, then the higher one that does not ask.
    let equal = preempting(&election, "c", "0", "0").spawn();
    election.until_candidates(2);
    wait::pass(secs(1));
    let lower = preempting(&election, "e", "-1", "0").spawn();
    election.until_candidates(3);
    let _higher = election.steady_host("d").option("--priority", "5").spawn();
    election.until_candidates(4);
    wait::pass(secs(1));
    assert_eq!((ids(&election), election.record()["holder"]["id"].as_str().unwrap()), (vec!["a".to_owned()], "a"));
    assert!([equal, lower].iter().all(|host| !host.log().contains("asked to hand over")));
}

#[test]
fn only_the_next_in_line_asks_and_the_higher_one_of_two_leads() {
    let election = election();
    let _hosts = two_of_priority_0(&election);
    let first = preempting(&election, "c", "5", "4s").spawn();
    election.until_candidates(3);
    // It comes in between, and the one behind it does not know.
    let second = preempting(&election, "d", "7", "6s").spawn();
    assert_eq!(election.diary.until_started(2).id, "d");
    first.until_logged("we are not next in line");
    assert!(!first.log().contains("it was asked to hand over to us"));
    second.until_logged("it was asked to hand over to us");
    wait::pass(secs(5));
    assert_eq!(ids(&election), ["a", "d"], "7 does not hand over to 5");
    election.diary.assert_no_overlap();
}

#[test]
fn an_unhealthy_host_takes_nothing_from_anybody_until_it_is_healthy() {
    let election = election();
    let _hosts = two_of_priority_0(&election);
    let sign = election.diary.directory().join("healthy");
    let high = preempting(&election, "c", "5", "0")
        .option("--health-cmd", &format!("test -e {}", sign.display()))
        .option("--health-interval", "100ms")
        .spawn();
    high.until_logged("The health command failed");
    wait::pass(secs(1));
    assert_eq!(ids(&election), ["a"]);
    std::fs::write(&sign, "").unwrap();
    assert_eq!(election.diary.until_started(2).id, "c");
    election.diary.assert_no_overlap();
}

#[test]
fn a_leader_that_does_not_stop_in_time_is_killed_before_the_higher_one_starts() {
    let election = election();
    let stubborn = election.steady_host("a").option("--stop-timeout", "1s");
    let _low = stubborn.witness(&election.diary, &["ignore-term", "daemonise"]).spawn();
    election.diary.until_started(1);
    let _high = preempting(&election, "b", "1", "0").spawn();
    let start = election.diary.until_started(2);
    assert_eq!((start.id.as_str(), start.told[1].as_str()), ("b", "clean"));
    election.diary.assert_no_overlap();
}

#[test]
fn a_request_for_another_term_ends_none_and_keeps_nobody_from_asking() {
    let election = election();
    let hosts = two_of_priority_0(&election);
    election.admin.create(&election.path("preemption"), r#"{"v":1,"token":1,"by":"x","priority":9}"#);
    hosts[0].until_logged("asks for the leadership token=1");
    wait::until("it is taken away", || !election.admin.exists(&election.path("preemption")));
    election.admin.create(&election.path("preemption"), "garbage");
    hosts[0].until_logged("could not be read");
    assert_eq!(ids(&election), ["a"]);
    let _high = preempting(&election, "c", "5", "0").spawn();
    assert_eq!(election.diary.until_started(2).id, "c");
    election.diary.assert_no_overlap();
}

/// Whoever stands further back costs nothing, so it does not matter how many they are.
#[test]
fn a_preemption_among_many_costs_no_more_than_one_among_few() {
    let election = election();
    let links: Vec<_> = (0..16).map(|_| link()).collect();
    let mut hosts = Vec::new();
    for (index, link) in links.iter().enumerate() {
        hosts.push(election.host_behind(link, &index.to_string()).session_timeout("60s").spawn());
        match index {
            0 => drop(election.diary.until_started(1)),
            _ => wait::until("it waits in line", || link.has_watched(index.min(2))),
        }
    }
    let asked = || links.iter().map(|link| link.asked().len()).collect::<Vec<_>>();
    let (before, line) = (asked(), election.candidates());
    let high = election.host("high").session_timeout("60s");
    hosts.push(high.option("--priority", "5").option("--preempt-after", "0").spawn());
    assert_eq!(election.diary.until_started(2).id, "high");
    election.until_candidates(links.len() + 1);
    // The leader, who goes to the end of the line, and those who stood next to it.
    wait::until("all who move have looked", || (0..=2).all(|index| asked()[index] > before[index]));
    wait::pass(wait::SETTLED);
    assert_eq!(asked()[3..], before[3..], "who does not move asks for nothing");
    for (link, before) in links.iter().zip(before) {
        // The old leader watches the last ones, behind whom it is now.
        let is_of_others = |request: &Request| line[3..12].iter().any(|name| request.text.contains(name));
        assert!(!link.asked()[before..].iter().any(is_of_others), "and nobody asks for them");
    }
    election.diary.assert_no_overlap();
}
