//! A name with several addresses stands for as many servers.
//!
//! The client library tries the addresses of a name in the resolver's order until one accepts the connection. It
//! therefore stays with a server that accepts and is silent, and does not get past one that drops packets.
//!
//! With TLS the name itself is connected to: the server's certificate is for it, and the client library checks no
//! other. The name also stays in the list without TLS, because its addresses may change.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::time::timeout;

use crate::zookeeper::client::address::Address;

/// `host:port,…`, with the addresses of each name that has several in front of it. With TLS only the name stays. A name
/// that cannot be resolved within the limit stays as it is.
pub(crate) async fn spread(servers: &str, limit: Duration) -> String {
    let mut spread = Vec::new();
    for server in servers.split(',') {
        if !Address::of(server).is_tls && server.parse::<SocketAddr>().is_err() {
            if let Ok(Ok(addresses)) = timeout(limit, lookup_host(server)).await {
                spread.extend(several(addresses));
            }
        }
        spread.push(server.to_owned());
    }
    spread.join(",")
}

/// The servers in a random order, so that the sessions of many processes spread over them.
pub(crate) fn shuffled(servers: &str) -> Vec<&str> {
    let mut servers: Vec<_> = servers.split(',').collect();
    servers.sort_by_cached_key(|server| RandomState::new().hash_one(server));
    servers
}

/// Each once; none if there is only one.
fn several(addresses: impl Iterator<Item = SocketAddr>) -> Vec<String> {
    let mut several = Vec::new();
    for address in addresses.map(|address| address.to_string()) {
        if !several.contains(&address) {
            several.push(address);
        }
    }
    if several.len() > 1 { several } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_with_several_addresses_stands_for_several_servers() {
        let of = |texts: &[&str]| several(texts.iter().map(|text| text.parse().unwrap()));
        assert_eq!(of(&["10.0.0.1:1", "[::1]:1", "10.0.0.1:1"]), ["10.0.0.1:1", "[::1]:1"]);
        assert_eq!(of(&["10.0.0.1:1", "10.0.0.1:1"]), [""; 0]);
    }

    #[tokio::test]
    async fn addresses_and_names_that_nobody_knows_stay_as_they_are() {
        for servers in ["127.0.0.1:1,[::1]:2", "name.invalid:1,10.0.0.1:2", "tcp+tls://localhost:1"] {
            assert_eq!(spread(servers, Duration::from_secs(5)).await, servers);
        }
    }
}
