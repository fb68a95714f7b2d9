//! `--foreground`: the command's process group is the terminal's foreground group while it runs, so that it can read the
//! terminal and Ctrl-C reaches it exactly once; afterwards the group that had it before has it again.
//!
//! Never: a terminal taken from a job that is not ours.

use std::fs::{File, OpenOptions};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

use super::sys;

/// Our controlling terminal, and the process group that we were started in.
#[derive(Debug)]
pub struct Terminal {
    tty: File,
    owner: Pid,
}

impl Terminal {
    /// `None` without a controlling terminal.
    pub fn of_this_group() -> Option<Self> {
        let tty = OpenOptions::new().read(true).write(true).open("/dev/tty").ok()?;
        Some(Self { tty, owner: getpgrp() })
    }

    /// Whether its owner has it: a job in the background has no say.
    pub fn is_at_hand(&self) -> bool {
        tcgetpgrp(&self.tty) == Ok(self.owner)
    }

    /// Only with SIGTTOU blocked (`tcsetpgrp(3)`).
    pub fn give_to(&self, group: Pid) {
        // A terminal that hung up meanwhile is nobody's.
        let _ = tcsetpgrp(&self.tty, group);
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

/// Signal 0 only asks (`kill(2)`).
fn has_processes(group: Pid) -> bool {
    group.as_raw() > 1 && sys::kill(-group.as_raw(), 0) != Err(Errno::ESRCH)
}
