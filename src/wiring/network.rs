//! The socket at which other hosts ask this one for promises.

mod meanwhile;
mod search;

use std::fmt::Display;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use self::meanwhile::Meanwhile;
use crate::config::error::{ConfigError, quoted};
use crate::config::{Config, Vouch};
use crate::core::action::ExitReason;
use crate::core::lease::RENEWALS_PER_LEASE;
use crate::exit::Status;
use crate::guard::handle::upgrade::take_descriptor;
use crate::supervisor::Observers;
use crate::supervisor::upgrade::document::Document;
use crate::vouching::{Socket, place};
use crate::wiring;

/// Why there is no socket, and the program ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Hindrance {
    Refused(ConfigError),
    /// We were asked to stop, or the time limit is over, while the servers' names could not be resolved.
    Ended(ExitReason),
}

/// From a failure to the next attempt.
const PAUSE: Duration = Duration::from_secs(1);

/// How long the names may take if a command runs already, with an earlier program: nobody renews its lease meanwhile.
fn patience(lease: Duration) -> Duration {
    lease / RENEWALS_PER_LEASE
}

/// Opens the socket at which other hosts ask this one for promises, or takes up that of the program before; after the fork of
/// the guard, which must not inherit it, and before we contend. While no address leads to the servers we wait, as without
/// `--vouch`. With an earlier program a command runs already, for whose sake we do without what is refused. `known`: where other
/// hosts asked this process before a standstill.
///
/// # Errors
///
/// There is no such address on this host, it is taken, or the wait for an address that leads to the servers is over.
pub fn network(
    config: &Config,
    observers: &Observers,
    before: Option<&Document>,
    known: Option<IpAddr>,
) -> Result<Option<Arc<Socket>>, Hindrance> {
    let Some(vouch) = config.vouch else { return Ok(None) };
    let Some(before) = before else {
        let meanwhile = Meanwhile::new(config, observers);
        return open(meanwhile, vouch, known).map(|socket| Some(Arc::new(socket)));
    };
    let taken_up = before.socket.map(|number| Socket::take_up(take_descriptor(number)?));
    let at_once = || open_at_once(config, vouch, patience(before.machine.lease()));
    let opened = match taken_up {
        Some(Ok(socket)) => Ok(socket),
        Some(Err(error)) => {
            tell_lost_socket(error);
            at_once()
        }
        None => at_once(),
    };
    match opened {
        Err(refusal) => {
            tracing::error!("{}; nobody can vouch for the command", refusal.sentence);
            Ok(None)
        }
        Ok(socket) => Ok(Some(Arc::new(socket))),
    }
}

/// After an upgrade: other hosts ask at the old address until they read the new one.
pub fn tell_lost_socket(error: impl Display) {
    tracing::warn!("The socket for vouching could not be taken over: {error}; another one is opened");
}

fn open(mut meanwhile: Meanwhile<'_>, vouch: Vouch, known: Option<IpAddr>) -> Result<Socket, Hindrance> {
    if let Some(place) = vouch.address {
        return bind_in_time(meanwhile, place);
    }
    // The names need not be resolved, which may last.
    let known = known.filter(|address| place::is_for_others(*address));
    if let Some(Ok(socket)) = known.map(|address| Socket::bind(any_port(address))) {
        return Ok(socket);
    }
    let limit = limit(meanwhile.config);
    let found = search::towards(&mut meanwhile, limit).map_err(Hindrance::Ended)?;
    bind(any_port(found)).map_err(Hindrance::Refused)
}

/// Another process in the place of one that has rejoined would not know what this one knows, so this one waits for its address.
fn bind_in_time(mut meanwhile: Meanwhile<'_>, address: SocketAddr) -> Result<Socket, Hindrance> {
    let mut told = false;
    loop {
        match bind(address) {
            Err(refusal) if wiring::has_rejoined() && refusal.status == Status::Unavailable => {
                if !told {
                    tracing::warn!(why = "address-gone", "{}; trying again every second", refusal.sentence);
                }
                told = true;
            }
            bound => return bound.map_err(Hindrance::Refused),
        }
        meanwhile.begin();
        if meanwhile.asked_to_stop(PAUSE) {
            return Err(Hindrance::Ended(ExitReason::StopRequested(None)));
        }
    }
}

fn any_port(address: IpAddr) -> SocketAddr {
    SocketAddr::new(address, 0)
}

/// For the first contact with the ensemble. It limits only the first election.
fn limit(config: &Config) -> Option<Duration> {
    let limits = [config.connect_timeout, config.service.start_deadline];
    limits.into_iter().flatten().min().filter(|_| !wiring::has_rejoined())
}

fn open_at_once(config: &Config, vouch: Vouch, patience: Duration) -> Result<Socket, ConfigError> {
    let found = || place::Search::begin(&config.servers).within(patience).map(any_port);
    let place = vouch.address.map_or_else(found, Ok).map_err(|error| {
        let complaint = format!("no address of this host leads to a server: {error}");
        ConfigError::new(Status::Unavailable, "--vouch-address", complaint)
    })?;
    bind(place)
}

fn bind(address: SocketAddr) -> Result<Socket, ConfigError> {
    Socket::bind(address).map_err(|error| {
        let shown = quoted(&address.to_string());
        let complaint =
            format!("{shown} cannot be listened at: {error}; write another address of this host, or another port");
        ConfigError::new(of_address(&error), "--vouch-address", complaint)
    })
}

/// The status for an address that cannot be listened at. Another process may give it up, and a network may come up.
pub(super) fn of_address(error: &io::Error) -> Status {
    match error.kind() {
        io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable => Status::Unavailable,
        _ => Status::Configuration,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its lease was renewed before the exchange, and must be again.
    #[test]
    fn names_that_are_not_resolved_cost_a_command_that_runs_no_lease() {
        for seconds in [2, 15, 120] {
            let lease = Duration::from_secs(seconds);
            assert!(patience(lease) <= lease / 4, "{seconds} s");
        }
    }
}
