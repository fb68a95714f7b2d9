//! What came out, for a person and for a program: a table on standard error, and JSON beside the drawing.
//!
//! Never: a judgement of its own.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::calm::Calm;
use super::checker::{Findings, Overlap, Run};
use super::host::Life;
use super::nemesis::Strike;
use super::operator::Leftovers;
use super::record::Verdict;
use super::settings::Settings;
use super::upgrade::Upgrade;

/// One run, told.
pub struct Report<'a> {
    pub settings: &'a Settings,
    pub findings: &'a Findings,
    pub strikes: &'a [Strike],
    pub rescues: usize,
    pub lives: &'a [Life],
    pub leftovers: &'a Leftovers,
    pub verdict: &'a Verdict,
    pub upgrades: &'a [Upgrade],
    pub calms: &'a [Calm],
}

impl Report<'_> {
    /// Past the capture of the test harness: one who waits for a minute wants to see what for.
    pub fn print(&self) {
        std::io::stderr().write_all(self.table().as_bytes()).ok();
    }

    fn table(&self) -> String {
        let findings = self.findings;
        let mut text = String::new();
        let mut line = |name: &str, value: String| writeln!(text, "  {name:<34}{value}").unwrap();
        line("faults", format!("{} ({} % at the holder or its server)", self.strikes.len(), self.percent_at_holder()));
        let missed = self.strikes.iter().filter(|strike| strike.missed).count();
        line("  that could not be done", missed.to_string());
        if self.settings.upgrades > 0 {
            let [all, of_leaders, in_calm] = self.upgrades_done();
            line("upgrades done", format!("{all} of {} asked for; {of_leaders} of leaders", self.upgrades.len()));
            line("  while no fault was about", format!("{in_calm}, in {} calm times", self.calms.len()));
            line("  commands lost or started anew", findings.lost.len().to_string());
        }
        line("stuck ensembles helped on", self.rescues.to_string());
        line("starts of the command", findings.runs.len().to_string());
        line("overlaps", told(&self.overlaps(None)));
        for limit in ["whole host suspended", "whole base deleted"] {
            line(&format!("  apart: {limit}"), told(&self.overlaps(Some(limit))));
        }
        line("orphans", findings.orphans.len().to_string());
        line("leases that said yes too long", format!("{}, of {} looks", findings.overlong.len(), findings.yes));
        line("jobs started twice", findings.repeated.len().to_string());
        line("tokens out of order", findings.token_disorder.len().to_string());
        line("candidates left behind", self.leftovers.candidates.len().to_string());
        line("record and term: requests judged", self.judged());
        line("  that no order explains", self.verdict.problems.len().to_string());
        line("acknowledged writes lost", self.verdict.losses.join("; "));
        line("servers unlike their leader", self.verdict.differing.join(", "));
        line("watched", seconds(findings.watched));
        line("a command ran", share(findings.running, findings.watched));
        line("none ran though one could", share(findings.idle_though_possible, findings.possible));
        line("  at most", seconds(findings.longest_idle()));
        let [median, late, last] = [50, 95, 100].map(|percent| seconds(self.recovery(percent)));
        line("from healing to a command", format!("median {median}, 95 % {late}, at most {last}"));
        let settings = self.settings;
        let control = settings.control.as_ref().map(|name| format!(", sabotaged by {name}")).unwrap_or_default();
        let (seed, election, svg) = (settings.seed, settings.election.told(), settings.report.with_extension("svg"));
        format!("\nchaos, CHAOS_SEEDS={seed}, {election}{control}: {}\n{text}", svg.display())
    }

    pub fn json(&self) -> Value {
        let findings = self.findings;
        json!({
            "seed": self.settings.seed,
            "election": self.settings.election.told(),
            "session_timeout_ms": milliseconds(self.settings.session_timeout),
            "hosts": self.settings.hosts,
            "faults": self.strikes.len(),
            "percent_at_holder": self.percent_at_holder(),
            "faults_by_kind": self.by_kind(),
            "missed": self.strikes.iter().filter(|strike| strike.missed).count(),
            "rescues": self.rescues,
            "upgrades_asked": self.upgrades.len(),
            "upgrades_done": self.upgrades_done(),
            "calms": self.calms.len(),
            "starts": findings.runs.len(),
            "violations": findings.violations(),
            "overlaps": findings.overlaps.iter().filter(|overlap| overlap.apart.is_none()).map(overlap).collect::<Vec<_>>(),
            "overlaps_apart": findings.overlaps.iter().filter(|overlap| overlap.apart.is_some()).map(overlap).collect::<Vec<_>>(),
            "orphans": findings.orphans.iter().map(|(host, pid, length)| json!({"host": host, "pid": pid, "ms": milliseconds(*length)})).collect::<Vec<_>>(),
            "record_writes": self.verdict.writes,
            "record_writes_unanswered": self.verdict.unanswered,
            "record_reads": self.verdict.reads,
            "record_problems": self.verdict.problems,
            "losses": self.verdict.losses,
            "differing": self.verdict.differing,
            "oldest_read_ms": milliseconds(self.verdict.oldest_read),
            "lease_file_yes": findings.yes,
            "candidates_left": self.leftovers.candidates,
            "record_left": self.leftovers.record,
            "watched_ms": milliseconds(findings.watched),
            "running_ms": milliseconds(findings.running),
            "possible_ms": milliseconds(findings.possible),
            "idle_though_possible_ms": milliseconds(findings.idle_though_possible),
            "longest_idle_ms": milliseconds(findings.longest_idle()),
            "recovery_ms": self.recoveries(),
            "idle": findings.idle.iter().map(|span| [milliseconds(span.0), milliseconds(span.1)]).collect::<Vec<_>>(),
            "runs": findings.runs.iter().map(run).collect::<Vec<_>>(),
            "strikes": self.strikes.iter().map(strike).collect::<Vec<_>>(),
            "supervisors": self.lives.iter().map(life).collect::<Vec<_>>(),
        })
    }

    fn recoveries(&self) -> Value {
        let [median, late, last] = [50, 95, 100].map(|percent| milliseconds(self.recovery(percent)));
        json!({"median": median, "p95": late, "max": last})
    }

    fn judged(&self) -> String {
        let Verdict { writes, unanswered, reads, oldest_read, .. } = self.verdict;
        let oldest = oldest_read.as_millis();
        format!("{writes} writes ({unanswered} unanswered), {reads} reads (up to {oldest} ms old)")
    }

    fn overlaps(&self, apart: Option<&str>) -> Vec<Duration> {
        let overlaps = self.findings.overlaps.iter().filter(|overlap| overlap.apart == apart);
        overlaps.map(|overlap| overlap.length).collect()
    }

    /// All, those of leaders, and those of leaders in calm times.
    fn upgrades_done(&self) -> [usize; 3] {
        let done = || self.upgrades.iter().filter(|upgrade| upgrade.done.is_some());
        let is_calm = |upgrade: &&Upgrade| {
            let done = upgrade.done.unwrap_or_default();
            upgrade.at_holder && self.calms.iter().any(|calm| calm.began <= upgrade.asked && done <= calm.ended)
        };
        [done().count(), done().filter(|upgrade| upgrade.at_holder).count(), done().filter(is_calm).count()]
    }

    fn percent_at_holder(&self) -> usize {
        let hits = self.strikes.iter().filter(|strike| strike.hit_holder).count();
        100 * hits / self.strikes.len().max(1)
    }

    fn by_kind(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for kind in self.strikes.iter().flat_map(|strike| [Some(strike.kind), strike.also]).flatten() {
            *counts.entry(kind.name()).or_default() += 1;
        }
        counts
    }

    fn recovery(&self, percent: usize) -> Duration {
        let recoveries = &self.findings.recoveries;
        let last = recoveries.len().saturating_sub(1);
        recoveries.get(last * percent / 100).copied().unwrap_or_default()
    }
}

fn told(overlaps: &[Duration]) -> String {
    match overlaps.iter().max() {
        None => "0".to_owned(),
        Some(longest) => format!("{}, at most {:.1} ms", overlaps.len(), longest.as_secs_f64() * 1000.0),
    }
}

fn seconds(length: Duration) -> String {
    format!("{:.2} s", length.as_secs_f64())
}

fn share(part: Duration, whole: Duration) -> String {
    let percent = 100.0 * part.as_secs_f64() / whole.as_secs_f64().max(f64::MIN_POSITIVE);
    format!("{} of {} ({percent:.1} %)", seconds(part), seconds(whole))
}

fn milliseconds(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap()
}

fn overlap(overlap: &Overlap) -> Value {
    json!({
        "earlier": {"token": overlap.earlier.token, "host": overlap.earlier.host},
        "later": {"token": overlap.later.token, "host": overlap.later.host},
        "at_ms": milliseconds(overlap.later.began),
        "us": u64::try_from(overlap.length.as_micros()).unwrap(),
        "apart": overlap.apart,
    })
}

fn run(run: &Run) -> Value {
    json!({
        "slot": run.slot,
        "token": run.token,
        "host": run.host,
        "began_ms": milliseconds(run.began),
        "ended_ms": milliseconds(run.ended),
        "tree_ended_ms": milliseconds(run.tree_ended),
    })
}

fn strike(strike: &Strike) -> Value {
    json!({
        "number": strike.number,
        "kind": strike.kind.name(),
        "also": strike.also.map(super::fault::Kind::name),
        "host": strike.host,
        "nodes": strike.nodes,
        "hit_holder": strike.hit_holder,
        "began_ms": milliseconds(strike.began),
        "ended_ms": milliseconds(strike.ended),
        "missed": strike.missed,
    })
}

fn life(life: &Life) -> Value {
    json!({
        "host": life.host,
        "began_ms": milliseconds(life.began),
        "ended_ms": life.ended.map(milliseconds),
        "shape": life.shape,
        "status": life.status,
    })
}
