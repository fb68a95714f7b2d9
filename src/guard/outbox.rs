//! Reports on their way to the supervisor, in order. None is lost while the supervisor may read it: it would wait for the end of
//! a tree that has ended, and renew the lease meanwhile.

use std::collections::VecDeque;
use std::time::Duration;

use nix::errno::Errno;

use super::protocol::{REPORT_SIZE, encode_report};
use crate::core::guard_messages::Report;

/// Preallocated for the reports of several runs, so that the kill path does not allocate.
const CAPACITY: usize = 32;

/// When to send again what could not be sent for lack of memory: nothing announces that there is some.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// See the module page.
#[derive(Debug)]
pub struct Outbox {
    reports: VecDeque<Report>,
    obstacle: Option<Obstacle>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Obstacle {
    /// The supervisor does not read.
    Full,
    /// The buffers of sockets count as memory of our cgroup, which may be full.
    Other,
}

impl Outbox {
    pub fn new() -> Self {
        Self { reports: VecDeque::with_capacity(CAPACITY), obstacle: None }
    }

    /// A report that the supervisor does not read is queued, except `Stuck`, which will be repeated.
    pub fn queue(&mut self, report: Report) {
        if self.reports.is_empty() || !matches!(report, Report::Stuck { .. }) {
            self.reports.push_back(report);
        }
    }

    /// The supervisor is gone.
    pub fn clear(&mut self) {
        self.reports.clear();
        self.obstacle = None;
    }

    /// Whether to send again when the socket has room.
    pub fn waits_for_room(&self) -> bool {
        self.obstacle == Some(Obstacle::Full)
    }

    /// When to send again in any case.
    pub fn again_after(&self) -> Option<Duration> {
        (self.obstacle == Some(Obstacle::Other)).then_some(AGAIN_AFTER)
    }

    pub fn send(&mut self, mut send: impl FnMut(&[u8; REPORT_SIZE]) -> Result<usize, Errno>) {
        self.obstacle = None;
        while let Some(report) = self.reports.front() {
            self.obstacle = match send(&encode_report(report)) {
                // Or nobody will ever read it; the end of the socket, or of the supervisor, says so as well.
                Ok(_) | Err(Errno::EPIPE | Errno::ECONNRESET) => None,
                Err(Errno::EAGAIN) => Some(Obstacle::Full),
                Err(_) => Some(Obstacle::Other),
            };
            if self.obstacle.is_some() {
                return;
            }
            self.reports.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::guard_messages::RunId;

    fn outbox() -> Outbox {
        let mut outbox = Outbox::new();
        outbox.queue(Report::Taken { run: RunId(1) });
        outbox.queue(Report::Stopping { run: RunId(1) });
        outbox
    }

    /// The tags of what is sent in two attempts, of which the first fails like this at once.
    fn sent_after(failure: Errno) -> Vec<u8> {
        let (mut outbox, mut failures, mut sent) = (outbox(), vec![failure], Vec::new());
        for _ in 0..2 {
            outbox.send(|record| {
                failures.pop().map_or(Ok(()), Err)?;
                sent.push(record[0]);
                Ok(record.len())
            });
        }
        sent
    }

    #[test]
    fn a_report_that_cannot_be_sent_for_lack_of_memory_is_sent_later_and_in_order() {
        for failure in [Errno::ENOBUFS, Errno::ENOMEM, Errno::EINTR, Errno::EAGAIN] {
            assert_eq!(sent_after(failure), [6, 2], "{failure}");
        }
    }

    #[test]
    fn a_report_that_nobody_will_read_is_dropped() {
        for failure in [Errno::EPIPE, Errno::ECONNRESET] {
            assert_eq!(sent_after(failure), [2], "{failure}");
        }
    }

    /// A socket that has room is ready at once: to wait for that would be to look again without end.
    #[test]
    fn a_full_socket_is_waited_for_and_a_lack_of_memory_is_looked_at_again() {
        let mut outbox = outbox();
        for (result, waits, again) in [
            (Err(Errno::EAGAIN), true, None),
            (Err(Errno::ENOBUFS), false, Some(AGAIN_AFTER)),
            (Ok(REPORT_SIZE), false, None),
        ] {
            outbox.send(|_| result);
            assert_eq!((outbox.waits_for_room(), outbox.again_after()), (waits, again), "{result:?}");
        }
        outbox.queue(Report::Taken { run: RunId(2) });
        outbox.send(|_| Err(Errno::ENOBUFS));
        outbox.clear();
        assert_eq!((outbox.waits_for_room(), outbox.again_after()), (false, None));
    }
}
