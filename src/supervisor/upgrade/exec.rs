//! Executes the new program in this process. What is not handed over is closed by the kernel (`execve(2)`); nothing is
//! closed or said before that succeeds.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::ffi::OsStringExt;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::unistd::execv;

/// Returns only on failure; then nothing has changed. `descriptors` stay open in the new program, whose name is `name`.
pub fn replace(program: &File, name: OsString, arguments: Vec<OsString>, descriptors: &[BorrowedFd<'_>]) -> io::Error {
    let path = format!("/proc/self/fd/{}", program.as_raw_fd());
    let arguments = std::iter::once(name).chain(arguments).map(OsStringExt::into_vec);
    let (Ok(path), Ok(arguments)) =
        (CString::new(path), arguments.map(CString::new).collect::<Result<Vec<CString>, _>>())
    else {
        return io::ErrorKind::InvalidInput.into();
    };
    let failure = match keep(descriptors, FdFlag::empty()) {
        Ok(()) => match execv(&path, &arguments) {
            Ok(never) => match never {},
            Err(errno) => errno,
        },
        Err(errno) => errno,
    };
    // No child of ours may inherit them.
    if let Err(error) = keep(descriptors, FdFlag::FD_CLOEXEC) {
        tracing::error!(%error, "A descriptor may be inherited");
    }
    failure.into()
}

fn keep(descriptors: &[BorrowedFd<'_>], flag: FdFlag) -> Result<(), Errno> {
    descriptors.iter().try_for_each(|descriptor| fcntl(descriptor, FcntlArg::F_SETFD(flag)).map(drop))
}
