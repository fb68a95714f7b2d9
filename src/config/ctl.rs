//! The command line of `zk-leaderctl` as validated values. Connects to nothing.

mod argument;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches as _};
use nix::unistd::{User, getuid};

use self::argument::{NO_ZERO, given, how_many, length, number, text, value_of, within};
use super::access;
use super::error::ConfigError;
use super::source::file_settings::{self, FileSettings};
use super::source::layers::{self, Layers};
use super::source::setting::{Origin, Setting};
use super::source::{command_line_errors, file};
use super::value::duration::Zero;
use super::value::ensemble;
use super::value::znode::{self, ZnodePath};
use crate::cli::ctl::{self, CtlOptions, PROGRAM, Root, Verb, Which};
use crate::cli::{self, EarlyExit, Stream};
use crate::config::source::process_environment::ProcessEnvironment;
use crate::zookeeper::client::connect::Access;

/// The request and its destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// Every server with its port, without a chroot.
    pub servers: String,
    pub chroot: Option<ZnodePath>,
    /// By an option, a variable or the configuration file.
    pub is_connect_given: bool,
    pub access: Access,
    /// About files that hold secrets, and options without effect.
    pub notices: Vec<String>,
    pub selector: Selector,
    /// For the connection, and again for each answer.
    pub limit: Duration,
    pub format: OutputFormat,
    /// The operator, for display.
    pub by: String,
    pub question: Question,
}

/// The election that is meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selector {
    Base(ZnodePath),
    /// None was named: the only election below this root, if there is only one.
    OnlyOneBelow(ZnodePath),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutputFormat {
    Table,
    /// A table with more columns.
    Wide,
    Json,
    Yaml,
    Plain,
}

impl OutputFormat {
    /// For people.
    pub const fn is_table(self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }

    /// One object, for programs.
    pub const fn is_object(self) -> bool {
        matches!(self, Self::Json | Self::Yaml)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Question {
    Status,
    Watch,
    List {
        watch: bool,
    },
    /// The last terms, at most so many.
    History {
        watch: bool,
        lines: usize,
    },
    Handover {
        to: Option<String>,
        wait: bool,
        within: Duration,
    },
    Disable {
        reason: String,
        lasts: Option<Duration>,
        wait: Option<Duration>,
    },
    Enable {
        wait: Option<Duration>,
    },
    Drain {
        host: String,
        reason: String,
        lasts: Option<Duration>,
        force: bool,
        wait: Option<Duration>,
    },
    Undrain {
        host: String,
    },
    TokenCheck {
        token: i64,
    },
    Put {
        token: i64,
        znode: ZnodePath,
        value: Value,
        create: bool,
    },
    Doctor,
    Lease(LeaseQuestion),
}

/// How much of a lease is left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseQuestion {
    /// The lease file, and the token of the term that is meant if not any. `None`: this process is not a leader's.
    pub which: Option<(PathBuf, Option<i64>)>,
    pub at_least: Duration,
}

/// The value that `put` writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    Given(Vec<u8>),
    StandardInput,
}

const FORMATS: [(&str, OutputFormat); 5] = [
    ("table", OutputFormat::Table),
    ("wide", OutputFormat::Wide),
    ("json", OutputFormat::Json),
    ("yaml", OutputFormat::Yaml),
    ("plain", OutputFormat::Plain),
];

/// Parses the command line (with the program's name first) and the environment.
///
/// # Errors
///
/// Help or version was asked for, or something is wrong.
pub fn load(
    arguments: impl IntoIterator<Item = OsString>,
    process_environment: &ProcessEnvironment,
) -> Result<Asked, EarlyExit> {
    let arguments: Vec<_> = arguments.into_iter().collect();
    let program = ctl::program_of(&arguments);
    let matches = ctl::with_own_help().try_get_matches_from(arguments).map_err(|error| stop(&error, &program))?;
    let typed = CtlOptions::from_arg_matches(&matches).map_err(|error| stop(&error, &program))?;
    let asked = match &typed.command {
        Verb::Lease { file, at_least } => {
            about_the_lease(&typed, file.as_ref(), at_least.as_ref(), process_environment)
        }
        _ => with_file(&typed, &matches, process_environment),
    };
    asked.map_err(|error| refused(&error))
}

/// No server, file or secret is needed for it.
fn about_the_lease(
    typed: &CtlOptions,
    file: Option<&OsString>,
    at_least: Option<&OsString>,
    process_environment: &ProcessEnvironment,
) -> Result<Asked, ConfigError> {
    let own = || {
        let (file, token) =
            (process_environment.variable("ZK_LEADER_LEASE")?, process_environment.variable("ZK_LEADER_TOKEN")?);
        Some((file.into(), Some(token.to_str()?.parse().ok()?)))
    };
    let which = file.map_or_else(own, |file| Some((file.into(), None)));
    let at_least = length("--at-least", at_least, Zero::Meaningful)?.unwrap_or_default();
    Ok(Asked {
        servers: String::new(),
        chroot: None,
        is_connect_given: false,
        access: Access::default(),
        notices: Vec::new(),
        selector: Selector::OnlyOneBelow(znode::default_root()),
        limit: Duration::ZERO,
        format: format(typed)?,
        by: String::new(),
        question: Question::Lease(LeaseQuestion { which, at_least }),
    })
}

fn format(typed: &CtlOptions) -> Result<OutputFormat, ConfigError> {
    // Not from the environment, which zk-leader-run shares.
    let output = text("--output", typed.common.output.as_ref())?;
    let output = output.map_or(Ok(OutputFormat::Table), |output| output.one_of(&FORMATS))?;
    Ok(if typed.common.json { OutputFormat::Json } else { output })
}

fn limit(typed: &CtlOptions) -> Result<Duration, ConfigError> {
    // Not from file or environment: there it is how long zk-leader-run tries, and an operator would wait as long for a word.
    let (given, zero) = (typed.common.connect_timeout.as_ref(), Zero::Senseless("write a duration like 5s"));
    length("--connect-timeout", given, zero).map(Option::unwrap_or_default)
}

/// Servers and election may be set in the configuration file of zk-leader-run.
fn with_file(
    typed: &CtlOptions,
    matches: &ArgMatches,
    process_environment: &ProcessEnvironment,
) -> Result<Asked, ConfigError> {
    let layers = Layers { matches, process_environment, file: &FileSettings::default() };
    layers::check_variables(process_environment)?;
    let found = file::read(&layers, &file_settings::keys(&cli::command()))?;
    let name = match matches.subcommand().and_then(|(_, verb)| verb.try_get_raw("name").ok()??.next_back()) {
        Some(name) => name.to_string_lossy().into_owned(),
        None => Layers { file: &found.settings, ..layers }.given("name")?.map(|name| name.text).unwrap_or_default(),
    };
    let mut asked = read(typed, &Layers { file: &found.settings.of_election(&name), ..layers }, found.notice)?;
    asked.notices.extend(idle_timeout(&typed.command, matches));
    Ok(asked)
}

/// An operator may have meant the length of the order.
fn idle_timeout(verb: &Verb, matches: &ArgMatches) -> Option<String> {
    let lasts = match verb {
        Verb::Disable { wait: false, .. } | Verb::Drain { wait: false, .. } => "; --for ends the order",
        Verb::Enable { wait: false, .. } => "",
        _ => return None,
    };
    let (_, typed) = matches.subcommand()?;
    let is_typed = typed.value_source("timeout") == Some(ValueSource::CommandLine);
    is_typed.then(|| format!("--timeout has no effect without --wait{lasts}"))
}

/// Parses every value.
fn read(typed: &CtlOptions, layers: &Layers, notice: Option<String>) -> Result<Asked, ConfigError> {
    let ensemble = ensemble::read(layers)?;
    let access::Credentials { access, mut notices, .. } = access::read(layers, ensemble.uses_tls)?;
    notices.extend(notice);
    Ok(Asked {
        servers: ensemble.servers,
        chroot: ensemble.chroot,
        is_connect_given: layers.required("connect")?.is_given(),
        access,
        notices,
        selector: selector(&typed.command, layers)?,
        limit: limit(typed)?,
        format: format(typed)?,
        by: by(layers),
        question: question(&typed.command, layers)?,
    })
}

fn selector(verb: &Verb, layers: &Layers) -> Result<Selector, ConfigError> {
    let path = layers.given("path")?;
    let is_typed = |path: &Setting| matches!(path.origin, Origin::Option(_));
    let named = match verb {
        Verb::Status { which: Which { name }, .. }
        | Verb::History { which: Which { name }, .. }
        | Verb::Handover { which: Which { name }, .. }
        | Verb::Disable { which: Which { name }, .. }
        | Verb::Enable { which: Which { name }, .. }
        | Verb::Doctor { which: Which { name } }
        | Verb::TokenCheck { which: Which { name }, .. } => text("NAME", name.as_ref())?,
        Verb::Put { name, .. } => text("--name", name.as_ref())?,
        Verb::Drain { root: Root { root }, .. } | Verb::Undrain { root: Root { root }, .. } => {
            if let Some(typed) = path.filter(is_typed) {
                return Err(typed.refused("names one election; write --root, below which to drain"));
            }
            return below(text("--root", root.as_ref())?);
        }
        // The file and the variable name one election, which is no root.
        Verb::List { .. } | Verb::Lease { .. } => return below(path.filter(is_typed)),
    };
    let named = if named.is_none() && path.is_none() { layers.given("name")? } else { named };
    // The file may name another election of this host.
    let is_filed = [&path, &named].into_iter().flatten().all(|setting| matches!(setting.origin, Origin::File(..)));
    if let Some(own) = own_election(verb, layers).filter(|_| is_filed) {
        return own;
    }
    match (path, named) {
        // As in zk-leader-run with this file: the path gives the place, the name gives the section.
        (Some(path), Some(_)) if matches!(path.origin, Origin::File(..)) => Ok(Selector::Base(znode::path(&path)?)),
        (Some(path), Some(name)) if !matches!(path.origin, Origin::Environment(_)) => {
            Err(name.refused("cannot be combined with --path, which names the whole znode; leave one of them out"))
        }
        (_, Some(name)) => Ok(Selector::Base(znode::default_root().join(&znode::name(&name)?))),
        (Some(path), None) => Ok(Selector::Base(znode::path(&path)?)),
        (None, None) => Ok(Selector::OnlyOneBelow(znode::default_root())),
    }
}

fn below(root: Option<Setting>) -> Result<Selector, ConfigError> {
    let root = root.map(|setting| znode::path(&setting)).transpose()?;
    Ok(Selector::OnlyOneBelow(root.unwrap_or_else(znode::default_root)))
}

/// The election of the leader whose command runs `put` or `token-check`.
fn own_election(verb: &Verb, layers: &Layers) -> Option<Result<Selector, ConfigError>> {
    let own = layers.process_environment.variable("ZK_LEADER_PATH");
    let own = own.filter(|_| matches!(verb, Verb::Put { .. } | Verb::TokenCheck { .. }))?;
    Some(given("ZK_LEADER_PATH", own).and_then(|path| znode::path(&path)).map(Selector::Base))
}

fn question(verb: &Verb, layers: &Layers) -> Result<Question, ConfigError> {
    match verb {
        Verb::Status { watch: true, .. } => Ok(Question::Watch),
        Verb::Status { .. } => Ok(Question::Status),
        Verb::List { watch } => Ok(Question::List { watch: *watch }),
        Verb::History { watch, lines, .. } => Ok(Question::History { watch: *watch, lines: how_many(lines.as_ref())? }),
        // `about_the_lease` answered `Lease`.
        Verb::Doctor { .. } | Verb::Lease { .. } => Ok(Question::Doctor),
        Verb::Handover { to, wait, timeout, .. } => {
            let to = text("--to", to.as_ref())?.map(|setting| znode::name(&setting)).transpose()?;
            Ok(Question::Handover { to, wait: *wait, within: within(timeout.as_ref())? })
        }
        Verb::Disable { reason, lasts, wait, timeout, .. } => Ok(Question::Disable {
            reason: argument::reason(reason.as_ref())?,
            lasts: length("--for", lasts.as_ref(), NO_ZERO)?,
            wait: wait.then_some(within(timeout.as_ref())?),
        }),
        Verb::Enable { wait, timeout, .. } => Ok(Question::Enable { wait: wait.then_some(within(timeout.as_ref())?) }),
        Verb::Drain { host, reason, lasts, force, wait, timeout, .. } => Ok(Question::Drain {
            host: znode::name(&given("HOST", host)?)?,
            reason: argument::reason(reason.as_ref())?,
            lasts: length("--for", lasts.as_ref(), NO_ZERO)?,
            force: *force,
            wait: wait.then_some(within(timeout.as_ref())?),
        }),
        Verb::Undrain { host, .. } => Ok(Question::Undrain { host: znode::name(&given("HOST", host)?)? }),
        Verb::TokenCheck { token, .. } => Ok(Question::TokenCheck { token: number(&given("TOKEN", token)?)? }),
        Verb::Put { fenced, token, create, znode, value, .. } => {
            if !fenced {
                let complaint = "is missing; only fenced writes are done here: put --fenced ZNODE VALUE";
                return Err(ConfigError::usage("--fenced", complaint));
            }
            let token = token.as_ref().map_or_else(|| own_token(layers), |token| given("--token", token))?;
            let path = znode::path(&given("ZNODE", znode)?)?;
            Ok(Question::Put { token: number(&token)?, znode: path, value: value_of(value.as_ref()), create: *create })
        }
    }
}

/// `root@host`.
fn by(layers: &Layers) -> String {
    let variable = |name| layers.process_environment.variable(name).filter(|user| !user.is_empty());
    let user = variable("SUDO_USER").or(variable("USER")).or(variable("LOGNAME"));
    let user = user.map_or_else(own_name, |user| user.to_string_lossy().into_owned());
    format!("{user}@{}", layers.process_environment.host)
}

/// From the user database; the number of a user that is not in it.
fn own_name() -> String {
    User::from_uid(getuid()).ok().flatten().map_or_else(|| format!("uid {}", getuid()), |user| user.name)
}

fn own_token(layers: &Layers) -> Result<Setting, ConfigError> {
    let missing = || ConfigError::usage("--token", "is missing, and ZK_LEADER_TOKEN is not set; write --token TOKEN");
    let token = layers.process_environment.variable("ZK_LEADER_TOKEN").ok_or_else(missing)?;
    given("ZK_LEADER_TOKEN", token)
}

/// The one line that ends the program before it begins.
fn refused(error: &ConfigError) -> EarlyExit {
    let text = format!("{PROGRAM}: {}\n", error.sentence);
    EarlyExit { text, stream: Stream::Stderr, status: error.status.code() }
}

fn stop(error: &clap::Error, program: &str) -> EarlyExit {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => EarlyExit::answer(error.render().to_string()),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => refused(
            &ConfigError::usage("COMMAND", format_args!("no command; write one of these, or --help:{}", ctl::verbs())),
        ),
        _ => refused(&command_line_errors::error_of(error, program)),
    }
}
