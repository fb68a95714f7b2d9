//! Which hooks a change of phase asks for, and their queue. Hooks run in the order of events, and no part of the
//! program waits for them. The queue is bounded by [`HookQueue::CAPACITY`].

use std::collections::VecDeque;

use super::action::{PhaseName, Transition, Why};
use super::guard_messages::Grant;

/// `ZK_LEADER_EVENT`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HookEvent {
    /// This process follows: another host leads, or none does yet.
    Standby,
    /// This process leads; the command is about to start.
    Elected,
    /// The fence command succeeded.
    Fenced,
    /// The command was started, for the first time in this term or again.
    Started,
    /// Contact with `ZooKeeper` is lost.
    Paused,
    /// Contact with `ZooKeeper` is lost, and every host that could take over promises to hold back.
    Vouched,
    /// Contact is restored.
    Resumed,
    Stopping,
    /// Our term is over; the record is left to run out, or another candidate holds it.
    Lost,
    /// Our term is over, and the record is free.
    Released,
}

/// One hook to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hook {
    pub event: HookEvent,
    pub why: Option<Why>,
    /// The term of the event.
    pub grant: Option<Grant>,
    /// The number of hooks dropped before this one because the queue was full.
    pub missed: u32,
}

/// Turns transitions into hooks, in order.
#[derive(Debug, Default)]
pub struct HookQueue {
    waiting: VecDeque<Hook>,
    /// The term for which *elected* was queued and no end yet.
    term: Option<Grant>,
    is_stopping: bool,
    /// A record is being freed, and since we followed nobody was told that we lead: its term was told to be lost, or led nothing.
    settles: bool,
}

impl HookQueue {
    /// A limit: when hooks take their full default time, this many wait before the oldest is dropped.
    pub const CAPACITY: usize = 32;

    /// The hooks of an earlier program of this process were run; *elected* of this term is one of them.
    pub fn of(term: Option<Grant>) -> Self {
        Self { term, ..Self::default() }
    }

    /// The process begins to follow.
    pub fn began(&mut self) {
        self.push(HookEvent::Standby, None, None);
    }

    pub fn transition(&mut self, transition: &Transition) {
        let Transition { from, to, why, grant, .. } = *transition;
        let term = self.term.or(grant);
        match to {
            PhaseName::Leading if matches!(from, PhaseName::Paused | PhaseName::Vouched) => {
                self.push(HookEvent::Resumed, Some(why), term);
            }
            PhaseName::Leading => self.elected(why, grant),
            PhaseName::Vouched => self.push(HookEvent::Vouched, Some(why), term),
            PhaseName::Paused => self.push(HookEvent::Paused, Some(why), term),
            PhaseName::Stopping => {
                self.is_stopping = true;
                self.push(HookEvent::Stopping, Some(why), term);
            }
            PhaseName::Following | PhaseName::Done => {
                self.ended(why);
                let has_followed = std::mem::take(&mut self.settles) || from == PhaseName::Following;
                if to == PhaseName::Following && !has_followed {
                    self.push(HookEvent::Standby, Some(why), None);
                }
            }
            // Before the first run of a term, or between two runs.
            PhaseName::Preparing => {
                self.elected(why, grant);
                self.is_stopping = false;
            }
            PhaseName::Releasing => self.settles |= from == PhaseName::Following,
            PhaseName::Waiting => {}
        }
    }

    /// The guard reported the start of the command.
    pub fn started(&mut self) {
        if self.term.is_some() && !self.is_stopping {
            self.push(HookEvent::Started, None, self.term);
        }
    }

    pub fn fenced(&mut self) {
        self.push(HookEvent::Fenced, None, self.term);
    }

    pub fn take(&mut self) -> Option<Hook> {
        self.waiting.pop_front()
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn elected(&mut self, why: Why, grant: Option<Grant>) {
        if self.term.is_none() {
            self.term = grant;
            self.is_stopping = false;
            self.push(HookEvent::Elected, Some(why), grant);
        }
    }

    fn ended(&mut self, why: Why) {
        if let Some(grant) = self.term.take() {
            let event = if why == Why::Released { HookEvent::Released } else { HookEvent::Lost };
            self.push(event, Some(why), Some(grant));
        }
    }

    /// A full queue drops the oldest hook, because the newest describe the present state.
    fn push(&mut self, event: HookEvent, why: Option<Why>, grant: Option<Grant>) {
        if self.waiting.len() >= Self::CAPACITY {
            let missed = self.waiting.pop_front().map_or(0, |oldest| oldest.missed.saturating_add(1));
            if let Some(next) = self.waiting.front_mut() {
                next.missed = missed;
            }
        }
        self.waiting.push_back(Hook { event, why, grant, missed: 0 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(token: i64) -> Grant {
        Grant { token, ..Grant::default() }
    }

    fn told(queue: &mut HookQueue) -> Vec<HookEvent> {
        std::iter::from_fn(|| queue.take()).map(|hook| hook.event).collect()
    }

    /// Passes through these phases in one term.
    fn pass(queue: &mut HookQueue, phases: &[(PhaseName, Why)]) {
        for pair in phases.windows(2) {
            let ((from, _), (to, why)) = (pair[0], pair[1]);
            let transition =
                Transition { from, to, why, token: None, grant: Some(grant(7)), lease_left: None, next_in: None };
            queue.transition(&transition);
            if to == PhaseName::Leading && [Why::Elected, Why::Restarted].contains(&why) {
                queue.started();
            }
        }
    }

    #[test]
    fn a_term_is_told_from_its_beginning_to_its_end() {
        use HookEvent::*;
        let mut queue = HookQueue::default();
        queue.began();
        pass(
            &mut queue,
            &[
                (PhaseName::Following, Why::Released),
                (PhaseName::Waiting, Why::TookOver),
                (PhaseName::Leading, Why::Elected),
                (PhaseName::Paused, Why::ContactLost),
                (PhaseName::Leading, Why::ContactRestored),
                (PhaseName::Stopping, Why::StopRequested),
                (PhaseName::Releasing, Why::TreeEmpty),
                (PhaseName::Done, Why::Released),
            ],
        );
        assert_eq!(told(&mut queue), [Standby, Elected, Started, Paused, Resumed, Stopping, Released]);
    }

    #[test]
    fn a_term_that_ends_without_a_release_is_lost_and_followed_by_standby() {
        use HookEvent::*;
        let mut queue = HookQueue::default();
        pass(
            &mut queue,
            &[
                (PhaseName::Following, Why::Released),
                (PhaseName::Leading, Why::Elected),
                (PhaseName::Stopping, Why::LeaseEnding),
                (PhaseName::Following, Why::DeadlineKill),
            ],
        );
        assert_eq!(told(&mut queue), [Elected, Started, Stopping, Lost, Standby]);
    }

    #[test]
    fn each_start_of_one_term_is_told() {
        use HookEvent::*;
        let mut queue = HookQueue::default();
        pass(
            &mut queue,
            &[
                (PhaseName::Following, Why::Released),
                (PhaseName::Leading, Why::Elected),
                (PhaseName::Stopping, Why::TimedOut),
                (PhaseName::Preparing, Why::Restarting),
                (PhaseName::Leading, Why::Restarted),
            ],
        );
        assert_eq!(told(&mut queue), [Elected, Started, Stopping, Started]);
    }

    #[test]
    fn a_wait_that_comes_to_nothing_is_no_term() {
        let mut queue = HookQueue::default();
        let phases = [PhaseName::Following, PhaseName::Waiting, PhaseName::Following, PhaseName::Done];
        pass(&mut queue, &phases.map(|phase| (phase, Why::SessionOver)));
        assert_eq!(told(&mut queue), [HookEvent::Standby]);
    }

    /// In the next session.
    #[test]
    fn who_frees_the_record_of_a_term_that_was_told_to_be_lost_has_followed_since() {
        use HookEvent::*;
        let mut queue = HookQueue::default();
        let late = [(PhaseName::Releasing, Why::ContactRestored), (PhaseName::Following, Why::Released)];
        pass(
            &mut queue,
            &[
                (PhaseName::Following, Why::Released),
                (PhaseName::Leading, Why::Elected),
                (PhaseName::Stopping, Why::LeaseEnding),
                (PhaseName::Following, Why::SessionOver),
                late[0],
                late[1],
                (PhaseName::Leading, Why::Elected),
                (PhaseName::Following, Why::Deposed),
            ],
        );
        assert_eq!(told(&mut queue), [Elected, Started, Stopping, Lost, Standby, Elected, Started, Lost, Standby]);
    }

    #[test]
    fn a_start_that_is_reported_when_the_stop_has_begun_is_not_told_out_of_order() {
        use HookEvent::*;
        let mut queue = HookQueue::default();
        let stopped = [(PhaseName::Following, Why::Released), (PhaseName::Leading, Why::TookOver)];
        pass(&mut queue, &stopped);
        pass(&mut queue, &[(PhaseName::Leading, Why::Elected), (PhaseName::Stopping, Why::StopRequested)]);
        queue.started();
        assert_eq!(told(&mut queue), [Elected, Stopping]);
    }

    #[test]
    fn a_full_queue_leaves_out_the_oldest_and_the_next_one_says_how_many() {
        let mut queue = HookQueue::default();
        for _ in 0..HookQueue::CAPACITY + 5 {
            queue.began();
        }
        assert_eq!(queue.len(), HookQueue::CAPACITY);
        assert_eq!(queue.take().map(|hook| hook.missed), Some(5));
        assert_eq!(queue.take().map(|hook| hook.missed), Some(0));
    }
}
