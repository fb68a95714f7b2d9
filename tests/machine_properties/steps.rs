//! What must never come of the steps around the command.

use zk_leader_run::core::action::{Action, Transition, Why};
use zk_leader_run::core::event::{Event, StepOutcome};
use zk_leader_run::core::guard_messages::{Deadlines, Order};
use zk_leader_run::core::settings::{Guarantee, StepKind, StepLimits};
use zk_leader_run::core::time::Now;

use crate::onlooker::Onlooker;

/// The steps of one machine, as they were asked for and ended.
#[derive(Debug, Default)]
pub struct Steps {
    pub limits: StepLimits,
    /// The step whose tree may live, with its term and the latest deadlines.
    pub alive: Option<(StepKind, i64, Deadlines)>,
    /// The term whose `--before-start` has succeeded.
    prepared: Option<i64>,
    /// The term that owes an `--after-stop`.
    owes: Option<i64>,
    /// Another host may hold the record.
    forfeit: bool,
}

impl Onlooker {
    pub fn sees_step_end(&mut self, now: Now, event: &Event) {
        let Event::StepEnded { step, token, outcome } = *event else { return };
        let Some((kind, of, _)) = self.steps.alive else { return };
        if (kind, of) == (step, token) {
            self.steps.alive = None;
            self.ids.step = None;
            self.is_finished(now);
            let well = (StepKind::BeforeStart, StepOutcome::Succeeded) == (step, outcome);
            self.steps.prepared = self.steps.prepared.or(Some(token).filter(|_| well));
        }
    }

    pub fn sees_step(&mut self, now: Now, action: &Action) {
        match *action {
            Action::RunStep { step, grant, deadlines, .. } => self.sees_begin(now, step, grant.token, deadlines),
            Action::ExtendStep { step, deadlines } => self.sees_prolonged(now, step, deadlines),
            Action::SkipStep { .. } => self.steps.owes = None,
            Action::Announce(Transition { why: Why::Deposed | Why::ClockJumped, .. }) => self.steps.forfeit = true,
            Action::Guard(Order::Start { grant, .. }) => {
                if let Some((kind, ..)) = self.steps.alive {
                    self.breach("steps", format!("the command is started beside {kind:?}"));
                }
                if self.steps.limits.before_start.is_some() && self.steps.prepared != Some(grant.token) {
                    self.breach("steps", "the command is started without --before-start".to_string());
                }
                self.steps.owes = self.steps.limits.after_stop.map(|_| grant.token);
                self.steps.forfeit = false;
            }
            Action::Release { .. } | Action::Exit(_) | Action::TakeOver { .. } => {
                if let Some((kind, ..)) = self.steps.alive {
                    self.breach("I4", format!("{action:?} while the tree of {kind:?} may live"));
                }
                if self.steps.owes.is_some() {
                    self.breach("steps", format!("{action:?} without --after-stop"));
                }
                self.steps.prepared = None;
            }
            Action::Connect { .. } if self.is_at_most_one() => {
                let over = |deadlines: Deadlines| now.lease > deadlines.kill_at;
                if let Some((kind, ..)) = self.steps.alive.filter(|(.., deadlines)| !over(*deadlines)) {
                    self.breach("I4", format!("{action:?} while the tree of {kind:?} may live"));
                }
            }
            _ => {}
        }
    }

    fn sees_begin(&mut self, now: Now, step: StepKind, token: i64, deadlines: Deadlines) {
        if let Some((kind, ..)) = self.steps.alive {
            self.breach("I3", format!("{step:?} is run beside {kind:?}"));
        }
        if self.has_run() {
            self.breach("I3", format!("{step:?} is run beside the command"));
        }
        if now.lease >= deadlines.stop_at || deadlines.stop_at > deadlines.kill_at {
            self.breach("steps", format!("{step:?} is run without runway: {deadlines:?}"));
        }
        self.bounded(deadlines);
        match step {
            StepKind::BeforeStart if self.steps.prepared == Some(token) => {
                self.breach("steps", "--before-start is run again".to_string());
            }
            StepKind::BeforeStart => {
                if !self.wait_is_over(now) {
                    self.breach("I2", "--before-start is run before the wait is over".to_string());
                }
                self.steps.owes = self.steps.limits.after_stop.map(|_| token);
                self.steps.forfeit = false;
            }
            StepKind::AfterStop if self.steps.forfeit || self.steps.owes != Some(token) => {
                self.breach("steps", "--after-stop is run when it is not due".to_string());
            }
            StepKind::AfterStop => self.steps.owes = None,
        }
        self.steps.alive = Some((step, token, deadlines));
        self.ids.step = Some((step, token));
        self.begins_anew();
    }

    fn sees_prolonged(&mut self, now: Now, step: StepKind, deadlines: Deadlines) {
        self.bounded(deadlines);
        let Some((kind, _, before)) = &mut self.steps.alive else { return };
        let (kind, before) = (*kind, std::mem::replace(before, deadlines));
        if kind != step || now.lease >= before.kill_at || deadlines.kill_at <= before.kill_at {
            self.breach("I5", format!("{step:?} is prolonged from {before:?} to {deadlines:?}"));
        }
    }

    fn is_at_most_one(&self) -> bool {
        self.guarantee == Guarantee::AtMostOne
    }
}
