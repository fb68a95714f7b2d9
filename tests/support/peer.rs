//! Contenders that are not ours: the real libraries, run by `tests/peers/peer` as their users wire them.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, Once};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use super::diary::Diary;
use super::subject::{collect, example};
use super::wait;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/peer");

/// Where the compiled program and the virtual environment are: in the target folder, made once.
const HOME: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/peers");

/// T of a contender, in milliseconds: these libraries give their seat up after two thirds of it without an answer, and a
/// Java that starts beside others on a busy machine may need some of that.
const SESSION_MILLIS: &str = "8000";

/// A running contender in a process group of its own. Dropped: killed, with its command.
pub struct Peer {
    pub id: String,
    child: Child,
    output: Arc<Mutex<String>>,
    log: Arc<Mutex<String>>,
}

impl Peer {
    /// A contender with `recipe` (see `tests/peers/peer`) in the directory `path`; the witness is its command.
    pub fn spawn(recipe: &str, servers: &str, path: &str, id: &str, diary: &Diary) -> Self {
        prepare();
        let mut child = Command::new(SCRIPT)
            .args([recipe, servers, path, id, SESSION_MILLIS])
            .args([example("witness"), diary.path()])
            .env("PEERS_HOME", HOME)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{SCRIPT}: {error}"));
        let (output, log) = (collect(child.stdout.take().unwrap()), collect(child.stderr.take().unwrap()));
        Self { id: id.to_owned(), child, output, log }
    }

    /// What a host that loses its power does: nobody is left to stop the command, and the session expires.
    pub fn crash(&mut self) {
        killpg(self.pid(), Signal::SIGKILL).unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM: it stops its command, gives the seat back and ends.
    #[track_caller]
    pub fn stop(&mut self) {
        kill(self.pid(), Signal::SIGTERM).unwrap();
        let ended = wait::held_within(wait::LIMIT, || self.has_ended());
        assert!(ended, "{} did not end:\n{}", self.id, self.log());
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// The steps that it wrote down: `joined`, `elected`, `started`, `stopped`, `released`.
    pub fn steps(&self) -> Vec<String> {
        let output = self.output.lock().unwrap();
        output.lines().filter_map(|line| line.split(' ').nth(1)).map(str::to_owned).collect()
    }

    /// What it and its library complained about.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- {} ---\n{}{}", self.id, self.output.lock().unwrap(), self.log());
        }
        killpg(self.pid(), Signal::SIGKILL).ok();
        self.child.wait().ok();
    }
}

/// Once for each test run, so that no contender's start waits for a compiler.
fn prepare() {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| {
        assert!(Path::new(SCRIPT).exists());
        let status = Command::new(SCRIPT).arg("--prepare").env("PEERS_HOME", HOME).status().unwrap();
        assert!(status.success(), "{SCRIPT} --prepare says what is missing");
    });
}
