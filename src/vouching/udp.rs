//! The UDP socket. It is opened before there is a runtime, and registered with it at the first wait for a datagram.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use super::network::Network;
use crate::clock;
use crate::core::time::Timestamp;

/// One address of this host, at which others reach it.
#[derive(Debug)]
pub struct Socket {
    address: SocketAddr,
    inner: UdpSocket,
    /// The same socket, as the runtime knows it.
    registered: OnceLock<tokio::net::UdpSocket>,
    failures: Mutex<Failures>,
}

/// The failures to send that were told: where to, the kind, and when. They begin anew after a minute.
#[derive(Debug, Default)]
struct Failures(Vec<(SocketAddr, io::ErrorKind, Timestamp)>);

const MINUTE: Duration = Duration::from_secs(60);

impl Failures {
    /// Whether this one is to be told. What is full, or is refused by the other end, passes by itself.
    fn note(&mut self, to: SocketAddr, kind: io::ErrorKind, now: Timestamp) -> bool {
        use io::ErrorKind::{ConnectionRefused, Interrupted, WouldBlock};
        self.0.retain(|(_, _, told)| told.until(now) < MINUTE);
        let is_told = self.0.iter().any(|(other, known, _)| (*other, *known) == (to, kind));
        if is_told || matches!(kind, ConnectionRefused | Interrupted | WouldBlock) {
            return false;
        }
        self.0.push((to, kind, now));
        true
    }
}

impl Socket {
    /// Port 0: any that is free.
    ///
    /// # Errors
    /// If the address is not one of this host, or the port is taken.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        Self::of(UdpSocket::bind(address)?)
    }

    /// Goes on with the socket that the program before this one left open. It is closed on the next `execve(2)`.
    ///
    /// # Errors
    /// If it is no socket of the Internet.
    pub fn take_up(descriptor: OwnedFd) -> io::Result<Self> {
        fcntl(&descriptor, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
        Self::of(UdpSocket::from(descriptor))
    }

    fn of(socket: UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            address: socket.local_addr()?,
            inner: socket,
            registered: OnceLock::new(),
            failures: Mutex::default(),
        })
    }

    /// Whether this host does not have our address any more.
    fn is_homeless(&self) -> bool {
        let mut any_port = self.address;
        any_port.set_port(0);
        UdpSocket::bind(any_port).is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
    }

    /// Whether this failure is to be told.
    fn note(&self, to: SocketAddr, kind: io::ErrorKind) -> bool {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.note(to, kind, clock::now().lease)
    }

    fn registered(&self) -> io::Result<&tokio::net::UdpSocket> {
        if let Some(socket) = self.registered.get() {
            return Ok(socket);
        }
        let socket = tokio::net::UdpSocket::from_std(self.inner.try_clone()?)?;
        Ok(self.registered.get_or_init(|| socket))
    }
}

impl Network for Socket {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn send(&self, to: SocketAddr, datagram: &[u8]) {
        if let Err(error) = self.inner.send_to(datagram, to) {
            if self.note(to, error.kind()) {
                let remedy = if self.is_homeless() {
                    format!(
                        "this host does not have the address {} any more: restart zk-leader-run here",
                        self.address.ip()
                    )
                } else {
                    "see whether a network leads there, and no firewall here forbids it".to_owned()
                };
                tracing::warn!(
                    why = "cannot-send",
                    "This host cannot send to {to}, so neither can vouch for the other: {error}; {remedy}"
                );
            } else {
                tracing::trace!(%error, %to, "A datagram could not be sent");
            }
        }
    }

    fn check(&self) {
        if self.is_homeless() && self.note(self.address, io::ErrorKind::AddrNotAvailable) {
            tracing::warn!(
                why = "address-gone",
                "This host does not have the address {} any more, where others would ask it to vouch for them: restart \
                 zk-leader-run here, or give this host the address back",
                self.address.ip()
            );
        }
    }

    fn receive<'a>(&'a self, buffer: &'a mut [u8]) -> BoxFuture<'a, io::Result<(usize, SocketAddr)>> {
        Box::pin(async move { self.registered()?.recv_from(buffer).await })
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.inner.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_sent_is_told_once_a_minute_for_each_host_and_each_reason() {
        let mut failures = Failures::default();
        let [a, b] = [1, 2].map(|host| SocketAddr::from(([192, 0, 2, host], 7)));
        let mut told = |to, kind, second| failures.note(to, kind, Timestamp::ZERO.after(Duration::from_secs(second)));
        let (moved, cut) = (io::ErrorKind::AddrNotAvailable, io::ErrorKind::NetworkUnreachable);
        assert!(told(a, moved, 1));
        assert!(!told(a, moved, 30));
        assert!(told(b, moved, 30) && told(a, cut, 30));
        assert!(told(a, moved, 61));
        assert!(!told(a, io::ErrorKind::WouldBlock, 61), "it passes by itself");
    }
}
