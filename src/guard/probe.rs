//! Whether the guard answers: one byte to it and back, past its machine, which has no say in it.
//!
//! Never: a second question before the first is answered; a guard that is kept alive by being asked.

use std::os::fd::AsRawFd;
use std::sync::Weak;
use std::time::Duration;

use nix::sys::socket::{MsgFlags, send};
use tokio::net::UnixDatagram;
use tokio::sync::watch;
use tokio::time::timeout;

/// Shorter than every order and every report.
pub const PROBE: [u8; 1] = [0x3f];

/// Asks a guard whether it is there. It answers through [`super::handle::Handle::recv`], which somebody must be calling.
#[derive(Debug)]
pub struct Prober {
    socket: Weak<UnixDatagram>,
    answers: watch::Receiver<()>,
    is_asked: bool,
}

impl Prober {
    pub(super) fn new(socket: Weak<UnixDatagram>, answers: watch::Receiver<()>) -> Self {
        Self { socket, answers, is_asked: false }
    }

    /// Whether the guard answers within `limit`; to this question, or to an earlier one.
    pub async fn answers(&mut self, limit: Duration) -> bool {
        if !self.is_asked {
            self.answers.mark_unchanged();
            let Some(socket) = self.socket.upgrade() else { return false };
            if send(socket.as_raw_fd(), &PROBE, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL).is_err() {
                return false;
            }
            self.is_asked = true;
        }
        let answered = timeout(limit, self.answers.changed()).await.is_ok_and(|changed| changed.is_ok());
        self.is_asked = !answered;
        answered
    }
}
