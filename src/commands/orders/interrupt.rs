//! Ctrl-C while we wait for what becomes of an order: the order stands, and somebody must be told so before we end.
//!
//! Never: an end by another cause than the signal itself, which a shell must see.

use std::fs;
use std::os::fd::AsFd as _;

use nix::sys::signal::{SigSet, Signal, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// SIGINT, held back until it is read.
pub(in crate::commands) struct Interrupt {
    descriptor: SignalFd,
}

impl Interrupt {
    /// Before there is another thread, which would take the signal. `None`: it is ignored, or cannot be held back.
    pub fn held_back() -> Option<Self> {
        if is_ignored(&fs::read_to_string("/proc/self/status").ok()?) {
            return None;
        }
        let descriptor = SignalFd::with_flags(&mask(), SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC).ok()?;
        mask().thread_block().ok()?;
        Some(Self { descriptor })
    }

    /// Until it has come.
    pub async fn came(&self) {
        #[expect(deprecated, reason = "its successor is unsafe; a SignalFd owns its descriptor and never changes it")]
        let Ok(ready) = AsyncFd::with_interest(self.descriptor.as_fd(), Interest::READABLE) else {
            return std::future::pending().await;
        };
        loop {
            let Ok(mut guard) = ready.readable().await else { return std::future::pending().await };
            if matches!(self.descriptor.read_signal(), Ok(Some(_))) {
                return;
            }
            guard.clear_ready();
        }
    }

    /// Ends this process as the signal does.
    pub fn die() {
        mask().thread_unblock().and_then(|()| raise(Signal::SIGINT)).ok();
    }
}

fn mask() -> SigSet {
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGINT);
    mask
}

/// From `proc_pid_status(5)`.
fn is_ignored(status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|ignored| u64::from_str_radix(ignored.trim(), 16).ok()).unwrap_or(0);
    (ignored >> (Signal::SIGINT as i32 - 1)) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_in_the_background_ignores_it() {
        assert!(is_ignored("Name:\tx\nSigIgn:\t0000000000001006\n"));
        assert!(!is_ignored("Name:\tx\nSigIgn:\t0000000000001004\n") && !is_ignored(""));
    }
}
