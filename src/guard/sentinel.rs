//! The third process: the guard's parent, and a subreaper, too. Once the guard is dead, it kills the rest of the tree,
//! so that guard and supervisor may be killed or stopped together. A stopped guard is killed by its kernel timer, and
//! its orphans become the sentinel's children, even a command that lost its parent-death signal by a change of
//! credentials.
//!
//! Its session, name and command line differ from the others', so that a signal to a process group, to a terminal's
//! session or to every `zk-leader…` does not reach all three. It has no deadline of its own: the guard's is enough. It
//! sleeps while the guard lives, blocks every signal that can be blocked, and takes no orders. It ends after the guard,
//! when the tree is empty. Only if the supervisor was killed, too, it says what it did: nobody else is left to.

use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll, ppoll};
use nix::sys::prctl::{set_child_subreaper, set_name};
use nix::sys::signalfd::SignalFd;
use nix::sys::time::TimeSpec;
use nix::unistd::{ForkResult, Pid, chdir, getppid, setsid, write};
use rustix::process::setpriority_process;

use super::EX_SOFTWARE;
use super::Guard;
use super::contain::Containment;
use super::lease_file::LeaseFile;
use super::poll_loop::{LONGEST_PAUSE, SHORTEST_PAUSE, URGENT};
use super::sys::{self, Child};
use crate::core::guard_messages::ChildStatus;
use crate::guard::command::environment::Identity;
use crate::guard::processes::children::{Children, stat_of};
use crate::guard::processes::sweep;
use crate::guard::sys::errno_of;

/// The sentinel process, from its fork with every signal blocked to its end. It forks the guard, and sends the guard's
/// id, or a negative errno.
pub(super) fn run(guard: Guard, tells: OwnedFd) -> ! {
    let watched = catch_unwind(AssertUnwindSafe(|| watch_over(guard, tells)));
    // Any other status than 0: the tree was not seen to be empty.
    sys::exit(if matches!(watched, Ok(Ok(()))) { 0 } else { EX_SOFTWARE })
}

fn watch_over(guard: Guard, tells: OwnedFd) -> Result<(), Errno> {
    set_child_subreaper(guard.containment.adopts_orphans())?;
    let last_words = LastWords::of(&guard);
    let lacking = |errno: Errno| {
        let _ = write(&tells, &(-(errno as i32)).to_ne_bytes());
        errno
    };
    let pid = match sys::fork().map_err(lacking)? {
        ForkResult::Child => {
            drop(tells);
            super::run(guard)
        }
        ForkResult::Parent { child } => child.as_raw(),
    };
    // Opened now, so that a lack of descriptors cannot delay the kill.
    let (containment, lease_file) = guard.into_remains();
    let orphanage = Orphanage {
        guard: pid,
        containment,
        lease_file,
        children: Children::of_this_thread().map_err(errno_of).map_err(lacking)?,
        deaths: sys::deaths().map_err(lacking)?,
    };
    step_aside()?;
    sweep::rehearse(&orphanage.children, Some(pid));
    let _ = orphanage.containment.is_empty();
    write(&tells, &pid.to_ne_bytes())?;
    drop(tells);
    let was_killed = orphanage.outlive_the_guard();
    orphanage.lease_file.iter().for_each(LeaseFile::close);
    let has_killed = orphanage.end_orphans();
    last_words.iter().filter(|_| was_killed && has_killed).for_each(LastWords::say);
    Ok(())
}

/// Call this after the fork: the guard stays in the session, whose terminal it may have to hand over.
fn step_aside() -> Result<(), Errno> {
    setsid()?;
    set_name(NAME)?;
    sys::overwrite_command_line(NAME);
    // Keep no mount busy.
    chdir("/")
}

/// A name without "zk-leader" (`pkill(1)`).
const NAME: &std::ffi::CStr = c"lease-sentinel";

/// Written beforehand, and said when all is done.
struct LastWords {
    supervisor: Pid,
    line: String,
}

impl LastWords {
    /// `None`: of an auxiliary command. If its supervisor is dead, the sentinel of the command tells.
    fn of(guard: &Guard) -> Option<Self> {
        let Identity { id, path } = guard.launch.participant()?;
        let line = format!(
            "zk-leader-run: the supervisor and the guard of {id} ({path}) were killed; their sentinel has killed the command and \
             all that it left; the lease was not released, and runs out\n"
        );
        Some(Self { supervisor: getppid(), line })
    }

    /// A living supervisor tells for itself.
    fn say(&self) {
        if self.supervisor_is_dead() {
            super::say(&self.line);
        }
    }

    /// Or about to be: it may have been killed before the guard, and be slower to exit.
    fn supervisor_is_dead(&self) -> bool {
        let is_dying = || stat_of(self.supervisor.as_raw()).is_ok_and(|stat| stat.is_dying);
        let is_dead = || getppid() != self.supervisor || is_dying();
        // The kernel takes a signal from those that wait, and then marks the process as exiting. One look may fall in between.
        is_dead() || {
            let _ = poll(&mut [], SECOND_LOOK);
            is_dead()
        }
    }
}

/// In milliseconds.
const SECOND_LOOK: u8 = 2;

struct Orphanage {
    guard: i32,
    containment: Containment,
    lease_file: Option<LeaseFile>,
    children: Children,
    deaths: SignalFd,
}

impl Orphanage {
    /// Leaves the guard unreaped, so that its id stays valid. Whether it was killed.
    fn outlive_the_guard(&self) -> bool {
        loop {
            match sys::peek(Child::Pid(self.guard)) {
                Ok(None) => self.sleep(None),
                ended => return matches!(ended, Ok(Some((_, ChildStatus::Signaled(_))))),
            }
        }
    }

    /// Whether there were any.
    fn end_orphans(&self) -> bool {
        let (mut pause, mut found) = (SHORTEST_PAUSE, false);
        let _ = setpriority_process(None, URGENT);
        loop {
            self.containment.kill();
            let pass = sweep::pass(&self.children, Some(self.guard), &[]);
            found |= pass.found > 0;
            if pass.found == 0 {
                // No process of the tree is left, so the guard's id is no longer needed.
                let _ = sys::reap(self.guard);
            }
            if sweep::has_none() && self.containment.is_empty() {
                self.lease_file.iter().for_each(LeaseFile::remove);
                self.containment.remove();
                return found;
            }
            if pass.reaped == 0 {
                self.sleep(Some(pause));
                pause = (pause * 2).min(LONGEST_PAUSE);
            } else {
                pause = SHORTEST_PAUSE;
            }
        }
    }

    /// Sleeps until SIGCHLD, at most for `limit`.
    fn sleep(&self, limit: Option<Duration>) {
        let mut fds = [PollFd::new(self.deaths.as_fd(), PollFlags::POLLIN)];
        // On an error the sleep is short; the caller looks again.
        let _ = ppoll(&mut fds, limit.map(TimeSpec::from_duration), None);
        while let Ok(Some(_)) = self.deaths.read_signal() {}
    }
}
