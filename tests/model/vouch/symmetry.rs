//! Hosts with one limit are interchangeable: of the worlds that differ only in who is who, one stands for the others. A tie
//! leaves two that stand for one, which costs a state and hides none.
//!
//! Never: a change of anything but names; `reach::the_bookkeeping_hides_no_state` holds it to that.

use super::rules::Rules;
use super::world::{Ages, Answers, Former, Holder, Record, Role, World, Write};
use crate::check::fingerprint;
use crate::packed::Packed;
use crate::symmetry::order;
use crate::world::HOSTS;

/// Gives equal hosts their numbers by what they look like.
pub fn name_hosts(rules: &Rules, world: &mut World) {
    let is_equal = |one: usize, other: usize| {
        (rules.limits[one], rules.vouches[one]) == (rules.limits[other], rules.vouches[other])
    };
    if let Some(order) = order(is_equal, |host| look_of(world, host)) {
        rename(world, order);
    }
}

fn rename(world: &mut World, order: [usize; HOSTS]) {
    let name = |host: usize| order.iter().position(|&other| other == host).unwrap_or(host);
    world.rosters().for_each(|roster| *roster = roster.renamed(name));
    world.records().for_each(|record| record.holder = renamed(record.holder, name));
    for tenure in world.hosts.iter_mut().filter_map(super::world::Host::tenure) {
        tenure.gone = tenure.gone.renamed(name);
        let answers = tenure.answers;
        tenure.answers = order.map(|host| answers[host]);
    }
    let hosts = world.hosts;
    world.hosts = order.map(|host| hosts[host]);
    world.late.sort_unstable();
}

fn renamed(holder: Holder, name: impl Fn(usize) -> usize) -> Holder {
    match holder {
        Holder::Nobody => Holder::Nobody,
        Holder::Host(host) => Holder::host(name(usize::from(host))),
    }
}

/// Everything that concerns a host, told without any number of a host: what is its own, and what others'.
fn look_of(world: &World, host: usize) -> u64 {
    let seen_by_it = |mut record: Record| {
        record.holder = renamed(record.holder, |other| usize::from(other != host));
        record.roster = record.roster.as_seen_by(host);
        record
    };
    let mut this = world.hosts[host];
    if let Some(known) = &mut this.known {
        known.record = seen_by_it(known.record);
    }
    if let Some(request) = &mut this.request {
        request.write.puts = seen_by_it(request.write.puts);
    }
    if let Some(tenure) = this.tenure() {
        tenure.needed = tenure.needed.as_seen_by(host);
        tenure.gone = tenure.gone.as_seen_by(host);
        tenure.answers[host] = Answers { vouched: 0, under_way: Ages::NONE };
        tenure.answers.sort_unstable_by_key(Packed::pack);
    }
    let late = world.late.iter().flatten().map(|late| fingerprint(&Write { puts: seen_by_it(late.puts), ..*late }));
    let asked = world.hosts.iter().filter_map(|other| match &other.role {
        Role::Leading(tenure) => Some(fingerprint(&(tenure.needed.has(host), tenure.answers[host]))),
        Role::Following => None,
    });
    let former = world.former.map(|former| Former { record: seen_by_it(former.record), ..former });
    let sums = (late.fold(0, u64::wrapping_add), asked.fold(0, u64::wrapping_add));
    fingerprint(&(this, world.record.map(seen_by_it), former, sums))
}
