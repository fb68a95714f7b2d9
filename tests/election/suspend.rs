//! A host that was suspended: T25. Its clocks are as after a suspend, seen by real supervisors and guards: `CLOCK_BOOTTIME` jumps
//! ahead of the others, by less than the lease has left. So only who notices the jump acts at once.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

use super::{election, millis, secs};
use crate::support::{Election, Subject, diary, subject, wait};

/// Every host's T, and how long a suspend lasts.
const T: &str = "8s";
const SUSPEND: &str = "2";

struct Clock(PathBuf);

impl Clock {
    fn of(election: &Election) -> Self {
        let clock = Self(election.diary.directory().join("suspended-for"));
        clock.set("0");
        clock
    }

    /// For a host that sees this clock; its command does not, so that the diary's stamps are true.
    fn seen_by(&self, host: Subject, election: &Election, witness: &[&str]) -> Subject {
        let (preload, diary) = (subject::example("libsuspended.so"), election.diary.path());
        assert!(preload.exists(), "it is not built: cargo build --example suspended");
        let program = subject::example("witness");
        let words = ["env", "-u", "LD_PRELOAD", program.to_str().unwrap(), diary.to_str().unwrap()];
        let host = host.session_timeout(T).command(&[&words, witness].concat());
        host.env("LD_PRELOAD", preload.to_str().unwrap()).env("SUSPENDED_FOR", self.0.to_str().unwrap())
    }

    fn host_wakes_up(&self) {
        self.set(SUSPEND);
    }

    /// Nobody reads half of it.
    fn set(&self, seconds: &str) {
        let new = self.0.with_extension("new");
        fs::write(&new, seconds).unwrap();
        fs::rename(&new, &self.0).unwrap();
    }
}

/// By the diaries' clock, what the servers' clock said then: nothing sets that here.
fn by_our_clock(millis_since_1970: i64) -> Duration {
    let now: Duration = clock_gettime(ClockId::CLOCK_REALTIME).unwrap().into();
    diary::now().saturating_sub(now.saturating_sub(millis(u64::try_from(millis_since_1970).unwrap())))
}

#[test]
fn a_host_that_was_suspended_kills_its_command_first_of_all_and_contends_again() {
    let election = election();
    let clock = Clock::of(&election);
    let host = clock.seen_by(election.host("a"), &election, &["daemonise", "ignore-term"]).spawn();
    election.diary.until_noted("orphan");
    clock.host_wakes_up();
    let second = election.diary.until_started(2);
    assert_eq!(second.told[0], "2", "in a new term");
    assert!(!election.diary.has("signal=15"), "SIGTERM came first");
    assert!(host.log().contains("the host was suspended"), "{}", host.log());
    election.diary.assert_no_overlap();
}

#[test]
fn with_on_loss_exit_a_host_that_was_suspended_exits_with_76() {
    let election = election();
    let clock = Clock::of(&election);
    let mut host = clock.seen_by(election.host("a").option("--on-loss", "exit"), &election, &[]).spawn();
    election.diary.until_started(1);
    clock.host_wakes_up();
    assert_eq!(host.code(), 76);
    assert!(!election.diary.somebody_lives());
}

#[test]
fn a_guard_whose_host_was_suspended_kills_the_tree_while_its_supervisor_is_stopped() {
    let election = election();
    let clock = Clock::of(&election);
    let host = clock.seen_by(election.host("a"), &election, &["daemonise", "ignore-term"]).spawn();
    election.diary.until_noted("orphan");
    host.signal(Signal::SIGSTOP);
    clock.host_wakes_up();
    election.diary.until_nobody_lives();
    assert!(!election.diary.has("signal=15"), "SIGTERM came first: the guard waited for its deadlines");
    host.signal(Signal::SIGCONT);
    // No deadline of it came while the host slept.
    host.until_logged("This process stood still (the host was suspended). Its guard kills the command");
    assert_eq!(election.diary.until_started(2).told[0], "2", "in a new term");
    election.diary.assert_no_overlap();
}

/// Nothing of it but the supervisor can notice: there is no tree yet. The wait goes on, from when it began.
#[test]
fn a_supervisor_whose_host_was_suspended_while_it_waits_takes_over_anew_and_waits_as_long() {
    let election = election();
    let clock = Clock::of(&election);
    let first = election.host("a").session_timeout(T).spawn();
    election.diary.until_started(1);
    let second = clock.seen_by(election.host("b"), &election, &[]).spawn();
    election.until_candidates(2);
    let leader = election.first();
    let guard = Pid::from_raw(subject::guards_of(first.pid())[0]);
    for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
        first.signal(signal);
        kill(guard, signal).ok();
    }
    let renewed_at = by_our_clock(election.admin.stat(&election.path("lease")).unwrap().mtime);
    election.admin.delete(&leader);
    // Not only the servers know that it waits: it does, too.
    second.until_logged("following -> waiting");
    assert!(!election.record()["waiting_on"].is_null());
    let term = election.term().version;
    clock.host_wakes_up();
    wait::until("it takes over anew, because its own lease was over", || election.term().version > term);
    let start = election.diary.until_started(2);
    assert!(second.log().contains("the host was suspended"), "{}", second.log());
    // The last renewal was sent before, and seen afterwards.
    let waited = start.at.saturating_sub(renewed_at);
    assert!(waited >= secs(7), "it waited {waited:?} for a lease of {T}");
    election.diary.assert_no_overlap();
}
