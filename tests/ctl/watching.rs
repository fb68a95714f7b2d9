//! `--watch` in a pipe: a line, or an object, for each change; ended by SIGINT.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::operator::{ctl, process};
use super::{election, link, server};
use crate::support::{Election, wait};

/// A `zk-leaderctl` that goes on.
struct Watch {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
    /// Up to here.
    found: usize,
}

impl Watch {
    fn of(words: &[&str]) -> Self {
        Self::at(&server().connect_string(), words)
    }

    fn at(servers: &str, words: &[&str]) -> Self {
        let mut command = process(servers, words, &[]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, lines, seen: Vec::new(), found: 0 }
    }

    /// The first line for which this holds, after the one that was found before.
    #[track_caller]
    fn until(&mut self, holds: impl Fn(&str) -> bool) -> String {
        let (lines, seen, from) = (&self.lines, &mut self.seen, self.found);
        let found = wait::for_some("a line says so", || {
            seen.extend(lines.try_iter());
            seen.iter().skip(from).position(|line| holds(line))
        });
        self.found = from + found + 1;
        self.seen[from + found].clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).ok();
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Their lease outlives a stall of six seconds, and is renewed more often than that of a steady host.
const LEASE_MS: i64 = 10_000;

fn two(election: &Election) -> Vec<crate::support::Running> {
    let mut hosts = Vec::new();
    for id in ["a", "b"] {
        hosts.push(election.host(id).session_timeout(&format!("{LEASE_MS}ms")).spawn());
        election.until_candidates(hosts.len());
    }
    election.diary.until_started(1);
    hosts
}

#[test]
fn a_list_in_a_pipe_has_a_line_for_each_change_and_none_without() {
    let election = election();
    let hosts = two(&election);
    let mut watch = Watch::of(&["list", "--watch"]);
    let is_ours = |line: &str| words(line).get(3) == Some(&election.name.as_str());
    watch.until(|line| words(line) == ["TIME", "NAME", "STATE", "LEADER", "TERM", "TOKEN", "IN", "LINE"]);
    watch.until(|line| is_ours(line) && words(line)[4..6] == ["led", "a"]);
    let version = election.record_version();
    wait::until("the lease is renewed", || election.record_version() > version + 1);
    hosts[0].signal(Signal::SIGTERM);
    watch.until(|line| is_ours(line) && words(line)[4..6] == ["led", "b"]);
    let told: Vec<_> = watch.seen.iter().filter(|line| is_ours(line)).map(|line| words(line)[4..].join(" ")).collect();
    assert!(told.windows(2).all(|pair| pair[0] != pair[1]), "{told:#?}");

    kill(Pid::from_raw(watch.child.id().cast_signed()), Signal::SIGINT).unwrap();
    assert_eq!(watch.child.wait().unwrap().signal(), Some(Signal::SIGINT as i32), "130 in a shell");
}

/// Nothing changes in the meantime that it could write.
#[test]
fn a_watch_ends_when_its_reader_is_gone() {
    let election = election();
    election.prepare();
    let name = election.name.as_str();
    for words in [&["list", "--watch"][..], &["status", name, "--watch", "-o", "json"], &["history", name, "--watch"]] {
        let mut command = process(&server().connect_string(), words, &[]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let found = wait::held_within(wait::LIMIT, || child.try_wait().unwrap().is_some());
        child.kill().ok();
        assert!(found, "{words:?}");
        assert_eq!(child.wait().unwrap().code(), Some(0), "{words:?}");
    }
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let election = election();
    election.prepare();
    for words in [&["list"][..], &["-o", "json", "list"], &["list", "--watch"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = process(&server().connect_string(), words, &[]);
        let output = command.stdin(Stdio::null()).stdout(full).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(74), "{words:?}: {said}");
        let sentence = "zk-leaderctl: the answer could not be written to standard output: No space left";
        assert!(said.contains(sentence), "{words:?}: {said}");
    }
}

/// The lease is renewed several times meanwhile, and ages grow.
#[test]
fn a_status_in_a_pipe_is_written_when_something_else_than_a_renewal_has_changed() {
    let election = election();
    let hosts = two(&election);
    let mut watch = Watch::of(&["status", &election.name, "--watch", "-o", "json"]);
    let leader = |line: &str| serde_json::from_str::<Value>(line).unwrap()["slots"][0]["leader"]["id"].clone();
    watch.until(|line| leader(line) == "a");
    let version = election.record_version();
    wait::until("the lease is renewed", || election.record_version() > version + 2);
    hosts[0].signal(Signal::SIGTERM);
    watch.until(|line| leader(line) == "b");
    let objects: Vec<_> = watch
        .seen
        .iter()
        .map(|line| {
            let mut object: Value = serde_json::from_str(line).unwrap();
            let lease = object["slots"][0]["lease"].as_object_mut().unwrap();
            assert!(lease.remove("renewed").is_some() && lease.remove("version").is_some());
            object
        })
        .collect();
    assert!(objects.windows(2).all(|pair| pair[0] != pair[1]), "{objects:#?}");
}

/// Another election began meanwhile.
#[test]
fn a_watch_of_the_only_election_goes_on_with_it_after_an_outage() {
    let (election, link) = (election(), link());
    let chroot = format!("/only-{}", election.name);
    let root = format!("{chroot}/zk-leader-run");
    let begins = |name: &str| {
        for znode in ["lease", "term", "election"] {
            election.admin.create_all(&format!("{root}/{name}/{znode}"));
        }
    };
    begins("first");
    let record = |state: &str| format!(r#"{{"v":1,{state},"lease_ms":60000}}"#);
    let says = |state: &str| election.admin.set(&format!("{root}/first/lease"), &record(state));
    says(r#""state":"free""#);
    let mut watch = Watch::at(&(link.connect_string() + &chroot), &["status", "--watch", "-o", "json"]);
    watch.until(|line| line.contains(r#""free""#));
    begins("second");
    let before = link.accepted();
    link.reset();
    wait::until("it has another session", || link.accepted() > before);
    says(r#""state":"held","holder":{"id":"later","host":"one","pid":1}"#);
    watch.until(|line| line.contains("later"));
}

#[test]
fn a_list_of_objects_has_one_on_each_line() {
    let election = election();
    let hosts = two(&election);
    let mut watch = Watch::of(&["list", "--watch", "-o", "json"]);
    let leads = |line: &str, id: &str| {
        let object: Value = serde_json::from_str(line).unwrap();
        object["name"] == *election.name && object["leaders"] == serde_json::json!([id])
    };
    let line = watch.until(|line| leads(line, "a"));
    let object: Value = serde_json::from_str(&line).unwrap();
    let left = object["lease_left_ms"].as_i64().unwrap();
    assert!(object["state"] == "led" && (0..=LEASE_MS).contains(&left), "{object}");
    hosts[0].signal(Signal::SIGTERM);
    watch.until(|line| leads(line, "b"));
}

#[test]
fn a_history_in_a_pipe_tells_each_term_when_it_begins_and_when_it_ends() {
    let election = election();
    let hosts = two(&election);
    let mut watch = Watch::of(&["history", &election.name, "--watch"]);
    watch.until(|line| words(line).get(2) == Some(&"a") && line.ends_with(" -"));
    hosts[0].signal(Signal::SIGTERM);
    watch.until(|line| words(line).get(2) == Some(&"a") && line.ends_with(" stop-requested"));
    watch.until(|line| words(line).get(2) == Some(&"b"));
}

/// Its host crashed, and no other one has come.
#[test]
fn a_term_whose_lease_is_overdue_does_not_last_on_in_the_history() {
    let election = election();
    election.prepare();
    let token = election.term().mzxid;
    election.admin.set(
        &election.path("lease"),
        r#"{"v":1,"state":"held","lease_ms":1000,"guarantee":"at-most-one","holder":{"id":"a","host":"h","pid":1}}"#,
    );
    let renewed = election.admin.stat(&election.path("lease")).unwrap().mtime;
    let term = format!(r#"{{"token":{token},"id":"a","host":"h","since":{renewed}}}"#);
    election.admin.set(&election.path("history"), &format!(r#"{{"v":1,"terms":[{term}]}}"#));
    let history = |format| ctl(&["history", &election.name, "-o", format]);
    wait::until("it is overdue", || history("plain").output.contains("lease overdue"));
    let shown = &history("json").json()["terms"][0];
    assert_eq!((&shown["until"], &shown["ended"]), (&(renewed + 1000).into(), &"lease overdue".into()), "{shown}");
    wait::pass(wait::secs(1));
    assert_eq!(history("plain").output.split('\t').nth(4), Some("at most 1s"));
}

/// What cron called for this night, and how it ended.
#[test]
fn a_history_tells_the_slot_of_each_run_of_a_job_and_its_exit_status() {
    let election = election();
    let history = |words: &[&str]| ctl(&[&["history", &election.name], words].concat());
    for (slot, status) in [("monday", 0), ("tuesday", 3)] {
        let job = election.steady_host("a").option("--slot", slot).command(&["sh", "-c", &format!("exit {status}")]);
        assert_eq!(job.spawn().code(), status);
        let has_ended =
            || history(&["-o", "plain"]).output.lines().last().is_some_and(|row| row.contains("command-ended"));
        wait::until("its end is written down", has_ended);
    }
    let shown = history(&[]).output;
    let rows: Vec<_> = shown.lines().map(words).collect();
    let last: Vec<_> = rows.iter().map(|row| row[row.len() - 4..row.len() - 1].join(" ")).collect();
    assert_eq!(last, ["ENDED RUN STATUS", "command-ended monday 0", "command-ended tuesday 3"], "{shown}");
    let run = &history(&["--json"]).json()["terms"][1]["run"];
    assert_eq!((&run["slot"], &run["status"], &run["ok"]), (&"tuesday".into(), &3.into(), &false.into()), "{run}");
    of_the_last_run(&election);
    let late = election.steady_host("b").option("--slot", "monday").command(&["false"]);
    assert_eq!(late.spawn().code(), 0);
    wait::until("its term is written down", || history(&["-o", "wide"]).output.contains(" duplicate "));
    assert!(!history(&[]).output.contains("duplicate") && history(&["-n", "1"]).output.contains("tuesday"));
}

/// Of tuesday's, which failed.
fn of_the_last_run(election: &Election) {
    let status = ctl(&["status", &election.name]).output;
    assert!(status.contains("tuesday on a (pid ") && status.contains("failed with status 3"), "{status}");
    let list = ctl(&["list"]).output;
    let row = list.lines().find(|row| words(row)[0] == election.name).unwrap();
    assert!(row.contains("nobody leads; last run failed ") && row.ends_with(" ago"), "{row}");
    let list = ctl(&["list", "--json"]).json();
    let all = list["elections"].as_array().unwrap();
    let job = all.iter().find(|one| one["name"] == election.name.as_str()).unwrap();
    let run = &job["last_run"];
    assert_eq!((&run["slot"], &run["status"], &run["ok"]), (&"tuesday".into(), &3.into(), &false.into()), "{run}");
    assert!(run["since"].as_i64().is_some_and(|since| run["until"].as_i64() >= Some(since)), "{run}");
    assert_eq!((&job["state"], &job["reason"]), (&"nobody leads".into(), &"no-contender".into()), "{job}");
}

#[test]
fn a_history_shows_as_many_terms_as_are_asked_for() {
    let election = election();
    for _ in 0..3 {
        election.prepare();
    }
    let terms = |words: &[&str]| ctl(&[&["history", &election.name, "-o", "plain"], words].concat()).output;
    wait::until("all are written down", || terms(&[]).lines().count() == 3);
    assert_eq!(terms(&["-n", "2"]), terms(&[]).split_inclusive('\n').skip(1).collect::<String>());
    assert_eq!(terms(&["--lines", "9"]), terms(&[]));
    let refused = ctl(&["history", &election.name, "-n", "0"]);
    assert!(refused.code == 64 && refused.error.contains("write one from 1 on"), "{refused:?}");
}

/// What a reader of YAML makes of it is what JSON says.
#[test]
fn yaml_says_what_json_says() {
    let election = election();
    // Nothing changes between two answers.
    election.prepare();
    let members = election.path("members");
    election.admin.create_all(&members);
    let member = r#"{"v":1,"id":"on","host":"1.5","pid":7,"why_not":["no: \"x\""],"eligible":false}"#;
    election.admin.create(&format!("{members}/on"), member);
    let reason = "a: b\n- \"c\" #\u{1b}\u{85}\u{2028}ß no";
    let name = election.name.as_str();
    assert_eq!(ctl(&["disable", name, "--reason", reason, "--for", "1h", "--wait"]).code, 0);
    let both = |words: &[&str]| {
        let said = |format| ctl(&[words, &["-o", format]].concat());
        let (json, yaml) = (said("json"), said("yaml"));
        assert_eq!(json.code, yaml.code, "{yaml:?}");
        (json.json(), read_by_python(&yaml.output))
    };
    for words in [&["status", name][..], &["history", name], &["status", "nosuch"], &["token-check", "7", name]] {
        let (json, yaml) = both(words);
        assert_eq!(json, yaml);
    }
    assert_eq!(both(&["status", name]).1["disabled"]["reason"], reason);
}

fn read_by_python(yaml: &str) -> Value {
    use std::io::Write as _;
    let script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin.buffer.read().decode())))";
    let mut python = std::process::Command::new("python3");
    let mut python = python.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    python.stdin.take().unwrap().write_all(yaml.as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("python3 with yaml (python3-yaml): {error}\n{yaml}"))
}

#[test]
fn wide_tables_have_more_columns() {
    let election = election();
    let _hosts = two(&election);
    let head = |words: &[&str]| {
        let said = ctl(&[words, &["-o", "wide"]].concat());
        said.output.lines().find(|line| line.contains("SINCE")).map(words_of).unwrap()
    };
    let name = election.name.as_str();
    wait::until("both have said who they are", || election.admin.children(&election.path("members")).len() == 2);
    assert!(head(&["list"]).ends_with("HOST SINCE LEASE CHANGED TERM TOKEN IN LINE STATE"));
    assert!(head(&["status", name]).contains("ELIGIBLE VERSION SESSION"));
    assert!(head(&["history", name]).contains("ID HOST SINCE UNTIL FOR"));
}

fn words_of(line: &str) -> String {
    words(line).join(" ")
}
