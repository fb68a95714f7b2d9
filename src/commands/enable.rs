//! `enable`: takes `disable` back.
//!
//! Never: an order other than `disable` changed; "no command runs" where that is not known.

use std::time::Duration;

use serde_json::json;

use super::orders::following::{self, Step};
use super::orders::replacing::Present;
use super::orders::{self, Patience, Progress, ServerClock};
use super::slot_state::{self, SlotState, WhyNobody};
use super::{Answer, CommandContext, CommandError, DONE, NOT_DONE, NOT_KNOWN};
use crate::observe::words;
use crate::zookeeper::admin::view::{ElectionView, SlotView};
use crate::zookeeper::schema::control::{CONTROL, remedy};
use crate::zookeeper::schema::lease::Lease;

pub(super) async fn answer(context: &CommandContext<'_>, wait: Option<Duration>) -> Result<Answer, CommandError> {
    let election = context.election().await?;
    let status = remedy::about_election("status", &election.base);
    let may_stand = format!("the election may be enabled by now: {status} tells whether it is");
    let mut ended = None;
    orders::change(context, &election, Some(&may_stand), |orders| ended = orders.disabled.take()).await?;
    let now = if ended.is_some() { orders::written_at(context, &election).await } else { None };
    let ended = ended.as_ref().map(Present::disabled).filter(|ended| ended.stands_at(now));
    let control = format!("{}/{CONTROL}", election.base);
    let done = match &ended {
        Some(ended) => format!("is enabled again; this ends {}", ended.said()),
        None if election.is_unreadable(&control) => {
            "is not disabled: its orders could not be read, and are written anew".to_owned()
        }
        None => "was not disabled".to_owned(),
    };
    let mut progress = Progress::new(context.output.format);
    progress.tell(&format!("{} {done}", election.base));
    let enabled = Enabled { context, ended };
    let Some(limit) = wait else { return Ok(enabled.told("enabled", DONE, "", None)) };
    context.stands(format!("the election stays enabled; {status} tells who leads"));
    let now = match now {
        None => orders::time(context, &election).await.unwrap_or_default(),
        known => known,
    };
    until_one_runs((&enabled, &ServerClock::since(now)), limit, &mut progress).await
}

struct Enabled<'a> {
    context: &'a CommandContext<'a>,
    /// The order that was in force.
    ended: Option<Present>,
}

impl Enabled<'_> {
    /// `again`: the order that was given since then.
    fn told(&self, state: &str, status: u8, line: &str, again: Option<&Present>) -> Answer {
        let (ended, again) = (self.ended.as_ref().map(Present::json), again.map(Present::json));
        let object = json!({ "v": 1, "state": state, "ended": ended, "disabled": again });
        Answer { text: self.context.output.told(&object, state, line), status }
    }
}

async fn until_one_runs(
    (enabled, clock): (&Enabled<'_>, &ServerClock),
    limit: Duration,
    progress: &mut Progress,
) -> Result<Answer, CommandError> {
    following::until(enabled.context, &Patience::new(limit), progress, async |context, progress| {
        let election = context.election().await?;
        let mut leaders = election.slots.iter().filter_map(|slot| new_leader(slot, &election));
        if let Some((id, _)) = leaders.clone().find(|(_, phase)| slot_state::runs(*phase)) {
            return Ok(Step::Done(enabled.told("led", DONE, &format!("{id} leads"), None)));
        }
        // It was given after ours, whatever our clock says of its end.
        if let Some(order) = election.disabled() {
            let again = Present::disabled(order);
            let text = format!("the election was disabled again: {}", again.said());
            return Ok(Step::Done(enabled.told("disabled", NOT_DONE, &text, Some(&again))));
        }
        match leaders.next() {
            // It has heard of the order that was taken back.
            Some((id, Some(phase))) if slot_state::is_stopping(phase) => progress.tell(&format!("{id} is {phase}")),
            Some((id, Some(phase))) => progress.tell(&format!("{id} is elected; it is {phase}")),
            _ => {}
        }
        Ok(Step::NotYet(unfinished(enabled, (&election, clock.now()), limit)))
    })
    .await
}

/// When the time is over.
fn unfinished(enabled: &Enabled<'_>, (election, now): (&ElectionView, i64), limit: Duration) -> Answer {
    let length = words::length(limit);
    let outliving = || slot_state::outliving(election, now).into_iter().next().map(|command| command.why);
    if let Some(why) = election.slots.iter().find_map(|slot| why_unknown(slot, election)).or_else(outliving) {
        let text = format!("whether a command runs is not known after {length}: {why}");
        return enabled.told("unknown", NOT_KNOWN, &text, None);
    }
    if let Some(who) = slot_state::foreign_in_words(election) {
        let text = format!("none of our hosts leads after {length}: {who}");
        return enabled.told("foreign", NOT_DONE, &text, None);
    }
    let remedy = remedy::about_election("status", &election.base);
    let text = format!("no command runs after {length}; {remedy} tells why");
    enabled.told("nobody-leads", NOT_DONE, &text, None)
}

/// Why a command may run in this slot though nobody says that it does. Who leads runs none only as long as it says what comes
/// before it.
fn why_unknown(slot: &SlotView, election: &ElectionView) -> Option<String> {
    let lease = slot.lease.as_ref().map(|(lease, _)| lease);
    match slot_state::of(slot, election) {
        SlotState::CutOff { why } => Some(why),
        SlotState::Unknown => Some("the lease record is missing or cannot be read".to_owned()),
        SlotState::Waiting { holder } => Some(slot_state::waits_in_words(&holder.id)),
        SlotState::Led { holder, phase } => match new_leader(slot, election)?.1 {
            Some(said) if !slot_state::is_stopping(said) => None,
            _ if slot_state::is_stopping(&phase) => Some(format!("{} is {phase}", holder.id)),
            _ => Some(format!("{} holds the lease, and has not said what it does", holder.id)),
        },
        SlotState::Overdue { holder, .. } if !lease.is_some_and(Lease::dies_in_time) => {
            Some(format!("the lease of {} is overdue, and its command may still run", holder.id))
        }
        SlotState::Overdue { .. }
        | SlotState::Foreign { .. }
        | SlotState::Nobody { why: WhyNobody::RecordLost | WhyNobody::GaveWay { is_over: true, .. } } => None,
        SlotState::Nobody { why } => lease.is_some_and(Lease::is_held).then(|| why.to_string()),
    }
}

/// Who holds the slot, and what it says of its term.
fn new_leader<'a>(slot: &SlotView, election: &'a ElectionView) -> Option<(String, Option<&'a str>)> {
    match slot_state::of(slot, election) {
        SlotState::Led { holder, .. } | SlotState::Waiting { holder } => {
            let phase = slot_state::said_phase(&holder, slot.token(), election);
            Some((holder.id, phase))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zookeeper::admin::Facts;

    #[test]
    fn under_a_record_that_was_lost_no_command_runs_once_its_time_is_over() {
        let lost = Lease::read(br#"{"v":1,"state":"held","lease_ms":15000}"#).unwrap();
        let why = |overdue_since| {
            let slot = SlotView { lease: Some((lost.clone(), Facts::default())), overdue_since, ..SlotView::default() };
            why_unknown(&slot, &ElectionView::default())
        };
        assert!(why(None).is_some_and(|why| why.contains("the record was lost")), "one may run");
        assert_eq!(why(Some(1)), None);
    }
}
