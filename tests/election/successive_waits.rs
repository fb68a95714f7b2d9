//! Successors that lose their places while they wait for the lease of a holder who vanished.

use super::{election, link};
use crate::support::{Election, wait};

/// Whoever holds the record says that it waits, and for which version.
fn waits_on(election: &Election, id: &str) -> i64 {
    wait::until("it holds the record and waits", || {
        let record = election.record();
        record["holder"]["id"] == id && record["waiting_on"].is_i64()
    });
    let record = election.record();
    assert_eq!((&record["state"], &record["lease_ms"]), (&"held".into(), &8000.into()), "{record}");
    record["waiting_on"].as_i64().unwrap()
}

#[test]
fn successors_that_vanish_while_they_wait_do_not_make_the_next_one_wait_anew() {
    let election = election();
    let link = link();
    let _first =
        election.host_behind(&link, "a").session_timeout("8s").witness(&election.diary, &["ignore-term"]).spawn();
    election.diary.until_started(1);
    let mut hosts = Vec::new();
    for (present, id) in ["b", "c", "d"].into_iter().enumerate() {
        // Its own lease would be shorter; what runs is the first one's.
        let host = election.host(id).session_timeout("8s").option("--lease", "6s").option("--stop-reserve", "500ms");
        hosts.push(host.spawn());
        election.until_candidates(present + 2);
    }
    link.stall();
    election.admin.delete(&election.first());
    let version = waits_on(&election, "b");
    election.admin.delete(&election.first());
    assert_eq!(waits_on(&election, "c"), version, "a place that was taken away");
    hosts[1].kill();
    election.admin.delete(&election.first());
    assert_eq!(waits_on(&election, "d"), version, "a supervisor that was killed");
    assert_eq!(election.diary.starts().len(), 1, "nobody has started yet");
    assert_eq!(election.diary.until_started(2).id, "d");
    let record = election.record();
    assert!(record["waiting_on"].is_null() && record["lease_ms"] == 6000, "{record}");
    election.diary.assert_no_overlap();
}
