//! The auxiliary commands: hook, health, eligibility, fencing, and the steps around the command.

use crate::config::error::ConfigError;
use crate::config::source::layers::Layers;
use crate::config::source::setting::Setting;
use crate::config::value::digits;
use crate::config::value::duration::{self, Zero};
use crate::core::health;
use crate::supervisor::auxiliary::AuxiliaryCommand;

/// The configured auxiliary commands.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Auxiliary {
    /// `--hook`.
    pub hook: Option<AuxiliaryCommand>,
    /// `--health-cmd`.
    pub health: Option<(AuxiliaryCommand, health::Settings)>,
    /// `--eligible-cmd`.
    pub eligible: Option<AuxiliaryCommand>,
    /// `--fence-cmd`.
    pub fence: Option<AuxiliaryCommand>,
    /// `--before-start`.
    pub before_start: Option<AuxiliaryCommand>,
    /// `--after-stop`.
    pub after_stop: Option<AuxiliaryCommand>,
    /// Settings without effect.
    pub(super) notices: Vec<String>,
}

pub(super) fn read(layers: &Layers) -> Result<Auxiliary, ConfigError> {
    let mut notices = Vec::new();
    let hook = timed(&mut notices, layers, "--hook", "hook-timeout")?;
    let health = health(&mut notices, layers)?;
    let eligible = timed(&mut notices, layers, "--eligible-cmd", "eligible-timeout")?;
    let fence = timed(&mut notices, layers, "--fence-cmd", "fence-timeout")?;
    let before_start = timed(&mut notices, layers, "--before-start", "before-start-timeout")?;
    let after_stop = timed(&mut notices, layers, "--after-stop", "after-stop-timeout")?;
    Ok(Auxiliary { hook, health, eligible, fence, before_start, after_stop, notices })
}

fn health(
    notices: &mut Vec<String>,
    layers: &Layers,
) -> Result<Option<(AuxiliaryCommand, health::Settings)>, ConfigError> {
    const OPTION: &str = "--health-cmd";
    let command = layers.given("health-cmd")?;
    let timeout = layers.required("health-timeout")?;
    let interval = layers.required("health-interval")?;
    let failures = layers.required("health-failures")?;
    let grace = layers.required("health-grace")?;
    let settings = health::Settings {
        interval: duration::parse(&interval, Zero::Senseless("write how long to wait between checks, like 10s"))?,
        failures: count(&failures)?,
        grace: duration::parse(&grace, Zero::Meaningful)?,
    };
    let health = auxiliary_command(notices, command, &timeout, OPTION)?;
    if health.is_none() {
        for setting in [&interval, &failures, &grace] {
            unless_default(notices, setting, OPTION);
        }
    }
    Ok(health.map(|command| (command, settings)))
}

fn count(setting: &Setting) -> Result<u32, ConfigError> {
    let count = digits(&setting.text).filter(|count| *count > 0);
    count.ok_or_else(|| setting.refused("is not a number of failures; write 1, 2, 3 or more"))
}

fn timed(
    notices: &mut Vec<String>,
    layers: &Layers,
    option: &'static str,
    timeout: &'static str,
) -> Result<Option<AuxiliaryCommand>, ConfigError> {
    auxiliary_command(notices, layers.given(option.trim_start_matches('-'))?, &layers.required(timeout)?, option)
}

fn auxiliary_command(
    notices: &mut Vec<String>,
    command: Option<Setting>,
    timeout: &Setting,
    option: &'static str,
) -> Result<Option<AuxiliaryCommand>, ConfigError> {
    let remedy = "write how long it may take, like 10s";
    let limit = duration::parse(timeout, Zero::Senseless(remedy))?;
    match command {
        Some(command) if command.text.trim().is_empty() => {
            Err(command.refused("is not a command; write one, or leave the option out"))
        }
        Some(command) if command.text.chars().any(|letter| letter.is_control() && letter != '\n' && letter != '\t') => {
            Err(command.refused("contains a control character; write a command as you would type it"))
        }
        Some(command) => Ok(Some(AuxiliaryCommand { command: command.text, timeout: limit })),
        None => {
            unless_default(notices, timeout, option);
            Ok(None)
        }
    }
}

/// Adds a notice if a setting is given whose command is not.
fn unless_default(notices: &mut Vec<String>, setting: &Setting, option: &'static str) {
    if setting.is_given() {
        notices.push(format!("{} has no effect without {option}", setting.origin));
    }
}
