//! What a host does that does not lead: it reads, waits, takes over, leaves and restarts.
//!
//! Never: a look at what only `ZooKeeper` or another host can know.

use super::leader;
use super::rules::{Mistake, Rules};
use super::world::{Former, Holder, Host, Known, Record, Request, Role, Roster, Sending, Sort, World, Write};
use crate::world::Condition;

/// Reads the term and the record. The wait counts from the *first* sight of the version.
pub fn look(rules: &Rules, world: &mut World, host: usize) {
    let Some(record) = world.record else { return };
    let record = Record { untouched: false, ..record };
    sees(rules, &mut world.hosts[host], host, Former { record, condition: Condition::PRESENT });
}

/// Reads from a server that lags behind: the version before the present one. (The term is read first, so it is no newer.)
pub fn look_back(rules: &Rules, world: &mut World, host: usize) {
    if let Some(former) = world.former {
        sees(rules, &mut world.hosts[host], host, former);
    }
}

fn sees(rules: &Rules, this: &mut Host, host: usize, read: Former) {
    let Former { mut record, condition } = read;
    record.roster = record.roster.without(record.roster.ended());
    let counted_on = rules.is(Mistake::NewcomersCountNotRestarted) && !record.roster.has(host);
    let same = |known: &Known| (known.condition, known.record) == (condition, record);
    let age = this.known.filter(|known| same(known) || counted_on).map_or(0, |known| known.age);
    this.known = Some(Known { record, condition, age });
    this.was_member |= rules.is(Mistake::OnceAMemberAlways) && record.roster.has(host);
}

/// How long it still has to wait before it may send a take-over of this version; `None`: it knows of none.
pub fn wait(rules: &Rules, this: &Host, host: usize) -> Option<u8> {
    let known = this.known?;
    let record = known.record;
    if record.free {
        return Some(0);
    }
    let is_member = record.roster.has(host) || this.was_member || record.limit == 0;
    let old = rules.is(Mistake::OldHostTakesOverAfterALease) && !rules.vouches[host];
    let time = match rules.mistake {
        _ if is_member || old => rules.lease,
        Some(Mistake::NewcomerWaitsALease) => rules.lease,
        Some(Mistake::NewcomersOwnLimit) => rules.limits[host],
        _ => record.limit,
    };
    Some(rules.wait(time).saturating_sub(known.age).max(this.promised))
}

/// A take-over is sent only when the wait is over. With a mistake, the wait goes on afterwards.
pub fn can_take_over(rules: &Rules, world: &World, host: usize) -> bool {
    let this = &world.hosts[host];
    let fresh = this.known.is_some_and(|known| !rules.is_past(known.condition));
    let over = wait(rules, this, host).is_some_and(|left| left == 0);
    let may = !this.left || rules.is(Mistake::LeaverTakesOver);
    let early = rules.is(Mistake::TakeOverSentBeforeTheWaitIsOver);
    may && this.role == Role::Following && this.request.is_none() && fresh && (over || early)
}

/// What a holder writes: its limit, and whom it takes for first in line.
pub fn held(rules: &Rules, host: usize, roster: Roster) -> Record {
    let limit = if rules.vouches[host] { rules.limits[host] } else { 0 };
    Record { free: false, holder: Holder::host(host), limit, roster, untouched: false }
}

/// Takes the record over as it was last read, with a fresh nonce for this very sending.
pub fn take_over(rules: &Rules, world: &mut World, host: usize, roster: Roster) {
    world.forget(host);
    let this = &mut world.hosts[host];
    let not_before = wait(rules, this, host).unwrap_or(0);
    let Some(known) = this.known else { return };
    let write = Write { sort: Sort::TakeOver, puts: held(rules, host, roster), condition: known.condition };
    this.request = Some(Request { write, applied: false, sending: Sending { age: 0, not_before } });
    this.sending = None;
}

/// Says that it is gone, and does nothing any more.
pub fn leave(rules: &Rules, world: &mut World, host: usize) {
    world.hosts[host].left = true;
    if !rules.is(Mistake::LeaverTakesOver) {
        leader::give_up(rules, world, host);
        world.forget(host);
        (world.hosts[host].known, world.hosts[host].sending) = (None, None);
    }
}

/// The process is no more, and its tree neither; another one begins, which knows nothing.
pub fn restart(rules: &Rules, world: &mut World, host: usize) {
    leader::give_up(rules, world, host);
    world.forget(host);
    let this = world.hosts[host];
    if rules.is(Mistake::InstanceAndCountOutliveTheProcess) && !this.left {
        world.hosts[host] = Host { known: this.known, ..Host::NEW };
        return;
    }
    world.hosts[host] = Host::NEW;
    for tenure in world.hosts.iter_mut().filter_map(Host::tenure) {
        leader::has_ended(rules, tenure, host);
    }
    let ended = if this.left { Roster::GONE } else { Roster::DEAD };
    world.rosters().for_each(|roster| roster.ends(host, ended));
}
