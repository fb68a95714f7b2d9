//! Upgrades that succeed.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;

use crate::election;
use crate::guard::end_command;
use crate::package::{Package, UPGRADED, ask, descriptors, processes};
use crate::support::subject::{children_of, example};
use crate::support::{Election, Running, http, wait};

/// What the servers know of a queue: the candidates with the sessions that own them, and the term.
fn znodes(election: &Election) -> (Vec<(String, i64)>, i64) {
    let owner =
        |name: &String| election.admin.stat(&election.path(&format!("election/{name}"))).unwrap().ephemeral_owner;
    let candidates = election.candidates().into_iter().map(|name| (name.clone(), owner(&name))).collect();
    (candidates, election.term().mzxid)
}

/// `UPGRADES=1000` repeats it more often.
fn upgrades() -> usize {
    std::env::var("UPGRADES").map_or(20, |count| count.parse().unwrap())
}

#[test]
fn a_leader_is_upgraded_again_and_again_and_neither_its_command_nor_zookeeper_notices() {
    let (election, package) = (election(), Package::new());
    let leader = package.on(election.steady_host("a")).spawn();
    let start = election.diary.until_started(1);
    let standby = package.on(election.steady_host("b")).spawn();
    election.until_candidates(2);
    let (before, of_command) = (znodes(&election), processes(&leader));
    package.upgrade(&leader);
    let open = descriptors(&leader);
    for turn in 1..upgrades() {
        let host = if turn % 5 == 0 { &standby } else { &leader };
        package.upgrade(host);
        election.diary.until_alive();
    }
    election.until_renewed(2);
    assert_eq!((znodes(&election), processes(&leader)), (before, of_command));
    assert_eq!(election.diary.starts(), [start]);
    assert_eq!(descriptors(&leader), open, "no descriptor leaks");
    wait::until("there are no other guards", || children_of(leader.pid()).len() == 2);
    election.diary.assert_no_overlap();
    println!("{} upgrades: ms without a supervisor {}", upgrades(), Gaps::of(&[&leader, &standby]));
    leader.kill();
    assert_eq!(election.diary.until_started(2).id, "b");
    election.diary.assert_no_overlap();
}

/// As a shell starts it: by its name alone. What its folder in PATH has is a link to the version of the day.
#[test]
fn a_host_that_was_started_by_name_follows_the_link_in_path() {
    let (election, package, folder) = (election(), Package::new(), tempfile::tempdir().unwrap());
    let link_to = |version: &str| {
        let (program, fresh) = (package.path().with_file_name(version), folder.path().join("fresh"));
        symlink(&program, &fresh).unwrap();
        fs::rename(fresh, folder.path().join("zk-leader-run")).unwrap();
        program
    };
    link_to("this-version");
    // The shell passes over it, and so do we.
    let earlier = tempfile::tempdir().unwrap();
    fs::write(earlier.path().join("zk-leader-run"), "not to be executed").unwrap();
    let rest = std::env::var("PATH").unwrap();
    let path = format!("{}:{}:{rest}", earlier.path().display(), folder.path().display());
    let host = election.steady_host("a").program("zk-leader-run").env("PATH", &path).spawn();
    election.diary.until_started(1);
    let program = link_to("other-version");
    ask(&host);
    host.until_logged(UPGRADED);
    assert_eq!(fs::read_link(format!("/proc/{}/exe", host.pid())).unwrap(), program, "{}", host.log());
}

/// Milliseconds from the last line of a program to the first of the next one, in order.
struct Gaps(Vec<u64>);

impl Gaps {
    fn of(hosts: &[&Running]) -> Self {
        let mut gaps = Vec::new();
        for host in hosts {
            let log = host.log();
            let lines: Vec<_> = log.lines().collect();
            let pairs = lines.windows(2).filter(|pair| pair[1].contains(UPGRADED));
            gaps.extend(pairs.map(|pair| (millis(pair[1]) + DAY - millis(pair[0])) % DAY));
        }
        gaps.sort_unstable();
        Self(gaps)
    }
}

impl fmt::Display for Gaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [median, late, most] =
            [50, 99, 100].map(|percent| self.0[(self.0.len() * percent / 100).min(self.0.len() - 1)]);
        write!(f, "median {median}, p99 {late}, most {most} ({} gaps)", self.0.len())
    }
}

const DAY: u64 = 24 * 60 * 60 * 1000;

/// Of its day: `2026-11-23T18:20:48.085Z …`.
fn millis(line: &str) -> u64 {
    let field = |from: usize, to: usize| line[from..to].parse::<u64>().unwrap();
    ((field(11, 13) * 60 + field(14, 16)) * 60 + field(17, 19)) * 1000 + field(20, 23)
}

/// As the packaged unit does: the default id has the process id, and the program that is asked is another process.
#[test]
fn a_host_without_an_id_of_its_own_is_upgraded() {
    let (election, package) = (election(), Package::new());
    let host = package.on(election.steady_host("a").without("--id")).spawn();
    let start = election.diary.until_started(1);
    package.upgrade(&host);
    package.upgrade(&host);
    election.diary.until_alive();
    assert_eq!(election.diary.starts(), [start]);
}

#[test]
fn what_is_shown_of_a_phase_and_of_the_starts_goes_on() {
    let (election, package) = (election(), Package::new());
    let host =
        package.on(election.steady_host("a").served().option("--on-exit", "restart").option("--restart-delay", "10ms"));
    let host = host.option("--restart", "on-failure").spawn();
    election.diary.until_started(1);
    let at = http::address_of(&host);
    let age = |at| http::status(at)["seconds_in_phase"].as_f64().unwrap();
    wait::until("it has led for a while", || age(at) > 3.0);
    let why = http::status(at)["why"].clone();
    assert!(why.is_string(), "{}", http::status(at));
    package.upgrade(&host);
    let at = last_address_of(&host);
    assert!(age(at) > 3.0, "{}", http::status(at));
    assert_eq!(http::status(at)["why"], why);
    end_command(&host);
    election.diary.until_started(2);
    for name in ["starts", "restarts"] {
        let metrics = http::get(at, "/metrics").unwrap().body;
        let counted = metrics
            .lines()
            .any(|line| line.starts_with(&format!("zk_leader_run_command_{name}_total{{")) && line.ends_with(" 1"));
        assert!(counted, "{name}: {metrics}");
    }
}

/// Of HTTP: the next program has another port.
fn last_address_of(host: &Running) -> SocketAddr {
    wait::for_some("the next program serves HTTP", || {
        host.log().split("HTTP is served at ").nth(2)?.split_whitespace().next()?.parse().ok()
    })
}

/// Its standbys have no candidate of their own.
#[test]
fn both_hosts_of_the_single_recipe_are_upgraded() {
    let (election, package) = (election(), Package::new());
    let host = |id| package.on(election.steady_host(id).option("--recipe", "single")).spawn();
    let leader = host("a");
    let start = election.diary.until_started(1);
    let standby = host("b");
    standby.until_logged("Session was opened");
    let before = znodes(&election);
    for host in [&leader, &standby, &leader, &standby] {
        package.upgrade(host);
    }
    election.diary.until_alive();
    assert_eq!(znodes(&election), before);
    assert_eq!(election.diary.starts(), [start]);
    leader.kill();
    assert_eq!(election.diary.until_started(2).id, "b");
    election.diary.assert_no_overlap();
}

#[test]
fn after_upgrades_a_requested_stop_is_as_before() {
    let (election, package) = (election(), Package::new());
    let mut leader = package.on(election.steady_host("a")).spawn();
    election.diary.until_started(1);
    for _ in 0..3 {
        package.upgrade(&leader);
    }
    leader.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(leader.code(), 0);
    assert_eq!(election.state(), "free");
    election.diary.until_nobody_lives();
    assert_eq!(election.candidates(), Vec::<String>::new());
}

#[test]
fn several_leaders_are_upgraded_at_once() {
    let (election, package) = (election(), Package::new());
    let hosts: Vec<_> = ["a", "b", "c"]
        .iter()
        .enumerate()
        .map(|(at, id)| {
            let (witness, path) = (example("witness"), election.diary.path());
            let script = format!("exec {} {}.$ZK_LEADER_SLOT", witness.display(), path.display());
            let host = election.steady_host(id).option("--leaders", "2").command(&["sh", "-c", &script]);
            let running = package.on(host).spawn();
            election.until_candidates(at + 1);
            running
        })
        .collect();
    let slots = [0, 1].map(|slot| election.diary.of_slot(slot));
    let starts = slots.each_ref().map(|diary| diary.until_started(1));
    let line: BTreeSet<_> = election.candidates().into_iter().collect();
    for turn in 1..4 {
        package.install();
        hosts.iter().for_each(ask);
        for host in &hosts {
            host.until_logged_times(UPGRADED, turn);
        }
    }
    assert_eq!(
        slots.each_ref().map(|diary| {
            diary.until_alive();
            diary.starts()
        }),
        starts.map(|start| vec![start])
    );
    assert_eq!(election.candidates().into_iter().collect::<BTreeSet<_>>(), line);
}

/// Its command runs.
#[test]
fn a_host_that_was_found_eligible_is_not_asked_again() {
    let (election, package) = (election(), Package::new());
    let notes = election.diary.directory().join("notes");
    let asks = format!("echo asked >> {}", notes.display());
    let host = package.on(election.steady_host("a").option("--eligible-cmd", &asks)).spawn();
    election.diary.until_started(1);
    package.upgrade(&host);
    election.until_renewed(2);
    assert_eq!(fs::read_to_string(notes).unwrap(), "asked\n", "{}", host.log());
}

#[test]
fn hooks_and_health_checks_go_on_and_may_change() {
    let (election, package) = (election(), Package::new());
    let notes = election.diary.directory().join("notes");
    let config = election.diary.directory().join("config.toml");
    let write = |mark: &str| {
        let path = notes.display();
        let text = format!(
            "hook = \"echo {mark} hook $ZK_LEADER_EVENT >> {path}\"\nhealth-cmd = \"echo {mark} health >> {path}\"\n\
             health-interval = \"50ms\"\n"
        );
        std::fs::write(&config, text).unwrap();
    };
    let read = || std::fs::read_to_string(&notes).unwrap_or_default();
    write("old");
    let mut leader = package.on(election.steady_host("a").option("--config", config.to_str().unwrap())).spawn();
    election.diary.until_started(1);
    wait::until("the old hook has run", || read().contains("old hook started"));
    write("new");
    package.upgrade(&leader);
    wait::until("the new check runs", || read().contains("new health"));
    package.upgrade(&leader);
    assert!(!read().contains("new hook"), "nothing has happened that hooks are for: {}", read());
    wait::until("the old guards are gone", || children_of(leader.pid()).len() == 4);
    leader.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(leader.code(), 0);
    assert!(read().contains("new hook stopping") && read().contains("new hook released"), "{}", read());
    assert_eq!(election.diary.starts().len(), 1);
}
