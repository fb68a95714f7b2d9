//! What participants say about themselves: containment, protection, and what `--meta` adds.

use super::election;
use super::operator::ctl;
use crate::support::{http, wait};

#[test]
fn members_say_their_containment_whether_they_are_protected_and_where_the_service_is() {
    let election = election();
    let host = |id| election.steady_host(id).option("--contain", "subreaper");
    let leader = host("a").option("--meta", "address=10.0.0.7:8080").flag("--meta=zone=b");
    let leader = leader.option("--http", "127.0.0.1:0").spawn();
    election.diary.until_started(1);
    let _standby = host("b").env("ZK_LEADER_RUN_META", "zone=c").spawn();
    election.until_candidates(2);
    let seen = || ctl(&["status", &election.name, "-o", "json"]).json()["contenders"].clone();
    wait::until("both say so", || seen()[0]["protection"] == "armed" && seen()[1]["protection"] == "ready");
    let seen = seen();
    assert_eq!((&seen[0]["contain"], &seen[0]["version"]), (&"subreaper".into(), &env!("CARGO_PKG_VERSION").into()));
    assert_eq!(seen[0]["meta"], serde_json::json!({ "address": "10.0.0.7:8080", "zone": "b" }));
    assert_eq!(seen[1]["meta"], serde_json::json!({ "zone": "c" }));
    let wide = ctl(&["status", &election.name, "-o", "wide"]).output;
    assert!(wide.contains("address=10.0.0.7:8080 zone=b") && wide.contains("armed"), "{wide}");

    let status = http::status(http::address_of(&leader));
    assert_eq!((&status["contain"], &status["protection"]), (&"subreaper".into(), &"armed".into()));
    assert_eq!(status["meta"]["zone"], "b");
}

#[test]
fn a_member_of_an_earlier_build_says_less() {
    let election = election();
    let _leader = election.steady_host("a").spawn();
    election.diary.until_started(1);
    wait::until("it says who it is", || election.admin.exists(&election.path("members/a")));
    election.admin.create(&election.path("members/old"), r#"{"v":1,"id":"old","host":"h","pid":7,"version":"0.0.9"}"#);
    let seen = ctl(&["status", &election.name, "-o", "json"]).json()["contenders"][1].clone();
    assert_eq!((&seen["id"], &seen["version"]), (&"old".into(), &"0.0.9".into()));
    assert!(seen["contain"].is_null() && seen["protection"].is_null(), "{seen}");
    assert_eq!(seen["meta"], serde_json::json!({}));
    assert_eq!(ctl(&["status", &election.name, "-o", "wide"]).code, 0);
}
