//! disable and enable: what becomes of the running command, of the line, and of those who come and go meanwhile.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::operator::{ctl, ctl_at, three_hours_fast};
use super::queue::{hosts, hosts_with, line, stops_slowly, until_last_started};
use super::{election, link, server};
use crate::support::election::STEADY;
use crate::support::{Admin, Election, Subject, wait};

#[test]
fn a_disabled_election_runs_nothing_anywhere_and_nobody_loses_his_place() {
    let election = election();
    // The session of the one that is killed ends soon.
    let timeout = |id: &str| if id == "b" { "6s" } else { STEADY };
    let mut hosts = hosts_with(&election, &["a", "b", "c"], timeout);
    let said = ctl(&["disable", &election.name, "--reason", "upgrade", "--wait"]);
    assert!(said.code == 0 && said.output.ends_with("no command runs\n"), "{said:?}");
    election.diary.until_nobody_lives();
    assert_eq!((election.state().as_str(), line(&election)), ("free", vec!["a".into(), "b".into(), "c".into()]));

    // Whoever comes or goes meanwhile, nothing is run.
    let _newcomer = election.steady_host("d").spawn();
    election.until_candidates(4);
    hosts.remove(1).kill();
    election.until_candidates(3);
    let status = ctl(&["status", &election.name]);
    assert!(status.code == 1 && status.output.contains("upgrade"), "{status:?}");
    assert_eq!(election.diary.starts().len(), 1);

    assert_eq!(ctl(&["enable", &election.name, "--wait"]).code, 0);
    assert_eq!(until_last_started(&election, 2), "a");
    assert_eq!(line(&election), ["a", "c", "d"]);
    election.diary.assert_no_overlap();
}

#[test]
fn while_the_record_cannot_be_read_nobody_says_that_no_command_runs() {
    for record in ["garbage", r#"{"v":2}"#] {
        let election = election();
        // It is stopped, so that it neither hears the order nor mends its record.
        let host = election.steady_host("a").spawn();
        election.diary.until_started(1);
        host.signal(Signal::SIGSTOP);
        election.admin.set(&election.path("lease"), record);
        let said = ctl(&["disable", &election.name, "--wait", "--timeout", "1s"]);
        host.signal(Signal::SIGCONT);
        let sentence = format!("the lease record {} is missing or cannot be read", election.path("lease"));
        assert!(said.code == 1 && said.output.contains(&sentence), "{said:?}");
        assert!(!said.output.contains("no command runs"), "{said:?}");
    }
}

#[test]
fn a_reason_is_not_needed() {
    let election = election();
    election.prepare();
    let said = ctl(&["disable", &election.name]);
    let until = format!(" is disabled until somebody ends it (zk-leaderctl enable {})\n", election.name);
    assert!(said.code == 0 && said.output.ends_with(&until), "{said:?}");
    let status = ctl(&["status", &election.name]).output;
    assert!(status.contains(" ago, until somebody ends it: \"maintenance\"; "), "{status}");
}

#[test]
fn a_long_reason_does_not_hide_what_ends_the_order() {
    let election = election();
    election.prepare();
    let reason = "long ".repeat(200);
    assert_eq!(ctl(&["disable", &election.name, "--reason", &reason]).code, 0);
    let remedy =
        format!("long ...\" (800 more characters, -o plain shows them); zk-leaderctl enable {} ", election.name);
    for verb in ["status", "doctor"] {
        let said = ctl(&[verb, &election.name]).output;
        assert!(said.contains(&remedy), "{said}");
    }
    let plain = ctl(&["status", &election.name, "-o", "plain"]).output;
    assert!(plain.contains(&reason), "{plain}");
}

/// Its own run was stopped, and no other host repeats it.
#[test]
fn a_job_that_an_operator_stopped_says_why_its_status_is_no_success() {
    let election = election();
    let mut host = election.steady_host("a").option("--slot", "noon").spawn();
    election.diary.until_started(1);
    assert_eq!(ctl(&["disable", &election.name, "--reason", "r", "--wait"]).code, 0);
    assert_eq!(ctl(&["enable", &election.name]).code, 0);
    let (code, log) = (host.code(), host.log());
    assert!(code == 76 && log.contains("Our own run is not repeated: slot noon had a run by a on "), "{log}");
    let why = "-> releasing: leadership was lost during our own run, which was stopped and is not repeated";
    assert!(log.contains(why) && !log.contains("duplicate") && !log.contains("another run counts"), "{log}");
    assert_eq!(election.diary.starts().len(), 1);
    let mut other = election.steady_host("b").option("--slot", "noon").spawn();
    assert!(other.code() == 0 && other.log().contains("This call is a duplicate: slot noon "), "{}", other.log());
}

#[test]
fn a_newcomer_to_a_disabled_election_starts_nothing_though_it_is_first_in_line() {
    let election = election();
    election.prepare();
    assert_eq!(ctl(&["disable", &election.name, "--reason", "r"]).code, 0);
    let host = election.steady_host("a").spawn();
    election.until_candidates(1);
    host.until_logged("request=Enter");
    wait::pass(wait::SETTLED);
    assert_eq!((election.state().as_str(), election.diary.starts().len()), ("free", 0));
    assert_eq!(ctl(&["enable", &election.name]).code, 0);
    assert_eq!(until_last_started(&election, 1), "a");
}

#[test]
fn an_order_ends_by_itself() {
    let election = election();
    let _hosts = hosts(&election, &["a"]);
    // Long enough for the command to end before.
    assert_eq!(ctl(&["disable", &election.name, "--reason", "r", "--for", "6s", "--wait"]).code, 0);
    assert_eq!(until_last_started(&election, 2), "a");
    until_no_order(&election);
}

/// Its supervisor hangs: it starts the command again as soon as it goes on.
#[test]
fn who_waits_for_an_order_that_has_lapsed_is_not_told_that_it_is_obeyed() {
    let election = election();
    let hosts = hosts(&election, &["a"]);
    hosts[0].signal(Signal::SIGSTOP);
    let said = ctl(&["disable", &election.name, "--for", "1s", "--wait"]);
    hosts[0].signal(Signal::SIGCONT);
    let told = "the order lapsed, or was taken back by somebody, meanwhile; zk-leaderctl status ";
    assert!(said.code == 1 && said.output.contains(told), "{said:?}");
    assert!(!said.output.contains("no command runs"), "{said:?}");
}

fn until_no_order(election: &Election) {
    wait::until("the order is deleted", || !election.admin.read(&election.path("control")).contains("disabled"));
}

/// The hosts were started anew meanwhile: nobody has seen it lapse.
#[test]
fn an_order_that_has_lapsed_is_deleted_and_not_obeyed_by_a_host_that_starts_later() {
    let election = election();
    election.prepare();
    assert_eq!(ctl(&["disable", &election.name, "--reason", "r", "--for", "2s"]).code, 0);
    wait::pass(Duration::from_millis(2500));
    let status = ctl(&["status", &election.name]).output;
    assert!(status.contains("lapsed"), "{status}");
    let list = ctl(&["list", "-o", "plain"]).output;
    assert!(list.lines().any(|line| line.starts_with(&election.name) && line.ends_with("nobody leads")), "{list}");
    let host = election.steady_host("a").spawn();
    assert_eq!(until_last_started(&election, 1), "a");
    until_no_order(&election);
    assert!(!host.log().contains("disabled"), "{}", host.log());
}

/// An operator writes after the host has read the one that has lapsed, and before it deletes that one.
#[test]
fn an_order_that_is_given_while_a_host_deletes_one_that_has_lapsed_is_not_lost() {
    let (election, link) = (election(), link());
    let root = format!("/lapse-{}", election.name);
    election.admin.create_all(&format!("{root}/drains"));
    let host = election.host_behind(&link, "a").session_timeout(STEADY).without("--name");
    let host = host.option("--path", &format!("{root}/job")).spawn();
    election.diary.until_started(1);
    let name = nix::unistd::gethostname().unwrap().into_string().unwrap();
    for (path, before, after, complaint) in [
        (format!("{root}/job/control"), r#"{"v":1,"disabled":{"#, "}}", "A lapsed order was not deleted"),
        (format!("{root}/drains/{name}"), r#"{"v":1,"force":true,"#, "}", "A drain that has lapsed was not deleted"),
    ] {
        let [lapsed, later] =
            [r#""order":"lapsed","for_ms":0"#, r#""order":"later""#].map(|it| format!("{before}{it}{after}"));
        let (admin, at, mut is_given) = (Admin::to(&server().connect_string()), path.clone(), false);
        link.tamper(move |frame| {
            if has(&frame, "lapsed") && !std::mem::replace(&mut is_given, true) {
                admin.set(&at, &later);
            }
            frame
        });
        election.admin.create(&path, &lapsed);
        let found = || election.admin.find(&path).map_or_else(String::new, |(order, _)| order);
        let stands = || found().contains("order");
        wait::until("the host has tried to delete it", || host.log().contains(complaint) || !stands());
        assert!(found().contains("later"), "{path} is lost: {:?}", found());
    }
}

fn has(frame: &[u8], word: &str) -> bool {
    frame.windows(word.len()).any(|part| part == word.as_bytes())
}

/// Another order that is written beside it does not prolong it.
#[test]
fn an_order_counts_from_when_it_was_given_and_not_from_the_last_write() {
    let election = election();
    election.prepare();
    let given = r#"{"v":1,"handover":{"order":"h","token":1,"for_ms":3600000}}"#;
    election.admin.create(&election.path("control"), given);
    let given_at = election.admin.stat(&election.path("control")).unwrap().mtime;
    assert_eq!(ctl(&["disable", &election.name, "--reason", "r", "--for", "1h"]).code, 0);
    let control: Value = serde_json::from_str(&election.admin.read(&election.path("control"))).unwrap();
    assert_eq!(control["handover"]["since"].as_i64(), Some(given_at));
    assert_eq!(control["disabled"].get("since"), None, "it is given by this very write");
}

/// In a chroot of its own the election needs no name, until another one begins there while an operator waits.
#[test]
fn who_waits_for_the_only_election_waits_on_for_it_when_a_second_one_begins() {
    let election = election();
    let chroot = format!("/only-{}", election.name);
    let begin = |name: &str| {
        let base = format!("{chroot}/zk-leader-run/{name}");
        for path in ["term", "election", "members"] {
            election.admin.create_all(&format!("{base}/{path}"));
        }
        let record = r#"{"v":1,"state":"held","lease_ms":600000,"holder":{"id":"a","host":"h","pid":1}}"#;
        election.admin.create(&format!("{base}/lease"), record);
        base
    };
    let control = begin("first") + "/control";
    let servers = format!("{}{chroot}", server().connect_string());
    let said = std::thread::scope(|scope| {
        let asked = scope.spawn(|| ctl_at(&servers, &["disable", "--wait", "--timeout", "4s"], &[]));
        wait::until("the order is given", || {
            election.admin.find(&control).is_some_and(|(order, _)| order.contains("disabled"))
        });
        begin("second");
        asked.join().unwrap()
    });
    assert!(said.code == 1 && said.output.contains("a may still run the command after 4s"), "{said:?}");
}

/// The one that is meant may be one of them.
#[test]
fn the_only_election_that_we_may_read_is_not_taken_for_the_only_one() {
    let election = election();
    let chroot = format!("/half-{}", election.name);
    let below = |path: &str| format!("{chroot}/zk-leader-run/{path}");
    for path in ["open/term", "open/election", "open/members", "closed"] {
        election.admin.create_all(&below(path));
    }
    election.admin.create(&below("open/lease"), r#"{"v":1,"state":"free","lease_ms":4000}"#);
    let servers = format!("{}{chroot}", server().connect_string());
    assert_eq!(ctl_at(&servers, &["disable"], &[]).code, 0);
    election.admin.set_acl(&below("closed"), "digest", "somebody:else", "cdrwa");
    let said = ctl_at(&servers, &["enable"], &[]);
    let sentence = "there is 'open', and there may be others, which we may not read: 'closed'; name one of them\n";
    assert!(said.code == 64 && said.error.ends_with(sentence), "{said:?}");
    assert_eq!(ctl_at(&servers, &["enable", "open"], &[]).code, 0);
}

/// It may have been meant as the length of the order.
#[test]
fn a_timeout_without_a_wait_is_told() {
    let election = election();
    election.prepare();
    let said = ctl(&["disable", &election.name, "--timeout", "30m"]);
    let told = "zk-leaderctl: --timeout has no effect without --wait; --for ends the order\n";
    assert!(said.code == 0 && said.error == told, "{said:?}");
    let said = ctl(&["enable", &election.name, "--wait", "--timeout", "1s"]);
    assert!(said.error.is_empty(), "{said:?}");
}

#[test]
fn every_host_says_who_has_disabled_the_election_why_and_for_how_long() {
    let election = election();
    let hosts = hosts(&election, &["a", "b"]);
    let said = ctl(&["disable", &election.name, "--reason", "CHG-123", "--for", "1h"]);
    assert_eq!(said.code, 0, "{said:?}");
    // The same words everywhere: "until 2026-11-21 03:00:00 UTC".
    let end = said.output.trim_end().split_once(" is disabled ").unwrap().1;
    assert!(end.starts_with("until 20") && end.ends_with(" UTC"), "{said:?}");
    for words in [["status", &election.name], ["doctor", &election.name]] {
        let shown = ctl(&words).output;
        assert!(shown.contains(&format!("{end}: \"CHG-123\"")), "{shown}");
    }
    let user = nix::unistd::User::from_uid(nix::unistd::getuid()).unwrap().unwrap().name;
    for host in &hosts {
        host.until_logged(&format!("Disabled by {user}@"));
        host.until_logged(&format!("{end}: \"CHG-123\""));
    }
    assert_eq!(ctl(&["enable", &election.name]).code, 0);
    for host in &hosts {
        host.until_logged("Enabled again");
    }
}

#[test]
fn a_leader_that_is_cut_off_is_not_taken_for_idle_before_its_lease_is_over() {
    let election = election();
    let link = link();
    let _host = election.host_behind(&link, "a").witness(&election.diary, &["ignore-term"]).spawn();
    election.diary.until_started(1);
    link.cut();
    let said = ctl(&["disable", &election.name, "--reason", "r", "--wait"]);
    assert!(said.code == 0 && said.output.ends_with("no command runs\n"), "{said:?}");
    assert!(!election.diary.somebody_lives(), "it was said that no command runs");
    link.heal();
    election.until_candidates(1);
    wait::pass(wait::SETTLED);
    assert_eq!(election.diary.starts().len(), 1, "it comes back, and is still disabled");
}

/// It is cut off in the middle of the first look: its command runs on under the renewal that was read last.
#[test]
fn a_renewal_that_comes_while_the_first_look_takes_long_counts_from_then() {
    let (election, link, slow) = (election(), link(), link());
    let host = election.host_behind(&link, "a").witness(&election.diary, &["ignore-term"]);
    let _host = host.option("--stop-timeout", "60s").spawn();
    election.diary.until_started(1);
    wait::until("it has said who it is", || election.admin.exists(&election.path("members/a")));
    let mut looks = 0;
    slow.tamper(move |frame| {
        // The members are read between the clock and the record; and once before the order is given.
        looks += usize::from(has(&frame, "session_ms"));
        if looks == 2 {
            looks += 1;
            wait::pass(Duration::from_secs(2));
            link.stall();
        }
        frame
    });
    let said = ctl_at(&slow.connect_string(), &["disable", &election.name, "--wait"], &[]);
    assert!(said.code == 0 && said.output.ends_with("no command runs\n"), "{said:?}");
    assert!(!election.diary.somebody_lives(), "it was said that no command runs");
}

/// Another one has taken over without a wait, and stops at the order: the first hears of neither. The operator's clock is fast.
#[test]
fn under_at_least_one_a_leader_that_is_cut_off_is_waited_for_though_the_record_is_free() {
    let (election, link) = (election(), link());
    let runs_on = |host: Subject| {
        let host = host.option("--guarantee", "at-least-one").option("--max-pause", "60s");
        host.witness(&election.diary, &[]).spawn()
    };
    let _first = runs_on(election.host_behind(&link, "a"));
    election.diary.until_started(1);
    let _second = runs_on(election.host("b").session_timeout("4s"));
    election.until_candidates(2);
    let history = election.path("history");
    wait::until("it is written down", || election.admin.exists(&history));
    link.stall();
    election.diary.until_started(2);
    let fast = three_hours_fast();
    let fast: Vec<_> = fast.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let said = ctl_at(election.servers(), &["disable", &election.name, "--wait", "--timeout", "6s"], &fast);
    let sentence = "\na is cut off or dead; with --guarantee at-least-one its command may run until 20";
    assert!(
        said.code == 1 && said.output.contains(sentence) && said.output.ends_with(" (6s have passed)\n"),
        "{said:?}"
    );
    assert!(election.diary.somebody_lives());
    link.heal();
    let said = ctl(&["disable", &election.name, "--wait"]);
    assert!(said.code == 0 && said.output.ends_with("no command runs\n"), "{said:?}");
    assert!(!election.diary.somebody_lives(), "it was said that no command runs");
}

/// It stands in line, its record says that it holds the lease, and it has given way.
#[test]
fn a_host_that_is_disabled_while_it_fences_is_not_said_to_lead_or_to_be_cut_off() {
    let election = election();
    election.prepare();
    let record = r#"{"v":1,"state":"held","holder":{"id":"ghost","host":"h","pid":1},"lease_ms":1000}"#;
    election.admin.set(&election.path("lease"), record);
    let host = election.host("a").session_timeout("10s").option("--fence-cmd", "sleep 999").spawn();
    host.until_logged("Fencing");
    assert_eq!(ctl(&["disable", &election.name]).code, 0);
    let status = || (ctl(&["status", &election.name, "--json"]), ctl(&["status", &election.name]).output);
    wait::until("the reason is gave-way", || status().0.json()["slots"][0]["reason"] == "gave-way");
    let (object, shown) = status();
    let contender = &object.json()["contenders"][0];
    assert_eq!(
        (object.code, &contender["place"], &contender["leads"], &contender["phase"]),
        (1, &1.into(), &false.into(), &"following".into())
    );
    assert!(shown.contains("nobody: a gave way without releasing, and its lease "), "{shown}");
    wait::until("its lease has run out", || {
        status().1.contains("a gave way without releasing, and its lease has run out")
    });
    let shown = status().1;
    assert!(shown.lines().any(|line| line.contains(" following ") && line.ends_with(" yes")), "{shown}");
}

/// Its leader is gone, and others may vouch for it; or nobody can read who leads.
#[test]
fn where_a_command_may_run_on_promises_nobody_is_told_that_no_command_runs() {
    let election = election();
    election.prepare();
    let vouched = r#"{"v":1,"state":"held","lease_ms":1000,"vouch_ms":600000,"holder":{"id":"a","host":"h","pid":1}}"#;
    for (record, why, reason) in [
        (vouched, "a is cut off or dead; with --vouch its command may run until ", "cut-off".into()),
        ("garbage", "the lease record ", Value::Null),
    ] {
        election.admin.set(&election.path("lease"), record);
        let words = ["enable", &election.name, "--wait", "--timeout", "1s"];
        let said = ctl(&words);
        let sentence = format!("whether a command runs is not known after 1s: {why}");
        assert!(said.code == 2 && said.output.contains(&sentence), "{said:?}");
        let said = ctl(&[&words[..], &["--json"]].concat());
        assert_eq!((said.code, &said.json()["state"]), (2, &"unknown".into()), "{said:?}");
        let said = ctl(&["handover", &election.name]);
        let sentence = format!("who leads is not known: {why}");
        assert!(said.code == 2 && said.output.starts_with(&sentence), "{said:?}");
        let said = ctl(&["handover", &election.name, "--json"]);
        let object = said.json();
        let is_told = (said.code, &object["done"], &object["state"], &object["reason"]);
        assert_eq!(is_told, (2, &false.into(), &"unknown".into(), &reason), "{said:?}");
    }
}

#[test]
fn enabled_is_led_when_a_command_runs() {
    let election = election();
    let well = election.diary.directory().join("well");
    let step = format!("until test -e {}; do sleep 0.05; done", well.display());
    let _host = election.steady_host("a").option("--before-start", &step).spawn();
    wait::until("it has said who it is", || election.admin.exists(&election.path("members/a")));
    assert_eq!(ctl(&["disable", &election.name, "--reason", "r", "--wait"]).code, 0);
    let said = ctl(&["enable", &election.name, "--wait", "--timeout", "3s"]);
    assert!(said.code == 1 && said.output.contains("no command runs after 3s"), "{said:?}");
    assert!(said.output.contains("a is elected; it is preparing\n"), "{said:?}");
    std::fs::write(&well, "").unwrap();
    let said = ctl(&["enable", &election.name, "--wait"]);
    assert!(said.code == 0 && said.output.ends_with("a leads\n"), "{said:?}");
}

/// The election was disabled before, and its command takes as long as `--stop-timeout`.
#[test]
fn enabled_is_not_told_as_idle_while_the_command_still_stops() {
    let election = election();
    let _host = stops_slowly(&election, "a");
    election.diary.until_started(1);
    wait::until("it has said who it is", || election.admin.exists(&election.path("members/a")));
    assert_eq!(ctl(&["disable", &election.name]).code, 0);
    wait::until("it stops", || election.admin.read(&election.path("members/a")).contains("stopping"));
    let said = ctl(&["enable", &election.name, "--wait", "--timeout", "1s"]);
    let sentence = "whether a command runs is not known after 1s: a is stopping\n";
    assert!(said.code == 2 && said.output.ends_with(sentence), "{said:?}");
    assert!(election.diary.somebody_lives());
}

#[test]
fn orders_that_make_no_sense_are_reported_and_ignored() {
    let election = election();
    // The lease is renewed each second.
    let hosts = hosts_with(&election, &["a", "b"], |_| "8s");
    election.admin.create(&election.path("control"), "garbage");
    for host in &hosts {
        host.until_logged("The operators' orders could not be read, and are ignored");
    }
    election
        .admin
        .set(&election.path("control"), r#"{"v":1,"handover":{"order":"1","token":1,"stop":true,"for_ms":60000}}"#);
    let before = election.record_version();
    wait::until("the lease was renewed since", || election.record_version() > before + 1);
    assert_eq!(election.diary.starts().len(), 1, "that order is for another term");
    assert_eq!(ctl(&["enable", &election.name]).code, 0);
    assert_eq!(ctl(&["handover", &election.name, "--wait"]).code, 0, "good orders are heard again");
    // Who may know what is ordered there?
    election.admin.set(&election.path("control"), r#"{"v":2,"frozen":true}"#);
    let said = ctl(&["enable", &election.name]);
    assert!(said.code == 2 && said.error.contains("newer zk-leaderctl"), "{said:?}");
    assert_eq!(election.admin.read(&election.path("control")), r#"{"v":2,"frozen":true}"#);
}
