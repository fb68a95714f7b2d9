//! In doubt, every reader says no, at once.

use std::path::Path;
use std::process::Command;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::readers::{Reader, ctl, now};
use crate::rust_reader::Lease;
use crate::support::wait;

const LATER: u64 = 3_600_000_000_000;

fn boot_id() -> Vec<u8> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().replace('-', "");
    u128::from_str_radix(&text, 16).unwrap().to_be_bytes().to_vec()
}

/// The layout, written down once more.
fn file(magic: &[u8], sequence: u64, state: u32, kill_at: u64, boot_id: &[u8]) -> Vec<u8> {
    let state = [7_i32.to_ne_bytes(), state.to_ne_bytes()].concat();
    let words = [sequence, 42].map(u64::to_ne_bytes).concat();
    let ends = [kill_at, kill_at].map(u64::to_ne_bytes).concat();
    [magic.to_vec(), words, state, ends, boot_id.to_vec()].concat()
}

/// Whether each reader says yes to this file.
fn answers(path: &Path) -> Vec<bool> {
    let readers = Reader::all(path);
    wait::until("every reader has looked", || readers.iter().all(|reader| !reader.looks().is_empty()));
    let mut answers: Vec<_> = readers.iter().map(Reader::has_said_yes).collect();
    answers.push(ctl(&[path.to_str().unwrap()]).0 == 0);
    answers
}

#[test]
fn a_file_that_is_missing_foreign_half_written_old_or_over_says_no() {
    const MAGIC: &[u8] = b"ZKLEASE\x01";
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lease");
    let (boot, later) = (boot_id(), now() + LATER);
    let good = || file(MAGIC, 2, 1, later, &boot);
    std::fs::write(&path, good()).unwrap();
    assert_eq!(answers(&path), [true; 4], "this one is good");
    let cases = [
        ("half written", file(MAGIC, 3, 1, later, &boot)),
        ("another version", file(b"ZKLEASE\x02", 2, 1, later, &boot)),
        ("no lease file", file(b"\x7fELF----", 2, 1, later, &boot)),
        ("of another boot", file(MAGIC, 2, 1, later, &[0; 16])),
        ("over by its state", file(MAGIC, 2, 4, later, &boot)),
        ("over by its time", file(MAGIC, 2, 1, now(), &boot)),
        ("an unknown state", file(MAGIC, 2, 0, later, &boot)),
        ("cut off", good()[..63].to_vec()),
        ("empty", Vec::new()),
    ];
    for (case, bytes) in cases {
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(answers(&path), [false; 4], "{case}");
    }
    for state in [2, 3] {
        std::fs::write(&path, file(MAGIC, 2, state, later, &boot)).unwrap();
        assert_eq!(answers(&path), [true; 4], "paused and stopping leaders may still act");
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!(answers(&path), [false; 4], "missing");
    mkfifo(&path, Mode::S_IRWXU).unwrap();
    assert_eq!(answers(&path), [false; 4], "a pipe, which nobody writes to");
    assert_eq!(answers(directory.path()), [false; 4], "a directory");
}

/// A process of an earlier term must not take the next term's lease for its own.
#[test]
fn the_lease_of_another_term_is_not_ours() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lease");
    std::fs::write(&path, file(b"ZKLEASE\x01", 2, 1, now() + LATER, &boot_id())).unwrap();
    for (token, may_act) in [(Some("42"), true), (Some("41"), false), (None, false)] {
        let rust = token.map_or(Err(std::io::ErrorKind::NotFound.into()), |token| Lease::of_term(&path, token));
        let readers: Vec<_> = Reader::of_command(&path, token).into_iter().chain([Reader::rust(rust)]).collect();
        wait::until("every reader has looked", || readers.iter().all(|reader| !reader.looks().is_empty()));
        for reader in readers {
            assert_eq!(reader.has_said_yes(), may_act, "{} with {token:?}", reader.name);
        }
    }
}

/// A host that was suspended for a day: `CLOCK_BOOTTIME` is that far ahead. The readers themselves say no then, because it is
/// a time namespace; their clock is what this is about.
#[test]
fn every_reader_counts_suspended_time_and_refuses_other_clocks() {
    const SUSPENDED: u64 = 86_400_000_000_000;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lease");
    std::fs::write(&path, file(b"ZKLEASE\x01", 2, 1, now() + LATER + 2 * SUSPENDED, &boot_id())).unwrap();
    let began = now();
    let suspended = ["unshare", "--time", "--boottime", "86400", "--fork", "--kill-child"];
    let readers = Reader::inside(&suspended, &path);
    wait::until("every reader has looked", || readers.iter().all(|reader| !reader.looks().is_empty()));
    for reader in readers {
        let look = reader.looks()[0];
        assert!(look.now >= began + SUSPENDED && look.left == 0, "{}: {look:?}", reader.name);
    }
    assert_eq!(ctl(&[path.to_str().unwrap()]).0, 0);
    let mut ctl = Command::new(suspended[0]);
    ctl.args(&suspended[1..]).args([env!("CARGO_BIN_EXE_zk-leaderctl"), "lease"]).arg(&path);
    assert_eq!(ctl.status().unwrap().code(), Some(1));
}
