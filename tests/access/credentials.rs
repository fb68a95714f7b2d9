//! Secrets and certificates that systemd hands to a unit (`systemd.exec(5)`, credentials): under a real one, in the sandbox
//! that we ship, to a user that exists only while the unit runs and to the one of our package.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use super::dumps::Home;
use super::tls::Site;
use crate::support::pki::Authority;
use crate::support::units::{A, B, Files};
use crate::support::{Admin, Election, wait};

const IDENTITY: &str = "digest:bob:hunter2";

/// Both units: the files of TLS.
const LOADED: &str = "[Service]\n\
                      LoadCredential=zk-leader-run.tls-ca:/etc/zk-leader-run/secrets/ca\n\
                      LoadCredential=zk-leader-run.tls-cert:/etc/zk-leader-run/secrets/cert\n\
                      LoadCredential=zk-leader-run.tls-key:/etc/zk-leader-run/secrets/key\n";
const DYNAMIC: &str = "[Service]\nUser=made-up\nDynamicUser=yes\n\
                       LoadCredential=zk-leader-run.auth:/etc/zk-leader-run/secrets/auth\n";
const SET: &str = "[Service]\nSetCredential=zk-leader-run.auth:digest:bob:hunter2\n";

/// Says who it is, what it was given, and by what rights.
const LOOKS_AROUND: &str = "#!/bin/sh\numask 0\n\
                            { id -u; stat -c '%a %u:%g %n' \"$CREDENTIALS_DIRECTORY\"/*; env; } >/shared/seen-$ZK_LEADER_ID 2>&1\n\
                            exec witness \"$@\"\n";

/// Servers that serve nobody without a certificate and an identity.
fn strict() -> Site {
    let authority = Authority::new();
    let server = authority.issue("server", "DNS:localhost");
    let java = ["-Dzookeeper.enforce.auth.enabled=true", "-Dzookeeper.enforce.auth.schemes=digest"];
    Site::built(authority, &server, &java)
}

fn with_secrets(site: &Site, election: &Election) -> Files {
    let settings = format!(
        "ZK_LEADER_RUN_CONNECT={}\nZK_LEADER_RUN_SESSION_TIMEOUT=20s\nZK_LEADER_RUN_LOG_LEVEL=trace\n",
        site.localhost()
    );
    let files = Files::of_two_hosts(election, LOOKS_AROUND, &settings);
    files.put("etc/systemd/system/zk-leader-run@.service.d/credentials.conf", LOADED);
    files.put("etc/systemd/system/zk-leader-run@a.service.d/dynamic.conf", DYNAMIC);
    files.put("etc/systemd/system/zk-leader-run@b.service.d/set.conf", SET);
    let read = |path| fs::read_to_string(path).unwrap();
    for (name, text) in [
        ("auth", IDENTITY.to_owned()),
        ("ca", read(site.authority.certificate())),
        ("cert", read(site.ours.certificate.clone())),
        ("key", read(site.ours.key.clone())),
    ] {
        let path = format!("etc/zk-leader-run/secrets/{name}");
        files.put(&path, &text);
        // Root's alone, as they should be: only systemd can read them.
        fs::set_permissions(files.path(&path), Permissions::from_mode(0o600)).unwrap();
    }
    files
}

/// Users whom systemd makes up (`DynamicUser=`).
const MADE_UP: std::ops::RangeInclusive<u32> = 61184..=65519;

#[test]
fn credentials_of_systemd_give_a_user_without_any_file_an_election_with_tls_and_a_password() {
    let site = strict();
    let plain = site.ensemble.connect_string();
    let election = Election::seen_by(Admin::known_as(&plain, "admin:admin"), &plain);
    let systemd = with_secrets(&site, &election).install(&election);
    let seen = |id: &str| fs::read_to_string(election.diary.directory().join(format!("seen-{id}"))).unwrap_or_default();

    systemd.ctl("start", &[A]);
    systemd.until_told(A, "leading, token ");
    election.diary.until_started(1);
    systemd.ctl("start", &[B]);
    systemd.until_told(B, "following, next in line");
    let environ = format!("stat -c %u /proc/{}/environ", systemd.property(A, "MainPID"));
    assert_eq!(systemd.must(&environ), "0", "whoever holds secrets cannot be looked into");

    // The releaser of a killed supervisor has them, too.
    systemd.ctl("kill", &["--kill-whom=main", "--signal=KILL", A]);
    let start = election.diary.until_started(2);
    assert_eq!((start.id.as_str(), start.told[1].as_str()), ("b", "clean"), "{}", systemd.journal());
    election.diary.assert_no_overlap();

    let user = |id: &str| seen(id).lines().next().unwrap_or_default().parse::<u32>().unwrap();
    assert!(MADE_UP.contains(&user("a")) && !MADE_UP.contains(&user("b")), "{}\n{}", seen("a"), seen("b"));
    for id in ["a", "b"] {
        let seen = seen(id);
        let given = seen.lines().filter(|line| line.contains("/zk-leader-run.") && !line.contains('='));
        assert_eq!(given.clone().count(), 4, "{seen}");
        for line in given {
            let (mode, _) = line.split_once(' ').unwrap();
            assert!(mode.ends_with('0'), "everybody could read it, and we did not refuse: {line}");
        }
    }
    let journal = || systemd.run(&["journalctl", "--no-pager", "-a", "-o", "cat", "-u", A, "-u", B]);
    wait::until("the journal has what was sent", || journal().contains("Auth"));
    let (journal, key) = (journal(), fs::read_to_string(&site.ours.key).unwrap());
    assert!(!journal.contains("may read it"), "nobody else can read them: {journal}");
    for secret in ["hunter2", key.lines().nth(1).unwrap()] {
        assert!(!journal.contains(secret), "{journal}");
        assert!(!seen("a").contains(secret) && !seen("b").contains(secret), "the command was told");
    }
}

/// Who is told of secrets and cannot see them must not go on as nobody.
#[test]
fn credentials_that_cannot_be_seen_are_not_done_without() {
    let (home, hidden) = (Home::new(), tempfile::tempdir().unwrap());
    fs::set_permissions(hidden.path(), Permissions::from_mode(0o700)).unwrap();
    let election = super::election();
    let host = election.host("a").env("CREDENTIALS_DIRECTORY", hidden.path().to_str().unwrap()).command(&["true"]);
    let mut host = home.start(&host);
    assert_eq!(host.code(), 78, "{}", host.log());
    assert!(host.log().contains("zk-leader-run.tls-ca' cannot be read: Permission denied"), "{}", host.log());
}
