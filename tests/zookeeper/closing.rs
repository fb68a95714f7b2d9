//! How an open election is closed while it is led: what `docs/security.md` says, word for word, with `ZooKeeper`'s own client.

use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use zookeeper_client::Error;

use super::acl::tree;
use super::documents::block_with;
use super::strangers::{CHANGES, reads};
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
}

impl Fleet {
    fn start(&mut self, id: &str, options: &[(&str, &str)], identity: &str) {
        let host = options.iter().fold(self.election.host(id), |host, (option, value)| host.option(option, value));
        self.hosts.push(host.session_timeout("20s").env("ZK_LEADER_RUN_AUTH", identity).spawn());
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
}

const BASE: &str = "/zk-leader-run/nightly";

/// Whatever is there is `nightly`'s alone.
#[track_caller]
fn all_is_closed(election: &Election) {
    for path in tree(election, BASE) {
        let acl = election.admin.acl(&path);
        let is_closed = acl.len() == 1 && acl[0].starts_with("digest:nightly:") && acl[0].ends_with(":cdrwa");
        assert!(is_closed, "{path}: {acl:?}");
    }
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
    let mut fleet = Fleet { election, hosts: Vec::new() };
    fleet.start("a", &[], "");
    fleet.election.diary.until_started(1);
    fleet.start("b", &[], "");

    // 1. The identity, which changes nothing.
    fleet.restart_oldest("a", &[], IDENTITY);
    fleet.restart_oldest("b", &[], IDENTITY);
    for path in tree(&fleet.election, BASE) {
        assert_eq!(fleet.election.admin.acl(&path), ["world:anyone:cdrwa"], "{path}");
    }

    // 2. What is there is closed: nobody notices but strangers.
    let (term, starts) = (fleet.election.term().mzxid, fleet.election.diary.starts().len());
    do_as_told("setAcl -R", &servers);
    all_is_closed(&fleet.election);
    strangers_are_refused(&fleet.election, &servers);
    let renewed = fleet.election.record_version();
    wait::until("the lease goes on being renewed", || fleet.election.record_version() > renewed + 1);
    fleet.election.diary.until_alive();
    assert_eq!((fleet.election.term().mzxid, fleet.election.diary.starts().len()), (term, starts));

    // 3. What is created from now on.
    fleet.restart_oldest("a", &[("--acl", "creator")], IDENTITY);
    fleet.restart_oldest("b", &[("--acl", "creator")], IDENTITY);
    all_is_closed(&fleet.election);
    strangers_are_refused(&fleet.election, &servers);
    assert!(fleet.hosts.iter().all(|host| !host.log().contains("may change a znode")));

    // A crash, too, ends in the next one's term.
    fleet.hosts[0].kill();
    let start = fleet.election.diary.until_started(starts + 3);
    assert_eq!(start.told[1], "clean", "the releaser has the identity");
    fleet.election.diary.assert_no_overlap();
}
