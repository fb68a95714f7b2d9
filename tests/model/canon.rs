//! Two worlds that can never be told apart are made equal. This is bookkeeping.
//!
//! Never: a change of behaviour; `reach::the_bookkeeping_hides_no_state` holds it to that.

use crate::rules::{Mutation, Protocol, Rules};
use crate::world::{Condition, Former, Known, Nonce, Record, Role, Sort, State, Tenure, Version, World};

pub fn tidy(rules: &Rules, world: &mut World) {
    tidy_conditions(rules, world);
    rules.hosts().for_each(|host| tidy_host(rules, world, host));
    tidy_former(rules, world);
    rules.hosts().for_each(|host| tidy_nonces(rules, world, host));
    if !rules.deletions {
        world.term_lease = 0;
        if let Some(record) = &mut world.record {
            record.untouched = false;
        }
    }
    // Who has left does not free it any more.
    world.records().filter(|record| matches!(record.waits_for, Nonce::FinishedOf(_))).for_each(|record| {
        record.waits_for = Nonce::Stranger;
    });
    world.late.sort_unstable();
}

fn tidy_conditions(rules: &Rules, world: &mut World) {
    world.late.retain(|write| !rules.is_dead(write));
    for write in world.late.iter_mut().filter(|write| write.sort == Sort::Creation) {
        write.condition.record = Version::Past { zero: false };
    }
    if !rules.frees_carelessly() {
        world.conditions().filter(|condition| rules.is_past(**condition)).for_each(|past| *past = Condition::PAST);
    }
}

fn tidy_host(rules: &Rules, world: &mut World, id: usize) {
    let host = &mut world.hosts[id];
    // A request that can never be applied is as good as refused.
    host.request = host.request.filter(|request| request.applied || !rules.is_dead(&request.write));
    if let Some(request) = host.request.as_mut().filter(|request| request.applied) {
        // What it wrote is in the record now; a take-over is yet to be heard of.
        if request.write.sort == Sort::Renewal {
            request.write.puts = Record::BLANK;
        }
    }
    host.known = host.known.and_then(|known| tidy_known(rules, known));
    if let Role::Holding(tenure) = &mut host.role {
        if tenure.not_before == 0 || rules.protocols[id] == Protocol::Waiting {
            tenure.longest = 0;
        }
    }
}

/// A version that is past tells nothing, but to the one who finds its nonce there.
fn tidy_former(rules: &Rules, world: &mut World) {
    let former = world.former;
    let adopted = matches!(former.record.nonce, Nonce::Of(host) if world.hosts[usize::from(host)].sending.is_some());
    if rules.is_past(former.condition) && !adopted {
        world.former = Former { counts: former.counts, ..Former::BLANK };
    }
}

fn tidy_known(rules: &Rules, known: Known) -> Option<Known> {
    let useless = rules.is_past(known.condition);
    let never_restarts = rules.is(Mutation::CountNotRestarted);
    let free = !useless && known.record.state == State::Free && !never_restarts;
    match (useless, known.counts || never_restarts) {
        (true, false) => None,
        (true, true) => Some(Known { record: Record::BLANK, condition: Condition::PAST, ..known }),
        _ if free => Some(Known { age: 0, ..known }),
        _ => Some(known),
    }
}

/// Forgets nonces that nobody carries, sendings that nobody could answer, and roles in which nothing is left to do.
fn tidy_nonces(rules: &Rules, world: &mut World, host: usize) {
    let carried = world.has(Nonce::of(host));
    let this = &mut world.hosts[host];
    if !carried {
        this.sending = None;
        if this.request.is_none() && is_over(rules, this.role) {
            this.role = Role::Following;
        }
    }
    let asks = this.request.is_some_and(|request| request.write.sort == Sort::TakeOver);
    if this.role == Role::Following && this.sending.is_none() && !asks {
        world.rename(Nonce::of(host), Nonce::Stranger);
    }
}

fn is_over(rules: &Rules, role: Role) -> bool {
    match role {
        Role::Following => true,
        Role::Holding(Tenure { kill_at: Some(0), condition, .. }) => rules.is_past(condition),
        Role::Holding(_) => false,
        Role::Releasing(condition) => rules.is_past(condition) && !rules.frees_what_is_not_its_own(),
    }
}
