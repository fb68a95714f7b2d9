//! How often, and for how long, what failed is tried again.

use std::net::TcpListener;
use std::time::Duration;

use tokio::time::Instant;
use zk_leader_run::core::event::{Event, SessionNumber};
use zk_leader_run::zookeeper::publish::MemberStatus;

use crate::chroot::Chroot;
use crate::host::{BASE, FIRST, Host, LEASE, settings};
use crate::support::ensemble::Build;
use crate::support::standalone::link;
use crate::support::{Admin, Ensemble, Proxy, wait};
use crate::vouching::until;

const ONE: SessionNumber = SessionNumber(1);

/// Every 650 ms it would be tried 18 times.
#[tokio::test]
async fn what_the_server_refuses_to_publish_is_tried_ever_more_seldom() {
    let chroot = Chroot::new();
    let (admin, proxy) = (Admin::to(&chroot.connect_string()), link());
    let (host, _) = Host::entered(settings(&chroot.behind(&proxy), 1)).await;
    let members = format!("{BASE}/members");
    admin.create(&members, "");
    admin.make_read_only(&members);
    let tried = || proxy.requests().into_iter().filter(|request| request.text.contains("/members/")).count();
    host.election.describe(MemberStatus::default());
    tokio::time::sleep(Duration::from_secs(12)).await;
    let tried = tried();
    assert!((3..=10).contains(&tried), "tried {tried} times in 12 s");
}

/// An operator has cleaned up, once after a look at what a write does; nothing about the host changes.
#[tokio::test]
async fn a_member_that_was_deleted_is_written_again() {
    let chroot = Chroot::new();
    let admin = Admin::to(&chroot.connect_string());
    let (host, _) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    host.election.describe(MemberStatus::default());
    let member = format!("{BASE}/members/host1:1");
    for _ in 0..2 {
        until("its member is there", || admin.exists(&member)).await;
        admin.delete(&member);
    }
    until("its member is there", || admin.exists(&member)).await;
    admin.set(&member, "{}");
    until("its member is its own again", || admin.read(&member).contains("host1:1")).await;
    admin.delete(&member);
    until("its member is there again", || admin.exists(&member)).await;
}

/// T is asked for as 60 s and granted as 4 s. A server that says nothing is waited for a fifth of what was granted.
#[tokio::test]
async fn a_silent_server_costs_a_fifth_of_the_session_timeout_that_was_granted() {
    let build = Build { config: "maxSessionTimeout=4000\n".to_owned(), ..Build::default() };
    let ensemble = Ensemble::built(1, &build);
    let proxy = Proxy::to(ensemble.server(0).address());
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut asked = settings(&format!("{},{}", silent.local_addr().unwrap(), proxy.connect_string()), 1);
    asked.session_timeout = Duration::from_secs(60);
    let (mut host, _) = Host::entered(asked).await;
    // The servers are tried in random order.
    for _ in 0..8 {
        let began = Instant::now();
        proxy.reset();
        host.wait_for(Event::ContactLost { session: ONE }).await;
        host.wait_for(Event::ContactRestored { session: ONE }).await;
        assert!(began.elapsed() < Duration::from_secs(9), "contact was lost for {:?}", began.elapsed());
    }
}

/// The server takes up the session each time, and answers pings alone.
#[tokio::test]
async fn a_session_in_which_nothing_is_answered_is_let_go_though_it_can_be_resumed() {
    let chroot = Chroot::new();
    let proxy = link();
    let mut short = settings(&chroot.behind(&proxy), 1);
    short.session_timeout = Duration::from_secs(3);
    let (mut host, _) = Host::entered(short).await;
    proxy.tamper(|frame| if i32::from_be_bytes(frame[4..8].try_into().unwrap()) > 0 { Vec::new() } else { frame });
    host.election.look(FIRST);
    let began = Instant::now();
    loop {
        match host.hint(Some).await {
            Event::SessionOver { .. } => return,
            Event::ContactRestored { .. } => host.election.look(FIRST),
            _ => {}
        }
        assert!(began.elapsed() < wait::LIMIT, "the session is still kept");
    }
}

/// A host that waits must know since when the record stands.
#[tokio::test]
async fn the_record_is_read_with_every_new_connection_though_no_look_is_answered() {
    let chroot = Chroot::new();
    let (admin, proxy) = (Admin::to(&chroot.connect_string()), link());
    let mut short = settings(&chroot.behind(&proxy), 1);
    short.session_timeout = Duration::from_secs(3);
    let (mut host, view) = Host::entered(short).await;
    // The line is the last answer of a look.
    let ours = view.candidate.as_str().to_owned();
    let is_line = move |frame: &[u8]| frame.windows(ours.len()).any(|part| part == ours.as_bytes());
    proxy.tamper(move |frame| if is_line(&frame) { Vec::new() } else { frame });
    admin.set(LEASE, &admin.read(LEASE));
    host.election.look(FIRST);
    for _ in 0..2 {
        let hint = async {
            loop {
                match host.hint(Some).await {
                    Event::Glimpsed { record } => return record,
                    Event::ContactRestored { .. } => host.election.look(FIRST),
                    _ => {}
                }
            }
        };
        let record = tokio::time::timeout(wait::LIMIT, hint).await.expect("the record is read");
        assert_eq!(record.mzxid, admin.stat(LEASE).unwrap().mzxid);
    }
}
