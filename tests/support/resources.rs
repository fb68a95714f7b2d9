//! What processes hold of what can leak, read from `/proc`.

use std::time::Duration;

use super::subject::children_of;

/// Of one process (see `proc(5)`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holdings {
    /// Pages that nobody shares. Of the program's file, that depends on who else runs it.
    pub private_kib: u64,
    /// Pages of no file: what it has allocated.
    pub anonymous_kib: u64,
    pub descriptors: usize,
    pub threads: usize,
    /// Zombies included.
    pub children: usize,
}

impl Holdings {
    /// `None` when the process is gone.
    pub fn of(pid: i32) -> Option<Self> {
        let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        let count = |what: &str| Some(std::fs::read_dir(format!("/proc/{pid}/{what}")).ok()?.count());
        Some(Self {
            private_kib: sum(&rollup, "Private_"),
            anonymous_kib: sum(&rollup, "Anonymous"),
            descriptors: count("fd")?,
            threads: count("task")?,
            children: children_of(pid).len(),
        })
    }

    /// What is held for a moment only is not held; but between a fork and an exec nothing is private.
    pub fn at_rest(self, other: Self) -> Self {
        Self {
            private_kib: self.private_kib.max(other.private_kib),
            anonymous_kib: self.anonymous_kib.max(other.anonymous_kib),
            descriptors: self.descriptors.min(other.descriptors),
            threads: self.threads.min(other.threads),
            children: self.children.min(other.children),
        }
    }
}

/// Of all mappings, in KiB; `Private_` is clean, dirty and huge pages.
fn sum(rollup: &str, kind: &str) -> u64 {
    let lines = rollup.lines().filter(|line| line.starts_with(kind));
    lines.map(|line| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()).sum()
}

/// Time on a processor of all its threads so far.
pub fn cpu_time(pid: i32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    // One may end meanwhile.
    let spent = threads.filter_map(|thread| {
        let schedstat = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        schedstat.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(spent.sum())
}
