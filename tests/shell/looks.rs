//! What an operator is told while a record changes: one who asks, without hosts.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;
use zk_leader_run::commands;
use zk_leader_run::config::ctl;
use zk_leader_run::config::source::process_environment::ProcessEnvironment;
use zk_leader_run::zookeeper::client::acl::Acl;
use zk_leader_run::zookeeper::client::requests::{Ensemble as _, Link, Operation, Request};
use zookeeper_client::CreateMode;

use crate::link::Life;
use crate::memory::network::Network;
use crate::memory::{Ensemble, Settings};
use crate::oracle::Oracle;
use crate::process::{Clock, Process};
use crate::script::BASE;
use crate::time::Virtual;
use crate::wires::{Log, Wires};

/// What the operator's clock shows at the start: the servers' clocks agree with it.
const WALL_MS: i64 = 1_000_000;
const SESSION: Duration = Duration::from_secs(10);

/// A server, and one process that asks it.
struct Desk {
    process: Arc<Process>,
    life: Life,
    writes: Arc<dyn Link>,
}

impl Desk {
    async fn new() -> Self {
        let latency = [Duration::from_micros(200), Duration::from_millis(1)];
        let settings = Settings { wall_ms: WALL_MS, ..Settings::of(1) };
        let wires = Wires::new(Network::new(Ensemble::new(settings, 1), latency, 1), 1, 1, Log::Nothing);
        tokio::spawn(Arc::clone(&wires).carry());
        let process = Process::new(0, 1, &Clock::new(0), &Oracle::new());
        let life = Life::new(&wires, &process);
        let writes = life.open(SESSION, None).await.unwrap();
        Self { process, life, writes }
    }

    async fn write(&self, changes: Vec<Operation>) {
        self.writes.send(Request::Multi(changes)).await.unwrap();
    }

    /// `zk-leaderctl WORDS`: the status, and the object, or the sentence of an error.
    async fn ask(&self, words: &[&str]) -> (u8, Value) {
        let options = ["zk-leaderctl", "--connect", "memory:1", "--json"];
        let typed = options.iter().chain(words).map(OsString::from);
        let asked = ctl::load(typed, &ProcessEnvironment::default()).expect("it is well typed");
        let asked = ctl::Asked { access: self.life.access(), ..asked };
        let (status, text) = self.process.task(commands::ask(&asked)).await;
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }
}

fn create(path: &str, data: &Value) -> Operation {
    let mut with = Acl::open().ephemeral();
    with.mode = CreateMode::Persistent;
    Operation::Create { path: format!("/zk-leader-run{path}"), data: data.to_string().into_bytes(), with }
}

fn set(path: &str, data: &Value) -> Operation {
    Operation::Set { path: format!("{BASE}{path}"), data: data.to_string().into_bytes(), version: None }
}

fn held_by(id: &str) -> Value {
    json!({ "v": 1, "state": "held", "lease_ms": 15_000, "guarantee": "at-most-one", "leaders": 2,
        "holder": { "id": id, "host": id, "pid": 1 } })
}

fn member(id: &str) -> Value {
    json!({ "v": 1, "id": id, "host": id, "pid": 1, "role": "leader", "phase": "leading", "eligible": true })
}

/// Two slots, whose leaders both die.
async fn two_dead_leaders(desk: &Desk) {
    let empty = ["", "/job", "/job/election", "/job/members", "/job/slots"].into_iter();
    let slots = ["/job/slots/0", "/job/slots/0/term", "/job/slots/1", "/job/slots/1/term"];
    let mut changes: Vec<_> = empty.chain(slots).map(|path| create(path, &Value::Null)).collect();
    changes.extend([create("/job/slots/0/lease", &held_by("a")), create("/job/slots/1/lease", &held_by("b"))]);
    changes.extend(["a", "b"].map(|id| create(&format!("/job/members/{id}"), &member(id))));
    desk.write(changes).await;
    sleep(Duration::from_secs(20)).await;
}

/// It has waited for the lease of b, and takes its place while the operator's program watches whether b renews it.
async fn c_takes_over(desk: &Desk) {
    sleep(Duration::from_secs(2)).await;
    let taken = [set("/slots/1/term", &Value::Null), set("/slots/1/lease", &held_by("c"))];
    let gone = Operation::Delete { path: format!("{BASE}/members/b"), version: None };
    desk.write(taken.into_iter().chain([gone, create("/job/members/c", &member("c"))]).collect()).await;
}

fn in_virtual_time(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let _virtual = Virtual::begin();
        test.await;
    });
}

#[test]
fn a_record_that_changes_while_it_is_watched_is_told_as_it_is_then() {
    in_virtual_time(async {
        let desk = Desk::new().await;
        two_dead_leaders(&desk).await;
        let ((status, said), ()) = tokio::join!(desk.ask(&["--path", BASE, "status"]), c_takes_over(&desk));
        let slots = &said["slots"];
        assert_eq!((status, &slots[1]["leader"]["id"], &slots[1]["term"]), (0, &"c".into(), &1.into()), "{said:#}");
        assert_eq!(slots[0]["state"], "overdue", "the other one was watched to the end: {said:#}");
    });
}

/// It has `--vouch`, and is cut off from the servers alone: candidate and member go with its session.
#[test]
fn whether_a_leader_that_others_may_vouch_for_still_leads_is_not_known_until_its_limit_is_over() {
    in_virtual_time(async {
        let desk = Desk::new().await;
        let mut record = held_by("a");
        (record["vouch_ms"], record["guarantee"]) = (60_000.into(), "at-most-one, vouched".into());
        let empty = ["", "/job", "/job/election", "/job/members", "/job/term"].iter();
        let changes = empty.map(|path| create(path, &Value::Null)).chain([create("/job/lease", &record)]);
        desk.write(changes.collect()).await;
        sleep(Duration::from_secs(30)).await;
        let (status, said) = desk.ask(&["--path", BASE, "status"]).await;
        let slot = &said["slots"][0];
        assert_eq!((status, &slot["state"], &slot["reason"]), (2, &"unknown".into(), &"cut-off".into()), "{said:#}");
        assert_eq!(desk.ask(&["list"]).await.1["elections"][0]["state"], "unknown");
        let (status, said) = desk.ask(&["--path", BASE, "handover"]).await;
        let is_told = said["said"].as_str().is_some_and(|it| it.starts_with("who leads is not known: a is cut off"));
        assert!(status == 2 && is_told && said["reason"] == "cut-off", "{said:#}");
        sleep(Duration::from_secs(40)).await;
        let (status, said) = desk.ask(&["--path", BASE, "status"]).await;
        assert_eq!((status, &said["slots"][0]["state"]), (1, &"overdue".into()), "{said:#}");
    });
}

/// Whoever led may be cut off from the servers alone.
#[test]
fn who_leads_behind_a_record_that_was_lost_is_not_known_until_the_new_one_has_run_out() {
    for vouched in [false, true] {
        in_virtual_time(async {
            let desk = Desk::new().await;
            let mut record = held_by("a");
            record["holder"] = Value::Null;
            if vouched {
                (record["vouch_ms"], record["guarantee"]) = (60_000.into(), "at-most-one, vouched".into());
            }
            let empty = ["", "/job", "/job/election", "/job/members", "/job/term"].iter();
            let changes = empty.map(|path| create(path, &Value::Null)).chain([create("/job/lease", &record)]);
            desk.write(changes.collect()).await;
            sleep(Duration::from_secs(if vouched { 50 } else { 10 })).await;
            let (status, said) = desk.ask(&["--path", BASE, "status"]).await;
            let slot = &said["slots"][0];
            let state = (status, &slot["state"], &slot["reason"]);
            assert_eq!(state, (2, &"unknown".into(), &"record-lost".into()), "{said:#}");
            assert_eq!(desk.ask(&["list"]).await.1["elections"][0]["state"], "unknown");
            let (status, said) = desk.ask(&["--path", BASE, "handover"]).await;
            let until = if vouched { "00:17:40" } else { "00:16:55" };
            let lost = "the record was lost, and the command of its unknown holder may run until 1970-01-01";
            let sentence = format!("who leads is not known: {lost} {until} UTC");
            assert!(status == 2 && said["said"] == *sentence && said["reason"] == "record-lost", "{said:#}");
            sleep(Duration::from_secs(20)).await;
            let (status, said) = desk.ask(&["--path", BASE, "status"]).await;
            let slot = &said["slots"][0];
            let state = (status, &slot["state"], &slot["reason"]);
            assert_eq!(state, (1, &"nobody".into(), &"record-lost".into()), "{said:#}");
        });
    }
}

/// Both records are watched, the second one changes, and while all is read once more the first one does too.
#[test]
fn a_record_that_changes_after_it_was_watched_is_not_overdue() {
    for step in 0..120 {
        in_virtual_time(async {
            let desk = Desk::new().await;
            two_dead_leaders(&desk).await;
            let d_takes_over = async {
                c_takes_over(&desk).await;
                sleep(Duration::from_micros(1_700_000 + 2_000 * step)).await;
                let taken = [set("/slots/0/term", &Value::Null), set("/slots/0/lease", &held_by("d"))];
                desk.write(taken.into_iter().chain([create("/job/members/d", &member("d"))]).collect()).await;
            };
            let ((_, said), ()) = tokio::join!(desk.ask(&["--path", BASE, "status"]), d_takes_over);
            let slot = &said["slots"][0];
            let is_new = said.to_string().contains(r#""id":"d""#);
            assert!(!is_new || slot["state"] != "overdue", "the lease of d is overdue after {step}: {said:#}");
        });
    }
}

#[test]
fn a_list_tells_who_took_over_while_it_was_made() {
    in_virtual_time(async {
        let desk = Desk::new().await;
        two_dead_leaders(&desk).await;
        let ((status, said), ()) = tokio::join!(desk.ask(&["list"]), c_takes_over(&desk));
        let job = &said["elections"][0];
        assert_eq!((status, &job["leaders"], &job["state"]), (0, &json!(["c"]), &"led".into()), "{said:#}");
    });
}

/// Under at-least-one it runs on, though another one has led meanwhile and released.
#[test]
fn a_command_that_outlives_its_term_is_waited_for_and_told() {
    in_virtual_time(async {
        let desk = Desk::new().await;
        let free = json!({ "v": 1, "state": "free", "lease_ms": 15_000, "guarantee": "at-least-one", "token": 8,
            "holder": { "id": "b", "host": "b", "pid": 1 } });
        let first = json!({ "token": 7, "term": 1, "id": "a", "host": "a", "since": WALL_MS, "until": WALL_MS,
            "takeover": "first", "ended": "unclean", "max_pause_ms": 60_000 });
        let second = json!({ "token": 8, "term": 2, "id": "b", "host": "b", "since": WALL_MS, "takeover": "unclean",
            "max_pause_ms": 60_000 });
        let empty = ["", "/job", "/job/election", "/job/members", "/job/term"].iter();
        let history = create("/job/history", &json!({ "v": 1, "terms": [first, second] }));
        let changes = empty.map(|path| create(path, &Value::Null)).chain([create("/job/lease", &free), history]);
        desk.write(changes.collect()).await;
        let wait = ["--wait", "--timeout", "9s"];
        let orders = [["disable", "job"], ["drain", "a"], ["enable", "job"]];
        let outcomes = async || {
            let mut outcomes = Vec::new();
            for words in orders {
                let (status, said) = desk.ask(&[&words[..], &wait].concat()).await;
                outcomes.push((status, said["state"].as_str().unwrap_or_default().to_owned(), said["leads"].clone()));
            }
            outcomes
        };
        let outcome = |status: u8, state: &str, leads: Value| (status, state.to_owned(), leads);
        let meanwhile =
            [outcome(1, "running", Value::Null), outcome(2, "unknown", json!([])), outcome(2, "unknown", Value::Null)];
        assert_eq!(outcomes().await, meanwhile, "the command of a may run, and b has ended its own");
        sleep(Duration::from_secs(60)).await;
        assert_eq!(desk.ask(&["drain", "a", "--wait"]).await.0, 2, "no host is called so any more");
        let (status, said) = desk.ask(&["disable", "job", "--wait"]).await;
        assert_eq!((status, &said["state"]), (0, &"idle".into()), "{said:#}");
    });
}

/// Of the contenders in a shared directory, one of another library is the first.
#[test]
fn no_operator_is_told_that_nothing_runs_while_a_contender_of_another_library_leads() {
    in_virtual_time(async {
        let desk = Desk::new().await;
        let free = json!({ "v": 1, "state": "free", "lease_ms": 15_000, "guarantee": "at-most-one", "recipe": "curator-latch",
            "election": "/zk-leader-run/latch" });
        let first = format!("/latch/_c_{}-latch-0000000000", uuid::Uuid::nil());
        let empty = ["", "/latch", &first, "/job", "/job/members", "/job/term"];
        let changes = empty.iter().map(|path| create(path, &Value::Null)).chain([create("/job/lease", &free)]);
        desk.write(changes.collect()).await;
        let (status, said) = desk.ask(&["status", "job"]).await;
        assert_eq!((status, &said["slots"][0]["state"]), (0, &"foreign".into()), "{said:#}");
        let (status, said) = desk.ask(&["disable", "job", "--wait", "--timeout", "3s"]).await;
        assert_eq!((status, &said["state"]), (1, &"running".into()), "{said:#}");
        let (status, said) = desk.ask(&["enable", "job", "--wait", "--timeout", "3s"]).await;
        assert_eq!((status, &said["state"]), (1, &"foreign".into()), "{said:#}");
        let gone = Operation::Delete { path: format!("/zk-leader-run{first}"), version: None };
        desk.write(vec![gone]).await;
        let (status, said) = desk.ask(&["disable", "job", "--wait"]).await;
        assert_eq!((status, &said["state"]), (0, &"idle".into()), "{said:#}");
    });
}

/// It has only ever followed; whoever led may be cut off.
#[test]
fn behind_a_record_that_was_lost_a_host_is_drained_when_its_time_is_over_and_is_not_said_to_lead() {
    in_virtual_time(async {
        let desk = Desk::new().await;
        let mut record = held_by("a");
        (record["holder"], record["leaders"]) = (Value::Null, 1.into());
        let mut follower = member("c");
        (follower["role"], follower["phase"]) = ("follower".into(), "following".into());
        follower["eligible"] = false.into();
        let empty = ["", "/job", "/job/election", "/job/members", "/job/term"].iter();
        let changes = empty.map(|path| create(path, &Value::Null));
        let rest = [create("/job/lease", &record), create("/job/members/c", &follower)];
        desk.write(changes.chain(rest).collect()).await;
        let drain = async |timeout: &str| {
            let (status, said) = desk.ask(&["drain", "c", "--wait", "--timeout", timeout]).await;
            (status, said["state"].clone(), said["leads"].clone(), said["not_known_in"].clone())
        };
        let (nothing, job) = (json!([]), json!(["job"]));
        assert_eq!(drain("2s").await, (2, "unknown".into(), nothing.clone(), job.clone()));
        sleep(Duration::from_secs(20)).await;
        assert_eq!(drain("2s").await, (2, "unknown".into(), nothing.clone(), job), "the clocks may differ");
        assert_eq!(drain("60s").await, (0, "idle".into(), nothing.clone(), nothing));
    });
}

/// Whoever led is cut off, and nobody is there to make it anew.
#[test]
fn an_election_without_its_record_is_one_and_its_command_may_run() {
    for lost in [&["/job/lease"][..], &["/job/lease", "/job/term"]] {
        in_virtual_time(async {
            let desk = Desk::new().await;
            let all = ["", "/job", "/job/election", "/job/members", "/job/history", "/job/term"];
            let changes = all.iter().filter(|path| !lost.contains(path)).map(|path| create(path, &Value::Null));
            desk.write(changes.collect()).await;
            if !lost.contains(&"/job/term") {
                desk.write(vec![set("/term", &Value::Null)]).await;
            }
            let (status, said) = desk.ask(&["status", "job"]).await;
            assert_eq!((status, &said["slots"][0]["state"]), (2, &"unknown".into()), "{said:#}");
            let (status, said) = desk.ask(&["list"]).await;
            assert_eq!((status, &said["elections"][0]["state"]), (0, &"unknown".into()), "{said:#}");
            let (status, said) = desk.ask(&["drain", "a", "--wait", "--timeout", "2s"]).await;
            let told = (status, &said["state"], &said["lease_unreadable_in"]);
            assert_eq!(told, (2, &"unknown".into(), &json!(["job"])), "{said:#}");
            // Orders are written on condition of the term.
            let (status, said) = desk.ask(&["disable", "job", "--wait", "--timeout", "2s"]).await;
            let is_told = said.as_str().is_some_and(|said| said.contains("change the orders all the time"));
            assert!(status == 1 && said["state"] == "running" || status == 2 && is_told, "{said:#}");
        });
    }
}
