//! This program, its peers and the floor, side by side against real servers: `make bench`.
//!
//! `ROUNDS=20` sets how often, `CROWD=1000` among how many; `ONLY=start,handover,faults,idle,crowd,outage,slow,tail,distance` which scenarios, and then it
//! only prints; `BENCH_DATA=/var/tmp` puts the servers' files on a disk; `BENCH_PROGRAM=…` puts another build to the test.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a tool for those who work on it"
)]

mod contender;
mod crowd;
mod distance;
mod faults;
mod figures;
mod floor;
mod idle;
mod jute;
mod latency;
mod line;
mod outage;
mod plot;
#[path = "../../tests/support/ports.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod ports;
mod processes;
mod report;
mod servers;
mod setting;
mod slow;
mod tail;
#[path = "../../tests/support/wait.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod wait;

use std::io;
use std::path::Path;
use std::process::Command;

use servers::Servers;
use setting::{Setting, is_wanted, number};

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|mode| mode == "floor") {
        return floor::run(&arguments[1..]);
    }
    let place = std::env::var("BENCH_DATA").unwrap_or_else(|_| "/dev/shm".to_owned());
    let directory = tempfile::Builder::new().prefix("zk-leader-run-bench-").tempdir_in(place)?;
    for tool in ["stamp", "delay"] {
        build(tool, directory.path())?;
    }
    let setting = Setting {
        servers: Servers::start(directory.path())?,
        directory: directory.path().to_owned(),
        rounds: number("ROUNDS", 20),
        largest_crowd: number("CROWD", 1000),
    };
    let results = measure(&setting)?;
    if std::env::var_os("ONLY").is_some() {
        println!("{}", report::tables(&results));
        return Ok(());
    }
    report::write(&results, setting.rounds)
}

/// All that was measured.
#[derive(Default)]
pub struct Results {
    pub latencies: Vec<latency::Latency>,
    pub outcomes: Vec<faults::Outcome>,
    pub footprints: Vec<idle::Footprint>,
    pub crowds: Vec<crowd::Crowd>,
    pub outages: Vec<outage::Outage>,
    pub slow_commits: Vec<slow::SlowCommits>,
    pub lost_answers: Option<slow::LostAnswers>,
    pub tails: Vec<tail::Tail>,
    pub distances: Vec<distance::Distance>,
}

fn measure(setting: &Setting) -> io::Result<Results> {
    let mut results = Results::default();
    if is_wanted("start") {
        results.latencies.push(latency::starts(setting)?);
    }
    if is_wanted("handover") {
        results.latencies.extend(latency::handovers(setting)?);
    }
    if is_wanted("faults") {
        results.outcomes = faults::faults(setting)?;
    }
    if is_wanted("idle") {
        results.footprints = idle::footprints(setting)?;
    }
    if is_wanted("crowd") {
        results.crowds = crowd::crowds(setting)?;
    }
    if is_wanted("outage") {
        results.outages = outage::outages(setting)?;
    }
    if is_wanted("slow") {
        results.slow_commits = slow::commits(setting)?;
        results.lost_answers = Some(slow::losses(setting)?);
    }
    if is_wanted("tail") {
        results.tails = tail::tails(setting)?;
    }
    if is_wanted("distance") {
        results.distances = distance::distances(setting)?;
    }
    Ok(results)
}

/// Beside the servers' files.
fn build(tool: &str, directory: &Path) -> io::Result<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("benches/command/{tool}.rs"));
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let built = Command::new(rustc)
        .args(["--edition", "2024", "-O", "-C", "target-feature=+crt-static", "-C", "panic=abort", "-o"])
        .arg(directory.join(tool))
        .arg(source)
        .status()?;
    if built.success() { Ok(()) } else { Err(io::Error::other(format!("{tool}.rs was not built"))) }
}
