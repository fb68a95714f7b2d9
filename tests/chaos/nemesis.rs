//! Breaks things: carries out a plan, aimed at whoever holds leadership at that moment, and writes down what it did.
//!
//! Never: a fault that outlasts its strike; after each one everything is healed.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::dice::Dice;
use super::fault::{Fault, Kind};
use super::inside;
use super::world::{SERVERS, World};
use crate::support::diary::now;
use crate::support::wait;

/// One fault, as it happened.
#[derive(Clone, Debug)]
pub struct Strike {
    pub number: usize,
    pub kind: Kind,
    pub also: Option<Kind>,
    /// The node in the middle of it, and others that it concerned.
    pub host: String,
    pub nodes: Vec<String>,
    /// It hit the host that held leadership, or its server.
    pub hit_holder: bool,
    pub began: Duration,
    pub ended: Duration,
    /// A part of it could not be done (no quorum for an operator, no freezer in the kernel).
    pub missed: bool,
    /// How long the leases of that host last.
    pub lease: Duration,
}

impl Strike {
    pub fn involves(&self, is_meant: impl Fn(Kind) -> bool) -> bool {
        [Some(self.kind), self.also].into_iter().flatten().any(is_meant)
    }
}

/// How long it waits for a holder to aim at.
const PATIENCE: Duration = Duration::from_secs(8);

pub struct Nemesis<'a> {
    world: &'a World,
    dice: Dice,
    strikes: Vec<Strike>,
    /// How often a healed ensemble took no write, and its leader had to be restarted.
    rescues: usize,
}

/// A healed ensemble that takes no write for so long is stuck: not ours to judge, but to be helped.
const STUCK: Duration = Duration::from_secs(12);

/// Whom one fault hits.
struct Aim {
    host: usize,
    server: usize,
    leader: usize,
}

impl<'a> Nemesis<'a> {
    pub fn new(world: &'a World, dice: Dice) -> Self {
        Self { world, dice, strikes: Vec::new(), rescues: 0 }
    }

    pub fn strike(&mut self, fault: &Fault) {
        self.rescue();
        if fault.at_holder && fault.waits_for_a_holder && self.world.holder().is_none() {
            wait::held_within(PATIENCE, || self.world.holder().is_some());
            wait::pass(fault.rest);
        }
        let holder = self.world.holder().or_else(|| self.world.heir());
        let aim = self.aim(holder.filter(|_| fault.at_holder));
        let kind = self.possible_kind(fault.kind, &aim);
        let also = fault.also.map(|also| self.possible_kind(also, &aim)).filter(|also| *also != kind);
        let began = now();
        let mut done = self.break_it(kind, &aim, fault.length);
        if let Some(also) = also {
            wait::pass(fault.rest / 4);
            done &= self.break_it(also, &aim, fault.length);
        }
        wait::pass(fault.length);
        let inside = [Some(kind), also].into_iter().flatten().filter_map(Kind::inside);
        done &= inside.into_iter().all(|inside| self.world.ensemble.has_struck(inside));
        let nodes = self.concerned(kind, &aim).into_iter().map(|node| self.world.network.node(node).name.clone());
        self.strikes.push(Strike {
            number: self.strikes.len() + 1,
            kind,
            also,
            host: self.world.hosts[aim.host].node.name.clone(),
            nodes: nodes.collect(),
            hit_holder: holder == Some(aim.host) && Self::touches_holder(kind, &aim) || Self::hits_everyone(kind),
            began,
            ended: now(),
            missed: !done,
            lease: self.world.hosts[aim.host].lease(),
        });
        self.world.heal();
        wait::pass(fault.rest);
    }

    /// Whether a command runs again, now that all is healed.
    pub fn makes_peace(&mut self) -> bool {
        (0..4).any(|_| {
            self.rescue();
            wait::held_within(wait::LIMIT, || self.world.holder().is_some())
        })
    }

    /// What it did, and how often it had to help.
    pub fn account(self) -> (Vec<Strike>, usize) {
        (self.strikes, self.rescues)
    }

    fn rescue(&mut self) {
        // Silent since a fault: that may have been it, and it gets the time to come back.
        let writes = || self.world.writes_silent_for() < Duration::from_secs(1);
        if self.world.writes_silent_for() < STUCK || wait::held_within(STUCK, writes) {
            return;
        }
        self.rescues += 1;
        self.world.ensemble.kill(self.world.leader().unwrap_or(0));
        self.world.heal();
        wait::held_within(wait::LIMIT, writes);
    }

    /// At this host, or at anybody who is up.
    fn aim(&mut self, host: Option<usize>) -> Aim {
        let up: Vec<usize> = (0..self.world.hosts.len()).filter(|&host| self.world.hosts[host].is_up()).collect();
        let anybody = self.dice.pick(&up).unwrap_or(0);
        self.aim_at(host.unwrap_or(anybody))
    }

    fn aim_at(&self, host: usize) -> Aim {
        let server = self.world.server_of(host);
        Aim { host, server, leader: self.world.leader().unwrap_or(server) }
    }

    /// A stated limit of containment is no fault to try; its neighbours are.
    fn possible_kind(&self, kind: Kind, aim: &Aim) -> Kind {
        let host = &self.world.hosts[aim.host];
        let one_keeper = host.shape().is_some_and(|shape| shape.needs_one_keeper());
        match kind {
            Kind::PauseHost if one_keeper => Kind::PauseBoth,
            Kind::FreezeHost if host.node.freezer().is_none() || !self.is_in_touch(aim.host) => {
                self.possible_kind(Kind::PauseHost, aim)
            }
            // Without promises it would not be noticed.
            Kind::CutNeighbours if self.world.limit.is_none() => Kind::CutHost,
            // A stated limit: hosts that never promised take over in a base that was made anew.
            Kind::DeleteBase if self.world.limit.is_some() => Kind::DeleteElection,
            Kind::CutBlindLeader if !inside::is_possible() => Kind::CutLeader,
            kind if kind.inside().is_some() && !inside::is_possible() => Kind::PauseItsServer,
            kind => kind,
        }
    }

    /// For two renewals at least, so that the lease of a holder that is frozen now has begun just before.
    fn is_in_touch(&self, host: usize) -> bool {
        let is_whole = || {
            let is_possible = self.world.view().is_some_and(|view| view.possible);
            is_possible && self.world.hosts[host].is_up() && !self.world.hosts[host].servers_in_touch().is_empty()
        };
        wait::held_within(PATIENCE, is_whole) && !wait::held_within(self.world.hosts[host].lease() / 4, || !is_whole())
    }

    /// Whether all of it could be done.
    fn break_it(&mut self, kind: Kind, aim: &Aim, length: Duration) -> bool {
        match kind {
            Kind::CutHost
            | Kind::CutHostFromItsServer
            | Kind::DeafHost
            | Kind::MuteHost
            | Kind::SlowHost
            | Kind::LossyHost
            | Kind::ResetHost
            | Kind::LoseReplies
            | Kind::CutNeighbours => return self.break_link(kind, aim, length),
            Kind::CutItsServer
            | Kind::CutItsServerOneWay
            | Kind::Split
            | Kind::CutLeader
            | Kind::CutLeaderOneWay
            | Kind::LossyServers => return self.break_quorum(kind, aim),
            Kind::KillLeader
            | Kind::KillItsServer
            | Kind::KillItsServerAndCut
            | Kind::KillAllServers
            | Kind::Outage
            | Kind::PauseLeader
            | Kind::PauseItsServer
            | Kind::PauseAllServers => self.break_servers(kind, aim),
            Kind::SlowLogs | Kind::SlowCommits | Kind::LoseAnswers | Kind::CutBlindLeader => {
                self.spoil_servers(kind, aim);
            }
            Kind::DeleteCandidate | Kind::DeleteElection | Kind::DeleteLease | Kind::DeleteBase | Kind::KillTaker => {
                return self.meddle(kind, aim);
            }
            _ => return self.break_host(kind, aim),
        }
        true
    }

    fn break_link(&self, kind: Kind, aim: &Aim, length: Duration) -> bool {
        let (network, host) = (&self.world.network, World::node_of(aim.host));
        let servers: Vec<usize> = (0..SERVERS).collect();
        match kind {
            Kind::CutHost => network.cut(&[host], &servers),
            Kind::CutNeighbours => network.cut(&[host], &self.world.neighbours_of(aim.host)),
            Kind::CutHostFromItsServer => network.cut(&[host], &[aim.server]),
            Kind::DeafHost => network.cut_one_way(&servers, &[host]),
            Kind::MuteHost => servers.iter().for_each(|&server| network.cut_one_way(&[host], &[server])),
            Kind::SlowHost => return network.slow(host),
            Kind::LossyHost => return network.lose(host, 35),
            Kind::LoseReplies => {
                // Requests are applied meanwhile; then the client learns that it will never know.
                network.cut_one_way(&servers, &[host]);
                wait::pass(length.min(Duration::from_millis(600)));
                return network.refuse(host);
            }
            _ => return network.refuse(host),
        }
        true
    }

    fn break_quorum(&self, kind: Kind, aim: &Aim) -> bool {
        let network = &self.world.network;
        let others = |one: usize| (0..SERVERS).filter(move |&server| server != one).collect::<Vec<_>>();
        match kind {
            Kind::CutItsServer => network.cut(&[aim.server], &others(aim.server)),
            Kind::CutItsServerOneWay => network.cut_one_way(&others(aim.server), &[aim.server]),
            Kind::CutLeader => network.cut(&[aim.leader], &others(aim.leader)),
            Kind::CutLeaderOneWay => network.cut_one_way(&others(aim.leader), &[aim.leader]),
            Kind::LossyServers => return (0..SERVERS).all(|server| network.lose(server, 20)),
            _ => {
                let (inside, node) = (World::node_of(aim.host), aim.server);
                let hosts = self.world.nodes_of_all_hosts().into_iter().filter(|&host| host != inside);
                let outside: Vec<usize> = others(node).into_iter().chain(hosts).collect();
                network.cut(&[inside, node], &outside);
            }
        }
        true
    }

    fn break_servers(&self, kind: Kind, aim: &Aim) {
        let ensemble = &self.world.ensemble;
        match kind {
            Kind::KillLeader => ensemble.kill(aim.leader),
            Kind::KillItsServer => ensemble.kill(aim.server),
            Kind::KillItsServerAndCut => {
                ensemble.kill(aim.server);
                self.world.network.cut(&[World::node_of(aim.host)], &[0, 1, 2]);
            }
            Kind::KillAllServers | Kind::Outage => (0..SERVERS).for_each(|server| ensemble.kill(server)),
            Kind::PauseLeader => ensemble.pause(aim.leader),
            Kind::PauseItsServer => ensemble.pause(aim.server),
            _ => (0..SERVERS).for_each(|server| ensemble.pause(server)),
        }
    }

    /// What happens inside of them.
    fn spoil_servers(&self, kind: Kind, aim: &Aim) {
        let Some(inside) = kind.inside() else { return };
        for server in self.concerned(kind, aim) {
            self.world.ensemble.spoil(server, inside);
        }
        if kind == Kind::CutBlindLeader {
            let others: Vec<usize> = (0..SERVERS).filter(|&server| server != aim.leader).collect();
            self.world.network.cut(&[aim.leader], &others);
        }
    }

    fn break_host(&mut self, kind: Kind, aim: &Aim) -> bool {
        let host = &self.world.hosts[aim.host];
        let guard_first = self.dice.percent(50);
        let both = |signal: Signal| {
            if guard_first {
                host.signal_guard(signal);
            }
            host.signal_supervisor(signal);
            if !guard_first {
                host.signal_guard(signal);
            }
        };
        match kind {
            Kind::KillSupervisor => host.signal_supervisor(Signal::SIGKILL),
            Kind::PauseSupervisor => host.signal_supervisor(Signal::SIGSTOP),
            Kind::KillGuard => host.signal_guard(Signal::SIGKILL),
            Kind::PauseGuard => host.signal_guard(Signal::SIGSTOP),
            Kind::KillBoth => both(Signal::SIGKILL),
            Kind::PauseBoth => both(Signal::SIGSTOP),
            Kind::PauseHost => host.stop_everything(),
            Kind::FreezeHost => return host.freeze(),
            Kind::Upgrade => return host.ask_for_upgrade().is_some(),
            Kind::TerminateTwice => {
                host.signal_supervisor(Signal::SIGTERM);
                wait::pass(Duration::from_millis(20));
                host.signal_supervisor(Signal::SIGTERM);
            }
            _ => host.signal_supervisor(Signal::SIGTERM),
        }
        true
    }

    fn meddle(&self, kind: Kind, aim: &Aim) -> bool {
        let operator = &self.world.operator;
        let host = &self.world.hosts[aim.host].node.name;
        match kind {
            Kind::DeleteCandidate => operator.delete_candidate(host),
            Kind::DeleteElection => operator.delete_election(),
            Kind::DeleteLease => operator.delete_lease(operator.slot_of(host)),
            Kind::DeleteBase => operator.delete_base(),
            _ => self.kill_taker(aim),
        }
    }

    /// The holder is cut off and its candidate deleted: the next one takes over at once, and has to wait. Killed while it
    /// waits, it leaves a chain of two leases to whoever comes third.
    fn kill_taker(&self, aim: &Aim) -> bool {
        self.world.network.cut(&[World::node_of(aim.host)], &[0, 1, 2]);
        let (first, operator) = (&self.world.hosts[aim.host].node.name, &self.world.operator);
        let slot = operator.slot_of(first);
        if !operator.delete_candidate(first) {
            return false;
        }
        let mut taker = None;
        wait::held_within(Duration::from_secs(1), || {
            taker = operator.holder(slot).filter(|id| id != first).and_then(|id| self.world.host_called(&id));
            taker.is_some()
        });
        if let Some(taker) = taker {
            self.world.hosts[taker].signal_supervisor(Signal::SIGKILL);
        }
        taker.is_some()
    }

    fn concerned(&self, kind: Kind, aim: &Aim) -> Vec<usize> {
        match kind {
            Kind::CutItsServer
            | Kind::CutItsServerOneWay
            | Kind::KillItsServer
            | Kind::PauseItsServer
            | Kind::SlowCommits
            | Kind::LoseAnswers => vec![aim.server],
            Kind::CutLeader | Kind::CutLeaderOneWay | Kind::KillLeader | Kind::PauseLeader | Kind::CutBlindLeader => {
                vec![aim.leader]
            }
            Kind::LossyServers | Kind::KillAllServers | Kind::Outage | Kind::PauseAllServers | Kind::SlowLogs => {
                (0..SERVERS).collect()
            }
            Kind::Split | Kind::KillItsServerAndCut => vec![World::node_of(aim.host), aim.server],
            Kind::DeleteElection | Kind::DeleteLease | Kind::DeleteBase => self.world.nodes_of_all_hosts(),
            _ => vec![World::node_of(aim.host)],
        }
    }

    /// What befalls `ZooKeeper`'s leader befalls the holder if it is connected there.
    fn touches_holder(kind: Kind, aim: &Aim) -> bool {
        let at_leader = matches!(
            kind,
            Kind::CutLeader | Kind::CutLeaderOneWay | Kind::KillLeader | Kind::PauseLeader | Kind::CutBlindLeader
        );
        !at_leader || aim.leader == aim.server
    }

    /// Whoever holds, it concerns them.
    fn hits_everyone(kind: Kind) -> bool {
        matches!(
            kind,
            Kind::LossyServers
                | Kind::KillAllServers
                | Kind::Outage
                | Kind::PauseAllServers
                | Kind::SlowLogs
                | Kind::DeleteElection
                | Kind::DeleteLease
                | Kind::DeleteBase
        )
    }
}
