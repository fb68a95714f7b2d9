//! What the machines ask for, and what becomes of it: the requests to `ZooKeeper`, and the guards.

use zk_leader_run::core::action::{Action, Conditions, Entry, PhaseName};
use zk_leader_run::core::event::{Candidacy, Denial, Event, Place, Record as Read, Request, View};
use zk_leader_run::core::guard_messages::{CandidateName, Cause, ChildStatus, Order, Report};

use super::{Pending, Stored, UNIT, Walk, WriteSent};
use crate::moves::Move;
use crate::world::{Sort, State};

impl Walk {
    pub(super) fn perform(&mut self, host: usize, action: Action) {
        match action {
            Action::Connect { session } => {
                let connected = Event::Connected { session, negotiated: self.lease(host) };
                self.tell(host, connected, &[&[]]);
            }
            Action::Enter { candidacy } => self.ask(host, Pending::Read { candidacy, request: Request::Enter }),
            Action::Look { candidacy } => self.ask(host, Pending::Read { candidacy, request: Request::Look }),
            Action::Observe { candidacy, .. } => {
                self.ask(host, Pending::Read { candidacy, request: Request::Observe });
            }
            Action::TakeOver { candidacy, conditions, entry, .. } => {
                self.send(host, Sort::TakeOver, (candidacy, conditions, entry), Move::TakeOver(host));
            }
            Action::Renew { candidacy, conditions, entry } => {
                self.send(host, Sort::Renewal, (candidacy, conditions, entry), Move::Renew(host));
            }
            Action::Release { candidacy, conditions, entry, .. } => {
                self.send(host, Sort::Release, (candidacy, conditions, entry), Move::SendRelease(host));
            }
            Action::Guard(order) => self.ordered(host, order),
            Action::Exit(reason) => panic!("{host} exits: {reason:?}\n{}", self.story.join("\n")),
            _ => {}
        }
    }

    /// Nobody waits any more for what was asked before.
    pub(super) fn ask(&mut self, host: usize, pending: Pending) {
        if let Some(Pending::Write { sent, outcome, .. }) = self.sides[host].pending {
            self.abandon(sent, outcome.is_some());
            self.follow("it asks something else", &[&[Move::GiveUp(host)], &[]]);
        }
        let (Pending::Read { candidacy, .. } | Pending::Write { sent: WriteSent { candidacy, .. }, .. }) = pending;
        self.sides[host].candidacy = candidacy;
        self.sides[host].pending = Some(pending);
    }

    pub(super) fn abandon(&mut self, sent: WriteSent, is_served: bool) {
        if !is_served && self.late.len() < self.rules.late_writes {
            self.late.push(sent);
        }
    }

    pub(super) fn commits(&self, sent: &WriteSent) -> bool {
        (sent.conditions.record, sent.conditions.term) == (self.stored.record.version, self.stored.term)
    }

    /// A write that can never be applied is no step of the model.
    pub(super) fn send(
        &mut self,
        host: usize,
        sort: Sort,
        (candidacy, conditions, entry): (Candidacy, Conditions, Entry),
        step: Move,
    ) {
        let sent = WriteSent { sort, candidacy, conditions, entry, since: self.clock().lease };
        self.ask(host, Pending::Write { sent, outcome: None, version: 0 });
        if !self.commits(&sent) {
            return;
        }
        self.follow(&format!("{host} sends {sort:?} {entry:?}"), &[&[step]]);
        if sort == Sort::Release {
            return;
        }
        let state = if entry.waiting_on.is_some() { State::Waiting } else { State::Held };
        self.keep("what it writes", |world| {
            world.hosts[host].request.is_some_and(|request| {
                let puts = request.write.puts;
                (puts.state, UNIT * u32::from(puts.lease)) == (state, entry.lease)
            })
        });
    }

    pub(super) fn ordered(&mut self, host: usize, order: Order) {
        match order {
            Order::Start { run, deadlines, .. } => {
                self.sides[host].tree = Some((run, deadlines.kill_at));
                self.follow(&format!("{host} starts"), &[&[Move::Start(host)]]);
                self.tell(host, Event::Guard(Report::Taken { run }), &[&[]]);
            }
            Order::Extend { run, deadlines } => {
                if let Some((alive, kill_at)) = &mut self.sides[host].tree {
                    if *alive == run {
                        *kill_at = deadlines.kill_at.max(*kill_at);
                    }
                }
            }
            Order::Kill { .. } => self.tree_ends(host, Cause::Ordered),
            _ => {}
        }
    }

    pub(super) fn tree_ends(&mut self, host: usize, cause: Cause) {
        if let Some((run, _)) = self.sides[host].tree.take() {
            self.sides[host].ended = Some((run, cause));
            self.follow(&format!("{host}'s tree ends"), &[&[Move::End(host)]]);
        }
    }

    /// The ensemble applies a write, if it commits.
    pub(super) fn apply(&mut self, sent: &WriteSent) -> Result<i32, Denial> {
        if !self.commits(sent) {
            return Err(Denial::Conflict);
        }
        self.former = Some(self.stored);
        self.zxid += 1;
        let Entry { nonce, lease, waiting_on, .. } = sent.entry;
        let version = self.stored.record.version + 1;
        let held = sent.sort != Sort::Release;
        let waiting_on = waiting_on.filter(|_| held);
        self.stored.record = Read { version, mzxid: self.zxid, held, waiting_on, lease, nonce, ..self.stored.record };
        self.stored.term += i32::from(sent.sort == Sort::TakeOver);
        Ok(version)
    }

    pub(super) fn serve(&mut self, host: usize) {
        let Some(Pending::Write { sent, outcome: None, .. }) = self.sides[host].pending else { return };
        let commits = self.commits(&sent);
        let applied = self.apply(&sent);
        self.sides[host].newest = self.stored.record.mzxid;
        if commits {
            let late = [0, 1, 2, 3].map(|late| [Move::ApplyLate { late, round: false }]);
            let late = late.iter().map(<[Move; 1]>::as_slice);
            // A host that releases has given up its renewal, as the model has it, and waits for the answer all the same.
            let asked = [Move::Apply { host, round: false }];
            let ways: Vec<&[Move]> = late.chain([asked.as_slice()]).collect();
            self.follow("it is applied", &ways);
        }
        let (outcome, version) = (Some(applied.map(|_| ())), applied.unwrap_or_default());
        self.sides[host].pending = Some(Pending::Write { sent, outcome, version });
        self.compare();
    }

    pub(super) fn serve_late(&mut self, index: usize) {
        let sent = self.late.remove(index);
        if self.apply(&sent).is_ok() {
            let late = [0, 1, 2, 3].map(|late| [Move::ApplyLate { late, round: false }]);
            let late: Vec<&[Move]> = late.iter().map(<[Move; 1]>::as_slice).collect();
            self.follow(&format!("late {sent:?}"), &late);
        }
        self.compare();
    }

    pub(super) fn answer(&mut self, host: usize) {
        let Some(Pending::Write { sent, outcome: Some(outcome), version }) = self.sides[host].pending else { return };
        self.sides[host].pending = None;
        let WriteSent { candidacy, sort, since: sent_at, entry, .. } = sent;
        let request = match sort {
            Sort::TakeOver => Request::TakeOver,
            Sort::Renewal => Request::Renew,
            Sort::Release | Sort::Creation => Request::Release,
        };
        let event = match (sort, outcome) {
            (_, Err(denial)) => Event::Denied { candidacy, request, denial },
            (Sort::TakeOver, Ok(())) => {
                let term = sent.conditions.term + 1;
                let token = self.zxid;
                Event::TookOver { candidacy, nonce: entry.nonce, sent_at, version, token, term }
            }
            (Sort::Renewal, Ok(())) => Event::Renewed { candidacy, sent_at, version },
            (Sort::Release | Sort::Creation, Ok(())) => Event::Released { candidacy },
        };
        match (sort, outcome) {
            (Sort::Release | Sort::Creation, _) => self.tell(host, event, &[&[]]),
            // The renewal of a term that is over.
            (Sort::Renewal, Ok(()))
                if matches!(self.sides[host].machine.phase(), PhaseName::Releasing | PhaseName::Following) =>
            {
                self.tell(host, event, &[&[Move::Answer(host)], &[Move::Adopt(host)], &[]]);
            }
            (_, Ok(())) => self.tell(host, event, &[&[Move::Answer(host)]]),
            (_, Err(_)) => self.tell(host, event, &[&[Move::GiveUp(host)], &[]]),
        }
    }

    pub(super) fn give_up(&mut self, host: usize) {
        let Some(pending) = self.sides[host].pending.take() else { return };
        let (candidacy, request, ways): (_, _, &[&[Move]]) = match pending {
            Pending::Read { candidacy, request } => (candidacy, request, &[&[]]),
            Pending::Write { sent, outcome, .. } => {
                self.abandon(sent, outcome.is_some());
                match sent.sort {
                    Sort::TakeOver => (sent.candidacy, Request::TakeOver, &[&[Move::GiveUp(host)], &[]]),
                    Sort::Renewal => (sent.candidacy, Request::Renew, &[&[Move::GiveUp(host)], &[]]),
                    Sort::Release | Sort::Creation => (sent.candidacy, Request::Release, &[&[]]),
                }
            }
        };
        self.tell(host, Event::Unanswered { candidacy, request }, ways);
    }

    /// Answers a read: with the present version, or the one before. Who may be first, is.
    pub(super) fn look(&mut self, host: usize, is_late: bool, lags: bool, is_first: bool) {
        let Some(Pending::Read { candidacy, request }) = self.sides[host].pending else { return };
        let follows = self.sides[host].machine.phase() == PhaseName::Following;
        let newest = self.sides[host].newest;
        let former = self.former.filter(|former| lags && follows && former.record.mzxid >= newest);
        let Stored { record, term } = former.unwrap_or(self.stored);
        let run = record.last_run_under();
        let is_known = self.sides[host].seen.contains(&run) || !record.held;
        // A wait that is counted from late in a window would end later in one than the model's.
        if is_late && !is_known {
            return;
        }
        self.sides[host].seen.insert(run);
        self.sides[host].newest = newest.max(record.mzxid);
        self.sides[host].pending = None;
        let may_be_first = !follows || is_first && (is_late || !record.held);
        let ways: [&[Move]; 3] = if former.is_some() {
            [&[Move::LookBack(host)], &[Move::AdoptFormer(host)], &[]]
        } else {
            [&[Move::Look(host)], &[Move::Adopt(host)], &[]]
        };
        let place = if may_be_first { Place::First } else { Place::Next };
        let view = View {
            place,
            candidate: CandidateName::EMPTY,
            session_id: 1,
            term_version: term,
            record,
            outranks: false,
            is_revoked: false,
        };
        let event = match request {
            Request::Observe => Event::Observed { candidacy, record, term_version: term },
            _ => Event::Seen { candidacy, view },
        };
        self.tell(host, event, &ways);
    }

    pub(super) fn report_end(&mut self, host: usize) {
        if let Some((run, cause)) = self.sides[host].ended.take() {
            let status = ChildStatus::Signaled(9);
            self.tell(host, Event::Guard(Report::TreeEnded { run, status, cause }), &[&[]]);
        }
    }
}
