//! Until when an order is in force. Its time counts by `ZooKeeper`'s clock from the write that gave it, whenever a host
//! learns of it. The first host that finds it lapsed deletes it, conditional on the version, so no other order is lost.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::zookeeper::client::connection::{MultiResult, Stat, Watcher};
use crate::zookeeper::client::error::RequestError;
use crate::zookeeper::client::requests::ANY_VERSION;
use crate::zookeeper::election::session::contact::{Contact, LOOK_AGAIN};
use crate::zookeeper::schema::control::{CONTROL, Orders};

/// Without `ZooKeeper`'s time, it is asked for again after this.
pub(super) const AGAIN: Duration = Duration::from_secs(1);

/// The orders in force, and how long that holds unless they are changed.
pub(super) struct InForce {
    pub orders: Orders,
    pub lapses_in: Option<Duration>,
}

/// Removes lapsed orders. If the time is not known, every order stays in force.
pub(super) async fn judge(contact: &Contact, mut orders: Orders, stat: &Stat) -> InForce {
    orders.date(stat.mtime);
    if !orders.has_limit() {
        return InForce { orders, lapses_in: None };
    }
    match now(contact).await {
        Ok(now) => {
            let in_force = orders.in_force(now);
            if in_force != orders {
                delete_lapsed(contact, &in_force, stat.version).await;
            }
            InForce { lapses_in: in_force.lapses_in(now), orders: in_force.as_of(now) }
        }
        Err(error) => {
            tracing::debug!(?error, "ZooKeeper's time is not known");
            InForce { orders, lapses_in: Some(AGAIN) }
        }
    }
}

/// Waits until the orders have changed or one of them has lapsed.
pub(super) async fn changed(watcher: Watcher, lapses_in: Option<Duration>) {
    drop(timeout(lapses_in.unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN), watcher.changed()).await);
}

/// The time of a write: of a znode that exists only within its transaction.
pub(super) async fn now(contact: &Contact) -> Result<i64, RequestError> {
    let shared = &contact.shared;
    let path = format!("{}/clock-{:016x}", shared.paths.base, shared.settings.instance);
    let mut multi = contact.client.multi();
    multi.check(&shared.paths.term, ANY_VERSION);
    multi.create(&path, b"", &shared.settings.acl.persistent());
    multi.set(&path, b"", None);
    multi.delete(&path, None);
    let results = multi.commit().await.map_err(|error| RequestError::of_multi(&error, &[]))?;
    let written = results.iter().find_map(|result| match result {
        MultiResult::SetData { stat } => Some(stat.mtime),
        _ => None,
    });
    written.ok_or_else(|| RequestError::unknown("a write without a time"))
}

/// Every host that sees an order lapse tries to delete it; one succeeds.
async fn delete_lapsed(contact: &Contact, in_force: &Orders, version: i32) {
    let path = format!("{}/{CONTROL}", contact.shared.paths.base);
    if let Err(error) = contact.client.set_data(&path, &in_force.written(), Some(version)).await {
        tracing::debug!(%error, "A lapsed order was not deleted");
        // A pause, in case a right is missing.
        sleep(Duration::from_millis(100)).await;
    }
}
