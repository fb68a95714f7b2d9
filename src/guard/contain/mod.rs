//! Containment: how a tree is kept together so that no process escapes the kill. It is chosen and tested before any
//! command runs. A kind that the user names is not replaced by a weaker one.
//!
//! In every kind the guard is a subreaper (`PR_SET_CHILD_SUBREAPER(2const)`): orphans become its children, and the tree
//! is empty when it has none. The other kinds add to that.

mod cgroup;
mod descendants;
pub mod init;
mod pid_namespace;
pub mod rest;
mod stale_cgroups;

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::PathBuf;

use nix::errno::Errno;
use nix::unistd::ForkResult;
use serde::{Deserialize, Serialize};

use super::sys;
use crate::core::settings::Contain;
use crate::guard::processes::children::Children;

pub use cgroup::Cgroup;
pub use descendants::{Look, Message, Process, Walk, children_of, known};
pub use pid_namespace::PidNamespace;

/// The chosen kind. Its `Display` text gives kind and reason for the log.
#[derive(Debug)]
pub enum Containment {
    Subreaper { why: String },
    Cgroup(Cgroup),
    PidNamespace(PidNamespace),
    ProcessGroup,
}

/// A containment, for the next program of the supervisor's process.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum HandedOver {
    Subreaper {
        why: String,
    },
    /// `directory`: an open descriptor, which holds the lock.
    Cgroup {
        path: PathBuf,
        directory: i32,
    },
    /// Whether there is a user namespace, too.
    PidNamespace(bool),
}

const AS_ASKED_FOR: &str = "as asked for";

impl Containment {
    /// # Errors
    /// If the kind that the user named is not possible here. `Auto` always is.
    pub fn choose(contain: Contain) -> io::Result<Self> {
        match contain {
            Contain::Auto => Ok(Cgroup::make()
                .map_or_else(|error| Self::Subreaper { why: format!("no cgroup of our own: {error}") }, Self::Cgroup)),
            Contain::Subreaper => Ok(Self::Subreaper { why: AS_ASKED_FOR.to_owned() }),
            Contain::Cgroup => Cgroup::make().map(Self::Cgroup),
            Contain::PidNamespace => PidNamespace::probe().map(Self::PidNamespace),
            Contain::ProcessGroup => Ok(Self::ProcessGroup),
        }
    }

    /// Whether another kind would have been better, and was not possible.
    pub fn is_second_best(&self) -> bool {
        matches!(self, Self::Subreaper { why } if why != AS_ASKED_FOR)
    }

    /// For the next program of this process. `None`: this kind cannot be handed over.
    pub fn hand_over(&self) -> Option<HandedOver> {
        match self {
            Self::Subreaper { why } => Some(HandedOver::Subreaper { why: why.clone() }),
            Self::Cgroup(cgroup) => {
                let (path, directory) = (cgroup.path().to_owned(), cgroup.directory().as_raw_fd());
                Some(HandedOver::Cgroup { path, directory })
            }
            Self::PidNamespace(namespace) => Some(HandedOver::PidNamespace(namespace.has_user_namespace())),
            Self::ProcessGroup => None,
        }
    }

    /// Goes on with the containment of the program before.
    ///
    /// # Errors
    /// If a file of the cgroup cannot be opened.
    pub fn take_up(state: HandedOver) -> io::Result<Self> {
        match state {
            HandedOver::Subreaper { why } => Ok(Self::Subreaper { why }),
            HandedOver::Cgroup { path, directory } => {
                Cgroup::open(&path, sys::take_descriptor(directory)?.into()).map(Self::Cgroup)
            }
            HandedOver::PidNamespace(has_user) => Ok(Self::PidNamespace(PidNamespace::like(has_user))),
        }
    }

    /// The descriptors in [`HandedOver`].
    pub fn descriptors(&self) -> Option<BorrowedFd<'_>> {
        self.cgroup().map(Cgroup::directory)
    }

    /// The other kinds leave to the sweep and the walk what a cgroup does for a whole tree.
    const fn cgroup(&self) -> Option<&Cgroup> {
        match self {
            Self::Cgroup(cgroup) => Some(cgroup),
            Self::Subreaper { .. } | Self::PidNamespace(_) | Self::ProcessGroup => None,
        }
    }

    /// For programs.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Subreaper { .. } => "subreaper",
            Self::Cgroup(_) => "cgroup",
            Self::PidNamespace(_) => "pid-namespace",
            Self::ProcessGroup => "process-group",
        }
    }

    pub fn adopts_orphans(&self) -> bool {
        !matches!(self, Self::ProcessGroup)
    }

    /// Whether the command cannot look into the guard's `/proc` though it has its user: a PID namespace has one of its own,
    /// without the guard.
    pub const fn hides_the_guard(&self) -> bool {
        matches!(self, Self::PidNamespace(_))
    }

    /// Forks the process that becomes the command; it has to [`Containment::join`] before it is executed.
    pub fn fork(&self) -> Result<ForkResult, Errno> {
        self.cgroup().map_or_else(sys::fork, Cgroup::fork)
    }

    pub fn join(&self) -> io::Result<()> {
        self.cgroup().map_or(Ok(()), Cgroup::join)
    }

    /// SIGKILL to every process that this kind can address at once; the sweep kills the rest.
    pub fn kill(&self) {
        // If the kill fails, the cgroup is not empty, and is killed again.
        let _ = self.cgroup().map(Cgroup::kill);
    }

    /// Whether it is empty, as far as this kind can tell. The caller also checks for children.
    pub fn is_empty(&self) -> bool {
        self.cgroup().is_none_or(Cgroup::is_empty)
    }

    /// # Errors
    /// See [`Walk::go_on`].
    pub fn freeze(&self, walk: &mut Walk, children: &Children, look: &Look) -> io::Result<()> {
        self.cgroup().map_or_else(|| walk.go_on(Message::Freeze, children, look), Cgroup::freeze)
    }

    /// # Errors
    /// See [`Walk::go_on`].
    pub fn thaw(&self, walk: &mut Walk, children: &Children, look: &Look) -> io::Result<()> {
        self.cgroup().map_or_else(|| walk.go_on(Message::Thaw, children, look), Cgroup::thaw)
    }

    /// The cgroup outlives its tree, and keeps the freeze and what the command made of it.
    pub fn make_ready(&self) -> io::Result<()> {
        self.cgroup().map_or(Ok(()), Cgroup::make_ready)
    }

    /// Removes what we created. Call it only when the tree is empty.
    pub fn remove(&self) {
        self.cgroup().into_iter().for_each(Cgroup::remove);
    }
}

impl fmt::Display for Containment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Subreaper { why } => write!(f, "subreaper ({why}); freezing is SIGSTOP to each process, best effort"),
            Self::Cgroup(cgroup) => {
                write!(f, "cgroup {} with a subreaper; freezing is the kernel's freezer", cgroup.path().display())
            }
            Self::PidNamespace(namespace) => {
                write!(f, "{namespace} with a subreaper; freezing is SIGSTOP to each process, best effort")
            }
            Self::ProcessGroup => write!(f, "process group only; daemons escape it"),
        }
    }
}
