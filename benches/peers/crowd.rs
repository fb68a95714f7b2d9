//! Many contenders on one path: what a handover takes, and what it costs the server.

use std::io;
use std::time::Duration;

use crate::contender::{Election, Host, Kind};
use crate::figures::{Series, millis};
use crate::processes::{parent, private_memory};
use crate::setting::{CROWD_SESSION, Setting};
use crate::wait;

pub struct Crowd {
    pub kind: Kind,
    pub contenders: usize,
    /// On SIGTERM of the leader, in milliseconds.
    pub handover: Series,
    /// That `ZooKeeper` received within [`WINDOW`] of it, less what it receives anyway; nothing of etcd.
    pub packets: Series,
    /// Of one contender in MiB, not shared with any other process.
    pub memory: f64,
}

/// Whom to measure with how many: a Python or a Java process for each of a thousand does not fit into this machine.
const CROWDS: [(Kind, &[usize]); 5] = [
    (Kind::Floor, &[10, 100, 1000]),
    (Kind::Ours, &[10, 100, 1000]),
    (Kind::Etcd, &[10, 100]),
    (Kind::Kazoo, &[10]),
    (Kind::Curator, &[10]),
];
/// So many are started at once.
const BATCH: usize = 25;
const HANDOVERS: usize = 7;
/// All that belongs to a handover has arrived.
const WINDOW: Duration = Duration::from_secs(1);

pub fn crowds(setting: &Setting) -> io::Result<Vec<Crowd>> {
    let sizes = CROWDS.iter().flat_map(|(kind, sizes)| sizes.iter().map(|size| (*kind, *size)));
    sizes.filter(|(_, size)| *size <= setting.largest_crowd).map(|(kind, size)| crowd(setting, kind, size)).collect()
}

fn crowd(setting: &Setting, kind: Kind, contenders: usize) -> io::Result<Crowd> {
    let election = Election::new(kind, &format!("crowd-{contenders}"), setting, CROWD_SESSION, "")?;
    let mut hosts = Vec::new();
    while hosts.len() < contenders {
        for _ in 0..BATCH.min(contenders - hosts.len()) {
            hosts.push(election.spawn()?);
        }
        election.until_in_line(hosts.len());
    }
    election.until_started(1);
    wait::pass(WINDOW);
    let memory = memory(&hosts, election.until_started(1).pid);
    let (mut handover, mut packets) = (Series::default(), Series::default());
    for count in 1..=HANDOVERS {
        let (before, background) = setting.servers.zookeeper.packets_in(WINDOW)?;
        let command = election.until_started(count);
        let leader = leader_of(&mut hosts, command.pid);
        let ended_at = leader.terminate(command.pid);
        let started = election.until_started(count + 1);
        handover.0.push(millis(started.at.saturating_sub(ended_at)));
        wait::pass(WINDOW);
        packets.0.push(setting.servers.zookeeper.packets()? - before - background);
    }
    Ok(Crowd {
        kind,
        contenders,
        handover,
        packets: if kind == Kind::Etcd { Series::default() } else { packets },
        memory,
    })
}

/// The command is a child or a grandchild of its host.
fn leader_of(hosts: &mut Vec<Host>, command: i32) -> Host {
    let mut pid = command;
    while pid > 1 {
        if let Some(at) = hosts.iter().position(|host| host.pid() == pid) {
            return hosts.swap_remove(at);
        }
        pid = parent(pid);
    }
    panic!("nobody has started the command {command}");
}

/// On the average.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn memory(hosts: &[Host], command: i32) -> f64 {
    let pids = hosts.iter().flat_map(|host| host.processes(command));
    let bytes: u64 = pids.map(private_memory).sum();
    bytes as f64 / hosts.len() as f64 / f64::from(1 << 20)
}
