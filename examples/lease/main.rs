//! May this process still act as the leader, and for how long? Without the network.
//!
//! Copy `Lease`; it needs `nix` with the feature `time`. The answer says "I may act for so long", not "no other host will
//! ever act": the resource checks `ZK_LEADER_TOKEN`. It is yes only if the file says so; a missing, foreign, half-written
//! or old file says no.
//!
//! `cargo run --example lease [FILE]` says every 2 ms how many nanoseconds are left.
#![allow(clippy::disallowed_methods, reason = "an example of its own")]

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// A lease file that was opened once.
#[derive(Debug)]
pub struct Lease {
    file: File,
    boot_id: u128,
    /// Only this term counts.
    token: Option<i64>,
}

impl Lease {
    /// The command's own, `ZK_LEADER_LEASE`, for its own term, `ZK_LEADER_TOKEN`.
    ///
    /// # Errors
    /// If there is none: then the process may not act.
    pub fn of_this_command() -> io::Result<Self> {
        let variable = |name| std::env::var(name).map_err(io::Error::other);
        Self::of_term(variable("ZK_LEADER_LEASE")?.as_ref(), &variable("ZK_LEADER_TOKEN")?)
    }

    /// # Errors
    /// As [`Lease::open`], or if the token is none.
    pub fn of_term(path: &Path, token: &str) -> io::Result<Self> {
        let token = token.parse().map_err(io::Error::other)?;
        Ok(Self { token: Some(token), ..Self::open(path)? })
    }

    /// # Errors
    /// If it cannot be opened, or our clocks are not the host's. A file that is no lease file says no.
    pub fn open(path: &Path) -> io::Result<Self> {
        // A kernel without time namespaces has no such link.
        if fs::read_link("/proc/self/ns/time").is_ok_and(|name| name.as_os_str() != "time:[4026531834]") {
            return Err(io::Error::other("this time namespace has clocks of its own"));
        }
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().replace('-', "");
        let boot_id = u128::from_str_radix(&boot_id, 16).map_err(io::Error::other)?;
        let file = File::options().read(true).custom_flags(O_NONBLOCK).open(path)?;
        Ok(Self { file, boot_id, token: None })
    }

    /// How long this process may act; zero: it may not.
    pub fn left(&self) -> Duration {
        (0..1000).find_map(|_| self.try_left()).unwrap_or_default()
    }

    /// `None` if the file was being written.
    fn try_left(&self) -> Option<Duration> {
        let (mut before, mut file, mut after) = ([0; 8], [0; 64], [0; 8]);
        let read = |bytes: &mut [u8], at| self.file.read_exact_at(bytes, at).is_ok();
        if !(read(&mut before, 8) && read(&mut file, 0) && read(&mut after, 8)) {
            return Some(Duration::ZERO);
        }
        if before != after || u64::from_ne_bytes(before) % 2 != 0 {
            return None;
        }
        Some(Duration::from_nanos(self.end(&file).unwrap_or(0).saturating_sub(now())))
    }

    /// `kill_at`, if the file gives a lease.
    fn end(&self, file: &[u8; 64]) -> Option<u64> {
        let word = |at: usize| file.get(at..)?.first_chunk().copied();
        let is_ours = word(0)? == *b"ZKLEASE\x01" && file.get(48..)? == self.boot_id.to_be_bytes();
        let token = i64::from_ne_bytes(word(16)?);
        let state = u32::from_ne_bytes(*file.get(28..)?.first_chunk()?);
        let lasts = is_ours && self.token.is_none_or(|own| own == token) && (1..=3).contains(&state);
        lasts.then(|| word(40).map(u64::from_ne_bytes))?
    }
}

/// The lease's clock, in nanoseconds. In this order a pause between two readings can only make it late, and the lease too
/// short.
fn now() -> u64 {
    let read = |clock| clock_gettime(clock).map_or(Duration::MAX, Duration::from);
    let monotonic = read(ClockId::CLOCK_MONOTONIC);
    let raw = read(ClockId::CLOCK_MONOTONIC_RAW);
    let suspended = read(ClockId::CLOCK_BOOTTIME).saturating_sub(monotonic);
    u64::try_from(raw.saturating_add(suspended).as_nanos()).unwrap_or(u64::MAX)
}

const O_NONBLOCK: i32 = nix::libc::O_NONBLOCK;

fn main() -> io::Result<()> {
    let lease = match std::env::args_os().nth(1) {
        Some(path) => Lease::open(path.as_ref()),
        None => Lease::of_this_command(),
    }
    .inspect_err(|error| eprintln!("no lease: {error}"));
    loop {
        let (now, left) = (now(), lease.as_ref().map_or(Duration::ZERO, Lease::left));
        writeln!(io::stdout(), "{now} {} {}", if left.is_zero() { "waits" } else { "acts" }, left.as_nanos())?;
        std::thread::sleep(Duration::from_millis(2));
    }
}
