//! The only server goes away and comes back: how soon after its first answer does a command run again, if it ever stopped?
//! Everybody meets the same outage, at the same time.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use crate::contender::{Election, Host, Kind, Stamp, monotonic};
use crate::figures::{Series, millis};
use crate::ports::Port;
use crate::report::with_quartiles;
use crate::servers::ZooKeeper;
use crate::setting::{SHORT, Setting};
use crate::wait;

/// The first is ridden out (`--dry-run` names the longest that is: 2.26 s with T = 4 s); the others are not.
const LENGTHS: [Duration; 4] =
    [Duration::from_secs(2), Duration::from_secs(6), Duration::from_secs(15), Duration::from_secs(60)];
const KINDS: [Kind; 3] = [Kind::Ours, Kind::Kazoo, Kind::Curator];
/// Longer than a session that nobody takes up would live.
const WATCHED: Duration = Duration::from_secs(9);
/// Sessions, watches and renewals are as they always are.
const SETTLED: Duration = Duration::from_secs(2);
/// So often the server is asked whether it is back, and so long for its answer.
const ASKED_EVERY: Duration = Duration::from_millis(2);
const ANSWER_WITHIN: Duration = Duration::from_millis(20);

/// Of one kind of program, for one length.
pub struct Outage {
    pub kind: Kind,
    pub length: Duration,
    /// From the server's first answer to the first instruction of the next command, in milliseconds.
    pub took: Series,
    /// How often the command ran through it all.
    pub ridden_out: usize,
}

pub fn outages(setting: &Setting) -> io::Result<Vec<Outage>> {
    let port = Port::reserve();
    let directory = setting.directory.join("zookeeper-of-outages");
    let began = monotonic();
    let mut server = ZooKeeper::start(&directory, port.address().to_string())?;
    server.until_up()?;
    let mut needs = monotonic().saturating_sub(began);
    let mut outages = Vec::new();
    for length in LENGTHS {
        let new = |kind| Outage { kind, length, took: Series::default(), ridden_out: 0 };
        let mut of_length = KINDS.map(new);
        for round in 0..setting.rounds.div_ceil(7) {
            let victims =
                KINDS.map(|kind| Victim::new(setting, &server, kind, &format!("{}-{round}", length.as_secs())));
            let victims = victims.into_iter().collect::<io::Result<Vec<_>>>()?;
            wait::pass(SETTLED);
            server.kill();
            wait::pass(length.saturating_sub(needs));
            let restarted_at = monotonic();
            server.go_on()?;
            wait::until("the server answers", || {
                wait::pass(ASKED_EVERY);
                server.serves(ANSWER_WITHIN)
            });
            let answered_at = monotonic();
            needs = answered_at.saturating_sub(restarted_at);
            wait::pass(WATCHED);
            victims.iter().zip(&mut of_length).for_each(|(victim, outage)| victim.judge(outage, answered_at));
        }
        outages.extend(of_length);
    }
    Ok(outages)
}

struct Victim<'a> {
    _hosts: [Host; 2],
    command: Stamp,
    election: Election<'a>,
}

impl<'a> Victim<'a> {
    fn new(setting: &'a Setting, server: &ZooKeeper, kind: Kind, name: &str) -> io::Result<Self> {
        let election = Election::at([&server.address; 2], kind, &format!("outage-{name}"), setting, SHORT, "pulse")?;
        let leader = election.spawn()?;
        let command = election.until_started(1);
        let next = election.spawn()?;
        election.until_in_line(2);
        Ok(Self { _hosts: [leader, next], command, election })
    }

    fn judge(&self, outage: &mut Outage, answered_at: Duration) {
        let starts = self.election.stamps("start").len();
        let is_alive = |stamp: &Stamp| stamp.pid == self.command.pid && stamp.at > answered_at + WATCHED / 2;
        if starts == 1 && self.election.stamps("alive").iter().any(is_alive) {
            outage.ridden_out += 1;
        } else {
            let next = self.election.until_started(2);
            outage.took.0.push(millis(next.at.saturating_sub(answered_at)));
        }
    }
}

pub fn table(outages: &[Outage]) -> String {
    let mut text = "### Outage of the only server (T = 4 s)\n\n| away for | | never stopped | ms from its first answer to the next first instruction |\n|---|---|---|---|\n".to_owned();
    for Outage { kind, length, took, ridden_out } in outages {
        let rounds = ridden_out + took.0.len();
        let (seconds, who) = (length.as_secs(), kind.name());
        writeln!(text, "| {seconds} s | {who} | {ridden_out} of {rounds} | {} |", with_quartiles(took)).unwrap();
    }
    text
}
