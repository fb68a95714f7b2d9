//! The command runs in our working directory. The guard itself moves to `/`, so that it keeps no file system busy; but
//! only if the path leads back to the same directory.

use std::fs::File;
use std::io::{Write as _, stderr};
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::stat::{FileStat, stat};
use nix::unistd::{chdir, fchdir, getcwd};

/// `None`: we stayed there.
#[derive(Clone, Debug, Default)]
pub struct Directory(Option<PathBuf>);

impl Directory {
    /// Moves to `/`. Stays if the directory could not be entered again, because it was moved or we lack permission.
    pub fn leave() -> Self {
        let (Ok(path), Ok(here), Ok(way_back)) = (getcwd(), stat("."), File::open(".")) else { return Self(None) };
        let is_here = |there: FileStat| (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino);
        if chdir(&path).is_ok() && stat(".").is_ok_and(is_here) && chdir("/").is_ok() {
            return Self(Some(path));
        }
        // Back to the directory that we came from.
        let _ = fchdir(way_back);
        Self(None)
    }

    /// For the process that becomes the command. A report has room for an error only: `ESTALE` is a directory that is gone, and
    /// `ENOENT` a program.
    pub fn enter_for_the_command(&self) -> Result<(), Errno> {
        let Some(path) = &self.0 else { return Ok(()) };
        chdir(path).map_err(|errno| {
            let (path, why) = (path.display(), errno.desc());
            let _ = writeln!(stderr(), "zk-leader-run: the working directory '{path}' cannot be entered: {why}");
            if matches!(errno, Errno::ENOENT | Errno::ENOTDIR) { Errno::ESTALE } else { errno }
        })
    }

    pub fn enter(&self) -> Result<(), Errno> {
        match &self.0 {
            Some(path) => chdir(path),
            None => Ok(()),
        }
    }
}
