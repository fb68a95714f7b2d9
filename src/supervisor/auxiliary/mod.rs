//! Auxiliary commands. Each has its own guard, so its tree is contained, killed at its deadline and dies with this
//! process, like the command's. They do not delay the machine; their results become events of it.

mod eligibility;
mod fence;
mod health;
mod hooks;
mod runner;
mod step;

use std::ffi::{CString, OsString};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::core::action::Action;
use crate::core::event::Event;
use crate::core::health::Settings as HealthSettings;
use crate::core::order::{Grant, Order, Report};
use crate::core::settings::StepKind;
use crate::core::time::Timestamp;
use crate::guard::command::environment::Identity;
use crate::guard::handle::{self, Handle, Spawned};
use crate::observe::metrics::Metrics;
use crate::supervisor::zombies;
use crate::zookeeper::schema::pending_fences::PendingFence;

use eligibility::Eligibility;
use fence::Fence;
use health::HealthWatch;
use hooks::Hooks;
use runner::Runner;
use step::Step;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuxiliaryCommand {
    /// For `/bin/sh -c`.
    pub command: String,
    /// For one run, including SIGKILL to its whole tree.
    pub timeout: Duration,
}

/// The configured auxiliary commands.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Our identity, for their environment.
    pub identity: Identity,
    pub hook: Option<AuxiliaryCommand>,
    pub health: Option<(AuxiliaryCommand, HealthSettings)>,
    /// With the pause after a refusal.
    pub eligible: Option<(AuxiliaryCommand, Duration)>,
    pub fence: Option<AuxiliaryCommand>,
    pub before_start: Option<AuxiliaryCommand>,
    pub after_stop: Option<AuxiliaryCommand>,
}

/// Every guard of this process, before the runtime exists.
#[derive(Debug)]
pub struct Guards {
    pub command: Spawned,
    hook: Option<Spawned>,
    health: Option<Spawned>,
    eligible: Option<Spawned>,
    fence: Option<Spawned>,
    before_start: Option<Spawned>,
    after_stop: Option<Spawned>,
}

/// Forks the guard of the command and one for each auxiliary command. Call it first in `main`.
///
/// # Errors
/// See [`handle::fork`]. The guards that were forked already end by themselves.
pub fn fork(command: handle::Settings, errands: &Settings) -> Result<Guards, handle::Error> {
    let mut forked = vec![Some(handle::fork(command)?)];
    fork_next(&mut forked, errands.hook.as_ref())?;
    fork_next(&mut forked, errands.health.as_ref().map(|(errand, _)| errand))?;
    fork_next(&mut forked, errands.eligible.as_ref().map(|(errand, _)| errand))?;
    fork_next(&mut forked, errands.fence.as_ref())?;
    fork_next(&mut forked, errands.before_start.as_ref())?;
    fork_next(&mut forked, errands.after_stop.as_ref())?;
    let mut forked = forked.into_iter();
    let command = forked.next().flatten().ok_or_else(|| io::Error::other("there is no guard"))?;
    let mut next = || forked.next().flatten();
    let (hook, health, eligible, fence) = (next(), next(), next(), next());
    Ok(Guards { command, hook, health, eligible, fence, before_start: next(), after_stop: next() })
}

fn fork_next(forked: &mut Vec<Option<Spawned>>, errand: Option<&AuxiliaryCommand>) -> Result<(), handle::Error> {
    let in_a_shell = |errand: &AuxiliaryCommand| ["/bin/sh", "-c", &errand.command].map(OsString::from).to_vec();
    let spawned = errand.map(|errand| handle::fork_errand(in_a_shell(errand), forked)).transpose()?;
    forked.push(spawned);
    Ok(())
}

/// See the module page.
#[derive(Default)]
pub struct AuxiliaryCommands {
    hooks: Option<Hooks>,
    health: Option<HealthWatch>,
    eligibility: Option<Eligibility>,
    fence: Option<Fence>,
    before_start: Option<Step>,
    after_stop: Option<Step>,
    /// The term of the last start of the command.
    grant: Option<Grant>,
    guards: Vec<i32>,
}

impl AuxiliaryCommands {
    /// Also returns the handle of the command's guard. Call it inside a runtime.
    ///
    /// # Errors
    /// If a guard's socket cannot be registered, or SIGCHLD cannot be caught.
    pub fn new(settings: Settings, guards: Guards, metrics: &Arc<Metrics>) -> io::Result<(Self, Handle)> {
        let command = guards.command.into_handle()?;
        let identity = || settings.identity.clone();
        let mut errands = Self::default();
        if let Some((errand, guard)) = settings.hook.zip(guards.hook) {
            let runner = Runner::new("--hook", guard.into_handle()?, errand.timeout);
            errands.hooks = Some(Hooks::new(runner, errand.timeout, identity()));
        }
        if let Some(((errand, health), guard)) = settings.health.zip(guards.health) {
            let runner = Runner::new("--health-cmd", guard.into_handle()?, errand.timeout);
            errands.health = Some(HealthWatch::new(runner, errand.timeout, health, identity()));
        }
        if let Some(((errand, pause), guard)) = settings.eligible.zip(guards.eligible) {
            let runner = Runner::new("--eligible-cmd", guard.into_handle()?, errand.timeout);
            errands.eligibility = Some(Eligibility::new(runner, errand.timeout, pause, identity()));
        }
        if let Some((errand, guard)) = settings.fence.zip(guards.fence) {
            let runner = Runner::new("--fence-cmd", guard.into_handle()?, errand.timeout);
            errands.fence = Some(Fence::new(runner, errand.timeout, identity()));
        }
        let step = |kind, (errand, guard): (AuxiliaryCommand, Spawned)| -> io::Result<Step> {
            let runner = Runner::new(step::option(kind), guard.into_handle()?, errand.timeout);
            Ok(Step::new(kind, runner, errand.timeout, identity()))
        };
        let before_start = settings.before_start.zip(guards.before_start);
        errands.before_start = before_start.map(|given| step(StepKind::BeforeStart, given)).transpose()?;
        let after_stop = settings.after_stop.zip(guards.after_stop);
        errands.after_stop = after_stop.map(|given| step(StepKind::AfterStop, given)).transpose()?;
        errands.guards = errands.runners().flat_map(|runner| runner.pids()).collect();
        let all = [&command.pids(), &errands.guards[..]].concat();
        errands.runners().for_each(|runner| runner.spare(&all));
        errands.runners().for_each(|runner| runner.report_to(Arc::clone(metrics)));
        zombies::adopt(all)?;
        Ok((errands, command))
    }

    fn runners(&mut self) -> impl Iterator<Item = &mut Runner> {
        let hooks = self.hooks.iter_mut().map(Hooks::runner);
        let health = self.health.iter_mut().map(HealthWatch::runner);
        let eligibility = self.eligibility.iter_mut().map(Eligibility::runner);
        let fence = self.fence.iter_mut().map(Fence::runner);
        let steps = self.before_start.iter_mut().chain(&mut self.after_stop).map(Step::runner);
        hooks.chain(health).chain(eligibility).chain(fence).chain(steps)
    }

    fn step(&mut self, kind: StepKind) -> Option<&mut Step> {
        match kind {
            StepKind::BeforeStart => self.before_start.as_mut(),
            StepKind::AfterStop => self.after_stop.as_mut(),
        }
    }

    /// The processes of our guards, which are not orphans of a tree.
    pub fn guards(&self) -> &[i32] {
        &self.guards
    }

    /// Events before the first turn of the machine: until the first check, this host is ineligible.
    pub fn opening(&self) -> impl Iterator<Item = Event> + use<> {
        let health = self.health.as_ref().map(|_| health::barred(true));
        health.into_iter().chain(self.eligibility.as_ref().map(|_| eligibility::barred(true)))
    }

    /// Handles an event and the machine's actions. `unfenced`: the leaders to fence, from the record of our term.
    pub fn note(
        &mut self,
        now: Timestamp,
        event: &Event,
        actions: &[Action],
        unfenced: impl Fn() -> Vec<PendingFence>,
    ) {
        match event {
            Event::Guard(Report::Started { .. }) => {
                self.hooks.iter_mut().for_each(Hooks::started);
                if let Some(health) = &mut self.health {
                    health.command_started(now, self.grant);
                }
            }
            Event::Guard(Report::TreeEnded { .. }) | Event::OrphansEnded => {
                self.health.iter_mut().for_each(HealthWatch::command_ended);
            }
            Event::Fenced { is_fenced: true, .. } => self.hooks.iter_mut().for_each(Hooks::fenced),
            _ => {}
        }
        for action in actions {
            self.heed(action, &unfenced);
        }
        if let Some(hooks) = &mut self.hooks {
            hooks.run_next(now);
        }
    }

    fn heed(&mut self, action: &Action, unfenced: impl Fn() -> Vec<PendingFence>) {
        match action {
            Action::Guard(Order::Start { grant, .. }) => self.grant = Some(*grant),
            Action::Announce(transition) => {
                if let Some(hooks) = &mut self.hooks {
                    hooks.transition(transition);
                }
            }
            Action::Fence { grant } => {
                if let Some(fence) = &mut self.fence {
                    fence.begin(*grant, unfenced());
                }
            }
            Action::EndFence => self.fence.iter_mut().for_each(Fence::end),
            Action::RunStep { step, grant, why, deadlines } => {
                self.step(*step).into_iter().for_each(|step| step.begin(grant, *why, *deadlines));
            }
            Action::ExtendStep { step, deadlines } => {
                self.step(*step).into_iter().for_each(|step| step.extend(*deadlines));
            }
            Action::StopStep { step, by } => self.step(*step).into_iter().for_each(|step| step.stop(*by)),
            Action::SkipStep { step } => step::skip(*step),
            _ => {}
        }
    }

    /// The next event from an auxiliary command. Cancel-safe.
    pub async fn next(&mut self) -> Event {
        let Self { hooks, health, eligibility, fence, before_start, after_stop, .. } = self;
        tokio::select! {
            event = told(fence.as_mut().map(Fence::verdict)) => event,
            event = told(before_start.as_mut().map(Step::ended)) => event,
            event = told(after_stop.as_mut().map(Step::ended)) => event,
            event = told(health.as_mut().map(HealthWatch::verdict)) => event,
            event = told(eligibility.as_mut().map(Eligibility::verdict)) => event,
            event = told(hooks.as_mut().map(Hooks::turns)) => event,
        }
    }

    /// At the end of this process: runs the last hooks, for as long as one may take. Drop it to cut them short.
    pub async fn finish(&mut self) {
        if let Some(hooks) = &mut self.hooks {
            hooks.finish().await;
        }
    }

    /// Ends the guards and their trees; waits at most for `limit`.
    pub async fn dismiss(self, limit: Duration) {
        let hooks = self.hooks.map(Hooks::into_runner);
        let health = self.health.map(HealthWatch::into_runner);
        let eligibility = self.eligibility.map(Eligibility::into_runner);
        let fence = self.fence.map(Fence::into_runner);
        let steps = self.before_start.into_iter().chain(self.after_stop).map(Step::into_runner);
        let runners: Vec<_> = [hooks, health, eligibility, fence].into_iter().flatten().chain(steps).collect();
        let dismissed = async {
            for runner in runners {
                runner.dismiss().await;
            }
        };
        if tokio::time::timeout(limit, dismissed).await.is_err() {
            tracing::debug!("The guards of auxiliary commands took too long to go; they end with us");
        }
    }
}

/// Waits for ever if the auxiliary command is not configured.
async fn told(errand: Option<impl Future<Output = Event>>) -> Event {
    match errand {
        Some(errand) => errand.await,
        None => std::future::pending().await,
    }
}

/// `None` if the value contains a NUL byte.
fn variable(name: &str, value: &str) -> Option<CString> {
    CString::new(format!("{name}={value}")).ok()
}
