//! Everything that may happen next, and what comes of it.
//!
//! Never: a move that is forced, but the kill when its time has come.

use crate::check::Model;
use crate::ensemble::{apply, delete, may_come_round};
use crate::host;
use crate::properties::{self, Property};
use crate::rules::{Mutation, Rules};
use crate::world::{Condition, HOSTS, Nonce, Role, Sort, Tenure, World};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// Time passes: by so much on each host's clock.
    Tick([u8; HOSTS]),
    Look(usize),
    /// From a server that lags behind.
    LookBack(usize),
    ReadTerm(usize),
    TakeOver(usize),
    Renew(usize),
    /// The ensemble applies the request under way.
    Apply {
        host: usize,
        round: bool,
    },
    /// The ensemble applies a write that nobody waits for.
    ApplyLate {
        late: usize,
        round: bool,
    },
    Answer(usize),
    GiveUp(usize),
    Adopt(usize),
    AdoptFormer(usize),
    Start(usize),
    End(usize),
    BeginRelease(usize),
    SendRelease(usize),
    Leave {
        host: usize,
        remembers: bool,
    },
    Lose(usize),
    Crash(usize),
    Delete,
    Recreate(usize),
}

/// One of each kind, but for `ReadTerm`, which only a mistake takes.
pub const KINDS: [Move; 20] = [
    Move::Tick([1; HOSTS]),
    Move::Look(0),
    Move::LookBack(0),
    Move::TakeOver(0),
    Move::Renew(0),
    Move::Apply { host: 0, round: false },
    Move::ApplyLate { late: 0, round: false },
    Move::Answer(0),
    Move::GiveUp(0),
    Move::Adopt(0),
    Move::AdoptFormer(0),
    Move::Start(0),
    Move::End(0),
    Move::BeginRelease(0),
    Move::SendRelease(0),
    Move::Leave { host: 0, remembers: false },
    Move::Lose(0),
    Move::Crash(0),
    Move::Delete,
    Move::Recreate(0),
];

impl Model for Rules {
    type World = World;
    type Move = Move;
    const PROPERTIES: &'static [Property] = &properties::ALL;

    fn start(&self) -> World {
        World::new()
    }

    fn moves(&self, world: &World, steps: &mut Vec<Move>) {
        moves(self, world, steps);
    }

    fn after(&self, world: &World, step: Move) -> World {
        after(self, world, step)
    }

    fn name_hosts(&self, world: &mut World) {
        crate::symmetry::name_hosts(self, world);
    }

    fn trace(&self, way: &[(Move, World)]) -> String {
        crate::trace::trace(self, way)
    }
}

/// Appends every move that is possible.
pub fn moves(rules: &Rules, world: &World, moves: &mut Vec<Move>) {
    ticks(rules, moves);
    let rounds: &[bool] = if may_come_round(rules, world) { &[false, true] } else { &[false] };
    for host in rules.hosts() {
        of_host(rules, world, host, moves);
        if world.hosts[host].request.is_some_and(|request| !request.applied && rules.commits(world, &request.write)) {
            moves.extend(rounds.iter().map(|&round| Move::Apply { host, round }));
        }
    }
    for (late, write) in world.late.iter().enumerate() {
        if rules.commits(world, write) {
            let rounds = if write.sort == Sort::Creation { &[false] } else { rounds };
            moves.extend(rounds.iter().map(|&round| Move::ApplyLate { late, round }));
        }
    }
    if rules.deletions && world.record.is_some() {
        moves.push(Move::Delete);
    }
}

/// Every choice of a slow or a fast clock for each host.
fn ticks(rules: &Rules, moves: &mut Vec<Move>) {
    let [slow, fast] = rules.rates();
    let choices = if slow == fast { 1 } else { 1 << rules.hosts().count() };
    for choice in 0..choices {
        let advance = |host: usize| if choice >> host & 1 == 0 { slow } else { fast };
        moves.push(Move::Tick(std::array::from_fn(|host| if rules.leases[host] > 0 { advance(host) } else { 0 })));
    }
}

fn of_host(rules: &Rules, world: &World, host: usize, moves: &mut Vec<Move>) {
    let this = &world.hosts[host];
    if this.request.is_some_and(|request| request.applied) {
        moves.push(Move::Answer(host));
    }
    if this.request.is_some() {
        moves.push(Move::GiveUp(host));
    }
    if host::can_adopt(rules, world, host) {
        moves.push(Move::Adopt(host));
    }
    if host::can_adopt_former(world, host) {
        moves.push(Move::AdoptFormer(host));
    }
    if this.role == Role::Following && this.request.is_none() {
        moves.push(Move::LookBack(host));
    }
    if can_look(rules, world, host) {
        moves.push(Move::Look(host));
    }
    match this.role {
        Role::Following => as_follower(rules, world, host, moves),
        Role::Holding(tenure) => as_holder(rules, world, (host, tenure), moves),
        Role::Releasing(_) => {
            if world.late.len() < rules.late_writes {
                moves.push(Move::SendRelease(host));
            }
            moves.extend([false, true].map(|remembers| Move::Leave { host, remembers }));
        }
    }
}

/// A follower reads whenever it likes; a holder, when it is not its record any more.
fn can_look(rules: &Rules, world: &World, host: usize) -> bool {
    let this = &world.hosts[host];
    let news = this.known.is_none_or(|known| known.condition != Condition::PRESENT || !known.counts);
    let holds = world.record.is_some_and(|record| record.nonce == Nonce::of(host));
    world.record.is_some()
        && this.request.is_none()
        && news
        && (this.role == Role::Following || !holds || rules.watchful_holders)
}

fn as_follower(rules: &Rules, world: &World, host: usize, moves: &mut Vec<Move>) {
    let this = &world.hosts[host];
    if this.request.is_some() {
        return;
    }
    if this.known.is_some_and(|known| !rules.is_past(known.condition)) {
        moves.push(Move::TakeOver(host));
        if rules.is(Mutation::TermReadAfterTheRecord) {
            moves.push(Move::ReadTerm(host));
        }
    }
    if rules.deletions && world.record.is_none() && world.late.len() < rules.late_writes {
        moves.push(Move::Recreate(host));
    }
}

fn as_holder(rules: &Rules, world: &World, (host, tenure): (usize, Tenure), moves: &mut Vec<Move>) {
    let alive = !rules.is_past(tenure.condition);
    if world.hosts[host].request.is_none() && alive && host::can_renew(rules, tenure) {
        moves.push(Move::Renew(host));
    }
    if host::can_start(tenure) {
        moves.push(Move::Start(host));
    }
    if tenure.tree {
        moves.push(Move::End(host));
    }
    if host::can_begin_release(rules, world, tenure) {
        moves.push(Move::BeginRelease(host));
    }
    moves.push(Move::Lose(host));
    if host::can_leave_a_releaser(rules, tenure) {
        moves.push(Move::Crash(host));
    }
}

/// The world after `step`.
pub fn after(rules: &Rules, world: &World, step: Move) -> World {
    let mut next = world.clone();
    take(rules, &mut next, step);
    crate::canon::tidy(rules, &mut next);
    next
}

/// Takes a step, without any bookkeeping.
pub fn take(rules: &Rules, next: &mut World, step: Move) {
    match step {
        Move::Tick(advances) => crate::clock::tick(rules, next, advances),
        Move::Look(host) => host::look(rules, next, host),
        Move::LookBack(host) => host::look_back(next, host),
        Move::ReadTerm(host) => host::read_term(next, host),
        Move::TakeOver(host) => host::take_over(rules, next, host),
        Move::Renew(host) => host::renew(rules, next, host),
        Move::Apply { host, round } => apply_request(rules, next, host, round),
        Move::ApplyLate { late, round } => {
            let write = next.late.remove(late);
            apply(rules, next, &write, round);
        }
        Move::Answer(host) => host::answered(rules, next, host),
        Move::GiveUp(host) => host::give_up(rules, next, host),
        Move::Adopt(host) => host::adopt(rules, next, host),
        Move::AdoptFormer(host) => host::adopt_former(rules, next, host),
        Move::Start(host) => host::set_tree(next, host, true),
        Move::End(host) => host::set_tree(next, host, false),
        Move::BeginRelease(host) => host::begin_release(rules, next, host),
        Move::SendRelease(host) => host::send_release(next, host),
        Move::Leave { host, remembers } => host::leave(next, host, remembers),
        Move::Lose(host) => host::lose(rules, next, host),
        Move::Crash(host) => host::crash(rules, next, host),
        Move::Delete => delete(next),
        Move::Recreate(host) => host::recreate(rules, next, host),
    }
}

fn apply_request(rules: &Rules, world: &mut World, host: usize, round: bool) {
    let Some(mut request) = world.hosts[host].request.take() else { return };
    request.write.condition = apply(rules, world, &request.write, round);
    request.applied = true;
    world.hosts[host].request = Some(request);
}
