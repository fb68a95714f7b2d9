//! Checks leadership: an order that forbids it, a leader that does not renew, a free lease that is not taken, or that nobody may take.
//!
//! Never: a finding that a second look contradicts.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::slot_state::contenders::{self, Contender};
use super::super::{CommandContext, CommandError, overdue, slot_state, status};
use super::{Finding, advice, wrong};
use crate::clock;
use crate::observe::words;
use crate::zookeeper::admin::view::{ElectionView, SlotView};
use crate::zookeeper::client::ensure_path::parent;
use crate::zookeeper::schema::control::moment::moment;
use crate::zookeeper::schema::control::remedy;
use crate::zookeeper::schema::member::{DRAINED, Member};

pub(super) async fn findings(
    context: &CommandContext<'_>,
    election: &ElectionView,
) -> Result<Vec<Finding>, CommandError> {
    let now = clock::time_of_day();
    let (disabled, nobody_may) = (disabled(context, election), nobody_may_lead(election).is_some());
    let is_left = |slot: &SlotView| is_not_taken(slot, election) || nobody_may && is_free(slot);
    let is_suspect = |slot: &&SlotView| is_late(slot, election, now) || disabled.is_none() && is_left(slot);
    let suspects: Vec<_> = election.slots.iter().filter(is_suspect).collect();
    let unchanged = overdue::watch(context, &suspects).await?;
    let stuck = suspects.into_iter().zip(unchanged).filter(|(_, is_unchanged)| *is_unchanged);
    let lost = election.slots.iter().filter_map(|slot| lost_record(slot, &election.base));
    let stuck = stuck.filter_map(|(slot, _)| complaint(slot, election, now));
    let may_be_led = disabled.is_none();
    let mut findings: Vec<_> = disabled.into_iter().chain(lost).chain(stuck).collect();
    if may_be_led && nobody_may {
        // Somebody may lead by now.
        findings.extend(nobody_may_lead(&context.election().await?));
    }
    Ok(findings)
}

/// The order by which nobody takes a free lease, also if it has lapsed by our clock alone. Whoever is cut off has not heard of it.
fn disabled(context: &CommandContext<'_>, election: &ElectionView) -> Option<Finding> {
    let order = election.disabled()?;
    let is_lapsed = election.orders.disabled.is_none();
    let lapsed = if is_lapsed { status::lapsed(election.members().next().is_some()) } else { "" };
    let remedy = remedy::about_election("enable", &election.base);
    let (by, end, reason) = (context.output.part(&order.by), order.end(), context.output.quoted_part(&order.reason));
    Some(advice("election", format!("disabled by {by} {end}{lapsed}: {reason}; {remedy} lets it be led again")))
}

/// Members are there, and a free lease, and each of them says why it may not be elected.
fn nobody_may_lead(election: &ElectionView) -> Option<Finding> {
    let members: Vec<_> = election.members().collect();
    let is_stuck = election.line.is_empty() && election.slots.iter().any(is_free) && !members.is_empty();
    if !is_stuck || !members.iter().all(|member| member.is_barred()) {
        return None;
    }
    let whys = whys(members.iter().map(|member| (member.id.as_str(), member.why_not.as_slice())));
    let remedy = remedy_on_one_of(members.into_iter(), &election.base);
    Some(wrong("leader", format!("the lease is free, and no host may be elected: {whys}; {remedy}")))
}

/// `a (unhealthy), b (drained)`
fn whys<'a>(of: impl Iterator<Item = (&'a str, &'a [String])>) -> String {
    of.map(|(id, why_not)| format!("{id} ({})", why_not.join(", "))).collect::<Vec<_>>().join(", ")
}

/// What lets one of these lead.
fn remedy_on_one_of<'a>(mut members: impl Iterator<Item = &'a Member>, base: &str) -> String {
    members.find(|member| member.why_not == [DRAINED]).map_or_else(
        || "see their logs, and mend it on one of them".to_owned(),
        |member| format!("{} lets that host lead", remedy::about_host("undrain", &member.host, parent(base))),
    )
}

/// A record that was lost and made anew. If somebody led, perhaps only cut off from the servers, its command may run for as long as
/// the new one says.
fn lost_record(slot: &SlotView, base: &str) -> Option<Finding> {
    let (lease, written) =
        slot.lease.as_ref().filter(|(lease, _)| lease.is_held() && lease.known_holder().is_none())?;
    let until = moment(slot_state::longest_until(lease, written));
    let path = slot.lease_path();
    let said = if slot.overdue_since.is_some() {
        format!(
            "the lease of its unknown holder ran out at {until}; who is first in line says in its log how long it waits"
        )
    } else {
        let sooner = if lease.vouch_ms.is_some() {
            format!(
                ", or stop zk-leader-run on every host, see that the command runs nowhere, and only then delete {base}"
            )
        } else {
            String::new()
        };
        format!(
            "the command of its unknown holder may run until {until}, and no host leads before, unless its own host frees the record; wait{sooner}"
        )
    };
    Some(wrong("leader", format!("{path} was lost and made anew: {said}")))
}

/// Two jobs that share a name by mistake: one of them never runs.
pub(super) fn programs(election: &ElectionView) -> Option<Finding> {
    let members = election.members().map(|member| (&member.about.program, &member.id));
    let programs: BTreeMap<_, _> = members.filter(|(program, _)| !program.is_empty()).collect();
    let said: Vec<_> = programs.iter().map(|(program, id)| format!("{program} (as on {id})")).collect();
    let remedy = "if these are several jobs, only one of them runs: give each its own --name";
    (said.len() > 1).then(|| advice("members", format!("the commands differ: {}; {remedy}", said.join(", "))))
}

/// Somebody leads a service, and nobody else could. The hosts of a job come when their time has come.
pub(super) fn no_standby(election: &ElectionView) -> Option<Finding> {
    let leader = election.slots.iter().find_map(|slot| slot_state::leader(slot, election))?;
    let others: Vec<_> = contenders::contenders(election).into_iter().filter(|contender| !contender.leads).collect();
    if election.has_runs || others.iter().any(|contender| contender.why_not.is_empty()) {
        return None;
    }
    let said = if others.is_empty() {
        "no other host takes part; start zk-leader-run on another one".to_owned()
    } else {
        let whys = whys(others.iter().map(|contender| (contender.id.as_str(), contender.why_not.as_slice())));
        let remedy = remedy_on_one_of(others.iter().filter_map(|contender| contender.member.as_ref()), &election.base);
        format!("no other host may be elected: {whys}; {remedy}, or start zk-leader-run on another one")
    };
    Some(advice("members", format!("if {} fails, nobody takes over: {said}", leader.id)))
}

/// Half of the lease is four renewal intervals. Of a holder that waits, and is gone, the lease must run out; one that is
/// there renews nothing meanwhile, nor does one that gave way.
fn is_late(slot: &SlotView, election: &ElectionView, now: i64) -> bool {
    let Some((lease, written)) = slot.lease.as_ref().filter(|(lease, _)| lease.is_held()) else { return false };
    let Some(holder) = lease.known_holder() else { return false };
    let limit = match lease.waiting_on {
        _ if slot_state::gave_way(holder, slot, election) => return false,
        None => lease.lease_ms / 2,
        Some(_) if !slot_state::waits(holder, slot, election) => lease.lease_ms,
        Some(_) => return false,
    };
    now.saturating_sub(written.changed_at) > i64::try_from(limit).unwrap_or(i64::MAX)
}

/// In a shared election the first in line may be a contender of another library.
fn is_not_taken(slot: &SlotView, election: &ElectionView) -> bool {
    is_free(slot) && !election.is_shared && first(election).is_some()
}

fn is_free(slot: &SlotView) -> bool {
    slot.lease.as_ref().is_some_and(|(lease, _)| !lease.is_held())
}

/// The first in line of those who lead none of several slots: who leads one takes no other.
fn first(election: &ElectionView) -> Option<String> {
    let is_free_to = |it: &Contender| it.place.is_some() && !it.leads && !it.is_overdue;
    contenders::contenders(election).into_iter().find(is_free_to).map(|it| it.id)
}

fn complaint(slot: &SlotView, election: &ElectionView, now: i64) -> Option<Finding> {
    let (lease, written) = slot.lease.as_ref()?;
    if !lease.is_held() {
        let first = first(election)?;
        let remedy = "see its log, and start it anew if it hangs";
        return Some(wrong(
            "leader",
            format!("the lease is free, and {first} is first in line and does not take it: {remedy}"),
        ));
    }
    let holder = &lease.known_holder()?.id;
    let age = Duration::from_millis(u64::try_from(now.saturating_sub(written.changed_at)).unwrap_or(0));
    let (age, length) = (words::length(age), words::length(Duration::from_millis(lease.lease_ms)));
    let remedy = "it hangs, was killed, or is cut off from ZooKeeper: see its log";
    Some(wrong(
        "leader",
        format!("{holder} has not renewed its lease for {age}, and the lease lasts {length}: {remedy}"),
    ))
}
