//! Many terms and many sessions in one process: nothing is left over, nothing grows.
//!
//! `ENDURANCE_TERMS=10000 ENDURANCE_EXPIRIES=1000 cargo test --release --test endurance -- --nocapture` takes two hours,
//! and prints what it has measured.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

mod support;

use std::process::Command;
use std::time::Duration;

use support::diary::now;
use support::resources::{Holdings, cpu_time};
use support::{Election, Ensemble, Proxy, Running, wait};

/// Pages that an allocator may keep, or not.
const TOLERANCE_KIB: u64 = 512;

/// The contract's limits, for an idle leader: supervisor and guard together.
const MOST_PRIVATE_KIB: u64 = 8 * 1024;

fn count(variable: &str, usual: i32) -> i32 {
    std::env::var(variable).map_or(usual, |text| text.parse().unwrap())
}

/// What a host, and all of its traces elsewhere, hold.
#[derive(Debug)]
struct Footprint {
    supervisor: Holdings,
    guard: Holdings,
    znodes: usize,
    cgroups: usize,
}

impl Footprint {
    fn of(host: &Running, election: &Election) -> Self {
        Self {
            supervisor: at_rest(host.pid()),
            guard: at_rest(host.guard_pid()),
            znodes: (0..20).map(|_| znodes(election)).min().unwrap(),
            cgroups: (0..20).map(|_| cgroups(host.pid())).min().unwrap(),
        }
    }

    fn private_kib(&self) -> u64 {
        self.supervisor.private_kib + self.guard.private_kib
    }

    /// Whether nothing but memory, within its tolerance, is more than before.
    fn is_no_more_than(&self, before: &Self) -> bool {
        let allocated = |footprint: &Self| footprint.supervisor.anonymous_kib + footprint.guard.anonymous_kib;
        // On a busy machine a command may be alive in every look.
        let counts = |footprint: &Self| {
            let [supervisor, guard] = [footprint.supervisor, footprint.guard];
            let of = |holdings: Holdings| [holdings.descriptors, holdings.threads, holdings.children];
            [of(supervisor), of(guard), [footprint.znodes, footprint.cgroups, 0]].concat()
        };
        let is_no_more = counts(self).iter().zip(counts(before)).all(|(now, then)| *now <= then);
        allocated(self) <= allocated(before) + TOLERANCE_KIB && is_no_more
    }
}

/// On a busy machine a leader may just be between two terms, so it is looked at again: what leaked stays.
fn until_no_more_than(before: &Footprint, host: &Running, election: &Election) -> Footprint {
    let mut after = Footprint::of(host, election);
    let settled = wait::held_within(wait::LIMIT, || {
        after = Footprint::of(host, election);
        after.is_no_more_than(before)
    });
    assert!(settled, "it grew: {before:#?} {after:#?}");
    after
}

fn at_rest(pid: i32) -> Holdings {
    let looks = (0..50).map(|_| {
        wait::pass(Duration::from_millis(2));
        Holdings::of(pid).unwrap()
    });
    looks.reduce(Holdings::at_rest).unwrap()
}

/// Below the base, and candidates but for the one of the term that may just be running.
fn znodes(election: &Election) -> usize {
    election.candidates().len().saturating_sub(1)
        + election.admin.children(election.path("").trim_end_matches('/')).len()
}

/// Directories in any cgroup tree that carry this supervisor's pid in their name, and what is below them.
fn cgroups(pid: i32) -> usize {
    let pattern = format!("*/zk-leader-run-{pid}*");
    let found = Command::new("find").args(["/sys/fs/cgroup", "-type", "d", "-path", &pattern]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().lines().count()
}

#[test]
fn thousands_of_terms_leave_nothing_behind() {
    let terms = count("ENDURANCE_TERMS", 1000);
    let ensemble = Ensemble::single();
    let election = Election::on(&ensemble.connect_string());
    let host = election
        .steady_host("a")
        .option("--on-exit", "rejoin")
        .option("--log-level", "warn")
        .command(&["true"])
        .spawn();
    wait::until("it leads", || election.admin.exists(&election.path("term")));
    let reached = |terms: i32| election.term().version >= terms;
    wait::until("it is warm", || reached(terms / 5));
    let (before, started) = (Footprint::of(&host, &election), now());
    let limit = wait::LIMIT.max(Duration::from_millis(50) * terms.unsigned_abs());
    assert!(wait::held_within(limit, || reached(terms)), "only {} terms", election.term().version);
    let after = until_no_more_than(&before, &host, &election);
    eprintln!(
        "{terms} terms, four fifths of them in {:?}\nbefore: {before:?}\nafter: {after:?}",
        now().abs_diff(started)
    );
    assert_eq!(host.log(), "");
}

#[test]
fn many_expired_sessions_leave_nothing_behind() {
    let expiries = usize::try_from(count("ENDURANCE_EXPIRIES", 4)).unwrap();
    let ensemble = Ensemble::single();
    let election = Election::on(&ensemble.connect_string());
    let link = Proxy::to(ensemble.server(0).address());
    // With 2 s, a guard that a busy machine holds up for a second is taken for dead.
    let host = election.host_behind(&link, "a").session_timeout("6s").option("--log-level", "error").spawn();
    let expire = |times: usize| {
        election.diary.until_started(times);
        link.cut();
        election.until_candidates(0);
        link.heal();
        election.diary.until_started(times + 1);
    };
    let warm = expiries / 5 + 2;
    (1..=warm).for_each(expire);
    let (before, started) = (Footprint::of(&host, &election), now());
    (warm + 1..=warm + expiries).for_each(expire);
    let after = until_no_more_than(&before, &host, &election);
    eprintln!("{expiries} expiries in {:?}\nbefore: {before:?}\nafter: {after:?}", now().abs_diff(started));
    election.diary.assert_no_overlap();
}

#[test]
fn an_idle_leader_is_small_and_sleeps() {
    let ensemble = Ensemble::single();
    let election = Election::on(&ensemble.connect_string());
    let host = election.host("a").session_timeout("15s").option("--log-level", "info").command(&["sleep", "600"]);
    let host = host.spawn();
    host.until_logged("Command started");
    wait::pass(Duration::from_secs(1));
    let spent = || cpu_time(host.pid()) + cpu_time(host.guard_pid());
    let (before, started) = (spent(), now());
    wait::pass(Duration::from_secs(20));
    let load = spent().abs_diff(before).as_secs_f64() / now().abs_diff(started).as_secs_f64();
    let footprint = Footprint::of(&host, &election);
    eprintln!("idle: {} KiB private, {:.3} % of a core\n{footprint:?}", footprint.private_kib(), 100.0 * load);
    assert!(footprint.private_kib() <= MOST_PRIVATE_KIB, "{footprint:#?}");
    // The command's parent is a thread, too: were it not the only one, its end could be taken for the guard's.
    assert_eq!((footprint.supervisor.threads, footprint.guard.threads), (2, 1), "{footprint:#?}");
    // A tenth of a percent is the goal, and is measured in release; this is for a wake-up too many.
    assert!(load < 0.005, "{load} of a core");
}
