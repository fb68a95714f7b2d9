//! One-shot watches, each armed for one candidacy; what fires is only a hint to look again.
//!
//! A watch that is armed too late says so at once: what it finds is compared with what was seen.
//! Persistent watches are not used: the client library does not set them again after a reconnect.
//!
//! Never: a client kept alive by a watch that waits.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures_util::FutureExt as _;
use tokio::task::AbortHandle;
use zookeeper_client::{Error, EventType, OneshotWatcher};

use super::fault::Fault;
use super::layout::Paths;
use super::session::Contact;
use crate::core::event::{Candidacy, Event};

/// What is watched.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Target {
    /// A candidate before ours, or our own: its departure.
    Candidate(String),
    /// The lease record: every change.
    Record,
    /// The children of the base: the loss of the record or the term, without an event for each renewal.
    Base,
}

/// A watch to be armed, and the zxid that tells what is there from what was seen; `None`: whatever is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Watch {
    pub target: Target,
    pub seen: Option<i64>,
}

impl Watch {
    pub fn candidate(name: &str, czxid: Option<i64>) -> Self {
        Self { target: Target::Candidate(name.to_owned()), seen: czxid }
    }

    pub fn record(mzxid: i64) -> Self {
        Self { target: Target::Record, seen: Some(mzxid) }
    }

    pub const BASE: Self = Self { target: Target::Base, seen: None };
}

/// The watches of one session.
#[derive(Debug, Default)]
pub(super) struct Watches(Mutex<Armed>);

#[derive(Debug, Default)]
struct Armed {
    candidacy: Candidacy,
    tasks: HashMap<Target, AbortHandle>,
    closed: bool,
}

impl Watches {
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
    pub fn keep_record(&self, contact: &Contact, candidacy: Candidacy, watcher: OneshotWatcher) {
        let Some(mut armed) = self.lock(candidacy) else { return };
        let office = Arc::clone(&contact.office);
        let task = tokio::spawn(async move {
            if fired(watcher).await {
                office.tell(Event::RecordChanged { candidacy });
            }
        });
        armed.tasks.insert(Target::Record, task.abort_handle());
    }

    /// Whether a change of the record will be reported without another watch.
    pub fn has_record(&self, candidacy: Candidacy) -> bool {
        self.lock(candidacy).is_some_and(|armed| armed.tasks.contains_key(&Target::Record))
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
    let changed = AssertUnwindSafe(is_changed(contact, &watch)).catch_unwind().await;
    // What could not be watched, because the client library panics on the reply, may change unseen.
    if changed.unwrap_or(true) {
        office.tell(match watch.target {
            Target::Candidate(_) => Event::LineChanged { candidacy },
            Target::Record | Target::Base => Event::RecordChanged { candidacy },
        });
    }
}

/// Whether there is a reason to look again. `false`: the session ended.
async fn is_changed(contact: Weak<Contact>, watch: &Watch) -> bool {
    while let Some(present) = contact.upgrade() {
        let armed = arm(&present, watch).await;
        let over = present.client.state().is_terminated();
        drop(present);
        let changed = match armed {
            Ok(Some(watcher)) => fired(watcher).await,
            Ok(None) => return true,
            // Not armed, and not known why: whoever looks again arms again. The end of a session is told by itself.
            Err(Fault::Unknown(_)) => return !over,
            Err(_) => return false,
        };
        // Some child of the base came or went: are ours still there?
        if !changed || watch.target != Target::Base {
            return changed;
        }
    }
    false
}

/// `None`: what is there is not what was seen.
async fn arm(contact: &Contact, watch: &Watch) -> Result<Option<OneshotWatcher>, Fault> {
    let (client, paths) = (&contact.client, &contact.office.paths);
    let is_as_seen = |zxid| watch.seen.is_none_or(|seen| seen == zxid);
    let (as_seen, watcher) = match &watch.target {
        Target::Candidate(name) => {
            let (stat, watcher) = client.check_and_watch_stat(&paths.candidate(name)).await?;
            (stat.is_some_and(|stat| is_as_seen(stat.czxid)), watcher)
        }
        Target::Record => match client.get_and_watch_data(&paths.lease).await {
            Ok((_, stat, watcher)) => (is_as_seen(stat.mzxid), watcher),
            Err(Error::NoNode) => return Ok(None),
            Err(error) => return Err(error.into()),
        },
        Target::Base => match client.list_and_watch_children(&paths.base).await {
            Ok((children, watcher)) => (Paths::has_books(&children), watcher),
            Err(Error::NoNode) => return Ok(None),
            Err(error) => return Err(error.into()),
        },
    };
    Ok(as_seen.then_some(watcher))
}

/// Waits for the watch. `false`: the session ended instead, which is reported by itself.
async fn fired(watcher: OneshotWatcher) -> bool {
    watcher.changed().await.event_type != EventType::Session
}
