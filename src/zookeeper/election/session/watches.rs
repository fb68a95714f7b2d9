//! The watches of one session: which are armed, and for which candidacy.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

use crate::core::event::Candidacy;
use crate::core::guard_messages::Slot;

/// The target of a watch.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Target {
    /// A candidate before ours, or our own: its departure.
    Candidate(String),
    /// Our own with several leaders: its departure, but not our own touch.
    Own(String),
    /// A slot's lease record: every change.
    Record(Slot),
    /// The children of a slot's home: reports the loss of the record or the term, without an event for each renewal.
    Base(Slot),
}

/// A watch to arm, and the zxid of the state that was seen; `None`: any state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Watch {
    pub target: Target,
    pub seen: Option<i64>,
    /// The take-over that touched the candidate, as far as seen; `None`: touches do not matter.
    pub touched: Option<Touch>,
}

/// The zxid of a take-over; `None`: none was seen.
pub(crate) type Touch = Option<i64>;

impl Watch {
    pub fn candidate(name: &str, czxid: Option<i64>) -> Self {
        Self { target: Target::Candidate(name.to_owned()), seen: czxid, touched: None }
    }

    /// A candidate with several leaders: its departure and its take-over.
    pub fn contender(name: &str, seen: Touch) -> Self {
        Self { target: Target::Candidate(name.to_owned()), seen: None, touched: Some(seen) }
    }

    pub fn own(name: &str) -> Self {
        Self { target: Target::Own(name.to_owned()), seen: None, touched: None }
    }

    pub fn record(slot: Slot, mzxid: i64) -> Self {
        Self { target: Target::Record(slot), seen: Some(mzxid), touched: None }
    }

    pub fn base(slot: Slot) -> Self {
        Self { target: Target::Base(slot), seen: None, touched: None }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Watches(Mutex<Armed>);

#[derive(Debug, Default)]
struct Armed {
    candidacy: Candidacy,
    tasks: BTreeMap<Target, AbortHandle>,
    /// The last reported touch of each candidate; each is reported once.
    touches: BTreeMap<Target, i64>,
    closed: bool,
}

impl Watches {
    /// Of this candidacy, none armed yet.
    pub fn of(candidacy: Candidacy) -> Self {
        Self(Mutex::new(Armed { candidacy, ..Armed::default() }))
    }

    /// The candidacy that they are for.
    pub fn candidacy(&self) -> Candidacy {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).candidacy
    }

    /// Arms wanted watches that are not armed yet, and drops those that are not wanted any more.
    pub fn set(&self, candidacy: Candidacy, wanted: Vec<Watch>, arm: impl Fn(Watch) -> AbortHandle) {
        let Some(mut armed) = self.lock(candidacy) else { return };
        armed.tasks.retain(|target, task| {
            let keep = wanted.iter().any(|watch| watch.target == *target);
            if !keep {
                task.abort();
            }
            keep
        });
        armed.touches.retain(|target, _| wanted.iter().any(|watch| watch.target == *target));
        armed.arm(wanted, arm);
    }

    /// Arms these too, unless they are armed.
    pub fn add(&self, candidacy: Candidacy, more: Vec<Watch>, arm: impl Fn(Watch) -> AbortHandle) {
        if let Some(mut armed) = self.lock(candidacy) {
            armed.arm(more, arm);
        }
    }

    /// Keeps a watch on the record of this slot that is armed already.
    pub fn keep_record(&self, candidacy: Candidacy, slot: Slot, follow: impl FnOnce() -> AbortHandle) {
        if let Some(mut armed) = self.lock(candidacy) {
            armed.tasks.insert(Target::Record(slot), follow());
        }
    }

    /// Whether a change of the record will be reported without another watch.
    pub fn has_record(&self, candidacy: Candidacy, slot: Slot) -> bool {
        self.lock(candidacy).is_some_and(|armed| armed.tasks.contains_key(&Target::Record(slot)))
    }

    /// Whether this touch is new; `true` only once.
    pub fn is_news(&self, target: &Target, touch: i64) -> bool {
        let mut armed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        armed.touches.insert(target.clone(), touch) != Some(touch)
    }

    /// Drops them all, for good.
    pub fn close(&self) {
        let mut armed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        armed.closed = true;
        armed.drop_all();
    }

    /// `None` if the candidacy or the session has been given up. Drops watches of an earlier candidacy and forgets
    /// those that fired.
    fn lock(&self, candidacy: Candidacy) -> Option<MutexGuard<'_, Armed>> {
        let mut armed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if armed.candidacy < candidacy {
            armed.drop_all();
            armed.candidacy = candidacy;
        }
        armed.tasks.retain(|_, task| !task.is_finished());
        (armed.candidacy == candidacy && !armed.closed).then_some(armed)
    }
}

impl Armed {
    fn arm(&mut self, watches: Vec<Watch>, arm: impl Fn(Watch) -> AbortHandle) {
        for watch in watches {
            let target = watch.target.clone();
            self.tasks.entry(target).or_insert_with(|| arm(watch));
        }
    }

    fn drop_all(&mut self) {
        for (_, task) in std::mem::take(&mut self.tasks) {
            task.abort();
        }
    }
}
