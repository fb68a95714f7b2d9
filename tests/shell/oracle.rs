//! What must be true, judged from outside.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use zk_leader_run::core::guard_messages::{Deadlines, Grant};
use zk_leader_run::core::time::Timestamp;

use crate::guard::Part;
use crate::process::Clock;
use crate::time;

/// A process takes no more steps in any second.
const WAKINGS: u32 = 5_000;

/// One life of one host: its number is never used twice.
pub type Instance = u64;

pub type Key = (Instance, Part);

#[derive(Clone, Debug)]
pub struct Tree {
    pub host: usize,
    pub slot: u16,
    pub token: i64,
    clock: Arc<Clock>,
    /// The latest that was ever ordered.
    kill_at: Timestamp,
    /// G: what the lease sets aside for the kill.
    slack: Duration,
    /// SIGKILL has no effect on it before.
    unkillable_until: Duration,
    /// Its host stood still until then.
    still_until: Duration,
    /// A step may last so long.
    over_at: Duration,
    /// No other tree has it.
    number: u64,
    paused: Paused,
}

/// What became of a command while contact was lost, with `--on-pause freeze`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Paused {
    No,
    Frozen,
    /// It is told to stop, or killed, and not frozen any more.
    Ends,
}

impl Tree {
    pub fn new(host: usize, clock: Arc<Clock>, grant: &Grant, kill_at: Timestamp, slack: Duration) -> Self {
        let (slot, token, never) = (grant.slot.0, grant.token, Duration::ZERO);
        let (over_at, number, paused) = (Duration::MAX, 0, Paused::No);
        let (unkillable_until, still_until) = (never, never);
        Self { host, slot, token, clock, kill_at, slack, unkillable_until, still_until, over_at, number, paused }
    }

    /// From now on, by a clock that is right by 1 %.
    pub fn may_last(&mut self, most: Duration) {
        self.over_at = time::elapsed().saturating_add(most).saturating_add(most / 100);
    }

    /// It should be dead. The successor counts on G once more.
    fn is_late(&self, is_still: bool) -> bool {
        let over_at = self.over_at.max(self.still_until).max(self.unkillable_until);
        let is_over = !is_still && time::elapsed() > over_at.saturating_add(2 * self.slack);
        is_over || self.clock.now().lease > self.kill_at.after(2 * self.slack)
    }

    /// A limit that docs/design.md states: it cannot be killed, or its host stands still or has just gone on.
    fn is_excused(&self, is_still: bool) -> bool {
        let is_excused = is_still || time::elapsed() <= self.still_until.max(self.unkillable_until) + self.slack;
        is_excused && self.clock.now().lease > self.kill_at
    }
}

#[derive(Default, Debug)]
struct State {
    violation: Option<String>,
    /// Of commands and steps.
    trees: BTreeMap<Key, Tree>,
    /// Hosts that stand still.
    still: BTreeSet<usize>,
    starts: u64,
    /// Programs that were executed in the place of another, and the commands that lived a session timeout longer.
    exchanges: u64,
    lived: u64,
    /// By slot.
    newest: BTreeMap<u16, (i64, Instance)>,
    /// When a tree was started or ended last.
    started_at: Duration,
    ended_at: Duration,
    /// Who has run the command in a slot of `--slot`.
    runs: BTreeMap<String, Instance>,
    /// By when an instance that was asked to stop must have ended.
    stops: BTreeMap<Instance, Duration>,
    is_calm: bool,
    /// The most steps of one process in one second.
    wakings: u32,
}

impl State {
    fn late(&self) -> Option<String> {
        let mut trees = self.trees.values().map(|tree| (tree, self.still.contains(&tree.host)));
        let (late, _) = trees.find(|(tree, is_still)| tree.is_late(*is_still) && !tree.is_excused(*is_still))?;
        let Tree { host, kill_at, clock, .. } = late;
        Some(format!("a tree of host {host} outlives its time, or kill_at {kill_at:?}: {:?}", clock.now().lease))
    }
}

#[derive(Default, Debug)]
pub struct Oracle {
    state: Mutex<State>,
    /// Something has changed.
    changed: Notify,
}

impl Oracle {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic under the lock")
    }

    pub fn fail(&self, text: &str) {
        self.lock().violation.get_or_insert_with(|| format!("at {:.3} s: {text}", time::elapsed().as_secs_f64()));
        self.changed.notify_waiters();
    }

    pub fn violation(&self) -> Option<String> {
        self.lock().violation.clone()
    }

    pub fn starts(&self) -> u64 {
        self.lock().starts
    }

    /// See [`State::exchanges`].
    pub fn exchanges(&self) -> (u64, u64) {
        let state = self.lock();
        (state.exchanges, state.lived)
    }

    /// A process executes another program. Returns the number of its command, if that lives.
    pub fn exchanged(&self, instance: Instance) -> Option<u64> {
        let mut state = self.lock();
        state.exchanges += 1;
        state.trees.get(&(instance, Part::Command)).map(|tree| tree.number)
    }

    /// A session timeout has passed since the exchange.
    pub fn outlived(&self, number: u64) {
        let is_alive = self.commands().iter().any(|(.., alive)| *alive == number);
        self.lock().lived += u64::from(is_alive);
    }

    /// Each command that lives: its host, its token, its number.
    pub fn commands(&self) -> Vec<(usize, i64, u64)> {
        let state = self.lock();
        let commands = state.trees.iter().filter(|((_, part), _)| *part == Part::Command);
        commands.map(|(_, tree)| (tree.host, tree.token, tree.number)).collect()
    }

    /// The hosts of commands that run on, of those with these numbers.
    pub fn run_on(&self, numbers: &[u64]) -> Vec<usize> {
        let state = self.lock();
        let trees = state.trees.values().filter(|tree| numbers.contains(&tree.number) && tree.paused == Paused::No);
        trees.map(|tree| tree.host).collect()
    }

    /// A command was told to stop, or is being killed.
    pub fn is_stopping(&self) -> bool {
        self.lock().trees.values().any(|tree| tree.paused == Paused::Ends)
    }

    /// The guard has frozen, continued or stopped a command.
    pub fn paused(&self, key: Key, paused: Paused) {
        self.lock().trees.get_mut(&key).into_iter().for_each(|tree| tree.paused = paused);
        self.changed.notify_waiters();
    }

    /// A process took so many steps in a second.
    pub fn ran(&self, host: usize, steps: u32) {
        let most = &mut self.lock().wakings;
        *most = steps.max(*most);
        if steps == WAKINGS {
            self.fail(&format!("a process of host {host} takes {steps} steps in one second"));
        }
    }

    pub fn wakings(&self) -> u32 {
        self.lock().wakings
    }

    /// From now on no command ends by itself.
    pub fn calm(&self) {
        self.lock().is_calm = true;
    }

    pub fn is_calm(&self) -> bool {
        self.lock().is_calm
    }

    /// A host whose command lives.
    pub fn leader(&self) -> Option<usize> {
        self.leaders().first().map(|(host, _)| *host)
    }

    /// The hosts of the trees that live, beyond what is excused.
    pub fn live(&self) -> Vec<usize> {
        let state = self.lock();
        let live = state.trees.values().filter(|tree| !tree.is_excused(state.still.contains(&tree.host)));
        live.map(|tree| tree.host).collect()
    }

    /// The token of each command that lives, with the host.
    pub fn leaders(&self) -> Vec<(usize, i64)> {
        self.commands().into_iter().map(|(host, token, _)| (host, token)).collect()
    }

    /// Of the newest term in which something was run.
    pub fn newest_token(&self) -> i64 {
        self.lock().newest.values().map(|(token, _)| *token).max().unwrap_or_default()
    }

    pub fn started_at(&self) -> Duration {
        self.lock().started_at
    }

    pub fn ended_at(&self) -> Duration {
        self.lock().ended_at
    }

    /// Until this holds, at most until then. `false`: it did not, or something was wrong before.
    pub async fn reaches(&self, by: Duration, holds: impl Fn() -> bool) -> bool {
        self.reaches_in_steps(by, Duration::from_millis(100), holds).await
    }

    /// Looks that often, and whenever something has changed.
    async fn reaches_in_steps(&self, by: Duration, step: Duration, holds: impl Fn() -> bool) -> bool {
        loop {
            let changed = self.changed.notified();
            self.check();
            if self.violation().is_some() {
                return false;
            }
            if holds() {
                return true;
            }
            if time::elapsed() >= by {
                return false;
            }
            let step = time::instant(by).min(tokio::time::Instant::now() + step);
            tokio::select! {
                biased;
                () = changed => {}
                () = tokio::time::sleep_until(step) => {}
            }
        }
    }

    /// Looks on until then, or until something is wrong.
    pub async fn watches(&self, until: Duration) {
        self.reaches_in_steps(until, Duration::from_secs(1), || false).await;
    }

    fn check(&self) {
        let late = self.lock().late();
        if let Some(late) = late {
            self.fail(&late);
        }
        self.check_stops();
    }

    /// The promise: no other tree of this slot lives. Fencing: no earlier start had this token or a greater one.
    pub fn spawned(&self, key: Key, mut tree: Tree) {
        let mut state = self.lock();
        let (instance, part) = key;
        if part == Part::Command {
            state.starts += 1;
            tree.number = state.starts;
            state.started_at = time::elapsed();
        }
        let State { trees, still, .. } = &*state;
        let other =
            trees.iter().find(|(_, other)| other.slot == tree.slot && !other.is_excused(still.contains(&other.host)));
        let other = other.map(|(other, tree)| (*other, tree.host));
        let older = state.newest.get(&tree.slot).copied();
        let older = older.filter(|(token, of)| *token > tree.token || (*token == tree.token && *of != instance));
        let (host, token, slot) = (tree.host, tree.token, tree.slot);
        state.newest.insert(slot, (token, instance));
        state.trees.insert(key, tree);
        drop(state);
        if let Some((other, on)) = other {
            self.fail(&format!(
                "two trees of slot {slot} live: {key:?} (host {host}) starts one while that of {other:?} (host {on}) lives"
            ));
        }
        if let Some((before, _)) = older {
            self.fail(&format!("fencing: token {token} of slot {slot} is started after {before}"));
        }
        self.changed.notify_waiters();
    }

    /// A command of `--slot` is run once.
    pub fn run_once(&self, instance: Instance, key: &str) {
        let before = self.lock().runs.insert(key.to_owned(), instance);
        if let Some(before) = before {
            self.fail(&format!("the command of slot {key} is run by {before}, and again by {instance}"));
        }
    }

    pub fn extended(&self, key: Key, now: Timestamp, deadlines: Deadlines) {
        if let Some(tree) = self.lock().trees.get_mut(&key).filter(|tree| now < tree.kill_at) {
            tree.kill_at = tree.kill_at.max(deadlines.kill_at);
        }
    }

    pub fn set_unkillable(&self, key: Key, until: Duration) {
        self.lock()
            .trees
            .get_mut(&key)
            .into_iter()
            .for_each(|tree| tree.unkillable_until = tree.unkillable_until.max(until));
    }

    pub fn gone(&self, key: Key) {
        self.check();
        if self.lock().trees.remove(&key).is_some() {
            self.lock().ended_at = time::elapsed();
            self.changed.notify_waiters();
        }
    }

    /// The host, with all that runs on it, stands still, or goes on.
    pub fn set_still(&self, host: usize, is_still: bool) {
        let mut state = self.lock();
        if is_still {
            state.still.insert(host);
        } else {
            state.still.remove(&host);
            let trees = state.trees.values_mut().filter(|tree| tree.host == host);
            trees.for_each(|tree| tree.still_until = time::elapsed());
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Waits while the host stands still.
    pub async fn moves(&self, host: usize) {
        while self.lock().still.contains(&host) {
            self.changed.notified().await;
        }
    }

    /// It must end by then; the first request counts.
    pub fn stop_requested(&self, instance: Instance, by: Duration) {
        self.lock().stops.entry(instance).or_insert(by);
    }

    /// Nothing can be asked of a process that is stopped or cannot end for so long.
    pub fn stop_delayed(&self, instance: Instance, by: Duration) {
        self.lock().stops.get_mut(&instance).into_iter().for_each(|limit| *limit += by);
    }

    pub fn ended(&self, instance: Instance) {
        self.check_stops();
        self.lock().stops.remove(&instance);
        self.changed.notify_waiters();
    }

    /// Whoever was asked to stop and should have ended.
    fn check_stops(&self) {
        let late = self.lock().stops.iter().find(|(_, by)| time::elapsed() > **by).map(|(of, by)| (*of, *by));
        if let Some((instance, by)) = late {
            self.fail(&format!("instance {instance} was to end by {by:?}, and lives"));
        }
    }
}
