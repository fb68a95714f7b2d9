//! Runs one auxiliary command with its own guard: one run at a time, each with an absolute deadline that the guard
//! keeps even if this process dies.

use std::ffi::CString;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use crate::clock;
use crate::core::event::Event;
use crate::core::guard_messages::{Cause, ChildStatus, Deadlines, Grant, Order, Report, RunId};
use crate::core::settings::notice_of;
use crate::core::time::{Timestamp, in_millis};
use crate::guard::briefing::{AuxiliaryCommand, Briefing};
use crate::guard::command::environment::{self, Identity};
use crate::guard::contain::Process;
use crate::observe::metrics::Metrics;
use crate::observe::words;
use crate::supervisor::guard_interface::Guard;

/// The kernel's timer may fire this part of the time before SIGKILL is due (`guard::policy`).
const EARLIEST_PER_TIMEOUT: u32 = 10;

/// See the module page.
pub(super) struct Runner {
    /// The option of the command.
    name: &'static str,
    guard: Guard,
    pub timeout: Duration,
    /// Ours, for its environment.
    identity: Identity,
    last: RunId,
    state: State,
    /// From then on the kernel's timer kills the guard of the present run, unless the guard gets processor time.
    lethal_from: Timestamp,
    /// Its guard died after that.
    was_late: bool,
    /// Our children outside of its tree: every guard.
    guards: Vec<Process>,
    /// Counts its runs.
    metrics: Arc<Metrics>,
    /// What survives SIGKILL counts as of the command: it may act when the lease is over.
    pub counts_survivors: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    /// The guard has not taken the order; it would refuse it from this time on.
    Ordered {
        until: Timestamp,
    },
    Running,
    /// Its outcome was told. SIGKILL does not end its processes, and nothing is started beside them.
    Surviving,
    /// The guard is gone, and the processes that it left are being killed.
    EndingOrphans,
    Gone,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Succeeded,
    Failed(ChildStatus),
    TimedOut,
    /// By [`Runner::stop`].
    Stopped,
    /// Its outcome is unknown, and the command will not be run again.
    GuardGone,
}

impl Outcome {
    const fn word(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed(_) => "failed",
            Self::TimedOut => "timed-out",
            Self::Stopped => "stopped",
            Self::GuardGone => "guard-gone",
        }
    }
}

impl Runner {
    /// `guards`: our children outside of its tree.
    pub(super) fn new(
        name: &'static str,
        guard: Guard,
        timeout: Duration,
        identity: Identity,
        guards: &[Process],
        metrics: &Arc<Metrics>,
    ) -> Self {
        metrics.expect_auxiliary(name);
        let (guards, metrics) = (guards.to_vec(), Arc::clone(metrics));
        let (last, lethal_from) = (RunId(0), Timestamp::NEVER);
        Self {
            name,
            guard,
            timeout,
            identity,
            last,
            state: State::Idle,
            lethal_from,
            was_late: false,
            guards,
            metrics,
            counts_survivors: false,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// The last run has timed out, but SIGKILL does not end its processes.
    pub(super) fn has_survivors(&self) -> bool {
        self.state == State::Surviving
    }

    /// Its guard is gone; it will not be run again.
    pub(super) fn is_gone(&self) -> bool {
        self.state == State::Gone
    }

    /// The same, or its guard has died and left processes that are being killed.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.state, State::EndingOrphans | State::Gone)
    }

    /// Its guard is gone, for the machine.
    pub(super) fn gone(&self) -> Event {
        Event::CheckGone { stood_still: self.was_late }
    }

    /// The variables of a run in this term, or without one, and what else it is told. A value that contains a NUL byte is
    /// left out.
    pub(super) fn briefing<'a>(
        &self,
        grant: Option<&Grant>,
        told: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Briefing {
        let mut variables = match grant {
            Some(grant) => environment::of_term(&self.identity, grant),
            None => environment::of_identity(&self.identity),
        };
        variables.extend(told.into_iter().filter_map(|(name, value)| CString::new(format!("{name}={value}")).ok()));
        Briefing { variables, stdin: Vec::new() }
    }

    /// Starts one run that ends within the timeout, and before `by`. Returns whether [`Runner::ended`] will report its
    /// end: not while another run is active, without a guard, or if the briefing is too long.
    pub(super) fn start(&mut self, now: Timestamp, by: Timestamp, briefing: Briefing) -> bool {
        let kill_at = now.after(self.timeout).min(by);
        self.start_under(Deadlines { stop_at: kill_at.before(notice_of(self.timeout)), kill_at }, briefing)
    }

    /// As [`Runner::start`], with these deadlines.
    pub(super) fn start_under(&mut self, deadlines: Deadlines, briefing: Briefing) -> bool {
        if self.has_survivors() {
            tracing::error!("{} is not run: SIGKILL does not end the processes of its last run", self.name);
        }
        if self.state != State::Idle {
            return false;
        }
        self.last = RunId(self.last.0 + 1);
        self.lethal_from = deadlines.kill_at.before(self.timeout / EARLIEST_PER_TIMEOUT);
        let sent = self.guard.send_auxiliary(&AuxiliaryCommand { run: self.last, deadlines, briefing });
        self.state = match sent {
            Ok(()) => State::Ordered { until: deadlines.stop_at },
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                tracing::error!("{} cannot be run: its variables and input are too long", self.name);
                return false;
            }
            Err(error) => {
                tracing::error!(%error, "The guard of {} does not accept orders; killing it", self.name);
                self.guard.kill();
                self.without_guard()
            }
        };
        true
    }

    /// SIGKILL to the whole tree of the present run, if there is one. Its end is reported as usual.
    pub(super) fn stop(&self) {
        self.order(&Order::Kill { run: self.last });
    }

    /// SIGTERM to the present run now, SIGKILL to its whole tree at `by`, or at its deadline if that comes sooner.
    pub(super) fn stop_by(&self, by: Timestamp) {
        self.order(&Order::Stop { run: self.last, by });
    }

    /// Moves the deadlines of the present run, never closer.
    pub(super) fn extend(&self, deadlines: Deadlines) {
        self.order(&Order::Extend { run: self.last, deadlines });
    }

    fn order(&self, order: &Order) {
        if let Err(error) = self.guard.send(order) {
            // If its guard is gone, that is reported, too; a guard that does not read keeps its deadlines.
            tracing::debug!(%error, "The guard of {} took no order", self.name);
        }
    }

    /// The end of the present run; waits for ever if there is none. A run whose processes SIGKILL does not end has
    /// timed out ([`Runner::has_survivors`]); `None`: now they are gone. Cancel-safe.
    pub(super) async fn ended(&mut self) -> Option<Outcome> {
        let outcome = self.end().await;
        if let Some(outcome) = outcome {
            self.metrics.auxiliary_ended(self.name, outcome.word());
        }
        outcome
    }

    async fn end(&mut self) -> Option<Outcome> {
        loop {
            let report = match self.state {
                State::Idle => self.end_of_guard().await,
                State::Gone => std::future::pending().await,
                State::Ordered { until } => self.report_before(until).await,
                State::Running | State::Surviving => self.guard.recv().await,
                State::EndingOrphans => {
                    let name = self.name;
                    let complain = |error| {
                        tracing::error!(%error, "Cannot list the processes that {name} left behind; retrying");
                    };
                    self.guard.end_orphans(&self.guards, complain).await;
                    self.state = State::Gone;
                    return Some(Outcome::GuardGone);
                }
            };
            let had_survivors = self.has_survivors();
            let outcome = self.note(report);
            if had_survivors && self.is_idle() {
                return None;
            }
            if !had_survivors && outcome.is_some() {
                return outcome;
            }
        }
    }

    /// That an idle guard has died. It has told all about its last run.
    async fn end_of_guard(&mut self) -> Option<Report> {
        while self.guard.recv().await.is_some() {}
        None
    }

    /// That it took the order. A guard that does not in time is killed.
    async fn report_before(&mut self, until: Timestamp) -> Option<Report> {
        let late = tokio::time::sleep(clock::now().lease.until(until));
        tokio::select! {
            biased;
            report = self.guard.recv() => report,
            () = late => {
                tracing::error!("The guard of {} did not take the order in time and was killed", self.name);
                self.guard.kill();
                None
            }
        }
    }

    fn without_guard(&self) -> State {
        tracing::error!("The guard of {} died; this process will not run it again", self.name);
        State::EndingOrphans
    }

    /// `None`: the guard is gone.
    fn note(&mut self, report: Option<Report>) -> Option<Outcome> {
        self.was_late = report.is_none() && clock::now().lease >= self.lethal_from;
        let outcome = report.and_then(|report| self.outcome(report));
        self.state = match (report, outcome) {
            (None, _) => self.without_guard(),
            (Some(Report::Stuck { .. }), Some(_)) => State::Surviving,
            (Some(_), None) if self.has_survivors() => State::Surviving,
            (Some(_), None) => State::Running,
            (Some(_), Some(_)) => State::Idle,
        };
        if self.state == State::Idle {
            self.lethal_from = Timestamp::NEVER;
        }
        outcome
    }

    fn outcome(&self, report: Report) -> Option<Outcome> {
        match report {
            Report::TreeEnded { run, status, cause } if run == self.last => Some(match (cause, status) {
                (Cause::Deadline | Cause::SupervisorGone, _) => Outcome::TimedOut,
                (Cause::Ordered, _) => Outcome::Stopped,
                (Cause::ItsOwn, ChildStatus::Exited(0)) => Outcome::Succeeded,
                (Cause::ItsOwn, status) => Outcome::Failed(status),
            }),
            Report::Stuck { run, survivors } => {
                tracing::error!(survivors, "Processes of {} survive SIGKILL (uninterruptible sleep?)", self.name);
                if self.counts_survivors {
                    self.metrics.report_stuck();
                }
                (run == self.last).then_some(Outcome::TimedOut)
            }
            Report::TreeEnded { .. }
            | Report::Taken { .. }
            | Report::Started { .. }
            | Report::Stopping { .. }
            | Report::CommandEnded { .. } => None,
        }
    }

    /// Ends the guard and the present run.
    pub(super) async fn dismiss(self) {
        self.guard.dismiss().await;
        tracing::debug!("Guard of {} was dismissed", self.name);
    }
}

/// The failure as text; `None` if the run succeeded.
pub(super) fn complaint(outcome: Outcome, timeout: Duration) -> Option<String> {
    match outcome {
        Outcome::Succeeded => None,
        Outcome::Failed(status) => Some(format!("it {}", words::fate(status))),
        // What is left of a lease is exact to the nanosecond.
        Outcome::TimedOut => Some(format!("it took longer than {} and was killed", words::length(in_millis(timeout)))),
        Outcome::Stopped => Some("it was not needed any more and was killed".to_owned()),
        Outcome::GuardGone => Some("its guard died".to_owned()),
    }
}
