//! What is run: read from the environment, so that `make chaos SEEDS=… FAULTS=…` and a plain `cargo test` are one.
//!
//! Never: a random default; a run is told by its settings.

use std::path::PathBuf;
use std::time::Duration;

/// One run.
#[derive(Clone, Debug)]
pub struct Settings {
    pub seed: u64,
    pub faults: usize,
    pub hosts: usize,
    pub session_timeout: Duration,
    pub recipe: &'static str,
    /// Our program, or a sabotaged build of it.
    pub program: PathBuf,
    /// The name of a sabotage: it must be caught.
    pub control: Option<String>,
    /// Where logs, JSON and SVG go; everything else is removed.
    pub report: PathBuf,
}

impl Settings {
    /// One for each seed of `CHAOS_SEEDS` (numbers and ranges such as `1-3`, with commas); `CHAOS_FAULTS` in each.
    pub fn of_this_run() -> Vec<Self> {
        let text = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
        let number = |name: &str, default: &str| text(name, default).parse().expect("it is a number");
        let program = text("CHAOS_PROGRAM", env!("CARGO_BIN_EXE_zk-leader-run"));
        let control = std::env::var("CHAOS_CONTROL").ok();
        let label = control.as_ref().map(|name| format!("{name}-")).unwrap_or_default();
        let beside = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("chaos");
        let reports = std::env::var_os("CHAOS_REPORTS").map_or(beside, PathBuf::from);
        let run = |seed: u64| Self {
            seed,
            faults: number("CHAOS_FAULTS", "24"),
            hosts: number("CHAOS_HOSTS", "5"),
            session_timeout: Duration::from_millis(text("CHAOS_T", "2000").parse().expect("milliseconds")),
            recipe: if seed % 4 == 0 { "single" } else { "sequential" },
            program: std::fs::canonicalize(&program).unwrap_or_else(|error| panic!("{program}: {error}")),
            control: control.clone(),
            report: reports.join(format!("{label}seed-{seed}")),
        };
        seeds(&text("CHAOS_SEEDS", "1")).into_iter().map(run).collect()
    }
}

fn seeds(text: &str) -> Vec<u64> {
    let number = |text: &str| text.trim().parse::<u64>().expect("a seed is a number");
    let ranges = text.split(',').map(|part| part.split_once('-').unwrap_or((part, part)));
    ranges.flat_map(|(first, last)| number(first)..=number(last)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_numbers_and_ranges() {
        assert_eq!(seeds("7"), [7]);
        assert_eq!(seeds("1-3,9"), [1, 2, 3, 9]);
    }
}
