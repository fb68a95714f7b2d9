//! The standard streams. An auxiliary command reads its briefing or nothing, and its output goes to our standard error,
//! because our standard output belongs to the command. The command has ours, but does not read the terminal of another job.

use std::fs::File;
use std::io::{self, Seek, Write};

use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::{Pid, dup2_stdin, dup2_stdout, tcgetpgrp};

use crate::guard::sys::errno_of;

/// Whether standard input is our terminal, and another group than this one has it. (It fails for anything else.)
pub fn stdin_is_of_another_job(group: Pid) -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|foreground| foreground != group)
}

/// In the new process.
pub fn read_nothing() -> Result<(), Errno> {
    dup2_stdin(File::open("/dev/null").map_err(|error| errno_of(&error))?)
}

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
