//! One pass over the children of this process: SIGKILL to each and to the group that it leads, then reap what is dead.
//! Orphans become children, level by level, so passes that are repeated until there is no child end every descendant.
//!
//! Only ids of unreaped children are signalled, and only this code reaps: no stranger can have them (T38). A group is
//! named by the id of a child of ours, so it is neither our own nor the supervisor's (T12).
//!
//! Never: an allocation.

use nix::errno::Errno;

use crate::guard::processes::children::Children;
use crate::guard::sys::{self, Child};

/// Reaped in one pass at most; more are left for the next one.
const BATCH: usize = 256;

/// What one pass found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pass {
    /// Children that were there, the kept ones not counted.
    pub found: u32,
    pub reaped: u32,
}

/// Kills every child but the `spared`, and reaps it if it is dead, but for `kept`: its id goes on naming its group.
pub fn pass(children: &Children, kept: Option<i32>, spared: &[i32]) -> Pass {
    let mut batch = [0; BATCH];
    let mut places = batch.iter_mut();
    let mut pass = Pass::default();
    // A list that cannot be read is no proof of anything: the caller asks `has_none`.
    let _ = children.for_each(|pid| {
        if spared.contains(&pid) {
            return;
        }
        kill(pid);
        if Some(pid) != kept {
            pass.found += 1;
            if let Some(place) = places.next() {
                *place = pid;
            }
        }
    });
    for pid in batch.into_iter().take_while(|&pid| pid != 0) {
        if matches!(sys::reap(pid), Ok(Some(_))) {
            pass.reaped += 1;
        }
    }
    pass
}

/// SIGKILL to an unreaped child, and to the group it leads if it leads one.
pub fn kill(pid: i32) {
    // ESRCH: leads no group. EPERM: another user's, and then it is still there, and reported as surviving.
    let _ = sys::kill(-pid, libc::SIGKILL);
    let _ = sys::kill(pid, libc::SIGKILL);
}

/// The kernel's word that there is no child at all, dead or alive.
pub fn has_none() -> bool {
    sys::peek(Child::Any) == Err(Errno::ECHILD)
}
