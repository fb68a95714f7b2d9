//! Mistakes and failures: one line, the right status, and never a hang.

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::thread;

use super::operator::{ctl, ctl_at};
use super::{election, link, server};
use crate::support::proxy::request;
use crate::support::subject::copy_program;
use crate::support::{Election, diary, wait};

/// Nobody listens there. A port that was free a moment ago may be another test's by now.
pub const NOBODY: &str = "127.0.0.1:1";

const ASKING: [&[&str]; 4] = [&["status"], &["list"], &["history"], &["token-check", "5"]];

#[test]
fn an_ensemble_that_cannot_be_reached_is_status_2_with_a_remedy() {
    for words in ASKING {
        let said = ctl_at(NOBODY, words, &[]);
        assert_eq!((said.code, said.output.as_str()), (2, ""), "{words:?}: {said:?}");
        assert!(said.error.contains("check --connect"), "{said:?}");
        assert_eq!(said.error.lines().count(), 1, "{said:?}");
    }
}

#[test]
fn a_server_that_refuses_is_named_with_its_reason_when_the_time_is_over() {
    let said = ctl_at(NOBODY, &["status"], &[]);
    let sentence = format!(
        "cannot reach ZooKeeper within 5s: {NOBODY}: connection refused; check --connect and the network, or raise"
    );
    assert!(said.error.contains(&sentence), "{said:?}");
}

/// The user's processes are at their limit: no thread can be started, which the client library needs. Not the server is to blame.
#[test]
fn a_host_without_room_for_a_thread_is_told_apart_from_a_server_that_makes_no_sense() {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    let program = directory.path().join("zk-leaderctl");
    copy_program(Path::new(env!("CARGO_BIN_EXE_zk-leaderctl")), &program);
    let become_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let become_user = if nix::unistd::geteuid().is_root() { &become_user[..] } else { &[] };
    let said = |question: &[&str]| {
        let mut words = [become_user, &["prlimit", "--nproc=1"]].concat().into_iter();
        let mut process = Command::new(words.next().unwrap());
        let output = process.args(words).arg(&program).args(question).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, error) = said(&["list", "--connect", &server().connect_string()]);
    assert_eq!((code, error.lines().count()), (Some(2), 1), "{error}");
    let begin = "zk-leaderctl: this host has no room for two more threads of ours (";
    assert!(error.starts_with(begin) && error.contains("; raise the limit of processes"), "{error}");
    // The file of a lease is read without one.
    let (_, error) = said(&["lease", "/nonexistent"]);
    assert!(error.contains("the lease file cannot be read"), "{error}");
}

/// As while the servers elect their leader: two tries, each with a question why, are far less.
#[test]
fn servers_that_take_nobody_for_a_while_are_tried_again_until_the_time_is_over() {
    let election = election();
    election.prepare();
    let address = relay(&election, 15);
    let said = ctl_at(&address, &["status", &election.name, "--connect-timeout", "1m"], &[]);
    assert!(said.code == 1 && said.output.contains("nobody"), "{said:?}");
}

/// Whatever the limit, it ends in the time of the test, and no longer limit is advised.
#[test]
fn what_waiting_does_not_change_is_told_at_once() {
    let asked_at = diary::now();
    let said = ctl_at("zk.invalid:2181", &["status", "--connect-timeout", "1m"], &[]);
    assert!(said.code == 2 && !said.error.contains("--connect-timeout"), "{said:?}");
    assert!(diary::now().saturating_sub(asked_at) < wait::LIMIT, "it waited: {said:?}");
}

#[test]
fn the_doctor_knows_no_election_that_is_not_there_and_names_those_that_are() {
    let election = election();
    election.prepare();
    let chroot = format!("/doctor-{}", election.name);
    for below in ["lease", "term"] {
        election.admin.create_all(&format!("{chroot}/zk-leader-run/nightly/{below}"));
    }
    let servers = format!("{}{chroot}", server().connect_string());
    let said = ctl_at(&servers, &["doctor", "nope"], &[]);
    let sentence = format!(
        "there is no election at /zk-leader-run/nope in the chroot {chroot}; zk-leaderctl list shows those that there"
    );
    let misspelt = ctl_at(&servers, &["status", "nigthly"], &[]);
    assert!(misspelt.error.contains("; did you mean 'nightly'? zk-leaderctl list shows those that"), "{misspelt:?}");
    assert!(said.code == 2 && said.output.contains(&sentence), "{said:?}");
    assert!(said.output.contains("'nightly'") && said.output.contains("a read takes "), "{said:?}");
}

/// Answers so at each connection, and closes it. No server of `ZooKeeper` listens there.
fn stranger(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            stream.read(&mut [0; 4]).unwrap_or_default();
            stream.write_all(answer.as_bytes()).unwrap_or_default();
        }
    });
    address
}

/// As with the port of the `AdminServer`.
#[test]
fn what_is_no_server_of_zookeeper_is_said_to_be_none_by_each_command() {
    let address = stranger("HTTP/1.1 400 Bad Request\r\n\r\n");
    let why = "it does not answer as ZooKeeper does; correct its port in --connect (2181 is usual";
    let said = ctl_at(&address, &["list"], &[]);
    assert!(said.code == 2 && said.error.contains(&format!("{address}: {why}")), "{said:?}");
    let said = ctl_at(&address, &["doctor"], &[]);
    assert!(said.code == 2 && !said.output.contains("whitelist"), "{said:?}");
    assert_eq!(said.output.matches(&format!("{address}: {why}")).count(), 2, "server and ensemble: {said:?}");
    let mute = stranger("");
    let said = ctl_at(&mute, &["doctor"], &[]);
    assert!(said.output.contains(&format!("{mute} hangs up without an answer; see its log, and whether")), "{said:?}");
}

/// One refuses, one takes the connection and says nothing, one has no address.
#[test]
fn without_an_ensemble_the_doctor_says_of_each_server_what_is_wrong_with_it() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let hangs = silent.local_addr().unwrap().to_string();
    let servers = format!("{NOBODY},{hangs},zk.invalid:2181");
    let said = ctl_at(&servers, &["doctor", "--connect-timeout", "2s"], &[]);
    assert_eq!((said.code, said.error.as_str()), (2, ""), "{said:?}");
    let line = |server: &str| {
        let mut lines = said.output.lines().filter(|line| line.starts_with("WRONG") && line.contains(server));
        lines.next().unwrap_or_else(|| panic!("nothing of {server}: {said:?}"))
    };
    assert!(line(&format!("{NOBODY} ")).contains("was not reached (connection refused); start it"), "{said:?}");
    assert!(line(&hangs).contains("gives no answer in time; see its log, and whether its port is right"), "{said:?}");
    let unknown = line("zk.invalid");
    assert!(unknown.contains("the name is not known") || unknown.contains("no name server answers"), "{said:?}");
    assert!(said.output.contains("check --connect and the network"), "{said:?}");

    let said = ctl_at(NOBODY, &["doctor", "--json"], &[]);
    let object = said.json();
    assert_eq!((said.code, &object["state"], &object["reason"]), (2, &"unknown".into(), &"unreachable".into()));
    assert_eq!(object["findings"][0]["grade"], "WRONG", "{object}");
}

#[test]
fn a_path_that_does_not_exist_has_no_elections() {
    let said = ctl(&["list", "--path", "/no-such-root"]);
    assert!(said.code == 2 && said.error.contains("/no-such-root does not exist"), "{said:?}");
}

#[test]
fn a_server_that_never_answers_holds_nobody_up() {
    // It takes the connection, and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let asked_at = diary::now();
    let said = ctl_at(&address, &["status", "--connect-timeout", "300ms"], &[]);
    assert!(said.code == 2 && said.error.contains("300ms"), "{said:?}");
    assert!(diary::now().saturating_sub(asked_at) < wait::LIMIT, "it waited: {said:?}");
}

/// As a busy server may do.
#[test]
fn a_server_that_closes_the_first_connection_is_asked_again() {
    let election = election();
    election.prepare();
    let address = relay(&election, 1);
    let said = ctl_at(&address, &["status", &election.name], &[]);
    assert!(said.code == 1 && said.output.contains("nobody"), "{said:?}");
}

/// Closes so many connections, and takes the later ones to the server.
fn relay(election: &Election, closed: usize) -> String {
    let (listener, server) = (TcpListener::bind("127.0.0.1:0").unwrap(), election.servers().to_owned());
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        (0..closed).for_each(|_| drop(listener.accept()));
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(&server) else { return };
            for (mut from, mut to) in [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)] {
                thread::spawn(move || std::io::copy(&mut from, &mut to));
            }
        }
    });
    address
}

#[test]
fn a_connection_that_goes_silent_between_two_answers_is_status_2() {
    let election = election();
    election.prepare();
    let link = link();
    link.hold_replies_from(&[request::GET_DATA]);
    let said = ctl_at(&link.connect_string(), &["status", &election.name, "--connect-timeout", "500ms"], &[]);
    assert!(said.code == 2 && said.error.contains("the ensemble gave no answer"), "{said:?}");
}

#[test]
fn mistakes_are_refused_with_their_remedy() {
    let long = "x".repeat(1001);
    let cases: [(&[&str], &[&str]); 17] = [
        (&["--watch", "list"], &["--watch", "belongs behind the command: zk-leaderctl list --watch"]),
        (&["list", "--root", "/a"], &["--root", "no such option; write --path and the parent of the elections"]),
        (&["status", "--root", "/a"], &["--root", "no such option; write --path and the znode of the election"]),
        (&["stauts"], &["stauts", "did you mean status?"]),
        (&["status", "--jsn"], &["--jsn", "--json"]),
        (&["status", "-o", "xml"], &["--output", "'xml'", "table, wide, json, yaml or plain"]),
        (&["status", "a/b"], &["NAME", "'a/b'", "--path"]),
        (&["status", "--path", "a"], &["--path", "'a'", "absolute"]),
        (&["status", "--path", "/a", "b"], &["NAME", "'b'", "--path"]),
        (&["status", "--connect-timeout", "0"], &["--connect-timeout", "'0'", "5s"]),
        (&["disable", "b", "--reason", &long], &["--reason", "longer than 1000 bytes"]),
        (&["disable", "b", "--reason", ""], &["--reason", "is empty", "upgrade of the database"]),
        (&["drain", "b", "--reason", " "], &["--reason", "is empty"]),
        (&["token-check"], &["TOKEN", "missing"]),
        (&["token-check", "x"], &["TOKEN", "'x'", "positive number"]),
        (&["put", "/a", "b"], &["--fenced", "put --fenced"]),
        (&["put", "--fenced", "/a", "b"], &["--token", "ZK_LEADER_TOKEN"]),
    ];
    for (words, parts) in cases {
        let said = ctl(words);
        assert_eq!((said.code, said.output.as_str()), (64, ""), "{words:?}: {said:?}");
        assert!(said.error.starts_with("zk-leaderctl: ") && said.error.lines().count() == 1, "{said:?}");
        assert!(parts.iter().all(|part| said.error.contains(part)), "{words:?}: {said:?}");
    }
}

#[test]
fn who_writes_no_command_is_shown_all_of_them() {
    let said = ctl(&[]);
    assert_eq!((said.code, said.output.as_str()), (64, ""), "{said:?}");
    assert!(said.error.starts_with("zk-leaderctl: COMMAND: no command; write one of these"), "{said:?}");
    for verb in ["status", "handover", "doctor"] {
        assert!(said.error.lines().any(|line| line.starts_with(&format!("  {verb} "))), "{verb}: {said:?}");
    }
}

#[test]
fn without_a_name_the_only_election_is_meant_and_several_are_listed() {
    let election = election();
    election.prepare();
    // Other tests have elections below the usual root.
    let chroot = format!("/alone-{}", election.name);
    election.admin.create_all(&format!("{chroot}/zk-leader-run"));
    let servers = format!("{}{chroot}", server().connect_string());
    let none = ctl_at(&servers, &["status"], &[]);
    assert!(
        none.code == 2 && none.error.contains("there is no election below") && none.error.contains(&chroot),
        "{none:?}"
    );
    for (name, code) in [("one", 1), ("two", 64)] {
        let base = format!("{chroot}/zk-leader-run/{name}");
        for below in ["lease", "term", "election"] {
            election.admin.create_all(&format!("{base}/{below}"));
        }
        election.admin.set(&format!("{base}/lease"), r#"{"v":1,"state":"free","lease_ms":5}"#);
        let said = ctl_at(&servers, &["status"], &[]);
        assert_eq!(said.code, code, "{said:?}");
    }
    let said = ctl_at(&servers, &["status"], &[]);
    assert!(said.error.contains("'one', 'two'"), "{said:?}");
    // The chroot is the root of what it looks at.
    let said = ctl_at(&servers, &["doctor", "one"], &[]);
    assert!(said.code == 0 && said.output.contains("a read takes "), "{said:?}");
    // That may not be read, and the election may.
    election.admin.set_acl(&chroot, "world", "anyone", "c");
    let said = ctl_at(&servers, &["doctor", "one"], &[]);
    assert!(said.code == 0 && said.output.contains("a read takes "), "{said:?}");
}
