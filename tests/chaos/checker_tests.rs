//! Histories that must be accepted, and the same ones tampered with, which must not.

use super::*;
use crate::calm::Seat;
use crate::ensemble::Mode;
use crate::fault::Kind;

const LEASE: Duration = Duration::from_secs(2);

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn run(host: &str, token: i64, from: u64, to: u64) -> Vec<Entry> {
    let entry = |at, event: &str| Entry {
        at: ms(at),
        event: event.to_owned(),
        pid: 1,
        token,
        id: host.to_owned(),
        told: Vec::new(),
    };
    [vec![entry(from, "start")], (from..=to).step_by(5).map(|at| entry(at, "alive")).collect()].concat()
}

fn judged(entries: &[Entry], strikes: &[Strike], history: &History) -> Findings {
    judged_slots(&[entries.to_vec()], &[], strikes, history)
}

fn judged_slots(diaries: &[Vec<Entry>], jobs: &[(String, i64)], strikes: &[Strike], history: &History) -> Findings {
    judged_with(&BTreeSet::new(), diaries, jobs, strikes, history)
}

fn judged_with(
    given_back: &BTreeSet<i64>,
    diaries: &[Vec<Entry>],
    jobs: &[(String, i64)],
    strikes: &[Strike],
    history: &History,
) -> Findings {
    let (longest_lease, began, ended) = (LEASE, ms(0), ms(20_000));
    judge(&Evidence { diaries, jobs, given_back, strikes, history, calms: &[], longest_lease, began, ended })
}

fn strike(kind: Kind, host: &str, began: u64, ended: u64) -> Strike {
    Strike {
        number: 1,
        kind,
        also: None,
        host: host.to_owned(),
        nodes: Vec::new(),
        hit_holder: true,
        began: ms(began),
        ended: ms(ended),
        missed: false,
        lease: LEASE,
    }
}

#[test]
fn runs_one_after_the_other_are_no_violation() {
    let entries = [run("h0", 1, 0, 100), run("h1", 2, 110, 200)].concat();
    let findings = judged(&entries, &[], &History::default());
    assert_eq!(findings.violations(), Vec::<String>::new());
    assert_eq!(findings.running, ms(190));
}

#[test]
fn an_overlap_is_found_with_its_length() {
    let entries = [run("h0", 1, 0, 150), run("h1", 2, 110, 200)].concat();
    let findings = judged(&entries, &[], &History::default());
    assert_eq!(findings.overlaps.len(), 1);
    assert_eq!(findings.overlaps[0].length, ms(40));
    assert_eq!(findings.violations().len(), 1);
}

#[test]
fn a_daemon_that_lives_on_is_an_overlap_too() {
    let mut entries = [run("h0", 1, 0, 100), run("h1", 2, 110, 200)].concat();
    let daemon = |at, event: &str| Entry {
        at: ms(at),
        event: event.to_owned(),
        pid: 2,
        token: 1,
        id: "h0".to_owned(),
        told: Vec::new(),
    };
    entries.extend([daemon(50, "orphan"), daemon(130, "alive")]);
    let findings = judged(&entries, &[], &History::default());
    assert_eq!(findings.violations().len(), 1);
    assert_eq!(findings.runs[0].ended, ms(100));
}

#[test]
fn a_lock_that_is_taken_is_a_violation_without_any_stamp() {
    let mut entries = [run("h0", 1, 0, 100), run("h1", 2, 110, 200)].concat();
    entries.push(Entry {
        at: ms(110),
        event: "OVERLAP".to_owned(),
        pid: 1,
        token: 2,
        id: "h1".to_owned(),
        told: Vec::new(),
    });
    assert_eq!(judged(&entries, &[], &History::default()).violations().len(), 1);
}

/// What a host that slept through its lease may leave: frozen at 100, thawed at 3490, dead at 3510; its successor, from 2200 on.
fn slept() -> (Vec<Entry>, Vec<Strike>) {
    let entries = [run("h0", 1, 0, 100), run("h1", 2, 2200, 4000), run("h0", 1, 3500, 3510)].concat();
    (entries, vec![strike(Kind::FreezeHost, "h0", 100, 3490)])
}

#[test]
fn a_host_that_slept_through_its_lease_is_reported_apart() {
    let (entries, strikes) = slept();
    let findings = judged(&entries, &strikes, &History::default());
    assert_eq!((findings.overlaps.len(), findings.overlaps[0].length), (1, ms(10)));
    assert_eq!(findings.violations(), Vec::<String>::new());
}

#[test]
fn a_suspend_excuses_only_its_host_its_length_and_a_moment_after_it() {
    let (entries, strikes) = slept();
    let tampered =
        |entries: &[Entry], strikes: &[Strike]| judged(entries, strikes, &History::default()).violations().len();
    let another = [strike(Kind::FreezeHost, "h1", 100, 3490)];
    assert_eq!(tampered(&entries, &another), 1, "another host slept");
    let stopped = [strike(Kind::PauseHost, "h0", 100, 3490)];
    assert_eq!(tampered(&entries, &stopped), 1, "its processes were stopped, and its kernel was not");
    let ran_on = [entries.clone(), run("h0", 1, 3500, 7000)].concat();
    assert_eq!(tampered(&ran_on, &strikes), 1, "it ran on when it was awake");
    let too_early = [entries.clone(), run("h2", 3, 1000, 1100)].concat();
    assert!(tampered(&too_early, &strikes) > 0, "its lease was not over");
    let short = [strike(Kind::FreezeHost, "h0", 100, 1500)];
    assert_eq!(
        tampered(&[run("h0", 1, 0, 100), run("h1", 2, 1400, 4000), run("h0", 1, 1500, 1510)].concat(), &short),
        1
    );
    let began_later = [strike(Kind::FreezeHost, "h0", 2300, 3490)];
    assert_eq!(tampered(&entries, &began_later), 1, "its successor was there before it slept");
}

#[test]
fn a_host_that_was_told_to_stop_and_then_slept_knew_when_its_lease_ends() {
    // Its last renewal was long ago; a shorter rest of its lease is left than that of one that was in touch.
    let judged = |until, from, starts| {
        let first = with_lease(run("h0", 1, 0, 1500), 1500, until);
        let entries = [first, run("h1", 2, starts, 5000), run("h0", 1, 3500, 3501)].concat();
        let findings = judged(&entries, &[strike(Kind::FreezeHost, "h0", from, 3490)], &History::default());
        assert_eq!(findings.overlaps.len(), 1);
        findings.violations().len()
    };
    assert_eq!(judged(2000, 1500, 2100), 0);
    assert_eq!(judged(2000, 1500, 1900), 1, "its lease was not over");
    assert_eq!(judged(3400, 1500, 3300), 1, "its lease was not over, though most of one had passed");
    assert_eq!(judged(2000, 2050, 2100), 1, "it should have been dead before it slept");
}

#[test]
fn two_hosts_with_one_token_are_two_at_once() {
    let entries = [run("h0", 1, 0, 150), run("h1", 1, 110, 200)].concat();
    let findings = judged(&entries, &[], &History::default());
    assert_eq!((findings.overlaps.len(), findings.token_disorder.len()), (1, 1));
    let after = [run("h0", 1, 0, 100), run("h1", 1, 110, 200)].concat();
    assert_eq!(judged(&after, &[], &History::default()).violations().len(), 1, "a token is of one host");
}

#[test]
fn a_deleted_base_excuses_what_is_left_of_a_lease() {
    let deleted = [strike(Kind::DeleteBase, "h0", 1000, 1100)];
    let until = |end| judged(&[run("h0", 1, 0, end), run("h1", 2, 1500, 6000)].concat(), &deleted, &History::default());
    assert_eq!(until(2500).overlaps[0].apart, Some("whole base deleted"));
    assert_eq!(until(6500).violations().len(), 1, "its lease was over");
    let late = [run("h0", 1, 0, 3000), run("h1", 2, 1500, 2900), run("h2", 3, 2950, 6000)].concat();
    let before = [strike(Kind::DeleteBase, "h0", 1550, 1600)];
    assert!(
        !judged(&late, &before, &History::default()).violations().is_empty(),
        "two at once before the base was deleted"
    );
}

#[test]
fn slots_are_judged_one_by_one() {
    let (one, other) = (run("h0", 1, 0, 150), run("h1", 2, 110, 200));
    let beside = judged_slots(&[one.clone(), other.clone()], &[], &[], &History::default());
    assert_eq!(beside.violations(), Vec::<String>::new());
    let within = judged_slots(&[vec![], [one, other].concat()], &[], &[], &History::default());
    assert_eq!(within.violations().len(), 1);
    assert_eq!(within.overlaps[0].later.slot, 1);
}

/// The lease that `run` has at this time, as its witness notes it.
fn with_lease(mut entries: Vec<Entry>, at: u64, until: u64) -> Vec<Entry> {
    entries.push(Entry { at: ms(at), told: vec![format!("until={}", ms(until).as_nanos())], ..entries[1].clone() });
    entries
}

fn taken_over(mut entries: Vec<Entry>, how: &str) -> Vec<Entry> {
    entries[0].told = vec!["1".to_owned(), how.to_owned()];
    entries
}

#[test]
fn a_lease_file_that_says_yes_for_too_long_is_a_violation() {
    let strikes = [strike(Kind::FreezeHost, "h0", 100, 3490)];
    let found = |first: Vec<Entry>, how: &str, strikes: &[Strike]| {
        let later = taken_over(run("h1", 2, 2200, 4000), how);
        judged(&[first, later].concat(), strikes, &History::default()).overlong.len()
    };
    let dies = run("h0", 1, 0, 100);
    assert_eq!(found(with_lease(dies.clone(), 100, 2100), "unclean", &[]), 0);
    assert_eq!(found(with_lease(dies.clone(), 100, 2300), "unclean", &[]), 1, "the next one started before");
    assert_eq!(found(with_lease(dies.clone(), 100, 2300), "clean", &[]), 0, "it was given back");
    let deleted = [strike(Kind::DeleteBase, "h0", 1000, 1100)];
    assert_eq!(found(with_lease(dies.clone(), 100, 2300), "unclean", &deleted), 0, "a stated limit");
    let wakes = [dies, run("h0", 1, 3500, 3510)].concat();
    assert_eq!(found(wakes.clone(), "unclean", &strikes), 0, "it says no when it wakes");
    assert_eq!(found(with_lease(wakes, 3505, 3600), "clean", &strikes), 1, "not even a suspended one may say yes");
}

/// Seen with hosts of different leases: the second one's shorter lease had run out while that of the first, who had given it
/// back, would still have lasted.
#[test]
fn a_lease_that_was_given_back_may_have_said_yes_for_longer() {
    let first = with_lease(run("h0", 1, 0, 100), 100, 2300);
    let second = taken_over(run("h1", 2, 200, 300), "clean");
    let third = taken_over(run("h2", 3, 2200, 4000), "unclean");
    let entries = [[first, second, third].concat()];
    let found = |given_back: &[i64]| {
        let given_back = given_back.iter().copied().collect();
        judged_with(&given_back, &entries, &[], &[], &History::default()).overlong.len()
    };
    assert_eq!(found(&[1]), 0);
    assert_eq!(found(&[2]), 1, "another one");
}

#[test]
fn a_command_that_ends_in_a_calm_time_is_a_violation_unless_it_ends_by_itself() {
    let seat = |token, pid, session| Seat {
        token,
        pid,
        host: "h0".to_owned(),
        candidates: vec![("candidate".to_owned(), session)],
    };
    let lost = |entries: &[Entry], after: Seat| {
        let calms = [Calm { began: ms(1000), ended: ms(5000), seats: [vec![seat(1, 1, 7)], vec![after]] }];
        let (diaries, history) = ([entries.to_vec()], History::default());
        let evidence = Evidence {
            diaries: &diaries,
            jobs: &[],
            given_back: &BTreeSet::new(),
            strikes: &[],
            history: &history,
            calms: &calms,
            longest_lease: LEASE,
            began: ms(0),
            ended: ms(20_000),
        };
        judge(&evidence).violations().len()
    };
    let lasts = run("h0", 1, 0, 6000);
    assert_eq!(lost(&lasts, seat(1, 1, 7)), 0);
    assert_eq!(lost(&lasts, seat(1, 2, 7)), 1, "started anew");
    assert_eq!(lost(&lasts, seat(1, 1, 8)), 1, "another session");
    let ends = run("h0", 1, 0, 2000);
    let with = |event: &str| [ends.clone(), vec![Entry { event: event.to_owned(), ..ends[400].clone() }]].concat();
    assert_eq!(lost(&ends, seat(2, 3, 9)), 1, "killed");
    assert_eq!(lost(&with("end"), seat(2, 3, 9)), 0);
    assert_eq!(lost(&[with("signal=15"), with("end")].concat(), seat(2, 3, 9)), 1, "told to end");
}

#[test]
fn a_job_that_runs_twice_is_a_violation_unless_its_marker_was_deleted() {
    let diary = [[run("h0", 1, 0, 100), run("h1", 2, 3000, 3100)].concat()];
    let started =
        |keys: [&str; 2]| keys.into_iter().zip([1, 2]).map(|(key, token)| (key.to_owned(), token)).collect::<Vec<_>>();
    let repeated =
        |keys, strikes: &[Strike]| judged_slots(&diary, &started(keys), strikes, &History::default()).violations();
    assert_eq!(repeated(["a", "b"], &[]), Vec::<String>::new());
    assert_eq!(repeated(["a", "a"], &[]), ["job a was started twice"]);
    assert_eq!(repeated(["a", "a"], &[strike(Kind::DeleteBase, "h0", 1000, 1100)]), Vec::<String>::new());
    assert_eq!(repeated(["a", "a"], &[strike(Kind::DeleteBase, "h0", 4000, 4100)]).len(), 1);
}

#[test]
fn tokens_that_do_not_grow_and_lasting_orphans_are_violations() {
    let entries = [run("h0", 2, 0, 100), run("h1", 1, 110, 200)].concat();
    let mut history = History::default();
    history.orphans.insert(("h0".to_owned(), 7), (ms(0), ms(3500)));
    history.orphans.insert(("h0".to_owned(), 8), (ms(0), ms(2500)));
    assert_eq!(judged(&entries, &[], &history).violations().len(), 2);
}

#[test]
fn only_what_was_possible_counts_as_missed() {
    let view = |at, possible| View { at: ms(at), modes: [Mode::Away; 3], possible };
    let history = History { views: vec![view(0, true), view(1000, false), view(2000, true)], ..History::default() };
    let entries = [run("h0", 1, 0, 500), run("h0", 2, 2500, 20_000)].concat();
    let findings = judged(&entries, &[], &history);
    assert_eq!(findings.idle_though_possible, ms(1000));
    assert_eq!(findings.longest_idle(), ms(500));
    assert_eq!(findings.possible, ms(19_000));
}
