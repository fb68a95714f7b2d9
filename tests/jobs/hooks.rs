//! `--hook`: every change is told, in order; and whatever a hook does, nothing waits for it.

use nix::sys::signal::Signal;

use super::{election, link, secs};
use crate::support::election::STEADY;
use crate::support::subject::{children_of, guards_of, is_alive};
use crate::support::{Diary, Running, diary, wait};

/// A hook that writes down what it is told: `event token why`.
fn telling(diary: &Diary) -> String {
    format!(r#"echo "$ZK_LEADER_EVENT ${{ZK_LEADER_TOKEN:-none}} ${{ZK_LEADER_WHY:-none}}" >>{}"#, path(diary))
}

fn path(diary: &Diary) -> String {
    diary.directory().join("hooks").display().to_string()
}

fn told(diary: &Diary) -> Vec<String> {
    std::fs::read_to_string(path(diary)).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[track_caller]
fn until_told(diary: &Diary, event: &str) {
    wait::until(&format!("the hook is told {event}"), || told(diary).iter().any(|line| line.starts_with(event)));
}

/// The guard of the only errand.
fn errand_guard(host: &Running) -> i32 {
    wait::for_some("the errand has a guard", || guards_of(host.pid()).get(1).copied())
}

/// The first process of the present run.
fn errand(host: &Running) -> i32 {
    let guard = errand_guard(host);
    wait::for_some("the errand runs", || children_of(guard).first().copied())
}

#[test]
fn every_change_is_told_in_order_with_the_term_and_the_reason() {
    let election = election();
    let link = link();
    let hook = format!("{}; echo out; echo err >&2; exit 3", telling(&election.diary));
    let host = election.host_behind(&link, "a").session_timeout(STEADY).option("--hook", &hook);
    let mut host = host.env("ZK_LEADER_WHY", "inherited").spawn();
    until_told(&election.diary, "started");
    link.cut();
    until_told(&election.diary, "paused");
    link.heal();
    until_told(&election.diary, "resumed");
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0);
    let token = election.diary.starts()[0].token;
    let expected = [
        "standby none none".to_owned(),
        format!("elected {token} elected"),
        format!("started {token} none"),
        format!("paused {token} contact-lost"),
        format!("resumed {token} contact-restored"),
        format!("stopping {token} stop-requested"),
        format!("released {token} released"),
    ];
    assert_eq!(told(&election.diary), expected);
    assert!(host.log().contains("\nout\n") && host.log().contains("\nerr\n"), "{}", host.log());
    assert!(!host.output().contains("out"), "standard output is the command's");
    assert!(host.log().contains("Hook failed: it exited with status 3"), "{}", host.log());
}

/// T30
#[test]
fn a_hook_that_sleeps_for_ever_during_a_partition_delays_no_kill_and_is_cut_itself() {
    let election = election();
    let link = link();
    let hook = format!(
        "{}; case $ZK_LEADER_EVENT in paused) trap '' TERM; sleep 999 & sleep 999;; esac",
        telling(&election.diary)
    );
    let host = election.host_behind(&link, "a").witness(&election.diary, &["ignore-term", "daemonise"]);
    let first = host.option("--hook", &hook).option("--hook-timeout", "12s").spawn();
    election.diary.until_started(1);
    let second = election.steady_host("b").spawn();
    election.until_candidates(2);
    link.stall();
    until_told(&election.diary, "paused");
    let guard = errand_guard(&first);
    assert_eq!(election.diary.until_started(2).id, "b");
    election.diary.assert_no_overlap();
    assert!(!told(&election.diary).iter().any(|line| line.starts_with("lost")), "the hook still sleeps");
    first.until_logged("Hook failed: it took longer than 12s and was killed");
    until_told(&election.diary, "lost");
    wait::until("nothing of the hooks is left", || children_of(guard).is_empty());
    drop(second);
}

/// T30
#[test]
fn the_last_hooks_delay_no_release_and_our_exit_by_one_hook_timeout_at_most() {
    let election = election();
    let hook = format!(
        "{}; case $ZK_LEADER_EVENT in stopping | released) trap '' TERM; while :; do sleep 1; done;; esac",
        telling(&election.diary)
    );
    let host = election.steady_host("a").option("--hook", &hook).option("--hook-timeout", "8s");
    let mut host = host.spawn();
    until_told(&election.diary, "started");
    host.signal(Signal::SIGTERM);
    until_told(&election.diary, "stopping");
    let told_at = diary::now();
    wait::until("the record is free", || election.state() == "free");
    let free_at = diary::now();
    assert!(free_at.saturating_sub(told_at) < secs(6), "the release waited for a hook");
    assert!(!host.has_exited(), "it gives its hooks their time");
    assert_eq!(host.code(), 0);
    let delay = diary::now().saturating_sub(free_at);
    assert!(delay < secs(14), "two hooks would take 16 s: {delay:?}");
    assert!(host.log().contains("Hooks were left out at the end"), "{}", host.log());
}

#[test]
fn a_second_stop_cuts_the_last_hooks_short() {
    let election = election();
    let hook = format!("{}; sleep 999", telling(&election.diary));
    let host = election.steady_host("a").option("--hook", &hook).option("--hook-timeout", "10m");
    let mut host = host.spawn();
    election.diary.until_started(1);
    let sleeper = errand(&host);
    host.signal(Signal::SIGTERM);
    wait::until("the record is free", || election.state() == "free");
    // At once it would be the same request.
    wait::pass(std::time::Duration::from_millis(500));
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0);
    assert!(!is_alive(sleeper), "nothing of a hook outlives us");
}

#[test]
fn the_first_stop_after_the_timeout_is_no_second_one() {
    let election = election();
    let hook = format!("[ $ZK_LEADER_EVENT != released ] || sleep 2; {}", telling(&election.diary));
    let host = election.steady_host("a").option("--hook", &hook).option("--timeout", "300ms");
    let mut host = host.option("--stop-timeout", "6s").witness(&election.diary, &["ignore-term"]).spawn();
    until_told(&election.diary, "stopping");
    host.signal(Signal::SIGTERM);
    host.until_logged("Stop requested while a stop is under way");
    assert_eq!(host.code(), 124, "{}", host.log());
    assert!(!host.log().contains("again"), "{}", host.log());
    assert!(told(&election.diary).iter().any(|line| line.starts_with("released")), "the last hooks had their time");
}

/// The sockets that a process has open.
fn sockets(pid: i32) -> Vec<String> {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let targets = open.filter_map(|entry| std::fs::read_link(entry.path()).ok()?.into_os_string().into_string().ok());
    targets.filter(|target| target.starts_with("socket:")).collect()
}

/// With the supervisor's end of its socket open elsewhere, the command's guard would not notice that it is dismissed: each exit
/// would wait for it in vain, and the guard would then go on as the releaser of a lease that is free.
#[test]
fn the_guard_of_hooks_does_not_hold_the_command_s_guard() {
    let election = election();
    let host = election.steady_host("a").option("--hook", &telling(&election.diary)).spawn();
    until_told(&election.diary, "started");
    let (ours, guards) = (sockets(host.pid()), sockets(errand_guard(&host)));
    assert!(!ours.is_empty() && !guards.is_empty(), "each has an end of its own");
    let shared: Vec<_> = guards.iter().filter(|socket| ours.contains(socket)).collect();
    assert!(shared.is_empty(), "the guard of the hooks has the supervisor's {shared:?}");
}

#[test]
fn a_hook_dies_with_the_supervisor() {
    let election = election();
    let host =
        election.steady_host("a").option("--hook", "sleep 999 & sleep 999").option("--hook-timeout", "10m").spawn();
    election.diary.until_started(1);
    let (guard, sleeper) = (errand_guard(&host), errand(&host));
    host.kill();
    wait::until("the hook and its guard are gone", || !is_alive(sleeper) && !is_alive(guard));
}

#[test]
fn a_killed_guard_of_hooks_costs_hooks_and_nothing_else() {
    let election = election();
    let host = election.steady_host("a").option("--hook", "sleep 999 & sleep 999").option("--hook-timeout", "10m");
    let mut host = host.witness(&election.diary, &["daemonise"]).spawn();
    election.diary.until_noted("orphan");
    let (guard, sleeper) = (errand_guard(&host), errand(&host));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(guard), Signal::SIGKILL).unwrap();
    host.until_logged("The guard of --hook died");
    wait::until("what it left is ended", || !is_alive(sleeper));
    election.diary.until_alive();
    assert!(election.diary.somebody_lives());
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0);
    assert_eq!(election.state(), "free");
}

#[test]
fn a_killed_guard_of_the_command_leaves_the_hooks_alone_to_the_end() {
    let election = election();
    let mut host = election.steady_host("a").option("--hook", &telling(&election.diary)).spawn();
    until_told(&election.diary, "started");
    host.signal_guard(Signal::SIGKILL);
    assert_eq!(host.code(), 70);
    assert_eq!(election.state(), "free");
    assert!(told(&election.diary).last().unwrap().starts_with("released"), "{:?}", told(&election.diary));
}

/// Whoever asks twice is in a hurry.
#[test]
fn a_second_stop_while_the_command_stops_cuts_the_last_hooks_short_too() {
    let election = election();
    let hook = format!("{}; sleep 999", telling(&election.diary));
    let host = election.steady_host("a").option("--hook", &hook).option("--hook-timeout", "10m");
    let mut host = host.witness(&election.diary, &["ignore-term"]).spawn();
    election.diary.until_started(1);
    host.signal(Signal::SIGTERM);
    host.until_logged("leading -> stopping");
    // At once it would be the same request.
    wait::pass(wait::SETTLED);
    host.signal(Signal::SIGTERM);
    host.until_logged("Stop requested again");
    host.code();
}
