//! The lease file of a real leader, read by every reader that there is: C, Python, Rust, `zk-leaderctl lease`. Whatever
//! happens to the leader, none of them ever says that the command may act for longer than until `kill_at`.
//!
//! Never: a reader's word on the time. What it says is compared with the end in the file, as the test reads it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod doubts;
mod readers;
#[path = "../../examples/lease/main.rs"]
#[expect(dead_code, reason = "its main function")]
mod rust_reader;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use readers::{Reader, ctl, now};
use support::{Proxy, Running, standalone, wait};

/// T, and two renewal intervals: a renewal that was under way has come by then.
const T: &str = "6s";
const SETTLED: Duration = Duration::from_millis(1500);

/// A leader behind a link, and the path that its command found.
fn leader(link: &Proxy) -> (Running, PathBuf) {
    let election = standalone::election();
    let command = ["sh", "-c", "trap '' TERM; echo \"$ZK_LEADER_LEASE\"; while :; do sleep 1000 & wait; done"];
    let host = election.host_behind(link, "a").session_timeout(T).command(&command).spawn();
    let path =
        wait::for_some("the command says where its lease is", || host.output().lines().next().map(PathBuf::from));
    (host, path)
}

/// The end in the file, in ns of the lease's clock.
fn kill_at(file: &File) -> u64 {
    let mut word = [0; 8];
    file.read_exact_at(&mut word, 40).unwrap();
    u64::from_ne_bytes(word)
}

/// Waits until the end has not moved for a while: no renewal moves it any more.
fn settled(file: &File) -> u64 {
    let (mut end, mut since) = (kill_at(file), now());
    wait::until("the lease is not renewed", || {
        let read = kill_at(file);
        if read != end {
            (end, since) = (read, now());
        }
        now().saturating_sub(since) > u64::try_from(SETTLED.as_nanos()).unwrap()
    });
    assert!(end > now(), "a busy machine: the lease is over before its end is known");
    end
}

/// Lets every reader look before, during and after the end of a lease that `fault` leaves without renewals.
fn never_yes_after_the_end(fault: impl FnOnce(&Running, &Proxy)) {
    let link = standalone::link();
    let (host, path) = leader(&link);
    let open = File::open(&path).unwrap();
    let readers = Reader::all(&path);
    wait::until("every reader says yes", || readers.iter().all(Reader::has_said_yes));
    assert_eq!(ctl(&[path.to_str().unwrap()]).0, 0);
    fault(&host, &link);
    let end = settled(&open);
    while now() < end {
        asked_by_hand(&path, end);
    }
    asked_by_hand(&path, end);
    wait::until("every reader has looked after the end", || readers.iter().all(|reader| reader.looks_after(end) >= 3));
    for reader in &readers {
        reader.never_said_too_much(end);
    }
}

/// `zk-leaderctl lease`, which may say no at any time.
fn asked_by_hand(path: &Path, end: u64) {
    let asked_at = now();
    let (code, answer) = ctl(&[path.to_str().unwrap(), "--json"]);
    let left = answer["left_ms"].as_u64().unwrap_or(0) * 1_000_000;
    assert!(left <= end.saturating_sub(asked_at), "{answer} {asked_at} {end}");
    assert!(code == 1 || asked_at < end && left > 0, "{answer}");
}

fn stop(pids: &[i32]) {
    for pid in pids {
        kill(Pid::from_raw(*pid), Signal::SIGSTOP).unwrap();
    }
}

#[test]
fn a_leader_that_is_cut_off() {
    never_yes_after_the_end(|_, link| link.stall());
}

#[test]
fn a_supervisor_that_is_stopped() {
    never_yes_after_the_end(|host, _| stop(&[host.pid()]));
}

#[test]
fn a_guard_that_is_stopped() {
    never_yes_after_the_end(|host, _| stop(&[host.guard_pid()]));
}

#[test]
fn a_leader_that_is_frozen_as_a_whole() {
    never_yes_after_the_end(|host, _| {
        let (sentinel, guard) = (host.sentinel_pid(), host.guard_pid());
        let tree = support::subject::children_of(guard);
        stop(&[vec![host.pid(), sentinel, guard], tree].concat());
    });
}

/// Their lease is over, and another host starts its command at once.
#[test]
fn a_killed_supervisor_or_guard_ends_the_lease_before_a_successor_starts() {
    for guard in [false, true] {
        let link = standalone::link();
        let (host, path) = leader(&link);
        let open = File::open(&path).unwrap();
        assert!(kill_at(&open) > now());
        if guard {
            host.signal_guard(Signal::SIGKILL);
        } else {
            host.kill();
        }
        wait::until("the lease is over", || kill_at(&open) == 0);
    }
}

/// It reads its own variables, and no option or server is needed.
#[test]
fn the_command_asks_for_its_own_lease() {
    let election = standalone::election();
    let asks = format!(
        "ctl={}; $ctl lease --at-least 1ms; echo $?; $ctl lease --at-least 1h >&2; echo $?; \
         $ctl lease --at-least 1h --json >&2; ZK_LEADER_TOKEN=1 $ctl lease; echo $?; env -u ZK_LEADER_LEASE $ctl lease; echo $?",
        env!("CARGO_BIN_EXE_zk-leaderctl")
    );
    let mut host = election.host("a").session_timeout("10s").command(&["sh", "-c", &asks]).spawn();
    assert_eq!(host.code(), 0);
    let output = host.output();
    let lines: Vec<_> = output.lines().collect();
    let [left, state, stop, token, term, answers @ ..] = &lines[..] else { panic!("{output}") };
    assert!(left.starts_with("left ") && left.ends_with('s'), "{output}");
    assert!(state.ends_with(" leading") && stop.contains(" in ") && term.ends_with(" 1"), "{output}");
    assert!(token.ends_with(&format!(" {}", election.term().mzxid)), "{output}");
    assert_eq!(answers, ["0", "1", "1", "1"], "{output}");
    let log = host.log();
    assert!(log.contains("\nmissing ") && log.contains(" of the 1h of --at-least\n"), "{log}");
    assert!(log.contains("\"missing_ms\": 359"), "{log}");
    assert!(log.contains("ours (1) is over") && log.contains("there is no lease file here"), "{log}");
}
