//! Once nothing fails any more, one host leads: from *every* state that can be reached.
//!
//! Never: a choice of the adversary; after the healing every host does at once what its rules tell it.

use super::ensemble::commits;
use super::mistakes::TWO;
use super::moves::Move;
use super::rules::{Mistake, Rules};
use super::world::{Role, Roster, Sort, World};
use crate::check::Model;
use crate::properties::Property;
use crate::verdict::{always, happens};
use crate::world::{Condition, HOSTS};

const HEALS: Property<Rules> = Property { name: "once all is well, exactly one leads", holds: one_leads_in_the_end };

#[test]
fn once_all_is_well_exactly_one_leads_wherever_it_began() {
    let two = Rules::new(1, [2, 2, 0]);
    always(two.with_restarts().with_leavers().with_late_writes(1), HEALS);
    always(two.with_deletions(), HEALS);
}

/// Two hosts that are restarted: nobody is in the roster, and the record is held for ever.
#[test]
fn newcomers_that_never_take_over_are_locked_out_for_ever() {
    happens(TWO.with_restarts().but(Mistake::NewcomersNeverTakeOver), HEALS);
}

/// The longest wait is over, and another lease.
fn one_leads_in_the_end(rules: &Rules, world: &World) -> bool {
    let mut world = world.clone();
    lose_late_writes(&mut world);
    for _ in 0..=rules.oldest() + 2 * rules.lease {
        settle(rules, &mut world);
        world = rules.after(&world, Move::Tick(std::array::from_fn(|host| u8::from(rules.limits[host] > 0))));
    }
    settle(rules, &mut world);
    rules.hosts().filter(|&host| world.is_live(host)).count() == 1
}

/// What nobody waits for any more is not applied any more, but for the creation of a lost record.
fn lose_late_writes(world: &mut World) {
    for place in &mut world.late {
        *place = place.filter(|write| write.sort == Sort::Creation);
    }
}

/// All that the hosts do before time passes.
fn settle(rules: &Rules, world: &mut World) {
    let mut renewed = [false; HOSTS];
    let mut steps = Vec::new();
    loop {
        rules.moves(world, &mut steps);
        let next = steps
            .drain(..)
            .filter_map(|step| Some((rank(rules, world, renewed, step)?, step)))
            .min_by_key(|(rank, _)| *rank);
        let Some((_, step)) = next else { return };
        if let Move::Renew { host, .. } = step {
            renewed[host] = true;
        }
        *world = rules.after(world, step);
        lose_late_writes(world);
    }
}

/// What is to be done first; `None`: what is not done at all, but by the adversary.
fn rank(rules: &Rules, world: &World, renewed: [bool; HOSTS], step: Move) -> Option<u8> {
    let over = |host: usize| match world.hosts[host].role {
        Role::Following => false,
        Role::Leading(tenure) => tenure.kill_at == 0 || rules.is_past(tenure.condition),
    };
    let useless = |host: usize| {
        world.hosts[host].request.is_some_and(|request| !request.applied && !commits(world, &request.write))
    };
    let fresh = |host: usize| world.hosts[host].known.is_some_and(|known| known.condition == Condition::PRESENT);
    let all = |host: usize| {
        let others = rules.hosts().filter(|&other| other != host);
        others.map(Roster::of).fold(Roster::EMPTY, std::ops::BitOr::bitor)
    };
    let rank = match step {
        Move::Answer(_) => 0,
        Move::Apply { round: false, .. } => 1,
        Move::GiveUp(host) if useless(host) => 2,
        Move::Adopt(_) => 3,
        Move::Release(host) if over(host) => 4,
        Move::Lose(host) if over(host) => 5,
        Move::Restart(host) if world.hosts[host].left => 6,
        Move::ApplyLate { late, .. } if world.late[late].is_some_and(|write| write.sort == Sort::Creation) => 7,
        Move::Recreate(_) => 8,
        Move::Start(_) => 9,
        Move::Look(_) => 10,
        Move::Renew { host, roster } if !renewed[host] && roster == all(host) => 11,
        Move::TakeOver { host, roster } if fresh(host) && roster == all(host) => 12,
        _ => return None,
    };
    Some(rank)
}
