//! What must be true, judged from outside.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use zk_leader_run::core::order::Deadlines;
use zk_leader_run::core::time::Timestamp;

use crate::time;

/// One life of one host: its number is never used twice.
pub type Instance = u64;

#[derive(Clone, Debug)]
pub struct Tree {
    pub host: usize,
    pub token: i64,
    /// The latest that was ever ordered.
    pub kill_at: Timestamp,
    /// What the lease sets aside for the kill.
    pub slack: Duration,
}

#[derive(Default, Debug)]
struct State {
    violation: Option<String>,
    trees: BTreeMap<Instance, Tree>,
    starts: u64,
    newest: Option<(i64, Instance)>,
    /// When a tree was started or ended last.
    started_at: Duration,
    ended_at: Duration,
    /// By when an instance that was asked to stop must have ended.
    stops: BTreeMap<Instance, Duration>,
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

    /// The host whose tree lives.
    pub fn leader(&self) -> Option<usize> {
        self.lock().trees.values().next().map(|tree| tree.host)
    }

    pub fn started_at(&self) -> Duration {
        self.lock().started_at
    }

    pub fn ended_at(&self) -> Duration {
        self.lock().ended_at
    }

    /// Until this holds, at most until then. `false`: it did not, or something was wrong before.
    pub async fn reaches(&self, by: Duration, holds: impl Fn() -> bool) -> bool {
        loop {
            let changed = self.changed.notified();
            if self.violation().is_some() {
                return false;
            }
            if holds() {
                return true;
            }
            if time::elapsed() >= by {
                return false;
            }
            let step = time::instant(by).min(tokio::time::Instant::now() + Duration::from_millis(100));
            tokio::select! {
                biased;
                () = changed => {}
                () = tokio::time::sleep_until(step) => {}
            }
        }
    }

    /// Looks on until then, or until something is wrong.
    pub async fn watches(&self, until: Duration) {
        self.reaches(until, || {
            self.check_stops();
            false
        })
        .await;
    }

    /// The promise: no other tree lives. Fencing: no earlier start had this token or a greater one.
    pub fn spawned(&self, instance: Instance, tree: Tree) {
        let mut state = self.lock();
        state.starts += 1;
        state.started_at = time::elapsed();
        let other = state.trees.iter().next().map(|(other, tree)| (*other, tree.host));
        let older = state.newest.filter(|(token, of)| *token > tree.token || (*token == tree.token && *of != instance));
        let (host, token) = (tree.host, tree.token);
        state.newest = Some((token, instance));
        state.trees.insert(instance, tree);
        drop(state);
        if let Some((other, on)) = other {
            self.fail(&format!(
                "two trees live: {instance} (host {host}) starts one while that of {other} (host {on}) lives"
            ));
        }
        if let Some((before, _)) = older {
            self.fail(&format!("fencing: token {token} is started after {before}"));
        }
        self.changed.notify_waiters();
    }

    pub fn extended(&self, instance: Instance, now: Timestamp, deadlines: Deadlines) {
        if let Some(tree) = self.lock().trees.get_mut(&instance).filter(|tree| now < tree.kill_at) {
            tree.kill_at = tree.kill_at.max(deadlines.kill_at);
        }
    }

    pub fn gone(&self, instance: Instance, now: Timestamp) {
        let Some(tree) = self.lock().trees.remove(&instance) else { return };
        self.lock().ended_at = time::elapsed();
        if now > tree.kill_at.after(2 * tree.slack) {
            self.fail(&format!("a tree of host {} outlived kill_at {:?} until {now:?}", tree.host, tree.kill_at));
        }
        self.changed.notify_waiters();
    }

    /// It must end by then; the first request counts.
    pub fn stop_requested(&self, instance: Instance, by: Duration) {
        self.lock().stops.entry(instance).or_insert(by);
    }

    pub fn ended(&self, instance: Instance) {
        let by = self.lock().stops.remove(&instance);
        if by.is_some_and(|by| time::elapsed() > by) {
            self.fail(&format!(
                "instance {instance} was asked to stop, and ended {:?} late",
                time::elapsed().saturating_sub(by.unwrap_or_default())
            ));
        }
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
