//! The children of this process, including adopted ones. While only the caller reaps, every listed id belongs to our
//! own child, dead or alive (T38). `/proc` must belong to our PID namespace. Reading a list does not allocate.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

/// A source of our children's ids (`proc_pid_task(5)`), opened once.
#[derive(Debug)]
pub enum Children {
    /// `children` of the only thread.
    OfThread(File),
    /// `children` of every thread: the kernel may give an orphan to any of them.
    OfProcess,
}

impl Children {
    /// For a process with one thread.
    pub fn of_this_thread() -> io::Result<Self> {
        let pid = std::process::id();
        File::open(format!("/proc/self/task/{pid}/children")).map(Self::OfThread)
    }

    pub fn for_each(&self, mut visit: impl FnMut(i32)) -> io::Result<()> {
        match self {
            Self::OfThread(file) => read_ids(file, &mut visit),
            Self::OfProcess => {
                for thread in fs::read_dir("/proc/self/task")? {
                    // The thread has ended, and its children went to another thread.
                    match File::open(thread?.path().join("children")) {
                        Ok(file) => read_ids(&file, &mut visit)?,
                        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            }
        }
    }

    pub fn list(&self) -> io::Result<Vec<i32>> {
        let mut ids = Vec::new();
        self.for_each(|pid| ids.push(pid))?;
        Ok(ids)
    }
}

/// Numbers, each followed by a blank.
fn read_ids(file: &File, visit: &mut impl FnMut(i32)) -> io::Result<()> {
    let mut buffer = [0; 4096];
    let (mut offset, mut id) = (0, 0);
    loop {
        let length = match file.read_at(&mut buffer, offset) {
            Ok(0) => return Ok(()),
            Ok(length) => length,
            // The thread that had these children has ended.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(()),
            Err(error) => return Err(error),
        };
        offset += length as u64;
        for &byte in buffer.get(..length).unwrap_or_default() {
            if byte.is_ascii_digit() {
                id = id * 10 + i32::from(byte - b'0');
            } else if id != 0 {
                visit(std::mem::take(&mut id));
            }
        }
    }
}

/// What the kernel says about a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stat {
    pub parent: i32,
    /// When it started, in clock ticks after boot.
    pub started: u64,
    /// It was sent SIGKILL, or it is exiting, or has exited. On a busy machine a killed process lives on until it gets a processor.
    pub is_dying: bool,
}

/// `PF_EXITING` of `linux/sched.h`.
const EXITING: u64 = 0x4;

/// # Errors
/// `NotFound` or `ESRCH`: there is no such process. Any other error says nothing of it.
pub fn stat_of(pid: i32) -> io::Result<Stat> {
    parse(&fs::read(format!("/proc/{pid}/stat"))?).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

pub fn parent_of(pid: i32) -> Option<i32> {
    stat_of(pid).ok().map(|stat| stat.parent)
}

/// `proc_pid_stat(5)`: fields after the end of the name, which is in parentheses and may contain anything.
fn parse(stat: &[u8]) -> Option<Stat> {
    let name_ends = stat.iter().rposition(|&byte| byte == b')')?;
    let mut fields = std::str::from_utf8(stat.get(name_ends + 1..)?).ok()?.split_ascii_whitespace();
    let (state, parent, flags) = (fields.next()?, fields.next()?, fields.nth(4)?);
    let (started, pending) = (fields.nth(12)?, fields.nth(8)?);
    let has = |number: &str, bit: u64| Some(number.parse::<u64>().ok()? & bit != 0);
    let is_dying = matches!(state, "Z" | "X") || has(flags, EXITING)? || has(pending, 1 << (libc::SIGKILL - 1))?;
    Some(Stat { parent: parent.parse().ok()?, started: started.parse().ok()?, is_dying })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use nix::sys::time::TimeValLike as _;
    use nix::time::{ClockId, clock_gettime};

    use super::*;

    #[test]
    fn a_child_is_found_until_it_is_reaped() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        assert_eq!(parent_of(pid), i32::try_from(std::process::id()).ok());
        assert!(Children::OfProcess.list().unwrap().contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!Children::OfProcess.list().unwrap().contains(&pid));
    }

    #[test]
    fn a_process_started_when_it_was_forked() {
        // In hundredths of a second (`sysconf(_SC_CLK_TCK)` of every architecture).
        let now = || clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap().num_milliseconds().unsigned_abs() / 10;
        let earliest = now();
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let started = |child: &std::process::Child| {
            let stat = stat_of(i32::try_from(child.id()).unwrap());
            stat.map(|stat| stat.started).map_err(|error| error.kind())
        };
        let start = started(&child);
        let latest = now();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(start.is_ok_and(|start| (earliest..=latest).contains(&start)), "{earliest} {start:?} {latest}");
        assert_eq!(started(&child), Err(io::ErrorKind::NotFound));
    }

    #[test]
    fn who_was_killed_is_dying_before_it_is_dead() {
        let is_dying = |state, flags, pending| {
            let line = format!(
                "7 (a) b) {state} 5 7 7 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 99 4096 1 9 1 1 0 0 0 {pending} 0 0 0"
            );
            let stat = parse(line.as_bytes()).unwrap();
            assert_eq!((stat.parent, stat.started), (5, 99));
            stat.is_dying
        };
        // As `cat /proc/PID/stat` shows a sleeper, and one that is stopped and was sent SIGTERM.
        assert!(!is_dying('S', 0x40_0000, 0) && !is_dying('T', 0x40_0000, 1 << 14));
        assert!(is_dying('R', 0x40_0000, 256) && is_dying('R', 0x40_0004, 0) && is_dying('Z', 0x40_0000, 0));
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        assert!(!stat_of(pid).unwrap().is_dying);
        child.kill().unwrap();
        assert!(stat_of(pid).unwrap().is_dying);
        child.wait().unwrap();
    }

    #[test]
    fn ids_are_read_across_the_borders_of_the_buffer() {
        use std::io::Write;
        let ids: Vec<i32> = (1..5_000).map(|n| n * 7).collect();
        let mut file = tempfile::tempfile().unwrap();
        for id in &ids {
            write!(file, "{id} ").unwrap();
        }
        let mut read = Vec::new();
        read_ids(&file, &mut |id| read.push(id)).unwrap();
        assert_eq!(read, ids);
    }
}
