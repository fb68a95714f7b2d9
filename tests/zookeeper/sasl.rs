//! SASL DIGEST-MD5 at a server that serves nobody without it, in plain text and over TLS.

use std::fs;
use std::process::Command;
use std::sync::OnceLock;

use nix::sys::signal::Signal;
use tempfile::TempDir;
use zookeeper_client::{Client, SaslOptions};

use super::secs;
use crate::support::ensemble::Build;
use crate::support::pki::Authority;
use crate::support::ports::Port;
use crate::support::subject::is_alive;
use crate::support::{Admin, Election, Ensemble, Subject, wait};

const USER: &str = "sasl:bob:hunter2";
/// The scheme `digest` as well, with which the server has nothing to do.
const BOTH: &str = "sasl:bob:hunter2\ndigest:carl:other";

/// A server that demands a login, at a plain and a secure port.
struct Bank {
    authority: Authority,
    secure: Port,
    ensemble: Ensemble,
    _users: TempDir,
}

fn bank() -> &'static Bank {
    static BANK: OnceLock<Bank> = OnceLock::new();
    BANK.get_or_init(|| {
        let (authority, secure, users) = (Authority::new(), Port::reserve(), tempfile::tempdir().unwrap());
        let server = authority.issue("server", "DNS:localhost");
        let file = users.path().join("jaas.conf");
        let module = "org.apache.zookeeper.server.auth.DigestLoginModule";
        fs::write(&file, format!("Server {{ {module} required user_bob=\"hunter2\" user_admin=\"admin\"; }};\n")).unwrap();
        let java = [
            format!("-Djava.security.auth.login.config={}", file.display()),
            "-Dzookeeper.sessionRequireClientSASLAuth=true".to_owned(),
        ];
        let config = format!(
            "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n\
             serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
             secureClientPort={}\nsecureClientPortAddress=127.0.0.1\n\
             ssl.keyStore.location={both}\nssl.keyStore.type=PEM\nssl.trustStore.location={ca}\nssl.trustStore.type=PEM\n\
             ssl.clientAuth=none\n",
            secure.number(),
            both = server.both.display(),
            ca = authority.certificate().display(),
        );
        let ensemble = Ensemble::built(1, &Build { config, java: java.to_vec() });
        Bank { authority, secure, ensemble, _users: users }
    })
}

impl Bank {
    fn election(&self) -> Election {
        let servers = self.ensemble.connect_string();
        let connector = Client::connector().with_session_timeout(secs(30));
        let connector = connector.with_sasl(SaslOptions::digest_md5("admin", "admin"));
        Election::seen_by(Admin::through(connector, &servers), &servers)
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

#[test]
fn in_plain_text_the_login_works_too_and_whoever_was_cut_off_logs_in_again() {
    let bank = bank();
    let election = bank.election();
    let link = crate::support::Proxy::to(bank.ensemble.server(0).address());
    let host = election.host_behind(&link, "a").env("ZK_LEADER_RUN_AUTH", BOTH).session_timeout("20s").spawn();
    election.diary.until_started(1);
    link.reset();
    host.until_logged("Session was rejected");
    election.diary.until_started(2);
    election.diary.assert_no_overlap();
}

#[test]
fn a_wrong_password_an_unknown_user_and_no_login_at_all_end_us_with_77() {
    let bank = bank();
    let election = bank.election();
    for identity in ["sasl:bob:wrong", "sasl:mallory:guess", "digest:bob:hunter2"] {
        let mut host = bank.host(&election, "a").env("ZK_LEADER_RUN_AUTH", identity).spawn();
        assert_eq!(host.code(), 77, "{identity}: {}", host.log());
        assert!(host.log().contains("ZooKeeper refuses our credentials"), "{}", host.log());
        let said = Command::new(env!("CARGO_BIN_EXE_zk-leaderctl"))
            .args(["list", "--connect", &bank.ensemble.connect_string()])
            .env("ZK_LEADER_RUN_AUTH", identity)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&said.stderr);
        assert!(error.contains("refuses our credentials"), "{error}");
    }
}
