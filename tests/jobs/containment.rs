//! Each way to hold the tree together, in a failover.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{LEASE, election, link, secs};
use crate::support::tracer::Tracer;
use crate::support::wait::AT_ONCE;
use crate::support::{Election, Subject, diary, subject, wait};

const WAYS: [&str; 4] = ["auto", "cgroup", "subreaper", "pid-namespace"];

/// T1, T6, T7. The successor is elected at once: nothing but its wait keeps it from starting beside the old tree.
#[test]
fn every_containment_has_the_tree_of_an_isolated_leader_gone_before_its_successor_starts() {
    for contain in WAYS {
        let election = election();
        let link = link();
        let witness = ["ignore-term", "daemonise"];
        let host = election.host_behind(&link, "a").option("--contain", contain);
        let _first = host.witness(&election.diary, &witness).spawn();
        election.diary.until_noted("orphan");
        let _second = election.host("b").option("--contain", contain).witness(&election.diary, &witness).spawn();
        election.until_candidates(2);
        link.stall();
        election.admin.delete(&election.first());
        assert_eq!(election.diary.until_started(2).id, "b", "{contain}");
        election.diary.assert_no_overlap();
    }
}

/// T9
#[test]
fn every_containment_ends_the_tree_at_once_when_the_supervisor_is_killed() {
    for contain in WAYS {
        let election = election();
        let witness = ["ignore-term", "daemonise"];
        // Its lease outlasts what is meant by at once.
        let host = election.steady_host("a").option("--contain", contain);
        let mut host = host.witness(&election.diary, &witness).spawn();
        election.diary.until_noted("orphan");
        let killed_at = diary::now();
        host.kill();
        host.status();
        election.diary.until_nobody_lives();
        let took = diary::now().saturating_sub(killed_at);
        assert!(took < AT_ONCE, "{contain}: nominal is 100 ms, took {took:?}");
    }
}

/// T9, without a right to make cgroups.
#[test]
fn an_ordinary_user_has_the_whole_tree_ended_before_the_successor_starts() {
    let election = election();
    let host = election.steady_host("a").witness(&election.diary, &["ignore-term", "daemonise"]);
    let mut host = host.spawn_as_ordinary_user(election.diary.directory());
    election.diary.until_noted("orphan");
    assert!(host.log().contains("Containment: subreaper"), "{}", host.log());
    let _next = election.steady_host("b").spawn();
    election.until_candidates(2);
    host.kill();
    host.status();
    assert_eq!(election.diary.until_started(2).id, "b");
    election.diary.assert_no_overlap();
}

/// T25. Again the successor is elected at once: it must wait until the kernel's timer has ended the tree.
#[test]
fn every_containment_ends_the_tree_when_guard_and_supervisor_are_stopped_together() {
    for contain in ["cgroup", "subreaper", "pid-namespace"] {
        let election = election();
        let host = election.host("a").option("--contain", contain);
        let first = as_another_user(host, &election).spawn();
        election.diary.until_noted("orphan");
        let _second = election.host("b").spawn();
        election.until_candidates(2);
        first.signal_guard(Signal::SIGSTOP);
        first.signal(Signal::SIGSTOP);
        election.admin.delete(&election.first());
        assert_eq!(election.diary.until_started(2).id, "b", "{contain}");
        election.diary.assert_no_overlap();
        first.signal(Signal::SIGCONT);
        // The kernel has killed its guard; it contends again with a new one.
        first.until_logged("rejoining");
    }
}

/// `pkill -9 zk-leader`, by name and by command line.
#[test]
fn every_containment_ends_the_tree_when_guard_and_supervisor_are_killed_together() {
    for contain in WAYS {
        let election = election();
        let host = election.host("a").option("--contain", contain);
        let mut first = as_another_user(host, &election).spawn();
        election.diary.until_noted("orphan");
        let _second = election.host("b").spawn();
        election.until_candidates(2);
        let ours = [first.pid(), first.guard_pid(), first.sentinel_pid()];
        let is_meant = |pid: &&i32| {
            ["comm", "cmdline"]
                .iter()
                .any(|file| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap().contains("zk-leader"))
        };
        let meant: Vec<&i32> = ours.iter().filter(is_meant).collect();
        assert_eq!(meant, [&ours[0], &ours[1]], "{contain}");
        for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
            for &&pid in &meant {
                kill(Pid::from_raw(pid), signal).unwrap();
            }
        }
        first.status();
        assert_eq!(election.diary.until_started(2).id, "b", "{contain}");
        election.diary.assert_no_overlap();
    }
}

#[test]
fn a_killed_sentinel_is_told_and_ends_nothing() {
    let election = election();
    let mut host = election.steady_host("a").witness(&election.diary, &["daemonise"]).spawn();
    election.diary.until_noted("orphan");
    kill(Pid::from_raw(host.sentinel_pid()), Signal::SIGKILL).unwrap();
    host.until_logged("A sentinel, the parent of a guard, was killed");
    election.diary.until_alive();
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0);
    assert!(!election.diary.somebody_lives());
    assert_eq!(election.state(), "free");
}

/// A shell that has started jobs, and then becomes us.
#[test]
fn what_we_were_started_with_is_reaped_when_it_ends_and_is_never_killed_with_the_tree() {
    let election = election();
    let noted = election.diary.directory().join("stranger");
    let script = format!(
        "sleep 0.1 & sh -c 'sleep 1000 >&- 2>&- & echo $! >{0}.new; mv {0}.new {0}; wait' & exec \"$@\"",
        noted.display()
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, "sh"]);
    let link = link();
    let host = election.host_behind(&link, "a").session_timeout("20s");
    let host = host.option("--hook", "sleep 1000").option("--hook-timeout", "500s");
    let mut host = host.witness(&election.diary, &["daemonise"]).spawn_inside(shell);
    election.diary.until_noted("orphan");
    let stranger =
        Stranger(wait::for_some("the other job is there", || fs::read_to_string(&noted).ok()?.trim().parse().ok()));
    let is_sentinel =
        |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "lease-sentinel\n");
    let guards = || {
        let sentinels: Vec<i32> = subject::children_of(host.pid()).into_iter().filter(is_sentinel).collect();
        sentinels.into_iter().filter_map(|sentinel| subject::children_of(sentinel).first().copied()).collect::<Vec<_>>()
    };
    let inherited = || subject::children_of(host.pid()).into_iter().filter(|pid| !is_sentinel(pid)).collect::<Vec<_>>();
    wait::until("the job that has ended is reaped", || inherited().len() == 1);
    // Its child becomes ours, and is none of the tree.
    kill(Pid::from_raw(inherited()[0]), Signal::SIGKILL).unwrap();
    wait::until("we have adopted it", || inherited() == [stranger.0]);
    wait::until("the command has a guard, and the hook", || guards().len() == 2);
    let guards = guards();
    kill(Pid::from_raw(guards[1]), Signal::SIGKILL).unwrap();
    host.until_logged("The guard of --hook died");
    kill(Pid::from_raw(guards[0]), Signal::SIGKILL).unwrap();
    assert_eq!(host.code(), 70);
    assert!(!election.diary.somebody_lives());
    assert!(subject::is_alive(stranger.0), "{}", host.log());
}

/// A process that nothing else ends; killed when dropped.
struct Stranger(i32);

impl Drop for Stranger {
    fn drop(&mut self) {
        kill(Pid::from_raw(self.0), Signal::SIGKILL).ok();
    }
}

/// A witness that daemonises, and has lost its parent-death signal by becoming another user; only root can do that.
fn as_another_user(host: Subject, election: &Election) -> Subject {
    let directory = election.diary.directory();
    fs::set_permissions(directory, Permissions::from_mode(0o777)).unwrap();
    let (witness, diary) = (directory.join("witness"), election.diary.path());
    subject::copy_program(&subject::example("witness"), &witness);
    let words = [witness.to_str().unwrap(), diary.to_str().unwrap(), "ignore-term", "daemonise"];
    let become_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let become_user = if nix::unistd::geteuid().is_root() { &become_user[..] } else { &[] };
    host.command(&[become_user, &words].concat())
}

#[test]
fn every_containment_stops_and_releases_on_request_and_says_what_it_is() {
    for contain in WAYS {
        let election = election();
        let host = election.steady_host("a").option("--contain", contain);
        let mut host = host.witness(&election.diary, &["daemonise", "status=4"]).spawn();
        election.diary.until_noted("orphan");
        host.signal(Signal::SIGTERM);
        assert_eq!(host.code(), 4, "{contain}: {}", host.log());
        assert!(!election.diary.somebody_lives(), "{contain}");
        assert_eq!(election.state(), "free");
        let named = match contain {
            "pid-namespace" => "PID namespace",
            "subreaper" => "subreaper",
            _ => "cgroup",
        };
        assert!(host.log().contains(&format!("Containment: {named}")), "{contain} is logged:\n{}", host.log());
    }
}

#[test]
fn every_containment_passes_the_commands_status_on() {
    for contain in WAYS {
        let election = election();
        for (script, code) in [("exit 37", 37), ("kill -9 $$", 137)] {
            let host = election.steady_host("a").option("--contain", contain);
            assert_eq!(host.command(&["sh", "-c", script]).spawn().code(), code, "{contain}");
        }
    }
}

#[test]
fn in_a_pid_namespace_the_command_sees_only_its_own_tree() {
    let election = election();
    let host = election.steady_host("a").option("--contain", "pid-namespace");
    let mut host = host.command(&["sh", "-c", "cd /proc && ls -d [0-9]* | wc -l"]).spawn();
    assert_eq!(host.code(), 0, "{}", host.log());
    let seen: usize = host.output().trim().parse().unwrap();
    assert!(seen <= 5, "it sees {seen} processes");
    assert!(subject::is_alive(i32::try_from(std::process::id()).unwrap()));
}

/// By its own rights it may signal none of us, and we are root: only what holds the tree together counts.
#[test]
fn a_command_of_another_user_is_ended_with_all_that_it_left() {
    for contain in WAYS {
        let election = election();
        let link = link();
        let host = election.host_behind(&link, "a").option("--contain", contain);
        let host = as_another_user(host, &election).spawn();
        election.diary.until_noted("orphan");
        assert_eq!(election.diary.starts().len(), 1, "{}", host.log());
        let cut_at = diary::now();
        link.stall();
        election.diary.until_nobody_lives();
        let lived = diary::now().saturating_sub(cut_at);
        assert!(lived < LEASE + secs(8), "{contain}: {lived:?} after its last renewal: {}", host.log());
    }
}

/// T40: what cannot be proven dead is not released, and not renewed for either; nor does it keep our place in line.
#[test]
fn a_process_that_survives_sigkill_delays_its_successor_by_the_stop_timeout_and_a_lease() {
    let election = election();
    let host = election.host("a").session_timeout("6s").option("--stop-timeout", "1s").option("--contain", "subreaper");
    let mut first = host.spawn();
    let start = election.diary.until_started(1);
    let _second = election.steady_host("b").spawn();
    election.until_candidates(2);
    let tracer = Tracer::of(start.pid);
    first.signal(Signal::SIGTERM);
    assert_eq!(election.diary.until_started(2).id, "b");
    assert!(subject::is_alive(first.pid()), "it waits for the end of its tree");
    assert!(!first.log().contains("-> releasing"), "{}", first.log());
    election.until_candidates(1);
    drop(tracer);
    first.status();
    election.diary.assert_no_overlap();
}
