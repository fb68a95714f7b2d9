//! Signals to every descendant of this process: to freeze a tree that has no cgroup, and to stop the processes that a
//! command left behind. Best effort: a few rounds look for processes that are forked meanwhile.
//!
//! No signal may reach an unrelated process. A pidfd is opened first, then the parent id is read, then the parent is
//! seen alive. So the id belonged to the parent's child, and the pidfd refers to that child or to a dead process (T38).

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::guard::processes::children::{Children, parent_of, started};
use crate::guard::sys;

/// Later rounds catch processes that are forked while others are stopped.
const ROUNDS: usize = 4;

pub fn stop_all(children: &Children) -> io::Result<()> {
    let mut known = 0;
    for _ in 0..ROUNDS {
        let found = stop_each(children)?;
        if found == known {
            break;
        }
        known = found;
    }
    Ok(())
}

/// From below, so that a parent, such as the init of a namespace, does not see its children stopped by us.
pub fn continue_all(children: &Children) -> io::Result<()> {
    from_below(opened(children.list()?), &mut |process| {
        // One that has ended needs no signal.
        let _ = pidfd_send_signal(&process.pidfd, Signal::CONT);
    });
    Ok(())
}

fn from_below(processes: Vec<Process>, visit: &mut dyn FnMut(&Process)) {
    for process in processes {
        from_below(process.children(), visit);
        visit(&process);
    }
}

/// The processes that were signalled, each once.
#[derive(Default, Debug)]
pub struct Told(Vec<(i32, u64)>);

impl Told {
    /// Somebody else signals these and their descendants.
    pub fn note(&mut self, top: Vec<Process>) {
        self.tell(top, &[]);
    }

    /// Sends these signals, in order, to each process, including those that are forked or get another parent meanwhile.
    pub fn tell_all(&mut self, children: &Children, signals: [i32; 2]) -> io::Result<()> {
        for _ in 0..ROUNDS {
            if !self.tell(opened(children.list()?), &signals) {
                break;
            }
        }
        Ok(())
    }

    /// The same to each of these adopted children that was not told, and to its descendants: its parent was told, and has ended.
    /// Not to the children of a process that lives: it may clean up with their help.
    pub fn tell_orphans(&mut self, mut adopted: Vec<Process>, signals: [i32; 2]) {
        adopted.retain(|process| !self.0.contains(&process.id()));
        self.tell(adopted, &signals);
    }

    /// Returns whether there was a process that was not told.
    fn tell(&mut self, top: Vec<Process>, signals: &[i32]) -> bool {
        // Find all before signalling the first: a process that ends leaves its children to another parent.
        let mut found = top;
        let mut looked_at = 0;
        while let Some(process) = found.get(looked_at) {
            let below = process.children();
            found.extend(below);
            looked_at += 1;
        }
        found.retain(|process| !self.0.contains(&process.id()));
        for process in &found {
            for &signal in signals {
                // A process that has ended needs no signal. One that we may not signal is reported as surviving.
                let _ = sys::kill_by_pidfd(process.pidfd.as_fd(), signal);
            }
            self.0.push(process.id());
        }
        !found.is_empty()
    }
}

/// From the top down, so that a stopped parent can neither fork nor reap.
fn stop_each(children: &Children) -> io::Result<usize> {
    let mut queue = opened(children.list()?);
    let mut reached = 0;
    while let Some(process) = queue.pop() {
        if pidfd_send_signal(&process.pidfd, Signal::STOP).is_ok() {
            reached += 1;
        }
        queue.extend(process.children());
    }
    Ok(reached)
}

#[derive(Debug)]
pub struct Process {
    pid: i32,
    pidfd: OwnedFd,
}

/// Unreaped children of ours, by their ids.
pub fn opened(children: Vec<i32>) -> Vec<Process> {
    children.into_iter().filter_map(Process::open).collect()
}

impl Process {
    fn open(pid: i32) -> Option<Self> {
        let pidfd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        Some(Self { pid, pidfd })
    }

    /// An id may be used again; with the start of its process it is unique.
    fn id(&self) -> (i32, u64) {
        (self.pid, started(self.pid).unwrap_or_default())
    }

    pub fn children(&self) -> Vec<Self> {
        let ids = children_of(self.pid);
        let is_ours = |child: &Self| parent_of(child.pid) == Some(self.pid) && self.is_alive();
        ids.into_iter().filter_map(Self::open).filter(is_ours).collect()
    }

    /// A pidfd is readable once its process has ended (`pidfd_open(2)`).
    fn is_alive(&self) -> bool {
        let mut ended = [PollFd::new(self.pidfd.as_fd(), PollFlags::POLLIN)];
        matches!(poll(&mut ended, PollTimeout::ZERO), Ok(0))
    }
}

/// The ids of another process's children. They may be reused by the time they are read.
pub fn children_of(pid: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_ascii_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>()).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn who_was_told_is_not_told_again_but_another_one_with_that_id_is() {
        let mut sleep = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = i32::try_from(sleep.id()).unwrap();
        let term = [libc::SIGTERM, 0];
        let mut told = Told::default();
        told.note(opened(vec![pid]));
        told.tell_orphans(opened(vec![pid]), term);
        assert_eq!(sleep.try_wait().unwrap(), None, "it was told before");
        told.0[0].1 += 1;
        told.tell_orphans(opened(vec![pid]), term);
        // The first deadly signal is the one that counts.
        sleep.kill().unwrap();
        assert_eq!(sleep.wait().unwrap().signal(), Some(libc::SIGTERM), "it was not told");
    }

    #[test]
    fn a_parent_is_continued_after_its_children() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sh -c 'sleep 1000 & echo; wait' & wait"]).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        // The last of them is there.
        shell.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let top = i32::try_from(shell.id()).unwrap();
        let middle = children_of(top)[0];
        let last = children_of(middle)[0];
        let mut order = Vec::new();
        from_below(Process::open(top).into_iter().collect(), &mut |process| order.push(process.pid));
        for pid in [top, middle, last] {
            sys::kill(pid, libc::SIGKILL).unwrap();
        }
        shell.wait().unwrap();
        assert_eq!(order, [last, middle, top]);
    }
}
