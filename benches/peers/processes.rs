//! What processes hold and use, from `/proc`.

use std::fs;
use std::time::Duration;

use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// All that have come from it and are still its own.
pub fn descendants(pid: i32) -> Vec<i32> {
    let children = children(pid);
    children.iter().copied().chain(children.iter().flat_map(|child| descendants(*child))).collect()
}

/// Of all its threads.
fn children(pid: i32) -> Vec<i32> {
    let of_thread = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).unwrap_or_default();
    let lists: Vec<_> = tasks(pid).map(of_thread).collect();
    lists.iter().flat_map(|list| list.split_whitespace()).filter_map(|pid| pid.parse().ok()).collect()
}

fn tasks(pid: i32) -> impl Iterator<Item = fs::DirEntry> {
    fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten()
}

/// The parent; 0 if it is gone.
pub fn parent(pid: i32) -> i32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    field(&status, "PPid:").try_into().unwrap_or_default()
}

/// Pages that no other process shares, in bytes.
pub fn private_memory(pid: i32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let names = ["Private_Clean:", "Private_Dirty:", "Private_Hugetlb:"];
    names.iter().map(|name| field(&rollup, name)).sum::<u64>() * 1024
}

/// What all threads have had of the processors, and how often they were given one after they had waited for something.
#[derive(Clone, Copy, Default, Debug)]
pub struct Usage {
    pub cpu: Duration,
    pub wakeups: u64,
}

pub fn usage(pid: i32) -> Usage {
    // Of the process: threads that have ended count, too.
    let clock = clock_getcpuclockid(Pid::from_raw(pid)).and_then(clock_gettime);
    let status = |task: fs::DirEntry| fs::read_to_string(task.path().join("status")).unwrap_or_default();
    let wakeups = tasks(pid).map(|task| field(&status(task), "voluntary_ctxt_switches:")).sum();
    Usage { cpu: clock.map(Duration::from).unwrap_or_default(), wakeups }
}

/// The number behind a name at the beginning of a line.
fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}
