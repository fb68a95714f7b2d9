//! Checks that the guard answers: one byte to it and back, bypassing its machine, so that probes do not keep a guard
//! alive. One probe at a time.

use std::fs;
use std::sync::Weak;
use std::time::Duration;

use tokio::net::UnixDatagram;
use tokio::sync::watch;
use tokio::time::timeout;

use super::sys::send_now;

/// What this process does now, for a line in the log: its state, as one letter, and the function of the kernel that it waits in
/// (`proc_pid_stat(5)`, `proc_pid_wchan(5)`).
pub fn state_of(pid: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let state = stat.rsplit_once(") ")?.1.chars().next()?;
    let waits_in = fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
    Some(format!("{state} {waits_in}").trim_end_matches([' ', '0']).to_owned())
}

/// Shorter than every order and every report.
pub const PROBE: [u8; 1] = [0x3f];

/// Probes a guard. The answer arrives through [`super::handle::Handle::recv`], which must be running.
#[derive(Debug)]
pub struct Prober {
    socket: Weak<UnixDatagram>,
    answers: watch::Receiver<()>,
    is_asked: bool,
    /// The guard that takes this one's place.
    next: Option<Box<Prober>>,
}

impl Prober {
    pub(super) fn new(socket: Weak<UnixDatagram>, answers: watch::Receiver<()>) -> Self {
        Self { socket, answers, is_asked: false, next: None }
    }

    /// Of no guard.
    #[cfg(test)]
    pub(crate) fn of_nobody() -> Self {
        Self::new(Weak::new(), watch::channel(()).1)
    }

    /// Probes `next` once this guard's handle was dropped.
    #[must_use]
    pub fn followed_by(self, next: Option<Self>) -> Self {
        Self { next: next.map(Box::new), ..self }
    }

    /// Whether the guard answers this probe, or an earlier one, within `limit`.
    pub async fn answers(&mut self, limit: Duration) -> bool {
        if self.socket.strong_count() == 0 {
            if let Some(next) = self.next.take() {
                *self = *next;
            }
        }
        if !self.is_asked {
            self.answers.mark_unchanged();
            let Some(socket) = self.socket.upgrade() else { return false };
            if send_now(&socket, &PROBE).is_err() {
                return false;
            }
            self.is_asked = true;
        }
        let answered = timeout(limit, self.answers.changed()).await.is_ok_and(|changed| changed.is_ok());
        self.is_asked = !answered;
        answered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_process_is_a_letter_and_where_it_waits() {
        let state = state_of(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert!(state.starts_with(['R', 'S', 'D']), "{state}");
        assert_eq!(state_of(i32::MAX), None);
    }
}
