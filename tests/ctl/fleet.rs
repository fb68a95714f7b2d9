//! Hosts that take part in many elections, each a UTS namespace with a name of its own: drained, rebooted, undrained.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use zk_leader_run::core::spread::rank;

use super::operator::{Said, ctl, process};
use super::{election, link};
use crate::support::{Election, Running, http, wait};

/// So long a lease that only a release can have moved a leader in time.
const SESSION_TIMEOUT: &str = "30s";
const A_HANDOVER: Duration = wait::secs(10);

/// Elections below a root of their own, so that no other test is drained.
struct Fleet {
    root: String,
    elections: Vec<Election>,
    options: &'static [(&'static str, &'static str)],
}

impl Fleet {
    fn new(count: usize) -> Self {
        let elections: Vec<_> = (0..count).map(|_| election()).collect();
        Self { root: format!("/fleet-{}", elections[0].name), elections, options: &[] }
    }

    /// With names that are always the same, and ranks therefore.
    fn spreading() -> Self {
        let named = |number| {
            let mut election = election();
            election.name = format!("job-{number}");
            election
        };
        let options = &[("--priority", "spread"), ("--preempt-after", "0")];
        Self { root: "/fleet-spread".to_owned(), elections: (0..24).map(named).collect(), options }
    }

    /// A contender for each election, on this host.
    fn boot(&self, host: &str) -> Vec<Running> {
        self.elections.iter().map(|election| self.contender(election, host, host)).collect()
    }

    fn contender(&self, election: &Election, host: &str, id: &str) -> Running {
        let mut wrapper = Command::new("unshare");
        wrapper.args(["--uts", "sh", "-c", r#"hostname "$0" && exec "$@""#, host]);
        let mut subject = election.host(id).without("--name").option("--path", &self.path(election));
        subject = subject.option("--on-loss", "rejoin");
        for (option, value) in self.options {
            subject = subject.option(option, value);
        }
        subject.session_timeout(SESSION_TIMEOUT).spawn_inside(wrapper)
    }

    fn path(&self, election: &Election) -> String {
        format!("{}/{}", self.root, election.name)
    }

    fn ctl(&self, words: &[&str]) -> Said {
        ctl(&[words, &["--root", &self.root]].concat())
    }

    fn about(&self, election: &Election, words: &[&str]) -> Said {
        ctl(&[words, &["--path", &self.path(election)]].concat())
    }

    fn status(&self, election: &Election) -> String {
        self.about(election, &["status"]).output
    }

    /// In how many elections the command was last started on this host.
    fn led_by(&self, host: &str) -> usize {
        let starts = self.elections.iter().map(|election| election.diary.starts());
        starts.filter(|starts| starts.last().is_some_and(|start| start.id.starts_with(host))).count()
    }

    fn until_members(&self, count: usize) {
        for election in &self.elections {
            let path = format!("{}/{}/members", self.root, election.name);
            wait::until("all have said who they are", || {
                election.admin.exists(&path) && election.admin.children(&path).len() == count
            });
        }
    }

    /// All are back in line, too, after a handover.
    fn until_all_in_line(&self, count: usize) {
        for election in &self.elections {
            let path = format!("{}/election", self.path(election));
            wait::until("all are in line", || {
                election.admin.exists(&path) && election.admin.children(&path).len() == count
            });
        }
        self.until_members(count);
    }

    fn until_led_by(&self, host: &str) {
        wait::until("this host leads all", || self.led_by(host) == self.elections.len());
    }

    /// Each election is led by the host whose rank in it is the highest.
    fn until_spread_over(&self, hosts: &[&str]) {
        for election in &self.elections {
            let path = self.path(election);
            let first = hosts.iter().max_by_key(|host| rank(&path, host)).unwrap();
            wait::until("the host of the highest rank leads", || {
                election.diary.starts().last().is_some_and(|start| start.id == *first)
            });
        }
    }

    fn starts(&self) -> usize {
        self.elections.iter().map(|election| election.diary.starts().len()).sum()
    }

    fn until_eligible(&self, id: &str) {
        for election in &self.elections {
            let path = format!("{}/{}/members/{id}", self.root, election.name);
            let says_so = || election.admin.find(&path).is_some_and(|(member, _)| member.contains("\"eligible\":true"));
            wait::until("it is eligible", says_so);
        }
    }

    /// Nobody waited for longer than a handover from one leader to the next.
    fn assert_handed_over(&self) {
        for election in &self.elections {
            election.diary.assert_no_overlap();
            for pair in election.diary.starts().windows(2) {
                let gap = pair[1].at.saturating_sub(election.diary.end_of(pair[0].token));
                assert!(gap < A_HANDOVER, "nominal: milliseconds; nobody led for {gap:?}");
            }
        }
    }
}

/// No other host would repeat its run.
#[test]
fn a_job_at_most_once_ends_on_a_drained_host_and_the_drain_waits_for_it() {
    let options = &[("--slot", "noon"), ("--on-loss", "exit"), ("--http", "127.0.0.1:0")];
    let fleet = Fleet { options, ..Fleet::new(1) };
    let election = &fleet.elections[0];
    let mut first = fleet.contender(election, "one", "one");
    let start = election.diary.until_started(1);
    let mut second = fleet.contender(election, "two", "two");
    fleet.until_all_in_line(2);
    let said = fleet.ctl(&["drain", "one", "--reason", "kernel", "--wait", "--timeout", "4s"]);
    let (root, name) = (&fleet.root, &election.name);
    let forced = format!("zk-leaderctl drain one --root {root} --force --reason kernel");
    let lets_end = format!("it has heard of it and lets the run end in {name} (a job that no other host would repeat)");
    assert!(
        said.code == 1 && said.output.ends_with(&format!(" (4s have passed); {lets_end}; {forced} ends it\n")),
        "{said:?}"
    );
    first.until_logged(&format!("A run at work is let end, as no other host would repeat it; {forced} stops it."));
    assert_eq!(http::status(http::address_of(&first))["drained"]["obeyed"], false);
    assert!(!first.log().contains("-> stopping"), "{}", first.log());
    kill(Pid::from_raw(start.pid), Signal::SIGKILL).unwrap();
    assert_eq!(first.code(), 128 + 9, "{}", first.log());
    assert_eq!(second.code(), 0, "{}", second.log());
    assert_eq!(election.diary.starts().len(), 1);
}

#[test]
fn a_host_is_drained_rebooted_and_undrained_and_every_election_is_led_all_the_time() {
    let fleet = Fleet::new(ELECTIONS);
    let first = fleet.boot("one");
    fleet.until_led_by("one");
    let (_second, _third) = (fleet.boot("two"), fleet.boot("three"));
    fleet.until_members(3);
    let said = fleet.ctl(&["drain", "one", "--reason", "kernel", "--for", "1h", "--wait"]);
    assert!(said.code == 0 && said.output.ends_with("one leads no election any more\n"), "{said:?}");
    assert!(said.output.contains("one is drained until 20") && said.output.contains(" UTC; it takes part"), "{said:?}");
    assert_eq!(fleet.led_by("one"), 0);
    // What a host says about itself follows what it does.
    wait::until("the status tells that the host is drained", || {
        let status = fleet.status(&fleet.elections[0]);
        status.contains("drained") && status.contains(": \"kernel\"") && status.contains("no: drained")
    });
    let list = ctl(&["list", "--path", &fleet.root]).output;
    assert!(list.contains("drained  one by "), "{list}");
    first[0]
        .until_logged(&format!("Other hosts lead meanwhile; zk-leaderctl undrain one --root {} ends it", fleet.root));

    // The reboot.
    first.iter().for_each(Running::kill);
    drop(first);
    let again: Vec<_> = fleet.elections.iter().map(|election| fleet.contender(election, "one", "one again")).collect();
    assert_eq!(fleet.led_by("one"), 0);
    for host in &again {
        host.until_logged("This host (one) is drained");
    }
    let said = fleet.ctl(&["undrain", "one"]);
    assert!(said.code == 0 && said.output.starts_with("one is not drained any more"), "{said:?}");
    for host in &again {
        host.until_logged("This host (one) is not drained any more");
        host.until_logged("eligible again");
    }
    fleet.until_eligible("one again");
    // It may lead again.
    let said = fleet.ctl(&["drain", "two", "--wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    let said = fleet.ctl(&["drain", "three", "--wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    fleet.until_led_by("one");
    fleet.assert_handed_over();
}

const ELECTIONS: usize = 20;

#[test]
fn the_only_candidate_is_left_alone_and_told_until_another_host_can_lead() {
    let fleet = Fleet::new(1);
    let first = fleet.boot("one");
    fleet.until_led_by("one");
    fleet.until_members(1);
    let said = fleet.ctl(&["drain", "one", "--wait"]);
    assert!(said.code == 1 && said.output.contains("which no other host could lead"), "{said:?}");
    first[0].until_logged("no other host could take over, so it stays");
    let status = fleet.status(&fleet.elections[0]);
    assert!(status.contains("no other host could lead, so it stays"), "{status}");
    assert_eq!(fleet.elections[0].diary.starts().len(), 1);

    // Another candidate on the same host is none.
    let beside = fleet.contender(&fleet.elections[0], "one", "beside");
    fleet.until_members(2);
    beside.until_logged("no other host could take over, so it stays");
    wait::pass(wait::SETTLED);
    assert_eq!(fleet.elections[0].diary.starts().len(), 1);

    let second = fleet.boot("two");
    fleet.until_led_by("two");
    let said = fleet.ctl(&["drain", "one", "--wait"]);
    assert_eq!(said.code, 0, "{said:?}");

    // Without it, the drained host leads again, rather than nobody.
    second[0].signal(nix::sys::signal::Signal::SIGTERM);
    wait::until("the drained host leads", || {
        fleet.elections[0].diary.starts().last().is_some_and(|start| start.id != "two")
    });
    fleet.assert_handed_over();
}

#[test]
fn a_forced_drain_stops_the_only_candidate_and_ends_by_itself() {
    let fleet = Fleet::new(1);
    let first = fleet.boot("one");
    fleet.until_led_by("one");
    fleet.until_members(1);
    let said = fleet.ctl(&["drain", "one", "--force", "--for", "6s", "--wait"]);
    assert!(said.code == 0, "{said:?}");
    fleet.elections[0].diary.until_started(2);
    first[0].until_logged("This host (one) is not drained any more");
    let znode = format!("{}/drains/one", fleet.root);
    wait::until("the drain is deleted", || !fleet.elections[0].admin.exists(&znode));
    fleet.elections[0].diary.assert_no_overlap();
}

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
    assert!(said.starts_with("one is not drained any more; this ends the order of "), "{said}");
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
    let said = fleet.ctl(&["drain", "one", "--wait", "--timeout", "4s", "-o", "json"]);
    let json = said.json();
    assert_eq!((said.code, &json["state"]), (1, &"leading".into()), "{said:?}");
    assert_eq!(json["only_candidate_in"], serde_json::json!([election.name]), "{said:?}");
    let said = fleet.ctl(&["drain", "one", "--wait", "--timeout", "4s"]);
    let told = format!("it stays leader of {}, which no other host could lead (4s have passed)", election.name);
    assert!(said.code == 1 && said.output.lines().last().is_some_and(|last| last.contains(&told)), "{said:?}");
}

/// Its supervisor hangs: it starts the command again as soon as it goes on.
#[test]
fn a_drain_that_has_lapsed_is_not_said_to_be_obeyed() {
    let fleet = Fleet::new(1);
    let first = fleet.boot("one");
    fleet.until_led_by("one");
    fleet.until_members(1);
    first[0].signal(Signal::SIGSTOP);
    let said = fleet.ctl(&["drain", "one", "--force", "--for", "1s", "--wait", "--timeout", "3s"]);
    first[0].signal(Signal::SIGCONT);
    let told = "\nthe drain lapsed, or was taken back by somebody, meanwhile; zk-leaderctl list --path ";
    assert!(said.code == 1 && said.output.contains(told), "{said:?}");
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

/// The leader, drained before it, needs six seconds to stop, and nobody else is there.
#[test]
fn a_host_that_leads_next_since_no_other_can_is_not_said_to_lead_none() {
    let options = &[("--stop-signal", "USR1"), ("--stop-timeout", "6s")];
    let fleet = Fleet { options, ..Fleet::new(1) };
    let _first = fleet.boot("one");
    fleet.until_led_by("one");
    let _second = fleet.boot("two");
    fleet.until_all_in_line(2);
    fleet.until_eligible("two");
    let said = fleet.ctl(&["drain", "one"]);
    let until = format!("one is drained until somebody runs: zk-leaderctl undrain one --root {}; it takes", fleet.root);
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
    assert_eq!(fleet.ctl(&["undrain", "one"]).output, format!("one was not drained below {}\n", fleet.root));
    assert_eq!(fleet.ctl(&["undrain", "one", "--root", "/no/such/root"]).code, 0);
}

#[test]
fn leaders_spread_over_the_hosts_and_are_even_again_after_a_drain() {
    let fleet = Fleet::spreading();
    let _one = fleet.boot("one");
    fleet.until_led_by("one");
    let (_two, _three) = (fleet.boot("two"), fleet.boot("three"));
    fleet.until_members(3);
    fleet.until_spread_over(&["one", "two", "three"]);
    let evenly = ["one", "two", "three"].map(|host| fleet.led_by(host));
    assert_eq!(evenly, [7, 10, 7]);

    let said = fleet.ctl(&["drain", "one", "--wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    fleet.until_spread_over(&["two", "three"]);
    assert_eq!(["two", "three"].map(|host| fleet.led_by(host)), [15, 9]);
    assert_eq!(fleet.ctl(&["undrain", "one"]).code, 0);
    fleet.until_spread_over(&["one", "two", "three"]);

    // Nobody asks any more.
    let starts = fleet.starts();
    wait::pass(wait::SETTLED);
    assert_eq!(fleet.starts(), starts);
    fleet.assert_handed_over();
}

#[test]
fn a_host_name_is_enough_where_one_participant_is_on_that_host() {
    let fleet = Fleet::new(1);
    let election = &fleet.elections[0];
    let _first = fleet.contender(election, "one", "a");
    election.diary.until_started(1);
    let _second = fleet.contender(election, "two", "b");
    fleet.until_all_in_line(2);
    let handover = |to: &str| ctl(&["handover", "--path", &fleet.path(election), "--to", to]);
    assert!(handover("two").output.contains("b leads, token"));
    let _third = fleet.contender(election, "two", "c");
    fleet.until_all_in_line(3);
    let said = handover("one");
    assert!(said.output.contains("a leads, token"), "{said:?}");
    // Who made room has left, and comes back.
    fleet.until_all_in_line(3);
    let said = handover("two");
    let several = "several participants are on two; name one of them: b, c\n";
    assert_eq!((said.code, said.output.as_str()), (1, several));

    let said = fleet.ctl(&["drain", "c"]);
    assert!(
        said.code == 64 && said.error.ends_with(&format!(": zk-leaderctl drain two --root {}\n", fleet.root)),
        "{said:?}"
    );
    let said = fleet.ctl(&["drain", "too"]);
    let sentence = "No host called too takes part now (these take part: one, two). The drain is stored for that name and stops nothing now; ";
    let sentence = format!("{sentence}zk-leaderctl undrain too --root {} removes it", fleet.root);
    assert!(said.code == 0 && said.output.ends_with(&format!("{sentence}\n")), "{said:?}");
    // What comes behind it, a reboot say, must not be done.
    let said = fleet.ctl(&["drain", "too", "--wait"]);
    assert!(said.code == 2 && said.error == format!("zk-leaderctl: {sentence}\n"), "{said:?}");
    typed(&remedy(&said.error, "nothing now; ", " removes it"));
    assert!(!election.admin.exists(&format!("{}/drains/too", fleet.root)));
    assert_eq!(election.diary.starts().len(), 3);
}

/// Elsewhere than where `zk-leaderctl` looks by itself.
#[test]
fn what_a_message_tells_to_type_works_as_it_stands() {
    let fleet = Fleet::new(1);
    let (election, first) = (&fleet.elections[0], fleet.boot("one"));
    fleet.until_led_by("one");
    fleet.until_members(1);
    let said = fleet.ctl(&["drain", "one", "--reason", "it's the kernel", "--for", "90m", "--wait"]);
    let forced = remedy(&said.output, "start one elsewhere, or ", " stops it");
    first[0].until_logged("no other host could take over, so it stays");
    assert_eq!(remedy(&first[0].log(), "so it stays in this election; ", " stops it"), forced);
    typed(&forced);
    election.diary.until_nobody_lives();
    wait::until("the order is shown", || fleet.status(election).contains(r#" UTC: "it's the kernel""#));
    let drain = &fleet.about(election, &["status", "--json"]).json()["drains"][0];
    assert_eq!(drain["until"].as_i64().unwrap() - drain["since"].as_i64().unwrap(), 90 * 60_000, "{drain}");
    typed(&remedy(&first[0].log(), "Other hosts lead meanwhile; ", " ends it"));
    election.diary.until_started(2);

    assert_eq!(fleet.about(election, &["disable", "--reason", "r", "--wait"]).code, 0);
    // Nobody holds the record now. Else the host may lead, or still lead, at the first look of `enable --wait`.
    first[0].signal(Signal::SIGSTOP);
    let disabled = [
        remedy(&first[0].log(), "no host runs the command meanwhile; ", " ends it"),
        remedy(&fleet.status(election), "r; ", " ends it"),
        remedy(&fleet.about(election, &["doctor"]).output, "r; ", " lets it be led again"),
        remedy(&fleet.about(election, &["enable", "--wait", "--timeout", "1ms"]).output, "1ms; ", " tells why"),
    ];
    first[0].signal(Signal::SIGCONT);
    assert_eq!(disabled[0], disabled[1]);
    assert_eq!(disabled[0], disabled[2]);
    assert_eq!(fleet.about(election, &["disable", "--reason", "r"]).code, 0);
    disabled[..3].iter().for_each(|remedy| typed(remedy));
    election.diary.until_alive();
    wait::until("the record says who leads", || fleet.about(election, &["status"]).code == 0);
    typed(&disabled[3]);
}

/// The command between two parts of a message.
#[track_caller]
fn remedy(text: &str, before: &str, after: &str) -> String {
    let rest = text.split_once(before).unwrap_or_else(|| panic!("{before:?} is not in {text}")).1;
    rest.split_once(after).unwrap_or_else(|| panic!("{after:?} is not in {rest}")).0.to_owned()
}

/// As an operator would, at a shell.
#[track_caller]
fn typed(command: &str) {
    let programs = Path::new(env!("CARGO_BIN_EXE_zk-leaderctl")).parent().unwrap();
    let output = Command::new("/bin/sh")
        .args(["-c", command])
        .env_clear()
        .env("PATH", programs)
        .env("ZK_LEADER_RUN_CONNECT", super::server().connect_string())
        .output()
        .unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
}
