//! Reaps zombies that no other code waits for. PID 1 of a container adopts every orphan there, even one outside of the
//! command's tree (`docker exec`). Any supervisor, as a subreaper, adopts the orphans of a child that it was started
//! with. No other process can reap these (`pid_namespaces(7)`). Guards are excluded; their handles read their status.

use std::io;

use crate::core::guard_messages::ChildStatus;
use crate::guard::processes::children::Children;
use crate::guard::sys::{self, Child};

/// Reaps every dead child except guards.
///
/// # Errors
/// If `/proc` cannot be read.
pub fn reap(guards: &[i32]) -> io::Result<()> {
    reap_of(&Children::OfProcess.list()?, guards);
    Ok(())
}

/// Whether this unreaped child was killed. A sentinel that has finished its work exits instead.
pub fn was_killed(pid: i32) -> bool {
    matches!(sys::peek(Child::Pid(pid)), Ok(Some((_, ChildStatus::Signaled(_)))))
}

fn reap_of(children: &[i32], guards: &[i32]) {
    for &pid in children.iter().filter(|pid| !guards.contains(pid)) {
        // The child lives, or was reaped already.
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
