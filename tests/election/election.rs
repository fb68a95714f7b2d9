//! Who leads, in which order, and what is written down about it.

use nix::sys::signal::Signal;

use super::{election, secs};
use crate::support::election::sequence;
use crate::support::{Subject, subject, wait};

#[test]
fn one_host_runs_the_command_and_the_others_wait() {
    let election = election();
    let hosts: Vec<_> = ["a", "b", "c"].map(|id| election.steady_host(id).spawn()).into();
    election.until_candidates(3);
    election.diary.until_started(1);
    wait::pass(secs(1));
    assert_eq!(election.diary.starts().len(), 1);
    assert_eq!(election.candidates().len(), 3);
    drop(hosts);
}

#[test]
fn hosts_take_turns_in_the_order_in_which_they_came() {
    let election = election();
    let mut hosts = Vec::new();
    for (count, id) in ["a", "b", "c", "d"].into_iter().enumerate() {
        hosts.push(election.steady_host(id).spawn());
        election.until_candidates(count + 1);
    }
    for (turn, mut host) in hosts.into_iter().enumerate() {
        election.diary.until_started(turn + 1);
        host.signal(Signal::SIGTERM);
        assert_eq!(host.code(), 0);
    }
    let ids: Vec<_> = election.diary.starts().into_iter().map(|start| start.id).collect();
    assert_eq!(ids, ["a", "b", "c", "d"]);
    election.diary.assert_no_overlap();
    assert_eq!(election.candidates(), [""; 0]);
}

#[test]
fn the_fencing_token_grows_from_term_to_term_and_is_the_mzxid_of_the_term() {
    let election = election();
    let mut last = 0;
    for turn in 1..=4 {
        let mut host = election.host("a").session_timeout("8s").spawn();
        let start = election.diary.until_started(turn);
        let term = election.term();
        assert_eq!(start.token, term.mzxid);
        assert!(start.token > last, "{} after {last}", start.token);
        wait::until("the first renewal says it", || election.record()["token"] == start.token);
        assert_eq!(usize::try_from(term.version).unwrap(), turn, "the data version counts the terms");
        last = start.token;
        host.signal(Signal::SIGTERM);
        host.code();
    }
}

#[test]
fn the_lease_record_says_who_holds_it_on_which_terms_and_then_that_it_is_free() {
    let election = election();
    let mut host = election.steady_host("the-holder").spawn();
    let start = election.diary.until_started(1);
    // A take-over does not know its own token yet.
    wait::until("the first renewal says the token", || election.record()["token"] == start.token);
    let record = election.record();
    assert_eq!((&record["v"], &record["state"]), (&1.into(), &"held".into()));
    assert_eq!((&record["holder"]["id"], &record["holder"]["pid"]), (&"the-holder".into(), &host.pid().into()));
    let hostname = nix::unistd::gethostname().unwrap().into_string().unwrap();
    assert_eq!(record["holder"]["host"], hostname);
    assert!(!record["holder"]["nonce"].as_str().unwrap().is_empty());
    assert_eq!(record["lease_ms"], 20_000);
    assert_eq!((&record["guarantee"], &record["recipe"]), (&"at-most-one".into(), &"sequential".into()));
    assert_eq!(record["leaders"], 1);
    host.signal(Signal::SIGTERM);
    host.code();
    assert_eq!(election.state(), "free");
}

#[test]
fn the_command_is_told_about_its_term() {
    let election = election();
    let mut first = election.steady_host("a").spawn();
    let term = election.diary.until_started(1);
    let candidate = election.candidates().pop().unwrap();
    let owner = election.admin.stat(&election.first()).unwrap().ephemeral_owner;
    let session = u64::from_str_radix(term.told[3].trim_start_matches("0x"), 16).unwrap();
    assert_eq!((term.id.as_str(), term.told[0].as_str(), term.told[1].as_str()), ("a", "1", "first"));
    assert_eq!((&term.told[2], session), (&candidate, u64::from_ne_bytes(owner.to_ne_bytes())));
    let script = "test \"$ZK_LEADER_PATH\" = \"$0\" && echo $ZK_LEADER_TERM $ZK_LEADER_TAKEOVER";
    let base = format!("/zk-leader-run/{}", election.name);
    let mut second = election.steady_host("b").command(&["sh", "-c", script, &base]).spawn();
    election.until_candidates(2);
    first.signal(Signal::SIGTERM);
    assert_eq!(second.code(), 0);
    assert_eq!(second.output(), "2 clean\n");
    first.code();
}

#[test]
fn a_candidate_has_the_name_and_the_data_of_curators_leader_latch() {
    let election = election();
    let _host = election.steady_host("some-id").spawn();
    election.diary.until_started(1);
    let name = election.candidates().pop().unwrap();
    let middle = name.strip_prefix("_c_").unwrap();
    let (uuid, digits) = middle.split_once("-latch-").unwrap();
    assert_eq!((uuid.len(), uuid.matches('-').count(), digits.len()), (36, 4, 10), "{name}");
    assert!(sequence(&name).is_some());
    assert_eq!(election.admin.read(&election.first()), "some-id");
}

/// T24
#[test]
fn foreign_children_of_the_election_are_ignored_and_none_is_created() {
    let election = election();
    election.prepare();
    for foreign in ["foo", "n_x", "config", "_c_without-a-number-latch-", "größe-0000000000"] {
        election.admin.create(&election.path(&format!("election/{foreign}")), "");
    }
    let mut first = election.steady_host("a").spawn();
    election.diary.until_started(1);
    election.until_candidates(6);
    let _second = election.steady_host("b").spawn();
    election.until_candidates(7);
    first.signal(Signal::SIGTERM);
    assert_eq!(first.code(), 0);
    election.diary.until_started(2);
    let names = election.candidates();
    assert_eq!(names.iter().filter(|name| name.starts_with("_c_") && sequence(name).is_some()).count(), 1, "{names:?}");
    assert_eq!(names.len(), 6, "{names:?}");
    election.diary.assert_no_overlap();
}

/// T31
#[test]
fn a_host_loses_and_wins_ten_times_in_one_process() {
    let election = election();
    let host = election.steady_host("a").spawn();
    for term in 1..=10 {
        election.diary.until_started(term);
        election.admin.delete(&election.first());
    }
    election.diary.until_started(11);
    election.diary.assert_no_overlap();
    assert_eq!(election.candidates().len(), 1);
    assert!(subject::is_alive(host.pid()));
}

/// T47
#[test]
fn an_inner_run_tells_its_command_of_the_inner_term() {
    let (outer, inner) = (election(), election());
    let script = "echo $ZK_LEADER_ID $ZK_LEADER_TOKEN $ZK_LEADER_PATH; kill -TERM $$";
    let nested = inner.steady_host("inner").command(&["sh", "-c", script]).to_process();
    let words: Vec<_> = std::iter::once(nested.get_program()).chain(nested.get_args()).collect();
    let words: Vec<_> = words.into_iter().map(|word| word.to_str().unwrap()).collect();
    let mut run = outer.steady_host("outer").command(&words).spawn();
    assert_eq!(run.code(), 128 + 15, "the inner command's death by a signal passes through both: {}", run.log());
    let token = inner.term().mzxid;
    assert_ne!(token, outer.term().mzxid);
    assert_eq!(run.output(), format!("inner {token} /zk-leader-run/{}\n", inner.name));
    assert_eq!((outer.state(), inner.state()), ("free".into(), "free".into()));
}

#[test]
fn elections_of_different_names_know_nothing_of_each_other() {
    let (one, other) = (election(), election());
    let hosts = [one.steady_host("a"), other.steady_host("a")].map(Subject::spawn);
    one.diary.until_started(1);
    other.diary.until_started(1);
    drop(hosts);
}

#[test]
fn a_chroot_that_does_not_exist_is_created_with_a_warning() {
    let election = election();
    let servers = format!("{}/made/by/the-test", super::server().connect_string());
    let mut host = Subject::new(&servers, &election.name, "a").command(&["true"]).spawn();
    assert_eq!(host.code(), 0, "{}", host.log());
    let base = format!("/made/by/the-test/zk-leader-run/{}", election.name);
    assert!(election.admin.read(&format!("{base}/lease")).contains("free"));
    let warning = "the chroot /made/by/the-test did not exist and was created";
    assert_eq!(host.log().matches(warning).count(), 1, "{}", host.log());
    let mut next = Subject::new(&servers, &format!("{}-next", election.name), "b").command(&["true"]).spawn();
    assert_eq!(next.code(), 0, "{}", next.log());
    assert!(!next.log().contains(warning), "{}", next.log());
}
