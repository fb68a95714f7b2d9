//! What it costs a leader: counted in virtual time, from the schedule of `core`.

use std::time::Duration;

use zk_leader_run::core::lease::{Timing, Wishes};
use zk_leader_run::core::time::Timestamp;
use zk_leader_run::core::vouching::{Reply, Roster, Vouchers};
use zk_leader_run::vouching::message::LENGTH;

const LEASE: Duration = Duration::from_secs(4);
const SECONDS: u32 = 100;
/// Headers of UDP and IPv4.
const HEADERS: usize = 28;

/// How many questions and answers there are in a hundred seconds, among so many hosts.
fn datagrams(hosts: u64, answer: bool) -> usize {
    let timing = Timing::new(LEASE, &Wishes::NONE).unwrap();
    let mut vouchers = Vouchers::default();
    vouchers.acknowledged((2..=hosts).collect::<Roster>());
    let (mut now, mut count) = (Timestamp::ZERO, 0);
    let end = Timestamp::ZERO.after(Duration::from_secs(1) * SECONDS);
    while now < end {
        for (member, question) in vouchers.ask(now, &timing, 1, 9) {
            count += 1;
            if answer {
                count += 1;
                vouchers.answered(&timing, Reply { member, leader: 1, token: 9, seq: question.seq, promises: true });
            }
        }
        now = vouchers.ask_at();
    }
    count
}

#[test]
fn a_leader_sends_and_hears_a_few_datagrams_in_a_second() {
    // Each of two hosts, or of the four in a roster, is asked once in half a second, and answers.
    assert_eq!((datagrams(3, true), datagrams(30, true)), (2 * 2 * 200, 4 * 2 * 200));
    // Each that is silent is asked four times as often.
    assert_eq!((datagrams(3, false), datagrams(30, false)), (2 * 4 * 200, 4 * 4 * 200));
    // With 30 hosts, in bytes a second on the wire of IPv4.
    assert_eq!(datagrams(30, true) * (LENGTH + HEADERS) / 100, 1792);
}
