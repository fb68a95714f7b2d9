//! After a standstill that cost it its guard, a process executes its own program anew, with new guards. What that
//! program must know of this one.

use std::fs::File;
use std::io;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::upgrade::memory_file;
use crate::core::machine;
use crate::guard::handle::upgrade::take_descriptor;
use crate::zookeeper::standstill::Past;

/// See the module page. Empty in the first program of a process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Memory {
    pub(super) election: Past,
    pub(super) machine: machine::Past,
    /// An upgrade was asked for, and is not done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) upgrade: bool,
    /// See [`super::SignalStream`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) had_terminal: bool,
    /// Where other hosts asked this one for promises.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

impl Memory {
    /// A sealed memory file, at its beginning.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn write(&self) -> io::Result<File> {
        memory_file::write(c"zk-leader-run-standstill", self)
    }

    /// Closes the descriptor.
    ///
    /// # Errors
    /// If it is none of such a file.
    pub fn read(descriptor: i32) -> io::Result<Self> {
        memory_file::read(File::from(take_descriptor(descriptor)?))
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::IntoRawFd as _;

    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_else_is() {
        let history = json!({ "started_at": 7, "in_a_row": 1, "failed_at": [8] });
        let machine = json!({ "history": history, "rest_until": 9, "stand_back_until": 10 });
        let memory = Memory { machine: from_value(machine).unwrap(), ..Memory::default() };
        let read = Memory::read(memory.write().unwrap().into_raw_fd()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{memory:?}"));
        let nothing = File::open("/dev/null").unwrap().into_raw_fd();
        assert!(Memory::read(nothing).is_err());
    }
}
