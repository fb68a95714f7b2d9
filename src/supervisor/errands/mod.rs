//! Auxiliary commands, each with a guard of its own: its tree is contained, ended at its deadline and dies with us, as the
//! command's does, and none can hold up the machine.
//!
//! Never: a wait in the loop's way; a decision about leadership. What an errand says becomes an event of the machine.

mod hooks;
mod runner;

use std::ffi::{CString, OsString};
use std::io;
use std::time::Duration;

use crate::core::action::Action;
use crate::core::event::Event;
use crate::core::order::{Grant, Order, Report};
use crate::core::time::Timestamp;
use crate::guard::environment::Identity;
use crate::guard::handle::{self, Handle, Spawned};

use hooks::Hooks;
use runner::Runner;

/// One auxiliary command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Errand {
    /// For `/bin/sh -c`.
    pub command: String,
    /// Of one run, SIGKILL to its whole tree included.
    pub timeout: Duration,
}

/// Which there are.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What each is told about us.
    pub identity: Identity,
    pub hook: Option<Errand>,
}

/// Every guard of this process, before there is a runtime.
#[derive(Debug)]
pub struct Guards {
    pub command: Spawned,
    hook: Option<Spawned>,
}

/// Forks the guard of the command, and one for each errand. To be called as the first act of `main`.
///
/// # Errors
/// As [`handle::fork`]; the guards that were forked already end by themselves.
pub fn fork(command: handle::Settings, errands: &Settings) -> Result<Guards, handle::Error> {
    let mut forked = vec![Some(handle::fork(command)?)];
    fork_next(&mut forked, errands.hook.as_ref())?;
    let mut forked = forked.into_iter();
    let command = forked.next().flatten().ok_or_else(|| io::Error::other("there is no guard"))?;
    let mut next = || forked.next().flatten();
    Ok(Guards { command, hook: next() })
}

fn fork_next(forked: &mut Vec<Option<Spawned>>, errand: Option<&Errand>) -> Result<(), handle::Error> {
    let in_a_shell = |errand: &Errand| ["/bin/sh", "-c", &errand.command].map(OsString::from).to_vec();
    let spawned = errand.map(|errand| handle::fork_errand(in_a_shell(errand), forked)).transpose()?;
    forked.push(spawned);
    Ok(())
}

/// See the module.
pub struct Errands {
    hooks: Option<Hooks>,
    /// Of the term that the command was started in last.
    grant: Option<Grant>,
    guards: Vec<i32>,
}

impl Errands {
    /// Together with the guard of the command. Inside of a runtime.
    ///
    /// # Errors
    /// When a guard's socket cannot be listened to.
    pub fn new(settings: Settings, guards: Guards) -> io::Result<(Self, Handle)> {
        let command = guards.command.into_handle()?;
        let mut hooks = match settings.hook.zip(guards.hook) {
            Some((errand, guard)) => {
                let runner = Runner::new("--hook", guard.into_handle()?, errand.timeout);
                Some(Hooks::new(runner, errand.timeout, settings.identity))
            }
            None => None,
        };
        let mut runners: Vec<_> = hooks.iter_mut().map(Hooks::runner).collect();
        let errands: Vec<_> = runners.iter().map(|runner| runner.guard_pid()).collect();
        let guards = [&[command.pid()], &errands[..]].concat();
        for runner in &mut runners {
            runner.spare(&guards);
        }
        Ok((Self { hooks, grant: None, guards: errands }, command))
    }

    /// The processes that are ours, and nobody's orphans.
    pub fn guards(&self) -> &[i32] {
        &self.guards
    }

    /// Takes note of what the machine was told and has decided.
    pub fn note(&mut self, now: Timestamp, event: &Event, actions: &[Action]) {
        if let (Event::Guard(Report::Started { .. }), Some(hooks)) = (event, &mut self.hooks) {
            hooks.started();
        }
        for action in actions {
            match action {
                Action::Guard(Order::Start { grant, .. }) => self.grant = Some(*grant),
                Action::Announce(transition) => {
                    if let Some(hooks) = &mut self.hooks {
                        hooks.transition(transition, self.grant);
                    }
                }
                _ => {}
            }
        }
        if let Some(hooks) = &mut self.hooks {
            hooks.run_next(now);
        }
    }

    /// What an errand has to say to the machine. Cancel-safe.
    pub async fn next(&mut self) -> Event {
        loop {
            match &mut self.hooks {
                Some(hooks) => hooks.turn().await,
                None => std::future::pending().await,
            }
        }
    }

    /// At the end of this process: the last hooks are run, for as long as one may take; then the guards go, and whatever
    /// still runs with them. To be cut short by dropping it.
    pub async fn finish(&mut self) {
        if let Some(hooks) = &mut self.hooks {
            hooks.finish().await;
        }
    }

    /// Lets the guards go, for at most that time.
    pub async fn dismiss(self, limit: Duration) {
        let dismissed = async {
            if let Some(hooks) = self.hooks {
                hooks.dismiss().await;
            }
        };
        let _ = tokio::time::timeout(limit, dismissed).await;
    }
}

/// A value with a NUL byte is none.
fn variable(name: &str, value: &str) -> Option<CString> {
    CString::new(format!("{name}={value}")).ok()
}
