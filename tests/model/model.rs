//! The lease protocol as a model, explored state by state: with the correct rules no state breaks the promise, and each
//! planted mistake is found. `docs/verification/model.md` says what is modelled. `MODEL_SIZE=n` cuts the bounded ones at n million states.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

mod canon;
mod check;
mod clock;
mod ensemble;
mod host;
mod liveness;
mod mistakes;
mod moves;
mod packed;
mod properties;
mod reach;
mod replay;
mod rules;
mod symmetry;
mod trace;
mod verdict;
mod vouch;
mod waiting;
mod world;

use rules::Rules;
use verdict::{holds, holds_within_bounds};

#[test]
fn two_hosts_never_have_two_live_trees_whatever_their_leases() {
    for leases in [[1, 1, 0], [1, 2, 0], [2, 2, 0], [1, 3, 0], [2, 3, 0], [3, 3, 0]] {
        holds(Rules::new(leases));
    }
}

#[test]
fn two_hosts_never_have_two_live_trees_without_a_releaser() {
    holds(Rules::new([1, 2, 0]).without_releaser());
}

#[test]
fn two_hosts_never_have_two_live_trees_however_many_writes_come_late() {
    for late_writes in [0, 1, 3, 4] {
        holds(Rules::new([1, 2, 0]).with_late_writes(late_writes));
    }
}

#[test]
fn two_hosts_never_have_two_live_trees_though_their_clocks_drift() {
    holds(Rules::new([1, 1, 0]).with_drift());
    holds(Rules::new([1, 2, 0]).with_drift());
}

#[test]
fn two_hosts_never_have_two_live_trees_though_an_operator_deletes_the_record() {
    holds(Rules::new([1, 1, 0]).with_deletions());
    holds(Rules::new([1, 2, 0]).with_deletions().with_late_writes(1));
    holds_within_bounds(Rules::new([1, 1, 0]).with_deletions().with_drift());
}

#[test]
fn three_hosts_with_one_lease_never_have_two_live_trees() {
    holds(Rules::new([1, 1, 1]));
    holds(Rules::new([2, 2, 2]));
}

#[test]
fn three_hosts_with_two_lengths_of_lease_never_have_two_live_trees() {
    holds(Rules::new([1, 1, 2]));
    holds(Rules::new([1, 2, 2]));
}

#[test]
fn three_hosts_with_three_lengths_of_lease_never_have_two_live_trees_as_far_as_we_look() {
    holds_within_bounds(Rules::new([1, 2, 3]));
}

#[test]
fn three_hosts_with_drifting_clocks_never_have_two_live_trees_as_far_as_we_look() {
    holds_within_bounds(Rules::new([1, 1, 1]).with_drift());
}

#[test]
fn three_hosts_with_a_deleted_record_never_have_two_live_trees_as_far_as_we_look() {
    holds_within_bounds(Rules::new([1, 1, 2]).with_deletions());
}
