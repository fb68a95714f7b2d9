//! `--foreground`: the command's process group is the terminal's foreground group while it runs, so that it can read
//! the terminal, and Ctrl-C reaches it exactly once. Afterwards the previous foreground group gets the terminal back. A
//! signal that stops the command (Ctrl-Z, a read in the background) stops our own job, too: the shell comes back, and
//! `fg` continues both. The lease is not renewed meanwhile. We do not take the terminal from another job.

use std::fs::{File, OpenOptions};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::unistd::{Pid, getpgid, getpgrp, getppid, getsid, tcgetpgrp, tcsetpgrp};

use crate::guard::processes::children::parent_of;
use crate::guard::sys;

#[derive(Debug)]
pub struct Terminal {
    tty: File,
    owner: Pid,
    /// Our parent is a shell that waits for stopped jobs. The kernel does not stop a group that has no such parent.
    has_shell: bool,
}

impl Terminal {
    /// `None` without a controlling terminal.
    pub fn of_this_group() -> Option<Self> {
        let tty = OpenOptions::new().read(true).write(true).open("/dev/tty").ok()?;
        let owner = getpgrp();
        Some(Self { tty, owner, has_shell: has_shell(owner) })
    }

    /// Whether our group is in the foreground. A background job must not change the foreground group.
    pub fn is_at_hand(&self) -> bool {
        tcgetpgrp(&self.tty) == Ok(self.owner)
    }

    /// Requires SIGTTOU to be blocked (`tcsetpgrp(3)`). Fails if the terminal has hung up.
    pub fn give_to(&self, group: Pid) -> bool {
        tcsetpgrp(&self.tty, group).is_ok()
    }

    /// Gives the terminal to `group` if our group has it: `fg` gives it to our job first.
    pub fn hand_over(&self, group: Pid) -> bool {
        self.is_at_hand() && self.give_to(group)
    }

    /// Handles a command that this signal stopped. Returns whether to continue it at once. If not, our job is stopped
    /// with it, if there is a shell to continue both.
    pub fn outlives_stop(&self, signal: i32, group: Pid) -> bool {
        if is_of_background(signal) && self.hand_over(group) {
            return true;
        }
        if self.has_shell {
            // Our own group ignores SIGTTOU.
            let signal = if signal == libc::SIGTTIN { signal } else { libc::SIGTSTP };
            let _ = sys::kill(-self.owner.as_raw(), signal);
        }
        !self.has_shell && !is_of_background(signal)
    }

    /// Gives the terminal back to our group if `group` has it, or a group without processes (in a PID namespace the
    /// command's group has another number).
    pub fn take_back_from(&self, group: Pid) {
        let Ok(holder) = tcgetpgrp(&self.tty) else { return };
        if holder == self.owner || (holder != group && has_processes(holder)) {
            return;
        }
        let mut background_output = SigSet::empty();
        background_output.add(Signal::SIGTTOU);
        let Ok(mask) = background_output.thread_swap_mask(SigmaskHow::SIG_BLOCK) else { return };
        let _ = tcsetpgrp(&self.tty, self.owner);
        let _ = mask.thread_set_mask();
    }
}

/// Whether this signal stops a process that uses a terminal in the background. Continued, it would be stopped again.
pub const fn is_of_background(signal: i32) -> bool {
    matches!(signal, libc::SIGTTIN | libc::SIGTTOU)
}

/// Whether our first ancestor outside of our group is in our session: then our group is not orphaned (`setpgid(2)`).
fn has_shell(owner: Pid) -> bool {
    let mut ancestor = getppid();
    while getpgid(Some(ancestor)) == Ok(owner) {
        let Some(parent) = parent_of(ancestor.as_raw()) else { return false };
        ancestor = Pid::from_raw(parent);
    }
    getsid(Some(ancestor)).is_ok_and(|session| getsid(None) == Ok(session))
}

/// Signal 0 only checks (`kill(2)`).
fn has_processes(group: Pid) -> bool {
    group.as_raw() > 1 && sys::kill(-group.as_raw(), 0) != Err(Errno::ESRCH)
}
