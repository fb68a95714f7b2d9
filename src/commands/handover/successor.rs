//! Who could take over from the leader, and why the others could not.

use std::time::Duration;

use super::{DONE, Leader, NOT_DONE, Told, leader, told, told_no};
use crate::commands::orders::Patience;
use crate::commands::slot_state::contenders::{self, Contender};
use crate::commands::slot_state::{self, SlotState};
use crate::commands::{CommandContext, CommandError};
use crate::zookeeper::admin::view::{DrainView, ElectionView};
use crate::zookeeper::client::ensure_path::parent;
use crate::zookeeper::schema::control::remedy;
use crate::zookeeper::schema::member::{DRAINED, Member};

/// Nobody takes over then.
pub(super) fn disabled(election: &ElectionView) -> Option<String> {
    let order = election.orders.disabled.as_ref()?;
    let remedy = remedy::about_election("enable", &election.base);
    Some(format!("the election is disabled (by {}: {}); {remedy} comes first", order.by, order.reason))
}

/// Who was drained hears a moment later that it is not any more, and lines up.
const HEARS_WITHIN: Duration = Duration::from_secs(2);

/// Who leads, and the id of whom to hand over to; or why there is no handover.
type Plan = Result<(Leader, Option<String>), Told>;

/// The plan for the election as it is once whoever was drained has heard of the end.
pub(super) async fn planned(
    context: &CommandContext<'_>,
    to: Option<&str>,
) -> Result<(ElectionView, Plan), CommandError> {
    let patience = Patience::new(HEARS_WITHIN);
    loop {
        let election = context.election().await?;
        let plan = plan(&election, to);
        let may_change = plan.is_err() && has_to_hear(&election);
        if !may_change || !patience.wait().await {
            return Ok((election, plan));
        }
    }
}

fn plan(election: &ElectionView, to: Option<&str>) -> Plan {
    let leader = leader(election).map_err(|no| told_no(None, &no))?;
    let told_now = |status, said: &str| told(Some((&leader.holder.id, leader.token)), status, said);
    let to = to.map(|to| contenders::id_of(to, election)).transpose().map_err(|why| told_now(NOT_DONE, &why))?;
    if to.as_ref() == Some(&leader.holder.id) {
        let phase = election.slots.first().map(|slot| slot_state::of(slot, election));
        return Err(match phase {
            Some(SlotState::Led { holder, phase }) if slot_state::runs(Some(&phase)) => {
                told_now(DONE, &format!("{} leads already", holder.id))
            }
            Some(SlotState::Led { holder, phase }) => {
                told_now(NOT_DONE, &format!("{} is elected and {phase}: its command does not run", holder.id))
            }
            _ => {
                let id = &leader.holder.id;
                told_now(
                    NOT_DONE,
                    &format!("{id} is elected and waits for the lease before its own: its command does not run yet"),
                )
            }
        });
    }
    may_take_over(election, &leader, to.as_deref()).map_err(|why| told_now(NOT_DONE, &why))?;
    Ok((leader, to))
}

/// Whether somebody says that it is drained whose drain has ended, or has said that it is not and does not stand in line yet.
fn has_to_hear(election: &ElectionView) -> bool {
    let is_drained = |host: &str| election.drains.iter().any(|drain| drain.is_in_force && drain.host == host);
    let is_in_line = |id: &str| election.line.iter().any(|candidate| candidate.id == id);
    let has_line = !contenders::has_no_line(election);
    let lines_up = |member: &Member| has_line && member.eligible && !is_in_line(&member.id);
    election.members().any(|member| !is_drained(&member.host) && (member.why_not == [DRAINED] || lines_up(member)))
}

/// Whether anybody, or the target, could take over; else why not, for each.
fn may_take_over(election: &ElectionView, leader: &Leader, to: Option<&str>) -> Result<(), String> {
    if let Some(why) = disabled(election) {
        return Err(why);
    }
    let others: Vec<_> = contenders::contenders(election);
    let others = || others.iter().filter(|contender| contender.id != leader.holder.id);
    let reasons = |which: &mut dyn Iterator<Item = &Contender>| {
        which
            .map(|contender| format!("{} ({})", contender.id, why_not(contender, election)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    if let Some(to) = to.filter(|_| election.is_shared) {
        let what = format!("{to} cannot be chosen: contenders of other libraries make no room");
        return Err(format!("{what}; leave --to out, and the next in line takes over"));
    }
    if let Some(to) = to.filter(|_| contenders::has_no_line(election)) {
        let what = format!("{to} cannot be chosen: with --recipe single there is no line");
        return Err(format!("{what}; leave --to out, and whoever is first takes over"));
    }
    match to {
        None if others().any(|contender| contender.why_not.is_empty()) => Ok(()),
        None if others().next().is_none() => Err("nobody else is there to take over".to_owned()),
        None => Err(format!("nobody can take over: {}", reasons(&mut others()))),
        Some(to) => match others().find(|contender| contender.id == to) {
            Some(contender) if contender.why_not.is_empty() => Ok(()),
            Some(contender) => Err(format!("{to} cannot take over: {}", why_not(contender, election))),
            None => {
                let known: Vec<_> = others().map(|contender| contender.id.as_str()).collect();
                let known = if known.is_empty() { "nobody".to_owned() } else { known.join(", ") };
                Err(format!("there is no participant {to}; besides the leader there is: {known}"))
            }
        },
    }
}

/// Of a drain, also whose it is, until when it lasts, and what ends it.
fn why_not(contender: &Contender, election: &ElectionView) -> String {
    if contender.why_not.is_empty() {
        return "could".to_owned();
    }
    let host = contender.member.as_ref().map(|member| member.host.as_str());
    let drain = election.drains.iter().find(|drain| drain.is_in_force && Some(drain.host.as_str()) == host);
    let said = |why: &String| match drain.filter(|_| why == DRAINED) {
        Some(DrainView { host, drain, written_at, .. }) => {
            let remedy = remedy::about_host("undrain", host, parent(&election.base));
            format!("{why} {}; {remedy} ends that", drain.said(*written_at))
        }
        None => why.clone(),
    };
    contender.why_not.iter().map(said).collect::<Vec<_>>().join(", ")
}
