//! A real Prometheus scrapes real runs; the rules and the dashboard that we ship ask only for what it then knows.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::election;
use crate::support::ports::Port;
use crate::support::{http, wait};

const MISSING: &str = "Prometheus is missing: apt-get install prometheus";

fn packaging(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging").join(file)
}

fn promtool(words: &[&str], directory: &Path) -> Output {
    Command::new("promtool").args(words).current_dir(directory).output().expect(MISSING)
}

struct Prometheus {
    process: Child,
    port: Port,
    _directory: tempfile::TempDir,
}

impl Prometheus {
    fn scraping(targets: &[SocketAddr]) -> Self {
        let (port, directory) = (Port::reserve(), tempfile::tempdir().unwrap());
        let settings = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 500ms}}\n\
             rule_files: ['{}']\n\
             scrape_configs: [{{job_name: zk, static_configs: [{{targets: {:?}}}]}}]\n",
            packaging("prometheus/zk-leader-run.rules.yml").display(),
            targets.iter().map(ToString::to_string).collect::<Vec<_>>(),
        );
        let file = directory.path().join("prometheus.yml");
        std::fs::write(&file, settings).unwrap();
        let mut prometheus = Command::new("prometheus");
        prometheus.arg(format!("--config.file={}", file.display()));
        prometheus.arg(format!("--storage.tsdb.path={}", directory.path().join("data").display()));
        prometheus.arg(format!("--web.listen-address={}", port.address())).arg("--log.level=error");
        let process = prometheus.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Self { process: process.expect(MISSING), port, _directory: directory }
    }

    fn api(&self, path: &str) -> Option<Value> {
        let reply = http::get(self.port.address(), &format!("/api/v1/{path}")).ok()?;
        serde_json::from_str::<Value>(&reply.body).ok().map(|reply| reply["data"].clone())
    }

    /// What `election` has as the value of `metric` at this participant.
    fn value(&self, metric: &str, election: &str, participant: &str) -> Option<String> {
        let query = format!("{metric}%7Belection=%22{election}%22,participant=%22{participant}%22%7D");
        let data = self.api(&format!("query?query={query}"))?;
        data["result"][0]["value"][1].as_str().map(str::to_owned)
    }

    fn names(&self) -> BTreeSet<String> {
        let names = self.api("label/__name__/values").unwrap_or_default();
        names.as_array().into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Every metric of ours that a text names.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let starts = text.match_indices("zk_leader_run_").map(|(at, _)| at);
    starts.map(|at| text[at..].chars().take_while(|letter| is_of_name(*letter)).collect()).collect()
}

/// The labels of each `by (…)`.
fn groupings_in(text: &str) -> Vec<Vec<&str>> {
    let lists = text.split(" by (").skip(1).filter_map(|rest| rest.split_once(')'));
    lists.map(|(labels, _)| labels.split(", ").collect()).collect()
}

/// One host may take part in several elections, and two clusters may have elections of one name.
#[test]
fn no_sum_is_over_several_elections() {
    for file in ["grafana/zk-leader-run.json", "prometheus/zk-leader-run.rules.yml"] {
        let text = std::fs::read_to_string(packaging(file)).unwrap();
        let groupings = groupings_in(&text);
        let is_apart = |labels: &Vec<&str>| ["cluster", "election"].iter().all(|label| labels.contains(label));
        assert!(groupings.len() > 5 && groupings.iter().all(is_apart), "{file}: {groupings:?}");
        // Shorter than two scrapes if the panel shows few hours.
        assert!(!text.contains("[$__interval]"), "{file}");
    }
}

#[test]
fn the_alerts_fire_when_they_should_and_not_before() {
    for words in [["check", "rules", "zk-leader-run.rules.yml"], ["test", "rules", "zk-leader-run.test.yml"]] {
        let output = promtool(&words, &packaging("prometheus"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&[output.stdout, output.stderr].concat()));
    }
}

#[test]
fn prometheus_scrapes_all_that_the_dashboard_and_the_alerts_ask_for() {
    let election = election();
    let first = election.steady_host("a").served().flag("--vouch").option("--hook", "true").spawn();
    election.diary.until_started(1);
    let second = election.steady_host("b").served().flag("--vouch").spawn();
    election.until_candidates(2);
    let prometheus = Prometheus::scraping(&[http::address_of(&first), http::address_of(&second)]);
    let value = |metric: &str, participant: &str| prometheus.value(metric, &election.name, participant);
    wait::until("Prometheus knows the leader", || value("zk_leader_run_leader", "a").as_deref() == Some("1"));
    wait::until("and the standby", || value("zk_leader_run_standby", "b").as_deref() == Some("1"));
    wait::until("and that it does not lead", || value("zk_leader_run_leader", "b").as_deref() == Some("0"));
    // A scrape that a busy machine loses leaves a gap.
    let known = |metric: &str| wait::for_some("Prometheus knows it", || value(metric, "a"));
    assert_eq!(known("zk_leader_run_token"), election.term().mzxid.to_string());
    let left: f64 = known("zk_leader_run_lease_remaining_seconds").parse().unwrap();
    assert!(left > 0.0 && left < 20.0, "{left}");

    let known = prometheus.names();
    let shipped = ["grafana/zk-leader-run.json", "prometheus/zk-leader-run.rules.yml"];
    for file in shipped.map(packaging) {
        let asked_for = metrics_in(&std::fs::read_to_string(&file).unwrap());
        let missing: Vec<_> = asked_for.difference(&known).collect();
        assert!(asked_for.len() > 5 && missing.is_empty(), "{}: nobody tells {missing:?}", file.display());
    }
    let rules = prometheus.api("rules").unwrap();
    let rules = rules["groups"][0]["rules"].as_array().unwrap();
    wait::until("every rule was evaluated", || {
        let rules = prometheus.api("rules").unwrap();
        rules["groups"][0]["rules"].as_array().unwrap().iter().all(|rule| rule["health"] == "ok")
    });
    assert!(rules.len() >= 10);

    first.signal(Signal::SIGTERM);
    wait::until("Prometheus knows the next leader", || value("zk_leader_run_leader", "b").as_deref() == Some("1"));
}
