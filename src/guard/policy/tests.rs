use proptest::prelude::*;

use super::*;
use crate::core::guard_messages::{CandidateName, Slot, Takeover};
use crate::guard::lease_file::layout::{LeaseState, LeaseView};

const RUN: RunId = RunId(7);
const GRANT: Grant =
    Grant { token: 1, term: 1, session: 1, takeover: Takeover::First, slot: Slot(0), candidate: CandidateName::EMPTY };
const LEASE: Deadlines = Deadlines { stop_at: at(3_000), kill_at: at(4_000) };

const fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

/// A policy with a tree that was started at 1 s under [`LEASE`].
struct Guard(Policy);

impl Guard {
    fn started() -> Self {
        let mut guard = Self(Policy::new(15));
        let start = Order::Start { run: RUN, deadlines: LEASE, grant: GRANT };
        assert_eq!(guard.order(1_000, start), [report(Report::Taken { run: RUN }), GuardAction::Spawn(GRANT)]);
        assert_eq!(guard.at(1_001, Input::Executed { pid: 42 }), [report(Report::Started { run: RUN, pid: 42 })]);
        guard
    }

    fn at(&mut self, millis: u64, input: Input) -> Vec<GuardAction> {
        self.0.handle(at(millis), input).into_iter().collect()
    }

    fn order(&mut self, millis: u64, order: Order) -> Vec<GuardAction> {
        self.at(millis, Input::Ordered(order))
    }

    fn extend(&mut self, millis: u64, stop: u64, kill: u64) -> Vec<GuardAction> {
        self.order(millis, Order::Extend { run: RUN, deadlines: Deadlines { stop_at: at(stop), kill_at: at(kill) } })
    }

    fn tick(&mut self, millis: u64) -> Vec<GuardAction> {
        self.at(millis, Input::Ticked)
    }

    /// State and deadlines in the lease file.
    fn lease(&self) -> (LeaseState, Deadlines) {
        let view = self.0.lease();
        (view.state, view.deadlines)
    }
}

const fn report(report: Report) -> GuardAction {
    GuardAction::Report(report)
}

const STOP: GuardAction = GuardAction::Signal(CommandSignal::Stop);
const NOTHING: [GuardAction; 0] = [];

fn tree_ended(status: ChildStatus, cause: Cause) -> GuardAction {
    report(Report::TreeEnded { run: RUN, status, cause })
}

#[test]
fn an_unmoved_lease_is_stopped_at_stop_at_and_killed_at_kill_at() {
    let mut guard = Guard::started();
    assert_eq!(guard.tick(2_999), NOTHING);
    assert_eq!(guard.tick(3_000), [STOP, report(Report::Stopping { run: RUN })]);
    assert_eq!(guard.tick(3_999), NOTHING);
    assert_eq!(guard.tick(4_000), [GuardAction::KillTree]);
    let killed = ChildStatus::Signaled(9);
    assert_eq!(
        guard.at(4_001, Input::CommandEnded(killed)),
        [report(Report::CommandEnded { run: RUN, status: killed })]
    );
    assert_eq!(guard.at(4_002, Input::TreeEmpty), [tree_ended(killed, Cause::Deadline)]);
    assert_eq!(guard.0.next_deadline(), None);
}

#[test]
fn a_guard_that_slept_through_both_deadlines_kills_at_once() {
    let mut guard = Guard::started();
    assert_eq!(guard.tick(9_000), [GuardAction::KillTree]);
}

#[test]
fn a_renewal_moves_the_deadlines_and_only_to_a_later_time() {
    let mut guard = Guard::started();
    assert_eq!(guard.extend(2_000, 5_000, 6_000), NOTHING);
    assert_eq!(guard.extend(2_000, 1_000, 2_500), NOTHING);
    assert_eq!(guard.0.next_deadline(), Some(at(5_000)));
    assert_eq!(guard.tick(4_999), NOTHING);
    assert_eq!(guard.tick(6_000), [GuardAction::KillTree]);
}

#[test]
fn i5_a_renewal_that_is_read_after_kill_at_counts_for_nothing() {
    let mut guard = Guard::started();
    assert_eq!(guard.extend(4_000, 8_000, 9_000), [GuardAction::KillTree]);
    assert_eq!(guard.tick(9_000), [report(Report::Stuck { run: RUN, survivors: 0 })]);
}

#[test]
fn i5_a_stop_for_lack_of_a_lease_is_never_taken_back() {
    let mut guard = Guard::started();
    assert_eq!(guard.extend(3_000, 8_000, 9_000), [STOP, report(Report::Stopping { run: RUN })]);
    assert_eq!(guard.extend(3_100, 8_000, 9_000), NOTHING);
    assert_eq!(guard.tick(4_000), [GuardAction::KillTree]);
}

#[test]
fn an_ordered_stop_goes_on_being_covered_by_renewals_until_its_own_end() {
    let mut guard = Guard::started();
    assert_eq!(guard.order(2_000, Order::Stop { run: RUN, by: at(10_000) }), [STOP]);
    assert_eq!(guard.extend(3_500, 7_000, 8_000), NOTHING);
    assert_eq!(guard.tick(4_000), NOTHING);
    assert_eq!(guard.extend(7_500, 11_000, 12_000), NOTHING);
    assert_eq!(guard.tick(9_999), NOTHING);
    assert_eq!(guard.tick(10_000), [GuardAction::KillTree]);
}

#[test]
fn an_ordered_stop_ends_at_kill_at_if_the_lease_is_not_renewed() {
    let mut guard = Guard::started();
    assert_eq!(guard.order(2_000, Order::Stop { run: RUN, by: at(10_000) }), [STOP]);
    assert_eq!(guard.tick(3_500), NOTHING);
    assert_eq!(guard.tick(4_000), [GuardAction::KillTree]);
    assert_eq!(
        guard.at(4_001, Input::TreeEmpty),
        [tree_ended(ChildStatus::Signaled(9), Cause::Ordered)],
        "the cause of an ending is what began it"
    );
}

#[test]
fn the_stop_signal_is_sent_once_and_a_later_stop_only_brings_the_end_closer() {
    let mut guard = Guard::started();
    assert_eq!(guard.order(1_100, Order::Stop { run: RUN, by: at(2_000) }), [STOP]);
    assert_eq!(guard.order(1_200, Order::Stop { run: RUN, by: at(2_500) }), NOTHING);
    assert_eq!(guard.order(1_300, Order::Stop { run: RUN, by: at(1_500) }), NOTHING);
    assert_eq!(guard.order(1_400, Order::Stop { run: RUN, by: at(1_400) }), [GuardAction::KillTree]);
    assert_eq!(guard.order(1_500, Order::Kill { run: RUN }), NOTHING);
}

#[test]
fn what_is_left_in_an_ordered_stop_is_told_too_and_given_the_rest_of_the_time() {
    let ended = Input::CommandEnded(ChildStatus::Signaled(15));
    let told = [GuardAction::StopRest, report(Report::CommandEnded { run: RUN, status: ChildStatus::Signaled(15) })];
    for (end, cause) in [(8_000, Cause::Ordered), (3_500, Cause::Ordered)] {
        let mut guard = Guard::started();
        assert_eq!(guard.order(2_000, Order::Stop { run: RUN, by: at(end) }), [STOP]);
        assert_eq!(guard.at(2_100, ended), told);
        assert_eq!(guard.tick(end.min(4_000) - 1), NOTHING);
        assert_eq!(guard.tick(end.min(4_000)), [GuardAction::KillTree], "at its own end, or at kill_at");
        assert_eq!(guard.at(4_001, Input::TreeEmpty), [tree_ended(ChildStatus::Signaled(15), cause)]);
    }
    let mut guard = Guard::started();
    guard.order(2_000, Order::Stop { run: RUN, by: at(8_000) });
    guard.at(2_100, ended);
    assert_eq!(guard.at(2_200, Input::TreeEmpty), [tree_ended(ChildStatus::Signaled(15), Cause::Ordered)]);
    assert_eq!(guard.0.next_deadline(), None);
}

/// systemd sends SIGTERM to the supervisor first, and then to every process of the unit.
#[test]
fn what_a_command_ended_by_the_stop_signal_leaves_is_kept_for_the_order_that_may_come() {
    let status = ChildStatus::Signaled(15);
    let ended = [GuardAction::KeepRest, report(Report::CommandEnded { run: RUN, status })];
    let mut guard = Guard::started();
    assert_eq!(guard.at(2_000, Input::CommandEnded(status)), ended);
    assert_eq!(guard.order(2_100, Order::Signal { run: RUN, signal: 1 }), NOTHING);
    assert_eq!(guard.order(2_249, Order::Stop { run: RUN, by: at(3_500) }), [GuardAction::StopRest]);
    assert_eq!(guard.tick(3_499), NOTHING);
    assert_eq!(guard.tick(3_500), [GuardAction::KillTree]);
    assert_eq!(guard.at(3_501, Input::TreeEmpty), [tree_ended(status, Cause::Ordered)]);

    let mut guard = Guard::started();
    guard.at(2_000, Input::CommandEnded(status));
    assert_eq!(guard.at(2_001, Input::TreeEmpty), [tree_ended(status, Cause::ItsOwn)], "nothing was left");

    let mut guard = Guard::started();
    guard.at(2_000, Input::CommandEnded(status));
    assert_eq!(guard.tick(2_249), NOTHING);
    assert_eq!(guard.tick(2_250), [GuardAction::KillTree], "nobody ordered it");
    assert_eq!(guard.at(2_251, Input::TreeEmpty), [tree_ended(status, Cause::ItsOwn)]);
}

#[test]
fn what_any_other_end_of_the_command_leaves_is_killed_at_once() {
    for status in [ChildStatus::Exited(0), ChildStatus::Exited(143), ChildStatus::Signaled(9)] {
        let ended = [GuardAction::KillTree, report(Report::CommandEnded { run: RUN, status })];
        assert_eq!(Guard::started().at(2_000, Input::CommandEnded(status)), ended);
    }
}

#[test]
fn what_is_left_when_the_lease_lapses_is_killed_with_the_commands_end() {
    let mut guard = Guard::started();
    assert_eq!(guard.tick(3_000).len(), 2);
    let status = ChildStatus::Signaled(15);
    let ended = [GuardAction::KillTree, report(Report::CommandEnded { run: RUN, status })];
    assert_eq!(guard.at(3_100, Input::CommandEnded(status)), ended);
}

#[test]
fn a_stop_whose_end_has_passed_kills_at_once() {
    for by in [0, 1_100] {
        let mut guard = Guard::started();
        let stop = Order::Stop { run: RUN, by: at(by) };
        assert_eq!(guard.order(1_100, stop), [GuardAction::KillTree], "the status would be chance");
        assert_eq!(guard.at(1_101, Input::TreeEmpty), [tree_ended(ChildStatus::Signaled(9), Cause::Ordered)]);
    }
}

#[test]
fn a_stop_after_a_lapse_can_bring_the_end_closer() {
    let mut guard = Guard::started();
    assert_eq!(guard.tick(3_000).len(), 2);
    assert_eq!(guard.order(3_100, Order::Stop { run: RUN, by: at(3_200) }), NOTHING);
    assert_eq!(guard.tick(3_200), [GuardAction::KillTree]);
    assert_eq!(guard.at(3_201, Input::TreeEmpty), [tree_ended(ChildStatus::Signaled(9), Cause::Deadline)]);
}

#[test]
fn what_the_command_left_behind_is_killed_when_it_ends_by_itself() {
    let mut guard = Guard::started();
    let done = ChildStatus::Exited(37);
    assert_eq!(
        guard.at(1_500, Input::CommandEnded(done)),
        [GuardAction::KillTree, report(Report::CommandEnded { run: RUN, status: done })]
    );
    assert_eq!(guard.at(1_501, Input::Surviving { survivors: 3 }), NOTHING);
    assert_eq!(guard.at(1_502, Input::TreeEmpty), [tree_ended(done, Cause::ItsOwn)]);
}

#[test]
fn i6_an_order_for_another_run_changes_nothing() {
    for run in [RunId(6), RunId(8)] {
        let mut guard = Guard::started();
        let far = Deadlines { stop_at: at(90_000), kill_at: at(91_000) };
        for order in [
            Order::Extend { run, deadlines: far },
            Order::Stop { run, by: at(0) },
            Order::Kill { run },
            Order::Signal { run, signal: 1 },
            Order::Freeze { run },
            Order::Thaw { run },
            Order::Retire { run },
            Order::Pause { run },
            Order::Resume { run },
            Order::Start { run, deadlines: far, grant: GRANT },
        ] {
            assert_eq!(guard.order(1_100, order), NOTHING, "{order:?}");
        }
        assert_eq!(guard.0.next_deadline(), Some(LEASE.stop_at));
        assert_eq!(guard.lease(), (LeaseState::Leading, LEASE));
    }
}

#[test]
fn i6_a_run_is_started_once_even_if_its_start_is_read_again() {
    let mut guard = Guard::started();
    assert_eq!(guard.order(1_100, Order::Kill { run: RUN }), [GuardAction::KillTree]);
    assert_eq!(guard.at(1_101, Input::TreeEmpty).len(), 1);
    assert_eq!(guard.order(1_102, Order::Start { run: RUN, deadlines: LEASE, grant: GRANT }), NOTHING);
    let next = Order::Start { run: RunId(8), deadlines: LEASE, grant: GRANT };
    assert_eq!(guard.order(1_103, next), [report(Report::Taken { run: RunId(8) }), GuardAction::Spawn(GRANT)]);
}

#[test]
fn a_start_that_is_read_too_late_is_refused_with_an_empty_tree() {
    let mut guard = Guard(Policy::new(15));
    let start = Order::Start { run: RUN, deadlines: LEASE, grant: GRANT };
    assert_eq!(guard.order(3_000, start), [tree_ended(ChildStatus::NotExecuted(ETIME), Cause::Deadline)]);
    assert_eq!(guard.0.next_deadline(), None);
}

#[test]
fn a_command_that_cannot_be_executed_says_why() {
    let mut guard = Guard::started();
    assert_eq!(guard.at(1_002, Input::NotExecuted { errno: 2 }), NOTHING);
    let status = ChildStatus::NotExecuted(2);
    assert_eq!(
        guard.at(1_003, Input::CommandEnded(ChildStatus::Exited(127))),
        [GuardAction::KillTree, report(Report::CommandEnded { run: RUN, status })]
    );
    assert_eq!(guard.at(1_004, Input::TreeEmpty), [tree_ended(status, Cause::ItsOwn)]);

    let mut guard = Guard(Policy::new(15));
    assert_eq!(guard.order(1_000, Order::Start { run: RUN, deadlines: LEASE, grant: GRANT }).len(), 2);
    let status = ChildStatus::NotExecuted(11);
    let ended = GuardAction::Report(Report::CommandEnded { run: RUN, status });
    assert_eq!(guard.at(1_001, Input::NotSpawned { errno: 11 }), [ended, tree_ended(status, Cause::ItsOwn)]);
}

#[test]
fn a_jump_of_the_clock_kills_at_once() {
    let mut guard = Guard::started();
    assert_eq!(guard.at(1_100, Input::ClockJumped), [GuardAction::KillTree]);
    assert_eq!(guard.at(1_101, Input::TreeEmpty), [tree_ended(ChildStatus::Signaled(9), Cause::Deadline)]);
}

#[test]
fn without_a_supervisor_the_tree_is_killed_and_then_the_guard_quits() {
    let mut guard = Guard::started();
    assert_eq!(guard.at(1_100, Input::SupervisorGone), [GuardAction::KillTree]);
    assert_eq!(guard.at(1_100, Input::SupervisorGone), NOTHING);
    let ended = tree_ended(ChildStatus::Signaled(9), Cause::SupervisorGone);
    assert_eq!(guard.at(1_101, Input::TreeEmpty), [ended, GuardAction::Quit { release: Some(GRANT) }]);

    let mut guard = Guard(Policy::new(15));
    assert_eq!(guard.at(1_100, Input::SupervisorGone), [GuardAction::Quit { release: None }]);
    assert_eq!(guard.order(1_101, Order::Start { run: RUN, deadlines: LEASE, grant: GRANT }), NOTHING);
}

/// Between two runs of one term, or before the release.
#[test]
fn a_supervisor_that_dies_after_its_tree_leaves_a_term_to_be_released_unless_it_was_retired() {
    for (retired, release) in [(None, Some(GRANT)), (Some(RunId(6)), Some(GRANT)), (Some(RUN), None)] {
        let mut guard = Guard::started();
        guard.at(1_100, Input::CommandEnded(ChildStatus::Exited(1)));
        guard.at(1_101, Input::TreeEmpty);
        if let Some(run) = retired {
            assert_eq!(guard.order(1_102, Order::Retire { run }), NOTHING);
        }
        assert_eq!(guard.at(1_200, Input::SupervisorGone), [GuardAction::Quit { release }], "{retired:?}");
    }
}

#[test]
fn a_frozen_tree_is_thawed_before_it_is_told_to_stop() {
    let mut guard = Guard::started();
    assert_eq!(guard.order(1_100, Order::Freeze { run: RUN }), [GuardAction::Freeze]);
    assert_eq!(guard.order(1_200, Order::Freeze { run: RUN }), NOTHING);
    assert_eq!(guard.order(1_300, Order::Thaw { run: RUN }), [GuardAction::Thaw]);
    assert_eq!(guard.order(1_300, Order::Thaw { run: RUN }), NOTHING);
    assert_eq!(guard.order(1_400, Order::Freeze { run: RUN }), [GuardAction::Freeze]);
    assert_eq!(guard.order(1_500, Order::Stop { run: RUN, by: at(2_500) }), [GuardAction::Thaw, STOP]);
    assert_eq!(guard.order(1_600, Order::Freeze { run: RUN }), NOTHING);
    assert_eq!(guard.tick(2_500), [GuardAction::KillTree]);
    assert_eq!(guard.order(2_600, Order::Thaw { run: RUN }), NOTHING);
}

/// SIGCONT continues processes that were stopped to freeze them.
#[test]
fn a_frozen_tree_gets_sigcont_when_it_is_thawed() {
    let mut guard = Guard::started();
    let sigcont = Order::Signal { run: RUN, signal: 18 };
    let passed_on = GuardAction::Signal(CommandSignal::Forwarded(18));
    assert_eq!(guard.order(1_100, sigcont), [passed_on]);
    assert_eq!(guard.order(1_200, Order::Freeze { run: RUN }), [GuardAction::Freeze]);
    assert_eq!(guard.order(1_300, sigcont), NOTHING);
    assert_eq!(guard.order(1_400, Order::Thaw { run: RUN }), [GuardAction::Thaw, passed_on]);
    assert_eq!(guard.order(1_500, Order::Freeze { run: RUN }), [GuardAction::Freeze]);
    assert_eq!(guard.order(1_600, Order::Thaw { run: RUN }), [GuardAction::Thaw], "once");
    assert_eq!(guard.order(1_700, Order::Freeze { run: RUN }), [GuardAction::Freeze]);
    assert_eq!(guard.order(1_800, sigcont), NOTHING);
    assert_eq!(guard.order(1_900, Order::Stop { run: RUN, by: at(2_500) }), [GuardAction::Thaw, passed_on, STOP]);
    assert_eq!(guard.order(2_000, sigcont), [passed_on]);
}

#[test]
fn a_signal_is_passed_on_until_the_tree_is_being_killed() {
    let mut guard = Guard::started();
    let signal = Order::Signal { run: RUN, signal: 10 };
    let passed_on = [GuardAction::Signal(CommandSignal::Forwarded(10))];
    assert_eq!(guard.order(1_100, signal), passed_on);
    assert_eq!(guard.order(1_200, Order::Stop { run: RUN, by: at(2_500) }), [STOP]);
    assert_eq!(guard.order(1_300, signal), passed_on);
    assert_eq!(guard.tick(2_500), [GuardAction::KillTree]);
    assert_eq!(guard.order(2_600, signal), NOTHING);
}

#[test]
fn survivors_of_sigkill_are_reported_again_and_again() {
    let mut guard = Guard::started();
    assert_eq!(guard.extend(1_050, 60_000, 60_000), NOTHING);
    assert_eq!(guard.order(1_100, Order::Kill { run: RUN }), [GuardAction::KillTree]);
    assert_eq!(guard.at(1_200, Input::Surviving { survivors: 2 }), NOTHING);
    for seen in [6_100, 11_100, 16_100] {
        assert_eq!(guard.tick(seen - 1), NOTHING);
        assert_eq!(guard.tick(seen), [report(Report::Stuck { run: RUN, survivors: 2 })]);
    }
}

#[test]
fn survivors_of_sigkill_are_reported_before_a_short_lease_is_over() {
    for (killed, reported) in [(1_000, 2_500), (2_400, 3_400), (4_000, 5_000)] {
        let mut guard = Guard::started();
        assert_eq!(guard.order(killed, Order::Kill { run: RUN }), [GuardAction::KillTree]);
        assert_eq!(guard.tick(reported - 1), NOTHING);
        assert_eq!(guard.tick(reported), [report(Report::Stuck { run: RUN, survivors: 0 })], "killed at {killed} ms");
        assert_eq!(guard.tick(reported + 4_999), NOTHING);
    }
}

/// The supervisor renews the lease meanwhile, and a report would end the term.
#[test]
fn what_an_ended_command_left_behind_has_five_seconds_to_die_while_the_lease_is_renewed() {
    let ended = Input::CommandEnded(ChildStatus::Exited(0));
    for (renewed, reported) in [(true, 6_500), (false, 3_000)] {
        let mut guard = Guard::started();
        assert!(guard.at(1_500, ended).contains(&GuardAction::KillTree));
        if renewed {
            assert_eq!(guard.extend(2_400, 5_000, 6_000), NOTHING);
            assert_eq!(guard.extend(4_400, 7_000, 8_000), NOTHING);
        }
        assert_eq!(guard.tick(reported - 1), NOTHING, "renewed: {renewed}");
        assert_eq!(guard.tick(reported), [report(Report::Stuck { run: RUN, survivors: 0 })], "renewed: {renewed}");
        assert_eq!(guard.tick(reported + 4_999), NOTHING, "renewed: {renewed}");
    }
}

#[test]
fn the_guard_sleeps_in_slices_and_is_itself_killed_soon_after_kill_at() {
    let guard = Guard::started();
    // R = 3 s at the start, so G = 75 ms.
    assert_eq!(guard.0.sleep(at(1_000)), Some(SLICE));
    assert_eq!(guard.0.sleep(at(2_600)), Some(Duration::from_millis(200)));
    assert_eq!(guard.0.sleep(at(2_980)), Some(Duration::from_millis(10)));
    assert_eq!(guard.0.sleep(at(2_985)), Some(Duration::from_millis(15)));
    assert_eq!(guard.0.sleep(at(3_000)), Some(Duration::ZERO));
    assert_eq!(guard.0.lethal_in(at(3_975)), Some(Duration::from_millis(100) * 9 / 10));
    assert_eq!(Guard(Policy::new(15)).0.sleep(at(0)), None);
    assert_eq!(Guard(Policy::new(15)).0.lethal_in(at(0)), None);
}

#[test]
fn a_guard_that_stops_in_the_middle_of_killing_is_killed_itself() {
    let mut guard = Guard::started();
    assert_eq!(guard.tick(4_000), [GuardAction::KillTree]);
    let step_longest = KILLING_STEP_LONGEST * 9 / 10;
    assert_eq!(guard.0.lethal_in(at(4_000)), Some(step_longest));
    assert_eq!(guard.0.lethal_in(at(60_000)), Some(step_longest));
}

#[test]
fn the_lease_file_shows_the_deadlines_that_the_guard_keeps_and_no_longer_ones() {
    let mut guard = Guard::started();
    assert_eq!(guard.0.lease(), LeaseView { token: 1, term: 1, state: LeaseState::Leading, deadlines: LEASE });
    guard.order(1_100, Order::Pause { run: RUN });
    assert_eq!(guard.lease(), (LeaseState::Paused, LEASE));
    guard.extend(1_200, 5_000, 6_000);
    guard.order(1_200, Order::Resume { run: RUN });
    assert_eq!(guard.lease(), (LeaseState::Leading, lease(5_000, 1_000)));
    guard.extend(1_300, 2_000, 3_000);
    assert_eq!(guard.lease(), (LeaseState::Leading, lease(5_000, 1_000)), "an order that is refused");
    guard.tick(5_000);
    assert_eq!(guard.lease(), (LeaseState::Stopping, lease(5_000, 1_000)));
    guard.extend(5_100, 9_000, 10_000);
    assert_eq!(guard.lease(), (LeaseState::Stopping, lease(5_000, 1_000)), "I5");
    guard.tick(6_000);
    assert_eq!(guard.0.lease(), LeaseView::NONE);
    guard.at(6_001, Input::CommandEnded(ChildStatus::Signaled(9)));
    guard.at(6_002, Input::TreeEmpty);
    assert_eq!(guard.0.lease(), LeaseView::NONE);
}

#[test]
fn an_ordered_stop_ends_the_lease_file_with_the_stop() {
    let mut guard = Guard::started();
    guard.order(1_100, Order::Stop { run: RUN, by: at(2_000) });
    assert_eq!(guard.lease(), (LeaseState::Stopping, lease(2_000, 0)));
    guard.extend(1_200, 8_000, 9_000);
    assert_eq!(guard.lease(), (LeaseState::Stopping, lease(2_000, 0)));
    guard.order(1_300, Order::Kill { run: RUN });
    assert_eq!(guard.0.lease(), LeaseView::NONE);
}

/// Inputs that may reach a guard at any time, for three runs.
fn inputs() -> impl Strategy<Value = (u64, Input)> {
    let run = || (6_u64..9).prop_map(RunId);
    let deadlines = || (0_u64..9_000, 0_u64..3_000).prop_map(|(stop, reserve)| lease(stop, reserve));
    let order = prop_oneof![
        3 => (run(), deadlines()).prop_map(|(run, deadlines)| Order::Start { run, deadlines, grant: GRANT }),
        4 => (run(), deadlines()).prop_map(|(run, deadlines)| Order::Extend { run, deadlines }),
        2 => (run(), 0_u64..9_000).prop_map(|(run, by)| Order::Stop { run, by: at(by) }),
        1 => run().prop_map(|run| Order::Kill { run }),
        1 => (run(), any::<i32>()).prop_map(|(run, signal)| Order::Signal { run, signal }),
        1 => run().prop_map(|run| Order::Freeze { run }),
        1 => run().prop_map(|run| Order::Thaw { run }),
        1 => run().prop_map(|run| Order::Retire { run }),
        1 => run().prop_map(|run| Order::Pause { run }),
        1 => run().prop_map(|run| Order::Resume { run }),
    ];
    let input = prop_oneof![
        4 => Just(Input::Ticked),
        8 => order.prop_map(Input::Ordered),
        1 => any::<u8>().prop_map(|code| Input::CommandEnded(ChildStatus::Exited(code))),
        1 => Just(Input::CommandEnded(ChildStatus::Signaled(15))),
        1 => Just(Input::ClockJumped),
        1 => Just(Input::SupervisorGone),
        1 => Just(Input::Executed { pid: 42 }),
        1 => Just(Input::NotExecuted { errno: 2 }),
        1 => Just(Input::Surviving { survivors: 1 }),
        1 => Just(Input::TreeEmpty),
    ];
    (0_u64..400, input)
}

fn lease(stop: u64, reserve: u64) -> Deadlines {
    Deadlines { stop_at: at(stop), kill_at: at(stop + reserve) }
}

/// An observer that sees only inputs and steps.
#[derive(Default)]
struct Observer {
    alive: Option<RunId>,
    /// The latest `kill_at` that any order gave to the living run.
    granted: u64,
    is_killed: bool,
    rest_is_stopped: bool,
    stops: u32,
}

impl Observer {
    fn sees_input(&mut self, input: Input) {
        match input {
            Input::Ordered(Order::Start { deadlines, .. }) if self.alive.is_none() => {
                self.granted = deadlines.kill_at.as_nanos();
            }
            Input::Ordered(Order::Extend { run, deadlines }) if self.alive == Some(run) => {
                self.granted = self.granted.max(deadlines.kill_at.as_nanos());
            }
            _ => {}
        }
    }

    fn sees_step(&mut self, step: GuardAction) {
        match step {
            GuardAction::Spawn(_) => {
                assert!(self.alive.is_none(), "I3: one tree at a time");
                (self.is_killed, self.rest_is_stopped, self.stops) = (false, false, 0);
            }
            GuardAction::KillTree => self.is_killed = true,
            GuardAction::Signal(_)
            | GuardAction::StopRest
            | GuardAction::KeepRest
            | GuardAction::Freeze
            | GuardAction::Thaw
                if self.is_killed =>
            {
                panic!("{step:?} for a killed tree")
            }
            GuardAction::Signal(CommandSignal::Stop) => self.stops += 1,
            GuardAction::StopRest | GuardAction::KeepRest => self.rest_is_stopped = true,
            GuardAction::Report(Report::TreeEnded { run, .. }) => {
                assert!(self.alive.is_none_or(|alive| alive == run));
            }
            _ => {}
        }
        assert!(self.stops <= 1, "the stop signal is sent once");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn i1_i3_i7_hold_whatever_arrives(inputs in proptest::collection::vec(inputs(), 1..60)) {
        let mut policy = Policy::new(15);
        let mut observer = Observer::default();
        let mut millis = 0;
        for (pause, input) in inputs {
            millis += pause;
            // Only a living tree has news.
            let is_news = !matches!(input, Input::Ordered(_) | Input::Ticked | Input::ClockJumped | Input::SupervisorGone);
            let is_early = input == Input::TreeEmpty && !observer.is_killed && !observer.rest_is_stopped;
            if is_news && (observer.alive.is_none() || is_early) {
                continue;
            }
            observer.sees_input(input);
            for step in policy.handle(at(millis), input) {
                observer.sees_step(step);
                // I8: a guard that ends, or has the record freed, leaves no tree.
                prop_assert!(!matches!(step, GuardAction::Quit { .. }) || policy.life.is_none(), "{:?}", step);
            }
            observer.alive = policy.life.map(|life| life.run);
            // I1: once the last `kill_at` has come, the tree is being killed.
            prop_assert!(observer.alive.is_none() || observer.is_killed || at(millis).as_nanos() < observer.granted);
            // I7: a tree has a deadline, a bounded sleep and a kernel timer.
            prop_assert_eq!(observer.alive.is_some(), policy.next_deadline().is_some());
            prop_assert!(policy.sleep(at(millis)).is_none_or(|sleep| sleep <= SLICE));
            prop_assert_eq!(observer.alive.is_some(), policy.lethal_in(at(millis)).is_some());
            // The lease file is over at once with the kill, and never lasts longer than was granted.
            let lease = policy.lease();
            let lasts = !lease.left(at(millis)).is_zero();
            prop_assert!(!lasts || observer.alive.is_some() && !observer.is_killed);
            prop_assert!(lease.deadlines.kill_at.as_nanos() <= observer.granted);
        }
    }
}
