//! What the command sees of a lost contact: nothing, a freeze, a signal, or its end after `--grace`.

use super::{election, link, secs};
use crate::support::election::STEADY;
use crate::support::subject::children_of;
use crate::support::{Proxy, Running, diary, wait};

/// All that the guard has started: the command, its daemon, and the init of their PID namespace, if they have one.
fn tree_of(host: &Running) -> Vec<i32> {
    fn below(pid: i32) -> Vec<i32> {
        children_of(pid).into_iter().flat_map(|child| [vec![child], below(child)].concat()).collect()
    }
    below(host.guard_pid())
}

/// Whether the kernel lets this process do nothing: a witness may be silent because the machine is busy.
fn is_frozen(pid: i32) -> bool {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let stat = read(&format!("/proc/{pid}/stat"));
    let is_stopped = stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'));
    let cgroup = read(&format!("/proc/{pid}/cgroup"));
    let cgroup = cgroup.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default();
    let mounts = read("/proc/mounts");
    let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"));
    let root = mount.and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
    is_stopped || read(&format!("{root}{cgroup}/cgroup.events")).lines().any(|line| line == "frozen 1")
}

/// T36 in small: by default the command notices nothing of a blip.
#[test]
fn a_blip_shorter_than_the_lease_is_not_noticed_by_the_command() {
    for fault in [Proxy::stall, Proxy::cut, Proxy::stall_replies] {
        let election = election();
        let link = link();
        let _host = election.host_behind(&link, "a").session_timeout("12s").spawn();
        let start = election.diary.until_started(1);
        let candidates = election.candidates();
        fault(&link);
        wait::pass(secs(3));
        link.heal();
        election.until_renewed(1);
        assert_eq!(election.diary.until_alive().pid, start.pid);
        assert_eq!((election.diary.starts().len(), election.candidates()), (1, candidates));
        assert!(!election.diary.has("signal=15"));
    }
}

#[test]
fn on_pause_freeze_holds_the_whole_tree_and_lets_it_go_on_afterwards() {
    for (contain, processes) in [("cgroup", 2), ("subreaper", 2), ("pid-namespace", 3)] {
        let election = election();
        let link = link();
        let host = election.host_behind(&link, "a").session_timeout(STEADY).witness(&election.diary, &["daemonise"]);
        let host = host.option("--on-pause", "freeze").option("--contain", contain).spawn();
        election.diary.until_noted("orphan");
        wait::until("what has started the daemon is gone", || tree_of(&host).len() == processes);
        let tree = tree_of(&host);
        assert!(!tree.iter().copied().any(is_frozen), "{contain}");
        link.cut();
        wait::until(&format!("{contain}: the tree is frozen, its daemon too"), || tree.iter().copied().all(is_frozen));
        let stamps = election.diary.entries().len();
        wait::pass(wait::SETTLED);
        assert_eq!(election.diary.entries().len(), stamps, "{contain}: a frozen one writes nothing");
        link.heal();
        wait::until(&format!("{contain}: the tree goes on"), || !tree.iter().copied().any(is_frozen));
        election.diary.until_alive();
        assert_eq!(tree_of(&host), tree, "{contain}");
        assert_eq!(election.diary.starts().len(), 1, "{contain}");
    }
}

#[test]
fn a_frozen_tree_is_killed_at_the_end_of_the_lease() {
    for contain in ["cgroup", "subreaper", "pid-namespace"] {
        let election = election();
        let link = link();
        let host = election.host_behind(&link, "a").witness(&election.diary, &["daemonise"]);
        let _first = host.option("--on-pause", "freeze").option("--contain", contain).spawn();
        election.diary.until_noted("orphan");
        let _second = election.steady_host("b").spawn();
        election.until_candidates(2);
        link.stall();
        assert_eq!(election.diary.until_started(2).id, "b", "{contain}");
        election.diary.assert_no_overlap();
    }
}

#[test]
fn on_pause_and_on_resume_send_the_command_a_signal_each() {
    let election = election();
    let link = link();
    let host = election.host_behind(&link, "a").session_timeout(STEADY);
    let _host = host.option("--on-pause", "USR1").option("--on-resume", "SIGUSR2").spawn();
    let start = election.diary.until_started(1);
    link.cut();
    election.diary.until_noted("signal=10");
    assert!(!election.diary.has("signal=12"));
    link.heal();
    election.diary.until_noted("signal=12");
    assert_eq!(election.diary.until_alive().pid, start.pid);
    assert_eq!((election.diary.events("signal=10").len(), election.diary.events("signal=12").len()), (1, 1));
}

#[test]
fn grace_0_stops_the_command_as_soon_as_contact_is_lost() {
    let election = election();
    let link = link();
    let _host = election.host_behind(&link, "a").session_timeout("20s").option("--grace", "0").spawn();
    election.diary.until_started(1);
    let cut_at = diary::now();
    link.cut();
    let told = election.diary.until_noted("signal=15");
    assert!(told.at.saturating_sub(cut_at) < secs(10), "the lease alone would have allowed 12 s and more");
}

#[test]
fn grace_bounds_the_pause() {
    let election = election();
    let link = link();
    let host = election.host_behind(&link, "a").session_timeout("20s").option("--grace", "4s");
    let _host = host.option("--on-pause", "USR1").spawn();
    election.diary.until_started(1);
    link.cut();
    let paused = election.diary.until_noted("signal=10");
    let told = election.diary.until_noted("signal=15");
    let pause = told.at.saturating_sub(paused.at);
    // A command may note a signal late; the lease alone would have allowed 12 s and more.
    assert!(pause > secs(2) && pause < secs(10), "{pause:?}");
}

#[test]
fn contact_that_is_back_within_the_grace_changes_nothing() {
    let election = election();
    let link = link();
    let host = election.host_behind(&link, "a").session_timeout("20s").option("--grace", "8s");
    let _host = host.option("--on-pause", "USR1").option("--on-resume", "USR2").spawn();
    let start = election.diary.until_started(1);
    link.cut();
    election.diary.until_noted("signal=10");
    link.heal();
    election.diary.until_noted("signal=12");
    assert_eq!(election.diary.until_alive().pid, start.pid);
    assert!(!election.diary.has("signal=15"));
}

/// T21
#[test]
fn a_grace_longer_than_the_lease_allows_is_refused_before_anything_is_written() {
    let election = election();
    let mut host = election.host("a").session_timeout("4s").option("--grace", "4s").spawn();
    assert_eq!(host.code(), 78, "{}", host.log());
    assert!(host.log().contains("--grace"), "{}", host.log());
    assert!(!election.admin.exists(&election.path("lease")));
}
