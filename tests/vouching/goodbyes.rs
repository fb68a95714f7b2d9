//! Who leaves says so, until it is heard.

use std::time::Duration;

use tokio::time::timeout;
use zk_leader_run::core::vouching::{Reply, Word};
use zk_leader_run::vouching::Reason;
use zk_leader_run::vouching::message::{Message, Said};

use crate::host::{
    ELECTION, Host, LEADER, LIMIT, MEMBER, OTHER_SECRET, SECRET, Stranger, asks, message, pair, question, yes,
};

/// Longer than the test: who waits for the end of it has failed.
const ENDLESS: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn the_leader_hears_that_an_instance_is_gone_and_confirms_it() {
    let (mut leader, mut member) = pair();
    leader.direct.ask(MEMBER, question(1));
    assert_eq!(member.hears().await, Word::Asked(question(1)));
    member.direct.reply(yes(MEMBER, 1));
    assert_eq!(leader.hears().await, Word::Answered(yes(MEMBER, 1)));
    timeout(LIMIT, member.direct.leave(ENDLESS)).await.expect("it is confirmed");
    assert_eq!(leader.hears().await, Word::Left { instance: MEMBER });
    timeout(LIMIT, member.direct.leave(ENDLESS)).await.expect("there is nobody to tell any more");
    leader.heard_nothing();
}

#[tokio::test]
async fn who_promised_nothing_leaves_at_once_and_without_a_word() {
    let (stranger, mut member) = (Stranger::new().await, Host::new(MEMBER));
    timeout(LIMIT, member.direct.leave(ENDLESS)).await.expect("nobody asked");
    stranger.sends(&member, &asks(1).write(ELECTION, &SECRET)).await;
    assert_eq!(member.hears().await, Word::Asked(question(1)));
    member.direct.reply(Reply { promises: false, ..yes(MEMBER, 1) });
    timeout(LIMIT, member.direct.leave(ENDLESS)).await.expect("nothing was promised");
    stranger.receives().await;
    stranger.received_nothing();
}

/// The network loses the first word of the member and the first one of the leader.
#[tokio::test]
async fn what_is_lost_is_said_again() {
    let (mut leader, mut member) = pair();
    let between = Stranger::new().await;
    leader.meet(MEMBER, between.address());
    leader.direct.ask(MEMBER, question(1));
    between.passes_on(&between.receives().await.0, member.direct.address()).await;
    assert_eq!(member.hears().await, Word::Asked(question(1)));
    member.direct.reply(yes(MEMBER, 1));
    let (answer, _) = between.receives().await;
    assert_eq!(Message::parse(&answer, ELECTION, &SECRET).map(|m| m.said), Ok(Said::Answer { promises: true }));

    let lossy = async {
        let (lost, _) = between.receives().await;
        let (second, _) = between.receives().await;
        assert_eq!(second, lost);
        between.passes_on(&second, leader.direct.address()).await;
        let (heard, from) = between.receives().await;
        assert_eq!(from, leader.direct.address());
        let (third, _) = between.receives().await;
        between.passes_on(&third, leader.direct.address()).await;
        assert_eq!(between.receives().await, (heard.clone(), from));
        between.passes_on(&heard, member.direct.address()).await;
    };
    // Three times in ten seconds: a third of them is long for a busy machine.
    timeout(LIMIT, async { tokio::join!(member.direct.leave(Duration::from_secs(10)), lossy) }).await.expect("it ends");
    timeout(LIMIT, member.direct.leave(ENDLESS)).await.expect("it is confirmed");
    assert_eq!(leader.hears().await, Word::Left { instance: MEMBER });
    leader.heard_nothing();
}

#[tokio::test]
async fn nobody_waits_longer_than_he_was_told_to() {
    let (stranger, mut member) = (Stranger::new().await, Host::new(MEMBER));
    stranger.sends(&member, &asks(1).write(ELECTION, &SECRET)).await;
    assert_eq!(member.hears().await, Word::Asked(question(1)));
    member.direct.reply(yes(MEMBER, 1));
    timeout(LIMIT, member.direct.leave(Duration::from_millis(300))).await.expect("nobody confirms it");
    stranger.receives().await;
    for _ in 0..3 {
        let (gone, _) = stranger.receives().await;
        assert_eq!(Message::parse(&gone, ELECTION, &SECRET), Ok(message(Said::Gone, 1)));
    }
    stranger.received_nothing();
}

#[tokio::test]
async fn who_was_never_asked_cannot_leave_and_who_left_is_told_once() {
    let (mut leader, member) = (Host::new(LEADER), Stranger::new().await);
    let gone = message(Said::Gone, 1);
    member.sends(&leader, &gone.write(ELECTION, &SECRET)).await;
    leader.drops(Reason::Unasked, 1).await;
    leader.heard_nothing();
    leader.meet(MEMBER, member.address());
    leader.direct.ask(MEMBER, question(1));
    member.receives().await;
    member.sends(&leader, &gone.write(ELECTION, &OTHER_SECRET)).await;
    leader.drops(Reason::Secret, 1).await;
    leader.heard_nothing();
    for _ in 0..3 {
        member.sends(&leader, &gone.write(ELECTION, &SECRET)).await;
        let (heard, _) = member.receives().await;
        assert_eq!(Message::parse(&heard, ELECTION, &SECRET), Ok(message(Said::Heard, 1)));
    }
    assert_eq!(leader.hears().await, Word::Left { instance: MEMBER });
    leader.heard_nothing();
}

#[tokio::test]
async fn nobody_is_confirmed_to_be_gone_who_did_not_say_so() {
    let (stranger, mut member) = (Stranger::new().await, Host::new(MEMBER));
    stranger.sends(&member, &message(Said::Heard, 1).write(ELECTION, &SECRET)).await;
    member.drops(Reason::Unasked, 1).await;
    member.heard_nothing();
}
