//! The guard's loop and the tree under it.

use std::time::Duration;

use zk_leader_run::core::event::Event;
use zk_leader_run::core::guard_messages::{ChildStatus, Grant, Order, Report, RunId};
use zk_leader_run::guard::policy::{CommandSignal, GuardAction, Input};

use crate::clock::{MILLI, Real, SECOND};
use crate::host::{Process, Tree};
use crate::oracle::Oracle;
use crate::release::Releaser;
use crate::requests::is_of;
use crate::script::Mark;
use crate::world::{Occurrence, World};

const KILLED: ChildStatus = ChildStatus::Signaled(9);

impl World {
    pub fn guard_told(&mut self, instance: usize, input: Input) {
        let guard = &mut self.instances[instance].guard;
        match guard.process {
            Process::Dead => {}
            Process::Hung => guard.inbox.push_back(input),
            Process::Running => self.guard(instance, input),
        }
    }

    pub fn guard_woken(&mut self, instance: usize, generation: u32) {
        if self.instances[instance].guard.generation == generation {
            self.guard_told(instance, Input::Ticked);
        }
    }

    fn guard(&mut self, instance: usize, input: Input) {
        let now = self.clock_of(instance).lease;
        self.note(|| format!("guard {instance} {input:?}"));
        Oracle::sees_order(&mut self.instances[instance], now, input);
        let steps = self.instances[instance].guard.policy.handle(now, input);
        for step in steps {
            self.note(|| format!("guard {instance}     => {step:?}"));
            self.step(instance, input, step);
        }
        self.schedule_guard(instance);
    }

    fn schedule_guard(&mut self, instance: usize) {
        let jitter = self.guard_jitter(instance);
        let delay = self.rng(instance).below(jitter);
        let this = &mut self.instances[instance];
        this.guard.generation += 1;
        this.guard.last_looked = self.now;
        if let Some(deadline) = this.guard.policy.next_deadline() {
            let at = self.hosts[this.host].clock.real_of(deadline) + delay;
            let generation = this.guard.generation;
            self.push(at, Occurrence::GuardWakes { instance, generation });
        }
    }

    /// A quarter of G.
    fn guard_jitter(&self, instance: usize) -> Real {
        self.instances[instance].tree.map_or(MILLI, |tree| tree.kill_latency / 2)
    }

    fn step(&mut self, instance: usize, input: Input, step: GuardAction) {
        match step {
            GuardAction::Spawn(grant) => self.spawn(instance, input, grant),
            GuardAction::Signal(CommandSignal::Stop) => self.stop_signalled(instance),
            GuardAction::Signal(CommandSignal::Forwarded(_)) => {}
            GuardAction::StopRest | GuardAction::KeepRest => self.rest_is_stopped(instance),
            GuardAction::KillTree => self.kill_tree(instance),
            GuardAction::Freeze => self.set_frozen(instance, true),
            GuardAction::Thaw => self.set_frozen(instance, false),
            GuardAction::Report(report) => self.report(instance, report),
            GuardAction::Quit { release } => {
                self.instances[instance].guard.process = Process::Dead;
                if let Some(grant) = release {
                    self.start_releaser(Releaser::new(instance, grant, self.now));
                }
            }
        }
    }

    fn report(&mut self, instance: usize, report: Report) {
        let delay = self.rng(instance).below(MILLI);
        let guard = &mut self.instances[instance].guard;
        guard.report_arrives_at = guard.report_arrives_at.max(self.now + delay);
        let at = guard.report_arrives_at;
        self.push(at, Occurrence::Told { instance, event: Event::Guard(report) });
    }

    fn spawn(&mut self, instance: usize, input: Input, grant: Grant) {
        let Input::Ordered(Order::Start { run, deadlines, .. }) = input else { return };
        let lease = self.instances[instance].settings.wishes.lease;
        let lease = lease.map_or(self.timeout_of(instance), |lease| lease.min(self.timeout_of(instance)));
        let slack = (lease.as_nanos() as Real / 40).min(100 * MILLI);
        let healed = self.healed;
        let rng = self.rng(instance);
        let descendants_live = !healed && rng.chance(30);
        let ignores_stop = !healed && rng.chance(30);
        let ends_in = rng.chance(if healed { 0 } else { 30 }).then(|| rng.below(4 * SECOND));
        let tree = Tree {
            run,
            token: grant.token,
            command_lives: true,
            descendants_live,
            ignores_stop,
            frozen: false,
            ends_when_thawed: None,
            kill_at: deadlines.kill_at,
            kill_latency: slack / 2,
            is_over: false,
            excused_until: 0,
            unkillable_until: 0,
        };
        self.oracle.spawned(&self.instances, &self.hosts, instance, &tree, self.now, self.script.guarantee);
        self.may_run_under_its_record(instance, grant);
        self.instances[instance].tree = Some(tree);
        self.run_started(instance);
        self.mark(Mark::Started);
        let pid = 1_000 + instance as i32;
        self.push(self.now + MILLI, Occurrence::GuardTold { instance, input: Input::Executed { pid } });
        if let Some(delay) = ends_in {
            let status = self.own_end(instance);
            self.push(self.now + delay, Occurrence::CommandEnds { instance, run, status });
        }
    }

    /// As long as the term is its own: whoever comes next counts from a version that waits as if nothing had run under it.
    fn may_run_under_its_record(&mut self, instance: usize, grant: Grant) {
        let state = self.ensemble.state();
        let is_ours = state.term.is_some_and(|term| term.version == grant.term);
        let waits = state.record.is_some_and(|record| is_of(record.nonce, instance) && record.waiting_on.is_some());
        if self.is_at_most_once() && is_ours && waits {
            self.oracle.fail(format!("instance {instance} starts under a record that waits"));
        }
    }

    /// How a command ends by itself: jobs that run once fail now and then.
    pub fn own_end(&mut self, instance: usize) -> ChildStatus {
        let fails = self.script.once.is_some() && self.rng(instance).chance(30);
        ChildStatus::Exited(u8::from(fails))
    }

    fn stop_signalled(&mut self, instance: usize) {
        let healed = self.healed;
        let Some(tree) = self.instances[instance].tree.filter(|tree| !tree.ignores_stop) else { return };
        let rng = self.rng(instance);
        let longest = if healed || rng.chance(60) { 10 * MILLI } else { 3 * SECOND };
        let delay = rng.below(longest);
        let status = ChildStatus::Signaled(15);
        self.push(self.now + delay, Occurrence::CommandEnds { instance, run: tree.run, status });
    }

    fn kill_tree(&mut self, instance: usize) {
        let now = self.now;
        let Some(tree) = self.instances[instance].tree.as_mut() else { return };
        if now < tree.unkillable_until {
            // A stated limit, which excuses no release, and nothing while its lease lasts.
            tree.excused_until = tree.excused_until.max(tree.unkillable_until + tree.kill_latency);
        }
        let tree = *tree;
        let delay = self.rng(instance).below(tree.kill_latency).max(tree.unkillable_until.saturating_sub(now));
        self.push(self.now + delay, Occurrence::TreeDies { instance, run: tree.run });
    }

    /// What is left ends, now or later, or not before it is killed.
    fn rest_is_stopped(&mut self, instance: usize) {
        let healed = self.healed;
        let Some(tree) = self.instances[instance].tree else { return };
        let rng = self.rng(instance);
        let delay = if !tree.descendants_live {
            rng.below(MILLI)
        } else if healed || rng.chance(60) {
            rng.below(3 * SECOND)
        } else {
            return;
        };
        // What SIGKILL cannot end obeys no other signal.
        let delay = delay.max(tree.unkillable_until.saturating_sub(self.now));
        self.push(self.now + delay, Occurrence::TreeDies { instance, run: tree.run });
    }

    fn set_frozen(&mut self, instance: usize, frozen: bool) {
        let Some(tree) = self.instances[instance].tree.as_mut() else { return };
        tree.frozen = frozen;
        if let Some(status) = tree.ends_when_thawed.take_if(|_| !frozen) {
            let run = tree.run;
            self.push(self.now, Occurrence::CommandEnds { instance, run, status });
        }
    }

    pub fn command_ended(&mut self, instance: usize, run: RunId, status: ChildStatus) {
        let Some(tree) = self.instances[instance].tree.as_mut() else { return };
        if tree.run != run || !tree.command_lives {
            return;
        }
        if tree.frozen {
            tree.ends_when_thawed = Some(status);
            return;
        }
        tree.command_lives = false;
        if status == ChildStatus::Exited(0) {
            self.run_succeeded(instance);
        }
        self.note(|| format!("tree {instance}: the command ends: {status:?}"));
        self.mark(Mark::CommandEnded);
        self.oracle.may_have_died(&self.instances[instance], self.now, self.hosts_clock(instance));
        self.guard_told(instance, Input::CommandEnded(status));
    }

    fn hosts_clock(&self, instance: usize) -> zk_leader_run::core::time::Timestamp {
        self.clock_of(instance).lease
    }

    /// SIGKILL has done its work.
    pub fn tree_died(&mut self, instance: usize, run: RunId) {
        let Some(tree) = self.instances[instance].tree.filter(|tree| tree.run == run && !tree.is_over) else { return };
        self.instances[instance].tree.iter_mut().for_each(|tree| tree.is_over = true);
        self.tree_is_gone(instance);
        if tree.command_lives {
            self.guard_told(instance, Input::CommandEnded(KILLED));
        }
        let delay = self.rng(instance).below(MILLI);
        self.push(self.now + delay, Occurrence::GuardTold { instance, input: Input::TreeEmpty });
    }

    pub fn tree_is_gone(&mut self, instance: usize) {
        let Some(tree) = self.instances[instance].tree.as_mut().filter(|tree| tree.lives()) else { return };
        (tree.command_lives, tree.descendants_live) = (false, false);
        self.note(|| format!("tree {instance}: the last process is gone"));
        self.oracle.may_have_died(&self.instances[instance], self.now, self.hosts_clock(instance));
    }

    /// SIGKILL from outside, or from the kernel's timer: the command dies by its parent-death signal.
    pub fn guard_dies(&mut self, instance: usize, lethal_timer: bool) {
        let this = &mut self.instances[instance];
        let rearmed = lethal_timer && this.guard.lethal_at.is_none_or(|at| self.now < at);
        if this.guard.process == Process::Dead || rearmed {
            return;
        }
        this.guard.process = Process::Dead;
        self.note(|| format!("guard {instance} dies"));
        let supervised = self.instances[instance].supervisor == Process::Running;
        let lives_on = |tree: &Tree| tree.descendants_live && supervised;
        if self.instances[instance].tree.as_ref().is_some_and(lives_on) {
            if let Some(tree) = self.instances[instance].tree.as_mut() {
                tree.command_lives = false;
            }
        } else {
            // Without a supervisor that runs, only a PID namespace ends the descendants: a stated limit.
            self.tree_is_gone(instance);
        }
        let delay = self.rng(instance).below(3 * MILLI);
        self.tell(instance, Event::GuardGone, delay);
    }

    pub fn end_orphans(&mut self, instance: usize) {
        let latency = self.guard_jitter(instance);
        let delay = self.rng(instance).below(latency);
        self.push(self.now + delay, Occurrence::OrphansDie { instance });
    }

    pub fn orphans_died(&mut self, instance: usize) {
        self.tree_is_gone(instance);
        self.tell(instance, Event::OrphansEnded, 0);
    }

    pub fn hang_guard(&mut self, instance: usize, length: Real) {
        let now = self.now;
        let this = &mut self.instances[instance];
        if this.guard.process != Process::Running {
            return;
        }
        this.guard.process = Process::Hung;
        // The kernel's timer was armed at the last slice, which lies up to 250 ms back.
        let host = this.host;
        let longest = (250 * MILLI).min(now - this.guard.last_looked);
        let armed_ago = self.hosts[host].rng.below(longest + 1);
        let armed_at = self.hosts[host].clock.now(now).lease.before(Duration::from_nanos(armed_ago));
        if let Some(lethal_in) = self.instances[instance].guard.policy.lethal_in(armed_at) {
            // On BOOTTIME, which is slewed against the holder's clock.
            let taken = lethal_in * self.script.hosts[host].boottime_percent / 100;
            let at = self.hosts[host].clock.real_of(armed_at.after(taken));
            self.instances[instance].guard.lethal_at = Some(at);
            self.push(at, Occurrence::GuardDies { instance, lethal_timer: true });
        }
        self.push(now + length, Occurrence::HangEnds { instance, supervisor: false });
    }

    /// BOOTTIME counted on while the host slept, unslewed.
    pub fn timer_wakes_up(&mut self, instance: usize, slept: Real) {
        let host = self.instances[instance].host;
        let skipped = slept / 100 * Real::from(self.script.hosts[host].boottime_percent);
        let now = self.now;
        if let Some(at) = self.instances[instance].guard.lethal_at.as_mut() {
            // It was set as if the host had been awake.
            *at = now.max((*at + slept).saturating_sub(skipped));
            let at = *at;
            self.push(at, Occurrence::GuardDies { instance, lethal_timer: true });
        }
    }

    pub fn guard_resumes(&mut self, instance: usize) {
        let guard = &mut self.instances[instance].guard;
        if guard.process != Process::Hung {
            return;
        }
        guard.process = Process::Running;
        guard.lethal_at = None;
        let inbox = std::mem::take(&mut guard.inbox);
        for input in inbox {
            self.guard_told(instance, input);
        }
        self.guard_told(instance, Input::Ticked);
    }
}
