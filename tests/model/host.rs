//! What a host does: look, take over, renew, start, end, release. SPEC section 3, one function for each sentence.
//!
//! Never: a look at what only `ZooKeeper` or another host can know.

use crate::rules::{Mutation, Protocol, Rules};
use crate::world::{
    Condition, Former, Known, Nonce, Record, Request, Role, Sending, Sort, State, Tenure, Version, World, Write,
};

/// Reads the term and the record. The wait counts from when it was *first* seen what the wait counts from.
pub fn look(rules: &Rules, world: &mut World, host: usize) {
    let Some(record) = world.record else { return };
    let goes_on = |known: &Known| known.counts || rules.is(Mutation::CountNotRestarted);
    let age = world.hosts[host].known.filter(goes_on).map_or(0, |known| known.age);
    let record = Record { untouched: false, ..record };
    world.hosts[host].known = Some(Known { record, condition: Condition::PRESENT, age, counts: true });
}

/// Reads from a server that lags behind: the version before the present one. (The term is read first, so it is no newer.)
pub fn look_back(world: &mut World, host: usize) {
    let Former { record, condition, counts } = world.former;
    let known = world.hosts[host].known.filter(|known| known.counts && counts[host]);
    let age = known.map_or(0, |known| known.age);
    world.hosts[host].known = Some(Known { record, condition, age, counts: counts[host] });
}

/// The mistake of reading the record before the term: here the term's version comes in, after the record's.
pub fn read_term(world: &mut World, host: usize) {
    if let Some(known) = &mut world.hosts[host].known {
        known.condition.term = true;
    }
}

/// The lease that may still run under the record as this host knows it, and for how long.
fn inherited(rules: &Rules, host: usize, known: &Known) -> Option<(u8, u8)> {
    let finished = known.record.nonce == Nonce::finished_of(host);
    let over = match known.record.state {
        State::Free => true,
        State::Held => finished,
        State::Waiting => finished || rules.is(Mutation::WaitingCountsAsFree),
    };
    (!over).then(|| (known.record.lease, rules.wait(known.record.lease).saturating_sub(known.age)))
}

/// First in line: takes the record over as it was last read, with a fresh nonce for this very sending.
pub fn take_over(rules: &Rules, world: &mut World, host: usize) {
    let Some(known) = world.hosts[host].known else { return };
    if !rules.is(Mutation::OneNonceForTwoSendings) {
        world.rename(Nonce::of(host), Nonce::Stranger);
    }
    let own = rules.leases[host];
    let inherited = inherited(rules, host, &known);
    let not_before = if rules.is(Mutation::NoWait) { 0 } else { inherited.map_or(0, |(_, left)| left) };
    let state = match rules.protocols[host] {
        Protocol::Waiting if not_before > 0 => State::Waiting,
        Protocol::Held | Protocol::Waiting => State::Held,
    };
    let lease = match (inherited, state) {
        _ if rules.is(Mutation::NoMaximumOverChains) => own,
        (Some((lease, _)), State::Waiting) if !rules.is(Mutation::WaitingCarriesOwnLease) => lease,
        (Some((lease, _)), State::Held) if rules.protocols[host] == Protocol::Held => lease.max(own),
        _ => own,
    };
    let waits_for = if state == State::Waiting { known.record.last_run() } else { Nonce::Stranger };
    let puts = Record { state, nonce: Nonce::of(host), lease, waits_for, untouched: false };
    let write = Write { sort: Sort::TakeOver, puts, condition: known.condition };
    let waits = inherited.is_some() && rules.is(Mutation::CountFromTheReply);
    // One that puts *waiting* gives no lease, whenever it was sent.
    let gives_none = state == State::Waiting && !rules.is(Mutation::StartedWhileWaiting);
    let age = if gives_none { rules.usable(rules.longest()) } else { 0 };
    let sending = Sending { age, not_before, waits };
    world.hosts[host].request = Some(Request { write, applied: false, sending });
    world.hosts[host].sending = None;
}

/// What a take-over that was applied gives, by its answer or by its nonce: the instants of that very sending.
pub fn begin_tenure(rules: &Rules, world: &mut World, host: usize, taken: (Record, Condition), sending: Sending) {
    let (record, condition) = taken;
    let left = rules.usable(rules.leases[host]).saturating_sub(sending.age);
    let gives = if rules.is(Mutation::LeaseCountedFromTheReply) { rules.usable(rules.leases[host]) } else { left };
    let no_lease_yet = record.state == State::Waiting && !rules.is(Mutation::StartedWhileWaiting);
    let kill_at = if no_lease_yet { None } else { Some(gives) };
    let hosts = &mut world.hosts[host];
    hosts.known = hosts.known.filter(|_| rules.watchful_holders);
    (hosts.sending, hosts.request) = (None, None);
    hosts.role = match kill_at {
        Some(0) => Role::Following,
        _ => Role::Holding(Tenure {
            kill_at,
            not_before: if sending.waits { rules.wait(record.lease) } else { sending.not_before },
            longest: record.lease,
            condition,
            tree: false,
        }),
    };
}

/// A renewal. Under decision 6 the first one turns *waiting* into *held*, once the wait is over.
pub fn renew(rules: &Rules, world: &mut World, host: usize) {
    let Some(tenure) = world.tenure(host) else { return };
    let own = rules.leases[host];
    let waiting = tenure.not_before > 0 && !rules.is(Mutation::OwnLeaseWhileWaiting);
    let lease = if waiting && rules.protocols[host] == Protocol::Held && !rules.is(Mutation::NoMaximumOverChains) {
        tenure.longest.max(own)
    } else {
        own
    };
    let puts = Record { state: State::Held, nonce: Nonce::of(host), lease, ..Record::BLANK };
    let write = Write { sort: Sort::Renewal, puts, condition: tenure.condition };
    let sending = Sending { age: 0, not_before: 0, waits: false };
    world.hosts[host].request = Some(Request { write, applied: false, sending });
}

pub fn can_renew(rules: &Rules, tenure: Tenure) -> bool {
    let in_time = tenure.kill_at != Some(0) || rules.is(Mutation::LateRenewalsCount);
    let held = tenure.kill_at.is_some() || tenure.not_before == 0 || rules.is(Mutation::HeldBeforeTheWaitIsOver);
    in_time && held
}

/// The answer to the request under way: a yes. (A no tells the host to read again, which it may do at any time.)
pub fn answered(rules: &Rules, world: &mut World, host: usize) {
    let Some(request) = world.hosts[host].request.take() else { return };
    let (write, sent) = (request.write, request.sending);
    match (write.sort, &mut world.hosts[host].role) {
        (Sort::TakeOver, Role::Following) => begin_tenure(rules, world, host, (write.puts, write.condition), sent),
        (Sort::Renewal, Role::Holding(tenure)) => {
            tenure.condition = write.condition;
            let whole = rules.usable(rules.leases[host]);
            let from_reply = rules.is(Mutation::LeaseCountedFromTheReply);
            let left = if from_reply { whole } else { whole.saturating_sub(sent.age) };
            // An answer that comes after kill_at counts for nothing.
            if tenure.kill_at != Some(0) || rules.is(Mutation::LateRenewalsCount) {
                tenure.kill_at = Some(tenure.kill_at.unwrap_or(0).max(left));
            }
        }
        _ => {}
    }
}

/// Waits no longer for the answer. The write may be applied all the same, now or later.
pub fn give_up(rules: &Rules, world: &mut World, host: usize) {
    let Some(request) = world.hosts[host].request.take() else { return };
    if request.write.sort == Sort::TakeOver {
        world.hosts[host].sending = Some(request.sending);
    }
    if !request.applied && world.late.len() < rules.late_writes {
        world.late.push(request.write);
    }
}

/// Finds its own nonce in what a lagging server says of the record, which has been taken over since.
pub fn adopt_former(rules: &Rules, world: &mut World, host: usize) {
    let former = world.former;
    if let Some(sending) = world.hosts[host].sending {
        begin_tenure(rules, world, host, (former.record, former.condition), sending);
    }
}

pub fn can_adopt_former(world: &World, host: usize) -> bool {
    let this = &world.hosts[host];
    let ours = world.former.record.nonce == Nonce::of(host);
    ours && this.role == Role::Following && this.request.is_none() && this.sending.is_some()
}

/// Reads a record that carries its own nonce: its reply was lost. A version that is adopted extends nothing.
pub fn adopt(rules: &Rules, world: &mut World, host: usize) {
    let Some(record) = world.record else { return };
    let sending = world.hosts[host].sending;
    let whole = rules.usable(rules.leases[host]);
    match (&mut world.hosts[host].role, sending) {
        (Role::Following, Some(sending)) => begin_tenure(rules, world, host, (record, Condition::PRESENT), sending),
        (Role::Holding(tenure), _) => {
            tenure.condition = Condition::PRESENT;
            if rules.is(Mutation::AdoptionExtendsTheLease) && tenure.kill_at != Some(0) && record.state == State::Held {
                tenure.kill_at = Some(whole);
            }
        }
        (Role::Releasing(condition), _) => *condition = Condition::PRESENT,
        (Role::Following, None) => {}
    }
}

pub fn can_adopt(rules: &Rules, world: &World, host: usize) -> bool {
    let Some(record) = world.record else { return false };
    let ours = record.nonce == Nonce::of(host);
    let unknown = |condition: &Condition| condition.record != Version::Present || !condition.term;
    world.hosts[host].request.is_none()
        && match &world.hosts[host].role {
            Role::Following => ours && record.state != State::Free && world.hosts[host].sending.is_some(),
            Role::Holding(tenure) => ours && record.state != State::Free && unknown(&tenure.condition),
            Role::Releasing(condition) => {
                let term_is_ours = rules.is(Mutation::ReleaserKnowsTheTermOnly) && condition.term;
                // A successor that waits for this very term: nobody runs under its record.
                let waits = record.state == State::Waiting;
                let for_us = record.last_run() == Nonce::of(host) || rules.is(Mutation::FreedWhoeverIsWaitedFor);
                let checked = ours || waits && for_us || term_is_ours || rules.is(Mutation::FreedWithoutNonce);
                checked && record.state != State::Free && unknown(condition)
            }
        }
}

pub fn can_start(tenure: Tenure) -> bool {
    !tenure.tree && tenure.not_before == 0 && tenure.kill_at.is_some_and(|left| left > 0)
}

pub fn set_tree(world: &mut World, host: usize, lives: bool) {
    if let Role::Holding(tenure) = &mut world.hosts[host].role {
        tenure.tree = lives;
    }
}

/// To the release: only when the tree is empty, and only if the own wait is over.
pub fn can_begin_release(rules: &Rules, world: &World, tenure: Tenure) -> bool {
    let room = world.late.len() < rules.late_writes;
    let empty = !tenure.tree || rules.is(Mutation::FreedWhileTheTreeLives);
    let over = tenure.not_before == 0 || rules.is(Mutation::FreedDuringOwnWait);
    empty && over && room
}

pub fn begin_release(rules: &Rules, world: &mut World, host: usize) {
    let Some(tenure) = world.tenure(host) else { return };
    if rules.is(Mutation::FreedWhileTheTreeLives) || rules.is(Mutation::RestartedAfterTheRelease) {
        return free(world, tenure.condition);
    }
    give_up(rules, world, host);
    world.hosts[host].role = Role::Releasing(tenure.condition);
}

pub fn send_release(world: &mut World, host: usize) {
    if let Role::Releasing(condition) = world.hosts[host].role {
        free(world, condition);
    }
}

fn free(world: &mut World, condition: Condition) {
    world.late.push(Write { sort: Sort::Release, puts: Record::BLANK, condition });
}

/// The supervisor is killed, and with it the tree (if not: a holder that does nothing more is as good as dead).
/// What is left behind is a releaser, which knows the nonce and must read the version.
pub fn crash(rules: &Rules, world: &mut World, host: usize) {
    let Some(tenure) = world.tenure(host) else { return };
    give_up(rules, world, host);
    world.rename(Nonce::finished_of(host), Nonce::Stranger);
    world.hosts[host].known = None;
    world.hosts[host].role = Role::Releasing(Condition { term: tenure.condition.term, ..Condition::PAST });
}

pub fn can_leave_a_releaser(rules: &Rules, tenure: Tenure) -> bool {
    rules.releaser && (tenure.not_before == 0 || rules.is(Mutation::FreedByTheReleaserDuringTheWait))
}

/// From the release back into the line, remembering that the own record is as good as free, or nothing.
pub fn leave(world: &mut World, host: usize, remembers: bool) {
    if remembers {
        world.rename(Nonce::finished_of(host), Nonce::Stranger);
        world.rename(Nonce::of(host), Nonce::finished_of(host));
    }
    forget(world, host);
}

/// Gives the tenure up (the tree ends with it), keeping what a mistaken host keeps.
pub fn lose(rules: &Rules, world: &mut World, host: usize) {
    let remembers = rules.is(Mutation::FinishedBeforeTheWaitIsOver);
    give_up(rules, world, host);
    leave(world, host, remembers);
}

fn forget(world: &mut World, host: usize) {
    world.rename(Nonce::of(host), Nonce::Stranger);
    let hosts = &mut world.hosts[host];
    (hosts.role, hosts.sending, hosts.request) = (Role::Following, None, None);
}

/// The record is missing: it is created as held by unknown, with the longest lease that may be running.
pub fn recreate(rules: &Rules, world: &mut World, host: usize) {
    let own = rules.leases[host];
    let lease = if rules.is(Mutation::RecreatedWithOwnLease) { own } else { own.max(world.term_lease) };
    let puts = Record { state: State::Held, lease, untouched: true, ..Record::BLANK };
    let condition = Condition { record: Version::Past { zero: false }, term: true };
    world.late.push(Write { sort: Sort::Creation, puts, condition });
}
