//! The real machines are led at random, and the model follows: every step that the code takes must be one that the model may
//! take, and what comes of it the same, so that neither can change without the other.
//!
//! The model is followed as a set of worlds: where the code's step could be several of the model's, all are kept, and those
//! that do not fit what is seen afterwards are dropped. None is left: the code does what the model does not know.
//!
//! Time goes in windows of one unit of the model. The code's margins (ρ, 2G) are shorter than a window: it kills earlier in it
//! than the model, and starts later.

mod surroundings;
mod worlds;

use std::collections::HashSet;
use std::mem::{Discriminant, discriminant};
use std::time::Duration;

use zk_leader_run::core::action::{Conditions, Entry};
use zk_leader_run::core::event::{Candidacy, Denial, Event, Nonce, Record as Read, Request};
use zk_leader_run::core::guard_messages::{Cause, RunId, Slot};
use zk_leader_run::core::lease::Wishes;
use zk_leader_run::core::machine::{Machine, Settings};
use zk_leader_run::core::settings::{Guarantee, OnExit, OnLoss, OnPause, Preparations, Service};
use zk_leader_run::core::time::{Now, Sighting, Timestamp};

use crate::moves::{KINDS, Move};
use crate::rules::Rules;
use crate::world::{Sort, World};

const UNIT: Duration = Duration::from_secs(4);
/// Waits that end in a window are over at this point of it, and no lease that was written there lasts beyond the beginning of
/// another window.
const LATE: Duration = Duration::from_millis(150);
/// A step of a window takes so long.
const STEP: Duration = Duration::from_micros(10);
const CLOCKS_BEGIN: Duration = Duration::from_secs(1_000);

/// A write on its way.
#[derive(Clone, Copy, Debug)]
struct WriteSent {
    sort: Sort,
    candidacy: Candidacy,
    conditions: Conditions,
    entry: Entry,
    since: Timestamp,
}

#[derive(Clone, Copy, Debug)]
enum Pending {
    /// An observation is no look.
    Read {
        candidacy: Candidacy,
        request: Request,
    },
    Write {
        sent: WriteSent,
        outcome: Option<Result<(), Denial>>,
        version: i32,
    },
}

struct Side {
    machine: Machine,
    pending: Option<Pending>,
    tree: Option<(RunId, Timestamp)>,
    /// It ended, and nobody was told yet.
    ended: Option<(RunId, Cause)>,
    /// The versions that it has seen, by the last run under them.
    seen: HashSet<i64>,
    /// The newest version that its session knows: no server shows it an older one.
    newest: i64,
    candidacy: Candidacy,
}

/// The record and the term as `ZooKeeper` keeps them.
#[derive(Clone, Copy, Debug)]
struct Stored {
    record: Read,
    term: i32,
}

struct Walk {
    rules: Rules,
    worlds: HashSet<World>,
    sides: Vec<Side>,
    stored: Stored,
    former: Option<Stored>,
    late: Vec<WriteSent>,
    zxid: i64,
    now: Duration,
    window: u32,
    chance: u64,
    story: Vec<String>,
    taken: HashSet<Discriminant<Move>>,
}

fn settings(host: usize) -> Settings {
    Settings {
        wishes: Wishes::NONE,
        guarantee: Guarantee::AtMostOne,
        on_pause: OnPause::Run,
        on_exit: OnExit::Rejoin,
        on_loss: OnLoss::Rejoin,
        wait: None,
        connect_timeout: None,
        stop_timeout: UNIT / 4,
        service: Service::default(),
        preparations: Preparations::default(),
        steps: zk_leader_run::core::settings::StepLimits::default(),
        vouch: None,
        instance: host as u64 + 1,
    }
}

/// The record of a new base.
const NEW: Read = Read {
    slot: Slot(0),
    version: 0,
    mzxid: 1,
    held: false,
    waiting_on: None,
    lease: UNIT,
    nonce: Nonce::UNKNOWN,
    token: 0,
    vouching: None,
    agrees: true,
};

impl Walk {
    fn new(rules: Rules, seed: u64) -> Self {
        let now = CLOCKS_BEGIN;
        let at = moment(now);
        let side = |host| Side {
            machine: Machine::new(settings(host), at),
            pending: None,
            tree: None,
            ended: None,
            seen: HashSet::new(),
            newest: 0,
            candidacy: Candidacy::default(),
        };
        let mut walk = Self {
            rules,
            worlds: HashSet::from([World::new()]),
            sides: rules.hosts().map(side).collect(),
            stored: Stored { record: NEW, term: 0 },
            former: None,
            late: Vec::new(),
            zxid: 1,
            now,
            window: 0,
            chance: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            story: Vec::new(),
            taken: HashSet::new(),
        };
        for host in rules.hosts() {
            walk.tell(host, Event::Ticked, &[&[]]);
        }
        walk
    }

    fn below(&mut self, limit: usize) -> usize {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        usize::try_from(self.chance >> 33).unwrap() % limit
    }

    fn clock(&self) -> Now {
        moment(self.now)
    }

    /// How long a lease of this host is.
    fn lease(&self, host: usize) -> Duration {
        UNIT * u32::from(self.rules.leases[host])
    }

    /// The next window: time passes, and the guards kill.
    fn tick(&mut self) {
        self.window += 1;
        self.now = CLOCKS_BEGIN + UNIT * self.window;
        let now = self.clock().lease;
        let mut advances = [0; 3];
        self.rules.hosts().for_each(|host| advances[host] = 1);
        for host in 0..self.sides.len() {
            if self.sides[host].tree.is_some_and(|(_, kill_at)| now >= kill_at) {
                let run = self.sides[host].tree.take().map(|(run, _)| (run, Cause::Deadline));
                self.sides[host].ended = run;
            }
        }
        self.follow("time passes", &[&[Move::Tick(advances)]]);
        self.compare();
    }

    fn happens(&mut self, is_late: bool) {
        self.now += STEP;
        let host = self.below(self.sides.len());
        let candidacy = self.sides[host].candidacy;
        match self.below(20) {
            0..=4 => {
                let (lags, is_first) = (self.below(4) == 0, self.below(3) > 0);
                self.look(host, is_late, lags, is_first);
            }
            5..=8 => self.serve(host),
            9..=12 => self.answer(host),
            13 => self.give_up(host),
            14 if !self.late.is_empty() => {
                let index = self.below(self.late.len());
                self.serve_late(index);
            }
            15 => self.tell(host, Event::RecordChanged { candidacy }, &[&[]]),
            16 => self.tell(host, Event::LineChanged { candidacy }, &[&[]]),
            17 if self.below(4) == 0 => self.tree_ends(host, Cause::ItsOwn),
            17 | 18 => self.report_end(host),
            _ => self.tell(host, Event::Ticked, &[&[]]),
        }
    }

    fn goes(&mut self, windows: u32) {
        for _ in 0..windows {
            for _ in 0..self.below(25) {
                self.happens(false);
            }
            self.now = CLOCKS_BEGIN + UNIT * self.window + LATE;
            for _ in 0..self.below(25) {
                self.happens(true);
            }
            // Whoever survives SIGKILL is another story.
            (0..self.sides.len()).for_each(|host| self.report_end(host));
            self.tick();
            (0..self.sides.len()).for_each(|host| self.report_end(host));
        }
    }
}

fn moment(at: Duration) -> Now {
    Now { lease: Timestamp::ZERO.after(at), observer: Sighting::ZERO.after(at) }
}

#[test]
fn every_step_of_the_code_is_one_of_the_model() {
    let mut taken = HashSet::new();
    for leases in [[1, 1, 0], [1, 2, 0], [2, 1, 0], [3, 2, 0], [1, 2, 3]] {
        let rules = Rules::new(leases).proposed().without_releaser().with_late_writes(4).with_watchful_holders();
        for seed in 1..=12 {
            let mut walk = Walk::new(rules, seed);
            walk.goes(25);
            taken.extend(walk.taken);
        }
    }
    // These happen to the model only.
    let is_no_step = |kind: &Move| matches!(kind, Move::Crash(_) | Move::Delete | Move::Recreate(_));
    let not_taken: Vec<_> =
        KINDS.iter().filter(|kind| !is_no_step(kind) && !taken.contains(&discriminant(*kind))).collect();
    assert!(not_taken.is_empty(), "the code never does {not_taken:?}");
}
