//! The working directory that we were started in is the command's. The guard itself stands in `/`, so that it keeps no file
//! system busy.
//!
//! Never: a directory left that its path does not lead back to.

use std::fs::File;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::stat::{FileStat, stat};
use nix::unistd::{chdir, fchdir, getcwd};

/// `None`: we are still there.
#[derive(Clone, Debug, Default)]
pub struct Directory(Option<PathBuf>);

impl Directory {
    /// Leaves it for `/`; stays if it could not be entered again, because it was moved or closed to us.
    pub fn leave() -> Self {
        let (Ok(path), Ok(here), Ok(way_back)) = (getcwd(), stat("."), File::open(".")) else { return Self(None) };
        let is_here = |there: FileStat| (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino);
        if chdir(&path).is_ok() && stat(".").is_ok_and(is_here) && chdir("/").is_ok() {
            return Self(Some(path));
        }
        // Where we are anyway, or come from.
        let _ = fchdir(way_back);
        Self(None)
    }

    /// In the process that is to be there.
    pub fn enter(&self) -> Result<(), Errno> {
        match &self.0 {
            Some(path) => chdir(path),
            None => Ok(()),
        }
    }
}
