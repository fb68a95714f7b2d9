//! Hosts with one lease and one protocol are interchangeable: of the worlds that differ only in who is who, one stands for
//! the others. A tie leaves two that stand for one, which costs a state and hides none.
//!
//! Never: a change of anything but names; `reach::the_bookkeeping_hides_no_state` holds it to that.

use crate::check::fingerprint;
use crate::rules::Rules;
use crate::world::{HOSTS, Nonce, Record, World};

/// Gives equal hosts their numbers by what they look like.
pub fn name_hosts(rules: &Rules, world: &mut World) {
    let is_equal = |one: usize, other: usize| {
        (rules.leases[one], rules.protocols[one]) == (rules.leases[other], rules.protocols[other])
    };
    if let Some(order) = order(is_equal, |host| look_of(world, host)) {
        rename(world, order);
    }
}

/// Who takes each place, among its equals; `None`: everybody keeps its own.
pub fn order(is_equal: impl Fn(usize, usize) -> bool, look_of: impl Fn(usize) -> u64) -> Option<[usize; HOSTS]> {
    let has_equals = |host: usize| (0..HOSTS).any(|other| other != host && is_equal(host, other));
    let looks: [u64; HOSTS] = std::array::from_fn(|host| if has_equals(host) { look_of(host) } else { 0 });
    let mut order: [usize; HOSTS] = std::array::from_fn(|host| host);
    for place in 0..HOSTS {
        for other in place + 1..HOSTS {
            if is_equal(place, other) && looks[order[other]] < looks[order[place]] {
                order.swap(place, other);
            }
        }
    }
    (order != std::array::from_fn(|host| host)).then_some(order)
}

fn rename(world: &mut World, order: [usize; HOSTS]) {
    let (hosts, counts) = (world.hosts, world.former.counts);
    world.hosts = order.map(|host| hosts[host]);
    world.former.counts = order.map(|host| counts[host]);
    let place = |host: usize| order.iter().position(|&other| other == host).unwrap_or(host);
    world.records().for_each(|record| translate(record, place));
    world.late.sort_unstable();
}

fn translate(record: &mut Record, name: impl Fn(usize) -> usize) {
    for nonce in [&mut record.nonce, &mut record.waits_for] {
        *nonce = match *nonce {
            Nonce::Stranger => Nonce::Stranger,
            Nonce::Of(host) => Nonce::of(name(usize::from(host))),
            Nonce::FinishedOf(host) => Nonce::finished_of(name(usize::from(host))),
        };
    }
}

/// Everything that concerns a host, told without any number of a host: what is its own, and what is another's.
fn look_of(world: &World, host: usize) -> u64 {
    let seen_by_it = |mut record: Record| {
        translate(&mut record, |other| usize::from(other != host));
        record
    };
    let mut this = world.hosts[host];
    if let Some(known) = &mut this.known {
        known.record = seen_by_it(known.record);
    }
    if let Some(request) = &mut this.request {
        request.write.puts = seen_by_it(request.write.puts);
    }
    let late = world.late.iter().map(|write| fingerprint(&(write.sort, seen_by_it(write.puts), write.condition)));
    let late = late.fold(0, u64::wrapping_add).to_le_bytes();
    let former = (seen_by_it(world.former.record), world.former.counts[host]);
    fingerprint(&(this, world.record.map(seen_by_it), former, late))
}
