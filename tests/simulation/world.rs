//! One run of a script: a queue of what happens next, in virtual time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use zk_leader_run::core::event::{Event, Ineligibility, SessionNumber};
use zk_leader_run::core::guard_messages::{ChildStatus, Order, RunId};
use zk_leader_run::core::machine::{Machine, Settings};
use zk_leader_run::core::settings::{Guarantee, StepKind};
use zk_leader_run::core::time::Now;
use zk_leader_run::guard::policy::Input;

use crate::clock::{HostClock, MILLI, Real, SECOND};
use crate::coverage::Coverage;
use crate::ensemble::{Ensemble, Fired, SessionKey};
use crate::host::{Call, Client, Host, Instance, Process, Weather};
use crate::oracle::Oracle;
use crate::orders::StandingOrder;
use crate::release::Releaser;
use crate::rng::Rng;
use crate::runs::slot_at;
use crate::script::{Mark, Script, When};
use crate::steps::What;

/// Something that is going to happen.
#[derive(Debug)]
pub enum Occurrence {
    Fault { step: usize },
    CutEnds { host: usize },
    HangEnds { instance: usize, supervisor: bool },
    Resumes { host: usize },
    Restarts { host: usize },
    Wakes { instance: usize, generation: u32 },
    Told { instance: usize, event: Event },
    GuardWakes { instance: usize, generation: u32 },
    GuardTold { instance: usize, input: Input },
    GuardDies { instance: usize, lethal_timer: bool },
    CommandEnds { instance: usize, run: RunId, status: ChildStatus },
    TreeDies { instance: usize, run: RunId },
    OrphansDie { instance: usize },
    Step { instance: usize, kind: StepKind, what: What },
    Serves { call: usize },
    Replies { call: usize, event: Event },
    TimesOut { call: usize },
    Handshakes { instance: usize, number: SessionNumber },
    SessionCloses { session: SessionKey },
    SessionExpires { session: SessionKey, epoch: u32 },
    ClientNotices { instance: usize, number: SessionNumber, over: bool, cut_until: Real },
    Reconnects { instance: usize, number: SessionNumber },
    WatchFires { fired: Fired },
    Releases { releaser: Releaser },
    BarLifted { bar: Ineligibility },
    OrdersCome { instance: usize },
    Asks { instance: usize, session: SessionKey },
    AskedFor { instance: usize, token: i64 },
}

#[derive(Debug)]
pub struct World {
    pub script: Script,
    pub now: Real,
    pub hosts: Vec<Host>,
    pub instances: Vec<Instance>,
    pub calls: Vec<Call>,
    pub ensemble: Ensemble,
    pub oracle: Oracle,
    pub coverage: Coverage,
    pub healed: bool,
    /// Nobody is restarted any more.
    pub is_final: bool,
    /// Someone left while a take-over was under way: the record may stay held, and costs its wait.
    pub abandoned: bool,
    pub standing_order: Option<StandingOrder>,
    pub log: Option<Vec<String>>,
    marks: HashMap<Mark, u32>,
    queue: BinaryHeap<Reverse<(Real, u64, usize)>>,
    slots: Vec<Option<Occurrence>>,
    free: Vec<usize>,
    queued: u64,
}

impl World {
    pub fn new(script: &Script, logged: bool) -> Self {
        let hosts = script.hosts.iter().enumerate().map(|(index, plan)| Host {
            clock: HostClock { offset: plan.clock_offset, drift_ppm: plan.drift_ppm, suspended: 0 },
            weather: Weather::default(),
            bars: Vec::new(),
            drain: None,
            suspended_from: 0,
            suspended_until: 0,
            instance: None,
            rng: Rng::new(script.seed, 100 + index as u64),
        });
        let mut world = Self {
            now: 0,
            hosts: hosts.collect(),
            instances: Vec::new(),
            calls: Vec::new(),
            ensemble: Ensemble::new(script.recipe, script.is_shared),
            oracle: Oracle::default(),
            coverage: Coverage::default(),
            healed: false,
            is_final: false,
            abandoned: false,
            standing_order: None,
            log: logged.then(Vec::new),
            marks: HashMap::new(),
            queue: BinaryHeap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            queued: 0,
            script: script.clone(),
        };
        world.schedule_script();
        world
    }

    fn schedule_script(&mut self) {
        for index in 0..self.script.steps.len() {
            if let When::At(at) = self.script.steps[index].when {
                self.push(at, Occurrence::Fault { step: index });
            }
        }
        for host in 0..self.hosts.len() {
            let at = self.hosts[host].rng.below(300 * MILLI);
            self.push(at, Occurrence::Restarts { host });
        }
    }

    pub fn push(&mut self, at: Real, occurrence: Occurrence) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(occurrence);
        self.queued += 1;
        self.queue.push(Reverse((at.max(self.now), self.queued, slot)));
    }

    /// Runs until `end`, or until something is wrong.
    pub fn run_until(&mut self, end: Real) {
        while let Some(&Reverse((at, _, slot))) = self.queue.peek() {
            if at > end || self.oracle.violation.is_some() {
                break;
            }
            self.queue.pop();
            self.free.push(slot);
            self.now = at;
            let occurrence = self.slots[slot].take().unwrap();
            match self.asleep_until(&occurrence) {
                Some(until) => self.push(until, occurrence),
                None => self.happen(occurrence),
            }
            self.send_fired();
        }
        self.now = self.now.max(end);
    }

    /// Nothing happens on a suspended host.
    fn asleep_until(&self, occurrence: &Occurrence) -> Option<Real> {
        let host = match occurrence {
            Occurrence::HangEnds { instance, .. }
            | Occurrence::Wakes { instance, .. }
            | Occurrence::Told { instance, .. }
            | Occurrence::GuardWakes { instance, .. }
            | Occurrence::GuardTold { instance, .. }
            | Occurrence::GuardDies { instance, .. }
            | Occurrence::CommandEnds { instance, .. }
            | Occurrence::TreeDies { instance, .. }
            | Occurrence::OrphansDie { instance }
            | Occurrence::Step { instance, .. }
            | Occurrence::Handshakes { instance, .. }
            | Occurrence::ClientNotices { instance, .. }
            | Occurrence::OrdersCome { instance }
            | Occurrence::AskedFor { instance, .. }
            | Occurrence::Reconnects { instance, .. } => self.instances[*instance].host,
            Occurrence::Restarts { host } => *host,
            _ => return None,
        };
        let until = self.hosts[host].suspended_until;
        (self.now < until).then_some(until)
    }

    fn happen(&mut self, occurrence: Occurrence) {
        match occurrence {
            Occurrence::Fault { step } => self.strike(step),
            Occurrence::CutEnds { host } => self.cut_ended(host),
            Occurrence::HangEnds { instance, supervisor } => self.hang_ended(instance, supervisor),
            Occurrence::Resumes { host } => self.resumed(host),
            Occurrence::Restarts { host } => self.restart(host),
            Occurrence::Wakes { instance, generation } => self.woken(instance, generation),
            Occurrence::Told { instance, event } => self.told(instance, event),
            Occurrence::GuardWakes { instance, generation } => self.guard_woken(instance, generation),
            Occurrence::GuardTold { instance, input } => self.guard_told(instance, input),
            Occurrence::GuardDies { instance, lethal_timer } => self.guard_dies(instance, lethal_timer),
            Occurrence::CommandEnds { instance, run, status } => self.command_ended(instance, run, status),
            Occurrence::TreeDies { instance, run } => self.tree_died(instance, run),
            Occurrence::OrphansDie { instance } => self.orphans_died(instance),
            Occurrence::Step { instance, kind, what } => self.step_happens(instance, kind, what),
            Occurrence::Serves { call } => self.serve(call),
            Occurrence::Replies { call, event } => self.reply_arrived(call, event),
            Occurrence::TimesOut { call } => self.timed_out(call),
            Occurrence::Handshakes { instance, number } => self.handshake(instance, number),
            Occurrence::SessionCloses { session } => self.close_session(session),
            Occurrence::SessionExpires { session, epoch } => self.session_expires(session, epoch),
            Occurrence::ClientNotices { instance, number, over, cut_until } => {
                self.client_notices(instance, number, over, cut_until);
            }
            Occurrence::Reconnects { instance, number } => self.reconnects(instance, number),
            Occurrence::WatchFires { fired } => self.watch_fires(fired),
            Occurrence::BarLifted { bar } => self.bar_lifted(bar),
            Occurrence::Releases { releaser } => self.releaser_works(releaser),
            Occurrence::OrdersCome { instance } => self.orders_come(instance),
            Occurrence::Asks { instance, session } => self.asks(instance, session),
            Occurrence::AskedFor { instance, token } => self.asked_for(instance, token),
        }
    }

    /// Watches that fired are on their way to their sessions.
    fn send_fired(&mut self) {
        for fired in self.ensemble.take_fired() {
            let host = self.instances[self.ensemble.sessions[fired.session].instance].host;
            let at = self.now + self.latency(host);
            self.push(at, Occurrence::WatchFires { fired });
        }
    }

    /// Someone did what a fault may wait for.
    pub fn mark(&mut self, mark: Mark) {
        let count = self.marks.entry(mark).or_default();
        *count += 1;
        let now_at = *count;
        for index in 0..self.script.steps.len() {
            let When::After { mark: awaited, count, delay } = self.script.steps[index].when else { continue };
            if (awaited, count) == (mark, now_at) {
                self.push(self.now + delay, Occurrence::Fault { step: index });
            }
        }
    }

    pub fn clock_of(&self, instance: usize) -> Now {
        self.hosts[self.instances[instance].host].clock.now(self.now)
    }

    pub fn rng(&mut self, instance: usize) -> &mut Rng {
        &mut self.hosts[self.instances[instance].host].rng
    }

    pub fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            let (seconds, micros) = (self.now / SECOND, self.now % SECOND / 1_000);
            log.push(format!("{seconds:>4}.{micros:06}  {}", text()));
        }
    }

    pub fn is_at_most_once(&self) -> bool {
        self.script.guarantee == Guarantee::AtMostOne
    }

    /// A new supervisor and guard on the host.
    pub fn start_instance(&mut self, host: usize, settings: &Settings) -> usize {
        let index = self.instances.len();
        let settings = Settings { instance: index as u64 + 1, ..*settings };
        let machine = Machine::new(settings, self.hosts[host].clock.now(self.now));
        self.instances.push(Instance::new(host, &self.script.hosts[host], &settings, machine, slot_at(self.now)));
        self.hosts[host].instance = Some(index);
        // Nobody enters before the orders are known.
        self.read_orders(index);
        self.note(|| format!("host {host}: instance {index} starts"));
        self.tell(index, Event::Ticked, 0);
        index
    }

    /// The supervisor will read this event.
    pub fn tell(&mut self, instance: usize, event: Event, delay: Real) {
        self.push(self.now + delay, Occurrence::Told { instance, event });
    }

    pub fn order(&mut self, instance: usize, order: Order) {
        let delay = self.rng(instance).below(MILLI);
        let guard = &mut self.instances[instance].guard;
        guard.order_arrives_at = guard.order_arrives_at.max(self.now + delay);
        let at = guard.order_arrives_at;
        self.push(at, Occurrence::GuardTold { instance, input: Input::Ordered(order) });
    }

    /// The client of this session, if it is the instance's present one.
    pub fn client(&mut self, instance: usize, number: SessionNumber) -> Option<&mut Client> {
        self.instances[instance].client.as_mut().filter(|client| client.number == number)
    }

    pub fn is_cut(&self, host: usize) -> bool {
        self.now < self.hosts[host].weather.cut_until
    }

    /// Pings reach the ensemble.
    pub fn has_contact(&self, instance: usize) -> bool {
        let this = &self.instances[instance];
        this.supervisor == Process::Running
            && !self.is_cut(this.host)
            && self.now >= self.hosts[this.host].suspended_until
    }
}
