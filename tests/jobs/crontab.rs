//! Jobs in crontabs: hosts whose clocks are wrong (libfaketime), and five hosts under a real cron daemon.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::{election, millis};
use crate::support::pki::faketime;
use crate::support::{Election, Subject, wait};

/// A host whose clock is wrong by so many seconds. What measures lengths of time is left alone.
fn with_clock(host: Subject, skew: i64) -> Subject {
    clock(skew).into_iter().fold(host, |host, (name, value)| host.env(name, &value))
}

fn clock(skew: i64) -> [(&'static str, String); 3] {
    [
        ("LD_PRELOAD", faketime().to_str().unwrap().to_owned()),
        ("FAKETIME", format!("{skew:+}s")),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ]
}

#[expect(clippy::disallowed_methods, reason = "it is compared with what others say that the time is")]
fn now() -> SystemTime {
    SystemTime::now()
}

/// By how much the first line of a log is ahead of us, in seconds, if it was written just now.
fn skew_of(log: &str) -> i64 {
    let stamp = log.split_whitespace().next().unwrap();
    let theirs = humantime::parse_rfc3339(stamp).unwrap().duration_since(UNIX_EPOCH).unwrap();
    let ours = now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(theirs.as_secs()).unwrap() - i64::try_from(ours.as_secs()).unwrap()
}

/// T35: three clocks, each 90 s from the next. For `--once-per` only the server's counts.
#[test]
fn hosts_whose_clocks_differ_by_90_seconds_agree_on_what_one_period_is() {
    let election = election();
    let call = |id: &str, skew| {
        let host = election.steady_host(id).witness(&election.diary, &["exit-after=10"]).option("--once-per", "1m");
        let mut host = with_clock(host, skew).spawn();
        assert_eq!(host.code(), 0, "{}", host.log());
        let seen = skew_of(&host.log());
        assert!((seen - skew).abs() <= 40, "its clock is {seen} s ahead, and not {skew} s");
    };
    for (id, skew) in [("slow", -90), ("right", 0), ("fast", 90), ("slow", -90)] {
        call(id, skew);
    }
    let first = election.diary.starts();
    assert_eq!((first.len(), first[0].id.as_str()), (1, "slow"));
    // As if half the period were over, by the server's clock.
    let path = election.path("runs/last");
    let mut json: Value = serde_json::from_str(&election.admin.read(&path)).unwrap();
    let started = json["run"]["started_ms"].as_i64().unwrap();
    json["run"]["started_ms"] = (started - 31_000).into();
    election.admin.set(&path, &json.to_string());
    for (id, skew) in [("fast", 90), ("slow", -90), ("right", 0)] {
        call(id, skew);
    }
    let ids: Vec<_> = election.diary.starts().into_iter().map(|start| start.id).collect();
    assert_eq!(ids, ["slow", "fast"]);
}

/// T35: each host is called when *its* clock shows the scheduled minute, and makes the key from that clock, as a crontab line
/// does. The 90 s between two of them are left out by setting all clocks forward.
#[test]
fn hosts_whose_clocks_differ_by_90_seconds_run_each_scheduled_minute_once() {
    let election = election();
    let since_epoch = now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let to_full_minute = i64::try_from(60 - since_epoch % 60).unwrap();
    for minute in 0..2 {
        let mut keys = Vec::new();
        for (id, skew) in [("fast", 90), ("right", 0), ("slow", -90)] {
            // So long after now its clock shows the minute; we do not wait for it.
            let left_out = to_full_minute + 60 * minute - skew;
            let host = election.steady_host(id).option("--slot", "KEY").witness(&election.diary, &["exit-after=10"]);
            let process = host.to_process();
            let line = r#"key=$(date +%FT%H:%M:%S | cut -c 1-16); echo "$key" >&2
                for word; do shift; [ "$word" != KEY ] || word=$key; set -- "$@" "$word"; done; exec "$@""#;
            let mut shell = Command::new("sh");
            shell.args(["-c", line, "sh"]).arg(process.get_program()).args(process.get_args());
            let output = shell.envs(clock(skew + left_out)).output().unwrap();
            let log = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.success(), "{log}");
            keys.push(log.lines().next().unwrap().to_owned());
        }
        assert!(keys.iter().all(|key| *key == keys[0]), "the scheduled minute is the same on all: {keys:?}");
        assert_eq!(election.diary.starts().len(), usize::try_from(minute).unwrap() + 1, "{keys:?}");
    }
}

/// One host's cron daemon, with spool, system crontabs and runtime directory of its own; ended with all it started when
/// dropped.
struct Cron(Child);

impl Cron {
    /// Its clock is wrong by `skew`. `crontab` becomes its only one.
    fn start(crontab: &Path, skew: i64) -> Self {
        let script = r#"set -e
            for mine in /var/spool/cron /etc/cron.d /run; do mount -t tmpfs none "$mine"; done
            mkdir -m 1730 /var/spool/cron/crontabs
            mount --bind /dev/null /etc/crontab
            install -m 644 "$0" /etc/cron.d/job
            exec env "$@" cron -f"#;
        let clock = clock(skew).map(|(name, value)| format!("{name}={value}"));
        let mut cron = Command::new("unshare");
        cron.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", script])
            .arg(crontab)
            .args(clock);
        cron.stdin(Stdio::null()).stdout(Stdio::null());
        Self(cron.spawn().expect("unshare is missing: apt-get install util-linux"))
    }

    fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Cron {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The crontab of the example, for this election's server.
fn example_crontab(election: &Election, directory: &Path, skew: i64) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/singleton-cron");
    let bin = directory.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    for (name, target) in
        [("zk-leader-run", PathBuf::from(env!("CARGO_BIN_EXE_zk-leader-run"))), ("report.sh", root.join("report.sh"))]
    {
        if !bin.join(name).exists() {
            std::os::unix::fs::symlink(target, bin.join(name)).unwrap();
        }
    }
    let example = std::fs::read_to_string(root.join("crontab")).unwrap();
    let ours = example
        .replace("zk1:2181,zk2:2181,zk3:2181", election.servers())
        .replace("PATH=", &format!("PATH={}:", bin.display()));
    assert!(ours.contains(election.servers()) && ours.contains(bin.to_str().unwrap()), "{example}");
    let variables = clock(skew).map(|(name, value)| format!("{name}={value}\n")).concat();
    let reports = directory.join("reports");
    let own = format!("{variables}REPORTS={}\nZK_LEADER_RUN_PATH={}\n", reports.display(), election.path("cron"));
    format!("{own}{ours}")
}

/// T34, T35: the example's crontab, as it stands, under Debian's cron on five hosts, at 02:30 by their clocks.
#[test]
fn the_crontab_of_the_example_on_five_hosts_runs_the_job_once() {
    const NIGHT: u64 = 2 * 3600 + 30 * 60;
    let election = election();
    let directory = election.diary.directory().to_owned();
    let of_today = now().duration_since(UNIX_EPOCH).unwrap().as_secs() % 86_400;
    // 02:29:45 on the fastest, and up to 2 s before that on the others: all daemons run before the minute begins.
    let ahead = i64::try_from(NIGHT).unwrap() - 15 - i64::try_from(of_today).unwrap();
    let hosts = [0, 0, 1, 1, 2].iter().enumerate().map(|(number, behind)| {
        let skew = ahead - behind;
        let crontab = directory.join(format!("crontab-{number}"));
        let text = format!("TZ=UTC\n{}", example_crontab(&election, &directory, skew));
        std::fs::write(&crontab, text).unwrap();
        std::fs::set_permissions(&crontab, std::fs::Permissions::from_mode(0o644)).unwrap();
        Cron::start(&crontab, skew)
    });
    let mut hosts: Vec<_> = hosts.collect();
    let called = || election.admin.children(&election.path("cron/election")).len();
    let reports = || std::fs::read_to_string(directory.join("reports")).unwrap_or_default();
    wait::until("the job has run", || {
        assert!(hosts.iter_mut().all(Cron::is_running), "a cron daemon has ended");
        !reports().is_empty()
    });
    // Five calls: each has made a candidate, and left.
    wait::until("all hosts were called, and are done", || {
        let candidates = election.admin.stat(&election.path("cron/election")).unwrap();
        candidates.cversion >= 10 && called() == 0
    });
    wait::pass(millis(200));
    assert_eq!(reports().lines().count(), 1, "{}", reports());
}
