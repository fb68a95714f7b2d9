//! An installed program that is replaced as packages do it: a new file is renamed over the old one. This build and one that says
//! that it is of another version take turns.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::subject::{copy_program, of_another_version};
use crate::support::{Running, Subject, wait};

pub const UPGRADED: &str = "Upgraded from version";
const OURS: &str = env!("CARGO_BIN_EXE_zk-leader-run");
pub const REFUSED: &str = "Not upgraded: ";

pub struct Package {
    directory: tempfile::TempDir,
    installations: AtomicUsize,
}

impl Package {
    /// This build, installed.
    pub fn new() -> Self {
        let package = Self { directory: tempfile::tempdir().unwrap(), installations: AtomicUsize::new(0) };
        copy_program(Path::new(OURS), &package.directory.path().join("this-version"));
        of_another_version(Path::new(OURS), package.directory.path());
        package.install();
        package
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("zk-leader-run")
    }

    /// A file with the other version of the program takes its place.
    pub fn install(&self) {
        let number = self.installations.fetch_add(1, Ordering::Relaxed);
        let program = self.directory.path().join(["this-version", "other-version"][number % 2]);
        let fresh = self.directory.path().join("fresh");
        // Not by this process, whose children would hold it open for writing for a moment: it could not be executed.
        let copied = Command::new("cp").arg(program).arg(&fresh).status();
        assert!(copied.unwrap().success());
        fs::rename(fresh, self.path()).unwrap();
    }

    /// Another program takes its place.
    pub fn install_other(&self, contents: &[u8]) {
        let fresh = self.directory.path().join("fresh");
        fs::write(&fresh, contents).unwrap();
        fs::set_permissions(&fresh, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(fresh, self.path()).unwrap();
    }

    pub fn remove(&self) {
        fs::remove_file(self.path()).unwrap();
    }

    /// This host runs the installed program.
    pub fn on(&self, host: Subject) -> Subject {
        host.program(self.path().to_str().unwrap())
    }

    /// Whether this host's process executes the file that is installed now.
    pub fn is_executed_by(&self, host: &Running) -> bool {
        let executed = fs::metadata(format!("/proc/{}/exe", host.pid())).map(|file| file.ino()).ok();
        executed == Some(fs::metadata(self.path()).unwrap().ino())
    }

    /// Installs another file, asks this host to upgrade, and waits for that.
    #[track_caller]
    pub fn upgrade(&self, host: &Running) {
        let before = host.log().matches(UPGRADED).count();
        self.install();
        ask(host);
        host.until_logged_times(UPGRADED, before + 1);
        assert!(self.is_executed_by(host));
    }
}

/// `SIGRTMIN+1`.
pub fn ask(host: &Running) {
    let pid = host.pid().to_string();
    assert!(Command::new("kill").args(["-s", "RTMIN+1", &pid]).status().unwrap().success());
}

/// What may not change in an upgrade of this host: its guards' processes, and the number of its descriptors.
pub fn processes(host: &Running) -> (i32, i32) {
    (host.guard_pid(), host.sentinel_pid())
}

/// Open descriptors, once they have settled.
pub fn descriptors(host: &Running) -> usize {
    let count = || fs::read_dir(format!("/proc/{}/fd", host.pid())).map_or(0, Iterator::count);
    let mut last = (count(), 0);
    wait::until("the number of descriptors settles", || {
        let now = count();
        last = if now == last.0 { (now, last.1 + 1) } else { (now, 0) };
        last.1 > 40
    });
    last.0
}
