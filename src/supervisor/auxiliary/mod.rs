//! Auxiliary commands. Each has its own guard, so its tree is contained, killed at its deadline and dies with this
//! process, like the command's. They do not delay the machine; their results become events of it.

mod eligibility;
mod fence;
mod health;
mod hooks;
mod runner;
mod step;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::background::or_never;
use crate::core::action::{Transition, Why};
use crate::core::event::Event;
use crate::core::guard_messages::{Deadlines, Grant, Report};
use crate::core::health::Settings as HealthSettings;
use crate::core::settings::StepKind;
use crate::core::time::Timestamp;
use crate::guard::command::environment::Identity;
use crate::guard::contain::known;
use crate::guard::handle::upgrade::fork_next as fork_next_command;
use crate::guard::handle::{self, Spawned};
use crate::observe::metrics::Metrics;
use crate::supervisor::guard_interface::Guard;
use crate::zookeeper::schema::lease::PendingFence;

use eligibility::Eligibility;
use fence::Fence;
use health::HealthWatch;
use hooks::Hooks;
use runner::Runner;
use step::Step;

pub use step::skip as skip_step;

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

/// Every guard of this process: before the runtime exists, or in it.
#[derive(Debug)]
pub struct Guards<G = Spawned> {
    pub command: G,
    /// After an upgrade: for the next command.
    pub next: Option<G>,
    pub hook: Option<G>,
    pub health: Option<G>,
    pub eligible: Option<G>,
    pub fence: Option<G>,
    pub before_start: Option<G>,
    pub after_stop: Option<G>,
}

impl Guards {
    /// # Errors
    /// Outside of a tokio runtime with I/O.
    pub fn into_handles(self) -> io::Result<Guards<Guard>> {
        let forked = |guard: Spawned| guard.into_handle().map(Guard::Forked);
        let into_handle = |guard: Option<Spawned>| guard.map(forked).transpose();
        Ok(Guards {
            command: forked(self.command)?,
            next: into_handle(self.next)?,
            hook: into_handle(self.hook)?,
            health: into_handle(self.health)?,
            eligible: into_handle(self.eligible)?,
            fence: into_handle(self.fence)?,
            before_start: into_handle(self.before_start)?,
            after_stop: into_handle(self.after_stop)?,
        })
    }
}

impl Guards<Guard> {
    /// The processes of all guards.
    pub fn pids(&self) -> Vec<i32> {
        let of_command = [&self.command].into_iter().chain(&self.next).flat_map(Guard::pids);
        of_command.chain(self.auxiliary_pids()).collect()
    }

    /// The processes of the guards of auxiliary commands.
    fn auxiliary_pids(&self) -> Vec<i32> {
        let steps = [&self.before_start, &self.after_stop];
        let auxiliary = [&self.hook, &self.health, &self.eligible, &self.fence].into_iter().chain(steps).flatten();
        auxiliary.flat_map(Guard::pids).collect()
    }
}

/// Forks the guard of the command and one for each auxiliary command. Call it first in `main`.
///
/// # Errors
/// See [`handle::fork`]. The guards that were forked already end by themselves.
pub fn fork(command: handle::Settings, auxiliary: &Settings) -> Result<Guards, handle::Error> {
    fork_all(vec![Some(handle::fork(command)?), None], auxiliary)
}

/// Forks the guards of the auxiliary commands, and one for the next command, beside the command's guard of an earlier
/// program of this process. Also returns why there is no guard for the next command; then the earlier one stays.
///
/// # Errors
/// See [`fork`].
pub fn fork_beside(
    command: Spawned,
    next: handle::Settings,
    auxiliary: &Settings,
) -> Result<(Guards, Option<handle::Error>), handle::Error> {
    let mut forked = vec![Some(command)];
    let (next, lack) = match fork_next_command(next, &mut forked) {
        Ok(next) => (Some(next), None),
        Err(lack) => (None, Some(lack)),
    };
    forked.push(next);
    Ok((fork_all(forked, auxiliary)?, lack))
}

fn fork_all(mut forked: Vec<Option<Spawned>>, auxiliary: &Settings) -> Result<Guards, handle::Error> {
    fork_next(&mut forked, auxiliary.hook.as_ref())?;
    fork_next(&mut forked, auxiliary.health.as_ref().map(|(command, _)| command))?;
    fork_next(&mut forked, auxiliary.eligible.as_ref().map(|(command, _)| command))?;
    fork_next(&mut forked, auxiliary.fence.as_ref())?;
    fork_next(&mut forked, auxiliary.before_start.as_ref())?;
    fork_next(&mut forked, auxiliary.after_stop.as_ref())?;
    let mut forked = forked.into_iter();
    let command = forked.next().flatten().ok_or_else(|| io::Error::other("there is no guard"))?;
    let mut next = || forked.next().flatten();
    let (of_next, hook, health, eligible, fence) = (next(), next(), next(), next(), next());
    Ok(Guards { command, next: of_next, hook, health, eligible, fence, before_start: next(), after_stop: next() })
}

fn fork_next(forked: &mut Vec<Option<Spawned>>, auxiliary: Option<&AuxiliaryCommand>) -> Result<(), handle::Error> {
    let in_a_shell = |auxiliary: &AuxiliaryCommand| ["/bin/sh", "-c", &auxiliary.command].map(OsString::from).to_vec();
    let spawned = auxiliary.map(|auxiliary| handle::fork_auxiliary(in_a_shell(auxiliary), forked)).transpose()?;
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
    /// Also returns the handle of the command's guard, and of the one for the next command.
    ///
    /// # Errors
    /// If the guards cannot be looked at.
    pub fn new(
        settings: Settings,
        guards: Guards<Guard>,
        metrics: &Arc<Metrics>,
    ) -> io::Result<(Self, (Guard, Option<Guard>))> {
        let (all, auxiliary) = (known(&guards.pids())?, guards.auxiliary_pids());
        let runner = |name, guard, timeout| Runner::new(name, guard, timeout, settings.identity.clone(), &all, metrics);
        let hooks = settings.hook.zip(guards.hook);
        let hooks = hooks.map(|(hook, guard)| Hooks::new(runner("--hook", guard, hook.timeout)));
        let health = settings
            .health
            .zip(guards.health)
            .map(|((check, health), guard)| HealthWatch::new(runner("--health-cmd", guard, check.timeout), health));
        let eligibility = settings
            .eligible
            .zip(guards.eligible)
            .map(|((check, pause), guard)| Eligibility::new(runner("--eligible-cmd", guard, check.timeout), pause));
        let fence = settings.fence.zip(guards.fence);
        let fence = fence.map(|(fence, guard)| Fence::new(runner("--fence-cmd", guard, fence.timeout)));
        let step = |kind, (step, guard): (AuxiliaryCommand, Guard)| {
            Step::new(kind, runner(step::option(kind), guard, step.timeout))
        };
        let before_start =
            settings.before_start.zip(guards.before_start).map(|given| step(StepKind::BeforeStart, given));
        let after_stop = settings.after_stop.zip(guards.after_stop).map(|given| step(StepKind::AfterStop, given));
        let parts =
            Self { hooks, health, eligibility, fence, before_start, after_stop, grant: None, guards: auxiliary };
        Ok((parts, (guards.command, guards.next)))
    }

    /// None of them runs or waits to run.
    pub fn is_idle(&self) -> bool {
        let hooks = self.hooks.as_ref().is_none_or(Hooks::is_idle);
        let health = self.health.as_ref().is_none_or(HealthWatch::is_idle);
        let fence = self.fence.as_ref().is_none_or(Fence::is_idle);
        hooks && health && fence && self.eligibility.as_ref().is_none_or(Eligibility::has_agreed)
    }

    /// Goes on after an upgrade: this host is healthy and eligible, and `grant` is of the command that runs.
    pub fn resume(&mut self, now: Timestamp, grant: Option<Grant>) {
        self.grant = grant;
        self.hooks.iter_mut().for_each(|hooks| hooks.resume(grant));
        self.health.iter_mut().for_each(|health| health.resume(now, grant));
        self.eligibility.iter_mut().for_each(Eligibility::resume);
    }

    /// The processes of our guards, which are not orphans of a tree.
    pub fn guards(&self) -> &[i32] {
        &self.guards
    }

    /// The first events for the machine: until the first check, this host is ineligible.
    pub fn opening(&self) -> impl Iterator<Item = Event> + use<> {
        let health = self.health.as_ref().filter(|health| !health.is_healthy()).map(|_| health::ineligible(true));
        let eligibility = self.eligibility.as_ref().filter(|eligibility| !eligibility.has_agreed());
        health.into_iter().chain(eligibility.map(|_| eligibility::ineligible(true)))
    }

    /// Notes an event that hooks and health checks depend on.
    pub fn on_event(&mut self, now: Timestamp, event: &Event) {
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
    }

    /// The command is started in this term.
    pub fn command_starts(&mut self, grant: Grant) {
        self.grant = Some(grant);
    }

    /// Queues the hooks of a transition; [`AuxiliaryCommands::run_next_hook`] starts them.
    pub fn transition(&mut self, transition: &Transition) {
        self.hooks.iter_mut().for_each(|hooks| hooks.transition(transition));
    }

    /// Starts the next hook, if none runs.
    pub fn run_next_hook(&mut self, now: Timestamp) {
        self.hooks.iter_mut().for_each(|hooks| hooks.run_next(now));
    }

    /// Fences these leaders for the term of `grant`. Answer: `Fenced`.
    pub fn begin_fence(&mut self, grant: Grant, unfenced: Vec<PendingFence>) {
        if let Some(fence) = &mut self.fence {
            fence.begin(grant, unfenced);
        }
    }

    /// Kills the fence command; its answer is no longer needed.
    pub fn end_fence(&mut self) {
        self.fence.iter_mut().for_each(Fence::end);
    }

    fn step(&mut self, kind: StepKind) -> Option<&mut Step> {
        match kind {
            StepKind::BeforeStart => self.before_start.as_mut(),
            StepKind::AfterStop => self.after_stop.as_mut(),
        }
    }

    /// Runs a step around the command, by these deadlines. Answered by `StepEnded`.
    pub fn begin_step(&mut self, kind: StepKind, grant: &Grant, why: Why, deadlines: Deadlines) {
        self.step(kind).into_iter().for_each(|step| step.begin(grant, why, deadlines));
    }

    /// Moves the deadlines of the running step.
    pub fn extend_step(&mut self, kind: StepKind, deadlines: Deadlines) {
        self.step(kind).into_iter().for_each(|step| step.extend(deadlines));
    }

    /// SIGTERM to the running step, SIGKILL to its tree at `by`.
    pub fn stop_step(&mut self, kind: StepKind, by: Timestamp) {
        self.step(kind).into_iter().for_each(|step| step.stop(by));
    }

    /// The next event from an auxiliary command that is configured. Cancel-safe.
    pub async fn next(&mut self) -> Event {
        let Self { hooks, health, eligibility, fence, before_start, after_stop, .. } = self;
        tokio::select! {
            biased;
            event = or_never(fence.as_mut().map(Fence::verdict)) => event,
            event = or_never(before_start.as_mut().map(Step::ended)) => event,
            event = or_never(after_stop.as_mut().map(Step::ended)) => event,
            event = or_never(health.as_mut().map(HealthWatch::verdict)) => event,
            event = or_never(eligibility.as_mut().map(Eligibility::verdict)) => event,
            event = or_never(hooks.as_mut().map(Hooks::run_all)) => event,
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
        let hooks = self.hooks.map(|hooks| hooks.runner);
        let health = self.health.map(|health| health.runner);
        let eligibility = self.eligibility.map(|eligibility| eligibility.runner);
        let fence = self.fence.map(|fence| fence.runner);
        let steps = self.before_start.into_iter().chain(self.after_stop).map(|step| step.runner);
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
