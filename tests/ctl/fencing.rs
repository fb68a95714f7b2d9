//! token-check and put --fenced: only the newest token counts, by the word of a quorum.

use super::operator::{ctl, ctl_at};
use super::{election, server};

#[test]
fn only_the_newest_token_is_valid() {
    let election = election();
    election.prepare();
    let check = |token: i64| ctl(&["token-check", &token.to_string(), &election.name]).code;
    let old = election.term().mzxid;
    assert_eq!((check(old), check(old - 1), check(old + 1_000_000)), (0, 1, 1));
    election.prepare();
    assert_eq!((check(old), check(election.term().mzxid)), (1, 0));
}

#[test]
fn a_fenced_write_is_done_under_the_newest_token_and_no_other() {
    let election = election();
    election.prepare();
    let own = format!("/own-{}", election.name);
    election.admin.create(&own, "0");
    let old = election.term().mzxid.to_string();
    let put = |token: &str, path: &str, value: &str, more: &[&str]| {
        let words = [&["put", "--fenced", "--name", &election.name, "--token", token, path, value], more].concat();
        ctl(&words).code
    };
    assert_eq!(put(&old, &own, "1", &[]), 0);
    assert_eq!(election.admin.read(&own), "1");
    election.prepare();
    assert_eq!(put(&old, &own, "2", &[]), 1, "it was deposed");
    assert_eq!(election.admin.read(&own), "1");

    let new = election.term().mzxid.to_string();
    let below = format!("{own}/below");
    assert_eq!(put(&new, &below, "3", &[]), 2, "it does not exist");
    assert_eq!(put(&old, &below, "3", &["--create"]), 1);
    assert!(!election.admin.exists(&below));
    assert_eq!(put(&new, &below, "-4", &["--create"]), 0);
    assert_eq!(election.admin.read(&below), "-4");
    for ours in ["lease", "term", "election/x"] {
        assert_eq!(put(&new, &election.path(ours), "5", &["--create"]), 64, "{ours} belongs to the election");
    }
}

#[test]
fn the_command_of_a_leader_finds_its_token_and_its_election_in_its_environment() {
    let election = election();
    election.prepare();
    let own = format!("/own-{}", election.name);
    let (token, path) = (election.term().mzxid.to_string(), format!("/zk-leader-run/{}", election.name));
    let variables = [("ZK_LEADER_TOKEN", token.as_str()), ("ZK_LEADER_PATH", path.as_str())];
    let servers = server().connect_string();
    let said = ctl_at(&servers, &["put", "--fenced", "--create", &own, "value"], &variables);
    assert_eq!((said.code, election.admin.read(&own)), (0, "value".to_owned()), "{said:?}");
    assert_eq!(ctl_at(&servers, &["token-check", &token], &variables).code, 0);
}
