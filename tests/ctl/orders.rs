//! disable, enable, handover: what becomes of the running command, of the line, and of those who come and go meanwhile.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::operator::{ctl, ctl_at, process, three_hours_fast};
use super::{election, link, server};
use crate::support::{Admin, Election, Running, Subject, wait};

/// Hosts with these ids, in line in this order; the first one leads.
fn hosts(election: &Election, ids: &[&str]) -> Vec<Running> {
    let mut hosts = Vec::new();
    for id in ids {
        hosts.push(election.host(id).spawn());
        election.until_candidates(hosts.len());
    }
    assert_eq!(election.diary.until_started(1).id, ids[0]);
    hosts
}

/// The ids in line.
fn line(election: &Election) -> Vec<String> {
    let path = |name: &String| election.path(&format!("election/{name}"));
    election.candidates().iter().filter_map(|name| Some(election.admin.find(&path(name))?.0)).collect()
}

fn until_last_started(election: &Election, count: usize) -> String {
    election.diary.until_started(count).id
}

#[test]
fn a_disabled_election_runs_nothing_anywhere_and_nobody_loses_his_place() {
    let election = election();
    let mut hosts = hosts(&election, &["a", "b", "c"]);
    let said = ctl(&["disable", &election.name, "--reason", "upgrade", "--wait"]);
    assert!(said.code == 0 && said.output.ends_with("no command runs\n"), "{said:?}");
    election.diary.until_nobody_lives();
    assert_eq!((election.state().as_str(), line(&election)), ("free", vec!["a".into(), "b".into(), "c".into()]));

    // Whoever comes or goes meanwhile, nothing is run.
    let _newcomer = election.host("d").spawn();
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
        let host = election.host("a").spawn();
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
    let until = format!(" is disabled until somebody runs: zk-leaderctl enable {}\n", election.name);
    assert!(said.code == 0 && said.output.ends_with(&until), "{said:?}");
    let status = ctl(&["status", &election.name]).output;
    assert!(status.contains(" until further notice: maintenance; "), "{status}");
}

#[test]
fn a_long_reason_does_not_hide_what_ends_the_order() {
    let election = election();
    election.prepare();
    let reason = "long ".repeat(200);
    assert_eq!(ctl(&["disable", &election.name, "--reason", &reason]).code, 0);
    let remedy = format!("long ... (800 more characters, -o plain shows them); zk-leaderctl enable {} ", election.name);
    for verb in ["status", "doctor"] {
        let said = ctl(&[verb, &election.name]).output;
        assert!(said.contains(&remedy), "{said}");
    }
    let plain = ctl(&["status", &election.name, "-o", "plain"]).output;
    assert!(plain.contains(&reason), "{plain}");
}

#[test]
fn a_newcomer_to_a_disabled_election_starts_nothing_though_it_is_first_in_line() {
    let election = election();
    election.prepare();
    assert_eq!(ctl(&["disable", &election.name, "--reason", "r"]).code, 0);
    let host = election.host("a").spawn();
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
    assert_eq!(ctl(&["disable", &election.name, "--reason", "r", "--for", "4s", "--wait"]).code, 0);
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
    let host = election.host("a").spawn();
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
    let host = election.host_behind(&link, "a").without("--name").option("--path", &format!("{root}/job")).spawn();
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

/// Another operator writes between our reading and our writing.
#[test]
fn an_order_that_another_operator_gives_at_the_same_time_is_not_lost() {
    let (election, link) = (election(), link());
    election.prepare();
    let control = election.path("control");
    let handover = |order: &str| format!(r#"{{"v":1,"handover":{{"order":"{order}","token":1,"for_ms":3600000}}}}"#);
    election.admin.create(&control, &handover("first"));
    let (path, admin, later) = (control.clone(), Admin::to(&server().connect_string()), handover("second"));
    let mut seen = 0;
    link.tamper(move |frame| {
        seen += usize::from(frame.windows(5).any(|part| part == b"first"));
        // The view of the election comes before.
        if seen == 2 {
            seen += 1;
            admin.set(&path, &later);
        }
        frame
    });
    let said = ctl_at(&link.connect_string(), &["disable", &election.name, "--reason", "r"], &[]);
    let written: Value = serde_json::from_str(&election.admin.read(&control)).unwrap();
    assert_eq!((said.code, &written["handover"]["order"]), (0, &"second".into()), "{written}");
    assert!(written["disabled"].is_object(), "{written}");
}

/// Anna restores a database meanwhile.
#[test]
fn an_order_is_not_replaced_by_one_that_ends_earlier_and_whoever_replaces_or_ends_it_is_told_whose_it_was() {
    let election = election();
    election.prepare();
    let name = &election.name;
    let order = |words: &[&str]| ctl(&[&["disable", name, "--reason"], words].concat());
    assert_eq!(order(&["Anna: restore", "--for", "2h"]).code, 0);
    let control = || election.admin.read(&election.path("control"));
    let given_at = election.admin.stat(&election.path("control")).unwrap().mtime;
    let given = control();
    let said = order(&["Bob: test", "--for", "3s"]);
    let (whose, remedy) =
        ("this order would end earlier than the order of ", format!("zk-leaderctl enable {name} ends that one\n"));
    let parts = [whose, " until 20", " UTC: \"Anna: restore\"; ", &remedy];
    assert!(said.code == 1 && parts.iter().all(|part| said.error.contains(part)), "{said:?}");
    let dated = format!("{},\"since\":{given_at}}}}}", given.trim_end_matches('}'));
    assert_eq!(control(), dated, "the same, though it was written again");
    let said = order(&["Bob: test", "--for", "3s", "--json"]);
    assert_eq!((said.code, said.json()["state"].as_str()), (1, Some("refused")), "{said:?}");

    let said = order(&["Bob: longer"]);
    let is_told = said.output.starts_with("this replaces the order of ") && said.output.contains("\"Anna: restore\"\n");
    assert!(said.code == 0 && is_told, "{said:?}");
    let said = ctl(&["enable", name]).output;
    assert!(
        said.contains(" is enabled again; this ends the order of ") && said.contains("\"Bob: longer\"\n"),
        "{said}"
    );
    assert_eq!(order(&["Bob: test", "--for", "3s"]).code, 0);
}

/// Its supervisor hangs meanwhile.
#[test]
fn programs_are_told_whose_order_is_replaced_or_ended_until_when_and_whose_command_may_still_run() {
    let election = election();
    let (name, hosts) = (&election.name, hosts(&election, &["a"]));
    hosts[0].signal(Signal::SIGSTOP);
    let disable = |words: &[&str]| ctl(&[&["disable", name, "--json", "--reason"], words].concat()).json();
    let anna = disable(&["Anna: restore", "--for", "2h"]);
    assert_eq!((&anna["replaced"], &anna["may_run"]), (&Value::Null, &Value::Null), "{anna}");
    let bob = disable(&["Bob: longer", "--for", "4h", "--wait", "--timeout", "1s"]);
    hosts[0].signal(Signal::SIGCONT);
    let of_anna = (&bob["replaced"]["reason"], &bob["replaced"]["until"]);
    assert_eq!(of_anna, (&"Anna: restore".into(), &anna["until"]), "{bob}");
    let running = &bob["may_run"][0];
    let whose = (&bob["state"], &running["leader"]["id"], &running["why"]);
    assert_eq!(whose, (&"running".into(), &"a".into(), &"a is told to stop its command".into()), "{bob}");
    let shown = &ctl(&["status", name, "--json"]).json()["disabled"];
    let enabled = ctl(&["enable", name, "--json"]).json();
    for order in [shown, &enabled["ended"]] {
        let facts = [&order["reason"], &order["by"], &order["until"]];
        assert_eq!(facts, [&"Bob: longer".into(), &bob["replaced"]["by"], &bob["until"]], "{order}");
        assert!(order["until"].is_i64(), "{order}");
    }
}

/// Bob's host is three hours ahead, and Anna's order ends in two. No host is there, then one.
#[test]
fn an_operator_whose_clock_is_fast_does_not_take_the_order_of_another_one_for_ended() {
    let (election, variables) = (election(), three_hours_fast());
    let name = &election.name;
    let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let bob = |words: &[&str]| ctl_at(election.servers(), words, &variables);
    let anna = || assert_eq!(ctl(&["disable", name, "--reason", "Anna: restore", "--for", "2h"]).code, 0);
    election.prepare();
    anna();
    let said = bob(&["status", name]).output;
    let remedy = format!(" (lapsed by the clock of this host): Anna: restore; zk-leaderctl enable {name} ends it\n");
    assert!(said.contains(&remedy), "{said}");
    assert_eq!(bob(&["status", name, "--json"]).json()["lapsed"]["disabled"]["reason"], "Anna: restore");
    let said = bob(&["disable", name, "--for", "3s"]);
    assert!(said.code == 1 && said.error.contains("would end earlier than the order of "), "{said:?}");

    let _host = election.host("a").spawn();
    wait::until("it is there", || election.admin.exists(&election.path("members/a")));
    let said = bob(&["status", name]).output;
    assert!(said.contains("which may be fast: no host has deleted the order): Anna: restore; "), "{said}");
    let whose =
        |said: &str, how: &str| said.contains(&format!("{how} the order of ")) && said.contains("Anna: restore");
    let said = bob(&["disable", name, "--for", "4h"]).output;
    assert!(whose(&said, "this replaces"), "{said}");
    assert_eq!(ctl(&["enable", name]).code, 0);
    anna();
    let said = bob(&["enable", name]).output;
    assert!(whose(&said, "this ends"), "{said}");
}

/// The same for a host.
#[test]
fn an_operator_whose_clock_is_fast_is_told_whose_drain_he_replaces_or_ends() {
    let (election, variables) = (election(), three_hours_fast());
    let root = format!("/fast-{}", election.name);
    election.admin.create_all(&root);
    let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let words = |words: &[&'static str]| [words, &["--root", root.as_str()]].concat();
    let bob = |said: &[&'static str]| ctl_at(election.servers(), &words(said), &variables).output;
    let anna = || assert_eq!(ctl(&words(&["drain", "db1", "--reason", "Anna: kernel", "--for", "2h"])).code, 0);
    for (asked, how) in [(&["drain", "db1", "--for", "4h"][..], "this replaces"), (&["undrain", "db1"], "this ends")] {
        ctl(&words(&["undrain", "db1"]));
        anna();
        let said = bob(asked);
        assert!(said.contains(&format!("{how} the order of ")) && said.contains("Anna: kernel"), "{said}");
    }
    let json = |said: &[&str]| ctl(&[said, &["--json", "--root", &root]].concat()).json();
    let drained = json(&["drain", "db1", "--force", "--reason", "Anna: kernel", "--for", "2h"]);
    assert!(drained["until"].is_i64() && drained["replaced"].is_null(), "{drained}");
    let again = json(&["drain", "db1", "--force", "--reason", "Bob: longer"]);
    assert_eq!((&again["until"], &again["replaced"]["until"]), (&Value::Null, &drained["until"]), "{again}");
    let ended = &json(&["undrain", "db1"])["ended"];
    assert_eq!((&ended["reason"], &ended["force"]), (&"Bob: longer".into(), &true.into()), "{ended}");
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
        let asked = scope.spawn(|| ctl_at(&servers, &["disable", "--wait", "--timeout", "2s"], &[]));
        wait::until("the order is given", || {
            election.admin.find(&control).is_some_and(|(order, _)| order.contains("disabled"))
        });
        begin("second");
        asked.join().unwrap()
    });
    assert!(said.code == 1 && said.output.contains("a may still run the command after 2s"), "{said:?}");
}

/// Anyone who may write an order may write any name into it.
#[test]
fn no_answer_about_an_order_shows_control_characters_of_its_operator() {
    let election = election();
    let root = format!("/hostile-{}", election.name);
    let drain = format!("{root}/drains/db9");
    election.admin.create_all(&drain);
    election
        .admin
        .set(&drain, r#"{"v":1,"order":"1","reason":"r","by":"\u001b]0;owned\u0007\u001b[31mE\nno command runs"}"#);
    let said = ctl(&["undrain", "db9", "--root", &root]);
    let is_shown = said.output.contains(r"\u{1b}]0;owned\u{7}\u{1b}[31mE\nno command runs");
    assert!(said.code == 0 && is_shown && !said.output.trim_end().contains(char::is_control), "{said:?}");
}

#[test]
fn enable_takes_back_nothing_but_disable() {
    let election = election();
    election.prepare();
    let control = election.path("control");
    let handover = r#""handover":{"order":"another","token":1,"for_ms":3600000}"#;
    election.admin.create(&control, &format!(r#"{{"v":1,"disabled":{{"order":"this"}},{handover}}}"#));
    let said = ctl(&["enable", &election.name]);
    let written: Value = serde_json::from_str(&election.admin.read(&control)).unwrap();
    assert_eq!((said.code, &written["handover"]["order"]), (0, &"another".into()), "{written}");
    assert!(written["disabled"].is_null(), "{written}");
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
        assert!(shown.contains(&format!("{end}: CHG-123")), "{shown}");
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

/// Another one has taken over without a wait, and stops at the order: the first hears of neither.
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
    let said = ctl(&["disable", &election.name, "--wait", "--timeout", "3s"]);
    let sentence = "\na is cut off or dead; with --guarantee at-least-one its command may run until 20";
    assert!(
        said.code == 1 && said.output.contains(sentence) && said.output.ends_with(" (3s have passed)\n"),
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

/// Elected is not yet led: what comes before the command may last, and may fail.
#[test]
fn a_handover_is_done_when_the_command_of_the_next_leader_runs() {
    let election = election();
    let (goes_on, well) = (election.diary.directory().join("goes-on"), election.diary.directory().join("well"));
    let step = format!("until test -e {}; do sleep 0.05; done; test -e {}", goes_on.display(), well.display());
    let _first = election.host("a").option("--on-loss", "rejoin").spawn();
    election.diary.until_started(1);
    let _second = election.host("b").option("--before-start", &step).option("--stand-back", "1s").spawn();
    wait::until("it has said who it is", || election.admin.exists(&election.path("members/b")));

    let says_so = || election.admin.read(&election.path("members/b")).contains(r#""eligible":true"#);
    let until_b_may_lead = || wait::until("it has stood back", || line(&election) == ["a", "b"] && says_so());
    let said = ctl(&["handover", &election.name, "--wait", "--timeout", "3s"]);
    assert!(said.code == 1 && said.output.contains("b is elected, but its command does not run after 3s"), "{said:?}");
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
    let _first = election.host("a").option("--on-loss", "rejoin").spawn();
    election.diary.until_started(1);
    let _second = election.host("b").option("--before-start", &step).spawn();
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
    let prepared = |id| election.host(id).option("--on-loss", "rejoin").option("--before-start", &step).spawn();
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

#[test]
fn enabled_is_led_when_a_command_runs() {
    let election = election();
    let well = election.diary.directory().join("well");
    let step = format!("until test -e {}; do sleep 0.05; done", well.display());
    let _host = election.host("a").option("--before-start", &step).spawn();
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

/// Its command ignores the signal.
fn stops_slowly(election: &Election, id: &str) -> Running {
    election.host(id).option("--stop-signal", "USR1").option("--stop-timeout", "10m").spawn()
}

/// Another operator disables it meanwhile.
#[test]
fn who_waits_for_a_handover_is_told_at_once_that_the_election_is_disabled() {
    let election = election();
    let _first = stops_slowly(&election, "a");
    election.diary.until_started(1);
    let _second = election.host("b").spawn();
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
    let mut hosts = hosts(&election, &["a", "b", "c", "d"]);
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
    let target = election.host("d").option("--health-cmd", &format!("test -e {}", sign.display()));
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
    let hosts = hosts(&election, &["a", "b", "c"]);
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
    let first = election.host("a").witness(&election.diary, &["ignore-term"]).option("--stop-timeout", "60s");
    let _first = first.spawn();
    election.diary.until_started(1);
    let _second = election.host("b").spawn();
    election.until_candidates(2);
    wait::until("it has said who it is", || election.admin.exists(&election.path("members/b")));
    let (admin, control) = (Admin::to(&server().connect_string()), election.path("control"));
    let mut is_late = false;
    slow.tamper(move |frame| {
        if !is_late && admin.find(&control).is_some_and(|(order, _)| order.contains("handover")) {
            is_late = true;
            wait::pass(Duration::from_millis(1500));
        }
        frame
    });
    let said = ctl_at(&slow.connect_string(), &["handover", &election.name, "--wait", "--timeout", "3s"], &[]);
    assert!(said.code == 1 && said.output.ends_with("a is still stopping after 3s; it continues\n"), "{said:?}");
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
    assert_eq!(election.diary.starts().len(), 1);
}

/// Only the leader has a candidate.
#[test]
fn without_a_line_the_others_may_lead_and_whoever_is_first_takes_over() {
    let election = election();
    let single = |id| election.host(id).option("--recipe", "single").option("--on-loss", "rejoin").spawn();
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
    let host = election.host("a").option("--leaders", "3").spawn();
    election.diary.until_started(1);
    // Nobody waits for it.
    host.until_logged("record of the number of leaders");
    assert!(!host.log().contains("held for"), "{}", host.log());
    let said = ctl(&["handover", &election.name]);
    let parts = ["This election has 3 leaders, and handover works only with one", "zk-leaderctl drain HOST"];
    assert!(said.code == 1 && parts.iter().all(|part| said.output.contains(part)), "{said:?}");
}

#[test]
fn orders_that_make_no_sense_are_reported_and_ignored() {
    let election = election();
    let hosts = hosts(&election, &["a", "b"]);
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

#[test]
fn handovers_holds_and_cuts_at_once_never_let_two_run() {
    let election = election();
    let link = link();
    let mut all = hosts(&election, &["a", "b", "c"]);
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
