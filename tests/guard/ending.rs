//! Trees that end: by order, by a deadline, by themselves.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use zk_leader_run::core::guard_messages::{Cause, ChildStatus, Order, Report};
use zk_leader_run::core::settings::Contain;

use crate::subject::{
    LONG, News, Process, SHORT, Setting, Subject, deadlines, is_in_time, now, pause, state_of, until,
};

/// A wrapper shell with a child, and a daemon: forked twice, in a session of its own, deaf to every polite signal.
const FAMILY: &str = r#"
    exec 9>"$ALIVE"
    (setsid sh -c 'trap "" TERM HUP INT QUIT; sleep 1000 & echo "$$" >"$DIR/daemon"; echo ready; wait' &)
    sleep 1000 &
    wait
"#;

const KILLED: ChildStatus = ChildStatus::Signaled(9);
const TERMINATED: ChildStatus = ChildStatus::Signaled(15);

pub fn a_daemon_of_a_daemon_is_gone_when_the_tree_is_said_to_have_ended(contain: Contain) {
    let mut subject = Subject::script(contain, FAMILY);
    subject.start_ready(LONG);
    let (_, status, cause) = subject.is_killed();
    assert!(!subject.tree_lives(), "TreeEnded is the proof that nothing is left");
    assert_eq!((status, cause), (KILLED, Cause::Ordered));
}

/// The test above can fail: this is what it looks like without the part under test.
pub fn a_daemon_survives_a_guard_that_is_no_subreaper() {
    let mut subject = Subject::script(Contain::ProcessGroup, FAMILY);
    subject.start_ready(LONG);
    subject.is_killed();
    let is_left = subject.tree_lives();
    let daemon = std::fs::read_to_string(subject.dir.path().join("daemon")).unwrap();
    let daemon = Process::of(daemon.trim().parse().unwrap());
    // The daemon's session is its own; its child dies with the group that it leads.
    nix::sys::signal::killpg(nix::unistd::Pid::from_raw(daemon.pid), nix::sys::signal::Signal::SIGKILL).unwrap();
    assert!(is_left, "a daemon escapes the process group");
    until("the daemon is gone", || !subject.tree_lives());
}

/// What is to be killed may take all processor time. The command knows nothing of it.
pub fn a_guard_that_kills_has_priority_and_the_next_command_has_not(contain: Contain) {
    let mut subject = Subject::script(contain, r#"exec 9>"$ALIVE"; nice; sleep 1000 & exec sleep 1000"#);
    let mut priorities = Vec::new();
    for _ in 0..2 {
        subject.start(LONG);
        priorities.push(subject.line());
        subject.is_killed();
        assert_has_priority(&subject);
    }
    assert_eq!(priorities[0], priorities[1]);
    assert_ne!(priorities[0].trim(), "-20");
}

#[track_caller]
fn assert_has_priority(subject: &Subject) {
    let stat = fs::read_to_string(format!("/proc/{}/stat", subject.guard.pid)).unwrap();
    // The nineteenth field; the second, a name, ends with the parenthesis (`proc_pid_stat(5)`).
    let priority = stat.rsplit(')').next().unwrap().split_whitespace().nth(16);
    assert_eq!(priority, Some("-20"), "{stat}");
}

/// More than are reaped at once, and no death comes after them.
pub fn a_crowd_that_has_died_does_not_delay_a_stop_whose_guard_has_priority(contain: Contain) {
    let script = r#"
        exec 9>"$ALIVE"
        exec perl -e '$SIG{TERM} = sub { exit 4 }; for (1 .. 1000) { exit if fork == 0 } $| = 1; print "ready\n"; sleep 1000'
    "#;
    let mut subject = Subject::script(contain, script);
    let run = subject.start(LONG);
    subject.says("ready");
    let stopped_at = now();
    subject.order(Order::Stop { run, by: stopped_at.after(LONG) });
    let (_, status, cause) = subject.ends_at(stopped_at);
    assert_eq!((status, cause), (ChildStatus::Exited(4), Cause::Ordered));
    assert_has_priority(&subject);
}

pub fn a_command_that_honours_the_stop_signal_ends_by_it(contain: Contain) {
    let mut subject = Subject::script(contain, r#"exec 9>"$ALIVE"; echo ready; exec sleep 1000"#);
    let run = subject.start_ready(LONG);
    let stopped_at = now();
    subject.order(Order::Stop { run, by: stopped_at.after(LONG) });
    let (reports, status, cause) = subject.ends_at(stopped_at);
    assert!(!subject.tree_lives());
    assert_eq!((status, cause), (TERMINATED, Cause::Ordered));
    assert!(matches!(
        reports[..],
        [Report::Taken { .. }, Report::Started { .. }, Report::CommandEnded { status: TERMINATED, .. }]
    ));
}

pub fn a_command_that_ignores_the_stop_signal_is_killed_at_the_end_of_the_stop(contain: Contain) {
    let mut subject = Subject::script(
        contain,
        r#"exec 9>"$ALIVE"; trap "echo stop" TERM; echo ready; while :; do sleep 1000 & wait; done"#,
    );
    let run = subject.start_ready(LONG);
    let by = now().after(Duration::from_millis(300));
    subject.order(Order::Stop { run, by });
    subject.order(Order::Stop { run, by: now().after(LONG) });
    subject.says("stop");
    let (_, status, cause) = subject.ends_at(by);
    assert!(now() >= by && !subject.tree_lives());
    assert_eq!((status, cause), (KILLED, Cause::Ordered));
}

/// A stopped process handles no signal before it is continued (`signal(7)`).
pub fn a_command_that_stands_still_hears_the_stop_signal(contain: Contain) {
    let script = r#"exec 9>"$ALIVE"; trap "echo stop; exit 4" TERM; echo ready; kill -STOP $$; sleep 1000"#;
    let mut subject = Subject::script(contain, script);
    let run = subject.start(LONG);
    let command = subject.started();
    subject.says("ready");
    until("it stands still", || state_of(command) == Some('T'));
    subject.order(Order::Stop { run, by: now().after(LONG) });
    subject.says("stop");
    assert_eq!(subject.ends().1, ChildStatus::Exited(4));
}

/// A shell that waits for a service and ends by the stop signal, and a daemon.
const SERVICE: &str = r#"
    exec 9>"$ALIVE"
    says() { trap "echo $1 stops; sleep 0.2; echo $1 has stopped; exit" TERM; echo ready; while :; do sleep 0.02; done; }
    daemon='trap "echo the daemon has stopped; exit" TERM; echo ready; while :; do sleep 0.02; done'
    (setsid sh -c "$daemon" &)
    (says "the service")
    true
"#;

pub fn what_the_first_process_leaves_behind_in_a_stop_is_stopped_and_not_killed(contain: Contain) {
    let mut subject = Subject::script(contain, SERVICE);
    let run = subject.start_ready(LONG);
    subject.says("ready");
    subject.order(Order::Stop { run, by: now().after(LONG) });
    let mut said: Vec<_> = (0..3).map(|_| subject.line()).collect();
    said.sort();
    assert_eq!(said, ["the daemon has stopped", "the service has stopped", "the service stops"]);
    let (reports, status, cause) = subject.ends();
    assert!(!subject.tree_lives());
    assert_eq!((status, cause), (TERMINATED, Cause::Ordered));
    assert_eq!(reports.last(), Some(&Report::CommandEnded { run, status }));
}

/// A command, and a daemon that stands still.
const WITH_A_STOPPED_DAEMON: &str = r#"
    exec 9>"$ALIVE"
    daemon='trap "echo the daemon has stopped; exit" TERM; echo $$ >"$ALIVE.pid"; kill -STOP $$; while :; do sleep 0.02; done'
    (setsid sh -c "$daemon" &)
    until grep -q "^State:.T" "/proc/$(cat "$ALIVE.pid")/status"; do sleep 0.02; done 2>/dev/null
    echo ready
    exec sleep 1000
"#;

pub fn what_stands_still_and_is_left_behind_hears_the_stop_signal(contain: Contain) {
    let mut subject = Subject::script(contain, WITH_A_STOPPED_DAEMON);
    let run = subject.start_ready(LONG);
    subject.order(Order::Stop { run, by: now().after(LONG) });
    subject.says("the daemon has stopped");
    assert_eq!(subject.ends().1, TERMINATED);
}

/// A process that forks and ends while others are told to stop leaves one behind that nobody has told.
pub fn what_is_left_behind_by_a_process_that_was_told_to_stop_is_told_as_well(contain: Contain) {
    // What was forked hears no signal before it is executed, if there is a trap.
    let script = r#"
        exec 8<&0 9>"$ALIVE"
        (setsid sh -c 'trap "read line <&8; setsid sh -c \"echo late; sleep 1000\" & read line <&8; exit" TERM
            sh -c "echo ready; sleep 1000" & wait' &)
        exec sleep 1000
    "#;
    let mut subject = Subject::script(contain, script);
    let run = subject.start_ready(LONG);
    subject.order(Order::Stop { run, by: now().after(LONG) });
    until("the command has ended", || matches!(subject.news(), News::Report(Report::CommandEnded { .. })));
    subject.writes("fork");
    subject.says("late");
    subject.writes("exit");
    assert_eq!(subject.ends().1, TERMINATED);
    assert!(!subject.tree_lives());
}

/// In a full memory cgroup, whoever touches a page for the first time may wait for ever.
pub fn a_kill_needs_no_memory_that_the_guard_has_not_touched_before(contain: Contain) {
    let mut subject = Subject::script(contain, FAMILY);
    for _ in 0..2 {
        let run = subject.start(LONG);
        // The guard forks, touches what it will need, and then reports the start.
        subject.started();
        subject.says("ready");
        let before = subject.guard.anonymous_memory();
        subject.order(Order::Kill { run });
        subject.ends();
        let after = subject.guard.anonymous_memory();
        assert!(after <= before, "{before} KiB before, and {after} KiB after");
    }
}

/// Where the guard may have far fewer open files than the tree has processes.
pub fn each_of_a_crowd_that_is_left_behind_is_told_to_stop_once(contain: Contain) {
    let script = r#"
        exec 9>"$ALIVE"
        one='trap "echo $$ >>\"$DIR/told\"" TERM; echo ready; while :; do sleep 1000 & wait; done'
        crowd() { for i in 1 2 3 4 5 6 7 8; do for j in 1 2 3 4 5; do sh -c "$one" & done; done; }
        (trap : TERM; crowd; while :; do wait; done) &
        crowd
        wait
    "#;
    let mut subject = Subject::script(contain, script);
    let run = subject.start(LONG);
    (0..80).for_each(|_| subject.says("ready"));
    subject.guard.limit_descriptors(32);
    subject.order(Order::Stop { run, by: now().after(LONG) });
    let told = subject.dir.path().join("told");
    let told = || fs::read_to_string(&told).unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>();
    let all = || told().into_iter().collect::<BTreeSet<_>>().len();
    until("all are told", || all() == 80);
    subject.order(Order::Kill { run });
    assert_eq!(subject.ends().1, TERMINATED);
    assert_eq!(told().len(), 80, "some were told twice");
}

/// systemd signals every process of a unit, and the guard sees the command's death before the supervisor's order.
pub fn what_a_wrapper_leaves_behind_in_a_stop_of_all_processes_has_the_time_of_the_stop(contain: Contain) {
    let script = r#"
        exec 9>"$ALIVE"
        # What was forked hears no signal before it is executed, if there is a trap.
        setsid sh -c 'trap "echo stopping; sleep 0.2; echo clean; exit" TERM; sh -c "echo ready; sleep 1000" & wait' &
        wait
    "#;
    let mut subject = Subject::script(contain, script);
    for _ in 0..3 {
        let run = subject.start(LONG);
        let wrapper = Process::of(subject.started());
        subject.says("ready");
        // It sees the death first, and the order is there: where a slow machine comes between them, what is left is ended, and rightly so.
        subject.guard.signal(Signal::STOP);
        subject.order(Order::Stop { run, by: now().after(LONG) });
        wrapper.signal(Signal::TERM);
        until("the command has ended", || !wrapper.is_alive());
        subject.guard.signal(Signal::CONT);
        subject.says("stopping");
        subject.says("clean");
        assert_eq!(subject.ends().1, TERMINATED);
    }
}

pub fn what_ignores_the_stop_signal_is_killed_at_the_end_of_the_stop_though_the_command_has_ended(contain: Contain) {
    let mut subject = Subject::script(contain, FAMILY);
    for kills in [false, true] {
        let run = subject.start_ready(LONG);
        let by = now().after(if kills { LONG } else { Duration::from_millis(500) });
        subject.order(Order::Stop { run, by });
        until("the command has ended", || matches!(subject.news(), News::Report(Report::CommandEnded { .. })));
        let due = if kills { now() } else { by };
        if kills {
            assert!(subject.tree_lives());
            subject.order(Order::Kill { run });
        }
        let (_, status, cause) = subject.ends_at(due);
        assert!((kills || now() >= by) && !subject.tree_lives());
        assert_eq!((status, cause), (TERMINATED, Cause::Ordered));
    }
}

pub fn a_lease_that_ends_while_what_is_left_is_being_stopped_ends_it(contain: Contain) {
    let mut subject = Subject::script(contain, FAMILY);
    let (lease, run) = (subject.start_short(), subject.run());
    subject.order(Order::Stop { run, by: now().after(LONG) });
    let (_, status, cause) = subject.ends_at(lease.kill_at);
    assert!(now() >= lease.kill_at && !subject.tree_lives());
    assert_eq!((status, cause), (TERMINATED, Cause::Ordered));
}

pub fn an_unmoved_lease_is_stopped_and_then_killed_in_time(contain: Contain) {
    let mut subject = Subject::script(
        contain,
        r#"exec 9>"$ALIVE"; trap "echo stop" TERM; echo ready; while :; do sleep 1000 & wait; done"#,
    );
    let (lease, run) = (subject.start_short(), subject.run());
    subject.says("stop");
    assert!(now() >= lease.stop_at);
    is_in_time(lease.stop_at);
    let (reports, status, cause) = subject.ends_at(lease.kill_at);
    assert!(now() >= lease.kill_at && !subject.tree_lives());
    assert_eq!((status, cause), (KILLED, Cause::Deadline));
    assert!(reports.contains(&Report::Stopping { run }));
}

pub fn a_renewed_lease_keeps_the_command_alive(contain: Contain) {
    let mut subject = Subject::script(contain, r#"exec 9>"$ALIVE"; echo ready; exec sleep 1000"#);
    let (first, run) = (subject.start_short(), subject.run());
    let mut last = first;
    for _ in 0..6 {
        last = deadlines(2 * SHORT);
        subject.order(Order::Extend { run, deadlines: last });
        pause(SHORT / 5);
        assert!(subject.tree_lives());
    }
    assert!(now() > first.kill_at);
    let (_, status, cause) = subject.ends_at(last.stop_at);
    assert!(now() >= last.stop_at && !subject.tree_lives());
    assert_eq!((status, cause), (TERMINATED, Cause::Deadline));
}

pub fn what_the_command_left_behind_is_ended_with_it(contain: Contain) {
    let script = r#"
        exec 9>"$ALIVE"
        (setsid sh -c 'trap "" TERM HUP; echo ready; sleep 1000 & wait' &)
        sleep 1000 &
        read how
        exit 37
    "#;
    let mut subject = Subject::script(contain, script);
    subject.start_ready(LONG);
    let ended_at = now();
    subject.writes("go");
    let (reports, status, cause) = subject.ends_at(ended_at);
    assert!(!subject.tree_lives());
    assert_eq!((status, cause), (ChildStatus::Exited(37), Cause::ItsOwn));
    let command_ended = Report::CommandEnded { run: zk_leader_run::core::guard_messages::RunId(1), status };
    assert_eq!(reports.last(), Some(&command_ended));
}

pub fn a_process_that_forks_and_exits_without_end_is_ended(contain: Contain) {
    let script = r#"
        exec 9>"$ALIVE"
        chain() { chain & }
        for group in 1 2 3; do (setsid sh -c 'chain() { chain & }; chain' &); done
        chain
        echo ready
        sleep 1000
    "#;
    let mut subject = Subject::script(contain, script);
    subject.start_ready(LONG);
    subject.is_killed();
    assert!(!subject.tree_lives());
}

/// More than one pass can reap.
pub fn hundreds_of_daemons_are_ended(contain: Contain) {
    let script = r#"
        exec 9>"$ALIVE"
        daemons=0
        while [ "$daemons" -lt 300 ]; do setsid sleep 1000 & daemons=$((daemons + 1)); done
        echo ready
        wait
    "#;
    let mut subject = Subject::script(contain, script);
    subject.start_ready(LONG);
    subject.is_killed();
    assert!(!subject.tree_lives());
}

pub fn an_ordinary_users_tree_is_ended_as_well() {
    for contain in [Contain::Auto, Contain::Subreaper, Contain::PidNamespace] {
        let mut subject = Setting::new(contain, &["sh", "-c", FAMILY]).of_an_ordinary_user().run();
        subject.start_ready(LONG);
        subject.is_killed();
        assert!(!subject.tree_lives(), "{}", subject.containment);
    }
}

/// T4, T12: the order comes before, while and after the command leaves our group, changes its signals and is executed.
pub fn a_start_that_is_taken_back_at_once_leaves_nothing(contain: Contain) {
    let mut subject = Subject::script(contain, r#"exec 9>"$ALIVE"; (setsid sleep 1000 &); exec sleep 1000"#);
    for round in 0_u32..120 {
        let run = subject.start(LONG);
        pause(Duration::from_micros(u64::from(round / 2) * 100));
        match round % 2 {
            0 => subject.order(Order::Kill { run }),
            _ => subject.order(Order::Stop { run, by: now().after(LONG) }),
        }
        let (_, status, cause) = subject.ends();
        assert!(!subject.tree_lives(), "round {round}");
        assert_eq!((status, cause), (if round % 2 == 0 { KILLED } else { TERMINATED }, Cause::Ordered));
    }
    assert!(subject.driver_process.is_alive() && subject.guard.is_alive());
}

pub fn one_guard_runs_one_command_after_another(contain: Contain) {
    let mut subject = Subject::script(contain, r#"exec 9>"$ALIVE"; echo ready; read how; exit "$how""#);
    for code in 0..5 {
        subject.start_ready(LONG);
        // A second tree is not started while one lives (I3), and nothing is said that could be taken for its end.
        let first = zk_leader_run::core::guard_messages::RunId(u64::from(code) + 1);
        subject.order(Order::Start { run: first, deadlines: deadlines(LONG), grant: crate::subject::GRANT });
        subject.writes(&code.to_string());
        let (_, status, cause) = subject.ends();
        assert_eq!((status, cause), (ChildStatus::Exited(code), Cause::ItsOwn));
    }
    let past = deadlines(Duration::ZERO);
    subject.start_under(past);
    let (reports, status, cause) = subject.ends();
    assert_eq!((reports.as_slice(), cause), ([].as_slice(), Cause::Deadline));
    assert!(matches!(status, ChildStatus::NotExecuted(_)));
}

/// A cgroup holds what no subreaper can: a process whose parent is outside of the tree.
pub fn a_process_that_is_no_descendant_is_ended_by_the_cgroup() {
    let mut subject = Subject::script(Contain::Cgroup, r#"exec 9>"$ALIVE"; echo ready; exec sleep 1000"#);
    subject.start_ready(LONG);
    let cgroup = subject.containment.split(' ').nth(1).unwrap().to_owned();
    let mut stranger = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    std::fs::write(format!("{cgroup}/cgroup.procs"), stranger.id().to_string()).unwrap();
    subject.is_killed();
    let status = stranger.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(Signal::KILL.as_raw()));
}

/// As a container engine leaves it. Where a controller is shared out, no process could join.
pub fn the_next_command_finds_its_cgroup_as_new() {
    let mut subject = Subject::script(Contain::Cgroup, r#"exec 9>"$ALIVE"; echo ready; exec sleep 1000"#);
    let cgroup = PathBuf::from(subject.containment.split(' ').nth(1).unwrap());
    let run = subject.start_ready(LONG);
    fs::create_dir_all(cgroup.join("engine/container")).unwrap();
    subject.order(Order::Kill { run });
    subject.ends();
    let shared = cgroup.join("cgroup.subtree_control");
    for controller in fs::read_to_string(cgroup.join("cgroup.controllers")).unwrap().split_whitespace() {
        fs::write(&shared, format!("+{controller}")).unwrap();
    }
    let run = subject.start_ready(LONG);
    assert!(!cgroup.join("engine").exists());
    assert_eq!(fs::read_to_string(shared).unwrap().trim(), "");
    subject.order(Order::Kill { run });
    subject.ends();
}

/// By an operator, or by the command itself: it may while it runs, and while the cgroup is empty.
pub fn a_cgroup_that_somebody_else_has_killed_takes_the_next_command() {
    for runs in [false, true] {
        let mut subject = Subject::script(Contain::Cgroup, r#"exec 9>"$ALIVE"; echo ready; exec sleep 1000"#);
        let cgroup = PathBuf::from(subject.containment.split(' ').nth(1).unwrap());
        if runs {
            subject.start_ready(LONG);
        }
        fs::write(cgroup.join("cgroup.kill"), "1").unwrap();
        if runs {
            let (_, status, cause) = subject.ends();
            assert_eq!((status, cause), (KILLED, Cause::ItsOwn));
        }
        let run = subject.start_ready(LONG);
        subject.order(Order::Kill { run });
        subject.ends();
    }
}
