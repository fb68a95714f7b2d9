//! What real servers cannot be made to show on demand: servers that lag, stop, or lose each other, and when sessions expire.
//! Servers 0 and 1 follow, 2 leads.

use std::time::Duration;

use crate::lab::{Lab, TICK, create, delete, get, set};
use crate::memory::{Code, CreateMode, EventKind, Hello, Message, Reply, Request, Role, Settings};

const SECOND: Duration = Duration::from_secs(1);
/// `syncLimit`, and what it takes to notice and to elect.
const NOTICED: Duration = Duration::from_secs(13);

fn watch(path: &str) -> Request {
    Request::Exists { path: path.to_owned(), watch: true }
}

fn is_ok(reply: Option<&Result<Reply, Code>>) -> bool {
    matches!(reply, Some(Ok(_)))
}

#[test]
fn a_follower_that_lags_shows_the_past_until_it_is_asked_to_sync() {
    let mut lab = Lab::of(3);
    let (slow, fast) = (lab.connect(0), lab.connect(1));
    assert!(is_ok(lab.ask(&fast, create("/a", CreateMode::Persistent)).as_ref()));
    assert!(is_ok(lab.ask(&slow, watch("/a")).as_ref()));
    lab.ensemble.lag(0, SECOND, lab.now);
    assert!(is_ok(lab.ask(&fast, set("/a", "new")).as_ref()));
    assert_eq!(lab.read(&slow, "/a").as_deref(), Some(""));
    assert_eq!(lab.ask(&slow, Request::Sync { path: "/".to_owned() }), None, "it waits for what it has not applied");
    assert_eq!(lab.events(&slow), []);
    lab.pass(SECOND);
    let heard = lab.heard(slow.connection);
    assert!(
        matches!(&heard[..], [Message::Event { kind: EventKind::DataChanged, .. }, Message::Reply { .. }]),
        "{heard:?}"
    );
    assert_eq!(lab.read(&slow, "/a").as_deref(), Some("new"));
}

#[test]
fn a_write_through_a_follower_that_lags_is_done_before_it_is_answered() {
    let mut lab = Lab::of(3);
    let slow = lab.connect(0);
    lab.ensemble.lag(0, SECOND, lab.now);
    assert_eq!(lab.ask(&slow, create("/a", CreateMode::Persistent)), None);
    lab.put(&slow, get("/a"));
    assert!(lab.exists_at(2, "/a") && lab.exists_at(1, "/a") && !lab.exists_at(0, "/a"));
    lab.pass(SECOND);
    let heard = lab.heard(slow.connection);
    let replies = |message: &Message| matches!(message, Message::Reply { result: Ok(_), .. });
    assert!(heard.len() == 2 && heard.iter().all(replies), "the read waits for the write before it: {heard:?}");
}

#[test]
fn a_server_that_is_behind_a_client_refuses_it() {
    let mut lab = Lab::of(3);
    let client = lab.connect(1);
    lab.ensemble.lag(0, 2 * SECOND, lab.now);
    lab.put(&client, create("/a", CreateMode::Persistent));
    lab.pass(SECOND / 10);
    let Some(Message::Reply { zxid, .. }) = lab.heard(client.connection).pop() else { panic!("no reply") };
    let hello = Hello::again(client.timeout_ms, client.session, &client.password, zxid);
    assert_eq!(lab.try_connect(0, &hello), [Message::Closed]);
    lab.pass(2 * SECOND);
    assert!(lab.reconnect(&client, 0, zxid).is_some());
}

#[test]
fn a_session_expires_within_a_tick_after_its_timeout_and_not_before() {
    for seed in 0..20 {
        let mut lab = Lab::with(Settings::of(1), seed);
        let (client, other) = (lab.connect(0), lab.connect(0));
        assert!(is_ok(lab.ask(&client, create("/e", CreateMode::Ephemeral)).as_ref()));
        let silent_since = lab.now;
        let mut gone = None;
        while lab.now < silent_since + Duration::from_secs(20) {
            assert!(is_ok(lab.ask(&other, Request::Ping).as_ref()), "a session that is heard lives");
            gone = gone.or((!lab.exists_at(0, "/e")).then_some(lab.now));
            lab.pass(SECOND / 10);
        }
        let after = gone.expect("it has expired").saturating_sub(silent_since);
        let late = Duration::from_millis(200);
        assert!(after + late > Duration::from_secs(10) && after < Duration::from_secs(10) + TICK + late, "{after:?}");
        assert!(lab.is_closed(&client));
        let hello = Hello::again(client.timeout_ms, client.session, &client.password, 0);
        assert_eq!(lab.try_connect(0, &hello), [Message::Expired, Message::Closed]);
    }
}

#[test]
fn pings_through_a_follower_keep_a_session() {
    let mut lab = Lab::of(3);
    let client = lab.connect(0);
    assert!(is_ok(lab.ask(&client, create("/e", CreateMode::Ephemeral)).as_ref()));
    for _ in 0..20 {
        lab.pass(3 * SECOND);
        assert!(is_ok(lab.ask(&client, Request::Ping).as_ref()));
    }
    assert!(lab.exists_at(2, "/e"));
    lab.pass(14 * SECOND);
    assert!(!lab.exists_at(2, "/e") && lab.is_closed(&client));
}

#[test]
fn a_new_leader_gives_every_session_its_whole_timeout_again() {
    let mut lab = Lab::of(3);
    let client = lab.connect(0);
    assert!(is_ok(lab.ask(&client, create("/e", CreateMode::Ephemeral)).as_ref()));
    lab.pass(9 * SECOND);
    lab.ensemble.kill(2, lab.now);
    assert!(lab.is_closed(&client), "a follower without a leader closes its connections");
    lab.pass(9 * SECOND);
    assert_eq!(lab.ensemble.leader(), Some(1));
    assert!(lab.exists_at(1, "/e"));
    assert!(lab.reconnect(&client, 0, 0).is_some());
    lab.pass(14 * SECOND);
    assert!(!lab.exists_at(1, "/e"));
}

#[test]
fn a_follower_that_is_cut_off_goes_on_answering_for_a_while() {
    let mut lab = Lab::of(3);
    let (lonely, other) = (lab.connect(0), lab.connect(1));
    assert!(is_ok(lab.ask(&lonely, create("/a", CreateMode::Persistent)).as_ref()));
    lab.ensemble.isolate(0, lab.now);
    lab.pass(9 * SECOND);
    assert!(is_ok(lab.ask(&other, set("/a", "new")).as_ref()));
    assert_eq!(lab.read(&lonely, "/a").as_deref(), Some(""), "the past");
    assert!(is_ok(lab.ask(&lonely, Request::Ping).as_ref()));
    assert_eq!(lab.ask(&lonely, set("/a", "lost")), None);
    lab.pass(NOTICED);
    assert!(lab.is_closed(&lonely));
    assert_eq!(lab.ensemble.role(0), Role::Looking);
    assert_eq!(lab.try_connect(0, &Hello::new(10_000)), [Message::Closed]);
    lab.ensemble.heal(lab.now);
    lab.pass(SECOND);
    let back = lab.connect(0);
    assert_eq!(lab.read(&back, "/a").as_deref(), Some("new"), "what was forwarded on a dead link is lost");
}

#[test]
fn a_leader_that_is_cut_off_answers_reads_and_syncs_and_loses_its_writes() {
    let mut lab = Lab::of(3);
    let (old, other) = (lab.connect(2), lab.connect(1));
    assert!(is_ok(lab.ask(&old, create("/a", CreateMode::Persistent)).as_ref()));
    lab.ensemble.isolate(2, lab.now);
    assert_eq!(lab.ask(&old, set("/a", "lost")), None, "no quorum stores it");
    assert_eq!(lab.ask(&old, get("/a")), None, "a read waits for the write before it");
    let reader = lab.ensemble.connect(2, &Hello::again(10_000, old.session, &old.password, 0), lab.now);
    lab.pass(SECOND);
    assert!(matches!(lab.heard(reader)[..], [Message::Connected { .. }]), "the leader alone knows sessions");
    lab.pass(NOTICED);
    assert!(lab.heard(reader).contains(&Message::Closed) && lab.is_closed(&other));
    assert_eq!(lab.ensemble.leader(), Some(1));
    let other = lab.reconnect(&other, 1, 0).expect("the session lives on");
    assert_eq!(lab.read(&other, "/a").as_deref(), Some(""));
    assert!(is_ok(lab.ask(&other, set("/a", "new")).as_ref()));
    lab.ensemble.heal(lab.now);
    lab.pass(SECOND);
    assert_eq!(lab.ensemble.role(2), Role::Following(1));
    let back = lab.reconnect(&old, 2, 0).expect("the session lives on");
    assert_eq!(lab.read(&back, "/a").as_deref(), Some("new"));
}

#[test]
fn a_write_that_a_follower_has_stored_survives_its_leader_without_a_reply() {
    let mut lab = Lab::of(3);
    let client = lab.connect(2);
    let hop = Duration::from_millis(1);
    lab.put(&client, create("/a", CreateMode::Persistent));
    lab.ensemble.advance(lab.now + hop);
    lab.ensemble.kill(2, lab.now + hop);
    lab.now += hop;
    lab.pass(SECOND);
    assert_eq!(lab.reply(&client), None);
    assert!(lab.exists_at(0, "/a") && lab.exists_at(1, "/a"));
}

#[test]
fn a_write_that_no_follower_has_stored_is_lost_with_its_leader() {
    let mut lab = Lab::of(3);
    let client = lab.connect(2);
    lab.put(&client, create("/a", CreateMode::Persistent));
    lab.ensemble.kill(2, lab.now);
    lab.pass(SECOND);
    lab.ensemble.start(2, lab.now);
    lab.pass(SECOND);
    assert_eq!(lab.ensemble.role(2), Role::Following(1));
    assert!((0..3).all(|server| !lab.exists_at(server, "/a")));
}

#[test]
fn without_a_quorum_nobody_serves() {
    let mut lab = Lab::of(3);
    let client = lab.connect(0);
    assert!(is_ok(lab.ask(&client, create("/a", CreateMode::Persistent)).as_ref()));
    lab.ensemble.kill(1, lab.now);
    lab.pass(SECOND);
    assert!(is_ok(lab.ask(&client, set("/a", "two of three")).as_ref()));
    lab.ensemble.kill(2, lab.now);
    lab.pass(NOTICED);
    assert!(lab.is_closed(&client));
    assert_eq!((lab.ensemble.leader(), lab.ensemble.role(0)), (None, Role::Looking));
    lab.ensemble.start(1, lab.now);
    lab.pass(SECOND);
    assert_eq!(lab.ensemble.leader(), Some(0), "it has stored more");
    let back = lab.reconnect(&client, 1, 0).unwrap();
    assert_eq!(lab.read(&back, "/a").as_deref(), Some("two of three"));
}

#[test]
fn a_leader_that_is_stopped_is_replaced_and_learns_of_it_when_it_goes_on() {
    let mut lab = Lab::of(3);
    let (old, other) = (lab.connect(2), lab.connect(0));
    lab.ensemble.pause(2, lab.now);
    assert_eq!(lab.ask(&old, Request::Ping), None);
    lab.pass(NOTICED);
    assert_eq!(lab.ensemble.leader(), Some(1));
    assert!(lab.ensemble.is_connected(old.connection) && !lab.ensemble.is_connected(other.connection));
    let client = lab.connect(0);
    assert!(is_ok(lab.ask(&client, create("/a", CreateMode::Persistent)).as_ref()));
    lab.ensemble.resume(2, lab.now);
    lab.pass(NOTICED);
    assert!(lab.is_closed(&old));
    assert_eq!(lab.ensemble.role(2), Role::Following(1));
    assert!(lab.exists_at(2, "/a"));
}

#[test]
fn a_leader_of_an_earlier_epoch_is_not_followed_though_it_does_not_know_that_it_lost_its_quorum() {
    let mut lab = Lab::of(3);
    lab.ensemble.pause(2, lab.now);
    lab.pass(NOTICED);
    let client = lab.connect(0);
    assert!(is_ok(lab.ask(&client, create("/a", CreateMode::Persistent)).as_ref()));
    // Server 2 does not learn that 0 has left it, until it looks whom it has not heard of.
    lab.ensemble.isolate(0, lab.now);
    lab.pass(NOTICED);
    lab.ensemble.resume(2, lab.now);
    assert_eq!((lab.ensemble.role(1), lab.ensemble.role(2)), (Role::Looking, Role::Leading));
    lab.pass(NOTICED);
    assert_eq!(lab.ensemble.role(2), Role::Following(1));
    assert!(lab.exists_at(2, "/a"));
}

#[test]
fn ephemeral_znodes_of_an_expired_session_go_while_its_client_is_cut_off() {
    let mut lab = Lab::of(3);
    let (lonely, other) = (lab.connect(0), lab.connect(1));
    assert!(is_ok(lab.ask(&lonely, create("/e", CreateMode::Ephemeral)).as_ref()));
    assert!(is_ok(lab.ask(&other, watch("/e")).as_ref()));
    lab.ensemble.isolate(0, lab.now);
    let mut fired = Vec::new();
    for _ in 0..14 {
        lab.put(&lonely, Request::Ping);
        lab.put(&other, Request::Ping);
        lab.pass(SECOND);
        fired.extend(lab.events(&other));
    }
    assert_eq!(fired, [(EventKind::Deleted, "/e".to_owned())]);
}

#[test]
fn a_one_way_cut_between_servers_is_noticed() {
    let mut lab = Lab::of(3);
    lab.ensemble.cut(0, 2, lab.now);
    lab.pass(NOTICED);
    assert_eq!(lab.ensemble.role(0), Role::Looking, "the leader closed the connection of the one that it did not hear");
    lab.ensemble.heal(lab.now);
    lab.pass(SECOND);
    assert_eq!(lab.ensemble.role(0), Role::Following(2));
}

#[test]
fn a_standalone_server_keeps_its_data_and_sessions_over_a_restart() {
    let mut lab = Lab::of(1);
    let client = lab.connect(0);
    assert!(is_ok(lab.ask(&client, create("/e", CreateMode::Ephemeral)).as_ref()));
    lab.ensemble.kill(0, lab.now);
    assert!(lab.is_closed(&client));
    lab.pass(20 * SECOND);
    lab.ensemble.start(0, lab.now);
    lab.pass(SECOND);
    let back = lab.reconnect(&client, 0, 0).expect("the session lives on");
    assert!(is_ok(lab.ask(&back, delete("/e")).as_ref()));
}

#[test]
fn the_same_seed_and_the_same_inputs_have_the_same_outputs() {
    let run = |seed| {
        let mut lab = Lab::with(Settings::of(3), seed);
        let (one, two) = (lab.connect(0), lab.connect(2));
        for at in 0..9 {
            lab.put(&one, create(&format!("/e{at}"), CreateMode::Ephemeral));
        }
        lab.put(&two, Request::GetChildren { path: "/".to_owned(), watch: true });
        lab.pass(SECOND);
        lab.put(&two, Request::GetChildren { path: "/".to_owned(), watch: true });
        lab.ensemble.kill(1, lab.now);
        lab.pass(30 * SECOND);
        format!("{:?} {:?}", lab.heard(one.connection), lab.heard(two.connection))
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8), "chance is the seed's");
}
