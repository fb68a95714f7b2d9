//! Carries out the machine's actions, one arm each, without waiting.

use std::io::{self, ErrorKind};
use std::time::Duration;

use crate::core::action::{Action, ExitReason};
use crate::core::event::Event;
use crate::core::order::{Order, Report};
use crate::guard::handle::Handle;
use crate::observe::{log, words};
use crate::zookeeper::Election;

pub(super) struct Effects {
    election: Election,
    guard: Handle,
    guard_state: GuardState,
    /// The guards of auxiliary commands, which are not orphans of the command.
    spared: Vec<i32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum GuardState {
    Alive,
    Gone,
    /// The guard is gone, and the processes that it left are being killed.
    EndingOrphans,
}

impl Effects {
    pub(super) fn new(election: Election, guard: Handle, spared: &[i32]) -> Self {
        Self { election, guard, guard_state: GuardState::Alive, spared: spared.to_vec() }
    }

    /// Carries out the actions in order. Returns the reason to exit, if one of them was `Exit`.
    #[must_use]
    pub(super) fn carry_out_all(&mut self, actions: &[Action]) -> Option<ExitReason> {
        let mut exit = None;
        for action in actions {
            exit = exit.or(self.carry_out(*action));
        }
        exit
    }

    #[must_use]
    fn carry_out(&mut self, action: Action) -> Option<ExitReason> {
        match action {
            Action::Connect { session } => self.election.connect(session),
            Action::Enter { candidacy } => self.election.enter(candidacy),
            Action::Look { candidacy } => self.election.look(candidacy),
            Action::Observe { candidacy, slot } => self.election.observe(candidacy, slot),
            Action::TakeOver { candidacy, conditions, entry, longest } => {
                self.election.take_over(candidacy, conditions, entry, longest);
            }
            Action::Renew { candidacy, conditions, entry } => self.election.renew(candidacy, conditions, entry),
            Action::Mark { candidacy, conditions, entry, is_first } => {
                self.election.mark(candidacy, conditions, entry, is_first);
            }
            Action::EndRun { status, ok } => self.election.end_run(status, ok),
            Action::Release { candidacy, conditions, entry, keeps_candidate } => {
                self.election.release(candidacy, conditions, entry, keeps_candidate);
            }
            // `AuxiliaryCommands::note` carries these out.
            Action::Fence { .. }
            | Action::EndFence
            | Action::RunStep { .. }
            | Action::ExtendStep { .. }
            | Action::StopStep { .. }
            | Action::SkipStep { .. } => {}
            Action::Guard(order @ Order::Start { .. }) => {
                self.election.settle();
                self.send(&order);
            }
            Action::Guard(order) => self.send(&order),
            Action::EndGuard => self.end_guard("did not take the order to start in time"),
            Action::EndOrphans => self.guard_state = GuardState::EndingOrphans,
            Action::Announce(transition) => log::transition(&transition),
            Action::Exit(reason) => return Some(reason),
        }
        None
    }

    pub(super) fn election(&self) -> &Election {
        &self.election
    }

    /// Kills a guard that does not accept the order.
    fn send(&mut self, order: &Order) {
        tracing::debug!(?order, "Ordered");
        if self.guard_state == GuardState::Alive {
            // The death of a guard is reported by its handle.
            if let Err(error) = self.guard.send(order).or_else(unless_gone) {
                self.end_guard(&format!("took no order ({error})"));
            }
        }
    }

    /// The guard's end is reported as usual.
    fn end_guard(&self, why: &str) {
        tracing::error!(pid = self.guard.pid(), "The guard {why} and was killed");
        self.guard.kill();
    }

    /// The next report of the guard, or the end of its orphans. Cancel-safe.
    pub(super) async fn guard_event(&mut self) -> Event {
        match self.guard_state {
            GuardState::Gone => std::future::pending().await,
            GuardState::EndingOrphans => {
                let complain = |error| {
                    tracing::error!(%error, "Cannot list the processes that the guard left; retrying before the lease is released");
                };
                self.guard.end_orphans(&self.spared, complain).await;
                self.guard_state = GuardState::Gone;
                Event::OrphansEnded
            }
            GuardState::Alive => {
                if let Some(report) = self.guard.recv().await {
                    log_report(report);
                    Event::Guard(report)
                } else {
                    self.guard_state = GuardState::Gone;
                    Event::GuardGone
                }
            }
        }
    }

    /// Closes the session and ends the guard.
    pub(super) async fn close(mut self, limit: Duration) {
        if !self.election.close(limit).await {
            tracing::debug!("Closing the session was not confirmed; it is left to expiry");
        }
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

fn log_report(report: Report) {
    match report {
        Report::Taken { .. } => tracing::debug!("Guard takes the order to start"),
        Report::Started { pid, .. } => tracing::info!(pid, "Command started"),
        Report::CommandEnded { status, .. } => tracing::info!("{}", words::ending(status)),
        Report::Stopping { .. } => tracing::debug!("Guard sent the stop signal by itself"),
        Report::Stuck { survivors, .. } => {
            tracing::error!(
                survivors,
                "Processes survive SIGKILL (uninterruptible sleep?); the lease is left to run out, and is not released"
            );
        }
        Report::TreeEnded { cause, .. } => tracing::debug!(?cause, "Tree ended"),
    }
}
