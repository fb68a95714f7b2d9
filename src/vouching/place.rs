//! Which of its addresses a host tells others, if nobody chose one.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// A search, in a thread of its own: a name resolution that hangs is left behind there, because `getaddrinfo(3)` cannot be
/// cancelled.
#[derive(Debug)]
pub struct Search(mpsc::Receiver<Found>);

/// One of both, or both: an address of which no other host can make use, as long as a server that may be another host was not found.
#[derive(Debug)]
pub struct Found {
    pub address: Option<IpAddr>,
    /// Why the last of these servers was not found.
    pub failure: Option<io::Error>,
}

impl Found {
    /// # Errors
    /// If a server was not found that may have led to another address.
    fn certain(self) -> io::Result<IpAddr> {
        match self {
            Self { failure: Some(failure), .. } => Err(failure),
            Self { address, .. } => address.ok_or_else(|| io::ErrorKind::NotFound.into()),
        }
    }
}

impl Search {
    /// For the address from which this host reaches the first of these servers, `host:port,…`, that is another host; if there
    /// is none, one from which it reaches a server of its own (127.0.0.1, for example). Nothing is sent.
    pub fn begin(servers: &str) -> Self {
        let servers: Vec<String> = servers.split(',').map(str::to_owned).collect();
        Self::of(move || find(&servers))
    }

    fn of(find: impl FnOnce() -> Found + Send + 'static) -> Self {
        let (sender, answer) = mpsc::channel();
        let for_failure = sender.clone();
        let started = thread::Builder::new().name("resolve".to_owned()).spawn(move || drop(sender.send(find())));
        if let Err(error) = started {
            drop(for_failure.send(Found { address: None, failure: Some(error) }));
        }
        Self(answer)
    }

    /// What was found, once.
    pub fn found(&self) -> Option<Found> {
        self.0.try_recv().ok()
    }

    /// What is found within this time.
    ///
    /// # Errors
    /// If it takes longer, or no server's name can be resolved, or no network leads to any; also if that is so of some, and the others
    /// are of this host.
    pub fn within(self, limit: Duration) -> io::Result<IpAddr> {
        self.0.recv_timeout(limit).map_or_else(
            |_| {
                let complaint = format!("the names of the servers were not resolved within {limit:?}");
                Err(io::Error::new(io::ErrorKind::TimedOut, complaint))
            },
            Found::certain,
        )
    }
}

/// The first one that others may know, else the last one.
fn find(servers: &[String]) -> Found {
    let mut found = Found { address: None, failure: None };
    for server in servers {
        match sources(server) {
            Ok(addresses) => {
                if let Some(address) = addresses.iter().find(|address| is_for_others(**address)) {
                    return Found { address: Some(*address), failure: None };
                }
                found.address = addresses.last().copied().or(found.address);
            }
            Err(error) => found.failure = Some(error),
        }
    }
    found
}

/// The addresses of this host from which it reaches this server, at least one.
fn sources(server: &str) -> io::Result<Vec<IpAddr>> {
    let mut failure = io::ErrorKind::NotFound.into();
    let sources =
        resolve(server)?.into_iter().filter_map(|address| source(address).map_err(|error| failure = error).ok());
    let sources: Vec<_> = sources.collect();
    if sources.is_empty() { Err(failure) } else { Ok(sources) }
}

fn resolve(server: &str) -> io::Result<Vec<SocketAddr>> {
    // The prefix is the client library's, for a server that speaks TLS.
    let server = server.rsplit_once("://").map_or(server, |(_, server)| server);
    Ok(server.to_socket_addrs()?.collect())
}

/// Whence the kernel would send to there (`connect(2)` of a datagram socket sends nothing).
fn source(server: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    Ok(socket.local_addr()?.ip())
}

/// A link-local address means nothing without the name of an interface, which differs on each host.
pub fn is_for_others(address: IpAddr) -> bool {
    let is_link_local = matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
    !(address.is_loopback() || address.is_unspecified() || is_link_local)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn loopback() -> IpAddr {
        Ipv4Addr::LOCALHOST.into()
    }

    #[test]
    fn a_server_of_this_host_is_reached_from_this_host() {
        for servers in ["127.0.0.1:2181", "tcp+tls://127.0.0.1:2281", "localhost:1,127.0.0.1:1"] {
            assert_eq!(Search::begin(servers).within(LIMIT).unwrap(), loopback(), "{servers}");
        }
    }

    /// The name may be that of another host, and be known later.
    #[test]
    fn an_address_of_no_use_to_others_is_in_doubt_while_a_server_is_not_found() {
        for servers in ["name.invalid:1,127.0.0.1:1", "127.0.0.1:1,name.invalid:1"] {
            let found = find(&servers.split(',').map(str::to_owned).collect::<Vec<_>>());
            assert_eq!((found.address, found.failure.is_some()), (Some(loopback()), true), "{servers}");
            assert!(Search::begin(servers).within(LIMIT).is_err(), "{servers}");
        }
    }

    #[test]
    fn what_cannot_be_reached_is_an_error() {
        for servers in ["", "name.invalid:1", "127.0.0.1"] {
            assert!(Search::begin(servers).within(LIMIT).is_err(), "{servers:?}");
        }
    }

    #[test]
    fn a_resolution_that_hangs_is_left_behind() {
        let (end, resolution) = mpsc::channel::<()>();
        let hangs = move || {
            resolution.recv().ok();
            Found { address: Some(loopback()), failure: None }
        };
        let found = Search::of(hangs).within(Duration::from_millis(20));
        assert_eq!(found.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
        drop(end);
    }

    #[test]
    fn only_others_can_use_some_addresses() {
        for (address, is) in [
            ("10.0.0.1", true),
            ("2001:db8::1", true),
            ("127.0.1.1", false),
            ("::1", false),
            ("fe80::1", false),
            ("::", false),
        ] {
            assert_eq!(is_for_others(address.parse().unwrap()), is, "{address}");
        }
    }
}
