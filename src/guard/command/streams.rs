//! The standard streams of an auxiliary command. It reads its briefing or nothing. Its output goes to our standard
//! error, because our standard output belongs to the command.

use std::fs::File;
use std::io::{self, Seek, Write};

use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::{dup2_stdin, dup2_stdout};

use crate::guard::sys::errno_of;

/// In the new process.
pub fn redirect(stdin: &[u8]) -> Result<(), Errno> {
    let input = if stdin.is_empty() { File::open("/dev/null") } else { in_memory(stdin) };
    dup2_stdin(input.map_err(|error| errno_of(&error))?)?;
    dup2_stdout(io::stderr())
}

/// A file, because a pipe with a small buffer (`pipe(7)`, pipe-user-pages-soft) would block for ever.
fn in_memory(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create(c"zk-leader-briefing", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}
