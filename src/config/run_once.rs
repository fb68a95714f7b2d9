//! Jobs that run once on all hosts, and the options that cannot be combined with them: those that could run a slot
//! twice, or wait for a run that never comes.

use crate::config::error::ConfigError;
use crate::config::source::layers::Layers;
use crate::config::source::setting::{Origin, Setting};
use crate::config::value::digits;
use crate::config::value::duration::{self, Zero};
use crate::core::settings::{Guarantee, OnExit, OnLoss, Recipe};
use crate::zookeeper::schema::once::{Once, Per};

const LONGEST_KEY: usize = 128;
const MOST_SLOTS: usize = 10_000;

/// The other settings that must agree with it.
pub struct Others {
    pub guarantee: Guarantee,
    pub leaders: u16,
    pub recipe: Recipe,
    pub on_exit: OnExit,
    pub on_loss: OnLoss,
}

/// The unit that runs once, if any, and the behaviour when leadership is lost.
pub fn read(
    layers: &Layers,
    others: &Others,
    notices: &mut Vec<String>,
) -> Result<(Option<Once>, OnLoss), ConfigError> {
    let slot = layers.given("slot")?;
    let period = layers.given("once-per")?;
    let retry_failed = layers.flag("retry-failed")?;
    let keep = layers.required("keep-slots")?;
    let keep_slots = count(&keep)?;
    if slot.is_none() && matches!(keep.origin, Origin::Option(_)) {
        notices.push(format!("{} has no effect without --slot", keep.origin));
    }
    let (setting, per) = match (slot, period) {
        (Some(_), Some(period)) => {
            return Err(period.refused("cannot be combined with --slot; write one of the two"));
        }
        (Some(slot), None) => (slot.clone(), Per::Slot(key(&slot)?)),
        (None, Some(period)) => {
            let length = duration::parse(&period, Zero::Senseless("write the distance of two runs, like 1h"))?;
            (period, Per::Period(length))
        }
        (None, None) if retry_failed => {
            let complaint = "requires --slot or --once-per; add one of them, or leave it out";
            return Err(ConfigError::usage(layers.name_of("retry-failed"), complaint));
        }
        (None, None) => return Ok((None, others.on_loss)),
    };
    let preempts = layers.given("preempt-after")?.filter(|typed| matches!(typed.origin, Origin::Option(_)));
    if let Some(preempts) = preempts.filter(|_| !retry_failed) {
        notices.push(format!("{} has no effect with {}: a run is not repeated", preempts.origin, setting.origin));
    }
    let once = Once { per, retry_failed, keep_slots };
    let on_exit = layers.required("on-exit")?;
    agree(&setting, &once, others, &on_exit)?;
    let on_loss = on_loss(&setting, &once, others.on_loss, &layers.required("on-loss")?)?;
    Ok((Some(once), on_loss))
}

/// Refuses options that cannot be combined.
fn agree(setting: &Setting, once: &Once, others: &Others, on_exit: &Setting) -> Result<(), ConfigError> {
    if others.guarantee == Guarantee::AtLeastOne {
        return Err(setting.refused(
            "cannot be combined with --guarantee at-least-one, which may run two commands at once; leave \
             that out, and add --retry-failed for a job that must not be missed",
        ));
    }
    if others.leaders > 1 {
        return Err(setting.refused("cannot be combined with several --leaders: a run is one command; leave that out"));
    }
    if others.recipe == Recipe::Single && matches!(once.per, Per::Period(_)) {
        return Err(setting.refused(
            "cannot be combined with --recipe single, which does not record when a call joined; leave that out, or write --slot",
        ));
    }
    if others.on_exit != OnExit::Exit {
        let option = &setting.origin;
        let complaint = format!("cannot be combined with {option}: every later run would be a duplicate; write exit");
        return Err(on_exit.refused(complaint));
    }
    Ok(())
}

/// At most once, a lost run is not repeated, so rejoining would be useless.
fn on_loss(setting: &Setting, once: &Once, chosen: OnLoss, typed: &Setting) -> Result<OnLoss, ConfigError> {
    match chosen {
        _ if once.retry_failed => Ok(chosen),
        OnLoss::Rejoin if typed.is_given() => Err(typed.refused(format_args!(
            "cannot be combined with {}: a lost run is not repeated; write exit, or add --retry-failed",
            setting.origin
        ))),
        OnLoss::Rejoin | OnLoss::Exit => Ok(OnLoss::Exit),
    }
}

fn key(setting: &Setting) -> Result<String, ConfigError> {
    match setting.text.as_str() {
        "" => Err(setting.refused("is empty; write a key like 2026-11-21, made from the scheduled time")),
        text if text.len() > LONGEST_KEY => {
            Err(setting.refused(format_args!("is longer than {LONGEST_KEY} bytes; write a shorter one")))
        }
        text if text.chars().any(char::is_control) => {
            Err(setting.refused("contains a control character; write a key without it"))
        }
        text => Ok(text.to_owned()),
    }
}

fn count(setting: &Setting) -> Result<usize, ConfigError> {
    let complaint = format!("is not a number of slots; write one from 1 to {MOST_SLOTS}");
    let count = digits(&setting.text).filter(|count| (1..=MOST_SLOTS).contains(count));
    count.ok_or_else(|| setting.refused(complaint))
}
