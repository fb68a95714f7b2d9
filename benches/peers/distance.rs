//! A server that is 20 ms away: how many round trips until a command runs? The programs and the server are in network namespaces of
//! their own; between them is a delay line.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::geteuid;

use crate::contender::{Election, Kind, send};
use crate::figures::{Series, millis};
use crate::latency::Pair;
use crate::report::with_quartiles;
use crate::servers::ZooKeeper;
use crate::setting::{CALM, LONG, Setting};
use crate::wait;

pub const ROUND_TRIP: Duration = Duration::from_millis(20);
const KINDS: [Kind; 3] = [Kind::Floor, Kind::Ours, Kind::Kazoo];
/// Of the server, and of the programs.
const ADDRESSES: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
const PORT: u16 = 2181;
/// Watches are armed, the next in line has looked, and what is written beside the election was written.
const FAR_CALM: Duration = Duration::from_secs(1);

/// Of one kind, in round trips.
pub struct Distance {
    pub kind: Kind,
    /// The first start in a new election, which the floor cannot do.
    pub new: Series,
    pub start: Series,
    pub handover: Series,
    /// `kill -9` of the program. The peers' next in line would wait for the session.
    pub kill: Series,
}

/// Nothing without root, who alone may make namespaces and devices.
pub fn distances(setting: &Setting) -> io::Result<Vec<Distance>> {
    if !geteuid().is_root() {
        return Ok(Vec::new());
    }
    let far = Far::new(setting)?;
    let (mut server, address) = (None, format!("{}:{PORT}", ADDRESSES[0]));
    far.at_the_server(|| {
        let started = ZooKeeper::start(&setting.directory.join("zookeeper-far"), address.clone())?;
        started.until_up()?;
        started.warm_up()?;
        server = Some(started);
        Ok(())
    })?;
    let _server = server;
    let new = |kind| Distance {
        kind,
        new: Series::default(),
        start: Series::default(),
        handover: Series::default(),
        kill: Series::default(),
    };
    let mut distances = KINDS.map(new);
    far.at_the_server(|| {
        for round in 0..=setting.rounds.div_ceil(2) {
            for distance in &mut distances {
                measure(&far, setting, &address, distance, round)?;
            }
        }
        Ok(())
    })?;
    Ok(distances.into())
}

fn round_trips(length: Duration) -> f64 {
    millis(length) / millis(ROUND_TRIP)
}

/// The first round is not counted.
fn measure(far: &Far, setting: &Setting, address: &str, distance: &mut Distance, round: usize) -> io::Result<()> {
    let kind = distance.kind;
    let mut note = |series: fn(&mut Distance) -> &mut Series, took: Duration| {
        if round > 0 {
            series(distance).0.push(round_trips(took));
        }
    };
    let election = |name: &str, mode| {
        let name = format!("far-{name}-{round}");
        Ok::<_, io::Error>(Election::at([address, address], kind, &name, setting, LONG, mode)?.inside(far.programs()?))
    };
    let fresh = election("new", "exit")?;
    for (nth, series) in [(1, (|of| &mut of.new) as fn(&mut Distance) -> &mut Series), (2, |of| &mut of.start)] {
        let mut host = fresh.spawn()?;
        let started = fresh.until_started(nth);
        host.wait()?;
        if nth > 1 || kind != Kind::Floor {
            note(series, started.at.saturating_sub(host.spawned_at));
        }
        wait::pass(CALM);
    }
    let mut pair = Pair::new(election("pair", "")?)?;
    wait::pass(FAR_CALM);
    note(|of| &mut of.handover, pair.hand_over(|leader, command| leader.terminate(command.pid))?);
    if kind == Kind::Ours {
        wait::pass(FAR_CALM);
        let killed = pair.hand_over(|leader, _| {
            let at = crate::contender::monotonic();
            send(leader.pid(), nix::sys::signal::Signal::SIGKILL);
            at
        });
        note(|of| &mut of.kill, killed?);
    }
    Ok(())
}

/// Two namespaces with a delay line between them. Dropped: gone.
struct Far {
    own: File,
    /// Of the server, and of the programs.
    namespaces: [File; 2],
    line: Child,
}

fn present() -> io::Result<File> {
    File::open("/proc/thread-self/ns/net")
}

fn enter(namespace: &File) -> io::Result<()> {
    setns(namespace, CloneFlags::CLONE_NEWNET).map_err(io::Error::from)
}

fn ip(arguments: &[&str]) -> io::Result<()> {
    let done = Command::new("ip").args(arguments).status()?.success();
    if done { Ok(()) } else { Err(io::Error::other(format!("ip {}", arguments.join(" ")))) }
}

impl Far {
    fn new(setting: &Setting) -> io::Result<Self> {
        let own = present()?;
        let make = || {
            unshare(CloneFlags::CLONE_NEWNET)?;
            present()
        };
        let namespaces = [make()?, make()?];
        enter(&own)?;
        let path = |file: &File| format!("/proc/{}/fd/{}", std::process::id(), std::os::fd::AsRawFd::as_raw_fd(file));
        let mut line = Command::new(setting.directory.join("delay"))
            .arg((ROUND_TRIP / 2).as_micros().to_string())
            .args(namespaces.each_ref().map(path))
            .stdout(Stdio::piped())
            .spawn()?;
        let mut ready = String::new();
        BufReader::new(line.stdout.take().expect("it is piped")).read_line(&mut ready)?;
        let far = Self { own, namespaces, line };
        for (namespace, address) in far.namespaces.iter().zip(ADDRESSES) {
            far.inside(namespace, || {
                ip(&["address", "add", &format!("{address}/30"), "dev", "line"])?;
                ip(&["link", "set", "line", "up"])?;
                ip(&["link", "set", "lo", "up"])
            })?;
        }
        Ok(far)
    }

    fn inside<T>(&self, namespace: &File, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        enter(namespace)?;
        let done = work();
        enter(&self.own)?;
        done
    }

    fn at_the_server<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.inside(&self.namespaces[0], work)
    }

    fn programs(&self) -> io::Result<File> {
        self.namespaces[1].try_clone()
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        self.line.kill().ok();
        self.line.wait().ok();
    }
}

pub fn table(distances: &[Distance]) -> String {
    let mut text = "### A server 20 ms away: round trips of 20 ms, program starts included\n\n| | start in a new election | start | handover on SIGTERM | `kill -9` of the program |\n|---|---|---|---|---|\n".to_owned();
    for Distance { kind, new, start, handover, kill } in distances {
        let [new, start, handover, kill] = [new, start, handover, kill].map(with_quartiles);
        writeln!(text, "| {} | {new} | {start} | {handover} | {kill} |", kind.name()).unwrap();
    }
    text
}
