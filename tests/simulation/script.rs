//! A script: the hosts and what befalls them, all drawn from one seed.

use std::time::Duration;

use zk_leader_run::core::event::Ineligibility;
use zk_leader_run::core::lease::{Timing, Wishes};
use zk_leader_run::core::machine::Settings;
use zk_leader_run::core::restart::{RestartOn, Rules};
use zk_leader_run::core::settings::{Guarantee, OnExit, OnLoss, OnPause, Preparations, Recipe, Service, StepLimits};

use crate::clock::{MILLI, Real, SECOND};
use crate::direct;
use crate::rng::Rng;
use crate::runs::Once;

/// One host: its clock and how its supervisors are started.
#[derive(Clone, Debug)]
pub struct HostPlan {
    pub clock_offset: u64,
    pub drift_ppm: i64,
    /// How much of the nominal time a kernel timer takes, in percent: BOOTTIME may be slewed by 10 %.
    pub boottime_percent: u32,
    pub session_timeout: Duration,
    pub settings: Settings,
    pub restarted: bool,
    pub priority: i16,
    pub preempt_after: Option<Duration>,
}

/// Whom a fault befalls.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    Host(usize),
    /// The host on which a tree lives, else the one that is first in line.
    Holder,
    /// The host that holds the record and waits for the previous lease to end, else nobody.
    Waiter,
    Everyone,
}

/// What sets a fault off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    At(Real),
    /// So long after the n-th time that anyone did this.
    After {
        mark: Mark,
        count: u32,
        delay: Real,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mark {
    TakeOverSent,
    TakeOverApplied,
    WaitBegan,
    RenewalSent,
    ReleaseSent,
    ReleaseApplied,
    Started,
    CommandEnded,
    StopSignalled,
}

pub const MARKS: [Mark; 9] = [
    Mark::TakeOverSent,
    Mark::TakeOverApplied,
    Mark::WaitBegan,
    Mark::RenewalSent,
    Mark::ReleaseSent,
    Mark::ReleaseApplied,
    Mark::Started,
    Mark::CommandEnded,
    Mark::StopSignalled,
];

#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// Nothing passes between the host and the ensemble.
    Cut(Real),
    /// Messages take up to the second length.
    Slow(Real, Real),
    /// Requests and replies are lost, or requests applied late.
    Lossy(Real),
    /// The client says nothing about the connection.
    Deaf(Real),
    /// The client does not learn that its session is over.
    Blind(Real),
    /// The host's server answers reads from an older state.
    Lag(Real),
    /// Nothing passes between the host and the other hosts.
    Sever(Real),
    /// The host is told nothing by the other hosts, and they hear it.
    SeverTowards(Real),
    ExpireSession,
    HangSupervisor(Real),
    HangGuard(Real),
    HangBoth(Real),
    CrashSupervisor,
    KillGuard,
    /// The guard of a health, eligibility or fence command is killed.
    LoseCheck,
    Suspend(Real),
    CommandEnds,
    RequestStop {
        twice: bool,
    },
    /// What runs survives SIGKILL, for so long.
    Unkillable(Real),
    Signal,
    DeleteCandidate,
    DeleteElection,
    DeleteRecord,
    /// The host is unhealthy, or not eligible.
    Ineligibility(Ineligibility, Real),
    /// An operator wants nobody to run the command.
    Disable(Real),
    /// An operator wants the leader to go, and perhaps that host to lead.
    HandOver {
        to: Option<usize>,
        lasts: Real,
    },
    /// An operator drains the host.
    Drain {
        lasts: Real,
        force: bool,
    },
}

#[derive(Clone, Debug)]
pub struct Step {
    pub when: When,
    pub target: Target,
    pub fault: Fault,
}

#[derive(Clone, Debug)]
pub struct Script {
    pub seed: u64,
    pub recipe: Recipe,
    /// Other libraries may contend there, too: no record and no priority says who is first.
    pub is_shared: bool,
    pub guarantee: Guarantee,
    /// Every host's job runs once for each slot.
    pub once: Option<Once>,
    pub hosts: Vec<HostPlan>,
    pub steps: Vec<Step>,
    /// All faults end and everyone is restarted.
    pub healed_at: Real,
}

impl Script {
    pub fn draw(seed: u64, guarantee: Guarantee) -> Self {
        let mut rng = Rng::new(seed, 1);
        let recipe = if rng.chance(75) { Recipe::Sequential } else { Recipe::Single };
        let timeouts: &[u64] = match (guarantee, rng.below(10)) {
            (Guarantee::AtLeastOne, _) => &[4],
            (_, 0) => &[4, 40],
            (_, 1) => &[4, 6, 10],
            _ => &[4],
        };
        let hosts = rng.pick(&[2, 2, 3, 3, 4]);
        let hosts: Vec<HostPlan> = (0..hosts).map(|_| draw_host(&mut rng, guarantee, timeouts)).collect();
        let once = (guarantee == Guarantee::AtMostOne && rng.chance(25))
            .then(|| rng.pick(&[Once::AtMost, Once::AtMost, Once::RetryFailed]));
        let mut company = Rng::new(seed, 2);
        let is_shared = recipe == Recipe::Sequential && guarantee == Guarantee::AtMostOne && company.chance(8);
        let has_ranks = recipe == Recipe::Sequential && !is_shared && company.chance(40);
        let hosts = hosts.into_iter().map(|host| host.of_jobs(once).beside_others(is_shared));
        let hosts: Vec<HostPlan> =
            hosts.map(|host| if has_ranks { host.of_rank(&mut company) } else { host }).collect();
        let mut around = Rng::new(seed, 3);
        let hosts: Vec<HostPlan> = if around.chance(30) {
            hosts.into_iter().map(|host| host.with_steps(&mut around)).collect()
        } else {
            hosts
        };
        let longest = hosts.iter().map(|host| host.session_timeout.as_nanos() as Real).max().unwrap_or(0);
        let healed_at = rng.between(longest, 4 * longest);
        let mut steps: Vec<Step> =
            (0..rng.between(1, 13)).map(|_| draw_step(&mut rng, hosts.len(), healed_at, longest)).collect();
        if rng.chance(20) {
            steps.extend(draw_chain(&mut rng, longest));
        }
        let (mut hosts, mut vouching) = (hosts, Rng::new(seed, 4));
        let may_vouch = recipe == Recipe::Sequential && guarantee == Guarantee::AtMostOne && !is_shared;
        // A third of all scripts.
        let mut healed_at = healed_at;
        if may_vouch && vouching.chance(50) {
            let outage = direct::outage(&mut vouching, longest);
            steps.extend(direct::draw(&mut vouching, &mut hosts, (longest, outage)));
            healed_at += outage;
        }
        Self { seed, recipe, is_shared, guarantee, once, hosts, steps, healed_at }
    }

    /// How long a host that the leader does not need may have to wait.
    pub fn longest_limit(&self) -> Real {
        let limits = self.hosts.iter().filter_map(|host| host.settings.vouch);
        limits.map(|limit| limit.as_nanos() as Real).max().unwrap_or(0)
    }
}

impl HostPlan {
    /// As `config::run_once` has it.
    fn of_jobs(mut self, once: Option<Once>) -> Self {
        let settings = &mut self.settings;
        settings.preparations.marks &= settings.guarantee == Guarantee::AtLeastOne;
        if let Some(once) = once {
            settings.preparations.marks = true;
            settings.on_exit = OnExit::Exit;
            settings.on_loss = if once == Once::AtMost { OnLoss::Exit } else { settings.on_loss };
        }
        self
    }

    fn beside_others(mut self, is_shared: bool) -> Self {
        let wishes = Wishes { is_shared, ..self.settings.wishes };
        let fits = Timing::new(self.session_timeout, &wishes).is_ok();
        self.settings.wishes = if fits { wishes } else { Wishes { is_shared, ..Wishes::NONE } };
        if !fits && self.settings.on_pause == OnPause::Freeze {
            self.settings.on_pause = OnPause::Run;
        }
        self
    }

    fn of_rank(self, rng: &mut Rng) -> Self {
        let [none, at_once, later] = [None, Some(Duration::ZERO), Some(Duration::from_millis(rng.between(1, 3_000)))];
        Self { priority: rng.pick(&[0, 0, 5, 9]), preempt_after: rng.pick(&[none, at_once, later]), ..self }
    }
}

fn draw_host(rng: &mut Rng, guarantee: Guarantee, timeouts: &[u64]) -> HostPlan {
    let session_timeout = Duration::from_secs(rng.pick(timeouts));
    let drift_ppm = if rng.chance(50) { rng.pick(&[-9_990, 9_990]) } else { rng.between(0, 19_980) as i64 - 9_990 };
    HostPlan {
        clock_offset: rng.below(1_000_000 * SECOND),
        drift_ppm,
        boottime_percent: rng.pick(&[91, 100, 111]),
        session_timeout,
        settings: draw_settings(rng, guarantee, session_timeout),
        restarted: rng.chance(80),
        priority: 0,
        preempt_after: None,
    }
}

fn draw_settings(rng: &mut Rng, guarantee: Guarantee, session_timeout: Duration) -> Settings {
    let at_least_once = guarantee == Guarantee::AtLeastOne;
    let on_pause = rng.pick(&[
        OnPause::Run,
        OnPause::Run,
        OnPause::Freeze,
        OnPause::Signal { pause: 10, resume: Some(12) },
        OnPause::Signal { pause: 10, resume: None },
    ]);
    let wishes = Wishes {
        lease: rng.pick(&[None, None, None, Some(session_timeout), Some(session_timeout * 2)]),
        reserve: rng.pick(&[None, None, Some(Duration::from_millis(500)), Some(Duration::ZERO)]),
        frozen_while_paused: on_pause == OnPause::Freeze,
        grace: rng.pick(&[None, None, Some(Duration::ZERO), Some(Duration::from_secs(1))]),
        max_pause: at_least_once.then_some(session_timeout * rng.pick(&[10, 100])),
        is_shared: false,
    };
    // Only settings that fit are ever started.
    let wishes =
        if Timing::new(session_timeout, &wishes).is_ok() { wishes } else { tame_wishes(guarantee, session_timeout) };
    let on_pause = if wishes.frozen_while_paused == (on_pause == OnPause::Freeze) { on_pause } else { OnPause::Run };
    Settings {
        wishes,
        guarantee,
        on_pause,
        on_exit: rng.pick(&[OnExit::Exit, OnExit::Rejoin, OnExit::Restart]),
        on_loss: rng.pick(&[OnLoss::Rejoin, OnLoss::Rejoin, OnLoss::Exit]),
        wait: rng.pick(&[None, None, None, None, Some(Duration::ZERO), Some(Duration::from_secs(5))]),
        connect_timeout: rng.pick(&[None, None, Some(Duration::from_secs(3))]),
        stop_timeout: Duration::from_millis(rng.between(200, 10_000)),
        service: draw_service(rng, guarantee),
        preparations: Preparations { fences: rng.chance(25), marks: rng.chance(25) },
        steps: StepLimits::default(),
        vouch: None,
        instance: 1,
    }
}

fn draw_service(rng: &mut Rng, guarantee: Guarantee) -> Service {
    let timeout = Duration::from_millis(rng.between(500, 8_000));
    let delayed = guarantee == Guarantee::AtMostOne && rng.chance(10);
    Service {
        restart: Rules {
            on: rng.pick(&[RestartOn::Failure, RestartOn::Always]),
            delay: Duration::from_millis(rng.between(1, 1_000)),
            longest_delay: Duration::from_millis(rng.between(1_000, 6_000)),
            most: rng.pick(&[None, Some(0), Some(2)]),
            min_interval: Duration::from_millis(rng.pick(&[0, 0, 0, 3_000])),
            ..Rules::default()
        },
        stand_back: Duration::from_millis(rng.between(100, 5_000)),
        timeout: rng.pick(&[None, None, Some(timeout)]),
        start_deadline: rng.pick(&[None, None, None, Some(Duration::from_secs(9))]),
        takeover_delay: if delayed { Duration::from_secs(2) } else { Duration::ZERO },
    }
}

fn tame_wishes(guarantee: Guarantee, session_timeout: Duration) -> Wishes {
    let max_pause = (guarantee == Guarantee::AtLeastOne).then_some(session_timeout * 100);
    Wishes { max_pause, ..Wishes::NONE }
}

/// How everyone is restarted when the faults are over.
pub fn tame(plan: &HostPlan) -> Settings {
    Settings {
        wishes: Wishes {
            is_shared: plan.settings.wishes.is_shared,
            ..tame_wishes(plan.settings.guarantee, plan.session_timeout)
        },
        on_pause: OnPause::Run,
        on_exit: OnExit::Rejoin,
        on_loss: OnLoss::Rejoin,
        wait: None,
        connect_timeout: None,
        stop_timeout: Duration::from_secs(2),
        service: Service::default(),
        preparations: Preparations::default(),
        ..plan.settings
    }
}

fn draw_step(rng: &mut Rng, hosts: usize, healed_at: Real, longest: Real) -> Step {
    let when = if rng.chance(60) {
        When::At(rng.below(healed_at))
    } else {
        let delay = if rng.chance(70) { rng.below(6 * MILLI) } else { rng.below(longest) };
        When::After { mark: rng.pick(&MARKS), count: rng.between(1, 5) as u32, delay }
    };
    let target = match rng.below(10) {
        0 => Target::Everyone,
        1..=5 => Target::Holder,
        _ => Target::Host(rng.below(hosts as u64) as usize),
    };
    Step { when, target, fault: draw_fault(rng, hosts, longest) }
}

/// A holder that loses its place under a fresh record, and successors that lose theirs while they wait for its lease.
fn draw_chain(rng: &mut Rng, longest: Real) -> Vec<Step> {
    let (mark, delay) = (Mark::Started, rng.below(longest / 2));
    let when = When::After { mark, count: rng.between(1, 3) as u32, delay };
    let fault = rng.pick(&[Fault::ExpireSession, Fault::DeleteCandidate, Fault::HangBoth(longest)]);
    let mut steps = vec![Step { when, target: Target::Holder, fault }];
    if let Fault::HangBoth(_) = fault {
        steps.push(Step { when, target: Target::Holder, fault: Fault::ExpireSession });
    }
    for count in 1..=rng.between(1, 8) as u32 {
        let when = When::After { mark: Mark::WaitBegan, count, delay: rng.below(longest / 2) };
        let fault = rng.pick(&[
            Fault::ExpireSession,
            Fault::ExpireSession,
            Fault::DeleteCandidate,
            Fault::RequestStop { twice: false },
            Fault::Suspend(longest / 4),
            Fault::Lossy(longest),
            Fault::DeleteRecord,
        ]);
        steps.push(Step { when, target: Target::Waiter, fault });
        if rng.chance(50) {
            steps.push(Step { when, target: Target::Waiter, fault: Fault::CrashSupervisor });
        }
    }
    steps
}

fn draw_fault(rng: &mut Rng, hosts: usize, longest: Real) -> Fault {
    let short = rng.below(longest / 4);
    let long = rng.below(longest + longest / 2);
    let length = if rng.chance(40) { short } else { long };
    match rng.below(26) {
        0..=2 => Fault::Cut(length),
        3 => Fault::Slow(length, rng.between(10 * MILLI, longest / 2)),
        4 | 5 => Fault::Lossy(length),
        6 => Fault::Deaf(length),
        7 => Fault::Blind(length),
        8 => Fault::Lag(length),
        9 | 10 => Fault::ExpireSession,
        11 | 12 => Fault::HangSupervisor(length),
        13 => Fault::HangGuard(length),
        14 => Fault::HangBoth(length),
        15 => Fault::CrashSupervisor,
        16 => Fault::KillGuard,
        17 => Fault::Suspend(length),
        18 => Fault::CommandEnds,
        19 => Fault::RequestStop { twice: rng.chance(30) },
        20 => Fault::Signal,
        21 => Fault::DeleteCandidate,
        22 => Fault::Ineligibility(rng.pick(&[Ineligibility::Unhealthy, Ineligibility::Ineligible]), length),
        23 => {
            let host = rng.below(hosts as u64) as usize;
            Fault::HandOver { to: rng.pick(&[None, Some(host)]), lasts: length }
        }
        24 if rng.chance(50) => Fault::Disable(length),
        24 => Fault::Drain { lasts: length, force: rng.chance(30) },
        _ => rng.pick(&[Fault::DeleteElection, Fault::DeleteRecord, Fault::Unkillable(length), Fault::LoseCheck]),
    }
}
