//! The command that every program under test is given: it reads `CLOCK_MONOTONIC` before anything else, and writes it down.
//!
//! `stamp FILE [exit|alive|pulse]` appends `start NANOSECONDS PID`, then sleeps until it is killed; `exit`: ends at once; `alive`:
//! appends `alive NANOSECONDS PID` every millisecond; `pulse`: every 20 ms. Built by the benchmark itself, statically, so that nothing comes before `main`.

use std::ffi::{c_int, c_long};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::time::Duration;

#[repr(C)]
struct Timespec {
    seconds: c_long,
    nanoseconds: c_long,
}

unsafe extern "C" {
    fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
}

fn monotonic() -> i64 {
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: a valid clock (`CLOCK_MONOTONIC`) and a place for the answer.
    unsafe { clock_gettime(1, &mut time) };
    time.seconds * 1_000_000_000 + time.nanoseconds
}

fn note(diary: &mut File, event: &str, at: i64) -> io::Result<()> {
    diary.write_all(format!("{event} {at} {}\n", std::process::id()).as_bytes())
}

fn main() -> io::Result<()> {
    let started_at = monotonic();
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or_else(|| io::Error::other("usage: stamp FILE [exit|alive|pulse]"))?;
    let mode = arguments.next().unwrap_or_default();
    let mut diary = OpenOptions::new().append(true).create(true).open(path)?;
    note(&mut diary, "start", started_at)?;
    let every = Duration::from_millis(match mode.as_str() {
        "alive" => 1,
        "pulse" => 20,
        _ => 3_600_000,
    });
    while mode != "exit" {
        std::thread::sleep(every);
        note(&mut diary, "alive", monotonic())?;
    }
    Ok(())
}
