//! After the supervisor died, and when the tree of a term is empty (also between two runs of it), the guard becomes the
//! releaser. It frees the lease record, so that the successor starts at once and not after the lease.

use std::ffi::{CString, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;
use nix::sys::signal::SigSet;
use nix::unistd::fexecve;

use super::sys;
use crate::core::guard_messages::Grant;
use crate::guard::command::environment::{self, Identity};

/// This executable, kept open, because an upgrade may replace the file while we run.
#[derive(Debug)]
pub struct Releaser {
    program: File,
    arguments: Vec<CString>,
    identity: Identity,
}

impl Releaser {
    pub fn new(arguments: Vec<OsString>, identity: Identity) -> io::Result<Self> {
        let program = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open("/proc/self/exe")?;
        let arguments =
            arguments.into_iter().map(|argument| CString::new(argument.into_vec())).collect::<Result<_, _>>()?;
        Ok(Self { program, arguments, identity })
    }

    /// Executes the releaser with our environment and the term's. Returns only on an error; then the lease runs out.
    pub fn replace_this_process(&self, grant: &Grant) -> Errno {
        let mut environment = environment::of_term(&self.identity, grant);
        environment.extend(environment::kept(std::env::vars_os()));
        // Signals to the whole group or cgroup (Ctrl-C, systemd after the supervisor's death) are pending for the
        // guard, too. The releaser ends by itself within the session timeout.
        sys::ignore_every_signal();
        if let Err(errno) = SigSet::empty().thread_set_mask() {
            return errno;
        }
        match fexecve(&self.program, &self.arguments, &environment) {
            Err(errno) => errno,
        }
    }
}
