//! `--recipe single`: one znode for all, and the same promise; and what happens when hosts disagree.

use nix::sys::signal::Signal;

use super::{election, link, secs};
use crate::support::wait::AT_ONCE;
use crate::support::{Election, Subject, diary, wait};

fn single(election: &Election, id: &str) -> Subject {
    election.steady_host(id).option("--recipe", "single")
}

#[test]
fn single_one_host_creates_the_seat_and_runs_the_command() {
    let election = election();
    let mut first = single(&election, "a").spawn();
    election.diary.until_started(1);
    let mut others = ["b", "c"].map(|id| single(&election, id).spawn());
    // They tell of themselves when they have looked.
    wait::until("all take part", || election.admin.children(&election.path("members")).len() == 3);
    assert_eq!((election.candidates(), election.diary.starts().len()), (vec!["leader".to_owned()], 1));
    assert_eq!(election.record()["recipe"], "single");
    assert!(election.admin.read(&election.first()).contains("\"a\""));
    first.signal(Signal::SIGTERM);
    assert_eq!(first.code(), 0);
    election.diary.until_started(2);
    for host in &mut others {
        host.signal(Signal::SIGTERM);
        assert_eq!(host.code(), 0);
    }
    election.diary.assert_no_overlap();
    assert_eq!((election.state().as_str(), election.candidates().len()), ("free", 0));
}

/// T1
#[test]
fn single_the_tree_of_an_isolated_leader_is_gone_before_its_successor_starts() {
    let election = election();
    let links = [link(), link()];
    let witness = ["ignore-term", "daemonise"];
    let _hosts = ["0", "1"].map(|id| {
        let link = &links[id.parse::<usize>().unwrap()];
        election.host_behind(link, id).option("--recipe", "single").witness(&election.diary, &witness).spawn()
    });
    for run in 1..=3 {
        let leader = election.diary.until_started(run).id;
        election.diary.until_alive();
        let link = &links[leader.parse::<usize>().unwrap()];
        link.stall();
        assert_ne!(election.diary.until_started(run + 1).id, leader);
        link.heal();
    }
    election.diary.assert_no_overlap();
}

/// T3
#[test]
fn single_the_seat_is_kept_until_a_slow_command_is_gone() {
    let election = election();
    let host = single(&election, "a").witness(&election.diary, &["linger=2500", "daemonise"]).spawn();
    let start = election.diary.until_started(1);
    let seat = election.admin.stat(&election.first()).unwrap().czxid;
    let _next = single(&election, "b").spawn();
    host.signal(Signal::SIGTERM);
    election.diary.until_noted("signal=15");
    assert_eq!(election.admin.stat(&election.first()).unwrap().czxid, seat);
    election.diary.until_started(2);
    assert!(election.diary.end_of(start.token) > start.at + secs(2));
    assert!(election.admin.stat(&election.first()).unwrap().czxid > seat);
    election.diary.assert_no_overlap();
}

/// T9
#[test]
fn single_killing_the_supervisor_ends_the_tree_and_the_successor_comes_after() {
    let election = election();
    let first = single(&election, "a").witness(&election.diary, &["ignore-term", "daemonise"]).spawn();
    election.diary.until_noted("orphan");
    let _next = single(&election, "b").spawn();
    first.kill();
    assert_eq!(election.diary.until_started(2).id, "b");
    election.diary.assert_no_overlap();
}

/// T26, T54
#[test]
fn single_a_leader_whose_seat_is_deleted_stops_at_once() {
    let election = election();
    let host = |id| single(&election, id);
    let _first = host("a").witness(&election.diary, &["linger=500"]).spawn();
    election.diary.until_started(1);
    let second = host("b").spawn();
    second.until_logged("Session was opened");
    wait::until("both take part", || election.admin.children(&election.path("members")).len() == 2);
    let deleted_at = diary::now();
    election.admin.delete(&election.first());
    let told = election.diary.until_noted("signal=15");
    assert!(told.at.saturating_sub(deleted_at) < AT_ONCE, "nominal: milliseconds");
    election.diary.until_started(2);
    election.diary.assert_no_overlap();
}

/// T17: the name is everyone's, so that only the czxid tells that the seat is another one.
#[test]
fn single_a_seat_that_a_stranger_made_again_is_not_taken_for_ours() {
    let election = election();
    let host = single(&election, "a").spawn();
    election.diary.until_started(1);
    let seat = election.first();
    let deleted_at = diary::now();
    election.admin.replace_by_ephemeral(&seat, "a stranger's");
    let told = election.diary.until_noted("signal=15");
    assert!(told.at.saturating_sub(deleted_at) < AT_ONCE, "nominal: milliseconds");
    election.diary.until_nobody_lives();
    wait::pass(secs(1));
    assert_eq!(election.diary.starts().len(), 1, "the seat is taken");
    election.admin.delete(&seat);
    election.diary.until_started(2);
    election.diary.assert_no_overlap();
    drop(host);
}

#[test]
fn hosts_that_disagree_about_the_recipe_or_the_guarantee_are_refused_with_78() {
    let election = election();
    let holder = election.steady_host("holder").spawn();
    election.diary.until_started(1);
    let candidates = election.candidates();
    for (option, value) in [("--recipe", "single"), ("--guarantee", "at-least-one")] {
        let mut other = election.steady_host("other").option("--log-level", "error").option(option, value).spawn();
        assert_eq!(other.code(), 78, "{option}: {}", other.log());
        assert!(other.log().contains("give every host of this election the same"), "no remedy: {}", other.log());
        assert!(other.log().contains(option), "the message names the option:\n{}", other.log());
        assert_eq!(election.candidates(), candidates);
    }
    assert_eq!(election.diary.until_alive().id, "holder");
    assert_eq!(election.diary.starts().len(), 1);
    drop(holder);
}

#[test]
fn hosts_may_change_their_recipe_and_guarantee_while_the_record_is_free() {
    let election = election();
    for (recipe, guarantee) in [("sequential", "at-most-one"), ("single", "at-most-one"), ("single", "at-least-one")] {
        let host = single(&election, "a").option("--recipe", recipe).option("--guarantee", guarantee);
        assert_eq!(host.session_timeout("4s").command(&["true"]).spawn().code(), 0);
        assert_eq!(
            (&election.record()["recipe"], &election.record()["guarantee"]),
            (&recipe.into(), &guarantee.into())
        );
    }
}

/// All were stopped, and are started with other settings while a contender of somebody else is first.
#[test]
fn a_free_record_of_other_settings_is_waited_for_and_refused_only_when_such_a_host_holds_it() {
    let election = election();
    let changed = |id| election.steady_host(id).option("--guarantee", "at-least-one");
    assert_eq!(election.steady_host("before").command(&["true"]).spawn().code(), 0);
    let of_another = election.path("election/_c_01234567-89ab-cdef-0123-456789abcdef-latch-");
    let first = election.admin.create_sequential(&of_another, "another");
    let waiting = changed("a").spawn();
    wait::until("it is said", || waiting.log().contains("The free record is of other settings"));
    election.until_candidates(2);
    election.admin.delete(&first);
    assert_eq!(election.diary.until_started(1).id, "a");
    assert_eq!(election.record()["guarantee"], "at-least-one");
    let mut unchanged = election.steady_host("b").spawn();
    assert_eq!(unchanged.code(), 78, "{}", unchanged.log());
}

/// Each in a directory of its own: the full promise, whatever candidates are called.
#[test]
fn every_recipe_elects_one_and_the_next_when_it_is_gone() {
    for recipe in ["curator-latch", "curator-lock", "kazoo", "java-les"] {
        let election = election();
        let host = |id| election.steady_host(id).option("--recipe", recipe);
        let first = host("a").witness(&election.diary, &["ignore-term", "daemonise"]).spawn();
        election.diary.until_started(1);
        let mut next = host("b").spawn();
        election.until_candidates(2);
        first.kill();
        assert_eq!(election.diary.until_started(2).id, "b", "{recipe}");
        next.signal(Signal::SIGTERM);
        assert_eq!(next.code(), 0, "{recipe}");
        election.diary.assert_no_overlap();
        assert_eq!((election.state().as_str(), election.candidates().len()), ("free", 0), "{recipe}");
        let written = election.record()["recipe"].as_str().unwrap().to_owned();
        assert_eq!(written, recipe.replace("curator-latch", "sequential"));
    }
}

#[test]
fn curator_latch_and_sequential_are_one_recipe() {
    let election = election();
    let _first = election.steady_host("a").option("--recipe", "sequential").spawn();
    election.diary.until_started(1);
    let _second = election.steady_host("b").option("--recipe", "curator-latch").spawn();
    election.until_candidates(2);
    let mut third = election.steady_host("c").option("--recipe", "kazoo").spawn();
    assert_eq!(third.code(), 78, "{}", third.log());
    assert!(third.log().contains("--recipe is kazoo here and sequential there"), "{}", third.log());
    assert_eq!(election.candidates().len(), 2);
}
