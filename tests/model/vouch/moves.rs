//! Everything that may happen next, and what comes of it.
//!
//! Never: a move that is forced, but the kill when its time has come.

use super::ensemble::{apply, commits, creation, delete, may_come_round};
use super::rules::{Mistake, Rules};
use super::world::{Former, Role, Roster, Sort, Tenure, World};
use super::{clock, datagrams, follower, leader};
use crate::check::Model;
use crate::properties::Property;
use crate::world::{Condition, HOSTS};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// Time passes: by so much on each host's clock.
    Tick([u8; HOSTS]),
    Look(usize),
    /// From a server that lags behind.
    LookBack(usize),
    TakeOver {
        host: usize,
        roster: Roster,
    },
    Renew {
        host: usize,
        roster: Roster,
    },
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
    /// Asks everyone who is needed; nobody needed: prolongs its own lease up to the limit.
    Ask(usize),
    /// A question of this age arrives, and is answered with yes.
    Promise {
        leader: usize,
        host: usize,
        age: u8,
    },
    /// That answer arrives.
    Hear {
        leader: usize,
        host: usize,
        age: u8,
    },
    Leave(usize),
    HearGone {
        leader: usize,
        gone: Roster,
    },
    Start(usize),
    End(usize),
    Release(usize),
    Lose(usize),
    Restart(usize),
    Delete,
    Recreate(usize),
    /// Only of a mistake: promises are taken for a lease.
    Presume(usize),
}

impl Model for Rules {
    type World = World;
    type Move = Move;
    const PROPERTIES: &'static [Property<Self>] = &super::properties::ALL;

    fn start(&self) -> World {
        World::new(self.deletions)
    }

    fn moves(&self, world: &World, moves: &mut Vec<Move>) {
        ticks(self, moves);
        let rounds: &[bool] = if may_come_round(self, world) { &[false, true] } else { &[false] };
        for host in self.hosts() {
            of_request(world, host, rounds, moves);
            as_follower(self, world, host, moves);
            if let Role::Leading(tenure) = world.hosts[host].role {
                as_leader(self, world, (host, tenure), moves);
                direct(self, world, (host, tenure), moves);
            }
        }
        for (late, write) in world.late.iter().enumerate() {
            if let Some(write) = write.filter(|write| commits(world, write)) {
                let rounds = if write.sort == Sort::Creation { &[false] } else { rounds };
                moves.extend(rounds.iter().map(|&round| Move::ApplyLate { late, round }));
            }
        }
        if self.deletions && world.record.is_some() {
            moves.push(Move::Delete);
        }
    }

    fn after(&self, world: &World, step: Move) -> World {
        let mut next = world.clone();
        take(self, &mut next, step);
        super::canon::tidy(self, &mut next);
        next
    }

    fn name_hosts(&self, world: &mut World) {
        super::symmetry::name_hosts(self, world);
    }

    fn trace(&self, way: &[(Move, World)]) -> String {
        super::trace::trace(self, way)
    }
}

/// Every choice of a slow or a fast clock for each host.
fn ticks(rules: &Rules, moves: &mut Vec<Move>) {
    let [slow, fast] = rules.rates();
    let choices = if slow == fast { 1 } else { 1 << rules.hosts().count() };
    for choice in 0..choices {
        let advance = |host: usize| if choice >> host & 1 == 0 { slow } else { fast };
        moves.push(Move::Tick(std::array::from_fn(|host| if rules.limits[host] > 0 { advance(host) } else { 0 })));
    }
}

fn of_request(world: &World, host: usize, rounds: &[bool], moves: &mut Vec<Move>) {
    let Some(request) = world.hosts[host].request else { return };
    moves.push(Move::GiveUp(host));
    if request.applied {
        moves.push(Move::Answer(host));
    } else if commits(world, &request.write) {
        moves.extend(rounds.iter().map(|&round| Move::Apply { host, round }));
    }
}

/// Of a host that does not lead, or may have to learn that it does.
fn as_follower(rules: &Rules, world: &World, host: usize, moves: &mut Vec<Move>) {
    let this = &world.hosts[host];
    let idle = this.role == Role::Following && this.request.is_none();
    let reads = idle && (!this.left || rules.is(Mistake::LeaverTakesOver));
    if reads && world.record.is_some() && this.known.is_none_or(|known| known.condition != Condition::PRESENT) {
        moves.push(Move::Look(host));
    }
    if reads && world.former.is_some() {
        moves.push(Move::LookBack(host));
    }
    if follower::can_take_over(rules, world, host) {
        moves.extend(rosters(rules, host).map(|roster| Move::TakeOver { host, roster }));
    }
    if reads && rules.deletions && world.record.is_none() && world.has_room(rules.late_writes.max(1)) {
        moves.push(Move::Recreate(host));
    }
    if rules.leavers && this.role == Role::Following && !this.left {
        moves.push(Move::Leave(host));
    }
    if rules.restarts || this.left {
        moves.push(Move::Restart(host));
    }
    if read(world).is_some_and(|read| leader::can_adopt(rules, world, host, read)) {
        moves.push(Move::Adopt(host));
    }
    if world.former.is_some_and(|former| leader::can_adopt(rules, world, host, former)) {
        moves.push(Move::AdoptFormer(host));
    }
    let asked = this.request.is_some_and(|request| request.write.puts.roster == Roster::EMPTY);
    if rules.is(Mistake::LeaseFromPromisesAlone) && this.role == Role::Following && asked {
        moves.push(Move::Presume(host));
    }
}

fn as_leader(rules: &Rules, world: &World, (host, tenure): (usize, Tenure), moves: &mut Vec<Move>) {
    if world.hosts[host].request.is_none() && tenure.kill_at > 0 && !rules.is_past(tenure.condition) {
        moves.extend(rosters(rules, host).map(|roster| Move::Renew { host, roster }));
    }
    if leader::can_start(rules, tenure, world.hosts[host].promised) {
        moves.push(Move::Start(host));
    }
    if tenure.tree {
        moves.push(Move::End(host));
    }
    if leader::can_release(rules, world, (host, tenure)) {
        moves.push(Move::Release(host));
    }
    moves.push(Move::Lose(host));
}

/// What the direct network may bring about between a leader and the others.
fn direct(rules: &Rules, world: &World, (leader, tenure): (usize, Tenure), moves: &mut Vec<Move>) {
    if datagrams::can_ask(rules, tenure, leader) {
        moves.push(Move::Ask(leader));
    }
    for host in rules.hosts() {
        let member = &world.hosts[host];
        let asked = datagrams::questions(rules, (leader, tenure), host, member);
        moves.extend(asked.each().map(|age| Move::Promise { leader, host, age }));
        moves.extend(tenure.answers[host].under_way.each().map(|age| Move::Hear { leader, host, age }));
        if datagrams::may_hear_of_gone(tenure, host, member) {
            moves.push(Move::HearGone { leader, gone: Roster::of(host) });
        }
    }
    if tenure.needed.includes(Roster::GONE) {
        moves.push(Move::HearGone { leader, gone: Roster::GONE });
    }
}

/// Whomever of the others the leader may take for first in line.
fn rosters(rules: &Rules, host: usize) -> impl Iterator<Item = Roster> + use<> {
    let vouches = rules.vouches;
    let others: Vec<_> = rules.hosts().filter(|&other| vouches[host] && other != host && vouches[other]).collect();
    (0_usize..1 << others.len()).map(move |choice| {
        let chosen = others.iter().enumerate().filter(|(place, _)| choice >> place & 1 == 1);
        chosen.fold(Roster::EMPTY, |roster, (_, &other)| roster | Roster::of(other))
    })
}

fn read(world: &World) -> Option<Former> {
    world.record.map(|record| Former {
        record: super::world::Record { untouched: false, ..record },
        condition: Condition::PRESENT,
    })
}

/// Takes a step, without any bookkeeping.
pub fn take(rules: &Rules, next: &mut World, step: Move) {
    match step {
        Move::Tick(advances) => clock::tick(rules, next, advances),
        Move::Look(host) => follower::look(rules, next, host),
        Move::LookBack(host) => follower::look_back(rules, next, host),
        Move::TakeOver { host, roster } => follower::take_over(rules, next, host, roster),
        Move::Renew { host, roster } => leader::renew(rules, next, host, roster),
        Move::Apply { host, round } => apply_request(rules, next, host, round),
        Move::ApplyLate { late, round } => {
            if let Some(write) = next.late[late].take() {
                apply(rules, next, &write, round);
            }
        }
        Move::Answer(host) => leader::answered(rules, next, host),
        Move::GiveUp(host) => leader::give_up(rules, next, host),
        Move::Adopt(host) => adopt(rules, next, host, read(next)),
        Move::AdoptFormer(host) => adopt(rules, next, host, next.former),
        Move::Ask(host) => datagrams::ask(rules, next, host),
        Move::Promise { leader, host, age } => datagrams::promise(rules, next, (leader, host), age),
        Move::Hear { leader, host, age } => datagrams::hear(rules, next, (leader, host), age),
        Move::Leave(host) => follower::leave(rules, next, host),
        Move::HearGone { leader, gone } => datagrams::hear_gone(rules, next, leader, gone),
        Move::Start(host) => leader::set_tree(next, host, true),
        Move::End(host) => leader::set_tree(next, host, false),
        Move::Release(host) => leader::release(rules, next, host),
        Move::Lose(host) => leader::lose(rules, next, host),
        Move::Restart(host) => follower::restart(rules, next, host),
        Move::Delete => delete(rules, next),
        Move::Recreate(host) => {
            let write = creation(rules, next, host);
            next.add_late(write);
        }
        Move::Presume(host) => leader::presume(rules, next, host),
    }
}

fn adopt(rules: &Rules, world: &mut World, host: usize, read: Option<Former>) {
    if let Some(read) = read {
        leader::adopt(rules, world, host, read);
    }
}

fn apply_request(rules: &Rules, world: &mut World, host: usize, round: bool) {
    let Some(mut request) = world.hosts[host].request.take() else { return };
    request.write.condition = apply(rules, world, &request.write, round);
    request.applied = true;
    world.hosts[host].request = Some(request);
}
