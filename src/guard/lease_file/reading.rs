//! Reads a lease file. Every doubt is an error: then the reader may not act.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use super::at;
use super::layout::{LeaseView, SEQUENCE, SIZE};

/// A guard needs less than a microsecond, unless it stands still in the middle.
const TRIES: usize = 1_000;

/// # Errors
/// If there is no lease file, or it is of another version, host or boot, or it is being written for long.
pub fn read(path: &Path) -> io::Result<LeaseView> {
    if !has_the_hosts_clocks() {
        return Err(io::Error::other("this time namespace has clocks of its own"));
    }
    let boot_id = boot_id()?;
    read_of(path, boot_id).map_err(at(path))
}

fn read_of(path: &Path, boot_id: u128) -> io::Result<LeaseView> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("this is no file"));
    }
    for _ in 0..TRIES {
        let (mut before, mut bytes, mut after) = ([0; 8], [0; SIZE], [0; 8]);
        file.read_exact_at(&mut before, SEQUENCE as u64 * 8)?;
        file.read_exact_at(&mut bytes, 0)?;
        file.read_exact_at(&mut after, SEQUENCE as u64 * 8)?;
        if before == after && u64::from_ne_bytes(after) % 2 == 0 {
            return match LeaseView::decode(&bytes) {
                Some((view, of)) if of == boot_id => Ok(view),
                Some(_) => Err(io::Error::other("it is of another host, or of an earlier boot")),
                None => Err(io::Error::other("this is no lease file of this version")),
            };
        }
        std::thread::yield_now();
    }
    Err(io::Error::other("it is half written, and stays so"))
}

/// # Errors
/// If `/proc` cannot be read.
pub(super) fn boot_id() -> io::Result<u128> {
    const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
    let text = fs::read_to_string(BOOT_ID).map_err(at(Path::new(BOOT_ID)))?;
    u128::from_str_radix(&text.trim().replace('-', ""), 16).map_err(|_| io::Error::other("the boot id is not readable"))
}

/// Whether our clocks are those of the host: in a time namespace they may be others (`time_namespaces(7)`). A kernel
/// without them has no such link.
pub(super) fn has_the_hosts_clocks() -> bool {
    fs::read_link("/proc/self/ns/time").map_or(true, |name| name.as_os_str() == HOSTS)
}

/// `PROC_TIME_INIT_INO` in `<linux/proc_ns.h>`
const HOSTS: &str = "time:[4026531834]";
