//! `--preempt-after`: when the next in line asks a leader of lower priority to hand over.
//!
//! A host whose command or preparation has failed here asks no sooner than when that counts no more, nor before it may start the command.
//!
//! The delay counts from our first sight of both facts (we are next; the leader's priority is lower), and again in each
//! session, so that a flapping host does not move the leadership each time. The request is a handover like an
//! operator's.

use std::time::Duration;

use super::action::PhaseName;
use super::machine::Snapshot;
use super::time::Timestamp;

/// The pause after a request without effect.
const PAUSE: Duration = Duration::from_secs(60);

/// See the module page.
#[derive(Clone, Copy, Debug)]
pub struct Preemption {
    /// `None`: disabled.
    after: Option<Duration>,
    ask_at: Option<Timestamp>,
}

impl Preemption {
    pub fn new(after: Option<Duration>) -> Self {
        Self { after, ask_at: None }
    }

    /// Whether to ask now.
    pub fn judge(&mut self, now: Timestamp, snapshot: &Snapshot) -> bool {
        let Some(after) = self.after.filter(|_| may_ask(snapshot)) else {
            self.ask_at = None;
            return false;
        };
        let ask_at = self.ask_at.get_or_insert(now.after(after));
        *ask_at = (*ask_at).max(snapshot.asks_from);
        let is_due = now >= *ask_at;
        if is_due {
            self.ask_at = Some(now.after(after.max(PAUSE)));
        }
        is_due
    }

    /// When to judge again, unless something happens before.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.ask_at
    }
}

fn may_ask(snapshot: &Snapshot) -> bool {
    let is_in_line = snapshot.phase == PhaseName::Following && snapshot.timing.is_some() && snapshot.barred.is_none();
    is_in_line && snapshot.view.is_some_and(|view| view.outranks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::action::Why;
    use crate::core::event::{Nonce, Place, Record, SessionNumber, View};
    use crate::core::guard_messages::{CandidateName, Slot};
    use crate::core::lease::{Timing, Wishes};

    const AFTER: Duration = Duration::from_secs(10);
    const WISHES: Wishes = Wishes::NONE;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::ZERO.after(Duration::from_secs(seconds))
    }

    /// Next in line, behind a leader of lower priority.
    fn next() -> Snapshot {
        let record = Record {
            slot: Slot(0),
            version: 1,
            mzxid: 1,
            held: true,
            waiting_on: None,
            lease: Duration::from_secs(4),
            nonce: Nonce::UNKNOWN,
            token: 0,
            vouching: None,
            agrees: true,
        };
        let view = View {
            place: Place::Next,
            candidate: CandidateName::EMPTY,
            session_id: 1,
            term_version: 1,
            record,
            outranks: true,
            is_revoked: false,
        };
        Snapshot {
            phase: PhaseName::Following,
            session: SessionNumber(1),
            timing: Timing::new(Duration::from_secs(4), &WISHES).ok(),
            view: Some(view),
            held_term: None,
            barred: None,
            disabled: false,
            run: None,
            frozen: false,
            grace_over_at: Timestamp::NEVER,
            is_ending: false,
            step: None,
            asks_from: Timestamp::ZERO,
            unasked_until: None,
            vouching: None,
        }
    }

    fn outranked() -> Snapshot {
        Snapshot { view: next().view.map(|view| View { outranks: false, ..view }), ..next() }
    }

    #[test]
    fn it_asks_when_it_was_next_for_so_long_and_not_again_for_a_while() {
        let mut preemption = Preemption::new(Some(AFTER));
        assert!(!preemption.judge(at(5), &next()));
        assert_eq!(preemption.next_deadline(), Some(at(15)));
        assert!(!preemption.judge(at(14), &next()));
        assert!(preemption.judge(at(15), &next()));
        assert!(!preemption.judge(at(16), &next()));
        assert!(!preemption.judge(at(74), &next()));
        assert!(preemption.judge(at(75), &next()), "the leader may have been cut off");
    }

    /// Else a command that runs well elsewhere would be stopped for it again and again.
    #[test]
    fn who_could_not_start_the_command_does_not_ask_before_that_counts_no_more() {
        let mut preemption = Preemption::new(Some(AFTER));
        let failed = Snapshot { asks_from: at(600), ..next() };
        assert!(!preemption.judge(at(5), &failed) && !preemption.judge(at(599), &failed));
        assert_eq!(preemption.next_deadline(), Some(at(600)));
        assert!(preemption.judge(at(600), &failed));
    }

    #[test]
    fn zero_is_at_once() {
        assert!(Preemption::new(Some(Duration::ZERO)).judge(at(5), &next()));
    }

    #[test]
    fn without_the_option_it_never_asks() {
        let mut preemption = Preemption::new(None);
        assert!(!preemption.judge(at(5), &next()) && !preemption.judge(at(500), &next()));
        assert_eq!(preemption.next_deadline(), None);
    }

    #[test]
    fn whatever_is_in_the_way_makes_it_count_anew() {
        let in_the_way = [
            outranked(),
            Snapshot { view: None, ..next() },
            Snapshot { timing: None, ..next() },
            Snapshot { barred: Some(Why::Unhealthy), ..next() },
            Snapshot { phase: PhaseName::Leading, ..next() },
        ];
        for snapshot in in_the_way {
            let mut preemption = Preemption::new(Some(AFTER));
            preemption.judge(at(0), &next());
            assert!(!preemption.judge(at(9), &snapshot), "{snapshot:?}");
            assert_eq!(preemption.next_deadline(), None, "{snapshot:?}");
            assert!(!preemption.judge(at(11), &next()), "{snapshot:?}");
            assert!(!preemption.judge(at(20), &next()) && preemption.judge(at(21), &next()), "{snapshot:?}");
        }
    }
}
