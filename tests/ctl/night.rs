//! The night: what goes wrong, and what is said of it, on one page for whoever was just woken up. Times, pids, ports and
//! names are made alike; whatever else changes on the page has to be read again.
//!
//! Never: a line on the page that no program has said.

use std::fmt::Write as _;
use std::process::Command;
use std::thread;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::operator::ctl_at;
use super::screens::{alike, is_date, is_time};
use super::{election, link, server};
use crate::support::addresses::{asked, silent_name_server};
use crate::support::election::STEADY;
use crate::support::golden::golden;
use crate::support::pki::Authority;
use crate::support::tracer::Tracer;
use crate::support::{Admin, Election, Ensemble, Running, Subject, wait};

const HEAD: &str = "\
# What is said at night

Each trouble with the lines of the log from then on (what every start says is left out), the exit status, and the answer of
`zk-leaderctl status`. The word before a line is its `why` with --log-format json; `reason` is that of `status -o json`, of the
first slot where there is one; if it is null there, the slot's `state`.
Written by the test that plays it, against real servers: UPDATE=1 cargo test --test ctl night
";

/// Said at every start and every reconnect, or only on a slow machine.
const LEFT_OUT: [&str; 11] = [
    "Containment:",
    "Session was opened",
    "Session ended",
    "Missing znodes were created",
    "Command started",
    "HTTP is served",
    "Waiting:",
    "Contact with ZooKeeper was",
    "Without ZooKeeper for",
    "A request found no answer",
    "SIGTERM was received",
];

/// T of a leader whose lease runs out in its scene; before, it outlives a stall of four seconds.
const SOON_OVER: &str = "8s";

/// Said of servers that are only slow.
const SLOW: &str = "no server answered in time";

type Scene = (&'static str, fn() -> String);

#[test]
fn every_trouble_of_the_night_is_told_as_it_was_reviewed() {
    let scenes: [Scene; 16] = [
        ("No server listens", no_server),
        ("The name server does not answer", no_name_server),
        ("The ensemble has no quorum", no_quorum),
        ("The servers do not speak TLS on this port", no_tls),
        ("The election belongs to others", wrong_acl),
        ("The chroot is mistyped", wrong_chroot),
        ("Another host has other settings", other_settings),
        ("The leader is cut off, and is back before its lease ends", cut_off_shortly),
        ("The leader is cut off, and its command ignores SIGTERM", cut_off),
        ("The supervisor of the leader hangs", hung),
        ("An operator has disabled the election", disabled),
        ("An operator drains the leader's host", drained),
        ("The only host is unhealthy", unhealthy),
        ("SIGTERM, and another one", two_signals),
        ("SIGKILL does not end a process of the command", stuck),
        ("Not elected in time", not_elected),
    ];
    let played: Vec<_> = scenes.map(|(title, play)| (title, thread::spawn(play))).into_iter().collect();
    let mut page = HEAD.to_owned();
    for (title, scene) in played {
        let said = scene.join().unwrap_or_else(|_| panic!("{title}: not played to its end"));
        write!(page, "\n## {title}\n\n{said}").unwrap();
    }
    golden("tests/golden/night.md", &page);
}

/// A host whose log can be read by programs.
fn host(election: &Election, id: &str) -> Subject {
    as_at_night(election.steady_host(id))
}

fn as_at_night(host: Subject) -> Subject {
    host.option("--log-level", "info").option("--log-format", "json").command(&["sleep", "1000"])
}

fn no_server() -> String {
    let election = election();
    let host = as_at_night(election.host_at("127.0.0.1:1", "a")).option("--connect-timeout", "2s").spawn();
    ended("a", host) + &status("127.0.0.1:1", &election)
}

fn no_name_server() -> String {
    let election = election();
    let (silent, wrapper) = silent_name_server(&election);
    let host = as_at_night(election.host_at("ensemble.test:2181", "a")).option("--connect-timeout", "5s");
    let host = host.spawn_inside(wrapper);
    asked(&silent);
    let log = ended("a", host);
    let (_silent, mut wrapper) = silent_name_server(&election);
    wrapper.arg(env!("CARGO_BIN_EXE_zk-leaderctl")).args(["status", &election.name, "-z", "ensemble.test:2181"]);
    let mut asked = Subject::start(wrapper);
    let (code, answer) = (asked.code(), asked.log());
    format!("{log}\n    $ zk-leaderctl status; exit status {code}\n    {answer}")
}

fn no_quorum() -> String {
    let ensemble = Ensemble::of(3);
    let servers = ensemble.connect_string();
    let election = Election::on(&servers);
    for index in [1, 2] {
        ensemble.server(index).kill();
    }
    let knows = || ensemble.server(0).ask("srvr").is_some_and(|answer| answer.contains("not currently serving"));
    wait::until("the last server knows", knows);
    let host = host(&election, "a").option("--connect-timeout", "4s").spawn();
    ended("a", host) + &status(&servers, &election)
}

fn no_tls() -> String {
    let election = election();
    let authority = Authority::new();
    let servers = format!("tcp+tls://{}", server().server(0).address());
    let host = as_at_night(election.host_at(&servers, "a"));
    ended("a", host.option("--tls-ca", authority.certificate().to_str().unwrap()).spawn())
}

fn wrong_acl() -> String {
    let servers = server().connect_string();
    let election = Election::seen_by(Admin::known_as(&servers, "hosts:secret"), &servers);
    let owner =
        host(&election, "a").option("--acl", "creator").env("ZK_LEADER_RUN_AUTH", "digest:hosts:secret").spawn();
    owner.until_logged("Command started");
    let stranger = host(&election, "b").env("ZK_LEADER_RUN_AUTH", "digest:hosts:wrong").spawn();
    ended("b", stranger) + &status(&servers, &election)
}

fn wrong_chroot() -> String {
    let election = election();
    let typo = format!("{}/prodd-{}", election.servers(), election.name);
    let host = as_at_night(election.host_at(&typo, "a")).session_timeout(STEADY).spawn();
    host.until_logged("Command started");
    let other = format!("{}/produ-{}", election.servers(), election.name);
    said("a", &host, 0) + &status(&other, &election)
}

fn other_settings() -> String {
    let election = election();
    let first = host(&election, "a").spawn();
    first.until_logged("Command started");
    ended("b", host(&election, "b").option("--guarantee", "at-least-one").spawn())
}

fn cut_off_shortly() -> String {
    let (election, link) = (election(), link());
    let host = as_at_night(election.host_behind(&link, "a")).session_timeout("30s").spawn();
    host.until_logged("Command started");
    let before = lines(&host);
    link.cut();
    host.until_logged("Cannot reach ZooKeeper");
    host.until_logged("leading -> paused");
    link.heal();
    host.until_logged("paused -> leading");
    said("a", &host, before)
}

fn cut_off() -> String {
    let (election, link) = (election(), link());
    let host = as_at_night(election.host_behind(&link, "a")).session_timeout("15s").option("--on-loss", "exit");
    let host = host.command(&["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"]).spawn();
    host.until_logged("Command started");
    let before = lines(&host);
    link.cut();
    let log = ended_from("a", host, before);
    wait::until("its session is over", || {
        election.candidates().is_empty() && member(&election, "a", "phase").is_empty()
    });
    let asked = || ctl_at(election.servers(), &["status", &election.name, "-o", "json"], &[]).json();
    wait::until("its lease is over, by the clock of the servers", || asked()["slots"][0]["state"] == "overdue");
    log + &status(election.servers(), &election)
}

fn hung() -> String {
    let election = election();
    let first = host(&election, "a").session_timeout(SOON_OVER).spawn();
    first.until_logged("Command started");
    // So that it is elected before its wait is over, however late that is told.
    let second = host(&election, "b").option("--takeover-delay", "5s").spawn();
    election.until_candidates(2);
    let before = [lines(&first), lines(&second)];
    first.signal(Signal::SIGSTOP);
    second.until_logged("Command started");
    wait::until("others can see it", || member(&election, "b", "phase") == "leading");
    let seen = status(election.servers(), &election);
    first.signal(Signal::SIGCONT);
    first.until_logged("-> following");
    // Whether its release finds a session is chance.
    let log = said("a", &first, before[0]);
    let woken = log.lines().find(|line| line.contains("stood still")).unwrap();
    format!("{woken}\n{}{seen}", said("b", &second, before[1]))
}

fn disabled() -> String {
    let election = election();
    let leader = host(&election, "a").spawn();
    leader.until_logged("Command started");
    let other = host(&election, "b").spawn();
    election.until_candidates(2);
    let before = [lines(&leader), lines(&other)];
    let words = ["disable", &election.name, "--reason", "upgrade of the database", "--for", "1h", "--wait"];
    assert_eq!(ctl_at(election.servers(), &words, &[("USER", "operator")]).code, 0);
    other.until_logged("Disabled by");
    leader.until_logged("releasing -> following");
    wait::until("both say who they are", || members_follow(&election, &["a", "b"]));
    said("a", &leader, before[0]) + &said("b", &other, before[1]) + &status(election.servers(), &election)
}

/// In a chroot of its own, so that nobody else is drained.
fn drained() -> String {
    let election = election();
    let servers = format!("{}/drained-{}", election.servers(), election.name);
    let on = |id: &str, name: &str| {
        let mut wrapper = Command::new("unshare");
        wrapper.args(["--uts", "sh", "-c", r#"hostname "$0" && exec "$@""#, name]);
        as_at_night(election.host_at(&servers, id)).session_timeout(STEADY).spawn_inside(wrapper)
    };
    let is = |id: &str, key: &str, value: Value| {
        let seen = ctl_at(&servers, &["status", &election.name, "-o", "json"], &[]).json();
        let contenders = seen["contenders"].as_array().unwrap();
        contenders.iter().any(|contender| contender["id"] == id && contender[key] == value)
    };
    let leader = on("a", "db1");
    leader.until_logged("Command started");
    let other = on("b", "db2");
    wait::until("both say who they are", || is("a", "host", "db1".into()) && is("b", "host", "db2".into()));
    let before = [lines(&leader), lines(&other)];
    let words = ["drain", "db1", "--reason", "new kernel", "--for", "1h", "--wait"];
    assert_eq!(ctl_at(&servers, &words, &[("USER", "operator")]).code, 0);
    other.until_logged("Command started");
    leader.until_logged("releasing -> following");
    wait::until("others can see it", || {
        is("a", "why_not", ["drained"].as_slice().into()) && is("a", "place", Value::Null)
    });
    wait::until("and that", || is("b", "phase", "leading".into()));
    said("a", &leader, before[0]) + &said("b", &other, before[1]) + &status(&servers, &election)
}

fn unhealthy() -> String {
    let election = election();
    let well = election.diary.directory().join("well");
    std::fs::write(&well, "").unwrap();
    let command = format!("test -e '{}'", well.display());
    let host = host(&election, "a").option("--health-cmd", &command).option("--health-interval", "200ms").spawn();
    host.until_logged("Command started");
    let before = lines(&host);
    std::fs::remove_file(well).unwrap();
    host.until_logged("releasing -> following");
    wait::until("it says who it is", || members_follow(&election, &["a"]));
    wait::until("it is out of the line", || election.candidates().is_empty());
    said("a", &host, before) + &status(election.servers(), &election)
}

fn two_signals() -> String {
    let election = election();
    let deaf = election.diary.directory().join("deaf");
    let script = format!("trap '' TERM; : >'{}'; while :; do sleep 0.1; done", deaf.display());
    let host = host(&election, "a").option("--stop-timeout", "5m").command(&["sh", "-c", &script]).spawn();
    host.until_logged("Command started");
    wait::until("the command ignores SIGTERM", || deaf.exists());
    let before = lines(&host);
    host.signal(Signal::SIGTERM);
    host.until_logged("leading -> stopping");
    wait::until("others can see it", || member(&election, "a", "phase") == "stopping");
    let seen = status(election.servers(), &election);
    // At once it would be the same request.
    wait::pass(std::time::Duration::from_millis(500));
    host.signal(Signal::SIGTERM);
    ended_from("a", host, before) + &seen
}

fn stuck() -> String {
    let election = election();
    let first = election.host("a").session_timeout(SOON_OVER).option("--stop-timeout", "1s");
    let first =
        first.option("--contain", "subreaper").option("--log-level", "info").option("--log-format", "json").spawn();
    let start = election.diary.until_started(1);
    first.until_logged("Command started");
    // With the same command: the first one may see before or after the end of its own that another one would be another job.
    let second = election.steady_host("b").option("--log-level", "info").spawn();
    election.until_candidates(2);
    let (tracer, before) = (Tracer::of(start.pid), lines(&first));
    first.signal(Signal::SIGTERM);
    second.until_logged("Command started");
    election.until_candidates(1);
    wait::until("others can see it", || member(&election, "a", "why_not").contains("survive"));
    wait::until("and that", || member(&election, "b", "phase") == "leading");
    let seen = status(election.servers(), &election);
    drop(tracer);
    ended_from("a", first, before) + &seen
}

fn not_elected() -> String {
    let election = election();
    let leader = host(&election, "a").spawn();
    leader.until_logged("Command started");
    ended("b", host(&election, "b").option("--wait", "1s").spawn())
}

fn member(election: &Election, id: &str, key: &str) -> String {
    let path = election.path(&format!("members/{id}"));
    if !election.admin.exists(&path) {
        return String::new();
    }
    let member: Value = serde_json::from_str(&election.admin.read(&path)).unwrap();
    member[key].as_str().map_or_else(|| member[key].to_string(), str::to_owned)
}

fn members_follow(election: &Election, ids: &[&str]) -> bool {
    ids.iter().all(|id| member(election, id, "phase") == "following")
}

fn lines(host: &Running) -> usize {
    host.log().lines().count()
}

fn ended(id: &str, host: Running) -> String {
    ended_from(id, host, 0)
}

/// The log up to the end, and the exit status.
fn ended_from(id: &str, mut host: Running, before: usize) -> String {
    let code = host.code();
    said(id, &host, before) + &format!("{id}: exit status {code}\n")
}

/// In their order, but why no server answers comes first: that is found out while the rest goes on.
fn said(id: &str, host: &Running, before: usize) -> String {
    let log = host.log();
    let lines = log.lines().skip(before).map(|line| serde_json::from_str::<Value>(line).unwrap());
    let is_left_out = |line: &Value| {
        let message = text(line, "message");
        message.contains(SLOW) || LEFT_OUT.iter().any(|start| message.starts_with(start))
    };
    let mut lines: Vec<_> = lines.filter(|line| !is_left_out(line)).collect();
    lines.sort_by_key(|line| !text(line, "message").starts_with("Cannot reach"));
    let mut told: Vec<_> = lines.iter().map(|line| format!("{id}: {}\n", told(line))).collect();
    told.dedup();
    told.concat()
}

fn text<'a>(line: &'a Value, key: &str) -> &'a str {
    line[key].as_str().unwrap_or_default()
}

/// A line of the log, as people read it, behind its level and its word.
fn told(line: &Value) -> String {
    let name = text(line, "election");
    let word = line["why"].as_str().map_or_else(String::new, |word| format!("{word}: "));
    let message = match text(line, "message").split_once("is back within ") {
        // How long is chance.
        Some((before, rest)) => format!("{before}is back within TIME,{}", rest.split_once(',').unwrap().1),
        None => text(line, "message").to_owned(),
    };
    let mut told = format!("[{}] {word}{message}", text(line, "level"));
    for (key, value) in line.as_object().unwrap() {
        match key.strip_suffix("_ms") {
            _ if ["time", "level", "message", "election", "id", "from", "to", "why"].contains(&key.as_str()) => {}
            Some(key) => write!(told, " {key}=TIME").unwrap(),
            None if ["token", "pid"].contains(&key.as_str()) => write!(told, " {key}=NUMBER").unwrap(),
            None => write!(told, " {key}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned)).unwrap(),
        }
    }
    anonymous(&told, name)
}

/// What differs from run to run: this host, the ports of its servers, the election.
fn anonymous(text: &str, name: &str) -> String {
    let host = nix::unistd::gethostname().unwrap().into_string().unwrap();
    let text = text.replace(&format!("/zk-leader-run/{name}"), "/zk-leader-run/nightly");
    let text = text.replace(&format!("prodd-{name}"), "prodd").replace(&format!("produ-{name}"), "produ");
    let text = text.replace(&format!(" {name}"), " nightly").replace(&format!("on {host}"), "on HOST");
    let text = text.replace(&format!("@{host}"), "@HOST");
    let words = text.split(' ').map(|word| match word {
        _ if is_date(word) => "DATE",
        _ if is_time(word) => "TIME",
        _ => word,
    });
    let text = words.collect::<Vec<_>>().join(" ");
    let mut parts = text.split("127.0.0.1:");
    let mut anonymous = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let port = part.chars().take_while(char::is_ascii_digit).count();
        anonymous += "SERVER";
        anonymous += &part[port..];
    }
    anonymous
}

/// What `zk-leaderctl status` answers to an operator, with the word for programs.
fn status(servers: &str, election: &Election) -> String {
    let seen = ctl_at(servers, &["status", &election.name], &[]);
    let reason = ctl_at(servers, &["status", &election.name, "-o", "json"], &[]).json();
    let slot = &reason["slots"][0];
    let word = [&reason["reason"], &slot["reason"], &slot["state"]].into_iter().find_map(Value::as_str);
    let shown = anonymous(&alike(&(seen.output + &seen.error), election), &election.name);
    let mut told =
        format!("\n    $ zk-leaderctl status; exit status {}, reason {}\n", seen.code, word.unwrap_or("none"));
    for line in shown.lines() {
        writeln!(told, "{}", format!("    {line}").trim_end()).unwrap();
    }
    told
}
