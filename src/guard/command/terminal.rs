//! `--foreground`: the command's process group is the terminal's foreground group while it runs, so that it can read the
//! terminal and Ctrl-C reaches it exactly once; afterwards the group that had it before has it again. What stops the command
//! (Ctrl-Z, a read in the background) stops our own job, too: the shell comes back, and `fg` continues both. The lease is
//! not renewed meanwhile.
//!
//! Never: a terminal taken from a job that is not ours.

use std::fs::{File, OpenOptions};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::unistd::{Pid, getpgid, getpgrp, getppid, getsid, tcgetpgrp, tcsetpgrp};

use crate::guard::processes::children::parent_of;
use crate::guard::sys;

/// Our controlling terminal, and the process group that we were started in.
#[derive(Debug)]
pub struct Terminal {
    tty: File,
    owner: Pid,
    /// Our parent is a shell that waits for stopped jobs: the kernel would not stop one that nobody can continue.
    has_shell: bool,
}

impl Terminal {
    /// `None` without a controlling terminal.
    pub fn of_this_group() -> Option<Self> {
        let tty = OpenOptions::new().read(true).write(true).open("/dev/tty").ok()?;
        let owner = getpgrp();
        Some(Self { tty, owner, has_shell: has_shell(owner) })
    }

    /// Whether its owner has it: a job in the background has no say.
    pub fn is_at_hand(&self) -> bool {
        tcgetpgrp(&self.tty) == Ok(self.owner)
    }

    /// Only with SIGTTOU blocked (`tcsetpgrp(3)`). A terminal that hung up meanwhile is nobody's.
    pub fn give_to(&self, group: Pid) -> bool {
        tcsetpgrp(&self.tty, group).is_ok()
    }

    /// If its owner has it: `fg` gives it to our job, which is to hand it on.
    pub fn hand_over(&self, group: Pid) -> bool {
        self.is_at_hand() && self.give_to(group)
    }

    /// What to do about a command that was stopped by this signal: whether it is to be continued at once. If not, our job is
    /// stopped with it, if there is a shell to continue both.
    pub fn outlives_stop(&self, signal: i32, group: Pid) -> bool {
        if is_of_background(signal) && self.hand_over(group) {
            return true;
        }
        if self.has_shell {
            // Its own group ignores SIGTTOU.
            let signal = if signal == libc::SIGTTIN { signal } else { libc::SIGTSTP };
            let _ = sys::kill(-self.owner.as_raw(), signal);
        }
        !self.has_shell && !is_of_background(signal)
    }

    /// Gives it back to its owner, if `group` has it or a group without processes (in a PID namespace the command's
    /// group has another number).
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

/// Of a process that reads or writes a terminal that it does not have: it would be stopped again at once.
pub const fn is_of_background(signal: i32) -> bool {
    matches!(signal, libc::SIGTTIN | libc::SIGTTOU)
}

/// Whether the first of our ancestors outside of our group is in our session: such a group is no orphaned one (`setpgid(2)`).
fn has_shell(owner: Pid) -> bool {
    let mut ancestor = getppid();
    while getpgid(Some(ancestor)) == Ok(owner) {
        let Some(parent) = parent_of(ancestor.as_raw()) else { return false };
        ancestor = Pid::from_raw(parent);
    }
    getsid(Some(ancestor)).is_ok_and(|session| getsid(None) == Ok(session))
}

/// Signal 0 only asks (`kill(2)`).
fn has_processes(group: Pid) -> bool {
    group.as_raw() > 1 && sys::kill(-group.as_raw(), 0) != Err(Errno::ESRCH)
}
