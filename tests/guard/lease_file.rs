//! The lease file, as the command and others see it.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;
use zk_leader_run::core::guard_messages::{Deadlines, Order};
use zk_leader_run::core::settings::Contain;
use zk_leader_run::guard::lease_file::layout::{LeaseState, LeaseView};
use zk_leader_run::guard::lease_file::reading;

use crate::driver;
use crate::subject::{GRANT, LONG, News, Process, SHORT, Setting, deadlines, now, until};

/// Says where the lease is when it ignores SIGTERM, and lives until it is killed.
const TELLS: &str = r#"trap "" TERM; echo "$ZK_LEADER_LEASE"; exec 9>"$ALIVE"; while :; do sleep 1000 & wait; done"#;

/// The same, without a child that would outlive all three of our processes.
const DIES_WITH_THE_GUARD: &str = r#"echo "$ZK_LEADER_LEASE"; exec sleep 1000"#;

/// With a runtime directory for named files.
fn setting(contain: Contain, arguments: &[&str]) -> (Setting, TempDir) {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut setting = Setting::new(contain, arguments);
    setting.command.env("RUNTIME_DIRECTORY", directory.path());
    (setting, directory)
}

fn view(path: &Path) -> LeaseView {
    reading::read(path).unwrap()
}

fn states(view: LeaseView) -> (LeaseState, Deadlines) {
    assert_eq!((view.token, view.term), (GRANT.token, GRANT.term));
    (view.state, view.deadlines)
}

fn files_in(directory: &TempDir) -> usize {
    std::fs::read_dir(directory.path()).unwrap().count()
}

pub fn the_command_finds_its_lease_in_a_file_that_follows_the_orders(contain: Contain) {
    let (setting, directory) = setting(contain, &["sh", "-c", TELLS]);
    let mut subject = setting.run();
    let lease = deadlines(LONG);
    let run = subject.start_under(lease);
    let path = PathBuf::from(subject.line());
    assert_eq!(states(view(&path)), (LeaseState::Leading, lease));
    let metadata = path.metadata().unwrap();
    assert_eq!((metadata.mode() & 0o7777, metadata.size()), (0o444, 64));
    let longer = Deadlines { stop_at: lease.stop_at.after(LONG), kill_at: lease.kill_at.after(LONG) };
    let by = now().after(LONG);
    let stopped = Deadlines { stop_at: by, kill_at: by };
    for (order, expected) in [
        (Order::Pause { run }, (LeaseState::Paused, lease)),
        (Order::Extend { run, deadlines: longer }, (LeaseState::Paused, longer)),
        (Order::Resume { run }, (LeaseState::Leading, longer)),
        // Refused, and so not to be seen.
        (Order::Extend { run, deadlines: lease }, (LeaseState::Leading, longer)),
        (Order::Stop { run, by }, (LeaseState::Stopping, stopped)),
    ] {
        subject.order(order);
        until("the order is in the file", || states(view(&path)) == expected);
    }
    let open = File::open(&path).unwrap();
    subject.order(Order::Kill { run });
    until("the lease is over", || view(&path) == LeaseView::NONE);
    subject.ends();
    subject.start_under(longer);
    assert_eq!(PathBuf::from(subject.line()), path);
    assert_eq!(states(view(&path)), (LeaseState::Leading, longer));
    drop(subject);
    assert!(!path.exists());
    assert_eq!((files_in(&directory), kill_at(&open)), (0, 0));
}

fn kill_at(file: &File) -> u64 {
    let mut word = [0; 8];
    file.read_exact_at(&mut word, 40).unwrap();
    u64::from_ne_bytes(word)
}

/// Its record is freed then, and the next leader starts at once.
pub fn a_lease_file_is_over_before_the_orphans_of_a_killed_guard_have_ended(contain: Contain) {
    for sentinel_too in [false, true] {
        let (setting, directory) = setting(contain, &["sh", "-c", TELLS]);
        let mut subject = setting.run();
        let lease = deadlines(LONG);
        subject.start_under(lease);
        let path = PathBuf::from(subject.line());
        let open = File::open(&path).unwrap();
        assert_eq!(kill_at(&open), lease.kill_at.as_nanos());
        if sentinel_too {
            subject.sentinel().signal(Signal::KILL);
        }
        subject.guard.signal(Signal::KILL);
        while subject.news() != News::OrphansEnded {}
        assert_eq!((kill_at(&open), files_in(&directory)), (0, 0), "sentinel killed: {sentinel_too}");
    }
}

/// Everything that a process of the guard's own user can try, without tracing it.
const FORGER: &str = r#"
import mmap, os, sys
path = os.environ["ZK_LEADER_LEASE"]
os.chmod(path, 0o666)
fd = os.open(path, os.O_RDWR)
def attempt(what, how):
    try:
        how()
    except (OSError, PermissionError) as error:
        print(what, "fails", flush=True)
    else:
        print(what, "works", flush=True)
attempt("write", lambda: os.pwrite(fd, b"\xff" * 8, 40))
attempt("map", lambda: mmap.mmap(fd, 64, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE))
attempt("cut", lambda: os.ftruncate(fd, 0))
attempt("grow", lambda: os.ftruncate(fd, 128))
attempt("open", lambda: os.open(path, os.O_WRONLY | os.O_TRUNC))
attempt("punch", lambda: os.posix_fallocate(fd, 64, 64))
print(path, flush=True)
sys.stdin.readline()
"#;

pub fn an_ordinary_users_command_cannot_change_its_lease_file() {
    let (setting, _directory) = setting(Contain::Subreaper, &["/usr/bin/python3", "-c", FORGER]);
    let mut subject = setting.of_an_ordinary_user().run();
    let lease = deadlines(LONG);
    subject.start_under(lease);
    for attempt in ["write", "map", "cut", "grow", "open", "punch"] {
        subject.says(&format!("{attempt} fails"));
    }
    let path = PathBuf::from(subject.line());
    assert_eq!(path.parent(), Some(Path::new(&format!("/proc/{}/fd", subject.guard.pid))));
    assert_eq!(states(view(&path)), (LeaseState::Leading, lease));
    subject.writes("");
    subject.ends();
}

/// Opens the lease, then gives up all that it has, and looks again.
const WANDERER: &str = r#"
import os, sys, tempfile
path, where = os.environ["ZK_LEADER_LEASE"], tempfile.mkdtemp()
fd = os.open(path, os.O_RDONLY)
os.closerange(fd + 1, 1000)
if os.fork() == 0:
    os.chroot(where); os.chdir("/")
    os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
    print(os.pread(fd, 7, 0).decode(), flush=True)
    os._exit(0)
os.wait()
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
os.closerange(3, 1000)
with open(path, "rb") as file:
    print(file.read(7).decode(), flush=True)
try:
    open(path, "r+b")
except PermissionError:
    print("closed to writers", flush=True)
sys.stdin.readline()
"#;

pub fn a_command_of_root_reads_its_lease_file_as_another_user_without_descriptors_and_in_a_chroot() {
    assert!(nix::unistd::geteuid().is_root(), "this test is about root");
    for contain in [Contain::Subreaper, Contain::PidNamespace] {
        let (setting, directory) = setting(contain, &["python3", "-c", WANDERER]);
        let public = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(directory.path(), public).unwrap();
        let mut subject = setting.run();
        subject.start(LONG);
        for line in ["ZKLEASE", "ZKLEASE", "closed to writers"] {
            subject.says(line);
        }
        subject.writes("");
        subject.ends();
    }
}

/// It must not harm the guard.
pub fn a_lease_file_that_root_truncates_is_mended_by_the_next_order() {
    let (setting, directory) = setting(Contain::Subreaper, &["sh", "-c", TELLS]);
    let mut subject = setting.run();
    let lease = deadlines(LONG);
    let run = subject.start_under(lease);
    let path = PathBuf::from(subject.line());
    assert!(path.starts_with(directory.path()));
    File::options().write(true).truncate(true).open(&path).unwrap();
    assert!(reading::read(&path).is_err());
    let longer = Deadlines { kill_at: lease.kill_at.after(LONG), ..lease };
    subject.order(Order::Extend { run, deadlines: longer });
    until("the file is whole", || reading::read(&path).is_ok_and(|view| states(view).1 == longer));
}

pub fn a_lease_file_of_processes_that_were_all_killed_ends_by_itself_and_is_removed_by_the_next() {
    let (setting, directory) = setting(Contain::Subreaper, &["sh", "-c", DIES_WITH_THE_GUARD]);
    let mut subject = setting.run();
    let lease = deadlines(SHORT);
    subject.start_under(lease);
    let path = PathBuf::from(subject.line());
    let all = [Process::of(subject.driver_process.pid), subject.sentinel(), Process::of(subject.guard.pid)];
    for signal in [Signal::STOP, Signal::KILL] {
        for process in &all {
            process.signal(signal);
        }
    }
    until("all are gone", || all.iter().all(|process| !process.is_alive()));
    while now() < lease.kill_at {
        assert_eq!(states(view(&path)).1, lease);
    }
    assert_eq!(view(&path).left(now()), Duration::ZERO);
    // A file that is held, and one of somebody else, stay.
    let other = directory.path().join("zk-leader-lease-of-the-command");
    File::create(&other).unwrap();
    let mut next = Setting::new(Contain::Subreaper, &["sh", "-c", TELLS]);
    next.command.env("RUNTIME_DIRECTORY", directory.path());
    let next = next.run();
    let mut third = Setting::new(Contain::Subreaper, &["sh", "-c", TELLS]);
    third.command.env("RUNTIME_DIRECTORY", directory.path());
    let third = third.run();
    assert!(!path.exists() && other.exists());
    assert_eq!(files_in(&directory), 3);
    drop((next, third));
    assert_eq!(files_in(&directory), 1);
    drop(subject);
}

pub fn with_secrets_or_a_user_namespace_the_file_has_a_name_in_the_runtime_directory() {
    for (contain, secrets) in [(Contain::Subreaper, true), (Contain::PidNamespace, false)] {
        let (mut setting, directory) = setting(contain, &["sh", "-c", TELLS]);
        if secrets {
            setting.command.env(driver::SECRETS, "yes");
        }
        let mut setting = setting.of_an_ordinary_user();
        let home = directory.path().join("zk-leader-run");
        std::fs::create_dir(&home).unwrap();
        std::os::unix::fs::chown(&home, Some(65_534), Some(65_534)).unwrap();
        std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        setting.command.env("RUNTIME_DIRECTORY", &home);
        let mut subject = setting.run();
        let lease = deadlines(LONG);
        subject.start_under(lease);
        let path = PathBuf::from(subject.line());
        assert!(path.starts_with(&home), "{}", path.display());
        assert_eq!(states(view(&path)), (LeaseState::Leading, lease));
    }
}

/// As in a container without a tmpfs. The guard is not in the namespace's own `/proc`, nor is the sealed file.
pub fn a_command_of_root_in_a_pid_namespace_is_told_of_no_file_that_is_not_there() {
    assert!(nix::unistd::geteuid().is_root(), "this test is about root");
    let tells = r#"path="$ZK_LEADER_LEASE"; if [ -z "$path" ]; then echo none; elif [ -e "$path" ]; then echo there
        else echo "lost: $path"; fi; read end"#;
    for (contain, expected) in [(Contain::Subreaper, "there"), (Contain::PidNamespace, "none")] {
        let mut setting = Setting::new(contain, &["sh", "-c", tells]);
        let mut bare = Command::new("unshare");
        let mounts = r#"mount -t ramfs none /run && mount -t ramfs none /dev/shm && exec "$0" "$@""#;
        bare.args(["--mount", "sh", "-c", mounts]).arg(setting.command.get_program()).args(setting.command.get_args());
        bare.envs(setting.command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        setting.command = bare;
        setting.command.env("RUNTIME_DIRECTORY", "/proc/self").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut subject = setting.run();
        subject.start(LONG);
        subject.says(expected);
        subject.writes("");
        subject.ends();
    }
}

/// Then a reader says no.
pub fn where_no_file_can_be_made_the_command_runs_without_its_variable() {
    let mut setting = Setting::new(Contain::Subreaper, &["sh", "-c", "echo \"lease:$ZK_LEADER_LEASE\""]);
    setting.command.env(driver::SECRETS, "yes").env("ZK_LEADER_LEASE", "/that/of/another/run");
    let mut setting = setting.of_an_ordinary_user();
    // Not a tmpfs, and not there.
    setting.command.env("RUNTIME_DIRECTORY", "/proc/self:/x").env("XDG_RUNTIME_DIR", "/no/such/directory");
    let mut subject = setting.run();
    subject.start(LONG);
    subject.says("lease:");
    subject.ends();
}
