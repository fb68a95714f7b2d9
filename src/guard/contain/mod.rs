//! What keeps a tree together, so that none of it escapes the kill: chosen and proven before any command runs.
//!
//! In every kind the guard is a subreaper (`PR_SET_CHILD_SUBREAPER(2const)`): what is orphaned becomes its child, and the
//! tree is empty when it has none. The other kinds add to that.
//!
//! Never: a weaker kind than the user asked for.

mod cgroup;
mod descendants;
pub mod init;
mod pid_namespace;
mod stale_cgroups;

use std::fmt;
use std::io;

use nix::errno::Errno;
use nix::unistd::ForkResult;

use super::sys;
use crate::core::settings::Contain;
use crate::guard::processes::children::Children;

pub use cgroup::Cgroup;
pub use descendants::{children_of, tell_all};
pub use pid_namespace::PidNamespace;

/// What was chosen; its text says what and why, for the log.
#[derive(Debug)]
pub enum Containment {
    Subreaper { why: String },
    Cgroup(Cgroup),
    PidNamespace(PidNamespace),
    ProcessGroup,
}

impl Containment {
    /// # Errors
    /// When what was asked for by name is not possible here. `Auto` always is.
    pub fn choose(contain: Contain) -> io::Result<Self> {
        match contain {
            Contain::Auto => Ok(Cgroup::make()
                .map_or_else(|error| Self::Subreaper { why: format!("no cgroup of our own: {error}") }, Self::Cgroup)),
            Contain::Subreaper => Ok(Self::Subreaper { why: "as asked for".to_owned() }),
            Contain::Cgroup => Cgroup::make().map(Self::Cgroup),
            Contain::PidNamespace => PidNamespace::probe().map(Self::PidNamespace),
            Contain::ProcessGroup => Ok(Self::ProcessGroup),
        }
    }

    pub fn adopts_orphans(&self) -> bool {
        !matches!(self, Self::ProcessGroup)
    }

    /// Forks the process that will be the command; it is to [`Containment::join`] before it is executed.
    pub fn fork(&self) -> Result<ForkResult, Errno> {
        match self {
            Self::Cgroup(cgroup) => cgroup.fork(),
            Self::Subreaper { .. } | Self::PidNamespace(_) | Self::ProcessGroup => sys::fork(),
        }
    }

    pub fn join(&self) -> io::Result<()> {
        match self {
            Self::Cgroup(cgroup) => cgroup.join(),
            Self::Subreaper { .. } | Self::PidNamespace(_) | Self::ProcessGroup => Ok(()),
        }
    }

    /// SIGKILL to everything that this kind can name at once; the sweep does the rest.
    pub fn kill(&self) {
        if let Self::Cgroup(cgroup) = self {
            // A cgroup whose kill fails is seen not to be empty, and tried again.
            let _ = cgroup.kill();
        }
    }

    /// Nothing lives in it, as far as this kind can tell; having no children is asked beside it.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Cgroup(cgroup) => cgroup.is_empty(),
            Self::Subreaper { .. } | Self::PidNamespace(_) | Self::ProcessGroup => true,
        }
    }

    pub fn freeze(&self, children: &Children) -> io::Result<()> {
        match self {
            Self::Cgroup(cgroup) => cgroup.freeze(),
            Self::Subreaper { .. } | Self::PidNamespace(_) | Self::ProcessGroup => descendants::stop_all(children),
        }
    }

    pub fn thaw(&self, children: &Children) -> io::Result<()> {
        match self {
            Self::Cgroup(cgroup) => cgroup.thaw(),
            Self::Subreaper { .. } | Self::PidNamespace(_) | Self::ProcessGroup => descendants::continue_all(children),
        }
    }

    /// A cgroup outlives its tree, and with it the freeze.
    pub fn make_ready(&self) -> io::Result<()> {
        match self {
            Self::Cgroup(cgroup) => cgroup.thaw(),
            Self::Subreaper { .. } | Self::PidNamespace(_) | Self::ProcessGroup => Ok(()),
        }
    }

    /// Leaves nothing of ours behind. Only when the tree is empty.
    pub fn remove(&self) {
        if let Self::Cgroup(cgroup) = self {
            cgroup.remove();
        }
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
