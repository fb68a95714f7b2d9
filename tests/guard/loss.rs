//! A supervisor or a guard that is killed, or stopped, or both.

use std::fs;
use std::io::Read as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::process::{Child, Command, Stdio};

use nix::sys::socket::{MsgFlags, recv};
use rustix::process::Signal;
use zk_leader_run::core::guard_messages::{Cause, ChildStatus, Order};
use zk_leader_run::core::settings::Contain;

use zk_leader_run::guard::contain::{Containment, children_of, known};
use zk_leader_run::guard::processes::Processes;

use crate::driver;
use crate::subject::{GRANT, LONG, News, Process, Setting, Subject, is_in_time, now, state_of, until};

/// A command that ends by SIGKILL only, and a daemon of it.
const DEAF_FAMILY: &str = r#"
    exec 9>"$ALIVE"
    trap "" TERM
    (setsid sh -c 'trap "" TERM HUP; sleep 1000 & echo ready; wait' &)
    while :; do sleep 1000 & wait; done
"#;

const DEAF: &str = r#"exec 9>"$ALIVE"; trap "" TERM; echo ready; exec sleep 1000"#;

/// What supervisor, guard and sentinel say.
fn said(subject: &Subject) -> String {
    fs::read_to_string(subject.dir.path().join("errors")).unwrap()
}

fn deaf_family_that_is_heard(contain: Contain) -> Subject {
    let mut setting = Setting::new(contain, &["sh", "-c", DEAF_FAMILY]);
    setting.command.stderr(fs::File::create(setting.dir.path().join("errors")).unwrap());
    setting.run()
}

pub fn a_killed_supervisor_takes_the_tree_and_the_guard_with_it(contain: Contain) {
    let mut subject = deaf_family_that_is_heard(contain);
    let sentinel = subject.sentinel();
    subject.start_ready(LONG);
    let killed_at = now();
    subject.driver.kill().unwrap();
    subject.tree_is_gone_at(killed_at);
    until("the guard is gone", || !subject.guard.is_alive());
    is_in_time(killed_at);
    until("its cgroup is gone", || cgroup_of(&subject).is_none_or(|cgroup| !cgroup.exists()));
    until("the sentinel is gone", || !sentinel.is_alive());
    assert!(!said(&subject).contains("sentinel"), "the guard has ended the tree: {}", said(&subject));
}

/// A socket is at its end when the last copy of the other end is closed. A pidfd is not so easily deceived.
pub fn a_killed_supervisor_is_noticed_even_if_its_socket_is_held_open() {
    let mut subject = Subject::script(Contain::Subreaper, DEAF_FAMILY);
    subject.start_ready(LONG);
    let held = subject.driver_process.steal_sockets();
    assert!(held.len() >= 2, "the guard's, and the test's: {held:?}");
    let killed_at = now();
    subject.driver.kill().unwrap();
    subject.tree_is_gone_at(killed_at);
    until("the guard is gone", || !subject.guard.is_alive());
    is_in_time(killed_at);
    drop(held);
}

/// As a command does that was forked, and is not executed because its file system does not answer.
pub fn a_killed_guard_is_noticed_even_if_its_socket_is_held_open() {
    let mut subject = Subject::script(Contain::Subreaper, DEAF_FAMILY);
    subject.start_ready(LONG);
    let held = subject.guard.steal_sockets();
    assert!(!held.is_empty(), "its end of the supervisor's");
    guard_is_killed(&mut subject);
    drop(held);
}

pub fn a_stopped_supervisor_does_not_keep_the_command_alive(contain: Contain) {
    let mut subject = Subject::script(contain, DEAF_FAMILY);
    let lease = subject.start_short();
    subject.driver_process.signal(Signal::STOP);
    subject.tree_is_gone_at(lease.kill_at);
    assert!(now() >= lease.kill_at);
    subject.driver_process.signal(Signal::CONT);
    let (_, status, cause) = subject.ends();
    assert_eq!((status, cause), (ChildStatus::Signaled(9), Cause::Deadline));
}

/// With the supervisor stopped, too: only the kernel is left to act.
pub fn a_stopped_guard_is_killed_by_the_kernel_and_the_command_with_it(contain: Contain) {
    let mut subject = Subject::script(contain, DEAF);
    let lease = subject.start_short();
    subject.driver_process.signal(Signal::STOP);
    subject.guard.signal(Signal::STOP);
    subject.tree_is_gone_at(lease.kill_at);
    until("the guard is gone", || !subject.guard.is_alive());
    subject.driver_process.signal(Signal::CONT);
    orphans_are_ended(&mut subject);
}

/// Even if its init is stopped, too, so that it can do nothing itself.
pub fn a_stopped_guard_takes_a_whole_pid_namespace_with_it() {
    let mut subject = Subject::script(Contain::PidNamespace, DEAF_FAMILY);
    let lease = subject.start_short();
    let [init] = children_of(subject.guard.pid)[..] else { panic!("the guard has one child") };
    Process::of(init).signal(Signal::STOP);
    subject.driver_process.signal(Signal::STOP);
    subject.guard.signal(Signal::STOP);
    subject.tree_is_gone_at(lease.kill_at);
}

/// A command that becomes another user loses its parent-death signal (`PR_SET_PDEATHSIG(2const)`); only root can try it.
const DEAF_AS_ANOTHER_USER: &str = r#"
    exec 9>"$ALIVE"
    trap "" TERM
    become=
    if [ "$(id -u)" = 0 ]; then become="setpriv --reuid=65534 --regid=65534 --clear-groups"; fi
    exec $become sh -c '(setsid sleep 1000 &); echo ready; exec sleep 1000'
"#;

/// The guard is killed by its kernel timer, and the sentinel ends what it leaves: the supervisor is still stopped.
pub fn a_stopped_guard_and_supervisor_leave_no_command_of_another_user_and_no_daemon(contain: Contain) {
    let mut subject = Subject::script(contain, DEAF_AS_ANOTHER_USER);
    let lease = subject.start_short();
    subject.driver_process.signal(Signal::STOP);
    subject.guard.signal(Signal::STOP);
    subject.tree_is_gone_at(lease.kill_at);
}

pub fn guard_and_supervisor_that_are_killed_together_leave_nothing_behind(contain: Contain) {
    let mut subject = deaf_family_that_is_heard(contain);
    subject.start_ready(LONG);
    let (sentinel, cgroup) = (subject.sentinel(), cgroup_of(&subject));
    // Neither can act on the other's death.
    let killed_at = now();
    for signal in [Signal::STOP, Signal::KILL] {
        subject.driver_process.signal(signal);
        subject.guard.signal(signal);
    }
    subject.tree_is_gone_at(killed_at);
    until("the sentinel is gone", || !sentinel.is_alive());
    is_in_time(killed_at);
    // The sentinel removes it after the releaser.
    until("its cgroup is gone", || cgroup.as_ref().is_none_or(|cgroup| !cgroup.exists()));
    let line = "of driver:1 (/zk-leader-run/test) were killed; their sentinel has killed the command";
    assert_eq!(said(&subject).matches(line).count(), 1, "{}", said(&subject));
}

pub fn a_cgroup_of_processes_that_were_all_killed_is_removed_by_the_next() {
    let mut subject = Subject::script(Contain::Auto, "true");
    let Some(cgroup) = cgroup_of(&subject) else { return };
    let all = [Process::of(subject.driver_process.pid), subject.sentinel(), Process::of(subject.guard.pid)];
    for signal in [Signal::STOP, Signal::KILL] {
        for process in &all {
            process.signal(signal);
        }
    }
    until("all are gone", || all.iter().all(|process| !process.is_alive()));
    // Its number must be nobody's.
    subject.driver.wait().unwrap();
    let _next = Subject::script(Contain::Auto, "true");
    assert!(!cgroup.exists());
}

/// `pkill -f zk-leader`, a signal to the process group or to the session of a terminal do not reach all three.
pub fn the_sentinel_has_a_session_and_a_name_of_its_own() {
    let subject = Subject::script(Contain::Subreaper, "true");
    let sentinel = subject.sentinel();
    assert_eq!(sentinel.names(), ("lease-sentinel".to_owned(), "lease-sentinel".to_owned()));
    let session = |process: &Process| nix::unistd::getsid(Some(nix::unistd::Pid::from_raw(process.pid))).unwrap();
    assert_eq!(session(&sentinel).as_raw(), sentinel.pid);
    assert_eq!(session(&subject.guard), session(&subject.driver_process), "whose terminal it may hand over");
    // The sentinel tells its id before the guard names itself.
    until("the guard has its name", || subject.guard.names().0 == "zk-leader-guard");
}

pub fn a_killed_sentinel_changes_nothing_until_the_guard_is_killed_as_well(contain: Contain) {
    let mut subject = Subject::script(contain, DEAF_FAMILY);
    subject.sentinel().signal(Signal::KILL);
    subject.start_ready(LONG);
    subject.is_killed();
    subject.start_ready(LONG);
    guard_is_killed(&mut subject);
    assert!(cgroup_of(&subject).is_none_or(|cgroup| !cgroup.exists()));
}

/// Its presence makes this executable [`keep_a_guard`]: a process whose children all end.
pub const KEEPER: &str = "GUARD_KEEPER";

/// While the guard lives, or nobody has reaped it, its children are not ours, and cannot be seen.
pub fn nothing_is_left_only_when_the_guard_is_gone_though_it_is_to_be_spared() {
    let keeper = Command::new(std::env::current_exe().unwrap()).env(KEEPER, "").output().unwrap();
    assert!(keeper.status.success(), "{}", String::from_utf8_lossy(&keeper.stderr));
}

/// A stand-in for a guard, with a child, whose sentinel was killed.
pub fn keep_a_guard() {
    nix::sys::prctl::set_child_subreaper(true).unwrap();
    let id = |child: &Child| i32::try_from(child.id()).unwrap();
    let mut sentinel = Command::new("sleep").arg("60").spawn().unwrap();
    sentinel.kill().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "sleep 60 & echo ready; wait"]).stdout(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    shell.stdout.take().unwrap().read_exact(&mut [0; 6]).unwrap();
    let guard = Process::of(id(&shell));
    let [child] = children_of(guard.pid)[..] else { panic!("it has one child") };
    let child = Process::of(child);
    let mut processes = Processes::take_up(guard.pid, guard.pidfd(), id(&sentinel));
    let containment = Containment::choose(Contain::Subreaper).unwrap();
    let spared = known(&[guard.pid]).unwrap();
    until("nothing is left", || processes.have_left_nothing(&containment, &spared).unwrap());
    assert!(!guard.is_alive() && !child.is_alive(), "something is left");
    assert!(shell.wait().is_err() && sentinel.wait().is_err(), "both are reaped");
}

/// Its presence makes this executable [`reuse_a_number`].
pub const REUSER: &str = "GUARD_NUMBER";

/// In a PID namespace of its own nobody else takes the numbers.
pub fn a_process_of_the_tree_with_the_number_of_an_earlier_child_is_not_spared() {
    let own = std::env::current_exe().unwrap();
    let reuser = Command::new("unshare").args(["-pf", "--mount-proc"]).arg(own).env(REUSER, "").output().unwrap();
    assert!(reuser.status.success(), "{}", String::from_utf8_lossy(&reuser.stderr));
}

/// A child that is none of the tree ends, and a process of the tree gets its number.
#[expect(clippy::zombie_processes, reason = "reaped by the sweep")]
pub fn reuse_a_number() {
    let id = |child: &Child| i32::try_from(child.id()).unwrap();
    let sleeper = || Command::new("sleep").arg("60").spawn().unwrap();
    let [mut sentinel, guard, mut stranger] = [sleeper(), sleeper(), sleeper()];
    sentinel.kill().unwrap();
    let number = id(&stranger);
    let spared = known(&[number]).unwrap();
    // The starts of processes are known to a hundredth of a second.
    Command::new("sleep").arg("0.05").status().unwrap();
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    std::fs::write("/proc/sys/kernel/ns_last_pid", (number - 1).to_string()).unwrap();
    let orphan = sleeper();
    assert_eq!(id(&orphan), number);
    let guard = Process::of(id(&guard));
    let mut processes = Processes::take_up(guard.pid, guard.pidfd(), id(&sentinel));
    processes.kill_guard();
    let containment = Containment::choose(Contain::Subreaper).unwrap();
    until("nothing is left", || processes.have_left_nothing(&containment, &spared).unwrap());
    assert!(children_of(std::process::id().try_into().unwrap()).is_empty(), "something is left");
}

/// No descriptor is free when the guard dies, and later there are again.
pub fn a_clean_up_that_is_not_possible_at_first_is_done_when_it_is() {
    let mut subject = Subject::script(Contain::Subreaper, DEAF_FAMILY);
    subject.start_ready(LONG);
    let sentinel = subject.sentinel();
    sentinel.signal(Signal::KILL);
    until("the sentinel is gone", || !sentinel.is_alive());
    subject.driver_process.limit_descriptors(3);
    subject.guard.signal(Signal::KILL);
    while subject.news() != News::Complained {}
    subject.driver_process.limit_descriptors(4096);
    orphans_are_ended(&mut subject);
}

/// A stopped one would leave the tree to nobody.
pub fn a_stopped_sentinel_goes_on_when_the_guard_is_killed(contain: Contain) {
    let mut subject = Subject::script(contain, DEAF_FAMILY);
    subject.start_ready(LONG);
    subject.sentinel().signal(Signal::STOP);
    guard_is_killed(&mut subject);
}

pub fn a_killed_guard_leaves_a_tree_that_is_ended_before_anything_is_released(contain: Contain) {
    let mut subject = Subject::script(contain, DEAF_FAMILY);
    subject.start_ready(LONG);
    guard_is_killed(&mut subject);
    assert!(cgroup_of(&subject).is_none_or(|cgroup| !cgroup.exists()));
}

fn guard_is_killed(subject: &mut Subject) {
    let killed_at = now();
    subject.guard.signal(Signal::KILL);
    orphans_are_ended(subject);
    is_in_time(killed_at);
}

fn orphans_are_ended(subject: &mut Subject) {
    while subject.news() != News::OrphansEnded {}
    assert!(!subject.tree_lives(), "that orphans ended is the proof that nothing is left");
}

const ALL_BUT_KILL_AND_STOP: u64 = !((1 << (libc::SIGKILL - 1)) | (1 << (libc::SIGSTOP - 1)));

pub fn no_catchable_signal_moves_the_guard(contain: Contain) {
    let mut subject = Subject::script(contain, r#"exec 9>"$ALIVE"; echo ready; read how; exit "$how""#);
    let deadly = (1..=31).filter(|signal| ![libc::SIGKILL, libc::SIGSTOP].contains(signal));
    let signals: Vec<_> = deadly.filter_map(Signal::from_named_raw).collect();
    let strike = |subject: &Subject| {
        for process in [&subject.guard, &subject.sentinel()] {
            // Who is started by `posix_spawn(3)` ignores what glibc keeps for itself, and so would not show it.
            assert_eq!(process.blocked_signals(), ALL_BUT_KILL_AND_STOP);
            signals.iter().copied().for_each(|signal| process.signal(signal));
            // The realtime ones have no name.
            let numbers = (32..=libc::SIGRTMAX()).map(|number| format!("-{number}"));
            for number in numbers {
                assert!(Command::new("kill").args([&number, &process.pid.to_string()]).status().unwrap().success());
            }
        }
    };
    strike(&subject);
    subject.start_ready(LONG);
    strike(&subject);
    subject.writes("7");
    let (_, status, cause) = subject.ends();
    assert_eq!((status, cause), (ChildStatus::Exited(7), Cause::ItsOwn));
    assert!(subject.guard.is_alive() && subject.sentinel().is_alive());
}

pub fn a_guard_without_a_tree_ends_with_its_supervisor_and_leaves_nothing_behind(contain: Contain) {
    let mut subject = Subject::script(contain, r#"exec 9>"$ALIVE"; echo ready"#);
    subject.start_ready(LONG);
    subject.ends();
    let cgroup = cgroup_of(&subject);
    assert!(cgroup.as_ref().is_none_or(|cgroup| cgroup.exists()));
    // Cgroups that the command made in its own are no reason to leave it.
    if let Some(cgroup) = &cgroup {
        std::fs::create_dir_all(cgroup.join("of/the/command")).unwrap();
    }
    let killed_at = now();
    subject.driver.kill().unwrap();
    until("the guard is gone", || !subject.guard.is_alive());
    is_in_time(killed_at);
    // Its sentinel removes it, as if a releaser had followed.
    until("the cgroup is removed", || cgroup.as_ref().is_none_or(|cgroup| !cgroup.exists()));
}

pub fn a_cgroup_that_nobody_could_remove_is_removed_by_the_next_guard() {
    let mut lost = Subject::script(Contain::Cgroup, r#"exec 9>"$ALIVE"; echo ready; exec sleep 1000"#);
    lost.start_ready(LONG);
    let living = Subject::script(Contain::Cgroup, "true");
    let (left_over, in_use) = (cgroup_of(&lost).unwrap(), cgroup_of(&living).unwrap());
    for process in [&lost.driver_process, &lost.guard] {
        process.signal(Signal::STOP);
    }
    lost.guard.signal(Signal::KILL);
    lost.driver.kill().unwrap();
    lost.driver.wait().unwrap();
    until("the command is gone", || !lost.tree_lives());
    until("the next guard removed what was left", || {
        let _next = Subject::script(Contain::Cgroup, "true");
        !left_over.exists()
    });
    assert!(in_use.exists());
}

/// Nobody is left to end it but the next one.
pub fn what_survives_its_guard_supervisor_and_sentinel_is_ended_by_the_next_guard() {
    let mut lost = Subject::script(Contain::Cgroup, DEAF_FAMILY);
    lost.start_ready(LONG);
    let (left_over, sentinel) = (cgroup_of(&lost).unwrap(), lost.sentinel());
    for process in [&lost.driver_process, &lost.guard, &sentinel] {
        process.signal(Signal::STOP);
    }
    for process in [&sentinel, &lost.guard, &lost.driver_process] {
        process.signal(Signal::KILL);
    }
    lost.driver.wait().unwrap();
    until("the guard is gone", || !lost.guard.is_alive() && !sentinel.is_alive());
    assert!(lost.tree_lives(), "a daemon survives them all");
    let next = Subject::script(Contain::Cgroup, "true");
    until("it is ended", || !lost.tree_lives());
    drop(next);
    until("a later guard removes what was left", || {
        let _later = Subject::script(Contain::Cgroup, "true");
        !left_over.exists()
    });
}

fn cgroup_of(subject: &Subject) -> Option<std::path::PathBuf> {
    let path = subject.containment.strip_prefix("cgroup ")?.split(' ').next()?;
    Some(path.into())
}

pub fn the_releaser_follows_a_killed_supervisor_when_the_tree_is_empty() {
    let mut setting = Setting::new(Contain::Subreaper, &["sh", "-c", DEAF_FAMILY]);
    let report = setting.dir.path().join("released");
    setting.command.env(driver::RELEASER, &report);
    let mut subject = setting.run();
    subject.start_ready(LONG);
    let killed_at = now();
    subject.driver.kill().unwrap();
    until("the releaser ran", || report.exists() && std::fs::read(&report).is_ok_and(|token| !token.is_empty()));
    is_in_time(killed_at);
    assert!(!subject.tree_lives(), "no release before the tree is empty");
    assert_eq!(std::fs::read_to_string(&report).unwrap(), GRANT.token.to_string());
}

/// It has retired the guard, because a step is about to run, and is killed before the guard has heard of it.
pub fn what_a_supervisor_said_before_it_was_killed_counts() {
    for is_retired in [false, true] {
        let mut setting = Setting::new(Contain::Subreaper, &["true"]);
        let report = setting.dir.path().join("released");
        setting.command.env(driver::RELEASER, &report);
        let mut subject = setting.run();
        let run = subject.start(LONG);
        subject.ends();
        subject.guard.signal(Signal::STOP);
        until("the guard stands still", || state_of(subject.guard.pid) == Some('T'));
        if is_retired {
            subject.order(Order::Retire { run });
            let sockets = subject.guard.steal_sockets();
            let peek = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
            let waits = |socket: &OwnedFd| recv(socket.as_raw_fd(), &mut [0; 1], peek).is_ok();
            until("the order waits for the guard", || sockets.iter().any(waits));
        }
        subject.driver.kill().unwrap();
        subject.driver.wait().unwrap();
        let guard = Process::of(subject.guard.pid);
        guard.signal(Signal::CONT);
        until("the guard is gone", || !guard.is_alive());
        assert_eq!(report.exists(), !is_retired, "retired: {is_retired}");
    }
}

/// systemd looks through the cgroups of a unit whose supervisor died; if one of them is removed meanwhile, systemd kills all that
/// is left of the unit at once, and the lease is not freed.
pub fn the_cgroup_of_a_killed_supervisor_stays_until_its_releaser_has_ended() {
    let mut setting = Setting::new(Contain::Cgroup, &["sh", "-c", DEAF_FAMILY]);
    let report = setting.dir.path().join("released");
    // Until somebody reads it, the releaser waits.
    nix::unistd::mkfifo(&report, nix::sys::stat::Mode::S_IRWXU).unwrap();
    setting.command.env(driver::RELEASER, &report);
    let mut subject = setting.run();
    subject.start_ready(LONG);
    let (cgroup, sentinel) = (cgroup_of(&subject).unwrap(), subject.sentinel());
    subject.driver.kill().unwrap();
    until("the releaser is in the guard's place", || subject.guard.names().0 != "zk-leader-guard");
    assert!(!subject.tree_lives() && cgroup.exists(), "it was removed while the releaser was at work");
    assert_eq!(std::fs::read_to_string(&report).unwrap(), GRANT.token.to_string());
    until("the sentinel is gone", || !sentinel.is_alive());
    assert!(!cgroup.exists());
}
