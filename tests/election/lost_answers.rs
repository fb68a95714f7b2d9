//! Requests that were applied while their answers were lost or late.

use nix::sys::signal::Signal;

use super::{election, link};
use crate::support::election::STEADY;
use crate::support::proxy::request;
use crate::support::{diary, wait};

const CREATE: [i32; 2] = [request::CREATE, request::CREATE2];
const MULTI: [i32; 1] = [request::MULTI];

/// T15
#[test]
fn a_lost_answer_to_the_create_leaves_one_candidate() {
    for recipe in ["sequential", "single"] {
        let election = election();
        assert_eq!(election.host("prepares").option("--recipe", recipe).command(&["true"]).spawn().code(), 0);
        let link = link();
        link.drop_next_reply_to(&CREATE);
        let mut host = election.host_behind(&link, "a").option("--recipe", recipe).session_timeout(STEADY).spawn();
        election.diary.until_started(1);
        assert_eq!(link.replies_dropped(), 1);
        assert_eq!(election.candidates().len(), 1, "{recipe}: {:?}", election.candidates());
        let creates = link.asked().iter().filter(|request| CREATE.contains(&request.kind)).count();
        assert!(recipe == "single" || creates == 1, "it looked for its candidate before it made another: {creates}");
        let _next = election.steady_host("b").option("--recipe", recipe).spawn();
        host.signal(Signal::SIGTERM);
        assert_eq!(host.code(), 0);
        assert_eq!(election.diary.until_started(2).id, "b", "the next in line proceeds");
    }
}

#[test]
fn a_lost_answer_to_the_take_over_is_recognised_and_costs_no_second_term() {
    let election = election();
    election.prepare();
    let link = link();
    link.drop_next_reply_to(&MULTI);
    let _host = election.host_behind(&link, "a").session_timeout(STEADY).spawn();
    let start = election.diary.until_started(1);
    assert_eq!(link.replies_dropped(), 1);
    assert_eq!((election.term().version, election.term().mzxid), (2, start.token));
}

#[test]
fn a_lost_answer_to_a_renewal_changes_nothing_for_the_command() {
    let election = election();
    let link = link();
    let _host = election.host_behind(&link, "a").session_timeout("8s").spawn();
    let start = election.diary.until_started(1);
    for lost in 1..=3 {
        link.drop_next_reply_to(&MULTI);
        link.wait_until_dropped(lost);
        election.until_renewed(1);
    }
    assert_eq!(election.diary.until_alive().pid, start.pid);
    assert_eq!(election.diary.starts().len(), 1);
    assert!(!election.diary.has("signal=15"));
}

#[test]
fn a_lost_answer_to_the_release_leaves_nothing_behind() {
    let election = election();
    let link = link();
    let mut host = election.host_behind(&link, "a").session_timeout(STEADY).spawn();
    election.diary.until_started(1);
    // Renewals come only every 2.5 s: right after one, the next multi is the release.
    election.until_renewed(1);
    link.drop_next_reply_to(&MULTI);
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0, "{}", host.log());
    assert_eq!(link.replies_dropped(), 1);
    assert_eq!((election.state().as_str(), election.candidates().len()), ("free", 0));
}

/// T51: "elected" is under way while the supervisor hangs, and its session expires before it reads that.
#[test]
fn an_answer_that_is_read_after_a_hang_starts_nothing() {
    let election = election();
    election.prepare();
    let link = link();
    link.hold_replies_from(&MULTI);
    let first = election.host_behind(&link, "a").spawn();
    wait::until("the take-over is written", || election.record()["holder"]["id"] == "a");
    first.signal(Signal::SIGSTOP);
    link.heal();
    election.until_candidates(0);
    let second = election.steady_host("b").spawn();
    assert_eq!(election.diary.until_started(1).id, "b");
    first.signal(Signal::SIGCONT);
    election.until_candidates(2);
    let woken_at = diary::now();
    second.signal(Signal::SIGTERM);
    let start = election.diary.until_started(2);
    assert!(start.id == "a" && start.at > woken_at);
    election.diary.assert_no_overlap();
}

/// The answer to the take-over is waited for, and what it took is freed: else nobody would hold the record, and the next leader
/// would wait for that.
#[test]
fn a_stop_during_the_take_over_leaves_the_record_free() {
    let election = election();
    election.prepare();
    let link = link();
    link.hold_replies_from(&MULTI);
    let mut host = election.host_behind(&link, "a").session_timeout(STEADY).spawn();
    wait::until("the take-over is applied", || election.state() == "held");
    host.signal(Signal::SIGTERM);
    link.heal();
    host.status();
    assert_eq!((election.state().as_str(), election.diary.starts().len()), ("free", 0), "{}", host.log());
    assert_eq!(election.candidates(), [""; 0]);
}
