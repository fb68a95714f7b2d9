//! A quota that the servers enforce, and that is used up.

use std::process::Command;

use nix::sys::signal::Signal;

use crate::support::ensemble::Build;
use crate::support::{Election, Ensemble};

/// As `setquota -B BYTES` of the servers' shell.
fn limit(election: &Election, bytes: u32) {
    let quota = format!("/zookeeper/quota{}", election.path("").trim_end_matches('/'));
    election.admin.create_all(&quota);
    let limits = format!("count=-1,bytes=-1=;byteHardLimit={bytes};countHardLimit=-1");
    election.admin.create(&format!("{quota}/zookeeper_limits"), &limits);
    election.admin.create(&format!("{quota}/zookeeper_stats"), "count=0,bytes=0");
}

#[test]
fn a_quota_that_is_used_up_is_told_by_who_cannot_lead_and_by_who_gives_an_order() {
    let java = vec!["-Dzookeeper.enforceQuota=true".to_owned()];
    let ensemble = Ensemble::built(1, &Build { java, ..Build::default() });
    let election = Election::on(&ensemble.connect_string());
    // Its release may be refused.
    let first = election.host("a").session_timeout("6s").spawn();
    election.diary.until_started(1);
    let second = election.steady_host("b").spawn();
    election.until_candidates(2);
    limit(&election, 1);
    first.signal(Signal::SIGTERM);
    let refused = format!("exceed path quota at /zk-leader-run/{}", election.name);
    // Which of the two depends on the lengths of both hosts' process ids.
    second.until_logged(&format!("warning: ZooKeeper refuses what this host needs for the election: {refused}/"));
    second
        .until_logged("raise or delete the quota of that znode or of one above it (setquota, delquota); trying again");

    let mut ctl = Command::new(env!("CARGO_BIN_EXE_zk-leaderctl"));
    let output = ctl.args(["disable", &election.name, "-z", &ensemble.connect_string()]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("ZooKeeper refuses it: {refused}; raise or delete")), "{said}");
    assert!(!said.contains("try again"), "{said}");

    election.admin.delete(&format!("/zookeeper/quota{}", election.path("zookeeper_limits")));
    assert_eq!(election.diary.until_started(2).id, "b");
}
