//! The servers themselves fail; each test has its own, and breaks them.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::{LEASE, election, link, secs};
use crate::support::election::STEADY;
use crate::support::{Admin, Election, Ensemble, Proxy, diary, wait};

/// T36
#[test]
fn an_outage_of_the_ensemble_shorter_than_the_lease_costs_nobody_the_seat() {
    let ensemble = Ensemble::single();
    let election = Election::on(&ensemble.connect_string());
    let _first = election.host("a").session_timeout("60s").spawn();
    let start = election.diary.until_started(1);
    let _second = election.host("b").session_timeout("60s").spawn();
    election.until_candidates(2);
    ensemble.server(0).kill();
    wait::pass(secs(3));
    ensemble.server(0).restart();
    let admin = Admin::to(&ensemble.connect_string());
    let version = || admin.stat(&election.path("lease")).unwrap().version;
    let before = version();
    wait::until("the record is renewed again", || version() > before);
    assert_eq!(election.diary.until_alive().pid, start.pid);
    assert_eq!(election.diary.starts().len(), 1);
    assert!(!election.diary.has("signal=15"));
}

/// T2
#[test]
fn when_the_whole_ensemble_stays_away_the_command_ends_in_time_and_runs_again_afterwards() {
    let ensemble = Ensemble::single();
    let election = Election::on(&ensemble.connect_string());
    let _host = election.host("a").witness(&election.diary, &["ignore-term", "daemonise"]).spawn();
    election.diary.until_noted("orphan");
    let token = election.diary.last_start().token;
    ensemble.server(0).kill();
    let killed_at = diary::now();
    election.diary.until_nobody_lives();
    assert!(election.diary.end_of(token).saturating_sub(killed_at) < LEASE);
    ensemble.server(0).restart();
    election.diary.until_started(2);
    election.diary.assert_no_overlap();
}

/// It has lost writes, and what it shows of the record is not what the ensemble has. Its refusals are the ensemble's.
#[test]
fn a_server_whose_lease_record_differs_is_left_for_another_one() {
    // In the stat, which comes last.
    const VERSION_FROM_END: usize = 68 - 32;
    let (election, differs, good) = (election(), link(), link());
    differs.tamper(|mut reply| {
        if String::from_utf8_lossy(&reply).contains(r#""state":""#) {
            let at = reply.len() - VERSION_FROM_END;
            let version = i32::from_be_bytes(reply[at..at + 4].try_into().unwrap());
            reply[at..at + 4].copy_from_slice(&(version + 1).to_be_bytes());
        }
        reply
    });
    good.cut();
    let first = election.steady_host("a").spawn();
    election.diary.until_started(1);
    let servers = [differs.connect_string(), good.connect_string()].join(",");
    let second = election.host_at(&servers, "b").session_timeout(STEADY).spawn();
    election.until_candidates(2);
    good.heal();
    first.signal(Signal::SIGTERM);
    second.until_logged("This server shows a lease record that the ensemble does not have");
    second.until_logged("Contact with ZooKeeper was lost");
    // It might be chosen again, and again.
    differs.cut();
    assert_eq!(election.diary.until_started(2).id, "b");
    election.diary.assert_no_overlap();
}

/// T48
#[test]
fn one_server_that_falls_silent_does_not_cost_the_seat() {
    let ensemble = Ensemble::of(3);
    let links: Vec<_> = ensemble.servers().iter().map(|server| Proxy::to(server.address())).collect();
    let servers: Vec<_> = links.iter().map(Proxy::connect_string).collect();
    let election = Election::on(&ensemble.connect_string());
    let _host = election.host_at(&servers.join(","), "a").session_timeout("10s").spawn();
    let start = election.diary.until_started(1);
    election.until_renewed(1);
    let before: Vec<_> = links.iter().map(|link| link.forwarded().len()).collect();
    let connected = wait::for_some("it talks to one of the servers", || {
        (0..3).find(|index| links[*index].forwarded().len() > before[*index])
    });
    links[connected].stall();
    // Longer than its command lives without a renewal: 7 s until SIGTERM.
    wait::pass(secs(9));
    assert_eq!(election.diary.until_alive().pid, start.pid);
    assert_eq!(election.diary.starts().len(), 1);
    assert!(!election.diary.has("signal=15"));
}

/// Three servers, a leader that knows only a follower, and a successor that knows all servers.
struct OnAFollower {
    ensemble: Ensemble,
    /// The index of the follower, and of the other servers: `ZooKeeper`'s leader first.
    follower: usize,
    others: [usize; 2],
    election: Election,
    link: Proxy,
}

impl OnAFollower {
    fn start() -> Self {
        let ensemble = Ensemble::of(3);
        let leader = wait::for_some("there is a leader", || ensemble.leader());
        let [follower, bystander] = [1, 2].map(|step| (leader + step) % 3);
        let election = Election::on(&ensemble.connect_string());
        let link = Proxy::to(ensemble.server(follower).address());
        Self { ensemble, follower, others: [leader, bystander], election, link }
    }

    /// How long anything of the term lived after `cut_at`.
    fn lived(&self, token: i64, cut_at: Duration) -> Duration {
        self.election.diary.end_of(token).saturating_sub(cut_at)
    }
}

/// T49: the follower goes on answering reads and pings for `syncLimit`, five seconds here.
#[test]
fn a_follower_that_is_cut_off_from_the_others_prolongs_no_lease() {
    let scene = OnAFollower::start();
    let (election, ensemble) = (&scene.election, &scene.ensemble);
    let witness = ["ignore-term", "daemonise"];
    let _first = election.host_behind(&scene.link, "a").witness(&election.diary, &witness).spawn();
    election.diary.until_noted("orphan");
    let start = election.diary.last_start();
    let reader = Admin::to(&ensemble.server(scene.follower).address().to_string());
    let _second = election.host("b").spawn();
    election.until_candidates(2);
    for other in scene.others {
        ensemble.server(other).pause();
    }
    // Whatever was renewed before counts from then at the latest.
    let cut_at = diary::now();
    let mut reads = 0;
    while election.diary.somebody_lives() {
        reads += usize::from(reader.exists(&election.path("lease")));
        wait::pass(Duration::from_millis(20));
    }
    assert!(reads > 10, "the follower answered reads all the while");
    assert!(scene.lived(start.token, cut_at) < LEASE);
    for other in scene.others {
        ensemble.server(other).resume();
    }
    election.diary.until_started(2);
    election.diary.assert_no_overlap();
}

/// T50. The candidate goes at once: nothing but the successor's wait keeps it from starting beside the old tree.
#[test]
fn a_follower_that_dies_with_our_last_acknowledged_renewal_makes_no_overlap() {
    let scene = OnAFollower::start();
    let (election, ensemble) = (&scene.election, &scene.ensemble);
    let witness = ["ignore-term", "daemonise"];
    let _first = election.host_behind(&scene.link, "a").witness(&election.diary, &witness).spawn();
    election.diary.until_noted("orphan");
    let start = election.diary.last_start();
    let rest = scene.others.map(|other| ensemble.server(other).address().to_string()).join(",");
    let admin = Admin::to(&rest);
    let _second = election.host_at(&rest, "b").spawn();
    election.until_candidates(2);
    let candidate = election.candidates().remove(0);
    let version = || admin.stat(&election.path("lease")).unwrap().version;
    let before = version();
    wait::until("a renewal is acknowledged", || version() > before);
    ensemble.server(scene.follower).kill();
    scene.link.stall();
    let cut_at = diary::now();
    admin.delete(&election.path(&format!("election/{candidate}")));
    assert_eq!(election.diary.until_started(2).id, "b");
    assert!(scene.lived(start.token, cut_at) < LEASE);
    election.diary.assert_no_overlap();
}

/// T53: with the other follower running (a quorum without the leader), with it paused too (none), and longer than `syncLimit`,
/// so that another leader is elected.
#[test]
fn a_paused_leader_of_zookeepers_makes_no_overlap_with_or_without_a_quorum() {
    let scene = OnAFollower::start();
    let (election, ensemble) = (&scene.election, &scene.ensemble);
    let witness = ["ignore-term", "daemonise"];
    let _first = election.host_behind(&scene.link, "a").witness(&election.diary, &witness).spawn();
    election.until_candidates(1);
    let bystander = ensemble.server(scene.others[1]).address().to_string();
    let _second = election.host_at(&bystander, "b").witness(&election.diary, &witness).spawn();
    election.until_candidates(2);
    let everyone: &[usize] = &scene.others;
    for (paused, length) in [(&everyone[..1], 4), (everyone, 4), (&everyone[..1], 7)] {
        election.diary.until_alive();
        for server in paused {
            ensemble.server(*server).pause();
        }
        wait::pass(secs(length));
        for server in paused {
            ensemble.server(*server).resume();
        }
        ensemble.wait_until_ready();
        wait::until("both are in line", || Admin::to(&bystander).children(&election.path("election")).len() == 2);
    }
    election.diary.until_alive();
    election.diary.assert_no_overlap();
    assert!(election.diary.starts().len() > 1, "the pauses moved leadership");
}
