//! Whether our host is drained: one znode for all elections below a root, which each supervisor watches.
//!
//! A drain is obeyed only while another host could take over, which the members' znodes tell: they are read while our
//! host is drained, until one is found. In doubt nobody could, and the drain is not obeyed unless it is forced.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use crate::zookeeper::client::connection::{Error, Stat, Watcher};
use futures_util::FutureExt as _;
use futures_util::future::select_all;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::{backoff, number, order_clock, pause, rest_after, understood};
use crate::core::operator_orders::Drain as DrainOrder;
use crate::zookeeper::client::ensure_path::parent;
use crate::zookeeper::client::error::{RequestError, if_there_at};
use crate::zookeeper::election::session::contact::{Contact, LOOK_AGAIN};
use crate::zookeeper::schema::control::drain::Drain;
use crate::zookeeper::schema::control::remedy;
use crate::zookeeper::schema::member::{MEMBERS, Member};
use crate::zookeeper::schema::once::Once;
use crate::zookeeper::schema::settings::Settings;

/// The drain of our host, for display.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DrainNotice {
    pub drain: Drain,
    /// By `ZooKeeper`'s clock, milliseconds since 1970.
    pub written_at: i64,
    /// Another host could take over.
    pub has_others: bool,
    /// No other host would repeat a run of ours: it is let end.
    pub runs_once: bool,
}

impl DrainNotice {
    /// Whether this host gives way, if a run of the command is at work there or if none is.
    pub fn is_obeyed(&self, is_at_work: bool) -> bool {
        self.drain.force || self.has_others && !(self.runs_once && is_at_work)
    }
}

/// What is known of a drain; it outlives a session.
#[derive(Debug, Default)]
pub(super) struct Drains {
    notice: watch::Sender<Option<DrainNotice>>,
    /// The mzxid of the last znode that was reported as unreadable.
    complained_of: Mutex<i64>,
}

impl Drains {
    pub fn notice(&self) -> watch::Receiver<Option<DrainNotice>> {
        self.notice.subscribe()
    }

    pub fn is_drained(&self) -> bool {
        self.notice.borrow().is_some()
    }

    /// Logs a change. `true`: whether our host is drained has changed.
    fn note(&self, settings: &Settings, notice: Option<DrainNotice>) -> bool {
        let is_drained = notice.is_some();
        let before = self.notice.send_replace(notice);
        let present = self.notice.borrow();
        if before != *present {
            say(settings, present.as_ref());
        }
        before.is_some() != is_drained
    }
}

fn say(settings: &Settings, notice: Option<&DrainNotice>) {
    let (host, root) = (&settings.host, parent(&settings.base));
    let Some(notice) = notice else { return tracing::info!("This host ({host}) is not drained any more") };
    let said = notice.drain.said(notice.written_at);
    if notice.is_obeyed(false) {
        let forced = || notice.drain.forced(host, root);
        let let_end = || format!(" A run at work is let end, as no other host would repeat it; {} stops it.", forced());
        let let_end = if notice.is_obeyed(true) { String::new() } else { let_end() };
        tracing::warn!(
            "This host ({host}) is drained {said}.{let_end} It is not elected meanwhile; {} ends it",
            remedy::about_host("undrain", host, root)
        );
    } else {
        tracing::warn!(
            "This host ({host}) is drained {said}. But no other host could take over, so it stays in this election; \
             {} stops it",
            notice.drain.forced(host, root)
        );
    }
}

/// A znode was there, and was deleted before it could be read: it is looked at again at once. Only who may read a znode is
/// told of its end, by servers with the mend of CVE-2024-23944.
pub(super) const AT_ONCE: Duration = Duration::ZERO;

const UNREADABLE: &str = "Whether this host is drained cannot be read; it counts as not drained";

/// The watches that tell of a change, and the time after which to look again without one.
struct Look {
    watchers: Vec<Watcher>,
    again_in: Duration,
}

/// Follows the drain of our host until the session ends.
pub(super) async fn follow(drains: &Drains, changed: impl Fn(), contact: Weak<Contact>) {
    let Some(mut backoff) = contact.upgrade().map(|contact| backoff(&contact)) else { return };
    while let Some(present) = contact.upgrade() {
        let looked_at = Instant::now();
        let read = AssertUnwindSafe(read(drains, &changed, &present)).catch_unwind().await;
        let shared = Arc::clone(&present.shared);
        present.brief_drain();
        drop(present);
        match read {
            Ok(Ok(Look { watchers, again_in })) => {
                shared.succeeded_aside(UNREADABLE);
                backoff.reset();
                let watchers = watchers.into_iter().map(|watcher| Box::pin(watcher.changed()));
                // The first watch is that of the drain itself.
                if let Ok((_, 0, _)) = timeout(again_in, select_all(watchers)).await {
                    contact.upgrade().iter().for_each(|present| present.drain_changed());
                }
                rest_after(looked_at).await;
                continue;
            }
            Ok(Err(error)) => {
                shared.report_aside(UNREADABLE, &error);
                if matches!(error, RequestError::Forbidden(_)) {
                    shared.drained(None);
                    if drains.note(&shared.settings, None) {
                        changed();
                    }
                }
            }
            Err(_) => {}
        }
        sleep(pause(&mut backoff)).await;
    }
}

/// The watch is armed before the read, so it reports every later change.
async fn read(drains: &Drains, changed: impl Fn(), contact: &Contact) -> Result<Look, RequestError> {
    let (shared, path) = (&contact.shared, &contact.shared.paths.drain);
    let (found, watcher) = contact.client.check_and_watch_stat(path).await?;
    let mut look = Look { watchers: vec![watcher], again_in: LOOK_AGAIN };
    let found = match found {
        Some(_) => {
            if let Some((data, stat)) = if_there_at(path, contact.client.get_data(path).await)? {
                in_force(drains, contact, &data, &stat).await
            } else {
                look.again_in = AT_ONCE;
                None
            }
        }
        None => None,
    };
    let mut notice = None;
    if let Some(InForce { drain, written_at, rest, again_in }) = found {
        look.again_in = again_in.min(LOOK_AGAIN);
        let has_others = !drain.force && has_others(contact, &mut look.watchers).await?;
        let (id, force) = (number(&drain.order), drain.force);
        shared.drained(Some(DrainOrder { id, lasts: rest, has_others, force }));
        let runs_once = shared.settings.once.as_ref().is_some_and(Once::is_at_most_once);
        notice = Some(DrainNotice { drain, written_at, has_others, runs_once });
    } else {
        shared.drained(None);
    }
    if drains.note(&shared.settings, notice) {
        changed();
    }
    Ok(look)
}

/// A drain that has not lapsed.
struct InForce {
    drain: Drain,
    written_at: i64,
    /// `None`: no limit.
    rest: Option<Duration>,
    /// When this may have changed by itself.
    again_in: Duration,
}

/// The first host that finds a drain lapsed deletes it. If the time is not known, it is in force.
async fn in_force(drains: &Drains, contact: &Contact, data: &[u8], stat: &Stat) -> Option<InForce> {
    let ignored = "The drain of this host could not be read, and is ignored";
    let drain = understood(Drain::read(data), stat.mzxid, &drains.complained_of, ignored)?;
    let (written_at, rest) = (stat.mtime, drain.lasts());
    let Some(end) = drain.ends_at(written_at) else {
        return Some(InForce { drain, written_at, rest, again_in: LOOK_AGAIN });
    };
    let now = match order_clock::now(contact).await {
        Ok(now) => now,
        Err(error) => {
            tracing::debug!(?error, "ZooKeeper's time is not known");
            return Some(InForce { drain, written_at, rest, again_in: order_clock::AGAIN });
        }
    };
    let rest = Duration::from_millis(u64::try_from(end.saturating_sub(now)).unwrap_or(0));
    if rest.is_zero() {
        if let Err(error) = contact.client.delete(&contact.shared.paths.drain, Some(stat.version)).await {
            tracing::debug!(%error, "A drain that has lapsed was not deleted");
        }
        return None;
    }
    Some(InForce { drain, written_at, rest: Some(rest), again_in: rest })
}

/// Whether a member on another host could take over. Watches that one, or all that could become one.
async fn has_others(contact: &Contact, watchers: &mut Vec<Watcher>) -> Result<bool, RequestError> {
    let (shared, client) = (&contact.shared, &contact.client);
    let directory = format!("{}/{MEMBERS}", shared.paths.base);
    let Some((members, _, watcher)) = if_there_at(&directory, client.get_and_watch_children(&directory).await)? else {
        watchers.push(client.check_and_watch_stat(&directory).await?.1);
        return Ok(false);
    };
    watchers.push(watcher);
    for id in members.iter().filter(|id| **id != shared.settings.id) {
        let read = client.get_and_watch_data(&format!("{directory}/{id}")).await;
        let Some((data, _, watcher)) = if_there_at(&directory, read)? else { continue };
        let member = Member::read(&data).unwrap_or_default();
        watchers.push(watcher);
        if member.can_replace(&shared.settings.host) {
            let Some(drain) = drained_too(contact, &member.host).await? else {
                // Whatever becomes of the others, this one is enough.
                watchers.drain(1..watchers.len() - 1);
                return Ok(true);
            };
            watchers.push(drain);
        }
    }
    Ok(false)
}

/// A watch on the drain of this host, if it is in force: its member may not say so yet, and two that are drained one right after the
/// other would make room for each other. A drain that we may not read counts as none, as it does on its own host.
async fn drained_too(contact: &Contact, host: &str) -> Result<Option<Watcher>, RequestError> {
    let path = format!("{}/{host}", parent(&contact.shared.paths.drain));
    match contact.client.get_and_watch_data(&path).await {
        Ok((data, stat, watcher)) => {
            let Ok(drain) = Drain::read(&data) else { return Ok(None) };
            // If the time is not known, it is in force.
            let has_lapsed = match drain.ends_at(stat.mtime) {
                Some(end) => order_clock::now(contact).await.is_ok_and(|now| now >= end),
                None => false,
            };
            Ok((!has_lapsed).then_some(watcher))
        }
        Err(Error::NoNode | Error::NoAuth | Error::BadArguments(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
