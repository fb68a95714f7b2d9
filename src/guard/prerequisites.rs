//! Checks the guard's requirements before it is forked, not when a tree has to be killed. Each missing one is reported
//! in one line with its remedy.

use std::fmt;
use std::fs;
use std::io;

use nix::errno::Errno;
use nix::sys::timerfd::{ClockId, TimerFd, TimerFlags};
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use super::sys::{self, Child};
use crate::guard::processes::children::Children;

/// See the module page.
#[derive(Debug)]
pub enum Lack {
    NoProc(io::Error),
    /// `/proc` belongs to another PID namespace, where our children have other numbers or none.
    ForeignProc,
    NoChildren(io::Error),
    /// A thread was started before `main`.
    OneThread,
    /// The timer that kills a stopped guard.
    KernelTimer(Errno),
    /// A system call that an old kernel lacks, or the seccomp filter of a container refuses.
    Refused(&'static str, Errno),
}

/// # Errors
/// The first missing requirement.
pub fn check() -> Result<(), Lack> {
    let status = fs::read_to_string("/proc/self/status").map_err(Lack::NoProc)?;
    if !is_ours(&status, std::process::id()) {
        return Err(Lack::ForeignProc);
    }
    if !sys::has_one_thread().map_err(|errno| Lack::NoProc(errno.into()))? {
        return Err(Lack::OneThread);
    }
    Children::of_this_thread().map_err(Lack::NoChildren)?;
    sys::lethal_timer().map_err(Lack::KernelTimer)?;
    let pidfd = pidfd_open(getpid(), PidfdFlags::empty()).map(drop);
    permitted("pidfd_open", pidfd.map_err(|errno| Errno::from_raw(errno.raw_os_error())))?;
    permitted("timerfd_create", TimerFd::new(ClockId::CLOCK_BOOTTIME, TimerFlags::empty()).map(drop))?;
    permitted("waitid", sys::peek(Child::Any).map(drop))
}

/// Another failure, such as a lack of descriptors, shows later, and says what is lacking.
fn permitted(call: &'static str, outcome: Result<(), Errno>) -> Result<(), Lack> {
    match outcome {
        Err(errno @ (Errno::ENOSYS | Errno::EPERM | Errno::EACCES)) => Err(Lack::Refused(call, errno)),
        _ => Ok(()),
    }
}

/// Whether `/proc` belongs to our PID namespace: then `NSpid`, which lists our id from the namespace of `/proc` down to
/// our own (`proc_pid_status(5)`), has one entry. A kernel without PID namespaces has no `NSpid`.
fn is_ours(status: &str, pid: u32) -> bool {
    let ids = |name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    ids("NSpid:").or_else(|| ids("Pid:")) == Some(pid.to_string().as_str())
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProc(error) => write!(f, "/proc cannot be read ({error}); mount it: mount -t proc proc /proc"),
            Self::ForeignProc => f.write_str(
                "/proc belongs to another PID namespace, so our child processes cannot be found in it; mount one for this \
                 namespace: unshare --mount-proc, or mount -t proc proc /proc",
            ),
            Self::NoChildren(error) => write!(
                f,
                "the kernel does not list child processes ({error}): /proc/PID/task/TID/children needs CONFIG_PROC_CHILDREN"
            ),
            Self::OneThread => f.write_str(
                "a library has started a thread before our main function, and a process with threads cannot be forked \
                 safely; start us without LD_PRELOAD, and without that library",
            ),
            Self::KernelTimer(Errno::EAGAIN) => f.write_str(
                "the kernel has no room for one more timer of this user; raise its limit of pending signals \
                 (ulimit -i, LimitSIGPENDING=)",
            ),
            Self::KernelTimer(errno) => write!(f, "the kernel refuses the timer that backs the guard ({errno})"),
            Self::Refused(call, errno) => write!(
                f,
                "{call} is refused ({}): it needs Linux 5.10 or later and, in a container, a seccomp profile that permits it; \
                 update the kernel, or the container's runtime and its profile",
                errno.desc()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proc_is_ours_if_it_knows_us_by_our_own_id_and_by_no_other() {
        assert!(is_ours("Name:\ta\nPid:\t12\nPPid:\t1\nNSpid:\t12\n", 12));
        assert!(is_ours("Pid:\t12\n", 12), "without PID namespaces");
        assert!(!is_ours("Pid:\t4321\nNSpid:\t4321\t12\n", 12), "that of a namespace around ours");
        assert!(!is_ours("Pid:\t12\nNSpid:\t12\t12\n", 12), "even if the two ids are the same");
        assert!(!is_ours("Pid:\t13\nNSpid:\t13\n", 12));
        assert!(!is_ours("", 12));
    }
}
