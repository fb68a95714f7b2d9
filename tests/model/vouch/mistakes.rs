//! Each mistake that somebody could make with vouching, planted.

use super::rules::Mistake::*;
use super::rules::Rules;
use crate::verdict::breaks;

const TWO: Rules = Rules::new(2, [4, 4, 0]).with_late_datagrams();
/// The second host has a shorter limit.
const TWO_LIMITS: Rules = Rules::new(2, [4, 3, 0]).with_late_datagrams();
const THREE: Rules = Rules::new(2, [3, 3, 3]);

macro_rules! mistakes {
    ($($(#[$about:meta])* $name:ident: $mistake:expr, $rules:expr;)*) => {
        $($(#[$about])* #[test] fn $name() { breaks($rules.but($mistake)); })*
    };
}

mistakes! {
    a_promise_that_is_not_kept_is_caught: PromiseWithoutPromisedUntil, TWO;
    a_promise_dated_by_an_old_reading_of_the_clock_is_caught: PromiseDatedByAnOldReading, TWO;
    a_leader_that_needs_the_acknowledged_roster_only_is_caught: NeededIsTheAcknowledgedRosterOnly, TWO;
    a_leader_that_needs_the_last_sent_roster_only_is_caught: NeededIsTheLastSentRosterOnly, TWO;
    an_adopted_version_that_forgets_writes_under_way_is_caught: AdoptionForgetsWritesUnderWay, TWO.with_late_writes(1);
    a_host_that_is_a_member_for_ever_is_caught: OnceAMemberAlways, TWO;
    a_newcomer_that_waits_one_lease_is_caught: NewcomerWaitsALease, TWO;
    a_newcomer_that_counts_on_over_a_new_version_is_caught: NewcomersCountNotRestarted, TWO;
    a_newcomer_that_waits_its_own_limit_is_caught: NewcomersOwnLimit, TWO_LIMITS;
    a_leader_beyond_its_limit_is_caught: LeaderIgnoresTheLimit, TWO;
    a_promise_counted_from_the_answer_is_caught: CountedFromTheAnswer, TWO;
    one_answer_taken_for_all_is_caught: OneAnswerIsEnough, THREE;
    an_answer_after_kill_at_that_counts_is_caught: AnswerAfterKillAtCounts, TWO;
    a_lease_made_of_promises_alone_is_caught: LeaseFromPromisesAlone, TWO;
    a_leaver_that_takes_over_after_all_is_caught: LeaverTakesOver, TWO.with_leavers();
    a_leaver_that_is_taken_for_its_host_is_caught: GoneCountsForTheHost, TWO.with_leavers();
    a_take_over_sent_before_the_wait_is_over_is_caught: TakeOverSentBeforeTheWaitIsOver, TWO_LIMITS;
    a_wait_without_a_margin_for_drift_is_caught: NoDriftMargin, Rules::new(1, [2, 2, 0]).with_drift();
    a_lost_record_made_without_a_limit_is_caught: LostRecordMadeWithoutLimit, TWO.with_deletions();
    a_lost_record_made_with_the_limit_of_its_maker_is_caught:
        LostRecordMadeWithItsMakersLimit, TWO_LIMITS.with_deletions();
    a_host_of_an_earlier_version_is_caught: OldHostTakesOverAfterALease, TWO.with_one_that_does_not_vouch();
    an_instance_that_outlives_its_process_is_caught: InstanceAndCountOutliveTheProcess, TWO.with_restarts();
    an_old_answer_taken_for_the_newest_is_caught: OldAnswerTakenForTheNewest, TWO;
}
