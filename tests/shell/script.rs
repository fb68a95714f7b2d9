//! What happens in one run, drawn from a seed.

use std::time::Duration;

use zk_leader_run::core::lease::Wishes;
use zk_leader_run::core::machine;
use zk_leader_run::core::settings::{Guarantee, OnExit, OnLoss, OnPause, Preparations, Recipe, Service, StepLimits};
use zk_leader_run::zookeeper;
use zk_leader_run::zookeeper::client::acl::Acl;
use zk_leader_run::zookeeper::client::connect::Access;

use crate::guard::Temper;
use crate::host::Blow;
use crate::memory::network::Direction;
use crate::memory::rng::Rng;
use crate::oracle::Instance;

#[derive(Clone, Debug)]
pub struct Script {
    pub seed: u64,
    pub servers: usize,
    pub hosts: Vec<HostPlan>,
    pub session_timeout: Duration,
    pub recipe: Recipe,
    pub latency: [Duration; 2],
    pub faults: Vec<(Duration, Fault)>,
    pub healed_at: Duration,
}

#[derive(Clone, Copy, Debug)]
pub struct HostPlan {
    pub stop_timeout: Duration,
    pub on_exit: OnExit,
    pub temper: Temper,
    /// From the end of a process to the next one.
    pub restarts_after: Duration,
}

#[derive(Clone, Debug)]
pub enum Fault {
    /// `server` `None`: all of them. `way` `None`: both.
    Cut {
        host: usize,
        server: Option<usize>,
        way: Option<Direction>,
        length: Duration,
    },
    Reset {
        host: usize,
    },
    Lose {
        host: usize,
        way: Direction,
    },
    Slow {
        host: usize,
        latency: Duration,
        length: Duration,
    },
    ServerDown {
        server: usize,
        length: Duration,
    },
    ServerPaused {
        server: usize,
        length: Duration,
    },
    ServerIsolated {
        server: usize,
        length: Duration,
    },
    ServerLags {
        server: usize,
        lag: Duration,
        length: Duration,
    },
    /// As many servers that no quorum is left.
    NoQuorum {
        length: Duration,
    },
    Blow {
        host: usize,
        blow: Blow,
    },
}

const TICK: Duration = Duration::from_millis(500);

impl Script {
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed, 0x5348);
        let session_timeout = Duration::from_secs(rng.pick(&[3, 4, 6, 10]));
        let servers = rng.pick(&[1, 3, 3, 3, 5]);
        let count = rng.between(2, 5) as usize;
        let recipe =
            rng.pick(&[Recipe::Sequential, Recipe::Sequential, Recipe::CuratorLock, Recipe::Kazoo, Recipe::Single]);
        let hosts: Vec<_> = (0..count).map(|_| HostPlan::draw(&mut rng)).collect();
        let healed_at = Duration::from_secs(rng.between(5, 60));
        let mut faults: Vec<_> = (0..rng.below(16))
            .map(|_| {
                let at = Duration::from_micros(rng.below(healed_at.as_micros() as u64));
                (at, Fault::draw(&mut rng, count, servers, session_timeout))
            })
            .collect();
        let fades: Vec<_> = faults.iter().filter_map(|(at, fault)| Some((*at, fault.fades(&mut rng)?))).collect();
        faults.extend(fades.into_iter().map(|(at, (after, fault))| (at + after, fault)));
        faults.sort_by_key(|(at, _)| *at);
        let latency = [Duration::from_micros(200), Duration::from_millis(rng.pick(&[1, 5, 20, 60]))];
        Self { seed, servers, hosts, session_timeout, recipe, latency, faults, healed_at }
    }

    pub fn ensemble(&self) -> crate::memory::Settings {
        crate::memory::Settings::of(self.servers).with_tick(TICK)
    }

    /// By then somebody leads after all faults are over: the sessions of the dead expire, and then their lease.
    pub fn heal_limit(&self) -> Duration {
        self.session_timeout * 4 + Duration::from_secs(10)
    }

    /// A process that is asked to stop ends its command, and then frees the record or gives that up.
    pub fn stop_limit(&self, host: usize) -> Duration {
        self.hosts[host].stop_timeout + self.session_timeout + Duration::from_secs(2)
    }

    pub fn machine(&self, host: usize, instance: Instance) -> machine::Settings {
        machine::Settings {
            wishes: Wishes::NONE,
            guarantee: Guarantee::AtMostOne,
            on_pause: OnPause::Run,
            on_exit: self.hosts[host].on_exit,
            on_loss: OnLoss::Rejoin,
            wait: None,
            connect_timeout: None,
            stop_timeout: self.hosts[host].stop_timeout,
            service: Service { stand_back: Duration::from_secs(2), ..Service::default() },
            preparations: Preparations::default(),
            steps: StepLimits::default(),
            instance,
        }
    }

    pub fn zookeeper(&self, host: usize, instance: Instance) -> zookeeper::Settings {
        zookeeper::Settings {
            servers: "in memory".to_owned(),
            chroot: String::new(),
            access: Access::default(),
            session_timeout: self.session_timeout,
            lease: None,
            base: "/zk-leader-run/job".to_owned(),
            election: "/zk-leader-run/job/election".to_owned(),
            acl: Acl::open(),
            is_shared: false,
            recipe: self.recipe,
            guarantee: Guarantee::AtMostOne,
            leaders: 1,
            priority: 0,
            id: format!("host{host}:{instance}"),
            host: format!("host{host}"),
            pid: 1,
            instance,
            once: None,
        }
    }
}

impl HostPlan {
    fn draw(rng: &mut Rng) -> Self {
        Self {
            stop_timeout: Duration::from_millis(rng.between(200, 5_000)),
            on_exit: rng.pick(&[OnExit::Exit, OnExit::Rejoin, OnExit::Restart]),
            temper: Temper { ends: rng.pick(&[0, 0, 20, 50]), ignores_stop: rng.pick(&[0, 0, 30, 100]) },
            restarts_after: Duration::from_millis(rng.between(10, 3_000)),
        }
    }
}

impl Fault {
    /// A link that has become slow may be cut before it is fast again: the last renewals were answered late.
    fn fades(&self, rng: &mut Rng) -> Option<(Duration, Self)> {
        let Self::Slow { host, latency, length } = *self else { return None };
        let cut = Self::Cut { host, server: None, way: None, length: length + latency * 10 };
        rng.chance(60).then(|| (Duration::from_micros(rng.below(length.as_micros() as u64)), cut))
    }

    fn draw(rng: &mut Rng, hosts: usize, servers: usize, session_timeout: Duration) -> Self {
        let (host, server) = (rng.below(hosts as u64) as usize, rng.below(servers as u64) as usize);
        let timeout = session_timeout.as_millis() as u64;
        let length = if rng.chance(50) { rng.below(timeout) } else { rng.below(3 * timeout) };
        let length = Duration::from_millis(length);
        let way = rng.pick(&[Direction::Up, Direction::Down]);
        match rng.below(24) {
            0..4 => {
                let (way, server) = (rng.pick(&[None, Some(way)]), rng.pick(&[None, Some(server)]));
                Self::Cut { host, server, way, length }
            }
            4..7 => Self::Reset { host },
            7..11 => Self::Lose { host, way },
            11 => Self::Slow { host, latency: session_timeout / rng.pick(&[2, 4, 10]), length },
            12 | 13 => Self::ServerDown { server, length },
            14 => Self::ServerPaused { server, length },
            15 => Self::ServerIsolated { server, length },
            16 => Self::ServerLags { server, lag: Duration::from_millis(rng.below(1_000)), length },
            17 => Self::NoQuorum { length },
            18 | 19 => Self::Slow { host, latency: session_timeout * rng.pick(&[10, 20, 30]) / 100, length },
            _ => {
                let blow = rng.pick(&[Blow::Sigterm, Blow::Crash, Blow::PowerLoss, Blow::GuardDies]);
                Self::Blow { host, blow }
            }
        }
    }
}
