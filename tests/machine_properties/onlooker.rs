//! Someone who sees what goes into a machine and what comes out, and knows what must never come.

use std::time::Duration;

use zk_leader_run::core::action::{Action, Entry, PhaseName, Transition, Why};
use zk_leader_run::core::event::{Event, Nonce, Record, Request};
use zk_leader_run::core::guard_messages::{Deadlines, Order, Report, RunId, Slot};
use zk_leader_run::core::machine::Machine;
use zk_leader_run::core::settings::Guarantee;
use zk_leader_run::core::time::{Now, Sighting, Timestamp};

use crate::steps::Steps;
use crate::stream::{INSTANCE, Ids};

/// What was broken, by the number of the invariant or a name.
pub type Breach = (&'static str, String);

/// Which of the acknowledged writes of a tenure a lease counts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counts {
    Last,
    /// In a shared election: the newest one only certifies the one before.
    LastButOne,
}

#[derive(Debug)]
pub struct Onlooker {
    pub ids: Ids,
    pub breaches: Vec<Breach>,
    pub steps: Steps,
    pub guarantee: Guarantee,
    usable: Duration,
    counts: Counts,
    /// When the acknowledged writes of this tenure were sent: the newest, and the one before.
    acked: [Option<Timestamp>; 2],
    /// When the last take-over was sent.
    taken_at: Option<Timestamp>,
    /// The run whose tree may live, and the latest deadlines that it was given.
    alive: Option<(RunId, Deadlines)>,
    guard_gone: bool,
    lapsed: bool,
    done: bool,
    /// The slot that was seen last in the line.
    shown: Slot,
    /// The record that was seen last, and since when nobody has run under a newer one.
    sighting: Option<(Record, Sighting)>,
    /// The newest run that was seen or glimpsed, by its zxid, and since when.
    newest: Option<(i64, Sighting)>,
    /// The wait that goes with the last take-over.
    not_before: Sighting,
    /// A record of ours that is as good as free.
    finished: Option<Nonce>,
}

impl Onlooker {
    pub fn new(guarantee: Guarantee, usable: Duration, counts: Counts) -> Self {
        Self {
            ids: Ids::default(),
            breaches: Vec::new(),
            steps: Steps::default(),
            guarantee,
            usable,
            counts,
            acked: [None; 2],
            taken_at: None,
            alive: None,
            guard_gone: false,
            lapsed: false,
            done: false,
            shown: Slot::default(),
            sighting: None,
            newest: None,
            not_before: Sighting::ZERO,
            finished: None,
        }
    }

    /// When the tree that may live must be dead.
    pub fn kill_at(&self) -> Option<Timestamp> {
        self.alive.map(|(_, deadlines)| deadlines.kill_at)
    }

    pub fn breach(&mut self, what: &'static str, text: String) {
        self.breaches.push((what, text));
    }

    pub fn has_run(&self) -> bool {
        self.alive.is_some()
    }

    pub fn wait_is_over(&self, now: Now) -> bool {
        self.guarantee == Guarantee::AtLeastOne || now.observer >= self.not_before
    }

    pub fn sees_event(&mut self, now: Now, event: &Event) {
        self.sees_step_end(now, event);
        match *event {
            Event::Guard(Report::TreeEnded { run, .. }) => self.tree_ended(now, Some(run)),
            Event::GuardGone => self.guard_gone = true,
            Event::OrphansEnded if self.guard_gone => self.tree_ended(now, None),
            Event::Seen { view, .. } if self.is_answer(event) => {
                self.shown = view.record.slot;
                self.sees_record(now, view.record);
            }
            Event::Glimpsed { record } => self.glimpses(now, record),
            Event::Observed { record, .. } if self.is_answer(event) => {
                self.sees_record(now, record);
            }
            Event::TookOver { sent_at, .. } if self.is_answer(event) => self.acked = [Some(sent_at), None],
            // The answer to the take-over may have been lost, and its outcome read.
            Event::Renewed { sent_at, .. } if self.is_answer(event) => {
                self.acked = [Some(sent_at), self.acked[0].or(self.taken_at)];
            }
            _ => {}
        }
        match event {
            Event::Seen { .. }
            | Event::Observed { .. }
            | Event::TookOver { .. }
            | Event::Renewed { .. }
            | Event::Marked { .. }
            | Event::Released { .. }
            | Event::Denied { .. }
            | Event::Unanswered { .. }
                if self.is_answer(event) =>
            {
                self.ids.pending = None;
            }
            // Whatever was asked in it, nobody waits for any more.
            Event::SessionOver { session } if session.0 == self.ids.session => self.ids.pending = None,
            _ => {}
        }
    }

    fn is_answer(&self, event: &Event) -> bool {
        let Some(pending) = self.ids.pending else { return false };
        let (candidacy, fits) = match *event {
            Event::Seen { candidacy, .. } => (candidacy, matches!(pending, Request::Enter | Request::Look)),
            Event::Observed { candidacy, .. } => (candidacy, pending == Request::Observe),
            Event::TookOver { candidacy, .. } => (candidacy, pending == Request::TakeOver),
            Event::Renewed { candidacy, .. } => (candidacy, pending == Request::Renew),
            Event::Marked { candidacy, .. } => (candidacy, pending == Request::Mark),
            Event::Released { candidacy } => (candidacy, pending == Request::Release),
            Event::Denied { candidacy, request, .. } | Event::Unanswered { candidacy, request } => {
                (candidacy, pending == request)
            }
            _ => return false,
        };
        fits && candidacy.0 == self.ids.candidacy
    }

    fn tree_ended(&mut self, now: Now, run: Option<RunId>) {
        if self.alive.is_some_and(|(alive, _)| run.is_none_or(|run| run == alive)) {
            self.alive = None;
            self.is_finished(now);
        }
    }

    /// No tree lives under our record any more.
    pub fn is_finished(&mut self, now: Now) {
        let nonce = Nonce { instance: INSTANCE, sending: self.ids.sending };
        self.finished = (now.observer >= self.not_before).then_some(nonce);
    }

    /// From now on a tree may live under our record.
    pub fn begins_anew(&mut self) {
        self.finished = None;
    }

    fn sees_record(&mut self, now: Now, record: Record) {
        let zxid = record.last_run_under();
        let since = self.newest.filter(|(seen, _)| *seen == zxid).map_or(now.observer, |(_, since)| since);
        self.newest = Some((zxid, since));
        self.sighting = Some((record, since));
    }

    /// It may have been read before what was seen since.
    fn glimpses(&mut self, now: Now, record: Record) {
        let zxid = record.last_run_under();
        if self.newest.is_none_or(|(seen, _)| seen < zxid) {
            self.newest = Some((zxid, now.observer));
        }
    }

    pub fn sees_actions(&mut self, now: Now, actions: &[Action]) {
        if self.done && !actions.is_empty() {
            self.breach("done", format!("after the exit: {actions:?}"));
        }
        for action in actions {
            self.sees_withdrawal(now, action);
            self.sees_step(now, action);
            match *action {
                Action::Guard(order) => self.sees_order(now, order),
                Action::Connect { session } => {
                    // Whatever was asked in the one before, nobody waits for any more.
                    (self.ids.session, self.ids.pending) = (session.0, None);
                }
                Action::Fence { grant } => self.ids.token = grant.token,
                Action::Announce(Transition { to: PhaseName::Stopping, why, .. }) => {
                    let with_a_lease = [
                        Why::StopRequested,
                        Why::TimedOut,
                        Why::Unhealthy,
                        Why::Ineligible,
                        Why::Disabled,
                        Why::HandingOver,
                        Why::Drained,
                        Why::CheckGone,
                        Why::CheckLate,
                    ];
                    self.lapsed = !with_a_lease.contains(&why);
                }
                Action::Exit(_) => self.done = true,
                _ => self.sees_request(now, action),
            }
        }
    }

    fn sees_withdrawal(&mut self, now: Now, action: &Action) {
        let leaves = match action {
            Action::Connect { .. } => self.guarantee == Guarantee::AtMostOne,
            Action::Release { entry, .. } => {
                if entry.nonce.sending == self.ids.sending && now.observer < self.not_before {
                    self.breach("I8", format!("{action:?} while the wait is not over"));
                }
                true
            }
            Action::Exit(_) => true,
            _ => false,
        };
        // What survives SIGKILL is not waited for with our place in line, once its lease is over.
        let is_stuck = |deadlines: Deadlines| matches!(action, Action::Connect { .. }) && now.lease > deadlines.kill_at;
        if let Some((run, _)) = self.alive.filter(|(_, deadlines)| leaves && !is_stuck(*deadlines)) {
            self.breach("I4", format!("{action:?} while the tree of {run:?} may live"));
        }
    }

    fn sees_request(&mut self, now: Now, action: &Action) {
        let (request, candidacy) = match *action {
            Action::Enter { candidacy } => (Request::Enter, candidacy),
            Action::Look { candidacy } => (Request::Look, candidacy),
            Action::Observe { candidacy, .. } => (Request::Observe, candidacy),
            Action::TakeOver { candidacy, .. } => (Request::TakeOver, candidacy),
            Action::Renew { candidacy, .. } => (Request::Renew, candidacy),
            Action::Mark { candidacy, .. } => (Request::Mark, candidacy),
            Action::Release { candidacy, .. } => (Request::Release, candidacy),
            _ => return,
        };
        let overtakes = self.ids.pending == Some(Request::Observe) && matches!(request, Request::Look | Request::Enter);
        let same = self.ids.candidacy == candidacy.0;
        if let Some(pending) = self.ids.pending.filter(|_| same && !overtakes) {
            self.breach("one request", format!("{action:?} while {pending:?} is under way"));
        }
        (self.ids.pending, self.ids.candidacy) = (Some(request), candidacy.0);
        self.sees_slot(action);
        if let Action::TakeOver { conditions, entry, .. } | Action::Renew { conditions, entry, .. } = *action {
            self.ids.sent_at = Some(now.lease);
            self.ids.version = conditions.record;
            if request == Request::TakeOver {
                (self.acked, self.taken_at) = ([None; 2], Some(now.lease));
                self.sees_take_over(entry.nonce);
            }
            self.sees_entry(now, entry);
        }
    }

    /// A take-over is of the slot that was shown; every later write of the term is of the slot that was taken over.
    fn sees_slot(&mut self, action: &Action) {
        let (slot, meant) = match *action {
            Action::TakeOver { conditions, .. } => (conditions.slot, self.shown),
            Action::Renew { conditions, .. } | Action::Mark { conditions, .. } | Action::Release { conditions, .. } => {
                (conditions.slot, self.ids.taken)
            }
            Action::Observe { slot, .. } => {
                self.ids.asked = slot;
                return;
            }
            _ => return,
        };
        if slot != meant {
            self.breach("slot", format!("{action:?} where {meant:?} is meant"));
        }
        if let Action::TakeOver { .. } = action {
            self.ids.taken = slot;
        }
    }

    fn sees_take_over(&mut self, nonce: Nonce) {
        if nonce.sending <= self.ids.sending {
            self.breach("nonce", format!("{nonce:?} is used again"));
        }
        self.ids.sending = nonce.sending;
        self.not_before = match self.sighting {
            Some((record, since)) if record.held && self.finished != Some(record.nonce) => {
                since.after(record.lease + record.lease / 100)
            }
            _ => Sighting::ZERO,
        };
    }

    /// While another's lease may run, the record says so, and how long it is; after that it says how long ours is.
    fn sees_entry(&mut self, now: Now, entry: Entry) {
        let waits = self.guarantee == Guarantee::AtMostOne && now.observer < self.not_before;
        let theirs = self.sighting.map(|(record, _)| (record.lease, record.last_run()));
        let said = entry.waiting_on.map(|last_run| (entry.lease, last_run));
        if said != theirs.filter(|_| waits) {
            self.breach("waits", format!("{entry:?} is written, and the wait is over at {:?}", self.not_before));
        }
    }

    fn sees_order(&mut self, now: Now, order: Order) {
        match order {
            Order::Start { run, deadlines, grant } => {
                if grant.slot != self.ids.taken {
                    self.breach(
                        "slot",
                        format!("{run:?} is started in {:?}, taken over was {:?}", grant.slot, self.ids.taken),
                    );
                }
                if let Some((alive, _)) = self.alive {
                    self.breach("I3", format!("{run:?} is started beside {alive:?}"));
                }
                if now.lease >= deadlines.stop_at {
                    self.breach("I2", format!("{run:?} is started without runway"));
                }
                if self.guarantee == Guarantee::AtMostOne && now.observer < self.not_before {
                    self.breach("I2", format!("{run:?} is started before its wait is over"));
                }
                let sent_at = self.ids.sent_at.unwrap_or(now.lease);
                if self.guarantee == Guarantee::AtMostOne && sent_at.until(now.lease) >= Duration::from_secs(1) {
                    self.breach("I2", format!("{run:?} is started without a recent answer"));
                }
                self.bounded(deadlines);
                self.ids.run = run.0;
                self.alive = Some((run, deadlines));
                // A lapse was the last run's. A renewal may follow this start at once, before anybody looks.
                self.lapsed = false;
                self.finished = None;
            }
            Order::Extend { run, deadlines } => self.sees_extension(now, run, deadlines),
            _ => {}
        }
    }

    fn sees_extension(&mut self, now: Now, run: RunId, deadlines: Deadlines) {
        self.bounded(deadlines);
        let Some((alive, before)) = self.alive.as_mut().map(|(alive, before)| (*alive, before)) else { return };
        let (too_late, backwards) = (now.lease >= before.kill_at, deadlines.kill_at < before.kill_at);
        *before = deadlines;
        if alive == run && too_late {
            self.breach("I5", format!("{run:?} is prolonged after kill_at"));
        }
        if backwards || self.lapsed {
            self.breach("I5", format!("{run:?}: {deadlines:?} after a lapse, or backwards"));
        }
    }

    /// A lease counts from a sending.
    pub fn bounded(&mut self, deadlines: Deadlines) {
        let usable = self.usable;
        let overstretched = |sent_at: &Timestamp| deadlines.kill_at > sent_at.after(usable);
        if let Some(sent_at) = self.ids.sent_at.filter(overstretched) {
            self.breach("I5", format!("{deadlines:?} from a write that was sent at {sent_at:?}"));
        }
        let certified_at = self.acked[1].filter(|_| self.counts == Counts::LastButOne && self.acked[0].is_some());
        if certified_at.is_some_and(|certified_at| overstretched(&certified_at)) {
            self.breach(
                "two writes",
                format!("{deadlines:?} from a write that none after it certifies: {:?}", self.acked),
            );
        }
        if self.counts == Counts::LastButOne && self.acked[1].is_none() {
            self.breach("two writes", format!("{deadlines:?} after one write"));
        }
    }

    /// After the machine has spoken.
    pub fn sees_machine(&mut self, now: Now, machine: &Machine) {
        let (phase, next) = (machine.phase(), machine.next_deadline(now));
        let Some((run, deadlines)) = self.alive else { return };
        match phase {
            PhaseName::Leading | PhaseName::Paused if next.is_none_or(|at| at > deadlines.stop_at) => {
                self.breach("I7", format!("{run:?} lives in {phase:?}, and the machine sleeps until {next:?}"));
            }
            PhaseName::Leading | PhaseName::Paused if now.lease >= deadlines.stop_at => {
                self.breach("I1", format!("{run:?} goes on after {:?}", deadlines.stop_at));
            }
            PhaseName::Leading | PhaseName::Paused | PhaseName::Stopping => self.lapsed &= phase == PhaseName::Stopping,
            _ => self.breach("I4", format!("the tree of {run:?} may live in {phase:?}")),
        }
    }
}
