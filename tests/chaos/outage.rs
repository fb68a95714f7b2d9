//! Hosts that vouch for one another, and an ensemble that is away: scenes without dice.
//!
//! `make outage OUTAGE=540 T=4s` lets the first outage last so many seconds.

use std::collections::BTreeSet;
use std::time::Duration;

use super::checker::{self, Evidence};
use super::host::Host;
use super::settings::{Election, Settings};
use super::world::{Running, SERVERS, World};
use super::{History, bring_to_an_end};
use crate::support::diary::{self, Entry, now};
use crate::support::wait;

/// A machine that stalls for two seconds ends no command that lives on promises.
const LEASE: Duration = Duration::from_secs(4);
/// By then whatever is meant to happen has happened, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);

struct Scene {
    running: Running,
    limit: Duration,
    began: Duration,
}

/// The command that runs, as the diary tells it.
type Command = (String, i32, i64);

impl Scene {
    fn begin(name: &str, hosts: usize, lease: Duration, limit: Duration) -> Self {
        let plain = Election::plain(hosts, lease);
        let settings = Settings::scene(name, Election { vouch: Some(limit), is_calm: true, ..plain });
        std::fs::remove_dir_all(&settings.report).ok();
        std::fs::create_dir_all(&settings.report).unwrap();
        let scene = Self { running: World::start(&settings), limit, began: now() };
        scene.settles(hosts - 1);
        scene
    }

    fn world(&self) -> &World {
        &self.running.world
    }

    /// The record names so many hosts, and they have been asked.
    fn settles(&self, others: usize) {
        let named = || self.world().operator.roster().is_some_and(|roster| roster.len() == others);
        // Before somebody leads, the record may still name a former leader's hosts.
        assert!(wait::held_within(LIMIT, || self.world().holder().is_some()), "nobody leads");
        assert!(wait::held_within(LIMIT, named), "{:?} vouch", self.world().operator.roster());
        wait::pass(self.lease());
    }

    fn lease(&self) -> Duration {
        self.world().hosts[0].lease()
    }

    fn leader(&self) -> usize {
        wait::for_some("somebody leads", || self.world().holder())
    }

    /// One that does not lead.
    fn standby(&self) -> usize {
        let leader = self.leader();
        (0..self.world().hosts.len()).find(|host| *host != leader && self.host(*host).is_up()).unwrap()
    }

    fn host(&self, index: usize) -> &Host {
        &self.world().hosts[index]
    }

    fn command(&self) -> Option<Command> {
        self.world().tails[0].running().map(|Entry { id, pid, token, .. }| (id, pid, token))
    }

    fn starts(&self) -> Vec<Entry> {
        self.world().tails[0].starts()
    }

    fn servers_go(&self) {
        (0..SERVERS).for_each(|server| self.world().ensemble.kill(server));
    }

    fn servers_are_back(&self) {
        self.world().heal();
        assert!(wait::held_within(LIMIT, || self.world().operator.roster().is_some()), "the servers are not back");
    }

    /// The same command all the time.
    fn runs_on_for(&self, length: Duration, command: &Command) {
        let until = now() + length;
        while now() < until {
            wait::pass(Duration::from_millis(50).min(until.saturating_sub(now())));
            // A witness that is not scheduled for a moment is not dead.
            let is_there = || self.command().as_ref() == Some(command);
            assert!(wait::held_within(self.lease() * 2, is_there), "{command:?} does not run any more");
        }
        assert_eq!(self.starts().len(), 1, "{:#?}", self.starts());
    }

    /// No command runs.
    fn is_dead_within(&self, length: Duration) {
        assert!(wait::held_within(length, || self.command().is_none()), "{:?} runs on", self.command());
    }

    /// A lease that nobody prolongs is over, on a busy machine, too.
    fn over(&self) -> Duration {
        self.lease() * 2 + wait::LIMIT
    }

    /// Never two, no process left behind.
    fn ends(self) {
        self.world().heal();
        bring_to_an_end(self.world());
        let diaries = [diary::entries_of(self.world().tails[0].path())];
        let history = std::mem::take(&mut *self.world().history.lock().unwrap());
        let findings = checker::judge(&Evidence {
            diaries: &diaries,
            jobs: &[],
            given_back: &BTreeSet::new(),
            strikes: &[],
            history: &History { orphans: history.orphans, ..History::default() },
            calms: &[],
            longest_lease: self.lease(),
            began: self.began,
            ended: now(),
        });
        assert_eq!(findings.violations(), Vec::<String>::new());
    }
}

fn seconds(name: &str, default: u64) -> Duration {
    let text = std::env::var(name).ok();
    Duration::from_secs(text.map_or(default, |text| text.trim_end_matches('s').parse().expect("seconds")))
}

#[test]
fn an_outage_is_not_noticed_by_the_command_while_hosts_come_and_go() {
    let lease = seconds("OUTAGE_T", LEASE.as_secs());
    let outage = seconds("OUTAGE", 6 * lease.as_secs());
    let scene = Scene::begin("outage-unnoticed", 4, lease, outage + 12 * lease);
    let (leader, command) = (scene.leader(), scene.command().unwrap());
    // An earlier program's promises and questions are the next one's.
    for host in [leader, scene.standby()] {
        let upgrade = scene.host(host).upgrade(host == leader);
        assert!(upgrade.is_some_and(|upgrade| upgrade.done.is_some()), "host {host} is not upgraded");
    }
    let comer = scene.standby();
    scene.host(comer).retire();
    wait::until("a standby has left", || scene.host(comer).is_retired());
    scene.settles(2);

    scene.servers_go();
    let going = (0..4).find(|host| ![leader, comer].contains(host)).unwrap();
    scene.runs_on_for(outage / 5, &command);
    scene.host(comer).comes_back();
    scene.runs_on_for(outage / 5, &command);
    scene.host(going).retire();
    scene.runs_on_for(outage / 5, &command);
    scene.host(leader).ask_for_upgrade();
    scene.runs_on_for(outage * 2 / 5, &command);
    scene.servers_are_back();
    scene.runs_on_for(2 * lease, &command);
    // The shorter ones that follow find the new roster.
    scene.settles(2);
    scene.servers_go();
    scene.runs_on_for(3 * lease, &command);
    scene.servers_are_back();
    scene.runs_on_for(lease, &command);
    scene.ends();
}

#[test]
fn without_one_promise_the_command_is_dead_in_time_and_nobody_starts() {
    let scene = Scene::begin("outage-without-a-promise", 3, LEASE, 30 * LEASE);
    let (leader, standby, command) = (scene.leader(), scene.standby(), scene.command().unwrap());
    scene.servers_go();
    scene.runs_on_for(2 * LEASE, &command);
    // It lives, but the leader does not hear it.
    scene.world().network.cut_one_way(&[World::node_of(standby)], &[World::node_of(leader)]);
    scene.is_dead_within(scene.over());
    wait::pass(2 * LEASE);
    assert_eq!(scene.starts().len(), 1, "{:#?}", scene.starts());
    scene.servers_are_back();
    scene.settles(2);

    let (dead, starts) = (scene.standby(), scene.starts().len());
    scene.servers_go();
    wait::pass(2 * LEASE);
    scene.host(dead).kill_for_good();
    scene.is_dead_within(scene.over());
    wait::pass(2 * LEASE);
    assert_eq!(scene.starts().len(), starts, "{:#?}", scene.starts());
    scene.host(dead).comes_back();
    scene.servers_are_back();
    scene.settles(2);
    scene.ends();
}

#[test]
fn a_leader_alone_is_replaced_and_all_at_once_wait_for_the_limit() {
    let limit = 4 * LEASE;
    let scene = Scene::begin("outage-of-one", 3, LEASE, limit);
    let leader = scene.leader();
    // The others have the servers, and one of them loses patience.
    scene.world().network.cut(&[World::node_of(leader)], &[0, 1, 2]);
    let is_replaced = || scene.world().holder().is_some_and(|holder| holder != leader);
    assert!(wait::held_within(LIMIT, is_replaced), "nobody replaces a leader that alone is cut off");
    scene.world().heal();
    scene.settles(2);

    // Beyond the limit everybody promises in vain.
    scene.servers_go();
    scene.is_dead_within(limit + scene.over());
    scene.servers_are_back();
    scene.settles(2);

    // Nobody is left who has promised: the next one cannot know who lives on what.
    let before = scene.starts().len();
    (0..3).for_each(|host| scene.host(host).kill_for_good());
    scene.is_dead_within(scene.over());
    let dead_at = now();
    (0..3).for_each(|host| scene.host(host).comes_back());
    let is_led = || scene.starts().len() > before;
    assert!(wait::held_within(LIMIT + scene.limit, is_led), "nobody leads after the limit");
    let first = scene.starts()[before].at;
    assert!(first + LEASE >= dead_at + scene.limit, "it starts {:?} after the end", first.saturating_sub(dead_at));
    scene.ends();
}
