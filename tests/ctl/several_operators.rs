//! Orders of several operators: whose order is replaced or ended is told, whatever the clock of whoever does it.

use nix::sys::signal::Signal;
use serde_json::Value;

use super::operator::{ctl, ctl_at, three_hours_fast};
use super::queue::hosts;
use super::{election, link, server};
use crate::support::{Admin, wait};

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
    let remedy =
        format!(" (lapsed by the clock of this host): \"Anna: restore\"; zk-leaderctl enable {name} ends it\n");
    assert!(said.contains(&remedy), "{said}");
    assert_eq!(bob(&["status", name, "--json"]).json()["lapsed"]["disabled"]["reason"], "Anna: restore");
    let said = bob(&["disable", name, "--for", "3s"]);
    assert!(said.code == 1 && said.error.contains("would end earlier than the order of "), "{said:?}");
    let said = bob(&["doctor", name]).output;
    assert!(said.contains("disabled by ") && said.contains(" (lapsed by the clock of this host): "), "{said}");

    let _host = election.steady_host("a").spawn();
    wait::until("it is there", || election.admin.exists(&election.path("members/a")));
    let said = bob(&["doctor", name]);
    assert!(said.code == 0 && said.output.contains("which may be fast"), "{said:?}");
    let said = bob(&["status", name]).output;
    assert!(said.contains("which may be fast: no host has deleted the order): \"Anna: restore\"; "), "{said}");
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
fn an_operator_whose_clock_is_fast_is_told_whose_drain_he_replaces_or_ends_and_does_not_cut_one_short() {
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
    anna();
    let said = ctl_at(election.servers(), &words(&["drain", "db1", "--for", "3s"]), &variables);
    assert!(said.code == 1 && said.error.contains("would end earlier than the order of "), "{said:?}");
    ctl(&words(&["undrain", "db1"]));
    let json = |said: &[&str]| ctl(&[said, &["--json", "--root", &root]].concat()).json();
    let drained = json(&["drain", "db1", "--force", "--reason", "Anna: kernel", "--for", "2h"]);
    assert!(drained["until"].is_i64() && drained["replaced"].is_null(), "{drained}");
    let again = json(&["drain", "db1", "--force", "--reason", "Bob: longer"]);
    assert_eq!((&again["until"], &again["replaced"]["until"]), (&Value::Null, &drained["until"]), "{again}");
    let ended = &json(&["undrain", "db1"])["ended"];
    assert_eq!((&ended["reason"], &ended["force"]), (&"Bob: longer".into(), &true.into()), "{ended}");
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
