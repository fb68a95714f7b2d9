//! Hosts in line, as the tests of orders need them.

use crate::support::election::STEADY;
use crate::support::{Election, Running};

/// Hosts with these ids, in line in this order; the first one leads. No lease of theirs runs out, and no session.
pub fn hosts(election: &Election, ids: &[&str]) -> Vec<Running> {
    hosts_with(election, ids, |_| STEADY)
}

/// The same, each with this T.
pub fn hosts_with(election: &Election, ids: &[&str], timeout: impl Fn(&str) -> &'static str) -> Vec<Running> {
    let mut hosts = Vec::new();
    for id in ids {
        hosts.push(election.host(id).session_timeout(timeout(id)).spawn());
        election.until_candidates(hosts.len());
    }
    assert_eq!(election.diary.until_started(1).id, ids[0]);
    hosts
}

/// The ids in line.
pub fn line(election: &Election) -> Vec<String> {
    let path = |name: &String| election.path(&format!("election/{name}"));
    election.candidates().iter().filter_map(|name| Some(election.admin.find(&path(name))?.0)).collect()
}

pub fn until_last_started(election: &Election, count: usize) -> String {
    election.diary.until_started(count).id
}

/// Its command ignores the signal.
pub fn stops_slowly(election: &Election, id: &str) -> Running {
    election.steady_host(id).option("--stop-signal", "USR1").option("--stop-timeout", "10m").spawn()
}
