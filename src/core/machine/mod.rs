//! The supervisor's machine: `handle(now, event)` returns the actions, `next_deadline(now)` the time of the next call.
//!
//! Deadlines are checked before the event: after a hang, the first actions are those that are overdue. At most one
//! request to `ZooKeeper` is pending; an unexpected answer changes nothing.

mod ending;
mod following;
mod ineligibility;
mod leading;
mod phase;
mod preparing;
mod sightings;
mod snapshot;
mod standstill;
mod steps;
mod term;
mod upgrade;
mod vouching;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::action::{Action, PhaseName, Transition, Why};
use super::backoff::{self, Backoff};
use super::event::{Candidacy, Event, Nonce, Request, SessionNumber};
use super::guard_messages::{ChildStatus, Deadlines, Order, Report, RunId};
use super::lease::{Timing, Wishes};
use super::restart::History;
use super::settings::{Guarantee, OnExit, OnLoss, OnPause, Preparations, Service, StepLimits};
use super::time::{Now, Timestamp};

pub use ending::RELEASE_LIMIT;
pub use ineligibility::Ineligibilities;
pub use snapshot::{Held, Snapshot, Vouched, Vouchees};
pub use standstill::Past;
pub use upgrade::{HandedOver, Misfit, NotNow};

use following::Standing;
use phase::{After, Departure, Link, Phase, Step};
use sightings::Sightings;
use standstill::Standstill;
use steps::LiveStep;
use term::HeldTerm;

/// The user's options that change a decision.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    pub wishes: Wishes,
    pub guarantee: Guarantee,
    pub on_pause: OnPause,
    pub on_exit: OnExit,
    pub on_loss: OnLoss,
    /// `--wait`; zero: only if leadership is free now.
    pub wait: Option<Duration>,
    pub connect_timeout: Option<Duration>,
    pub stop_timeout: Duration,
    pub service: Service,
    pub preparations: Preparations,
    pub steps: StepLimits,
    /// `--vouch-limit`: how long after its last renewal the command may live on promises; `None`: not at all.
    pub vouch: Option<Duration>,
    /// Random for each process; zero is reserved for [`Nonce::UNKNOWN`].
    pub instance: u64,
}

/// Which guards died. What they watched cannot be run again.
#[derive(Clone, Copy, Debug, Default)]
struct GuardsGone {
    command: bool,
    check: bool,
}

/// See the module page. What `serde` skips is at rest when a machine is handed over.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    #[serde(skip)]
    settings: Settings,
    #[serde(with = "upgrade::quiet_phase")]
    phase: Phase,
    #[serde(skip, default = "upgrade::no_link")]
    link: Link,
    session: SessionNumber,
    candidacy: Candidacy,
    standing: Standing,
    #[serde(skip)]
    pending: Option<Request>,
    held_term: Option<HeldTerm>,
    /// Kept across sessions and candidacies.
    sightings: Sightings,
    /// The run whose tree may be alive.
    run: Option<RunId>,
    runs: u64,
    #[serde(skip)]
    step: Option<LiveStep>,
    /// When the guard must have reported that it took the start order. It would refuse the order later.
    #[serde(skip, default = "upgrade::never")]
    start_by: Timestamp,
    /// When `--timeout` ends that run.
    run_until: Timestamp,
    /// When the tree must be dead, by the guard's orders. Processes that live on survive SIGKILL.
    #[serde(skip, default = "upgrade::never")]
    dead_by: Timestamp,
    /// Why the present stop began.
    #[serde(skip, default = "upgrade::no_stop")]
    stops_for: Why,
    /// The last run that `--timeout` ended.
    timed_out: Option<RunId>,
    history: History,
    /// No start before this: a back-off, or the minimum interval between starts.
    rest_until: Timestamp,
    #[serde(skip)]
    ineligibilities: Ineligibilities,
    status: Option<ChildStatus>,
    /// Take-overs sent so far; each has its own nonce.
    sendings: u64,
    /// Our record of a term whose wait was over and whose tree is empty: as good as free (I8).
    finished: Option<Nonce>,
    /// A term that ended while there was no session: its record is still to be freed.
    #[serde(default)]
    unreleased: Option<HeldTerm>,
    /// The last release leaves our candidate in its place.
    keeps_candidate: bool,
    /// The answer to a marker of this term was lost: it may be written.
    #[serde(skip)]
    is_mark_lost: bool,
    #[serde(skip)]
    stop_requested: bool,
    #[serde(skip)]
    departure: Option<Departure>,
    #[serde(skip)]
    gone: GuardsGone,
    standstill: Standstill,
    elect_by: Timestamp,
    too_late_at: Timestamp,
    #[serde(skip, default = "upgrade::never")]
    connect_by: Timestamp,
    backoff: Backoff,
    /// Between the tries to open a session.
    reconnect: Backoff,
    #[serde(default)]
    vouching: vouching::State,
    #[serde(skip)]
    actions: Vec<Action>,
}

impl Machine {
    /// A machine in its initial state; its first `handle` asks for a session.
    pub fn new(settings: Settings, now: Now) -> Self {
        let by = |limit: Option<Duration>| limit.map_or(Timestamp::NEVER, |limit| now.lease.after(limit));
        Self {
            settings,
            phase: Phase::Following,
            link: Link::Down { retry_at: now.lease },
            session: SessionNumber::default(),
            candidacy: Candidacy::default(),
            standing: Standing::default(),
            pending: None,
            held_term: None,
            sightings: Sightings::default(),
            run: None,
            runs: 0,
            step: None,
            start_by: Timestamp::NEVER,
            run_until: Timestamp::NEVER,
            dead_by: Timestamp::NEVER,
            stops_for: upgrade::no_stop(),
            timed_out: None,
            history: History::default(),
            rest_until: Timestamp::ZERO,
            ineligibilities: Ineligibilities::default(),
            status: None,
            sendings: 0,
            finished: None,
            unreleased: None,
            keeps_candidate: false,
            is_mark_lost: false,
            stop_requested: false,
            departure: None,
            gone: GuardsGone::default(),
            standstill: Standstill::new(now),
            // `--wait 0` looks once; `--connect-timeout` limits that look.
            elect_by: by(settings.wait.filter(|wait| !wait.is_zero())),
            too_late_at: by(settings.service.start_deadline),
            connect_by: by(settings.connect_timeout),
            backoff: Backoff::new(settings.instance, backoff::LONGEST),
            reconnect: Backoff::new(settings.instance, backoff::LONGEST_WITHOUT_SESSION),
            vouching: vouching::State::default(),
            actions: Vec::new(),
        }
    }

    /// The actions for `event`, in order.
    pub fn handle(&mut self, now: Now, event: Event) -> Vec<Action> {
        self.notice_standstill(now);
        self.let_time_pass(now);
        self.note(now, &event);
        self.let_time_pass(now);
        self.end_turn(now);
        std::mem::take(&mut self.actions)
    }

    /// When to call `handle` with `Ticked`, unless an event comes first.
    pub fn next_deadline(&self, now: Now) -> Option<Timestamp> {
        let phase = match self.phase {
            Phase::Done => return None,
            Phase::Following => self.following_deadline(),
            Phase::Waiting => self.waiting_deadline(now),
            Phase::Preparing { .. } => self.preparing_deadline(now),
            Phase::Leading | Phase::Vouched | Phase::Paused { .. } => self.leading_deadline(now),
            Phase::Stopping { .. } => self.stopping_deadline(now),
            Phase::Releasing { until, .. } => until.min(self.look_due_at()).min(self.reconnect_due_at(now)),
        };
        let phase = phase.min(self.vouching_due_at(now));
        (phase < Timestamp::NEVER).then_some(phase)
    }

    pub fn phase(&self) -> PhaseName {
        self.phase.name()
    }

    fn note(&mut self, now: Now, event: &Event) {
        match *event {
            Event::Ticked => self.end_silent_guard(now),
            _ if matches!(self.phase, Phase::Done) => {}
            Event::ClockJumped => self.clock_jumped(now),
            Event::Connected { session, .. }
            | Event::Unreachable { session }
            | Event::Rejected { session, .. }
            | Event::ContactLost { session }
            | Event::ContactRestored { session }
            | Event::SessionOver { session } => {
                if session == self.session {
                    self.note_of_session(now, event);
                }
            }
            Event::Seen { candidacy, .. }
            | Event::Observed { candidacy, .. }
            | Event::LineChanged { candidacy }
            | Event::RecordChanged { candidacy }
            | Event::TookOver { candidacy, .. }
            | Event::Renewed { candidacy, .. }
            | Event::Marked { candidacy, .. }
            | Event::Released { candidacy }
            | Event::Denied { candidacy, .. }
            | Event::Unanswered { candidacy, .. } => {
                if candidacy == self.candidacy {
                    self.note_of_election(now, event);
                }
            }
            Event::Glimpsed { record } => self.sightings.glimpse(record, now.observer),
            Event::Fenced { token, is_fenced } => self.fenced(now, token, is_fenced),
            Event::StepEnded { step, token, outcome } => self.step_ended(now, step, token, outcome),
            Event::Ineligible { reason, on } => self.ineligible(now, reason, on),
            Event::IdTaken => self.id_taken(now),
            Event::Vouching(word) => self.heard(now, word),
            Event::Guard(_) | Event::GuardGone | Event::CheckGone { .. } | Event::OrphansEnded => {
                self.note_of_guard(now, event);
            }
            Event::StopRequested | Event::HungUp | Event::SignalReceived { .. } => self.note_of_signal(now, event),
        }
    }

    fn note_of_session(&mut self, now: Now, event: &Event) {
        self.note_contact(event);
        match *event {
            // A session opens once, and not after it was reported to be over.
            Event::Connected { negotiated, .. } if self.link == Link::Opening => self.connected(now, negotiated),
            Event::Unreachable { .. } if self.link == Link::Opening => {
                self.link = Link::Down { retry_at: self.reconnect_at(now) };
            }
            Event::Rejected { grounds, .. } => self.forbidden(now, grounds),
            Event::ContactLost { .. } => self.contact_lost(now),
            Event::ContactRestored { .. } => self.contact_restored(now),
            Event::SessionOver { .. } => self.session_over(now),
            _ => {}
        }
    }

    /// Handles events of the present candidacy; answers to an earlier one are void (T51).
    fn note_of_election(&mut self, now: Now, event: &Event) {
        match *event {
            Event::LineChanged { .. } => self.line_changed(now),
            Event::RecordChanged { .. } => self.record_changed(now),
            Event::Seen { view, .. } if self.answers(&[Request::Enter, Request::Look]) => self.seen(now, view),
            Event::Observed { record, term_version, .. } if self.answers(&[Request::Observe]) => {
                self.observed(now, record, term_version);
            }
            Event::TookOver { nonce, sent_at, version, token, term, .. } if self.answers(&[Request::TakeOver]) => {
                self.took_over(now, nonce, sent_at, (version, token, term));
            }
            Event::Renewed { sent_at, version, .. } if self.answers(&[Request::Renew]) => {
                self.renewed(now, sent_at, version);
            }
            Event::Marked { is_fresh, .. } if self.answers(&[Request::Mark]) => self.marked(now, is_fresh),
            Event::Released { .. } if self.answers(&[Request::Release]) => self.released(now),
            Event::Denied { request, denial, .. } if self.answers(&[request]) => self.denied(now, request, denial),
            Event::Unanswered { request, .. } if self.answers(&[request]) => self.unanswered(now, request),
            _ => {}
        }
        self.look_at_what_changed();
    }

    /// Clears the pending request if it is one of these.
    fn answers(&mut self, requests: &[Request]) -> bool {
        let answered = self.pending.is_some_and(|pending| requests.contains(&pending));
        if answered {
            self.pending = None;
        }
        answered
    }

    /// Kills a guard that has not reported the start order in time; it would refuse the order by now. Checked when no
    /// event is queued, because after a hang the guard's reports come first.
    fn end_silent_guard(&mut self, now: Now) {
        if now.lease >= self.start_by {
            self.start_by = Timestamp::NEVER;
            self.actions.push(Action::EndGuard);
        }
    }

    fn guard_reported(&mut self, now: Now, report: Report) {
        match report {
            Report::TreeEnded { run, status, cause } if self.run == Some(run) => self.tree_ended(now, status, cause),
            Report::CommandEnded { run, status } if self.run == Some(run) => self.command_ended(now, status),
            Report::Stopping { run } if self.run == Some(run) => self.guard_began_to_stop(now),
            Report::Taken { run } | Report::Started { run, .. } if self.run == Some(run) => {
                self.start_by = Timestamp::NEVER;
            }
            Report::Stuck { run, .. } if self.run == Some(run) => self.tree_is_stuck(now),
            Report::Taken { .. }
            | Report::Started { .. }
            | Report::Stuck { .. }
            | Report::TreeEnded { .. }
            | Report::CommandEnded { .. }
            | Report::Stopping { .. } => {}
        }
    }

    /// Handles the deadlines that have passed. Idempotent.
    fn let_time_pass(&mut self, now: Now) {
        self.ineligibilities.pass(now);
        self.pass_vouching(now);
        match self.phase {
            Phase::Following => self.pass_following(now),
            Phase::Waiting => self.pass_waiting(now),
            Phase::Preparing { .. } => self.pass_preparing(now),
            Phase::Leading | Phase::Vouched | Phase::Paused { .. } => self.pass_leading(now),
            Phase::Stopping { .. } => self.pass_stopping(now),
            Phase::Releasing { until, after } => self.pass_releasing(now, until, after),
            Phase::Done => {}
        }
    }

    fn timing(&self) -> Option<&Timing> {
        match &self.link {
            Link::Open(timing) => Some(timing),
            Link::Down { .. } | Link::Opening => None,
        }
    }

    /// The deadlines of the present term, if it has a lease.
    fn deadlines(&self) -> Option<Deadlines> {
        self.held_term.and_then(|held| held.deadlines)
    }

    fn at_least_once(&self) -> bool {
        self.settings.guarantee == Guarantee::AtLeastOne
    }

    /// Sends one request; the caller has checked that none is pending.
    fn request(&mut self, request: Request, action: Action) {
        self.pending = Some(request);
        self.actions.push(action);
    }

    fn order(&mut self, order: Order) {
        self.actions.push(Action::Guard(order));
    }

    fn enter_phase(&mut self, now: Now, phase: Phase, why: Why) {
        let from = self.phase();
        if self.phase == (Phase::Preparing { step: Step::Fence }) {
            self.actions.push(Action::EndFence);
        }
        self.phase = phase;
        if !matches!(phase, Phase::Stopping { .. }) {
            self.stops_for = upgrade::no_stop();
        }
        self.actions.push(Action::Announce(Transition {
            from,
            to: self.phase(),
            why,
            token: self.held_term.as_ref().map(|held| held.grant.token),
            grant: self.held_term.as_ref().map(|held| held.grant),
            lease_left: self.deadlines().map(|deadlines| now.lease.until(deadlines.kill_at)),
            next_in: self.next_in(now),
        }));
    }
}
