//! The command runs in our working directory. The guard itself moves to `/`, so that it keeps no file system busy; but
//! only if the path leads back to the same directory.

use std::fs::File;
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

    /// For the process that becomes the command.
    pub fn enter(&self) -> Result<(), Errno> {
        match &self.0 {
            Some(path) => chdir(path),
            None => Ok(()),
        }
    }
}
