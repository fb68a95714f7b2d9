//! handover: who leads afterwards, who makes room, and what whoever waits for it is told.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::operator::{ctl, ctl_at, process};
use super::queue::{hosts, hosts_with, line, stops_slowly, until_last_started};
use super::{election, link, server};
use crate::support::election::{SESSION_TIMEOUT, STEADY};
use crate::support::{Admin, Election, wait};

#[test]
fn a_handover_goes_to_the_next_in_line_and_the_old_leader_to_the_end() {
    let election = election();
    let _hosts = hosts(&election, &["a", "b", "c"]);
    let said = ctl(&["handover", &election.name, "--wait"]);
    assert!(said.code == 0 && said.output.contains("b leads, token "), "{said:?}");
    assert_eq!(until_last_started(&election, 2), "b");
    assert_eq!(election.diary.starts()[1].told[1], "clean");
    wait::until("the old leader stands at the end", || line(&election) == ["b", "c", "a"]);
    election.diary.assert_no_overlap();
}

/// Its successor is far away, and reads of the release when the old leader could be before it in line again.
#[test]
fn a_leader_of_higher_priority_hands_over_to_a_host_that_is_far_away() {
    let (election, far) = (election(), link());
    let _first = election.steady_host("a").option("--priority", "10").spawn();
    election.diary.until_started(1);
    let _second = election.host_behind(&far, "b").session_timeout(STEADY).spawn();
    wait::until("it is in line", || line(&election) == ["a", "b"]);
    wait::until("it has said who it is", || election.admin.exists(&election.path("members/b")));
    far.tamper(|frame| {
        wait::pass(Duration::from_millis(100));
        frame
    });
    let said = ctl(&["handover", &election.name, "--wait"]);
    assert!(said.code == 0 && said.output.contains("b leads, token "), "{said:?}");
    assert_eq!(election.diary.until_started(2).id, "b");
    election.diary.assert_no_overlap();
}

/// Elected is not yet led: what comes before the command may last, and may fail.
#[test]
fn a_handover_is_done_when_the_command_of_the_next_leader_runs() {
    let election = election();
    let (goes_on, well) = (election.diary.directory().join("goes-on"), election.diary.directory().join("well"));
    let step = format!("until test -e {}; do sleep 0.05; done; test -e {}", goes_on.display(), well.display());
    let _first = election.steady_host("a").option("--on-loss", "rejoin").spawn();
    election.diary.until_started(1);
    let _second = election.steady_host("b").option("--before-start", &step).option("--stand-back", "1s").spawn();
    wait::until("it has said who it is", || election.admin.exists(&election.path("members/b")));

    let says_so = || election.admin.read(&election.path("members/b")).contains(r#""eligible":true"#);
    let until_b_may_lead = || wait::until("it has stood back", || line(&election) == ["a", "b"] && says_so());
    let said = ctl(&["handover", &election.name, "--wait", "--timeout", "5s"]);
    assert!(said.code == 1 && said.output.contains("b is elected, but its command does not run after 5s"), "{said:?}");
    assert!(said.output.contains("b is elected; it is preparing\n"), "{said:?}");
    std::fs::write(&goes_on, "").unwrap();
    assert_eq!(election.diary.until_started(2).id, "a", "its --before-start has failed");

    until_b_may_lead();
    let said = ctl(&["handover", &election.name, "--wait"]);
    assert!(said.code == 1 && said.output.contains("nobody else took over: a leads again"), "{said:?}");

    std::fs::write(&well, "").unwrap();
    until_b_may_lead();
    let said = ctl(&["handover", &election.name, "--wait"]);
    assert!(said.code == 0 && said.output.contains("b leads, token "), "{said:?}");
    assert_eq!(election.diary.until_started(4).id, "b");
    election.diary.assert_no_overlap();
}

/// Its order has done its work by then: whoever deletes it takes nothing back.
#[test]
fn a_handover_goes_on_though_its_order_is_deleted_once_another_host_is_elected() {
    let election = election();
    let goes_on = election.diary.directory().join("goes-on");
    let step = format!("until test -e {}; do sleep 0.05; done", goes_on.display());
    let _first = election.steady_host("a").option("--on-loss", "rejoin").spawn();
    election.diary.until_started(1);
    let _second = election.steady_host("b").option("--before-start", &step).spawn();
    let b_says = |words: &str| {
        let path = election.path("members/b");
        election.admin.exists(&path) && election.admin.read(&path).contains(words)
    };
    wait::until("it is in line", || line(&election) == ["a", "b"] && b_says(r#""eligible":true"#));
    let said = std::thread::scope(|scope| {
        let said = scope.spawn(|| ctl(&["handover", &election.name, "--wait"]));
        wait::until("b prepares", || b_says(r#""phase":"preparing""#));
        election.admin.delete(&election.path("control"));
        // It looks again several times.
        wait::pass(wait::millis(500));
        std::fs::write(&goes_on, "").unwrap();
        said.join().unwrap()
    });
    assert!(said.code == 0 && said.output.contains("b leads, token "), "{said:?}");
}

/// Without --wait, what the next host does meanwhile is told as it is.
#[test]
fn a_handover_that_nobody_waits_for_does_not_say_that_a_host_leads_that_still_prepares() {
    let election = election();
    let well = election.diary.directory().join("well");
    let step = format!("until test -e {}; do sleep 0.05; done", well.display());
    // Each of them prepares for as long as it takes.
    let prepared = |id| election.steady_host(id).option("--on-loss", "rejoin").option("--before-start", &step).spawn();
    let _hosts = ["a", "b"].map(prepared);
    std::fs::write(&well, "").unwrap();
    let first = election.diary.until_started(1).id;
    std::fs::remove_file(&well).unwrap();
    for id in ["a", "b"] {
        wait::until("it has said who it is", || election.admin.exists(&election.path(&format!("members/{id}"))));
    }
    let said = ctl(&["handover", &election.name]);
    assert!(said.code == 0 && !said.output.contains(" leads"), "{said:?}");
    let next = if first == "a" { "b" } else { "a" };
    let elected = || ctl(&["status", &election.name]).output.contains(&format!("{next} (pid"));
    wait::until("the next one is elected", elected);
    // It prepares until the next order, too, which is for its own term.
    assert_eq!(election.diary.starts().len(), 1);
}

/// Another operator disables it meanwhile.
#[test]
fn who_waits_for_a_handover_is_told_at_once_that_the_election_is_disabled() {
    let election = election();
    let _first = stops_slowly(&election, "a");
    election.diary.until_started(1);
    let _second = election.steady_host("b").spawn();
    let says_so = |id: &str| election.admin.find(&election.path(&format!("members/{id}")));
    wait::until("the other one may lead", || {
        says_so("b").is_some_and(|(member, _)| member.contains(r#""eligible":true"#))
    });
    let words = ["handover", &election.name, "--wait", "--timeout", "15s"];
    let mut order = process(&server().connect_string(), &words, &[]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(order.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "a is stopping"), "it never said so");
    assert_eq!(ctl(&["disable", &election.name, "--reason", "db upgrade"]).code, 0);
    let rest: Vec<_> = lines.collect();
    let ends = format!(": db upgrade); zk-leaderctl enable {} comes first", election.name);
    let is_told = |line: &String| {
        line.starts_with("nobody takes over: meanwhile the election is disabled (by ") && line.ends_with(&ends)
    };
    assert_eq!(order.wait().unwrap().code(), Some(1), "{rest:?}");
    assert!(rest.last().is_some_and(is_told), "{rest:?}");
    let control = election.admin.read(&election.path("control"));
    assert!(!control.contains("handover"), "the order is taken back: {control}");
}

#[test]
fn a_targeted_handover_ends_with_the_target_leading() {
    let election = election();
    let _hosts = hosts(&election, &["a", "b", "c", "d"]);
    let said = ctl(&["handover", &election.name, "--to", "d"]);
    assert!(said.code == 0 && said.output.contains("d leads, token "), "{said:?}");
    assert_eq!(until_last_started(&election, 2), "d");
    election.until_candidates(4);
    election.diary.assert_no_overlap();
    let control = election.admin.read(&election.path("control"));
    assert!(!control.contains("handover"), "the order has done its work: {control}");
}

/// As zk-leaderctl leaves it behind that is ended, or loses the servers, while it waits.
fn order_for_d(election: &Election, stop: bool) {
    let (control, token) = (election.path("control"), election.admin.stat(&election.path("term")).unwrap().mzxid);
    let order = format!(
        r#"{{"v":1,"handover":{{"order":"h","token":{token},"to":"d","stop":{stop},"by":"x","for_ms":3600000}}}}"#
    );
    if election.admin.exists(&control) {
        election.admin.set(&control, &order);
    } else {
        election.admin.create(&control, &order);
    }
}

#[test]
fn hosts_that_make_room_lead_when_the_leader_and_the_target_are_dead_though_the_order_lasts() {
    let election = election();
    // The session of the target, which dies, ends soon.
    let timeout = |id: &str| if id == "d" { SESSION_TIMEOUT } else { STEADY };
    let mut hosts = hosts_with(&election, &["a", "b", "c", "d"], timeout);
    wait::until("it has said who it is", || election.admin.exists(&election.path("members/d")));
    order_for_d(&election, false);
    wait::until("there is room", || line(&election) == ["a", "d"]);
    wait::pass(wait::SETTLED);
    assert_eq!(line(&election), ["a", "d"], "the target is there");
    for place in [3, 0] {
        hosts.remove(place).kill();
    }
    assert!(["b", "c"].contains(&until_last_started(&election, 2).as_str()));
    wait::until("both are in line", || election.candidates().len() == 2);
    assert!(election.admin.read(&election.path("control")).contains("handover"), "the order lasts");
    election.diary.assert_no_overlap();
}

/// It lives, and says that it cannot take over.
#[test]
fn hosts_that_make_room_come_back_when_the_target_becomes_unable_though_the_order_lasts() {
    let election = election();
    let sign = election.diary.directory().join("healthy");
    std::fs::write(&sign, "").unwrap();
    let _hosts = hosts(&election, &["a", "b", "c"]);
    let target = election.steady_host("d").option("--health-cmd", &format!("test -e {}", sign.display()));
    let _target = target.option("--health-interval", "100ms").option("--health-failures", "1").spawn();
    election.until_candidates(4);
    wait::until("it has said who it is", || election.admin.exists(&election.path("members/d")));
    order_for_d(&election, false);
    wait::until("there is room", || line(&election) == ["a", "d"]);
    std::fs::remove_file(&sign).unwrap();
    wait::until("they are back", || election.candidates().len() == 3);
    assert!(election.admin.read(&election.path("control")).contains("handover"), "the order lasts");
    election.diary.assert_no_overlap();
}

#[test]
fn hosts_that_make_room_come_back_behind_the_old_leader_when_the_target_leads_though_the_order_lasts() {
    let election = election();
    let _hosts = hosts(&election, &["a", "b", "c", "d"]);
    wait::until("it has said who it is", || election.admin.exists(&election.path("members/d")));
    order_for_d(&election, false);
    wait::until("there is room", || line(&election) == ["a", "d"]);
    order_for_d(&election, true);
    assert_eq!(until_last_started(&election, 2), "d");
    election.until_candidates(4);
    assert_eq!(line(&election)[..2], ["d", "a"]);
    assert!(election.admin.read(&election.path("control")).contains("handover"), "the order lasts");
    election.diary.assert_no_overlap();
}

#[test]
fn a_target_that_does_not_take_over_leaves_the_old_leader_leading_again() {
    let election = election();
    let timeout = |id: &str| if id == "c" { SESSION_TIMEOUT } else { STEADY };
    let hosts = hosts_with(&election, &["a", "b", "c"], timeout);
    wait::until("it has said who it is", || election.admin.exists(&election.path("members/c")));
    // It stands in line until its session is over, and claims nothing.
    hosts[2].signal(Signal::SIGSTOP);
    let said = ctl(&["handover", &election.name, "--to", "c"]);
    hosts[2].signal(Signal::SIGCONT);
    assert!(said.code == 1, "{said:?}");
    assert!(said.output.contains("a leads"), "{said:?}");
    election.diary.assert_no_overlap();
    wait::until("everyone is back in line", || election.candidates().len() == 3);
}

/// The answer to the order comes late.
#[test]
fn who_waits_for_a_handover_ends_no_later_than_the_order() {
    let (election, slow) = (election(), link());
    let first = election.steady_host("a").witness(&election.diary, &["ignore-term"]).option("--stop-timeout", "60s");
    let _first = first.spawn();
    election.diary.until_started(1);
    let _second = election.steady_host("b").spawn();
    election.until_candidates(2);
    wait::until("it has said who it is", || election.admin.exists(&election.path("members/b")));
    let (admin, control) = (Admin::to(&server().connect_string()), election.path("control"));
    let mut is_late = false;
    slow.tamper(move |frame| {
        if !is_late && admin.find(&control).is_some_and(|(order, _)| order.contains("handover")) {
            is_late = true;
            wait::pass(Duration::from_millis(2500));
        }
        frame
    });
    let said = ctl_at(&slow.connect_string(), &["handover", &election.name, "--wait", "--timeout", "5s"], &[]);
    assert!(said.code == 1 && said.output.ends_with("a is still stopping after 5s; it continues\n"), "{said:?}");
}

/// One that stands between the leader and the target hangs, for longer than that.
#[test]
fn who_does_not_make_room_in_time_ends_the_handover_before_the_order_lapses() {
    let election = election();
    let mut hosts = Vec::new();
    for id in ["a", "b", "c"] {
        hosts.push(election.host(id).session_timeout("40s").spawn());
        election.until_candidates(hosts.len());
        wait::until("it has said who it is", || election.admin.exists(&election.path(&format!("members/{id}"))));
    }
    hosts[1].signal(Signal::SIGSTOP);
    for limit in ["3s", "60s"] {
        let said = std::thread::scope(|scope| {
            let asked = scope.spawn(|| ctl(&["handover", &election.name, "--to", "c", "--timeout", limit]));
            wait::until("it is not waited for any longer", || asked.is_finished());
            asked.join().unwrap()
        });
        let told = said.output.contains("b does not make room for c; ");
        assert!(said.code == 1 && told, "of {limit}: {said:?}");
    }
    hosts[1].signal(Signal::SIGCONT);
}

#[test]
fn a_handover_is_refused_with_the_reason_where_nobody_could_take_over() {
    let election = election();
    let refused = |to: &[&str], parts: &[&str]| {
        let said = ctl(&[&["handover", election.name.as_str()], to].concat());
        assert!(said.code == 1 && parts.iter().all(|part| said.output.contains(part)), "{said:?}");
    };
    election.prepare();
    refused(&[], &["nobody leads", "the lease is free"]);
    let _hosts = hosts(&election, &["a"]);
    refused(&[], &["nobody else is there"]);
    refused(&["--to", "x"], &["there is no participant x"]);
    assert_eq!(ctl(&["handover", &election.name, "--to", "a"]).code, 0, "it leads already");
    let sick = r#"{"v":1,"id":"b","host":"h","eligible":false,"why_not":["unhealthy"]}"#;
    wait::until("the members' directory is there", || election.admin.exists(&election.path("members/a")));
    election.admin.create(&election.path("members/b"), sick);
    refused(&[], &["nobody can take over", "b (unhealthy)"]);
    refused(&["--to", "b"], &["b cannot take over", "unhealthy"]);
    let host = format!("host-of-{}", election.name);
    let drained = format!(r#"{{"v":1,"id":"b","host":"{host}","eligible":false,"why_not":["drained"]}}"#);
    election.admin.set(&election.path("members/b"), &drained);
    refused(&["--to", "b"], &["b cannot take over: drained\n"]);
    election.admin.create_all("/zk-leader-run/drains");
    let drain = format!("/zk-leader-run/drains/{host}");
    election.admin.create(&drain, r#"{"v":1,"order":"1","reason":"disk","by":"anna@h"}"#);
    let remedy = format!(" until somebody ends it: \"disk\"; zk-leaderctl undrain {host} ends that");
    refused(&["--to", "b"], &["b cannot take over: drained by anna@h", &remedy]);
    election.admin.delete(&drain);
    assert_eq!(election.diary.starts().len(), 1);
}

/// Only the leader has a candidate.
#[test]
fn without_a_line_the_others_may_lead_and_whoever_is_first_takes_over() {
    let election = election();
    let single = |id| election.steady_host(id).option("--recipe", "single").option("--on-loss", "rejoin").spawn();
    let _first = single("a");
    election.diary.until_started(1);
    let _second = single("b");
    let second = || ctl(&["status", &election.name, "--json"]).json()["contenders"][1].clone();
    wait::until("it has said who it is", || second()["id"] == "b");
    let found = wait::held_within(wait::LIMIT, || second()["eligible"] == true);
    assert!(found, "b may be elected: {}", second());
    let said = ctl(&["handover", &election.name, "--to", "b"]);
    assert!(
        said.code == 1 && said.output.contains("with --recipe single there is no line; leave --to out"),
        "{said:?}"
    );
    let said = ctl(&["handover", &election.name, "--wait"]);
    assert!(said.output.starts_with("a is told to stop its command\n"), "{said:?}");
    // Whoever is first; the old leader may be, too.
    let next = election.diary.until_started(2).id;
    let (code, end) =
        if next == "b" { (0, "b leads, token ") } else { (1, "nobody else took over: a leads again, token ") };
    assert!(said.code == code && said.output.contains(end), "{said:?}");
    election.diary.assert_no_overlap();
}

#[test]
fn a_handover_between_several_leaders_is_refused_with_what_moves_one() {
    let election = election();
    let host = election.steady_host("a").option("--leaders", "3").spawn();
    election.diary.until_started(1);
    // Nobody waits for it.
    host.until_logged("record of the number of leaders");
    assert!(!host.log().contains("held for"), "{}", host.log());
    let said = ctl(&["handover", &election.name]);
    let parts = ["This election has 3 leaders, and handover works only with one", "zk-leaderctl drain HOST"];
    assert!(said.code == 1 && parts.iter().all(|part| said.output.contains(part)), "{said:?}");
}

#[test]
fn handovers_holds_and_cuts_at_once_never_let_two_run() {
    let election = election();
    let link = link();
    let mut all = hosts_with(&election, &["a", "b", "c"], |_| SESSION_TIMEOUT);
    all.push(election.host_behind(&link, "d").spawn());
    election.until_candidates(4);
    let servers = super::server().connect_string();
    let order = |words: &[&str]| {
        let words = [&words[..1], &[election.name.as_str()], &words[1..]].concat();
        process(&servers, &words, &[]).stdout(Stdio::null()).spawn().unwrap()
    };
    for round in 0..3 {
        let mut orders = vec![
            order(&["handover", "--wait", "--timeout", "5s"]),
            order(&["handover", "--to", "d", "--timeout", "5s"]),
        ];
        if round == 1 {
            link.cut();
            orders.push(order(&["disable", "--reason", "r", "--for", "1s"]));
        }
        for order in &mut orders {
            order.wait().unwrap();
        }
        link.heal();
        assert_eq!(order(&["enable", "--wait"]).wait().unwrap().code(), Some(0));
    }
    election.until_candidates(4);
    election.diary.assert_no_overlap();
}
