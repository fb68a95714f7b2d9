//! Whether there is a point in making room for who leads next by a handover: it is there, and no later term has begun.
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

/// Follows what becomes of each handover, unless it is to us, until the session ends.
pub(super) async fn follow(mut orders: watch::Receiver<Orders>, contact: Weak<Contact>) {
    let Some(mut backoff) = contact.upgrade().map(|contact| backoff(&contact)) else { return };
    while let Some(present) = contact.upgrade() {
        let order = orders.borrow_and_update().handover.clone();
        let order = order.filter(|order| order.to.as_ref() != Some(&present.shared.settings.id));
        let complaint = "What becomes of a handover cannot be read";
        let read = match &order {
            Some(order) => done(&present.shared, complaint, read(&present, order)).await.map(Some),
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

async fn first_of((term, member): (Watcher, Option<Watcher>)) {
    tokio::select! {
        _ = term.changed() => {}
        Some(_) = OptionFuture::from(member.map(Watcher::changed)) => {}
    }
}

/// The watches are armed before the reads, so they report every later change.
async fn read(contact: &Contact, order: &Handover) -> Result<(Watcher, Option<Watcher>), RequestError> {
    let (shared, client, term) = (&contact.shared, &contact.client, &contact.shared.paths.term);
    let forbidden = |path| move |error: Error| RequestError::from(error).without(Right::Read, path);
    let member = order.to.as_ref().map(|to| format!("{}/{MEMBERS}/{to}", shared.paths.base));
    let target = OptionFuture::from(member.as_ref().map(|member| async {
        let (found, data) = (client.check_and_watch_stat(member), client.get_data(member));
        let (found, data) = tokio::join!(found, data);
        let (_, watcher) = found.map_err(forbidden(member))?;
        let member = if_there_at(member, data)?.and_then(|(data, _)| Member::read(&data).ok());
        Ok::<_, RequestError>((member.is_some_and(|member| member.eligible), watcher))
    }));
    let (began, target) = tokio::join!(client.check_and_watch_stat(term), target);
    let (began, term_watcher) = began.map_err(forbidden(term))?;
    let (has_target, member_watcher) = target.transpose()?.unzip();
    let newest = began.map_or(order.token, |stat| stat.mzxid);
    shared.foresee(Prospect { of: number(&order.order), newest, has_target: has_target.unwrap_or(true) });
    Ok((term_watcher, member_watcher))
}
