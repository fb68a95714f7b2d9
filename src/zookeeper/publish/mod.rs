//! Reads and writes beside the election: the operators' orders, our member znode, the history. The orders are requested
//! first of all; the rest is sent after the election's own requests. Failures are retried.

pub(crate) mod acl_audit;
pub mod drain_watch;
mod handover_watch;
pub(crate) mod history_writer;
pub mod leader_query;
mod line_survey;
pub(crate) mod member_znode;
mod order_clock;

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::zookeeper::client::connection::Watcher;
use futures_util::FutureExt as _;
use futures_util::future::OptionFuture;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::clock;
use crate::core::backoff::{Backoff, LONGEST};
use crate::core::operator_orders::{Disabled, Handover, Orders, Target};
use crate::zookeeper::client::error::{RequestError, Right, if_there_at};
use crate::zookeeper::election::session::contact::Contact;
use crate::zookeeper::election::shared::Shared;
use crate::zookeeper::schema::control::{CONTROL, Handover as HandoverOrder, Orders as OrdersJson};
use crate::zookeeper::schema::history::Term;
use crate::zookeeper::schema::json::SchemaError;
pub use drain_watch::DrainNotice;
use drain_watch::Drains;
use history_writer::Unwritten;
use member_znode::OwnMember;
use order_clock::InForce;

/// Changes within this time are written once.
const COALESCED: Duration = Duration::from_millis(150);

/// The supervisor's status, for display.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MemberStatus {
    pub role: &'static str,
    pub phase: &'static str,
    /// Milliseconds since 1970, when the phase began.
    pub since: i64,
    pub why_not: Vec<String>,
    /// Of the command: `armed`, `ready` or `gone`.
    pub protection: &'static str,
    pub token: Option<i64>,
    /// Of the last term that it led, if it leads none.
    pub left: Option<i64>,
}

/// The data to publish; it outlives a session.
#[derive(Debug, Default)]
pub(crate) struct Publisher {
    status: watch::Sender<Option<MemberStatus>>,
    /// Terms that the history lacks.
    unwritten: Unwritten,
    /// The mzxid of the last orders that were reported as unreadable.
    complained_of: Mutex<i64>,
    /// The last orders that were logged.
    told: watch::Sender<OrdersJson>,
    drains: Drains,
}

impl Publisher {
    /// Publishes this status in our member znode soon.
    pub fn describe(&self, status: MemberStatus) {
        self.status.send_replace(Some(status));
    }

    /// The drain of our host, for display.
    pub fn drain(&self) -> watch::Receiver<Option<DrainNotice>> {
        self.drains.notice()
    }

    /// Logs once what operators order, and when that ends.
    fn report(&self, orders: &OrdersJson, base: &str) {
        let told = self.told.send_replace(orders.clone());
        let id = |orders: &OrdersJson| orders.disabled.as_ref().map(|order| order.order.clone());
        match &orders.disabled {
            Some(order) if id(&told) != id(orders) => tracing::warn!(why = "disabled", "{}", order.said(base)),
            None if told.disabled.is_some() => {
                tracing::info!(why = "enabled", "Enabled again: no operator disables the election any more");
            }
            _ => {}
        }
        let id = |orders: &OrdersJson| orders.handover.as_ref().map(|order| order.order.clone());
        if let Some(order) = orders.handover.as_ref().filter(|_| id(&told) != id(orders)) {
            tracing::info!(why = "handover", "{}", order.said());
        }
    }

    /// Writes this term into the history soon.
    pub fn write_down(&self, term: Term) {
        self.unwritten.add(term);
        self.status.send_modify(|_| {});
    }

    pub fn has_terms(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// The terms that the history lacks.
    pub fn unwritten(&self) -> Vec<Term> {
        self.unwritten.all()
    }

    /// Writes the terms that the history lacks.
    pub async fn write_history(&self, contact: &Contact) -> Result<(), RequestError> {
        history_writer::put(contact, &self.unwritten).await
    }
}

/// Keeps everything up to date until it is dropped. It requests the orders first: no answer is given before they are
/// known ([`Contact::briefed`]), nor between a change and the next look, so that no host leads against them.
pub(crate) async fn keep(publisher: Arc<Publisher>, contact: Weak<Contact>) {
    // Whether we are drained is a part of our member znode.
    let changed = || publisher.status.send_modify(|_| {});
    tokio::join!(
        follow_orders(&publisher, contact.clone()),
        drain_watch::follow(&publisher.drains, changed, contact.clone()),
        handover_watch::follow(publisher.told.subscribe(), contact.clone()),
        line_survey::follow(contact.clone()),
        write(&publisher, contact),
    );
}

async fn follow_orders(publisher: &Publisher, contact: Weak<Contact>) {
    let Some(mut backoff) = contact.upgrade().map(|contact| backoff(&contact)) else { return };
    while let Some(present) = contact.upgrade() {
        let looked_at = Instant::now();
        let reading = read_orders(publisher, &present);
        let read = done(&present.shared, "The operators' orders cannot be read", reading).await;
        // The election goes on even if the orders could not be read.
        present.brief_orders();
        drop(present);
        let Some((watcher, lapses_in)) = read else {
            sleep(pause(&mut backoff)).await;
            continue;
        };
        backoff.reset();
        order_clock::changed(watcher, lapses_in).await;
        contact.upgrade().iter().for_each(|present| present.orders_changed());
        rest_after(looked_at).await;
    }
}

/// Whoever writes again and again costs no more than one look in this time, which may write, too.
async fn rest_after(looked_at: Instant) {
    sleep(COALESCED.saturating_sub(looked_at.elapsed())).await;
}

/// `None`: it could not be done, which is reported.
async fn done<T>(
    shared: &Shared,
    complaint: &'static str,
    work: impl Future<Output = Result<T, RequestError>>,
) -> Option<T> {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(Ok(outcome)) => {
            shared.succeeded_aside(complaint);
            Some(outcome)
        }
        Ok(Err(error)) => {
            shared.report_aside(complaint, &error);
            None
        }
        // The client library panics on replies that are too short.
        Err(_) => None,
    }
}

/// A refusal may last, and every host meets it.
fn backoff(contact: &Contact) -> Backoff {
    Backoff::new(contact.shared.settings.instance, LONGEST)
}

fn pause(backoff: &mut Backoff) -> Duration {
    let now = clock::now().lease;
    now.until(backoff.retry_at(now))
}

/// The watch is armed before the read, so it reports every later change.
async fn read_orders(publisher: &Publisher, contact: &Contact) -> Result<(Watcher, Option<Duration>), RequestError> {
    let path = format!("{}/{CONTROL}", contact.shared.paths.base);
    let found = contact.client.check_and_watch_stat(&path);
    let read = contact.client.get_data(&path);
    let (found, read) = tokio::join!(found, read);
    let (was_there, watcher) = found.map_err(|error| RequestError::from(error).without(Right::Read, &path))?;
    let InForce { orders, lapses_in } = match if_there_at(&path, read)? {
        Some((data, stat)) => {
            let ignored = "The operators' orders could not be read, and are ignored";
            let orders = understood(OrdersJson::read(&data), stat.mzxid, &publisher.complained_of, ignored);
            order_clock::judge(contact, orders.unwrap_or_default(), &stat).await
        }
        None => InForce { orders: OrdersJson::default(), lapses_in: was_there.map(|_| drain_watch::AT_ONCE) },
    };
    publisher.report(&orders, &contact.shared.settings.base);
    contact.shared.ordered(for_us(&orders, &contact.shared.settings.id));
    Ok((watcher, lapses_in))
}

/// What operators have written. What cannot be read orders nothing, and is reported once.
fn understood<T>(read: Result<T, SchemaError>, mzxid: i64, complained_of: &Mutex<i64>, said: &str) -> Option<T> {
    let report = |complaint: SchemaError| {
        let mut last = complained_of.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *last, mzxid) != mzxid {
            tracing::warn!(%complaint, "{said}");
        }
    };
    read.map_err(report).ok()
}

fn for_us(json: &OrdersJson, own_id: &str) -> Orders {
    let handover = |order: &HandoverOrder| Handover {
        id: number(&order.order),
        lasts: order.lasts(),
        token: order.token,
        target: match order.to.as_deref() {
            None => Target::Anyone,
            Some(id) if id == own_id => Target::Us,
            Some(_) => Target::Another,
        },
        stop: order.stop,
    };
    Orders {
        disabled: json.disabled.as_ref().map(|order| Disabled { id: number(&order.order), lasts: order.lasts() }),
        handover: json.handover.as_ref().map(handover),
        // Kept as they are.
        ..Orders::default()
    }
}

/// A number that differs between orders.
fn number(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

/// Writes our member znode and the history. Returns what others do to the znode.
async fn put(
    publisher: &Publisher,
    contact: &Contact,
    own: &mut OwnMember,
    status: Option<&MemberStatus>,
) -> Result<Option<impl Future<Output = ()> + use<>>, RequestError> {
    let drained = publisher.drains.is_drained();
    let noted = match status {
        Some(status) => member_znode::put(contact, own, status, drained).await,
        None => Ok(()),
    };
    let chronicled = publisher.write_history(contact).await;
    let reported = if noted.is_ok() { acl_audit::report(contact).await } else { Ok(()) };
    noted.and(chronicled).and(reported)?;
    match status {
        Some(status) => member_znode::disturbed(contact, status, drained).await.map(Some),
        None => Ok(None),
    }
}

async fn write(publisher: &Publisher, contact: Weak<Contact>) {
    let Some(mut backoff) = contact.upgrade().map(|contact| backoff(&contact)) else { return };
    let mut changes = publisher.status.subscribe();
    let mut own = OwnMember::default();
    loop {
        sleep(COALESCED).await;
        let status = changes.borrow_and_update().clone();
        let Some(present) = contact.upgrade() else { return };
        let both = put(publisher, &present, &mut own, status.as_ref());
        let written = done(&present.shared, "What others read about us cannot be written", both).await;
        drop(present);
        if let Some(disturbed) = written {
            backoff.reset();
            tokio::select! {
                _ = changes.changed() => {}
                Some(()) = OptionFuture::from(disturbed) => {}
            }
            continue;
        }
        // A change is written at once.
        let pause = pause(&mut backoff);
        let pause = own.look_again_in(clock::now().lease).map_or(pause, |rest| pause.min(rest));
        drop(timeout(pause, changes.changed()).await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_for_us_by_our_id() {
        let to = |to: Option<&str>| {
            let order =
                HandoverOrder { order: "x".into(), to: to.map(str::to_owned), for_ms: 5, ..HandoverOrder::default() };
            for_us(&OrdersJson { handover: Some(order), ..OrdersJson::default() }, "us").handover.unwrap().target
        };
        assert_eq!([to(None), to(Some("us")), to(Some("b"))], [Target::Anyone, Target::Us, Target::Another]);
        assert_ne!(number("x"), number("y"));
    }
}
