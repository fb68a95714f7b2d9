//! The supervisor's loop: events in, actions carried out, one timer.

use zk_leader_run::core::action::{Action, ExitReason, PhaseName, Transition};
use zk_leader_run::core::event::{Event, Request};
use zk_leader_run::core::guard_messages::Order;
use zk_leader_run::core::time::{Now, Timestamp};
use zk_leader_run::guard::policy::Input;

use crate::clock::{MILLI, Real, SECOND};
use crate::host::{Process, Weather};
use crate::oracle::answers;
use crate::script::{Mark, tame};
use crate::world::{Occurrence, World};

/// In one of so many quiet moments a machine is replaced. In one of 16 it took a third of the whole time, in one of 64 an eighth.
const REPLACED: u64 = 256;

/// How often a machine may ask to be woken at once before that is a busy loop.
const IMPATIENCE: u32 = 4;

/// The guard looks at the clock at least so often.
const LONGEST_LOOK: Real = 250 * MILLI;
/// A kernel timer may be late by so many percent of a suspend.
const SLOWEST_TIMER: Real = 10;

impl World {
    pub fn told(&mut self, instance: usize, event: Event) {
        let this = &mut self.instances[instance];
        match this.supervisor {
            Process::Dead => {}
            Process::Hung => this.inbox.push_back(event),
            Process::Running => self.supervise(instance, event),
        }
    }

    pub fn woken(&mut self, instance: usize, generation: u32) {
        if self.instances[instance].generation == generation {
            self.told(instance, Event::Ticked);
        }
    }

    fn supervise(&mut self, instance: usize, event: Event) {
        self.play(instance, event);
        for _ in 0..IMPATIENCE {
            let now = self.clock_of(instance);
            match self.instances[instance].next_deadline(now) {
                Some(at) if at <= now.lease => self.play(instance, Event::Ticked),
                deadline => return self.schedule_wake(instance, deadline),
            }
        }
        let phase = self.instances[instance].machine.phase();
        self.oracle.fail(format!("instance {instance} asks to be woken at once for ever in {phase:?}"));
    }

    fn schedule_wake(&mut self, instance: usize, deadline: Option<Timestamp>) {
        let this = &mut self.instances[instance];
        this.generation += 1;
        let generation = this.generation;
        if let Some(deadline) = deadline {
            let host = this.host;
            let at = self.hosts[host].clock.real_of(deadline) + self.hosts[host].rng.below(3 * MILLI);
            self.push(at, Occurrence::Wakes { instance, generation });
        }
    }

    fn play(&mut self, instance: usize, event: Event) {
        self.handle(instance, event);
        self.heed_orders(instance);
    }

    pub fn handle(&mut self, instance: usize, event: Event) {
        let now = self.clock_of(instance);
        let this = &mut self.instances[instance];
        let taking_over = this.awaited.is_some_and(|(_, request)| request == Request::TakeOver);
        if this.awaited.is_some_and(|awaited| answers(&event, awaited)) {
            this.awaited = None;
        }
        self.coverage.visit(this.machine.phase(), &event);
        this.was_barred = this.machine.ineligibilities().is_any();
        let actions = this.machine.handle(now, event);
        crate::replacement::replace(&mut this.machine, &this.settings, now, REPLACED);
        self.note(|| format!("instance {instance} {event:?}"));
        self.abandoned |= taking_over && actions.iter().any(|action| matches!(action, Action::Exit(_)));
        for action in actions {
            self.note(|| format!("instance {instance}     => {action:?}"));
            self.perform(instance, now, action);
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each action")]
    fn perform(&mut self, instance: usize, now: Now, action: Action) {
        self.oracle.sees_action(&self.instances, instance, now, &action, self.is_at_most_once());
        match action {
            Action::Connect { session } => self.connect(instance, session),
            Action::Enter { candidacy } => self.send(instance, candidacy, Request::Enter, action),
            Action::Look { candidacy } => self.send(instance, candidacy, Request::Look, action),
            Action::Observe { candidacy, .. } => self.send(instance, candidacy, Request::Observe, action),
            Action::TakeOver { candidacy, .. } => {
                self.mark(Mark::TakeOverSent);
                self.send(instance, candidacy, Request::TakeOver, action);
            }
            Action::Renew { candidacy, .. } => {
                self.mark(Mark::RenewalSent);
                self.send(instance, candidacy, Request::Renew, action);
            }
            Action::Mark { candidacy, .. } => {
                self.instances[instance].withdraws_run = false;
                self.send(instance, candidacy, Request::Mark, action);
            }
            Action::Fence { grant } => {
                let (longest, healed) = (if self.healed { SECOND } else { 3 * SECOND }, self.healed);
                let (delay, lucky) = (self.rng(instance).below(longest), self.rng(instance).chance(70));
                let is_fenced = healed || lucky;
                self.tell(instance, Event::Fenced { token: grant.token, is_fenced }, delay);
            }
            // No server of this ensemble differs from the others.
            Action::EndFence | Action::ForgetTerms | Action::LeaveServer => {}
            Action::RunStep { .. } | Action::ExtendStep { .. } | Action::StopStep { .. } | Action::SkipStep { .. } => {
                self.perform_step(instance, action);
            }
            Action::EndRun { ok, .. } => self.instances[instance].ended = Some(ok),
            Action::WithdrawRun => self.instances[instance].withdraws_run = true,
            Action::Release { candidacy, .. } => {
                self.mark(Mark::ReleaseSent);
                self.send(instance, candidacy, Request::Release, action);
            }
            Action::Ask { to, question } => self.asks_directly(instance, to, question),
            Action::Reply { reply } => self.replies_directly(instance, reply),
            Action::Guard(order) => self.ordered(instance, order),
            Action::EndGuard => self.push(self.now, Occurrence::GuardDies { instance, lethal_timer: false }),
            Action::EndOrphans => self.end_orphans(instance),
            Action::Announce(Transition { from, to, .. }) => {
                self.coverage.pass(from, to);
                if to == PhaseName::Waiting {
                    self.mark(Mark::WaitBegan);
                }
            }
            Action::Exit(reason) => self.exits(instance, reason),
        }
    }

    fn ordered(&mut self, instance: usize, order: Order) {
        if let Order::Stop { .. } = order {
            self.mark(Mark::StopSignalled);
        }
        if let Order::Start { grant, .. } = order {
            self.check_prepared(instance, grant.token);
        }
        self.order(instance, order);
    }

    fn exits(&mut self, instance: usize, reason: ExitReason) {
        self.run_was_given_up(instance, reason);
        if self.instances[instance].settings.vouch.is_some() && reason != ExitReason::StoodStill {
            self.says_gone(instance);
        }
        self.note(|| format!("instance {instance} exits"));
        self.close_client(instance);
        self.ends(instance, reason == ExitReason::StoodStill);
    }

    /// By itself or by a crash: the guard notices.
    pub fn supervisor_ends(&mut self, instance: usize) {
        self.ends(instance, false);
    }

    /// `anew`: the program starts itself again.
    fn ends(&mut self, instance: usize, anew: bool) {
        let this = &mut self.instances[instance];
        this.supervisor = Process::Dead;
        this.inbox.clear();
        let host = this.host;
        if this.guard.process == Process::Dead {
            // Both gone together: a stated limit of the containments without a PID namespace.
            self.tree_is_gone(instance);
        }
        let delay = self.hosts[host].rng.below(5 * MILLI);
        // What it said before counts.
        let at = self.instances[instance].guard.order_arrives_at.max(self.now + delay);
        self.push(at, Occurrence::GuardTold { instance, input: Input::SupervisorGone });
        self.steps_lose_supervisor(instance);
        if self.script.hosts[host].restarted || self.healed || anew {
            let delay = self.hosts[host].rng.between(10 * MILLI, 2 * SECOND);
            self.push(self.now + delay, Occurrence::Restarts { host });
        }
    }

    pub fn restart(&mut self, host: usize) {
        let idle = self.hosts[host].instance.is_none_or(|last| self.instances[last].supervisor == Process::Dead);
        if idle && !self.is_final {
            let plan = &self.script.hosts[host];
            let settings = if self.healed { tame(plan) } else { plan.settings };
            let instance = self.start_instance(host, &settings);
            self.tell_bars(instance);
        }
    }

    pub fn hang_ended(&mut self, instance: usize, supervisor: bool) {
        if !supervisor {
            return self.guard_resumes(instance);
        }
        let this = &mut self.instances[instance];
        if this.supervisor != Process::Hung {
            return;
        }
        this.supervisor = Process::Running;
        let inbox = std::mem::take(&mut this.inbox);
        self.note(|| format!("instance {instance} goes on"));
        // Whatever the loop reads first.
        if self.rng(instance).chance(50) {
            self.supervise(instance, Event::Ticked);
        }
        for event in inbox {
            if self.instances[instance].supervisor == Process::Running {
                self.supervise(instance, event);
            }
        }
        if self.instances[instance].supervisor == Process::Running {
            self.supervise(instance, Event::Ticked);
        }
        self.may_reconnect(instance);
    }

    pub fn resumed(&mut self, host: usize) {
        let until = self.hosts[host].suspended_until;
        if until == 0 || self.now < until {
            return;
        }
        self.hosts[host].suspended_until = 0;
        let from = self.hosts[host].suspended_from;
        self.hosts[host].clock.suspended += self.now - from;
        self.note(|| format!("host {host} wakes up"));
        for instance in 0..self.instances.len() {
            if self.instances[instance].host == host {
                self.wakes_up(instance, self.now - from);
            }
        }
    }

    fn wakes_up(&mut self, instance: usize, slept: Real) {
        let (at, now) = (self.now, self.clock_of(instance).lease);
        if let Some(tree) = self.instances[instance].tree.as_mut().filter(|tree| tree.lives() && now >= tree.kill_at) {
            let until = at + LONGEST_LOOK + slept / 100 * SLOWEST_TIMER + 4 * tree.kill_latency;
            tree.excused_until = tree.excused_until.max(until);
        }
        self.timer_wakes_up(instance, slept);
        self.steps_wake_up(instance);
        let delay = self.rng(instance).below(5 * MILLI);
        self.tell(instance, Event::ClockJumped, delay);
        // The guard looks at least every 250 ms of BOOTTIME, which counted on.
        let delay = self.rng(instance).below(LONGEST_LOOK.saturating_sub(slept).max(3 * MILLI));
        self.push(self.now + delay, Occurrence::GuardTold { instance, input: Input::ClockJumped });
        self.may_reconnect(instance);
    }

    /// All faults are over, and everyone who is gone is restarted. (A suspended host wakes up at its time.)
    pub fn heal(&mut self) {
        self.note(|| "all faults are over".to_string());
        self.healed = true;
        for host in 0..self.hosts.len() {
            self.hosts[host].weather = Weather::default();
            self.push(self.now, Occurrence::Restarts { host });
        }
        for instance in 0..self.instances.len() {
            self.push(self.now, Occurrence::HangEnds { instance, supervisor: true });
            self.push(self.now, Occurrence::HangEnds { instance, supervisor: false });
            self.may_reconnect(instance);
        }
    }
}
