//! `handover`: the leader stops and another one leads; every phase is told as it happens, and the end as it is.
//!
//! Never: "done" before the command of another one runs; an order that is left behind.

mod order;
mod room;
mod successor;

use std::time::Duration;

use serde_json::json;

use self::successor::disabled;
use super::orders::following::{self, Step};
use super::orders::{Patience, Progress};
use super::slot_state::{self, SlotState};
use super::{Answer, CommandContext, CommandError, DONE, NOT_DONE, NOT_KNOWN, in_millis, millis, status};
use crate::observe::words;
use crate::random;
use crate::zookeeper::admin::view::ElectionView;
use crate::zookeeper::schema::control::Handover;
use crate::zookeeper::schema::lease::Holder;

/// The leader, as it was when we came.
#[derive(Clone, Debug)]
struct Leader {
    holder: Holder,
    token: i64,
}

/// Why there is no handover.
#[derive(Clone, PartialEq, Eq, Debug)]
enum No {
    Known(String),
    /// Nobody knows who leads; the reason is for programs, as that of `status`.
    Unknown {
        said: String,
        reason: Option<&'static str>,
    },
}

/// The state of a handover at one look.
#[derive(Clone, PartialEq, Eq, Debug)]
enum HandoverState {
    /// The command of another one, or of the same again, runs in a later term.
    Led { id: String, token: i64 },
    /// A contender of another library leads, by its place; it has no token.
    Foreign { id: String },
    /// A later term has begun, and something must come before the command: a wait, a fence command, `--before-start`.
    Preparing {
        id: String,
        token: i64,
        /// Once it has said so.
        phase: Option<String>,
    },
    /// In the leader's own words: `leading`, `stopping`, …
    Leading { phase: String },
    /// The leader is gone, and its lease must run out.
    NotOver { why: String },
    /// Its command may run, or the record cannot be read.
    Unknown { why: String, reason: Option<&'static str> },
    /// The lease is free.
    Nobody { why: String },
}

pub(super) async fn answer(
    context: &CommandContext<'_>,
    to: Option<&str>,
    wait: bool,
    within: Duration,
) -> Result<Answer, CommandError> {
    handed_over(context, to, wait, within).await.map(|told| told.answer(context))
}

async fn handed_over(
    context: &CommandContext<'_>,
    to: Option<&str>,
    wait: bool,
    within: Duration,
) -> Result<Told, CommandError> {
    let (election, plan) = successor::planned(context, to).await?;
    let (leader, to) = match plan {
        Ok(plan) => plan,
        Err(told) => return Ok(told),
    };
    let order = Handover {
        order: random::uuid().to_string(),
        token: leader.token,
        stop: to.is_none(),
        to,
        by: context.asked.by.clone(),
        for_ms: millis(within),
        since: None,
    };
    // Our waiting ends before the order does.
    let wait =
        Wait { base: &election.base, to_the_end: wait || order.to.is_some(), within, patience: Patience::new(within) };
    order::give(context, &election, (&leader.holder.id, &order), within).await?;
    let end = follow(context, &leader, &order, &wait).await;
    if !is_to_be_taken_back(&end) {
        return end.map(|(told, _)| told);
    }
    let is_taken_back = order::take_back(context, &order).await;
    if end.is_ok() || is_taken_back.is_ok() {
        context.standing.take();
    }
    end.map(|(told, _)| told.and_its_order(is_taken_back.err(), within))
}

/// The order stays for a leader that has not begun yet, unless nobody can tell whether it has.
const fn is_to_be_taken_back(end: &Result<End, CommandError>) -> bool {
    !matches!(end, Ok((_, false)))
}

/// What is told, and whether the order has done its work.
type End = (Told, bool);

/// For what is waited, and how long.
struct Wait<'a> {
    base: &'a str,
    /// The next leader has to run the command.
    to_the_end: bool,
    within: Duration,
    patience: Patience,
}

async fn follow(
    context: &CommandContext<'_>,
    leader: &Leader,
    order: &Handover,
    wait: &Wait<'_>,
) -> Result<End, CommandError> {
    let (mut progress, mut is_told, within) = (Progress::new(context.output.format), true, wait.within);
    let old = &leader.holder.id;
    if let Some(to) = &order.to {
        progress.tell(&format!("{old} leads; the others make room for {to}"));
        if let Err(no) = room::make_room(context, leader, (order, to), within, &mut progress).await? {
            return Ok((told_no(Some((old, leader.token)), &no), true));
        }
        context.stands(order::stands("stands", wait.base, within));
        is_told = order::begun(context, order, &wait.patience, &mut progress).await?;
    }
    if is_told {
        progress.tell(&format!("{old} is told to stop its command"));
    }
    following::until(context, &wait.patience, &mut progress, async |context, progress| {
        let election = context.election().await?;
        let state = handover_state(&election, leader);
        if let Some(end) = end(&state, (old, order), wait.to_the_end, wait.patience.passed()) {
            return Ok(Step::Done(end));
        }
        if let Some(why) = disabled(&election) {
            let sentence = format!("nobody takes over: meanwhile {why}");
            return Ok(Step::Done((told(None, NOT_DONE, &sentence), true)));
        }
        // It has done its work once another one is elected, and it lapses when our time is over.
        let matters = wait.patience.lasts() && !matches!(state, HandoverState::Preparing { .. });
        if let Some(why) = order::gone_meanwhile(&election, order).filter(|_| matters) {
            return Ok(Step::Done((told(None, NOT_DONE, &why), true)));
        }
        tell(&state, old, progress);
        Ok(Step::NotYet((told_no(None, &unfinished(&state, old, within)), true)))
    })
    .await
}

/// Whether this state is the end; without `--wait`, a beginning is enough.
fn end(state: &HandoverState, (old, order): (&str, &Handover), wait: bool, passed: Duration) -> Option<End> {
    match state {
        HandoverState::Led { id, token } => Some((led((old, order), (id, *token), passed), true)),
        HandoverState::Foreign { id } => Some((told_foreign(id), true)),
        HandoverState::Preparing { id, token, phase } if !wait => {
            Some((elected(old, (id, *token), phase.as_deref()), true))
        }
        HandoverState::Leading { phase } if !wait && slot_state::is_stopping(phase) => {
            Some((told(None, DONE, &format!("{old} is stopping its command")), false))
        }
        HandoverState::Nobody { .. } if !wait => Some((told(None, DONE, &format!("{old} has released")), false)),
        _ => None,
    }
}

fn tell(state: &HandoverState, old: &str, progress: &mut Progress) {
    match state {
        HandoverState::Led { .. } | HandoverState::Foreign { .. } => {}
        HandoverState::Leading { phase } if slot_state::runs(Some(phase)) => {}
        HandoverState::Preparing { id, phase, .. } => tell_elected(progress, id, phase.as_deref()),
        HandoverState::Leading { phase } => progress.tell(&format!("{old} is {phase}")),
        HandoverState::NotOver { why } | HandoverState::Unknown { why, .. } => progress.tell(why),
        HandoverState::Nobody { .. } => progress.tell(&format!("{old} has released")),
    }
}

/// What the new holder does before its command runs, once it has said so.
fn tell_elected(progress: &mut Progress, id: &str, phase: Option<&str>) {
    if let Some(phase) = phase {
        progress.tell(&format!("{id} is elected; it is {phase}"));
    }
}

/// Another term has begun, and nobody waits for its command.
fn elected(old: &str, (id, token): (&str, i64), phase: Option<&str>) -> Told {
    let is = phase.map_or_else(String::new, |phase| format!("; it is {phase}"));
    if id == old {
        let said = format!("nobody else took over: {old} is elected again, token {token}{is}");
        return told(Some((id, token)), NOT_DONE, &said);
    }
    let runs = if phase.is_some() { ", and its command does not run yet" } else { "" };
    told(Some((id, token)), DONE, &format!("{id} is elected, token {token}{is}{runs}"))
}

/// The state of a handover that did not end in time.
fn unfinished(state: &HandoverState, old: &str, within: Duration) -> No {
    let length = words::length(within);
    No::Known(match state {
        HandoverState::Leading { phase } if slot_state::runs(Some(phase)) => format!(
            "{old} has not begun to stop after {length}: it may be cut off, or run an older version; it still leads"
        ),
        HandoverState::Preparing { id, .. } => {
            format!("{id} is elected, but its command does not run after {length}; its log tells what comes before it")
        }
        HandoverState::Leading { phase } => format!("{old} is still {phase} after {length}; it continues"),
        HandoverState::NotOver { why } => format!("nobody else leads after {length}: {why}"),
        HandoverState::Unknown { why, reason } => {
            return No::Unknown { said: format!("who leads after {length} is not known: {why}"), reason: *reason };
        }
        HandoverState::Nobody { why } => format!("nobody leads after {length}: {why}"),
        HandoverState::Led { .. } | HandoverState::Foreign { .. } => format!("nobody leads after {length}"),
    })
}

/// Another term has begun: under the wanted leader, or another one.
fn led((old, order): (&str, &Handover), new: (&str, i64), took: Duration) -> Told {
    let (id, token) = new;
    let took = words::length(in_millis(took));
    match &order.to {
        Some(to) if id == old => {
            told(Some(new), NOT_DONE, &format!("{to} did not take over: {old} leads again, token {token}"))
        }
        Some(to) if to != id => {
            told(Some(new), NOT_DONE, &format!("{to} did not take over: {id} leads, token {token}"))
        }
        None if id == old => {
            told(Some(new), NOT_DONE, &format!("nobody else took over: {old} leads again, token {token}"))
        }
        _ => told(Some(new), DONE, &format!("{id} leads, token {token}, after {took}")),
    }
}

fn leader(election: &ElectionView) -> Result<Leader, No> {
    let [slot] = election.slots.as_slice() else {
        let count = election.slots.len();
        return Err(No::Known(format!(
            "This election has {count} leaders, and handover works only with one. To move one, stop zk-leader-run on its \
             host, or: zk-leaderctl drain HOST"
        )));
    };
    let (token, state) = (slot.token(), slot_state::of(slot, election));
    let reason = status::reason(slot, &state);
    let unknown = |why: &str| No::Unknown { said: format!("who leads is not known: {why}"), reason };
    Err(match state {
        SlotState::Led { holder, .. } | SlotState::Waiting { holder } => return Ok(Leader { holder, token }),
        SlotState::CutOff { why } => unknown(&why),
        SlotState::Unknown => unknown("the lease record cannot be read"),
        SlotState::Foreign { id } => {
            No::Known(format!("{id} leads, a contender of another library that hears no orders"))
        }
        SlotState::Overdue { holder, .. } => {
            No::Known(format!("nobody leads (the lease of {} is overdue), so there is nothing to hand over", holder.id))
        }
        SlotState::Nobody { why } => No::Known(format!("nobody leads ({why}), so there is nothing to hand over")),
    })
}

fn handover_state(election: &ElectionView, leader: &Leader) -> HandoverState {
    let unreadable = || HandoverState::Unknown {
        why: "the lease record is missing or cannot be read (zk-leaderctl doctor says why)".to_owned(),
        reason: None,
    };
    let Some(slot) = election.slots.first() else { return unreadable() };
    let (token, state) = (slot.token(), slot_state::of(slot, election));
    let reason = status::reason(slot, &state);
    match state {
        SlotState::Led { holder, .. } | SlotState::Waiting { holder } if token != leader.token => {
            let phase = slot_state::said_phase(&holder, token, election);
            if slot_state::runs(phase) {
                return HandoverState::Led { id: holder.id, token };
            }
            HandoverState::Preparing { phase: phase.map(str::to_owned), id: holder.id, token }
        }
        SlotState::Led { phase, .. } => HandoverState::Leading { phase },
        SlotState::Waiting { .. } => HandoverState::Leading { phase: "waiting".to_owned() },
        SlotState::Foreign { id } => HandoverState::Foreign { id },
        SlotState::Overdue { holder, .. } => {
            HandoverState::NotOver { why: format!("the lease of {} is overdue", holder.id) }
        }
        SlotState::CutOff { why } => HandoverState::Unknown { why, reason },
        SlotState::Nobody { why } if slot.lease.as_ref().is_some_and(|(lease, _)| lease.is_held()) => {
            HandoverState::NotOver { why: why.to_string() }
        }
        SlotState::Nobody { why } => HandoverState::Nobody { why: why.to_string() },
        SlotState::Unknown => unreadable(),
    }
}

/// What is told at the end, with the leader and its token, which one of another library has not.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Told {
    leader: Option<(String, Option<i64>)>,
    status: u8,
    said: String,
    /// Why it is not known who leads.
    reason: Option<&'static str>,
}

impl Told {
    /// The end is told even if the order may stand, because it could not be taken back.
    fn and_its_order(self, failure: Option<CommandError>, within: Duration) -> Self {
        let Some(failure) = failure else { return self };
        let (why, length) = (failure.sentence.trim_end_matches("; try again"), words::length(within));
        let left = format!("the order may stand, and lapses {length} after it was given, because {why}");
        Self { said: format!("{}; {left}", self.said), ..self }
    }

    fn answer(&self, context: &CommandContext<'_>) -> Answer {
        let Self { leader, status, said, reason } = self;
        let (id, token) = leader.as_ref().map(|(id, token)| (id, token)).unzip();
        let (v, done) = (1, *status == DONE);
        let object = if *status == NOT_KNOWN {
            json!({ "v": v, "done": done, "leader": id, "token": token, "said": said, "state": "unknown", "reason": reason })
        } else {
            json!({ "v": v, "done": done, "leader": id, "token": token, "said": said })
        };
        let is_object = context.output.format.is_object();
        let text = if is_object { context.output.object(&object) } else { format!("{}\n", words::printable(said)) };
        Answer { text, status: *status }
    }
}

fn told(leader: Option<(&str, i64)>, status: u8, said: &str) -> Told {
    let leader = leader.map(|(id, token)| (id.to_owned(), Some(token)));
    Told { leader, status, said: said.to_owned(), reason: None }
}

fn told_foreign(id: &str) -> Told {
    let said = format!("{id} leads, a contender of another library");
    Told { leader: Some((id.to_owned(), None)), ..told(None, DONE, &said) }
}

fn told_no(leader: Option<(&str, i64)>, no: &No) -> Told {
    match no {
        No::Known(said) => told(leader, NOT_DONE, said),
        No::Unknown { said, reason } => Told { reason: *reason, ..told(leader, NOT_KNOWN, said) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zookeeper::admin::Facts;
    use crate::zookeeper::admin::view::{Candidate, SlotView};
    use crate::zookeeper::schema::lease::Lease;

    /// `a` leads under this token, and these stand in line.
    pub(super) fn election(token: i64, line: &[&str]) -> ElectionView {
        let record = r#"{"v":1,"state":"held","lease_ms":15000,"holder":{"id":"a","host":"h","pid":1}}"#;
        let lease = Some((Lease::read(record.as_bytes()).unwrap(), Facts::default()));
        let term = Some(Facts { mzxid: token, version: 1, ..Facts::default() });
        let candidate = |id: &&str| Candidate { id: (*id).to_owned(), ..Candidate::default() };
        let slots = vec![SlotView { lease, term, ..SlotView::default() }];
        ElectionView { slots, line: line.iter().map(candidate).collect(), ..ElectionView::default() }
    }

    #[test]
    fn nobody_leads_only_where_the_lease_is_free() {
        let leader = Leader { holder: Holder { id: "a".into(), ..Holder::default() }, token: 7 };
        let with_line = |record: &str, line: &[&str]| {
            let mut election = election(7, line);
            let facts = Facts::default();
            election.slots[0].lease = Lease::read(record.as_bytes()).ok().map(|lease| (lease, facts));
            handover_state(&election, &leader)
        };
        let state = |record: &str| with_line(record, &[]);
        let holder = r#""holder":{"id":"a","host":"h","pid":1}"#;
        let free = state(&format!(r#"{{"v":1,"state":"free","lease_ms":15000,{holder}}}"#));
        let said = unfinished(&free, "a", Duration::from_secs(1));
        assert_eq!(said, No::Known("nobody leads after 1s: the lease is free, and no host takes part".to_owned()));
        let not_over = |record: &str, part: &str| {
            let state = state(record);
            assert!(matches!(&state, HandoverState::NotOver { why } if why.contains(part)), "{record}: {state:?}");
            let said = unfinished(&state, "a", Duration::from_secs(1));
            let begin = "nobody else leads after 1s: ";
            assert!(matches!(&said, No::Known(said) if said.starts_with(begin) && said.contains(part)), "{said:?}");
        };
        let unknown = |record: &str, word, part: &str| {
            let No::Unknown { said, reason } = unfinished(&state(record), "a", Duration::from_secs(1)) else {
                panic!("{record}")
            };
            assert!(said.starts_with("who leads after 1s is not known: ") && said.contains(part), "{said}");
            assert_eq!(reason, word);
        };
        let held = |rest: &str| format!(r#"{{"v":1,"state":"held","lease_ms":15000{rest}}}"#);
        not_over(&held(&format!(",{holder}")), "a is gone, and its lease must run out");
        unknown(&held(""), Some("record-lost"), "the record was lost");
        unknown(&held(&format!(r#","vouch_ms":60000,{holder}"#)), Some("cut-off"), "a is cut off or dead");
        unknown("garbage", None, "the lease record is missing or cannot be read");
        let waiting = held(&format!(r#","waiting_on":5,{holder}"#));
        not_over(&waiting, "a is gone, and the lease before it must run out");
        assert_eq!(
            with_line(&waiting, &["a"]),
            HandoverState::Leading { phase: "waiting".into() },
            "it holds the record"
        );
    }

    #[test]
    fn a_leader_is_stopping_only_once_it_says_so() {
        for phase in ["leading", "vouched", "paused", "preparing", "waiting"] {
            assert!(!slot_state::is_stopping(phase), "{phase}");
        }
        assert!(slot_state::is_stopping("stopping") && slot_state::is_stopping("releasing"));
        for phase in ["leading", "vouched", "paused"] {
            let said = unfinished(&HandoverState::Leading { phase: phase.into() }, "a", Duration::from_secs(1));
            assert!(matches!(&said, No::Known(said) if said.starts_with("a has not begun to stop after ")), "{said:?}");
        }
    }

    #[test]
    fn an_order_stays_only_for_a_leader_that_is_known_not_to_have_begun() {
        let answered = |is_over| Ok((told(None, DONE, ""), is_over));
        assert!(is_to_be_taken_back(&answered(true)) && !is_to_be_taken_back(&answered(false)));
        assert!(is_to_be_taken_back(&Err(CommandError::not_known("no answer in time"))));
    }

    #[test]
    fn the_end_is_told_though_the_order_could_not_be_taken_back() {
        let (end, minute) = (told(Some(("b", 7)), DONE, "b leads"), Duration::from_secs(60));
        assert_eq!(end.clone().and_its_order(None, minute), end);
        let failure = CommandError::not_known("no answer came; try again");
        let said = "b leads; the order may stand, and lapses 1m after it was given, because no answer came".to_owned();
        assert_eq!(end.clone().and_its_order(Some(failure), minute), Told { said, ..end });
    }

    #[test]
    fn whoever_is_elected_and_still_prepares_is_not_said_to_lead() {
        let elected = |id, phase| {
            let told = elected("a", (id, 7), phase);
            (told.status, told.said)
        };
        for phase in ["preparing", "waiting"] {
            let said = format!("b is elected, token 7; it is {phase}, and its command does not run yet");
            assert_eq!(elected("b", Some(phase)), (DONE, said));
            let said = format!("nobody else took over: a is elected again, token 7; it is {phase}");
            assert_eq!(elected("a", Some(phase)), (NOT_DONE, said));
        }
        assert_eq!(elected("b", None), (DONE, "b is elected, token 7".to_owned()), "its command may run already");
        assert_eq!(elected("a", None), (NOT_DONE, "nobody else took over: a is elected again, token 7".to_owned()));
    }
}
