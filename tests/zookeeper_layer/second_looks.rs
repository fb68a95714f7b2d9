//! What a watch does not tell is looked at again.

use zk_leader_run::core::event::{Event, Place};

use crate::chroot::Chroot;
use crate::host::{BASE, ELECTION, FIRST, Host, settings};
use crate::support::standalone::link;
use crate::support::{Admin, wait};

/// No server tells of a change of a znode that we may not read (CVE-2024-23944). Older ones take a watch on it by `exists`,
/// those since 3.9.3 refuse it (ZOOKEEPER-2590).
#[tokio::test]
async fn a_candidate_that_we_may_not_read_is_missed_soon_after_it_has_left() {
    let chroot = Chroot::new();
    let (host, _) = Host::entered(settings(&chroot.connect_string(), 1)).await;
    drop(host);
    let owner = Admin::known_as(&chroot.connect_string(), "owner:secret");
    let predecessor =
        owner.create_sequential(&format!("{ELECTION}/_c_00000000-0000-0000-0000-000000000009-latch-"), "");
    owner.set_acl(&predecessor, "auth", "", "rwcda");
    let (mut next, view) = Host::entered(settings(&chroot.connect_string(), 2)).await;
    assert_eq!(view.place, Place::Next);
    next.hints_within(wait::SETTLED).await;
    owner.delete(&predecessor);
    let mut place = Place::Next;
    while place != Place::First {
        next.wait_for(Event::LineChanged { candidacy: FIRST }).await;
        place = next.look(FIRST).await.unwrap().place;
    }
}

/// A holder renews and does not look, and the request is made once: what fails here must be tried again, or it is deaf for
/// the rest of its term.
#[tokio::test]
async fn a_request_for_the_leadership_that_could_not_be_read_is_heard_later() {
    heard_in_spite_of(|frame| frame[16..20].copy_from_slice(&i32::to_be_bytes(-9999))).await;
    // Only the header is left.
    heard_in_spite_of(|frame| {
        frame.truncate(20);
        frame[..4].copy_from_slice(&u32::to_be_bytes(16));
    })
    .await;
}

async fn heard_in_spite_of(spoil: impl Fn(&mut Vec<u8>) + Send + 'static) {
    let chroot = Chroot::new();
    let (admin, proxy) = (Admin::to(&chroot.connect_string()), link());
    let (mut holder, view) = Host::entered(settings(&chroot.behind(&proxy), 1)).await;
    let (_, token) = holder.take_over(&view, 1).await.unwrap();
    holder.hints_within(wait::SETTLED).await;
    let mut replies = 0;
    proxy.tamper(move |mut frame| {
        let is_reply = frame[4] < 0x80;
        replies += usize::from(is_reply);
        // The first names the children, and the second is what the request says.
        if is_reply && replies == 2 {
            spoil(&mut frame);
        }
        frame
    });
    admin.create(&format!("{BASE}/preemption"), &format!(r#"{{"v":1,"token":{token},"by":"b","priority":5}}"#));
    let orders = holder.election.orders();
    let began = tokio::time::Instant::now();
    while orders.borrow().asked_for != Some(token) {
        assert!(began.elapsed() < wait::LIMIT, "the request was not heard");
        // As the machine does.
        if holder.hints_within(wait::SETTLED).await.contains(&Event::LineChanged { candidacy: FIRST }) {
            holder.look(FIRST).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_request_that_was_left_for_an_earlier_term_stands_in_nobodys_way() {
    let chroot = Chroot::new();
    let (admin, proxy) = (Admin::to(&chroot.connect_string()), link());
    let (mut holder, view) = Host::entered(settings(&chroot.behind(&proxy), 1)).await;
    let (_, token) = holder.take_over(&view, 1).await.unwrap();
    let higher = zk_leader_run::zookeeper::Settings { priority: 5, ..settings(&chroot.connect_string(), 2) };
    let (next, _) = Host::entered(higher).await;
    proxy.cut();
    let path = format!("{BASE}/preemption");
    admin.create(&path, &format!(r#"{{"v":1,"token":{},"by":"b","priority":5}}"#, token - 1));
    next.election.preempt();
    let began = tokio::time::Instant::now();
    while !admin.find(&path).is_some_and(|(request, _)| request.contains(&token.to_string())) {
        assert!(began.elapsed() < wait::LIMIT, "the leader is not asked for its present term");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
