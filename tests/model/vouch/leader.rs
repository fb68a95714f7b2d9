//! What a leader does: it renews, asks, counts the answers, starts and ends its tree, and releases.
//!
//! Never: a look at what only `ZooKeeper` or another host can know.

use super::follower::held;
use super::rules::{Mistake, Rules};
use super::world::{Ages, Answers, Request, Role, Roster, Sending, Sort, Tenure, World, Write};
use super::world::{Former, Record};
use crate::world::{Condition, HOSTS, Version};

/// What a take-over that was applied gives, by its answer or by its nonce: the instants of that very sending.
pub fn begin(rules: &Rules, world: &mut World, host: usize, taken: Former, sending: Sending) {
    let this = &mut world.hosts[host];
    (this.known, this.request, this.sending) = (None, None, None);
    let worthless = rules.usable(rules.lease);
    let kill_at = worthless.saturating_sub(sending.age);
    if kill_at == 0 {
        this.role = Role::Following;
        return;
    }
    this.role = Role::Leading(Tenure {
        kill_at,
        acked: sending.age,
        not_before: sending.not_before,
        condition: taken.condition,
        needed: taken.record.roster,
        tree: false,
        questions: Ages::NONE,
        answers: [Answers { vouched: worthless, under_way: Ages::NONE }; HOSTS],
        ended: worthless,
        gone: Roster::EMPTY,
    });
}

/// From its sending on, those of its roster are needed, too.
pub fn renew(rules: &Rules, world: &mut World, host: usize, roster: Roster) {
    let Some(tenure) = world.hosts[host].tenure() else { return };
    tenure.needed = match rules.mistake {
        Some(Mistake::NeededIsTheAcknowledgedRosterOnly) => tenure.needed,
        Some(Mistake::NeededIsTheLastSentRosterOnly) => roster,
        _ => tenure.needed | roster.without(tenure.gone),
    };
    let write = Write { sort: Sort::Renewal, puts: held(rules, host, roster), condition: tenure.condition };
    let sending = Sending { age: 0, not_before: 0 };
    world.hosts[host].request = Some(Request { write, applied: false, sending });
}

/// The answer to the request under way: a yes. (A no tells the host to read again, which it may do at any time.)
pub fn answered(rules: &Rules, world: &mut World, host: usize) {
    let Some(Request { write, sending, .. }) = world.hosts[host].request.take() else { return };
    let read = Former { record: write.puts, condition: write.condition };
    match world.hosts[host].tenure() {
        None => begin(rules, world, host, read, sending),
        Some(tenure) => {
            tenure.condition = write.condition;
            tenure.needed = write.puts.roster.without(tenure.gone);
            if tenure.kill_at > 0 {
                tenure.acked = sending.age;
                tenure.kill_at = tenure.kill_at.max(rules.usable(rules.lease).saturating_sub(sending.age));
                reckon(rules, host, tenure);
            }
        }
    }
}

/// Waits no longer for the answer. The write may be applied all the same, now or later.
pub fn give_up(rules: &Rules, world: &mut World, host: usize) {
    let Some(request) = world.hosts[host].request.take() else { return };
    if request.write.sort == Sort::TakeOver {
        world.hosts[host].sending = Some(request.sending);
    }
    if !request.applied && world.has_room(rules.late_writes) {
        world.add_late(request.write);
    }
}

/// Reads a record that carries its own nonce. A version that is adopted extends nothing.
pub fn adopt(rules: &Rules, world: &mut World, host: usize, read: Former) {
    let sending = world.hosts[host].sending;
    match (world.hosts[host].tenure(), sending) {
        (Some(tenure), _) => {
            tenure.condition = read.condition;
            let forgets = rules.is(Mistake::AdoptionForgetsWritesUnderWay);
            tenure.needed = if forgets { read.record.roster } else { tenure.needed | read.record.roster };
        }
        (None, Some(sending)) => begin(rules, world, host, read, sending),
        (None, None) => {}
    }
}

/// Whether this host would know what it reads for its own, and learn something by it. A leader believes in no version before
/// the one that it knows.
pub fn can_adopt(rules: &Rules, world: &World, host: usize, read: Former) -> bool {
    let this = &world.hosts[host];
    let news = |tenure: Tenure| {
        tenure.condition.record != Version::Present
            || !tenure.needed.includes(read.record.roster)
            || rules.is(Mistake::AdoptionForgetsWritesUnderWay)
    };
    let useful = match this.role {
        Role::Following => this.sending.is_some(),
        Role::Leading(tenure) => read.condition == Condition::PRESENT && news(tenure),
    };
    read.record.is_of(host) && this.request.is_none() && useful
}

/// `kill_at` as the promises and the limit have it: they prolong what `ZooKeeper` gave, while it lasts.
pub fn reckon(rules: &Rules, host: usize, tenure: &mut Tenure) {
    if !rules.vouches[host] || tenure.kill_at == 0 && !rules.is(Mistake::AnswerAfterKillAtCounts) {
        return;
    }
    let ages = (0..HOSTS).filter(|&other| tenure.needed.has(other)).map(|other| tenure.answers[other].vouched);
    let ended = tenure.needed.ended() != Roster::EMPTY;
    let ages = ages.chain(ended.then_some(tenure.ended));
    let vouched = if rules.is(Mistake::OneAnswerIsEnough) { ages.min() } else { ages.max() };
    let promises = rules.usable(rules.lease).saturating_sub(vouched.unwrap_or(0));
    let limit = rules.usable(rules.limits[host]).saturating_sub(tenure.acked);
    let until = if rules.is(Mistake::LeaderIgnoresTheLimit) { promises } else { promises.min(limit) };
    tenure.kill_at = tenure.kill_at.max(until);
}

/// An instance that may be needed is no more. What it promised stays promised.
pub fn has_ended(rules: &Rules, tenure: &mut Tenure, host: usize) {
    let none = Answers { vouched: rules.usable(rules.lease), under_way: Ages::NONE };
    let said = std::mem::replace(&mut tenure.answers[host], none);
    if tenure.needed.has(host) {
        let said = said.under_way.newest().map_or(said.vouched, |newest| newest.min(said.vouched));
        tenure.ended = tenure.ended.min(said);
    }
}

/// The wait was over before the take-over was sent; with a mistake it goes on, and promises count then, too.
fn is_over(rules: &Rules, tenure: Tenure, promised: u8) -> bool {
    let promised = promised > 0 && rules.is(Mistake::TakeOverSentBeforeTheWaitIsOver);
    tenure.not_before == 0 && !promised
}

pub fn can_start(rules: &Rules, tenure: Tenure, promised: u8) -> bool {
    !tenure.tree && tenure.kill_at > 0 && is_over(rules, tenure, promised)
}

pub fn set_tree(world: &mut World, host: usize, lives: bool) {
    if let Some(tenure) = world.hosts[host].tenure() {
        tenure.tree = lives;
    }
}

/// At any time there is room for one release.
pub fn can_release(rules: &Rules, world: &World, (host, tenure): (usize, Tenure)) -> bool {
    !tenure.tree && is_over(rules, tenure, world.hosts[host].promised) && world.has_room(rules.late_writes.max(1))
}

/// Frees the record, when the tree is empty, and starts no other: so does a releaser.
pub fn release(rules: &Rules, world: &mut World, host: usize) {
    let Some(tenure) = world.tenure(host) else { return };
    lose(rules, world, host);
    world.add_late(Write { sort: Sort::Release, puts: Record::FREE, condition: tenure.condition });
}

/// Gives the tenure up; the tree ends with it.
pub fn lose(rules: &Rules, world: &mut World, host: usize) {
    give_up(rules, world, host);
    world.forget(host);
    let this = &mut world.hosts[host];
    (this.role, this.sending) = (Role::Following, None);
}

/// The mistake of a lease from promises alone: nobody is needed, so a take-over counts before it is answered.
pub fn presume(rules: &Rules, world: &mut World, host: usize) {
    let Some(request) = world.hosts[host].request else { return };
    give_up(rules, world, host);
    begin(rules, world, host, Former { record: request.write.puts, condition: Condition::PAST }, request.sending);
}
