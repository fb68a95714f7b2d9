//! How many may lead at once, and in which order.

use std::time::Duration;

use super::election::ElectionSettings;
use crate::config::error::ConfigError;
use crate::config::source::layers::Layers;
use crate::config::source::setting::Setting;
use crate::config::value::duration::{self, Zero};
use crate::core::settings::{Guarantee, Recipe};
use crate::core::spread;
use crate::zookeeper::schema::recipe;

/// Slots are read in one round and created in one multi.
const LEADERS_MOST: u16 = 64;
/// It is a part of the candidate's name, whose length is limited.
const PRIORITY_HIGHEST: i16 = 999;

/// `--priority spread`.
const SPREAD: &str = "spread";

/// Number of leaders, priority and preemption.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaders {
    pub count: u16,
    pub priority: i16,
    /// The priority is the rank of this host in this election.
    pub spreads: bool,
    /// When to ask a leader of lower priority to hand over; `None`: never.
    pub preempt_after: Option<Duration>,
}

pub(super) fn read(layers: &Layers, election: &ElectionSettings, guarantee: Guarantee) -> Result<Leaders, ConfigError> {
    let recipe = election.recipe;
    let leaders = layers.required("leaders")?;
    let priority = layers.required("priority")?;
    let preempts = layers.given("preempt-after")?;
    let chosen = Leaders {
        count: how_many(&leaders)?,
        priority: how_high(&priority, || rank(layers, election))?,
        spreads: priority.text == SPREAD,
        preempt_after: preempts.as_ref().map(|setting| duration::parse(setting, Zero::Meaningful)).transpose()?,
    };
    if election.is_shared {
        return beside_others(chosen, &leaders, &priority, preempts.as_ref());
    }
    if let Some(setting) = preempts.filter(|_| recipe == Recipe::Single || chosen.count > 1) {
        return Err(
            setting.refused("cannot be combined with --recipe single or several --leaders; leave one of them out")
        );
    }
    match (recipe, guarantee) {
        (Recipe::Single, _) if chosen.count > 1 => {
            Err(leaders.refused("leaders cannot share the one znode of --recipe single; leave one of them out"))
        }
        (Recipe::Single, _) if chosen.priority != 0 => {
            Err(priority.refused("cannot be combined with --recipe single, which has no queue; leave one of them out"))
        }
        (other, _) if other != Recipe::Sequential && chosen.count > 1 => Err(leaders.refused(unsupported(recipe))),
        (other, _) if other != Recipe::Sequential && chosen.priority != 0 => Err(priority.refused(unsupported(recipe))),
        (_, Guarantee::AtLeastOne) if chosen.count > 1 => Err(leaders
            .refused("leaders are an upper limit, which --guarantee at-least-one cannot keep; leave one of them out")),
        _ => Ok(chosen),
    }
}

/// Other libraries ignore slots and priorities.
fn beside_others(
    chosen: Leaders,
    leaders: &Setting,
    priority: &Setting,
    preempts: Option<&Setting>,
) -> Result<Leaders, ConfigError> {
    const COMPLAINT: &str = "cannot be combined with --election-path, because other libraries support neither several \
                             leaders nor priorities; leave one of them out";
    match (chosen, preempts) {
        (_, Some(setting)) => Err(setting.refused(COMPLAINT)),
        (Leaders { count: 1, priority: 0, .. }, None) => Ok(chosen),
        (Leaders { count: 1, .. }, None) => Err(priority.refused(COMPLAINT)),
        _ => Err(leaders.refused(COMPLAINT)),
    }
}

fn unsupported(recipe: Recipe) -> String {
    let recipe = recipe::text(recipe);
    format!(
        "cannot be combined with --recipe {recipe}, which supports neither several leaders nor priorities; leave one of \
         them out"
    )
}

fn how_many(setting: &Setting) -> Result<u16, ConfigError> {
    match setting.text.parse() {
        Ok(leaders) if (1..=LEADERS_MOST).contains(&leaders) => Ok(leaders),
        _ => Err(setting.refused(format_args!("is not a number of leaders; write one from 1 to {LEADERS_MOST}"))),
    }
}

/// Of this host in this election. The path counts as a whole, however it is divided into chroot and base.
fn rank(layers: &Layers, election: &ElectionSettings) -> i16 {
    let chroot = election.ensemble.chroot.as_ref().map(ToString::to_string).unwrap_or_default();
    let rank = spread::rank(&format!("{chroot}{}", election.base), &layers.process_environment.host);
    i16::try_from(rank).unwrap_or(PRIORITY_HIGHEST)
}

fn how_high(setting: &Setting, rank: impl Fn() -> i16) -> Result<i16, ConfigError> {
    match setting.text.parse() {
        _ if setting.text == SPREAD => Ok(rank()),
        Ok(priority) if (-PRIORITY_HIGHEST..=PRIORITY_HIGHEST).contains(&priority) => Ok(priority),
        _ => Err(setting.refused(format_args!(
            "is not a priority; write a number from -{PRIORITY_HIGHEST} to {PRIORITY_HIGHEST}, or {SPREAD}"
        ))),
    }
}
