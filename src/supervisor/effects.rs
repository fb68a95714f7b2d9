//! Carries out the machine's actions, one arm each, without waiting.

use super::auxiliary::{AuxiliaryCommands, skip_step};
use super::command_guard::CommandGuard;
use crate::core::action::{Action, ExitReason};
use crate::core::guard_messages::Order;
use crate::observe::log;
use crate::vouching::Direct;
use crate::zookeeper::Election;

pub(super) struct Effects {
    pub election: Election,
    pub direct: Option<Direct>,
    pub guard: CommandGuard,
    pub auxiliary: AuxiliaryCommands,
}

impl Effects {
    /// Carries out the actions in order. Returns the reason to exit, if one of them was `Exit`.
    #[must_use]
    pub fn carry_out_all(&mut self, actions: &[Action]) -> Option<ExitReason> {
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
            Action::Fence { grant } => self.auxiliary.begin_fence(grant, self.election.unfenced()),
            Action::EndFence => self.auxiliary.end_fence(),
            Action::RunStep { step, grant, why, deadlines } => self.auxiliary.begin_step(step, &grant, why, deadlines),
            Action::ExtendStep { step, deadlines } => self.auxiliary.extend_step(step, deadlines),
            Action::StopStep { step, by } => self.auxiliary.stop_step(step, by),
            Action::SkipStep { step } => skip_step(step),
            Action::Guard(order @ Order::Start { grant, .. }) => {
                self.election.settle();
                self.auxiliary.command_starts(grant);
                self.guard.send(&order);
            }
            Action::Guard(order) => self.guard.send(&order),
            Action::EndGuard => self.guard.kill("did not take the order to start in time"),
            Action::EndOrphans => self.guard.end_orphans(),
            Action::Announce(transition) => {
                log::transition(&transition);
                self.auxiliary.transition(&transition);
            }
            Action::Ask { to, question } => self.direct.iter().for_each(|direct| direct.ask(to, question)),
            Action::Reply { reply } => self.direct.iter().for_each(|direct| direct.reply(reply)),
            Action::ForgetTerms => self.direct.iter().for_each(Direct::forget_terms),
            Action::Exit(reason) => return Some(reason),
        }
        None
    }
}
