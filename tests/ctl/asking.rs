//! status, list, history: what they say, and that they change nothing.

use nix::sys::signal::Signal;
use zk_leader_run::zookeeper::schema::control::moment::moment;

use super::election;
use super::operator::{ctl, ctl_at};
use crate::support::{Election, Ensemble, wait};

/// Path, czxid, mzxid, pzxid, versions: of every znode of an election.
fn all_znodes(election: &Election) -> Vec<(String, [i64; 6])> {
    fn walk(election: &Election, path: &str, found: &mut Vec<(String, [i64; 6])>) {
        let stat = election.admin.stat(path).unwrap();
        let versions = [stat.version, stat.cversion, stat.aversion].map(i64::from);
        found.push((path.to_owned(), [stat.czxid, stat.mzxid, stat.pzxid, versions[0], versions[1], versions[2]]));
        for child in election.admin.children(path) {
            walk(election, &format!("{path}/{child}"), found);
        }
    }
    let mut found = Vec::new();
    walk(election, election.path("").trim_end_matches('/'), &mut found);
    found
}

#[test]
fn commands_that_only_read_write_no_znode() {
    let election = election();
    election.prepare();
    let token = election.term().mzxid.to_string();
    let before = all_znodes(&election);
    assert!(before.len() >= 4);
    let asked: [&[&str]; 6] = [
        &["status", &election.name],
        &["history", &election.name],
        &["list"],
        &["token-check", &token, &election.name],
        &["doctor", &election.name],
        &["status", "no-such-election"],
    ];
    for words in asked {
        let said = ctl(words);
        assert!([0, 1, 2].contains(&said.code), "{words:?}: {said:?}");
    }
    assert_eq!(all_znodes(&election), before);
    assert!(!election.admin.exists("/zk-leader-run/no-such-election"));
}

/// A server keeps a session that was not closed for its timeout, here 100 s.
#[test]
fn who_has_asked_leaves_no_session_behind() {
    let ensemble = Ensemble::single();
    for words in [["list", "--connect-timeout", "60s"], ["status", "--connect-timeout", "60s"]] {
        let said = ctl_at(&ensemble.connect_string(), &words, &[]);
        assert!(said.code == 2 && said.error.contains("/zk-leader-run"), "{said:?}");
        wait::until("its session is closed", || ensemble.server(0).metric("zk_global_sessions") == Some(0));
    }
}

#[test]
fn status_is_0_while_somebody_leads_1_while_nobody_does_and_2_when_that_is_not_known() {
    let election = election();
    let status = || ctl(&["status", &election.name]);
    let unknown = status();
    assert_eq!((unknown.code, unknown.output.as_str()), (2, ""));
    assert!(unknown.error.contains("there is no election at"), "{unknown:?}");

    let mut host = election.steady_host("first").spawn();
    election.diary.until_started(1);
    let led = status();
    assert!(led.code == 0 && led.output.contains("first (pid "), "{led:?}");

    host.signal(Signal::SIGTERM);
    host.code();
    let nobody = status();
    assert!(nobody.code == 1 && nobody.output.contains("nobody: the lease is free"), "{nobody:?}");
    assert!(nobody.output.lines().any(|line| line == "in line   nobody"), "not below the others: {nobody:?}");

    election.admin.set(&election.path("lease"), "garbage");
    let unknown = status();
    assert!(unknown.code == 2 && unknown.output.contains("cannot be read"), "{unknown:?}");
}

#[test]
fn status_shows_the_leader_its_term_and_the_line_in_order() {
    let election = election();
    let hosts: Vec<_> = (0..3)
        .map(|index| {
            let host = election.steady_host(&format!("h{index}")).spawn();
            election.until_candidates(index + 1);
            host
        })
        .collect();
    election.diary.until_started(1);
    let ids = ["h0", "h1", "h2"];
    let have_told = || ids.iter().all(|id| election.admin.exists(&election.path(&format!("members/{id}"))));
    wait::until("all have said who they are", have_told);
    let said = ctl(&["status", &election.name, "--json"]).json();
    let term = election.term();
    assert_eq!(
        (&said["state"], &said["election"]),
        (&"led".into(), &format!("/zk-leader-run/{}", election.name).into())
    );
    let slot = &said["slots"][0];
    assert_eq!((slot["token"].as_i64(), slot["term"].as_i64()), (Some(term.mzxid), Some(i64::from(term.version))));
    assert_eq!((&slot["leader"]["id"], slot["leader"]["pid"].as_i64()), (&"h0".into(), Some(hosts[0].pid().into())));
    assert_eq!(slot["since"].as_i64(), Some(term.mtime));
    let line: Vec<_> = said["contenders"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(line, ids);
    for (index, host) in hosts.iter().enumerate() {
        let one = &said["contenders"][index];
        let phase = if index == 0 { "leading" } else { "following" };
        assert_eq!((one["pid"].as_i64(), &one["phase"]), (Some(host.pid().into()), &phase.into()), "{one}");
    }

    let plain = ctl(&["status", &election.name, "-o", "plain"]).output;
    assert!(plain.contains(&format!("term\t{}, token {}\n", term.version, term.mzxid)), "{plain}");
    assert!(plain.lines().any(|line| line.starts_with("2\th1\t")), "{plain}");
    let table = ctl(&["status", &election.name]).output;
    assert!(!table.contains('\x1b'), "colours are for terminals");
}

/// To the second: the lease is renewed in a later one.
#[test]
fn people_are_told_since_when_the_leader_leads_and_not_since_when_its_lease_was_renewed() {
    let election = election();
    let _host = election.steady_host("a").spawn();
    election.diary.until_started(1);
    let since = moment(election.term().mtime);
    let renewed_at = || election.admin.stat(&election.path("lease")).unwrap().mtime;
    wait::until("its lease was renewed in another second", || moment(renewed_at()) != since);
    let said = ctl(&["status", &election.name]).output;
    let line = said.lines().find(|line| line.trim_start().starts_with("since ")).unwrap_or(&said);
    assert!(line.contains(&since), "{since}: {said}");
}

/// Whoever leads stays in front until it releases.
#[test]
fn status_shows_the_leader_before_a_newcomer_of_a_higher_priority() {
    let election = election();
    let _leader = election.steady_host("low").spawn();
    election.diary.until_started(1);
    let _newcomer = election.steady_host("high").option("--priority", "5").spawn();
    election.until_candidates(2);
    let said = ctl(&["status", &election.name, "--json"]).json();
    let line: Vec<_> = said["contenders"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(line, ["low", "high"]);
}

#[test]
fn a_leader_that_is_gone_with_its_session_does_not_lead_though_the_record_is_held() {
    let election = election();
    election.prepare();
    let record = r#"{"v":1,"state":"held","holder":{"id":"ghost","host":"h","pid":1},"lease_ms":60000}"#;
    election.admin.set(&election.path("lease"), record);
    let said = ctl(&["status", &election.name]);
    assert!(said.code == 1 && said.output.contains("ghost is gone, and its lease must run out"), "{said:?}");
}

/// A server that was down expires no candidate before a further session timeout, though its command was killed long ago.
#[test]
fn a_leader_whose_lease_is_over_does_not_lead_though_its_candidate_is_still_in_line() {
    let election = election();
    election.prepare();
    let candidate = format!("_c_{}-latch-0000000000", uuid::Uuid::nil());
    election.admin.create_ephemeral(&election.path(&format!("election/{candidate}")), "late");
    // Its last words.
    let member = r#"{"v":1,"id":"late","host":"h","pid":1,"role":"leader","phase":"leading","eligible":true}"#;
    election.admin.create_all(&election.path("members"));
    election.admin.create_ephemeral(&election.path("members/late"), member);
    let record =
        r#"{"v":1,"state":"held","holder":{"id":"late","host":"h","pid":1},"lease_ms":1000,"guarantee":"at-most-one"}"#;
    election.admin.set(&election.path("lease"), record);
    wait::pass(std::time::Duration::from_millis(1500));
    let said = ctl(&["status", &election.name]);
    assert!(said.code == 1 && said.output.contains("the lease of late is overdue by "), "{said:?}");
    let said = ctl(&["status", &election.name, "--json"]);
    assert_eq!((said.code, &said.json()["slots"][0]["state"]), (1, &"overdue".into()), "{said:?}");
    let late = &said.json()["contenders"][0];
    assert_eq!((&late["id"], &late["leads"], &late["phase"]), (&"late".into(), &false.into(), &"unknown".into()));
    assert!(late["eligible"] == false && late["why_not"][0] == "its lease is overdue", "{said:?}");
    let list = ctl(&["list", "-o", "plain"]).output;
    let line = list.lines().find(|line| line.starts_with(&format!("{}\t", election.name))).unwrap();
    assert!(line.ends_with("lease overdue"), "{line}");
    let said = ctl(&["doctor", &election.name]);
    assert!(said.code == 1 && said.output.contains("has not renewed its lease"), "{said:?}");
}

/// An operator whose clock is ahead of the servers'.
#[test]
fn a_record_that_is_renewed_while_it_is_looked_at_is_never_overdue() {
    let election = election();
    election.prepare();
    let candidate = format!("_c_{}-latch-0000000000", uuid::Uuid::nil());
    election.admin.create_ephemeral(&election.path(&format!("election/{candidate}")), "quick");
    let renewed = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let record = r#"{"v":1,"state":"held","holder":{"id":"quick","host":"h","pid":1},"lease_ms":1}"#;
            // It ends, too, where the test fails.
            for _ in 0..1_500 {
                if !renewed.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                election.admin.set(&election.path("lease"), record);
                wait::pass(std::time::Duration::from_millis(20));
            }
        });
        wait::until("it is held", || election.state() == "held");
        let said = ctl(&["status", &election.name]);
        renewed.store(false, std::sync::atomic::Ordering::Relaxed);
        assert!(said.code == 0 && said.output.contains("quick (pid 1 on h)"), "{said:?}");
    });
}

#[test]
fn list_shows_every_election_below_the_root_and_nothing_else() {
    let elections = [election(), election()];
    elections.iter().for_each(Election::prepare);
    elections[0].admin.create_all("/zk-leader-run/not-an-election/child");
    let _host = elections[1].steady_host("leader").spawn();
    wait::until("it leads", || {
        let said = ctl(&["list", "--json"]).json();
        let list = said["elections"].as_array().unwrap().clone();
        let find = |name: &str| list.iter().find(|one| one["name"] == *name).cloned();
        assert_eq!(find("not-an-election"), None);
        assert_eq!(find(&elections[0].name).unwrap()["state"], "nobody leads");
        let other = find(&elections[1].name).unwrap();
        other["state"] == "led" && other["leaders"][0] == "leader" && other["in_line"] == 1
    });
}

#[test]
fn a_contender_of_another_library_is_shown_as_what_it_is() {
    let election = election();
    let directory = format!("/foreign/ctl-{}", election.name);
    election.admin.create_all(&directory);
    let stranger =
        election.admin.create_sequential(&format!("{directory}/514e5a831836450cb1a56c741e990fd8__lock__"), "kz");
    let nameless =
        election.admin.create_sequential(&format!("{directory}/0f0e5a831836450cb1a56c741e990fd8__lock__"), "");
    let host = election.steady_host("ours").option("--recipe", "kazoo").option("--election-path", &directory);
    let _host = host.spawn();
    let status = || ctl(&["status", &election.name, "--json"]);
    let in_line = || status().json()["contenders"].as_array().map(Vec::len) == Some(3);
    wait::until("all stand in line", || status().code != 2 && in_line());
    let said = status();
    assert_eq!((said.code, &said.json()["slots"][0]["leader"]["id"]), (0, &"kz".into()), "{said:?}");
    let leads: Vec<_> = (0..3).map(|at| said.json()["contenders"][at]["leads"].clone()).collect();
    assert_eq!(leads, [true, false, false], "{said:?}");
    let shown = ctl(&["status", &election.name]).output;
    assert!(shown.contains("kz, a contender of another library"), "{shown}");
    let list = ctl(&["list", "-o", "plain"]).output;
    let is_shown = |line: &str| line.starts_with(&format!("{}\tkz\t", election.name)) && line.ends_with("\tforeign");
    assert!(list.lines().any(is_shown), "{list}");
    assert!(shown.contains(nameless.rsplit('/').next().unwrap()), "{shown}");
    let handover = ctl(&["handover", &election.name]);
    assert!(handover.code == 1 && handover.output.contains("hears no orders"), "{handover:?}");
    let doctor = ctl(&["doctor", &election.name]);
    assert!(doctor.code == 0 && doctor.output.contains("one leader at a time is best effort; 3 in line"), "{doctor:?}");
    election.admin.delete(&stranger);
    election.admin.delete(&nameless);
    election.diary.until_started(1);
    wait::until("ours leads", || status().json()["slots"][0]["leader"]["id"] == "ours");
    assert!(ctl(&["handover", &election.name, "--to", "x"]).output.contains("leave --to out"));
    election.admin.create_sequential(&format!("{directory}/7a0e5a831836450cb1a56c741e990fd8__lock__"), "next");
    let said = ctl(&["handover", &election.name, "--wait", "--json"]);
    let leader = (&said.json()["leader"], &said.json()["token"], &said.json()["said"]);
    let sentence = "next leads, a contender of another library";
    assert_eq!((said.code, leader), (0, (&"next".into(), &serde_json::Value::Null, &sentence.into())), "{said:?}");
}

/// Programs count the columns of `-o plain`.
#[test]
fn the_columns_of_a_history_do_not_depend_on_the_terms_that_are_shown() {
    let election = election();
    let host = |id: &str| election.steady_host(id).option("--leaders", "2").spawn();
    let mut first = host("a");
    election.diary.until_started(1);
    let _second = host("b");
    election.diary.until_started(2);
    first.signal(Signal::SIGTERM);
    assert_eq!(first.code(), 0);
    let _third = host("a");
    election.diary.until_started(3);
    let columns = |terms: &str| {
        let said = ctl(&["history", &election.name, "--lines", terms, "-o", "plain"]);
        let lines: Vec<_> = said.output.lines().map(|line| line.split_whitespace().count()).collect();
        (lines.len() == terms.parse::<usize>().unwrap()).then_some(lines)
    };
    let three = wait::for_some("three terms are written down", || columns("3"));
    let one = wait::for_some("the last one is shown", || columns("1"));
    assert!(
        three.iter().chain(&one).all(|count| *count == three[0]),
        "the number of columns differs: {three:?} {one:?}"
    );
}

/// As `zk-leader-run` tells it.
#[test]
fn who_asks_is_told_that_another_user_may_read_the_secret() {
    let election = election();
    let _host = election.steady_host("a").spawn();
    election.diary.until_started(1);
    let directory = tempfile::tempdir().unwrap();
    let secret = directory.path().join("auth");
    std::fs::write(&secret, "digest:bob:hunter2\n").unwrap();
    std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    std::os::unix::fs::chown(&secret, Some(1000), None).unwrap();
    let said = ctl(&["status", &election.name, "--auth-file", secret.to_str().unwrap()]);
    assert!(said.code == 0 && said.output.contains("leads"), "{said:?}");
    assert!(said.error.contains("holds a secret, and user 1000, who owns it, may read it"), "{said:?}");
}
