//! The lease file: the command reads in it, without the network, how long it may still act. The guard writes it at each
//! order, and it carries an absolute end: whatever is stopped or killed, it never lasts longer than the deadline that
//! the guard keeps. When the guard is dead, the sentinel ends it.
//!
//! There are two kinds (decision 24). A sealed file (`memfd_create(2)`) cannot be written or truncated by anyone, but only
//! processes with the guard's user can open it. A named file on a tmpfs can be opened by every user, and changed by root
//! and its owner. The guard writes it by system calls, since a truncated mapping would kill it.

pub mod layout;
mod named;
pub mod reading;
mod sealed;

use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use nix::sys::prctl::get_dumpable;
use nix::unistd::geteuid;

use layout::LeaseView;
use named::NamedFile;
use sealed::SealedFile;

/// See the module page.
#[derive(Debug)]
pub struct LeaseFile {
    file: Kind,
    boot_id: u128,
    sequence: u64,
    last: LeaseView,
}

#[derive(Debug)]
enum Kind {
    Sealed(SealedFile),
    Named(NamedFile),
}

impl LeaseFile {
    /// Creates the file. Call it before the guard is forked. `is_hidden`: the command cannot look into the guard's
    /// `/proc`, because it gets a PID namespace of its own.
    ///
    /// # Errors
    /// Why neither kind is possible here.
    pub fn make(is_hidden: bool) -> io::Result<Self> {
        if !reading::has_the_hosts_clocks() {
            return Err(io::Error::other("this time namespace has clocks of its own"));
        }
        let boot_id = reading::boot_id()?;
        let first = LeaseView::NONE.encode(0, boot_id);
        let named = || NamedFile::make(&first).map(Kind::Named);
        let sealed = || {
            // `proc_pid_fd(5)`
            if is_hidden || !get_dumpable()? {
                return Err(io::Error::other("the command may not look into the guard's /proc"));
            }
            SealedFile::make(&first).map(Kind::Sealed)
        };
        // A command that root starts may change its user.
        let file = if geteuid().is_root() { either(named, sealed) } else { either(sealed, named) }?;
        Ok(Self { file, boot_id, sequence: 0, last: LeaseView::NONE })
    }

    /// The path for the command. Call it in the guard's process.
    pub fn path(&self) -> PathBuf {
        match &self.file {
            Kind::Sealed(file) => format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into(),
            Kind::Named(file) => file.path().to_owned(),
        }
    }

    /// Only for the guard, which is the only writer while it lives. Does not allocate.
    pub fn publish(&mut self, view: LeaseView) {
        if view == self.last {
            return;
        }
        self.last = view;
        self.sequence += 2;
        let bytes = view.encode(self.sequence, self.boot_id);
        match &self.file {
            Kind::Sealed(file) => file.write(&bytes),
            Kind::Named(file) => file.write(&bytes),
        }
    }

    /// When the guard is dead: the lease is over, even if the guard died in the middle of a write. Readers see the end of
    /// the lease and its state change one after the other; each of them is enough.
    pub fn close(&self) {
        let bytes = LeaseView::NONE.encode(0, self.boot_id);
        match &self.file {
            Kind::Sealed(file) => file.close(&bytes),
            Kind::Named(file) => file.close(&bytes),
        }
    }

    /// Removes the name, if there is one. Who has the file open can still read that the lease is over.
    pub fn remove(&self) {
        if let Kind::Named(file) = &self.file {
            file.remove();
        }
    }
}

/// The first that works.
fn either(first: impl FnOnce() -> io::Result<Kind>, second: impl FnOnce() -> io::Result<Kind>) -> io::Result<Kind> {
    first().or_else(|one| second().map_err(|other| io::Error::other(format!("{one}; {other}"))))
}

/// An error of `path`, with the path.
fn at(path: &Path) -> impl Fn(io::Error) -> io::Error + '_ {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
