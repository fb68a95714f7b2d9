//! A name with several addresses stands for as many servers.
//!
//! The client library tries the addresses of a name in the resolver's order until one accepts the connection. It
//! therefore stays with a server that accepts and is silent, and does not get past one that drops packets.
//!
//! With TLS the name itself is connected to: the server's certificate is for it, and the client library checks no
//! other. Otherwise the addresses replace the name, or it would be looked up again with every connection.
//!
//! `getaddrinfo(3)` needs five seconds to pass over a name server that is silent, more than a connection may take. So a lookup
//! goes on in the background when nobody waits for it any longer, and the last addresses of each name are remembered. It takes a
//! thread meanwhile, so whoever wants to know the same waits for the same lookup.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::net::lookup_host;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::background::{self, room_for_threads};
use crate::clock;
use crate::core::time::Timestamp;
use crate::zookeeper::client::address::Address;

/// So it begins where a name server has answered.
pub(crate) const UNKNOWN_NAME: &str = "the name is not known";

pub(crate) const NO_ANSWER: &str = "no name server answers in time";

/// After so long another lookup begins beside one that goes on: `/etc/resolv.conf` may have changed.
const OVERDUE: Duration = Duration::from_secs(20);

/// Every name that was looked up in this process.
static NAMES: Mutex<BTreeMap<String, Name>> = Mutex::new(BTreeMap::new());

#[derive(Default)]
struct Name {
    /// The last ones that were found; replaced by the next ones that are.
    addresses: Vec<SocketAddr>,
    /// Of the last lookup that has ended, if it found none.
    failure: Option<String>,
    lookup: Option<Lookup>,
}

struct Lookup {
    began: Timestamp,
    /// Closed when it has ended.
    ending: watch::Receiver<()>,
}

impl Lookup {
    fn goes_on(&self, now: Timestamp) -> bool {
        self.ending.has_changed().is_ok() && self.began.until(now) < OVERDUE
    }
}

/// `host:port,…`, with the addresses of each name in place of it. All names are looked up at once. For a name that is not
/// resolved in time the last known addresses stand in; a name that never was stays as it is. With TLS only the name stays.
pub(crate) async fn spread(servers: &str, limit: Duration) -> String {
    let spread = join_all(servers.split(',').map(|server| places(server, limit))).await;
    spread.concat().join(",")
}

async fn places(server: &str, limit: Duration) -> Vec<String> {
    if Address::of(server).is_tls || server.parse::<SocketAddr>().is_ok() {
        return vec![server.to_owned()];
    }
    let (mut ending, is_known) = look_up(server);
    // Somebody's lease may depend on the next connection.
    let patience = if is_known { limit / 4 } else { limit };
    // It never changes: an error says that the lookup has ended.
    timeout(patience, ending.changed()).await.ok();
    instead_of(server, names().get(server).map_or(&[], |name| &name.addresses))
}

/// Why the name of this server stands for no address, as far as is known within this time.
pub(crate) async fn unresolved(server: Address<'_>, limit: Duration) -> Option<String> {
    if server.host.parse::<IpAddr>().is_ok() {
        return None;
    }
    let server = server.to_string();
    let (mut ending, _) = look_up(&server);
    if timeout(limit, ending.changed()).await.is_err() {
        return Some(NO_ANSWER.to_owned());
    }
    names().get(&server).and_then(|name| name.failure.clone())
}

/// The same, before the client library looks the name up by itself: that does not wait for a lookup of ours, unless one goes on, or
/// none has found anything.
pub(crate) async fn obstacle(server: Address<'_>, limit: Duration) -> Option<String> {
    let (name, now) = (server.to_string(), clock::now().lease);
    let is_free = |name: &Name| {
        let goes_on = name.lookup.as_ref().is_some_and(|lookup| lookup.goes_on(now));
        !name.addresses.is_empty() && !goes_on
    };
    if names().get(&name).is_some_and(is_free) {
        look_up(&name);
        return None;
    }
    unresolved(server, limit).await
}

/// Begins a lookup, unless one goes on. Its end, and whether there are addresses of before.
fn look_up(server: &str) -> (watch::Receiver<()>, bool) {
    let now = clock::now().lease;
    let mut names = names();
    let name = names.entry(server.to_owned()).or_default();
    let is_known = !name.addresses.is_empty();
    if let Some(lookup) = name.lookup.as_ref().filter(|lookup| lookup.goes_on(now)) {
        return (lookup.ending.clone(), is_known);
    }
    let (end, ending) = watch::channel(());
    name.lookup = Some(Lookup { began: now, ending: ending.clone() });
    let server = server.to_owned();
    background::spawn(async move {
        let Address { host, port, .. } = Address::of(&server);
        let found = match room_for_threads() {
            Ok(()) => lookup_host((host, port)).await.map_err(|error| format!("{UNKNOWN_NAME} ({error})")),
            Err(error) => Err(error.to_string()),
        };
        match found {
            Ok(addresses) => remember(&server, addresses.collect()),
            Err(failure) => {
                tracing::debug!(server, failure, "Name was not resolved");
                note_failure(&server, failure);
            }
        }
        drop(end);
    });
    (ending, is_known)
}

fn remember(server: &str, addresses: Vec<SocketAddr>) {
    let mut names = names();
    let name = names.entry(server.to_owned()).or_default();
    name.failure = None;
    if !addresses.is_empty() {
        name.addresses = addresses;
    }
}

fn note_failure(server: &str, failure: String) {
    names().entry(server.to_owned()).or_default().failure = Some(failure);
}

fn names() -> MutexGuard<'static, BTreeMap<String, Name>> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The servers in a random order, so that the sessions of many processes spread over them.
pub(crate) fn shuffled(servers: &str) -> Vec<&str> {
    let mut servers: Vec<_> = servers.split(',').collect();
    servers.sort_by_cached_key(|server| RandomState::new().hash_one(server));
    servers
}

/// Each address once; the name itself if there is none.
fn instead_of(server: &str, addresses: &[SocketAddr]) -> Vec<String> {
    let mut places = Vec::new();
    for address in addresses.iter().map(ToString::to_string) {
        if !places.contains(&address) {
            places.push(address);
        }
    }
    if places.is_empty() { vec![server.to_owned()] } else { places }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_addresses_stands_for_each_of_them() {
        let of = |texts: &[&str]| {
            let addresses: Vec<_> = texts.iter().map(|text| text.parse().unwrap()).collect();
            instead_of("name:1", &addresses)
        };
        assert_eq!(of(&["10.0.0.1:1", "[::1]:1", "10.0.0.1:1"]), ["10.0.0.1:1", "[::1]:1"]);
        assert_eq!(of(&["10.0.0.1:1", "10.0.0.1:1"]), ["10.0.0.1:1"]);
        assert_eq!(of(&[]), ["name:1"]);
    }

    /// `.invalid` has no addresses (RFC 6761).
    #[tokio::test]
    async fn a_name_that_is_not_resolved_has_its_last_addresses_until_it_is() {
        let (server, limit) = ("moved.invalid:1", Duration::from_secs(5));
        for last in ["10.0.0.1:1", "10.0.0.2:1"] {
            remember(server, vec![last.parse().unwrap()]);
            assert_eq!(spread(server, limit).await, last);
        }
        remember("localhost:1", vec!["10.0.0.1:1".parse().unwrap()]);
        let found = spread("localhost:1", limit * 4).await;
        assert!(found.contains(":1") && !found.contains("10.0.0.1"), "{found}");
    }

    #[tokio::test]
    async fn an_address_may_name_its_interface() {
        let (server, limit) = ("[fe80::1%lo]:2181", Duration::from_secs(5));
        assert_eq!(obstacle(Address::of(server), limit).await, None);
        let found = spread(server, limit).await;
        assert!(found.parse::<SocketAddr>().is_ok(), "{found}");
    }

    #[tokio::test]
    async fn addresses_and_names_that_nobody_knows_stay_as_they_are() {
        for servers in ["127.0.0.1:1,[::1]:2", "name.invalid:1,10.0.0.1:2", "tcp+tls://localhost:1"] {
            assert_eq!(spread(servers, Duration::from_secs(5)).await, servers);
        }
    }
}
