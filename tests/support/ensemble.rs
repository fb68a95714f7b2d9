//! Real `ZooKeeper` servers in a temporary directory, with a small tick; gone when dropped, or when the test dies.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::ports::Port;
use super::wait;

/// The server's `tickTime`. A session lives at most two ticks longer than its timeout.
pub const TICK: Duration = Duration::from_millis(200);

/// The server's `maxSessionTimeout`.
pub const LONGEST_SESSION: Duration = Duration::from_secs(600);

/// A server that is starting takes a four-letter word and never answers it.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);

/// The last two are for TLS: the manifest of the first forgets them.
const JARS: &str = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar:/usr/share/java/netty-codec.jar:\
                    /usr/share/java/netty-resolver.jar";
const HELP: &str = "these tests need a real ZooKeeper: apt-get install --no-install-recommends zookeeper libslf4j-java \
                    default-jre-headless (looked for `java` and /usr/share/java/zookeeper.jar)";
/// Fast to start, and fast enough for a test.
const JAVA_OPTIONS: [&str; 12] = [
    "-Xmx128m",
    "-Xshare:auto",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:CompileThresholdScaling=5", // A test asks too little for much of it to be worth compiling.
    "-Dzookeeper.admin.enableServer=false",
    "-Dzookeeper.forceSync=no",
    "-Dzookeeper.preAllocSize=64",
    "-Dzookeeper.4lw.commands.whitelist=*",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Djava.net.preferIPv4Stack=true",
    "-Dzookeeper.jmx.log4j.disable=true", // for 3.4
];

/// One to three real servers. Dropped: killed, and their files removed.
#[derive(Debug)]
pub struct Ensemble {
    // Dropped in this order: first the processes, then their files.
    servers: Vec<Server>,
    _directory: tempfile::TempDir,
}

impl Ensemble {
    /// One standalone server, ready.
    pub fn single() -> Self {
        Self::of(1)
    }

    /// That many servers, all of them ready.
    pub fn of(count: usize) -> Self {
        Self::built(count, &Build::default())
    }

    /// The same, built in another way.
    pub fn built(count: usize, build: &Build) -> Self {
        assert!(Path::new("/usr/share/java/zookeeper.jar").exists(), "{HELP}");
        let directory = tempfile::Builder::new().prefix("zk-leader-run-ensemble-").tempdir().unwrap();
        let ports: Vec<[Port; 3]> = (0..count).map(|_| [Port::reserve(), Port::reserve(), Port::reserve()]).collect();
        let mut members = String::new();
        for (index, [_, quorum, election]) in ports.iter().enumerate().filter(|_| count > 1) {
            writeln!(members, "server.{index}=127.0.0.1:{}:{}", quorum.number(), election.number()).unwrap();
        }
        let servers: Vec<Server> = ports
            .into_iter()
            .enumerate()
            .map(|(index, ports)| Server::new(index, ports, &members, build, directory.path()))
            .collect();
        for server in &servers {
            server.start();
        }
        let ensemble = Self { servers, _directory: directory };
        ensemble.wait_until_ready();
        ensemble
    }

    /// `host:port,…` of all servers, without a chroot.
    pub fn connect_string(&self) -> String {
        let addresses: Vec<_> = self.servers.iter().map(|server| server.address().to_string()).collect();
        addresses.join(",")
    }

    /// The server with this index, from 0.
    pub fn server(&self, index: usize) -> &Server {
        &self.servers[index]
    }

    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// Waits until every server serves.
    pub fn wait_until_ready(&self) {
        for server in &self.servers {
            server.wait_until_ready();
        }
    }

    /// The index of `ZooKeeper`'s own leader, if one of the servers says that it is it.
    pub fn leader(&self) -> Option<usize> {
        self.servers.iter().position(|server| matches!(server.mode().as_deref(), Some("leader" | "standalone")))
    }

    /// The index of a follower.
    pub fn follower(&self) -> Option<usize> {
        self.servers.iter().position(|server| server.mode().as_deref() == Some("follower"))
    }
}

/// What is special about the servers of an ensemble.
#[derive(Clone, Debug, Default)]
pub struct Build {
    /// More lines for `zoo.cfg`.
    pub config: String,
    /// More options for java.
    pub java: Vec<String>,
}

/// One server process. All methods take `&self`, so that a test can break one server while it talks to another.
#[derive(Debug)]
pub struct Server {
    ports: [Port; 3],
    config: PathBuf,
    log: PathBuf,
    java: Vec<String>,
    process: Mutex<Option<Process>>,
}

impl Server {
    fn new(index: usize, ports: [Port; 3], members: &str, build: &Build, directory: &Path) -> Self {
        let home = directory.join(index.to_string());
        std::fs::create_dir(&home).unwrap();
        std::fs::write(home.join("myid"), index.to_string()).unwrap();
        let (config, log) = (home.join("zoo.cfg"), home.join("log"));
        let text = format!(
            "tickTime={tick}\ninitLimit=100\nsyncLimit=25\nmaxSessionTimeout={longest}\nmaxClientCnxns=0\ndataDir={home}\n\
             clientPortAddress=127.0.0.1\nclientPort={port}\n{members}{more}\n",
            more = build.config,
            tick = TICK.as_millis(),
            longest = LONGEST_SESSION.as_millis(),
            home = home.display(),
            port = ports[0].number(),
        );
        std::fs::write(&config, text).unwrap();
        Self { ports, config, log, java: build.java.clone(), process: Mutex::new(None) }
    }

    /// Where it listens for clients.
    pub fn address(&self) -> SocketAddr {
        self.ports[0].address()
    }

    /// The process id, while it runs.
    pub fn pid(&self) -> Option<i32> {
        self.process.lock().unwrap().as_ref().map(|process| process.pid.as_raw())
    }

    /// SIGKILL; its files stay.
    pub fn kill(&self) {
        self.process.lock().unwrap().take();
    }

    /// SIGSTOP: it answers nothing, and its connections stay open. Its threads stop one after the other, after `kill(2)` has
    /// returned.
    pub fn pause(&self) {
        self.signal(Signal::SIGSTOP);
        let tasks = format!("/proc/{}/task", self.pid().expect("the server runs"));
        super::wait::until("all its threads have stopped", || {
            std::fs::read_dir(&tasks).unwrap().flatten().all(|task| {
                let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
                stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
            })
        });
    }

    /// SIGCONT.
    pub fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// From its next start on, it has this line in `zoo.cfg`, which counts before an earlier one.
    pub fn configure(&self, line: &str) {
        let text = std::fs::read_to_string(&self.config).unwrap();
        std::fs::write(&self.config, format!("{text}{line}\n")).unwrap();
    }

    /// Starts it again, with what it had on disk. Use [`Ensemble::wait_until_ready`] when the quorum matters.
    pub fn start(&self) {
        *self.process.lock().unwrap() = Some(Process::start(&self.config, &self.log, &self.java));
    }

    /// Kills it if it runs, starts it, and waits until it serves (which takes a quorum).
    pub fn restart(&self) {
        self.kill();
        self.start();
        self.wait_until_ready();
    }

    /// `standalone`, `leader` or `follower`; `None` while it does not serve.
    pub fn mode(&self) -> Option<String> {
        let answer = self.ask("srvr")?;
        answer.lines().find_map(|line| line.strip_prefix("Mode: ")).map(str::to_owned)
    }

    /// The answer to a four-letter word (`srvr`, `mntr`, `cons`, `dump`, `wchp`…).
    pub fn ask(&self, word: &str) -> Option<String> {
        let mut stream = TcpStream::connect_timeout(&self.address(), Duration::from_secs(1)).ok()?;
        stream.set_read_timeout(Some(ANSWER_WITHIN)).ok()?;
        stream.write_all(word.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    /// The number after `name` in `mntr`, such as `zk_packets_received`.
    pub fn metric(&self, name: &str) -> Option<u64> {
        let answer = self.ask("mntr")?;
        let line = answer.lines().find(|line| line.split_whitespace().next() == Some(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    }

    fn wait_until_ready(&self) {
        let ready = wait::held_within(2 * wait::LIMIT, || self.mode().is_some());
        assert!(ready, "the server did not come up; its log:\n{}", std::fs::read_to_string(&self.log).unwrap());
    }

    fn signal(&self, signal: Signal) {
        let process = self.process.lock().unwrap();
        kill(process.as_ref().expect("the server runs").pid, signal).unwrap();
    }
}

/// `WATCHDOG PID HOME`: the files go with the process, and their directory with the last of them.
const WATCHDOG: &str = r#"cat >/dev/null; kill -KILL "$0"; rm -rf "$1" || { sleep 1; rm -rf "$1"; }; rmdir "${1%/*}""#;

/// Debian's jars, behind those of another version if `tests/versions.sh` names some: the first one of a class counts.
fn class_path() -> String {
    std::env::var("ZOOKEEPER_JARS").map_or_else(|_| JARS.to_owned(), |jars| format!("{jars}:{JARS}"))
}

/// The option with which a server of Debian's starts sooner, if `tests/run.sh` has written its classes.
pub fn classes() -> Option<String> {
    let file = std::env::var("ZOOKEEPER_CLASSES").ok().filter(|_| std::env::var_os("ZOOKEEPER_JARS").is_none())?;
    Path::new(&file).exists().then(|| format!("-XX:SharedArchiveFile={file}"))
}

/// A running java. Dropped: killed and reaped. Should this process end before (it may hold an ensemble in a static), the
/// watchdog's standard input closes, and it does the killing and the cleaning.
#[derive(Debug)]
struct Process {
    pid: Pid,
    java: Child,
    watchdog: Child,
}

impl Process {
    fn start(config: &Path, log: &Path, options: &[String]) -> Self {
        let output = File::options().create(true).append(true).open(log).unwrap();
        let java = Command::new("java")
            .args(JAVA_OPTIONS)
            .args(classes())
            .args(options)
            .args(["-cp", &class_path(), "org.apache.zookeeper.server.quorum.QuorumPeerMain"])
            .arg(config)
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap_or_else(|error| panic!("{HELP}: {error}"));
        let watchdog = Command::new("sh")
            .args(["-c", WATCHDOG, &java.id().to_string()])
            .arg(config.parent().unwrap())
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { pid: Pid::from_raw(i32::try_from(java.id()).unwrap()), java, watchdog }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        for child in [&mut self.java, &mut self.watchdog] {
            child.kill().ok();
            child.wait().ok();
        }
    }
}
