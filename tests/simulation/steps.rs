//! Steps around the command, each with a guard of its own: they fail, hang, leave processes behind, survive SIGKILL, or
//! lose their guard.

use std::time::Duration;

use zk_leader_run::core::action::Action;
use zk_leader_run::core::event::{Event, StepOutcome};
use zk_leader_run::core::guard_messages::{Cause, ChildStatus, Deadlines, Order, Report, RunId};
use zk_leader_run::core::settings::{StepKind, StepLimits};
use zk_leader_run::core::time::Timestamp;
use zk_leader_run::guard::policy::{CommandSignal, GuardAction, Input, Policy};

use crate::clock::{MILLI, Real, SECOND};
use crate::rng::Rng;
use crate::script::HostPlan;
use crate::world::{Occurrence, World};

const KILLED: ChildStatus = ChildStatus::Signaled(9);

/// What happens to a step, its tree or its guard.
#[derive(Clone, Copy, Debug)]
pub enum What {
    GuardTold(Input),
    GuardWakes { generation: u32 },
    GuardDies { run: RunId },
    Ends { run: RunId, status: ChildStatus },
    Dies { run: RunId },
}

/// The guards of both steps of one supervisor.
#[derive(Debug, Default)]
pub struct StepGuards {
    before_start: StepGuard,
    after_stop: StepGuard,
    /// The term whose `--before-start` really succeeded.
    prepared: Option<i64>,
}

#[derive(Debug, Default)]
struct StepGuard {
    policy: Policy,
    is_dead: bool,
    run: u64,
    token: i64,
    generation: u32,
    /// Sockets do not reorder.
    order_arrives_at: Real,
    tree: Option<StepTree>,
}

#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about processes")]
struct StepTree {
    run: RunId,
    /// The latest that the guard has read.
    kill_at: Timestamp,
    kill_latency: Real,
    command_lives: bool,
    descendants_live: bool,
    ignores_stop: bool,
    /// It outlived its deadline for a stated reason: the host slept, or SIGKILL had no effect.
    overslept: bool,
    unkillable_until: Real,
}

impl StepTree {
    fn lives(&self) -> bool {
        self.command_lives || self.descendants_live
    }
}

impl StepGuards {
    fn of(&mut self, kind: StepKind) -> &mut StepGuard {
        match kind {
            StepKind::BeforeStart => &mut self.before_start,
            StepKind::AfterStop => &mut self.after_stop,
        }
    }

    fn trees(&self) -> impl Iterator<Item = &StepTree> {
        let trees = [&self.before_start, &self.after_stop].into_iter().filter_map(|guard| guard.tree.as_ref());
        trees.filter(|tree| tree.lives())
    }

    pub fn live(&self) -> bool {
        self.trees().next().is_some()
    }

    /// A tree that must not live beside another.
    pub fn run(&self, now: Timestamp) -> bool {
        self.trees().any(|tree| !tree.overslept || now <= tree.kill_at)
    }

    /// What survives SIGKILL is not waited for, once its lease is over.
    pub fn are_over(&self, now: Timestamp) -> bool {
        self.trees().all(|tree| now > tree.kill_at)
    }
}

impl HostPlan {
    pub fn with_steps(mut self, rng: &mut Rng) -> Self {
        let mut limit = || {
            let limit = Duration::from_millis(rng.between(200, 6_000));
            rng.pick(&[None, Some(limit), Some(limit)])
        };
        self.settings.steps = StepLimits { before_start: limit(), after_stop: limit() };
        self
    }
}

impl World {
    /// Whatever the machine asks for.
    pub fn perform_step(&mut self, instance: usize, action: Action) {
        let order = match action {
            Action::RunStep { step, grant, deadlines, .. } => {
                self.check_begin(instance, step, deadlines);
                let guard = self.instances[instance].steps.of(step);
                guard.run += 1;
                guard.token = grant.token;
                if guard.is_dead {
                    return self.step_answers(instance, step, StepOutcome::GuardGone);
                }
                (step, Order::Start { run: RunId(guard.run), deadlines, grant })
            }
            Action::ExtendStep { step, deadlines } => {
                (step, Order::Extend { run: RunId(self.instances[instance].steps.of(step).run), deadlines })
            }
            Action::StopStep { step, by } => {
                (step, Order::Stop { run: RunId(self.instances[instance].steps.of(step).run), by })
            }
            _ => return,
        };
        let delay = self.rng(instance).below(MILLI);
        let now = self.now;
        let guard = self.instances[instance].steps.of(order.0);
        guard.order_arrives_at = guard.order_arrives_at.max(now + delay);
        let at = guard.order_arrives_at;
        self.push(at, Occurrence::Step { instance, kind: order.0, what: What::GuardTold(Input::Ordered(order.1)) });
    }

    fn check_begin(&mut self, instance: usize, kind: StepKind, deadlines: Deadlines) {
        let this = &self.instances[instance];
        let lease = this.machine.snapshot().held_term.and_then(|held| held.deadlines);
        if this.has_tree() || this.steps.live() {
            self.oracle.fail(format!("I3: instance {instance} orders {kind:?} beside a live tree"));
        }
        let within = lease.is_some_and(|lease| deadlines.kill_at <= lease.kill_at);
        if !within || self.clock_of(instance).lease >= deadlines.kill_at {
            self.oracle.fail(format!("I1: instance {instance} orders {kind:?} without a lease: {deadlines:?}"));
        }
    }

    /// A command is started: its `--before-start` has succeeded in this term.
    pub fn check_prepared(&mut self, instance: usize, token: i64) {
        let this = &self.instances[instance];
        if this.settings.steps.before_start.is_some() && this.steps.prepared != Some(token) {
            self.oracle.fail(format!("instance {instance} starts its command without --before-start"));
        }
    }

    pub fn step_happens(&mut self, instance: usize, kind: StepKind, what: What) {
        let guard = self.instances[instance].steps.of(kind);
        match what {
            What::GuardTold(_) if guard.is_dead => {}
            What::GuardTold(input) => self.step_guard(instance, kind, input),
            What::GuardWakes { generation } if generation == guard.generation && !guard.is_dead => {
                self.step_guard(instance, kind, Input::Ticked);
            }
            What::GuardWakes { .. } => {}
            What::GuardDies { run } => self.step_guard_dies(instance, kind, run),
            What::Ends { run, status } => {
                let Some(tree) = guard.tree.as_mut().filter(|tree| tree.run == run && tree.command_lives) else {
                    return;
                };
                tree.command_lives = false;
                self.step_tree_may_have_died(instance, kind);
                self.step_happens(instance, kind, What::GuardTold(Input::CommandEnded(status)));
            }
            What::Dies { run } => self.step_tree_dies(instance, kind, run),
        }
    }

    fn step_guard(&mut self, instance: usize, kind: StepKind, input: Input) {
        let now = self.clock_of(instance).lease;
        self.note(|| format!("guard of {kind:?} {instance} {input:?}"));
        let guard = self.instances[instance].steps.of(kind);
        if let (Input::Ordered(Order::Extend { run, deadlines }), Some(tree)) = (input, &mut guard.tree) {
            if tree.run == run && now < tree.kill_at {
                tree.kill_at = tree.kill_at.max(deadlines.kill_at);
            }
        }
        let steps = guard.policy.handle(now, input);
        for step in steps {
            self.note(|| format!("guard of {kind:?} {instance}     => {step:?}"));
            self.step_guard_does(instance, kind, input, step);
        }
        let guard = self.instances[instance].steps.of(kind);
        guard.generation += 1;
        let (generation, deadline) = (guard.generation, guard.policy.next_deadline());
        let longest = guard.tree.map_or(MILLI, |tree| tree.kill_latency / 2);
        if let Some(deadline) = deadline {
            let delay = self.rng(instance).below(longest);
            let at = self.hosts[self.instances[instance].host].clock.real_of(deadline) + delay;
            self.push(at, Occurrence::Step { instance, kind, what: What::GuardWakes { generation } });
        }
    }

    fn step_guard_does(&mut self, instance: usize, kind: StepKind, input: Input, step: GuardAction) {
        match step {
            GuardAction::Spawn(_) => self.step_spawned(instance, kind, input),
            GuardAction::Signal(CommandSignal::Stop) => self.step_is_stopped(instance, kind),
            GuardAction::StopRest | GuardAction::KeepRest => self.step_rest_is_stopped(instance, kind),
            GuardAction::KillTree => self.step_is_killed(instance, kind),
            GuardAction::Report(Report::TreeEnded { status, cause, .. }) => {
                let well = (cause, status) == (Cause::ItsOwn, ChildStatus::Exited(0));
                if let (true, StepKind::BeforeStart) = (well, kind) {
                    let steps = &mut self.instances[instance].steps;
                    steps.prepared = Some(steps.before_start.token);
                }
                self.step_answers(instance, kind, if well { StepOutcome::Succeeded } else { StepOutcome::Failed });
            }
            GuardAction::Quit { .. } => self.instances[instance].steps.of(kind).is_dead = true,
            GuardAction::Report(_)
            | GuardAction::Signal(CommandSignal::Forwarded(_))
            | GuardAction::Freeze
            | GuardAction::Thaw => {}
        }
    }

    fn step_answers(&mut self, instance: usize, step: StepKind, outcome: StepOutcome) {
        let token = self.instances[instance].steps.of(step).token;
        let delay = self.rng(instance).below(MILLI);
        self.tell(instance, Event::StepEnded { step, token, outcome }, delay);
    }

    fn step_spawned(&mut self, instance: usize, kind: StepKind, input: Input) {
        let Input::Ordered(Order::Start { run, deadlines, .. }) = input else { return };
        self.oracle.step_spawned(&self.instances, &self.hosts, instance, self.now, self.script.guarantee);
        let (now, healed) = (self.now, self.healed);
        let slack = (self.timeout_of(instance).as_nanos() as Real / 40).min(100 * MILLI);
        let rng = self.rng(instance);
        let mut befalls = |percent| !healed && rng.chance(percent);
        let (forks, ignores_stop, hangs) = (befalls(25), befalls(25), befalls(15));
        let (fails, unkillable, loses_guard) = (befalls(15), befalls(4), befalls(3));
        let length = rng.below(if healed { 100 * MILLI } else { 3 * SECOND });
        let unkillable_until = if unkillable { now + length + rng.below(6 * SECOND) } else { 0 };
        let tree = StepTree {
            run,
            kill_at: deadlines.kill_at,
            kill_latency: slack / 2,
            command_lives: true,
            descendants_live: forks,
            ignores_stop,
            overslept: false,
            unkillable_until,
        };
        self.instances[instance].steps.of(kind).tree = Some(tree);
        self.push(now + MILLI, Occurrence::Step { instance, kind, what: What::GuardTold(Input::Executed { pid: 1 }) });
        let what = match (loses_guard, hangs || unkillable) {
            (true, _) => What::GuardDies { run },
            (false, true) => return,
            (false, false) => What::Ends { run, status: ChildStatus::Exited(u8::from(fails)) },
        };
        self.push(now + length, Occurrence::Step { instance, kind, what });
    }

    fn step_is_stopped(&mut self, instance: usize, kind: StepKind) {
        let Some(tree) = self.instances[instance].steps.of(kind).tree else { return };
        if tree.ignores_stop || self.now < tree.unkillable_until {
            return;
        }
        let delay = self.rng(instance).below(SECOND);
        let what = What::Ends { run: tree.run, status: ChildStatus::Signaled(15) };
        self.push(self.now + delay, Occurrence::Step { instance, kind, what });
    }

    fn step_rest_is_stopped(&mut self, instance: usize, kind: StepKind) {
        let Some(tree) = self.instances[instance].steps.of(kind).tree else { return };
        if tree.descendants_live && tree.ignores_stop {
            return;
        }
        let delay = self.rng(instance).below(SECOND).max(tree.unkillable_until.saturating_sub(self.now));
        self.push(self.now + delay, Occurrence::Step { instance, kind, what: What::Dies { run: tree.run } });
    }

    fn step_is_killed(&mut self, instance: usize, kind: StepKind) {
        let now = self.now;
        let Some(tree) = self.instances[instance].steps.of(kind).tree.as_mut() else { return };
        tree.overslept |= now < tree.unkillable_until;
        let tree = *tree;
        let delay = self.rng(instance).below(tree.kill_latency).max(tree.unkillable_until.saturating_sub(now));
        self.push(now + delay, Occurrence::Step { instance, kind, what: What::Dies { run: tree.run } });
    }

    fn step_tree_dies(&mut self, instance: usize, kind: StepKind, run: RunId) {
        let guard = self.instances[instance].steps.of(kind);
        let Some(tree) = guard.tree.as_mut().filter(|tree| tree.run == run) else { return };
        let command_lived = std::mem::take(&mut tree.command_lives);
        tree.descendants_live = false;
        self.note(|| format!("{kind:?} {instance}: the last process is gone"));
        self.step_tree_may_have_died(instance, kind);
        let guard = self.instances[instance].steps.of(kind);
        guard.tree = None;
        if guard.is_dead {
            return self.step_answers(instance, kind, StepOutcome::GuardGone);
        }
        if command_lived {
            self.step_guard(instance, kind, Input::CommandEnded(KILLED));
        }
        self.step_guard(instance, kind, Input::TreeEmpty);
    }

    /// Its sentinel ends the tree.
    fn step_guard_dies(&mut self, instance: usize, kind: StepKind, run: RunId) {
        let guard = self.instances[instance].steps.of(kind);
        if !guard.is_dead && guard.tree.is_some_and(|tree| tree.run == run) {
            guard.is_dead = true;
            self.note(|| format!("guard of {kind:?} {instance} dies"));
            self.step_is_killed(instance, kind);
        }
    }

    /// I1 for steps.
    fn step_tree_may_have_died(&mut self, instance: usize, kind: StepKind) {
        let now = self.clock_of(instance).lease;
        let Some(tree) = self.instances[instance].steps.of(kind).tree else { return };
        let slack = Duration::from_nanos(2 * tree.kill_latency);
        if !tree.lives() && !tree.overslept && now > tree.kill_at.after(2 * slack) {
            self.oracle.fail(format!("I1: {kind:?} of instance {instance} outlived {:?} until {now:?}", tree.kill_at));
        }
    }

    pub fn steps_lose_supervisor(&mut self, instance: usize) {
        self.tell_step_guards(instance, Input::SupervisorGone);
    }

    pub fn steps_wake_up(&mut self, instance: usize) {
        let now = self.clock_of(instance).lease;
        for kind in [StepKind::BeforeStart, StepKind::AfterStop] {
            if let Some(tree) = &mut self.instances[instance].steps.of(kind).tree {
                tree.overslept |= now >= tree.kill_at;
            }
        }
        self.tell_step_guards(instance, Input::ClockJumped);
    }

    fn tell_step_guards(&mut self, instance: usize, input: Input) {
        if self.instances[instance].settings.steps == StepLimits::default() {
            return;
        }
        for kind in [StepKind::BeforeStart, StepKind::AfterStop] {
            let delay = self.rng(instance).below(3 * MILLI);
            let at = self.instances[instance].steps.of(kind).order_arrives_at.max(self.now + delay);
            self.push(at, Occurrence::Step { instance, kind, what: What::GuardTold(input) });
        }
    }
}
