//! Company: contenders of other libraries, run by `tests/peers`, in one election directory with ours.
//!
//! Never: a foreign command that outlives its supervisor. A crash of theirs is that of its host; left alone, their commands
//! run on beside the next one, which is theirs to answer for and not what is tested here.

mod matrix;
mod migration;

use std::collections::BTreeMap;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::{election, server};
use crate::support::{Election, Peer, Running, Subject, wait};

/// Theirs run on Java or Python, each in a process that starts slowly beside others.
const PATIENCE: Duration = wait::LIMIT.saturating_mul(3);

/// One election directory for ours and theirs, outside our base.
struct SupervisorConfig {
    election: Election,
    directory: String,
    recipe: String,
    library: String,
}

impl SupervisorConfig {
    /// For our `recipe`, and theirs as `tests/peers/peer` calls it.
    fn of(recipe: &str, library: &str) -> Self {
        let election = election();
        let directory = format!("/company/{}", election.name);
        Self { election, directory, recipe: recipe.to_owned(), library: library.to_owned() }
    }

    fn host(&self, id: &str) -> Subject {
        let host = self.election.host(id).session_timeout("20s").option("--recipe", &self.recipe);
        host.option("--election-path", &self.directory)
    }

    fn ours(&self, id: &str) -> Running {
        self.host(id).spawn()
    }

    fn theirs(&self, id: &str) -> Peer {
        Peer::spawn(&self.library, self.election.servers(), &self.directory, id, &self.election.diary)
    }

    /// The same behind others, whom it watches by now. Before that it may stumble over one who leaves: `LeaderElectionSupport`
    /// gives up for good when a candidate goes while it looks around.
    fn theirs_in_line(&self, id: &str) -> Peer {
        let (known, starts) = (self.candidates(), self.election.diary.starts().len());
        let mut newcomer = self.theirs(id);
        assert_eq!(self.arrival(&known, starts, || newcomer.has_ended()), Arrival::Waits, "{}", newcomer.log());
        newcomer
    }

    fn candidates(&self) -> Vec<String> {
        self.election.admin.children(&self.directory)
    }

    #[track_caller]
    fn until_candidates(&self, count: usize) {
        let stand = wait::held_within(PATIENCE, || self.candidates().len() == count);
        assert!(stand, "never saw {count} in line: {:?}", self.candidates());
    }

    /// Waits until the next command runs, which must be that of `id`.
    #[track_caller]
    fn until_led_by(&self, id: &str, turn: usize) {
        let started = wait::held_within(PATIENCE, || self.election.diary.starts().len() >= turn);
        assert!(started, "never saw start number {turn}: {:?}", self.election.diary.starts());
        assert_eq!(self.election.diary.starts()[turn - 1].id, id);
    }

    /// Of whoever is not among `known`, after so many starts: waits until it leads, is gone, or watches somebody who stands there.
    #[track_caller]
    fn arrival(&self, known: &[String], starts: usize, mut has_ended: impl FnMut() -> bool) -> Arrival {
        let mut arrival = || {
            if self.election.diary.starts().len() > starts {
                Some(Arrival::Leads)
            } else if has_ended() {
                Some(Arrival::GivesUp)
            } else {
                let candidates = self.candidates();
                let mut newcomers = candidates.iter().filter(|name| !known.contains(name));
                newcomers.any(|name| self.watches_another(name)).then_some(Arrival::Waits)
            }
        };
        let mut seen = None;
        wait::held_within(PATIENCE, || {
            seen = arrival();
            seen.is_some()
        });
        seen.expect("the newcomer leads, waits or gives up")
    }

    /// Whether the session of this candidate watches another one.
    fn watches_another(&self, candidate: &str) -> bool {
        let path = |name: &str| format!("{}/{name}", self.directory);
        let Some(stat) = self.election.admin.stat(&path(candidate)) else { return false };
        let session = format!("0x{:x}", stat.ephemeral_owner);
        let watchers = watchers();
        let others = self.candidates().into_iter().filter(|name| name != candidate);
        others.filter_map(|name| watchers.get(&path(&name))).any(|sessions| sessions.contains(&session))
    }
}

/// What a newcomer does while somebody leads.
#[derive(PartialEq, Eq, Debug)]
enum Arrival {
    Waits,
    Leads,
    GivesUp,
}

/// Who watches which path, as the server says it (`wchp`): the path, then a line for each session.
fn watchers() -> BTreeMap<String, Vec<String>> {
    let answer = server().server(0).ask("wchp").unwrap_or_default();
    let mut watchers = BTreeMap::<_, Vec<_>>::new();
    let mut path = "";
    for line in answer.lines() {
        match line.strip_prefix('\t') {
            Some(session) => watchers.entry(path.to_owned()).or_default().push(session.to_owned()),
            None => path = line,
        }
    }
    watchers
}

fn stop(mut host: Running) {
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0, "{}", host.log());
}

/// Both orders of arrival; each kind of end on each side: one leads at a time, in the order in which they came.
fn take_turns(recipe: &str, library: &str) {
    let company = SupervisorConfig::of(recipe, library);
    let first = company.ours("ours-1");
    company.until_led_by("ours-1", 1);
    let mut second = company.theirs_in_line("theirs-2");
    let third = company.ours("ours-3");
    company.until_candidates(3);
    let mut fourth = company.theirs_in_line("theirs-4");

    first.kill(); // the guard stops the command and gives the seat back
    company.until_led_by("theirs-2", 2);
    second.crash(); // the session expires
    company.until_led_by("ours-3", 3);
    let mut fifth = company.theirs_in_line("theirs-5");
    stop(third);
    company.until_led_by("theirs-4", 4);
    let sixth = company.ours("ours-6");
    company.until_candidates(3);
    fourth.stop();
    company.until_led_by("theirs-5", 5);
    fifth.stop();
    company.until_led_by("ours-6", 6);
    stop(sixth);

    company.election.diary.assert_one_at_a_time();
    assert_eq!(company.candidates(), [""; 0]);
}

#[test]
fn ours_and_curators_leader_latch_take_turns() {
    take_turns("curator-latch", "curator-latch");
}

#[test]
fn ours_and_curators_leader_selector_take_turns() {
    take_turns("curator-lock", "curator-selector");
}

#[test]
fn ours_and_curators_mutex_take_turns() {
    take_turns("curator-lock", "curator-mutex");
}

#[test]
fn ours_and_kazoos_election_take_turns() {
    take_turns("kazoo", "kazoo-election");
}

#[test]
fn ours_and_kazoos_lock_take_turns() {
    take_turns("kazoo", "kazoo-lock");
}

#[test]
fn ours_and_go_zookeepers_lock_take_turns() {
    take_turns("curator-lock", "go-lock");
}

#[test]
fn ours_and_zookeepers_leader_election_support_take_turns() {
    take_turns("java-les", "zookeeper-election");
}
