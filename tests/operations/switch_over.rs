//! From `flock(1)` on a file that two hosts share, and back again: what `docs/migrating.md` says, word for word.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{election, server};
use crate::support::documents::block_with;
use crate::support::subject::{children_of, example};
use crate::support::{Election, Running, Subject, wait};

/// Two hosts that have one directory in common, where the lock is.
struct Site {
    election: Election,
}

impl Site {
    fn new() -> Self {
        let mut election = election();
        "payroll".clone_into(&mut election.name);
        let site = Self { election };
        let command = site.directory().join("payroll");
        let witness = example("witness");
        fs::write(
            &command,
            format!("#!/bin/sh\nexec {} {}\n", witness.display(), site.election.diary.path().display()),
        )
        .unwrap();
        fs::set_permissions(&command, Permissions::from_mode(0o755)).unwrap();
        site
    }

    fn directory(&self) -> &Path {
        self.election.diary.directory()
    }

    /// The block of the document that has this in it.
    fn told(&self, word: &str) -> Command {
        let block = block_with("docs/migrating.md", word);
        let mut shell = Command::new("bash");
        shell.args(["-euc", &block.replace("zk1,zk2,zk3", &server().connect_string())]);
        let ours = Path::new(env!("CARGO_BIN_EXE_zk-leader-run")).parent().unwrap();
        let path = format!("{}:{}:{}", self.directory().display(), ours.display(), std::env::var("PATH").unwrap());
        shell.env("PATH", path).current_dir(self.directory()).stdin(Stdio::null());
        shell
    }

    #[track_caller]
    fn follow(&self, word: &str) {
        let output = self.told(word).output().unwrap();
        assert!(output.status.success(), "{word}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn is_locked(&self) -> bool {
        !self.told("flock --nonblock payroll.lock").status().unwrap().success()
    }

    /// A host with the old tool.
    fn old(&self) -> Old {
        let mut flock = Command::new("flock");
        flock.args(["payroll.lock", "./payroll"]).current_dir(self.directory()).stdin(Stdio::null());
        Old(flock.spawn().expect("apt-get install util-linux"))
    }

    /// A host with ours.
    fn new_host(&self) -> Running {
        Subject::start(self.told("--name payroll -- payroll"))
    }
}

/// Killed when dropped, and what it runs.
struct Old(Child);

impl Old {
    fn commands(&self) -> Vec<i32> {
        children_of(i32::try_from(self.0.id()).unwrap())
    }

    /// As `kill` does it: the command does not notice.
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Old {
    fn drop(&mut self) {
        for pid in self.commands() {
            kill(Pid::from_raw(pid), Signal::SIGKILL).ok();
        }
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn a_service_under_flock_is_switched_over_and_back_and_never_runs_twice() {
    let site = Site::new();
    let diary = &site.election.diary;
    let mut before = [site.old(), site.old()];
    diary.until_started(1);

    site.follow("--name payroll -- true");
    let hosts = [(); 2].map(|()| site.new_host());
    site.election.until_candidates(2);
    wait::pass(super::secs(1));
    assert_eq!(diary.starts().len(), 1, "an election that is disabled starts nothing");

    // The tool is gone and its command is not: this is what is to be seen.
    let left = before.iter().flat_map(Old::commands).collect::<Vec<_>>();
    assert_eq!(left.len(), 1);
    before.iter_mut().for_each(Old::kill);
    assert!(site.is_locked() && diary.somebody_lives());
    kill(Pid::from_raw(left[0]), Signal::SIGTERM).unwrap();
    diary.until_nobody_lives();
    wait::until("the lock is free", || !site.is_locked());

    site.follow("enable payroll --wait");
    diary.until_started(2);

    site.follow("'back again' --wait");
    assert!(!diary.somebody_lives(), "it waits until no command runs");
    let after = site.old();
    diary.until_started(3);
    wait::pass(super::secs(1));
    assert_eq!(diary.starts().len(), 3);
    diary.assert_one_at_a_time();
    drop((after, hosts));
}
