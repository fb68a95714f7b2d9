//! Signals to the program, in every state.

use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use nix::fcntl::OFlag;
use nix::pty::{PtyMaster, grantpt, openpty, posix_openpt, ptsname_r, unlockpt};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, ttyname};

use super::{election, link, millis, secs};
use crate::support::election::STEADY;
use crate::support::wait::AT_ONCE;
use crate::support::{Election, Proxy, Running, Subject, diary, wait};

const STOPPING: [i32; 3] = [2, 3, 15];
const TOLD_TO_THE_WITNESS: [i32; 3] = [1, 10, 12];
/// ALRM, VTALRM, PROF, IO, and the first and last realtime signal: passed on, and the witness has no handler for them.
const DEADLY_TO_THE_WITNESS: [i32; 6] = [14, 26, 27, 29, 34, 64];
/// PIPE, CHLD, CONT, URG, XFSZ, WINCH.
const HARMLESS: [i32; 6] = [13, 17, 18, 23, 25, 28];
/// ILL, TRAP, ABRT, BUS, FPE, SEGV, STKFLT, XCPU, PWR, SYS: somebody means to kill the supervisor.
const DEADLY_TO_THE_SUPERVISOR: [i32; 10] = [4, 5, 6, 7, 8, 11, 16, 24, 30, 31];
/// TSTP, TTIN, TTOU.
const JOB_CONTROL: [i32; 3] = [20, 21, 22];

fn send(host: &Running, signal: i32) {
    assert!(deliver(host, signal));
}

/// Whether there was a process to take it. Nix has no names for the realtime signals.
fn deliver(host: &Running, signal: i32) -> bool {
    let mut kill = Command::new("kill");
    kill.args([format!("-{signal}"), host.pid().to_string()]).stderr(Stdio::null());
    kill.status().unwrap().success()
}

/// A test run may ignore SIGHUP (`nohup(1)`); whatever it starts would do so, too.
fn spawn(host: Subject) -> Running {
    let mut env = Command::new("env");
    env.arg("--default-signal=HUP");
    host.spawn_inside(env)
}

/// In a session of its own: at a terminal that nobody closes before the test run ends, or at none.
fn spawn_at(host: Subject, terminal: bool) -> Running {
    if !terminal {
        let mut session = Command::new("setsid");
        session.args(["env", "--default-signal=HUP"]);
        return host.spawn_inside(session);
    }
    let terminal = openpty(None, None).unwrap();
    let host = host.spawn_at(ttyname(&terminal.slave).unwrap());
    std::mem::forget(terminal);
    host
}

fn leading() -> (Election, Running) {
    let election = election();
    let host = spawn(election.steady_host("a"));
    election.diary.until_started(1);
    (election, host)
}

/// T8
#[test]
fn while_leading_a_stop_signal_ends_the_command_by_sigterm_and_releases() {
    for signal in STOPPING {
        let (election, mut host) = leading();
        send(&host, signal);
        assert_eq!(host.code(), 0, "signal {signal}: {}", host.log());
        assert_eq!(election.diary.events("signal=15").len(), 1, "signal {signal}");
        assert!(election.diary.has("end") && !election.diary.somebody_lives());
        assert_eq!((election.state().as_str(), election.candidates().len()), ("free", 0));
    }
}

/// Whoever is paged wants to know who stopped it.
#[test]
fn who_asked_to_stop_is_told() {
    let (_election, mut host) = leading();
    kill(Pid::from_raw(host.pid()), Signal::SIGTERM).unwrap();
    assert_eq!(host.code(), 0);
    let name = std::fs::read_to_string("/proc/self/comm").unwrap();
    let told = format!("SIGTERM was received from process {} ({}) of user ", std::process::id(), name.trim());
    assert!(host.log().contains(&told), "{}", host.log());
}

/// T8
#[test]
fn while_leading_other_signals_are_the_commands() {
    let (election, host) = leading();
    for signal in [TOLD_TO_THE_WITNESS.as_slice(), &HARMLESS].concat() {
        send(&host, signal);
        if TOLD_TO_THE_WITNESS.contains(&signal) {
            election.diary.until_noted(&format!("signal={signal}"));
        }
        election.diary.until_alive();
    }
    assert_eq!(election.diary.starts().len(), 1);
    for signal in DEADLY_TO_THE_WITNESS {
        let (election, mut host) = leading();
        send(&host, signal);
        assert_eq!(host.code(), 128 + signal, "{}", host.log());
        assert_eq!(election.state(), "free");
    }
}

/// T8: whatever ends or stops the supervisor ends the tree.
#[test]
fn while_leading_no_signal_leaves_a_command_without_a_supervisor() {
    // The supervisor shall die, and not leave a core here.
    setrlimit(Resource::RLIMIT_CORE, 0, 0).unwrap();
    for signal in DEADLY_TO_THE_SUPERVISOR {
        let (election, mut host) = leading();
        // Rust's runtime takes the first SIGSEGV or SIGBUS for a stack overflow to be looked at again.
        wait::until("the supervisor dies", || host.has_exited() || !deliver(&host, signal));
        assert!(!host.status().success());
        election.diary.until_nobody_lives();
    }
    let stopped = JOB_CONTROL.map(|signal| {
        let election = election();
        let host = election.host("a").spawn_as_job();
        election.diary.until_started(1);
        send(&host, signal);
        (election, host)
    });
    for (election, host) in stopped {
        election.diary.until_nobody_lives();
        host.signal(Signal::SIGCONT);
        election.diary.until_started(2);
        election.diary.assert_no_overlap();
    }
}

/// The guard reads none of them meanwhile: what it reads is still to be an order, and not only a signal.
#[test]
fn a_flood_of_signals_costs_some_of_them_and_neither_the_command_nor_its_stop() {
    for signal in [1, 10, 36] {
        let election = election();
        let witness = crate::support::subject::example("witness");
        let (witness, diary) = (witness.to_str().unwrap(), election.diary.path());
        let words = ["env", "--ignore-signal=36", witness, diary.to_str().unwrap()];
        let host = election.host("a").session_timeout("20s").option("--log-level", "info");
        let mut host = spawn(host.command(&words));
        election.diary.until_started(1);
        host.signal_guard(Signal::SIGSTOP);
        let flood = format!("i=0; while [ $i -lt 2000 ]; do kill -{signal} {}; i=$((i + 1)); done", host.pid());
        assert!(Command::new("sh").args(["-c", &flood]).status().unwrap().success());
        host.signal_guard(Signal::SIGCONT);
        // What the guard has read leaves room for the next orders.
        election.until_renewed(2);
        host.signal(Signal::SIGTERM);
        assert_eq!(host.code(), 0, "signal {signal}: {}", host.log());
        assert!(election.diary.has("end") && election.diary.starts().len() == 1, "signal {signal}: {}", host.log());
    }
}

/// T8
#[test]
fn while_waiting_signals_that_would_be_the_commands_change_nothing() {
    let (election, _holder) = leading();
    let waiter = election.steady_host("b").command(&["true"]).spawn();
    election.until_candidates(2);
    let before = election.candidates();
    for signal in [&TOLD_TO_THE_WITNESS[1..], &DEADLY_TO_THE_WITNESS, &HARMLESS].concat() {
        send(&waiter, signal);
    }
    // A renewal of the holder later it is still there.
    election.until_renewed(1);
    assert_eq!(election.candidates(), before);
}

/// `&` in a script without job control ignores INT and QUIT for the job: Ctrl-C at that terminal is not for it.
#[test]
fn interrupts_that_were_ignored_at_the_start_stay_ignored_and_sigterm_is_heard_though_it_was_blocked() {
    let election = election();
    let mut inside = Command::new("env");
    inside.args(["--ignore-signal=INT,QUIT", "--block-signal=TERM,CHLD"]);
    let mut host = election.steady_host("a").spawn_inside(inside);
    election.diary.until_started(1);
    let version = election.record_version();
    for signal in [Signal::SIGINT, Signal::SIGQUIT] {
        host.signal(signal);
    }
    wait::until("the record is renewed", || election.record_version() > version);
    election.diary.until_alive();
    assert!(!election.diary.has("signal=15"));
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0, "{}", host.log());
    assert_eq!(election.state(), "free");
}

/// T5
#[test]
fn term_int_hup_and_quit_end_a_host_at_once_in_every_state_without_a_command() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
        for (state, arrive) in STATES {
            let election = election();
            let link = link();
            let mut others = Vec::new();
            let mut host = arrive(&election, &link, &mut others);
            let before = others.len();
            let sent_at = diary::now();
            host.signal(signal);
            assert_eq!(host.code(), 0, "{signal} while {state}: {}", host.log());
            let took = diary::now().saturating_sub(sent_at);
            assert!(took < AT_ONCE, "{signal} while {state}: {took:?}");
            assert_eq!(election.candidates().len(), before, "{signal} while {state}");
            assert!(!election.diary.starts().iter().any(|start| start.id == "a"));
        }
    }
}

/// As by `systemctl reload`, with `kill -HUP`, on every host.
#[test]
fn a_hang_up_without_a_terminal_is_for_the_command_and_ends_no_host_that_waits() {
    let (election, mut leader) = leading();
    let mut waits = spawn_at(election.steady_host("b"), false);
    election.until_candidates(2);
    waits.signal(Signal::SIGHUP);
    waits.until_logged("SIGHUP is for the command, which does not run here now: nothing is done");
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.code(), 0, "{}", leader.log());
    election.diary.until_started(2);
    waits.signal(Signal::SIGHUP);
    election.diary.until_noted("signal=1");
    waits.signal(Signal::SIGTERM);
    assert_eq!(waits.code(), 0, "{}", waits.log());
}

type Arrive = fn(&Election, &Proxy, &mut Vec<Running>) -> Running;

const STATES: [(&str, Arrive); 4] = [
    ("connecting", connecting),
    ("backing off", backing_off),
    ("waiting behind a holder", waiting_behind_a_holder),
    ("waiting for a lease to end", waiting_for_a_lease),
];

fn connecting(election: &Election, link: &Proxy, _: &mut Vec<Running>) -> Running {
    link.stall();
    let host = spawn_at(election.host_behind(link, "a"), true);
    wait::until("it connects", || link.accepted() > 0);
    host
}

fn backing_off(election: &Election, link: &Proxy, _: &mut Vec<Running>) -> Running {
    link.cut();
    let host = spawn_at(election.host_behind(link, "a"), true);
    wait::until("it was refused twice", || link.accepted() > 1);
    host
}

fn waiting_behind_a_holder(election: &Election, link: &Proxy, others: &mut Vec<Running>) -> Running {
    others.push(election.steady_host("holder").spawn());
    election.until_candidates(1);
    let host = spawn_at(election.host_behind(link, "a"), true);
    election.until_candidates(2);
    host
}

fn waiting_for_a_lease(election: &Election, link: &Proxy, _: &mut Vec<Running>) -> Running {
    election.prepare();
    election.admin.set(&election.path("lease"), "whatever this is, it may be held");
    let host = spawn_at(election.host_behind(link, "a"), true);
    wait::until("it has taken the record over", || election.admin.read(&election.path("lease")).contains("\"a\""));
    host
}

/// T44
#[test]
fn a_second_stop_kills_a_command_that_ignores_the_first_whatever_the_link_does() {
    for fault in [Proxy::heal, Proxy::stall, Proxy::cut] {
        let election = election();
        let link = link();
        let witness = ["ignore-term", "daemonise"];
        let host = election.host_behind(&link, "a").session_timeout(STEADY).witness(&election.diary, &witness);
        let mut host = host.option("--stop-timeout", "1m").spawn();
        election.diary.until_noted("orphan");
        fault(&link);
        host.signal(Signal::SIGTERM);
        election.diary.until_noted("signal=15");
        // At once it would be the same request.
        wait::pass(millis(500));
        let sent_at = diary::now();
        host.signal(Signal::SIGTERM);
        assert_eq!(host.code(), 128 + 9, "{}", host.log());
        let took = diary::now().saturating_sub(sent_at);
        assert!(took < secs(10), "the lease alone would have allowed 15 s and more; took {took:?}");
        assert!(!election.diary.somebody_lives());
    }
}

/// T44
#[test]
fn stopping_twice_without_a_command_leaves_nothing_behind_in_any_state() {
    for (state, arrive) in STATES {
        let election = election();
        let link = link();
        let mut others = Vec::new();
        let mut host = arrive(&election, &link, &mut others);
        for _ in 0..2 {
            if !host.has_exited() {
                host.signal(Signal::SIGTERM);
            }
        }
        assert_eq!(host.code(), 0, "while {state}: {}", host.log());
        link.heal();
        wait::pass(millis(300));
        assert_eq!(election.candidates().len(), others.len(), "while {state}");
    }
}

/// T13: what a person at a terminal does, with the command in a session of its own and with `--foreground`.
#[test]
fn ctrl_c_at_a_terminal_reaches_the_command_exactly_once() {
    for (foreground, heard, not_heard) in [(false, "signal=15", "signal=2"), (true, "signal=2", "signal=15")] {
        let election = election();
        let mut host = election.steady_host("a").witness(&election.diary, &["linger=200"]);
        if foreground {
            host = host.flag("--foreground");
        }
        let mut terminal = rexpect::session::spawn_command(host.to_process(), Some(30_000)).unwrap();
        election.diary.until_started(1);
        terminal.send_control('c').unwrap();
        let ended = format!("{:?}", terminal.process().wait().unwrap());
        assert!(ended.starts_with("Exited(") && ended.ends_with(", 0)"), "{ended}");
        assert_eq!(election.diary.events(heard).len(), 1);
        assert!(!election.diary.has(not_heard));
        assert!(election.diary.has("end"));
        assert_eq!(election.state(), "free");
    }
}

/// T14: the terminal's hang-up comes before, while and after the command starts. It ends a host that runs none, else it is the
/// command's, like any other; and the command hears nothing that nobody sent.
#[test]
fn a_terminal_that_closes_at_any_moment_leaves_no_command_without_a_supervisor() {
    let last = 12;
    for step in 0..=last {
        let election = election();
        let (terminal, slave) = hanging_up();
        let mut host = on_terminal(&election.steady_host("a").to_process(), &slave);
        drop(slave);
        wait::pass(millis(step * 8));
        if step == last {
            wait::until("its command lives", || election.diary.has("alive"));
        }
        drop(terminal);
        if step == last {
            election.diary.until_noted("signal=1");
        }
        let mut has_ended = || host.try_wait().unwrap().is_some();
        wait::until("the program ends, or runs its command", || has_ended() || !election.diary.starts().is_empty());
        if !has_ended() {
            wait::until("the program ends, or its command lives", || has_ended() || election.diary.has("alive"));
            kill(Pid::from_raw(i32::try_from(host.id()).unwrap()), Signal::SIGTERM).unwrap();
        }
        host.wait().unwrap();
        election.diary.until_nobody_lives();
        let heard = |signal| election.diary.events(signal).len();
        assert!(heard("signal=1") <= 1 && heard("signal=18") == 0, "after {} ms", step * 8);
    }
}

/// A terminal that hangs up when its master is dropped: no other process inherits that, as it would from `openpty(3)`.
fn hanging_up() -> (PtyMaster, OwnedFd) {
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let master = posix_openpt(flags).unwrap();
    grantpt(&master).and_then(|()| unlockpt(&master)).unwrap();
    let slave = nix::fcntl::open(ptsname_r(&master).unwrap().as_str(), flags, nix::sys::stat::Mode::empty()).unwrap();
    (master, slave)
}

/// Started in a session whose terminal this is.
fn on_terminal(process: &Command, terminal: &OwnedFd) -> Child {
    let stream = || Stdio::from(terminal.try_clone().unwrap());
    let mut session = Command::new("setsid");
    session.arg("--ctty").arg(process.get_program()).args(process.get_args());
    session.stdin(stream()).stdout(stream()).stderr(stream()).spawn().unwrap()
}
