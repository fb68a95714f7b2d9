//! What the options of the auxiliary commands mean.
//!
//! Never: a command that is tried; whether it works is seen when it is run.

use crate::cli::{HealthOptions, Typed};
use crate::config::error::Refusal;
use crate::config::source::layers::Layers;
use crate::config::source::setting::{Given, Origin};
use crate::config::value::duration::{self, Zero};
use crate::core::health;
use crate::supervisor::errands::Errand;

/// The auxiliary commands that there are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Errands {
    /// `--hook`.
    pub hook: Option<Errand>,
    /// `--health-cmd`.
    pub health: Option<(Errand, health::Settings)>,
    /// `--eligible-cmd`.
    pub eligible: Option<Errand>,
    /// `--fence-cmd`.
    pub fence: Option<Errand>,
    /// Settings that are no mistake but change nothing.
    pub(super) notices: Vec<String>,
}

pub(super) fn read(typed: &Typed, layers: &Layers) -> Result<Errands, Refusal> {
    let mut notices = Vec::new();
    let hook = errand(
        &mut notices,
        layers.given("hook", typed.hooks.hook.as_ref())?,
        &layers.required("hook-timeout", typed.hooks.hook_timeout.as_ref())?,
        "--hook",
    )?;
    let health = health(&mut notices, &typed.health, layers)?;
    let eligible = errand(
        &mut notices,
        layers.given("eligible-cmd", typed.health.eligible_cmd.as_ref())?,
        &layers.required("eligible-timeout", typed.health.eligible_timeout.as_ref())?,
        "--eligible-cmd",
    )?;
    let fence = errand(
        &mut notices,
        layers.given("fence-cmd", typed.fencing.fence_cmd.as_ref())?,
        &layers.required("fence-timeout", typed.fencing.fence_timeout.as_ref())?,
        "--fence-cmd",
    )?;
    Ok(Errands { hook, health, eligible, fence, notices })
}

fn health(
    notices: &mut Vec<String>,
    typed: &HealthOptions,
    layers: &Layers,
) -> Result<Option<(Errand, health::Settings)>, Refusal> {
    const OPTION: &str = "--health-cmd";
    let command = layers.given("health-cmd", typed.health_cmd.as_ref())?;
    let timeout = layers.required("health-timeout", typed.health_timeout.as_ref())?;
    let interval = layers.required("health-interval", typed.health_interval.as_ref())?;
    let failures = layers.required("health-failures", typed.health_failures.as_ref())?;
    let grace = layers.required("health-grace", typed.health_grace.as_ref())?;
    let settings = health::Settings {
        interval: duration::parse(&interval, Zero::Senseless("write how long to wait between checks, like 10s"))?,
        failures: count(&failures)?,
        grace: duration::parse(&grace, Zero::Meaningful)?,
    };
    let errand = errand(notices, command, &timeout, OPTION)?;
    if errand.is_none() {
        for setting in [&interval, &failures, &grace] {
            unless_default(notices, setting, OPTION);
        }
    }
    Ok(errand.map(|errand| (errand, settings)))
}

fn count(given: &Given) -> Result<u32, Refusal> {
    match given.text.parse() {
        Ok(count) if count > 0 && given.text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(count),
        _ => Err(given.refused("is no number of failures; write 1, 2, 3 or more")),
    }
}

fn errand(
    notices: &mut Vec<String>,
    command: Option<Given>,
    timeout: &Given,
    option: &'static str,
) -> Result<Option<Errand>, Refusal> {
    let remedy = "write how long it may take, like 10s";
    let limit = duration::parse(timeout, Zero::Senseless(remedy))?;
    match command {
        Some(command) if command.text.trim().is_empty() => {
            Err(command.refused("is no command; write one, or leave the option out"))
        }
        Some(command) if command.text.chars().any(|letter| letter.is_control() && letter != '\n' && letter != '\t') => {
            Err(command.refused("holds a control character; write a command as you would type it"))
        }
        Some(command) => Ok(Some(Errand { command: command.text, timeout: limit })),
        None => {
            unless_default(notices, timeout, option);
            Ok(None)
        }
    }
}

/// A word on a setting of what is not there.
fn unless_default(notices: &mut Vec<String>, setting: &Given, option: &'static str) {
    if !matches!(setting.origin, Origin::Default(_)) {
        notices.push(format!("{} has no effect without {option}", setting.origin));
    }
}
