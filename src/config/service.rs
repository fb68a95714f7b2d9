//! Services that are restarted, and time limits.

use crate::config::error::ConfigError;
use crate::config::source::layers::Layers;
use crate::config::source::setting::Setting;
use crate::config::value::digits;
use crate::config::value::duration::{self, Zero};
use crate::core::restart::{RestartOn, Rules, Statuses};
use crate::core::settings::{Guarantee, OnExit, Service};

const EXITS: [(&str, OnExit); 3] = [("exit", OnExit::Exit), ("rejoin", OnExit::Rejoin), ("restart", OnExit::Restart)];
const WHEN: [(&str, RestartOn); 2] = [("on-failure", RestartOn::Failure), ("always", RestartOn::Always)];
const UNLIMITED: &str = "unlimited";

/// The settings, and notices on those without effect.
pub(super) fn read(layers: &Layers, guarantee: Guarantee) -> Result<(OnExit, Service, Vec<String>), ConfigError> {
    let on_exit = layers.required("on-exit")?.one_of(&EXITS)?;
    let no_limit = Zero::Senseless("write a duration like 10m, or leave it out");
    let service = Service {
        restart: rules(layers, on_exit)?,
        stand_back: duration::required(
            layers,
            "stand-back",
            Zero::Senseless("another host would have no time; write 1m"),
        )?,
        timeout: duration::optional(layers, "timeout", no_limit)?,
        start_deadline: duration::optional(layers, "start-deadline", no_limit)?,
        takeover_delay: takeover_delay(layers, guarantee)?,
    };
    Ok((on_exit, service, without_effect(layers, on_exit)?))
}

fn rules(layers: &Layers, on_exit: OnExit) -> Result<Rules, ConfigError> {
    let on = layers.required("restart")?;
    let no_zero = Zero::Senseless("write a duration like 1s");
    let rules = Rules {
        on: on.one_of(&WHEN)?,
        delay: duration::required(layers, "restart-delay", no_zero)?,
        longest_delay: duration::required(layers, "restart-max-delay", no_zero)?,
        most: most(&layers.required("max-restarts")?)?,
        window: duration::required(layers, "restart-window", no_zero)?,
        no_restart: match layers.given("no-restart-status")? {
            Some(setting) => statuses(&setting)?,
            None => Statuses::default(),
        },
        min_interval: duration::required(layers, "min-start-interval", Zero::Meaningful)?,
    };
    if on_exit != OnExit::Restart && on.is_given() {
        return Err(on.refused("requires --on-exit restart; add that, or leave --restart out"));
    }
    if rules.longest_delay < rules.delay {
        let longest = layers.required("restart-max-delay")?;
        let delay = layers.required("restart-delay")?;
        return Err(
            longest.refused(format_args!("is shorter than --restart-delay {0}; write at least {0}", delay.text))
        );
    }
    Ok(rules)
}

fn takeover_delay(layers: &Layers, guarantee: Guarantee) -> Result<std::time::Duration, ConfigError> {
    let setting = layers.required("takeover-delay")?;
    let delay = duration::parse(&setting, Zero::Meaningful)?;
    if !delay.is_zero() && guarantee == Guarantee::AtLeastOne {
        return Err(setting
            .refused("requires --guarantee at-most-one, because at-least-one does not wait; leave one of them out"));
    }
    Ok(delay)
}

/// Restart settings without restarts.
fn without_effect(layers: &Layers, on_exit: OnExit) -> Result<Vec<String>, ConfigError> {
    const TUNING: [&str; 5] =
        ["restart-delay", "restart-max-delay", "max-restarts", "restart-window", "no-restart-status"];
    let tuning = TUNING.map(|option| layers.given(option)).into_iter().collect::<Result<Vec<_>, _>>()?;
    let idle = tuning.into_iter().flatten().filter(|setting| on_exit != OnExit::Restart && setting.is_given());
    Ok(idle.map(|setting| format!("{} has no effect without --on-exit restart", setting.origin)).collect())
}

fn most(setting: &Setting) -> Result<Option<u32>, ConfigError> {
    if setting.text == UNLIMITED {
        return Ok(None);
    }
    let refused = || setting.refused("is not a number of restarts; write a number like 5, or unlimited");
    digits(&setting.text).map(Some).ok_or_else(refused)
}

fn statuses(setting: &Setting) -> Result<Statuses, ConfigError> {
    let set = setting.text.split(',').try_fold(Statuses::default(), |set, text| Some(set.with(digits(text)?)));
    set.ok_or_else(|| setting.refused("is not a list of exit statuses; write numbers from 0 to 255, like 2,78"))
}
