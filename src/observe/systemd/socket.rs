//! `NOTIFY_SOCKET`: a path, or with a leading `@` an abstract name.
//!
//! Never: a wait.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// See the module's page.
#[derive(Debug)]
pub struct Socket {
    socket: UnixDatagram,
    /// Looked up anew for each message: systemd may have been started again.
    address: SocketAddr,
}

impl Socket {
    /// # Errors
    /// When the name is neither an absolute path nor an abstract name.
    pub fn to(name: &OsStr) -> io::Result<Self> {
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            [b'/', ..] => SocketAddr::from_pathname(name)?,
            _ => return Err(io::Error::new(io::ErrorKind::Unsupported, "neither an absolute path nor @ and a name")),
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, address })
    }

    /// Whether the message is on its way, or can never be.
    pub fn send(&self, message: &str) -> bool {
        match self.socket.send_to_addr(message.as_bytes(), &self.address) {
            Ok(_) => true,
            Err(error) if has_no_room(&error) => false,
            Err(error) => {
                tracing::debug!(%error, "systemd could not be notified");
                true
            }
        }
    }
}

/// Nor memory, for now.
fn has_no_room(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENOMEM))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_an_abstract_name_are_both_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let name = format!("@zk-leader-run-test-{}", std::process::id());
        let named = SocketAddr::from_abstract_name(&name.as_bytes()[1..]).unwrap();
        let listeners =
            [(UnixDatagram::bind(&path), path.as_os_str()), (UnixDatagram::bind_addr(&named), OsStr::new(&name))];
        for (listener, name) in listeners {
            let listener = listener.unwrap();
            assert!(Socket::to(name).unwrap().send("READY=1\n"));
            let mut message = [0; 64];
            let length = listener.recv(&mut message).unwrap();
            assert_eq!(&message[..length], b"READY=1\n");
        }
        assert!(Socket::to(OsStr::new("relative")).is_err());
    }

    #[test]
    fn a_full_socket_is_told_apart_from_one_that_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        let socket = Socket::to(path.as_os_str()).unwrap();
        while socket.send("STATUS=again\n") {}
        drop(listener);
        assert!(socket.send("STATUS=again\n"), "nobody is there to have room");
    }
}
