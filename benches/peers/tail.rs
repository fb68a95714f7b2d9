//! Many handovers in a row: how much longer than usual do the slowest take, directly and behind a TCP proxy?

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::process::{Child, Command, Stdio};

use crate::contender::{Election, Kind};
use crate::figures::{Series, millis};
use crate::latency::Pair;
use crate::ports::Port;
use crate::report::short;
use crate::setting::{LONG, Setting};
use crate::wait;

const HANDOVERS_PER_ROUND: usize = 10;
const KINDS: [Kind; 2] = [Kind::Ours, Kind::Kazoo];

pub struct Tail {
    pub kind: Kind,
    pub by_proxy: bool,
    /// On SIGTERM, in milliseconds.
    pub handovers: Series,
}

pub fn tails(setting: &Setting) -> io::Result<Vec<Tail>> {
    let server = &setting.servers.zookeeper.address;
    let proxy = Proxy::to(server, setting)?;
    let mut tails = Vec::new();
    let mut pairs = Vec::new();
    for kind in KINDS {
        for (name, through) in [("tail", server), ("tail-proxy", &proxy.address)] {
            tails.push(Tail { kind, by_proxy: through != server, handovers: Series::default() });
            pairs.push(Pair::new(Election::at([through, server], kind, name, setting, LONG, "")?)?);
        }
    }
    for round in 0..=setting.rounds * HANDOVERS_PER_ROUND {
        for (pair, tail) in pairs.iter_mut().zip(&mut tails) {
            let took = pair.hand_over(|leader, command| leader.terminate(command.pid))?;
            if round > 0 {
                tail.handovers.0.push(millis(took));
            }
        }
    }
    Ok(tails)
}

/// haproxy, in TCP mode.
struct Proxy {
    address: String,
    process: Child,
    _port: Port,
}

impl Proxy {
    fn to(server: &str, setting: &Setting) -> io::Result<Self> {
        let port = Port::reserve();
        let address = port.address().to_string();
        let config = setting.directory.join("haproxy.cfg");
        let text = format!(
            "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 10m\n  timeout server 10m\n\
             listen zookeeper\n  bind {address}\n  server only {server}\n"
        );
        fs::write(&config, text)?;
        let mut haproxy = Command::new("haproxy");
        let haproxy = haproxy.arg("-db").arg("-f").arg(config).stdin(Stdio::null()).stdout(Stdio::null());
        let process = haproxy.stderr(Stdio::null()).spawn()?;
        let proxy = Self { address, process, _port: port };
        wait::until("haproxy listens", || std::net::TcpStream::connect(&proxy.address).is_ok());
        Ok(proxy)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

pub fn table(tails: &[Tail]) -> String {
    let mut text = "### Many handovers in a row, on SIGTERM\n\n| | | handovers | ms: median | p99 | p99 × median | slowest |\n|---|---|---|---|---|---|---|\n".to_owned();
    for Tail { kind, by_proxy, handovers } in tails {
        let at = |share| handovers.quantile(share).unwrap_or_default();
        let (median, p99, slowest) = (at(0.5), at(0.99), at(1.0));
        let (who, how, count) = (kind.name(), if *by_proxy { "behind haproxy" } else { "directly" }, handovers.0.len());
        let times = p99 / median;
        let [median, p99, slowest] = [median, p99, slowest].map(short);
        writeln!(text, "| {who} | {how} | {count} | {median} | {p99} | {times:.1} | {slowest} |").unwrap();
    }
    text
}
