//! What happens in one run, drawn from a seed.

use std::time::Duration;

use zk_leader_run::core::lease::Wishes;
use zk_leader_run::core::machine;
use zk_leader_run::core::restart::Rules;
use zk_leader_run::core::settings::{Guarantee, OnExit, OnLoss, OnPause, Preparations, Recipe, Service, StepLimits};
use zk_leader_run::zookeeper;
use zk_leader_run::zookeeper::client::acl::Acl;
use zk_leader_run::zookeeper::client::connect::Access;
use zk_leader_run::zookeeper::schema::member::About;
use zk_leader_run::zookeeper::schema::once::{Once, Per};

use crate::guard::Temper;
use crate::memory::network::Direction;
use crate::memory::rng::Rng;
use crate::oracle::Instance;
use crate::time;
use crate::upgrade::{self, Program};

#[derive(Clone, Debug)]
pub struct Script {
    pub seed: u64,
    pub servers: usize,
    pub hosts: Vec<HostPlan>,
    pub session_timeout: Duration,
    pub recipe: Recipe,
    pub leaders: u16,
    /// Each command runs once in each slot of 15 s, as by cron.
    pub is_cron: bool,
    pub latency: [Duration; 2],
    pub strikes: Vec<Strike>,
    pub healed_at: Duration,
    /// Nothing else befalls anybody: each command lives on in its term, and each host keeps its place.
    pub has_upgrades_only: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct HostPlan {
    pub stop_timeout: Duration,
    pub on_exit: OnExit,
    pub temper: Temper,
    pub steps: StepLimits,
    pub has_hook: bool,
    pub has_health: bool,
    pub has_eligible: bool,
    /// From the end of a process to the next one.
    pub restarts_after: Duration,
    /// How much its clock runs fast, in millionths: up to the 1 % of docs/design.md.
    pub drift_ppm: i64,
    /// The kernel's timer runs at this percentage of the real rate: it may be slewed by a tenth.
    pub kernel_rate: u32,
}

/// What happens at an instant, and after it, to one host.
#[derive(Clone, Debug)]
pub struct Strike {
    pub at: Duration,
    /// Whoever leads then, instead of the host that the faults name.
    pub is_at_leader: bool,
    /// Each so long after the first.
    pub faults: Vec<(Duration, Fault)>,
}

#[derive(Clone, Copy, Debug)]
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
    /// The servers end its sessions, as after a pause of their leader.
    Expire {
        host: usize,
    },
    /// An operator deletes its candidates.
    Delete {
        host: usize,
    },
    Lose {
        host: usize,
        way: Direction,
    },
    /// The next reply is lost, and all later ones of its connection, which stays.
    Mute {
        host: usize,
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
    Sigterm {
        host: usize,
    },
    /// This program is installed, and the supervisor is asked to execute it.
    Upgrade {
        host: usize,
        program: Program,
    },
    /// The supervisor dies; its guard does not.
    Crash {
        host: usize,
    },
    /// `guard`: which of them.
    GuardDies {
        host: usize,
        guard: usize,
    },
    /// Supervisor and guard die; the sentinel does not.
    BothDie {
        host: usize,
    },
    /// Nothing of it is left, and nobody is told.
    PowerLoss {
        host: usize,
    },
    SupervisorStops {
        host: usize,
        length: Duration,
    },
    GuardStops {
        host: usize,
        guard: usize,
        length: Duration,
    },
    BothStop {
        host: usize,
        length: Duration,
    },
    /// Every process of the host stands still.
    HostStops {
        host: usize,
        length: Duration,
    },
    /// The same, and its clocks say so.
    Suspend {
        host: usize,
        length: Duration,
    },
    /// SIGKILL has no effect on its command.
    Unkillable {
        host: usize,
        length: Duration,
    },
    /// A contender of another library stands in line, and leaves without a word.
    Stranger {
        length: Duration,
    },
    Operator(Act),
}

/// What an operator types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    Disable {
        lasts: Option<Duration>,
        wait: Option<Duration>,
    },
    Enable,
    /// `to`: a host, if its participant is known.
    Handover {
        to: Option<usize>,
        wait: bool,
        within: Duration,
    },
}

/// How long a host with a crash loop stays out of the queue.
pub const STAND_BACK: Duration = Duration::from_secs(2);
/// Of hooks and checks.
pub const ASIDE_LIMIT: Duration = Duration::from_secs(3);
pub const BASE: &str = "/zk-leader-run/job";
/// Percent of the scripts in which answers come late, and nothing else happens.
const LATE: u64 = 8;
const TICK: Duration = Duration::from_millis(500);

impl Script {
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed, 0x5348);
        let session_timeout = Duration::from_secs(rng.pick(&[3, 4, 6, 10]));
        let servers = rng.pick(&[1, 3, 3, 3, 5]);
        let count = rng.between(2, 5) as usize;
        let recipe =
            rng.pick(&[Recipe::Sequential, Recipe::Sequential, Recipe::CuratorLock, Recipe::Kazoo, Recipe::Single]);
        let mut hosts: Vec<_> = (0..count).map(|_| HostPlan::draw(&mut rng)).collect();
        let healed_at = Duration::from_secs(rng.between(5, 60));
        let is_late = rng.chance(LATE);
        if is_late {
            for host in &mut hosts {
                host.temper = Temper { ends: 0, ignores_stop: 100, starts_slowly: 0 };
            }
        }
        let healed_at = if is_late { session_timeout * 6 } else { healed_at };
        let mut strikes: Vec<_> = if is_late {
            vec![Strike::late(&mut rng, session_timeout)]
        } else {
            (0..rng.below(16)).map(|_| Strike::draw(&mut rng, count, servers, session_timeout, healed_at)).collect()
        };
        strikes.sort_by_key(|strike| strike.at);
        let leaders = if recipe == Recipe::Sequential { rng.pick(&[1, 1, 1, 2]) } else { 1 };
        let is_cron = rng.chance(8);
        let latency = [Duration::from_micros(200), Duration::from_millis(rng.pick(&[1, 5, 20, 60]))];
        let script = Self {
            seed,
            servers,
            hosts,
            session_timeout,
            recipe,
            leaders,
            is_cron,
            latency,
            strikes,
            healed_at,
            has_upgrades_only: false,
        };
        if is_late { script } else { upgrade::draw(script) }
    }

    pub fn ensemble(&self) -> crate::memory::Settings {
        crate::memory::Settings::of(self.servers).with_tick(TICK)
    }

    pub fn has_operator(&self) -> bool {
        self.strikes.iter().flat_map(|strike| &strike.faults).any(|(_, fault)| matches!(fault, Fault::Operator(_)))
    }

    /// By then somebody leads after all faults are over: the sessions of the dead expire, and then their lease.
    pub fn heal_limit(&self) -> Duration {
        let steps = self.hosts.iter().map(HostPlan::last_steps).max().unwrap_or_default();
        self.session_timeout * 4 + Duration::from_secs(10) + steps
    }

    /// A process that is asked to stop ends its command, and then frees the record or gives that up.
    pub fn stop_limit(&self, host: usize) -> Duration {
        let HostPlan { stop_timeout, .. } = self.hosts[host];
        stop_timeout + self.hosts[host].last_steps() + self.session_timeout + Duration::from_secs(2)
    }

    pub fn machine(&self, host: usize, instance: Instance) -> machine::Settings {
        machine::Settings {
            wishes: Wishes::NONE,
            guarantee: Guarantee::AtMostOne,
            on_pause: if self.freezes() { OnPause::Freeze } else { OnPause::Run },
            on_exit: self.hosts[host].on_exit,
            on_loss: OnLoss::Rejoin,
            wait: None,
            connect_timeout: None,
            stop_timeout: self.hosts[host].stop_timeout,
            service: Service {
                restart: Rules { most: Some(1), delay: Duration::from_millis(300), ..Rules::default() },
                stand_back: STAND_BACK,
                ..Service::default()
            },
            preparations: Preparations { fences: false, marks: self.is_cron },
            steps: self.hosts[host].steps,
            vouch: None,
            instance,
        }
    }

    /// `--on-pause freeze`: a command without contact does not run.
    pub fn freezes(&self) -> bool {
        self.seed % 8 == 0
    }

    fn once(&self) -> Option<Once> {
        let slot = time::elapsed().as_secs() / 15;
        self.is_cron.then(|| Once { per: Per::Slot(slot.to_string()), retry_failed: false, keep_slots: 100 })
    }

    pub fn zookeeper(&self, host: usize, instance: Instance) -> zookeeper::Settings {
        zookeeper::Settings {
            servers: "in memory".to_owned(),
            chroot: String::new(),
            access: Access::default(),
            session_timeout: self.session_timeout,
            lease: None,
            base: BASE.to_owned(),
            election: format!("{BASE}/election"),
            acl: Acl::open(),
            is_shared: false,
            recipe: self.recipe,
            guarantee: Guarantee::AtMostOne,
            leaders: self.leaders,
            priority: 0,
            id: format!("host{host}:{instance}"),
            host: format!("host{host}"),
            pid: 1,
            pid_namespace: String::new(),
            instance,
            vouch: None,
            once: self.once(),
            about: About::default(),
        }
    }
}

impl Strike {
    fn draw(rng: &mut Rng, hosts: usize, servers: usize, session_timeout: Duration, healed_at: Duration) -> Self {
        let at = Duration::from_micros(rng.below(healed_at.as_micros() as u64));
        let fault = Fault::draw(rng, hosts, servers, session_timeout);
        let after = fault.fades(rng, session_timeout);
        let faults = std::iter::once((Duration::ZERO, fault)).chain(after).collect();
        Self { at, is_at_leader: rng.chance(40), faults }
    }

    /// The last answers reach the leader late, then none, and its candidate is gone: only its deadlines and the wait of its
    /// successor keep their trees apart.
    fn late(rng: &mut Rng, session_timeout: Duration) -> Self {
        let latency = session_timeout * rng.pick(&[15, 20, 25, 30]) / 100;
        let slow = Fault::Slow { host: 0, latency, length: session_timeout * 10 };
        let cut = Fault::Cut { host: 0, server: None, way: None, length: session_timeout * 10 };
        let cut_at = session_timeout + session_timeout * rng.below(100) as u32 / 100;
        let gone_at = cut_at + session_timeout * rng.below(100) as u32 / 100;
        let gone = rng.pick(&[Fault::Expire { host: 0 }, Fault::Delete { host: 0 }]);
        let faults = vec![(Duration::ZERO, slow), (cut_at, cut), (gone_at, gone)];
        Self { at: Duration::from_secs(4), is_at_leader: true, faults }
    }
}

impl HostPlan {
    fn draw(rng: &mut Rng) -> Self {
        Self {
            stop_timeout: Duration::from_millis(rng.between(200, 5_000)),
            on_exit: rng.pick(&[OnExit::Exit, OnExit::Rejoin, OnExit::Restart]),
            temper: Temper {
                ends: rng.pick(&[0, 0, 20, 50]),
                ignores_stop: rng.pick(&[0, 0, 30, 100]),
                starts_slowly: rng.pick(&[0, 0, 30]),
            },
            steps: Self::draw_steps(rng),
            has_hook: rng.chance(20),
            has_health: rng.chance(10),
            has_eligible: rng.chance(10),
            restarts_after: Duration::from_millis(rng.between(10, 3_000)),
            drift_ppm: rng.below(20_001) as i64 - 10_000,
            kernel_rate: rng.between(90, 110) as u32,
        }
    }

    fn draw_steps(rng: &mut Rng) -> StepLimits {
        let mut limit = || rng.chance(20).then(|| Duration::from_millis(rng.between(300, 6_000)));
        StepLimits { before_start: limit(), after_stop: limit() }
    }

    /// How long its processes may take at the end of a term and of the process, beside the command.
    fn last_steps(&self) -> Duration {
        let steps = self.steps.before_start.unwrap_or_default().max(self.steps.after_stop.unwrap_or_default());
        if self.has_hook { steps + ASIDE_LIMIT } else { steps }
    }
}

impl Fault {
    /// A link that has become slow may be cut before it is fast again: the last renewals were answered late. Its
    /// candidate may be gone before its lease is over.
    fn fades(&self, rng: &mut Rng, session_timeout: Duration) -> Vec<(Duration, Self)> {
        let Self::Slow { host, latency, length } = *self else { return Vec::new() };
        if rng.chance(40) {
            return Vec::new();
        }
        let cut = Self::Cut { host, server: None, way: None, length: length + session_timeout };
        let cut_at = Duration::from_micros(rng.below(length.as_micros() as u64)).max(latency * 4);
        let gone_at = cut_at + session_timeout * rng.below(100) as u32 / 100;
        let gone = rng.pick(&[None, Some(Self::Expire { host }), Some(Self::Delete { host })]);
        std::iter::once((cut_at, cut)).chain(gone.map(|gone| (gone_at, gone))).collect()
    }

    /// The host that it strikes.
    pub fn host(&mut self) -> Option<&mut usize> {
        match self {
            Self::Cut { host, .. }
            | Self::Reset { host }
            | Self::Expire { host }
            | Self::Delete { host }
            | Self::Lose { host, .. }
            | Self::Mute { host }
            | Self::Slow { host, .. }
            | Self::Sigterm { host }
            | Self::Upgrade { host, .. }
            | Self::Crash { host }
            | Self::GuardDies { host, .. }
            | Self::BothDie { host }
            | Self::PowerLoss { host }
            | Self::SupervisorStops { host, .. }
            | Self::GuardStops { host, .. }
            | Self::BothStop { host, .. }
            | Self::HostStops { host, .. }
            | Self::Suspend { host, .. }
            | Self::Unkillable { host, .. } => Some(host),
            Self::ServerDown { .. }
            | Self::ServerPaused { .. }
            | Self::ServerIsolated { .. }
            | Self::ServerLags { .. }
            | Self::NoQuorum { .. }
            | Self::Stranger { .. }
            | Self::Operator(_) => None,
        }
    }

    pub fn draw(rng: &mut Rng, hosts: usize, servers: usize, session_timeout: Duration) -> Self {
        let (host, server) = (rng.below(hosts as u64) as usize, rng.below(servers as u64) as usize);
        let timeout = session_timeout.as_millis() as u64;
        let length = if rng.chance(50) { rng.below(timeout) } else { rng.below(3 * timeout) };
        let length = Duration::from_millis(length);
        let way = rng.pick(&[Direction::Up, Direction::Down]);
        match rng.below(44) {
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
            20..28 => Self::of_process(rng, host, length),
            28..34 => Self::of_host(rng, host, length),
            34 => Self::Expire { host },
            36 => Self::Stranger { length },
            35 => Self::Delete { host },
            37 => Self::Mute { host },
            _ => Self::Operator(Act::draw(rng, hosts)),
        }
    }

    fn of_process(rng: &mut Rng, host: usize, length: Duration) -> Self {
        let any = rng.below(6) as usize;
        let guard = rng.pick(&[0, 0, any]);
        match rng.below(8) {
            0 | 1 => Self::Sigterm { host },
            2 => Self::Crash { host },
            3 => Self::GuardDies { host, guard },
            4 => Self::BothDie { host },
            5 => Self::SupervisorStops { host, length },
            6 => Self::GuardStops { host, guard, length },
            _ => Self::BothStop { host, length },
        }
    }

    fn of_host(rng: &mut Rng, host: usize, length: Duration) -> Self {
        match rng.below(4) {
            0 => Self::PowerLoss { host },
            1 => Self::HostStops { host, length },
            2 => Self::Suspend { host, length },
            _ => Self::Unkillable { host, length },
        }
    }
}

impl Act {
    fn draw(rng: &mut Rng, hosts: usize) -> Self {
        let seconds = |rng: &mut Rng, most| Duration::from_secs(rng.between(1, most));
        match rng.below(6) {
            0 => Self::Disable { lasts: None, wait: rng.chance(50).then(|| seconds(rng, 30)) },
            1 => Self::Disable { lasts: Some(seconds(rng, 20)), wait: None },
            2 => Self::Enable,
            _ => {
                let to = rng.chance(50).then(|| rng.below(hosts as u64) as usize);
                Self::Handover { to, wait: rng.chance(50), within: seconds(rng, 10) }
            }
        }
    }
}
