//! Containment in a cgroup v2 that we create. The command joins it before it is executed, and `cgroup.kill` kills every
//! process in it, even while they fork (`cgroups(7)`, Documentation/admin-guide/cgroup-v2.rst). Once the command runs,
//! the cgroup is not looked up by path.

use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::ForkResult;

use super::stale_cgroups::{self, PREFIX};
use crate::guard::sys;

/// See the module page.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
    directory: File,
    /// `CLONE_INTO_CGROUP` works here.
    is_joined_by_fork: Cell<bool>,
    procs: File,
    kill: File,
    freeze: File,
    events: File,
}

/// The number of names to try, if other cgroups with our process id (older, or of another PID namespace) exist.
const NAMES: u32 = 1024;

impl Cgroup {
    /// Creates a cgroup below our own, and tests that a process can join it.
    ///
    /// # Errors
    /// If there is no cgroup v2, if we may not create or join one, or if the kernel has no `cgroup.kill` (Linux 5.14).
    pub fn make() -> io::Result<Self> {
        let parent = own_cgroup()?;
        stale_cgroups::remove(&parent);
        let (path, directory) = claim(&parent)?;
        // Hold the lock while removing.
        let _held = directory.try_clone()?;
        Self::open(&path, directory).and_then(Self::tried).inspect_err(|_| remove(&path))
    }

    /// A new one, or one that the program before this one created. `directory` stays locked until we end: the lock shows
    /// other processes that this cgroup is in use.
    ///
    /// # Errors
    /// If a file of it cannot be opened.
    pub fn open(path: &Path, directory: File) -> io::Result<Self> {
        let for_writing = |name| {
            let file = OpenOptions::new().write(true).open(path.join(name));
            file.map_err(|error| io::Error::new(error.kind(), format!("{}/{name}: {error}", path.display())))
        };
        Ok(Self {
            directory,
            is_joined_by_fork: Cell::new(true),
            procs: for_writing("cgroup.procs")?,
            kill: for_writing("cgroup.kill")?,
            freeze: for_writing("cgroup.freeze")?,
            events: File::open(path.join("cgroup.events"))?,
            path: path.to_owned(),
        })
    }

    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Forks a process that is in the cgroup from its first instruction on, or has to [`Cgroup::join`] it.
    pub fn fork(&self) -> Result<ForkResult, Errno> {
        if self.is_joined_by_fork.get() { sys::fork_into_cgroup(self.directory.as_fd()) } else { sys::fork() }
    }

    /// Moves the calling process into the cgroup, if it was not forked there.
    pub fn join(&self) -> io::Result<()> {
        if self.is_joined_by_fork.get() { Ok(()) } else { write(&self.procs, "0") }
    }

    /// SIGKILL to every process in the cgroup, even to one that is being forked there.
    ///
    /// A process that is forked into a cgroup after a kill may be killed at birth: the kernel (seen on 6.18) compares
    /// with the kill count of the parent's cgroup. So an empty cgroup is not killed, and after a kill, ours or another's,
    /// processes join by themselves.
    pub fn kill(&self) -> io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        self.is_joined_by_fork.set(false);
        write(&self.kill, "1")
    }

    pub fn freeze(&self) -> io::Result<()> {
        write(&self.freeze, "1")
    }

    pub fn thaw(&self) -> io::Result<()> {
        write(&self.freeze, "0")
    }

    /// As it was when it was made. No process can join a cgroup that shares out controllers (`cgroups(7)`, "no internal
    /// processes"), as a command that is a container engine leaves it.
    pub fn make_ready(&self) -> io::Result<()> {
        self.thaw()?;
        if matches!(stale_cgroups::is_at(&self.directory, &self.path), Ok(true)) {
            remove_below(&self.path);
            share_out_nothing(&self.path);
        }
        // Somebody else may have killed it.
        self.is_joined_by_fork.set(self.is_joined_by_fork.get() && self.try_joining().is_ok());
        Ok(())
    }

    /// Whether no process lives in the cgroup or below it.
    pub fn is_empty(&self) -> bool {
        let mut buffer = [0; 256];
        let length = match self.events.read_at(&mut buffer, 0) {
            Ok(length) => length,
            // It was removed, so it was empty.
            Err(error) => return error.raw_os_error() == Some(libc::ENODEV),
        };
        buffer
            .get(..length)
            .is_some_and(|events| events.split(|&byte| byte == b'\n').any(|line| line == b"populated 0"))
    }

    /// Removes the cgroup, while its lock is held, and all cgroups below it. Works only if it is empty. If somebody else
    /// has removed it, the next guard of this process may have its name now.
    pub fn remove(&self) {
        if matches!(stale_cgroups::is_at(&self.directory, &self.path), Ok(true)) {
            remove(&self.path);
        }
    }

    /// Forks a process that tries to join. Permissions, threaded cgroups and controllers have too many rules to predict
    /// (`cgroups(7)`). Some system call filters do not know `clone3(2)`; then processes join after the fork.
    fn tried(self) -> io::Result<Self> {
        if self.try_joining().is_err() {
            self.is_joined_by_fork.set(false);
            self.try_joining()?;
        }
        Ok(self)
    }

    fn try_joining(&self) -> io::Result<()> {
        let child = match self.fork()? {
            ForkResult::Child => {
                sys::exit(self.join().map_or_else(|error| error.raw_os_error().unwrap_or(255), |()| 0))
            }
            ForkResult::Parent { child } => child,
        };
        match waitpid(child, None)? {
            WaitStatus::Exited(_, 0) => Ok(()),
            WaitStatus::Exited(_, errno) => {
                let error = io::Error::from_raw_os_error(errno);
                Err(io::Error::new(error.kind(), format!("joining {}: {error}", self.path.display())))
            }
            other => Err(io::Error::other(format!("joining {}: {other:?}", self.path.display()))),
        }
    }
}

/// Does not allocate.
fn write(file: &File, text: &str) -> io::Result<()> {
    file.write_at(text.as_bytes(), 0).map(drop)
}

/// Creates and locks a directory. Another process may remove it as stale before it is locked; then another name is
/// tried.
fn claim(parent: &Path) -> io::Result<(PathBuf, File)> {
    let pid = std::process::id();
    for attempt in 0..NAMES {
        let name = if attempt == 0 { format!("{PREFIX}{pid}") } else { format!("{PREFIX}{pid}-{attempt}") };
        let path = parent.join(name);
        let failed =
            |what, error: &io::Error| io::Error::new(error.kind(), format!("{what} {}: {error}", path.display()));
        match fs::create_dir(&path) {
            Ok(()) => match stale_cgroups::hold(&path) {
                Ok(Some(directory)) => return Ok((path, directory)),
                Ok(None) => {}
                Err(error) => {
                    remove(&path);
                    return Err(failed("lock", &error));
                }
            },
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed("mkdir", &error)),
        }
    }
    let complaint = format!("{}: all of {NAMES} names of process {pid} are taken", parent.display());
    Err(io::Error::new(io::ErrorKind::AlreadyExists, complaint))
}

/// `rmdir(2)` removes a cgroup although it shows files.
fn remove(path: &Path) {
    remove_below(path);
    // An empty directory may remain; the next process with our id uses another name.
    let _ = fs::remove_dir(path);
}

/// Depth first.
fn remove_below(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
}

fn share_out_nothing(path: &Path) {
    let path = path.join("cgroup.subtree_control");
    for controller in fs::read_to_string(&path).unwrap_or_default().split_ascii_whitespace() {
        // If one stays, no process can join, and the start says so.
        let _ = fs::write(&path, format!("-{controller}"));
    }
}

/// The directory of the v2 cgroup that this process is in.
fn own_cgroup() -> io::Result<PathBuf> {
    let mounts = fs::read("/proc/self/mountinfo")?;
    let membership = fs::read("/proc/self/cgroup")?;
    locate(&mounts, &membership).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no cgroup v2 is mounted"))
}

/// The directory of the cgroup `0::<path>` in `/proc/self/cgroup`. v1 hierarchies may be mounted, too, and a container
/// may see only a part of the v2 one: the mount's root is cut off.
fn locate(mountinfo: &[u8], membership: &[u8]) -> Option<PathBuf> {
    let own = membership.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"0::"))?;
    let own = Path::new(std::str::from_utf8(own).ok()?);
    mountinfo.split(|&byte| byte == b'\n').find_map(|line| {
        // 41 31 0:38 <root> <mount point> rw,relatime [optional fields] - cgroup2 <source> <options>
        let mut fields = line.split(|&byte| byte == b' ');
        let root = unescape(fields.nth(3)?);
        let mount_point = unescape(fields.next()?);
        let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
        let inside = own.strip_prefix(root).ok().filter(|_| kind == b"cgroup2")?;
        let found = mount_point.join(inside);
        let is_visible = !found.components().any(|part| part == std::path::Component::ParentDir);
        (is_visible && found.is_absolute()).then_some(found)
    })
}

/// Decodes `\040` (a blank) and similar escapes (`proc_pid_mountinfo(5)`).
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        let digits = tail.first_chunk::<3>().filter(|_| byte == b'\\');
        let octal = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = octal.and_then(|octal| u8::from_str_radix(octal, 8).ok());
        bytes.push(escaped.unwrap_or(byte));
        rest = tail.get(if escaped.is_some() { 3.. } else { 0.. }).unwrap_or_default();
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use rustix::fs::{FlockOperation, flock};

    use super::*;

    #[test]
    fn the_v2_mount_is_found_beside_v1_and_in_a_container() {
        let hybrid = b"32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                       41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n";
        assert_eq!(
            locate(hybrid, b"2:cpu:/a\n0::/user.slice/x\n"),
            Some(PathBuf::from("/sys/fs/cgroup/unified/user.slice/x"))
        );
        assert_eq!(locate(hybrid, b"2:cpu:/a\n"), None);
        let part = br"9 8 0:3 /docker/ab /sys/fs/c\040g ro - cgroup2 cgroup rw";
        assert_eq!(locate(part, b"0::/docker/ab/in\n"), Some(PathBuf::from("/sys/fs/c g/in")));
        assert_eq!(locate(part, b"0::/elsewhere\n"), None);
        let namespaced = b"9 8 0:3 / /sys/fs/cgroup ro - cgroup2 cgroup rw";
        assert_eq!(locate(namespaced, b"0::/../outside\n"), None);
        assert_eq!(locate(namespaced, b"0::/\n"), Some(PathBuf::from("/sys/fs/cgroup/")));
    }

    fn is_held(path: &Path) -> bool {
        flock(File::open(path).unwrap(), FlockOperation::NonBlockingLockExclusive).is_err()
    }

    #[test]
    fn a_name_that_another_has_is_not_touched_and_another_is_taken() {
        let parent = tempfile::tempdir().unwrap();
        let name = format!("{PREFIX}{}", std::process::id());
        // One of a process with our id in another PID namespace, and one of an earlier process that is not empty.
        let theirs = parent.path().join(&name);
        fs::create_dir(&theirs).unwrap();
        let lock = File::open(&theirs).unwrap();
        flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
        for attempt in 1..40 {
            fs::create_dir_all(parent.path().join(format!("{name}-{attempt}/populated"))).unwrap();
        }
        stale_cgroups::remove(parent.path());
        let (path, directory) = claim(parent.path()).unwrap();
        assert_eq!(path, parent.path().join(format!("{name}-40")));
        assert!(theirs.exists() && is_held(&path));
        drop(directory);
        stale_cgroups::remove(parent.path());
        assert!(theirs.exists() && !path.exists(), "whoever had our id before us has left it behind");
    }

    /// After an upgrade, guards of one process follow each other; the last one that ends must not take the next one's away.
    #[test]
    fn a_cgroup_that_another_guard_has_made_under_the_same_name_is_not_removed() {
        let parent = tempfile::tempdir().unwrap();
        let (path, directory) = claim(parent.path()).unwrap();
        let nothing = || File::open("/dev/null").unwrap();
        let (procs, kill, freeze, events) = (nothing(), nothing(), nothing(), nothing());
        let is_joined_by_fork = Cell::new(true);
        let cgroup = Cgroup { path: path.clone(), directory, is_joined_by_fork, procs, kill, freeze, events };
        cgroup.remove();
        assert!(!path.exists());
        let (next, _held) = claim(parent.path()).unwrap();
        assert_eq!(next, path);
        cgroup.remove();
        assert!(path.exists(), "it is the next guard's");
    }

    /// Each takes the other's process for dead, as in two PID namespaces.
    #[test]
    fn whoever_tidies_up_meanwhile_takes_none_away_that_is_claimed() {
        let parent = tempfile::tempdir().unwrap();
        let claim_and_leave = || {
            let (path, held) = claim(parent.path()).unwrap();
            // Long enough for the other thread to look again.
            let is_kept = (0..20).all(|_| path.exists());
            remove(&path);
            drop(held);
            is_kept
        };
        std::thread::scope(|scope| {
            let claims = scope.spawn(|| (0..1_000).all(|_| claim_and_leave()));
            while !claims.is_finished() {
                stale_cgroups::remove(parent.path());
            }
            assert!(claims.join().unwrap(), "a cgroup was removed while it was held");
        });
    }

    /// Who mounts chooses the names in it.
    fn lines() -> impl proptest::strategy::Strategy<Value = Vec<u8>> {
        let pieces = ["0::", "/", "..", "a", " ", "\\040", "\\", "\n", " - cgroup2 x", "9 8 0:3 /", " /sys"];
        let piece = proptest::sample::select(pieces.map(|piece| piece.as_bytes().to_vec()).to_vec());
        proptest::strategy::Strategy::prop_map(proptest::collection::vec(piece, 0..24), |pieces| pieces.concat())
    }

    proptest::proptest! {
        #[test]
        fn a_cgroup_is_found_at_an_absolute_path_without_detours_or_not_at_all(mounts in lines(), membership in lines()) {
            let mounts = [b"9 8 0:3 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", mounts.as_slice()].concat();
            let membership = [b"0::/", membership.as_slice()].concat();
            if let Some(found) = locate(&mounts, &membership) {
                let inside = found.strip_prefix("/").unwrap();
                proptest::prop_assert!(inside.components().all(|part| matches!(part, std::path::Component::Normal(_))));
            }
        }
    }

    #[test]
    fn names_in_mountinfo_are_unescaped() {
        assert_eq!(unescape(br"/a\040b\134c\9"), PathBuf::from(r"/a b\c\9"));
    }
}
