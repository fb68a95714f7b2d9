//! Empty cgroups that a guard and a supervisor left behind when both were killed at once.
//!
//! Never: one whose owner lives, be it in another PID namespace; one that somebody is in, which `rmdir(2)` refuses.

use std::fs::{self, File};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::cgroup::PREFIX;

/// Removes what is left over among the children of `parent`.
pub(super) fn remove(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let owner = entry.file_name().to_str().and_then(owner);
        if owner.is_some_and(is_gone) && is_let_go_of(&entry.path()) {
            // Nobody is hurt if it stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// `zk-leader-run-<pid>`, or `zk-leader-run-<pid>-<attempt>`.
fn owner(name: &str) -> Option<Pid> {
    let mut numbers = name.strip_prefix(PREFIX)?.splitn(2, '-').map(str::parse::<u32>);
    let pid = numbers.next()?.ok()?;
    let attempt_is_good = numbers.next().is_none_or(|attempt| attempt.is_ok());
    attempt_is_good.then(|| i32::try_from(pid).ok().filter(|pid| *pid > 0).map(Pid::from_raw))?
}

fn is_gone(owner: Pid) -> bool {
    kill(owner, None) == Err(Errno::ESRCH)
}

/// Its owner holds a lock on it (`flock(2)`) for as long as it lives.
fn is_let_go_of(cgroup: &Path) -> bool {
    File::open(cgroup).is_ok_and(|directory| directory.try_lock().is_ok())
}

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
        let ours = make(format!("{PREFIX}{}", std::process::id()));
        let others = make("other".to_owned());
        let populated = make(format!("{PREFIX}{nobody}-2"));
        fs::create_dir(populated.join("inside")).unwrap();
        let lock = File::open(&held).unwrap();
        lock.try_lock().unwrap();
        remove(parent.path());
        assert!(!left_over.exists());
        for kept in [held, ours, others, populated] {
            assert!(kept.exists(), "{}", kept.display());
        }
    }
}
