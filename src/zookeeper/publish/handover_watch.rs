//! Whether there is a point in making room for the target of a handover: it is there, and no later term has begun.
//!
//! In doubt there is: then the order ends by its time.

use std::sync::Weak;

use crate::zookeeper::client::connection::{Error, Watcher};
use futures_util::future::OptionFuture;
use tokio::sync::watch;
use tokio::time::sleep;

use super::{backoff, done, number, pause};
use crate::core::operator_orders::Prospect;
use crate::zookeeper::client::error::{RequestError, Right, if_there_at};
use crate::zookeeper::election::session::contact::{Contact, LOOK_AGAIN};
use crate::zookeeper::schema::control::{Handover, Orders};
use crate::zookeeper::schema::member::{MEMBERS, Member};

/// Follows what becomes of each handover to another host until the session ends.
pub(super) async fn follow(mut orders: watch::Receiver<Orders>, contact: Weak<Contact>) {
    let Some(mut backoff) = contact.upgrade().map(|contact| backoff(&contact)) else { return };
    while let Some(present) = contact.upgrade() {
        let order = orders.borrow_and_update().handover.clone();
        let to = order.as_ref().and_then(|order| order.to.as_ref()).filter(|to| **to != present.shared.settings.id);
        let complaint = "What becomes of a handover cannot be read";
        let read = match order.as_ref().zip(to) {
            Some((order, to)) => done(&present.shared, complaint, read(&present, order, to)).await.map(Some),
            None => Some(None),
        };
        drop(present);
        let again_in = if read.is_some() {
            backoff.reset();
            LOOK_AGAIN
        } else {
            pause(&mut backoff)
        };
        let watchers = read.flatten();
        tokio::select! {
            ordered = orders.changed() => if ordered.is_err() { return },
            Some(()) = OptionFuture::from(watchers.map(first_of)) => {}
            () = sleep(again_in) => {}
        }
    }
}

async fn first_of([one, other]: [Watcher; 2]) {
    tokio::select! {
        _ = one.changed() => {}
        _ = other.changed() => {}
    }
}

/// The watches are armed before the reads, so they report every later change.
async fn read(contact: &Contact, order: &Handover, to: &str) -> Result<[Watcher; 2], RequestError> {
    let (shared, client) = (&contact.shared, &contact.client);
    let (term, member) = (&shared.paths.term, format!("{}/{MEMBERS}/{to}", shared.paths.base));
    let forbidden = |path| move |error: Error| RequestError::from(error).without(Right::Read, path);
    let (found, began) = (client.check_and_watch_stat(&member), client.check_and_watch_stat(term));
    let (found, began, data) = tokio::join!(found, began, client.get_data(&member));
    let (_, member_watcher) = found.map_err(forbidden(&member))?;
    let (began, term_watcher) = began.map_err(forbidden(term))?;
    let member = if_there_at(&member, data)?.and_then(|(data, _)| Member::read(&data).ok());
    let has_target = member.is_some_and(|member| member.eligible);
    let newest = began.map_or(order.token, |stat| stat.mzxid);
    shared.foresee(Prospect { of: number(&order.order), newest, has_target });
    Ok([member_watcher, term_watcher])
}
