//! What operators order, and what is written for them: nothing is acted on before it is known, and nothing that another one has
//! written meanwhile is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use zk_leader_run::core::event::{Event, Request, SessionNumber};
use zk_leader_run::core::operator_orders::Orders;
use zk_leader_run::zookeeper::publish::MemberStatus;
use zk_leader_run::zookeeper::schema::history::Term;

use crate::chroot::Chroot;
use crate::host::{FIRST, Host, settings};
use crate::support::standalone::link;
use crate::support::{Admin, Proxy, wait};
use crate::vouching::until;

const CONTROL: &str = "/zk-leader-run/job/control";
const DRAIN: &str = "/zk-leader-run/drains/host1";
const MEMBERS: &str = "/zk-leader-run/job/members";
const HISTORY: &str = "/zk-leader-run/job/history";
/// In the answer to the write that tells the time.
const CLOCK: &str = "/clock-";

fn order(id: &str, for_ms: Option<u64>) -> serde_json::Value {
    json!({ "v": 1, "order": id, "reason": "r", "by": "me", "for_ms": for_ms, "force": true })
}

fn disabled(id: &str, for_ms: Option<u64>) -> String {
    json!({ "v": 1, "disabled": order(id, for_ms) }).to_string()
}

/// Once, before an answer that names this arrives.
fn before_an_answer_with(proxy: &Proxy, text: &'static str, happens: impl FnOnce() + Send + 'static) {
    let mut happens = Some(happens);
    proxy.tamper(move |frame| {
        if names(&frame, text) {
            happens.take().into_iter().for_each(|happens| happens());
        }
        frame
    });
}

fn names(frame: &[u8], text: &str) -> bool {
    frame.windows(text.len()).any(|part| part == text.as_bytes())
}

/// That it has a limit costs another request, for the time.
#[tokio::test]
async fn no_answer_comes_after_an_outage_before_what_was_ordered_meanwhile_is_known() {
    let chroot = Chroot::new();
    let (proxy, admin) = (link(), Admin::to(&chroot.connect_string()));
    let (mut host, _) = Host::entered(settings(&chroot.behind(&proxy), 1)).await;
    host.hints_within(wait::SETTLED).await;
    proxy.cut();
    host.wait_for(Event::ContactLost { session: SessionNumber(1) }).await;
    admin.create(CONTROL, &disabled("meanwhile", Some(3_600_000)));
    host.election.look(FIRST);
    proxy.heal();
    host.answer(FIRST, Request::Look).await.unwrap();
    assert!(host.election.orders().borrow().disabled.is_some());
}

/// The server tells of the drain before it answers. Else a take-over would start a command on a host that is to have none.
#[tokio::test]
async fn no_answer_comes_between_the_news_of_a_drain_and_the_drain() {
    let chroot = Chroot::new();
    let (proxy, admin) = (link(), Admin::to(&chroot.connect_string()));
    let (mut host, _) = Host::entered(settings(&chroot.behind(&proxy), 1)).await;
    host.hints_within(wait::SETTLED).await;
    proxy.stall();
    admin.create_all("/zk-leader-run/drains");
    admin.create(DRAIN, &order("meanwhile", Some(3_600_000)).to_string());
    host.election.look(FIRST);
    proxy.heal();
    host.answer(FIRST, Request::Look).await.unwrap();
    assert!(host.election.orders().borrow().drain.is_some());
}

#[tokio::test]
async fn an_order_that_is_given_while_another_one_is_found_lapsed_is_not_lost() {
    let chroot = Chroot::new();
    let (proxy, admin) = (link(), Admin::to(&chroot.connect_string()));
    let (mut first, _) = Host::entered(settings(&chroot.connect_string(), 2)).await;
    assert!(first.election.close(wait::LIMIT).await);
    admin.create(CONTROL, &disabled("lapsed", Some(0)));
    before_an_answer_with(&proxy, CLOCK, move || admin.set(CONTROL, &disabled("new", None)));
    let host = Host::connected(settings(&chroot.behind(&proxy), 1)).await;
    let mut orders = host.election.orders();
    let known = tokio::time::timeout(wait::LIMIT, orders.wait_for(|orders| orders.disabled.is_some())).await;
    assert!(known.is_ok(), "{}", Admin::to(&chroot.connect_string()).read(CONTROL));
}

#[tokio::test]
async fn an_order_whose_rest_could_not_be_told_is_looked_at_again_soon() {
    const SYSTEM_ERROR: i32 = -1;
    let chroot = Chroot::new();
    let (proxy, admin) = (link(), Admin::to(&chroot.connect_string()));
    let (mut first, _) = Host::entered(settings(&chroot.connect_string(), 2)).await;
    assert!(first.election.close(wait::LIMIT).await);
    let whole = Duration::from_secs(3600);
    admin.create(CONTROL, &disabled("long", Some(3_600_000)));
    let refused = Arc::new(AtomicBool::new(true));
    let is_refused = Arc::clone(&refused);
    proxy.tamper(move |frame| {
        if names(&frame, CLOCK) && is_refused.load(Ordering::SeqCst) {
            [&16_i32.to_be_bytes()[..], &frame[4..16], &SYSTEM_ERROR.to_be_bytes()].concat()
        } else {
            frame
        }
    });
    let host = Host::connected(settings(&chroot.behind(&proxy), 1)).await;
    let mut orders = host.election.orders();
    let rest = |orders: &Orders| orders.disabled.and_then(|order| order.lasts);
    let obeyed = orders.wait_for(|orders| rest(orders) == Some(whole));
    assert!(
        tokio::time::timeout(wait::LIMIT, obeyed).await.is_ok(),
        "what may have lapsed is in force until that is known"
    );
    refused.store(false, Ordering::SeqCst);
    let known = orders.wait_for(|orders| rest(orders).is_some_and(|rest| rest < whole));
    assert!(tokio::time::timeout(wait::LIMIT, known).await.is_ok());
}

/// It may not be read, and is deleted between the look at it and the reading: the server tells that only to who may read it.
#[tokio::test]
async fn a_drain_that_takes_the_place_of_an_unreadable_one_is_heard() {
    const NO_AUTH: i32 = -102;
    /// The length of an answer with the state of a znode.
    const STAT: usize = 4 + 16 + 68;
    let chroot = Chroot::new();
    let (proxy, admin) = (link(), Admin::to(&chroot.connect_string()));
    admin.create_all("/zk-leader-run/drains");
    admin.create(DRAIN, &order("unreadable", None).to_string());
    admin.set_acl(DRAIN, "world", "anyone", "wda");
    let deleted = Arc::new(AtomicBool::new(false));
    let (is_deleted, mut was_refused) = (Arc::clone(&deleted), false);
    proxy.tamper(move |frame| {
        // Later servers refuse the look, too (ZOOKEEPER-2590).
        let is_refused = frame.len() == 20 && frame.ends_with(&NO_AUTH.to_be_bytes());
        if was_refused && (is_refused || frame.len() == STAT) && !is_deleted.swap(true, Ordering::SeqCst) {
            admin.delete(DRAIN);
        }
        was_refused |= is_refused;
        frame
    });
    let host = Host::connected(settings(&chroot.behind(&proxy), 1)).await;
    until("it was deleted", || deleted.load(Ordering::SeqCst)).await;
    // Until it was found missing.
    tokio::time::sleep(Duration::from_millis(300)).await;
    Admin::to(&chroot.connect_string()).create(DRAIN, &order("new", None).to_string());
    let mut orders = host.election.orders();
    let known = tokio::time::timeout(wait::LIMIT, orders.wait_for(|orders| orders.drain.is_some())).await;
    assert!(known.is_ok(), "never heard of");
}

/// No member comes or goes: one that could not take over becomes one that could, as when its health command succeeds.
#[tokio::test]
async fn a_drained_host_hears_that_a_member_that_was_not_eligible_can_take_over() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (host, _) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    let member = |eligible: bool| json!({ "v": 1, "id": "b", "host": "host2", "eligible": eligible }).to_string();
    admin.create_all(MEMBERS);
    admin.create(&format!("{MEMBERS}/b"), &member(false));
    admin.create_all("/zk-leader-run/drains");
    admin.create(DRAIN, r#"{"v":1,"order":"x"}"#);
    let mut orders = host.election.orders();
    let mut hears = async |has_others| {
        let is_heard = |orders: &Orders| orders.drain.is_some_and(|drain| drain.has_others == has_others);
        tokio::time::timeout(wait::LIMIT, orders.wait_for(is_heard)).await.is_ok()
    };
    assert!(hears(false).await);
    admin.set(&format!("{MEMBERS}/b"), &member(true));
    assert!(hears(true).await, "never heard of");
}

/// The other one is drained, too, and its member does not say so yet: two that give way to each other stop for nothing.
#[tokio::test]
async fn a_drained_host_does_not_give_way_to_another_one_that_is_drained() {
    const OTHER: &str = "/zk-leader-run/drains/host2";
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (host, _) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    admin.create_all(MEMBERS);
    admin.create(&format!("{MEMBERS}/b"), r#"{"v":1,"id":"b","host":"host2","eligible":true}"#);
    admin.create_all("/zk-leader-run/drains");
    admin.create(OTHER, r#"{"v":1,"order":"y"}"#);
    admin.create(DRAIN, r#"{"v":1,"order":"x"}"#);
    let mut orders = host.election.orders();
    let heard = tokio::time::timeout(wait::LIMIT, orders.wait_for(|orders| orders.drain.is_some())).await;
    let has_others = heard.unwrap().unwrap().drain.is_some_and(|drain| drain.has_others);
    assert!(!has_others, "it gives way to a drained one");
    let could = |expected| move |orders: &Orders| orders.drain.is_some_and(|drain| drain.has_others == expected);
    for (other, expected) in [(r#"{"v":1,"order":"y","for_ms":0}"#, true), (r#"{"v":1,"order":"z"}"#, false)] {
        admin.set(OTHER, other);
        // Who is enough is watched alone: that it changes has everything read anew.
        admin.set(&format!("{MEMBERS}/b"), r#"{"v":1,"id":"b","host":"host2","eligible":true}"#);
        let heard = tokio::time::timeout(wait::LIMIT, orders.wait_for(could(expected))).await;
        assert!(heard.is_ok(), "never heard of {other}");
    }
    admin.delete(OTHER);
    let mut is_told =
        async |expected| tokio::time::timeout(wait::LIMIT, orders.wait_for(could(expected))).await.is_ok();
    assert!(is_told(true).await, "never heard that it is not drained any more");
    // One that nobody here may read is none, as it is on its own host.
    let member_changes = || admin.set(&format!("{MEMBERS}/b"), r#"{"v":1,"id":"b","host":"host2","eligible":true}"#);
    admin.create(OTHER, r#"{"v":1,"order":"y"}"#);
    member_changes();
    assert!(is_told(false).await);
    admin.set_acl(OTHER, "world", "anyone", "wda");
    member_changes();
    assert!(is_told(true).await, "it waits for what it may not read");
}

/// What can be known of it is read anew over each connection.
#[tokio::test]
async fn a_drain_that_may_not_be_read_any_more_is_not_obeyed_any_more() {
    let chroot = Chroot::new();
    let (proxy, admin) = (link(), Admin::to(&chroot.connect_string()));
    admin.create_all("/zk-leader-run/drains");
    admin.create(DRAIN, &order("x", None).to_string());
    let mut host = Host::connected(settings(&chroot.behind(&proxy), 1)).await;
    let mut orders = host.election.orders();
    let mut hears = async |is_drained| {
        let is_heard = |orders: &Orders| orders.drain.is_some() == is_drained;
        tokio::time::timeout(wait::LIMIT, orders.wait_for(is_heard)).await.is_ok()
    };
    assert!(hears(true).await);
    proxy.cut();
    host.wait_for(Event::ContactLost { session: SessionNumber(1) }).await;
    admin.set_acl(DRAIN, "world", "anyone", "wda");
    proxy.heal();
    assert!(hears(false).await, "it is in force though nobody here can know whether it is");
}

#[tokio::test]
async fn a_drain_that_is_given_while_another_one_is_found_lapsed_is_not_lost() {
    let chroot = Chroot::new();
    let (proxy, admin) = (link(), Admin::to(&chroot.connect_string()));
    let (_first, _) = Host::entered(settings(&chroot.connect_string(), 2)).await;
    admin.create("/zk-leader-run/drains", "");
    admin.create(DRAIN, &order("lapsed", Some(0)).to_string());
    before_an_answer_with(&proxy, CLOCK, move || admin.set(DRAIN, &order("new", None).to_string()));
    let host = Host::connected(settings(&chroot.behind(&proxy), 1)).await;
    let mut orders = host.election.orders();
    let known = tokio::time::timeout(wait::LIMIT, orders.wait_for(|orders| orders.drain.is_some())).await;
    assert!(known.is_ok(), "{:?}", Admin::to(&chroot.connect_string()).find(DRAIN));
}

#[tokio::test]
async fn a_term_that_another_host_writes_down_at_the_same_time_stays_in_the_history() {
    let chroot = Chroot::new();
    let (proxy, admin) = (link(), Admin::to(&chroot.connect_string()));
    let (host, _) = Host::entered(settings(&chroot.behind(&proxy), 1)).await;
    let term = |token: i64| json!({ "token": token, "term": token, "id": "other" });
    let terms = |terms: &[i64]| json!({ "v": 1, "terms": terms.iter().map(|of| term(*of)).collect::<Vec<_>>() });
    admin.create(HISTORY, &terms(&[1]).to_string());
    let both = terms(&[1, 2]).to_string();
    before_an_answer_with(&proxy, r#""terms""#, move || admin.set(HISTORY, &both));
    host.election.write_down(Term { token: 3, term: 3, ..Term::default() });
    let admin = Admin::to(&chroot.connect_string());
    let tokens = || {
        let written: serde_json::Value = serde_json::from_str(&admin.read(HISTORY)).unwrap();
        let tokens = written["terms"].as_array().unwrap().iter().map(|term| term["token"].as_i64().unwrap());
        tokens.collect::<Vec<_>>()
    };
    until("it is written down", || tokens().contains(&3)).await;
    assert_eq!(tokens(), [1, 2, 3]);
}

/// A leader goes on beside another participant that has its id, and so does the history.
#[tokio::test]
async fn a_term_is_written_down_though_our_member_cannot_be() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (host, _) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    admin.create_all(MEMBERS);
    admin.create(&format!("{MEMBERS}/host1:1"), r#"{"v":1,"id":"host1:1","host":"elsewhere","pid":1}"#);
    host.election.describe(MemberStatus::default());
    host.election.write_down(Term { token: 3, term: 3, ..Term::default() });
    until("it is written down", || admin.find(HISTORY).is_some_and(|(terms, _)| terms.contains(r#""token":3"#))).await;
}

/// It would make the base look used, and whoever comes first wait for a leader that there never was.
#[tokio::test]
async fn no_member_is_written_below_a_base_that_has_no_term_yet() {
    let chroot = Chroot::new();
    let (proxy, admin) = (link(), Admin::to(&chroot.connect_string()));
    admin.create_all("/zk-leader-run/job");
    let host = Host::connected(settings(&chroot.behind(&proxy), 1)).await;
    host.election.describe(MemberStatus::default());
    let tries = || proxy.requests().into_iter().filter(|request| request.text.contains("/members")).count();
    until("it was tried again", || tries() > 3).await;
    assert!(!admin.exists(MEMBERS));
}
