//! Whether the other end of a connection on `127.0.0.1` belongs to this process. Read from `/proc`, because a sandbox may
//! refuse `pidfd_getfd(2)`.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};

/// Whether this process has the end `peer` of a connection to this port of `127.0.0.1`.
pub(super) fn is_ours(peer: SocketAddr, port: u16) -> bool {
    let table = fs::read_to_string("/proc/self/net/tcp").unwrap_or_default();
    let Some(inode) = inode_of(&table, peer.port(), port) else { return false };
    let socket = format!("socket:[{inode}]");
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    open.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|link| link.as_os_str() == socket.as_str())
}

/// The inode of the socket with these two ports of `127.0.0.1` (`proc_pid_net(5)`).
fn inode_of(table: &str, local: u16, remote: u16) -> Option<&str> {
    let address = |port: u16| format!("{:08X}:{port:04X}", u32::from_ne_bytes(Ipv4Addr::LOCALHOST.octets()));
    let (local, remote) = (address(local), address(remote));
    table.lines().find_map(|line| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let is_it = fields.get(1) == Some(&local.as_str()) && fields.get(2) == Some(&remote.as_str());
        fields.get(9).filter(|inode| is_it && **inode != "0").copied()
    })
}
