//! Every program under test as its user would start it: one process for each host, all with the same command.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

use crate::floor;
use crate::jute::Connection;
use crate::servers::Servers;
use crate::wait;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Floor,
    Ours,
    Etcd,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Floor, Self::Ours, Self::Etcd];

    pub fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor, by hand",
            Self::Ours => "zk-leader-run",
            Self::Etcd => "etcdctl lock",
        }
    }
}

/// Now, by the clock of the stamps.
pub fn monotonic() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap().into()
}

/// What was stamped: when, and by which process.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    pub at: Duration,
    pub pid: i32,
}

/// One election of one kind of program.
pub struct Election<'a> {
    pub kind: Kind,
    servers: &'a Servers,
    path: String,
    session_timeout: Duration,
    stamp: PathBuf,
    diary: PathBuf,
    mode: &'static str,
}

impl<'a> Election<'a> {
    /// `name` tells it from others of its kind; `mode` is the command's (see `stamp.rs`).
    pub fn new(
        kind: Kind,
        name: &str,
        servers: &'a Servers,
        directory: &Path,
        session_timeout: Duration,
        mode: &'static str,
    ) -> io::Result<Self> {
        let path = format!("/{kind:?}-{name}").to_lowercase();
        let diary = directory.join(&path[1..]);
        let stamp = directory.join("stamp");
        if kind == Kind::Floor {
            floor::prepare(&mut Connection::open(&servers.zookeeper, session_timeout)?, &path)?;
        }
        Ok(Self { kind, servers, path, session_timeout, stamp, diary, mode })
    }

    /// One more host. Its process leads a group of its own.
    pub fn spawn(&self) -> io::Result<Host> {
        let seconds = self.session_timeout.as_secs();
        let mut program = match self.kind {
            Kind::Floor => {
                let mut program = Command::new(std::env::current_exe()?);
                program.args(["floor", &self.servers.zookeeper, &self.path]);
                program
            }
            Kind::Ours => {
                let mut program = Command::new(program_under_test());
                program.args(["--connect", &self.servers.zookeeper, "--path", &self.path]);
                program.args(["--session-timeout", &format!("{seconds}s"), "--"]);
                program
            }
            Kind::Etcd => {
                let mut program = Command::new("etcdctl");
                program.env("ETCDCTL_API", "3").args(["--endpoints", &self.servers.etcd]);
                program.args(["lock", "--ttl", &seconds.to_string(), &self.path]);
                program
            }
        };
        let log = File::options().append(true).create(true).open(self.diary.with_extension("log"))?;
        program.arg(&self.stamp).arg(&self.diary).args((!self.mode.is_empty()).then_some(self.mode));
        program.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
        let spawned_at = monotonic();
        Ok(Host { process: program.spawn()?, kind: self.kind, spawned_at })
    }

    /// What was written down so far of one kind of event.
    pub fn stamps(&self, event: &str) -> Vec<Stamp> {
        let text = fs::read_to_string(&self.diary).unwrap_or_default();
        let stamp = |line: &str| {
            let mut words = line.split_whitespace().skip_while(|word| *word != event).skip(1);
            let at = Duration::from_nanos(words.next()?.parse().ok()?);
            Some(Stamp { at, pid: words.next()?.parse().ok()? })
        };
        text.lines().filter_map(stamp).collect()
    }

    /// Waits for the start with this number, from 1 on.
    pub fn until_started(&self, count: usize) -> Stamp {
        wait::for_some(&format!("{} starts the command", self.kind.name()), || {
            self.stamps("start").get(count - 1).copied()
        })
    }

    /// Waits until so many contend.
    pub fn until_in_line(&self, count: usize) {
        wait::until(&format!("{count} of {} contend", self.kind.name()), || {
            self.in_line().is_ok_and(|number| number == count)
        });
    }

    fn in_line(&self) -> io::Result<usize> {
        if self.kind == Kind::Etcd {
            let (_, keys) = self.servers.etcdctl(&["get", "--prefix", &self.path, "--keys-only"])?;
            return Ok(keys.lines().filter(|line| !line.is_empty()).count());
        }
        let mut connection = Connection::open(&self.servers.zookeeper, Duration::from_secs(5))?;
        Ok(connection.children(&format!("{}/election", self.path))?.len())
    }
}

/// `BENCH_PROGRAM` puts another build to the test.
fn program_under_test() -> String {
    std::env::var("BENCH_PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_zk-leader-run").to_owned())
}

/// One contender. Dropped: its whole group is killed, and its command.
pub struct Host {
    process: Child,
    kind: Kind,
    pub spawned_at: Duration,
}

impl Host {
    pub fn pid(&self) -> i32 {
        self.process.id().cast_signed()
    }

    /// As a service manager asks it to stop. `etcdctl lock` does not pass SIGTERM on, so its command gets one, too, as from
    /// systemd, which signals the whole cgroup.
    pub fn terminate(&self, command: i32) -> Duration {
        let at = monotonic();
        send(self.pid(), Signal::SIGTERM);
        if self.kind == Kind::Etcd {
            send(command, Signal::SIGTERM);
        }
        at
    }

    pub fn wait(&mut self) -> io::Result<()> {
        self.process.wait().map(drop)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(-self.pid()), Signal::SIGKILL);
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The process may be gone.
pub fn send(pid: i32, signal: Signal) {
    let _ = kill(Pid::from_raw(pid), signal);
}
