//! What we exit with, and what follows when the command ends by itself.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{election, link};
use crate::support::Election;
use crate::support::subject::copy_program;

fn code_of(election: &Election, script: &str) -> i32 {
    let mut host = election.steady_host("a").command(&["sh", "-c", script]).spawn();
    host.code()
}

/// T29
#[test]
fn every_exit_status_of_a_fast_command_is_ours() {
    let election = election();
    for status in 0..=255 {
        assert_eq!(code_of(&election, &format!("exit {status}")), status);
    }
    assert_eq!(election.state(), "free");
}

/// T29, T47
#[test]
fn a_command_killed_by_a_signal_gives_128_and_its_number() {
    let election = election();
    for signal in [1, 2, 3, 6, 9, 11, 13, 15, 31, 34, 64] {
        assert_eq!(code_of(&election, &format!("ulimit -c 0; kill -{signal} $$")), 128 + signal);
    }
}

#[test]
fn a_command_that_cannot_be_executed_gives_126_and_one_that_is_not_there_127() {
    let election = election();
    let mut missing = election.steady_host("a").command(&["/no/such/command"]).spawn();
    assert_eq!(missing.code(), 127, "{}", missing.log());
    let mut directory = election.steady_host("a").command(&["/"]).spawn();
    assert_eq!(directory.code(), 126, "{}", directory.log());
    assert_eq!(election.candidates(), [""; 0]);
}

/// `setrlimit(2)`: a write beyond the limit sends SIGXFSZ, which would kill us.
#[test]
fn a_limit_on_the_size_of_files_costs_lines_of_the_log_and_not_the_command() {
    let election = election();
    let log = election.diary.directory().join("log");
    let host = election.steady_host("a").option("--log-level", "debug").command(&["sh", "-c", "exit 5"]).to_process();
    let mut limited = Command::new("prlimit");
    limited.args(["--fsize=2048"]).arg(host.get_program()).args(host.get_args());
    let status = limited.stderr(File::create(&log).unwrap()).status().unwrap();
    assert_eq!(status.code(), Some(5), "{status}");
    assert_eq!(std::fs::metadata(&log).unwrap().len(), 2048, "its end is missing");
}

/// The user's processes are at their limit: we are three, and to look a name up takes a thread.
#[test]
fn a_host_without_room_for_a_thread_is_heard_and_ends_in_time_and_goes_on_when_there_is_room() {
    let election = election();
    election.prepare();
    let directory = election.diary.directory();
    std::fs::set_permissions(directory, Permissions::from_mode(0o755)).unwrap();
    let program = directory.join("zk-leader-run");
    copy_program(Path::new(env!("CARGO_BIN_EXE_zk-leader-run")), &program);
    // Somebody who has no other process.
    let user = format!("--reuid={}", 1_000_000 + std::process::id());
    let become_user = [&user, "--regid=65534", "--clear-groups"];
    let host = |option: &[&str]| {
        let servers = election.servers().replace("127.0.0.1", "localhost");
        let host = option.chunks(2).fold(election.host_at(&servers, "a"), |host, pair| host.option(pair[0], pair[1]));
        let mut limited = Command::new("prlimit");
        limited.args(["--nproc=3:4096", "setpriv"]).args(become_user);
        host.program(program.to_str().unwrap()).command(&["true"]).spawn_inside(limited)
    };
    let full = "this host has no room for two more threads of ours (";
    let mut patient = host(&["--connect-timeout", "3s"]);
    assert_eq!(patient.code(), 69, "{}", patient.log());
    assert!(patient.log().contains(full) && !patient.log().contains("Internal error"), "{}", patient.log());
    let mut stopped = host(&[]);
    stopped.until_logged(full);
    stopped.signal(Signal::SIGTERM);
    assert_eq!(stopped.code(), 0, "{}", stopped.log());
    let mut relieved = host(&[]);
    relieved.until_logged(full);
    // The command's, too.
    for pid in [relieved.guard_pid(), relieved.pid()] {
        let mut raised = Command::new("setpriv");
        raised.args(become_user).args(["prlimit", "--nproc=4096", "--pid", &pid.to_string()]);
        assert!(raised.status().unwrap().success());
    }
    assert_eq!(relieved.code(), 0, "{}", relieved.log());
}

#[test]
fn without_proc_the_status_says_that_no_restart_helps() {
    let host = election().host("a").to_process();
    let mut bare = Command::new("unshare");
    bare.args(["--mount", "sh", "-c", "umount -l /proc && exec \"$@\"", "sh"]);
    let output = bare.arg(host.get_program()).args(host.get_args()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(78), "{said}");
    assert!(said.contains("mount it: mount -t proc proc /proc"), "{said}");
}

#[test]
fn with_on_exit_rejoin_two_hosts_alternate() {
    let election = election();
    let hosts = ["a", "b"].map(|id| {
        let host =
            election.steady_host(id).option("--on-exit", "rejoin").witness(&election.diary, &["status=1"]).spawn();
        election.until_candidates(if id == "a" { 1 } else { 2 });
        host
    });
    for turn in 1..=6 {
        let start = election.diary.until_started(turn);
        assert_eq!(start.id, ["a", "b"][(turn - 1) % 2]);
        // Who has just ended its command is in line again.
        election.until_candidates(2);
        kill(Pid::from_raw(start.pid), Signal::SIGTERM).unwrap();
    }
    election.diary.assert_no_overlap();
    drop(hosts);
}

#[test]
fn with_on_loss_exit_a_lost_leadership_is_status_76() {
    let lost = election();
    let mut host = lost.steady_host("a").option("--on-loss", "exit").spawn();
    lost.diary.until_started(1);
    lost.admin.delete(&lost.first());
    assert_eq!(host.code(), 76, "{}", host.log());
    assert!(!lost.diary.somebody_lives());

    let cut = election();
    let link = link();
    let mut host = cut.host_behind(&link, "a").option("--on-loss", "exit").spawn();
    cut.diary.until_started(1);
    link.stall();
    assert_eq!(host.code(), 76, "{}", host.log());
    assert!(!cut.diary.somebody_lives());
}

#[test]
fn a_requested_stop_is_0_if_the_command_dies_of_the_stop_signal() {
    let election = election();
    let mut host = election.steady_host("a").command(&["sleep", "1000"]).spawn();
    host.until_logged("Command started");
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0, "{}", host.log());
    host.until_logged("killed by SIGTERM");
}

#[test]
fn another_stop_signal_is_the_one_that_is_sent() {
    let election = election();
    let mut host = election.steady_host("a").option("--stop-signal", "INT").spawn();
    election.diary.until_started(1);
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0);
    assert_eq!(election.diary.events("signal=2").len(), 1);
    assert!(!election.diary.has("signal=15"));
}

/// What everybody expects is at debug: the session, and a containment that is the one that was asked for.
#[test]
fn a_run_that_goes_well_is_told_in_six_lines() {
    let election = election();
    let host =
        election.steady_host("a").option("--log-level", "info").option("--contain", "subreaper").command(&["true"]);
    let mut host = host.spawn();
    assert_eq!(host.code(), 0, "{}", host.log());
    let log = host.log_without_standstills();
    let told: Vec<_> = log.lines().map(|line| line.split_once("]: ").map_or(line, |(_, said)| said)).collect();
    let expected = [
        "Missing znodes were created: ",
        "following -> leading: elected",
        "Command started",
        "The command exited with status 0",
        "leading -> releasing: the command ended by itself",
        "releasing -> done: the lease is free",
    ];
    let is_as_expected = told.iter().zip(expected).all(|(said, start)| said.starts_with(start));
    assert!(told.len() == expected.len() && is_as_expected, "{log}");
}

/// As servers before 3.5 answer the creation of a candidate.
#[test]
fn a_server_that_does_not_know_a_request_is_called_too_old() {
    const UNIMPLEMENTED: i32 = -6;
    let (election, link) = (election(), link());
    link.tamper(|frame| {
        let is_reply = matches!(frame.get(4..8), Some([0, rest @ ..]) if rest.iter().any(|byte| *byte != 0));
        let Some(header) = frame.get(4..16).filter(|_| is_reply) else { return frame };
        [&16_i32.to_be_bytes(), header, &UNIMPLEMENTED.to_be_bytes()].concat()
    });
    let mut host = election.host_behind(&link, "a").option("--log-level", "info").spawn();
    assert_eq!(host.code(), 77, "{}", host.log());
    assert!(host.log().contains("takes ZooKeeper 3.5 or newer"), "{}", host.log());
    assert!(!election.diary.has("start"));
}

/// The end may come with the first event of all, before anybody was asked for anything.
#[test]
fn a_limit_that_is_over_before_the_first_look_ends_the_process() {
    let election = election();
    let host = || election.host("a").option("--health-cmd", "true").option("--connect-timeout", "1us");
    assert_eq!(host().spawn().code(), 69, "the ensemble was not reached in so short a time");
    assert_eq!(election.candidates(), [""; 0]);
}
