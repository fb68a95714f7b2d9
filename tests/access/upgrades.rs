//! Upgrades in place of hosts with secrets: certificates and passwords are read anew.

use std::fs;
use std::path::Path;

use super::credential_rotation::{Worn, until_expired};
use super::package::Package;
use super::sasl::{Users, election_on};
use super::{election, secs};
use crate::support::election::STEADY;
use crate::support::{Election, Running, wait};

/// What must outlast an upgrade.
fn seat(election: &Election) -> (i64, Vec<String>, i64) {
    let owner = election.admin.stat(&election.first()).unwrap().ephemeral_owner;
    (owner, election.candidates(), election.term().mzxid)
}

/// Upgrades this leader: the session, the candidate and the term stay, and it renews.
#[track_caller]
fn is_upgraded(election: &Election, package: &Package, leader: &Running) {
    let (before, version) = (seat(election), election.record_version());
    package.upgrade(leader);
    wait::until("it renews", || election.record_version() > version + 3);
    assert_eq!(seat(election), before, "{}", leader.log());
    election.diary.until_alive();
    assert_eq!(election.diary.starts().len(), 1);
}

#[test]
fn a_certificate_that_was_renewed_counts_after_an_upgrade() {
    let (worn, package) = (Worn::new(), Package::new());
    let election = worn.renewal.site.election();
    let late = worn.renewal.site.authority.issue_for("late", "DNS:client", secs(30));
    worn.publish(&late);
    let leader = package.on(worn.host(&election, "a").session_timeout(STEADY)).spawn();
    election.diary.until_started(1);
    is_upgraded(&election, &package, &leader);
    until_expired(&late);
    worn.renew();
    is_upgraded(&election, &package, &leader);
}

fn write(file: &Path, secret: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(file, secret).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn a_login_by_sasl_is_repeated_after_an_upgrade_with_the_password_that_the_file_has_then() {
    let directory = tempfile::tempdir().unwrap();
    let (users, secret) = (Users::new(), directory.path().join("secret"));
    let ensemble = users.ensemble(1, true, "");
    let election = election_on(&ensemble);
    let package = Package::new();
    write(&secret, "sasl:bob:hunter2");
    let mut leader = package.on(election.steady_host("a").option("--auth-file", secret.to_str().unwrap())).spawn();
    election.diary.until_started(1);
    is_upgraded(&election, &package, &leader);
    write(&secret, "sasl:admin:admin");
    is_upgraded(&election, &package, &leader);
    // The new program asks no server before it takes over.
    write(&secret, "sasl:bob:wrong");
    package.upgrade(&leader);
    assert_eq!(leader.code(), 77, "{}", leader.log());
    election.diary.until_nobody_lives();
}

/// Its memory, and its directory in `/proc`, cannot be looked into.
#[test]
fn a_password_in_a_variable_counts_after_an_upgrade() {
    let (election, package) = (election(), Package::new());
    let leader = package.on(election.steady_host("a").env("ZK_LEADER_RUN_AUTH", "digest:bob:hunter2")).spawn();
    election.diary.until_started(1);
    for _ in 0..2 {
        is_upgraded(&election, &package, &leader);
    }
}
