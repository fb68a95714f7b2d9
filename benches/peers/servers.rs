//! The servers: `ZooKeeper` as Debian ships it and etcd, all standalone, all with their files in the same place.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::jute::{Connection, Fields, request};
use crate::ports::Port;
use crate::wait;

const JARS: &str = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar";
/// So many writes until the JIT compiler has seen what matters.
const WARM_UP: usize = 3000;
const UP_WITHIN: Duration = Duration::from_secs(30);
const ANSWER_WITHIN: Duration = Duration::from_millis(500);

/// etcd, and the `ZooKeeper` of all that need no other.
pub struct Servers {
    pub zookeeper: ZooKeeper,
    pub etcd: String,
    daemon: Child,
    _ports: [Port; 3],
}

impl Servers {
    /// Both up and warm.
    pub fn start(directory: &Path) -> io::Result<Self> {
        let ports = [Port::reserve(), Port::reserve(), Port::reserve()];
        let [zookeeper, etcd, peer] = ports.each_ref().map(|port| port.address().to_string());
        let zookeeper = ZooKeeper::start(&directory.join("zookeeper"), zookeeper)?;
        let log = File::create(directory.join("etcd.log"))?;
        let daemon = Command::new("etcd")
            .arg("--data-dir")
            .arg(directory.join("etcd"))
            .args([
                "--listen-client-urls",
                &format!("http://{etcd}"),
                "--advertise-client-urls",
                &format!("http://{etcd}"),
            ])
            .args(["--listen-peer-urls", &format!("http://{peer}")])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let servers = Self { zookeeper, etcd, daemon, _ports: ports };
        servers.zookeeper.until_up()?;
        wait::until("etcd is up", || servers.etcdctl(&["endpoint", "health"]).is_ok_and(|(healthy, _)| healthy));
        servers.zookeeper.warm_up()?;
        Ok(servers)
    }

    /// Whether it succeeded, and what it said.
    pub fn etcdctl(&self, arguments: &[&str]) -> io::Result<(bool, String)> {
        let mut etcdctl = Command::new("etcdctl");
        let output = etcdctl.env("ETCDCTL_API", "3").args(["--endpoints", &self.etcd]).args(arguments).output()?;
        Ok((output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned()))
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.daemon.kill().ok();
        self.daemon.wait().ok();
    }
}

/// One server. It runs in the network namespace of the thread that starts it.
pub struct ZooKeeper {
    /// `host:port`.
    pub address: String,
    directory: PathBuf,
    process: Option<Child>,
}

impl ZooKeeper {
    /// Not up yet.
    pub fn start(directory: &Path, address: String) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let (host, port) = address.split_once(':').ok_or_else(|| io::Error::other("host:port"))?;
        let text = format!(
            "tickTime=2000\nmaxSessionTimeout=600000\nmaxClientCnxns=0\ndataDir={}\nclientPortAddress={host}\nclientPort={port}\n\
             admin.enableServer=false\n4lw.commands.whitelist=*\n",
            directory.display(),
        );
        fs::write(directory.join("zoo.cfg"), text)?;
        let mut server = Self { address, directory: directory.to_owned(), process: None };
        server.go_on()?;
        Ok(server)
    }

    /// Starts it, or starts it again with its data.
    pub fn go_on(&mut self) -> io::Result<()> {
        let output = File::options().append(true).create(true).open(self.log())?;
        let java = Command::new("java")
            .args(["-Xms256m", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", JARS])
            .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain")
            .arg(self.directory.join("zoo.cfg"))
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()?;
        self.process = Some(java);
        Ok(())
    }

    /// As a crash: without a word to its clients.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().ok();
            process.wait().ok();
        }
    }

    fn log(&self) -> PathBuf {
        self.directory.join("log")
    }

    pub fn until_up(&self) -> io::Result<()> {
        let up = wait::held_within(UP_WITHIN, || self.serves(ANSWER_WITHIN));
        assert!(up, "ZooKeeper did not come up: {}", fs::read_to_string(self.log())?);
        Ok(())
    }

    /// Whether it says within that time that it serves.
    pub fn serves(&self, within: Duration) -> bool {
        self.ask("srvr", within).is_ok_and(|answer| answer.contains("Mode: "))
    }

    /// Its answer to a four-letter word. One that is starting takes it, and never answers.
    fn ask(&self, word: &str, within: Duration) -> io::Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(within))?;
        stream.write_all(word.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map(|_| answer)
    }

    /// That it has received so far.
    pub fn packets(&self) -> io::Result<f64> {
        let answer = self.ask("mntr", ANSWER_WITHIN)?;
        let line = answer.lines().find_map(|line| line.strip_prefix("zk_packets_received"));
        line.and_then(|rest| rest.trim().parse().ok()).ok_or_else(|| io::Error::other("mntr counts no packets"))
    }

    /// The same after that time, and how many have come meanwhile, without being asked for.
    pub fn packets_in(&self, window: Duration) -> io::Result<(f64, f64)> {
        let before = self.packets()?;
        wait::pass(window);
        let after = self.packets()?;
        Ok((after, after - before))
    }

    pub fn warm_up(&self) -> io::Result<()> {
        let mut connection = Connection::open(&self.address, UP_WITHIN)?;
        connection.make("/warm", b"")?;
        let set = Fields::default().text("/warm").bytes(&[b' '; 320]).int(-1);
        let multi = Fields::default().operation(request::SET_DATA, &set).end();
        for _ in 0..WARM_UP {
            connection.call(request::MULTI, &multi)?;
            connection.call(request::GET_DATA, &Fields::default().text("/warm").flag(false))?;
            connection.children("/")?;
        }
        Ok(())
    }
}

impl Drop for ZooKeeper {
    fn drop(&mut self) {
        self.kill();
    }
}
