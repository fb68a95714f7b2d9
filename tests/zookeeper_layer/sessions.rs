//! Sessions: how they are opened, lost, restored and closed.

use std::time::Duration;

use zk_leader_run::core::event::{Event, Request, SessionNumber};

use crate::chroot::Chroot;
use crate::host::{ELECTION, FIRST, Host, No, SESSION_TIMEOUT, settings};
use crate::support::ports::Port;
use crate::support::standalone::link;
use crate::support::{Admin, Ensemble, Proxy, wait};

const ONE: SessionNumber = SessionNumber(1);
const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn an_ensemble_that_is_not_there_is_unreachable() {
    let nobody = Port::reserve();
    let mut host = Host::new(settings(&nobody.address().to_string(), 1));
    host.election.connect(ONE);
    host.wait_for(Event::Unreachable { session: ONE }).await;
    assert_eq!(host.enter(FIRST).await, Err(No::Unanswered));
}

#[tokio::test]
async fn a_silent_ensemble_is_unreachable_within_the_session_timeout() {
    // Connections to it are completed by the kernel, and never accepted.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut short = settings(&silent.local_addr().unwrap().to_string(), 1);
    short.session_timeout = Duration::from_secs(2);
    let mut host = Host::new(short);
    host.election.connect(ONE);
    host.wait_for(Event::Unreachable { session: ONE }).await;
}

#[tokio::test]
async fn the_negotiated_timeout_is_the_servers() {
    let ensemble = Ensemble::single();
    let mut greedy = settings(&ensemble.connect_string(), 1);
    greedy.session_timeout = Duration::from_secs(3600);
    let mut host = Host::new(greedy);
    host.election.connect(ONE);
    let Event::Connected { negotiated, .. } = host.hint(Some).await else { panic!("not connected") };
    assert_eq!(negotiated, crate::support::ensemble::LONGEST_SESSION);
}

#[tokio::test]
async fn lost_and_restored_contact_is_told() {
    let chroot = Chroot::new();
    let proxy = link();
    let (mut host, view) = Host::entered(settings(&chroot.behind(&proxy), 1)).await;
    proxy.cut();
    host.wait_for(Event::ContactLost { session: ONE }).await;
    proxy.heal();
    host.wait_for(Event::ContactRestored { session: ONE }).await;
    assert_eq!(host.look(FIRST).await, Ok(view), "the same session, the same candidate");
}

/// A server that was restarted with another minSessionTimeout. The lease in the record counts by T as it was, and so must all
/// else, in the next program too: else a leader would be waited for too long, or not for long enough.
#[tokio::test]
async fn a_session_that_is_granted_another_timeout_keeps_its_own() {
    let chroot = Chroot::new();
    let proxy = link();
    let (mut host, _) = Host::entered(settings(&chroot.behind(&proxy), 1)).await;
    let (granted, is_granted) = std::sync::mpsc::channel();
    proxy.tamper(move |mut reply| {
        // Length, protocol version, timeout, session, a password of 16 bytes: the answer to a connect.
        if matches!(reply.get(20..24), Some([0, 0, 0, 16])) && matches!(reply.len(), 40 | 41) {
            let longer = i32::try_from(2 * SESSION_TIMEOUT.as_millis()).unwrap();
            reply[8..12].copy_from_slice(&longer.to_be_bytes());
            granted.send(()).unwrap();
        }
        reply
    });
    proxy.reset();
    host.wait_for(Event::ContactLost { session: ONE }).await;
    host.wait_for(Event::ContactRestored { session: ONE }).await;
    is_granted.try_recv().expect("the server grants another timeout");
    let key = host.election.key().expect("it is connected").await.unwrap();
    assert_eq!(host.election.hand_over(&key).unwrap().negotiated(), SESSION_TIMEOUT, "the lease counts by that");
}

#[tokio::test]
async fn a_session_that_ended_answers_everything_with_unknown() {
    let chroot = Chroot::new();
    let proxy = link();
    let mut short = settings(&chroot.behind(&proxy), 1);
    short.session_timeout = Duration::from_secs(4);
    let (mut host, _, conditions) = Host::leading(short).await;
    proxy.stall();
    host.election.renew(FIRST, conditions, host.entry(1));
    assert_eq!(host.answer(FIRST, Request::Renew).await, Err(No::Unanswered));
    gone(&chroot, ELECTION).await;
    proxy.heal();
    host.wait_for(Event::SessionOver { session: ONE }).await;
    assert_eq!(host.look(FIRST).await, Err(No::Unanswered));
    assert_eq!(host.renew(conditions).await, Err(No::Unanswered));
    assert_eq!(host.hints_within(Duration::from_millis(200)).await, [], "each request has one answer");
}

#[tokio::test]
async fn a_session_is_kept_until_a_server_says_that_it_is_over() {
    let chroot = Chroot::new();
    let proxy = link();
    let mut short = settings(&chroot.behind(&proxy), 1);
    short.session_timeout = Duration::from_secs(5);
    let (mut host, _) = Host::entered(short).await;
    proxy.cut();
    host.wait_for(Event::ContactLost { session: ONE }).await;
    assert_eq!(host.look(FIRST).await, Err(No::Unanswered));
    gone(&chroot, ELECTION).await;
    let over = Event::SessionOver { session: ONE };
    assert!(!host.hints_within(Duration::from_secs(3)).await.contains(&over), "no server has said so");
    proxy.heal();
    host.wait_for(over).await;
}

/// Waits until the server has expired the session: its candidate is gone.
async fn gone(chroot: &Chroot, election: &str) {
    let admin = Admin::to(&chroot.connect_string());
    while !admin.children(election).is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_new_session_answers_for_the_requests_of_the_old_one_and_closes_it() {
    let chroot = Chroot::new();
    let proxy = link();
    let admin = Admin::to(&chroot.connect_string());
    let (mut host, _) = Host::entered(settings(&chroot.behind(&proxy), 1)).await;
    proxy.stall();
    host.election.look(FIRST);
    tokio::task::yield_now().await;
    host.election.connect(SessionNumber(2));
    assert_eq!(host.answer(FIRST, Request::Look).await, Err(No::Unanswered));
    proxy.heal();
    host.hint(|event| matches!(event, Event::Connected { session: SessionNumber(2), .. }).then_some(())).await;
    let gone = async {
        while !admin.children(ELECTION).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(wait::LIMIT, gone).await.expect("the old candidate goes with its session");
}

#[tokio::test]
async fn a_closed_desk_leaves_no_candidate() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    for instance in 1..=10 {
        let (mut host, _) = Host::entered(settings(&chroot.connect_string(), instance)).await;
        assert!(host.election.close(SOON).await);
        assert_eq!(admin.children(ELECTION), [""; 0]);
    }
}

#[tokio::test]
async fn a_desk_closed_in_the_middle_of_requests_answers_them_and_leaves_no_candidate() {
    let chroot = Chroot::new();
    let proxy = link();
    let admin = Admin::to(&chroot.connect_string());
    let mut host = Host::connected(settings(&chroot.behind(&proxy), 1)).await;
    // What was requested before the close reaches the server after it.
    proxy.stall_requests();
    host.election.enter(FIRST);
    tokio::task::yield_now().await;
    let heal = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        proxy.heal();
    };
    let (closed, ()) = tokio::join!(host.election.close(SOON), heal);
    assert!(closed);
    assert_eq!(host.answer(FIRST, Request::Enter).await, Err(No::Unanswered));
    assert_eq!(admin.children(ELECTION), [""; 0]);
}

#[tokio::test]
async fn a_desk_without_a_session_is_closed_at_once() {
    let nobody = Port::reserve();
    let mut host = Host::new(settings(&nobody.address().to_string(), 1));
    assert!(host.election.close(SOON).await);
    host.election.connect(ONE);
    assert!(host.election.close(SOON).await);
}

#[tokio::test]
async fn a_close_that_cannot_be_confirmed_says_so_in_time() {
    let chroot = Chroot::new();
    let proxy = link();
    let (mut host, _) = Host::entered(settings(&chroot.behind(&proxy), 1)).await;
    proxy.stall();
    assert!(!host.election.close(Duration::from_millis(300)).await);
}

#[tokio::test]
async fn one_server_of_three_may_fall_silent_without_the_loss_of_the_session() {
    let ensemble = Ensemble::of(3);
    let proxies: Vec<_> = ensemble.servers().iter().map(|server| Proxy::to(server.address())).collect();
    let servers: Vec<_> = proxies.iter().map(Proxy::connect_string).collect();
    let mut patient = settings(&servers.join(","), 1);
    patient.session_timeout = SOON;
    let (mut host, view, mut conditions) = Host::leading(patient).await;
    let used = proxies.iter().position(|proxy| !proxy.forwarded().is_empty()).unwrap();
    proxies[used].stall();
    host.wait_for(Event::ContactLost { session: ONE }).await;
    host.wait_for(Event::ContactRestored { session: ONE }).await;
    let seen = host.look(FIRST).await.unwrap();
    assert_eq!((seen.candidate, seen.session_id), (view.candidate, view.session_id));
    conditions = host.renew(conditions).await.unwrap();
    host.release(conditions).await.unwrap();
}
