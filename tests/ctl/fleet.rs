//! Hosts that take part in many elections, each a UTS namespace with a name of its own: drained, rebooted, undrained.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use zk_leader_run::core::spread::rank;

use super::election;
use super::operator::{Said, ctl};
use crate::support::{Election, Running, http, wait};

/// So long a lease that only a release can have moved a leader in time.
const SESSION_TIMEOUT: &str = "30s";
const A_HANDOVER: Duration = wait::secs(20);

/// Elections below a root of their own, so that no other test is drained.
pub(super) struct Fleet {
    pub root: String,
    pub elections: Vec<Election>,
    pub options: &'static [(&'static str, &'static str)],
}

impl Fleet {
    pub fn new(count: usize) -> Self {
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
    pub fn boot(&self, host: &str) -> Vec<Running> {
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

    pub fn path(&self, election: &Election) -> String {
        format!("{}/{}", self.root, election.name)
    }

    pub fn ctl(&self, words: &[&str]) -> Said {
        ctl(&[words, &["--root", &self.root]].concat())
    }

    pub fn about(&self, election: &Election, words: &[&str]) -> Said {
        ctl(&[words, &["--path", &self.path(election)]].concat())
    }

    pub fn status(&self, election: &Election) -> String {
        self.about(election, &["status"]).output
    }

    /// In how many elections the command was last started on this host.
    fn led_by(&self, host: &str) -> usize {
        let starts = self.elections.iter().map(|election| election.diary.starts());
        starts.filter(|starts| starts.last().is_some_and(|start| start.id.starts_with(host))).count()
    }

    pub fn until_members(&self, count: usize) {
        for election in &self.elections {
            let path = format!("{}/{}/members", self.root, election.name);
            wait::until("all have said who they are", || {
                election.admin.exists(&path) && election.admin.children(&path).len() == count
            });
        }
    }

    /// All are back in line, too, after a handover.
    pub fn until_all_in_line(&self, count: usize) {
        for election in &self.elections {
            let path = format!("{}/election", self.path(election));
            wait::until("all are in line", || {
                election.admin.exists(&path) && election.admin.children(&path).len() == count
            });
        }
        self.until_members(count);
    }

    pub fn until_led_by(&self, host: &str) {
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

    pub fn starts(&self) -> usize {
        self.elections.iter().map(|election| election.diary.starts().len()).sum()
    }

    pub fn until_eligible(&self, id: &str) {
        for election in &self.elections {
            let path = format!("{}/{}/members/{id}", self.root, election.name);
            let says_so = || election.admin.find(&path).is_some_and(|(member, _)| member.contains("\"eligible\":true"));
            wait::until("it is eligible", says_so);
        }
    }

    /// Nobody waited for longer than a handover from one leader to the next.
    pub fn assert_handed_over(&self) {
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
    let said = fleet.ctl(&["drain", "one", "--reason", "kernel", "--wait", "--timeout", "6s"]);
    let (root, name) = (&fleet.root, &election.name);
    let forced = format!("zk-leaderctl drain one --root {root} --force --reason kernel");
    let lets_end = format!("it has heard of it and lets the run end in {name} (a job that no other host would repeat)");
    assert!(
        said.code == 1 && said.output.ends_with(&format!(" (6s have passed); {lets_end}; {forced} ends it\n")),
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
    let ends = format!(" UTC: \"kernel\"; zk-leaderctl undrain one --root {} ends it", fleet.root);
    assert_drained(&list, &ends);
    assert_drained(&fleet.status(&fleet.elections[0]), &ends);
    first[0]
        .until_logged(&format!("It is not elected meanwhile; zk-leaderctl undrain one --root {} ends it", fleet.root));

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

/// `ends`: when, why, and what to do.
#[track_caller]
fn assert_drained(shown: &str, ends: &str) {
    let line = shown.lines().find(|line| line.starts_with("drained") && line.contains(" one by "));
    assert!(line.is_some_and(|line| line.contains("s ago, until 20") && line.contains(ends)), "{shown}");
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
    let said = fleet.ctl(&["drain", "one", "--force", "--for", "10s", "--wait"]);
    assert!(said.code == 0, "{said:?}");
    fleet.elections[0].diary.until_started(2);
    first[0].until_logged("This host (one) is not drained any more");
    let znode = format!("{}/drains/one", fleet.root);
    wait::until("the drain is deleted", || !fleet.elections[0].admin.exists(&znode));
    fleet.elections[0].diary.assert_no_overlap();
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
    typed(&remedy(&first[0].log(), "It is not elected meanwhile; ", " ends it"));
    election.diary.until_started(2);

    assert_eq!(fleet.about(election, &["disable", "--reason", "r", "--wait"]).code, 0);
    // Nobody holds the record now. Else the host may lead, or still lead, at the first look of `enable --wait`.
    first[0].signal(Signal::SIGSTOP);
    let disabled = [
        remedy(&first[0].log(), "no host runs the command meanwhile; ", " ends it"),
        remedy(&fleet.status(election), "\"r\"; ", " ends it"),
        remedy(&fleet.about(election, &["doctor"]).output, "\"r\"; ", " lets it be led again"),
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
pub(super) fn typed(command: &str) {
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

/// It hears a moment later that it is not drained any more, and lines up.
#[test]
fn a_handover_to_a_host_that_was_just_undrained_is_not_refused() {
    let fleet = Fleet::new(1);
    let _first = fleet.boot("one");
    fleet.until_led_by("one");
    let _second = fleet.boot("two");
    fleet.until_all_in_line(2);
    assert_eq!(fleet.ctl(&["drain", "two", "--reason", "kernel"]).code, 0);
    wait::until("it has heard", || fleet.status(&fleet.elections[0]).contains("no: drained"));
    assert_eq!(fleet.ctl(&["undrain", "two"]).code, 0);
    let said = fleet.about(&fleet.elections[0], &["handover", "--to", "two"]);
    assert!(said.code == 0 && said.output.contains("two leads, token "), "{said:?}");
}
