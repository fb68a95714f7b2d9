//! Which cells of the transition table a set of runs has visited.

use std::collections::BTreeMap;

use zk_leader_run::core::action::PhaseName;
use zk_leader_run::core::event::{Denial, Event, StepOutcome};
use zk_leader_run::core::guard_messages::Report;
use zk_leader_run::core::settings::StepKind;
use zk_leader_run::core::vouching::{Reply, Word};

pub const PHASES: [PhaseName; 9] = [
    PhaseName::Following,
    PhaseName::Waiting,
    PhaseName::Preparing,
    PhaseName::Leading,
    PhaseName::Vouched,
    PhaseName::Paused,
    PhaseName::Stopping,
    PhaseName::Releasing,
    PhaseName::Done,
];

/// What a leader gives way to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Given {
    HandOver,
    Request,
    Drain,
}

#[derive(Clone, Default, Debug)]
pub struct Coverage {
    heeded: BTreeMap<Given, u64>,
    cells: BTreeMap<(&'static str, usize), u64>,
    passages: BTreeMap<(usize, usize), u64>,
}

impl Coverage {
    pub fn visit(&mut self, phase: PhaseName, event: &Event) {
        *self.cells.entry((name_of(event), phase as usize)).or_default() += 1;
    }

    pub fn pass(&mut self, from: PhaseName, to: PhaseName) {
        *self.passages.entry((from as usize, to as usize)).or_default() += 1;
    }

    pub fn heed(&mut self, order: Given) {
        *self.heeded.entry(order).or_default() += 1;
    }

    pub fn heeded(&self, order: Given) -> u64 {
        self.heeded.get(&order).copied().unwrap_or(0)
    }

    pub fn add(&mut self, other: &Self) {
        for (order, count) in &other.heeded {
            *self.heeded.entry(*order).or_default() += count;
        }
        for (cell, count) in &other.cells {
            *self.cells.entry(*cell).or_default() += count;
        }
        for (passage, count) in &other.passages {
            *self.passages.entry(*passage).or_default() += count;
        }
    }

    pub fn visited(&self) -> usize {
        self.cells.len()
    }

    pub fn visits(&self, phase: PhaseName, event: &'static str) -> u64 {
        self.cells.get(&(event, phase as usize)).copied().unwrap_or(0)
    }

    pub fn passages(&self, from: PhaseName, to: PhaseName) -> u64 {
        self.passages.get(&(from as usize, to as usize)).copied().unwrap_or(0)
    }

    pub fn table(&self) -> String {
        let mut text = format!("{:<28}", "event");
        for phase in PHASES {
            text += &format!("{:>12}", format!("{phase:?}"));
        }
        let mut events: Vec<&str> = self.cells.keys().map(|(event, _)| *event).collect();
        events.dedup();
        for event in events {
            text += &format!("\n{event:<28}");
            for phase in PHASES {
                text += &format!("{:>12}", self.visits(phase, event));
            }
        }
        text + &format!("\ngiven way to {:?}", self.heeded)
    }
}

#[expect(clippy::too_many_lines, reason = "one arm for each event")]
fn name_of(event: &Event) -> &'static str {
    match event {
        Event::Ticked => "ticked",
        Event::ClockJumped => "clock-jumped",
        Event::Connected { .. } => "connected",
        Event::Unreachable { .. } => "unreachable",
        Event::Rejected { .. } => "rejected",
        Event::ContactLost { .. } => "contact-lost",
        Event::ContactRestored { .. } => "contact-restored",
        Event::SessionOver { .. } => "session-over",
        Event::Seen { .. } => "seen",
        Event::Observed { .. } => "observed",
        Event::Glimpsed { .. } => "glimpsed",
        Event::LineChanged { .. } => "line-changed",
        Event::RecordChanged { .. } => "record-changed",
        Event::TookOver { .. } => "took-over",
        Event::Renewed { .. } => "renewed",
        Event::Marked { is_fresh: true, .. } => "marked",
        Event::Marked { is_fresh: false, .. } => "duplicate",
        Event::Released { .. } => "released",
        Event::Fenced { .. } => "fenced",
        Event::StepEnded { outcome: StepOutcome::GuardGone, .. } => "step-guard-gone",
        Event::StepEnded { step: StepKind::BeforeStart, outcome: StepOutcome::Succeeded, .. } => "before-start-well",
        Event::StepEnded { step: StepKind::BeforeStart, .. } => "before-start-badly",
        Event::StepEnded { outcome: StepOutcome::Succeeded, .. } => "after-stop-well",
        Event::StepEnded { .. } => "after-stop-badly",
        Event::Ineligible { on: true, .. } => "barred",
        Event::Ineligible { on: false, .. } => "unbarred",
        Event::IdTaken => "id-taken",
        Event::Vouching(Word::Asked(_)) => "asked",
        Event::Vouching(Word::Answered(Reply { promises: true, .. })) => "promised",
        Event::Vouching(Word::Answered(_)) => "refused",
        Event::Vouching(Word::Left { .. }) => "left",
        Event::Vouching(Word::Line(_)) => "line-known",
        Event::Denied { denial: Denial::Conflict, .. } => "denied-conflict",
        Event::Denied { denial: Denial::CandidateGone, .. } => "denied-candidate-gone",
        Event::Denied { denial: Denial::Forbidden(_), .. } => "denied-forbidden",
        Event::Unanswered { .. } => "unanswered",
        Event::Guard(Report::Taken { .. }) => "guard-taken",
        Event::Guard(Report::Started { .. }) => "guard-started",
        Event::Guard(Report::Stopping { .. }) => "guard-stopping",
        Event::Guard(Report::CommandEnded { .. }) => "guard-command-ended",
        Event::Guard(Report::TreeEnded { .. }) => "guard-tree-ended",
        Event::Guard(Report::Stuck { .. }) => "guard-stuck",
        Event::GuardGone => "guard-gone",
        Event::CheckGone { .. } => "check-gone",
        Event::OrphansEnded => "orphans-ended",
        Event::StopRequested => "stop-requested",
        Event::HungUp => "hung-up",
        Event::SignalReceived { .. } => "signal-received",
    }
}
