//! Who could take over from the leader, and why the others could not.

use super::Leader;
use crate::commands::slot_state::contenders::{self, Contender};
use crate::zookeeper::admin::view::{DrainView, ElectionView};
use crate::zookeeper::schema::control::remedy;
use crate::zookeeper::schema::member::DRAINED;

/// Nobody takes over then.
pub(super) fn disabled(election: &ElectionView) -> Option<String> {
    let order = election.orders.disabled.as_ref()?;
    let remedy = remedy::about_election("enable", &election.base);
    Some(format!("the election is disabled (by {}: {}); {remedy} comes first", order.by, order.reason))
}

/// Whether anybody, or the target, could take over; else why not, for each.
pub(super) fn may_take_over(election: &ElectionView, leader: &Leader, to: Option<&str>) -> Result<(), String> {
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
            let root = election.base.rsplit_once('/').map_or("", |(root, _)| root);
            let remedy = remedy::about_host("undrain", host, root);
            format!("{why} {}; {remedy} ends that", drain.said(*written_at))
        }
        None => why.clone(),
    };
    contender.why_not.iter().map(said).collect::<Vec<_>>().join(", ")
}
