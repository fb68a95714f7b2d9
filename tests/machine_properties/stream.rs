//! Arbitrary streams of events: some answer what was asked, some are nonsense, some are about the past.

use std::time::Duration;

use proptest::prelude::*;
use zk_leader_run::core::event::{
    Candidacy, Denial, Event, Grounds, Ineligibility, LastRun, Nonce, Place, Record, Request, SessionNumber,
    StepOutcome, View,
};
use zk_leader_run::core::guard_messages::{CandidateName, Cause, ChildStatus, Report, RunId, Slot};
use zk_leader_run::core::settings::StepKind;
use zk_leader_run::core::time::Timestamp;

pub const INSTANCE: u64 = 7;

/// What is told next, before it is known what the machine has asked.
#[derive(Clone, Copy, Debug)]
pub enum Telling {
    /// Time passes until the machine wants to be woken.
    Deadline,
    Tick,
    /// The request under way is answered as the machine hopes.
    Success {
        record: u8,
    },
    Denied(Denial),
    Unanswered,
    /// The same as success, but not before the lease of the tree that lives is over, and nothing was told meanwhile.
    Overdue {
        record: u8,
    },
    /// Whatever comes, for the present ids or, `ago` questions back, for earlier ones.
    Anything {
        kind: u8,
        ago: u8,
        record: u8,
        place: u8,
    },
}

/// The ids that the machine used last.
#[derive(Clone, Copy, Default, Debug)]
pub struct Ids {
    pub session: u32,
    pub candidacy: u32,
    pub run: u64,
    pub sending: u64,
    pub pending: Option<Request>,
    pub sent_at: Option<Timestamp>,
    pub version: i32,
    pub token: i64,
    /// The step whose tree may live, and its term.
    pub step: Option<(StepKind, i64)>,
    /// How many leaders there are.
    pub slots: u16,
    /// The slot that was taken over last, and the one that was asked for last.
    pub taken: Slot,
    pub asked: Slot,
}

pub fn streams() -> impl Strategy<Value = Vec<(u64, Telling)>> {
    let denial = prop_oneof![4 => Just(Denial::Conflict), 2 => Just(Denial::CandidateGone), 1 => Just(Denial::Forbidden(Grounds::Right))];
    let telling = prop_oneof![
        4 => Just(Telling::Deadline),
        1 => Just(Telling::Tick),
        12 => any::<u8>().prop_map(|record| Telling::Success { record }),
        2 => denial.prop_map(Telling::Denied),
        2 => Just(Telling::Unanswered),
        2 => any::<u8>().prop_map(|record| Telling::Overdue { record }),
        5 => (any::<u8>(), 0..3_u8, any::<u8>(), any::<u8>())
            .prop_map(|(kind, ago, record, place)| Telling::Anything { kind, ago, record, place }),
    ];
    let pause = prop_oneof![6 => 0..40_u64, 3 => 0..700_u64, 1 => 0..9_000_u64];
    proptest::collection::vec((pause, telling), 1..80)
}

impl Telling {
    /// `None`: there is nothing to answer.
    pub fn event(self, ids: &Ids, now: Timestamp) -> Option<Event> {
        let candidacy = Candidacy(ids.candidacy);
        match (self, ids.pending) {
            (Self::Deadline | Self::Tick, _) | (Self::Overdue { .. }, None) => Some(Event::Ticked),
            (Self::Success { record } | Self::Overdue { record }, Some(request)) => {
                Some(success(ids, request, record, now))
            }
            (Self::Denied(denial), Some(request)) => Some(Event::Denied { candidacy, request, denial }),
            (Self::Unanswered, Some(request)) => Some(Event::Unanswered { candidacy, request }),
            (Self::Success { record }, None) if ids.step.is_some() => ids.step.map(|step| step_ended(step, record)),
            (Self::Success { .. }, None) => {
                let negotiated = Duration::from_secs(4);
                Some(Event::Connected { session: SessionNumber(ids.session), negotiated })
            }
            (Self::Anything { kind, ago, record, place }, _) => Some(anything(ids, (kind, ago, record, place), now)),
            (Self::Denied(_) | Self::Unanswered, None) => None,
        }
    }
}

fn success(ids: &Ids, request: Request, record: u8, now: Timestamp) -> Event {
    let (candidacy, version) = (Candidacy(ids.candidacy), ids.version + 1);
    let sent_at = ids.sent_at.unwrap_or(now);
    match request {
        Request::Enter | Request::Look => Event::Seen { candidacy, view: view(ids, record, 0) },
        Request::Observe => {
            let record = Record { slot: ids.asked, ..of(ids, record) };
            Event::Observed { candidacy, record, term_version: 0 }
        }
        Request::TakeOver => {
            let nonce = Nonce { instance: INSTANCE, sending: ids.sending };
            Event::TookOver { candidacy, nonce, sent_at, version, token: i64::from(version), term: 1 }
        }
        Request::Renew => Event::Renewed { candidacy, sent_at, version },
        Request::Mark => Event::Marked { candidacy, is_fresh: record < 200 },
        Request::Release => Event::Released { candidacy },
    }
}

/// A record as it may be read: free, ours, or another one's, with leases of many lengths. Ours is where we took over.
fn of(ids: &Ids, choice: u8) -> Record {
    let sending = ids.sending.saturating_sub(u64::from(choice >> 6 & 1));
    let nonce = match choice % 3 {
        0 => Nonce { instance: INSTANCE, sending },
        1 => Nonce { instance: 8, sending: 1 },
        _ => Nonce::UNKNOWN,
    };
    let version = ids.version + i32::from(choice >> 4 & 3);
    Record {
        slot: if choice % 3 == 0 { ids.taken } else { Slot(u16::from(choice >> 1) % ids.slots.max(1)) },
        version,
        mzxid: 1_000 * i64::from(version) + i64::from(choice),
        held: choice % 5 != 0,
        waiting_on: (choice % 7 == 0).then(|| LastRun {
            mzxid: 1_000 * i64::from(ids.version) - i64::from(choice & 8),
            nonce: if choice & 1 == 1 { Nonce { instance: INSTANCE, sending: ids.sending } } else { Nonce::UNKNOWN },
        }),
        lease: Duration::from_secs([4, 1, 40, 4][usize::from(choice >> 2 & 3)]),
        nonce,
        token: 0,
        vouching: None,
        agrees: choice != 255,
    }
}

fn view(ids: &Ids, record: u8, place: u8) -> View {
    let place = [Place::First, Place::First, Place::Next, Place::Behind(2)][usize::from(place & 3)];
    let record = of(ids, record);
    View {
        place,
        candidate: CandidateName::EMPTY,
        session_id: 1,
        term_version: 0,
        record,
        outranks: false,
        is_revoked: false,
    }
}

const REQUESTS: [Request; 7] = [
    Request::Enter,
    Request::Look,
    Request::Observe,
    Request::TakeOver,
    Request::Renew,
    Request::Release,
    Request::Mark,
];

fn anything(ids: &Ids, (kind, ago, record, place): (u8, u8, u8, u8), now: Timestamp) -> Event {
    let session = SessionNumber(ids.session.wrapping_sub(u32::from(ago)));
    let candidacy = Candidacy(ids.candidacy.wrapping_sub(u32::from(ago)));
    let run = RunId(ids.run.wrapping_sub(u64::from(ago)));
    let old = Ids { candidacy: candidacy.0, ..*ids };
    let causes = [Cause::ItsOwn, Cause::Ordered, Cause::Deadline, Cause::SupervisorGone];
    let status =
        [ChildStatus::Exited(record), ChildStatus::Signaled(9), ChildStatus::NotExecuted(2)][usize::from(record % 3)];
    match kind % 29 {
        0 => Event::ClockJumped,
        1 | 2 => Event::Connected { session, negotiated: Duration::from_secs(4) },
        3 => Event::Unreachable { session },
        4 if record < 64 => Event::Rejected { session, grounds: Grounds::Tls },
        5 => Event::ContactLost { session },
        6 => Event::ContactRestored { session },
        7 => Event::SessionOver { session },
        8 => Event::LineChanged { candidacy },
        9 => Event::RecordChanged { candidacy },
        10 => Event::StopRequested,
        11 if record < 64 => Event::HungUp,
        11 => Event::SignalReceived { signal: i32::from(record) },
        12 if record < 64 => [Event::GuardGone, Event::CheckGone { stood_still: record < 4 }][usize::from(record < 8)],
        13 => Event::OrphansEnded,
        14 => Event::Guard(Report::Started { run, pid: 1 }),
        15 => Event::Guard(Report::Stopping { run }),
        16 => Event::Guard(Report::CommandEnded { run, status }),
        17 | 18 => Event::Guard(Report::TreeEnded { run, status, cause: causes[usize::from(place & 3)] }),
        19 => Event::Guard(if record < 128 { Report::Taken { run } } else { Report::Stuck { run, survivors: 1 } }),
        20 => Event::Seen { candidacy, view: view(&old, record, place) },
        21 => Event::Denied { candidacy, request: REQUESTS[usize::from(place % 7)], denial: Denial::Conflict },
        22..=25 => preparing(ids, kind, record, place),
        26 => Event::Glimpsed { record: view(&old, record, place).record },
        _ => success(&old, REQUESTS[usize::from(place % 7)], record, now),
    }
}

fn preparing(ids: &Ids, kind: u8, record: u8, place: u8) -> Event {
    let bar = [
        Ineligibility::Unhealthy,
        Ineligibility::Ineligible,
        Ineligibility::HandingOver,
        Ineligibility::Disabled,
        Ineligibility::Drained,
    ][usize::from(place % 5)];
    match kind % 29 {
        25 => step_ended((StepKind::AfterStop, ids.token - i64::from(place & 1)), record),
        24 if ids.step.is_some() => step_ended(ids.step.unwrap(), record),
        22 => Event::Fenced { token: ids.token, is_fenced: record < 160 },
        23 => Event::Ineligible { reason: bar, on: true },
        _ => Event::Ineligible { reason: bar, on: false },
    }
}

fn step_ended((step, token): (StepKind, i64), record: u8) -> Event {
    let outcome = match record {
        0..=180 => StepOutcome::Succeeded,
        181..=250 => StepOutcome::Failed,
        _ => StepOutcome::GuardGone,
    };
    Event::StepEnded { step, token, outcome }
}
