//! Three real `ZooKeeper` servers, each in a namespace of its own.
//!
//! Never: a server that is waited for; who needs the quorum looks at [`super::watch`].

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::inside::{self, Inside};
use super::lab::Node;
use super::network::CLIENT_PORT;
use crate::support::ensemble;

/// The servers' `tickTime`.
pub const TICK: Duration = Duration::from_millis(250);
/// S = 2.5 s: a server that is cut off goes on answering reads for longer than the sessions live (T49).
const SYNC_LIMIT: u32 = 10;

const JARS: &str = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar";
const JAVA_OPTIONS: [&str; 12] = [
    "-Xmx96m",
    "-Xshare:auto",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dzookeeper.admin.enableServer=false",
    "-Dzookeeper.forceSync=no",
    "-Dzookeeper.preAllocSize=64",
    "-Dzookeeper.4lw.commands.whitelist=srvr",
    // Of a packet into a black hole nobody hears; elections among the others shall not wait for it.
    "-Dzookeeper.cnxTimeout=500",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=info",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Djava.net.preferIPv4Stack=true",
];

#[derive(Debug)]
pub struct Ensemble {
    servers: Vec<Server>,
}

#[derive(Debug)]
struct Server {
    node: Node,
    home: PathBuf,
    log: PathBuf,
    agent: Option<String>,
    process: Mutex<Process>,
}

#[derive(Debug, Default)]
struct Process {
    java: Option<Child>,
    paused: bool,
}

/// What a server says it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Leader,
    Follower,
    /// It does not serve, or does not answer.
    Away,
}

impl Ensemble {
    pub fn start(nodes: &[Node], directory: &Path, logs: &Path) -> Self {
        assert!(
            Path::new("/usr/share/java/zookeeper.jar").exists(),
            "chaos needs real ZooKeeper servers: apt-get install --no-install-recommends libzookeeper-java default-jre-headless"
        );
        let mut members = String::new();
        for (index, node) in nodes.iter().enumerate() {
            writeln!(members, "server.{index}={}:2888:3888", node.address).unwrap();
        }
        let servers =
            nodes.iter().enumerate().map(|(index, node)| Server::prepare(index, node, &members, directory, logs));
        let ensemble = Self { servers: servers.collect() };
        ensemble.servers.iter().for_each(Server::start);
        ensemble
    }

    /// SIGKILL; its files stay.
    pub fn kill(&self, index: usize) {
        self.servers[index].end();
    }

    /// SIGSTOP: it answers nothing, and its connections stay open.
    pub fn pause(&self, index: usize) {
        self.servers[index].pause();
    }

    /// From now on until all are healed.
    pub fn spoil(&self, index: usize, inside: Inside) {
        inside.switch_on(&self.servers[index].home);
    }

    pub fn has_struck(&self, inside: Inside) -> bool {
        self.servers.iter().any(|server| inside.has_struck(&server.home))
    }

    /// All run again.
    pub fn heal(&self) {
        self.servers.iter().for_each(Server::heal);
    }

    pub fn is_up(&self, index: usize) -> bool {
        let process = self.servers[index].process.lock().unwrap();
        process.java.is_some() && !process.paused
    }

    /// It is up, and nothing inside of it is broken.
    pub fn is_well(&self, index: usize) -> bool {
        self.is_up(index) && !inside::is_any_on(&self.servers[index].home)
    }

    /// Asks a server, from the namespace of the calling thread.
    pub fn mode(&self, index: usize) -> Mode {
        if !self.is_up(index) {
            return Mode::Away;
        }
        let answer = ask(self.servers[index].node.address.into()).unwrap_or_default();
        match answer.lines().find_map(|line| line.strip_prefix("Mode: ")) {
            Some("leader") => Mode::Leader,
            Some("follower") => Mode::Follower,
            _ => Mode::Away,
        }
    }
}

impl Drop for Ensemble {
    fn drop(&mut self) {
        self.servers.iter().for_each(Server::end);
    }
}

impl Server {
    fn prepare(index: usize, node: &Node, members: &str, directory: &Path, logs: &Path) -> Self {
        let home = directory.join(&node.name);
        fs::create_dir(&home).unwrap();
        fs::write(home.join("myid"), index.to_string()).unwrap();
        let text = format!(
            "tickTime={tick}\ninitLimit=40\nsyncLimit={SYNC_LIMIT}\nmaxClientCnxns=0\ndataDir={home}\n\
             clientPortAddress={address}\nclientPort={CLIENT_PORT}\n{members}",
            tick = TICK.as_millis(),
            home = home.display(),
            address = node.address,
        );
        fs::write(home.join("zoo.cfg"), text).unwrap();
        let log = logs.join(format!("{}.log", node.name));
        let agent = inside::agent(&home);
        Self { node: node.clone(), home, log, agent, process: Mutex::default() }
    }

    fn start(&self) {
        let output = File::options().create(true).append(true).open(&self.log).unwrap();
        let java = self
            .node
            .command(Path::new("java"))
            .args(JAVA_OPTIONS)
            .args(ensemble::classes())
            .args(&self.agent)
            .args(["-cp", &jars(), "org.apache.zookeeper.server.quorum.QuorumPeerMain"])
            .arg(self.home.join("zoo.cfg"))
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        *self.process.lock().unwrap() = Process { java: Some(java), paused: false };
    }

    fn end(&self) {
        let process = std::mem::take(&mut *self.process.lock().unwrap());
        if let Some(mut java) = process.java {
            java.kill().unwrap();
            java.wait().unwrap();
        }
    }

    fn pause(&self) {
        let mut process = self.process.lock().unwrap();
        process.paused = process.signal(Signal::SIGSTOP);
    }

    fn heal(&self) {
        inside::switch_off(&self.home);
        let mut process = self.process.lock().unwrap();
        if process.paused {
            process.signal(Signal::SIGCONT);
            process.paused = false;
        }
        let gone = process.java.as_mut().is_none_or(|java| java.try_wait().unwrap().is_some());
        drop(process);
        if gone {
            self.start();
        }
    }
}

impl Process {
    /// Whether there was one to signal.
    fn signal(&self, signal: Signal) -> bool {
        self.java.as_ref().is_some_and(|java| kill(Pid::from_raw(i32::try_from(java.id()).unwrap()), signal).is_ok())
    }
}

/// Other servers than Debian's, if any: see tests/versions.sh.
fn jars() -> String {
    std::env::var("ZOOKEEPER_JARS").map_or_else(|_| JARS.to_owned(), |jars| format!("{jars}:{JARS}"))
}

fn ask(address: std::net::IpAddr) -> Option<String> {
    const LIMIT: Duration = Duration::from_millis(400);
    let mut stream = TcpStream::connect_timeout(&SocketAddr::new(address, CLIENT_PORT), LIMIT).ok()?;
    stream.set_read_timeout(Some(LIMIT)).ok()?;
    stream.write_all(b"srvr").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
