//! SASL DIGEST-MD5 at a server that serves nobody without it, in plain text and over TLS.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use nix::sys::signal::Signal;
use tempfile::TempDir;
use zookeeper_client::{Client, SaslOptions};

use super::secs;
use crate::support::election::STEADY;
use crate::support::ensemble::Build;
use crate::support::pki::Authority;
use crate::support::ports::Port;
use crate::support::subject::is_alive;
use crate::support::{Admin, Election, Ensemble, Proxy, Subject, addresses, wait};

const USER: &str = "sasl:bob:hunter2";
/// The scheme `digest` as well, with which the server has nothing to do.
const BOTH: &str = "sasl:bob:hunter2\ndigest:carl:other";

/// A server that demands a login, at a plain and a secure port.
struct Bank {
    authority: Authority,
    secure: Port,
    ensemble: Ensemble,
    _users: Users,
}

const PROVIDER: &str = "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n";

/// Those whom a server knows, in a file.
pub(super) struct Users(TempDir);

impl Users {
    pub fn new() -> Self {
        let users = Self(tempfile::tempdir().unwrap());
        users.permit("hunter2");
        users
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("jaas.conf")
    }

    /// Bob's password from the next start of the server on.
    pub fn permit(&self, password: &str) {
        let module = "org.apache.zookeeper.server.auth.DigestLoginModule";
        let text = format!("Server {{ {module} required user_bob=\"{password}\" user_admin=\"admin\"; }};\n");
        fs::write(self.file(), text).unwrap();
    }

    /// `demanded`: whoever does not log in is refused.
    pub fn ensemble(&self, servers: usize, demanded: bool, config: &str) -> Ensemble {
        let java = [
            format!("-Djava.security.auth.login.config={}", self.file().display()),
            format!("-Dzookeeper.sessionRequireClientSASLAuth={demanded}"),
        ];
        Ensemble::built(servers, &Build { config: format!("{PROVIDER}{config}"), java: java.to_vec() })
    }
}

pub(super) fn election_on(ensemble: &Ensemble) -> Election {
    let servers = ensemble.connect_string();
    let connector = Client::connector().with_session_timeout(secs(30));
    let connector = connector.with_sasl(SaslOptions::digest_md5("admin", "admin"));
    Election::seen_by(Admin::through(connector, &servers), &servers)
}

fn bank() -> &'static Bank {
    static BANK: OnceLock<Bank> = OnceLock::new();
    BANK.get_or_init(Bank::new)
}

impl Bank {
    fn new() -> Self {
        let (authority, secure, users) = (Authority::new(), Port::reserve(), Users::new());
        let server = authority.issue("server", "DNS:localhost");
        let config = format!(
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
             secureClientPort={}\nsecureClientPortAddress=127.0.0.1\n\
             ssl.keyStore.location={both}\nssl.keyStore.type=PEM\nssl.trustStore.location={ca}\nssl.trustStore.type=PEM\n\
             ssl.clientAuth=none\n",
            secure.number(),
            both = server.both.display(),
            ca = authority.certificate().display(),
        );
        let ensemble = users.ensemble(1, true, &config);
        Self { authority, secure, ensemble, _users: users }
    }

    fn election(&self) -> Election {
        election_on(&self.ensemble)
    }

    /// Over TLS.
    fn host(&self, election: &Election, id: &str) -> Subject {
        let servers = format!("tcp+tls://localhost:{}", self.secure.number());
        let host = election.host_at(&servers, id).option("--tls-ca", self.authority.certificate().to_str().unwrap());
        host.env("ZK_LEADER_RUN_AUTH", USER)
    }
}

#[test]
fn an_election_over_tls_and_sasl_works_and_a_killed_supervisors_lease_is_freed() {
    let bank = bank();
    let election = bank.election();
    let first = bank.host(&election, "a").session_timeout("20s").spawn();
    election.diary.until_started(1);
    let mut second = bank.host(&election, "b").session_timeout("20s").spawn();
    election.until_candidates(2);
    let guard = first.guard_pid();
    first.kill();
    assert_eq!(election.diary.until_started(2).told[1], "clean", "the releaser logs in, too");
    wait::until("the releaser is done", || !is_alive(guard));
    second.signal(Signal::SIGTERM);
    assert_eq!(second.code(), 0);
    election.diary.assert_no_overlap();
}

/// The session that owns the only candidate.
fn owner(election: &Election) -> i64 {
    election.admin.stat(&election.first()).unwrap().ephemeral_owner
}

/// Renewed by whoever leads, from now on.
#[track_caller]
fn until_renewed(election: &Election) {
    election.until_renewed(1);
}

#[test]
fn a_leader_that_was_cut_off_logs_in_again_and_keeps_its_session_and_its_command() {
    let bank = bank();
    let election = bank.election();
    let link = Proxy::to(bank.ensemble.server(0).address());
    let host = election.host_behind(&link, "a").env("ZK_LEADER_RUN_AUTH", BOTH).session_timeout(STEADY).spawn();
    let start = election.diary.until_started(1);
    let (session, places) = (owner(&election), election.candidates());
    for cut in 1..=4 {
        if cut % 2 == 0 {
            link.reset();
        } else {
            link.cut();
            host.until_logged_times("leading -> paused", cut);
            wait::pass(secs(1));
            link.heal();
        }
        host.until_logged_times("paused -> leading", cut);
        until_renewed(&election);
        assert_eq!((owner(&election), election.candidates()), (session, places.clone()), "cut {cut}");
    }
    let starts = election.diary.starts();
    assert_eq!((starts.len(), starts[0].token), (1, start.token), "{}", host.log());
    assert!(!host.log().contains("Session ended"), "{}", host.log());
}

#[test]
fn over_tls_too_a_server_that_was_restarted_costs_a_login_and_not_the_session() {
    let bank = Bank::new();
    let election = bank.election();
    let host = bank.host(&election, "a").session_timeout("60s").spawn();
    election.diary.until_started(1);
    let session = owner(&election);
    bank.ensemble.server(0).restart();
    host.until_logged_times("paused -> leading", 1);
    until_renewed(&election);
    assert_eq!((owner(&election), election.diary.starts().len()), (session, 1), "{}", host.log());
}

#[test]
fn behind_one_name_a_silent_server_does_not_hide_the_others_from_who_logs_in() {
    let bank = bank();
    let election = bank.election();
    let (servers, wrapper) = addresses::two_silent_and("ensemble", bank.ensemble.server(0).address(), &election);
    let subject =
        election.host_at(&servers, "a").env("ZK_LEADER_RUN_AUTH", USER).session_timeout("6s").command(&["true"]);
    let mut host = subject.spawn_inside(wrapper);
    assert_eq!(host.code(), 0, "{}", host.log());
}

/// Another server takes the session up, and the last one is told that it has moved.
#[test]
fn a_session_with_a_login_moves_to_another_server() {
    let users = Users::new();
    let ensemble = users.ensemble(3, true, "");
    let election = election_on(&ensemble);
    let links = [0, 1].map(|index| Proxy::to(ensemble.server(index).address()));
    links[1].cut();
    let both = links.each_ref().map(Proxy::connect_string).join(",");
    let host = election.host_at(&both, "a").env("ZK_LEADER_RUN_AUTH", USER).session_timeout(STEADY).spawn();
    election.diary.until_started(1);
    let session = owner(&election);
    for (cut, from) in [0, 1, 0].into_iter().enumerate() {
        links[1 - from].heal();
        links[from].cut();
        host.until_logged_times("paused -> leading", cut + 1);
        until_renewed(&election);
        assert_eq!((owner(&election), election.diary.starts().len()), (session, 1), "{}", host.log());
    }
}

/// What changed meanwhile is seen, and what changes afterwards too: nothing that was watched is forgotten.
#[test]
fn a_waiter_that_was_cut_off_while_its_predecessor_went_away_is_woken_after_its_login() {
    let bank = bank();
    for meanwhile in [true, false] {
        let election = bank.election();
        let link = Proxy::to(bank.ensemble.server(0).address());
        let mut first = bank.host(&election, "a").session_timeout(STEADY).spawn();
        election.diary.until_started(1);
        let second = election.host_behind(&link, "b").env("ZK_LEADER_RUN_AUTH", USER).session_timeout(STEADY).spawn();
        election.until_candidates(2);
        let places = election.candidates();
        link.cut();
        second.until_logged("Contact with ZooKeeper was lost");
        if !meanwhile {
            link.heal();
            second.until_logged("Contact with ZooKeeper was restored");
        }
        first.signal(Signal::SIGTERM);
        assert_eq!(first.code(), 0);
        link.heal();
        let start = election.diary.until_started(2);
        assert_eq!((start.id.as_str(), &start.told[2]), ("b", &places[1]), "the same candidate: {}", second.log());
        election.diary.assert_no_overlap();
    }
}

/// The watch of a leader on its own candidate, which only a look sets again.
#[test]
fn a_leader_that_has_logged_in_again_is_still_asked_to_yield() {
    let bank = bank();
    let election = bank.election();
    let link = Proxy::to(bank.ensemble.server(0).address());
    let host = election.host_behind(&link, "a").env("ZK_LEADER_RUN_AUTH", USER).session_timeout(STEADY);
    let host = host.option("--recipe", "curator-lock").spawn();
    election.diary.until_started(1);
    link.reset();
    host.until_logged_times("paused -> leading", 1);
    until_renewed(&election);
    election.admin.set(&election.first(), "__REVOKE__");
    host.until_logged("another contender asked for the lock");
    let said = Command::new(env!("CARGO_BIN_EXE_zk-leaderctl"))
        .args(["disable", &election.name, "--reason", "test", "--connect", &bank.ensemble.connect_string()])
        .env("ZK_LEADER_RUN_AUTH", USER)
        .output()
        .unwrap();
    assert!(said.status.success(), "{said:?}");
    election.diary.until_nobody_lives();
}

#[test]
fn a_session_with_a_login_that_expired_while_it_was_cut_off_costs_a_new_candidate() {
    let bank = bank();
    let election = bank.election();
    let link = Proxy::to(bank.ensemble.server(0).address());
    let host = election.host_behind(&link, "a").env("ZK_LEADER_RUN_AUTH", USER).spawn();
    let before = election.diary.until_started(1);
    link.stall();
    election.until_candidates(0);
    link.heal();
    let after = election.diary.until_started(2);
    assert_ne!(before.told[2], after.told[2]);
    assert_eq!(election.candidates(), [after.told[2].clone()], "{}", host.log());
    election.diary.assert_no_overlap();
}

#[test]
fn a_wrong_password_an_unknown_user_and_no_login_at_all_end_us_with_77() {
    let bank = bank();
    let election = bank.election();
    for identity in ["sasl:bob:wrong", "sasl:mallory:guess", "digest:bob:hunter2"] {
        let mut host = bank.host(&election, "a").env("ZK_LEADER_RUN_AUTH", identity).spawn();
        assert_eq!(host.code(), 77, "{identity}: {}", host.log());
        assert!(host.log().contains("ZooKeeper refuses the credentials"), "{}", host.log());
        let said = Command::new(env!("CARGO_BIN_EXE_zk-leaderctl"))
            .args(["list", "--connect", &bank.ensemble.connect_string()])
            .env("ZK_LEADER_RUN_AUTH", identity)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&said.stderr);
        assert!(error.contains("refuses our credentials"), "{error}");
    }
}

/// ZOOKEEPER-4839, as docs/security.md says: until 3.9.3 the servers look an unknown user's password up under the last name
/// that they knew.
#[test]
fn an_unknown_user_gets_in_with_the_last_ones_password_before_3_9_3() {
    let users = Users::new();
    let ensemble = users.ensemble(1, true, "");
    let login = |identity: &str| {
        let mut said = Command::new(env!("CARGO_BIN_EXE_zk-leaderctl"));
        let said = said.args(["list", "--connect", &ensemble.connect_string()]).env("ZK_LEADER_RUN_AUTH", identity);
        // There is no election to list; a refused login is status 77.
        said.status().unwrap().code() != Some(77)
    };
    assert!(!login("sasl:mallory:hunter2"), "nobody has logged in before");
    assert!(login("sasl:bob:hunter2"));
    let version = wait::for_some("the server answers", || ensemble.server(0).ask("srvr"));
    let is_mended = version.starts_with("Zookeeper version: 3.9.");
    assert_eq!(login("sasl:mallory:hunter2"), !is_mended, "{version}");
    assert!(!login("sasl:mallory:guess") && !login("sasl:admin:hunter2"), "a known name has its own password");
}
