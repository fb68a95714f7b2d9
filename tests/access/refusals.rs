//! Status 77: what the server refuses, before and while we lead, and what is said of it.

use super::{election, link, server};
use crate::support::election::{SESSION_TIMEOUT, STEADY};
use crate::support::{Admin, Election, Running, Subject, wait};

const HOSTS: (&str, &str) = ("digest:hosts:secret", "hosts:secret");

/// Hosts with an identity, in an election of their own.
fn closed() -> (Election, impl Fn(&str) -> Subject) {
    let servers = server().connect_string();
    let election = Election::seen_by(Admin::known_as(&servers, HOSTS.1), &servers);
    let name = election.name.clone();
    let diary = election.diary.path();
    let host = move |id: &str| {
        let witness = crate::support::subject::example("witness");
        Subject::new(&servers, &name, id)
            .session_timeout(STEADY)
            .command(&[witness.to_str().unwrap(), diary.to_str().unwrap()])
            .option("--acl", "creator")
            .env("ZK_LEADER_RUN_AUTH", HOSTS.0)
    };
    (election, host)
}

#[track_caller]
fn refused(mut host: Running, sentence: &str) {
    assert_eq!(host.code(), 77, "{}", host.log());
    let log = host.log();
    assert!(log.contains(sentence) && log.contains("--auth-file"), "not {sentence:?}:\n{log}");
    assert!(log.contains("an ACL denies a right that is needed"), "{log}");
}

#[test]
fn a_chroot_that_may_not_be_created_is_named() {
    let election = election();
    let closed = format!("/closed-{}", election.name);
    election.admin.create(&closed, "");
    election.admin.set_acl(&closed, "world", "anyone", "r");
    let servers = format!("{}{closed}/tenant/a", election.servers());
    refused(
        election.host_at(&servers, "a").spawn(),
        &format!("we may not create a child of {closed}: its ACL does not give us right c"),
    );
    assert!(election.admin.children(&closed).is_empty());
}

#[test]
fn a_chroot_below_one_that_may_not_be_created_is_used_if_it_is_there() {
    let election = election();
    let closed = format!("/closed-{}", election.name);
    election.admin.create(&closed, "");
    election.admin.create(&format!("{closed}/tenant"), "");
    election.admin.set_acl(&closed, "world", "anyone", "r");
    let servers = format!("{}{closed}/tenant", election.servers());
    assert_eq!(election.host_at(&servers, "a").session_timeout(STEADY).command(&["true"]).spawn().code(), 0);
}

/// To create what exists below a closed znode is refused, too.
#[test]
fn a_base_below_a_tenant_of_a_closed_root_is_created() {
    let election = election();
    let closed = format!("/closed-{}", election.name);
    election.admin.create(&closed, "");
    election.admin.create(&format!("{closed}/tenant"), "");
    election.admin.set_acl(&closed, "world", "anyone", "r");
    let base = format!("{closed}/tenant/job");
    let host = election.steady_host("a").without("--name").option("--path", &base);
    let mut host = host.command(&["true"]).spawn();
    assert_eq!(host.code(), 0, "{}", host.log());
}

#[test]
fn a_missing_right_to_create_the_marker_of_a_slot_is_told_of_its_directory() {
    let election = election();
    let host = |slot: &str| election.steady_host("a").option("--slot", slot).command(&["true"]).spawn();
    assert_eq!(host("noon").code(), 0);
    let runs = election.path("runs");
    election.admin.set_acl(&runs, "world", "anyone", "rwda");
    refused(host("evening"), &format!("we may not create a child of {runs}: its ACL does not give us right c"));
}

#[test]
fn who_is_not_of_an_election_is_told_so() {
    let (election, host) = closed();
    let _leader = host("a").spawn();
    election.diary.until_started(1);
    let directory = election.path("election");
    let said = format!("we may not create a child of {directory}: its ACL does not give us right c");
    refused(host("b").env("ZK_LEADER_RUN_AUTH", "digest:hosts:wrong").spawn(), &said);
    refused(host("b").env("ZK_LEADER_RUN_AUTH", "").option("--acl", "open").spawn(), &said);
    assert_eq!(election.candidates().len(), 1);
}

#[test]
fn a_leader_whose_rights_are_taken_away_stops_its_command_in_time_and_says_why() {
    let (election, host) = closed();
    let host = |id| host(id).session_timeout(SESSION_TIMEOUT);
    let mut leader = host("a").spawn();
    election.diary.until_started(1);
    let lease = election.path("lease");
    election.admin.set_acl(&lease, "auth", "", "ra");
    assert_eq!(leader.code(), 77, "{}", leader.log());
    assert!(
        leader.log().contains(&format!("we may not write {lease}: its ACL does not give us right w")),
        "{}",
        leader.log()
    );
    assert!(!election.diary.somebody_lives());
    assert_eq!(election.state(), "held", "it could not be freed");
    // Whoever comes next waits for the lease that could not be freed.
    election.admin.set_acl(&lease, "auth", "", "cdrwa");
    let _next = host("b").spawn();
    election.diary.until_started(2);
    election.diary.assert_no_overlap();
}

#[test]
fn orders_that_may_not_be_read_are_no_secret() {
    let (election, host) = closed();
    assert_eq!(host("prepares").command(&["true"]).spawn().code(), 0);
    election.admin.create(&election.path("control"), "{\"v\":1}");
    election.admin.set_acl(&election.path("control"), "auth", "", "a");
    let host = host("a").spawn();
    election.diary.until_started(1);
    host.until_logged("The operators' orders cannot be read: we may not read");
    assert_eq!(host.log().matches("The operators' orders cannot be read").count(), 1);
    wait::until("it leads on", || election.state() == "held");
}

#[test]
fn a_refusal_that_comes_back_after_a_mend_is_told_again() {
    let (election, link) = (election(), link());
    election.prepare();
    let control = election.path("control");
    election.admin.create(&control, "no orders");
    election.admin.set_acl(&control, "world", "anyone", "wa");
    let host = election.host_behind(&link, "a").session_timeout(STEADY).spawn();
    host.until_logged("The operators' orders cannot be read: we may not read");
    election.admin.set_acl(&control, "world", "anyone", "rwa");
    host.until_logged("The operators' orders could not be read, and are ignored");
    election.admin.set_acl(&control, "world", "anyone", "wa");
    link.reset();
    host.until_logged_times("The operators' orders cannot be read: we may not read", 2);
}
