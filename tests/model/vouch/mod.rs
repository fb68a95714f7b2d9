//! Vouching, explored before it is built: while `ZooKeeper` is away, a leader goes on as long as every host that could take over
//! promises to hold back. `docs/verification/model.md` says what is modelled, decision 29 what is proposed.

mod canon;
mod clock;
mod datagrams;
mod ensemble;
mod follower;
mod leader;
mod mistakes;
mod moves;
mod properties;
mod reach;
mod rules;
mod symmetry;
mod trace;
mod world;

use crate::verdict::{holds, holds_within_bounds};
use rules::Rules;

const TWO: Rules = Rules::new(2, [4, 4, 0]);
/// The second host has a shorter limit.
const TWO_LIMITS: Rules = Rules::new(2, [4, 3, 0]);
/// The shortest times in which there is anything to tell: what takes longer is worth nothing.
const THREE: Rules = Rules::new(1, [2, 2, 2]);

#[test]
fn two_hosts_of_which_one_vouches_for_the_other_never_have_two_live_trees() {
    holds(TWO);
    holds(TWO_LIMITS.with_restarts().with_late_datagrams());
    holds(TWO.with_restarts().with_leavers().with_late_writes(1).with_lagging_servers().with_late_datagrams());
}

#[test]
fn two_hosts_that_vouch_never_have_two_live_trees_though_their_clocks_drift() {
    holds(Rules::new(1, [2, 2, 0]).with_drift().with_late_datagrams());
}

#[test]
fn two_hosts_that_vouch_never_have_two_live_trees_though_an_operator_deletes_the_record() {
    holds(TWO_LIMITS.with_deletions().with_late_writes(1));
}

#[test]
fn a_host_with_the_option_and_one_without_it_never_have_two_live_trees() {
    holds(TWO_LIMITS.with_one_that_does_not_vouch().with_restarts().with_late_writes(1).with_late_datagrams());
}

#[test]
fn three_hosts_that_vouch_never_have_two_live_trees() {
    holds(THREE);
    holds(Rules::new(2, [3, 3, 3]));
}

#[test]
fn three_hosts_that_vouch_with_all_faults_never_have_two_live_trees_as_far_as_we_look() {
    holds_within_bounds(THREE.with_restarts().with_leavers().with_late_writes(1).with_lagging_servers());
}

#[test]
fn three_hosts_that_vouch_with_drifting_clocks_never_have_two_live_trees_as_far_as_we_look() {
    holds_within_bounds(THREE.with_drift());
}

#[test]
fn two_hosts_that_vouch_with_all_faults_at_once_never_have_two_live_trees_as_far_as_we_look() {
    let all = |rules: Rules| {
        rules.with_restarts().with_leavers().with_late_writes(1).with_lagging_servers().with_late_datagrams()
    };
    holds_within_bounds(all(Rules::new(1, [2, 2, 0]).with_drift()));
    holds_within_bounds(all(TWO_LIMITS.with_deletions()));
}
