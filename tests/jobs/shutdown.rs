//! Stops that hit the moment of acquisition.

use nix::sys::signal::Signal;

use super::{election, link, millis};
use crate::support::proxy::request;
use crate::support::{Election, Running, wait};

/// Stops `host` and sees to it that nothing of it lives when it has exited.
fn stop(election: &Election, host: &mut Running) {
    host.signal(Signal::SIGTERM);
    ends_with_nothing_alive(election, host);
}

fn ends_with_nothing_alive(election: &Election, host: &mut Running) {
    host.status();
    let alive = election.diary.somebody_lives();
    assert!(!alive, "a command lives on after our exit:\n{}", host.log());
}

/// T4
#[test]
fn a_stop_at_any_moment_of_an_uncontended_start_leaves_no_command_alive() {
    let election = election();
    election.prepare();
    for delay in 0..=50 {
        let mut host =
            election.host("a").witness(&election.diary, &["ignore-term"]).option("--stop-timeout", "20ms").spawn();
        wait::pass(millis(delay));
        stop(&election, &mut host);
    }
    election.until_candidates(0);
    election.diary.assert_no_overlap();
}

/// T4, T39
#[test]
fn a_stop_at_any_moment_of_a_take_over_leaves_no_command_alive() {
    let election = election();
    for delay in 0..=20 {
        let started = election.diary.starts().len();
        let mut holder = election.steady_host("holder").spawn();
        election.diary.until_started(started + 1);
        let mut host =
            election.host("a").witness(&election.diary, &["ignore-term"]).option("--stop-timeout", "20ms").spawn();
        election.until_candidates(2);
        holder.signal(Signal::SIGTERM);
        wait::pass(millis(delay));
        host.signal(Signal::SIGTERM);
        // The holder may be slower to end than a host that was not elected yet.
        assert_eq!(holder.code(), 0);
        ends_with_nothing_alive(&election, &mut host);
        election.until_candidates(0);
    }
    election.diary.assert_no_overlap();
}

/// T39: the take-over was written, its answer is on its way, and we are asked to stop.
#[test]
fn a_stop_while_the_answer_to_the_take_over_is_on_its_way_never_starts_the_command() {
    let election = election();
    election.prepare();
    let link = link();
    link.hold_replies_from(&[request::MULTI]);
    let mut host = election.host_behind(&link, "a").spawn();
    wait::until("the take-over is written", || election.record()["holder"]["id"] == "a");
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0, "{}", host.log());
    link.heal();
    election.until_candidates(0);
    assert!(election.diary.starts().is_empty());
    // Nobody knows whether its tree was empty: the record stays held, and the next one waits.
    assert_eq!(election.state(), "held");
    let _next = election.steady_host("b").spawn();
    assert_eq!(election.diary.until_started(1).told[1], "unclean");
}

#[test]
fn a_stop_during_the_wait_for_a_lease_leaves_the_record_held() {
    let election = election();
    let mut first = election.host("a").session_timeout("10s").witness(&election.diary, &["ignore-term"]).spawn();
    election.diary.until_started(1);
    let mut second = election.host("b").session_timeout("6s").spawn();
    election.until_candidates(2);
    election.admin.delete(&election.first());
    wait::until("the next one takes over", || election.record()["holder"]["id"] == "b");
    second.signal(Signal::SIGTERM);
    assert_eq!(second.code(), 0);
    assert_eq!(election.state(), "held");
    assert_eq!(election.record()["lease_ms"], 10_000, "the longest lease that may still be running");
    first.kill();
    first.status();
    election.diary.until_nobody_lives();
}
