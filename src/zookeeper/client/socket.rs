//! Sets options on the client library's sockets, because it sets none and gives no access to them.
//!
//! Without `TCP_NODELAY` the first requests of a session wait a round trip for the acknowledgement of the library's
//! ping (Nagle's algorithm, RFC 896). `TCP_USER_TIMEOUT` ends a connection whose data is not acknowledged (`tcp(7)`).

use std::fs;
use std::net::TcpStream;
use std::time::Duration;

use rustix::net::sockopt::set_tcp_user_timeout;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use super::address::Address;

/// Sets the options on the connections to this server that lack them. Best effort: without them it works, but slower.
pub(crate) fn tune(server: &str, session_timeout: Duration) {
    let limit = u32::try_from(session_timeout.as_millis()).unwrap_or(u32::MAX);
    for socket in sockets_to(Address::of(server).port) {
        if socket.nodelay().is_ok_and(|is_set| !is_set) {
            let (nodelay, user_timeout) = (socket.set_nodelay(true), set_tcp_user_timeout(&socket, limit));
            tracing::debug!(?nodelay, ?user_timeout, "Socket options were set");
        }
    }
}

/// Copies of the descriptors of our connections to this port (`pidfd_getfd(2)`, Linux 5.6). Closing a copy leaves the
/// connection open.
fn sockets_to(port: u16) -> Vec<TcpStream> {
    let Ok(own) = pidfd_open(getpid(), PidfdFlags::empty()) else { return Vec::new() };
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<i32> = open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let copies = numbers.into_iter().filter_map(|number| pidfd_getfd(&own, number, PidfdGetfdFlags::empty()).ok());
    let is_to = |socket: &TcpStream| socket.peer_addr().is_ok_and(|peer| peer.port() == port);
    copies.map(TcpStream::from).filter(is_to).collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use rustix::net::sockopt::tcp_user_timeout;

    use super::*;

    #[test]
    fn the_connections_to_a_server_are_tuned_and_no_others() {
        let (server, other) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let to = |listener: &TcpListener| TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (ours, strangers) = (to(&server), to(&other));
        tune(&server.local_addr().unwrap().to_string(), Duration::from_secs(15));
        assert!(ours.nodelay().unwrap() && !strangers.nodelay().unwrap());
        assert_eq!(tcp_user_timeout(&ours).unwrap(), 15_000);
    }
}
