//! `drain`: what it says of a host, and which of two drains counts.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use nix::sys::signal::Signal;

use super::fleet::{Fleet, typed};
use super::link;
use super::operator::{ctl, ctl_at, process, three_hours_fast};
use crate::support::wait;

#[test]
fn a_drain_is_not_replaced_by_one_that_ends_earlier_or_is_not_forced() {
    let fleet = Fleet::new(1);
    let path = fleet.path(&fleet.elections[0]);
    for below in ["lease", "term"] {
        fleet.elections[0].admin.create_all(&format!("{path}/{below}"));
    }
    let drain = |words: &[&str]| fleet.ctl(&[&["drain", "one", "--reason"], words].concat());
    assert_eq!(drain(&["Anna: restore", "--for", "2h", "--force"]).code, 0);
    let znode = format!("{}/drains/one", fleet.root);
    let stands = fleet.elections[0].admin.read(&znode);
    for (words, lacks) in [
        (&["Bob: test", "--for", "3s", "--force"][..], "this order would end earlier than the order of "),
        (&["Bob: test", "--for", "3h"], "this order lacks the --force of the order of "),
    ] {
        let said = drain(words);
        let remedy = format!("zk-leaderctl undrain one --root {} ends that one\n", fleet.root);
        let parts = [lacks, " UTC: \"Anna: restore\"; ", &remedy];
        assert!(said.code == 1 && parts.iter().all(|part| said.error.contains(part)), "{said:?}");
        assert_eq!(fleet.elections[0].admin.read(&znode), stands);
    }
    let said = drain(&["Bob: longer", "--for", "3h", "--force"]);
    assert!(said.code == 0 && said.output.starts_with("this replaces the order of "), "{said:?}");
    let said = fleet.ctl(&["undrain", "one"]).output;
    let ended = format!("one is not drained any more below {}; this ends the order of ", fleet.root);
    assert!(said.starts_with(&ended), "{said}");
}

/// The host has heard of the first one, and its command takes two seconds to end.
#[test]
fn a_drain_that_is_given_anew_with_force_counts_and_waits_for_a_command_that_stops_slowly() {
    let options = &[("--stop-signal", "USR1"), ("--stop-timeout", "2s")];
    let fleet = Fleet { options, ..Fleet::new(1) };
    let first = fleet.boot("one");
    fleet.until_led_by("one");
    fleet.until_members(1);
    let said = fleet.ctl(&["drain", "one", "--reason", "the first"]);
    assert!(said.code == 0, "{said:?}");
    first[0].until_logged("no other host could take over, so it stays");
    let said = fleet.ctl(&["drain", "one", "--reason", "the second", "--force", "--wait"]);
    assert!(said.code == 0 && said.output.contains("one leads no election any more"), "{said:?}");
    first[0].until_logged("\"the second\"");
    assert!(!fleet.elections[0].diary.somebody_lives());
}

/// Its command ignores the signal, so that it takes as long as `--stop-timeout`.
#[test]
fn a_host_whose_command_stops_slowly_is_said_to_stop_when_the_time_is_over() {
    let options = &[("--stop-signal", "USR1"), ("--stop-timeout", "10m")];
    let fleet = Fleet { options, ..Fleet::new(1) };
    let _host = fleet.boot("one");
    fleet.until_led_by("one");
    fleet.until_members(1);
    assert_eq!(fleet.ctl(&["drain", "one", "--force"]).code, 0);
    let (election, path) = (&fleet.elections[0], format!("{}/members/one", fleet.path(&fleet.elections[0])));
    wait::until("it stops its command", || election.admin.read(&path).contains("stopping"));
    let said = fleet.ctl(&["drain", "one", "--force", "--wait", "--timeout", "1s"]);
    let name = &election.name;
    let sentence =
        format!("one still leads {name} (1s have passed); it is still stopping its command in {name}, and continues\n");
    assert!(said.code == 1 && said.output.ends_with(&sentence), "{said:?}");
    let said = fleet.about(election, &["disable", "--wait", "--timeout", "1s"]);
    assert!(said.code == 1 && said.output.ends_with("one is still stopping after 1s; it continues\n"), "{said:?}");
}

/// Somebody else takes the drain back, and the command does not end.
#[test]
fn who_waits_for_a_drain_is_told_that_it_was_taken_back() {
    let options = &[("--stop-signal", "USR1"), ("--stop-timeout", "10m")];
    let fleet = Fleet { options, ..Fleet::new(1) };
    let _host = fleet.boot("one");
    fleet.until_led_by("one");
    fleet.until_members(1);
    let words = ["drain", "one", "--force", "--wait", "--timeout", "1m", "--root", &fleet.root];
    let link = link();
    // The same session sees it, or the next one.
    for is_cut in [false, true] {
        let mut order = process(&link.connect_string(), &words, &[]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(order.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.starts_with("one still leads ")), "it never said so");
        if is_cut {
            link.cut();
            assert!(lines.any(|line| line.contains("the same server is asked")), "it never said so");
        }
        assert_eq!(fleet.ctl(&["undrain", "one"]).code, 0);
        link.heal();
        let rest: Vec<_> = lines.collect();
        assert_eq!(order.wait().unwrap().code(), Some(1), "{rest:?}");
        let told = "the drain was taken back by somebody meanwhile; zk-leaderctl list --path ";
        assert!(rest.last().is_some_and(|line| line.starts_with(told)), "{rest:?}");
    }
}

/// Its supervisor hangs, and its candidate is gone: the other one is elected, and has to wait for the lease.
#[test]
fn while_a_host_waits_for_the_lease_of_another_one_the_command_of_that_one_may_run() {
    let fleet = Fleet::new(1);
    let first = fleet.boot("one");
    fleet.until_led_by("one");
    let (election, path) = (&fleet.elections[0], fleet.path(&fleet.elections[0]));
    let (name, queue) = (&election.name, format!("{path}/election"));
    let candidate = format!("{queue}/{}", election.admin.children(&queue)[0]);
    let _second = fleet.boot("two");
    fleet.until_all_in_line(2);
    fleet.until_eligible("two");
    first[0].signal(Signal::SIGSTOP);
    election.admin.delete(&candidate);
    wait::until("the other one waits", || fleet.status(election).contains("two is elected, and waits"));

    let waits = "two is elected, and waits until the lease before its own is over\n";
    let said = fleet.ctl(&["drain", "one", "--wait", "--timeout", "1s"]);
    let sentence = format!("one still leads {name} (1s have passed); in {name}, {waits}");
    assert!(said.code == 1 && said.output.ends_with(&sentence), "{said:?}");
    assert!(election.diary.somebody_lives() && election.diary.starts().len() == 1);
    let shown = fleet.status(election);
    assert!(shown.lines().any(|line| line.starts_with("-  one ") && line.contains(" leading ")), "{shown}");
    let said = fleet.about(election, &["enable", "--wait", "--timeout", "1s"]);
    let sentence = format!("whether a command runs is not known after 1s: {waits}");
    assert!(said.code == 2 && said.output.ends_with(&sentence), "{said:?}");

    // The lease is not its own.
    assert_eq!(fleet.ctl(&["undrain", "one"]).code, 0);
    let said = fleet.ctl(&["drain", "two", "--wait"]);
    assert!(said.code == 0 && said.output.ends_with("two leads no election any more\n"), "{said:?}");
    // It has left the line, and a moment later it says that it follows.
    let shown = fleet.status(election);
    assert!(shown.contains("nobody: two ") && shown.contains(", and the lease before it "), "{shown}");
    first[0].signal(Signal::SIGCONT);
}

#[test]
fn a_drain_below_one_election_is_refused_with_the_root_that_is_meant() {
    let fleet = Fleet::new(1);
    let (admin, base) = (&fleet.elections[0].admin, fleet.path(&fleet.elections[0]));
    for below in ["lease", "term"] {
        admin.create_all(&format!("{base}/{below}"));
    }
    for wait in [&[][..], &["--wait"]] {
        let said = ctl(&[&["drain", "one", "--root", &base], wait].concat());
        let remedy = format!(
            "{base} is one election, and a drain is for all below a root: zk-leaderctl drain one --root {}\n",
            fleet.root
        );
        assert!(said.code == 64 && said.error.ends_with(&remedy), "{said:?}");
        assert!(!admin.exists(&format!("{base}/drains")));
    }
    typed(&format!("zk-leaderctl drain one --root {}", fleet.root));
    // Elections may be below it, too.
    for below in ["lease", "term"] {
        admin.create_all(&format!("{base}/nested/{below}"));
    }
    assert_eq!(ctl(&["drain", "one", "--root", &base]).code, 0);
}

/// It crashed, or is cut off: its member and its candidate are gone.
#[test]
fn a_drain_of_a_host_that_takes_part_nowhere_and_may_lead_is_not_said_to_stop_nothing() {
    let fleet = Fleet::new(1);
    let (election, path) = (&fleet.elections[0], fleet.path(&fleet.elections[0]));
    for below in ["lease", "term", "election"] {
        election.admin.create_all(&format!("{path}/{below}"));
    }
    let record = |rest: &str| {
        format!(r#"{{"v":1,"state":"held","lease_ms":60000{rest},"holder":{{"id":"a","host":"one","pid":1}}}}"#)
    };
    let name = &election.name;
    let leads = format!("one still leads {name}\n");
    for (record, told) in [
        (record(r#","guarantee":"at-most-one""#), leads.clone()),
        (record(r#","vouch_ms":600000,"guarantee":"at-most-one, vouched""#), leads),
        ("garbage".to_owned(), format!("one is drained; it may lead {name}, whose lease record is missing or ")),
    ] {
        election.admin.set(&format!("{path}/lease"), &record);
        let said = fleet.ctl(&["drain", "one"]);
        let (_, last) = said.output.split_once(&format!("0 of 1 elections below {}\n", fleet.root)).unwrap();
        assert!(said.code == 0 && last.starts_with(&told), "{said:?}");
        // Only a record that can be read names a host.
        let doubt = "; no host called one takes part (nobody takes part): is the name right?\n";
        assert_eq!(last.ends_with(doubt), record == "garbage", "{said:?}");
    }
}

/// Of another election nobody knows whether it leads there.
#[test]
fn what_a_drained_host_still_leads_is_named_beside_what_it_may_lead() {
    let fleet = Fleet::new(1);
    let (election, crashed) = (&fleet.elections[0], format!("{}/crashed", fleet.root));
    let _host = fleet.boot("one");
    fleet.until_led_by("one");
    fleet.until_members(1);
    for below in ["lease", "term", "election"] {
        election.admin.create_all(&format!("{crashed}/{below}"));
    }
    election.admin.set(&format!("{crashed}/lease"), "garbage");
    let said = fleet.ctl(&["drain", "one", "--wait", "--timeout", "6s", "-o", "json"]);
    let json = said.json();
    assert_eq!((said.code, &json["state"]), (1, &"leading".into()), "{said:?}");
    assert_eq!(json["only_candidate_in"], serde_json::json!([election.name]), "{said:?}");
    let said = fleet.ctl(&["drain", "one", "--wait", "--timeout", "4s"]);
    let told = format!("it stays leader of {}, which no other host could lead (4s have passed)", election.name);
    assert!(said.code == 1 && said.output.lines().last().is_some_and(|last| last.contains(&told)), "{said:?}");
}

/// Nobody waits for what becomes of it: so what will not change is told at once.
#[test]
fn who_drains_a_host_is_told_at_once_what_no_other_host_could_lead() {
    let fleet = Fleet::new(1);
    let _host = fleet.boot("one");
    fleet.until_led_by("one");
    fleet.until_members(1);
    let name = &fleet.elections[0].name;
    let said = fleet.ctl(&["drain", "one"]);
    let told = format!(
        "one still leads {name}, which no other host could lead; start one elsewhere, or zk-leaderctl drain one "
    );
    assert!(said.code == 0 && said.output.contains(&told), "{said:?}");
    let said = fleet.ctl(&["drain", "one", "--force", "-o", "json"]).json();
    assert_eq!(said["only_candidate_in"], serde_json::json!([]), "it is obeyed even so");
    let diary = &fleet.elections[0].diary;
    diary.until_nobody_lives();
    assert_eq!(fleet.ctl(&["undrain", "one"]).code, 0);
    diary.until_started(2);
    let _other = fleet.boot("two");
    fleet.until_members(2);
    fleet.until_led_by("one");
    let said = fleet.ctl(&["drain", "one"]);
    assert!(said.code == 0 && !said.output.contains("no other host could lead"), "{said:?}");
}

/// Its supervisor hangs: it starts the command again as soon as it goes on.
#[test]
fn a_drain_that_has_lapsed_is_not_said_to_be_obeyed() {
    let fleet = Fleet::new(1);
    let first = fleet.boot("one");
    fleet.until_led_by("one");
    fleet.until_members(1);
    first[0].signal(Signal::SIGSTOP);
    let said = fleet.ctl(&["drain", "one", "--force", "--for", "1s", "--wait", "--timeout", "20s"]);
    first[0].signal(Signal::SIGCONT);
    let told = "\nthe drain lapsed, or was taken back by somebody, meanwhile; zk-leaderctl list --path ";
    assert!(said.code == 1 && said.output.contains(told), "{said:?}");
}

/// The only host of its election obeys, since it must, and is not said to lead next. The operator's clock is fast.
#[test]
fn a_forced_drain_with_an_end_is_seen_to_be_obeyed_by_an_operator_whose_clock_is_fast() {
    let fleet = Fleet::new(1);
    let _first = fleet.boot("one");
    fleet.until_led_by("one");
    let fast = three_hours_fast();
    let fast: Vec<_> = fast.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let words = ["drain", "one", "--force", "--for", "5m", "--wait", "--root", &fleet.root];
    let said = ctl_at(fleet.elections[0].servers(), &words, &fast);
    assert!(said.code == 0 && said.output.ends_with("\none leads no election any more\n"), "{said:?}");
}

/// The first has just given way, and its member does not say yet that it is drained.
#[test]
fn of_two_hosts_drained_one_right_after_the_other_the_second_leads_on_and_is_named() {
    let fleet = Fleet::new(1);
    let _first = fleet.boot("one");
    fleet.until_led_by("one");
    let _second = fleet.boot("two");
    fleet.until_all_in_line(2);
    fleet.until_eligible("two");
    let said = fleet.ctl(&["drain", "one", "--wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    let said = fleet.ctl(&["drain", "two", "--wait"]);
    assert!(said.code == 1 && said.output.contains("which no other host could lead"), "{said:?}");
    fleet.until_led_by("two");
    let starts = fleet.starts();
    assert_eq!(starts, 2, "it was stopped and started for nothing");
    fleet.assert_handed_over();
}

/// The leader, drained before it, needs ten seconds to stop, and nobody else is there.
#[test]
fn a_host_that_leads_next_since_no_other_can_is_not_said_to_lead_none() {
    let options = &[("--stop-signal", "USR1"), ("--stop-timeout", "10s")];
    let fleet = Fleet { options, ..Fleet::new(1) };
    let _first = fleet.boot("one");
    fleet.until_led_by("one");
    let _second = fleet.boot("two");
    fleet.until_all_in_line(2);
    fleet.until_eligible("two");
    let said = fleet.ctl(&["drain", "one"]);
    let until =
        format!("one is drained until somebody ends it (zk-leaderctl undrain one --root {}); it takes", fleet.root);
    assert!(said.code == 0 && said.output.starts_with(&until), "{said:?}");
    let (election, path) = (&fleet.elections[0], format!("{}/members/one", fleet.path(&fleet.elections[0])));
    wait::until("it stops its command", || election.admin.read(&path).contains("stopping"));
    let said = fleet.ctl(&["drain", "two", "--wait"]);
    let sentence = format!("two will lead {} next: no other host can", election.name);
    assert!(said.code == 1 && said.output.contains(&sentence), "{said:?}");
    assert!(!said.output.contains("leads no election any more"), "{said:?}");
    let said = fleet.ctl(&["drain", "two", "--force", "--wait"]);
    assert!(said.code == 0 && said.output.ends_with("two leads no election any more\n"), "{said:?}");
    // Now the other one leads, though drained: two may go.
    fleet.until_led_by("one");
    assert_eq!(fleet.ctl(&["undrain", "one"]).code, 0);
    fleet.assert_handed_over();
}

#[test]
fn a_drain_that_cannot_be_read_is_none_and_the_log_says_so() {
    let fleet = Fleet::new(1);
    let admin = &fleet.elections[0].admin;
    let znode = format!("{}/drains/one", fleet.root);
    admin.create_all(&format!("{}/drains", fleet.root));
    admin.create(&znode, r#"{"v":1,"order":"x","force":true}"#);
    admin.set_acl(&znode, "world", "anyone", "wda");
    let first = fleet.boot("one");
    first[0].until_logged("Whether this host is drained cannot be read; it counts as not drained");
    fleet.until_led_by("one");
    admin.delete(&znode);
    admin.create(&znode, "no drain");
    first[0].until_logged("The drain of this host could not be read, and is ignored");
    wait::pass(wait::SETTLED);
    assert_eq!(fleet.elections[0].diary.starts().len(), 1);
    assert_eq!(fleet.ctl(&["undrain", "one"]).code, 0);
}

/// A name that is not drained may be a mistyped one.
#[test]
fn to_undrain_a_host_that_is_not_drained_names_those_that_are() {
    let fleet = Fleet::new(1);
    for below in ["lease", "term"] {
        fleet.elections[0].admin.create_all(&format!("{}/{below}", fleet.path(&fleet.elections[0])));
    }
    let said = fleet.ctl(&["undrain", "gama"]);
    assert_eq!((said.code, said.output), (0, format!("gama was not drained below {}; no host is\n", fleet.root)));
    assert_eq!(fleet.ctl(&["drain", "gamma"]).code, 0);
    let said = fleet.ctl(&["undrain", "gama"]);
    assert_eq!((said.code, said.output), (0, format!("gama was not drained below {}; these are: gamma\n", fleet.root)));
    let object = fleet.ctl(&["undrain", "gama", "--json"]).json();
    assert_eq!((&object["was"], &object["root"]), (&false.into(), &fleet.root.as_str().into()), "{object}");
    for verb in ["drain", "undrain"] {
        let said = ctl(&[verb, "gamma", "--root", "/no/such/root"]);
        assert!(said.code == 2 && said.error.contains("/no/such/root does not exist"), "{said:?}");
    }
    let newer = format!("{}/drains/delta", fleet.root);
    fleet.elections[0].admin.create(&newer, r#"{"v":2}"#);
    let unread = format!("{newer} cannot be read\n");
    assert!(fleet.ctl(&["undrain", "gama"]).output.ends_with(&format!("; these are: gamma; {unread}")));
    assert_eq!(fleet.ctl(&["undrain", "gamma"]).code, 0);
    let said = fleet.ctl(&["undrain", "gama"]).output;
    assert!(said.ends_with(&format!("; whether another host is, is not known; {unread}")), "{said}");
}

/// Their leases ran out, and nobody has taken them.
#[test]
fn when_the_time_is_over_what_a_host_may_lead_is_named_once_more_without_the_reasons() {
    let fleet = Fleet::new(3);
    let record =
        r#"{"v":1,"state":"held","lease_ms":8000,"guarantee":"at-most-one","holder":{"id":"a","host":"one","pid":1}}"#;
    for election in &fleet.elections {
        let path = fleet.path(election);
        for below in ["lease", "term", "election"] {
            election.admin.create_all(&format!("{path}/{below}"));
        }
        election.admin.set(&format!("{path}/lease"), record);
    }
    wait::until("they are overdue", || fleet.elections.iter().all(|it| fleet.status(it).contains("is overdue by")));
    let mut names: Vec<_> = fleet.elections.iter().map(|election| election.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(fleet.ctl(&["drain", "one"]).code, 0);
    let (admin, after) = (&fleet.elections[0].admin, format!("{}-after", fleet.root));
    admin.create_all(&after);
    let [given, ended] = [format!("{}/drains/one", fleet.root), after].map(|path| admin.stat(&path).unwrap().mtime);
    assert!(
        ended - given >= 1_900,
        "the order stands before those leases are watched, for two seconds: {given} {ended}"
    );
    assert_eq!(fleet.ctl(&["undrain", "one"]).code, 0);
    let drain = ["drain", "one", "--wait", "--timeout", "1s"];
    let said = fleet.ctl(&drain);
    let (first, last) =
        (format!("one is drained; it may lead {} (the lease of a ran out at ", names[0]), names.join(", "));
    let last = format!("one is drained; it may lead {last} (1s have passed); a longer --timeout may tell\n");
    assert!(said.code == 2 && said.output.ends_with(&last), "{said:?}");
    assert!(said.output.matches(&first).count() == 1 && said.output.lines().count() == 3, "once: {said:?}");
    assert_eq!(fleet.ctl(&[&drain[..], &["--json"]].concat()).json()["state"], "unknown");
    assert_eq!(fleet.ctl(&["drain", "one", "--wait"]).code, 0, "it takes eight seconds to be sure");
}
