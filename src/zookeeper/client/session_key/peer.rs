//! Whether the other end of a connection on `127.0.0.1` belongs to this process. A sandbox may refuse `pidfd_getfd(2)`, and
//! `/proc/net/tcp` may leave a socket out while others come and go.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use nix::sys::socket::{SockaddrIn, getpeername, getsockname};

/// Whether this process has the end `peer` of a connection to this port of `127.0.0.1`: both addresses together are those of
/// one connection only.
pub(super) fn is_ours(peer: SocketAddr, port: u16) -> bool {
    let SocketAddr::V4(peer) = peer else { return false };
    let own = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    open.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .any(|fd| getsockname(fd) == Ok(SockaddrIn::from(peer)) && getpeername(fd) == Ok(SockaddrIn::from(own)))
}
