//! Gets tickets before they are needed, so that a login after a lost connection asks only the server.
//!
//! With a client's keytab, MIT's library gets a new ticket when half of the old one's lifetime is over, and only when a
//! login asks for it. A silent key distribution centre would then delay that login for longer than a session lives,
//! although the old ticket is valid. Each attempt postpones the next one by half a minute (`kg_cred_time_to_refresh`),
//! so frequent attempts here keep the delay out of nearly every login.
//!
//! It blocks as long as that library does, so it must not run on the thread of a session.

use std::convert::Infallible;
use std::time::Duration;

use tokio::time::sleep;

use crate::zookeeper::client::kerberos::complaint;
use crate::zookeeper::client::kerberos::{Complaint, Principal};

const EVERY: Duration = Duration::from_secs(5);
/// The library gives up earlier.
const AT_MOST: Duration = Duration::from_secs(600);

/// Repeatedly gets what the next login needs, and reports when that would fail.
pub(crate) async fn keep(principal: Principal, hosts: Vec<String>) -> Infallible {
    let mut known = None;
    loop {
        sleep(EVERY).await;
        let complaint = first(&principal, &hosts).await;
        match &complaint {
            Some(Complaint { text, .. }) if known != complaint => tracing::warn!("The next login may fail: {text}"),
            None if known.is_some() => tracing::info!("Tickets of Kerberos are there again"),
            _ => {}
        }
        known = complaint;
    }
}

/// Asks for each of them: one that nobody knows must not keep the others from theirs.
async fn first(principal: &Principal, hosts: &[String]) -> Option<Complaint> {
    let mut first = None;
    for host in hosts {
        let complaint = complaint(principal, host, AT_MOST).await;
        first = first.or(complaint);
    }
    first
}
