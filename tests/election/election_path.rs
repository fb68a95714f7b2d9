//! `--election-path`: an election in a directory of other libraries, whose candidates are made here by hand, with the very
//! names that those libraries make.

use nix::sys::signal::Signal;

use super::{election, link, secs};
use crate::support::wait::AT_ONCE;
use crate::support::{Election, Subject, diary, wait};

/// What the candidates of a library are called, without their numbers.
const LIBRARIES: [(&str, &str); 5] = [
    ("curator-latch", "_c_6a0b7f0e-6a5f-4f7c-9d5b-2f1f6f0c9a11-latch-"),
    ("curator-lock", "_c_6a0b7f0e-6a5f-4f7c-9d5b-2f1f6f0c9a11-lock-"),
    ("curator-lock", "_c_8eb60557ba51e0da67eefc47467d3f34-lock-"),
    ("kazoo", "514e5a831836450cb1a56c741e990fd8__lock__"),
    ("java-les", "n_"),
];

fn directory(election: &Election) -> String {
    format!("/foreign/{}", election.name)
}

fn guest(election: &Election, recipe: &str, id: &str) -> Subject {
    // A lease of 20 s: half of it.
    let host = election.host(id).session_timeout("40s");
    host.option("--recipe", recipe).option("--election-path", &directory(election))
}

fn contenders(election: &Election) -> Vec<String> {
    election.admin.children(&directory(election))
}

#[track_caller]
fn until_contenders(election: &Election, count: usize) {
    let found = wait::held_within(wait::LIMIT, || contenders(election).len() == count);
    assert!(found, "never saw {count} contenders; there are {:?}", contenders(election));
}

#[test]
fn a_contender_of_another_library_is_waited_for_and_waits_for_us() {
    for (recipe, prefix) in LIBRARIES {
        let election = election();
        let directory = directory(&election);
        election.admin.create_all(&directory);
        let stranger = || election.admin.create_sequential(&format!("{directory}/{prefix}"), "theirs");
        let before = stranger();
        let mut host = guest(&election, recipe, "ours").spawn();
        until_contenders(&election, 2);
        let behind = stranger();
        wait::pass(secs(1));
        assert_eq!(election.diary.starts().len(), 0, "{recipe}: who came first leads");
        election.admin.delete(&before);
        election.diary.until_started(1);
        let names = contenders(&election);
        let ours = names.iter().find(|name| !behind.ends_with(*name)).unwrap();
        assert_eq!(
            (names.len(), election.admin.read(&format!("{directory}/{ours}")).as_str()),
            (2, "ours"),
            "{names:?}"
        );
        assert_eq!((election.state().as_str(), election.candidates().len()), ("held", 0), "our own znodes lie apart");
        host.signal(Signal::SIGTERM);
        assert_eq!(host.code(), 0, "{recipe}");
        election.diary.until_nobody_lives();
        assert_eq!(contenders(&election), [behind.rsplit('/').next().unwrap()], "it is their turn now");
    }
}

#[test]
fn two_of_ours_and_a_stranger_between_them_lead_in_their_turn() {
    let election = election();
    let directory = directory(&election);
    let (recipe, prefix) = LIBRARIES[1];
    let first = guest(&election, recipe, "a").witness(&election.diary, &["ignore-term", "daemonise"]).spawn();
    election.diary.until_noted("orphan");
    let stranger = election.admin.create_sequential(&format!("{directory}/{prefix}"), "theirs");
    let _second = guest(&election, recipe, "b").spawn();
    until_contenders(&election, 3);
    first.kill();
    until_contenders(&election, 2);
    election.diary.until_nobody_lives();
    wait::pass(secs(1));
    assert_eq!(election.diary.starts().len(), 1, "it is the stranger's turn");
    election.admin.delete(&stranger);
    assert_eq!(election.diary.until_started(2).id, "b");
    election.diary.assert_no_overlap();
}

/// T1, where nobody waits for us: counted from the last write but one, and half of a session timeout early.
#[test]
fn an_isolated_leader_is_dead_before_its_session_could_end() {
    let election = election();
    let link = link();
    let host = election
        .host_behind(&link, "ours")
        .session_timeout("6s")
        .witness(&election.diary, &["ignore-term", "daemonise"]);
    let _host = host.option("--recipe", "kazoo").option("--election-path", &directory(&election)).spawn();
    election.diary.until_noted("orphan");
    assert_eq!(election.record()["lease_ms"], 3_000, "half of the session timeout");
    assert_eq!(election.record()["election"], directory(&election).as_str());
    link.stall();
    let stalled_at = diary::now();
    let gone = wait::held_within(wait::LIMIT, || contenders(&election).is_empty());
    assert!(gone && !election.diary.somebody_lives(), "the tree outlived the session");
    let died = election.diary.end_of(election.diary.last_start().token);
    assert!(died < stalled_at + secs(3), "it died {:?} after the cut", died.saturating_sub(stalled_at));
}

/// Who waits for no lease may have started already.
#[test]
fn a_leader_whose_candidate_is_deleted_is_killed_at_once() {
    let election = election();
    let host = guest(&election, "curator-latch", "ours");
    let _host = host.witness(&election.diary, &["ignore-term", "daemonise"]).spawn();
    election.diary.until_noted("orphan");
    let candidate = format!("{}/{}", directory(&election), contenders(&election)[0]);
    let deleted_at = diary::now();
    election.admin.delete(&candidate);
    election.diary.until_nobody_lives();
    let lived = election.diary.end_of(election.diary.starts()[0].token).saturating_sub(deleted_at);
    assert!(lived < AT_ONCE, "nominal: milliseconds; the lease has 15 seconds and more: {lived:?}");
    election.diary.until_started(2);
    election.diary.assert_no_overlap();
}

#[test]
fn a_leader_that_is_asked_to_yield_goes_to_the_end_of_the_line() {
    let election = election();
    let directory = directory(&election);
    let host = guest(&election, "curator-lock", "ours").witness(&election.diary, &["linger=300"]).spawn();
    election.diary.until_started(1);
    let ours = format!("{directory}/{}", contenders(&election)[0]);
    let stranger = election.admin.create_sequential(&format!("{directory}/{}", LIBRARIES[1].1), "theirs");
    election.admin.set(&ours, "another word");
    election.admin.set(&ours, "__REVOKE__");
    election.diary.until_noted("signal=15");
    let gone = wait::held_within(wait::LIMIT, || !election.admin.exists(&ours));
    assert!(gone && !election.diary.somebody_lives(), "the candidate goes when the tree is gone, and not before");
    until_contenders(&election, 2);
    host.until_logged("__REVOKE__");
    wait::pass(secs(1));
    assert_eq!(election.diary.starts().len(), 1, "it is the stranger's turn");
    election.admin.delete(&stranger);
    election.diary.until_started(2);
    election.diary.assert_no_overlap();
    drop(host);
}

#[test]
fn who_was_asked_to_yield_before_its_turn_came_yields_without_a_start() {
    let election = election();
    let directory = directory(&election);
    election.admin.create_all(&directory);
    let stranger = || election.admin.create_sequential(&format!("{directory}/{}", LIBRARIES[1].1), "theirs");
    let before = stranger();
    let host = guest(&election, "curator-lock", "ours").spawn();
    until_contenders(&election, 2);
    let names = contenders(&election);
    let ours = format!("{directory}/{}", names.iter().find(|name| !before.ends_with(*name)).unwrap());
    let behind = stranger();
    election.admin.set(&ours, "__REVOKE__");
    election.admin.delete(&before);
    host.until_logged("__REVOKE__");
    wait::until("it has left its place", || !election.admin.exists(&ours));
    until_contenders(&election, 2);
    assert!(election.diary.starts().is_empty());
    election.admin.delete(&behind);
    election.diary.until_started(1);
}

#[test]
fn hosts_that_disagree_about_where_the_candidates_are_are_refused_with_78() {
    let election = election();
    let _holder = guest(&election, "sequential", "holder").spawn();
    election.diary.until_started(1);
    let elsewhere = |path: &str| election.steady_host("other").option("--election-path", path);
    for other in [elsewhere("/foreign/elsewhere"), election.steady_host("other")] {
        let mut other = other.spawn();
        assert_eq!(other.code(), 78, "{}", other.log());
        assert!(other.log().contains("--election-path is "), "{}", other.log());
    }
    assert_eq!((election.diary.until_alive().id.as_str(), contenders(&election).len()), ("holder", 1));
}

/// Who means to join it needs `--election-path`.
#[test]
fn who_makes_an_election_in_the_directory_of_another_library_is_warned_once() {
    let election = election();
    let (_, candidate) = LIBRARIES[0];
    let base = directory(&election);
    election.admin.create_all(&base);
    election.admin.create(&format!("{base}/{candidate}0000000000"), "");
    let host = |id| election.host(id).without("--name").option("--path", &base).spawn();
    let warning = format!("{base} is an election of another library: it holds the candidate {candidate}0000000000");
    let first = host("a");
    first.until_logged(&warning);
    first.until_logged("waiting for the previous leader's lease");
    let second = host("b");
    second.until_logged("Waiting: ");
    assert!(!second.log().contains("another library"), "{}", second.log());
    // What is to be done then, too.
    let rest = format!("Once no process of ours has --path {base}, delete what we have made there");
    assert!(first.log().contains(&rest), "{}", first.log());
}
