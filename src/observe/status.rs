//! The state of this process at the end of its loop's last turn, and its role at the moment of *reading*:
//! a role is judged by the lease's deadline and the clock, so it ends on time even if the loop never turns again (T28, T46).
//!
//! Never: a role that was stored; a clock.

use std::time::Duration;

use super::words;
use crate::clock::JUMP;
use crate::core::action::{Action, PhaseName, Transition, Why};
use crate::core::event::{Event, Place};
use crate::core::guard_messages::Report;
use crate::core::machine::Snapshot;
use crate::core::time::{Now, Timestamp};

/// The role that others may rely on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The lease is valid, and the command runs.
    Leader,
    /// In line, in contact, and without a command.
    Standby,
    /// Neither: on the way in or out, or out of contact.
    Neither,
}

/// See the module's page.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    pub snapshot: Snapshot,
    /// The end of the loop's last turn.
    pub turned: Now,
    /// When the present phase began.
    pub since: Timestamp,
    /// Why it began, or what was announced in it last; `None` in the first one.
    pub why: Option<Why>,
    /// When contact was lost, or the process began without it; `None`: our session answers, as far as is known.
    pub silent_since: Option<Timestamp>,
    /// The command, as our guard's child, while it runs.
    pub command: Option<i32>,
    pub guard_gone: bool,
    /// The most that this process has been: in line counts as a standby.
    pub reached: Role,
    pub upgrade: Upgrade,
}

/// The upgrades in place of this process, as far as this program knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Upgrade {
    /// How often one was asked for.
    pub requests: u32,
    /// The time of the last request, or later, by `CLOCK_MONOTONIC`.
    pub requested_at: Duration,
    pub is_under_way: bool,
}

impl Status {
    /// Before the first turn of the loop.
    pub fn new(now: Now, snapshot: Snapshot) -> Self {
        Self {
            snapshot,
            turned: now,
            since: now.lease,
            why: None,
            silent_since: Some(now.lease),
            command: None,
            guard_gone: false,
            reached: Role::Neither,
            upgrade: Upgrade::default(),
        }
    }

    /// Whether an event is not about a session that was given up already.
    pub fn is_current(&self, event: &Event) -> bool {
        match *event {
            Event::Connected { session, .. }
            | Event::ContactRestored { session }
            | Event::ContactLost { session }
            | Event::SessionOver { session }
            | Event::Unreachable { session }
            | Event::Rejected { session, .. } => session == self.snapshot.session,
            _ => true,
        }
    }

    /// Takes note of an event that is current.
    pub fn on_event(&mut self, now: Now, event: &Event) {
        self.guard_gone |= *event == Event::GuardGone;
        match *event {
            Event::Connected { .. } | Event::ContactRestored { .. } => self.silent_since = None,
            Event::ContactLost { .. }
            | Event::SessionOver { .. }
            | Event::Unreachable { .. }
            | Event::Rejected { .. } => self.lose_contact(now),
            Event::Guard(Report::Started { run, pid }) if self.snapshot.run == Some(run) => self.command = Some(pid),
            Event::Guard(Report::CommandEnded { .. } | Report::TreeEnded { .. }) | Event::GuardGone => {
                self.command = None;
            }
            _ => {}
        }
    }

    fn lose_contact(&mut self, now: Now) {
        self.silent_since.get_or_insert(now.lease);
    }

    /// Our session answers, as far as is known.
    pub const fn in_contact(&self) -> bool {
        self.silent_since.is_none()
    }

    /// Takes note of an action of the machine.
    pub fn on_action(&mut self, now: Now, action: &Action) {
        match *action {
            Action::Connect { .. } => self.lose_contact(now),
            Action::Announce(Transition { from, to, why, .. }) => {
                self.since = if from == to { self.since } else { now.lease };
                self.why = Some(why);
            }
            _ => {}
        }
    }

    /// The loop has turned.
    pub fn on_turn(&mut self, now: Now, snapshot: Snapshot) {
        (self.turned, self.snapshot) = (now, snapshot);
        if self.role(now) == Role::Leader {
            self.reached = Role::Leader;
        } else if self.reached == Role::Neither && self.place().is_some() {
            self.reached = Role::Standby;
        }
    }

    pub fn role(&self, now: Now) -> Role {
        let phase = self.snapshot.phase;
        let runs = self.command.is_some() && !self.snapshot.frozen;
        if matches!(phase, PhaseName::Leading | PhaseName::Vouched | PhaseName::Paused)
            && runs
            && !self.time_left(now).is_zero()
        {
            return Role::Leader;
        }
        let waits = matches!(phase, PhaseName::Following | PhaseName::Waiting);
        if waits && self.is_ready(now) { Role::Standby } else { Role::Neither }
    }

    /// Connected and contending, whatever the place in line.
    pub fn is_ready(&self, now: Now) -> bool {
        let contends = !matches!(self.snapshot.phase, PhaseName::Paused | PhaseName::Done);
        self.in_contact() && self.place().is_some() && contends && !self.has_lapsed(now)
    }

    /// Whether the lease of our term is over.
    pub fn has_lapsed(&self, now: Now) -> bool {
        let had_lease = self.snapshot.held_term.is_some_and(|held| held.deadlines.is_some());
        had_lease && self.lease_left(now).is_zero()
    }

    /// Phase, contact and place or token, and why this host may not lead, for people: it changes only when something has happened.
    pub fn sentence(&self) -> String {
        let phase = words::phase(self.snapshot.phase);
        let stands = match (self.snapshot.held_term, self.place()) {
            (Some(held), _) if self.in_contact() => format!("{phase}, token {}", held.grant.token),
            (Some(held), _) => format!("{phase}, token {}, no contact with ZooKeeper", held.grant.token),
            _ if !self.in_contact() => format!("{phase}, no contact with ZooKeeper"),
            (None, None) => format!("{phase}, not in line"),
            (None, Some(Place::First)) => format!("{phase}, first in line"),
            (None, Some(Place::Next)) => format!("{phase}, next in line"),
            (None, Some(Place::Behind(others))) => format!("{phase}, in line behind {others} others"),
        };
        match self.snapshot.barred {
            Some(why) => format!("{stands}; {}", words::reason(why)),
            None => stands,
        }
    }

    /// Whether somebody would kill the command's tree at its deadline: see [`words::protection`].
    pub fn protection(&self) -> &'static str {
        words::protection(&self.snapshot, self.guard_gone)
    }

    pub fn place(&self) -> Option<Place> {
        self.snapshot.view.map(|view| view.place)
    }

    /// How many stand before us in line.
    pub fn others_before(&self) -> Option<u32> {
        self.place().map(|place| match place {
            Place::First => 0,
            Place::Next => 1,
            Place::Behind(others) => others,
        })
    }

    /// How long the lease still runs, if nothing prolongs it; zero without one. A host that was suspended since the last
    /// turn has none.
    pub fn lease_left(&self, now: Now) -> Duration {
        self.left_until(now, |deadlines| deadlines.kill_at)
    }

    /// How long the command is left alone, if nothing prolongs the lease; zero without one.
    pub fn time_left(&self, now: Now) -> Duration {
        let grace_over_at = self.snapshot.grace_over_at;
        self.left_until(now, |deadlines| deadlines.stop_at.min(deadlines.kill_at).min(grace_over_at))
    }

    fn left_until(&self, now: Now, deadline: impl Fn(crate::core::guard_messages::Deadlines) -> Timestamp) -> Duration {
        let suspended = now.suspended().abs_diff(self.turned.suspended()) > JUMP;
        let deadlines = self.snapshot.held_term.and_then(|held| held.deadlines).filter(|_| !suspended);
        deadlines.map_or(Duration::ZERO, |deadlines| now.lease.until(deadline(deadlines)))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::core::event::{Nonce, Record, SessionNumber, View};
    use crate::core::guard_messages::{CandidateName, Deadlines, Grant, RunId, Slot, Takeover};
    use crate::core::machine::Held;
    use crate::core::time::Sighting;

    /// A moment so long after the start of both clocks.
    pub fn at(moment: Duration) -> Now {
        Now { lease: Timestamp::ZERO.after(moment), observer: Sighting::ZERO.after(moment) }
    }

    fn first(record: Record, candidate: CandidateName) -> View {
        let (place, session_id, term_version, outranks, is_revoked) = (Place::First, 5, 3, false, false);
        View { place, candidate, session_id, term_version, record, outranks, is_revoked }
    }

    /// Someone who leads, until `stop_at`; the tree would be killed a second later.
    pub fn leading(now: Now, stop_at: Timestamp) -> Status {
        let record = Record {
            slot: Slot(0),
            version: 7,
            mzxid: 9,
            held: true,
            waiting_on: None,
            lease: Duration::from_secs(15),
            nonce: Nonce { instance: 1, sending: 1 },
            token: 9,
            vouching: None,
            agrees: true,
        };
        let candidate = CandidateName::EMPTY;
        let grant = Grant { token: 9, term: 3, session: 5, takeover: Takeover::Clean, slot: Slot(0), candidate };
        let deadlines = Some(Deadlines { stop_at, kill_at: stop_at.after(Duration::from_secs(1)) });
        let snapshot = Snapshot {
            phase: PhaseName::Leading,
            session: SessionNumber(2),
            timing: None,
            view: Some(first(record, candidate)),
            held_term: Some(Held { grant, deadlines }),
            barred: None,
            disabled: false,
            run: Some(RunId(1)),
            frozen: false,
            grace_over_at: Timestamp::NEVER,
            is_ending: false,
            step: None,
            asks_from: Timestamp::ZERO,
            unasked_until: None,
            vouching: None,
        };
        Status { silent_since: None, command: Some(4711), ..Status::new(now, snapshot) }
    }

    const NOW: Duration = Duration::from_secs(100);

    fn example() -> Status {
        leading(at(NOW), at(NOW + Duration::from_secs(5)).lease)
    }

    fn later(millis: u64) -> Now {
        at(NOW + Duration::from_millis(millis))
    }

    #[test]
    fn the_role_ends_at_the_deadline_though_nothing_has_happened() {
        let status = example();
        assert_eq!([status.role(later(0)), status.role(later(4999))], [Role::Leader; 2]);
        assert_eq!([status.role(later(5000)), status.role(later(500_000))], [Role::Neither; 2]);
        assert!(status.is_ready(later(5999)) && !status.is_ready(later(6000)), "and so does the lease, at kill_at");
    }

    #[test]
    fn without_contact_the_command_is_left_alone_until_the_grace_is_over() {
        let mut status = example();
        status.snapshot.phase = PhaseName::Paused;
        status.snapshot.grace_over_at = later(1000).lease;
        assert_eq!(status.time_left(later(200)), Duration::from_millis(800));
        assert_eq!(status.lease_left(later(200)), Duration::from_millis(5800), "the lease lasts");
    }

    #[test]
    fn a_phase_lasts_whatever_is_announced_in_it() {
        let mut status = example();
        let announce = |from, to| {
            let why = Why::Drained;
            Action::Announce(Transition { from, to, why, token: None, grant: None, lease_left: None, next_in: None })
        };
        status.on_action(later(1000), &announce(PhaseName::Following, PhaseName::Following));
        assert_eq!((status.since, status.why), (later(0).lease, Some(Why::Drained)));
        status.on_action(later(2000), &announce(PhaseName::Following, PhaseName::Done));
        assert_eq!(status.since, later(2000).lease);
    }

    #[test]
    fn a_host_that_was_suspended_since_the_last_turn_leads_nothing() {
        let woken = Now { lease: later(1000).lease, observer: later(500).observer };
        assert_eq!(example().role(woken), Role::Neither);
    }

    #[test]
    fn who_waits_for_the_lease_before_its_own_has_none_and_is_a_standby() {
        let mut status = example();
        (status.snapshot.phase, status.command) = (PhaseName::Waiting, None);
        if let Some(held) = &mut status.snapshot.held_term {
            held.deadlines = None;
        }
        assert_eq!((status.role(later(0)), status.lease_left(later(0))), (Role::Standby, Duration::ZERO));
    }

    #[test]
    fn nobody_leads_without_a_command_that_runs() {
        for phase in
            [PhaseName::Waiting, PhaseName::Preparing, PhaseName::Stopping, PhaseName::Releasing, PhaseName::Done]
        {
            let mut status = example();
            status.snapshot.phase = phase;
            assert_ne!(status.role(later(0)), Role::Leader, "{phase:?}");
        }
        let mut frozen = example();
        frozen.snapshot.frozen = true;
        assert_eq!(frozen.role(later(0)), Role::Neither);
        let mut ended = example();
        ended.on_event(later(0), &Event::GuardGone);
        assert_eq!(ended.role(later(0)), Role::Neither);
    }

    #[test]
    fn a_standby_is_in_line_and_in_contact() {
        let mut status = example();
        (status.snapshot.phase, status.snapshot.held_term, status.command) = (PhaseName::Following, None, None);
        assert_eq!(status.role(later(0)), Role::Standby);
        assert!(!status.is_current(&Event::ContactLost { session: SessionNumber(1) }), "that was another session");
        assert!(status.is_current(&Event::ContactLost { session: SessionNumber(2) }));
        status.on_event(later(0), &Event::ContactLost { session: SessionNumber(2) });
        assert_eq!(status.role(later(0)), Role::Neither);
        status.on_event(later(9), &Event::Unreachable { session: SessionNumber(2) });
        status.on_action(later(9), &Action::Connect { session: SessionNumber(2) });
        assert_eq!(status.silent_since, Some(later(0).lease), "since it was lost, whatever was tried in vain");
        status.on_event(later(20), &Event::ContactRestored { session: SessionNumber(2) });
        assert!(status.in_contact() && status.is_ready(later(0)));
        status.snapshot.view = None;
        assert!(!status.is_ready(later(0)), "connected, and not in line yet");
    }

    #[test]
    fn who_may_not_lead_says_why() {
        let mut status = example();
        (status.snapshot.held_term, status.snapshot.view, status.command) = (None, None, None);
        status.snapshot.phase = PhaseName::Following;
        assert_eq!(status.sentence(), "following, not in line");
        status.snapshot.barred = Some(Why::Drained);
        assert_eq!(status.sentence(), "following, not in line; an operator drains this host");
        status.silent_since = Some(later(0).lease);
        assert_eq!(status.sentence(), "following, no contact with ZooKeeper; an operator drains this host");
    }
}
