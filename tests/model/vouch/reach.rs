//! A model in which nothing happens breaks no promise: here it is shown what does happen.

use std::collections::HashSet;
use std::mem::discriminant;

use super::canon::tidy;
use super::moves::{Move, take};
use super::rules::Rules;
use super::symmetry::name_hosts;
use super::world::{Roster, World};
use crate::check::Story;
use crate::reach::hides_no_state;
use crate::verdict::holds;
use crate::world::HOSTS;

const A: usize = 0;
const B: usize = 1;
const LEASE: u8 = 2;
const LIMIT: u8 = 6;

impl Story<Rules> {
    /// A leads, B follows and is in the roster.
    fn new() -> Self {
        let mut story = Self::of(Rules::new(LEASE, [LIMIT, LIMIT, 0]).with_late_datagrams());
        story.step(Move::Look(A));
        story.step(Move::TakeOver { host: A, roster: Roster::of(B) });
        story.is_acknowledged();
        story.step(Move::Start(A));
        story.step(Move::Look(B));
        story
    }

    fn is_acknowledged(&mut self) {
        self.step(Move::Apply { host: A, round: false });
        self.step(Move::Answer(A));
    }

    fn time_passes(&mut self) {
        self.step(Move::Tick([1, 1, 0]));
    }

    fn b_vouches(&mut self) {
        self.step(Move::Ask(A));
        self.step(Move::Promise { leader: A, host: B, age: 0 });
        self.step(Move::Hear { leader: A, host: B, age: 0 });
    }

    fn may_take_over(&self) -> bool {
        self.is_possible(Move::TakeOver { host: B, roster: Roster::EMPTY })
    }
}

/// No write is applied and nobody reads: the tree is alive all the time, and the same term goes on afterwards.
#[test]
fn a_leader_that_is_vouched_for_lives_through_an_outage_of_several_leases_and_leads_on() {
    let mut story = Story::new();
    for _ in 1..LIMIT {
        story.time_passes();
        assert!(story.world.is_live(A) && !story.may_take_over(), "{:?}", story.world);
        story.b_vouches();
    }
    story.step(Move::Renew { host: A, roster: Roster::of(B) });
    story.is_acknowledged();
    story.time_passes();
    assert!(story.world.is_live(A), "the renewal counts anew: {:?}", story.world);
}

#[test]
fn at_the_limit_the_outage_ends_the_command_though_everyone_promises() {
    let mut story = Story::new();
    for _ in 1..LIMIT {
        story.time_passes();
        story.b_vouches();
    }
    story.time_passes();
    assert!(!story.world.is_live(A), "{:?}", story.world);
}

#[test]
fn without_a_promise_the_command_ends_after_one_lease_and_the_member_takes_over() {
    let mut story = Story::new();
    for _ in 0..LEASE {
        assert!(story.world.is_live(A) && !story.may_take_over(), "{:?}", story.world);
        story.time_passes();
    }
    assert!(!story.world.is_live(A) && story.may_take_over(), "{:?}", story.world);
}

#[test]
fn a_member_that_left_and_said_so_is_not_needed() {
    let mut story = Story::new();
    story.rules = story.rules.with_leavers();
    story.step(Move::Leave(B));
    story.time_passes();
    story.step(Move::HearGone { leader: A, gone: Roster::of(B) });
    story.time_passes();
    assert!(story.world.is_live(A), "{:?}", story.world);
}

/// All but the end of a tree: it leads to what would be if the tree had not started yet; and what only a mistake does.
#[test]
fn every_kind_of_step_is_taken() {
    let two = Rules::new(1, [2, 2, 0]).with_late_writes(1);
    let mut taken = holds(two.with_restarts().with_leavers().with_lagging_servers().with_late_datagrams()).steps;
    taken.extend(holds(two.with_deletions()).steps);
    let kinds = [
        Move::Tick([1; HOSTS]),
        Move::Look(0),
        Move::TakeOver { host: 0, roster: Roster::EMPTY },
        Move::Renew { host: 0, roster: Roster::EMPTY },
        Move::Apply { host: 0, round: false },
        Move::ApplyLate { late: 0, round: false },
        Move::Answer(0),
        Move::GiveUp(0),
        Move::Adopt(0),
        Move::AdoptFormer(0),
        Move::Ask(0),
        Move::Promise { leader: 0, host: 0, age: 0 },
        Move::Hear { leader: 0, host: 0, age: 0 },
        Move::Leave(0),
        Move::HearGone { leader: 0, gone: Roster::EMPTY },
        Move::Start(0),
        Move::Release(0),
        Move::Lose(0),
        Move::Restart(0),
        Move::Delete,
        Move::Recreate(0),
    ];
    let not_taken: HashSet<_> = kinds.iter().map(discriminant).filter(|kind| !taken.contains(kind)).collect();
    assert!(not_taken.is_empty(), "{not_taken:?}");
}

/// Every state that is reached without any bookkeeping is, after it, one of those that are reached with it.
#[test]
fn the_bookkeeping_hides_no_state() {
    let two = Rules::new(1, [2, 2, 0]);
    let all = two.with_restarts().with_leavers();
    for rules in [two.with_late_writes(1), two.with_late_datagrams(), all.with_lagging_servers(), two.with_deletions()]
    {
        hides_no_state(&rules, take, keep_books, |rules, world| {
            for place in &mut world.late {
                *place = place.filter(|write| !rules.is_dead(write));
            }
        });
    }
}

fn keep_books(rules: &Rules, world: &mut World) {
    tidy(rules, world);
    name_hosts(rules, world);
}
