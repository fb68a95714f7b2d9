//! Two worlds that can never be told apart are made equal. This is bookkeeping.
//!
//! Never: a change of behaviour; `reach::the_bookkeeping_hides_no_state` holds it to that.

use super::datagrams::fall_silent;
use super::follower;
use super::rules::{Mistake, Rules};
use super::world::{Host, Role, Roster, Sort, Tenure, World};
use crate::world::{Condition, Version};

pub fn tidy(rules: &Rules, world: &mut World) {
    for place in &mut world.late {
        *place = place.filter(|write| !rules.is_dead(write));
    }
    world.late.sort_unstable();
    for write in world.late.iter_mut().flatten().filter(|write| write.sort == Sort::Creation) {
        write.condition.record = Version::Past { zero: false };
    }
    world.conditions().filter(|condition| rules.is_past(**condition)).for_each(|past| *past = Condition::PAST);
    rules.hosts().for_each(|host| tidy_host(rules, &mut world.hosts[host], host));
    tidy_former(rules, world);
    rules.hosts().for_each(|host| tidy_holder(rules, world, host));
    tidy_ended(world);
}

fn tidy_host(rules: &Rules, this: &mut Host, host: usize) {
    // A request that can never be applied is as good as refused.
    this.request = this.request.filter(|request| request.applied || !rules.is_dead(&request.write));
    let keeps_count = rules.is(Mistake::NewcomersCountNotRestarted);
    this.known = this.known.filter(|known| !rules.is_past(known.condition) || keeps_count);
    // How long ago it was does not matter once the wait is over.
    let wait = follower::wait(rules, &Host { promised: 0, ..*this }, host);
    if let Some(known) = &mut this.known {
        if !keeps_count && wait == Some(0) {
            known.age = rules.oldest();
        }
    }
    if this.left && !rules.is(Mistake::LeaverTakesOver) {
        this.promised = 0;
    }
    fall_silent(rules, this);
    if let Role::Leading(tenure) = &mut this.role {
        if tenure.needed.ended() == Roster::EMPTY {
            tenure.ended = rules.usable(rules.lease);
        }
    }
}

/// A version that is past tells nothing, but to the one who finds its nonce there.
fn tidy_former(rules: &Rules, world: &mut World) {
    let Some(former) = world.former else { return };
    let waits = |host: usize| world.hosts[host].role == Role::Following && world.hosts[host].sending.is_some();
    let finds = |host: usize| former.record.is_of(host) && waits(host);
    if rules.is_past(former.condition) && !rules.hosts().any(finds) {
        world.former = None;
    }
}

/// Forgets nonces that nobody carries, sendings that nobody could answer, and tenures in which nothing is left to do.
fn tidy_holder(rules: &Rules, world: &mut World, host: usize) {
    let carried = world.records().any(|record| record.is_of(host));
    let this = &mut world.hosts[host];
    if !carried {
        this.sending = None;
    }
    if let Role::Leading(Tenure { kill_at: 0, condition, .. }) = this.role {
        let answers = rules.is(Mistake::AnswerAfterKillAtCounts);
        if !carried && this.request.is_none() && rules.is_past(condition) && !answers {
            this.role = Role::Following;
        }
    }
    if this.role == Role::Following && this.sending.is_none() && this.request.is_none() {
        world.forget(host);
    }
}

/// Nobody takes over for an instance that has ended, and only a leader waits for its answer.
fn tidy_ended(world: &mut World) {
    for known in world.hosts.iter_mut().filter_map(|host| host.known.as_mut()) {
        known.record.roster = known.record.roster.without(known.record.roster.ended());
    }
}
