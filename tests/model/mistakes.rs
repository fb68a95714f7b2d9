//! Each mistake that somebody could make with the lease, planted; and those that turned out to be none.

use crate::rules::Mutation::{self, *};
use crate::rules::Rules;
use crate::verdict::{breaks, holds};

const TWO_LEASES: Rules = Rules::new([1, 2, 0]);

macro_rules! mistakes {
    ($($(#[$about:meta])* $name:ident: $mutation:expr, $rules:expr;)*) => {
        $($(#[$about])* #[test] fn $name() { breaks($rules.but($mutation)); })*
    };
}

mistakes! {
    a_successor_that_does_not_wait_is_caught: NoWait, TWO_LEASES;
    a_lease_counted_from_the_reply_is_caught: LeaseCountedFromTheReply, TWO_LEASES;
    an_adopted_version_that_extends_the_lease_is_caught: AdoptionExtendsTheLease, TWO_LEASES;
    one_nonce_for_two_sendings_is_caught: OneNonceForTwoSendings, TWO_LEASES;
    a_wait_that_does_not_start_again_with_a_new_version_is_caught: CountNotRestarted, TWO_LEASES;
    a_chain_of_take_overs_that_forgets_the_longest_lease_is_caught: NoMaximumOverChains, TWO_LEASES;
    a_waiting_holder_that_renews_with_its_own_lease_is_caught: OwnLeaseWhileWaiting, TWO_LEASES;
    a_lease_without_a_margin_for_drift_is_caught: NoDriftMargin, Rules::new([1, 1, 0]).with_drift();
    a_record_freed_while_the_tree_lives_is_caught: FreedWhileTheTreeLives, TWO_LEASES;
    a_record_freed_during_the_own_wait_is_caught: FreedDuringOwnWait, TWO_LEASES;
    a_record_freed_by_the_releaser_during_the_wait_is_caught: FreedByTheReleaserDuringTheWait, TWO_LEASES;
    a_record_freed_without_a_version_is_caught: FreedWithoutVersions, TWO_LEASES;
    a_record_freed_without_a_look_at_its_nonce_is_caught: FreedWithoutNonce, TWO_LEASES;
    an_own_record_taken_for_free_before_its_wait_is_over_is_caught: FinishedBeforeTheWaitIsOver, TWO_LEASES;
    a_tree_started_again_after_the_release_was_sent_is_caught: RestartedAfterTheRelease, TWO_LEASES;
    a_lost_record_created_with_the_shorter_lease_is_caught: RecreatedWithOwnLease, TWO_LEASES.with_deletions();
    a_creation_that_lands_in_a_later_term_is_caught: RecreatedWhateverTheTerm, TWO_LEASES.with_deletions();
    a_term_that_forgets_the_longest_lease_is_caught: TermKeepsOwnLease, TWO_LEASES.with_deletions();
    a_write_that_does_not_check_the_term_is_caught: TermNotChecked, TWO_LEASES.with_deletions();
    a_term_that_is_read_after_the_record_is_caught: TermReadAfterTheRecord, TWO_LEASES.with_deletions();
    a_release_that_does_not_check_the_term_is_caught: TermNotCheckedByTheRelease, Rules::new([1, 1, 0]).with_deletions();
}

fn is_harmless(mutation: Mutation, rules: Rules) {
    holds(rules.but(mutation));
}

#[test]
fn a_wait_counted_from_the_reply_is_only_slower() {
    is_harmless(CountFromTheReply, TWO_LEASES);
    is_harmless(CountFromTheReply, Rules::new([1, 1, 0]).with_deletions());
}

#[test]
fn a_renewal_that_is_answered_too_late_would_do_no_harm_before_a_release() {
    is_harmless(LateRenewalsCount, TWO_LEASES);
    is_harmless(LateRenewalsCount, Rules::new([1, 1, 0]).with_drift());
}

#[test]
fn the_term_alone_protects_a_release() {
    is_harmless(VersionNotCheckedByTheRelease, TWO_LEASES);
    is_harmless(VersionNotCheckedByTheRelease, Rules::new([1, 1, 0]).with_deletions());
}

#[test]
fn the_version_alone_protects_a_release_unless_the_record_is_deleted() {
    is_harmless(TermNotCheckedByTheRelease, TWO_LEASES);
}

/// How `zookeeper::releaser` does it: by the fencing token, which is the term's.
#[test]
fn a_releaser_may_know_its_record_by_the_term_instead_of_the_nonce() {
    is_harmless(ReleaserKnowsTheTermOnly, TWO_LEASES);
    is_harmless(ReleaserKnowsTheTermOnly, Rules::new([1, 1, 0]).with_deletions());
}

#[test]
fn nothing_but_deletions_needs_the_term() {
    is_harmless(TermNotChecked, TWO_LEASES);
    is_harmless(TermReadAfterTheRecord, TWO_LEASES);
}
