//! The unit that we ship, under a real systemd: a throw-away one in namespaces of its own. Needs root, like the chaos.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{election, server};
use crate::support::subject::{children_of, example};
use crate::support::{Election, wait};

const HELP: &str = "a systemd in a box needs root, overlayfs, cgroup v2, and `apt-get install systemd util-linux`";

struct Systemd {
    boot: Child,
    directory: tempfile::TempDir,
    programs: tempfile::TempDir,
}

impl Systemd {
    /// With our unit for two instances of one election: `a` and `b`.
    fn boot(election: &Election) -> Self {
        let (directory, programs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let source = Path::new(env!("CARGO_MANIFEST_DIR"));
        for folder in ["bin", "units", "etc"] {
            fs::create_dir(programs.path().join(folder)).unwrap();
        }
        let put = |file: PathBuf, at: &str| {
            fs::copy(&file, programs.path().join(at)).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
        };
        put(env!("CARGO_BIN_EXE_zk-leader-run").into(), "bin/zk-leader-run");
        put(example("witness"), "bin/witness");
        put(source.join("packaging/systemd/zk-leader-run@.service"), "units/zk-leader-run@.service");
        // T33: what the command says to systemd, by whatever way it finds, is nobody's business.
        let impostor = "#!/bin/sh\n\
                        for socket in \"${NOTIFY_SOCKET:-/run/systemd/notify}\" /run/systemd/notify; do\n\
                        NOTIFY_SOCKET=$socket systemd-notify --ready --stopping --status=impostor\n\
                        done\n\
                        exec witness \"$@\"\n";
        fs::write(programs.path().join("bin/impostor"), impostor).unwrap();
        Command::new("chmod").arg("+x").arg(programs.path().join("bin/impostor")).status().unwrap();
        for id in ["a", "b"] {
            let settings = format!(
                "COMMAND=/usr/bin/impostor /shared/diary\n\
                 ZK_LEADER_RUN_CONNECT={}\n\
                 ZK_LEADER_RUN_PATH=/zk-leader-run/{}\n\
                 ZK_LEADER_RUN_ID={id}\n\
                 ZK_LEADER_RUN_SESSION_TIMEOUT=20s\n",
                server().connect_string(),
                election.name
            );
            fs::write(programs.path().join(format!("etc/{id}.env")), settings).unwrap();
        }
        let mut boot = Command::new("setpriv");
        boot.args(["--pdeathsig", "KILL", "sh"]).arg(source.join("tests/systemd/box.sh"));
        boot.arg(directory.path()).arg(programs.path()).arg(election.diary.directory());
        let boot = boot.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect(HELP);
        let systemd = Self { boot, directory, programs };
        let up = wait::held_within(wait::LIMIT, || systemd.ctl("is-system-running", &[]) == "running");
        assert!(up, "{HELP}");
        systemd
    }

    fn init(&self) -> Option<i32> {
        children_of(i32::try_from(self.boot.id()).unwrap()).first().copied()
    }

    /// What a program prints that is run inside.
    fn run(&self, words: &[&str]) -> String {
        let Some(init) = self.init() else { return String::new() };
        let mut nsenter = Command::new("nsenter");
        nsenter.args(["-t", &init.to_string(), "-m", "-p", "-C", "-u", "-i", "-r", "-w"]).args(words);
        let output = nsenter.stdin(Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn ctl(&self, verb: &str, words: &[&str]) -> String {
        self.run(&[&["systemctl", verb], words].concat())
    }

    fn property(&self, instance: &str, name: &str) -> String {
        self.ctl("show", &["--value", "-p", name, &format!("zk-leader-run@{instance}")])
    }

    fn state(&self, instance: &str) -> String {
        format!("{} {}", self.property(instance, "ActiveState"), self.property(instance, "SubState"))
    }

    #[track_caller]
    fn until_told(&self, instance: &str, status: &str) {
        let told = wait::held_within(wait::LIMIT, || self.property(instance, "StatusText").starts_with(status));
        assert!(told, "{instance} never was {status}:\n{}", self.run(&["journalctl", "--no-pager", "-n", "50"]));
    }
}

impl Drop for Systemd {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.run(&["journalctl", "--no-pager", "-n", "60"]));
        }
        // Its parent, and with it all that lives inside.
        self.boot.kill().ok();
        self.boot.wait().ok();
        let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
        let tree = mounts
            .lines()
            .find(|line| line.split(' ').nth(2) == Some("cgroup2"))
            .and_then(|line| line.split(' ').nth(1));
        let name = self.directory.path().file_name().unwrap();
        let tree = Path::new(tree.unwrap_or_default()).join(name);
        wait::held_within(wait::LIMIT, || {
            Command::new("find")
                .arg(&tree)
                .args(["-depth", "-type", "d", "-delete"])
                .stderr(Stdio::null())
                .status()
                .ok();
            !tree.exists()
        });
        let _ = &self.programs;
    }
}

#[test]
fn under_a_real_systemd_a_standby_is_active_and_every_way_to_end_moves_the_command() {
    let election = election();
    let systemd = Systemd::boot(&election);
    systemd.ctl("start", &["zk-leader-run@a"]);
    systemd.until_told("a", "leading, token ");
    election.diary.until_started(1);
    systemd.ctl("start", &["zk-leader-run@b"]);
    systemd.until_told("b", "following, next in line");
    // T33
    assert_eq!([systemd.state("a"), systemd.state("b")], ["active running"; 2]);
    systemd.until_told("a", "leading, token ");

    let token = election.term().mzxid;
    let journal =
        systemd.run(&["journalctl", "-o", "cat", "ZK_LEADER_TO=leading", &format!("ZK_LEADER_TOKEN={token}")]);
    assert!(journal.starts_with("following -> leading:"), "{journal}");
    let units = systemd.run(&["journalctl", "-o", "cat", "-u", "zk-leader-run@a", "PRIORITY=6"]);
    assert!(units.contains("Command started"), "{units}");

    systemd.ctl("stop", &["zk-leader-run@a"]);
    assert_eq!(systemd.state("a"), "inactive dead");
    systemd.until_told("b", "leading, token ");
    assert_eq!(election.diary.until_started(2).told[1], "clean");

    // The supervisor alone is killed; the guard ends the tree and frees the lease, though systemd tells it to stop.
    systemd.ctl("start", &["zk-leader-run@a"]);
    systemd.until_told("a", "following, next in line");
    systemd.ctl("kill", &["--kill-whom=main", "--signal=KILL", "zk-leader-run@b"]);
    let start = election.diary.until_started(3);
    assert_eq!((start.id.as_str(), start.told[1].as_str()), ("a", "clean"), "the lease of 20 s was not freed");
    election.diary.assert_no_overlap();
    systemd.until_told("b", "following, next in line");
}
