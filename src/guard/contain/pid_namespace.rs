//! A PID namespace: its init dies with the guard, and everything in it with the init, whatever its users, sessions and
//! groups are (`pid_namespaces(7)`).
//!
//! Never: a process of the tree outside the namespace; a change to the mounts of the host.

use std::fmt;
use std::fs;
use std::io;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::CloneFlags;
use nix::sys::prctl::{get_dumpable, set_dumpable};
use nix::unistd::{ForkResult, Gid, Uid};

use crate::guard::sys;

/// The namespaces that a tree is started in: PID and mount, and user where we are not root.
#[derive(Clone, Copy, Debug)]
pub struct PidNamespace {
    flags: CloneFlags,
    uid: Uid,
    gid: Gid,
}

impl PidNamespace {
    /// Tries which namespaces can be made here.
    ///
    /// # Errors
    /// Of the try with a user namespace.
    pub fn probe() -> io::Result<Self> {
        let flags = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS;
        let as_root = Self { flags, uid: Uid::effective(), gid: Gid::effective() };
        let as_user = Self { flags: flags | CloneFlags::CLONE_NEWUSER, ..as_root };
        as_root.attempt().map(|()| as_root).or_else(|_| as_user.attempt().map(|()| as_user))
    }

    fn attempt(self) -> io::Result<()> {
        match self.fork()? {
            ForkResult::Child => sys::exit(self.settle().map_or_else(|errno| errno as i32, |()| 0)),
            ForkResult::Parent { child } => match nix::sys::wait::waitpid(child, None)? {
                nix::sys::wait::WaitStatus::Exited(_, 0) => Ok(()),
                nix::sys::wait::WaitStatus::Exited(_, errno) => Err(io::Error::from_raw_os_error(errno)),
                other => Err(io::Error::other(format!("a new PID namespace: {other:?}"))),
            },
        }
    }

    pub fn fork(self) -> Result<ForkResult, Errno> {
        sys::fork_into(self.flags)
    }

    fn has_user_namespace(self) -> bool {
        self.flags.contains(CloneFlags::CLONE_NEWUSER)
    }

    /// In the new namespaces: own ids, and a `/proc` that shows them.
    pub fn settle(self) -> Result<(), Errno> {
        if self.has_user_namespace() {
            self.map_own_ids().map_err(|error| error.raw_os_error().map_or(Errno::EPERM, Errno::from_raw))?;
        }
        // Without its own /proc the namespace is as tight, only ps shows the processes outside of it, and we ourselves refuse to
        // run in it. It is refused in a user namespace below a container that hides parts of its /proc.
        let _ = mount_own_proc();
        Ok(())
    }

    /// The command sees the ids that it would see outside (`user_namespaces(7)`).
    fn map_own_ids(self) -> io::Result<()> {
        // Of a process that may not be dumped, because it holds secrets, these files are root's (`proc(5)`).
        let is_dumpable = get_dumpable()?;
        set_dumpable(true)?;
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{0} {0} 1", self.uid))?;
        fs::write("/proc/self/gid_map", format!("{0} {0} 1", self.gid))?;
        Ok(set_dumpable(is_dumpable)?)
    }
}

fn mount_own_proc() -> Result<(), Errno> {
    let nothing: Option<&str> = None;
    mount(nothing, "/", nothing, MsFlags::MS_REC | MsFlags::MS_SLAVE, nothing)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, nothing)
}

impl fmt::Display for PidNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.has_user_namespace() { "PID and user namespace" } else { "PID namespace" })
    }
}
