//! Waits in the foreground until an address of this host leads to a server.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use crate::clock;
use crate::config::Config;
use crate::core::action::ExitReason;
use crate::vouching::place::{self, Found, Search};
use crate::zookeeper::client::outage::Outage;

use super::PAUSE;
use super::meanwhile::Meanwhile;

/// Between two looks whether the names are resolved.
const STEP: Duration = Duration::from_millis(20);
/// A resolution that takes longer is worth a line.
const SLOW: Duration = Duration::from_secs(5);

/// The address from which this host reaches a server; see [`Search::begin`]. One at which no other host can ask this one is taken only
/// when the others have not been found for so long as a session may last, or when the limit is over.
///
/// # Errors
/// If we were asked to stop, or none was found within the limit.
pub fn towards(meanwhile: &mut Meanwhile<'_>, limit: Option<Duration>) -> Result<IpAddr, ExitReason> {
    let Config { servers, session_timeout: doubt, .. } = meanwhile.config;
    let began = clock::now().lease;
    let mut outage = Outage::begin(began);
    let (mut search, mut searched_at) = (Search::begin(servers), began);
    let mut own = None;
    loop {
        let found = search.found();
        let (now, is_over) = (clock::now().lease, found.is_some());
        match found {
            Some(Found { address: Some(address), failure: None }) => return Ok(taken(address)),
            Some(Found { address, failure }) => {
                own = address;
                let error = failure.unwrap_or_else(|| io::ErrorKind::NotFound.into());
                outage.report(now, complaint(address, &error), false);
            }
            None if searched_at.until(now) >= SLOW => {
                outage.report(now, complaint(own, &io::ErrorKind::TimedOut.into()), false);
            }
            None => {}
        }
        let left = limit.map(|limit| limit.saturating_sub(began.until(now)));
        let is_last = left.is_some_and(|left| left.is_zero());
        if let Some(address) = own.filter(|_| is_last || began.until(now) >= *doubt) {
            return Ok(taken(address));
        }
        if is_last {
            return Err(ExitReason::Unreachable);
        }
        let pause = if is_over { PAUSE } else { STEP };
        if is_over || searched_at.until(now) >= SLOW {
            meanwhile.begin();
        }
        if meanwhile.asked_to_stop(left.map_or(pause, |left| left.min(pause))) {
            return Err(ExitReason::StopRequested(None));
        }
        if is_over {
            (search, searched_at) = (Search::begin(servers), clock::now().lease);
        }
    }
}

/// `own`: an address of no use to others.
fn complaint(own: Option<IpAddr>, error: &io::Error) -> String {
    let (but, which) = match own {
        Some(own) => (format!(" but {own}"), " at which other hosts can ask it"),
        None => (String::new(), ""),
    };
    format!(
        "no address of this host{but} leads to a server, and --vouch needs one{which}, unless --vouch-address says which: {error}"
    )
}

/// The address, after a word if it is of no use to others.
fn taken(address: IpAddr) -> IpAddr {
    if !place::is_for_others(address) {
        tracing::warn!(
            why = "address-of-no-use",
            "No other host can ask this one at {address} to vouch, and no other address of this host leads to a server; so an outage of \
             ZooKeeper would stop the command, on whichever host it runs. Write --vouch-address, or correct --connect, and restart \
             zk-leader-run on this host"
        );
    }
    address
}
