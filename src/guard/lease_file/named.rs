//! A named lease file, on a tmpfs: the guard must not wait for a disk.
//!
//! Guard, sentinel and supervisor hold a lock on it (`flock(2)`), which the kernel releases when the last of them ends. The
//! next one that makes a file there removes those without an owner. A file gets its name when it is locked and complete.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, fchmod, flock, linkat, openat, statfs};

use super::at;
use super::layout::{KILL_AT, SEQUENCE, SIZE, STATE};
use crate::clock;

/// In a directory that may be shared with the command.
const PREFIX: &str = "zk-leader-lease-";
/// Where root keeps its files; in many containers, only the second is a tmpfs.
const OF_ROOT: [&str; 2] = ["/run/zk-leader-run", "/dev/shm/zk-leader-run"];
/// `statfs(2)`
const TMPFS_MAGIC: u64 = 0x0102_1994;

#[derive(Debug)]
pub(super) struct NamedFile {
    file: File,
    path: PathBuf,
}

impl NamedFile {
    /// # Errors
    /// If there is no directory for it, or none that is ours alone and in memory.
    pub(super) fn make(first: &[u8; SIZE]) -> io::Result<Self> {
        let mut complaint = io::Error::other("there is no runtime directory (RUNTIME_DIRECTORY, XDG_RUNTIME_DIR)");
        for directory in directories() {
            match Self::make_in(&directory, first).map_err(at(&directory)) {
                Ok(file) => return Ok(file),
                Err(error) => complaint = error,
            }
        }
        Err(complaint)
    }

    fn make_in(directory: &Path, first: &[u8; SIZE]) -> io::Result<Self> {
        let is_new = !directory.exists();
        let present = if is_new { directory.parent().unwrap_or(directory) } else { directory };
        if u64::try_from(statfs(present)?.f_type) != Ok(TMPFS_MAGIC) {
            return Err(io::Error::other("it is not on a tmpfs"));
        }
        if is_new && DirBuilder::new().mode(0o755).create(directory).is_ok() {
            // Whatever the umask says.
            fs::set_permissions(directory, Permissions::from_mode(0o755))?;
        }
        let opened = File::options().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW).open(directory)?;
        let metadata = opened.metadata()?;
        if metadata.uid() != geteuid().as_raw() || metadata.mode() & 0o022 != 0 {
            return Err(io::Error::other("others may change it"));
        }
        remove_stale(directory);
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(openat(&opened, ".", flags, Mode::from_raw_mode(0o444))?);
        fchmod(&file, Mode::from_raw_mode(0o444))?;
        file.write_all_at(first, 0)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let name = format!("{PREFIX}{}-{:x}", std::process::id(), clock::now().lease.as_nanos());
        let nameless = format!("/proc/self/fd/{}", file.as_raw_fd());
        linkat(CWD, nameless, &opened, &name, AtFlags::SYMLINK_FOLLOW)?;
        Ok(Self { file, path: directory.join(name) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A seqlock by three system calls, which the inode's lock keeps in order. On a tmpfs they fail only in want of
    /// memory; then the counter stays odd, or the file as it was, which ends by itself.
    pub(super) fn write(&self, bytes: &[u8; SIZE]) {
        let Some(sequence) = word(bytes, SEQUENCE) else { return };
        let odd = u64::from_ne_bytes(sequence).wrapping_sub(1).to_ne_bytes();
        let mut unfinished = *bytes;
        if let Some(place) = unfinished.get_mut(SEQUENCE * 8..SEQUENCE * 8 + 8) {
            place.copy_from_slice(&odd);
        }
        let _ = self
            .put(SEQUENCE, &odd)
            .and_then(|()| self.put(0, &unfinished))
            .and_then(|()| self.put(SEQUENCE, &sequence));
    }

    pub(super) fn close(&self, bytes: &[u8; SIZE]) {
        for at in [KILL_AT, STATE] {
            let _ = word(bytes, at).map(|word| self.put(at, &word));
        }
    }

    fn put(&self, word: usize, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, word as u64 * 8)
    }

    pub(super) fn remove(&self) {
        // Another process may have found it stale.
        let _ = fs::remove_file(&self.path);
    }
}

fn word(bytes: &[u8; SIZE], at: usize) -> Option<[u8; 8]> {
    bytes.get(at * 8..)?.first_chunk().copied()
}

/// The directory that systemd made for us (`RuntimeDirectory=`), then the usual ones of our user.
fn directories() -> impl Iterator<Item = PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let of_unit = variable("RUNTIME_DIRECTORY").and_then(|list| std::env::split_paths(&list).next());
    let usual = if geteuid().is_root() {
        OF_ROOT.map(PathBuf::from).to_vec()
    } else {
        variable("XDG_RUNTIME_DIR").map(|directory| directory.join("zk-leader-run")).into_iter().collect()
    };
    of_unit.into_iter().chain(usual)
}

/// Removes the files of owners that were all killed at once.
fn remove_stale(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_ours = |name: &OsStr| name.to_str().is_some_and(|name| name.starts_with(PREFIX));
    for entry in entries.filter(|entry| is_ours(&entry.file_name())) {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let Ok(file) = File::options().read(true).custom_flags(flags).open(entry.path()) else { continue };
        let is_lease = file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() == SIZE as u64);
        if is_lease && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // One that stays is harmless: its lease has ended.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_others_may_change_is_not_taken() {
        let directory = Path::new("/dev/shm").join(format!("zk-leader-test-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        for (mode, is_taken) in [(0o755, true), (0o775, false), (0o757, false)] {
            fs::set_permissions(&directory, Permissions::from_mode(mode)).unwrap();
            assert_eq!(NamedFile::make_in(&directory, &[0; SIZE]).is_ok(), is_taken, "{mode:o}");
        }
        fs::remove_dir_all(&directory).unwrap();
    }
}
