//! Containment in a PID namespace. Its init dies with the guard, and every process in it with the init, whatever its
//! user, session or group (`pid_namespaces(7)`). The host's mounts are not changed.

use std::fmt;
use std::fs;
use std::io;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::CloneFlags;
use nix::sys::prctl::{get_dumpable, set_dumpable};
use nix::unistd::{ForkResult, Gid, Uid};

use crate::guard::sys;

/// The namespaces for a tree: PID and mount, and user if we are not root.
#[derive(Clone, Copy, Debug)]
pub struct PidNamespace {
    flags: CloneFlags,
    uid: Uid,
    gid: Gid,
}

/// Neither is said by the error: of a user namespace too many, the kernel says that there is no space left on a device.
const NEEDED: &str = "CAP_SYS_ADMIN, or user namespaces for this user: see user.max_user_namespaces, AppArmor's or the \
                      distribution's restriction of them (sysctl -a | grep userns), and a container's seccomp profile";

impl PidNamespace {
    /// Tests which namespaces can be created here.
    ///
    /// # Errors
    /// The error of the attempt with a user namespace, and what is needed.
    pub fn probe() -> io::Result<Self> {
        let attempted = |namespace: Self| namespace.attempt().map(|()| namespace);
        attempted(Self::like(false)).or_else(|_| attempted(Self::like(true))).map_err(|error| {
            let complaint = format!("{error}; it needs root with {NEEDED}");
            io::Error::new(error.kind(), complaint)
        })
    }

    /// Without a test: one of the program before this one.
    pub fn like(has_user_namespace: bool) -> Self {
        let user = if has_user_namespace { CloneFlags::CLONE_NEWUSER } else { CloneFlags::empty() };
        let flags = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS | user;
        Self { flags, uid: Uid::effective(), gid: Gid::effective() }
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

    pub(super) fn has_user_namespace(self) -> bool {
        self.flags.contains(CloneFlags::CLONE_NEWUSER)
    }

    /// Runs in the new namespaces: maps the ids and mounts a new `/proc`.
    pub fn settle(self) -> Result<(), Errno> {
        if self.has_user_namespace() {
            self.map_own_ids().map_err(|error| error.raw_os_error().map_or(Errno::EPERM, Errno::from_raw))?;
        }
        // Without its own `/proc` the namespace contains as well; but `ps` shows processes outside of it, and
        // zk-leader-run refuses to run in it. The mount is refused in a user namespace below a container that hides
        // parts of its `/proc`.
        let _ = mount_own_proc();
        Ok(())
    }

    /// Maps each id to itself, so that the command sees the same ids as outside (`user_namespaces(7)`).
    fn map_own_ids(self) -> io::Result<()> {
        // If the process is not dumpable, because it holds secrets, these files belong to root (`proc(5)`).
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
