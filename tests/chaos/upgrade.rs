//! Upgrades in place: two programs of different versions take turns at the path of a host, and its supervisor is asked to
//! execute the one that stands there now.
//!
//! Never: a request to a process that does not wait for it; it would die of the signal.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::support::subject::{copy_program, of_another_version};

/// Two programs, as files that no host replaces.
#[derive(Clone, Debug)]
pub struct Programs([PathBuf; 2]);

/// One request.
#[derive(Clone, Debug)]
pub struct Upgrade {
    /// Its command ran.
    pub at_holder: bool,
    pub asked: Duration,
    /// When its process was seen to execute the other program.
    pub done: Option<Duration>,
}

impl Programs {
    /// A copy of this program, and one that says that it is of another version.
    pub fn of(program: &Path, directory: &Path) -> Self {
        let programs = ["one", "other"].map(|name| directory.join(name));
        copy_program(program, &programs[0]);
        copy_program(&of_another_version(program, directory), &programs[1]);
        Self(programs)
    }

    /// What a host has at first.
    pub fn install(&self, path: &Path) {
        fs::hard_link(&self.0[0], path).unwrap();
    }

    /// Whether it executes one of the two, wherever that stands.
    pub fn are_executed_by(&self, pid: i32) -> bool {
        executed(pid).is_some_and(|executed| self.0.iter().any(|program| inode(program) == Some(executed)))
    }

    /// Puts the program there that this process does not execute, as packages do it, and asks the process to. Returns the
    /// program, or `None` if the process is not ready to be asked.
    pub fn upgrade(&self, pid: i32, path: &Path) -> Option<&Path> {
        if !self.are_executed_by(pid) || !waits_for_requests(pid) {
            return None;
        }
        let other = self.0.iter().find(|program| inode(program) != executed(pid))?;
        let fresh = path.with_extension("fresh");
        fs::remove_file(&fresh).ok();
        fs::hard_link(other, &fresh).unwrap();
        fs::rename(fresh, path).unwrap();
        let asked = Command::new("kill").args(["-s", "RTMIN+1", &pid.to_string()]).output().unwrap();
        asked.status.success().then_some(other.as_path())
    }
}

/// Whether this process executes this program.
pub fn executes(pid: i32, program: &Path) -> bool {
    executed(pid).is_some_and(|executed| inode(program) == Some(executed))
}

fn inode(file: &Path) -> Option<u64> {
    fs::metadata(file).map(|file| file.ino()).ok()
}

fn executed(pid: i32) -> Option<u64> {
    inode(Path::new(&format!("/proc/{pid}/exe")))
}

/// It has blocked `SIGRTMIN+1` (35), to read it from a descriptor.
fn waits_for_requests(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
    let blocked = blocked.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    blocked.is_some_and(|mask| mask >> 34 & 1 == 1)
}
