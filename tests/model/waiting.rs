//! Decision 6: a record that says *waiting* until the previous lease is over, so that a successor that dies while it waits
//! does not make the next one wait from the start.

use crate::properties::Property;
use crate::rules::Mutation::*;
use crate::rules::{Protocol, Rules};
use crate::verdict::{breaks, happens, holds, holds_within_bounds};
use crate::world::{Condition, Nonce, Role, State, World};

const TWO_LEASES: Rules = Rules::new([1, 2, 0]).proposed();

#[test]
fn decision_6_keeps_the_promise_for_two_hosts_whatever_their_leases() {
    for leases in [[1, 1, 0], [1, 2, 0], [2, 2, 0], [2, 3, 0]] {
        holds(Rules::new(leases).proposed());
    }
}

/// As the code does it: `replay.rs` found that the model did not.
#[test]
fn decision_6_keeps_the_promise_though_a_holder_counts_since_when_it_saw_its_own_record() {
    for leases in [[1, 1, 0], [1, 2, 0]] {
        holds(Rules::new(leases).proposed().with_watchful_holders());
    }
}

#[test]
fn decision_6_keeps_the_promise_though_clocks_drift() {
    holds(Rules::new([1, 1, 0]).with_drift().proposed());
    holds_within_bounds(Rules::new([1, 2, 0]).with_drift().proposed());
}

#[test]
fn decision_6_keeps_the_promise_though_an_operator_deletes_the_record() {
    holds(Rules::new([1, 1, 0]).with_deletions().proposed());
    holds_within_bounds(Rules::new([1, 2, 0]).with_deletions().proposed());
}

#[test]
fn decision_6_keeps_the_promise_for_three_hosts() {
    holds(Rules::new([1, 1, 1]).proposed());
    holds_within_bounds(Rules::new([1, 2, 2]).proposed());
}

#[test]
fn hosts_with_and_without_decision_6_may_share_an_election() {
    use Protocol::{Held, Waiting};
    // Of two hosts the first has it and the second has not: with the longer lease, and with the shorter.
    let two = [Waiting, Held, Held];
    holds(Rules::new([1, 2, 0]).upgraded(two));
    holds(Rules::new([2, 1, 0]).upgraded(two));
    holds(Rules::new([1, 1, 0]).with_drift().upgraded(two));
    holds_within_bounds(Rules::new([1, 2, 0]).with_deletions().with_late_writes(1).upgraded(two));
    holds_within_bounds(Rules::new([2, 1, 0]).with_deletions().with_late_writes(1).upgraded(two));
    for three in [[Held, Waiting, Waiting], [Waiting, Held, Held]] {
        holds(Rules::new([1, 1, 1]).upgraded(three));
    }
}

#[test]
fn a_tree_started_while_the_record_says_waiting_is_caught() {
    breaks(TWO_LEASES.but(StartedWhileWaiting));
}

#[test]
fn a_held_version_that_does_not_restart_the_wait_is_caught() {
    breaks(TWO_LEASES.but(HeldKeepsTheCount));
}

#[test]
fn a_waiting_record_with_the_own_lease_of_its_taker_is_caught() {
    breaks(TWO_LEASES.but(WaitingCarriesOwnLease));
}

#[test]
fn a_record_turned_to_held_before_the_wait_is_over_is_caught() {
    breaks(TWO_LEASES.but(HeldBeforeTheWaitIsOver));
}

#[test]
fn a_waiting_record_taken_for_free_is_caught() {
    breaks(TWO_LEASES.but(WaitingCountsAsFree));
}

#[test]
fn what_is_wrong_without_decision_6_is_wrong_with_it() {
    for mutation in [
        NoWait,
        LeaseCountedFromTheReply,
        AdoptionExtendsTheLease,
        OneNonceForTwoSendings,
        CountNotRestarted,
        FreedWhileTheTreeLives,
        FreedDuringOwnWait,
        FreedByTheReleaserDuringTheWait,
        FreedWithoutVersions,
        FreedWithoutNonce,
        FinishedBeforeTheWaitIsOver,
        RestartedAfterTheRelease,
    ] {
        breaks(TWO_LEASES.but(mutation));
    }
}

/// A holder that lost its place frees the record of a successor that waits, but only of one that waits for itself.
#[test]
fn a_waiting_record_that_is_freed_though_another_is_waited_for_is_caught() {
    breaks(Rules::new([1, 1, 1]).proposed().but(FreedWhoeverIsWaitedFor));
}

#[test]
fn a_record_that_waits_for_an_ended_term_is_freed_by_who_held_that() {
    let never = |rules: &Rules, world: &World| {
        let spares = |host: usize| matches!(world.hosts[host].role, Role::Releasing(condition) if condition == Condition::PRESENT);
        let waits_for = |host: usize| {
            world.record.is_some_and(|record| record.state == State::Waiting && record.waits_for == Nonce::of(host))
        };
        !rules.hosts().any(|host| spares(host) && waits_for(host))
    };
    happens(TWO_LEASES, Property { name: "nobody is spared", holds: never });
}
