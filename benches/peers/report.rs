//! The pages that are written from what was measured: `docs/benchmarks.md`, two plots, and a table in the README.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Results;
use crate::contender::Kind;
use crate::crowd::Crowd;
use crate::faults::{Blow, Outcome};
use crate::figures::{Series, Spread};
use crate::latency::Latency;
use crate::{distance, outage, plot, slow, tail};

const BEGIN: &str = "<!-- benchmarks: written by `make bench` -->";
const END: &str = "<!-- end of benchmarks -->";

/// Between the markers of each page, and the plots.
pub fn write(results: &Results, rounds: usize) -> io::Result<()> {
    let conditions = conditions(rounds)?;
    fill(&root().join("docs/benchmarks.md"), &format!("{conditions}\n\n{}", tables(results)))?;
    fill(&root().join("README.md"), &summary(results))?;
    fs::write(root().join("docs/benchmarks.svg"), plot::bars(&results.latencies))?;
    fs::write(root().join("docs/benchmarks-crowd.svg"), plot::crowds(&results.crowds))
}

/// Of what was measured.
pub fn tables(results: &Results) -> String {
    let Results { outcomes, outages, slow_commits, lost_answers, tails, distances, crowds: of_crowds, .. } = results;
    let tables = [
        (results.latencies.is_empty(), latencies(results)),
        (outcomes.is_empty(), faults(outcomes)),
        (outages.is_empty(), outage::table(outages)),
        (slow_commits.is_empty(), slow::table(slow_commits, lost_answers.as_ref())),
        (tails.is_empty(), tail::table(tails)),
        (distances.is_empty(), distance::table(distances)),
        (results.footprints.is_empty(), idle(results)),
        (of_crowds.is_empty(), crowds(of_crowds)),
    ];
    let tables: Vec<_> = tables.iter().filter(|(is_empty, _)| !is_empty).map(|(_, table)| table.trim()).collect();
    tables.join("\n\n")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn fill(page: &Path, text: &str) -> io::Result<()> {
    let old = fs::read_to_string(page)?;
    let split = || Some((old.split_once(BEGIN)?.0, old.split_once(END)?.1));
    let (before, after) = split().ok_or_else(|| io::Error::other(format!("{} has no markers", page.display())))?;
    fs::write(page, format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", text.trim()))
}

/// When and on what; no name of a host.
fn conditions(rounds: usize) -> io::Result<String> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo")?;
    let model =
        cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name));
    let cores = std::thread::available_parallelism()?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let kernel = kernel.split('-').next().unwrap_or_default().trim();
    let date = said("date", &["-u", "+%-d %B %Y"])?;
    let upstream = |version: String| version.split('-').next().unwrap_or_default().to_owned();
    let version = |package: &str| said("dpkg-query", &["-W", "-f=${Version}", package]).map(upstream);
    let place = if std::env::var_os("BENCH_DATA").is_some() { "on a disk" } else { "in memory" };
    let realtime = if said("chrt", &["-p", &std::process::id().to_string()])?.contains("SCHED_FIFO") {
        "all processes under SCHED_FIFO, so that nothing else on the machine counts"
    } else {
        "nothing else was running"
    };
    Ok(format!(
        "{date}, {} × {}, Linux {kernel}; ZooKeeper {}, etcd {}, Curator {}, one server each, data {place}; {rounds} rounds; {realtime}.",
        cores,
        model.unwrap_or("unknown processor"),
        version("libzookeeper-java")?,
        version("etcd-server")?,
        version("libcurator-recipes-java")?,
    ))
}

fn said(program: &str, arguments: &[&str]) -> io::Result<String> {
    let output = Command::new(program).args(arguments).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Three significant digits.
pub fn short(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

pub fn with_quartiles(series: &Series) -> String {
    series.spread().map_or("–".to_owned(), |Spread { low, median, high }| {
        format!("{} ({}–{})", short(median), short(low), short(high))
    })
}

fn median(series: Option<&Series>, unit: &str) -> String {
    series.and_then(Series::spread).map_or("–".to_owned(), |spread| format!("{}{unit}", short(spread.median)))
}

fn latencies(results: &Results) -> String {
    let mut text = String::new();
    for latency in &results.latencies {
        writeln!(
            text,
            "### {}\n\n| | ms: median (quartiles) | × floor | × zk-leader-run |\n|---|---|---|---|",
            latency.title
        )
        .unwrap();
        for (kind, series) in &latency.of {
            let ratio = |to: Kind| latency.series(to).and_then(|other| series.ratio_to(other));
            let ratio = |to| {
                ratio(to).map_or("–".to_owned(), |spread| {
                    format!("{:.2} ({:.2}–{:.2})", spread.median, spread.low, spread.high)
                })
            };
            writeln!(
                text,
                "| {} | {} | {} | {} |",
                kind.name(),
                with_quartiles(series),
                ratio(Kind::Floor),
                ratio(Kind::Ours)
            )
            .unwrap();
        }
        text.push('\n');
    }
    text
}

fn sentence(blow: Blow) -> &'static str {
    match blow {
        Blow::Crash => "the whole host dies at once",
        Blow::Kill => "`kill -9` of the program",
        Blow::Stop => "`kill -STOP` of the program",
    }
}

fn overlap(outcome: &Outcome) -> String {
    if outcome.survived > 0 {
        return "**both run on**".to_owned();
    }
    outcome
        .overlap
        .0
        .iter()
        .copied()
        .max_by(f64::total_cmp)
        .map_or("–".to_owned(), |longest| format!("{longest:.0} ms"))
}

fn faults(outcomes: &[Outcome]) -> String {
    let mut text =
        "### Faults (T = 4 s)\n\n| | | ms to the next first instruction | both commands ran |\n|---|---|---|---|\n"
            .to_owned();
    for outcome in outcomes {
        let (what, who) = (sentence(outcome.blow), outcome.kind.name());
        writeln!(text, "| {what} | {who} | {} | {} |", with_quartiles(&outcome.took), overlap(outcome)).unwrap();
    }
    text
}

fn idle(results: &Results) -> String {
    let head = "### Idle, one host (T = 15 s)\n\n| | private memory, MiB | CPU of the leader, % of one core | wake-ups of the leader, 1/s | of one who waits |\n|---|---|---|---|---|\n";
    let mut text = head.to_owned();
    for footprint in &results.footprints {
        let (leader, standby) = (footprint.leader, footprint.standby);
        let memory = short(leader.memory);
        writeln!(
            text,
            "| {} | {memory} | {:.3} | {:.1} | {:.3} %, {:.1}/s |",
            footprint.kind.name(),
            leader.cpu,
            leader.wakeups,
            standby.cpu,
            standby.wakeups
        )
        .unwrap();
    }
    text
}

fn crowds(crowds: &[Crowd]) -> String {
    let head = "### Many contenders on one path: handover on SIGTERM\n\n| | contenders | ms | packets that ZooKeeper received | private memory of each, MiB |\n|---|---|---|---|---|\n";
    let mut text = head.to_owned();
    for crowd in crowds {
        let packets = crowd.packets.spread().map_or("–".to_owned(), |spread| format!("{:.0}", spread.median));
        let (who, number) = (crowd.kind.name(), crowd.contenders);
        writeln!(
            text,
            "| {who} | {number} | {} | {packets} | {} |",
            with_quartiles(&crowd.handover),
            short(crowd.memory)
        )
        .unwrap();
    }
    text
}

/// For the README: what a user waits for, and whether both commands ran.
fn summary(results: &Results) -> String {
    let shown = ["Start", "Handover on SIGTERM"];
    let mut text = format!("| | {} | `kill -9` of the program (T = 4 s): next start; overlap |\n", shown.join(" | "));
    text.push_str("|---|---|---|---|\n");
    for kind in Kind::ALL {
        let latency = |title| results.latencies.iter().find(|latency: &&Latency| latency.title == title);
        let latencies = shown.map(|title| median(latency(title).and_then(|latency| latency.series(kind)), " ms"));
        let killed = |outcome: &&Outcome| outcome.kind == kind && outcome.blow == Blow::Kill;
        let killed = results.outcomes.iter().find(killed).map_or("–".to_owned(), |outcome| {
            format!("{}; {}", median(Some(&outcome.took), " ms"), overlap(outcome))
        });
        let name = if kind == Kind::Ours { format!("**{}**", kind.name()) } else { kind.name().to_owned() };
        writeln!(text, "| {name} | {} | {killed} |", latencies.join(" | ")).unwrap();
    }
    text
}
