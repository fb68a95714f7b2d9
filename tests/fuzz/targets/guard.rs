//! What guard and supervisor say to each other, the lease file, and the kernel's line about a process, in which the process
//! chooses its own name.
#![no_main]

use std::ffi::CString;

use libfuzzer_sys::fuzz_target;
use zk_leader_run::guard::briefing::{AUXILIARY_LONGEST, decode_auxiliary, encode_auxiliary};
use zk_leader_run::guard::lease_file::layout::{LeaseView, SEQUENCE, words};
use zk_leader_run::guard::processes::children::parent_of;
use zk_leader_run::guard::protocol::{decode_order, decode_report, encode_order, encode_report};

fuzz_target!(|data: &[u8]| {
    let (order, auxiliary) = (decode_order(data), decode_auxiliary(data));
    assert!(order.is_none() || auxiliary.is_none(), "two meanings");
    if let Some(order) = order {
        assert_eq!(decode_order(&encode_order(&order)), Some(order));
    }
    if let Some(report) = decode_report(data) {
        assert_eq!(decode_report(&encode_report(&report)), Some(report));
    }
    if let Some(command) = auxiliary {
        assert!(data.len() <= AUXILIARY_LONGEST);
        assert_eq!(encode_auxiliary(&command).as_deref(), Some(data));
    }
    if let Some((view, boot)) = LeaseView::decode(data) {
        let file: &[u8; 64] = data.try_into().unwrap();
        let again = view.encode(words(file)[SEQUENCE], boot);
        assert_eq!(LeaseView::decode(&again), Some((view, boot)));
    }
    let name: Vec<u8> = data.iter().copied().filter(|&byte| byte != 0).take(15).collect();
    nix::sys::prctl::set_name(&CString::new(name).unwrap()).unwrap();
    let parent = i32::try_from(std::os::unix::process::parent_id()).ok();
    assert_eq!(parent_of(std::process::id().cast_signed()), parent);
});
