//! `enable`: takes `disable` back.
//!
//! Never: an order other than `disable` changed.

use std::time::Duration;

use super::disable::{DONE, NOT_DONE, told};
use super::orders::replacing::Present;
use super::orders::{Patience, Progress, change};
use super::slot_state::{self, SlotState};
use super::{Answer, CommandContext, CommandError};
use crate::observe::words;
use crate::zookeeper::admin::view::{ElectionView, SlotView};
use crate::zookeeper::schema::control::{CONTROL, remedy};

pub(super) async fn answer(context: &CommandContext<'_>, wait: Option<Duration>) -> Result<Answer, CommandError> {
    let election = context.election().await?;
    let control = format!("{}/{CONTROL}", election.base);
    let done = match election.orders.disabled {
        Some(ref order) => format!("is enabled again; this ends {}", Present::disabled(order).said()),
        None if election.is_unreadable(&control) => {
            "is not disabled: its orders could not be read, and are written anew".to_owned()
        }
        None => "was not disabled".to_owned(),
    };
    change(context, &election, |orders| orders.disabled = None).await?;
    let mut progress = Progress::new(context.output.format);
    progress.tell(&format!("{} {done}", election.base));
    let Some(limit) = wait else { return Ok(told(context, "enabled", DONE, String::new())) };
    let patience = Patience::new(limit);
    loop {
        let election = context.election().await?;
        let mut leaders = election.slots.iter().filter_map(|slot| new_leader(slot, &election));
        if let Some((id, _)) = leaders.clone().find(|(_, phase)| slot_state::runs(*phase)) {
            return Ok(told(context, "led", DONE, format!("{id} leads\n")));
        }
        if let Some(order) = &election.orders.disabled {
            let text = format!("the election was disabled again: {}\n", Present::disabled(order).said());
            return Ok(told(context, "disabled", NOT_DONE, text));
        }
        if let Some((id, Some(phase))) = leaders.next() {
            progress.tell(&format!("{id} is elected; it is {phase}"));
        }
        if !patience.wait().await {
            let remedy = remedy::about_election("status", &election.base);
            let text = format!("no command runs after {}; {remedy} tells why\n", words::length(limit));
            return Ok(told(context, "nobody-leads", NOT_DONE, text));
        }
    }
}

/// Who holds the slot, and what it says of its term.
fn new_leader<'a>(slot: &SlotView, election: &'a ElectionView) -> Option<(String, Option<&'a str>)> {
    let token = slot.term.map_or(0, |term| term.mzxid);
    match slot_state::of(slot, election) {
        SlotState::Led { holder, .. } | SlotState::Waiting { holder } => {
            let phase = slot_state::said_phase(&holder, token, election);
            Some((holder.id, phase))
        }
        _ => None,
    }
}
