//! The guard and the sentinel as the supervisor sees them, and the sweep after their death.
//!
//! The sentinel ends the tree's orphans. Only if it was killed, too, do the orphans and the guard become our children.
//! Nothing here waits.

pub mod children;
pub(crate) mod sweep;
pub mod zombies;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::read;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::core::guard_messages::ChildStatus;
use crate::guard::contain::{Containment, Process};
use crate::guard::processes::children::Children;
use crate::guard::sys;

/// See the module page.
#[derive(Debug)]
pub struct Processes {
    pub guard: i32,
    guard_pidfd: OwnedFd,
    /// Our child, which only we reap.
    sentinel: i32,
    /// The exit status of the sentinel, once it has ended.
    sentinel_end: Option<ChildStatus>,
}

/// The exit status of a sentinel that saw the last process of the tree end.
const DONE: ChildStatus = ChildStatus::Exited(0);

impl Processes {
    /// Waits for the sentinel to send the guard's id, which is valid while the sentinel lives.
    ///
    /// # Errors
    /// What the sentinel lacked, or that it has ended instead.
    pub fn told(sentinel: i32, tells: &OwnedFd) -> io::Result<Self> {
        let mut guard = [0; 4];
        if read(tells, &mut guard)? != guard.len() {
            return Err(io::Error::other("its parent process has ended at once"));
        }
        let guard = i32::from_ne_bytes(guard);
        if guard < 0 {
            return Err(io::Error::from_raw_os_error(guard.saturating_neg()));
        }
        let pid = Pid::from_raw(guard).ok_or(Errno::ESRCH)?;
        let guard_pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|errno| match errno {
            rustix::io::Errno::SRCH => io::Error::other("it has ended at once"),
            errno => errno.into(),
        })?;
        Ok(Self { guard, guard_pidfd, sentinel, sentinel_end: None })
    }

    /// The guard's id, its pidfd, and the sentinel's id, for the next program of this process. `None`: the sentinel has
    /// ended.
    pub fn hand_over(&mut self) -> Option<(i32, BorrowedFd<'_>, i32)> {
        let lives = self.sentinel_end().is_none() && !self.guard_has_ended();
        lives.then_some((self.guard, self.guard_pidfd.as_fd(), self.sentinel))
    }

    pub fn take_up(guard: i32, guard_pidfd: OwnedFd, sentinel: i32) -> Self {
        Self { guard, guard_pidfd, sentinel, sentinel_end: None }
    }

    pub fn ids(&self) -> [i32; 2] {
        [self.guard, self.sentinel]
    }

    /// Readable once the guard has ended (`pidfd_open(2)`).
    ///
    /// # Errors
    /// If there are no descriptors.
    pub fn guards_end(&self) -> io::Result<OwnedFd> {
        self.guard_pidfd.try_clone()
    }

    pub fn kill_guard(&self) {
        // It may be dead already.
        let _ = pidfd_send_signal(&self.guard_pidfd, Signal::KILL);
    }

    /// Whether both have ended and are reaped.
    pub fn have_ended(&mut self) -> bool {
        match self.sentinel_end() {
            None => false,
            Some(DONE) => true,
            // If we are not a subreaper, it is not our child.
            Some(_) => self.guard_has_ended() && !matches!(sys::reap(self.guard), Ok(None)),
        }
    }

    /// One sweep after the guard's death. Returns whether the tree is empty. `spared`: children that are none of the tree.
    /// A process of the tree may have got the number of one that has ended.
    ///
    /// # Errors
    /// If our children cannot be listed: then the state of the tree is unknown.
    pub fn have_left_nothing(&mut self, containment: &Containment, spared: &[Process]) -> io::Result<bool> {
        containment.kill();
        match self.sentinel_end() {
            None => {
                // The sentinel is working, unless it is stopped.
                let _ = sys::kill(self.sentinel, libc::SIGCONT);
                Ok(false)
            }
            Some(DONE) => Ok(containment.is_empty()),
            Some(_) => {
                let spared: Vec<_> =
                    spared.iter().filter_map(|child| child.id().transpose()).collect::<io::Result<_>>()?;
                // Until the guard is reaped, its children are not ours yet: nothing is empty before.
                let spared: Vec<i32> = spared.into_iter().filter(|pid| !self.ids().contains(pid)).collect();
                sweep_our_own(containment, &spared)
            }
        }
    }

    fn sentinel_end(&mut self) -> Option<ChildStatus> {
        self.sentinel_end = self.sentinel_end.or_else(|| match sys::reap(self.sentinel) {
            Ok(ended) => ended.map(|(_, status)| status),
            // Another process has reaped it: its status is unknown.
            Err(_) => Some(ChildStatus::Signaled(9)),
        });
        self.sentinel_end
    }

    /// A pidfd is readable once its process has ended (`pidfd_open(2)`).
    fn guard_has_ended(&self) -> bool {
        let mut ended = [PollFd::new(self.guard_pidfd.as_fd(), PollFlags::POLLIN)];
        matches!(poll(&mut ended, PollTimeout::ZERO), Ok(1))
    }
}

/// Only we reap, so the list is complete; and a tree that is not empty has a process among our children.
fn sweep_our_own(containment: &Containment, spared: &[i32]) -> io::Result<bool> {
    let children = Children::OfProcess;
    sweep::pass(&children, None, spared);
    let is_spared = |pid: &i32| spared.contains(pid);
    Ok(children.list()?.iter().all(is_spared) && containment.is_empty())
}
