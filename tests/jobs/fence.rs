//! `--fence-cmd`: an earlier leader whose term did not end cleanly is fenced before anything starts, by whoever leads next.

use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::Signal;

use super::{election, link, secs};
use crate::support::subject::{children_of, guards_of, is_alive};
use crate::support::wait::AT_ONCE;
use crate::support::{Diary, Election, Proxy, Running, Subject, diary, wait};

fn page(diary: &Diary) -> PathBuf {
    diary.directory().join("fenced")
}

/// A fence command of `by` that writes down whom it fences, and then does `what`.
fn fencing(election: &Election, by: &str, what: &str) -> String {
    let page = page(&election.diary);
    format!(r#"echo "{by} $ZK_LEADER_PREVIOUS_ID $ZK_LEADER_PREVIOUS_TOKEN $(cat)" >>{}; {what}"#, page.display())
}

/// By whom and whom, in order.
fn fenced(election: &Election) -> Vec<String> {
    let text = std::fs::read_to_string(page(&election.diary)).unwrap_or_default();
    text.lines().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect()
}

#[track_caller]
fn until_fencing(election: &Election, count: usize) {
    wait::until("the fence command runs", || fenced(election).len() >= count);
}

/// Its lease lasts as long as that of the one before.
fn host(election: &Election, id: &str, what: &str) -> Subject {
    fences(election.host(id), election, id, what)
}

/// The same for one that is not to lose its lease.
fn steady_host(election: &Election, id: &str, what: &str) -> Subject {
    fences(election.steady_host(id), election, id, what)
}

fn fences(host: Subject, election: &Election, id: &str, what: &str) -> Subject {
    host.option("--fence-cmd", &fencing(election, id, what))
}

/// A leader whose host falls silent for ever, and its number as a process.
fn a_leader_that_is_lost(election: &Election) -> (Proxy, i32) {
    let link = link();
    let lost = election.host_behind(&link, "a").spawn();
    election.diary.until_started(1);
    let pid = lost.pid();
    wait::until("a renewal has written the token", || election.record()["token"].is_i64());
    link.stall();
    lost.kill();
    (link, pid)
}

/// The process that the fence command started, once it sleeps.
fn sleeper(host: &Running) -> i32 {
    let guard = wait::for_some("the fence command has a guard", || guards_of(host.pid()).get(1).copied());
    wait::for_some("the fence command sleeps", || {
        let shell = *children_of(guard).first()?;
        children_of(shell).into_iter().next()
    })
}

#[test]
fn nobody_is_fenced_at_the_first_term_or_after_a_clean_end() {
    let election = election();
    let mut first = steady_host(&election, "a", "true").spawn();
    election.diary.until_started(1);
    let _second = steady_host(&election, "b", "true").spawn();
    election.until_candidates(2);
    first.signal(Signal::SIGTERM);
    assert_eq!(first.code(), 0);
    assert_eq!(election.diary.until_started(2).told[1], "clean");
    assert_eq!(fenced(&election), Vec::<String>::new());
}

#[test]
fn a_lost_leader_is_fenced_before_the_command_starts_while_the_lease_is_renewed() {
    let election = election();
    let (_link, pid) = a_leader_that_is_lost(&election);
    // Longer than the lease.
    let hooks = election.diary.directory().join("hooks");
    let hook = format!("echo $ZK_LEADER_EVENT >>{}", hooks.display());
    let second = host(&election, "b", "sleep 8").session_timeout("6s").option("--hook", &hook).spawn();
    until_fencing(&election, 1);
    let record = election.record();
    assert_eq!((record["holder"]["id"].as_str(), record["unfenced"][0]["id"].as_str()), (Some("b"), Some("a")));
    let begun_at = diary::now();
    let _third = steady_host(&election, "c", "true").spawn();
    let start = election.diary.until_started(2);
    assert_eq!((start.id.as_str(), start.told[1].as_str()), ("b", "unclean"));
    assert!(start.at.saturating_sub(begun_at) > secs(4), "the fence command was awaited");
    second.until_logged("Earlier leader was fenced");
    wait::until("the record forgets whom it had to fence", || election.record()["unfenced"].is_null());
    let text = std::fs::read_to_string(page(&election.diary)).unwrap();
    let token = election.diary.starts()[0].token;
    let line = text.lines().find(|line| line.starts_with("b a")).unwrap();
    let told: serde_json::Value =
        serde_json::from_str(line.split_once('{').map(|(_, json)| format!("{{{json}")).unwrap().as_str()).unwrap();
    assert!(line.starts_with(&format!("b a {token} ")), "{line}");
    assert_eq!(
        (told["id"].as_str(), told["pid"].as_i64(), told["token"].as_i64()),
        (Some("a"), Some(pid.into()), Some(token))
    );
    let told = || std::fs::read_to_string(&hooks).unwrap_or_default();
    wait::until("the hooks are told", || told().lines().count() >= 4);
    assert_eq!(told().lines().collect::<Vec<_>>(), ["standby", "elected", "fenced", "started"]);
    election.diary.assert_no_overlap();
}

/// T45
#[test]
fn who_cannot_fence_does_not_lead_and_whoever_leads_next_fences_instead() {
    for what in ["sleep 999 & sleep 999", "exit 1"] {
        let election = election();
        let (_link, _) = a_leader_that_is_lost(&election);
        let second = host(&election, "b", what).option("--fence-timeout", "1s").spawn();
        until_fencing(&election, 1);
        second.until_logged("Fencing failed: it ");
        let _third = steady_host(&election, "c", "true").spawn();
        let start = election.diary.until_started(2);
        assert_eq!((start.id.as_str(), start.told[1].as_str()), ("c", "unclean"), "{what}");
        assert_eq!(fenced(&election), ["b a", "c a", "c b"], "{what}");
        election.diary.assert_no_overlap();
    }
}

/// When its process has ended, all of its hooks have been run.
#[test]
fn who_could_not_fence_does_not_tell_its_hooks_that_it_has() {
    let election = election();
    let (_link, _) = a_leader_that_is_lost(&election);
    let hooks = election.diary.directory().join("hooks");
    let hook = format!("echo $ZK_LEADER_EVENT >>{}", hooks.display());
    let mut second = host(&election, "b", "exit 1").option("--hook", &hook).spawn();
    second.until_logged("Fencing failed: it ");
    let _third = steady_host(&election, "c", "true").spawn();
    assert_eq!(election.diary.until_started(2).id, "c");
    second.signal(Signal::SIGTERM);
    assert_eq!(second.code(), 0);
    let told = std::fs::read_to_string(&hooks).unwrap();
    assert!(told.contains("elected") && !told.contains("fenced"), "{told}");
}

#[test]
fn who_dies_while_it_fences_leaves_the_work_to_the_next() {
    let election = election();
    let (_link, _) = a_leader_that_is_lost(&election);
    let second = host(&election, "b", "sleep 999").option("--fence-timeout", "10m").spawn();
    until_fencing(&election, 1);
    let sleeper = sleeper(&second);
    second.kill();
    wait::until("the fence command dies with its supervisor", || !is_alive(sleeper));
    let _third = steady_host(&election, "c", "true").spawn();
    assert_eq!(election.diary.until_started(2).id, "c");
    assert_eq!(fenced(&election), ["b a", "c a", "c b"]);
}

/// It has renewed nothing yet: the record that waits has to say whom.
#[test]
fn who_dies_while_it_waits_leaves_the_work_to_the_next() {
    let election = election();
    let link = link();
    let lost = election.host_behind(&link, "a").session_timeout("8s").spawn();
    election.diary.until_started(1);
    wait::until("a renewal has written the token", || election.record()["token"].is_i64());
    let second = host(&election, "b", "true").session_timeout("8s").spawn();
    election.until_candidates(2);
    link.stall();
    lost.kill();
    election.admin.delete(&election.first());
    wait::until("the next one waits", || election.record()["waiting_on"].is_i64());
    second.kill();
    let _third = host(&election, "c", "true").session_timeout("8s").spawn();
    assert_eq!(election.diary.until_started(2).id, "c");
    assert_eq!(fenced(&election), ["c a"]);
}

#[test]
fn who_loses_the_record_while_it_fences_fences_no_longer() {
    let election = election();
    let (_lost, _) = a_leader_that_is_lost(&election);
    let link = link();
    let slow = election.host_behind(&link, "b").option("--fence-cmd", &fencing(&election, "b", "sleep 999"));
    let second = slow.option("--fence-timeout", "10m").spawn();
    until_fencing(&election, 1);
    let sleeper = sleeper(&second);
    let _third = steady_host(&election, "c", "true").spawn();
    election.until_candidates(2);
    link.stall();
    wait::until("nobody waits for the fence command any more", || !is_alive(sleeper));
    assert_eq!(election.diary.until_started(2).id, "c");
    link.heal();
    election.until_candidates(2);
    election.diary.until_alive();
    election.diary.assert_no_overlap();
}

#[test]
fn a_stop_while_it_fences_is_obeyed_at_once_and_the_record_is_not_free() {
    let election = election();
    let (_link, _) = a_leader_that_is_lost(&election);
    let mut second = steady_host(&election, "b", "sleep 999").option("--fence-timeout", "10m").spawn();
    until_fencing(&election, 1);
    let sleeper = sleeper(&second);
    let sent_at = diary::now();
    second.signal(Signal::SIGTERM);
    assert_eq!(second.code(), 0);
    let took = diary::now().saturating_sub(sent_at);
    assert!(took < AT_ONCE, "{took:?}");
    assert!(!is_alive(sleeper));
    assert_eq!(election.state(), "held");
    assert_eq!(election.diary.starts().len(), 1);
}

#[test]
fn who_could_not_fence_stands_back_and_tries_again_and_never_fences_itself() {
    let election = election();
    let (_link, _) = a_leader_that_is_lost(&election);
    let stamps = election.diary.directory().join("stamps");
    // The second try succeeds.
    let what = format!("cut -d' ' -f1 /proc/uptime >>{0}; test $(wc -l <{0}) = 2", stamps.display());
    let host = host(&election, "b", &what).option("--stand-back", "8s").spawn();
    host.until_logged("Fencing failed: it exited with status 1");
    // Longer than the wait for the lease of its own that it left behind.
    election.until_candidates(0);
    assert_eq!(election.diary.until_started(2).id, "b");
    assert_eq!(fenced(&election), ["b a"; 2]);
    // The lease of the lost leader was over long before.
    host.until_logged("elected; a on ");
    host.until_logged("elected; b on ");
    let stamps = std::fs::read_to_string(stamps).unwrap();
    let tried_at: Vec<f64> = stamps.lines().map(|stamp| stamp.parse().unwrap()).collect();
    assert!(tried_at[1] - tried_at[0] > 7.9, "it tried again at once: {tried_at:?}");
}

/// `examples/fencing-a-database`: a real database that refuses an old token, from the moment of the fencing on.
#[test]
fn the_example_database_refuses_a_leader_whose_time_is_over() {
    let election = election();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/fencing-a-database");
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let ledger = election.diary.directory().join("ledger.db").to_str().unwrap().to_owned();
    let host = |host: Subject| {
        let host = host.option("--fence-cmd", &path("fence.sh")).command(&[&path("job.sh")]);
        host.env("LEDGER", &ledger).env("PAUSE", "0.1").spawn()
    };
    let query = |sql: &str| {
        let found = Command::new("sqlite3").args(["-cmd", ".timeout 5000", &ledger, sql]).output();
        let found = found.expect("the package sqlite3 is installed");
        String::from_utf8(found.stdout).unwrap().trim().to_owned()
    };
    let writers = || query("SELECT DISTINCT text FROM entry ORDER BY id");
    let run = |script: &str, token: &str| {
        let mut script = Command::new(path(script));
        script.args(["late"]).env("LEDGER", &ledger).env("ZK_LEADER_TOKEN", token).env("ZK_LEADER_ID", "a");
        script.env("ZK_LEADER_PREVIOUS_ID", "a").env("ZK_LEADER_PREVIOUS_TOKEN", "1").output().unwrap()
    };
    let link = link();
    let first = host(election.host_behind(&link, "a"));
    wait::until("the first host writes", || writers() == "written by a");
    let old = query("SELECT max(token) FROM entry");
    let second = host(election.steady_host("b"));
    election.until_candidates(2);
    link.stall();
    wait::until("the second host writes", || writers().ends_with("written by b"));
    assert!(second.log().contains(&format!("fenced a (token {old}) off")), "{}", second.log());
    let late = run("write.sh", &old);
    assert!(!late.status.success());
    let said = String::from_utf8_lossy(&late.stderr).into_owned();
    assert!(said.contains("refused: a newer leader has taken over"), "{said}");
    // The fencing alone is enough: nobody has written under this token yet.
    assert!(run("fence.sh", "999999999").status.success());
    assert!(!run("write.sh", &query("SELECT max(token) FROM entry")).status.success());
    assert!(!run("job.sh", &old).status.success(), "a job that cannot write fails");
    assert_eq!(query("SELECT count(*) FROM entry WHERE text = 'late'"), "0");
    drop(first);
}

/// It could never lead after a leader that was lost.
#[test]
fn a_successor_whose_fence_command_lost_its_guard_ends_and_the_next_one_fences() {
    let election = election();
    let (_link, _) = a_leader_that_is_lost(&election);
    let mut second = host(&election, "b", "sleep 999 & sleep 999").option("--fence-timeout", "10m").spawn();
    let sleeper = sleeper(&second);
    let _third = steady_host(&election, "c", "true").spawn();
    election.until_candidates(2);
    let guard = wait::for_some("the fence command has a guard", || guards_of(second.pid()).get(1).copied());
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(guard), Signal::SIGKILL).unwrap();
    assert_eq!(second.code(), 70);
    assert!(!is_alive(sleeper));
    assert_eq!(election.diary.until_started(2).id, "c");
    assert_eq!(fenced(&election), ["b a", "c a", "c b"]);
    election.diary.assert_no_overlap();
}

/// It is no standby any more: nobody may count on it, and its failure must not make it a host that has to be fenced.
#[test]
fn a_host_in_line_whose_fence_command_lost_its_guard_ends_before_it_is_needed() {
    let election = election();
    let _first = steady_host(&election, "a", "true").spawn();
    election.diary.until_started(1);
    let mut second = steady_host(&election, "b", "true").spawn();
    election.until_candidates(2);
    let guard = wait::for_some("the fence command has a guard", || guards_of(second.pid()).get(1).copied());
    let record = election.record();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(guard), Signal::SIGKILL).unwrap();
    assert_eq!(second.code(), 70);
    election.until_candidates(1);
    assert_eq!(election.record()["token"], record["token"]);
    assert_eq!(fenced(&election), Vec::<String>::new());
}

/// Its unit has `LimitFSIZE=0`, say: not even a file in memory may hold what the fence command reads.
#[test]
fn a_fence_command_is_told_whom_it_fences_where_no_file_may_be_written() {
    let election = election();
    let (_link, _) = a_leader_that_is_lost(&election);
    let mut limited = Command::new("prlimit");
    limited.arg("--fsize=0");
    let host = election.host("b").option("--fence-cmd", r#"told=$(cat); test "${told#*'"id":"a"'}" != "$told""#);
    let mut host = host.command(&["true"]).spawn_inside(limited);
    assert_eq!(host.code(), 0, "{}", host.log());
    assert!(host.log().contains("Earlier leader was fenced"), "{}", host.log());
}
