//! What somebody can do who reaches the ensemble, and has none of the identities that an election is closed for: each
//! attempt with a plain client, as he would make it.

use std::process::Command;
use std::thread;

use zookeeper_client::{Acls, CreateMode, Error};

use super::{link, server};
use crate::support::{Admin, Election, Running, wait};

/// Of the hosts, in `--auth-file`; and as `zkCli.sh addauth digest` takes it.
const HOSTS: (&str, &str) = ("digest:hosts:secret", "hosts:secret");

/// A closed election with a leader and one who waits, seen by who shares their identity.
struct Closed {
    election: Election,
    leader: Running,
    _next: Running,
}

fn closed(acl: &str) -> Closed {
    let servers = server().connect_string();
    let election = Election::seen_by(Admin::known_as(&servers, HOSTS.1), &servers);
    let contender = |id| election.steady_host(id).option("--acl", acl).env("ZK_LEADER_RUN_AUTH", HOSTS.0);
    assert_eq!(contender("prepares").command(&["true"]).spawn().code(), 0);
    // Orders that were given and taken back.
    assert_eq!(ctl(&["disable", &election.name, "--reason", "a test"], HOSTS.0), Some(0));
    assert_eq!(ctl(&["enable", &election.name], HOSTS.0), Some(0));
    let leader = contender("a").spawn();
    election.diary.until_started(1);
    let next = contender("b").spawn();
    election.until_candidates(2);
    let members = election.path("members/b");
    wait::until("the next in line has said who it is", || election.admin.exists(&members));
    Closed { election, leader, _next: next }
}

/// The status of `zk-leaderctl`.
fn ctl(words: &[&str], identity: &str) -> Option<i32> {
    let mut process = Command::new(env!("CARGO_BIN_EXE_zk-leaderctl"));
    process.env("ZK_LEADER_RUN_CONNECT", server().connect_string()).env("ZK_LEADER_RUN_AUTH", identity);
    process.args(words).output().unwrap().status.code()
}

pub(super) type Attempt = (&'static str, fn(&Admin, &Election) -> Result<(), Error>);

fn set(stranger: &Admin, path: &str, data: &'static str) -> Result<(), Error> {
    stranger.ask(path, move |client, path| async move { client.set_data(&path, data.as_bytes(), None).await.map(drop) })
}

fn create(stranger: &Admin, path: &str, mode: CreateMode) -> Result<(), Error> {
    let options = mode.with_acls(Acls::anyone_all());
    stranger.ask(path, move |client, path| async move { client.create(&path, b"{}", &options).await.map(drop) })
}

fn delete(stranger: &Admin, path: &str) -> Result<(), Error> {
    stranger.ask(path, |client, path| async move { client.delete(&path, None).await })
}

fn open(stranger: &Admin, path: &str) -> Result<(), Error> {
    stranger.ask(path, |client, path| async move { client.set_acl(&path, &Acls::anyone_all(), None).await.map(drop) })
}

const FREE: &str = r#"{"v":1,"state":"free","lease_ms":1}"#;

/// Everything that would end a term, start a second command, or hold the election up.
pub(super) const CHANGES: [Attempt; 14] = [
    ("end the term by deleting its candidate", |stranger, election| delete(stranger, &election.first())),
    ("forge a free record", |stranger, election| set(stranger, &election.path("lease"), FREE)),
    ("forge a term", |stranger, election| set(stranger, &election.path("term"), "{}")),
    ("delete the record", |stranger, election| delete(stranger, &election.path("lease"))),
    ("delete the term", |stranger, election| delete(stranger, &election.path("term"))),
    ("delete the election", |stranger, election| delete(stranger, &election.path("election"))),
    ("stand in line for ever", |stranger, election| {
        create(
            stranger,
            &election.path("election/_c_00000000-0000-0000-0000-000000000000-latch-"),
            CreateMode::PersistentSequential,
        )
    }),
    ("give orders", |stranger, election| create(stranger, &election.path("control"), CreateMode::Persistent)),
    ("change the orders", |stranger, election| set(stranger, &election.path("control"), "{}")),
    ("ask for the leadership", |stranger, election| {
        create(stranger, &election.path("preemption"), CreateMode::Ephemeral)
    }),
    ("take another one's id", |stranger, election| delete(stranger, &election.path("members/b"))),
    ("open the base", |stranger, election| open(stranger, election.path("").trim_end_matches('/'))),
    ("open the record", |stranger, election| open(stranger, &election.path("lease"))),
    ("delete and forge in one transaction", delete_and_forge),
];

fn delete_and_forge(stranger: &Admin, election: &Election) -> Result<(), Error> {
    let (candidate, lease) = (election.first(), election.path("lease"));
    stranger.ask(&candidate, |client, candidate| async move {
        let mut multi = client.new_multi_writer();
        multi.add_delete(&candidate, None)?;
        multi.add_set_data(&lease, FREE.as_bytes(), None)?;
        multi.commit().await.map(drop).map_err(Error::from)
    })
}

pub(super) fn reads() -> [Attempt; 4] {
    fn read(stranger: &Admin, path: &str) -> Result<(), Error> {
        stranger.ask(path, |client, path| async move { client.get_data(&path).await.map(drop) })
    }
    [
        ("read the record", |stranger, election| read(stranger, &election.path("lease"))),
        ("read the term", |stranger, election| read(stranger, &election.path("term"))),
        ("read the orders", |stranger, election| read(stranger, &election.path("control"))),
        ("see the line", |stranger, election| {
            let directory = election.path("election");
            stranger.ask(&directory, |client, path| async move { client.list_children(&path).await.map(drop) })
        }),
    ]
}

/// Whoever has no identity, and whoever has another one.
fn strangers() -> [Admin; 2] {
    let servers = server().connect_string();
    [Admin::to(&servers), Admin::known_as(&servers, "hosts:guessed")]
}

#[test]
fn a_stranger_can_change_nothing_in_a_closed_election_and_see_nothing() {
    let Closed { election, leader, .. } = closed("creator");
    let (term, line) = (election.term(), election.candidates());
    for stranger in strangers() {
        for (what, attempt) in CHANGES.into_iter().chain(reads()) {
            assert_eq!(attempt(&stranger, &election), Err(Error::NoAuth), "a stranger may {what}");
        }
    }
    assert_eq!((election.term(), election.candidates()), (term, line));
    assert_eq!((election.state().as_str(), election.diary.starts().len()), ("held", 1), "{}", leader.log());
}

#[test]
fn who_may_read_can_look_and_nothing_else() {
    let Closed { election, .. } = closed("creator,world:anyone:r");
    for stranger in strangers() {
        for (what, attempt) in CHANGES {
            assert_eq!(attempt(&stranger, &election), Err(Error::NoAuth), "a stranger may {what}");
        }
        for (what, attempt) in reads() {
            assert_eq!(attempt(&stranger, &election), Ok(()), "a reader may not {what}");
        }
    }
    assert_eq!(election.diary.starts().len(), 1);
}

/// The attempts are real ones: where everyone may do everything, each of them succeeds.
#[test]
fn in_an_open_election_every_attempt_succeeds_but_those_that_the_content_forbids() {
    let servers = server().connect_string();
    // A directory with children is not for deleting.
    let attempts = CHANGES.into_iter().chain(reads()).filter(|(what, _)| *what != "delete the election");
    thread::scope(|scope| {
        for (what, attempt) in attempts {
            let servers = &servers;
            scope.spawn(move || {
                let election = Election::on(servers);
                let _leader = election.steady_host("a").spawn();
                election.diary.until_started(1);
                wait::until("a member is there", || election.admin.exists(&election.path("members/a")));
                election.admin.create(&election.path("members/b"), "{}");
                if what != "give orders" {
                    election.admin.create(&election.path("control"), "{}");
                }
                assert_eq!(attempt(&Admin::to(servers), &election), Ok(()), "{what}");
            });
        }
    });
}

/// Nothing undoes a forged record: two commands run. A resource that checks the token obeys the newest leader alone, and
/// whoever forges the term takes the right to write from that one, too, but gives it to nobody.
#[test]
fn who_forges_records_gives_no_leader_a_token_that_is_good_again() {
    let servers = server().connect_string();
    let (election, stranger, link) = (Election::on(&servers), Admin::to(&servers), link());
    let own = format!("/own-{}", election.name);
    election.admin.create(&own, "0");
    let may_write = |token: i64| {
        let token = token.to_string();
        let written = ctl(&["put", "--fenced", "--name", &election.name, "--token", &token, &own, &token], "");
        let checked = ctl(&["token-check", &token, &election.name], "");
        assert_eq!(written, checked);
        written == Some(0)
    };
    let witness = ["ignore-term"];
    let _first = election.host_behind(&link, "a").session_timeout("20s").witness(&election.diary, &witness).spawn();
    let first = election.diary.until_started(1).token;
    assert!(may_write(first));
    // It learns nothing, and runs on.
    link.stall();
    assert_eq!(delete_and_forge(&stranger, &election), Ok(()));
    let _second = election.host("b").session_timeout("20s").spawn();
    election.diary.until_noted("OVERLAP");
    let second = election.term().mzxid;
    assert_eq!((may_write(first), may_write(second)), (false, true));
    set(&stranger, &election.path("term"), "{}").unwrap();
    assert_eq!((may_write(first), may_write(second)), (false, false));
    assert_eq!(election.admin.read(&own), second.to_string());
}
