//! The readers of `examples/lease/`, each of which looks again and again.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use serde_json::Value;
use zk_leader_run::clock;

use crate::rust_reader::Lease;
use crate::support::subject::collect;
use crate::support::wait;

/// The lease's clock, in ns.
pub fn now() -> u64 {
    clock::now().lease.as_nanos()
}

fn read(clock: ClockId) -> u64 {
    u64::try_from(Duration::from(clock_gettime(clock).unwrap()).as_nanos()).unwrap()
}

/// No more than the lease's clock is ahead of the raw one, read in this order.
fn suspended() -> u64 {
    let boot = read(ClockId::CLOCK_BOOTTIME);
    boot.saturating_sub(read(ClockId::CLOCK_MONOTONIC))
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/lease")
}

/// `looks.c`, compiled once.
fn looks() -> &'static Path {
    static LOOKS: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, program) = LOOKS.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("looks");
        let mut compiler = Command::new("cc");
        compiler.args(["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-O2", "-I"]).arg(folder()).arg("-o").arg(&program);
        compiler.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lease/looks.c"));
        assert!(compiler.status().unwrap().success());
        (directory, program)
    });
    program
}

fn in_c() -> Command {
    Command::new(looks())
}

fn in_python() -> Command {
    const LOOKS: &str = "import sys, time, zk_leader_lease as z\n\
        lease = z.Lease(*sys.argv[1:])\n\
        while True:\n\
        \x20 print(time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW), z.now_ns(), int(lease.left() * 1e9), flush=True)\n\
        \x20 time.sleep(0.002)";
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", folder()).args(["-Bc", LOOKS]);
    python
}

/// Of floating-point seconds, in ns.
const ROUNDING: u64 = 1_000;

/// What a reader said.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The raw clock before it looked, in ns.
    raw: u64,
    /// Its own reading of the lease's clock.
    pub now: u64,
    /// For how many ns the command may act.
    pub left: u64,
}

/// One reader of a lease file.
pub struct Reader {
    pub name: &'static str,
    lines: Arc<Mutex<String>>,
    looks_on: LooksOn,
}

enum LooksOn {
    Process(Child),
    Thread { stop: Arc<AtomicBool>, thread: Option<JoinHandle<()>> },
}

impl Reader {
    /// One of each kind, for this file.
    pub fn all(path: &Path) -> [Self; 3] {
        let [mut c, mut python] = [in_c(), in_python()];
        c.arg(path);
        python.arg(path);
        [Self::process("C", c), Self::process("Python", python), Self::rust(Lease::open(path))]
    }

    /// As in a command: by its variables.
    pub fn of_command(path: &Path, token: Option<&str>) -> [Self; 2] {
        [("C", in_c()), ("Python", in_python())].map(|(name, mut process)| {
            process.env("ZK_LEADER_LEASE", path).env_remove("ZK_LEADER_TOKEN");
            if let Some(token) = token {
                process.env("ZK_LEADER_TOKEN", token);
            }
            Self::process(name, process)
        })
    }

    /// By a program that ends in executing what stands behind its own words.
    pub fn inside(wrapper: &[&str], path: &Path) -> [Self; 2] {
        [("C", in_c()), ("Python", in_python())].map(|(name, process)| {
            let mut inside = Command::new(wrapper[0]);
            inside.args(&wrapper[1..]).arg(process.get_program()).args(process.get_args()).arg(path);
            inside.env("PYTHONPATH", folder());
            Self::process(name, inside)
        })
    }

    fn process(name: &'static str, mut process: Command) -> Self {
        let mut process = process.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = collect(process.stdout.take().unwrap());
        Self { name, lines, looks_on: LooksOn::Process(process) }
    }

    pub fn rust(lease: std::io::Result<Lease>) -> Self {
        let (stop, lines) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(String::new())));
        let (stopped, sink) = (Arc::clone(&stop), Arc::clone(&lines));
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let raw = read(ClockId::CLOCK_MONOTONIC_RAW);
                let left = lease.as_ref().map_or(Duration::ZERO, Lease::left);
                writeln!(sink.lock().unwrap(), "{raw} 0 {}", left.as_nanos()).unwrap();
                wait::pass(Duration::from_millis(2));
            }
        });
        Self { name: "Rust", lines, looks_on: LooksOn::Thread { stop, thread: Some(thread) } }
    }

    pub fn looks(&self) -> Vec<Look> {
        let lines = self.lines.lock().unwrap();
        let look = |line: &str| {
            let words: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
            Look { raw: words[0], now: words[1], left: words[2] }
        };
        lines.lines().map(look).collect()
    }

    pub fn has_said_yes(&self) -> bool {
        self.looks().last().is_some_and(|look| look.left > 0)
    }

    pub fn looks_after(&self, end: u64) -> usize {
        let suspended = suspended();
        self.looks().iter().filter(|look| look.raw + suspended > end).count()
    }

    /// `end` is the latest end that the lease ever had.
    #[track_caller]
    pub fn never_said_too_much(&self, end: u64) {
        let suspended = suspended();
        for look in self.looks() {
            let allowed = end.saturating_sub(look.raw + suspended);
            let rounding = if self.name == "Python" && allowed > 0 { ROUNDING } else { 0 };
            assert!(look.left <= allowed + rounding, "{}: {look:?}, but the lease ended at {end}", self.name);
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        match &mut self.looks_on {
            LooksOn::Process(process) => {
                process.kill().ok();
                process.wait().ok();
            }
            LooksOn::Thread { stop, thread } => {
                stop.store(true, Ordering::Relaxed);
                thread.take().map(JoinHandle::join);
            }
        }
    }
}

/// `zk-leaderctl lease WORDS`: its exit status, and what it said as JSON, if that.
pub fn ctl(words: &[&str]) -> (i32, Value) {
    let mut ctl = Command::new(env!("CARGO_BIN_EXE_zk-leaderctl"));
    let output = ctl.env_clear().arg("lease").args(words).output().unwrap();
    let said = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code().unwrap(), said)
}
