//! The [`Config`] and its construction: every value, then the values together, then the command. Every default is in
//! the option's help.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use tracing::level_filters::LevelFilter;

use super::auxiliary::{self, Auxiliary};
use super::election::{self, ElectionSettings};
use super::error::ConfigError;
use super::leaders::{self, Leaders};
use super::lease::vouching::{self, Vouch};
use super::monitoring::{self, Monitoring};
use super::source::layers::Layers;
use super::source::setting::Setting;
use super::value::duration::{self, Zero};
use super::value::znode::ZnodePath;
use super::value::{acl, digits, executable, signal};
use super::{access, lease, run_once, service, timing};
use crate::core::lease::{Timing, Wishes};
use crate::core::settings::{Contain, Guarantee, OnExit, OnLoss, OnPause, Recipe, Service};
use crate::exit::Choices;
use crate::observe::log::Format;
use crate::zookeeper::client::acl::Acl;
use crate::zookeeper::client::connect::Access;
use crate::zookeeper::schema::once::Once;

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

/// All settings that the rest of the program needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// `h1:2181,[::1]:2181`: every server with its port, without a chroot.
    pub servers: String,
    pub chroot: Option<ZnodePath>,
    pub access: Access,
    /// `--auth-file` is a pipe: nobody can free the lease of this process once it is killed, and it cannot restart itself.
    pub secrets_read_once: bool,
    pub name: String,
    /// Within the chroot.
    pub base: ZnodePath,
    /// The directory of the candidates, within the chroot: below the base, unless `--election-path` says otherwise.
    pub election: ZnodePath,
    pub id: String,
    /// For every znode that we create.
    pub acl: Acl,
    pub recipe: Recipe,
    pub leaders: Leaders,
    /// How long to contend; `None`: for ever; zero: only if the lease is free now.
    pub wait: Option<Duration>,
    /// Exit status if not elected.
    pub conflict_exit_code: u8,
    /// `None`: for ever.
    pub connect_timeout: Option<Duration>,

    /// T as requested.
    pub session_timeout: Duration,
    pub wishes: Wishes,
    /// The margins if the ensemble grants that T. If it grants another, `Timing::new` of that one counts.
    pub requested_timing: Timing,
    pub guarantee: Guarantee,
    pub on_pause: OnPause,
    /// `None`: in an outage, the command is stopped after one lease.
    pub vouch: Option<Vouch>,

    pub contain: Contain,
    pub foreground: bool,
    pub stop_signal: i32,
    /// Time between a requested stop and SIGKILL; zero: SIGKILL at once.
    pub stop_timeout: Duration,
    pub on_exit: OnExit,
    pub on_loss: OnLoss,
    pub service: Service,
    /// `None`: the command runs whenever we lead.
    pub once: Option<Once>,
    /// Never empty.
    pub command: Vec<OsString>,

    pub monitoring: Monitoring,
    pub auxiliary: Auxiliary,

    pub log_format: Format,
    pub log_level: LevelFilter,
    pub dry_run: bool,
    /// The configuration file that was read, if any.
    pub file: Option<FileRead>,
    /// Warnings for the log.
    pub notices: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileRead {
    pub path: String,
    /// Its effective settings as options, for a process that must not depend on later changes of the file.
    pub options: Vec<OsString>,
}

impl Config {
    /// The settings that the exit status depends on.
    pub fn exit_choices(&self) -> Choices {
        Choices { not_elected: self.conflict_exit_code, stop_signal: self.stop_signal }
    }
}

/// Parses every value.
///
/// # Errors
///
/// The first value, or the first combination of values, that cannot work.
/// `starts`: the command may be started, so it must be there.
pub fn read((program, starts): (&OsStr, bool), command: Vec<OsString>, layers: &Layers) -> Result<Config, ConfigError> {
    let mut config = values(program, command, layers)?;
    config.notices.append(&mut config.auxiliary.notices);
    let others = run_once::Others {
        guarantee: config.guarantee,
        leaders: config.leaders.count,
        recipe: config.recipe,
        on_exit: config.on_exit,
        on_loss: config.on_loss,
    };
    (config.once, config.on_loss) = run_once::read(layers, &others, &mut config.notices)?;
    // Who took the run of another host away would be a duplicate.
    let preempts = |_: &Duration| config.once.as_ref().is_none_or(|once| once.retry_failed);
    config.leaders.preempt_after = config.leaders.preempt_after.filter(preempts);
    let others = vouching::Others {
        lease: config.requested_timing.lease,
        guarantee: config.guarantee,
        recipe: config.recipe,
        leaders: config.leaders.count,
        is_shared: config.wishes.is_shared,
    };
    config.vouch = vouching::read(layers, &others)?;
    // A step may mount what holds the interpreter.
    let is_certain = || config.auxiliary.before_start.is_none() && executable::only_the_kernel_knows_scripts();
    if starts {
        executable::check(program, layers.process_environment.variable("PATH"), &is_certain)?;
    }
    Ok(config)
}

#[expect(clippy::too_many_lines, reason = "one line for each setting")]
fn values(program: &OsStr, command: Vec<OsString>, layers: &Layers) -> Result<Config, ConfigError> {
    let election = election::read(layers, program)?;
    let ((access, acl), lease) = (access(layers, &election)?, lease::read(layers, election.is_shared)?);
    let (on_exit, service, notices) = service::read(layers, lease.guarantee)?;
    let (wait, connect_timeout) = patience(layers, lease.session_timeout)?;
    Ok(Config {
        leaders: leaders::read(layers, &election, lease.guarantee)?,
        vouch: None,
        servers: election.ensemble.servers,
        chroot: election.ensemble.chroot,
        access: access.access,
        secrets_read_once: access.read_once,
        name: election.name,
        base: election.base,
        election: election.candidates,
        id: election.id,
        acl,
        recipe: election.recipe,
        wait,
        conflict_exit_code: status(&layers.required("conflict-exit-code")?)?,
        connect_timeout,
        session_timeout: lease.session_timeout,
        wishes: lease.wishes,
        guarantee: lease.guarantee,
        on_pause: lease.on_pause,
        contain: layers.required("contain")?.one_of(&CONTAINMENTS)?,
        foreground: layers.flag("foreground")?,
        stop_signal: stop_signal(layers)?,
        stop_timeout: duration::required(layers, "stop-timeout", Zero::Meaningful)?,
        on_exit,
        on_loss: layers.required("on-loss")?.one_of(&LOSSES)?,
        service,
        once: None,
        command,
        monitoring: monitoring::read(layers)?,
        auxiliary: auxiliary::read(layers)?,
        log_format: layers.required("log-format")?.one_of(&FORMATS)?,
        log_level: layers.required("log-level")?.one_of(&LEVELS)?,
        dry_run: layers.flag("dry-run")?,
        requested_timing: timing::check(lease.session_timeout, &lease.wishes, &|option| layers.name_of(option))?,
        file: None,
        notices: [lease.notices, notices, access.notices].concat(),
    })
}

/// Our credentials, and the ACL of our znodes.
fn access(layers: &Layers, election: &ElectionSettings) -> Result<(access::Credentials, Acl), ConfigError> {
    let mut found = access::read(layers, election.ensemble.uses_tls)?;
    if found.read_once {
        let file = layers.name_of("auth-file");
        found.notices.push(format!(
            "{file} is no file that can be read again: if this process is killed, another host leads only when its lease has run \
             out; write the path of a file to avoid that"
        ));
    }
    let acl = acl::parse(&layers.required("acl")?, found.access.is_anonymous())?;
    Ok((found, acl))
}

/// `--wait` and `--connect-timeout`. A limit on the wait for leadership also bounds the wait for the ensemble.
fn patience(layers: &Layers, session_timeout: Duration) -> Result<(Option<Duration>, Option<Duration>), ConfigError> {
    let wait = duration::optional(layers, "wait", Zero::Meaningful)?;
    let no_zero = Zero::Senseless("write a duration like 30s, or leave it out to try for ever");
    let connect_timeout = duration::optional(layers, "connect-timeout", no_zero)?;
    Ok((wait, connect_timeout.or(wait.map(|wait| wait.max(session_timeout)))))
}

fn stop_signal(layers: &Layers) -> Result<i32, ConfigError> {
    let setting = layers.required("stop-signal")?;
    match signal::parse(&setting)? {
        libc::SIGSTOP => Err(setting.refused("only suspends the command; write TERM, or another signal that ends it")),
        signal => Ok(signal),
    }
}

fn status(setting: &Setting) -> Result<u8, ConfigError> {
    digits(&setting.text).ok_or_else(|| setting.refused("is not an exit status; write a number from 0 to 255"))
}
