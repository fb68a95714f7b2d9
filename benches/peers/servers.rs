//! The two servers: `ZooKeeper` as Debian ships it and etcd, both standalone, both with their files in the same place.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
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

pub struct Servers {
    pub zookeeper: String,
    pub etcd: String,
    processes: Vec<Child>,
    _ports: [Port; 3],
}

impl Servers {
    /// Both up and warm.
    pub fn start(directory: &Path) -> io::Result<Self> {
        let ports = [Port::reserve(), Port::reserve(), Port::reserve()];
        let [zookeeper, etcd, peer] = ports.each_ref().map(|port| port.address().to_string());
        let (java, zookeeper_log) = zookeeper_in(directory, &ports[0])?;
        let data = directory.join("etcd");
        let log = File::create(directory.join("etcd.log"))?;
        let daemon = Command::new("etcd")
            .arg("--data-dir")
            .arg(data)
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
        let servers = Self { zookeeper, etcd, processes: vec![java, daemon], _ports: ports };
        let up = wait::held_within(UP_WITHIN, || servers.ask("srvr").is_ok_and(|answer| answer.contains("Mode: ")));
        assert!(up, "ZooKeeper did not come up: {}", fs::read_to_string(zookeeper_log)?);
        wait::until("etcd is up", || servers.etcdctl(&["endpoint", "health"]).is_ok_and(|(healthy, _)| healthy));
        servers.warm_up()?;
        Ok(servers)
    }

    /// Whether it succeeded, and what it said.
    pub fn etcdctl(&self, arguments: &[&str]) -> io::Result<(bool, String)> {
        let mut etcdctl = Command::new("etcdctl");
        let output = etcdctl.env("ETCDCTL_API", "3").args(["--endpoints", &self.etcd]).args(arguments).output()?;
        Ok((output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned()))
    }

    /// `ZooKeeper`'s answer to a four-letter word. One that is starting takes it, and never answers.
    pub fn ask(&self, word: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(&self.zookeeper)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        stream.write_all(word.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map(|_| answer)
    }

    /// That `ZooKeeper` has received so far.
    pub fn packets(&self) -> io::Result<f64> {
        let answer = self.ask("mntr")?;
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

    fn warm_up(&self) -> io::Result<()> {
        let mut connection = Connection::open(&self.zookeeper, UP_WITHIN)?;
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

impl Drop for Servers {
    fn drop(&mut self) {
        for process in &mut self.processes {
            process.kill().ok();
            process.wait().ok();
        }
    }
}

fn zookeeper_in(directory: &Path, port: &Port) -> io::Result<(Child, std::path::PathBuf)> {
    let data = directory.join("zookeeper");
    fs::create_dir_all(&data)?;
    let (config, log) = (directory.join("zoo.cfg"), directory.join("zookeeper.log"));
    let text = format!(
        "tickTime=2000\nmaxSessionTimeout=600000\nmaxClientCnxns=0\ndataDir={}\nclientPortAddress=127.0.0.1\nclientPort={}\n\
         admin.enableServer=false\n4lw.commands.whitelist=*\n",
        data.display(),
        port.number()
    );
    fs::write(&config, text)?;
    let output = File::create(&log)?;
    let java = Command::new("java")
        .args(["-Xms256m", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", JARS])
        .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain")
        .arg(config)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()?;
    Ok((java, log))
}
