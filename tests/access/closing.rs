//! How an open election is closed while it is led: what `docs/security.md` says, word for word, with `ZooKeeper`'s own client.

use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use zookeeper_client::Error;

use super::acl::tree;
use super::unauthorized_access::{CHANGES, reads};
use crate::support::documents::block_with;
use crate::support::{Admin, Election, Ensemble, Running, wait};

/// As the document has them.
const IDENTITY: &str = "digest:nightly:a-long-password";
const HELP: &str = "ZooKeeper's own client: apt-get install --no-install-recommends zookeeper";
/// Where Debian has it.
const CLIENTS: &str = "/usr/share/zookeeper/bin";

/// Runs the block of the document that has this in it.
fn do_as_told(word: &str, servers: &str) {
    let block = block_with("docs/security.md", word);
    assert_eq!(block.matches("zk1:2181").count(), 1, "{block}");
    assert!(Path::new(CLIENTS).join("zkCli.sh").exists(), "{HELP}");
    let mut shell = Command::new("bash");
    shell.args(["-euo", "pipefail", "-c", &block.replace("zk1:2181", servers)]);
    let path = std::env::var("PATH").unwrap() + ":" + CLIENTS;
    let output = shell.env("PATH", path).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{HELP}: {said}");
    assert!(!said.contains("not valid") && !said.contains("Insufficient"), "{said}");
}

struct Fleet {
    election: Election,
    hosts: Vec<Running>,
    started: usize,
}

impl Fleet {
    /// Each start wants a run of its own, as a job does every day, so that each term creates a marker.
    fn start(&mut self, id: &str, options: &[(&str, &str)], identity: &str) {
        self.started += 1;
        let host = options.iter().fold(self.election.host(id), |host, (option, value)| host.option(option, value));
        let host = host.session_timeout("20s").option("--slot", &self.started.to_string());
        self.hosts.push(host.env("ZK_LEADER_RUN_AUTH", identity).spawn());
        self.election.until_candidates(self.hosts.len());
    }

    /// The oldest is stopped, and comes back at the end of the line. The first in line leads, so after two of these both are new.
    fn restart_oldest(&mut self, id: &str, options: &[(&str, &str)], identity: &str) {
        let terms = self.election.diary.starts().len();
        let mut oldest = self.hosts.remove(0);
        oldest.signal(Signal::SIGTERM);
        assert_eq!(oldest.code(), 0);
        let start = self.election.diary.until_started(terms + 1);
        assert_eq!(start.told[1], "clean", "a handover, and no wait");
        self.start(id, options, identity);
    }

    /// Every znode and its ACL. What comes and goes with a session may go meanwhile.
    fn acls(&self) -> Vec<(String, Vec<String>)> {
        let with_acl = |path: String| self.election.admin.find_acl(&path).map(|acl| (path, acl));
        tree(&self.election, BASE).into_iter().filter_map(with_acl).collect()
    }

    fn open(&self) -> Vec<String> {
        self.acls().into_iter().filter(|(_, acl)| !is_closed(acl)).map(|(path, _)| path).collect()
    }

    fn doctor(&self) -> String {
        let mut doctor = Command::new(env!("CARGO_BIN_EXE_zk-leaderctl"));
        doctor.args(["doctor", "nightly", "--connect", self.election.servers()]).env("ZK_LEADER_RUN_AUTH", IDENTITY);
        String::from_utf8(doctor.output().unwrap().stdout).unwrap()
    }
}

const BASE: &str = "/zk-leader-run/nightly";
const CREATOR: &[(&str, &str)] = &[("--acl", "creator")];

/// Whether it is `nightly`'s alone.
fn is_closed(acl: &[String]) -> bool {
    acl.len() == 1 && acl[0].starts_with("digest:nightly:") && acl[0].ends_with(":cdrwa")
}

/// Whoever has no identity, and whoever has another one.
#[track_caller]
fn strangers_are_refused(election: &Election, servers: &str) {
    for stranger in [Admin::to(servers), Admin::known_as(servers, "nightly:guessed")] {
        for (what, attempt) in CHANGES.into_iter().chain(reads()) {
            assert_eq!(attempt(&stranger, election), Err(Error::NoAuth), "a stranger may {what}");
        }
    }
}

#[test]
fn an_open_election_is_closed_while_it_is_led_by_what_the_document_says() {
    let ensemble = Ensemble::single();
    let servers = ensemble.connect_string();
    let mut election = Election::seen_by(Admin::known_as(&servers, "nightly:a-long-password"), &servers);
    "nightly".clone_into(&mut election.name);
    let mut fleet = Fleet { election, hosts: Vec::new(), started: 0 };
    fleet.start("a", &[], "");
    fleet.election.diary.until_started(1);
    fleet.start("b", &[], "");
    // Orders that were given and taken back.
    fleet.election.admin.create(&fleet.election.path("control"), "{}");

    // 1. The identity, which changes nothing.
    fleet.restart_oldest("a", &[], IDENTITY);
    fleet.restart_oldest("b", &[], IDENTITY);
    assert!(fleet.acls().iter().all(|(_, acl)| *acl == ["world:anyone:cdrwa"]), "{:?}", fleet.acls());

    // 2. What is created from now on.
    fleet.restart_oldest("a", CREATOR, IDENTITY);
    fleet.restart_oldest("b", CREATOR, IDENTITY);
    let (candidates, open) = (fleet.election.candidates(), fleet.open());
    let closed = |below: &str| !open.contains(&format!("{BASE}/{below}"));
    assert!(candidates.iter().all(|name| closed(&format!("election/{name}"))), "{open:?}");
    assert!(closed("runs/slot-5") && !closed("runs/slot-4") && !closed("lease"), "{open:?}");

    // 3. What is there: nobody notices but strangers.
    let (term, starts) = (fleet.election.term().mzxid, fleet.election.diary.starts().len());
    do_as_told("setAcl -R", &servers);
    assert_eq!(fleet.open(), [""; 0]);
    strangers_are_refused(&fleet.election, &servers);
    let renewed = fleet.election.record_version();
    wait::until("the lease goes on being renewed", || fleet.election.record_version() > renewed + 1);
    fleet.election.diary.until_alive();
    assert_eq!((fleet.election.term().mzxid, fleet.election.diary.starts().len()), (term, starts));
    assert!(fleet.doctor().contains("only those whom the ACLs name"), "{}", fleet.doctor());

    // So it stays, whatever they create: candidates, members, markers.
    fleet.restart_oldest("a", CREATOR, IDENTITY);
    wait::until("it says who it is", || fleet.election.admin.exists(&format!("{BASE}/members/a")));
    fleet.hosts[0].kill();
    let start = fleet.election.diary.until_started(starts + 2);
    assert_eq!(start.told[1], "clean", "the releaser has the identity");
    fleet.election.until_candidates(1);
    assert_eq!(fleet.open(), [""; 0]);
    strangers_are_refused(&fleet.election, &servers);
    assert!(!fleet.hosts[1].log().contains("may change a znode"), "{}", fleet.hosts[1].log());
    fleet.election.diary.assert_no_overlap();
}
