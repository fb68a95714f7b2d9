//! The lease protocol as a model, explored state by state: with the correct rules no state breaks the promise, and each
//! planted mistake is found. `docs/verification/model.md` says what is modelled. `MODEL_SIZE=n` cuts the bounded ones at n million.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "model/canon.rs"]
mod canon;
#[path = "model/check.rs"]
mod check;
#[path = "model/clock.rs"]
mod clock;
#[path = "model/ensemble.rs"]
mod ensemble;
#[path = "model/host.rs"]
mod host;
#[path = "model/liveness.rs"]
mod liveness;
#[path = "model/mistakes.rs"]
mod mistakes;
#[path = "model/moves.rs"]
mod moves;
#[path = "model/properties.rs"]
mod properties;
#[path = "model/reach.rs"]
mod reach;
#[path = "model/replay.rs"]
mod replay;
#[path = "model/rules.rs"]
mod rules;
#[path = "model/symmetry.rs"]
mod symmetry;
#[path = "model/trace.rs"]
mod trace;
#[path = "model/verdict.rs"]
mod verdict;
#[path = "model/waiting.rs"]
mod waiting;
#[path = "model/world.rs"]
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
