//! The command's guard: takes the machine's orders, and reports as events of the machine. A guard that does not take an
//! order is killed.

use std::io::{self, ErrorKind};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::core::event::Event;
use crate::core::guard_messages::{Order, Report};
use crate::guard::handle::upgrade::HandedOver;
use crate::observe::words;
use crate::supervisor::guard_interface::Guard;

pub(super) struct CommandGuard {
    guard: Guard,
    state: State,
    /// The guards of auxiliary commands, which are not orphans of the command.
    spared: Vec<i32>,
    /// How often survivors of SIGKILL were reported; the guard does it every five seconds.
    stuck_reports: u32,
}

/// Once a minute.
const STUCK_REPORTS_PER_LINE: u32 = 12;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Alive,
    Gone,
    /// The guard is gone, and the processes that it left are being killed.
    EndingOrphans,
}

impl CommandGuard {
    pub fn new(guard: Guard, spared: &[i32]) -> Self {
        Self { guard, state: State::Alive, spared: spared.to_vec(), stuck_reports: 0 }
    }

    /// Does not wait.
    pub fn send(&mut self, order: &Order) {
        tracing::debug!(?order, "Ordered");
        if self.state == State::Alive {
            // The death of a guard is reported by its handle.
            if let Err(error) = self.guard.send(order).or_else(unless_gone) {
                self.kill(&format!("took no order ({error})"));
            }
        }
    }

    /// The guard, for the next program of this process, and the descriptors that must stay open. `None`: it has ended.
    pub fn hand_over(&mut self) -> Option<(HandedOver, Vec<BorrowedFd<'_>>)> {
        if self.state == State::Alive { self.guard.hand_over() } else { None }
    }

    /// The guard's end is reported as usual.
    pub fn kill(&self, why: &str) {
        tracing::error!(pid = self.guard.pids().first(), "The guard {why} and was killed");
        self.guard.kill();
    }

    /// After the guard's death; [`CommandGuard::next`] reports when the last orphan is gone.
    pub fn end_orphans(&mut self) {
        self.state = State::EndingOrphans;
    }

    /// The next report of the guard, or the end of its orphans. Cancel-safe.
    pub async fn next(&mut self) -> Event {
        match self.state {
            State::Gone => std::future::pending().await,
            State::EndingOrphans => {
                let complain = |error| {
                    tracing::error!(%error, "Cannot list the processes that the guard left; retrying before the lease is released");
                };
                self.guard.end_orphans(&self.spared, complain).await;
                self.state = State::Gone;
                Event::OrphansEnded
            }
            State::Alive => {
                if let Some(report) = self.guard.recv().await {
                    self.log(report);
                    Event::Guard(report)
                } else {
                    self.state = State::Gone;
                    Event::GuardGone
                }
            }
        }
    }

    fn log(&mut self, report: Report) {
        match report {
            Report::Taken { .. } => tracing::debug!("Guard takes the order to start"),
            Report::Started { pid, .. } => tracing::info!(pid, "Command started"),
            Report::CommandEnded { status, .. } => tracing::info!("{}", words::ending(status)),
            Report::Stopping { .. } => tracing::debug!("Guard sent the stop signal by itself"),
            Report::Stuck { survivors, .. } => {
                if self.stuck_reports % STUCK_REPORTS_PER_LINE == 0 {
                    log_stuck(survivors);
                }
                self.stuck_reports = self.stuck_reports.wrapping_add(1);
            }
            Report::TreeEnded { cause, .. } => tracing::debug!(?cause, "Tree ended"),
        }
    }

    /// Ends the guard; waits at most for `limit`.
    pub async fn dismiss(self, limit: Duration) {
        let dismissed = tokio::time::timeout(limit, self.guard.dismiss()).await;
        tracing::debug!(in_time = dismissed.is_ok(), "Guard was dismissed");
    }
}

fn unless_gone(error: io::Error) -> io::Result<()> {
    match error.kind() {
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => Ok(()),
        _ => Err(error),
    }
}

fn log_stuck(survivors: u32) {
    tracing::error!(
        survivors,
        why = "stuck",
        "Processes of the command survive SIGKILL (in uninterruptible sleep?), so the lease is not released; when it has run \
         out, another host starts the command, and these may still write: fence or reboot this host"
    );
}
