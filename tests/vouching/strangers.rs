//! Whoever has no secret, or only what he has overheard.

use std::cell::Cell;
use std::time::Duration;

use zk_leader_run::clock;
use zk_leader_run::core::time::{Now, Sighting, Timestamp};
use zk_leader_run::core::vouching::Word;
use zk_leader_run::vouching::Reason;
use zk_leader_run::vouching::message::{LENGTH, Message, Said};

use crate::host::{
    ELECTION, Host, LEADER, Log, MEMBER, OTHER_SECRET, SECRET, Stranger, asks, loopback, message, pair, question, yes,
};

/// These were dropped for this reason, and a question after them is the first that is heard and answered.
async fn are_dropped(datagrams: &[Vec<u8>], why: Reason) {
    let (stranger, mut member) = (Stranger::new().await, Host::new(MEMBER));
    for datagram in datagrams {
        stranger.sends(&member, datagram).await;
    }
    member.drops(why, datagrams.len() as u64).await;
    stranger.sends(&member, &asks(9).write(ELECTION, &SECRET)).await;
    assert_eq!(member.hears().await, Word::Asked(question(9)));
    stranger.received_nothing();
}

#[tokio::test]
async fn a_forged_question_is_dropped() {
    let mut forged = asks(1).write(ELECTION, &SECRET);
    forged[51] ^= 1;
    let mut without = asks(1).write(ELECTION, &SECRET);
    without[52..].fill(0);
    are_dropped(&[forged, without, asks(1).write(ELECTION, &OTHER_SECRET)], Reason::Secret).await;
}

thread_local! {
    static SECONDS: Cell<u64> = const { Cell::new(1000) };
}

/// Of what is under way when the secret is made anew, nothing needs to be looked into.
#[tokio::test]
async fn only_a_secret_that_stays_wrong_is_told() {
    clock::simulate(Some(|| {
        let since_start = Duration::from_secs(SECONDS.get());
        Now { lease: Timestamp::ZERO.after(since_start), observer: Sighting::ZERO.after(since_start) }
    }));
    let (log, _here) = Log::of_this_thread();
    let (leader, mut member) = pair();
    // The member learns it first, then the leader does.
    member.secret(Some(OTHER_SECRET));
    leader.direct.ask(MEMBER, question(1));
    member.drops(Reason::Secret, 1).await;
    leader.secret(Some(OTHER_SECRET));
    leader.direct.ask(MEMBER, question(2));
    assert_eq!(member.hears().await, Word::Asked(question(2)));
    // Long after that the leader learns another one, and the member never does.
    SECONDS.set(SECONDS.get() + 60);
    leader.secret(Some(SECRET));
    for (asked, warnings) in [(2, 0), (3, 0), (4, 1), (5, 1)] {
        SECONDS.set(SECONDS.get() + 1);
        leader.direct.ask(MEMBER, question(asked + 1));
        member.drops(Reason::Secret, asked).await;
        assert_eq!(log.count("is not authentic"), warnings, "at {asked}");
    }
    clock::simulate(None);
}

#[tokio::test]
async fn a_question_of_another_election_is_dropped() {
    are_dropped(&[asks(1).write(ELECTION + 1, &SECRET)], Reason::Election).await;
}

#[tokio::test]
async fn a_datagram_of_another_length_is_dropped() {
    let whole = asks(1).write(ELECTION, &SECRET);
    let long = [whole.clone(), vec![0]].concat();
    let longer = [whole.clone(), vec![0; 1300]].concat();
    are_dropped(&[Vec::new(), whole[..LENGTH - 1].to_vec(), long, longer], Reason::Length).await;
}

#[tokio::test]
async fn a_datagram_without_meaning_is_dropped() {
    let change = |at: usize, value| {
        let mut datagram = asks(1).write(ELECTION, &SECRET);
        datagram[at] = value;
        datagram
    };
    are_dropped(
        &[change(0, b'X'), change(4, 0), change(4, 5), change(5, 1), change(6, 1), change(7, 1)],
        Reason::Format,
    )
    .await;
}

#[tokio::test]
async fn a_question_to_another_instance_is_dropped() {
    let other = Message { member: 3, ..asks(1) };
    let reflected = message(Said::Answer { promises: true }, 1);
    are_dropped(&[other.write(ELECTION, &SECRET), reflected.write(ELECTION, &SECRET)], Reason::Addressee).await;
}

#[tokio::test]
async fn a_question_that_is_repeated_is_neither_told_nor_answered() {
    let (leader, mut member) = pair();
    let recorder = Stranger::new().await;
    leader.meet(MEMBER, recorder.address());
    let mut overheard = Vec::new();
    for seq in [1, 2] {
        leader.direct.ask(MEMBER, question(seq));
        overheard.push(recorder.receives().await.0);
    }
    recorder.sends(&member, &overheard[1]).await;
    assert_eq!(member.hears().await, Word::Asked(question(2)));
    for _ in 0..50 {
        recorder.sends(&member, &overheard[0]).await;
        recorder.sends(&member, &overheard[1]).await;
    }
    member.drops(Reason::Replay, 100).await;
    member.heard_nothing();
    recorder.received_nothing();
}

#[tokio::test]
async fn only_what_was_asked_of_the_one_who_answers_is_believed_and_once() {
    let (mut leader, member) = (Host::new(LEADER), Stranger::new().await);
    leader.meet(MEMBER, member.address());
    leader.meet(3, member.address());
    leader.direct.ask(MEMBER, question(1));
    let of = |seq| message(Said::Answer { promises: true }, seq);
    let wrong =
        [of(2), Message { member: 3, ..of(1) }, Message { token: 40, ..of(1) }, Message { member: 77, ..of(1) }];
    for answer in wrong {
        member.sends(&leader, &answer.write(ELECTION, &SECRET)).await;
    }
    leader.drops(Reason::Unasked, 4).await;
    leader.heard_nothing();
    for _ in 0..3 {
        member.sends(&leader, &of(1).write(ELECTION, &SECRET)).await;
    }
    assert_eq!(leader.hears().await, Word::Answered(yes(MEMBER, 1)));
    leader.drops(Reason::Unasked, 6).await;
    leader.heard_nothing();
}

/// The kernel drops what does not fit into its buffer. A leader asks again.
#[tokio::test]
async fn a_flood_does_not_keep_a_question_from_its_answer() {
    let (mut leader, mut member) = pair();
    let (address, forged) = (member.direct.address(), asks(1).write(ELECTION, &OTHER_SECRET));
    let flood = std::thread::spawn(move || {
        let socket = std::net::UdpSocket::bind(loopback()).unwrap();
        (0..10_000).for_each(|_| assert_eq!(socket.send_to(&forged, address).unwrap(), LENGTH));
    });
    let mut answered = None;
    for seq in 1..=2_000 {
        leader.direct.ask(MEMBER, question(seq));
        while let Some(Word::Asked(asked)) = member.hears_within(Duration::from_millis(20)).await {
            member.direct.reply(yes(MEMBER, asked.seq));
        }
        answered = leader.hears_within(Duration::from_millis(20)).await;
        if answered.is_some() {
            break;
        }
    }
    assert!(matches!(answered, Some(Word::Answered(reply)) if reply.promises), "{answered:?}");
    flood.join().unwrap();
    assert!(member.direct.dropped().of(Reason::Secret) > 0, "there was no flood");
}
