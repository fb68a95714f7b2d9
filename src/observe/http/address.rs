//! Where HTTP is served: a TCP address or the path of a Unix socket.
//!
//! Never: a name that has to be resolved; that could take its time, and give another address tomorrow.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};

/// See the module's page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Address {
    /// `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080` or `unix:/run/job.sock`.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(path) = text.strip_prefix("unix:") {
            return path.starts_with('/').then(|| Self::Unix(path.into()));
        }
        let port = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
        let localhost = port.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        localhost.or_else(|| text.parse().ok()).map(Self::Tcp)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A socket that listens, before there is a runtime.
#[derive(Debug)]
pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, Arc<SocketFile>),
}

/// The file of a Unix socket; removed when the last listener is dropped.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

impl Listener {
    /// # Errors
    /// When the address is in use, not ours, or not allowed.
    pub fn bind(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                Ok(Self::Tcp(listener))
            }
            Address::Unix(path) => {
                remove_abandoned(path);
                let listener = UnixListener::bind(path)?;
                listener.set_nonblocking(true)?;
                Ok(Self::Unix(listener, Arc::new(SocketFile(path.clone()))))
            }
        }
    }

    /// Another one for the same connections.
    ///
    /// # Errors
    /// If there is no room for a descriptor.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(listener) => Self::Tcp(listener.try_clone()?),
            Self::Unix(listener, file) => Self::Unix(listener.try_clone()?, Arc::clone(file)),
        })
    }

    /// Where it listens: the port is known only now if it was asked for as 0.
    pub fn address(&self) -> Option<Address> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok().map(Address::Tcp),
            Self::Unix(_, file) => Some(Address::Unix(file.0.clone())),
        }
    }
}

/// The socket of a process that was killed: nobody listens there any more.
fn remove_abandoned(path: &Path) {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket && nobody_listens(path) {
        std::fs::remove_file(path).ok();
    }
}

/// Without waiting: who listens and hangs may have a long queue.
fn nobody_listens(path: &Path) -> bool {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let asked = socket(AddressFamily::Unix, SockType::Stream, flags, None)
        .and_then(|socket| connect(socket.as_raw_fd(), &UnixAddr::new(path)?));
    asked == Err(Errno::ECONNREFUSED)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn addresses_are_literal() {
        for text in ["127.0.0.1:8080", "[::1]:8080", "0.0.0.0:0", "unix:/run/a job.sock"] {
            assert_eq!(Address::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Address::parse("localhost:80").unwrap().to_string(), "127.0.0.1:80");
        for text in ["", "8080", ":8080", "host:80", "127.0.0.1", "[::1]", "unix:run/x", "unix:", "1.2.3.4:65536"] {
            assert_eq!(Address::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_socket_of_a_killed_process_is_in_nobodys_way_and_that_of_a_living_one_is() {
        let directory = tempfile::tempdir().unwrap();
        let address = Address::Unix(directory.path().join("s"));
        let first = Listener::bind(&address).unwrap();
        assert_eq!(Listener::bind(&address).unwrap_err().kind(), ErrorKind::AddrInUse);
        // As after SIGKILL: closed, and the file is left.
        if let Listener::Unix(listener, file) = first {
            drop(listener);
            std::mem::forget(file);
        }
        drop(Listener::bind(&address).unwrap());
        assert!(!directory.path().join("s").exists());
    }
}
