//! A real systemd: a throw-away one in namespaces of its own, over an overlay of this machine's root (or of `BOX_ROOT`, a bare
//! Debian). Needs root, like the chaos.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::subject::children_of;
use super::wait;

const HELP: &str = "a systemd in a box needs root, overlayfs, cgroup v2, and `apt-get install systemd util-linux`";

pub struct SystemdBox {
    boot: Child,
    directory: tempfile::TempDir,
}

impl SystemdBox {
    /// With `files` copied over its root, and `shared`, a folder of ours, as its `/shared`.
    pub fn boot(files: &Path, shared: &Path) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut boot = Command::new("setpriv");
        boot.args(["--pdeathsig", "KILL", "sh"]).arg(source.join("tests/systemd/box.sh"));
        boot.arg(directory.path()).arg(files).arg(shared);
        boot.arg(std::env::var_os("BOX_ROOT").unwrap_or_else(|| "/".into()));
        let boot = boot.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect(HELP);
        let systemd = Self { boot, directory };
        let up = wait::held_within(4 * wait::LIMIT, || systemd.ctl("is-system-running", &[]) == "running");
        assert!(up, "{HELP}");
        systemd
    }

    fn init(&self) -> Option<i32> {
        children_of(i32::try_from(self.boot.id()).unwrap()).first().copied()
    }

    /// What a program prints that is run inside, and whether it ended well.
    pub fn try_run(&self, words: &[&str]) -> (bool, String) {
        let Some(init) = self.init() else { return (false, String::new()) };
        let mut nsenter = Command::new("nsenter");
        nsenter.args(["-t", &init.to_string(), "-m", "-p", "-C", "-u", "-i", "-r", "-w"]).args(words);
        let output = nsenter.stdin(Stdio::null()).output().unwrap();
        let text = if output.status.success() { output.stdout } else { [output.stdout, output.stderr].concat() };
        (output.status.success(), String::from_utf8_lossy(&text).trim().to_owned())
    }

    /// What a program prints that is run inside.
    pub fn run(&self, words: &[&str]) -> String {
        self.try_run(words).1
    }

    /// The same, where it must end well.
    #[track_caller]
    pub fn must(&self, script: &str) -> String {
        let (is_done, output) = self.try_run(&["sh", "-ec", script]);
        assert!(is_done, "{script}\n{output}\n{}", self.journal());
        output
    }

    pub fn ctl(&self, verb: &str, words: &[&str]) -> String {
        self.run(&[&["systemctl", verb], words].concat())
    }

    pub fn property(&self, unit: &str, name: &str) -> String {
        self.ctl("show", &["--value", "-p", name, unit])
    }

    pub fn state(&self, unit: &str) -> String {
        format!("{} {}", self.property(unit, "ActiveState"), self.property(unit, "SubState"))
    }

    #[track_caller]
    pub fn until_state(&self, unit: &str, state: &str) {
        let reached = wait::held_within(wait::LIMIT, || self.state(unit) == state);
        assert!(reached, "{unit} is {}, and never was {state}:\n{}", self.state(unit), self.journal());
    }

    #[track_caller]
    pub fn until_told(&self, unit: &str, status: &str) {
        let told = wait::held_within(wait::LIMIT, || self.property(unit, "StatusText").starts_with(status));
        assert!(told, "{unit} never was {status}:\n{}", self.journal());
    }

    pub fn journal(&self) -> String {
        self.run(&["journalctl", "--sync"]);
        self.run(&["journalctl", "--no-pager", "-n", "60"])
    }
}

impl Drop for SystemdBox {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.journal());
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
    }
}
