//! Trees that are frozen while contact is lost: by the cgroup freezer, or by SIGSTOP to each process.

use std::path::PathBuf;
use std::time::Duration;

use zk_leader_run::core::guard_messages::{Cause, ChildStatus, Deadlines, Order, Report};
use zk_leader_run::core::settings::Contain;
use zk_leader_run::guard::contain::children_of;
use zk_leader_run::guard::lease_file::layout::LeaseState;
use zk_leader_run::guard::lease_file::reading;

use crate::subject::{LONG, News, SHORT, Subject, deadlines, now, state_of, until};

/// The command and a daemon of it, both audibly alive.
const TICKING: &str = r#"
    exec 9>"$ALIVE"
    trap "echo stop; exit 3" TERM
    (setsid sh -c 'trap "" TERM HUP; while :; do echo tock; sleep 0.02; done' &)
    echo ready
    while :; do echo tick; sleep 0.02; done
"#;

/// So long without a sound of either.
const SILENCE: Duration = Duration::from_millis(500);

fn falls_silent(subject: &Subject) {
    until("the tree is silent", || {
        let silent_from = now();
        while subject.hears_within(SILENCE.saturating_sub(silent_from.until(now()))) {
            if silent_from.until(now()) >= SILENCE {
                return false;
            }
        }
        silent_from.until(now()) >= SILENCE && !subject.hears_within(SILENCE)
    });
}

fn ticks_and_tocks(subject: &Subject) {
    for sound in ["tick", "tock", "tick", "tock"] {
        until("the tree is audible", || subject.line() == sound);
    }
}

fn frozen(contain: Contain, lease: Deadlines) -> Subject {
    let mut subject = Subject::script(contain, TICKING);
    let run = subject.start_under(lease);
    ticks_and_tocks(&subject);
    subject.hurry_guard();
    subject.order(Order::Freeze { run });
    falls_silent(&subject);
    subject
}

pub fn a_frozen_tree_does_nothing_until_it_is_thawed(contain: Contain) {
    let mut subject = frozen(contain, deadlines(LONG));
    let run = subject.run();
    assert!(subject.tree_lives());
    subject.order(Order::Thaw { run });
    ticks_and_tocks(&subject);
}

/// As a supervisor has it that freezes: nothing is set aside for the stop signal, which the tree would not hear.
pub fn a_frozen_tree_is_killed_at_the_deadline(contain: Contain) {
    let Deadlines { kill_at, .. } = deadlines(2 * SHORT);
    let mut subject = frozen(contain, Deadlines { stop_at: kill_at, kill_at });
    assert!(now() < kill_at && subject.tree_lives());
    let (_, status, cause) = subject.ends_at(kill_at);
    assert!(now() >= kill_at && !subject.tree_lives());
    assert_eq!((status, cause), (ChildStatus::Signaled(9), Cause::Deadline));
}

pub fn a_frozen_tree_is_thawed_to_be_stopped(contain: Contain) {
    let mut subject = frozen(contain, deadlines(LONG));
    let run = subject.run();
    subject.order(Order::Stop { run, by: now().after(LONG) });
    until("the command hears the stop signal", || subject.line() == "stop");
    // The daemon ignores it, and would be given all the time.
    until("the command has ended", || matches!(subject.news(), News::Report(Report::CommandEnded { .. })));
    let (_, status, cause) = subject.is_killed();
    assert!(!subject.tree_lives());
    assert_eq!((status, cause), (ChildStatus::Exited(3), Cause::Ordered));
}

pub fn a_run_after_a_frozen_one_is_not_frozen(contain: Contain) {
    let mut subject = frozen(contain, deadlines(LONG));
    let run = subject.run();
    subject.order(Order::Kill { run });
    subject.ends();
    let run = subject.start(LONG);
    ticks_and_tocks(&subject);
    // And can be frozen like the first.
    subject.order(Order::Freeze { run });
    falls_silent(&subject);
}

/// A flat half, and one below another process.
const CROWD: &str = r#"
    exec 9>"$ALIVE"
    crowd() { for i in 1 2 3 4 5 6 7 8; do for j in 1 2 3 4 5; do sleep 1000 & done; done; }
    (crowd; echo ready; wait) &
    crowd
    wait
"#;

/// Where the guard may have far fewer open files than the tree has processes.
pub fn a_crowd_is_frozen_and_thawed_to_the_last_process(contain: Contain) {
    let mut subject = Subject::script(contain, CROWD);
    let run = subject.start_ready(LONG);
    subject.guard.limit_descriptors(32);
    let crowd = || descendants_of(subject.guard.pid);
    until("all are there", || crowd().len() >= 82);
    let crowd = crowd();
    let stopped = || crowd.iter().filter(|&&pid| state_of(pid) == Some('T')).count();
    subject.order(Order::Freeze { run });
    let is_by_signals = contain != Contain::Cgroup;
    until("all are frozen", || !is_by_signals || stopped() == crowd.len());
    subject.order(Order::Thaw { run });
    until("none is frozen", || stopped() == 0);
}

/// A freeze and a thaw that are not possible at first, because no file can be opened, are made up for.
pub fn a_tree_is_frozen_and_thawed_once_there_are_descriptors_again() {
    let script = format!("echo \"$ZK_LEADER_LEASE\"; {CROWD}");
    let mut subject = Subject::script(Contain::Subreaper, &script);
    let run = subject.start(LONG);
    let lease = PathBuf::from(subject.line());
    subject.says("ready");
    let crowd = || descendants_of(subject.guard.pid);
    until("all are there", || crowd().len() >= 82);
    let crowd = crowd();
    let stopped = || crowd.iter().filter(|&&pid| state_of(pid) == Some('T')).count();
    // The second order of each pair shows in the lease file that the first was read.
    let freeze = ([Order::Freeze { run }, Order::Pause { run }], LeaseState::Paused, crowd.len());
    let thaw = ([Order::Thaw { run }, Order::Resume { run }], LeaseState::Leading, 0);
    for (orders, state, expected) in [freeze, thaw] {
        // As many as it watches at once (`poll(2)`).
        subject.guard.limit_descriptors(5);
        for order in orders {
            subject.order(order);
        }
        until("the guard has read the orders", || reading::read(&lease).unwrap().state == state);
        assert_ne!(stopped(), expected, "it was possible");
        subject.guard.limit_descriptors(1024);
        until("all have heard of it", || stopped() == expected);
    }
}

/// The init of a namespace stands still with its tree, and the signals that are forwarded to the command wait for it.
pub fn a_stop_signal_is_not_lost_behind_others_that_a_frozen_init_has_not_read() {
    // The init may be quick enough to read some of them before the stop signal comes.
    (0..5).for_each(|_| a_stop_signal_comes_behind_hundreds_of_others());
}

fn a_stop_signal_comes_behind_hundreds_of_others() {
    let script = r#"
        exec 9>"$ALIVE"; trap "echo stop; exit 3" TERM; trap : USR1
        echo "$ZK_LEADER_LEASE"; echo ready; while :; do sleep 0.02; done
    "#;
    let mut subject = Subject::script(Contain::PidNamespace, script);
    let run = subject.start(LONG);
    let lease = PathBuf::from(subject.line());
    subject.says("ready");
    let [init] = children_of(subject.guard.pid)[..] else { panic!("the guard has one child") };
    subject.order(Order::Freeze { run });
    until("the init stands still", || state_of(init) == Some('T'));
    let (pause, resume) = ((Order::Pause { run }, LeaseState::Paused), (Order::Resume { run }, LeaseState::Leading));
    for (order, state) in [pause, resume].into_iter().cycle().take(20) {
        (0..40).for_each(|_| subject.order(Order::Signal { run, signal: libc::SIGUSR1 }));
        subject.order(order);
        until("the guard has read the orders", || reading::read(&lease).unwrap().state == state);
    }
    subject.order(Order::Stop { run, by: now().after(LONG) });
    subject.says("stop");
    assert_eq!(subject.ends().1, ChildStatus::Exited(3));
}

fn descendants_of(pid: i32) -> Vec<i32> {
    children_of(pid).into_iter().flat_map(|child| [vec![child], descendants_of(child)].concat()).collect()
}
