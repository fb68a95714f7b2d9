//! Hosts with one limit are interchangeable: of the worlds that differ only in who is who, one stands for the others. A tie
//! leaves two that stand for one, which costs a state and hides none.
//!
//! Never: a change of anything but names; `reach::the_bookkeeping_hides_no_state` holds it to that.

use super::rules::Rules;
use super::world::{Holder, Record, Role, Roster, Tenure, World, Write};
use crate::check::fingerprint;
use crate::symmetry::order;
use crate::world::HOSTS;

/// Gives equal hosts their numbers by what they look like.
pub fn name_hosts(rules: &Rules, world: &mut World) {
    let is_equal = |one: usize, other: usize| {
        (rules.limits[one], rules.vouches[one]) == (rules.limits[other], rules.vouches[other])
    };
    let looks: [u64; HOSTS] = std::array::from_fn(|host| if rules.limits[host] > 0 { look_of(world, host) } else { 0 });
    if let Some(order) = order(is_equal, looks) {
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
    let seen = |roster: Roster| {
        let others = (0..HOSTS).filter(|&other| other != host && roster.has(other)).count();
        (roster.has(host), others, roster.ended())
    };
    let holds = |record: Record| match record.holder {
        Holder::Nobody => 0,
        Holder::Host(_) => 1 + usize::from(record.is_of(host)),
    };
    let record = |record: Record| (record.free, holds(record), record.limit, seen(record.roster), record.untouched);
    let write = |write: Write| fingerprint(&(write.sort, record(write.puts), write.condition));
    let sum = |prints: &mut dyn Iterator<Item = u64>| prints.fold(0, u64::wrapping_add);

    let this = &world.hosts[host];
    let own = |tenure: Tenure| {
        let answers = &mut (0..HOSTS).filter(|&other| other != host).map(|other| fingerprint(&tenure.answers[other]));
        let Tenure { kill_at, acked, not_before, condition, tree, questions, ended, .. } = tenure;
        let times = (kill_at, acked, not_before, ended);
        (times, condition, seen(tenure.needed), tree, questions, sum(answers), seen(tenure.gone))
    };
    let role = match this.role {
        Role::Following => None,
        Role::Leading(tenure) => Some(own(tenure)),
    };
    let others = world.hosts.iter().filter_map(|other| match other.role {
        Role::Leading(tenure) => Some(fingerprint(&(tenure.needed.has(host), tenure.answers[host]))),
        Role::Following => None,
    });
    let known = this.known.map(|known| (record(known.record), known.condition, known.age));
    let request = this.request.map(|request| (write(request.write), request.applied, request.sending));
    let late = sum(&mut world.late.iter().flatten().map(|late| write(*late)));
    let former = world.former.map(|former| (record(former.record), former.condition));
    let host = (this.left, known, this.promised, role, request, this.sending, this.was_member);
    fingerprint(&(host, world.record.map(record), former, late, sum(&mut others.into_iter())))
}
