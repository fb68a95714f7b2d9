//! The package that we ship, installed under a real systemd, with the settings of two instances.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::standalone::server;
use super::subject::example;
use super::{Election, SystemdBox, packages};

/// What a host has besides the package.
pub struct Files(tempfile::TempDir);

impl Files {
    /// Settings for two instances of one election, `a` and `b`, whose witness writes to `/shared`.
    pub fn of_two_hosts(election: &Election, command: &str, settings: &str) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        // The command runs as another user than we.
        fs::set_permissions(election.diary.directory(), fs::Permissions::from_mode(0o777)).unwrap();
        for unit in ["zk-leader-run@", "zk-leader-run-job@"] {
            let dropin = format!("etc/systemd/system/{unit}.service.d/shared.conf");
            files.put(&dropin, "[Service]\nReadWritePaths=/shared\n");
        }
        files.program(&example("witness"));
        files.executable("usr/local/bin/command", command);
        for id in ["a", "b"] {
            let common = format!(
                "COMMAND=/usr/local/bin/command /shared/diary\n\
                 ZK_LEADER_RUN_CONNECT={}\n\
                 ZK_LEADER_RUN_PATH=/zk-leader-run/{}\n\
                 ZK_LEADER_RUN_ID={id}\n",
                server().connect_string(),
                election.name
            );
            files.put(&format!("etc/zk-leader-run/{id}.env"), &(common + settings));
        }
        fs::copy(packages::debian(), files.path("zk-leader-run.deb")).unwrap();
        files
    }

    pub fn path(&self, at: &str) -> PathBuf {
        let path = self.0.path().join(at);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    pub fn put(&self, at: &str, content: &str) {
        fs::write(self.path(at), content).unwrap();
    }

    pub fn executable(&self, at: &str, script: &str) {
        self.put(at, script);
        fs::set_permissions(self.path(at), fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn program(&self, program: &Path) {
        let name = program.file_name().unwrap().to_str().unwrap();
        fs::copy(program, self.path(&format!("usr/local/bin/{name}"))).unwrap();
    }

    /// A systemd on which the package was installed.
    pub fn install(&self, election: &Election) -> SystemdBox {
        let systemd = SystemdBox::boot(self.0.path(), election.diary.directory());
        // The index of all man pages is nobody's business here, nor are the packages that could be downloaded: both take seconds.
        systemd.must("rm -f /var/lib/man-db/auto-update");
        systemd.must("echo 'Dir::State::Lists \"/nonexistent\";' >/etc/apt/apt.conf.d/99-no-lists");
        systemd.must("DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends /zk-leader-run.deb");
        systemd
    }
}

pub const A: &str = "zk-leader-run@a";
pub const B: &str = "zk-leader-run@b";
