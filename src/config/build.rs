//! From text with an origin to a [`Config`]: every value, then the values together, then the command.
//!
//! Never: a default that is not in the option's help.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use tracing::level_filters::LevelFilter;

use crate::cli::Typed;
use crate::config::error::{Refusal, quoted};
use crate::config::source::layers::Layers;
use crate::config::source::setting::Given;
use crate::config::value::duration::{self, Zero};
use crate::config::value::znode::ZnodePath;
use crate::config::value::{acl, ensemble, executable, signal, znode};
use crate::config::{Config, access, auxiliary, election_path, leaders, monitoring, run_once, service, timing};
use crate::core::lease::{Wishes, lease_for};
use crate::core::settings::{Contain, Guarantee, OnLoss, OnPause, Recipe};
use crate::observe::log::Format;
use crate::observe::words;
use crate::zookeeper::client::acl::Acl;
use crate::zookeeper::schema::recipe::RECIPES;

const LONGEST_SESSION: Duration = Duration::from_secs(24 * 3600);
/// `--max-pause` is this many session timeouts.
const SESSIONS_PER_PAUSE: u32 = 10;

const GUARANTEES: [(&str, Guarantee); 2] =
    [("at-most-one", Guarantee::AtMostOne), ("at-least-one", Guarantee::AtLeastOne)];
const LOSSES: [(&str, OnLoss); 2] = [("rejoin", OnLoss::Rejoin), ("exit", OnLoss::Exit)];
const FORMATS: [(&str, Format); 3] = [("human", Format::Human), ("json", Format::Json), ("journald", Format::Journald)];
const CONTAINMENTS: [(&str, Contain); 4] = [
    ("auto", Contain::Auto),
    ("subreaper", Contain::Subreaper),
    ("cgroup", Contain::Cgroup),
    ("pid-namespace", Contain::PidNamespace),
];
const LEVELS: [(&str, LevelFilter); 5] = [
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

/// Gives every value its meaning.
///
/// # Errors
/// The first value, or the first sum of values, that cannot work.
pub fn read(typed: &Typed, layers: &Layers) -> Result<Config, Refusal> {
    let program = program(typed)?;
    let mut config = values(typed, layers, program)?;
    config.notices.append(&mut config.errands.notices);
    run_once::settle(&mut config, typed, layers)?;
    executable::check(program, layers.surroundings.variable("PATH"))?;
    Ok(config)
}

fn values(typed: &Typed, layers: &Layers, program: &OsString) -> Result<Config, Refusal> {
    let place = place(typed, layers, program)?;
    let ((access, acl), lease) = (access(typed, layers, &place)?, lease(typed, layers, &place)?);
    let (on_exit, service, notices) = service::read(typed, layers, lease.guarantee)?;
    let (wait, connect_timeout) = patience(typed, layers, lease.session_timeout)?;
    Ok(Config {
        servers: place.ensemble.servers,
        chroot: place.ensemble.chroot,
        access: access.access,
        name: place.name,
        base: place.base,
        election: place.election,
        id: place.id,
        acl,
        recipe: place.recipe,
        crowd: leaders::read(&typed.crowd, layers, place.recipe, lease.guarantee, place.is_shared)?,
        wait,
        conflict_exit_code: status(&layers.required("conflict-exit-code", typed.conflict_exit_code.as_ref())?)?,
        connect_timeout,
        session_timeout: lease.session_timeout,
        wishes: lease.wishes,
        guarantee: lease.guarantee,
        on_pause: lease.on_pause,
        contain: layers.required("contain", typed.contain.as_ref())?.one_of(&CONTAINMENTS)?,
        foreground: layers.flag("foreground", typed.foreground)?,
        stop_signal: stop_signal(typed, layers)?,
        stop_timeout: stop_timeout(typed, layers)?,
        on_exit,
        on_loss: layers.required("on-loss", typed.on_loss.as_ref())?.one_of(&LOSSES)?,
        service,
        once: None,
        command: typed.command.clone(),
        watching: monitoring::read(&typed.watching, layers)?,
        errands: auxiliary::read(typed, layers)?,
        log_format: layers.required("log-format", typed.log_format.as_ref())?.one_of(&FORMATS)?,
        log_level: layers.required("log-level", typed.log_level.as_ref())?.one_of(&LEVELS)?,
        dry_run: layers.flag("dry-run", typed.dry_run)?,
        requested_timing: timing::check(lease.session_timeout, &lease.wishes, &|option| layers.name_of(option))?,
        file: None,
        notices: [lease.notices, notices, access.notices].concat(),
    })
}

fn program(typed: &Typed) -> Result<&OsString, Refusal> {
    let missing = || Refusal::usage("COMMAND", "no command; write zk-leader-run [OPTIONS] -- COMMAND [ARGS]...");
    typed.command.first().ok_or_else(missing)
}

/// How the servers know us, and what of ours they let us do.
fn access(typed: &Typed, layers: &Layers, place: &Place) -> Result<(access::Found, Acl), Refusal> {
    let found = access::read(&typed.access, layers, place.ensemble.uses_tls)?;
    let acl = acl::parse(&layers.required("acl", typed.protection.acl.as_ref())?, found.access.is_anonymous())?;
    Ok((found, acl))
}

struct Place {
    ensemble: ensemble::Ensemble,
    name: String,
    base: ZnodePath,
    election: ZnodePath,
    is_shared: bool,
    id: String,
    recipe: Recipe,
}

fn place(typed: &Typed, layers: &Layers, program: &OsString) -> Result<Place, Refusal> {
    let ensemble = ensemble::read(typed.connect.as_ref(), &typed.access, layers)?;
    let name = match layers.given("name", typed.name.as_ref())? {
        Some(given) => znode::name(&given)?,
        None => name_of(program)?,
    };
    let base = match layers.given("path", typed.path.as_ref())? {
        Some(given) => znode::path(&given)?,
        None => znode::default_root().join(&name),
    };
    let id = match layers.given("id", typed.id.as_ref())? {
        Some(given) => znode::name(&given)?,
        None => default_id(layers)?,
    };
    let recipe = layers.required("recipe", typed.recipe.as_ref())?.one_of(&RECIPES)?;
    let shared = layers.given("election-path", typed.election_path.as_ref())?;
    let shared = shared.map(|given| election_path::election(&given, &base, recipe)).transpose()?;
    let (is_shared, election) = (shared.is_some(), shared.unwrap_or_else(|| base.join(election_path::OWN)));
    Ok(Place { ensemble, name, base, election, is_shared, id, recipe })
}

fn default_id(layers: &Layers) -> Result<String, Refusal> {
    let id = format!("{}:{}", layers.surroundings.host, layers.surroundings.pid);
    let complaint = format!("the host name makes {}, which cannot be an id; add --id and one", quoted(&id));
    znode::as_name(&id).ok_or_else(|| Refusal::usage("--id", complaint))
}

/// The command's file name, if a znode may be called that.
fn name_of(program: &OsString) -> Result<String, Refusal> {
    let name = Path::new(program).file_name().unwrap_or_default();
    name.to_str().and_then(znode::as_name).ok_or_else(|| {
        let complaint = format!(
            "the command's file name {} cannot be the name of a znode; add --name and a name like nightly",
            quoted(&name.to_string_lossy())
        );
        Refusal::usage("--name", complaint)
    })
}

/// `--wait` and `--connect-timeout`: who will not wait for leadership for ever need not wait for the ensemble either.
fn patience(
    typed: &Typed,
    layers: &Layers,
    session_timeout: Duration,
) -> Result<(Option<Duration>, Option<Duration>), Refusal> {
    let wait = length(layers, "wait", typed.wait.as_ref(), Zero::Meaningful)?;
    let no_zero = Zero::Senseless("write a duration like 30s, or leave it out to try for ever");
    let connect_timeout = length(layers, "connect-timeout", typed.connect_timeout.as_ref(), no_zero)?;
    Ok((wait, connect_timeout.or(wait.map(|wait| wait.max(session_timeout)))))
}

struct Lease {
    session_timeout: Duration,
    wishes: Wishes,
    guarantee: Guarantee,
    on_pause: OnPause,
    notices: Vec<String>,
}

fn lease(typed: &Typed, layers: &Layers, place: &Place) -> Result<Lease, Refusal> {
    let no_zero = Zero::Senseless("write a duration like 15s");
    let given = layers.required("session-timeout", typed.session_timeout.as_ref())?;
    let session_timeout = duration::parse_up_to(LONGEST_SESSION, &given, no_zero)?;
    let lease = length(layers, "lease", typed.lease.as_ref(), no_zero)?;
    let reserve = length(layers, "stop-reserve", typed.stop_reserve.as_ref(), Zero::Meaningful)?;
    let guarantee = layers.required("guarantee", typed.guarantee.as_ref())?.one_of(&GUARANTEES)?;
    let max_pause = max_pause(typed, layers, guarantee, session_timeout)?;
    let grace = length(layers, "grace", typed.grace.as_ref(), Zero::Meaningful)?;
    let on_pause = on_pause(typed, layers)?;
    let frozen_while_paused = on_pause == OnPause::Freeze;
    let wishes = Wishes { lease, reserve, frozen_while_paused, grace, max_pause, is_shared: place.is_shared };
    Ok(Lease { session_timeout, wishes, guarantee, on_pause, notices: without_effect(session_timeout, &wishes) })
}

fn max_pause(
    typed: &Typed,
    layers: &Layers,
    guarantee: Guarantee,
    session_timeout: Duration,
) -> Result<Option<Duration>, Refusal> {
    let given = layers.given("max-pause", typed.max_pause.as_ref())?;
    match (given, guarantee) {
        (None, Guarantee::AtMostOne) => Ok(None),
        (None, Guarantee::AtLeastOne) => Ok(Some(session_timeout.saturating_mul(SESSIONS_PER_PAUSE))),
        (Some(given), Guarantee::AtLeastOne) => {
            duration::parse(&given, Zero::Senseless("write a duration like 2m30s")).map(Some)
        }
        (Some(given), Guarantee::AtMostOne) => {
            duration::parse(&given, Zero::Meaningful)?;
            Err(given.refused("goes only with --guarantee at-least-one; add that, or bound the pause with --grace"))
        }
    }
}

fn on_pause(typed: &Typed, layers: &Layers) -> Result<OnPause, Refusal> {
    let given = layers.required("on-pause", typed.on_pause.as_ref())?;
    let resume = layers.given("on-resume", typed.on_resume.as_ref())?;
    let what = match given.text.as_str() {
        "run" => OnPause::Run,
        "freeze" => OnPause::Freeze,
        _ => OnPause::Signal { pause: signal::parse_or(&given, &["run", "freeze"])?, resume: None },
    };
    let Some(resume) = resume else { return Ok(what) };
    let signal = signal::parse(&resume)?;
    match what {
        OnPause::Signal { pause, .. } => Ok(OnPause::Signal { pause, resume: Some(signal) }),
        OnPause::Run | OnPause::Freeze => Err(resume.refused(format_args!(
            "goes only with a signal in --on-pause, which is '{}'; write --on-pause SIGNAL, or leave --on-resume out",
            given.text
        ))),
    }
}

fn stop_signal(typed: &Typed, layers: &Layers) -> Result<i32, Refusal> {
    let given = layers.required("stop-signal", typed.stop_signal.as_ref())?;
    match signal::parse(&given)? {
        libc::SIGSTOP => Err(given.refused("only suspends the command; write TERM, or another signal that ends it")),
        signal => Ok(signal),
    }
}

fn stop_timeout(typed: &Typed, layers: &Layers) -> Result<Duration, Refusal> {
    duration::parse(&layers.required("stop-timeout", typed.stop_timeout.as_ref())?, Zero::Meaningful)
}

/// Settings that are no mistake but change nothing.
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
        notices.push(election_path::BEST_EFFORT.to_owned());
    }
    notices
}

fn length(
    layers: &Layers,
    option: &'static str,
    typed: Option<&OsString>,
    zero: Zero,
) -> Result<Option<Duration>, Refusal> {
    layers.given(option, typed)?.map(|given| duration::parse(&given, zero)).transpose()
}

fn status(given: &Given) -> Result<u8, Refusal> {
    let digits = given.text.bytes().all(|byte| byte.is_ascii_digit());
    match given.text.parse() {
        Ok(status) if digits => Ok(status),
        _ => Err(given.refused("is not an exit status; write a number from 0 to 255")),
    }
}
