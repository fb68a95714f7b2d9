//! Signals to every descendant of this process: to freeze a tree that has no cgroup, and to stop the processes that a
//! command left behind. Best effort: a few rounds look for processes that are forked meanwhile.
//!
//! No signal may reach an unrelated process. A process is known by its id and its start. A pidfd is opened for the id, then the
//! start is read, then the process is seen alive: so the pidfd refers to the process that is meant (T38). One pidfd is open at a
//! time, because a tree may have more processes than this process may have open files.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::clock;
use crate::core::time::Timestamp;
use crate::guard::processes::children::{Children, Stat, stat_of};
use crate::guard::sys::{self, Child};

/// Later rounds catch processes that are forked while others are stopped.
const ROUNDS: usize = 4;

/// See [`Look`].
const LONGEST_LOOK: Duration = Duration::from_millis(50);

/// A look at our children, of whom thousands may be dead, and more may die while we look. It takes at most 50 ms: orders, deadlines
/// and the kernel timer wait behind it. Another look goes on.
#[derive(Debug)]
pub struct Look {
    until: Timestamp,
}

impl Look {
    pub fn begin() -> Self {
        Self { until: clock::now().lease.after(LONGEST_LOOK) }
    }

    pub fn is_over(&self) -> bool {
        clock::now().lease >= self.until
    }
}

/// # Errors
/// What kept a process from being found or stopped; the others are stopped.
pub fn stop_all(children: &Children) -> io::Result<()> {
    let (look, mut known) = (Look::begin(), 0);
    for _ in 0..ROUNDS {
        let found = stop_each(children, &look)?;
        if found == known {
            break;
        }
        known = found;
    }
    Ok(())
}

/// From below, so that a parent, such as the init of a namespace, does not see its children stopped by us.
///
/// # Errors
/// What kept a process from being found or continued; the others are continued.
pub fn continue_all(children: &Children) -> io::Result<()> {
    let mut failures = Failures::default();
    let top = living(children, &Look::begin(), &mut failures)?;
    from_below(top, &mut failures, &mut |process| process.signal(&[libc::SIGCONT]).map(drop));
    failures.first()
}

fn from_below(processes: Vec<Process>, failures: &mut Failures, visit: &mut dyn FnMut(&Process) -> io::Result<()>) {
    for process in processes {
        let below = failures.note(process.children());
        from_below(below, failures, visit);
        failures.note(visit(&process));
    }
}

/// What does not keep us from the other processes.
#[derive(Default)]
struct Failures(Option<io::Error>);

impl Failures {
    fn note<T: Default>(&mut self, result: io::Result<T>) -> T {
        result.unwrap_or_else(|error| {
            self.0.get_or_insert(error);
            T::default()
        })
    }

    fn first(self) -> io::Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

/// The processes that were signalled, each once.
#[derive(Default, Debug)]
pub struct Told(BTreeSet<Process>);

impl Told {
    /// Somebody else signals these and their descendants.
    pub fn note(&mut self, top: Vec<Process>) {
        self.0.extend(with_descendants(top, &mut Failures::default()));
    }

    /// Sends these signals, in order, to each process, including those that are forked or get another parent meanwhile.
    ///
    /// # Errors
    /// What kept a process from being found or told; the others are told. Another call tells the rest.
    pub fn tell_all(&mut self, children: &Children, look: &Look, signals: [i32; 2]) -> io::Result<()> {
        for _ in 0..ROUNDS {
            let mut failures = Failures::default();
            let top = living(children, look, &mut failures)?;
            let was_new = self.tell(top, &signals);
            failures.first()?;
            if !was_new? {
                break;
            }
        }
        Ok(())
    }

    /// The same to each of these adopted children that was not told, and to its descendants: its parent was told, and has ended.
    /// Not to the children of a process that lives: it may clean up with their help.
    ///
    /// # Errors
    /// See [`Told::tell_all`].
    pub fn tell_orphans(&mut self, mut adopted: Vec<Process>, signals: [i32; 2]) -> io::Result<()> {
        adopted.retain(|process| !self.0.contains(process));
        self.tell(adopted, &signals).map(drop)
    }

    /// Returns whether there was a process that was not told.
    fn tell(&mut self, top: Vec<Process>, signals: &[i32]) -> io::Result<bool> {
        // Find all before signalling the first: a process that ends leaves its children to another parent.
        let mut failures = Failures::default();
        let mut found = with_descendants(top, &mut failures);
        found.retain(|process| !self.0.contains(process));
        for &process in &found {
            // One that we may not signal is reported as surviving.
            match process.signal(signals) {
                Ok(_) => drop(self.0.insert(process)),
                Err(error) => failures.note(Err(error)),
            }
        }
        failures.first().map(|()| !found.is_empty())
    }
}

fn with_descendants(top: Vec<Process>, failures: &mut Failures) -> Vec<Process> {
    let mut found = top;
    let mut looked_at = 0;
    while let Some(process) = found.get(looked_at) {
        found.extend(failures.note(process.children()));
        looked_at += 1;
    }
    found
}

/// From the top down, so that a stopped parent can neither fork nor reap.
fn stop_each(children: &Children, look: &Look) -> io::Result<usize> {
    let mut failures = Failures::default();
    let mut queue = living(children, look, &mut failures)?;
    let mut reached = 0;
    while let Some(process) = queue.pop() {
        if failures.note(process.signal(&[libc::SIGSTOP])) {
            reached += 1;
        }
        queue.extend(failures.note(process.children()));
    }
    failures.first().map(|()| reached)
}

/// An id may be used again; with the start of its process it is unique.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Process {
    pid: i32,
    started: u64,
}

/// Unreaped children of ours, by their ids.
///
/// # Errors
/// If one of them cannot be looked at.
pub fn known(children: &[i32]) -> io::Result<Vec<Process>> {
    let mut found = Vec::with_capacity(children.len());
    for &pid in children {
        found.extend(within_reach(stat_of(pid))?.map(|Stat { started, .. }| Process { pid, started }));
    }
    Ok(found)
}

/// Those of our children that live. A dead one costs a fiftieth of a living one.
fn living(children: &Children, look: &Look, failures: &mut Failures) -> io::Result<Vec<Process>> {
    let mut found = Vec::new();
    for pid in children.list()? {
        if look.is_over() {
            failures.note::<()>(Err(io::ErrorKind::TimedOut.into()));
            break;
        }
        if sys::peek(Child::Pid(pid)) == Ok(None) {
            found.extend(failures.note(known(&[pid])));
        }
    }
    Ok(found)
}

impl Process {
    /// # Errors
    /// If they cannot be looked for.
    pub fn children(&self) -> io::Result<Vec<Self>> {
        let mut found = Vec::new();
        for pid in ids_below(self.pid)? {
            let stat = within_reach(stat_of(pid))?.filter(|stat| stat.parent == self.pid);
            found.extend(stat.map(|Stat { started, .. }| Self { pid, started }));
        }
        // Nobody else has had this id meanwhile, so these were its children.
        Ok(if self.is_known()? { found } else { Vec::new() })
    }

    /// Its id, if no later process has that.
    ///
    /// # Errors
    /// If it cannot be looked at.
    pub fn id(&self) -> io::Result<Option<i32>> {
        Ok(self.is_known()?.then_some(self.pid))
    }

    /// Sends these signals, in order. Returns whether it lives and we may signal it.
    fn signal(&self, signals: &[i32]) -> io::Result<bool> {
        let pidfd = Pid::from_raw(self.pid).map(|pid| pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from));
        let Some(pidfd) = pidfd.map(within_reach).transpose()?.flatten() else { return Ok(false) };
        if !self.is_known()? || !is_alive(&pidfd) {
            return Ok(false);
        }
        let mut is_sent = true;
        for &signal in signals {
            is_sent &= within_reach(sys::kill_by_pidfd(pidfd.as_fd(), signal).map_err(io::Error::from))?.is_some();
        }
        Ok(is_sent)
    }

    /// Whether its id is still its own, dead or alive.
    fn is_known(&self) -> io::Result<bool> {
        Ok(within_reach(stat_of(self.pid))?.is_some_and(|stat| stat.started == self.started))
    }
}

/// A pidfd is readable once its process has ended (`pidfd_open(2)`).
fn is_alive(pidfd: &OwnedFd) -> bool {
    let mut ended = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
    matches!(poll(&mut ended, PollTimeout::ZERO), Ok(0))
}

/// `None`: the process has ended, or belongs to somebody else. A lack of descriptors or memory says nothing of it.
fn within_reach<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => Ok(None),
        result => result.map(Some),
    }
}

/// The ids of another process's children. They may be reused by the time they are read.
pub fn children_of(pid: i32) -> Vec<i32> {
    ids_below(pid).unwrap_or_default()
}

fn ids_below(pid: i32) -> io::Result<Vec<i32>> {
    let mut ids = Vec::new();
    for thread in within_reach(fs::read_dir(format!("/proc/{pid}/task")))?.into_iter().flatten() {
        let list = thread.and_then(|thread| fs::read_to_string(thread.path().join("children")));
        let list = within_reach(list)?.unwrap_or_default();
        ids.extend(list.split_ascii_whitespace().filter_map(|id| id.parse::<i32>().ok()));
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use super::*;

    /// A child that lives and one that is dead, as this thread's list shows them.
    fn one_lives() -> (Children, std::process::Child, std::process::Child) {
        let children = Children::OfThread(fs::File::open("/proc/thread-self/children").unwrap());
        let (dead, lives) = (Command::new("true").spawn().unwrap(), Command::new("sleep").arg("1000").spawn().unwrap());
        while sys::peek(Child::Pid(dead.id().cast_signed())) == Ok(None) {
            std::thread::yield_now();
        }
        assert!(children.list().unwrap().contains(&dead.id().cast_signed()), "it is not reaped");
        (children, lives, dead)
    }

    /// On a machine that stands still, too.
    fn endless() -> Look {
        Look { until: clock::now().lease.after(Duration::from_secs(3600)) }
    }

    #[test]
    fn a_look_that_is_over_reaches_nobody_and_the_next_one_all() {
        let (children, mut lives, mut dead) = one_lives();
        let (over, mut told) = (Look { until: clock::now().lease }, Told::default());
        let late = told.tell_all(&children, &over, [libc::SIGTERM, 0]).map_err(|error| error.kind());
        assert_eq!(late, Err(io::ErrorKind::TimedOut), "another look must follow");
        assert_eq!(lives.try_wait().unwrap(), None, "it was told after the look was over");
        told.tell_all(&children, &endless(), [libc::SIGTERM, 0]).unwrap();
        lives.kill().unwrap();
        assert_eq!(lives.wait().unwrap().signal(), Some(libc::SIGTERM), "it was not told");
        dead.wait().unwrap();
    }

    #[test]
    fn the_dead_are_not_looked_at() {
        let (children, mut lives, mut dead) = one_lives();
        let found = living(&children, &endless(), &mut Failures::default()).unwrap();
        lives.kill().unwrap();
        lives.wait().unwrap();
        dead.wait().unwrap();
        assert_eq!(found.iter().map(|process| process.pid).collect::<Vec<_>>(), [lives.id().cast_signed()]);
    }

    #[test]
    fn who_was_told_is_not_told_again_but_another_one_with_that_id_is() {
        let mut sleep = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = i32::try_from(sleep.id()).unwrap();
        let term = [libc::SIGTERM, 0];
        let mut told = Told::default();
        let process = known(&[pid]).unwrap()[0];
        told.note(vec![process]);
        told.tell_orphans(vec![process], term).unwrap();
        assert_eq!(sleep.try_wait().unwrap(), None, "it was told before");
        let earlier = Process { started: process.started - 1, ..process };
        let mut told = Told(BTreeSet::from([earlier]));
        assert!(!earlier.signal(&term).unwrap(), "it is somebody else's id now");
        told.tell_orphans(vec![process], term).unwrap();
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
        from_below(known(&[top]).unwrap(), &mut Failures::default(), &mut |process| {
            order.push(process.pid);
            Ok(())
        });
        for pid in [top, middle, last] {
            sys::kill(pid, libc::SIGKILL).unwrap();
        }
        shell.wait().unwrap();
        assert_eq!(order, [last, middle, top]);
    }
}
