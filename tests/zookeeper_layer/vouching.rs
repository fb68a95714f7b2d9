//! What hosts that vouch for one another write and read: rosters, limits, the secret, and who is in line.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::mpsc::unbounded_channel;
use zk_leader_run::core::event::{Candidacy, Event, Nonce, Place, SessionNumber};
use zk_leader_run::core::guard_messages::Slot;
use zk_leader_run::core::lease::LEASE_LONGEST;
use zk_leader_run::core::vouching::{LIMIT_LONGEST, Roster, Vouching, Word};
use zk_leader_run::zookeeper::client::acl::{Acl, Entry, Rights};
use zk_leader_run::zookeeper::client::connect::{Login, Secret as Password};
use zk_leader_run::zookeeper::election::release_orphaned::{self, Orphaned, Outcome};
use zk_leader_run::zookeeper::publish::MemberStatus;
use zk_leader_run::zookeeper::schema::settings::Vouch;
use zk_leader_run::zookeeper::schema::vouching::{Neighbourhood, Secret};
use zk_leader_run::zookeeper::upgrade::HandedOver;
use zk_leader_run::zookeeper::{Election, Settings};
use zookeeper_client::Error;

use crate::chroot::Chroot;
use crate::host::{BASE, ELECTION, FIRST, Host, LEASE, No, TERM, settings};
use crate::support::standalone::link;
use crate::support::{Admin, Ensemble, wait};

const VOUCH: &str = "/zk-leader-run/job/vouch";
const F: Duration = Duration::from_secs(600);

fn address(instance: u64) -> SocketAddr {
    format!("10.0.0.{instance}:4711").parse().unwrap()
}

fn roster<const N: usize>(instances: [u64; N]) -> Roster {
    instances.into_iter().collect()
}

/// A host with the option.
fn vouching(servers: &str, instance: u64) -> Settings {
    Settings { vouch: Some(Vouch { address: address(instance), limit: F }), ..settings(servers, instance) }
}

/// In line, with a member.
async fn member(settings: Settings) -> Host {
    let (host, _) = Host::entered(settings).await;
    host.election.describe(MemberStatus { role: "follower", phase: "following", ..MemberStatus::default() });
    host
}

/// Holder of the record, with this roster.
async fn leading(settings: Settings, named: Roster) -> (Host, zk_leader_run::core::action::Conditions) {
    let (mut host, view) = Host::entered(settings).await;
    host.vouching = Some(Vouching { limit: F, roster: named });
    let (conditions, _) = host.take_over(&view, 1).await.unwrap();
    (host, conditions)
}

/// A supervisor that has led through an outage that was longer than its session, and stands in line again by this candidate, is killed:
/// its record is freed. The guard knows the candidate of the start.
async fn freed_after_an_outage(servers: &str, is_renewed: bool) -> (Host, String) {
    let (mut host, view) = Host::entered(vouching(servers, 1)).await;
    host.vouching = Some(Vouching { limit: F, roster: roster([2]) });
    let (conditions, token) = host.take_over(&view, 1).await.unwrap();
    host.connect(2).await;
    let later = host.enter(Candidacy(2)).await.unwrap();
    assert_ne!((&later.candidate, later.session_id), (&view.candidate, view.session_id));
    if is_renewed {
        host.renew_as(Candidacy(2), conditions).await.unwrap();
    }
    let candidate = view.candidate.as_str().to_owned();
    let orphaned = Orphaned { slot: Slot(0), token, candidate, session: view.session_id };
    let freed = release_orphaned::free_record(vouching(servers, 9), &orphaned).await;
    assert!(matches!(freed, Ok(Outcome::Freed)), "{freed:?}");
    (host, later.candidate.as_str().to_owned())
}

#[tokio::test]
async fn a_killed_supervisors_candidate_of_a_later_session_is_deleted_with_its_record() {
    let ensemble = Ensemble::single();
    let servers = ensemble.connect_string();
    let (_host, _) = freed_after_an_outage(&servers, true).await;
    assert_eq!(Admin::to(&servers).children(ELECTION), [""; 0], "whoever is next need not wait for the session's end");
}

/// It was killed before the renewal that names its new candidate. Only the end of its session tells that this is nobody's.
#[tokio::test]
async fn a_killed_supervisors_record_is_freed_though_nothing_tells_its_candidate_of_a_later_session() {
    let ensemble = Ensemble::single();
    let servers = ensemble.connect_string();
    let (_host, later) = freed_after_an_outage(&servers, false).await;
    assert_eq!(Admin::to(&servers).children(ELECTION), [later]);
    let (_next, view) = Host::entered(vouching(&servers, 3)).await;
    assert_eq!((view.record.held, view.place), (false, Place::Next), "it waits for the session, and for no lease");
}

/// Waits until the line is this.
async fn told(host: &mut Host, line: Roster) {
    host.wait_for(Event::Vouching(Word::Line(line))).await;
}

/// Waits for such a neighbourhood.
async fn learnt(host: &Host, what: &str, holds: impl Fn(&Neighbourhood) -> bool) -> Neighbourhood {
    let mut known = host.election.neighbourhood();
    let found = tokio::time::timeout(wait::LIMIT, known.wait_for(|known| holds(known))).await;
    found
        .unwrap_or_else(|_| panic!("never learnt {what}: {:?}", host.election.neighbourhood().borrow()))
        .unwrap()
        .clone()
}

/// Waits on this thread's runtime, which serves the hosts.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let held = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(wait::LIMIT, held).await.unwrap_or_else(|_| panic!("waited in vain until {what}"));
}

fn secret_of(admin: &Admin) -> Option<Vec<u8>> {
    let read = admin.ask(VOUCH, |client, path| async move { client.get_data(&path).await });
    read.ok().map(|(data, _)| data)
}

#[tokio::test]
async fn a_record_names_its_roster_with_ids_and_addresses_and_the_term_keeps_the_limit() {
    let chroot = Chroot::new();
    let servers = chroot.connect_string();
    let admin = Admin::to(&servers);
    let (mut leader, conditions) = leading(vouching(&servers, 1), Roster::EMPTY).await;
    for text in [admin.read(LEASE), admin.read(TERM)] {
        assert!(text.contains(r#""vouch_ms":600000"#), "{text}");
    }
    let _next = member(vouching(&servers, 2)).await;
    told(&mut leader, roster([2])).await;
    leader.vouching = Some(Vouching { limit: F, roster: roster([2]) });
    let conditions = leader.renew(conditions).await.unwrap();
    let text = admin.read(LEASE);
    let named = r#""roster":[{"instance":"0000000000000002","id":"host2:1","address":"10.0.0.2:4711"}]"#;
    assert!(text.contains(named) && text.contains(r#""guarantee":"at-most-one, vouched""#), "{text}");
    let record = leader.observe().await.unwrap();
    assert_eq!((record.vouching, record.version), (leader.vouching, conditions.record));
}

/// A member that comes later knows from the record whom the leader needs.
#[tokio::test]
async fn whoever_reads_a_roster_knows_where_its_hosts_are() {
    let chroot = Chroot::new();
    let servers = chroot.connect_string();
    let (mut leader, conditions) = leading(vouching(&servers, 1), Roster::EMPTY).await;
    let next = member(vouching(&servers, 2)).await;
    told(&mut leader, roster([2])).await;
    leader.vouching = Some(Vouching { limit: F, roster: roster([2]) });
    leader.renew(conditions).await.unwrap();
    drop(next);
    told(&mut leader, Roster::EMPTY).await;
    let (third, view) = Host::entered(vouching(&servers, 3)).await;
    assert_eq!(view.record.vouching, leader.vouching);
    let known = learnt(&third, "where host 2 was", |known| known.of(2).is_some()).await;
    assert_eq!(known.of(2).map(|host| (host.id.as_str(), host.address)), Some(("host2:1", address(2))));
}

#[tokio::test]
async fn the_term_keeps_the_limit_of_a_take_over_that_waits_and_its_record_gives_none() {
    let chroot = Chroot::new();
    let servers = chroot.connect_string();
    let admin = Admin::to(&servers);
    let (_leader, view, _) = Host::leading(settings(&servers, 1)).await;
    let (mut next, _) = Host::entered(vouching(&servers, 2)).await;
    let record = next.observe().await.unwrap();
    let conditions = zk_leader_run::core::action::Conditions { slot: record.slot, record: record.version, term: 1 };
    let entry = zk_leader_run::core::action::Entry { waiting_on: Some(record.last_run()), ..next.entry(1) };
    next.election.take_over(FIRST, conditions, entry, crate::host::SESSION_TIMEOUT);
    next.answer(FIRST, zk_leader_run::core::event::Request::TakeOver).await.unwrap();
    assert!(admin.read(TERM).contains(r#""vouch_ms":600000"#), "{}", admin.read(TERM));
    assert!(!admin.read(LEASE).contains("vouch"), "{}", admin.read(LEASE));
    assert!(view.record.vouching.is_none());
}

#[tokio::test]
async fn a_lost_record_is_made_anew_with_the_limit_of_the_term_whoever_makes_it() {
    let chroot = Chroot::new();
    let servers = chroot.connect_string();
    let admin = Admin::to(&servers);
    let (_leader, _) = leading(vouching(&servers, 1), roster([2])).await;
    let other = Some(Vouch { address: address(2), limit: F * 2 });
    for maker in [Settings { vouch: other, ..settings(&servers, 2) }, settings(&servers, 3)] {
        admin.delete(LEASE);
        let (_host, view) = Host::entered(maker).await;
        assert!(view.record.held && view.record.agrees && view.record.nonce == Nonce::UNKNOWN);
        assert_eq!(view.record.vouching, Some(Vouching { limit: F, roster: Roster::EMPTY }));
        let text = admin.read(LEASE);
        assert!(text.contains(r#""guarantee":"at-most-one, vouched""#), "older versions refuse it: {text}");
    }
}

#[tokio::test]
async fn the_lost_record_of_a_leader_without_the_option_gives_no_limit() {
    let chroot = Chroot::new();
    let servers = chroot.connect_string();
    let admin = Admin::to(&servers);
    let (_leader, ..) = Host::leading(settings(&servers, 1)).await;
    admin.delete(LEASE);
    let (_maker, view) = Host::entered(vouching(&servers, 2)).await;
    assert_eq!((view.record.held, view.record.vouching), (true, None));
}

#[tokio::test]
async fn an_unreadable_record_counts_as_a_lost_one() {
    let chroot = Chroot::new();
    let servers = chroot.connect_string();
    let admin = Admin::to(&servers);
    let (mut leader, _) = leading(vouching(&servers, 1), roster([2])).await;
    admin.set(LEASE, "garbage");
    let limit = |limit| Some(Vouching { limit, roster: Roster::EMPTY });
    let (_next, view) = Host::entered(settings(&servers, 2)).await;
    assert_eq!((view.record.held, view.record.vouching), (true, limit(F)));
    assert_eq!(leader.observe().await.unwrap().vouching, limit(F));
    admin.set(TERM, "garbage");
    assert_eq!(leader.observe().await.unwrap().vouching, limit(LIMIT_LONGEST));
    let (_third, view) = Host::entered(settings(&servers, 3)).await;
    assert_eq!(view.record.vouching, limit(LIMIT_LONGEST));
}

#[tokio::test]
async fn where_the_term_is_lost_too_it_is_a_day_if_there_is_a_secret_and_else_nothing() {
    let chroot = Chroot::new();
    let servers = chroot.connect_string();
    let admin = Admin::to(&servers);
    let (leader, _) = leading(vouching(&servers, 1), roster([2])).await;
    admin.delete_at_once(&[LEASE.to_owned(), TERM.to_owned()]);
    let (next, view) = Host::entered(settings(&servers, 2)).await;
    assert_eq!(view.record.lease, LEASE_LONGEST);
    assert_eq!(view.record.vouching, Some(Vouching { limit: LIMIT_LONGEST, roster: Roster::EMPTY }));
    assert!(admin.read(TERM).contains(r#""vouch_ms":86400000"#), "{}", admin.read(TERM));
    drop((leader, next));
    until("both are gone", || admin.children(ELECTION).is_empty()).await;
    admin.delete_at_once(&[LEASE.to_owned(), TERM.to_owned(), VOUCH.to_owned()]);
    let (_third, view) = Host::entered(settings(&servers, 3)).await;
    assert_eq!((view.record.lease, view.record.vouching), (LEASE_LONGEST, None));
}

#[tokio::test]
async fn the_secret_is_made_before_the_first_take_over_and_only_who_may_write_can_read_it() {
    let ensemble = Ensemble::single();
    let servers = ensemble.connect_string();
    let mut closed = vouching(&servers, 1);
    closed.acl = Acl::of(vec![Entry::creator(), Entry::anyone(Rights::of("r").unwrap())]);
    closed.access.digests = vec![Login { user: "hosts".to_owned(), password: Password::new("hunter2") }];
    let (leader, _) = leading(closed, Roster::EMPTY).await;
    let admin = Admin::known_as(&servers, "hosts:hunter2");
    let (secret, term) = (admin.stat(VOUCH).expect("there is a secret"), admin.stat(TERM).unwrap());
    assert!(secret.czxid < term.mzxid, "the secret is younger than the term: {secret:?} {term:?}");
    let acl = admin.acl(VOUCH);
    assert!(
        matches!(acl.as_slice(), [only] if only.starts_with("digest:hosts:") && only.ends_with(":cdrwa")),
        "{acl:?}"
    );
    let reader = Admin::to(&servers);
    assert!(reader.read(LEASE).contains("held"), "it may read all else");
    let refused = reader.ask(VOUCH, |client, path| async move { client.get_data(&path).await });
    assert!(matches!(refused, Err(Error::NoAuth)), "{refused:?}");
    let known = learnt(&leader, "the secret", |known| known.secret.is_some()).await;
    assert_eq!(known.secret.map(|secret| secret.0.to_vec()), secret_of(&admin));
    assert_eq!(known.election, Some(admin.stat(BASE).unwrap().czxid));
}

#[tokio::test]
async fn a_host_without_the_option_makes_no_secret() {
    let chroot = Chroot::new();
    let servers = chroot.connect_string();
    let (host, ..) = Host::leading(settings(&servers, 1)).await;
    host.election.describe(MemberStatus::default());
    let admin = Admin::to(&servers);
    until("its member is there", || admin.exists("/zk-leader-run/job/members/host1:1")).await;
    assert!(!admin.exists(VOUCH) && !admin.read("/zk-leader-run/job/members/host1:1").contains("vouch"));
}

#[tokio::test]
async fn a_secret_that_is_lost_or_no_secret_is_made_anew_and_all_learn_it() {
    let chroot = Chroot::new();
    let servers = chroot.connect_string();
    let admin = Admin::to(&servers);
    let (leader, _) = leading(vouching(&servers, 1), Roster::EMPTY).await;
    let (next, _) = Host::entered(vouching(&servers, 2)).await;
    let mut before = learnt(&leader, "the first", |known| known.secret.is_some()).await;
    for break_it in [|admin: &Admin| admin.delete(VOUCH), |admin: &Admin| admin.set(VOUCH, "short")] {
        break_it(&admin);
        let now = learnt(&leader, "another", |known| known.secret != before.secret).await;
        assert_eq!(now.election, before.election);
        learnt(&next, "the same", |known| known.secret == now.secret).await;
        assert_eq!(secret_of(&admin).map(|data| data.len()), Some(Secret::LENGTH));
        before = now;
    }
}

#[tokio::test]
async fn a_base_that_is_made_anew_is_another_election_with_another_secret() {
    let chroot = Chroot::new();
    let servers = chroot.connect_string();
    let admin = Admin::to(&servers);
    let (mut host, view) = Host::entered(vouching(&servers, 1)).await;
    let before = learnt(&host, "the first", |known| known.secret.is_some()).await;
    let candidate = format!("{ELECTION}/{}", view.candidate.as_str());
    admin.delete_at_once(&[candidate.as_str(), ELECTION, LEASE, TERM, VOUCH, BASE].map(str::to_owned));
    host.enter(Candidacy(2)).await.unwrap();
    let now = learnt(&host, "another", |known| known.election != before.election).await;
    assert!(now.secret.is_some() && now.secret != before.secret);
    assert_eq!(now.election, Some(admin.stat(BASE).unwrap().czxid));
    assert_eq!(now.secret.map(|secret| secret.0.to_vec()), secret_of(&admin));
}

#[tokio::test]
async fn who_joins_and_who_leaves_is_told_in_the_order_of_the_line() {
    let chroot = Chroot::new();
    let servers = chroot.connect_string();
    let (mut leader, _) = leading(vouching(&servers, 1), Roster::EMPTY).await;
    told(&mut leader, Roster::EMPTY).await;
    let second = member(vouching(&servers, 2)).await;
    told(&mut leader, roster([2])).await;
    let _third = member(vouching(&servers, 3)).await;
    told(&mut leader, roster([2, 3])).await;
    let _preferred = member(Settings { priority: 5, ..vouching(&servers, 4) }).await;
    told(&mut leader, roster([4, 2, 3])).await;
    drop(second);
    told(&mut leader, roster([4, 3])).await;
    let known = leader.election.neighbourhood().borrow().clone();
    assert_eq!([3, 4].map(|host| known.of(host).map(|host| host.address)), [3, 4].map(|host| Some(address(host))));
}

/// As a program leaves its session to the next one: without a word to the servers.
fn left_behind(settings: Settings) -> HandedOver {
    let left = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (admin, znode) = (Admin::to(&settings.servers), format!("{BASE}/members/{}", settings.id));
            let host = member(settings).await;
            until("its member is there", || admin.exists(&znode)).await;
            let key = host.election.key().expect("it is connected").await.unwrap();
            let left = host.election.hand_over(&key).unwrap();
            std::mem::forget(host);
            left
        })
    });
    left.join().unwrap()
}

/// The leader need not look at the members for that.
#[tokio::test]
async fn a_member_that_is_reached_elsewhere_after_an_upgrade_is_asked_there() {
    let ensemble = Ensemble::single();
    let servers = ensemble.connect_string();
    let (leader, _) = leading(vouching(&servers, 1), Roster::EMPTY).await;
    let before = vouching(&servers, 2);
    let left = left_behind(before.clone());
    learnt(&leader, "where host 2 is", |known| known.of(2).is_some_and(|host| host.address == address(2))).await;
    let elsewhere = Some(Vouch { address: address(20), limit: F });
    let (sender, _events) = unbounded_channel();
    let next = Election::take_up(Settings { vouch: elsewhere, ..before }, sender, left).await.unwrap();
    next.describe(MemberStatus { role: "follower", phase: "following", ..MemberStatus::default() });
    learnt(&leader, "where host 2 is now", |known| known.of(2).is_some_and(|host| host.address == address(20))).await;
}

#[tokio::test]
async fn members_without_the_option_are_not_in_the_line_and_make_no_room_less() {
    let chroot = Chroot::new();
    let servers = chroot.connect_string();
    let (mut leader, _) = leading(vouching(&servers, 1), Roster::EMPTY).await;
    let mut plain = Vec::new();
    for instance in 2..=6 {
        plain.push(member(settings(&servers, instance)).await);
    }
    let admin = Admin::to(&servers);
    until("all have members", || admin.children("/zk-leader-run/job/members").len() == 5).await;
    let _last = member(vouching(&servers, 7)).await;
    told(&mut leader, roster([7])).await;
}

/// The session is over, and the command lives on promises: it is renewed at once, wherever the new candidate stands.
#[tokio::test]
async fn a_record_is_renewed_by_a_later_session_and_names_its_new_candidate() {
    let chroot = Chroot::new();
    let servers = chroot.connect_string();
    let admin = Admin::to(&servers);
    let proxy = link();
    let mut short = vouching(&chroot.behind(&proxy), 1);
    short.session_timeout = Duration::from_secs(4);
    let (mut leader, conditions) = leading(short, roster([2])).await;
    let (_next, _) = Host::entered(vouching(&servers, 2)).await;
    let first = admin.children(ELECTION);
    proxy.cut();
    until("its session has expired", || admin.children(ELECTION).len() == first.len() - 1).await;
    proxy.heal();
    leader.wait_for(Event::SessionOver { session: SessionNumber(1) }).await;
    leader.connect(2).await;
    let view = leader.enter(Candidacy(2)).await.unwrap();
    assert_eq!((view.record.nonce, view.record.vouching), (leader.nonce(1), leader.vouching));
    let conditions = leader.renew_as(Candidacy(2), conditions).await.unwrap();
    assert!(admin.read(LEASE).contains(view.candidate.as_str()), "{}", admin.read(LEASE));
    let view = leader.look(Candidacy(2)).await.unwrap();
    assert_eq!((view.place, view.record.version), (Place::First, conditions.record), "the holder stands first");
    assert_eq!(leader.renew(conditions).await, Err(No::Denied(zk_leader_run::core::event::Denial::CandidateGone)));
}

#[tokio::test]
async fn a_host_without_the_option_agrees_with_a_record_on_promises_and_obeys_its_limit() {
    let chroot = Chroot::new();
    let servers = chroot.connect_string();
    let (_leader, _) = leading(vouching(&servers, 1), roster([2])).await;
    let (_next, view) = Host::entered(settings(&servers, 2)).await;
    assert!(view.record.held && view.record.agrees);
    assert_eq!(view.record.vouching, Some(Vouching { limit: F, roster: roster([2]) }));
}
