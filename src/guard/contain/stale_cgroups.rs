//! Removes the cgroups of a guard and a supervisor that were killed at once, and ends what is left in them: a sentinel that was killed with
//! them could not.
//!
//! The owner of a cgroup holds a lock on its directory (`flock(2)`), which the kernel releases when the owner ends. A
//! cgroup is ended and removed only under that lock. Process ids prove nothing, because each PID namespace has its own.
//! `rmdir(2)` refuses a cgroup that has processes.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::sys::signal::kill;
use nix::unistd::Pid;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// The prefix of our cgroups' names; the process id follows.
pub(super) const PREFIX: &str = "zk-leader-run-";

/// Removes stale cgroups among the children of `parent`.
pub(super) fn remove(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let owner = entry.file_name().to_str().and_then(owner);
        if !owner.is_some_and(may_be_gone) {
            continue;
        }
        if let Ok(Some(held)) = hold(&entry.path()) {
            if fs::remove_dir(entry.path()).is_err() {
                // No guard would end these processes with their lease. The directory goes with a later start.
                let kill = File::options().write(true).open(entry.path().join("cgroup.kill"));
                let _ = kill.and_then(|mut kill| kill.write_all(b"1"));
            }
            // Unlock after the removal, so that no other process claims the directory meanwhile.
            drop(held);
        }
    }
}

/// Locks a directory. `None`: another process holds it, or the path is gone or names another directory now.
///
/// # Errors
/// If it cannot be opened or locked for another reason.
pub(super) fn hold(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => lock(opened?, path),
    }
}

/// Locks a directory that was opened as `path`.
fn lock(directory: File, path: &Path) -> io::Result<Option<File>> {
    match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    Ok(is_at(&directory, path)?.then_some(directory))
}

/// Whether an open directory is the one that `path` names now.
///
/// # Errors
/// If it cannot be looked at.
pub(super) fn is_at(directory: &File, path: &Path) -> io::Result<bool> {
    let (opened, present) = (directory.metadata()?, fs::metadata(path));
    Ok(present.is_ok_and(|present| (present.dev(), present.ino()) == (opened.dev(), opened.ino())))
}

/// `zk-leader-run-<pid>`, or `zk-leader-run-<pid>-<attempt>`.
fn owner(name: &str) -> Option<Pid> {
    let mut numbers = name.strip_prefix(PREFIX)?.splitn(2, '-').map(str::parse::<u32>);
    let pid = numbers.next()?.ok()?;
    let attempt_is_good = numbers.next().is_none_or(|attempt| attempt.is_ok());
    attempt_is_good.then(|| i32::try_from(pid).ok().filter(|pid| *pid > 0).map(Pid::from_raw))?
}

/// Whether the owner may be dead. The cgroup of a living process is kept even without a lock: it may be a version that held
/// none. Our own id and 1 exist in every PID namespace and prove nothing.
fn may_be_gone(owner: Pid) -> bool {
    owner == Pid::this() || owner == INIT || kill(owner, None) == Err(nix::errno::Errno::ESRCH)
}

const INIT: Pid = Pid::from_raw(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_are_ours_have_an_owner() {
        assert_eq!(owner("zk-leader-run-12"), Some(Pid::from_raw(12)));
        assert_eq!(owner("zk-leader-run-12-3"), Some(Pid::from_raw(12)));
        for other in [
            "zk-leader-run-",
            "zk-leader-run-0",
            "zk-leader-run-x",
            "zk-leader-run-1-x",
            "zk-leader-run-99999999999",
            "a",
        ] {
            assert_eq!(owner(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_gone_or_another_one_by_the_time_it_is_locked_is_not_held() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a");
        let made = || {
            fs::create_dir(&path).unwrap();
            File::open(&path).unwrap()
        };
        let removed = made();
        fs::remove_dir(&path).unwrap();
        assert!(lock(removed.try_clone().unwrap(), &path).unwrap().is_none());
        let anew = made();
        assert!(lock(removed, &path).unwrap().is_none());
        assert!(lock(anew, &path).unwrap().is_some());
    }

    #[test]
    fn what_is_held_or_whose_owner_lives_stays() {
        let parent = tempfile::tempdir().unwrap();
        let nobody = 4_194_304 + 7; // above the largest possible process id, proc_sys_kernel(5)
        let make = |name: String| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let left_over = make(format!("{PREFIX}{nobody}"));
        let held = make(format!("{PREFIX}{nobody}-1"));
        let of_init = make(format!("{PREFIX}1-3"));
        let of_our_id = make(format!("{PREFIX}{}", std::process::id()));
        let of_our_parent = make(format!("{PREFIX}{}", std::os::unix::process::parent_id()));
        let others = make("other".to_owned());
        let populated = make(format!("{PREFIX}{nobody}-2"));
        fs::create_dir(populated.join("inside")).unwrap();
        let lock = File::open(&held).unwrap();
        flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
        remove(parent.path());
        for gone in [left_over, of_init, of_our_id] {
            assert!(!gone.exists(), "{}", gone.display());
        }
        for kept in [held, of_our_parent, others, populated] {
            assert!(kept.exists(), "{}", kept.display());
        }
    }
}
