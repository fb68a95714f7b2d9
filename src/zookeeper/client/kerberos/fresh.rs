//! Tickets that are there before they are needed: a login after a lost connection then asks nobody but the server.
//!
//! With a client's keytab, MIT's library gets a new ticket when half of the old one's time is over, and only when a login asks
//! for it. A key distribution centre that is silent then would hold that login up for longer than a session lives, although the
//! old ticket is good. Each try puts off the next one by half a minute (`kg_cred_time_to_refresh`), so whoever tries more often
//! keeps that out of nearly every login's way.
//!
//! Never: on the thread of a session; it waits as long as that library does.

use std::convert::Infallible;
use std::time::Duration;

use tokio::time::sleep;

use crate::zookeeper::client::kerberos::complaint;
use crate::zookeeper::client::kerberos::{Complaint, Principal};

const EVERY: Duration = Duration::from_secs(5);
/// The library gives up before.
const AT_MOST: Duration = Duration::from_secs(600);

/// Asks for what the next login would need, again and again, and says when that would fail.
pub(crate) async fn keep(principal: Principal, hosts: Vec<String>) -> Infallible {
    let mut known = None;
    loop {
        sleep(EVERY).await;
        let complaint = first(&principal, &hosts).await;
        match &complaint {
            Some(Complaint { text, .. }) if known != complaint => tracing::warn!("The next login would fail: {text}"),
            None if known.is_some() => tracing::info!("Tickets of Kerberos are there again"),
            _ => {}
        }
        known = complaint;
    }
}

async fn first(principal: &Principal, hosts: &[String]) -> Option<Complaint> {
    for host in hosts {
        let complaint = complaint(principal, host, AT_MOST).await;
        if complaint.is_some() {
            return complaint;
        }
    }
    None
}
