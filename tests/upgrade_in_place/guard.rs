//! The guard itself: the next command after an upgrade gets one of the new program, and the earlier one is gone by then.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::election;
use crate::package::{Package, UPGRADED, processes};
use crate::support::subject::{children_of, guards_of, is_alive, memory_limit_of};
use crate::support::{Election, Notified, Running, Subject, wait};

/// Whether this process executes the program that is installed now.
fn is_new(package: &Package, pid: i32) -> bool {
    let inode = |path: String| fs::metadata(path).map(|file| file.ino()).ok();
    inode(format!("/proc/{pid}/exe")) == inode(package.path().to_str().unwrap().to_owned())
}

fn sigkill(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
}

/// SIGKILL to the command. In a namespace it has another id than the diary says, and an init as its parent.
pub fn end_command(host: &Running) {
    let child = |parent| wait::for_some("it has a child", || children_of(parent).first().copied());
    let started = child(host.guard_pid());
    let name = fs::read_to_string(format!("/proc/{started}/comm")).unwrap();
    sigkill(if name == "witness\n" { started } else { child(started) });
}

fn restarting(election: &Election, package: &Package) -> Subject {
    package.on(election.steady_host("a").option("--on-exit", "restart").option("--restart-delay", "10ms"))
}

/// The guard and the sentinel are of the program that is installed, and no other guard is left.
#[track_caller]
fn has_new_guard(package: &Package, host: &Running, others: usize) {
    wait::until("the earlier guards are gone", || children_of(host.pid()).len() == 1 + others);
    let (guard, sentinel) = processes(host);
    assert!(is_new(package, guard) && is_new(package, sentinel), "{}", host.log());
}

/// A supervisor limits itself, and nothing that it starts.
#[test]
fn a_guard_of_the_new_program_has_the_limits_that_the_first_one_had() {
    let (election, package) = (election(), Package::new());
    let leader = restarting(&election, &package).spawn();
    election.diary.until_started(1);
    let (first, limit) = (processes(&leader).0, memory_limit_of(leader.guard_pid()));
    package.upgrade(&leader);
    end_command(&leader);
    election.diary.until_started(2);
    let (next, _) = processes(&leader);
    assert_ne!(next, first);
    assert_eq!(memory_limit_of(next), limit, "{}", leader.log());
}

#[test]
fn a_command_that_is_started_again_gets_a_guard_of_the_new_program_and_only_that_one() {
    for contain in ["auto", "subreaper", "pid-namespace"] {
        let (election, package) = (election(), Package::new());
        let leader = restarting(&election, &package).option("--contain", contain).spawn();
        let first = election.diary.until_started(1);
        let before = processes(&leader);
        package.upgrade(&leader);
        package.upgrade(&leader);
        election.diary.until_alive();
        assert_eq!(processes(&leader), before, "the command keeps its guard");
        assert!(!is_new(&package, before.0) && !is_new(&package, before.1));
        end_command(&leader);
        let second = election.diary.until_started(2);
        assert_eq!((second.id, second.token), (first.id, first.token), "the term goes on");
        assert!([before.0, before.1].into_iter().all(|pid| !is_alive(pid)), "two guards: {}", leader.log());
        has_new_guard(&package, &leader, 0);
        // The next start is an ordinary one.
        let guard = processes(&leader);
        end_command(&leader);
        election.diary.until_started(3);
        assert_eq!(processes(&leader), guard);
        assert!(!election.diary.has("OVERLAP"));
        leader.kill();
        election.diary.until_nobody_lives();
    }
}

#[test]
fn a_standby_gets_a_guard_of_the_new_program_at_once() {
    let (election, package) = (election(), Package::new());
    let leader = package.on(election.steady_host("a")).spawn();
    election.diary.until_started(1);
    let standby = package.on(election.steady_host("b")).spawn();
    election.until_candidates(2);
    package.upgrade(&standby);
    has_new_guard(&package, &standby, 0);
    leader.kill();
    assert_eq!(election.diary.until_started(2).id, "b");
    has_new_guard(&package, &standby, 0);
    election.diary.assert_no_overlap();
}

#[test]
fn the_next_term_gets_a_guard_of_the_new_program_and_hooks_keep_theirs() {
    let (election, package) = (election(), Package::new());
    let host = election.steady_host("a").option("--on-exit", "rejoin").option("--hook", "true");
    let leader = package.on(host).spawn();
    let first = election.diary.until_started(1);
    package.upgrade(&leader);
    end_command(&leader);
    let second = election.diary.until_started(2);
    assert!(second.token > first.token);
    has_new_guard(&package, &leader, 1);
    election.diary.assert_no_overlap();
}

/// The upgrade is what gives the hook a guard again.
#[test]
fn a_host_whose_hook_has_lost_its_guard_is_upgraded() {
    let (election, package) = (election(), Package::new());
    let marker = election.diary.directory().join("hooks");
    let hook = format!("echo $ZK_LEADER_EVENT >>{}", marker.display());
    let leader = package.on(election.steady_host("a").option("--on-exit", "restart").option("--hook", &hook)).spawn();
    election.diary.until_started(1);
    sigkill(wait::for_some("the hook has a guard", || guards_of(leader.pid()).get(1).copied()));
    leader.until_logged("The guard of --hook died");
    // Its hooks wait from now on.
    end_command(&leader);
    election.diary.until_started(2);
    package.upgrade(&leader);
    let told = || std::fs::read_to_string(&marker).unwrap_or_default().lines().count();
    let before = told();
    end_command(&leader);
    wait::until("the hook is run again", || told() > before);
}

/// The watchdog of systemd asks the guard that has taken the other one's place.
#[test]
fn the_watchdog_is_fed_after_the_guard_was_replaced() {
    let (election, package, systemd) = (election(), Package::new(), Notified::listening());
    let host = restarting(&election, &package).env("NOTIFY_SOCKET", systemd.socket().to_str().unwrap());
    let leader = host.env("WATCHDOG_USEC", "900000").spawn();
    election.diary.until_started(1);
    package.upgrade(&leader);
    end_command(&leader);
    election.diary.until_started(2);
    has_new_guard(&package, &leader, 0);
    let fed = systemd.count("WATCHDOG=1");
    wait::until("the watchdog is fed", || systemd.count("WATCHDOG=1") > fed + 3);
}

/// What dies between an upgrade and the next start.
#[test]
fn a_guard_that_is_killed_before_it_was_replaced_ends_as_ever() {
    let (election, package) = (election(), Package::new());
    let mut leader = restarting(&election, &package).spawn();
    election.diary.until_started(1);
    package.upgrade(&leader);
    let (guard, sentinel) = processes(&leader);
    sigkill(sentinel);
    sigkill(guard);
    assert_eq!(leader.code(), 70, "{}", leader.log());
    election.diary.until_nobody_lives();
    assert_eq!(election.state(), "free");
}

/// `job & exec zk-leader-run …`, and both are killed (by the kernel, say, out of memory): the job is none of the tree.
#[test]
fn a_job_of_the_shell_that_became_us_outlives_guard_and_sentinel_after_an_upgrade() {
    let (election, package) = (election(), Package::new());
    // It ends with these tests.
    let script = format!("tail --pid={} -f /dev/null >/dev/null 2>&1 & exec \"$@\"", std::process::id());
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, "sh"]);
    let mut leader = restarting(&election, &package).spawn_inside(shell);
    election.diary.until_started(1);
    package.upgrade(&leader);
    let guard = leader.guard_pid();
    let [job, sentinel, ..] = children_of(leader.pid())[..] else { panic!("we have the job and the sentinel") };
    assert_eq!(fs::read_to_string(format!("/proc/{job}/comm")).unwrap(), "tail\n");
    sigkill(sentinel);
    sigkill(guard);
    assert_eq!(leader.code(), 70, "{}", leader.log());
    election.diary.until_nobody_lives();
    assert!(is_alive(job), "the job was killed: {}", leader.log());
    sigkill(job);
}

#[test]
fn without_the_new_guard_the_command_keeps_the_earlier_one() {
    let (election, package) = (election(), Package::new());
    let leader = restarting(&election, &package).spawn();
    election.diary.until_started(1);
    let before = processes(&leader);
    package.upgrade(&leader);
    let next = wait::for_some("there is another guard", || guards_of(leader.pid()).get(1).copied());
    sigkill(next);
    wait::until("it is gone", || !is_alive(next));
    end_command(&leader);
    election.diary.until_started(2);
    leader.until_logged("the earlier one stays");
    assert_eq!(processes(&leader), before);
    // The next upgrade makes up for it.
    let upgraded = leader.log().matches(UPGRADED).count();
    package.upgrade(&leader);
    leader.until_logged_times(UPGRADED, upgraded + 1);
    end_command(&leader);
    election.diary.until_started(3);
    has_new_guard(&package, &leader, 0);
    election.diary.assert_no_overlap();
}

/// The guard that was replaced has held the lease of this term; it must not free it when the supervisor dies.
#[test]
fn a_supervisor_that_is_killed_around_the_replacement_is_followed_without_overlap() {
    for pause in [0, 1, 2, 4, 8, 12, 16, 25, 40] {
        let (election, package) = (election(), Package::new());
        let leader = restarting(&election, &package).spawn();
        election.diary.until_started(1);
        let _standby = package.on(election.steady_host("b")).spawn();
        election.until_candidates(2);
        package.upgrade(&leader);
        end_command(&leader);
        wait::pass(std::time::Duration::from_millis(pause));
        leader.kill();
        wait::until("the next host leads", || election.diary.last_start().id == "b");
        election.diary.assert_no_overlap();
    }
}
