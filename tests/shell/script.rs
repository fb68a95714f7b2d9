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
use zk_leader_run::zookeeper::schema::settings::Vouch;

use crate::direct::{self, Weather};
use crate::guard::Temper;
use crate::memory::rng::Rng;
use crate::oracle::Instance;
use crate::strike::{Fault, Strike};
use crate::time;
use crate::upgrade;

#[derive(Clone, Debug)]
pub struct Script {
    pub seed: u64,
    pub servers: usize,
    pub hosts: Vec<HostPlan>,
    pub session_timeout: Duration,
    pub recipe: Recipe,
    pub leaders: u16,
    /// Each command runs once in each slot of [`SLOT`], as by cron.
    pub is_cron: bool,
    pub latency: [Duration; 2],
    pub strikes: Vec<Strike>,
    pub healed_at: Duration,
    /// Between the hosts; without those that vouch, nobody sends anything.
    pub weather: Weather,
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
    /// `--vouch-limit`, with `--vouch`.
    pub vouch: Option<Duration>,
    /// From the end of a process to the next one.
    pub restarts_after: Duration,
    /// How much its clock runs fast, in millionths: up to the 1 % of docs/design.md.
    pub drift_ppm: i64,
    /// The kernel's timer runs at this percentage of that clock's rate: it may be slewed by a tenth (`adjtimex(2)`).
    pub kernel_rate: u32,
}

pub const SLOT: Duration = Duration::from_secs(15);
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
        let leaders = if is_cron { runs_once(&mut hosts) } else { leaders };
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
            weather: Weather::default(),
            has_upgrades_only: false,
        };
        if is_late { script } else { upgrade::draw(script) }
    }

    /// As [`Self::draw`], of hosts that vouch for one another.
    pub fn draw_vouched(seed: u64) -> Self {
        let mut script = Self::draw(seed);
        let mut rng = Rng::new(seed, 0x5643);
        if matches!(script.recipe, Recipe::Single) {
            script.recipe = Recipe::Sequential;
        }
        script.leaders = 1;
        let timeout = script.session_timeout;
        let limit = |rng: &mut Rng| Some(timeout * rng.pick(&[2, 3, 4, 6, 8, 12]));
        let (common, have_own) = (limit(&mut rng), rng.chance(15));
        for host in &mut script.hosts {
            let has_it = rng.chance(93);
            host.vouch = if have_own { limit(&mut rng) } else { common }.filter(|_| has_it);
        }
        script.weather = Weather {
            lost: rng.pick(&[0, 0, 10, 30]),
            doubled: rng.pick(&[0, 0, 20]),
            late: rng.pick(&[0, 0, 5, 20]),
            late_most: timeout * rng.pick(&[1, 2, 10]),
            forged: rng.pick(&[0, 0, 20]),
        };
        if !script.has_upgrades_only {
            let (hosts, healed_at) = (script.hosts.len(), script.healed_at);
            script
                .strikes
                .extend((0..rng.between(1, 6)).map(|_| Strike::draw_vouched(&mut rng, hosts, timeout, healed_at)));
            let exchanges = rng.pick(&[0, 0, 1, 2]);
            script.strikes.extend((0..exchanges).map(|_| Strike::at_an_exchange(&mut rng, hosts, timeout, healed_at)));
            script.strikes.sort_by_key(|strike| strike.at);
        }
        script
    }

    pub fn ensemble(&self) -> crate::memory::Settings {
        crate::memory::Settings::of(self.servers).with_tick(TICK)
    }

    /// So many lead at once, when nothing is in their way.
    pub fn most_leaders(&self) -> usize {
        self.hosts.len().min(self.leaders.into())
    }

    pub fn has_operator(&self) -> bool {
        self.strikes.iter().flat_map(|strike| &strike.faults).any(|(_, fault)| matches!(fault, Fault::Operator(_)))
    }

    /// By then somebody leads after all faults are over: the sessions of the dead expire, and then their lease.
    pub fn heal_limit(&self) -> Duration {
        let steps = self.hosts.iter().map(HostPlan::last_steps).max().unwrap_or_default();
        // Who is not named in the record of the last leader waits for its limit.
        let limit = self.hosts.iter().filter_map(|host| host.vouch).max().unwrap_or_default();
        self.session_timeout * 4 + Duration::from_secs(10) + steps + limit * 21 / 10
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
            on_loss: if self.is_cron { OnLoss::Exit } else { OnLoss::Rejoin },
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
            vouch: self.hosts[host].vouch,
            instance,
        }
    }

    /// `--on-pause freeze`: a command without contact does not run.
    pub fn freezes(&self) -> bool {
        self.seed % 8 == 0
    }

    fn once(&self) -> Option<Once> {
        let slot = time::elapsed().as_secs() / SLOT.as_secs();
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
            max_pause: None,
            leaders: self.leaders,
            priority: 0,
            id: format!("host{host}:{instance}"),
            host: format!("host{host}"),
            pid: 1,
            pid_namespace: String::new(),
            instance,
            vouch: self.hosts[host].vouch.map(|limit| Vouch { address: direct::address(host, instance), limit }),
            once: self.once(),
            about: About::default(),
        }
    }
}

/// How many lead. A run is one command, which ends with its process: several leaders and later runs are refused.
fn runs_once(hosts: &mut [HostPlan]) -> u16 {
    for host in hosts {
        host.on_exit = OnExit::Exit;
    }
    1
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
            vouch: None,
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
