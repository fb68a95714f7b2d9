//! One-shot watches, each armed for one candidacy; what fires is only a hint to look again.
//!
//! A watch that is armed too late says so at once: what it finds is compared with what was seen.
//! Persistent watches are not used: the client library does not set them again after a reconnect.
//!
//! Never: a client kept alive by a watch that waits.

use std::collections::HashMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::zookeeper::client::connection::{Error, EventType, Stat, State, Watcher};
use futures_util::FutureExt as _;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::core::event::{Candidacy, Event};
use crate::core::order::Slot;
use crate::zookeeper::client::error::Fault;
use crate::zookeeper::election::preempt;
use crate::zookeeper::election::session::Contact;
use crate::zookeeper::schema::paths::Paths;

/// What is watched.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Target {
    /// A candidate before ours, or our own: its departure.
    Candidate(String),
    /// Our own where there are several leaders: its departure, but not that we touched it.
    Own(String),
    /// A slot's lease record: every change.
    Record(Slot),
    /// The children of a slot's home: the loss of the record or the term, without an event for each renewal.
    Base(Slot),
}

/// A watch to be armed, and the zxid that tells what is there from what was seen; `None`: whatever is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Watch {
    pub target: Target,
    pub seen: Option<i64>,
    /// The take-over that touched the candidate, as far as was seen; `None`: touches mean nothing.
    touched: Option<Touch>,
}

/// The zxid of a take-over; `None`: none was seen.
type Touch = Option<i64>;

impl Watch {
    pub fn candidate(name: &str, czxid: Option<i64>) -> Self {
        Self { target: Target::Candidate(name.to_owned()), seen: czxid, touched: None }
    }

    /// A candidate where there are several leaders: its departure, and its take-over.
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

/// The watches of one session.
#[derive(Debug, Default)]
pub(crate) struct Watches(Mutex<Armed>);

#[derive(Debug, Default)]
struct Armed {
    candidacy: Candidacy,
    tasks: HashMap<Target, AbortHandle>,
    /// The last touch of each candidate that was told: it is news only once.
    touches: HashMap<Target, i64>,
    closed: bool,
}

impl Watches {
    /// Of this candidacy, and none yet.
    pub fn of(candidacy: Candidacy) -> Self {
        Self(Mutex::new(Armed { candidacy, ..Armed::default() }))
    }

    /// Whose they are.
    pub fn candidacy(&self) -> Candidacy {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).candidacy
    }

    /// Arms what is wanted and not yet armed, and drops what is no longer wanted.
    pub fn set(&self, contact: &Arc<Contact>, candidacy: Candidacy, wanted: Vec<Watch>) {
        let Some(mut armed) = self.lock(candidacy) else { return };
        armed.tasks.retain(|target, task| {
            let keep = wanted.iter().any(|watch| watch.target == *target);
            if !keep {
                task.abort();
            }
            keep
        });
        armed.touches.retain(|target, _| wanted.iter().any(|watch| watch.target == *target));
        for watch in wanted {
            armed.spawn(contact, candidacy, watch);
        }
    }

    /// Arms these, too, where they are not armed yet.
    pub fn add(&self, contact: &Arc<Contact>, candidacy: Candidacy, more: Vec<Watch>) {
        let Some(mut armed) = self.lock(candidacy) else { return };
        for watch in more {
            armed.spawn(contact, candidacy, watch);
        }
    }

    /// Keeps the watch that came with a read of the record.
    pub fn keep_record(&self, contact: &Contact, candidacy: Candidacy, slot: Slot, watcher: Watcher) {
        let Some(mut armed) = self.lock(candidacy) else { return };
        let (office, patience) = (Arc::clone(&contact.office), contact.patience());
        let task = tokio::spawn(async move {
            match within(patience, fired(watcher)).await {
                None => office.tell(Event::LineChanged { candidacy }),
                Some(Some(_)) => office.tell(Event::RecordChanged { candidacy }),
                Some(None) => {}
            }
        });
        armed.tasks.insert(Target::Record(slot), task.abort_handle());
    }

    /// Whether a change of the record will be reported without another watch.
    pub fn has_record(&self, candidacy: Candidacy, slot: Slot) -> bool {
        self.lock(candidacy).is_some_and(|armed| armed.tasks.contains_key(&Target::Record(slot)))
    }

    /// Whether this touch is news; it is not a second time.
    fn is_news(&self, target: &Target, touch: i64) -> bool {
        let mut armed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        armed.touches.insert(target.clone(), touch) != Some(touch)
    }

    /// Drops them all, for good.
    pub fn close(&self) {
        let mut armed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        armed.closed = true;
        armed.drop_all();
    }

    /// `None` if the candidacy or the session has been given up. Watches of an earlier candidacy are dropped, those that
    /// fired are forgotten.
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
    fn spawn(&mut self, contact: &Arc<Contact>, candidacy: Candidacy, watch: Watch) {
        if !self.tasks.contains_key(&watch.target) {
            let target = watch.target.clone();
            let task = tokio::spawn(follow(Arc::downgrade(contact), candidacy, watch));
            self.tasks.insert(target, task.abort_handle());
        }
    }

    fn drop_all(&mut self) {
        for (_, task) in self.tasks.drain() {
            task.abort();
        }
    }
}

async fn follow(contact: Weak<Contact>, candidacy: Candidacy, watch: Watch) {
    let Some(office) = contact.upgrade().map(|contact| Arc::clone(&contact.office)) else { return };
    let patience = match watch.target {
        Target::Record(_) => contact.upgrade().and_then(|contact| contact.patience()),
        Target::Candidate(_) | Target::Own(_) | Target::Base(_) => None,
    };
    let changed = within(patience, AssertUnwindSafe(is_changed(contact, &watch)).catch_unwind()).await;
    // What could not be watched, because the client library panics on the reply, may change unseen.
    let Some(changed) = changed.map(|changed| changed.unwrap_or(true)) else {
        return office.tell(Event::LineChanged { candidacy });
    };
    if changed {
        office.tell(match watch.target {
            Target::Candidate(_) | Target::Own(_) => Event::LineChanged { candidacy },
            Target::Record(_) | Target::Base(_) => Event::RecordChanged { candidacy },
        });
    }
}

/// `None`: nothing came for so long. With several leaders only one record is watched, and its holder may be dead; another
/// look finds one that lives.
async fn within<T>(patience: Option<Duration>, changes: impl Future<Output = T>) -> Option<T> {
    match patience {
        Some(patience) => timeout(patience, changes).await.ok(),
        None => Some(changes.await),
    }
}

/// Whether there is a reason to look again. `false`: the session ended.
async fn is_changed(contact: Weak<Contact>, watch: &Watch) -> bool {
    while let Some(present) = contact.upgrade() {
        let armed = arm(&present, watch).await;
        let over = present.client.state() == State::Over;
        drop(present);
        let change = match armed {
            Ok(Some(watcher)) => fired(watcher).await,
            Ok(None) => return true,
            // Not armed, and not known why: whoever looks again arms again. The end of a session is told by itself.
            Err(Fault::Unknown(_)) => return !over,
            Err(_) => return false,
        };
        match (change, &watch.target) {
            (None, _) => return false,
            // Some child came or went: are ours still there?
            (Some(_), Target::Base(_)) | (Some(EventType::NodeDataChanged), Target::Own(_)) => {}
            (Some(_), _) => return true,
        }
    }
    false
}

/// `None`: what is there is not what was seen.
async fn arm(contact: &Contact, watch: &Watch) -> Result<Option<Watcher>, Fault> {
    let (client, paths) = (&contact.client, &contact.office.paths);
    let is_as_seen = |zxid| watch.seen.is_none_or(|seen| seen == zxid);
    let (as_seen, watcher) = match &watch.target {
        Target::Candidate(name) | Target::Own(name) => {
            let (stat, watcher) = client.check_and_watch_stat(&paths.candidate(name)).await?;
            let is_news = |stat: &Stat, seen: Touch| {
                stat.mzxid != stat.czxid
                    && seen != Some(stat.mzxid)
                    && contact.watches.is_news(&watch.target, stat.mzxid)
            };
            let touched = |stat: &Stat| watch.touched.is_some_and(|seen| is_news(stat, seen));
            (stat.is_some_and(|stat| is_as_seen(stat.czxid) && !touched(&stat)), watcher)
        }
        Target::Record(slot) => match client.get_and_watch_data(&paths.of(*slot).lease).await {
            Ok((_, stat, watcher)) => (is_as_seen(stat.mzxid), watcher),
            Err(Error::NoNode) => return Ok(None),
            Err(error) => return Err(error.into()),
        },
        Target::Base(slot) => match client.get_and_watch_children(&paths.of(*slot).home).await {
            Ok((children, _, watcher)) => {
                preempt::heed(contact, *slot, &children).await;
                (Paths::has_books(&children), watcher)
            }
            Err(Error::NoNode) => return Ok(None),
            Err(error) => return Err(error.into()),
        },
    };
    Ok(as_seen.then_some(watcher))
}

/// Waits for the watch. `None`: the session ended instead, which is reported by itself.
async fn fired(watcher: Watcher) -> Option<EventType> {
    let event = watcher.changed().await;
    (event != EventType::Session).then_some(event)
}
