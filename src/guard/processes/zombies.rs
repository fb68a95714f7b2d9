//! The dead among our children that nobody waits for. PID 1 of a container is given every process that is orphaned there, also
//! what never belonged to the command's tree (`docker exec`); any supervisor, as a subreaper, what a child leaves behind that it
//! was started with. Nobody else can reap these (`pid_namespaces(7)`).
//!
//! Never: a signal; a guard, whose end its handle reads.

use std::io;

use crate::core::order::ChildStatus;
use crate::guard::processes::children::Children;
use crate::guard::sys::{self, Child};

/// Reaps every dead child that is no guard.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn reap(guards: &[i32]) -> io::Result<()> {
    reap_of(&Children::OfProcess.list()?, guards);
    Ok(())
}

/// Whether this child of ours, if it is one and is still unreaped, was killed: a sentinel that has done its work was not.
pub fn was_killed(pid: i32) -> bool {
    matches!(sys::peek(Child::Pid(pid)), Ok(Some((_, ChildStatus::Signaled(_)))))
}

fn reap_of(children: &[i32], guards: &[i32]) {
    for &pid in children.iter().filter(|pid| !guards.contains(pid)) {
        // It lives, or somebody was faster.
        let _ = sys::reap(pid);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::zombie_processes, reason = "reaped by their ids")]

    use std::process::Command;

    use nix::errno::Errno;

    use super::*;

    #[test]
    fn a_guards_end_is_left_to_its_handle() {
        let dead = || {
            let child = Command::new("true").spawn().unwrap();
            let pid = i32::try_from(child.id()).unwrap();
            while sys::peek(sys::Child::Pid(pid)).unwrap().is_none() {
                std::thread::yield_now();
            }
            pid
        };
        let (guard, stray) = (dead(), dead());
        reap_of(&[guard, stray], &[guard]);
        assert_eq!(sys::peek(sys::Child::Pid(stray)), Err(Errno::ECHILD));
        assert!(sys::reap(guard).unwrap().is_some());
    }
}
