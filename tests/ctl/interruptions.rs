//! An operator waits for what becomes of an order, and the server goes away, or Ctrl-C is pressed.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::operator::{Said, ctl, ctl_at, process, three_hours_fast};
use super::{election, link, server};
use crate::support::proxy::request;
use crate::support::{Election, Running, wait};

/// `a` leads, needs three seconds to stop, and `b` is next.
fn two(election: &Election) -> Vec<Running> {
    let mut hosts = Vec::new();
    for id in ["a", "b"] {
        let host = election.steady_host(id).option("--stop-signal", "USR1").option("--stop-timeout", "3s");
        hosts.push(host.spawn());
        election.until_candidates(hosts.len());
        wait::until("it has said who it is", || election.admin.exists(&election.path(&format!("members/{id}"))));
    }
    election.diary.until_started(1);
    hosts
}

fn until_stopping(election: &Election) {
    wait::until("it stops", || election.admin.read(&election.path("members/a")).contains("stopping"));
}

fn orders(servers: &str, words: &[&str]) -> Child {
    let mut order = process(servers, words, &[]);
    order.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn said(order: Child) -> Said {
    let output = order.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code().unwrap_or(-1), output: text(output.stdout), error: text(output.stderr) }
}

#[test]
fn an_order_is_followed_over_another_session_where_the_server_goes_away() {
    let (election, link) = (election(), link());
    let _hosts = two(&election);
    let order = orders(&link.connect_string(), &["handover", &election.name, "--wait"]);
    until_stopping(&election);
    link.drop_next_reply();
    let said = said(order);
    assert!(said.code == 0 && said.output.contains("b leads, token "), "{said:?}");
    assert!(said.output.contains("the same server is asked"), "{said:?}");
    assert_eq!(election.diary.until_started(2).id, "b");

    let order = orders(&link.connect_string(), &["disable", &election.name, "--wait"]);
    wait::until("it stops", || election.admin.read(&election.path("members/b")).contains("stopping"));
    link.drop_next_reply();
    let said = self::said(order);
    assert!(said.code == 0 && said.output.ends_with("no command runs\n"), "{said:?}");
    assert_eq!(election.diary.starts().len(), 2);
}

/// The next session is at a server that may be behind, and knows of the order only after it was asked to catch up.
#[test]
fn an_order_that_is_taken_back_while_no_server_answers_is_seen_to_be_gone_in_the_next_session() {
    let (election, link) = (election(), link());
    let _host = election.steady_host("a").option("--stop-signal", "USR1").option("--stop-timeout", "10m").spawn();
    election.diary.until_started(1);
    let mut order = orders(&link.connect_string(), &["disable", &election.name, "--wait", "--timeout", "1m"]);
    let mut lines = BufReader::new(order.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("a is stopping")), "it never said so");
    assert!(!link.forwarded().contains(&request::SYNC), "it has given the order over this session");
    link.cut();
    assert!(lines.any(|line| line.contains("the same server is asked")), "it never said so");
    assert_eq!(ctl(&["enable", &election.name]).code, 0);
    link.heal();
    let rest: Vec<_> = lines.collect();
    assert_eq!(order.wait().unwrap().code(), Some(1), "{rest:?}");
    let told = |line: &String| line.starts_with("the order was taken back by somebody meanwhile; ");
    assert!(rest.last().is_some_and(told), "{rest:?}");
    assert!(link.forwarded().contains(&request::SYNC), "an order that stands could be taken for gone");
}

/// Somebody else takes back what is waited for.
#[test]
fn who_waits_for_what_becomes_of_an_order_is_told_that_it_was_taken_back() {
    let election = election();
    let host = election.steady_host("a").option("--stop-signal", "USR1").option("--stop-timeout", "10m").spawn();
    election.diary.until_started(1);
    let servers = server().connect_string();
    // One after the other: the command is being stopped, and does not end.
    let until_taken_back = |order: &[&str], last: &str, back: &[&str], told: &str| {
        let mut order = orders(&servers, order);
        let mut lines = BufReader::new(order.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains(last)), "never {last}");
        assert!(process(&servers, back, &[]).stdout(Stdio::null()).status().unwrap().success());
        let rest: Vec<_> = lines.collect();
        assert_eq!(order.wait().unwrap().code(), Some(1), "{rest:?}");
        assert!(rest.last().is_some_and(|line| line.starts_with(told)), "{rest:?}");
    };
    let name = &election.name;
    let disable = ["disable", name, "--wait", "--timeout", "1m"];
    until_taken_back(&disable, "a is stopping", &["enable", name], "the order was taken back by somebody meanwhile; ");
    let enable = ["enable", name, "--wait", "--timeout", "1m"];
    until_taken_back(&enable, "was not disabled", &["disable", name], "the election was disabled again: the order of ");
    drop(host);
}

/// A handover that has said this, all that it said before, and what is asked of its end.
fn handover(election: &Election, words: &[&str], last: &str) -> (Vec<String>, impl FnOnce(&str) + use<>) {
    let words = [&["handover", election.name.as_str(), "--timeout", "1m"], words].concat();
    let mut order = orders(&server().connect_string(), &words);
    let mut lines = BufReader::new(order.stdout.take().unwrap()).lines().map_while(Result::ok);
    let before: Vec<_> = lines.by_ref().take_while(|line| !line.contains(last)).collect();
    let is_told = move |end: &str| {
        let rest: Vec<_> = lines.collect();
        assert_eq!(order.wait().unwrap().code(), Some(1), "{rest:?}");
        let is_told = |line: &String| line.contains(end) && line.ends_with(" tells who leads");
        assert!(rest.last().is_some_and(is_told), "{rest:?}");
    };
    (before, is_told)
}

/// Another operator hands over, too, or somebody deletes the orders: while the leader stops, and while others make room.
#[test]
fn who_waits_for_a_handover_is_told_at_once_who_has_taken_its_place_or_that_it_is_gone() {
    let election = election();
    let first = election.steady_host("a").option("--stop-signal", "USR1").option("--stop-timeout", "10m").spawn();
    election.until_candidates(1);
    let second = election.steady_host("b").spawn();
    election.until_candidates(2);
    let third = election.steady_host("c").spawn();
    let may_lead = |id: &str| {
        let member = election.admin.find(&election.path(&format!("members/{id}")));
        member.is_some_and(|(member, _)| member.contains(r#""eligible":true"#))
    };
    let until_both_may = || wait::until("both may lead", || may_lead("b") && may_lead("c"));
    until_both_may();
    election.diary.until_started(1);
    let gone = "the handover lapsed, or was taken back by somebody, meanwhile; zk-leaderctl status ";

    let (_, anna_is_told) = handover(&election, &["--wait"], "a is stopping");
    let (said, bob_is_told) = handover(&election, &["--to", "c"], "a is stopping");
    let is_told =
        said[0].starts_with("this replaces the order of ") && said[0].ends_with(" to hand over to the next in line");
    assert!(is_told, "{said:?}");
    anna_is_told(" to hand over to c took the place of this one; zk-leaderctl status ");
    election.admin.set(&election.path("control"), "");
    bob_is_told(gone);

    until_both_may();
    second.signal(Signal::SIGSTOP);
    let (_, carl_is_told) = handover(&election, &["--to", "c"], "the others make room for c");
    election.admin.set(&election.path("control"), "");
    carl_is_told(gone);
    second.signal(Signal::SIGCONT);
    drop((first, third));
}

/// The room is made, and nobody knows whether the leader was told to go.
#[test]
fn a_handover_to_one_host_is_ordered_once_though_the_server_goes_away_in_between() {
    let (election, link) = (election(), link());
    let _hosts = two(&election);
    let order = orders(&link.connect_string(), &["handover", &election.name, "--to", "b"]);
    let control = election.path("control");
    wait::until("it is ordered", || election.admin.find(&control).is_some_and(|(text, _)| text.contains("handover")));
    link.drop_next_reply();
    let said = said(order);
    assert!(said.code == 0 && said.output.contains("b leads, token "), "{said:?}");
    assert_eq!(election.diary.until_started(2).id, "b");
    wait::until("the order is gone", || !election.admin.read(&control).contains("handover"));
}

#[test]
fn where_no_server_answers_any_more_it_is_said_that_the_order_stands() {
    let (election, link) = (election(), link());
    let _hosts = two(&election);
    let order = orders(&link.connect_string(), &["disable", &election.name, "--wait", "--timeout", "6s"]);
    until_stopping(&election);
    link.cut();
    let said = said(order);
    let stands = format!("only the waiting ended: {}", stays_disabled(&election));
    assert!(said.code == 2 && said.error.contains(&stands), "{said:?}");
}

#[test]
fn where_no_answer_to_an_order_comes_it_is_said_that_it_may_stand_and_how_to_look() {
    let (election, link) = (election(), link());
    election.prepare();
    let (name, root) = (&election.name, format!("/root-of-{}", election.name));
    election.admin.create_all(&format!("{root}/drains"));
    let disabled = format!(
        "the election may be disabled by now: zk-leaderctl status {name} tells whether it is, and zk-leaderctl enable {name} takes it back\n"
    );
    let enabled = format!("the election may be enabled by now: zk-leaderctl status {name} tells whether it is\n");
    let drained = format!(
        "one may be drained by now: zk-leaderctl list --path {root} tells, and zk-leaderctl undrain one --root {root} takes it back\n"
    );
    let writes = [request::CREATE, request::SET_DATA, request::MULTI, request::CREATE2];
    for (words, end) in [
        (&["disable", name][..], &disabled),
        (&["enable", name, "--wait"], &enabled),
        (&["drain", "one", "--root", &root, "--wait"], &drained),
    ] {
        link.hold_replies_from(&writes);
        let said = ctl_at(&link.connect_string(), words, &[]);
        link.heal();
        assert!(said.code == 2 && said.error.ends_with(&format!("; {end}")), "{words:?}: {said:?}");
        assert!(!said.error.contains("try again"), "it may move the leader twice: {said:?}");
    }
    link.hold_replies_from(&writes);
    let asked = link.forwarded().len();
    let order = orders(&link.connect_string(), &["disable", name, "--wait"]);
    wait::until("it has given the order", || link.forwarded().iter().skip(asked).any(|it| writes.contains(it)));
    kill(Pid::from_raw(order.id().cast_signed()), Signal::SIGINT).unwrap();
    let output = order.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), format!("zk-leaderctl: the waiting ended; {disabled}"));
    link.heal();
    link.hold_replies_from(&writes);
    let asked = link.forwarded().len();
    let order = orders(&link.connect_string(), &["disable", name]);
    wait::until("it has given the order", || link.forwarded().iter().skip(asked).any(|it| writes.contains(it)));
    kill(Pid::from_raw(order.id().cast_signed()), Signal::SIGINT).unwrap();
    let output = order.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), format!("zk-leaderctl: interrupted; {disabled}"));
}

/// The leader may move though the answer is lost. Only who waits for room tells it to go.
#[test]
fn a_handover_to_which_no_answer_comes_is_said_to_stand_perhaps_and_that_to_one_host_is_taken_back() {
    let (election, link) = (election(), link());
    let _hosts = two(&election);
    let (name, control) = (&election.name, election.path("control"));
    let writes = [request::CREATE, request::SET_DATA, request::MULTI, request::CREATE2];
    let handover = |to: &[&str]| {
        let words = [&["handover", name, "--connect-timeout", "5s"], to].concat();
        ctl_at(&link.connect_string(), &words, &[])
    };
    link.drop_next_reply_to(&writes);
    let said = handover(&["--to", "b"]);
    assert!(said.code == 2 && said.error.ends_with("; the order was taken back, and a leads on\n"), "{said:?}");
    assert!(!said.error.contains("try again") && !election.admin.read(&control).contains("handover"), "{said:?}");
    let may_make_room = format!(
        "a was not told to stop, and leads on; the others may make room for b until 1m after the order was given; \
         zk-leaderctl handover {name} --to b gives it again\n"
    );
    let may_stand = format!(
        "the handover may stand, and lapses 1m after it was given; zk-leaderctl status {name} tells what becomes of it\n"
    );
    link.hold_replies_from(&writes);
    let asked = link.forwarded().len();
    let order = orders(&link.connect_string(), &["handover", name, "--to", "b", "--connect-timeout", "60s"]);
    wait::until("it has given the order", || link.forwarded().iter().skip(asked).any(|it| writes.contains(it)));
    kill(Pid::from_raw(order.id().cast_signed()), Signal::SIGINT).unwrap();
    let output = order.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), format!("zk-leaderctl: the waiting ended; {may_make_room}"));
    link.heal();
    for (to, end) in [(&["--to", "b"][..], &may_make_room), (&[], &may_stand)] {
        link.hold_replies_from(&writes);
        let said = handover(to);
        link.heal();
        assert!(said.code == 2 && said.error.ends_with(&format!("; {end}")), "{said:?}");
        assert!(!said.error.contains("try again"), "it may move the leader twice: {said:?}");
    }
    assert_eq!(election.diary.until_started(2).id, "b", "it moves");
}

#[test]
fn who_waits_for_the_next_leader_goes_on_at_another_server_and_is_told_that_the_election_stays_enabled() {
    let (election, link) = (election(), link());
    election.prepare();
    let enable = |limit| orders(&link.connect_string(), &["enable", &election.name, "--wait", "--timeout", limit]);
    let order = enable("1m");
    // The order, and one look.
    wait::until("it waits", || link.forwarded().len() > 30);
    link.drop_next_reply();
    link.wait_until_dropped(1);
    let host = election.steady_host("a").spawn();
    let said = self::said(order);
    assert!(said.code == 0 && said.output.ends_with("a leads\n"), "{said:?}");
    assert!(said.output.contains("the same server is asked"), "{said:?}");
    drop(host);

    election.admin.set(&election.path("lease"), r#"{"v":1,"state":"free","lease_ms":5}"#);
    let asked = link.forwarded().len();
    let order = enable("6s");
    wait::until("it waits", || link.forwarded().len() > asked + 30);
    link.cut();
    let said = self::said(order);
    let stays = format!("the election stays enabled; zk-leaderctl status {} tells who leads", election.name);
    assert!(said.code == 2 && said.error.contains(&format!("only the waiting ended: {stays}")), "{said:?}");
}

fn stays_disabled(election: &Election) -> String {
    format!("the election stays disabled; zk-leaderctl enable {} takes it back", election.name)
}

/// Whether somebody renews a lease that looks overdue is watched for some seconds. The drain was given before.
#[test]
fn ctrl_c_while_leases_are_watched_says_that_the_drain_stands() {
    let election = election();
    let root = format!("/watched-{}", election.name);
    for below in ["lease", "term", "election"] {
        election.admin.create_all(&format!("{root}/job/{below}"));
    }
    let held = r#"{"v":1,"state":"held","lease_ms":60000,"holder":{"id":"a","host":"one","pid":1}}"#;
    election.admin.set(&format!("{root}/job/lease"), held);
    let fast = three_hours_fast();
    let fast = fast.each_ref().map(|(name, value)| (*name, value.as_str()));
    let mut order = process(&server().connect_string(), &["drain", "one", "--root", &root, "--wait"], &fast);
    let mut order = order.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(order.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("one is drained ")), "it never said so");
    kill(Pid::from_raw(order.id().cast_signed()), Signal::SIGINT).unwrap();
    let said = said(order);
    let stands = format!("one stays drained; zk-leaderctl undrain one --root {root} takes it back\n");
    assert!(said.error.ends_with(&stands), "{said:?}");
}

#[test]
fn ctrl_c_ends_the_waiting_and_says_that_the_order_stands() {
    let (held, moved) = (election(), election());
    let hosts = [two(&held), two(&moved)];
    let ended_by = |words: &[&str], last: &str| {
        let mut order = orders(&server().connect_string(), words);
        let mut lines = BufReader::new(order.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains(last)), "{words:?}: never {last}");
        kill(Pid::from_raw(order.id().cast_signed()), Signal::SIGINT).unwrap();
        let output = order.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(Signal::SIGINT as i32), "130 in a shell: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let said = ended_by(&["disable", &held.name, "--wait"], "a is stopping");
    assert_eq!(said, format!("zk-leaderctl: the waiting ended; {}\n", stays_disabled(&held)));
    held.diary.until_nobody_lives();

    let said = ended_by(&["handover", &moved.name, "--wait"], "a is told to stop");
    let status = format!("zk-leaderctl status {} tells what becomes of it", moved.name);
    assert!(said.contains("the handover stands, and lapses 1m after it was given") && said.contains(&status), "{said}");
    assert_eq!(moved.diary.until_started(2).id, "b");
    moved.until_candidates(2);

    // It makes no room.
    wait::until("it may lead", || moved.admin.read(&moved.path("members/a")).contains(r#""eligible":true"#));
    let _third = moved.steady_host("c").spawn();
    moved.until_candidates(3);
    wait::until("it has said who it is", || moved.admin.exists(&moved.path("members/c")));
    hosts[1][0].signal(Signal::SIGSTOP);
    let said = ended_by(&["handover", &moved.name, "--to", "c"], "the others make room for c");
    let again = ["handover", &moved.name, "--to", "c"];
    let stands = format!(
        "the waiting ended; b was not told to stop, and leads on; the others make room for c until 1m after the order was given; \
         zk-leaderctl {} gives it again\n",
        again.join(" ")
    );
    assert_eq!(said, format!("zk-leaderctl: {stands}"));
    hosts[1][0].signal(Signal::SIGCONT);
    let said = ctl(&again);
    assert!(said.code == 0 && said.output.contains("c leads, token "), "{said:?}");
}

/// A shell script starts it with `&`: then Ctrl-C is for what stands in the foreground.
#[test]
fn ctrl_c_does_not_end_who_was_started_to_ignore_it() {
    let election = election();
    let _hosts = two(&election);
    let servers = server().connect_string();
    let order = process(&servers, &["disable", &election.name, "--wait"], &[]);
    let mut ignores = Command::new("env");
    ignores.env_clear().env("ZK_LEADER_RUN_CONNECT", &servers);
    ignores.arg("--ignore-signal=INT").arg(order.get_program()).args(order.get_args());
    let ignores = ignores.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until_stopping(&election);
    kill(Pid::from_raw(ignores.id().cast_signed()), Signal::SIGINT).unwrap();
    let said = said(ignores);
    assert!(said.code == 0 && said.output.ends_with("no command runs\n"), "{said:?}");
}

#[test]
fn ctrl_c_before_an_order_was_given_ends_at_once_and_says_nothing() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let order = orders(&silent.local_addr().unwrap().to_string(), &["handover", "e", "--connect-timeout", "60s"]);
    let _connection = silent.accept().unwrap();
    kill(Pid::from_raw(order.id().cast_signed()), Signal::SIGINT).unwrap();
    let output = order.wait_with_output().unwrap();
    assert_eq!((output.status.signal(), output.stderr.as_slice()), (Some(Signal::SIGINT as i32), &b""[..]));
}
