//! The socket at which other hosts ask this one for promises.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::config::error::{ConfigError, quoted};
use crate::config::{Config, Vouch};
use crate::core::lease::RENEWALS_PER_LEASE;
use crate::guard::handle::upgrade::take_descriptor;
use crate::supervisor::upgrade::document::Document;
use crate::vouching::{Socket, place};

/// For the names of the servers, when the address towards one of them is looked for.
const RESOLUTION_LIMIT: Duration = Duration::from_secs(20);

/// How long the names may take. With an earlier program a command runs already, and nobody renews its lease meanwhile.
fn patience(lease: Option<Duration>) -> Duration {
    lease.map_or(RESOLUTION_LIMIT, |lease| lease / RENEWALS_PER_LEASE)
}

/// Opens the socket at which other hosts ask this one for promises, or takes up that of the program before; after the fork of
/// the guard, which must not inherit it, and before we contend. With an earlier program a command runs already, for whose
/// sake we do without what is refused.
///
/// # Errors
///
/// There is no such address on this host, it is taken, or no address leads to the servers.
pub fn network(config: &Config, before: Option<&Document>) -> Result<Option<Arc<Socket>>, ConfigError> {
    let Some(vouch) = config.vouch else { return Ok(None) };
    let taken_up = before.and_then(|document| document.socket).map(|number| Socket::take_up(take_descriptor(number)?));
    let opened = match taken_up {
        Some(Ok(socket)) => Ok(socket),
        Some(Err(_)) | None => open(config, vouch, patience(before.map(|document| document.machine.lease()))),
    };
    match opened {
        Err(refusal) if before.is_some() => {
            tracing::error!("{}; nobody can vouch for the command", refusal.sentence);
            Ok(None)
        }
        opened => opened.map(|socket| Some(Arc::new(socket))),
    }
}

fn open(config: &Config, vouch: Vouch, patience: Duration) -> Result<Socket, ConfigError> {
    let refused = |complaint: String| ConfigError::configuration("--vouch-address", complaint);
    let found = || place::towards(&config.servers, patience).map(|found| SocketAddr::new(found, 0));
    let address = vouch.address.map_or_else(found, Ok).map_err(|error| {
        let complaint =
            format!("no address of this host leads to a server: {error}; write the one that other hosts reach");
        refused(complaint)
    })?;
    Socket::bind(address).map_err(|error| {
        let address = quoted(&address.to_string());
        refused(format!(
            "{address} cannot be listened at: {error}; write another address of this host, or another port"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its lease was renewed before the exchange, and must be again.
    #[test]
    fn names_that_are_not_resolved_cost_a_command_that_runs_no_lease() {
        assert_eq!(patience(None), RESOLUTION_LIMIT);
        for seconds in [2, 15, 120] {
            let lease = Duration::from_secs(seconds);
            assert!(patience(Some(lease)) <= lease / 4, "{seconds} s");
        }
    }
}
