//! Carries out the machine's actions, one arm each, without waiting.

use super::auxiliary::{AuxiliaryCommands, skip_step};
use super::command_guard::CommandGuard;
use crate::core::action::{Action, ExitReason, PhaseName, Transition, Why};
use crate::core::guard_messages::{ChildStatus, Order};
use crate::observe::log::{self, OutageSettings};
use crate::vouching::Direct;
use crate::zookeeper::Election;

pub(super) struct Effects {
    pub election: Election,
    pub direct: Option<Direct>,
    pub guard: CommandGuard,
    pub auxiliary: AuxiliaryCommands,
    pub outage: OutageSettings,
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

    /// Of a job.
    fn end_run(&self, status: ChildStatus, ok: bool) {
        if !ok {
            tracing::warn!(status = status.as_in_a_shell(), "The run counts as failed");
        }
        self.election.end_run(status, ok);
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
            Action::EndRun { status, ok } => self.end_run(status, ok),
            Action::WithdrawRun => self.election.withdraw_run(),
            Action::Release { candidacy, conditions, entry, keeps_candidate } => {
                self.election.release(candidacy, conditions, entry, keeps_candidate);
            }
            Action::LeaveServer => self.election.leave_server(),
            Action::Fence { grant } => self.auxiliary.begin_fence(grant, self.election.unfenced()),
            Action::EndFence => self.auxiliary.end_fence(),
            Action::RunStep { step, grant, why, deadlines } => self.auxiliary.begin_step(step, &grant, why, deadlines),
            Action::ExtendStep { step, deadlines } => self.auxiliary.extend_step(step, deadlines),
            Action::StopStep { step, by } => self.auxiliary.stop_step(step, by),
            Action::SkipStep { step } => skip_step(step),
            Action::Guard(order) => self.order(&order),
            Action::EndGuard => self.guard.kill("did not take the order to start in time"),
            Action::EndOrphans => self.guard.end_orphans(),
            Action::Announce(transition) => {
                log::transition(&transition, &self.others(&transition), self.outage);
                self.auxiliary.transition(&transition);
            }
            Action::Ask { to, question } => self.direct.iter().for_each(|direct| direct.ask(to, question)),
            Action::Reply { reply } => self.direct.iter().for_each(|direct| direct.reply(reply)),
            Action::ForgetTerms => self.direct.iter().for_each(Direct::forget_terms),
            Action::Exit(reason) => return Some(reason),
        }
        None
    }

    /// The hosts that the line about this change names.
    fn others(&self, transition: &Transition) -> Vec<String> {
        match transition.why {
            // Who prepares holds the lease itself.
            Why::WaitOver | Why::TooLate if transition.from != PhaseName::Preparing => self.election.lease_holders(),
            Why::TookOver | Why::Elected => self.election.leader_before().into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn order(&mut self, order: &Order) {
        if let Order::Start { grant, .. } = order {
            self.election.settle();
            self.auxiliary.command_starts(*grant);
        }
        self.guard.send(order);
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::{Ipv4Addr, SocketAddr};
    use std::os::fd::BorrowedFd;
    use std::sync::Arc;
    use std::time::Duration;

    use futures_util::future::BoxFuture;
    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
    use tokio::sync::{Mutex, watch};
    use tokio::time::timeout;

    use super::*;
    use crate::core::event::Event;
    use crate::core::vouching::Word;
    use crate::supervisor::guard_interface::{Guard, Simulated};
    use crate::vouching::message::{Message, Said};
    use crate::vouching::{Memory, Network};
    use crate::zookeeper::schema::vouching::{Neighbourhood, Secret};
    use crate::zookeeper::testing;

    const ELECTION: i64 = 5;
    const SECRET: Secret = Secret([7; Secret::LENGTH]);
    const MEMBER: u64 = 2;
    const SOMEBODY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

    #[derive(Debug)]
    struct Idle;

    impl Simulated for Idle {
        fn send(&self, _: &Order) -> io::Result<()> {
            Ok(())
        }
    }

    #[derive(Debug)]
    struct Wire(Mutex<UnboundedReceiver<Vec<u8>>>);

    impl Network for Wire {
        fn address(&self) -> SocketAddr {
            SOMEBODY
        }
        fn send(&self, _: SocketAddr, _: &[u8]) {}
        fn receive<'a>(&'a self, buffer: &'a mut [u8]) -> BoxFuture<'a, io::Result<(usize, SocketAddr)>> {
            Box::pin(async {
                let datagram = self.0.lock().await.recv().await.ok_or(io::ErrorKind::NotConnected)?;
                buffer[..datagram.len()].copy_from_slice(&datagram);
                Ok((datagram.len(), SOMEBODY))
            })
        }
        fn descriptor(&self) -> Option<BorrowedFd<'_>> {
            None
        }
    }

    /// The token of the question that is heard, if any is.
    async fn asked(token: i64, wire: &UnboundedSender<Vec<u8>>, told: &mut UnboundedReceiver<Event>) -> Option<i64> {
        let said = Said::Ask { lease: Duration::from_secs(15) };
        let question = Message { said, token, leader: 1, member: MEMBER, seq: 1 };
        wire.send(question.write(ELECTION, &SECRET)).unwrap();
        match timeout(Duration::from_secs(1), told.recv()).await.ok()?.unwrap() {
            Event::Vouching(Word::Asked(question)) => Some(question.token),
            event => panic!("{event:?}"),
        }
    }

    /// As the machine orders where the ensemble was restored.
    #[tokio::test(start_paused = true)]
    async fn lower_tokens_are_heard_once_terms_are_to_be_forgotten() {
        let ((wire, carried), (events, mut told)) = (unbounded_channel(), unbounded_channel());
        let known = Neighbourhood { election: Some(ELECTION), secret: Some(SECRET), neighbours: Vec::new() };
        let (_knows, neighbourhood) = watch::channel(known);
        let network = Arc::new(Wire(Mutex::new(carried)));
        let direct = Direct::new(network, (MEMBER, Memory::default()), neighbourhood, events.clone());
        let mut effects = Effects {
            election: Election::new(testing::settings(), events),
            direct: Some(direct),
            guard: CommandGuard::new((Guard::Simulated(Box::new(Idle)), None), &[]).unwrap(),
            auxiliary: AuxiliaryCommands::default(),
            outage: OutageSettings::default(),
        };
        for token in 100..108 {
            assert_eq!(asked(token, &wire, &mut told).await, Some(token));
        }
        assert_eq!(asked(3, &wire, &mut told).await, None, "an older term");
        assert_eq!(effects.carry_out_all(&[Action::ForgetTerms]), None);
        assert_eq!(asked(3, &wire, &mut told).await, Some(3), "tokens begin anew");
    }
}
