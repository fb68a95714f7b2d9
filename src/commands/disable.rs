//! `disable` and `enable`: an election that nobody may lead, and the end of that.
//!
//! Never: "nobody runs the command" before that is so.

use std::time::Duration;

use serde_json::json;
use uuid::Uuid;

use super::ordering::{Patience, Teller, change};
use super::verdict::{self, Verdict};
use super::{Answer, Desk, Excuse};
use crate::clock;
use crate::config::ctl::Format;
use crate::core::lease::wait_over_at;
use crate::core::time::Sighting;
use crate::observe::words;
use crate::zookeeper::admin::view::{Election, Lease};
use crate::zookeeper::schema::control::Disabled;

const DONE: u8 = 0;
const NOT_DONE: u8 = 1;

pub(super) async fn disable(
    desk: &Desk<'_>,
    reason: &str,
    lasts: Option<Duration>,
    wait: Option<Duration>,
) -> Result<Answer, Excuse> {
    let election = desk.election().await?;
    let order = Disabled {
        order: Uuid::new_v4().to_string(),
        reason: reason.to_owned(),
        by: desk.asked.by.clone(),
        for_ms: lasts.map(|lasts| u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX)),
    };
    change(desk, &election, |orders| orders.disabled = Some(order.clone())).await?;
    let mut teller = Teller::new(desk.paper.format);
    let length = lasts.map_or_else(|| "until enable".to_owned(), |lasts| format!("for {}", words::length(lasts)));
    teller.tell(&format!("{} is disabled {length}", election.base));
    match wait {
        Some(limit) => until_nobody_runs(desk, limit, &mut teller).await,
        None => Ok(told(desk, "disabled", DONE, String::new())),
    }
}

pub(super) async fn enable(desk: &Desk<'_>, wait: Option<Duration>) -> Result<Answer, Excuse> {
    let election = desk.election().await?;
    let was = election.orders.disabled.is_some();
    change(desk, &election, |orders| orders.disabled = None).await?;
    let mut teller = Teller::new(desk.paper.format);
    teller.tell(&format!("{} is enabled{}", election.base, if was { "" } else { ", and was before" }));
    let Some(limit) = wait else { return Ok(told(desk, "enabled", DONE, String::new())) };
    let patience = Patience::new(limit);
    loop {
        let election = desk.election().await?;
        if let Some(holder) = election.offices.iter().find_map(|office| verdict::leader(office, &election)) {
            return Ok(told(desk, "led", DONE, format!("{} leads\n", holder.id)));
        }
        if !patience.wait().await {
            let text = format!("nobody leads after {}; zk-leaderctl status tells why\n", words::length(limit));
            return Ok(told(desk, "nobody-leads", NOT_DONE, text));
        }
    }
}

/// A record that is free says so; one that is not renewed any more for as long as its lease does so, too.
async fn until_nobody_runs(desk: &Desk<'_>, limit: Duration, teller: &mut Teller) -> Result<Answer, Excuse> {
    let patience = Patience::new(limit);
    let mut seen: Vec<(i64, Sighting)> = Vec::new();
    loop {
        let now = clock::now().observer;
        let election = desk.election().await?;
        let running: Vec<_> =
            leases(&election).filter(|(lease, mzxid)| !is_over(lease, *mzxid, now, &mut seen)).collect();
        let Some((lease, _)) = running.first() else {
            return Ok(told(desk, "idle", DONE, "no command runs\n".to_owned()));
        };
        let id = lease.holder.as_ref().map_or("somebody unknown", |holder| holder.id.as_str());
        let gone =
            election.offices.iter().all(|office| matches!(verdict::of(office, &election), Verdict::Nobody { .. }));
        teller.tell(&if gone {
            format!("{id} is gone; its lease must run out")
        } else {
            format!("{id} is stopping its command")
        });
        if !patience.wait().await {
            let text = format!(
                "after {} it is not sure that {id} does not run the command; is it cut off, or of an older version?\n",
                words::length(limit)
            );
            return Ok(told(desk, "running", NOT_DONE, text));
        }
    }
}

fn leases(election: &Election) -> impl Iterator<Item = (&Lease, i64)> {
    let leases = election.offices.iter().filter_map(|office| office.lease.as_ref());
    leases.map(|(lease, facts)| (lease, facts.mzxid))
}

/// Under at-least-one, a command may outlive its lease: only its release counts there.
fn is_over(lease: &Lease, mzxid: i64, now: Sighting, seen: &mut Vec<(i64, Sighting)>) -> bool {
    if !lease.is_held() {
        return true;
    }
    let first = seen.iter().find(|(known, _)| *known == mzxid).map(|(_, first)| *first);
    let first = first.unwrap_or_else(|| {
        seen.push((mzxid, now));
        now
    });
    let over = now >= wait_over_at(first, Duration::from_millis(lease.lease_ms));
    over && lease.guarantee.as_deref() == Some("at-most-one")
}

fn told(desk: &Desk<'_>, state: &str, status: u8, text: String) -> Answer {
    let text = match desk.paper.format {
        Format::Json => format!("{:#}\n", json!({ "v": 1, "state": state })),
        Format::Plain => format!("{state}\n"),
        Format::Table => text,
    };
    Answer { text, status }
}
