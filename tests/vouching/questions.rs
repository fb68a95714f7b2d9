//! Questions and answers.

use std::time::Duration;

use zk_leader_run::core::vouching::{Question, Reply, Word};
use zk_leader_run::vouching::Reason;
use zk_leader_run::vouching::message::{Message, Said};

use crate::host::{ELECTION, Host, MEMBER, OTHER_SECRET, SECRET, Stranger, message, pair, question, yes};

#[tokio::test]
async fn a_question_arrives_and_its_answer_comes_back() {
    let (mut leader, mut member) = pair();
    let lease = Duration::from_nanos(1_000_000_001);
    leader.direct.ask(MEMBER, Question { lease, ..question(1) });
    let asked = Question { lease: Duration::from_millis(1001), ..question(1) };
    assert_eq!(member.hears().await, Word::Asked(asked), "rounded up");
    member.direct.reply(yes(MEMBER, 1));
    assert_eq!(leader.hears().await, Word::Answered(yes(MEMBER, 1)));
    leader.direct.ask(MEMBER, question(2));
    assert_eq!(member.hears().await, Word::Asked(question(2)));
    let no = Reply { promises: false, ..yes(MEMBER, 2) };
    member.direct.reply(no);
    assert_eq!(leader.hears().await, Word::Answered(no));
}

/// Also where `ZooKeeper` names another address of the leader, or none.
#[tokio::test]
async fn an_answer_goes_to_where_the_question_came_from() {
    let (stranger, mut member) = (Stranger::new().await, Host::new(MEMBER));
    stranger.sends(&member, &crate::host::asks(1).write(ELECTION, &SECRET)).await;
    assert_eq!(member.hears().await, Word::Asked(question(1)));
    member.direct.reply(yes(MEMBER, 1));
    let (datagram, from) = stranger.receives().await;
    assert_eq!(from, member.direct.address());
    assert_eq!(Message::parse(&datagram, ELECTION, &SECRET), Ok(message(Said::Answer { promises: true }, 1)));
}

#[tokio::test]
async fn an_instance_that_nobody_knows_is_not_asked_and_one_that_moves_is_found() {
    let (leader, mut member) = pair();
    let elsewhere = Stranger::new().await;
    leader.meet(MEMBER, elsewhere.address());
    leader.direct.ask(77, question(1));
    leader.direct.ask(MEMBER, question(2));
    let (datagram, _) = elsewhere.receives().await;
    assert_eq!(Message::parse(&datagram, ELECTION, &SECRET).map(|message| message.seq), Ok(2), "and 1 went nowhere");
    leader.meet(MEMBER, member.direct.address());
    leader.direct.ask(MEMBER, question(3));
    assert_eq!(member.hears().await, Word::Asked(question(3)));
}

#[tokio::test]
async fn nothing_is_sent_or_believed_without_a_secret_or_an_election() {
    let (leader, mut member) = pair();
    let stranger = Stranger::new().await;
    leader.meet(MEMBER, stranger.address());
    leader.secret(None);
    leader.direct.ask(MEMBER, question(1));
    leader.secret(Some(SECRET));
    leader.knows.send_modify(|known| known.election = None);
    leader.direct.ask(MEMBER, question(2));
    leader.knows.send_modify(|known| known.election = Some(ELECTION));
    leader.direct.ask(MEMBER, question(3));
    let (datagram, _) = stranger.receives().await;
    assert_eq!(Message::parse(&datagram, ELECTION, &SECRET).map(|message| message.seq), Ok(3));

    member.secret(None);
    stranger.sends(&member, &datagram).await;
    member.drops(Reason::Unready, 1).await;
    member.secret(Some(SECRET));
    stranger.sends(&member, &datagram).await;
    assert_eq!(member.hears().await, Word::Asked(question(3)));
}

#[tokio::test]
async fn a_new_secret_counts_at_once() {
    let (mut leader, mut member) = pair();
    leader.secret(Some(OTHER_SECRET));
    leader.direct.ask(MEMBER, question(1));
    member.drops(Reason::Secret, 1).await;
    member.heard_nothing();
    member.secret(Some(OTHER_SECRET));
    leader.direct.ask(MEMBER, question(2));
    assert_eq!(member.hears().await, Word::Asked(question(2)));
    member.direct.reply(yes(MEMBER, 2));
    assert_eq!(leader.hears().await, Word::Answered(yes(MEMBER, 2)));
}
