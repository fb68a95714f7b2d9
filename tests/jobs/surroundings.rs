//! What the host, the container or the limits around us lack: it is said, with what to do, or done without.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::election;
use crate::support::Election;
use crate::support::subject::copy_program;

/// A program that executes the rest of its arguments below a seccomp filter: it fails this system call with EPERM.
fn refusing(call: libc::c_long) -> Command {
    let filter = "my $call = shift; \
        my $filter = join '', map { pack 'SCCL', @$_ } [0x20, 0, 0, 0], [0x15, 0, 1, $call], [6, 0, 0, 0x50001], [6, 0, 0, 0x7fff0000]; \
        my $program = pack 'Sx![Q]P', 4, $filter; \
        my ($prctl, $no_new_privileges, $set_seccomp, $by_filter) = (shift, 38, 22, 2); \
        syscall($prctl, $no_new_privileges, 1, 0, 0, 0) == 0 or die $!; \
        syscall($prctl, $set_seccomp, $by_filter, $program) == 0 or die $!; \
        exec @ARGV or die $!";
    let mut perl = Command::new("perl");
    perl.args(["-e", filter, &call.to_string(), &libc::SYS_prctl.to_string()]);
    perl
}

#[test]
fn a_system_call_that_a_container_refuses_is_named_before_anything_runs() {
    for (name, call) in [
        ("pidfd_open", libc::SYS_pidfd_open),
        ("timerfd_create", libc::SYS_timerfd_create),
        ("waitid", libc::SYS_waitid),
    ] {
        let election = election();
        let mut host = election.host("a").command(&["true"]).spawn_inside(refusing(call));
        assert_eq!(host.code(), 78, "{}", host.log());
        let said = format!("{name} is refused (Operation not permitted): it needs Linux 5.10 or later");
        assert!(host.log().contains(&said) && host.log().contains("seccomp profile"), "{}", host.log());
    }
}

/// Docker before 20.10.10, and what libseccomp before 2.5 makes of a profile.
#[test]
fn a_refused_thread_is_no_lack_of_room() {
    let election = election();
    let host = election.host("a").option("--connect-timeout", "1s").command(&["true"]);
    let mut host = host.spawn_inside(refusing(libc::SYS_clone3));
    assert_eq!(host.code(), 69, "{}", host.log());
    assert!(host.log().contains("refuses clone3") && !host.log().contains("ulimit"), "{}", host.log());
}

/// A root directory of its own (`chroot(1)`).
#[test]
fn without_dev_null_hooks_and_health_checks_read_nothing() {
    let election = election();
    let mut bare = Command::new("unshare");
    bare.args(["--mount", "sh", "-c", "mount -t tmpfs none /dev && exec \"$@\"", "sh"]);
    let host = election.steady_host("a").option("--hook", "cat >&2 && echo told >&2").option("--health-cmd", "cat");
    let mut host = host.command(&["true"]).spawn_inside(bare);
    assert_eq!(host.code(), 0, "{}", host.log());
    assert!(host.log().contains("told") && !host.log().contains("could not be executed"), "{}", host.log());
}

/// Where another user can execute it.
fn program(election: &Election) -> PathBuf {
    let directory = election.diary.directory();
    std::fs::set_permissions(directory, Permissions::from_mode(0o755)).unwrap();
    let program = directory.join("zk-leader-run");
    copy_program(env!("CARGO_BIN_EXE_zk-leader-run").as_ref(), &program);
    program
}

/// Somebody who has no other process.
fn limited(limit: &str) -> Command {
    static USERS: AtomicU32 = AtomicU32::new(0);
    let user = format!("--reuid={}", 2_000_000 + 64 * std::process::id() + USERS.fetch_add(1, Ordering::Relaxed) % 64);
    let mut limited = Command::new("prlimit");
    limited.args([limit, "setpriv", &user, "--regid=65534", "--clear-groups"]);
    limited
}

#[test]
fn a_host_without_room_for_our_processes_says_which_limit_to_raise() {
    for (limit, remedy) in [("--nproc=2", "TasksMax="), ("--nofile=7", "LimitNOFILE=")] {
        let election = election();
        let program = program(&election);
        let host = election.host("a").program(program.to_str().unwrap()).command(&["true"]);
        let mut host = host.spawn_inside(limited(limit));
        assert_eq!(host.code(), 70, "{limit}: {}", host.log());
        assert!(host.log().contains(remedy), "{limit}: {}", host.log());
    }
}

/// Each guard has a kernel timer. Which of the two gets it is chance.
#[test]
fn a_guard_that_lacks_a_timer_says_what_it_lacks() {
    let election = election();
    let program = program(&election);
    let host = election.host("a").program(program.to_str().unwrap()).option("--hook", "true").command(&["true"]);
    let mut host = host.spawn_inside(limited("--sigpending=1"));
    host.code();
    assert!(host.log().contains("a guard process cannot go on: "), "{}", host.log());
    assert!(host.log().contains("ulimit -i"), "{}", host.log());
}

#[test]
fn without_namespaces_the_refusal_says_what_is_needed() {
    let election = election();
    let host = election.host("a").option("--contain", "pid-namespace").command(&["true"]);
    let mut host = host.spawn_inside(refusing(libc::SYS_clone));
    assert_eq!(host.code(), 78, "{}", host.log());
    assert!(host.log().contains("user.max_user_namespaces"), "{}", host.log());
}
