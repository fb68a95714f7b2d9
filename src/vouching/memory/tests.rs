use super::*;

const LEASE: Duration = Duration::from_secs(10);

fn from(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

fn question(leader: u64, token: i64, seq: u64) -> Question {
    Question { leader, token, seq, lease: LEASE }
}

fn yes(member: u64, token: i64, seq: u64) -> Reply {
    Reply { member, leader: 1, token, seq, promises: true }
}

fn at(seconds: u64) -> Sighting {
    Sighting::ZERO.after(Duration::from_secs(seconds))
}

#[test]
fn only_a_growing_number_of_a_term_is_news() {
    let mut memory = Memory::default();
    let mut hear = |leader, token, seq| memory.asks(&question(leader, token, seq), from(1));
    assert_eq!(hear(1, 7, 5), Ok(()));
    assert_eq!((hear(1, 7, 5), hear(1, 7, 4)), (Err(Reason::Replay), Err(Reason::Replay)));
    assert_eq!((hear(1, 7, 6), hear(1, 8, 1), hear(2, 7, 1)), (Ok(()), Ok(()), Ok(())));
}

/// Otherwise whoever recorded many terms could repeat them in turn, for ever.
#[test]
fn a_term_that_is_forgotten_is_never_news_again() {
    let mut memory = Memory::default();
    for token in 1..=20 {
        assert_eq!(memory.asks(&question(1, token, 1), from(1)), Ok(()));
    }
    for token in 1..=20 {
        assert_eq!(memory.asks(&question(1, token, 1), from(1)), Err(Reason::Replay), "token {token}");
    }
    assert_eq!(memory.terms.len(), TERMS);
}

/// A restored ensemble gives lower tokens.
#[test]
fn once_terms_are_forgotten_lower_tokens_are_news() {
    let mut memory = Memory::default();
    for token in 11..=20 {
        assert_eq!(memory.asks(&question(1, token, 1), from(1)), Ok(()));
    }
    assert_eq!(memory.asks(&question(2, 7, 1), from(1)), Err(Reason::Replay));
    memory.forget_terms();
    assert_eq!(memory.asks(&question(2, 7, 1), from(1)), Ok(()));
    assert_eq!(memory.asks(&question(2, 7, 1), from(1)), Err(Reason::Replay));
}

#[test]
fn each_question_is_answered_once_and_by_whom_it_was_put_to() {
    let mut memory = Memory::default();
    memory.ask(2, &question(1, 7, 1));
    memory.ask(3, &question(1, 7, 2));
    for reply in [yes(4, 7, 1), yes(3, 7, 1), yes(2, 7, 2), yes(2, 8, 1)] {
        assert_eq!(memory.answered(&reply), Err(Reason::Unasked), "{reply:?}");
    }
    assert_eq!((memory.answered(&yes(2, 7, 1)), memory.answered(&yes(2, 7, 1))), (Ok(()), Err(Reason::Unasked)));
}

#[test]
fn the_last_32_questions_to_a_member_are_remembered() {
    let mut memory = Memory::default();
    (1..=33).for_each(|seq| memory.ask(2, &question(1, 7, seq)));
    let answers = [1, 2, 33].map(|seq| memory.answered(&yes(2, 7, seq)));
    assert_eq!(answers, [Err(Reason::Unasked), Ok(()), Ok(())]);
}

#[test]
fn so_many_members_are_remembered_as_may_be_asked() {
    let mut memory = Memory::default();
    memory.ask(1000, &question(1, 7, 1));
    memory.ask(1001, &question(1, 7, 1));
    memory.ask(1000, &question(1, 7, 2));
    (1..=31).for_each(|member| memory.ask(member, &question(1, 7, 3)));
    assert_eq!(memory.asked.len(), MEMBERS);
    assert_eq!((memory.answered(&yes(1001, 7, 1)), memory.answered(&yes(1000, 7, 2))), (Err(Reason::Unasked), Ok(())));
}

#[test]
fn who_is_gone_is_told_once_and_only_of_those_that_we_ask() {
    let mut memory = Memory::default();
    memory.ask(2, &question(1, 7, 1));
    assert_eq!((memory.gone(3), memory.gone(2), memory.gone(2)), (Err(Reason::Unasked), Ok(true), Ok(false)));
    memory.ask(2, &question(1, 7, 2));
    assert_eq!(memory.gone(2), Ok(false), "it is asked in vain");
}

#[test]
fn an_answer_goes_to_where_the_newest_question_came_from() {
    let mut memory = Memory::default();
    assert_eq!(memory.reply(at(1), &yes(2, 7, 5)), None, "nobody asked");
    assert_eq!(memory.asks(&question(1, 7, 5), from(1)), Ok(()));
    assert_eq!(memory.asks(&question(1, 7, 6), from(2)), Ok(()));
    let to = [5, 6, 7].map(|seq| memory.reply(at(1), &yes(2, 7, seq)));
    assert_eq!(to, [Some(from(2)), Some(from(2)), None]);
}

#[test]
fn only_those_to_whom_we_promised_something_of_late_are_told_that_we_are_gone() {
    let mut memory = Memory::default();
    for leader in [1, 2, 3] {
        assert_eq!(memory.asks(&question(leader, 7, 5), from(1)), Ok(()));
    }
    memory.reply(at(100), &yes(9, 7, 5));
    memory.reply(at(90), &Reply { leader: 2, ..yes(9, 7, 5) });
    memory.reply(at(100), &Reply { leader: 3, promises: false, ..yes(9, 7, 5) });
    let leaders = |memory: &Memory, now| memory.promisees(now).iter().map(|one| one.leader).collect::<Vec<_>>();
    assert_eq!(leaders(&memory, at(101)), [1, 2]);
    assert_eq!(leaders(&memory, at(110)), [1], "two leases of ten seconds are over");
    assert_eq!(memory.promisees(at(110)), [Promisee { leader: 1, token: 7, seq: 5, address: from(1) }]);
    assert_eq!((memory.heard(3, 7), memory.heard(1, 8)), (Err(Reason::Unasked), Err(Reason::Unasked)));
    assert_eq!((memory.heard(1, 7), memory.heard(1, 7)), (Ok(()), Err(Reason::Replay)));
    assert_eq!(leaders(&memory, at(110)), [0; 0]);
}

#[test]
fn another_election_begins_anew() {
    let mut memory = Memory::default();
    assert_eq!(memory.of(1).asks(&question(1, 7, 5), from(1)), Ok(()));
    assert_eq!(memory.of(1).asks(&question(1, 7, 5), from(1)), Err(Reason::Replay));
    assert_eq!(memory.of(2).asks(&question(1, 7, 5), from(1)), Ok(()));
}

/// Answers, goodbyes and the repetitions of what was heard may be under way.
#[test]
fn the_next_program_goes_on_with_all_that_was_said_and_heard() {
    let mut before = Memory::default();
    before.ask(2, &question(1, 7, 1));
    before.ask(3, &question(1, 7, 2));
    assert_eq!((before.gone(3), before.asks(&question(5, 8, 4), from(1))), (Ok(true), Ok(())));
    before.reply(at(100), &Reply { leader: 5, ..yes(9, 8, 4) });
    let mut next: Memory = serde_json::from_str(&serde_json::to_string(&before).unwrap()).unwrap();
    assert_eq!((next.answered(&yes(2, 7, 1)), next.gone(3)), (Ok(()), Ok(false)));
    assert_eq!(next.of(0).asks(&question(5, 8, 4), from(1)), Err(Reason::Replay));
    assert_eq!(next.promisees(at(101)), [Promisee { leader: 5, token: 8, seq: 4, address: from(1) }]);
}
