//! How long it takes until the command runs: from nothing, and from another host. Each round all kinds, one after the other.

use std::io;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::contender::{Election, Host, Kind, Stamp, monotonic, send};
use crate::figures::{Series, millis};
use crate::setting::{CALM, LONG, Setting};
use crate::wait;

/// What was measured of each kind, in milliseconds.
pub struct Latency {
    pub title: &'static str,
    pub of: Vec<(Kind, Series)>,
}

impl Latency {
    fn new(title: &'static str) -> Self {
        Self { title, of: Kind::ALL.map(|kind| (kind, Series::default())).into() }
    }

    pub fn series(&self, kind: Kind) -> Option<&Series> {
        self.of.iter().find(|(of, _)| *of == kind).map(|(_, series)| series)
    }
}

fn elections<'a>(setting: &'a Setting, name: &str, mode: &'static str) -> io::Result<Vec<Election<'a>>> {
    Kind::ALL.iter().map(|&kind| Election::new(kind, name, setting, LONG, mode)).collect()
}

/// Nobody else contends. The first round creates what is missing, and is not counted.
pub fn starts(setting: &Setting) -> io::Result<Latency> {
    let elections = elections(setting, "start", "exit")?;
    let mut latency = Latency::new("Start");
    for round in 0..=setting.rounds {
        for (election, (_, series)) in elections.iter().zip(&mut latency.of) {
            let mut host = election.spawn()?;
            let started = election.until_started(round + 1);
            host.wait()?;
            if round > 0 {
                series.0.push(millis(started.at.saturating_sub(host.spawned_at)));
            }
            wait::pass(CALM / 5);
        }
    }
    Ok(latency)
}

/// A leader and one who waits, again and again: first the leader is asked to stop, then the next one's command ends.
pub fn handovers(setting: &Setting) -> io::Result<[Latency; 2]> {
    let mut pairs = elections(setting, "handover", "")?.into_iter().map(Pair::new).collect::<io::Result<Vec<_>>>()?;
    let mut latencies = [Latency::new("Handover on SIGTERM"), Latency::new("Handover when the command ends")];
    for round in 0..=setting.rounds {
        for (index, pair) in pairs.iter_mut().enumerate() {
            let stopped = pair.hand_over(|leader, command| leader.terminate(command.pid))?;
            let ended = pair.hand_over(|_, command| end(command))?;
            if round > 0 {
                latencies[0].of[index].1.0.push(millis(stopped));
                latencies[1].of[index].1.0.push(millis(ended));
            }
        }
    }
    Ok(latencies)
}

/// It ends by itself, as far as the program can tell.
fn end(command: Stamp) -> Duration {
    let at = monotonic();
    send(command.pid, Signal::SIGTERM);
    at
}

pub struct Pair<'a> {
    leader: Host,
    next: Host,
    starts: usize,
    election: Election<'a>,
}

impl<'a> Pair<'a> {
    pub fn new(election: Election<'a>) -> io::Result<Self> {
        let leader = election.spawn()?;
        election.until_started(1);
        let next = election.spawn()?;
        election.until_in_line(2);
        Ok(Self { leader, next, starts: 1, election })
    }

    /// From what `end` does to the leader, to the first instruction of the next one's command. Then another one lines up,
    /// and the others' turn comes when it is done: a JVM that starts would disturb them.
    pub fn hand_over(&mut self, end: impl FnOnce(&Host, Stamp) -> Duration) -> io::Result<Duration> {
        wait::pass(CALM);
        let command = self.election.until_started(self.starts);
        let ended_at = end(&self.leader, command);
        self.starts += 1;
        let started = self.election.until_started(self.starts);
        self.leader.wait()?;
        self.leader = std::mem::replace(&mut self.next, self.election.spawn()?);
        self.election.until_in_line(2);
        Ok(started.at.saturating_sub(ended_at))
    }
}
