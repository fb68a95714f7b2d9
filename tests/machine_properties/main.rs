//! The invariants I1 to I8 under arbitrary streams of events, nonsense and stale ids among them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

mod onlooker;
#[path = "../support/replacement.rs"]
mod replacement;
mod steps;
mod stream;

use std::time::Duration;

use proptest::prelude::*;
use zk_leader_run::core::event::Event;
use zk_leader_run::core::lease::{Timing, Wishes};
use zk_leader_run::core::machine::{Machine, Settings};
use zk_leader_run::core::restart::Rules;
use zk_leader_run::core::settings::{Guarantee, OnExit, OnLoss, OnPause, Preparations, Service, StepLimits};
use zk_leader_run::core::time::{Now, Sighting, Timestamp};

use onlooker::{Breach, Counts, Onlooker};
use stream::{INSTANCE, Telling, streams};

/// How often a machine may ask to be woken at once before that is a busy loop.
const IMPATIENCE: usize = 4;

fn settings(choice: u16) -> Settings {
    let at_least_once = choice & 1 == 1;
    let on_pause = [OnPause::Run, OnPause::Freeze, OnPause::Signal { pause: 10, resume: Some(12) }]
        [usize::from(choice >> 1 & 3) % 3];
    Settings {
        wishes: Wishes {
            lease: None,
            reserve: None,
            frozen_while_paused: on_pause == OnPause::Freeze,
            grace: [None, Some(Duration::ZERO)][usize::from(choice >> 3 & 1)],
            max_pause: at_least_once.then_some(Duration::from_secs(40)),
            is_shared: choice & 0x300 == 0x300,
        },
        guarantee: if at_least_once { Guarantee::AtLeastOne } else { Guarantee::AtMostOne },
        on_pause,
        on_exit: [OnExit::Exit, OnExit::Rejoin, OnExit::Restart, OnExit::Restart][usize::from(choice >> 4 & 3)],
        on_loss: [OnLoss::Rejoin, OnLoss::Rejoin, OnLoss::Rejoin, OnLoss::Exit][usize::from(choice >> 6 & 3)],
        wait: None,
        connect_timeout: None,
        stop_timeout: Duration::from_secs(2),
        service: Service {
            restart: Rules { most: [Some(2), None][usize::from(choice >> 1 & 1)], ..Rules::default() },
            stand_back: Duration::from_secs(3),
            timeout: [None, Some(Duration::from_secs(5))][usize::from(choice >> 2 & 1)],
            ..Service::default()
        },
        preparations: Preparations { fences: choice & 0x28 == 0x28, marks: choice & 0x44 == 0x44 },
        steps: StepLimits {
            before_start: (choice & 0x3000 == 0x3000).then_some(Duration::from_secs(6)),
            after_stop: (choice & 0x6000 == 0x6000).then_some(Duration::from_secs(1)),
        },
        vouch: None,
        instance: INSTANCE,
    }
}

fn moment(nanos: u64) -> Now {
    // The successor's clock stood still for a while: it may only be behind.
    Now { lease: Timestamp::from_nanos(nanos + 1_000_000_000), observer: Sighting::from_nanos(nanos) }
}

/// Everything that was broken in the course of the stream.
fn breaches(choice: u16, slots: u16, stream: &[(u64, Telling)]) -> Vec<Breach> {
    let settings = settings(choice);
    let timing = Timing::new(Duration::from_secs(4), &settings.wishes).unwrap();
    let usable = settings.wishes.max_pause.unwrap_or(timing.usable());
    let counts = if timing.needs_two_writes() { Counts::LastButOne } else { Counts::Last };
    let mut onlooker = Onlooker::new(settings.guarantee, usable, counts);
    onlooker.steps.limits = settings.steps;
    onlooker.ids.slots = slots;
    let mut nanos = 0;
    let mut machine = Machine::new(settings, moment(nanos));
    for (millis, telling) in stream {
        nanos += millis * 1_000_000;
        if let (Telling::Deadline, Some(at)) = (telling, machine.next_deadline(moment(nanos))) {
            nanos = nanos.max(at.as_nanos().saturating_sub(1_000_000_000));
        }
        if let (Telling::Overdue { .. }, Some(at)) = (telling, onlooker.kill_at()) {
            nanos = nanos.max(at.as_nanos().saturating_sub(1_000_000_000) + millis * 1_000_000);
        }
        let now = moment(nanos);
        if matches!(telling, Telling::Anything { .. }) {
            // No answer comes before its question.
            tell(&mut machine, &mut onlooker, now, Event::Ticked);
        }
        let Some(event) = telling.event(&onlooker.ids, now.lease) else { continue };
        tell(&mut machine, &mut onlooker, now, event);
        replacement::replace(&mut machine, &settings, now, 16);
        for attempt in 0.. {
            if machine.next_deadline(now).is_none_or(|at| at > now.lease) {
                break;
            }
            if attempt == IMPATIENCE {
                onlooker.breaches.push(("busy loop", format!("{:?} asks to be woken at once", machine.phase())));
                break;
            }
            tell(&mut machine, &mut onlooker, now, Event::Ticked);
        }
    }
    onlooker.breaches
}

fn tell(machine: &mut Machine, onlooker: &mut Onlooker, now: Now, event: Event) {
    onlooker.sees_event(now, &event);
    let actions = machine.handle(now, event);
    onlooker.sees_actions(now, &actions);
    onlooker.sees_machine(now, machine);
}

/// Nothing of this kind is broken by any stream.
fn never(kinds: &[&str], choice: u16, stream: &[(u64, Telling)]) -> Result<(), TestCaseError> {
    never_of(1, kinds, choice, stream)
}

/// The same with so many leaders. What the onlooker knows of waits is about one.
fn never_of(slots: u16, kinds: &[&str], choice: u16, stream: &[(u64, Telling)]) -> Result<(), TestCaseError> {
    let breach = breaches(choice, slots, stream).into_iter().find(|(what, _)| kinds.contains(what));
    prop_assert!(breach.is_none(), "{breach:?}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, max_shrink_iters: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn i1_i7_a_live_tree_always_has_a_deadline_that_is_kept(choice in any::<u16>(), stream in streams()) {
        never(&["I1", "I7"], choice, &stream)?;
    }

    #[test]
    fn i2_i3_no_start_without_runway_nor_beside_a_live_tree(choice in any::<u16>(), stream in streams()) {
        never(&["I2", "I3"], choice, &stream)?;
    }

    #[test]
    fn i4_no_withdrawal_while_the_tree_may_live(choice in any::<u16>(), stream in streams()) {
        never(&["I4"], choice, &stream)?;
    }

    #[test]
    fn i5_a_renewal_answered_after_kill_at_counts_for_nothing(choice in any::<u16>(), stream in streams()) {
        never(&["I5"], choice, &stream)?;
    }

    #[test]
    fn beside_other_libraries_a_lease_counts_from_a_write_that_a_later_one_certifies(choice in any::<u16>(), stream in streams()) {
        never(&["two writes", "I5", "I2"], choice | 0x300 & !1, &stream)?;
    }

    #[test]
    fn i8_only_a_holder_whose_wait_is_over_frees_the_record(choice in any::<u16>(), stream in streams()) {
        never(&["I8"], choice, &stream)?;
    }

    #[test]
    fn a_record_says_whose_lease_runs_and_is_left_alone_until_that_is_over(choice in any::<u16>(), stream in streams()) {
        never(&["waits"], choice, &stream)?;
    }

    #[test]
    fn one_request_of_a_candidacy_is_under_way_and_each_sending_has_its_own_nonce(choice in any::<u16>(), stream in streams()) {
        never(&["one request", "nonce"], choice, &stream)?;
    }

    #[test]
    fn steps_run_alone_under_the_lease_and_end_before_the_release(choice in any::<u16>(), stream in streams()) {
        never(&["steps", "I2", "I3", "I4", "I5", "busy loop"], choice | 0x7000, &stream)?;
    }

    #[test]
    fn with_several_leaders_every_write_of_a_term_is_of_the_slot_that_was_taken_over(choice in any::<u16>(), stream in streams()) {
        never_of(2 + (choice >> 10 & 1), &["slot", "I3"], choice & !0x301, &stream)?;
    }

    #[test]
    fn the_machine_makes_progress_at_its_deadline_and_rests_when_it_is_done(choice in any::<u16>(), stream in streams()) {
        never(&["busy loop", "done"], choice, &stream)?;
    }
}
