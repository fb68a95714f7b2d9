//! One arm for each action of the machine.

use std::time::Duration;

use crate::core::action::{Action, ExitReason};
use crate::core::event::Event;
use crate::core::order::{Order, Report};
use crate::guard;
use crate::observe::log;
use crate::zookeeper::Desk;

pub(super) struct Effects {
    desk: Desk,
    guard: guard::Handle,
    guard_is_gone: bool,
}

impl Effects {
    pub(super) fn new(desk: Desk, guard: guard::Handle) -> Self {
        Self { desk, guard, guard_is_gone: false }
    }

    /// In order; the reason to exit, if that was the last of them.
    pub(super) async fn carry_out_all(&mut self, actions: Vec<Action>) -> Option<ExitReason> {
        let mut exit = None;
        for action in actions {
            tracing::debug!(?action, "decided");
            exit = exit.or(self.carry_out(action).await);
        }
        exit
    }

    async fn carry_out(&mut self, action: Action) -> Option<ExitReason> {
        match action {
            Action::Connect { session } => self.desk.connect(session),
            Action::Enter { candidacy } => self.desk.enter(candidacy),
            Action::Look { candidacy } => self.desk.look(candidacy),
            Action::Observe { candidacy } => self.desk.observe(candidacy),
            Action::TakeOver { candidacy, conditions, entry } => self.desk.take_over(candidacy, conditions, entry),
            Action::Renew { candidacy, conditions, entry } => self.desk.renew(candidacy, conditions, entry),
            Action::Release { candidacy, conditions, entry } => self.desk.release(candidacy, conditions, entry),
            Action::Guard(order) => self.send(&order),
            Action::EndGuard => self.guard.kill(),
            Action::EndOrphans => {}
            Action::Announce(transition) => log::transition(&transition),
            Action::Exit(reason) => return Some(reason),
        }
        None
    }

    /// A guard that takes no orders is none: it is killed, and its end reported like any other.
    fn send(&mut self, order: &Order) {
        if let Err(error) = self.guard.send(order) {
            tracing::error!(%error, ?order, "The guard did not take an order and was killed");
            self.guard.kill();
        }
    }

    /// What the guard has to say next. Cancel-safe.
    pub(super) async fn guard_event(&mut self) -> Event {
        if self.guard_is_gone {
            return std::future::pending().await;
        }
        match self.guard.recv().await {
            Some(report) => {
                log_report(report);
                Event::Guard(report)
            }
            None => {
                self.guard_is_gone = true;
                Event::GuardGone
            }
        }
    }

    pub(super) async fn close(&mut self, limit: Duration) {
        self.desk.close(limit).await;
    }
}

fn log_report(report: Report) {
    match report {
        Report::Started { pid, .. } => tracing::info!(pid, "Command started"),
        Report::CommandEnded { status, .. } => tracing::info!(?status, "Command ended"),
        Report::Stopping { .. } => tracing::warn!("Guard sent the stop signal by itself"),
        Report::Stuck { survivors, .. } => {
            tracing::error!(survivors, "Processes survive SIGKILL (uninterruptible sleep?); the lease is not released");
        }
        Report::TreeEnded { status, cause, .. } => tracing::debug!(?status, ?cause, "Tree ended"),
    }
}
