//! The guard's last act after the supervisor died and the tree is empty (or was, between two runs of one term): it becomes the releaser, which frees the lease
//! record, so that the successor starts at once and not after the lease.
//!
//! Never: a releaser while a process of the tree lives, or for a term that started no tree.

use std::ffi::{CString, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;
use nix::sys::signal::SigSet;
use nix::unistd::fexecve;

use super::sys;
use crate::core::order::Grant;
use crate::guard::command::environment::{self, Identity};

/// This very executable, kept open: the file may be replaced by an upgrade while we run.
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

    /// With our own environment and the term's. Returns only what went wrong; then the lease is left to run out.
    pub fn replace_this_process(&self, grant: &Grant) -> Errno {
        let mut environment = environment::of_term(&self.identity, grant);
        environment.extend(environment::kept(std::env::vars_os()));
        // What ends a whole group or cgroup (Ctrl-C, systemd after the supervisor's death) came to the guard as well, and is
        // pending. The releaser ends by itself, within the session timeout.
        sys::ignore_every_signal();
        if let Err(errno) = SigSet::empty().thread_set_mask() {
            return errno;
        }
        match fexecve(&self.program, &self.arguments, &environment) {
            Err(errno) => errno,
        }
    }
}
