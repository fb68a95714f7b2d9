//! Waits in the foreground until an address of this host leads to a server. Nothing runs yet, and nobody but a signal to stop
//! has to be heeded.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::SigSet;
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::clock;
use crate::core::action::ExitReason;
use crate::supervisor::signals;
use crate::vouching::place::Search;
use crate::zookeeper::client::outage::Outage;

/// Between two looks whether the names are resolved.
const STEP: Duration = Duration::from_millis(20);
/// From a failure to the next attempt.
const PAUSE: Duration = Duration::from_secs(1);
/// A resolution that takes longer is worth a line.
const SLOW: Duration = Duration::from_secs(5);

/// The address from which this host reaches a server; see [`Search::begin`].
///
/// # Errors
/// If we were asked to stop, or none was found within the limit.
pub fn towards(servers: &str, limit: Option<Duration>) -> Result<IpAddr, ExitReason> {
    let (began, mut outage) = (clock::now().lease, Outage::default());
    let (mut search, mut searched_at) = (Search::begin(servers), began);
    loop {
        let found = search.found();
        let now = clock::now().lease;
        let pause = match &found {
            Some(Ok(address)) => return Ok(*address),
            Some(Err(error)) => {
                outage.report(now, complaint(error), false);
                PAUSE
            }
            None => {
                if searched_at.until(now) >= SLOW {
                    outage.report(now, complaint(&io::ErrorKind::TimedOut.into()), false);
                }
                STEP
            }
        };
        let left = limit.map(|limit| limit.saturating_sub(began.until(now)));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(ExitReason::Unreachable);
        }
        if asked_to_stop(left.map_or(pause, |left| left.min(pause))) {
            return Err(ExitReason::StopRequested(None));
        }
        if found.is_some() {
            (search, searched_at) = (Search::begin(servers), clock::now().lease);
        }
    }
}

fn complaint(error: &io::Error) -> String {
    format!(
        "no address of this host leads to a server, and --vouch needs one, unless --vouch-address says which: {error}"
    )
}

/// Whether a signal to stop comes within this time. It was held back since the start, and stays pending.
fn asked_to_stop(within: Duration) -> bool {
    let stopping: SigSet = signals::STOPPING.into_iter().collect();
    // Whatever fails, the next look comes: only the wait before it is shorter.
    let Ok(signals) = SignalFd::with_flags(&stopping, SfdFlags::SFD_CLOEXEC) else { return false };
    let mut watched = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
    poll(&mut watched, PollTimeout::try_from(within).unwrap_or(PollTimeout::MAX)).is_ok_and(|ready| ready > 0)
}
