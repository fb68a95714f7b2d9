//! What is measured, each round all kinds of programs one after the other.

use std::io;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::Results;
use crate::contender::{Election, Host, Kind, Stamp, monotonic, send};
use crate::figures::Series;
use crate::servers::Servers;
use crate::wait;

/// Nobody expires while the others are measured.
const LONG: Duration = Duration::from_secs(60);
/// From "in line" to "watches are armed, and all is calm".
const CALM: Duration = Duration::from_millis(150);

pub fn run(servers: &Servers, directory: &Path, rounds: usize) -> io::Result<Results> {
    let wanted = std::env::var("ONLY").unwrap_or_default();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.split(',').any(|only| only == name);
    let mut results = Results::new();
    if is_wanted("start") {
        results.push(("start to first instruction", starts(servers, directory, rounds)?));
    }
    if is_wanted("handover") {
        results.extend(handovers(servers, directory, rounds)?);
    }
    Ok(results)
}

fn elections<'a>(
    name: &str,
    servers: &'a Servers,
    directory: &Path,
    mode: &'static str,
) -> io::Result<Vec<Election<'a>>> {
    Kind::ALL.iter().map(|&kind| Election::new(kind, name, servers, directory, LONG, mode)).collect()
}

fn millis(length: Duration) -> f64 {
    length.as_secs_f64() * 1e3
}

/// Nobody else contends; the first round creates what is missing, and is not counted.
fn starts(servers: &Servers, directory: &Path, rounds: usize) -> io::Result<Vec<(Kind, Series)>> {
    let elections = elections("start", servers, directory, "exit")?;
    let mut series: Vec<_> = Kind::ALL.map(|kind| (kind, Series::default())).into();
    for round in 0..=rounds {
        for (election, (_, series)) in elections.iter().zip(&mut series) {
            let mut host = election.spawn()?;
            let started = election.until_started(round + 1);
            host.wait()?;
            if round > 0 {
                series.0.push(millis(started.at.saturating_sub(host.spawned_at)));
            }
            wait::pass(CALM / 5);
        }
    }
    Ok(series)
}

/// A leader and one who waits, again and again; every second time the leader is asked to stop, else its command ends.
fn handovers(servers: &Servers, directory: &Path, rounds: usize) -> io::Result<Results> {
    let elections = elections("handover", servers, directory, "")?;
    let mut pairs = elections.into_iter().map(Pair::new).collect::<io::Result<Vec<_>>>()?;
    let (mut on_sigterm, mut on_exit): (Vec<_>, Vec<_>) =
        Kind::ALL.map(|kind| ((kind, Series::default()), (kind, Series::default()))).into_iter().unzip();
    for round in 0..=rounds {
        for (index, pair) in pairs.iter_mut().enumerate() {
            let stopped = pair.hand_over(|leader, command| leader.terminate(command.pid))?;
            let ended = pair.hand_over(|_, command| {
                let at = monotonic();
                send(command.pid, Signal::SIGTERM);
                at
            })?;
            if round > 0 {
                on_sigterm[index].1.0.push(millis(stopped));
                on_exit[index].1.0.push(millis(ended));
            }
        }
    }
    Ok(vec![("handover on SIGTERM", on_sigterm), ("handover when the command ends", on_exit)])
}

struct Pair<'a> {
    election: Election<'a>,
    leader: Host,
    next: Host,
    starts: usize,
}

impl<'a> Pair<'a> {
    fn new(election: Election<'a>) -> io::Result<Self> {
        let leader = election.spawn()?;
        election.until_started(1);
        let next = election.spawn()?;
        Ok(Self { election, leader, next, starts: 1 })
    }

    /// From what `end` does to the leader, to the first instruction of the next one's command. Another one lines up for it.
    fn hand_over(&mut self, end: impl FnOnce(&Host, Stamp) -> Duration) -> io::Result<Duration> {
        self.election.until_in_line(2);
        wait::pass(CALM);
        let command = self.election.until_started(self.starts);
        let ended_at = end(&self.leader, command);
        self.starts += 1;
        let started = self.election.until_started(self.starts);
        self.leader.wait()?;
        self.leader = std::mem::replace(&mut self.next, self.election.spawn()?);
        Ok(started.at.saturating_sub(ended_at))
    }
}
