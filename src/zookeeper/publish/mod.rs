//! What is told and heard beside the election: our member's znode is kept up to date, the last terms are written down, and
//! the orders of operators are followed. These are asked for first of all; the rest waits behind the election's own requests.
//! All of it is tried again.
//!
//! Never: a request that the election waits for, but that first one; a znode under a base that has no record yet.

pub(crate) mod acl_audit;
pub(crate) mod history_writer;
pub mod leader_query;
pub(crate) mod member_znode;
mod order_clock;

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::watch;
use tokio::time::sleep;
use zookeeper_client::{Error, OneshotWatcher};

use crate::core::docket::{Disabled, Handover, Orders, Target};
use crate::zookeeper::client::error::{Fault, Right};
use crate::zookeeper::election::session::Contact;
use crate::zookeeper::schema::control::{CONTROL, Handover as HandoverOrder, Orders as OrdersJson};
use crate::zookeeper::schema::history::Term;
use history_writer::Unwritten;
use member_znode::Roster;
use order_clock::InForce;

/// What comes within this is one change: nobody needs every phase of a quick sequence.
const COALESCED: Duration = Duration::from_millis(150);
/// After a failure.
const RETRY: Duration = Duration::from_millis(500);

/// What the supervisor says about itself, for people.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Account {
    pub role: &'static str,
    pub phase: &'static str,
    /// Milliseconds since 1970, when the phase began.
    pub since: i64,
    pub why_not: Vec<&'static str>,
    pub token: Option<i64>,
}

/// What outlives a session.
#[derive(Debug)]
pub(crate) struct Board {
    pub account: watch::Sender<Option<Account>>,
    orders: watch::Sender<Orders>,
    /// What is to be written into the history.
    pub unwritten: Unwritten,
    complained_of: Mutex<i64>,
    /// The orders that were told last.
    told: Mutex<OrdersJson>,
}

impl Default for Board {
    fn default() -> Self {
        let (account, orders) = (watch::Sender::new(None), watch::Sender::new(Orders::default()));
        Self {
            account,
            orders,
            unwritten: Unwritten::default(),
            complained_of: Mutex::default(),
            told: Mutex::default(),
        }
    }
}

impl Board {
    pub fn orders(&self) -> watch::Receiver<Orders> {
        self.orders.subscribe()
    }

    /// The term with this token is asked for.
    pub fn asked_for(&self, token: i64) {
        self.change(|known| Orders { asked_for: Some(token), ..known });
    }

    fn change(&self, change: impl FnOnce(Orders) -> Orders) {
        self.orders.send_if_modified(|known| {
            let changed = change(*known);
            std::mem::replace(known, changed) != changed
        });
    }

    /// Says once what operators order, and when that is over.
    fn report(&self, orders: &OrdersJson) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let id = |orders: &OrdersJson| orders.disabled.as_ref().map(|order| order.order.clone());
        match &orders.disabled {
            Some(order) if id(&told) != id(orders) => tracing::warn!("{}", order.said()),
            None if told.disabled.is_some() => {
                tracing::info!("Enabled again: no operator disables the election any more");
            }
            _ => {}
        }
        let id = |orders: &OrdersJson| orders.handover.as_ref().map(|order| order.order.clone());
        if let Some(order) = orders.handover.as_ref().filter(|_| id(&told) != id(orders)) {
            tracing::info!("{}", order.said());
        }
        told.clone_from(orders);
    }

    /// An account or a term to be written: whoever writes is told.
    pub fn describe(&self, account: Account) {
        self.account.send_replace(Some(account));
    }

    pub fn has_terms(&self) -> bool {
        !self.unwritten.is_empty()
    }

    pub fn write_down(&self, term: Term) {
        self.unwritten.add(term);
        self.account.send_modify(|_| {});
    }
}

/// Keeps everything up to date, until it is dropped. The first thing that it does is to ask for the orders: no answer is
/// given before they are known ([`Contact::briefed`]), so that nobody leads against them.
pub(crate) async fn keep(contact: Weak<Contact>) {
    tokio::join!(follow_orders(contact.clone()), write(contact));
}

async fn follow_orders(contact: Weak<Contact>) {
    while let Some(present) = contact.upgrade() {
        let read = AssertUnwindSafe(read_orders(&present)).catch_unwind().await;
        let office = Arc::clone(&present.office);
        // Whatever has kept us from them, the election goes on without.
        present.brief();
        drop(present);
        match read {
            Ok(Ok((watcher, lapses_in))) => order_clock::changed(watcher, lapses_in).await,
            Ok(Err(fault)) => {
                office.report_aside("The operators' orders cannot be read", &fault);
                sleep(RETRY).await;
            }
            Err(_) => sleep(RETRY).await,
        }
    }
}

/// The watch is armed by the request before the read, so it reports all that comes after what was read.
async fn read_orders(contact: &Contact) -> Result<(OneshotWatcher, Option<Duration>), Fault> {
    let path = format!("{}/{CONTROL}", contact.office.paths.base);
    let found = contact.client.check_and_watch_stat(&path);
    let read = contact.client.get_data(&path);
    let (found, read) = tokio::join!(found, read);
    let forbidden = |error: Error| Fault::from(error).without(Right::Read, &path);
    let (_, watcher) = found.map_err(forbidden)?;
    let found = match read {
        Ok((data, stat)) => order_clock::judge(contact, understood(contact, &data, stat.mzxid), &stat).await,
        Err(Error::NoNode) => InForce { orders: OrdersJson::default(), lapses_in: None },
        Err(error) => return Err(forbidden(error)),
    };
    let InForce { orders, lapses_in } = found;
    contact.office.board.report(&orders);
    let orders = for_us(&orders, &contact.office.settings.id);
    contact.office.board.change(|known| Orders { asked_for: known.asked_for, ..orders });
    Ok((watcher, lapses_in))
}

/// What cannot be read orders nothing, and is reported once.
fn understood(contact: &Contact, data: &[u8], mzxid: i64) -> OrdersJson {
    let board = &contact.office.board;
    match OrdersJson::read(data) {
        Ok(json) => json,
        Err(complaint) => {
            let mut last = board.complained_of.lock().unwrap_or_else(PoisonError::into_inner);
            if std::mem::replace(&mut *last, mzxid) != mzxid {
                tracing::warn!(complaint, "The operators' orders could not be read, and are ignored");
            }
            OrdersJson::default()
        }
    }
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
        asked_for: None,
    }
}

/// Tells one order from another.
fn number(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

async fn write(contact: Weak<Contact>) {
    let Some(office) = contact.upgrade().map(|contact| Arc::clone(&contact.office)) else { return };
    let mut changes = office.board.account.subscribe();
    let mut roster = Roster::default();
    loop {
        sleep(COALESCED).await;
        let account = changes.borrow_and_update().clone();
        let Some(present) = contact.upgrade() else { return };
        let both = async {
            let noted = match &account {
                Some(account) => member_znode::put(&present, &mut roster, account).await,
                None => Ok(()),
            };
            let chronicled = history_writer::put(&present).await;
            let reported = if noted.is_ok() { acl_audit::report(&present).await } else { Ok(()) };
            noted.and(chronicled).and(reported)
        };
        let written = AssertUnwindSafe(both).catch_unwind().await;
        drop(present);
        match written {
            Ok(Ok(())) => drop(changes.changed().await),
            Ok(Err(fault)) => {
                office.report_aside("What others read about us cannot be written", &fault);
                sleep(RETRY).await;
            }
            Err(_) => sleep(RETRY).await,
        }
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
