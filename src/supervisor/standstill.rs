//! After a standstill that cost it its guard, a process executes its own program anew, with new guards. What that
//! program must know of this one.

use std::fs::File;
use std::io;

use serde::{Deserialize, Serialize};

use super::upgrade::memory_file;
use crate::core::restart::History;
use crate::guard::handle::upgrade::take_descriptor;
use crate::zookeeper::standstill::Past;

/// See the module page. Empty in the first program of a process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Memory {
    pub(super) election: Past,
    pub(super) history: History,
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

    use super::*;
    use crate::core::time::Timestamp;

    #[test]
    fn what_was_written_is_read_and_nothing_else_is() {
        let mut history = History::default();
        history.started(Timestamp::from_nanos(7));
        let memory = Memory { history, ..Memory::default() };
        let read = Memory::read(memory.write().unwrap().into_raw_fd()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{memory:?}"));
        let nothing = File::open("/dev/null").unwrap().into_raw_fd();
        assert!(Memory::read(nothing).is_err());
    }
}
