//! Arms one-shot watches, each for one candidacy; an event is only a hint to look again.
//!
//! A watch that is armed too late reports at once: the state that it finds is compared with the one that was seen.
//! Persistent watches are not used: the client library does not set them again after a reconnect. A waiting watch does
//! not keep a client alive.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::background;
use crate::core::event::{Candidacy, Event};
use crate::core::guard_messages::Slot;
use crate::zookeeper::client::connection::{EventType, Stat, State, Watcher};
use crate::zookeeper::client::error::{RequestError, if_there, if_there_at};
use crate::zookeeper::election::preempt;
use crate::zookeeper::election::session::contact::{Contact, LOOK_AGAIN};
use crate::zookeeper::election::session::watches::{Target, Touch, Watch};
use crate::zookeeper::election::shared::Shared;
use crate::zookeeper::schema::paths::Paths;

/// How often we read a znode that we may not watch.
const UNWATCHED: Duration = Duration::from_secs(1);

/// Arms wanted watches that are not armed yet, and drops those that are not wanted any more.
pub(crate) fn set(contact: &Arc<Contact>, candidacy: Candidacy, wanted: Vec<Watch>) {
    contact.watches.set(candidacy, wanted, |watch| spawn(contact, candidacy, watch));
}

/// Arms these too, unless they are armed.
pub(crate) fn add(contact: &Arc<Contact>, candidacy: Candidacy, more: Vec<Watch>) {
    contact.watches.add(candidacy, more, |watch| spawn(contact, candidacy, watch));
}

/// Keeps the watch that came with a read of the record.
pub(crate) fn keep_record(contact: &Contact, candidacy: Candidacy, slot: Slot, watcher: Watcher) {
    let (shared, patience) = (Arc::clone(&contact.shared), contact.patience());
    let follow = async move {
        match within(patience, fired(watcher)).await {
            None => shared.tell(Event::LineChanged { candidacy }),
            Some(Some(_)) => shared.tell(Event::RecordChanged { candidacy }),
            Some(None) => {}
        }
    };
    contact.watches.keep_record(candidacy, slot, || background::spawn(follow));
}

fn spawn(contact: &Arc<Contact>, candidacy: Candidacy, watch: Watch) -> AbortHandle {
    background::spawn(follow(Arc::downgrade(contact), candidacy, watch))
}

async fn follow(contact: Weak<Contact>, candidacy: Candidacy, watch: Watch) {
    let Some(shared) = contact.upgrade().map(|contact| Arc::clone(&contact.shared)) else { return };
    let patience = match watch.target {
        Target::Record(_) => contact.upgrade().map_or(LOOK_AGAIN, |contact| contact.patience()),
        Target::Candidate(_) | Target::Own(_) | Target::Base(_) => LOOK_AGAIN,
    };
    let changed = within(patience, AssertUnwindSafe(is_changed(contact, &shared, &watch)).catch_unwind()).await;
    match (changed, &watch.target) {
        (Some(Ok(false)), _) => {}
        (Some(Ok(true)), Target::Record(_) | Target::Base(_)) => shared.tell(Event::RecordChanged { candidacy }),
        (Some(Ok(true)), Target::Candidate(_) | Target::Own(_)) | (None, _) => {
            shared.tell(Event::LineChanged { candidacy });
        }
        // The client library panics on a reply that is too short. The next look arms it again.
        (Some(Err(_)), _) => {
            sleep(UNWATCHED).await;
            shared.tell(Event::LineChanged { candidacy });
        }
    }
}

/// `None`: no change for this long. With several leaders only one record is watched, and its holder may be dead;
/// another look finds one that lives.
async fn within<T>(patience: Duration, changes: impl Future<Output = T>) -> Option<T> {
    timeout(patience, changes).await.ok()
}

/// Whether there is a reason to look again. `false`: the session ended.
async fn is_changed(contact: Weak<Contact>, shared: &Shared, watch: &Watch) -> bool {
    while let Some(present) = contact.upgrade() {
        let armed = arm(&present, watch).await;
        let over = present.client.state() == State::Over;
        drop(present);
        let change = match armed {
            Ok(Some(watcher)) => fired(watcher).await,
            // The end of a session is reported on its own.
            Err(RequestError::Refused(_) | RequestError::Unknown(_)) if over => return false,
            // A holder renews and does not look, so nothing else would arm it again.
            Err(RequestError::Refused(_) | RequestError::Unknown(_)) if matches!(watch.target, Target::Base(_)) => {
                sleep(UNWATCHED).await;
                continue;
            }
            // Changed already, or not armed for an unknown reason: the next look arms it again.
            Ok(None) | Err(RequestError::Refused(_) | RequestError::Unknown(_)) => return true,
            // We may not read it, so we would not be told, and look from time to time.
            Err(error) => {
                shared.report_aside("The departure of a candidate may be seen late", &error);
                sleep(UNWATCHED).await;
                return true;
            }
        };
        match (change, &watch.target) {
            (None, _) => return false,
            // A child came or went: do ours still exist?
            (Some(_), Target::Base(_)) | (Some(EventType::NodeDataChanged), Target::Own(_)) => {}
            (Some(_), _) => return true,
        }
    }
    false
}

/// `None`: the present state differs from the one that was seen.
async fn arm(contact: &Contact, watch: &Watch) -> Result<Option<Watcher>, RequestError> {
    let (client, paths) = (&contact.client, &contact.shared.paths);
    let is_as_seen = |zxid| watch.seen.is_none_or(|seen| seen == zxid);
    let (as_seen, watcher) = match &watch.target {
        // Not by `exists`: servers do not tell of a znode that we may not read (CVE-2024-23944), and those before 3.9.3 take the
        // watch all the same. A read is refused.
        Target::Candidate(name) | Target::Own(name) => {
            let path = paths.candidate(name);
            let read = client.get_and_watch_data(&path).await;
            let Some((_, stat, watcher)) = if_there_at(&path, read)? else { return Ok(None) };
            let is_news = |stat: &Stat, seen: Touch| {
                stat.mzxid != stat.czxid
                    && seen != Some(stat.mzxid)
                    && contact.watches.is_news(&watch.target, stat.mzxid)
            };
            let touched = |stat: &Stat| watch.touched.is_some_and(|seen| is_news(stat, seen));
            (is_as_seen(stat.czxid) && !touched(&stat), watcher)
        }
        Target::Record(slot) => {
            let read = client.get_and_watch_data(&paths.of(*slot).lease).await;
            let Some((_, stat, watcher)) = if_there(read)? else { return Ok(None) };
            (is_as_seen(stat.mzxid), watcher)
        }
        Target::Base(slot) => {
            let read = client.get_and_watch_children(&paths.of(*slot).home).await;
            let Some((children, _, watcher)) = if_there(read)? else { return Ok(None) };
            preempt::heed(contact, *slot, &children).await?;
            (Paths::has_record_and_term(&children), watcher)
        }
    };
    Ok(as_seen.then_some(watcher))
}

/// Waits for the watch. `None`: the session ended instead, which is reported on its own.
async fn fired(watcher: Watcher) -> Option<EventType> {
    let event = watcher.changed().await;
    (event != EventType::Session).then_some(event)
}
