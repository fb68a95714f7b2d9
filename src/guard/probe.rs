//! Checks that the guard answers: one byte to it and back, bypassing its machine, so that probes do not keep a guard
//! alive. A few at a time: an answer may be lost, for lack of memory, and a guard that is stopped reads none.

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

/// A guard is asked so often before it answers.
const MOST_ASKED: u32 = 8;

/// Probes a guard. The answer arrives through [`super::handle::Handle::recv`], which must be running.
#[derive(Debug)]
pub struct Prober {
    socket: Weak<UnixDatagram>,
    answers: watch::Receiver<()>,
    /// Probes since the last answer.
    asked: u32,
    /// The guard that takes this one's place.
    next: Option<Box<Prober>>,
}

impl Prober {
    pub(super) fn new(socket: Weak<UnixDatagram>, answers: watch::Receiver<()>) -> Self {
        Self { socket, answers, asked: 0, next: None }
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
        if self.asked == 0 {
            self.answers.mark_unchanged();
        }
        if self.asked < MOST_ASKED {
            let Some(socket) = self.socket.upgrade() else { return false };
            match send_now(&socket, &PROBE) {
                Ok(_) => self.asked += 1,
                Err(_) if self.asked == 0 => return false,
                // An earlier one may yet be answered.
                Err(_) => {}
            }
        }
        let answered = timeout(limit, self.answers.changed()).await.is_ok_and(|changed| changed.is_ok());
        if answered {
            self.asked = 0;
        }
        answered
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn a_guard_whose_answer_was_lost_is_asked_again_and_one_that_is_stopped_not_for_ever() {
        const LIMIT: Duration = Duration::from_millis(1);
        let (ours, guard) = std::os::unix::net::UnixDatagram::pair().unwrap();
        ours.set_nonblocking(true).and_then(|()| guard.set_nonblocking(true)).unwrap();
        let (ours, (answer, answers)) = (Arc::new(UnixDatagram::from_std(ours).unwrap()), watch::channel(()));
        let mut prober = Prober::new(Arc::downgrade(&ours), answers);
        let heard = || std::iter::from_fn(|| guard.recv(&mut [0; 8]).ok()).count();
        assert!(!prober.answers(LIMIT).await && heard() == 1, "its answer is lost");
        answer.send_replace(());
        assert!(prober.answers(LIMIT).await && heard() == 1, "asked again");
        for _ in 0..100 {
            assert!(!prober.answers(LIMIT).await);
        }
        assert_eq!(heard(), 8);
        answer.send_replace(());
        assert!(prober.answers(LIMIT).await && !prober.answers(LIMIT).await && heard() == 1);
    }

    #[test]
    fn the_state_of_a_process_is_a_letter_and_where_it_waits() {
        let state = state_of(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert!(state.starts_with(['R', 'S', 'D']), "{state}");
        assert_eq!(state_of(i32::MAX), None);
    }
}
