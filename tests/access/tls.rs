//! TLS with real servers that demand a certificate of ours: what works, what each mistake is told, and that renewed files
//! count without a restart.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;

use super::secs;
use crate::support::election::STEADY;
use crate::support::ensemble::Build;
use crate::support::pki::{Authority, Issued};
use crate::support::ports::Port;
use crate::support::subject::is_alive;
use crate::support::{Election, Ensemble, Subject, addresses, diary, wait};

/// A server with a plain and a secure port, certified for `localhost` only, and our own certificate.
pub(super) struct Site {
    pub authority: Authority,
    pub ours: Issued,
    pub secure: Port,
    pub ensemble: Ensemble,
}

impl Site {
    pub fn new(authority: Authority, server: &Issued) -> Self {
        Self::built(authority, server, &[])
    }

    /// With more options for java.
    pub fn built(authority: Authority, server: &Issued, java: &[&str]) -> Self {
        let secure = Port::reserve();
        let ours = authority.issue("ours", "DNS:client");
        let config = config(&secure, server, &authority);
        let ensemble = Ensemble::built(1, &Build { config, java: java.iter().map(|&option| option.into()).collect() });
        Self { authority, ours, secure, ensemble }
    }

    /// Its name at the secure port.
    pub fn localhost(&self) -> String {
        format!("tcp+tls://localhost:{}", self.secure.number())
    }

    /// An election on it, seen through its plain port.
    pub fn election(&self) -> Election {
        Election::on(&self.ensemble.connect_string())
    }

    pub fn host(&self, election: &Election, id: &str) -> Subject {
        self.trusting(election.host_at(&self.localhost(), id).session_timeout(STEADY))
            .option("--tls-cert", text(&self.ours.certificate))
            .option("--tls-key", text(&self.ours.key))
    }

    fn trusting(&self, host: Subject) -> Subject {
        host.option("--tls-ca", text(&self.authority.certificate()))
    }

    pub fn ctl(&self, servers: &str, words: &[&str]) -> Output {
        let mut process = Command::new(env!("CARGO_BIN_EXE_zk-leaderctl"));
        process.args(words).args(["--connect", servers, "--tls-ca", text(&self.authority.certificate())]);
        process.args(["--tls-cert", text(&self.ours.certificate), "--tls-key", text(&self.ours.key)]);
        process.output().unwrap()
    }
}

pub(super) fn config(secure: &Port, server: &Issued, trusted: &Authority) -> String {
    format!(
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
         secureClientPort={}\nsecureClientPortAddress=127.0.0.1\n\
         ssl.keyStore.location={}\nssl.keyStore.type=PEM\nssl.trustStore.location={}\nssl.trustStore.type=PEM\n\
         ssl.clientAuth=need\n",
        secure.number(),
        server.both.display(),
        trusted.certificate().display(),
    )
}

pub(super) fn site() -> &'static Site {
    static SITE: OnceLock<Site> = OnceLock::new();
    SITE.get_or_init(|| {
        let authority = Authority::new();
        let server = authority.issue("server", "DNS:localhost");
        Site::new(authority, &server)
    })
}

pub(super) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// It ends with 77, and says this.
#[track_caller]
fn is_refused(host: Subject, reason: &str) {
    let mut host = host.command(&["true"]).spawn();
    assert_eq!(host.code(), 77, "{}", host.log());
    assert!(host.log().contains(reason), "{reason}:\n{}", host.log());
    assert!(host.log().contains("the TLS connection failed"), "{}", host.log());
}

#[test]
fn an_election_over_tls_works_and_a_killed_supervisors_lease_is_freed() {
    let site = site();
    let election = site.election();
    let first = site.host(&election, "a").session_timeout("20s").spawn();
    election.diary.until_started(1);
    let mut second = site.host(&election, "b").session_timeout("20s").spawn();
    election.until_candidates(2);
    let guard = first.guard_pid();
    first.kill();
    assert_eq!(election.diary.until_started(2).told[1], "clean", "the releaser has the certificates, too");
    wait::until("the releaser is done", || !is_alive(guard));
    let said = site.ctl(&site.localhost(), &["status", &election.name]);
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    let said = site.ctl(&site.localhost(), &["doctor", &election.name]);
    assert!(String::from_utf8_lossy(&said.stdout).contains("is a standalone server, version 3."), "{said:?}");
    second.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(second.code(), 0);
    election.diary.assert_no_overlap();
}

/// The name itself is connected to, because the certificate is for it.
#[test]
fn of_the_addresses_of_one_name_those_that_refuse_are_passed_over() {
    let site = site();
    let election = site.election();
    let (servers, wrapper) = addresses::one_that_refuses_and("localhost", site.secure.address(), &election);
    let host = site.host(&election, "a").option("--connect", &format!("tcp+tls://{servers}")).command(&["true"]);
    let mut host = host.spawn_inside(wrapper);
    assert_eq!(host.code(), 0, "{}", host.log());
}

#[test]
fn one_connect_string_may_name_servers_with_and_without_tls() {
    let site = site();
    let plain = site.ensemble.connect_string();
    let nobody = Port::reserve();
    for servers in [
        format!("tcp://{},{}", nobody.address(), site.localhost()),
        format!("tcp+tls://localhost:{},{plain}", nobody.number()),
        format!("{},{plain}/chroot", site.localhost()),
    ] {
        let election = site.election();
        let mut host = site.host(&election, "a").option("--connect", &servers).command(&["true"]).spawn();
        assert_eq!(host.code(), 0, "{servers}: {}", host.log());
    }
    let election = site.election();
    let servers = format!("localhost:{}", site.secure.number());
    let mut host = site.host(&election, "a").option("--connect", &servers).flag("--tls").command(&["true"]).spawn();
    assert_eq!(host.code(), 0, "{}", host.log());
}

#[test]
fn each_reason_why_tls_does_not_come_about_is_told_and_ends_with_77() {
    let (site, election) = (site(), site().election());
    let with_us = |servers: &str| site.host(&election, "a").option("--connect", servers);
    let without_us = || site.trusting(election.host_at(&site.localhost(), "a"));
    is_refused(without_us(), "it demands a certificate of ours; add --tls-cert and --tls-key");

    let stranger = Authority::new();
    let untrusted = stranger.certificate();
    is_refused(
        with_us(&site.localhost()).option("--tls-ca", text(&untrusted)),
        "is not signed by an authority in --tls-ca",
    );

    let unknown = stranger.issue("unknown", "DNS:client");
    let host = without_us().option("--tls-cert", text(&unknown.certificate)).option("--tls-key", text(&unknown.key));
    is_refused(host, "it does not accept the certificate in --tls-cert");

    let by_address = format!("tcp+tls://127.0.0.1:{}", site.secure.number());
    is_refused(with_us(&by_address), "its certificate is for another name");
    let mut careless = with_us(&by_address).flag("--tls-any-name").command(&["true"]).spawn();
    assert_eq!(careless.code(), 0, "{}", careless.log());
    let mut careless = with_us(&by_address).flag("--tls-any-name").option("--tls-ca", text(&untrusted)).spawn();
    assert_eq!(careless.code(), 77, "{}", careless.log());

    let plain = site.ensemble.server(0).address().port();
    is_refused(with_us(&format!("tcp+tls://localhost:{plain}")), "it does not speak TLS on that port");
    is_refused(
        with_us(&format!("localhost:{}", site.secure.number())),
        "it speaks TLS on that port; write tcp+tls://localhost:",
    );

    // `status` is a question with the answers yes and no.
    for (verb, status) in [("list", 77), ("history", 77), ("disable", 77), ("handover", 77), ("status", 2)] {
        let said = site.ctl(&by_address, &[verb]);
        let error = String::from_utf8_lossy(&said.stderr);
        assert!(error.contains("its certificate is for another name"), "{error}");
        assert_eq!(said.status.code(), Some(status), "{verb}: {error}");
    }
    let said = String::from_utf8(site.ctl(&by_address, &["doctor"]).stdout).unwrap();
    assert!(said.contains("was not reached (its certificate is for another name"), "{said}");
    assert!(!said.contains("; start it, or take it out of --connect"), "{said}");
    let doctor = |servers: &str| String::from_utf8(site.ctl(servers, &["doctor"]).stdout).unwrap();
    let said = doctor(&format!("tcp+tls://localhost:{plain}"));
    assert!(said.contains("was not reached (it does not speak TLS on that port; write its secureClientPort"), "{said}");
    let said = doctor(&format!("localhost:{}", site.secure.number()));
    assert!(said.contains("was not reached (it speaks TLS on that port; write tcp+tls://localhost:"), "{said}");
    assert!(!said.contains("start it") && !said.contains("whitelist"), "{said}");
}

#[test]
fn a_server_whose_certificate_has_expired_is_not_taken() {
    let authority = Authority::new();
    let server = authority.issue_expired("server", "DNS:localhost");
    let site = Site::new(authority, &server);
    is_refused(site.host(&site.election(), "a"), "its certificate has expired");
}

#[test]
fn files_that_cannot_work_are_refused_before_anything_is_connected() {
    let (site, election) = (site(), site().election());
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        path
    };
    let junk = file("junk", b"hello");
    let garbled = file("garbled", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let locked = file("locked", b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n");
    let expired = site.authority.issue_expired("late", "DNS:client");
    let other = site.authority.issue("other", "DNS:client");
    let missing = directory.path().join("missing");
    let cases: [(&[(&str, &PathBuf)], &str); 8] = [
        (&[("--tls-ca", &missing)], "--tls-ca: '"),
        (&[("--tls-ca", &junk)], "holds no certificate"),
        (&[("--tls-ca", &garbled)], "holds a certificate that cannot be used"),
        (&[("--tls-cert", &junk)], "--tls-cert: '"),
        (&[("--tls-key", &junk)], "holds no private key"),
        (&[("--tls-key", &locked)], "holds an encrypted key"),
        (&[("--tls-key", &other.key)], "is not the key of the certificate in --tls-cert"),
        (&[("--tls-cert", &expired.certificate), ("--tls-key", &expired.key)], "has expired"),
    ];
    for (options, reason) in cases {
        let host =
            options.iter().fold(site.host(&election, "a"), |host, (option, path)| host.option(option, text(path)));
        let mut host = host.command(&["true"]).spawn();
        // A wrong date may pass: the certificate is renewed, or the clock is set.
        let code = if reason == "has expired" { 69 } else { 78 };
        assert_eq!(host.code(), code, "{reason}: {}", host.log());
        assert!(host.log().contains(reason) && host.log().lines().count() == 1, "{reason}: {}", host.log());
    }
    fs::set_permissions(&other.key, Permissions::from_mode(0o644)).unwrap();
    let mut host = site.host(&election, "a").option("--tls-key", text(&other.key)).spawn();
    assert_eq!(host.code(), 78);
    assert!(host.log().contains("holds a secret that everybody can read"), "{}", host.log());
    let mut host = election.host_at(&site.localhost(), "a").spawn();
    assert_eq!(host.code(), 64);
    assert!(host.log().contains("--tls-ca: is missing"), "{}", host.log());
}

/// A host that is ill leaves the line, and opens another session.
pub(super) fn falls_ill(election: &Election, host: Subject) -> Subject {
    let command = format!("test ! -e {}", illness(election).display());
    host.option("--health-cmd", &command).option("--health-interval", "100ms")
}

pub(super) fn illness(election: &Election) -> PathBuf {
    election.diary.directory().join("ill")
}

/// A site whose files we are given, and can be replaced while it runs.
pub(super) struct Renewal {
    pub site: Site,
    directory: TempDir,
}

impl Renewal {
    pub fn new() -> Self {
        let authority = Authority::new();
        let server = authority.issue("server", "DNS:localhost");
        let renewal = Self { site: Site::new(authority, &server), directory: tempfile::tempdir().unwrap() };
        renewal.publish(&renewal.site.authority, &renewal.site.ours);
        renewal
    }

    /// Puts these in the place of the files that the hosts were told of, as a renewal does: one rename each.
    pub fn publish(&self, authority: &Authority, ours: &Issued) {
        for (name, from) in [("ca", &authority.certificate()), ("cert", &ours.certificate), ("key", &ours.key)] {
            let new = self.path(&format!("{name}.new"));
            fs::copy(from, &new).unwrap();
            fs::rename(new, self.path(name)).unwrap();
        }
    }

    pub fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }

    pub fn host(&self, election: &Election, id: &str) -> Subject {
        let host = election.host_at(&self.site.localhost(), id).option("--tls-ca", &self.path("ca"));
        host.option("--tls-cert", &self.path("cert")).option("--tls-key", &self.path("key"))
    }

    /// The server starts again, and from now on it is signed by that one, and trusts nobody else. When the old one was gone.
    pub fn restart_server(&self, authority: &Authority) -> Duration {
        let server = authority.issue("server", "DNS:localhost");
        // The files that it was told of stay where they are.
        let old = &self.site.authority;
        fs::copy(&server.both, old.certificate().with_file_name("server.both")).unwrap();
        fs::copy(authority.certificate(), old.certificate()).unwrap();
        self.site.ensemble.server(0).kill();
        let gone_at = diary::now();
        self.site.ensemble.server(0).restart();
        gone_at
    }
}

#[test]
fn renewed_certificates_count_for_the_next_connection_of_an_open_session() {
    let renewal = Renewal::new();
    let election = renewal.site.election();
    let host = renewal.host(&election, "a").session_timeout("60s").spawn();
    election.diary.until_started(1);
    let next = Authority::new();
    renewal.publish(&next, &next.issue("ours", "DNS:client"));
    renewal.restart_server(&next);
    host.until_logged("Contact with ZooKeeper was restored");
    wait::until("the session goes on with what is new", || {
        host.log().contains("certificates have changed, and were read again")
    });
    assert_eq!(election.diary.starts().len(), 1, "the command never stopped: {}", host.log());
    assert!(election.diary.somebody_lives());
}

#[test]
fn servers_that_refuse_us_once_we_were_taken_are_tried_until_they_take_us_again() {
    let renewal = Renewal::new();
    let election = renewal.site.election();
    let mut host = falls_ill(&election, renewal.host(&election, "a")).spawn();
    election.diary.until_started(1);
    let next = Authority::new();
    renewal.restart_server(&next);
    host.until_logged("is not signed by an authority in --tls-ca");
    election.diary.until_nobody_lives();
    // In a new session, too.
    fs::write(illness(&election), "").unwrap();
    host.until_logged("following: the health command reports");
    wait::pass(secs(2));
    assert!(!host.has_exited(), "{}", host.log());
    fs::remove_file(illness(&election)).unwrap();
    renewal.publish(&next, &next.issue("ours", "DNS:client"));
    election.diary.until_started(2);
    election.diary.assert_no_overlap();
}
