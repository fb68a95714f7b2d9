//! Company: contenders of other libraries, run by `tests/peers`, in one election directory with ours.

use crate::support::Peer;

use nix::sys::signal::Signal;

use super::election;

#[test]
fn ours_and_curators_leader_latch_take_turns_in_one_directory() {
    let election = election();
    let latch =
        |id: &str| Peer::spawn("curator-latch", election.servers(), &election.path("election"), id, &election.diary);
    let mut first = election.host("ours-1").spawn();
    election.diary.until_started(1);
    let mut second = latch("theirs-1");
    election.until_candidates(2);
    let mut third = election.host("ours-2").spawn();
    election.until_candidates(3);
    let mut fourth = latch("theirs-2");
    election.until_candidates(4);

    first.signal(Signal::SIGTERM);
    assert_eq!(first.code(), 0);
    election.diary.until_started(2);
    second.stop();
    election.diary.until_started(3);
    third.signal(Signal::SIGTERM);
    third.code();
    election.diary.until_started(4);
    fourth.stop();

    let ids: Vec<_> = election.diary.starts().into_iter().map(|start| start.id).collect();
    assert_eq!(ids, ["ours-1", "theirs-1", "ours-2", "theirs-2"]);
    election.diary.assert_one_at_a_time();
    assert_eq!(election.candidates(), [""; 0]);
}
