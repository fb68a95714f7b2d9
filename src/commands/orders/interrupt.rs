//! Ctrl-C while we wait for what becomes of an order: the order stands, and somebody must be told so before we end.
//!
//! Never: an end by another cause than the signal itself, which a shell must see.

use nix::sys::signal::{SigSet, Signal, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::supervisor::signals;

/// SIGINT, held back until it is read.
pub(in crate::commands) struct Interrupt(SignalFd);

impl Interrupt {
    /// Before there is another thread, which would take the signal. `None`: it is ignored, or cannot be held back.
    pub fn held_back() -> Option<Self> {
        if signals::is_ignored(Signal::SIGINT) {
            return None;
        }
        let descriptor = SignalFd::with_flags(&mask(), SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC).ok()?;
        mask().thread_block().ok()?;
        Some(Self(descriptor))
    }

    /// Until it has come.
    pub async fn came(self) {
        match signals::watched(self.0) {
            Ok(watched) => drop(signals::read(&watched).await),
            Err(_) => std::future::pending().await,
        }
    }

    /// Ends this process as the signal does.
    pub fn die() {
        mask().thread_unblock().and_then(|()| raise(Signal::SIGINT)).ok();
    }
}

fn mask() -> SigSet {
    SigSet::from(Signal::SIGINT)
}
