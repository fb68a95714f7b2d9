//! How long the command runs nowhere: not at all after a release; and when successors die while they wait, the hole, and how
//! decision 6 closes it.

use crate::check::Story;
use crate::moves::Move;
use crate::rules::{Protocol, Rules};
use crate::world::Role;

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;
const LEASE: u8 = 3;

impl Story<Rules> {
    fn takes_over(&mut self, host: usize) {
        if self.is_possible(Move::Look(host)) {
            self.step(Move::Look(host));
        }
        self.step(Move::TakeOver(host));
        self.step(Move::Apply { host, round: false });
        self.step(Move::Answer(host));
    }

    /// C is next in line and reads each version at once: how long it would have to wait if it were first now.
    fn wait_of_c(&mut self) -> u8 {
        if self.is_possible(Move::Look(C)) {
            self.step(Move::Look(C));
        }
        let known = self.world.hosts[C].known.unwrap();
        self.rules.wait(known.record.lease).saturating_sub(known.age)
    }
}

#[test]
fn after_a_release_the_successor_starts_at_once() {
    let mut story = Story::of(Rules::new([LEASE; 3]));
    story.takes_over(A);
    story.step(Move::Start(A));
    story.step(Move::End(A));
    story.step(Move::BeginRelease(A));
    story.step(Move::SendRelease(A));
    story.step(Move::ApplyLate { late: 0, round: false });
    story.takes_over(B);
    story.step(Move::Start(B));
}

/// A leads and dies; then A and B, in turn, take over, wait for one step of time, and die.
fn waits_of_c(protocol: Protocol, deaths: usize) -> (Vec<u8>, Story<Rules>) {
    let mut story = Story::of(Rules::new([LEASE; 3]).upgraded([protocol; 3]));
    story.takes_over(A);
    story.step(Move::Start(A));
    let mut waits = vec![story.wait_of_c()];
    story.step(Move::Lose(A));
    for successor in [B, A].into_iter().cycle().take(deaths) {
        story.takes_over(successor);
        assert!(matches!(story.world.hosts[successor].role, Role::Holding(tenure) if !tenure.tree));
        story.wait_of_c();
        story.step(Move::Tick([1; 3]));
        waits.push(story.wait_of_c());
        story.step(Move::Lose(successor));
    }
    (waits, story)
}

#[test]
fn in_the_earlier_protocol_each_successor_that_dies_while_it_waits_starts_the_wait_again() {
    let (waits, _) = waits_of_c(Protocol::Held, 6);
    assert_eq!(waits, [3, 2, 2, 2, 2, 2, 2]);
}

#[test]
fn with_decision_6_one_wait_is_enough_however_many_successors_die() {
    let (waits, mut story) = waits_of_c(Protocol::Waiting, 3);
    assert_eq!(waits, [3, 2, 1, 0]);
    story.takes_over(C);
    story.step(Move::Start(C));
}
