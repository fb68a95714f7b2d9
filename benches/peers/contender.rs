//! Every program under test as its user would start it: one process for each host, all with the same command.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

use crate::floor;
use crate::jute::Connection;
use crate::processes;
use crate::servers::Servers;
use crate::setting::Setting;
use crate::wait;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Floor,
    Ours,
    Etcd,
    Kazoo,
    Curator,
}

impl Kind {
    pub const ALL: [Self; 5] = [Self::Floor, Self::Ours, Self::Etcd, Self::Kazoo, Self::Curator];
    /// The floor keeps no promise and renews nothing.
    pub const PROGRAMS: [Self; 4] = [Self::Ours, Self::Etcd, Self::Kazoo, Self::Curator];

    pub fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor, by hand",
            Self::Ours => "zk-leader-run",
            Self::Etcd => "etcdctl lock",
            Self::Kazoo => "kazoo Election",
            Self::Curator => "Curator LeaderLatch",
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
    /// Of the programs.
    zookeeper: String,
    /// Of the benchmark itself, which nothing delays.
    direct: String,
    path: String,
    session_timeout: Duration,
    stamp: PathBuf,
    diary: PathBuf,
    mode: &'static str,
    /// The network namespace of the programs, unless it is the benchmark's own.
    namespace: Option<File>,
}

impl<'a> Election<'a> {
    /// `name` tells it from others of its kind; `mode` is the command's (see `stamp.rs`).
    pub fn new(
        kind: Kind,
        name: &str,
        setting: &'a Setting,
        session_timeout: Duration,
        mode: &'static str,
    ) -> io::Result<Self> {
        let server = &setting.servers.zookeeper.address;
        Self::at([server, server], kind, name, setting, session_timeout, mode)
    }

    /// On another `ZooKeeper`: as the programs reach it, and as the benchmark reaches it.
    pub fn at(
        [zookeeper, direct]: [&str; 2],
        kind: Kind,
        name: &str,
        setting: &'a Setting,
        session_timeout: Duration,
        mode: &'static str,
    ) -> io::Result<Self> {
        let Setting { servers, directory, .. } = setting;
        let path = format!("/{kind:?}-{name}").to_lowercase();
        let diary = directory.join(&path[1..]);
        let stamp = directory.join("stamp");
        if kind == Kind::Floor {
            floor::prepare(&mut Connection::open(direct, session_timeout)?, &path)?;
        }
        let (zookeeper, direct) = (zookeeper.to_owned(), direct.to_owned());
        Ok(Self { kind, servers, zookeeper, direct, path, session_timeout, stamp, diary, mode, namespace: None })
    }

    /// The programs run in this network namespace, the benchmark in another.
    pub fn inside(mut self, namespace: File) -> Self {
        self.namespace = Some(namespace);
        self
    }

    /// One more host. Its process leads a group of its own.
    pub fn spawn(&self) -> io::Result<Host> {
        let mut program = self.program()?;
        let log = File::options().append(true).create(true).open(self.diary.with_extension("log"))?;
        program.arg(&self.stamp).arg(&self.diary).args((!self.mode.is_empty()).then_some(self.mode));
        program.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
        let Some(namespace) = &self.namespace else {
            let spawned_at = monotonic();
            return Ok(Host { process: program.spawn()?, kind: self.kind, spawned_at });
        };
        let own = File::open("/proc/thread-self/ns/net")?;
        setns(namespace, CloneFlags::CLONE_NEWNET)?;
        let spawned_at = monotonic();
        let process = program.spawn();
        setns(own, CloneFlags::CLONE_NEWNET)?;
        Ok(Host { process: process?, kind: self.kind, spawned_at })
    }

    /// The command line up to the command.
    fn program(&self) -> io::Result<Command> {
        let (zookeeper, etcd) = (&self.zookeeper, &self.servers.etcd);
        let seconds = self.session_timeout.as_secs();
        let mut program;
        match self.kind {
            Kind::Floor => {
                program = Command::new(std::env::current_exe()?);
                program.args(["floor", zookeeper, &self.path]);
            }
            Kind::Ours => {
                program = Command::new(program_under_test());
                program.args(["--connect", zookeeper, "--path", &self.path]);
                program.args(["--session-timeout", &format!("{seconds}s"), "--"]);
            }
            Kind::Etcd => {
                program = Command::new("etcdctl");
                program.env("ETCDCTL_API", "3").args(["--endpoints", etcd]);
                program.args(["lock", "--ttl", &seconds.to_string(), &self.path]);
            }
            Kind::Kazoo => {
                program = Command::new(peers().join("python/bin/python"));
                program.arg(source("tests/peers/peer.py")).arg("kazoo-election");
                program.args([zookeeper, &self.path, "host", &(seconds * 1000).to_string()]);
            }
            Kind::Curator => {
                program = Command::new("java");
                program.args(JAVA_OPTIONS).arg("-cp").arg(format!("{}:{CURATOR}", peers().join("classes").display()));
                program.args(["Peer", "curator-latch", zookeeper, &self.path, "host", &(seconds * 1000).to_string()]);
            }
        }
        Ok(program)
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
        let ours = if matches!(self.kind, Kind::Floor | Kind::Ours) { "/election" } else { "" };
        let mut connection = Connection::open(&self.direct, Duration::from_secs(5))?;
        let contenders = connection.children(&format!("{}{ours}", self.path))?.len();
        connection.close().map(|()| contenders)
    }
}

/// As in `tests/peers/peer`, without the script: it starts fast, as its users would have it.
const JAVA_OPTIONS: [&str; 5] = [
    "-Xmx64m",
    "-Xshare:auto",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
];
const CURATOR: &str = "/usr/share/java/curator-recipes.jar:/usr/share/java/zookeeper-recipes-election.jar:\
                       /usr/share/java/zookeeper-recipes-lock.jar:/usr/share/java/slf4j-simple.jar";

/// What `tests/peers/peer --prepare` has made: `run.sh` says where.
fn peers() -> PathBuf {
    PathBuf::from(std::env::var("BENCH_PEERS").expect("BENCH_PEERS is set by benches/run.sh"))
}

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// `BENCH_PROGRAM` puts another build to the test.
fn program_under_test() -> String {
    std::env::var("BENCH_PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_zk-leader-run").to_owned())
}

/// Whatever commands of this election still run: some programs leave theirs.
impl Drop for Election<'_> {
    fn drop(&mut self) {
        let is_ours = |pid: i32| {
            fs::read_to_string(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| line.contains(&*self.diary.to_string_lossy()))
        };
        let started = self.stamps("start").into_iter().map(|stamp| stamp.pid);
        started.filter(|pid| is_ours(*pid)).for_each(|pid| send(pid, Signal::SIGKILL));
    }
}

/// One contender. Dropped: its whole group is killed; what else it has started, [`Election`] sees to.
pub struct Host {
    process: Child,
    kind: Kind,
    pub spawned_at: Duration,
}

impl Host {
    pub fn pid(&self) -> i32 {
        i32::try_from(self.process.id()).unwrap()
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

    /// The processes of the program itself, without its command.
    pub fn processes(&self, command: i32) -> Vec<i32> {
        let own = std::iter::once(self.pid());
        own.chain(processes::descendants(self.pid()).into_iter().filter(|pid| *pid != command)).collect()
    }

    pub fn wait(&mut self) -> io::Result<()> {
        self.process.wait().map(drop)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        kill(Pid::from_raw(-self.pid()), Signal::SIGKILL).ok();
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// The process may be gone.
pub fn send(pid: i32, signal: Signal) {
    kill(Pid::from_raw(pid), signal).ok();
}
