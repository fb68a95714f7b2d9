//! Logins by Kerberos: a real key distribution centre, and a real server that serves nobody without one. Only with the
//! feature: `cargo test --features kerberos --test kerberos`.
//!
//! Never: the machine's own Kerberos.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use nix::sys::signal::Signal;
use support::ensemble::Build;
use support::kdc::{self, Kdc, Keytab};
use support::subject::{example, is_alive};
use support::{Diary, Election, Ensemble, Proxy, Subject, SystemdBox, wait};
use zookeeper_client::Error;

/// Whom the hosts share.
const HOSTS: &str = "nightly/hosts";

/// Closed, and for tests to look into.
const ACL: &str = "creator,world:anyone:r";

/// A realm, and an ensemble of one server in it.
struct Realm {
    kdc: Kdc,
    ensemble: Ensemble,
    hosts: Keytab,
    mallory: Keytab,
}

impl Realm {
    /// Whose server takes everybody, and knows who has logged in.
    fn new() -> Self {
        Self::with(&[])
    }

    /// Whose server serves nobody without a login.
    fn strict() -> &'static Self {
        static STRICT: OnceLock<Realm> = OnceLock::new();
        STRICT.get_or_init(|| Self::with(&["-Dzookeeper.sessionRequireClientSASLAuth=true"]))
    }

    /// The first for all tests that do not break anything.
    fn shared() -> &'static Self {
        static SHARED: OnceLock<Realm> = OnceLock::new();
        SHARED.get_or_init(Self::new)
    }

    fn with(java: &[&str]) -> Self {
        let kdc = Kdc::start();
        let (servers, hosts, mallory) = (kdc.add("zookeeper/localhost"), kdc.add(HOSTS), kdc.add("mallory"));
        let jaas = kdc.path("jaas.conf");
        let login = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true";
        let server = format!("keyTab=\"{}\" principal=\"zookeeper/localhost@TEST\"", servers.display());
        fs::write(&jaas, format!("Server {{ {login} useTicketCache=false {server}; }};\n")).unwrap();
        let own = [
            format!("-Djava.security.auth.login.config={}", jaas.display()),
            format!("-Djava.security.krb5.conf={}", kdc.config().display()),
        ];
        let java = own.into_iter().chain(java.iter().map(|&option| option.to_owned())).collect();
        let config = "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n".to_owned();
        Self { ensemble: Ensemble::built(1, &Build { config, java }), kdc, hosts, mallory }
    }

    fn servers(&self) -> String {
        format!("localhost:{}", self.ensemble.server(0).address().port())
    }

    fn election(&self) -> Election {
        Election::on(&self.servers())
    }

    /// Who logs in with the keys of the hosts, and keeps tickets of his own.
    fn host(&self, election: &Election, id: &str) -> Subject {
        self.known(election.steady_host(id).flag("--kerberos").option("--acl", ACL), &format!("{}-{id}", election.name))
    }

    fn host_behind(&self, link: &Proxy, election: &Election, id: &str) -> Subject {
        self.host(election, id).option("--connect", &format!("localhost:{}", link.address().port()))
    }

    fn known(&self, subject: Subject, tickets: &str) -> Subject {
        let [config, keytab, tickets] = self.identity(&self.hosts, tickets);
        subject.env(config.0, &config.1).env(keytab.0, &keytab.1).env(tickets.0, &tickets.1)
    }

    fn identity(&self, keytab: &Keytab, tickets: &str) -> [(&'static str, String); 3] {
        [
            ("KRB5_CONFIG", self.kdc.config().display().to_string()),
            ("KRB5_CLIENT_KTNAME", keytab.display().to_string()),
            ("KRB5CCNAME", format!("FILE:{}", self.tickets(tickets).display())),
        ]
    }

    fn tickets(&self, of: &str) -> PathBuf {
        self.kdc.path(&format!("{of}.tickets"))
    }

    /// Status and words of `zk-leaderctl`.
    fn ctl(&self, keytab: &Keytab, words: &[&str]) -> (i32, String) {
        let mut ctl = Command::new(env!("CARGO_BIN_EXE_zk-leaderctl"));
        ctl.args(["--connect", &self.servers(), "--kerberos"]).args(words);
        let output = ctl.envs(self.identity(keytab, "ctl")).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(said).unwrap())
    }
}

/// Two hosts without an observer: he would need a login, too.
#[test]
fn at_a_server_that_demands_a_login_hosts_share_an_election_and_a_killed_supervisors_lease_is_freed() {
    let (realm, diary) = (Realm::strict(), Diary::new());
    let host = |id: &str| {
        let host = Subject::new(&realm.servers(), "strict", id).session_timeout("20s").witness(&diary, &[]);
        realm.known(host.flag("--kerberos").option("--acl", "creator"), id)
    };
    let first = host("a").spawn();
    diary.until_started(1);
    let mut second = host("b").spawn();
    second.until_logged("place: Next");
    let guard = first.guard_pid();
    first.kill();
    assert_eq!(diary.until_started(2).told[1], "clean", "the releaser logs in, too");
    wait::until("the releaser is done", || !is_alive(guard));
    let (_, said) = realm.ctl(&realm.hosts, &["doctor", "strict"]);
    assert!(said.contains("by Kerberos, as nightly/hosts@TEST; the ticket ends in"), "{said}");
    second.signal(Signal::SIGTERM);
    assert_eq!(second.code(), 0, "{}", second.log());
    diary.assert_no_overlap();
    assert_eq!(
        realm.kdc.asked_for("TGS_REQ", "nightly/hosts@TEST for krbtgt"),
        0,
        "a ticket was handed on to the server"
    );
}

#[test]
fn a_stranger_without_a_ticket_or_with_another_ones_can_change_nothing() {
    let realm = Realm::shared();
    let election = realm.election();
    let mut host = realm.host(&election, "a").spawn();
    election.diary.until_started(1);
    let acl = election.admin.acl(&format!("/zk-leader-run/{}", election.name));
    assert!(acl.iter().any(|entry| entry.starts_with("sasl:nightly/hosts@TEST:")), "{acl:?}");
    let candidate = election.first();
    let refused = election.admin.ask(&candidate, |client, path| async move { client.delete(&path, None).await });
    assert_eq!(refused, Err(Error::NoAuth));
    let (status, said) = realm.ctl(&realm.mallory, &["disable", &election.name, "--reason", "mischief"]);
    assert_eq!(status, 77, "{said}");
    let (status, said) = realm.ctl(&realm.hosts, &["status", &election.name]);
    assert_eq!(status, 0, "{said}");
    assert_eq!(election.diary.starts().len(), 1);
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0);
}

#[test]
fn who_cannot_log_in_ends_with_77_and_learns_why() {
    let realm = Realm::shared();
    let election = realm.election();
    let old = realm.kdc.add("old");
    realm.kdc.change_keys("old");
    let expired = realm.kdc.ticket("mallory", &realm.mallory, 1);
    let is_over = || !Command::new("klist").args(["-s", "-c", &expired]).status().unwrap().success();
    wait::until("the ticket has expired", is_over);
    let (none, nowhere) = ("FILE:/nonexistent".to_owned(), "/nonexistent".to_owned());
    let cases = [
        (
            "zookeeper",
            &none,
            &nowhere,
            "no login by Kerberos to zookeeper/localhost: No Kerberos credentials available",
        ),
        (
            "zookeeper",
            &expired,
            &nowhere,
            "Ticket expired; get a ticket (kinit, KRB5CCNAME), or name a client's keytab",
        ),
        ("zookeeper", &none, &old.display().to_string(), "Decrypt integrity check failed; get a ticket"),
        (
            "zk",
            &none,
            &realm.hosts.display().to_string(),
            "Server zk/localhost@TEST not found in Kerberos database; see --kerberos-server",
        ),
    ];
    for (service, tickets, keytab, why) in cases {
        let tickets =
            if *tickets == none { format!("FILE:{}", realm.tickets("nobody").display()) } else { tickets.clone() };
        let host = election.host("a").flag("--kerberos").option("--kerberos-server", service);
        let host = host.env("KRB5_CONFIG", realm.kdc.config().to_str().unwrap()).env("KRB5CCNAME", &tickets);
        let mut host = host.env("KRB5_CLIENT_KTNAME", keytab).spawn();
        assert_eq!(host.code(), 77, "{why}: {}", host.log());
        assert!(host.log().contains(why), "{why}: {}", host.log());
        fs::remove_file(realm.tickets("nobody")).ok();
    }
    assert!(election.diary.starts().is_empty());
}

#[test]
fn at_a_server_that_demands_a_login_who_has_none_ends_with_77() {
    let realm = Realm::strict();
    let mut host = Subject::new(&realm.servers(), "none", "a").command(&["true"]).spawn();
    assert_eq!(host.code(), 77, "{}", host.log());
}

#[test]
fn one_name_for_all_servers_stands_for_those_that_connect_does_not_know_by_theirs() {
    let realm = Realm::shared();
    let election = realm.election();
    let address = realm.ensemble.connect_string();
    let mut host = realm.host(&election, "a").option("--connect", &address).command(&["true"]).spawn();
    assert_eq!(host.code(), 77, "{}", host.log());
    assert!(host.log().contains("zookeeper/127.0.0.1"), "{}", host.log());
    let host =
        realm.host(&election, "a").option("--connect", &address).option("--kerberos-server", "zookeeper/localhost");
    assert_eq!(host.command(&["true"]).spawn().code(), 0);
}

#[test]
fn keys_that_everybody_may_read_are_refused() {
    let realm = Realm::shared();
    let (election, keytab) = (realm.election(), realm.kdc.add("careless"));
    kdc::open_to_all(&keytab, true);
    let host =
        || realm.host(&election, "a").env("KRB5_CLIENT_KTNAME", keytab.to_str().unwrap()).command(&["true"]).spawn();
    let mut refused = host();
    assert_eq!(refused.code(), 78);
    assert!(refused.log().contains("KRB5_CLIENT_KTNAME: "), "{}", refused.log());
    assert!(refused.log().contains("holds a secret that everybody can read"), "{}", refused.log());
    kdc::open_to_all(&keytab, false);
    assert_eq!(host().code(), 0);
    fs::remove_file(&keytab).unwrap();
    let mut without = host();
    assert_eq!(without.code(), 0, "the tickets are still there: {}", without.log());
    assert!(without.log().contains("careless.keytab' cannot be read: No such file"), "{}", without.log());
}

#[test]
fn a_session_logs_in_once_so_a_password_besides_is_refused() {
    let subject = Subject::new("localhost:1", "twice", "a").flag("--kerberos").command(&["true"]);
    let mut refused = subject.env("ZK_LEADER_RUN_AUTH", "sasl:bob:hunter2").spawn();
    assert_eq!(refused.code(), 64);
    assert!(refused.log().contains("--kerberos: cannot be combined with a SASL identity"), "{}", refused.log());
}

#[test]
fn a_lost_connection_is_ridden_out_though_the_key_distribution_centre_is_away() {
    let realm = Realm::new();
    let election = realm.election();
    let link = Proxy::to(realm.ensemble.server(0).address());
    let mut host = realm.host_behind(&link, &election, "a").session_timeout("20s").spawn();
    election.diary.until_started(1);
    let session = election.term();
    realm.kdc.pause();
    link.reset();
    host.until_logged("Contact with ZooKeeper was restored");
    host.until_logged("paused -> leading");
    assert_eq!((election.diary.starts().len(), election.term()), (1, session));
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0, "{}", host.log());
}

/// Nothing is answered there before the login: the session is taken up by a new client, on a thread of its own.
#[test]
fn at_a_server_that_demands_a_login_a_lost_connection_costs_neither_the_session_nor_the_command() {
    let (realm, diary) = (Realm::strict(), Diary::new());
    let link = Proxy::to(realm.ensemble.server(0).address());
    let servers = format!("localhost:{}", link.address().port());
    let host = Subject::new(&servers, "demanded", "a").session_timeout("20s").witness(&diary, &[]);
    let mut host = realm.known(host.flag("--kerberos").option("--acl", "creator"), "demanded").spawn();
    diary.until_started(1);
    for times in 1..=2 {
        link.reset();
        host.until_logged_times("paused -> leading", times);
    }
    assert!(!host.log().contains("Session ended"), "{}", host.log());
    assert_eq!(diary.starts().len(), 1);
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0, "{}", host.log());
}

/// The tickets are gone, too: a new login would need who does not answer, and MIT's library waits for it. Meanwhile our own
/// loop stops the command by a signal, before the guard would kill it, and hears what it is told.
#[test]
fn while_a_login_waits_for_the_key_distribution_centre_the_command_is_stopped_in_time() {
    let realm = Realm::new();
    let election = realm.election();
    let link = Proxy::to(realm.ensemble.server(0).address());
    let mut first = realm.host_behind(&link, &election, "a").session_timeout("8s").spawn();
    election.diary.until_started(1);
    let second = realm.host(&election, "b").spawn();
    election.until_candidates(2);
    realm.kdc.pause();
    fs::remove_file(realm.tickets(&format!("{}-a", election.name))).unwrap();
    link.reset();
    election.diary.until_noted("end");
    election.diary.until_started(2);
    election.diary.assert_no_overlap();
    assert!(!first.has_exited(), "{}", first.log());
    first.signal(Signal::SIGTERM);
    let ended = wait::held_within(wait::AT_ONCE, || first.has_exited());
    assert!(ended, "the loop was held up: {}", first.log());
    assert_eq!(first.code(), 0);
    drop(second);
}

/// A service without keys is told in time that it cannot go on like this.
#[test]
fn a_ticket_that_expires_while_we_lead_is_said_and_ends_nothing() {
    let realm = Realm::shared();
    let election = realm.election();
    let tickets = realm.kdc.ticket(HOSTS, &realm.hosts, 16);
    let host = realm.host(&election, "a").env("KRB5_CLIENT_KTNAME", "/nonexistent").env("KRB5CCNAME", &tickets);
    let mut host = host.session_timeout("20s").spawn();
    election.diary.until_started(1);
    host.until_logged("The next login may fail: no login by Kerberos to zookeeper/localhost: Ticket expired");
    realm.kdc.ticket(HOSTS, &realm.hosts, 3600);
    host.until_logged("Tickets of Kerberos are there again");
    assert_eq!(election.diary.starts().len(), 1);
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0, "{}", host.log());
}

/// `SIGRTMIN+1`.
fn ask_for_upgrade(host: &support::Running) {
    let asked = Command::new("kill").args(["-s", "RTMIN+1", &host.pid().to_string()]).status();
    assert!(asked.unwrap().success());
}

/// The next program logs in before it resumes the session.
#[test]
fn at_a_server_that_demands_a_login_a_leader_is_upgraded_in_place_and_keeps_its_session() {
    let (realm, diary) = (Realm::strict(), Diary::new());
    let host = Subject::new(&realm.servers(), "upgraded", "a").session_timeout("20s").witness(&diary, &[]);
    let mut host = realm.known(host.flag("--kerberos").option("--acl", "creator"), "upgraded").spawn();
    diary.until_started(1);
    for turn in 1..=3 {
        ask_for_upgrade(&host);
        host.until_logged_times("Upgraded from version", turn);
        host.until_logged_times("Session was taken up", turn);
        diary.until_alive();
    }
    assert_eq!(host.log().matches("Session was opened").count(), 1, "{}", host.log());
    assert_eq!(diary.starts().len(), 1);
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0, "{}", host.log());
    diary.until_nobody_lives();
}

/// Its session needs no ticket; the one of the next program would.
#[test]
fn an_upgrade_in_place_that_could_not_log_in_is_refused_and_says_why() {
    let realm = Realm::shared();
    let election = realm.election();
    let host = realm.host(&election, "a").session_timeout("20s");
    let (keytab, kept) = (realm.kdc.path("upgraded.keytab"), realm.kdc.path("upgraded.kept"));
    fs::copy(&realm.hosts, &keytab).unwrap();
    fs::set_permissions(&keytab, fs::Permissions::from_mode(0o600)).unwrap();
    let mut host = host.env("KRB5_CLIENT_KTNAME", keytab.to_str().unwrap()).spawn();
    let start = election.diary.until_started(1);
    fs::rename(&keytab, &kept).unwrap();
    fs::remove_file(realm.tickets(&format!("{}-a", election.name))).unwrap();
    ask_for_upgrade(&host);
    host.until_logged("Not upgraded: the new program refuses: no login by Kerberos to zookeeper/localhost: ");
    election.diary.until_alive();
    fs::rename(&kept, &keytab).unwrap();
    ask_for_upgrade(&host);
    host.until_logged("Upgraded from version");
    host.until_logged("Session was taken up");
    election.diary.until_alive();
    assert_eq!(election.diary.starts(), [start]);
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0, "{}", host.log());
}

/// With a key, tickets are renewed before a login needs them; so a centre that is away then is not missed.
#[test]
fn tickets_are_renewed_while_nobody_needs_them() {
    let realm = Realm::new();
    let election = realm.election();
    let link = Proxy::to(realm.ensemble.server(0).address());
    let config = realm.kdc.config_with("short.conf", "ticket_lifetime = 40s");
    let host = realm.host_behind(&link, &election, "a").env("KRB5_CONFIG", config.to_str().unwrap());
    let mut host = host.session_timeout("20s").spawn();
    election.diary.until_started(1);
    let asked = |kind, whom| realm.kdc.asked_for(kind, whom);
    wait::until("there is a second ticket", || asked("AS_REQ", "nightly/hosts@TEST for krbtgt") >= 2);
    wait::until("there is one for the server", || asked("TGS_REQ", "nightly/hosts@TEST for zookeeper") >= 2);
    // The centre notes it before it is sent.
    let tickets = realm.tickets(&format!("{}-a", election.name));
    let has_come = || String::from_utf8_lossy(&fs::read(&tickets).unwrap()).contains("zookeeper");
    wait::until("it has come", has_come);
    realm.kdc.pause();
    link.reset();
    host.until_logged("paused -> leading");
    assert_eq!(election.diary.starts().len(), 1);
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0, "{}", host.log());
}

/// Its session may be at another one next, when the centre is away.
#[test]
fn there_are_tickets_for_the_servers_that_nobody_has_visited() {
    let realm = Realm::new();
    drop(realm.kdc.add("zookeeper/other.test"));
    let election = realm.election();
    let servers = format!("{},other.test:2181", realm.servers());
    let _host = realm.host(&election, "a").option("--connect", &servers).spawn();
    election.diary.until_started(1);
    let asked = || realm.kdc.asked_for("TGS_REQ", "nightly/hosts@TEST for zookeeper/other.test");
    wait::until("there is one", || asked() >= 1);
}

#[test]
fn a_silent_key_distribution_centre_at_the_start_is_waited_for() {
    let realm = Realm::new();
    let election = realm.election();
    realm.kdc.pause();
    let mut refused = realm.host(&election, "a").session_timeout("2s").option("--connect-timeout", "6s").spawn();
    assert_eq!(refused.code(), 69, "{}", refused.log());
    let text = "Kerberos' key distribution centre does not answer";
    assert!(refused.log().contains(text), "{}", refused.log());
    let mut host = realm.host(&election, "b").session_timeout("2s").spawn();
    host.until_logged(text);
    realm.kdc.resume();
    election.diary.until_started(1);
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0, "{}", host.log());
}

/// The unit of `docs/security.md`, word for word but for names.
#[test]
fn in_a_unit_the_keys_are_a_credential_of_an_ordinary_user() {
    let (realm, diary) = (Realm::shared(), Diary::new());
    let page = include_str!("../../docs/security.md");
    let unit = page.split("```text\n").find(|block| block.contains("LoadCredential=keytab:")).unwrap();
    let unit = unit.split("```").next().unwrap().replace("zk1.example.org,zk2.example.org", &realm.servers());
    let unit = unit.replace("/usr/local/bin/nightly", "/usr/local/bin/witness /shared/diary");
    let files = tempfile::tempdir().unwrap();
    let put = |at: &str, from: &Path| {
        let path = files.path().join(at);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(from, path).unwrap();
    };
    put("usr/local/bin/zk-leader-run", Path::new(env!("CARGO_BIN_EXE_zk-leader-run")));
    put("usr/local/bin/witness", &example("witness"));
    put("etc/zk-leader-run/nightly.keytab", &realm.hosts);
    put("etc/krb5.test.conf", &realm.kdc.config());
    let more = "Environment=KRB5_CONFIG=/etc/krb5.test.conf\nReadWritePaths=/shared\n";
    fs::create_dir_all(files.path().join("etc/systemd/system")).unwrap();
    fs::write(files.path().join("etc/systemd/system/nightly.service"), format!("{unit}{more}")).unwrap();
    // The command runs as another user than we.
    fs::set_permissions(diary.directory(), fs::Permissions::from_mode(0o777)).unwrap();
    let systemd = SystemdBox::boot(files.path(), diary.directory());
    systemd.ctl("start", &["nightly"]);
    diary.until_started(1);
    systemd.must("test $(stat -c %u /run/zk-leader-run/nightly/tickets) -ge 61184");
    systemd.ctl("stop", &["nightly"]);
    diary.until_noted("end");
}
