//! Times between two faults in which nothing happens but upgrades: whoever leads when they begin leads when they end, in the
//! same process, with the same candidate and the same session.

use std::time::Duration;

use super::checker::Run;
use super::host::Host;
use super::tail::Tail;
use super::world::World;
use crate::support::diary::now;
use crate::support::wait;

#[derive(Clone, Debug)]
pub struct Calm {
    pub began: Duration,
    pub ended: Duration,
    /// Of whoever led at the beginning, and at the end.
    pub seats: [Vec<Seat>; 2],
}

/// What must outlast an upgrade.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seat {
    pub token: i64,
    pub pid: i32,
    pub host: String,
    /// The candidates of this host, and the sessions that own them.
    pub candidates: Vec<(String, i64)>,
}

/// At least.
const LENGTH: Duration = Duration::from_secs(2);
/// A command that has not stamped for so long has ended, however busy the machine is.
const SILENCE: Duration = Duration::from_secs(1);

/// Waits until the last fault has no consequences any more, and then until so many upgrades are done. `None`: something
/// went on happening.
pub fn calm(world: &World, upgrades: usize) -> Option<Calm> {
    let lease = world.hosts.iter().map(Host::lease).max().unwrap();
    let mut since = (Vec::new(), now());
    let is_calm = wait::held_within(wait::LIMIT, || {
        let leaders: Vec<_> = world.tails.iter().filter_map(Tail::running).map(|entry| entry.token).collect();
        let is_whole = world.view().is_some_and(|view| view.possible) && leaders.len() == world.tails.len();
        if !is_whole || leaders != since.0 {
            since = (leaders, now());
        }
        is_whole && now() > since.1 + 2 * lease
    });
    if !is_calm {
        return None;
    }
    let (began, before) = (now(), world.seats()?);
    wait::held_within(wait::LIMIT, || now() > began + LENGTH && world.upgrades_done() >= upgrades);
    let after = world.seats()?;
    Some(Calm { began, ended: now(), seats: [before, after] })
}

/// Commands that ended, or were started anew, though no fault hit them.
pub fn losses(calms: &[Calm], runs: &[Run]) -> Vec<String> {
    calms.iter().flat_map(|calm| calm.ended_runs(runs).chain(calm.changed_seats()).collect::<Vec<_>>()).collect()
}

impl Calm {
    fn ended_runs<'a>(&'a self, runs: &'a [Run]) -> impl Iterator<Item = String> + 'a {
        let here = |run: &&Run| run.ended >= self.began && run.ended + SILENCE < self.ended && !run.ended_by_itself;
        runs.iter().filter(here).map(|run| format!("token {} on {} was lost at {:?}", run.token, run.host, run.ended))
    }

    fn changed_seats(&self) -> impl Iterator<Item = String> + '_ {
        let [before, after] = &self.seats;
        before.iter().filter_map(|seat| {
            let now = after.iter().find(|now| now.token == seat.token)?;
            (now != seat).then(|| format!("{seat:?} has become {now:?}"))
        })
    }
}
