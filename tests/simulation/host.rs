//! A host and the processes on it: supervisor, guard, command tree.

use std::collections::VecDeque;

use zk_leader_run::core::action::Action;
use zk_leader_run::core::event::{Candidacy, Event, Ineligibility, Request, SessionNumber};
use zk_leader_run::core::guard_messages::{ChildStatus, RunId};
use zk_leader_run::core::machine::{Machine, Settings};
use zk_leader_run::core::operator_orders::{OperatorOrders, Orders};
use zk_leader_run::core::preemption::Preemption;
use zk_leader_run::core::time::Timestamp;
use zk_leader_run::guard::policy::{Input, Policy};

use crate::clock::{HostClock, Real};
use crate::ensemble::{Candidate, SessionKey};
use crate::orders::StandingDrain;
use crate::rng::Rng;
use crate::runs::Slot;
use crate::script::HostPlan;
use crate::steps::StepGuards;

/// What is wrong on a host, and until when.
#[derive(Clone, Copy, Default, Debug)]
pub struct Weather {
    pub cut_until: Real,
    pub slow_until: Real,
    pub slowest: Real,
    pub lossy_until: Real,
    pub deaf_until: Real,
    pub blind_until: Real,
    pub lag_until: Real,
    /// From the other hosts.
    pub severed_until: Real,
    pub hears_nobody_until: Real,
}

#[derive(Debug)]
pub struct Host {
    pub clock: HostClock,
    pub weather: Weather,
    /// What bars its processes, each until then.
    pub bars: Vec<(Ineligibility, Real)>,
    pub drain: Option<StandingDrain>,
    pub suspended_from: Real,
    pub suspended_until: Real,
    /// The newest process on it.
    pub instance: Option<usize>,
    pub rng: Rng,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Process {
    Running,
    Hung,
    Dead,
}

/// The client's end of one session.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    pub number: SessionNumber,
    pub key: Option<SessionKey>,
    pub told_lost: bool,
    pub told_over: bool,
}

#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about processes")]
pub struct Tree {
    pub run: RunId,
    pub token: i64,
    pub command_lives: bool,
    pub descendants_live: bool,
    pub ignores_stop: bool,
    pub frozen: bool,
    /// Ended while frozen: happens on the thaw.
    pub ends_when_thawed: Option<ChildStatus>,
    /// The latest that was ever ordered.
    pub kill_at: Timestamp,
    /// Half of G: how long SIGKILL takes at most.
    pub kill_latency: Real,
    /// The guard was told, or will be, that nothing of it is left.
    pub is_over: bool,
    /// It may outlive its deadline until then, a stated limit: its host slept through that, or SIGKILL has no effect yet.
    /// Before its deadline nothing is excused.
    pub excused_until: Real,
    /// SIGKILL takes effect then.
    pub unkillable_until: Real,
}

impl Tree {
    pub fn lives(&self) -> bool {
        self.command_lives || self.descendants_live
    }

    /// `clock`: that of its host.
    pub fn is_excused(&self, now: Real, clock: Timestamp) -> bool {
        now < self.excused_until && clock > self.kill_at
    }
}

#[derive(Debug)]
pub struct Guard {
    pub policy: Policy,
    pub process: Process,
    pub inbox: VecDeque<Input>,
    pub generation: u32,
    pub last_looked: Real,
    /// When the kernel's timer kills a hung guard.
    pub lethal_at: Option<Real>,
    /// Sockets do not reorder.
    pub order_arrives_at: Real,
    pub report_arrives_at: Real,
}

/// One supervisor with its guard.
#[derive(Debug)]
pub struct Instance {
    pub host: usize,
    pub settings: Settings,
    pub machine: Machine,
    pub orders: Orders,
    pub docket: OperatorOrders,
    pub preemption: Preemption,
    pub priority: i16,
    /// Before the event that it has heard last.
    pub was_barred: bool,
    pub supervisor: Process,
    pub inbox: VecDeque<Event>,
    pub generation: u32,
    pub client: Option<Client>,
    /// What the machine waits for.
    pub awaited: Option<(Candidacy, Request)>,
    pub guard: Guard,
    pub tree: Option<Tree>,
    pub steps: StepGuards,
    pub stops_requested: u32,
    /// What it was called for.
    pub slot: Slot,
    /// How its run ended, as it said.
    pub ended: Option<bool>,
    /// Its marked run never began, as it said.
    pub withdraws_run: bool,
}

impl Instance {
    pub fn new(host: usize, plan: &HostPlan, settings: &Settings, machine: Machine, slot: Slot) -> Self {
        Self {
            host,
            settings: *settings,
            machine,
            orders: Orders::default(),
            docket: OperatorOrders::default(),
            preemption: Preemption::new(plan.preempt_after),
            priority: plan.priority,
            was_barred: false,
            supervisor: Process::Running,
            inbox: VecDeque::new(),
            generation: 0,
            client: None,
            awaited: None,
            guard: Guard {
                policy: Policy::new(15),
                process: Process::Running,
                inbox: VecDeque::new(),
                generation: 0,
                last_looked: 0,
                lethal_at: None,
                order_arrives_at: 0,
                report_arrives_at: 0,
            },
            tree: None,
            steps: StepGuards::default(),
            stops_requested: 0,
            slot,
            ended: None,
            withdraws_run: false,
        }
    }

    /// As far as it knows.
    pub fn has_no_session(&self) -> bool {
        self.client.is_none_or(|client| client.told_over || client.key.is_none())
    }

    pub fn has_tree(&self) -> bool {
        self.tree.as_ref().is_some_and(Tree::lives)
    }
}

/// A request that left the machine.
#[derive(Debug)]
pub struct Call {
    pub instance: usize,
    pub session: SessionKey,
    pub candidacy: Candidacy,
    pub request: Request,
    pub action: Action,
    pub sent_at: Timestamp,
    pub fate: Fate,
    pub step: u8,
    /// As it was read. `None`: with one seat for all, somebody else has it.
    pub line: Option<Vec<Candidate>>,
    pub term_version: i32,
    pub answered: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Answered,
    RequestLost,
    ReplyLost,
    /// Applied after the client has given it up.
    Late,
}
