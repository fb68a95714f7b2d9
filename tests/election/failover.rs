//! The leader is cut off, killed or stopped: its whole tree is gone before the successor's command starts.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::{LEASE, election, link, millis, secs};
use crate::support::wait::AT_ONCE;
use crate::support::{Election, Proxy, Running, diary, subject, wait};

/// Two hosts, each behind a link of its own, that lead in turn.
struct Pair {
    election: Election,
    links: [Proxy; 2],
    hosts: [Running; 2],
}

impl Pair {
    fn start(witness: &[&str]) -> Self {
        let election = election();
        let links = [link(), link()];
        let host = |index: usize, id| election.host_behind(&links[index], id).witness(&election.diary, witness).spawn();
        let hosts = [host(0, "0"), host(1, "1")];
        election.until_candidates(2);
        Self { election, links, hosts }
    }

    /// The index of the one that started last.
    fn leader(&self) -> usize {
        self.election.diary.last_start().id.parse().unwrap()
    }

    /// The index of the one that leads, and in which term: a stall of the machine may have ended one more than the test did.
    fn leadership(&self) -> (usize, usize) {
        let starts = self.election.diary.starts();
        (starts.last().unwrap().id.parse().unwrap(), starts.len())
    }

    fn until_started(&self, count: usize) -> usize {
        self.election.diary.until_started(count).id.parse().unwrap()
    }
}

/// T1: the link of whoever leads becomes a black hole at some point of its renewal cycle. The command ignores SIGTERM and
/// has a daemon of its own session that does too. Every other time the candidate goes at once, and not with the session: then
/// nothing but the successor's wait keeps it from starting beside the old tree.
#[test]
fn chaos_the_whole_tree_of_an_isolated_leader_is_gone_before_its_successors_first_line() {
    let pair = Pair::start(&["ignore-term", "daemonise"]);
    let runs: usize = std::env::var("CHAOS_RUNS").map_or(10, |runs| runs.parse().unwrap());
    for run in 1..=runs {
        pair.until_started(run);
        pair.election.diary.until_alive();
        wait::pass(jitter(run));
        let (leader, terms) = pair.leadership();
        pair.links[leader].stall();
        if run % 2 == 1 {
            pair.election.admin.delete(&pair.election.first());
        }
        let successor = pair.until_started(terms + 1);
        assert_ne!(leader, successor);
        pair.links[leader].heal();
        pair.election.until_candidates(2);
    }
    pair.election.diary.assert_no_overlap();
    assert!(pair.election.diary.has("orphan"), "the daemons ran");
}

/// Spread over more than two renewal intervals, without two alike: multiples of the golden ratio.
fn jitter(run: usize) -> Duration {
    let fraction = (f64::from(u32::try_from(run).unwrap()) * 0.618_034).fract();
    millis(600).mul_f64(fraction)
}

/// T2
#[test]
fn a_black_hole_a_reset_and_a_one_way_link_each_end_the_command_and_move_it() {
    let pair = Pair::start(&["ignore-term"]);
    let faults = [Proxy::stall, Proxy::cut, Proxy::stall_requests, Proxy::stall_replies];
    for (done, fault) in faults.into_iter().enumerate() {
        pair.until_started(done + 1);
        let (leader, terms) = pair.leadership();
        let token = pair.election.diary.last_start().token;
        fault(&pair.links[leader]);
        let cut_at = diary::now();
        let successor = pair.until_started(terms + 1);
        assert_ne!(leader, successor);
        let lived = pair.election.diary.end_of(token).saturating_sub(cut_at);
        assert!(lived < LEASE, "the command outlived its lease: {lived:?}");
        pair.links[leader].heal();
        pair.election.until_candidates(2);
    }
    pair.election.diary.assert_no_overlap();
}

/// T2: the command is told in time, and one that obeys is not killed.
#[test]
fn a_command_that_obeys_sigterm_ends_by_itself_before_the_lease_is_over() {
    let election = election();
    let link = link();
    let _host =
        election.host_behind(&link, "a").session_timeout("10s").witness(&election.diary, &["linger=100"]).spawn();
    election.diary.until_started(1);
    link.stall();
    election.diary.until_noted("end");
    assert_eq!(election.diary.events("signal=15").len(), 1, "told once");
}

/// T9
#[test]
fn killing_the_supervisor_ends_the_tree_at_once_and_the_successor_comes_after() {
    let election = election();
    let witness = ["ignore-term", "daemonise"];
    let mut first = election.steady_host("a").witness(&election.diary, &witness).spawn();
    election.diary.until_noted("orphan");
    let _second = election.steady_host("b").spawn();
    election.until_candidates(2);
    let killed_at = diary::now();
    first.kill();
    first.status();
    election.diary.until_started(2);
    election.diary.assert_no_overlap();
    let token = election.diary.starts()[0].token;
    let lived = election.diary.end_of(token).saturating_sub(killed_at);
    assert!(lived < AT_ONCE, "nominal: milliseconds; the tree lived on for {lived:?}");
}

#[test]
fn killing_the_guard_ends_the_tree_and_the_program_with_status_70() {
    let election = election();
    let mut host = election.steady_host("a").witness(&election.diary, &["daemonise"]).spawn();
    election.diary.until_noted("orphan");
    host.signal_guard(Signal::SIGKILL);
    assert_eq!(host.code(), 70);
    assert!(!election.diary.somebody_lives(), "the tree is gone before we are");
    assert_eq!((election.state().as_str(), election.candidates().len()), ("free", 0));
}

/// T25, T52
#[test]
fn a_stopped_supervisor_keeps_no_command_alive_and_follows_when_it_goes_on() {
    let election = election();
    let first = election.host("a").witness(&election.diary, &["ignore-term", "daemonise"]).spawn();
    election.diary.until_noted("orphan");
    let second = election.host("b").spawn();
    election.until_candidates(2);
    first.signal(Signal::SIGSTOP);
    assert_eq!(election.diary.until_started(2).id, "b");
    // Its session is over.
    election.until_candidates(1);
    first.signal(Signal::SIGCONT);
    first.until_logged("Session was opened anew, in place of the one before");
    election.until_candidates(2);
    // And it is a good follower: its turn comes again.
    second.signal(Signal::SIGTERM);
    assert_eq!(election.diary.until_started(3).id, "a");
    election.diary.assert_no_overlap();
}

/// T52
#[test]
fn a_lone_host_leads_again_after_the_guards_deadline_kill() {
    let election = election();
    let host = election.host("a").witness(&election.diary, &["ignore-term"]).spawn();
    election.diary.until_started(1);
    host.signal(Signal::SIGSTOP);
    election.diary.until_nobody_lives();
    host.signal(Signal::SIGCONT);
    election.diary.until_started(2);
    election.diary.assert_no_overlap();
    assert!(subject::is_alive(host.pid()), "the guard's kill is not the command's own exit");
}

#[test]
fn guard_and_supervisor_stopped_together_do_not_keep_the_command_alive() {
    let election = election();
    let mut first = election.host("a").witness(&election.diary, &["ignore-term"]).spawn();
    election.diary.until_started(1);
    let second = election.host("b").spawn();
    election.until_candidates(2);
    first.signal_guard(Signal::SIGSTOP);
    first.signal(Signal::SIGSTOP);
    assert_eq!(election.diary.until_started(2).id, "b");
    election.diary.assert_no_overlap();
    first.signal(Signal::SIGCONT);
    // The kernel has killed its guard; it stood still, and contends again.
    election.until_candidates(2);
    second.signal(Signal::SIGTERM);
    assert_eq!(election.diary.until_started(3).id, "a", "{}", first.log());
    assert!(!first.has_exited());
    election.diary.assert_no_overlap();
}

/// T32
#[test]
fn hosts_with_different_leases_each_keep_their_own() {
    let election = election();
    let (short, long) = (link(), link());
    let witness = ["ignore-term"];
    let host = |link: &Proxy, id: &str, timeout: &str| {
        election.host_behind(link, id).witness(&election.diary, &witness).session_timeout(timeout).spawn()
    };
    let _long = host(&long, "long", "8s");
    election.diary.until_started(1);
    let _short = host(&short, "short", "3s");
    election.until_candidates(2);
    long.stall();
    assert_eq!(election.diary.until_started(2).id, "short");
    long.heal();
    election.until_candidates(2);
    wait::until("the new holder, its wait being over, writes its own lease", || election.record()["lease_ms"] == 3000);
    short.cut();
    let cut_at = diary::now();
    let third = election.diary.until_started(3);
    assert_eq!(third.id, "long");
    assert!(third.at.saturating_sub(cut_at) < secs(8), "the successor waited for the holder's lease, not for its own");
    election.diary.assert_no_overlap();
}

/// The hosts of the chaos run are real programs that go on.
#[test]
fn the_isolated_host_is_a_follower_again_after_the_link_is_back() {
    let pair = Pair::start(&[]);
    let leader = pair.until_started(1);
    pair.links[leader].stall();
    pair.until_started(2);
    pair.links[leader].heal();
    pair.election.until_candidates(2);
    assert_ne!(pair.leader(), leader);
    assert!(pair.hosts.iter().all(|host| subject::is_alive(host.pid())));
}
