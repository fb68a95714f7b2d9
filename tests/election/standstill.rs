//! A host that stands still for longer than its lease: the kernel kills the guard, and with it the command.

use nix::sys::signal::Signal;

use super::{election, secs, server};
use crate::support::addresses::NameServer;
use crate::support::apart::Apart;
use crate::support::subject::{is_alive, memory_limit_of};
use crate::support::{Election, Notified, Running, wait};

/// Supervisor and guard stand still until the command is dead, and go on.
fn stands_still(election: &Election, host: &Running) {
    let guard = host.guard_pid();
    host.signal(Signal::SIGSTOP);
    host.signal_guard(Signal::SIGSTOP);
    election.diary.until_nobody_lives();
    wait::until("the guard was killed by the kernel", || !is_alive(guard));
    host.signal(Signal::SIGCONT);
}

#[test]
fn a_leader_that_stood_still_for_longer_than_its_lease_says_so_and_contends_again() {
    let election = election();
    let marker = election.diary.directory().join("hooks");
    let hook = format!("echo $ZK_LEADER_EVENT >>{}", marker.display());
    let host = election.host("a").option("--wait", "10s").option("--hook", &hook).option("--health-cmd", "true");
    let mut host = host.spawn();
    for standstill in 1..=2 {
        election.diary.until_started(standstill);
        stands_still(&election, &host);
        host.until_logged_times("this host stood still for ", standstill);
        host.until_logged_times("rejoining", standstill);
        assert_eq!(election.diary.until_started(standstill + 1).id, "a");
        election.diary.until_alive();
    }
    assert!(!host.log().contains("guard process died") && !host.log().contains("took no order"), "{}", host.log());
    assert_eq!(std::fs::read_to_string(format!("/proc/{}/comm", host.pid())).unwrap(), "zk-leader-run\n");
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0, "{}", host.log());
    assert_eq!(election.state(), "free");
    election.diary.assert_no_overlap();
    wait::until("the hooks went on", || std::fs::read_to_string(&marker).unwrap().matches("elected").count() >= 3);
}

/// Where it contends must not change by itself, and what is being written is no reason to stay out.
#[test]
fn after_a_standstill_the_configuration_file_counts_as_it_was_read_at_the_start() {
    let election = election();
    let (file, hooks) = (election.diary.directory().join("settings.toml"), election.diary.directory().join("hooks"));
    std::fs::write(&file, format!("hook = 'echo $ZK_LEADER_EVENT >>{}'\n", hooks.display())).unwrap();
    let host = election.host("a").option("--config", file.to_str().unwrap()).spawn();
    election.diary.until_started(1);
    std::fs::write(&file, "election-path = \"/elsewhere\"\nhook = [").unwrap();
    stands_still(&election, &host);
    host.until_logged("rejoining");
    assert_eq!(election.diary.until_started(2).id, "a");
    wait::until("the hook of the file goes on", || {
        std::fs::read_to_string(&hooks).unwrap().matches("elected").count() == 2
    });
}

/// A supervisor limits itself, and not the command of its next program.
#[test]
fn after_a_standstill_the_command_has_the_limits_that_it_had() {
    let election = election();
    let host = election.host("a").spawn();
    election.diary.until_started(1);
    let limit = memory_limit_of(host.guard_pid());
    stands_still(&election, &host);
    election.diary.until_started(2);
    assert_eq!(memory_limit_of(host.guard_pid()), limit);
}

/// Its loop has ended, as its candidate is gone; its last hook still runs.
#[test]
fn a_stop_request_to_a_host_that_is_about_to_restart_itself_ends_it() {
    let election = election();
    let hangs = election.diary.directory().join("hangs");
    let hook = format!("case $ZK_LEADER_EVENT in lost|released) touch {}; exec sleep 98765;; esac", hangs.display());
    let host = election.host("a").option("--hook", &hook).option("--hook-timeout", "10m");
    let mut host = host.spawn();
    election.diary.until_started(1);
    stands_still(&election, &host);
    wait::until("the hook hangs", || hangs.exists());
    election.until_candidates(0);
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0, "{}", host.log());
    assert!(!host.log().contains("rejoining"), "{}", host.log());
}

#[test]
fn another_host_leads_meanwhile_and_the_one_that_stood_still_waits_in_line_though_its_wait_is_over() {
    let election = election();
    let first = election.host("a").option("--wait", "0").spawn();
    election.diary.until_started(1);
    let second = election.steady_host("b").spawn();
    election.until_candidates(2);
    first.signal(Signal::SIGSTOP);
    first.signal_guard(Signal::SIGSTOP);
    assert_eq!(election.diary.until_started(2).id, "b");
    first.signal(Signal::SIGCONT);
    first.until_logged("rejoining");
    election.until_candidates(2);
    second.signal(Signal::SIGTERM);
    assert_eq!(election.diary.until_started(3).id, "a");
    election.diary.assert_no_overlap();
}

#[test]
fn with_on_loss_exit_a_leader_that_stood_still_exits_with_76() {
    let election = election();
    let mut host = election.host("a").option("--on-loss", "exit").spawn();
    election.diary.until_started(1);
    stands_still(&election, &host);
    assert_eq!(host.code(), 76, "{}", host.log());
    assert!(host.log().contains("this host stood still for "), "{}", host.log());
}

/// It is its own earlier leader, whose record was left as held.
#[test]
fn who_stood_still_neither_fences_itself_nor_forgets_when_its_command_was_started() {
    let election = election();
    let fenced = election.diary.directory().join("fenced");
    let fence = format!("echo $ZK_LEADER_PREVIOUS_ID >>{}", fenced.display());
    let host = election.host("a").option("--fence-cmd", &fence).option("--min-start-interval", "15s").spawn();
    let first = election.diary.until_started(1);
    host.signal(Signal::SIGSTOP);
    host.signal_guard(Signal::SIGSTOP);
    // Its session is over, so it cannot release.
    election.until_candidates(0);
    host.signal(Signal::SIGCONT);
    host.until_logged("rejoining");
    let second = election.diary.until_started(2);
    // The command notes its start a little after it, and later on a busy machine. Forgotten, it would be half of that.
    assert!(second.at.saturating_sub(first.at) >= secs(11), "{:?} {:?}", first.at, second.at);
    assert_eq!(second.told[1], "unclean", "the record was left as it was");
    assert!(!fenced.exists(), "{}", std::fs::read_to_string(&fenced).unwrap());
    // The session of that term was over before its end could be written down.
    wait::until("the history has the end of the first term", || {
        election.admin.read(&election.path("history")).contains(r#""ended":"lease-ending, not released""#)
    });
}

/// Its run belongs to the time of its call. It has lost it, and another host has ended it well in the meantime.
#[test]
fn a_job_of_a_period_that_stood_still_does_not_run_again_what_another_host_has_ended_well() {
    let election = election();
    let job = |id| election.host(id).option("--once-per", "6s").flag("--retry-failed");
    let mut first = job("a").spawn();
    election.diary.until_started(1);
    let mut second = job("b").witness(&election.diary, &["exit-after=100"]).spawn();
    election.until_candidates(2);
    first.signal(Signal::SIGSTOP);
    first.signal_guard(Signal::SIGSTOP);
    assert_eq!(second.code(), 0, "{}", second.log());
    // For more than half of the period.
    wait::pass(secs(5));
    first.signal(Signal::SIGCONT);
    assert_eq!(first.code(), 0, "{}", first.log());
    assert!(first.log().contains("This call is a duplicate"), "{}", first.log());
    assert_eq!(election.diary.starts().len(), 2);
}

/// Nobody would hear of it meanwhile: no load balancer, no watchdog of systemd, which would end it for that.
#[test]
fn who_vouched_before_it_stood_still_resolves_no_name_to_contend_again() {
    let (election, apart) = (election(), Apart::new());
    apart.ip("address add 192.0.2.7/24 dev lo");
    let servers = apart.server_at("192.0.2.7", server().server(0).address());
    let here = "192.0.2.7".parse().unwrap();
    let names = apart.within(|| NameServer::start(Some(here)));
    let host = election.host_at(&format!("ensemble.test:{}", servers.port()), "a").flag("--vouch").served();
    let host = host.spawn_inside(apart.and(&names.wrapper(&[], &election)));
    election.diary.until_started(1);
    names.fail();
    stands_still(&election, &host);
    host.until_logged("rejoining");
    host.until_logged("Cannot reach ZooKeeper: ");
    assert!(!host.log().contains("no address of this host"), "{}", host.log());
    names.tell(here);
    election.diary.until_started(2);
}

/// Another process in its place would wait for the limit, behind the record of this one.
#[test]
fn who_stood_still_waits_for_the_address_at_which_others_ask_it() {
    let (election, apart) = (election(), Apart::new());
    let servers = apart.server_at("127.0.0.1", server().server(0).address()).to_string();
    apart.ip("address add 192.0.2.7/32 dev lo");
    let notified = Notified::listening();
    let host = election.host_at(&servers, "a").flag("--vouch").option("--vouch-address", "192.0.2.7:4711");
    let host = host.env("NOTIFY_SOCKET", notified.socket().to_str().unwrap()).env("WATCHDOG_USEC", "600000");
    let mut host = host.spawn_inside(apart.wrapper());
    election.diary.until_started(1);
    apart.ip("address delete 192.0.2.7/32 dev lo");
    stands_still(&election, &host);
    host.until_logged("'192.0.2.7:4711' cannot be listened at");
    let fed = notified.count("WATCHDOG=1");
    wait::until("systemd's watchdog is fed", || notified.count("WATCHDOG=1") >= fed + 6);
    apart.ip("address add 192.0.2.7/32 dev lo");
    election.diary.until_started(2);
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0, "{}", host.log());
}
