//! The UDP socket. It is opened before there is a runtime, and registered with it at the first wait for a datagram.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use super::network::{Network, Work};

/// One address of this host, at which others reach it.
#[derive(Debug)]
pub struct Socket {
    address: SocketAddr,
    inner: UdpSocket,
    /// The same socket, as the runtime knows it.
    registered: OnceLock<tokio::net::UdpSocket>,
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
        Ok(Self { address: socket.local_addr()?, inner: socket, registered: OnceLock::new() })
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
            tracing::trace!(%error, %to, "A datagram could not be sent");
        }
    }

    fn receive<'a>(&'a self, buffer: &'a mut [u8]) -> Work<'a, io::Result<(usize, SocketAddr)>> {
        Box::pin(async move { self.registered()?.recv_from(buffer).await })
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.inner.as_fd())
    }
}
