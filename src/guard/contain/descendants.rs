//! Signals to every descendant of this process: to freeze a tree that has no cgroup, and to stop the processes that a
//! command left behind. Best effort: a few passes look for processes that are forked meanwhile.
//!
//! No signal may reach an unrelated process. A process is known by its id and its start. A pidfd is opened for the id, then the
//! start is read, then the process is seen alive: so the pidfd refers to the process that is meant (T38). One pidfd is open at a
//! time, because a tree may have more processes than this process may have open files.

use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
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

/// Later passes catch processes that are forked, or get another parent, during those before.
const PASSES: usize = 4;

/// See [`Look`].
const LONGEST_LOOK: Duration = Duration::from_millis(50);

/// The time that one turn of the guard has for its processes, of whom there may be thousands: at most 50 ms, and not beyond the next
/// deadline. Orders, deadlines and the kernel timer wait behind it.
#[derive(Debug)]
pub struct Look {
    until: Timestamp,
    was_cut: Cell<bool>,
}

impl Look {
    pub fn begin() -> Self {
        Self { until: clock::now().lease.after(LONGEST_LOOK), was_cut: Cell::new(false) }
    }

    pub fn end_at(&mut self, deadline: Option<Timestamp>) {
        self.until = deadline.map_or(self.until, |deadline| self.until.min(deadline));
    }

    pub fn is_over(&self) -> bool {
        clock::now().lease >= self.until
    }

    /// What was not done in this look can be done in another one, at once.
    pub fn cut_if(&self, is_cut: bool) {
        self.was_cut.set(is_cut || self.was_cut());
    }

    pub fn was_cut(&self) -> bool {
        self.was_cut.get()
    }

    fn cut(&self) -> io::Error {
        self.cut_if(true);
        io::ErrorKind::TimedOut.into()
    }
}

/// What each process hears.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// From the top down, so that a stopped parent can neither fork nor reap.
    Freeze,
    /// From below, so that a parent, such as the init of a namespace, does not see its children stopped by us.
    Thaw,
    /// These signals, in order. To nobody before all are found: a process that ends leaves its children to another parent.
    Stop([i32; 2]),
    /// Somebody else signals them.
    Nothing,
}

/// A message to every process, to each once, including those that are forked or get another parent meanwhile. It takes as many
/// looks as it needs: each goes on where the one before it stopped, and takes at least one step.
#[derive(Default, Debug)]
pub struct Walk {
    reached: BTreeSet<Process>,
    /// The ids of children that are still to be looked at, with their parent if that is not this process.
    ids: Vec<(i32, Option<Process>)>,
    /// The process whose threads are being asked for their children.
    asked: Option<(Process, fs::ReadDir)>,
    /// Those found in this pass, parents before their children.
    found: VecDeque<Process>,
    /// How many of them were asked for their children.
    were_asked: usize,
    passes: usize,
    finds_new: bool,
    /// What does not keep us from the other processes.
    failure: Option<io::Error>,
}

impl Walk {
    /// All are reached when a whole pass has found nobody new.
    ///
    /// # Errors
    /// `TimedOut`: the look is over, and another call goes on. Otherwise what kept a process from being found or told; the others
    /// are told, and another call tells the rest.
    pub fn go_on(&mut self, message: Message, children: &Children, look: &Look) -> io::Result<()> {
        loop {
            if self.is_between_passes() {
                self.ids.extend(children.list()?.into_iter().rev().map(|pid| (pid, None)));
                self.begin_pass();
            }
            self.go_on_with_pass(message, look)?;
            self.passes += 1;
            if !self.finds_new || self.passes == PASSES {
                self.passes = 0;
                return Ok(());
            }
            if look.is_over() {
                return Err(look.cut());
            }
        }
    }

    /// The same to each of these adopted children that was not told, and to its descendants: its parent was told, and has ended.
    /// Not to the children of a process that lives: it may clean up with their help. They are asked for once those before are told.
    ///
    /// # Errors
    /// See [`Walk::go_on`].
    pub fn tell_orphans(
        &mut self,
        adopted: impl FnOnce() -> io::Result<Vec<Process>>,
        signals: [i32; 2],
        look: &Look,
    ) -> io::Result<()> {
        if self.is_between_passes() {
            self.begin_pass();
            self.found.extend(adopted()?.into_iter().filter(|process| !self.reached.contains(process)));
        }
        self.go_on_with_pass(Message::Stop(signals), look)
    }

    fn is_between_passes(&self) -> bool {
        self.ids.is_empty() && self.asked.is_none() && self.found.is_empty()
    }

    fn begin_pass(&mut self) {
        (self.were_asked, self.finds_new, self.failure) = (0, false, None);
    }

    fn go_on_with_pass(&mut self, message: Message, look: &Look) -> io::Result<()> {
        while !self.is_between_passes() {
            if let Err(error) = self.step(message) {
                self.failure.get_or_insert(error);
            }
            if look.is_over() && !self.is_between_passes() {
                return Err(look.cut());
            }
        }
        self.failure.take().map_or(Ok(()), Err)
    }

    /// A few system calls, however many children or threads a process has.
    fn step(&mut self, message: Message) -> io::Result<()> {
        if let Some((pid, parent)) = self.ids.pop() {
            self.found.extend(living(pid, parent)?);
        } else if let Some((process, threads)) = &mut self.asked {
            let parent = *process;
            match threads.next() {
                Some(thread) => self.ids.extend(ids_of(thread)?.into_iter().map(|pid| (pid, Some(parent)))),
                None => self.asked = None,
            }
        } else if let Some(&process) = self.found.get(self.were_asked) {
            self.were_asked += 1;
            let told = if message == Message::Freeze { self.tell(process, message) } else { Ok(()) };
            self.asked = threads_of(process.pid)?.map(|threads| (process, threads));
            told?;
        } else if message == Message::Freeze {
            self.found.clear();
        } else {
            let next = if message == Message::Thaw { self.found.pop_back() } else { self.found.pop_front() };
            next.map_or(Ok(()), |process| self.tell(process, message))?;
        }
        Ok(())
    }

    fn tell(&mut self, process: Process, message: Message) -> io::Result<()> {
        let is_new = !self.reached.contains(&process);
        self.finds_new |= is_new;
        // One that we may not signal is reported as surviving.
        match message {
            // Somebody may have continued it.
            Message::Freeze => drop(process.signal(&[libc::SIGSTOP])?),
            Message::Thaw if is_new => drop(process.signal(&[libc::SIGCONT])?),
            Message::Stop(signals) if is_new => drop(process.signal(&signals)?),
            Message::Thaw | Message::Stop(_) | Message::Nothing => {}
        }
        self.reached.insert(process);
        Ok(())
    }
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

/// The process with this id, if it is a child of this parent, or else our own and alive. A dead one costs a fiftieth of a living one.
fn living(pid: i32, parent: Option<Process>) -> io::Result<Option<Process>> {
    let Some(parent) = parent else {
        return Ok(if sys::peek(Child::Pid(pid)) == Ok(None) { known(&[pid])?.pop() } else { None });
    };
    let stat = within_reach(stat_of(pid))?.filter(|stat| stat.parent == parent.pid);
    // Nobody else has had the parent's id meanwhile, so this was its child.
    Ok(if parent.is_known()? { stat.map(|Stat { started, .. }| Process { pid, started }) } else { None })
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
    for thread in threads_of(pid)?.into_iter().flatten() {
        ids.extend(ids_of(thread)?);
    }
    Ok(ids)
}

fn threads_of(pid: i32) -> io::Result<Option<fs::ReadDir>> {
    within_reach(fs::read_dir(format!("/proc/{pid}/task")))
}

/// The ids of this thread's children.
fn ids_of(thread: io::Result<fs::DirEntry>) -> io::Result<Vec<i32>> {
    let list = thread.and_then(|thread| fs::read_to_string(thread.path().join("children")));
    let list = within_reach(list)?.unwrap_or_default();
    Ok(list.split_ascii_whitespace().filter_map(|id| id.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use super::*;

    fn of_this_thread() -> Children {
        Children::OfThread(fs::File::open("/proc/thread-self/children").unwrap())
    }

    /// On a machine that stands still, too.
    fn endless() -> Look {
        Look { until: clock::now().lease.after(Duration::from_secs(3600)), ..Look::begin() }
    }

    /// However slow the guard is: each look is over before it has begun. How many were needed; `None`: more than that.
    fn looks(walk: &mut Walk, message: Message, children: &Children, mut after_each: impl FnMut()) -> Option<usize> {
        let over = Look { until: Timestamp::ZERO, ..Look::begin() };
        (1..1_000).find(|_| {
            let outcome = walk.go_on(message, children, &over).map_err(|error| error.kind());
            after_each();
            assert!(matches!(outcome, Ok(()) | Err(io::ErrorKind::TimedOut)), "{outcome:?}");
            outcome.is_ok()
        })
    }

    fn state_of(pid: i32) -> char {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    }

    #[test]
    fn each_look_tells_others_and_the_last_one_is_reached() {
        const MANY: usize = 12;
        let children = of_this_thread();
        let mut all = Vec::new();
        for _ in 0..MANY {
            // They live on; the signal ends one `read` only.
            let mut shell = Command::new("sh");
            shell.args(["-c", "trap 'echo told' USR1; echo; read -r line; read -r line; read -r line"]);
            let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            shell.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
            all.push(shell);
        }
        let mut walk = Walk::default();
        let looks = looks(&mut walk, Message::Stop([libc::SIGUSR1, libc::SIGCONT]), &children, || {});
        let looks = looks.expect("each look begins where the first one began, or there is no end");
        assert!(looks > MANY, "{looks} looks: another one must follow");
        assert_eq!(walk.reached.len(), MANY);
        for shell in &mut all {
            // One that was told just before a `read` obeys when that ends.
            drop(shell.stdin.take());
            shell.stdout.as_mut().unwrap().read_exact(&mut [0; 5]).unwrap();
            shell.kill().unwrap();
            shell.wait().unwrap();
        }
    }

    /// A shell, a shell below it, and a process below that.
    fn three_levels() -> (std::process::Child, [i32; 3]) {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sh -c 'sleep 1000 & echo; wait' & wait"]).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        // The last of them is there.
        shell.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let top = i32::try_from(shell.id()).unwrap();
        let middle = children_of(top)[0];
        (shell, [top, middle, children_of(middle)[0]])
    }

    #[test]
    fn a_tree_is_frozen_and_thawed_in_many_looks_and_a_parent_is_continued_after_its_children() {
        let (mut shell, levels) = three_levels();
        let children = of_this_thread();
        let stopped = || levels.map(|pid| state_of(pid) == 'T');
        let freezes = looks(&mut Walk::default(), Message::Freeze, &children, || {});
        // The signals are sent; the last process may be slow to stop.
        let is_frozen = (0..100_000).inspect(|_| std::thread::yield_now()).any(|_| stopped() == [true; 3]);
        let mut seen = Vec::new();
        let thaws = looks(&mut Walk::default(), Message::Thaw, &children, || seen.push(stopped()));
        for pid in levels {
            sys::kill(pid, libc::SIGKILL).unwrap();
        }
        shell.wait().unwrap();
        let many = Some(levels.len());
        assert!(is_frozen && freezes > many && thaws > many, "{freezes:?} {thaws:?} {seen:?}");
        assert_eq!(seen.last(), Some(&[false; 3]));
        assert!(seen.iter().all(|[top, middle, last]| (*top || !middle) && (*middle || !last)), "{seen:?}");
    }

    #[test]
    fn the_dead_are_not_looked_at() {
        let children = of_this_thread();
        let (mut dead, mut lives) =
            (Command::new("true").spawn().unwrap(), Command::new("sleep").arg("1000").spawn().unwrap());
        while sys::peek(Child::Pid(dead.id().cast_signed())) == Ok(None) {
            std::thread::yield_now();
        }
        assert!(children.list().unwrap().contains(&dead.id().cast_signed()), "it is not reaped");
        let mut walk = Walk::default();
        walk.go_on(Message::Nothing, &children, &endless()).unwrap();
        lives.kill().unwrap();
        lives.wait().unwrap();
        dead.wait().unwrap();
        assert_eq!(walk.reached.iter().map(|process| process.pid).collect::<Vec<_>>(), [lives.id().cast_signed()]);
    }

    #[test]
    fn who_was_told_is_not_told_again_but_another_one_with_that_id_is() {
        let mut sleep = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = i32::try_from(sleep.id()).unwrap();
        let term = [libc::SIGTERM, 0];
        let process = known(&[pid]).unwrap()[0];
        let mut told = Walk { reached: BTreeSet::from([process]), ..Walk::default() };
        told.tell_orphans(|| Ok(vec![process]), term, &endless()).unwrap();
        assert_eq!(sleep.try_wait().unwrap(), None, "it was told before");
        let earlier = Process { started: process.started - 1, ..process };
        let mut told = Walk { reached: BTreeSet::from([earlier]), ..Walk::default() };
        assert!(!earlier.signal(&term).unwrap(), "it is somebody else's id now");
        told.tell_orphans(|| Ok(vec![process]), term, &endless()).unwrap();
        // The first deadly signal is the one that counts.
        sleep.kill().unwrap();
        assert_eq!(sleep.wait().unwrap().signal(), Some(libc::SIGTERM), "it was not told");
    }
}
