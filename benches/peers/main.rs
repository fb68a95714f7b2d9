//! This program, its peers and the floor, side by side against real servers: `make bench`.
//!
//! `ROUNDS=20` sets how often; `ONLY=start,handover` which scenarios; `BENCH_DATA=/var/tmp` puts the servers' files on a disk;
//! `BENCH_PROGRAM=…` puts another build to the test.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a tool for those who work on it"
)]

mod contender;
mod figures;
mod floor;
mod jute;
#[path = "../../tests/support/ports.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod ports;
mod scenarios;
mod servers;
#[path = "../../tests/support/wait.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod wait;

use std::io;
use std::path::Path;
use std::process::Command;

use contender::Kind;
use figures::Series;
use servers::Servers;

/// What was measured of each kind of program, by scenario.
pub type Results = Vec<(&'static str, Vec<(Kind, Series)>)>;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|mode| mode == "floor") {
        return floor::run(&arguments[1..]);
    }
    let place = std::env::var("BENCH_DATA").unwrap_or_else(|_| "/dev/shm".to_owned());
    let directory = tempfile::Builder::new().prefix("zk-leader-run-bench-").tempdir_in(place)?;
    build_stamp(directory.path())?;
    let servers = Servers::start(directory.path())?;
    let results = scenarios::run(&servers, directory.path(), rounds())?;
    for (scenario, programs) in &results {
        println!("{scenario}");
        for (kind, series) in programs {
            let Some(spread) = series.spread() else { continue };
            println!("  {:<16} {:8.2} ms ({:.2}–{:.2})", kind.name(), spread.median, spread.low, spread.high);
        }
    }
    Ok(())
}

fn rounds() -> usize {
    std::env::var("ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(20)
}

/// Beside the servers' files: `stamp`.
fn build_stamp(directory: &Path) -> io::Result<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/command/stamp.rs");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let built = Command::new(rustc)
        .args(["--edition", "2024", "-O", "-C", "target-feature=+crt-static", "-C", "panic=abort", "-o"])
        .arg(directory.join("stamp"))
        .arg(source)
        .status()?;
    if built.success() { Ok(()) } else { Err(io::Error::other("stamp.rs was not built")) }
}
