//! What was good when a term began and is not any more: a certificate that expires or is replaced, an authority, a password.
//! The command is ended in time, the reason is told, and what is mended is taken.

use std::fs;
use std::process::Command;
use std::time::Duration;

use super::sasl::{Users, election_on};
use super::tls::{Renewal, falls_ill, illness, text};
use super::{LEASE, secs};
use crate::support::pki::{Authority, Issued};
use crate::support::{Election, Proxy, Running, Subject, diary, wait};

/// Servers with certificates that can be replaced, behind a link that can be broken.
pub(super) struct Worn {
    pub renewal: Renewal,
    link: Proxy,
}

impl Worn {
    pub fn new() -> Self {
        let renewal = Renewal::new();
        let link = Proxy::blind_to(renewal.site.secure.address());
        Self { renewal, link }
    }

    pub fn host(&self, election: &Election, id: &str) -> Subject {
        let servers = format!("tcp+tls://localhost:{}", self.link.address().port());
        self.renewal.host(election, id).option("--connect", &servers)
    }

    /// Our own certificate and key, in the place of those before.
    pub fn publish(&self, ours: &Issued) {
        self.renewal.publish(&self.renewal.site.authority, ours);
    }

    pub fn renew(&self) {
        self.publish(&self.renewal.site.authority.issue("ours", "DNS:client"));
    }
}

/// The command of the only start so far is gone within a lease of `since`, and its host is not.
#[track_caller]
fn is_ended_in_time(election: &Election, host: &mut Running, since: Duration) {
    election.diary.until_nobody_lives();
    let lived = election.diary.last_seen(election.diary.starts()[0].pid).saturating_sub(since);
    assert!(lived < LEASE, "the command lived for {lived:?} after the connection was lost: {}", host.log());
    assert!(!host.has_exited(), "{}", host.log());
}

/// By a host whose clock is slow, say.
#[test]
fn a_certificate_that_is_not_valid_yet_is_taken_when_it_is() {
    let worn = Worn::new();
    let election = worn.renewal.site.election();
    let host = worn.host(&election, "a").spawn();
    election.diary.until_started(1);
    let early = worn.renewal.site.authority.issue_in("early", "DNS:client", secs(15));
    worn.publish(&early);
    host.until_logged("and cannot be used");
    assert!(host.log().contains("is not valid yet"), "{}", host.log());
    host.until_logged("TLS certificates have changed, and were read again");
    assert_eq!(host.log().matches("and cannot be used").count(), 1, "{}", host.log());
}

/// Nobody writes to the pipe, so whoever opens it to read waits for ever, as on a file server that is away.
#[test]
fn files_that_cannot_be_read_for_now_hold_up_no_leader() {
    let worn = Worn::new();
    let election = worn.renewal.site.election();
    let host = worn.host(&election, "a").spawn();
    election.diary.until_started(1);
    let (pipe, certificate) = (worn.renewal.path("pipe"), worn.renewal.path("cert"));
    nix::unistd::mkfifo(pipe.as_str(), nix::sys::stat::Mode::S_IRUSR).unwrap();
    fs::remove_file(&certificate).unwrap();
    fs::hard_link(&pipe, &certificate).unwrap();
    worn.link.reset();
    host.until_logged("Contact with ZooKeeper was restored");
    let seen = election.record_version();
    wait::until("the lease is renewed", || election.record_version() > seen + 8);
    assert_eq!(election.diary.starts().len(), 1, "{}", host.log());
    assert_eq!(host.log().matches("cannot be read in time").count(), 1, "{}", host.log());
    worn.renew();
    // The reader of the pipe goes on.
    drop(fs::OpenOptions::new().write(true).open(&pipe).unwrap());
    host.until_logged("TLS certificates have changed, and were read again");
}

/// To look costs processor time.
#[track_caller]
pub(super) fn until_expired(issued: &Issued) {
    wait::until("it has expired", || {
        wait::pass(secs(1));
        has_expired(text(&issued.certificate))
    });
}

fn has_expired(certificate: &str) -> bool {
    let check = Command::new("openssl").args(["x509", "-checkend", "0", "-noout", "-in", certificate]).output();
    !check.expect("apt-get install openssl").status.success()
}

#[test]
fn a_certificate_that_expires_under_a_leader_ends_the_term_at_the_next_connection_and_renewed_it_leads_again() {
    let worn = Worn::new();
    let late = worn.renewal.site.authority.issue_for("late", "DNS:client", secs(15));
    worn.publish(&late);
    let [election, other] = [(); 2].map(|()| worn.renewal.site.election());
    let mut host = worn.host(&election, "a").spawn();
    let mut leaver = worn.host(&other, "a").option("--on-loss", "exit").spawn();
    election.diary.until_started(1);
    other.diary.until_started(1);
    until_expired(&late);
    let seen = election.record_version();
    wait::until("open connections are not asked again", || election.record_version() > seen + 2);
    worn.link.reset();
    // Whatever was renewed before counts from then at the latest.
    let cut_at = diary::now();
    is_ended_in_time(&election, &mut host, cut_at);
    host.until_logged("certificate in --tls-cert, which has expired; renew it");
    assert_eq!(leaver.code(), 76, "{}", leaver.log());
    worn.renew();
    election.diary.until_started(2);
    election.diary.assert_no_overlap();
}

#[test]
fn a_certificate_that_servers_do_not_take_ends_the_term_at_the_next_connection() {
    let worn = Worn::new();
    let election = worn.renewal.site.election();
    let mut host = worn.host(&election, "a").spawn();
    election.diary.until_started(1);
    let stranger = Authority::new();
    worn.publish(&stranger.issue("stranger", "DNS:client"));
    worn.link.reset();
    // Whatever was renewed before counts from then at the latest.
    let cut_at = diary::now();
    is_ended_in_time(&election, &mut host, cut_at);
    host.until_logged("does not accept the certificate in --tls-cert");
    worn.renew();
    election.diary.until_started(2);
    election.diary.assert_no_overlap();
}

#[test]
fn what_servers_have_against_us_is_said_before_the_command_must_end() {
    let worn = Worn::new();
    let election = worn.renewal.site.election();
    let host = worn.host(&election, "a").session_timeout("40s").spawn();
    election.diary.until_started(1);
    worn.publish(&Authority::new().issue("stranger", "DNS:client"));
    worn.link.reset();
    host.until_logged("does not accept the certificate in --tls-cert");
    election.diary.until_alive();
    worn.renew();
    host.until_logged("Contact with ZooKeeper was restored");
    assert_eq!(election.diary.starts().len(), 1, "{}", host.log());
}

#[test]
fn servers_that_were_away_and_then_refuse_us_are_asked_again() {
    let worn = Worn::new();
    let election = worn.renewal.site.election();
    let host = falls_ill(&election, worn.host(&election, "a")).spawn();
    election.diary.until_started(1);
    let before = host.log().len();
    worn.link.cut();
    wait::until("nobody is reached", || host.log()[before..].contains("Cannot reach ZooKeeper"));
    assert!(!host.log().contains("Cannot connect to ZooKeeper"), "{}", host.log());
    // As long as the session is to be resumed, they are asked anyway.
    fs::write(illness(&election), "").unwrap();
    host.until_logged("following: the health command reports");
    worn.publish(&Authority::new().issue("stranger", "DNS:client"));
    host.until_logged("TLS certificates have changed, and were read again");
    worn.link.heal();
    host.until_logged("does not accept the certificate in --tls-cert");
}

/// It is no better than the one before.
#[test]
fn an_expired_certificate_in_the_place_of_a_good_one_is_not_taken_and_the_command_runs_on() {
    let worn = Worn::new();
    let election = worn.renewal.site.election();
    let host = worn.host(&election, "a").session_timeout("20s").spawn();
    election.diary.until_started(1);
    worn.publish(&worn.renewal.site.authority.issue_expired("late", "DNS:client"));
    worn.link.reset();
    host.until_logged("Contact with ZooKeeper was restored");
    host.until_logged("TLS certificates have changed, and cannot be used");
    host.until_logged("Those read before stay in use");
    assert!(host.log().contains("has expired; renew it"), "{}", host.log());
    election.diary.until_alive();
    assert_eq!(election.diary.starts().len(), 1, "{}", host.log());
}

#[test]
fn servers_that_have_another_authority_end_the_term_in_time_and_with_on_loss_exit_the_host() {
    let renewal = Renewal::new();
    let [election, other] = [(); 2].map(|()| renewal.site.election());
    let mut host = renewal.host(&election, "a").spawn();
    let mut leaver = renewal.host(&other, "a").option("--on-loss", "exit").spawn();
    election.diary.until_started(1);
    other.diary.until_started(1);
    let gone_at = renewal.restart_server(&Authority::new());
    is_ended_in_time(&election, &mut host, gone_at);
    host.until_logged("is not signed by an authority in --tls-ca");
    assert_eq!(leaver.code(), 76, "{}", leaver.log());
}

/// A login is made for each connection; what is to be said was read at the start.
#[test]
fn a_password_that_the_servers_change_ends_the_term_in_time_and_the_host_with_77() {
    for demanded in [true, false] {
        let users = Users::new();
        let ensemble = users.ensemble(1, demanded, "");
        let election = election_on(&ensemble);
        let mut host = election.host("a").env("ZK_LEADER_RUN_AUTH", "sasl:bob:hunter2").spawn();
        election.diary.until_started(1);
        users.permit("changed");
        ensemble.server(0).kill();
        let cut_at = diary::now();
        ensemble.server(0).restart();
        assert_eq!(host.code(), 77, "{demanded}: {}", host.log());
        election.diary.until_nobody_lives();
        let lived = election.diary.last_seen(election.diary.starts()[0].pid).saturating_sub(cut_at);
        assert!(lived < LEASE, "{demanded}: {lived:?}: {}", host.log());
        assert!(host.log().contains("ZooKeeper refuses the credentials"), "{demanded}: {}", host.log());

        let mut next = election.steady_host("b").env("ZK_LEADER_RUN_AUTH", "sasl:bob:changed").spawn();
        election.diary.until_started(2);
        election.diary.assert_no_overlap();
        next.signal(nix::sys::signal::Signal::SIGTERM);
        assert_eq!(next.code(), 0);
    }
}
