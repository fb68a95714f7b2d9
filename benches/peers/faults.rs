//! What becomes of the command when its program does not end as it should: who runs next, when, and beside whom.

use std::io;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::contender::{Election, Host, Kind, Stamp, monotonic, send};
use crate::figures::{Series, millis};
use crate::setting::{CALM, SHORT, Setting};
use crate::wait;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blow {
    /// The whole host: all processes at once.
    Crash,
    /// SIGKILL to the program that was started, as the kernel does when memory runs out; nothing to its command.
    Kill,
    /// SIGSTOP to it.
    Stop,
}

/// Of one kind of program, for one blow.
pub struct Outcome {
    pub blow: Blow,
    pub kind: Kind,
    /// From the blow to the first instruction of the next command, in milliseconds.
    pub took: Series,
    /// For how long both commands ran, in milliseconds, as long as it was watched.
    pub overlap: Series,
    /// How often the old command still ran when nobody watched any longer.
    pub survived: usize,
}

/// After the next one has started.
const WATCHED: Duration = Duration::from_millis(500);

pub fn faults(setting: &Setting) -> io::Result<Vec<Outcome>> {
    let rounds = setting.rounds.div_ceil(5);
    let mut outcomes = Vec::new();
    for blow in [Blow::Crash, Blow::Kill, Blow::Stop] {
        let new = |kind| Outcome { blow, kind, took: Series::default(), overlap: Series::default(), survived: 0 };
        let mut of_blow = Kind::PROGRAMS.map(new);
        for round in 0..rounds {
            let name = format!("{blow:?}-{round}");
            let victims = Kind::PROGRAMS.iter().map(|&kind| Victim::new(setting, kind, &name));
            let mut victims = victims.collect::<io::Result<Vec<_>>>()?;
            wait::pass(CALM);
            for victim in &mut victims {
                victim.strike(blow);
            }
            victims.iter().zip(&mut of_blow).for_each(|(victim, outcome)| victim.judge(outcome));
        }
        outcomes.extend(of_blow);
    }
    Ok(outcomes)
}

struct Victim<'a> {
    leader: Host,
    _next: Host,
    command: Stamp,
    struck_at: Duration,
    election: Election<'a>,
}

impl<'a> Victim<'a> {
    fn new(setting: &'a Setting, kind: Kind, name: &str) -> io::Result<Self> {
        let election = Election::new(kind, name, setting, SHORT, "alive")?;
        let leader = election.spawn()?;
        let command = election.until_started(1);
        let next = election.spawn()?;
        election.until_in_line(2);
        Ok(Self { leader, _next: next, command, struck_at: Duration::ZERO, election })
    }

    fn strike(&mut self, blow: Blow) {
        let all = [self.leader.processes(self.command.pid), vec![self.command.pid]].concat();
        self.struck_at = monotonic();
        match blow {
            Blow::Crash => {
                for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
                    for pid in &all {
                        send(*pid, signal);
                    }
                }
            }
            Blow::Kill => send(self.leader.pid(), Signal::SIGKILL),
            Blow::Stop => send(self.leader.pid(), Signal::SIGSTOP),
        }
    }

    fn judge(&self, outcome: &mut Outcome) {
        let next = self.election.until_started(2);
        let watched_until = next.at + WATCHED;
        wait::until("it was watched", || monotonic() > watched_until);
        let alive = self.election.stamps("alive");
        let last = alive
            .iter()
            .filter(|stamp| stamp.pid == self.command.pid && stamp.at < watched_until)
            .map(|stamp| stamp.at);
        let overlap = last.max().unwrap_or_default().saturating_sub(next.at);
        outcome.took.0.push(millis(next.at.saturating_sub(self.struck_at)));
        outcome.overlap.0.push(millis(overlap));
        outcome.survived += usize::from(overlap + CALM > WATCHED);
    }
}
