//! What carries the datagrams: a UDP socket, or a simulation.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use futures_util::future::BoxFuture;

/// Carries datagrams, and may lose, double, delay and reorder them.
pub trait Network: fmt::Debug + Send + Sync {
    /// Where others reach us.
    fn address(&self) -> SocketAddr;

    /// Sends without waiting. What cannot be sent at once is lost.
    fn send(&self, to: SocketAddr, datagram: &[u8]);

    /// The next datagram that has come, cut at the buffer's length; its length, and where it came from. May be cancelled.
    fn receive<'a>(&'a self, buffer: &'a mut [u8]) -> BoxFuture<'a, io::Result<(usize, SocketAddr)>>;

    /// Tells people if others do not reach us there any more, as far as this host knows.
    fn check(&self) {}

    /// The open socket, which an upgrade in place hands over. `None` in a simulation.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}
