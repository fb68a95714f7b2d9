//! The lease, and the behaviour while `ZooKeeper` is not reached.

pub mod vouching;

use std::time::Duration;

use super::election_path;
use super::error::ConfigError;
use super::source::layers::Layers;
use super::value::duration::{self, Zero};
use super::value::signal;
use crate::core::lease::{Wishes, lease_for};
use crate::core::settings::{Guarantee, OnPause};
use crate::observe::words;

const LONGEST_SESSION: Duration = Duration::from_secs(24 * 3600);
/// The default of `--max-pause`, in session timeouts.
const SESSIONS_PER_PAUSE: u32 = 10;

const GUARANTEES: [(&str, Guarantee); 2] =
    [("at-most-one", Guarantee::AtMostOne), ("at-least-one", Guarantee::AtLeastOne)];
pub struct Lease {
    pub session_timeout: Duration,
    pub wishes: Wishes,
    pub guarantee: Guarantee,
    pub on_pause: OnPause,
    pub notices: Vec<String>,
}

pub fn read(layers: &Layers, is_shared: bool) -> Result<Lease, ConfigError> {
    let no_zero = Zero::Senseless("write a duration like 15s");
    let setting = layers.required("session-timeout")?;
    let session_timeout = duration::parse_up_to(LONGEST_SESSION, &setting, no_zero)?;
    let lease = duration::optional(layers, "lease", no_zero)?;
    let reserve = duration::optional(layers, "stop-reserve", Zero::Meaningful)?;
    let guarantee = layers.required("guarantee")?.one_of(&GUARANTEES)?;
    let max_pause = max_pause(layers, guarantee, session_timeout)?;
    let grace = duration::optional(layers, "grace", Zero::Meaningful)?;
    let on_pause = on_pause(layers)?;
    let frozen_while_paused = on_pause == OnPause::Freeze;
    let wishes = Wishes { lease, reserve, frozen_while_paused, grace, max_pause, is_shared };
    Ok(Lease { session_timeout, wishes, guarantee, on_pause, notices: without_effect(session_timeout, &wishes) })
}

fn max_pause(
    layers: &Layers,
    guarantee: Guarantee,
    session_timeout: Duration,
) -> Result<Option<Duration>, ConfigError> {
    let setting = layers.given("max-pause")?;
    match (setting, guarantee) {
        (None, Guarantee::AtMostOne) => Ok(None),
        (None, Guarantee::AtLeastOne) => Ok(Some(session_timeout.saturating_mul(SESSIONS_PER_PAUSE))),
        (Some(setting), Guarantee::AtLeastOne) => {
            duration::parse(&setting, Zero::Senseless("write a duration like 2m30s")).map(Some)
        }
        (Some(setting), Guarantee::AtMostOne) => {
            duration::parse(&setting, Zero::Meaningful)?;
            Err(setting.refused("requires --guarantee at-least-one; add that, or limit the pause with --grace"))
        }
    }
}

fn on_pause(layers: &Layers) -> Result<OnPause, ConfigError> {
    let setting = layers.required("on-pause")?;
    let resume = layers.given("on-resume")?;
    let what = match setting.text.as_str() {
        "run" => OnPause::Run,
        "freeze" => OnPause::Freeze,
        _ => OnPause::Signal { pause: signal::parse_or(&setting, &["run", "freeze"])?, resume: None },
    };
    let Some(resume) = resume else { return Ok(what) };
    let signal = signal::parse(&resume)?;
    match what {
        OnPause::Signal { pause, .. } => Ok(OnPause::Signal { pause, resume: Some(signal) }),
        OnPause::Run | OnPause::Freeze => Err(resume.refused(format_args!(
            "requires a signal in --on-pause, which is '{}'; write --on-pause SIGNAL, or leave --on-resume out",
            setting.text
        ))),
    }
}

/// Notices on settings without effect.
fn without_effect(session_timeout: Duration, wishes: &Wishes) -> Vec<String> {
    let mut notices = Vec::new();
    if wishes.frozen_while_paused && wishes.reserve.is_some() {
        notices
            .push("--stop-reserve has no effect with --on-pause freeze: a frozen command hears no signal".to_owned());
    }
    let longest = lease_for(session_timeout, None, wishes.is_shared);
    if let Some(lease) = wishes.lease.filter(|lease| *lease > longest) {
        let (lease, longest) = (words::length(lease), words::length(longest));
        let part = if wishes.is_shared {
            "half of the session timeout, because of --election-path"
        } else {
            "the session timeout"
        };
        notices.push(format!("--lease {lease} is cut to {part}, {longest}"));
    }
    if wishes.is_shared {
        let cost = if wishes.max_pause.is_some() { election_path::RUNS_ON } else { election_path::BEST_EFFORT };
        notices.push(cost.to_owned());
    }
    notices
}
