//! The elections below a root, from the side of one host: which it leads, may lead, or will lead next.
//!
//! Never: "leads none" of a host that leads one, or may lead one that we may not read.

use std::collections::BTreeSet;

use super::leading::{leads, may_run_under, why_not_known};
use super::{Drained, next, stopping};
use crate::clock;
use crate::commands::orders::replacing::Present;
use crate::commands::{CommandError, disable, overdue, slot_state};
use crate::core::time::Sighting;
use crate::zookeeper::admin::fleet::{self, Below};
use crate::zookeeper::admin::view::ElectionView;
use crate::zookeeper::schema::control::remedy;
use crate::zookeeper::schema::lease::Lease;

/// The elections below the root, from the host's side.
#[derive(Debug, Default)]
pub(super) struct Fleet {
    pub elections: usize,
    /// The host takes part in them.
    pub shared: usize,
    /// Everyone who takes part is on one of these.
    pub hosts: BTreeSet<String>,
    /// The host's name is the id of a participant on this one.
    pub is_id_on: Option<String>,
    /// A record names it: it may be gone, and is no typing mistake.
    pub is_named: bool,
    /// Its command may run in these: it hands over or is about to, or is gone and its lease must run out.
    pub led: Vec<String>,
    /// Those of them in which it says that it is stopping its command.
    pub stopping: Vec<String>,
    /// Those of them in which it lets a run end that no other host would repeat.
    pub lets_end: Vec<String>,
    /// Those of them in which its lease must run out, and why.
    pub runs_out: Vec<String>,
    /// The lease records of these cannot be read, so that it may lead them.
    pub unknown: Vec<String>,
    /// Nobody knows whether it leads these, and why.
    pub perhaps: Vec<(String, String)>,
    /// It will lead these next: whoever leads them now gives way, and nobody else could.
    pub next: Vec<String>,
    /// It leads these, and nobody else could, whether it has heard of the drain or not.
    pub alone: Vec<String>,
    /// Those of them in which it has heard of the drain.
    pub stays: Vec<String>,
    /// We may not read these, so that it may lead them.
    pub closed: Vec<String>,
}

impl Fleet {
    /// Whether the host takes part, or may lead, as far as we may read: a name that nobody has is a typing mistake. Who led where that
    /// is not known may be on it.
    pub fn may_have_it(&self) -> bool {
        let Self { led, unknown, perhaps, .. } = self;
        self.has_it() || !led.is_empty() || !unknown.is_empty() || !perhaps.is_empty()
    }

    /// Whether somebody has said that he is on it.
    pub fn has_it(&self) -> bool {
        self.shared > 0 || self.is_named
    }

    /// Who takes part in this election.
    fn note_hosts(&mut self, election: &ElectionView, host: &str) {
        self.hosts.extend(election.members().map(|member| member.host.clone()));
        let same_id = election.members().find(|member| member.id == host).map(|member| member.host.clone());
        self.is_id_on = same_id.or(self.is_id_on.take());
        self.shared += usize::from(election.members().any(|member| member.host == host));
        let leases = election.slots.iter().filter_map(|slot| slot.lease.as_ref()).map(|(lease, _)| lease);
        let mut last = leases.filter(|lease| lease.is_held()).filter_map(Lease::last_to_run);
        self.is_named |= last.any(|leader| leader.host == host);
    }

    /// Where this election belongs.
    async fn place(
        &mut self,
        order: &Drained<'_>,
        name: String,
        seen: &ElectionView,
        seen_at: &mut Vec<(i64, Sighting)>,
    ) {
        let Drained { context, host, .. } = order;
        if seen.slots.iter().any(|slot| slot.lease.is_none() && !seen.was_never_led(slot)) {
            return self.unknown.push(name);
        }
        let outliving = slot_state::outliving(seen, order.clock.now());
        let outlives = outliving.into_iter().find(|command| command.may_be_on(host));
        let is_over = !leads(seen, host, clock::now().observer, seen_at);
        if let Some(command) = outlives.filter(|_| is_over) {
            return self.perhaps.push((name, command.why));
        }
        if is_over && disable::first_unconfirmed(context, may_run_under(seen, host)).await.is_none() {
            if next::leads_next(seen, host) {
                self.next.push(name);
            }
            return;
        }
        if let Some(why) = why_not_known(seen, host).filter(|_| !stopping::stops(seen, host)) {
            return self.perhaps.push((name, why));
        }
        let mut own = seen.members().filter(|member| member.host == *host).peekable();
        // A host that is gone hears nothing.
        let has_heard = own.peek().is_some() && own.all(|member| member.drained);
        let is_alone = !order.drain.force && !seen.members().any(|member| member.can_replace(host));
        self.alone.extend(is_alone.then(|| name.clone()));
        if is_alone && has_heard {
            return self.stays.push(name);
        }
        self.stopping.extend(stopping::stops(seen, host).then(|| name.clone()));
        self.lets_end.extend((!order.drain.force && stopping::lets_end(seen, host)).then(|| name.clone()));
        self.runs_out.extend(stopping::runs_out(seen, host).map(|why| format!("in {name}, {why}")));
        self.led.push(name);
    }
}

/// Who takes part where. Nothing is waited for.
pub(super) async fn members(order: &Drained<'_>) -> Result<(Fleet, Elections), CommandError> {
    let Drained { context, root, host, .. } = order;
    let all = context.below(root).await?;
    refuse_one_election(&all, order)?;
    let (mut fleet, found) = (Fleet::default(), fleet::all(&context.client, root, all.names).await?);
    fleet.closed.extend(all.closed.into_iter().chain(found.closed));
    fleet.elections = found.elections.len() + fleet.closed.len();
    found.elections.iter().for_each(|(_, seen)| fleet.note_hosts(seen, host));
    Ok((fleet, found.elections))
}

pub(super) type Elections = Vec<(String, ElectionView)>;

/// What the host leads or may lead there. Leases that look overdue are watched, for some seconds. The records that were seen, with
/// the first time of each, are kept from one look to the next.
pub(super) async fn judged(
    order: &Drained<'_>,
    (mut fleet, mut elections): (Fleet, Elections),
    seen_at: &mut Vec<(i64, Sighting)>,
) -> Result<Fleet, CommandError> {
    overdue::mark(order.context, elections.iter_mut().map(|(_, seen)| seen)).await?;
    let now = order.clock.now();
    for drain in elections.iter_mut().flat_map(|(_, seen)| &mut seen.drains) {
        drain.is_in_force = drain.drain.is_in_force(drain.written_at, now);
    }
    for (_, seen) in &mut elections {
        let disabled = seen.disabled().filter(|order| Present::disabled(order).stands_at(Some(now))).cloned();
        seen.orders.disabled = disabled;
    }
    for (name, seen) in elections {
        fleet.place(order, name, &seen, seen_at).await;
    }
    Ok(fleet)
}

/// Of a root that is the base of an election, with none below: an order there would reach nobody.
fn refuse_one_election(below: &Below, order: &Drained<'_>) -> Result<(), CommandError> {
    let Drained { root, host, .. } = order;
    if !below.is_election || !below.names.is_empty() {
        return Ok(());
    }
    let what = format!("{root} is one election, and a drain is for all below a root");
    Err(CommandError::usage(match root.rsplit_once('/') {
        Some((parent, _)) if !parent.is_empty() => format!("{what}: {}", remedy::about_host("drain", host, parent)),
        _ => format!("{what}; none reaches an election directly below /"),
    }))
}
