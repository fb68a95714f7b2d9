//! What processes hold of what can leak, read from `/proc`.

use std::time::Duration;

use super::subject::children_of;

/// Of one process (see `proc(5)`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holdings {
    /// Pages that nobody shares.
    pub private_kib: u64,
    pub descriptors: usize,
    pub threads: usize,
    /// Zombies included.
    pub children: usize,
}

impl Holdings {
    /// `None` when the process is gone.
    pub fn of(pid: i32) -> Option<Self> {
        let count = |what: &str| Some(std::fs::read_dir(format!("/proc/{pid}/{what}")).ok()?.count());
        Some(Self {
            private_kib: private_kib(pid)?,
            descriptors: count("fd")?,
            threads: count("task")?,
            children: children_of(pid).len(),
        })
    }

    /// What is held for a moment only is not held; but between a fork and an exec nothing is private.
    pub fn at_rest(self, other: Self) -> Self {
        Self {
            private_kib: self.private_kib.max(other.private_kib),
            descriptors: self.descriptors.min(other.descriptors),
            threads: self.threads.min(other.threads),
            children: self.children.min(other.children),
        }
    }
}

/// `Private_Clean` and `Private_Dirty` of all mappings.
fn private_kib(pid: i32) -> Option<u64> {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let private =
        rollup.lines().filter_map(|line| line.strip_prefix("Private_")).filter(|line| !line.contains("Hugetlb"));
    Some(private.map(|line| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()).sum())
}

/// Time on a processor of all its threads so far.
pub fn cpu_time(pid: i32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let spent = threads.map(|thread| {
        let schedstat = std::fs::read_to_string(thread.unwrap().path().join("schedstat")).unwrap();
        schedstat.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    });
    Duration::from_nanos(spent.sum())
}
