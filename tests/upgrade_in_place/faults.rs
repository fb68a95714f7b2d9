//! What comes in between.

use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::signal::Signal;

use crate::election;
use crate::package::{Package, REFUSED, UPGRADED, ask};
use crate::refusals::{Pipe, leader_with_pipe, of_session_timeout};
use crate::support::election::SESSION_TIMEOUT;
use crate::support::subject::is_alive;
use crate::support::{Notified, wait};

#[test]
fn a_stop_at_any_instant_of_the_exchange_is_not_lost() {
    for pause in [0, 1, 3, 5, 8, 12, 20, 30, 45, 70, 100, 150] {
        let (election, package) = (election(), Package::new());
        let mut leader = package.on(election.steady_host("a")).spawn();
        election.diary.until_started(1);
        package.install();
        ask(&leader);
        wait::pass(std::time::Duration::from_millis(pause));
        leader.signal(Signal::SIGTERM);
        assert_eq!(leader.code(), 0, "after {pause} ms: {}", leader.log());
        assert_eq!(election.state(), "free", "after {pause} ms: {}", leader.log());
        election.diary.until_nobody_lives();
    }
}

/// The new program waits for its configuration; nothing of ours heeds signals then.
#[test]
fn a_stop_before_the_new_program_can_heed_it_is_obeyed_afterwards() {
    let (election, package) = (election(), Package::new());
    let pipe = Pipe::new(&election);
    let mut leader = leader_with_pipe(&election, &package, &pipe);
    package.install();
    ask(&leader);
    pipe.write();
    wait::until("it is handed over", || package.is_executed_by(&leader));
    leader.signal(Signal::SIGTERM);
    wait::pass(wait::SETTLED);
    assert!(!leader.has_exited(), "{}", leader.log());
    pipe.write();
    assert_eq!(leader.code(), 0, "{}", leader.log());
    assert_eq!(election.state(), "free", "{}", leader.log());
}

#[test]
fn a_new_program_that_hangs_in_the_exchange_ends_with_its_lease() {
    let (election, package) = (election(), Package::new());
    // It waits for the end of the lease.
    let pipe = Pipe::with_settings(&election, &of_session_timeout(SESSION_TIMEOUT));
    let leader = leader_with_pipe(&election, &package, &pipe);
    let _standby = package.on(election.host("b")).spawn();
    election.until_candidates(2);
    package.install();
    ask(&leader);
    pipe.write();
    assert_eq!(election.diary.until_started(2).id, "b");
    election.diary.assert_no_overlap();
}

#[test]
fn systemd_is_told_of_both_ends_and_of_a_refusal() {
    let (election, package, systemd) = (election(), Package::new(), Notified::listening());
    let host = package.on(election.steady_host("a").env("NOTIFY_SOCKET", systemd.socket().to_str().unwrap())).spawn();
    systemd.until_told("READY=1");
    election.diary.until_started(1);
    let told = |kinds: &[&str]| {
        let is_one = |line: &String| kinds.iter().any(|kind| line.starts_with(kind));
        systemd.lines().into_iter().filter(is_one).collect::<Vec<_>>()
    };
    let mut seen = 1;
    // What was told since the last call: each RELOADING has a time that is not before the request.
    let mut reloads = |since: std::time::Duration, readies: usize| {
        wait::until("it is ready again", || systemd.count("READY=1") >= readies);
        let lines = told(&["READY=1", "RELOADING=1", "MONOTONIC_USEC="]).split_off(seen);
        seen += lines.len();
        let since = since.as_micros();
        let is_old =
            |line: &String| line.strip_prefix("MONOTONIC_USEC=").is_some_and(|at| at.parse::<u128>().unwrap() < since);
        assert!(!lines.iter().any(is_old), "since {since}: {lines:?}");
        lines.iter().map(|line| line.split('=').next().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    let once = "RELOADING MONOTONIC_USEC";
    let since = monotonic();
    package.upgrade(&host);
    assert_eq!(reloads(since, 2), format!("{once} {once} READY"), "by the old program, and by the new one");
    package.install_other(&std::fs::read("/bin/false").unwrap());
    let since = monotonic();
    ask(&host);
    assert_eq!(reloads(since, 3), format!("{once} READY"), "refused by its silence");
    package.remove();
    let since = monotonic();
    ask(&host);
    assert_eq!(reloads(since, 4), format!("{once} READY"), "refused at once");
    package.install();
}

/// A unit that was ready is so after an upgrade, even where it would have to lead to become ready.
#[test]
fn a_standby_that_has_led_is_ready_again_after_an_upgrade() {
    let (election, package, systemd) = (election(), Package::new(), Notified::listening());
    let host = election.steady_host("a").option("--ready-on", "leading").option("--on-exit", "rejoin");
    let host = package.on(host.env("NOTIFY_SOCKET", systemd.socket().to_str().unwrap())).spawn();
    let first = election.diary.until_started(1);
    systemd.until_told("READY=1");
    let _other = package.on(election.steady_host("b")).spawn();
    election.until_candidates(2);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(first.pid), Signal::SIGKILL).unwrap();
    assert_eq!(election.diary.until_started(2).id, "b");
    election.until_candidates(2);
    package.upgrade(&host);
    wait::until("it is ready again", || systemd.count("READY=1") >= 2);
}

/// `CLOCK_MONOTONIC`.
fn monotonic() -> std::time::Duration {
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap().into()
}

#[test]
fn the_new_program_killed_at_any_instant_is_followed_by_the_next_host() {
    for pause in [0, 2, 5, 9, 15, 25, 40, 60] {
        let (election, package) = (election(), Package::new());
        let leader = package.on(election.host("a").session_timeout("6s")).spawn();
        election.diary.until_started(1);
        let _standby = package.on(election.host("b").session_timeout("6s")).spawn();
        election.until_candidates(2);
        package.install();
        ask(&leader);
        wait::until("it is handed over", || package.is_executed_by(&leader));
        wait::pass(std::time::Duration::from_millis(pause));
        leader.kill();
        assert_eq!(election.diary.until_started(2).id, "b");
        election.diary.assert_no_overlap();
    }
}

#[test]
fn two_requests_are_as_good_as_one_or_two() {
    let (election, package) = (election(), Package::new());
    let leader = package.on(election.host("a").session_timeout("10s")).spawn();
    let start = election.diary.until_started(1);
    package.install();
    for _ in 0..5 {
        ask(&leader);
    }
    leader.until_logged(UPGRADED);
    for _ in 0..3 {
        ask(&leader);
    }
    election.until_renewed(2);
    assert!(!leader.log().contains(REFUSED), "{}", leader.log());
    assert_eq!(election.diary.starts(), [start]);
}

/// Contact was not lost before, and the new program never has any.
#[test]
fn an_outage_that_begins_with_an_upgrade_is_told_while_the_session_may_still_be_taken_up() {
    let (election, package, link) = (election(), Package::new(), crate::link());
    let host = package.on(election.host_behind(&link, "a").session_timeout("10s")).spawn();
    election.diary.until_started(1);
    // Of the connection that there is, all passes; the next one is never greeted.
    link.tamper(|reply| if reply[4..8] == [0; 4] { Vec::new() } else { reply });
    package.install();
    ask(&host);
    host.until_logged(UPGRADED);
    host.until_logged("Cannot reach ZooKeeper");
    let log = host.log();
    let (before, _) = log.split_once("Cannot reach ZooKeeper").unwrap();
    assert!(!before.contains("Session ended"), "{log}");
}

/// It executes itself again, when the file that it was started from is no longer there.
#[test]
fn a_host_that_stood_still_after_a_new_program_was_installed_can_be_upgraded() {
    let (election, package) = (election(), Package::new());
    let host = package.on(election.host("a").session_timeout("6s")).spawn();
    election.diary.until_started(1);
    package.install();
    let guard = host.guard_pid();
    host.signal(Signal::SIGSTOP);
    host.signal_guard(Signal::SIGSTOP);
    wait::until("the guard was killed by the kernel", || !is_alive(guard));
    host.signal(Signal::SIGCONT);
    host.until_logged("rejoining");
    let start = election.diary.until_started(2);
    package.upgrade(&host);
    election.diary.until_alive();
    assert_eq!(election.diary.last_start(), start);
}

/// It reads the request in the same turn in which it learns that its guard is gone.
#[test]
fn an_upgrade_that_was_asked_for_while_the_host_stood_still_is_made_after_its_restart() {
    let (election, package) = (election(), Package::new());
    let host = package.on(election.host("a").session_timeout("6s").option("--health-cmd", "true")).spawn();
    election.diary.until_started(1);
    package.install();
    let guard = host.guard_pid();
    host.signal(Signal::SIGSTOP);
    host.signal_guard(Signal::SIGSTOP);
    wait::until("the guard was killed by the kernel", || !is_alive(guard));
    ask(&host);
    host.signal(Signal::SIGCONT);
    host.until_logged("rejoining");
    host.until_logged(UPGRADED);
    assert!(package.is_executed_by(&host));
    election.diary.until_started(2);
    election.diary.until_alive();
}

/// The programs after the first one find no terminal, but where SIGHUP means that it was closed, it still does.
#[test]
fn that_there_was_a_terminal_is_remembered_in_upgrades_and_after_a_standstill() {
    let (election, package) = (election(), Package::new());
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let terminal = posix_openpt(flags).unwrap();
    grantpt(&terminal).and_then(|()| unlockpt(&terminal)).unwrap();
    let mut host = package.on(election.host("a").session_timeout("6s")).spawn_at(ptsname_r(&terminal).unwrap());
    election.diary.until_started(1);
    let other = election.host("b").session_timeout("6s").spawn();
    election.until_candidates(2);
    drop(terminal);
    election.diary.until_noted("signal=1");
    package.upgrade(&host);
    // Before that, a standstill is one in the exchange.
    host.until_logged("Session was taken up");
    host.signal(Signal::SIGSTOP);
    host.signal_guard(Signal::SIGSTOP);
    assert_eq!(election.diary.until_started(2).id, "b");
    host.signal(Signal::SIGCONT);
    host.until_logged("rejoining");
    election.until_candidates(2);
    package.upgrade(&host);
    host.signal(Signal::SIGHUP);
    assert_eq!(host.code(), 0, "{}", host.log());
    drop(other);
}

#[test]
fn a_server_that_restarts_meanwhile_costs_nothing() {
    let ensemble = crate::support::Ensemble::single();
    let election = crate::support::Election::on(&ensemble.connect_string());
    let package = Package::new();
    let leader = package.on(election.host("a").session_timeout("60s")).spawn();
    let start = election.diary.until_started(1);
    for turn in 0..4 {
        package.upgrade(&leader);
        if turn % 2 == 0 {
            ensemble.server(0).restart();
        }
        election.diary.until_alive();
    }
    assert_eq!(election.diary.starts(), [start]);
}
