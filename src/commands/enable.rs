//! `enable`: takes `disable` back.
//!
//! Never: an order other than `disable` changed.

use std::time::Duration;

use super::disable::{DONE, NOT_DONE, told};
use super::orders::{Patience, Progress, change};
use super::slot_state;
use super::{Answer, CommandContext, CommandError};
use crate::observe::words;

pub(super) async fn answer(context: &CommandContext<'_>, wait: Option<Duration>) -> Result<Answer, CommandError> {
    let election = context.election().await?;
    let was = election.orders.disabled.is_some();
    change(context, &election, |orders| orders.disabled = None).await?;
    let mut progress = Progress::new(context.output.format);
    progress.tell(&format!("{} is enabled{}", election.base, if was { "" } else { ", and was before" }));
    let Some(limit) = wait else { return Ok(told(context, "enabled", DONE, String::new())) };
    let patience = Patience::new(limit);
    loop {
        let election = context.election().await?;
        if let Some(holder) = election.slots.iter().find_map(|slot| slot_state::leader(slot, &election)) {
            return Ok(told(context, "led", DONE, format!("{} leads\n", holder.id)));
        }
        if !patience.wait().await {
            let text = format!("nobody leads after {}; zk-leaderctl status tells why\n", words::length(limit));
            return Ok(told(context, "nobody-leads", NOT_DONE, text));
        }
    }
}
