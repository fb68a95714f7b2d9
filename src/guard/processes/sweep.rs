//! One pass over the children of this process: SIGKILL to each and to the group that it leads, then reap the dead.
//! Orphans become children, level by level, so repeated passes end every descendant. A pass does not allocate.
//!
//! Only ids of unreaped children are signalled, and only this code reaps, so no id can belong to another process (T38).
//! A group is named by the id of our child, so it is neither our own nor the supervisor's (T12).

use nix::errno::Errno;

use crate::guard::processes::children::Children;
use crate::guard::sys::{self, Child};

/// The result of one pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pass {
    /// Children that were found after the kill, dead or alive, except the kept one.
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

/// First a signal to everyone who lives: dead children, however many, must not delay it. Then all dead ones are reaped: a process
/// that forks and exits at once is not hit by the next pass if that walks through thousands of dead ones before it.
fn signalling(signal: i32, children: &Children, kept: Option<i32>, spared: &[i32]) -> Pass {
    let mut pass = Pass::default();
    // An unreadable list proves nothing: the caller checks `has_none`.
    let _ = children.for_each(|pid| {
        if !spared.contains(&pid) {
            send(pid, signal);
        }
    });
    // What is reaped moves up the others, so that some are left out; the next pass finds them.
    let _ = children.for_each(|pid| {
        if Some(pid) != kept && !spared.contains(&pid) {
            pass.found += 1;
            pass.reaped += u32::from(is_reaped(pid));
        }
    });
    pass
}

fn is_reaped(pid: i32) -> bool {
    matches!(sys::reap(pid), Ok(Some(_)))
}

/// Reaps those of these children that are dead, but a limited number, and not the kept one, which it takes off the list, too. Returns
/// whether there may be more.
pub fn reap_some(children: &mut Vec<i32>, kept: Option<i32>) -> bool {
    let mut reaped = 0;
    children.retain(|&pid| {
        let goes = Some(pid) != kept && reaped < sys::REAPED_AT_ONCE && is_reaped(pid);
        reaped += usize::from(goes);
        !goes && Some(pid) != kept
    });
    reaped == sys::REAPED_AT_ONCE
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

    /// Whatever becomes of the test, no child is left.
    struct OfThisTest(Children);

    impl OfThisTest {
        fn new() -> Self {
            Self(Children::OfThread(File::open("/proc/thread-self/children").unwrap()))
        }
    }

    impl Drop for OfThisTest {
        fn drop(&mut self) {
            while self.0.list().is_ok_and(|children| !children.is_empty()) {
                pass(&self.0, None, &[]);
            }
        }
    }

    fn wait_until_dead(pid: i32) {
        while sys::peek(Child::Pid(pid)) == Ok(None) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_pass_reaps_all_that_were_dead_before_it() {
        const DEAD: u32 = 400;
        let children = OfThisTest::new();
        let dead: Vec<_> = (0..DEAD).map(|_| Command::new("true").spawn().unwrap().id().cast_signed()).collect();
        dead.into_iter().for_each(wait_until_dead);
        assert_eq!(pass(&children.0, None, &[]), Pass { found: DEAD, reaped: DEAD });
        assert_eq!(pass(&children.0, None, &[]), Pass::default());
    }

    /// Perl that forks, where the child becomes our own.
    fn perl(script: &str) -> i32 {
        let fork = format!(
            "sub fork_brother {{ syscall({}, {}, 0, 0, 0, 0) }}",
            libc::SYS_clone,
            libc::CLONE_PARENT | libc::SIGCHLD
        );
        Command::new("perl").args(["-e", &format!("{fork} {script}")]).spawn().unwrap().id().cast_signed()
    }

    /// Those have others die beside them for as long as they live.
    #[test]
    fn the_living_are_killed_before_the_dead_are_reaped() {
        const MANY: u32 = 2_000;
        let children = OfThisTest::new();
        wait_until_dead(perl("for (1 .. 500) { if (fork_brother() == 0) { sleep 100; exit } }"));
        let living = children.0.list().unwrap();
        for _ in 0..4 {
            perl("while (1) { exit if fork_brother() == 0 }");
        }
        while children.0.list().unwrap().len() < living.len() + 100 {
            std::thread::yield_now();
        }
        let reaped = pass(&children.0, None, &[]).reaped;
        assert!(reaped < MANY, "{reaped} were reaped before those were killed that had them die");
    }
}
