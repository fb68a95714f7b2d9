//! A history that was recorded in a run with faults is accepted; the same one tampered with, in any place, is refused.

use super::super::history::read;

use super::*;

const RECORDED: &str = include_str!("recorded.jsonl");

fn problems(exchanges: &[Exchange]) -> Vec<String> {
    judge(exchanges, &BTreeMap::new()).problems
}

/// The same judgement without a search for the place.
fn is_refused(exchanges: &[Exchange]) -> bool {
    let slots: BTreeSet<&str> = exchanges.iter().flat_map(Exchange::slots).collect();
    let is_refused = |slot: &str| {
        let judged = exchanges.iter().filter_map(|exchange| Judged::of(exchange, slot)).collect();
        let mut oldest = Duration::ZERO;
        !is_linearizable(&with_old_reads(judged, &mut oldest))
    };
    !back_in_time(exchanges).is_empty() || slots.into_iter().any(is_refused)
}

/// Each 25th place where `tamper` does something gives one history, which must be refused.
#[track_caller]
fn refused_everywhere(tamper: impl Fn(&mut Vec<Exchange>, usize) -> bool) {
    let recorded = read(RECORDED);
    let mut tried = 0;
    for index in (0..recorded.len()).step_by(25) {
        let mut tampered = recorded.clone();
        if tamper(&mut tampered, index) {
            tried += 1;
            assert!(is_refused(&tampered), "{:?} was tampered with", recorded[index]);
        }
    }
    assert!(tried >= 3, "only {tried} places to tamper with");
}

fn is_read(exchange: &Exchange) -> bool {
    matches!(exchange.request.ops.as_slice(), [Op::Read { .. }])
}

fn is_judged(op: &Op) -> bool {
    op.path().ends_with("/lease") || op.path().ends_with("/term")
}

/// It changed a record or a term.
fn is_done(exchange: &Exchange) -> bool {
    let is_write = |op: &Op| is_judged(op) && !matches!(op, Op::Read { .. } | Op::Check { .. });
    let has_failed = |outcome: &Outcome| matches!(outcome, Outcome::Failed(_));
    let is_done = exchange.reply.as_ref().is_some_and(|reply| !reply.outcomes.iter().any(has_failed));
    is_done && exchange.request.ops.iter().any(is_write)
}

fn stat_of(outcome: &mut Outcome) -> Option<&mut Stat> {
    match outcome {
        Outcome::Stat(stat) | Outcome::Data(stat, _) => Some(stat),
        Outcome::Done | Outcome::Failed(_) => None,
    }
}

/// Of records and terms.
fn stats_of(exchange: &mut Exchange) -> Vec<&mut Stat> {
    let outcomes = exchange.reply.iter_mut().flat_map(|reply| &mut reply.outcomes);
    let judged = exchange.request.ops.iter().zip(outcomes).filter(|(op, _)| is_judged(op));
    judged.filter_map(|(_, outcome)| stat_of(outcome)).collect()
}

/// What was written after this one, in the same slot, and answered.
fn next_write(exchanges: &[Exchange], index: usize) -> Option<usize> {
    let slot = exchanges[index].slots().next()?;
    let zxid = |index: usize| exchanges[index].reply.as_ref().map(|reply| reply.zxid);
    let later = (0..exchanges.len()).filter(|&other| is_done(&exchanges[other]) && zxid(other) > zxid(index));
    later.filter(|&other| exchanges[other].slots().next() == Some(slot)).min_by_key(|&other| zxid(other))
}

/// Nothing can stand for it: it was built upon, and it was not sent a second time without an answer.
fn is_needed(exchanges: &[Exchange], index: usize) -> bool {
    let request = &exchanges[index].request;
    let has_twin = exchanges.iter().any(|other| other.reply.is_none() && other.request == *request);
    is_done(&exchanges[index]) && next_write(exchanges, index).is_some() && !has_twin
}

#[test]
fn a_recorded_history_is_accepted() {
    let recorded = read(RECORDED);
    assert_eq!(problems(&recorded), Vec::<String>::new());
    assert!(recorded.iter().any(|exchange| exchange.reply.is_none()), "no answer is missing");
    assert!(recorded.iter().any(|exchange| !is_read(exchange) && !is_done(exchange)), "no write was refused");
}

#[test]
fn another_version_in_an_answer_is_refused() {
    refused_everywhere(|exchanges, index| {
        stats_of(&mut exchanges[index]).into_iter().map(|stat| stat.version += 1).count() > 0
    });
}

#[test]
fn another_token_in_an_answer_is_refused() {
    refused_everywhere(|exchanges, index| {
        stats_of(&mut exchanges[index]).into_iter().map(|stat| stat.mzxid -= 1).count() > 0
    });
}

#[test]
fn content_that_nobody_wrote_is_refused() {
    refused_everywhere(|exchanges, index| {
        let outcomes = exchanges[index].reply.iter_mut().flat_map(|reply| &mut reply.outcomes);
        let contents =
            outcomes.filter_map(|outcome| if let Outcome::Data(_, data) = outcome { Some(data) } else { None });
        contents.map(|data| data.push(' ')).count() > 0
    });
}

#[test]
fn a_write_that_is_left_out_is_refused() {
    refused_everywhere(|exchanges, index| {
        let is_built_upon = is_needed(exchanges, index);
        if is_built_upon {
            exchanges.remove(index);
        }
        is_built_upon
    });
}

#[test]
fn a_write_that_is_said_to_have_been_refused_is_refused() {
    refused_everywhere(|exchanges, index| {
        let is_built_upon = is_needed(exchanges, index);
        let reply = exchanges[index].reply.as_mut().filter(|_| is_built_upon);
        reply.map(|reply| reply.outcomes = vec![Outcome::Failed(BAD_VERSION)]).is_some()
    });
}

#[test]
fn a_write_before_the_one_that_it_builds_upon_is_refused() {
    refused_everywhere(|exchanges, index| {
        let next = next_write(exchanges, index).filter(|_| is_done(&exchanges[index]));
        let Some(next) = next else { return false };
        let before = exchanges[index].asked;
        (exchanges[next].asked, exchanges[next].answered) = (before - 2, Some(before - 1));
        true
    });
}

#[test]
fn a_read_of_what_is_not_written_yet_is_refused() {
    let recorded = read(RECORDED);
    let written = |zxid: i64| recorded.iter().find(|one| is_done(one) && one.reply.as_ref().unwrap().zxid == zxid);
    refused_everywhere(|exchanges, index| {
        let shown = stats_of(&mut exchanges[index]).first().map(|stat| stat.mzxid);
        let Some(write) = shown.and_then(written).filter(|_| is_read(&exchanges[index])) else { return false };
        (exchanges[index].asked, exchanges[index].answered) = (write.asked - 2, Some(write.asked - 1));
        true
    });
}

#[test]
fn a_connection_that_goes_back_in_time_is_refused() {
    refused_everywhere(|exchanges, index| {
        let known = exchanges[..index].iter().rev().find(|one| {
            one.reply.is_some()
                && (&one.server, one.connection) == (&exchanges[index].server, exchanges[index].connection)
        });
        let Some(zxid) = known.map(|one| one.reply.as_ref().unwrap().zxid).filter(|_| is_read(&exchanges[index]))
        else {
            return false;
        };
        exchanges[index].reply.as_mut().map(|reply| reply.zxid = zxid - 1).is_some()
    });
}

#[test]
fn a_token_that_no_term_had_is_refused() {
    let recorded = read(RECORDED);
    let slot = recorded[0].slots().next().unwrap().to_owned();
    let judged =
        |token: i64| judge(&recorded, &BTreeMap::from([(slot.clone(), vec![(token, "h0".to_owned())])])).problems;
    let terms = recorded.iter().filter(|one| {
        is_done(one) && one.request.ops.iter().any(|op| matches!(op, Op::Set { path, .. } if path.ends_with("/term")))
    });
    let tokens: Vec<i64> = terms.map(|one| one.reply.as_ref().unwrap().zxid).collect();
    assert!(tokens.len() >= 2, "{tokens:?}");
    for token in tokens {
        assert_eq!(judged(token), Vec::<String>::new());
        assert_ne!(judged(token + 1), Vec::<String>::new());
    }
}

#[test]
fn a_write_without_an_answer_may_have_taken_effect_or_not_but_not_twice() {
    let recorded = read(RECORDED);
    let silenced = (0..recorded.len()).filter(|&index| is_done(&recorded[index]));
    for index in silenced.step_by(13) {
        let mut without = recorded.clone();
        (without[index].answered, without[index].reply) = (None, None);
        assert!(!is_refused(&without), "it did: {:?}", recorded[index]);
        let twice = without[index].clone();
        without.push(twice);
        assert!(!is_refused(&without), "once of two: {:?}", recorded[index]);
        if is_needed(&recorded, index) {
            without.retain(|one| one.asked != recorded[index].asked);
            assert_ne!(
                problems(&without),
                Vec::<String>::new(),
                "it did not, but was built upon: {:?}",
                recorded[index]
            );
        }
    }
}
