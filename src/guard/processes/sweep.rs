//! One pass over the children of this process: SIGKILL to each and to the group that it leads, then reap the dead.
//! Orphans become children, level by level, so repeated passes end every descendant. A pass does not allocate.
//!
//! Only ids of unreaped children are signalled, and only this code reaps, so no id can belong to another process (T38).
//! A group is named by the id of our child, so it is neither our own nor the supervisor's (T12).

use nix::errno::Errno;

use crate::guard::processes::children::Children;
use crate::guard::sys::{self, Child};

/// The maximum to reap of those that a pass has killed; the next pass continues.
const BATCH: usize = 256;

/// The maximum to reap before a pass kills.
const DEAD: u32 = 16 * 1024;

/// The result of one pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pass {
    /// Children that were found, except the kept one.
    pub found: u32,
    pub reaped: u32,
}

/// Kills every child except the `spared`, and reaps the dead except `kept`, whose id continues to name its group.
pub fn pass(children: &Children, kept: Option<i32>, spared: &[i32]) -> Pass {
    signalling(libc::SIGKILL, children, kept, spared)
}

/// A pass that kills nobody. When memory is short, as in a full cgroup, the kernel lets a process wait that touches a page for
/// the first time, or for the first time since a fork. So whoever will have to kill touches now what a pass touches.
pub fn rehearse(children: &Children, kept: Option<i32>) {
    touch_stack();
    signalling(NO_SIGNAL, children, kept, &[]);
    has_none();
}

/// Only checks whether there is such a process (`kill(2)`).
const NO_SIGNAL: i32 = 0;

/// Deeper than a pass, with all that calls it.
const STACK: usize = 16 * 1024;

#[inline(never)]
fn touch_stack() {
    std::hint::black_box(&mut [1_u8; STACK]);
}

fn signalling(signal: i32, children: &Children, kept: Option<i32>, spared: &[i32]) -> Pass {
    let mut batch = [0; BATCH];
    let mut places = batch.iter_mut();
    let dead = reap_dead(signal, children, kept, spared);
    let mut pass = Pass { found: dead, reaped: dead };
    // An unreadable list proves nothing: the caller checks `has_none`.
    let _ = children.for_each(|pid| {
        if spared.contains(&pid) {
            return;
        }
        send(pid, signal);
        if Some(pid) != kept {
            pass.found += 1;
            if let Some(place) = places.next() {
                *place = pid;
            }
        }
    });
    for pid in batch.into_iter().take_while(|&pid| pid != 0) {
        pass.reaped += u32::from(is_reaped(pid));
    }
    pass
}

/// A process that forks and exits at once lives only for a moment after it was listed. It is not hit if thousands of dead ones are
/// signalled before it: new children stand at the end of the list. The group of a dead one may live.
fn reap_dead(signal: i32, children: &Children, kept: Option<i32>, spared: &[i32]) -> u32 {
    let mut reaped = 0;
    loop {
        let before = reaped;
        // What is reaped moves up the others, so that some are left out each time.
        let _ = children.for_each_until(|pid| {
            if Some(pid) != kept && !spared.contains(&pid) {
                let _ = sys::kill(-pid, signal);
                reaped += u32::from(is_reaped(pid));
            }
            reaped >= DEAD
        });
        if reaped == before || reaped >= DEAD {
            return reaped;
        }
    }
}

fn is_reaped(pid: i32) -> bool {
    matches!(sys::reap(pid), Ok(Some(_)))
}

/// SIGKILL to an unreaped child, and to the group that it leads, if any.
pub fn kill(pid: i32) {
    send(pid, libc::SIGKILL);
}

fn send(pid: i32, signal: i32) {
    // ESRCH: it leads no group. EPERM: another user's process; it is then reported as surviving.
    let _ = sys::kill(-pid, signal);
    let _ = sys::kill(pid, signal);
}

/// Whether there is no child at all, dead or alive.
pub fn has_none() -> bool {
    sys::peek(Child::Any) == Err(Errno::ECHILD)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::process::Command;

    use super::*;

    /// More than a pass kills and reaps.
    #[test]
    fn a_pass_reaps_all_that_were_dead_before_it() {
        const DEAD: u32 = 600;
        let children = Children::OfThread(File::open("/proc/thread-self/children").unwrap());
        let dead: Vec<_> = (0..DEAD).map(|_| Command::new("true").spawn().unwrap().id().cast_signed()).collect();
        for pid in dead {
            while sys::peek(Child::Pid(pid)) == Ok(None) {
                std::thread::yield_now();
            }
        }
        assert_eq!(pass(&children, None, &[]), Pass { found: DEAD, reaped: DEAD });
        assert_eq!(pass(&children, None, &[]), Pass::default());
    }
}
