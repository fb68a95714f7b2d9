//! The standard streams. An auxiliary command reads its briefing or nothing, and its output goes to our standard error,
//! because our standard output belongs to the command. The command has ours, but does not read the terminal of another job.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::{Pid, dup2_stdin, dup2_stdout, pipe2, tcgetpgrp, write};

use crate::guard::sys::errno_of;

/// Whether standard input is our terminal, and another group than this one has it. (It fails for anything else.)
pub fn stdin_is_of_another_job(group: Pid) -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|foreground| foreground != group)
}

/// In the new process.
pub fn read_nothing() -> Result<(), Errno> {
    dup2_stdin(nothing().map_err(errno_of)?)
}

/// A root directory of its own (`chroot(1)`) may have no `/dev`: a pipe that nobody writes to is at its end, too.
fn nothing() -> io::Result<OwnedFd> {
    let empty_pipe = || pipe2(OFlag::O_CLOEXEC).map(|(input, _)| input);
    File::open("/dev/null").map(OwnedFd::from).or_else(|_| Ok(empty_pipe()?))
}

/// In the new process.
pub fn redirect(stdin: &[u8]) -> Result<(), Errno> {
    let input = if stdin.is_empty() { nothing() } else { holding(stdin) };
    dup2_stdin(input.map_err(errno_of)?)?;
    dup2_stdout(io::stderr())
}

/// A file, because a pipe with a small buffer (`pipe(7)`, pipe-user-pages-soft) would block for ever. A write beyond
/// `RLIMIT_FSIZE` would kill us.
fn holding(bytes: &[u8]) -> io::Result<OwnedFd> {
    let (most, _) = getrlimit(Resource::RLIMIT_FSIZE)?;
    let fits = u64::try_from(bytes.len()).is_ok_and(|length| length <= most);
    if fits { in_memory(bytes).map(OwnedFd::from) } else { in_a_pipe(bytes) }
}

fn in_memory(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create(c"zk-leader-briefing", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// If it takes all at once.
fn in_a_pipe(bytes: &[u8]) -> io::Result<OwnedFd> {
    let (input, output) = pipe2(OFlag::O_CLOEXEC)?;
    fcntl(&output, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    if write(&output, bytes)? == bytes.len() { Ok(input) } else { Err(Errno::EFBIG.into()) }
}
