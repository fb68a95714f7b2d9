//! A server that commits slowly all the time, and one whose answers are lost: for how much of the time does a command run, and how
//! soon after the fault is there a leader?

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use crate::contender::{Election, Host, Kind, Stamp, monotonic};
use crate::figures::{Series, millis};
use crate::line::{Faults, Line};
use crate::report::{short, with_quartiles};
use crate::setting::{SHORT, Setting};
use crate::wait;

/// Of T.
const COMMITS: [f64; 5] = [0.1, 0.2, 0.3, 0.35, 0.4];
const LASTS: Duration = Duration::from_secs(30);
const SETTLED: Duration = Duration::from_secs(2);
/// So many elections meet the loss at once, each on a line of its own.
const ELECTIONS: usize = 20;
const ONE_LOST_OF: usize = 5;
/// Longer between two stamps, and it did not run.
const GAP: Duration = Duration::from_millis(250);

/// Commits that all take as long.
pub struct SlowCommits {
    /// Of T.
    pub commit: f64,
    /// For how much of the time a command ran.
    pub led: f64,
    pub starts: usize,
}

#[derive(Default)]
pub struct LostAnswers {
    pub elections: usize,
    /// For how much of the time of the fault a command ran.
    pub led: Series,
    /// From the end of the fault until a command ran, in milliseconds.
    pub took: Series,
}

struct Sufferer<'a> {
    _hosts: [Host; 2],
    line: Line,
    election: Election<'a>,
}

impl<'a> Sufferer<'a> {
    fn new(setting: &'a Setting, name: &str) -> io::Result<Self> {
        let server = &setting.servers.zookeeper.address;
        let line = Line::to(server, Faults::default())?;
        let election = Election::at([&line.address, server], Kind::Ours, name, setting, SHORT, "pulse")?;
        let leader = election.spawn()?;
        election.until_started(1);
        let next = election.spawn()?;
        election.until_in_line(2);
        Ok(Self { _hosts: [leader, next], line, election })
    }

    fn stamps(&self) -> Vec<Stamp> {
        let mut stamps = [self.election.stamps("start"), self.election.stamps("alive")].concat();
        stamps.sort_by_key(|stamp| stamp.at);
        stamps
    }

    /// For how much of this time.
    fn led(&self, from: Duration, to: Duration) -> f64 {
        let inside = self.stamps().into_iter().map(|stamp| stamp.at).filter(|at| (from..to).contains(at));
        let (mut last, mut idle) = (from, Duration::ZERO);
        for at in inside.chain([to]) {
            let gap = at.saturating_sub(last);
            idle += if gap > GAP { gap } else { Duration::ZERO };
            last = at;
        }
        1.0 - idle.as_secs_f64() / to.saturating_sub(from).as_secs_f64()
    }
}

pub fn commits(setting: &Setting) -> io::Result<Vec<SlowCommits>> {
    let sufferers = COMMITS.map(|commit| Sufferer::new(setting, &format!("commits-{commit}")));
    let sufferers = sufferers.into_iter().collect::<io::Result<Vec<_>>>()?;
    wait::pass(SETTLED);
    for (sufferer, commit) in sufferers.iter().zip(COMMITS) {
        sufferer.line.change(Faults { writes_late_by: SHORT.mul_f64(commit), ..Faults::default() });
    }
    let from = monotonic();
    wait::pass(LASTS);
    let to = monotonic();
    let of = |(sufferer, commit): (&Sufferer, f64)| SlowCommits {
        commit,
        led: sufferer.led(from, to),
        starts: sufferer.election.stamps("start").len() - 1,
    };
    Ok(sufferers.iter().zip(COMMITS).map(of).collect())
}

pub fn losses(setting: &Setting) -> io::Result<LostAnswers> {
    let sufferers = (0..ELECTIONS).map(|number| Sufferer::new(setting, &format!("lost-{number}")));
    let sufferers = sufferers.collect::<io::Result<Vec<_>>>()?;
    wait::pass(SETTLED);
    let all = |faults| sufferers.iter().for_each(|sufferer| sufferer.line.change(faults));
    all(Faults { one_lost_of: ONE_LOST_OF, ..Faults::default() });
    let from = monotonic();
    wait::pass(LASTS);
    let to = monotonic();
    all(Faults::default());
    let mut losses = LostAnswers { elections: ELECTIONS, ..LostAnswers::default() };
    for sufferer in &sufferers {
        let next = wait::for_some("somebody leads", || sufferer.stamps().into_iter().find(|stamp| stamp.at > to));
        losses.led.0.push(sufferer.led(from, to));
        losses.took.0.push(millis(next.at.saturating_sub(to)));
    }
    Ok(losses)
}

pub fn table(commits: &[SlowCommits], losses: Option<&LostAnswers>) -> String {
    let mut text = "### Slow commits and lost answers, zk-leader-run (T = 4 s, 30 s)\n\n| | a command ran, % of the time | |\n|---|---|---|\n".to_owned();
    for SlowCommits { commit, led, starts } in commits {
        writeln!(text, "| each commit takes {commit} T | {:.0} | {starts} new starts |", led * 100.0).unwrap();
    }
    if let Some(LostAnswers { elections, led, took }) = losses {
        let lease = millis(SHORT);
        let slowest = short(took.quantile(1.0).unwrap_or_default());
        let in_time = took.0.iter().filter(|took| **took <= lease).count();
        let led = Series(led.0.iter().map(|share| share * 100.0).collect());
        let (led, took) = (with_quartiles(&led), with_quartiles(took));
        writeln!(
            text,
            "| each {ONE_LOST_OF}th answer is lost | {led} | ran {took} ms after the fault, at most {slowest}: in {in_time} of {elections} elections within a lease |"
        )
        .unwrap();
    }
    text
}
