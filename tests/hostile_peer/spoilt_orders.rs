//! Garbage on the wire between supervisor and guard, from either end, while the command runs.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::sys::socket::{MsgFlags, SockType, getsockopt, send, sockopt};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use zk_leader_run::core::guard_messages::{Order, Report, RunId};
use zk_leader_run::guard::protocol::{
    ORDER_SIZE, REPORT_SIZE, decode_order, decode_report, encode_order, encode_report,
};

use super::support::wait;
use super::{election, impostors::our_panics};

/// This process' end of the socket between the two.
fn wire_of(pid: i32) -> OwnedFd {
    let process = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap();
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let numbers = descriptors.map(|entry| entry.unwrap().file_name().into_string().unwrap().parse().unwrap());
    let mut open = numbers.filter_map(|number| pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).ok());
    open.find(|fd| getsockopt(fd, sockopt::SockType) == Ok(SockType::SeqPacket)).unwrap()
}

/// Any bytes, and records that were good before one byte was changed, added or lost.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let good = (0_u64..4, any::<bool>()).prop_map(|(run, is_order)| {
        let run = RunId(run);
        if is_order {
            encode_order(&Order::Kill { run }).to_vec()
        } else {
            encode_report(&Report::Stopping { run }).to_vec()
        }
    });
    let spoilt = (good, any::<prop::sample::Index>(), any::<u8>(), 0..3).prop_map(|(mut record, at, byte, how)| {
        let at = at.index(record.len());
        match how {
            0 => record[at] = byte,
            1 => record.insert(at, byte),
            _ => drop(record.remove(at)),
        }
        record
    });
    // Nothing at all is how the end of the other side looks.
    prop_oneof![prop::collection::vec(any::<u8>(), 1..2 * ORDER_SIZE), spoilt]
        .prop_filter("an order or a report", |bytes| decode_order(bytes).is_none() && decode_report(bytes).is_none())
}

#[test]
fn garbage_between_orders_and_reports_changes_nothing() {
    assert_ne!(ORDER_SIZE, REPORT_SIZE);
    let election = election();
    let mut host = election.steady_host("a").spawn();
    election.diary.until_started(1);
    // The copy of the supervisor's end writes to the guard, and the other way round.
    for wire in [wire_of(host.pid()), wire_of(host.guard_pid())] {
        let mut runner = TestRunner::new(Config { cases: 1000, failure_persistence: None, ..Config::default() });
        let sent = runner.run(&garbage(), |bytes| {
            let sent =
                wait::held_within(wait::LIMIT, || send(wire.as_raw_fd(), &bytes, MsgFlags::MSG_DONTWAIT).is_ok());
            prop_assert!(sent, "the other side does not read");
            Ok(())
        });
        sent.unwrap();
        wait::pass(Duration::from_millis(50));
        election.diary.until_alive();
    }
    assert_eq!(election.diary.starts().len(), 1, "{}", host.log());
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0);
    assert!(election.diary.has("signal=15") && election.diary.has("end"));
    assert_eq!(election.state(), "free");
    assert!(!our_panics(&host.log()), "{}", host.log());
}
