//! What the options of the auxiliary commands mean.
//!
//! Never: a command that is tried; whether it works is seen when it is run.

use super::duration::{self, Zero};
use super::given::{Given, Origin};
use super::refusal::Refusal;
use crate::cli::{Layers, Typed};
use crate::supervisor::errands::Errand;

/// The auxiliary commands that there are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Errands {
    /// `--hook`.
    pub hook: Option<Errand>,
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
    Ok(Errands { hook, notices })
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
