//! The errors of the command-line parser, each as one sentence; the parser's own text has several lines.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, Error};

use crate::cli::{ctl, environment_variable, reference};
use crate::config::error::{ConfigError, quoted};

/// The error, unless it is a request for help.
pub fn error_of(error: &Error, program: &str) -> ConfigError {
    let argument = text(error, ContextKind::InvalidArg).unwrap_or_default();
    // `--wait <DURATION>`: the parser appends the value's name.
    let option = argument.split([' ', '=']).next().unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument => ConfigError::usage(plain(&argument), unknown(&argument, error, program)),
        ErrorKind::InvalidValue | ErrorKind::WrongNumberOfValues | ErrorKind::TooFewValues => {
            ConfigError::usage(option, format_args!("a value is missing; write {}", argument.replace(['<', '>'], "")))
        }
        ErrorKind::TooManyValues => {
            let value = text(error, ContextKind::InvalidValue).unwrap_or_default();
            ConfigError::usage(
                option,
                format_args!(
                    "unexpected value {}; write {option} without a value{}",
                    quoted(&value),
                    turned_off(option, program)
                ),
            )
        }
        ErrorKind::InvalidSubcommand => {
            let word = text(error, ContextKind::InvalidSubcommand).unwrap_or_default();
            // A subcommand further on has not been asked for.
            let program = program.split(' ').next().unwrap_or(program);
            let foreign = FOREIGN_COMMANDS.iter().find(|(name, _)| *name == word).map(|(_, ours)| (*ours).to_owned());
            let meant = foreign.or_else(|| text(error, ContextKind::SuggestedSubcommand));
            let meant = match meant {
                _ if word == "help" => format!("; write {program} COMMAND --help"),
                Some(meant) => format!("; did you mean {meant}?"),
                None => String::new(),
            };
            ConfigError::usage(plain(&word), format_args!("no such command{meant}; {program} --help lists them"))
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = argument.replace(['<', '>'], "");
            ConfigError::usage(&missing, format_args!("is missing; {program} --help tells what it is"))
        }
        kind => ConfigError::usage(
            "command line",
            format_args!("{}; {program} --help lists all options", kind.as_str().unwrap_or("is wrong")),
        ),
    }
}

/// How a switch of the configuration file is turned off.
fn turned_off(option: &str, program: &str) -> String {
    let (grammar, name) = (crate::cli::command(), option.trim_start_matches('-'));
    let mut settings = grammar.get_arguments().filter(|argument| program == RUN && reference::is_setting(argument));
    let is_ours = settings.any(|argument| argument.get_long() == Some(name));
    let variable = || format!(", or set {}=false to turn off what the file turns on", environment_variable(name));
    is_ours.then(variable).unwrap_or_default()
}

fn unknown(argument: &str, error: &Error, program: &str) -> String {
    let is_word = !argument.starts_with('-');
    let foreign = FOREIGN.iter().filter(|_| program == RUN).find(|(name, _)| *name == argument).map(|(_, ours)| *ours);
    let foreign = foreign.or(SERVERS.contains(&argument).then_some("--connect and the servers"));
    let foreign = foreign.or_else(|| place(argument, program));
    let suggested = text(error, ContextKind::SuggestedArg).filter(|option| may_mean(argument, option));
    match (foreign, suggested) {
        _ if is_option_of_verb(argument, program) => format!("belongs behind the command: {program} {argument}"),
        (Some(ours), _) => format!("no such option; write {ours}"),
        (None, Some(suggested)) => format!("no such option; did you mean {suggested}?"),
        (None, None) if is_word => format!("unexpected argument; {program} --help lists its arguments"),
        (None, None) if program == RUN => {
            format!("no such option; {program} --help lists all options, and options of the command stand after it")
        }
        (None, None) => format!("no such option; {program} --help lists all options"),
    }
}

/// The parser also suggests what only has some letters in common.
fn may_mean(typed: &str, option: &str) -> bool {
    const SIMILAR: f64 = 0.6;
    let (typed, option) = (typed.trim_start_matches('-'), option.trim_start_matches('-'));
    option.starts_with(typed) || strsim::normalized_damerau_levenshtein(typed, option) >= SIMILAR
}

/// What `--root`, which drain and undrain have, is called elsewhere.
fn place(argument: &str, program: &str) -> Option<&'static str> {
    match program.strip_prefix(ctl::PROGRAM)?.trim_start() {
        "" | "drain" | "undrain" => None,
        _ if argument != "--root" => None,
        "list" => Some("--path and the parent of the elections"),
        _ => Some("--path and the znode of the election"),
    }
}

/// Whether `zk-leaderctl VERB` has this option, which was not known before the verb.
fn is_option_of_verb(argument: &str, program: &str) -> bool {
    let (grammar, name) = (ctl::command(), argument.strip_prefix("--"));
    let verb = program.strip_prefix(ctl::PROGRAM).and_then(|verb| grammar.find_subcommand(verb.trim_start()));
    verb.is_some_and(|verb| verb.get_arguments().any(|own| own.get_long().is_some() && own.get_long() == name))
}

const RUN: &str = "zk-leader-run";

/// What other programs call `--connect`.
const SERVERS: [&str; 5] = ["--server", "--servers", "--endpoints", "--zk", "--zookeeper"];

/// Options of similar programs, above all flock(1) and timeout(1).
const FOREIGN: [(&str, &str); 16] = [
    ("-v", "--log-level debug"),
    ("--verbose", "--log-level debug"),
    ("-q", "--log-level warn"),
    ("--quiet", "--log-level warn"),
    ("-n", "--wait 0"),
    ("--nonblock", "--wait 0"),
    ("-w", "--wait and a duration"),
    ("-E", "--conflict-exit-code and a status"),
    ("--no-wait", "--wait 0"),
    ("--ttl", "--session-timeout and a duration"),
    ("-k", "--stop-timeout and a duration"),
    ("--kill-after", "--stop-timeout and a duration"),
    ("--signal", "--stop-signal and a signal"),
    ("-s", "--stop-signal and a signal, or --connect and the servers"),
    ("-c", "-- sh -c and the line"),
    ("--command", "-- sh -c and the line"),
];

/// Commands of similar programs.
const FOREIGN_COMMANDS: [(&str, &str); 6] = [
    ("stop", "disable"),
    ("start", "enable"),
    ("release", "handover"),
    ("unlock", "handover"),
    ("leader", "status"),
    ("ls", "list"),
];

/// No command was given; the last option may have taken it for its value. `after`: the last word.
pub fn no_command(grammar: &Command, matches: &ArgMatches, after: Option<&OsString>) -> ConfigError {
    let typed = |argument: &&Arg| matches.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine);
    let options = grammar.get_arguments().filter(|argument| argument.get_action().takes_values()).filter(typed);
    let last = options.max_by_key(|argument| matches.indices_of(argument.get_id().as_str()).and_then(Iterator::max));
    let taken = last.and_then(|argument| {
        let value = matches.get_raw(argument.get_id().as_str())?.next_back()?;
        after.filter(|last| *last != "--" || value == "--")?;
        Some(format!(" ({} is the value of --{})", quoted(&value.to_string_lossy()), argument.get_long()?))
    });
    let empty =
        || if after.is_some_and(|last| last == "--") { " after -- (is a variable empty?)" } else { "" }.to_owned();
    let taken = taken.unwrap_or_else(empty);
    ConfigError::usage("COMMAND", format_args!("no command{taken}; write {RUN} [OPTIONS] -- COMMAND [ARGS]..."))
}

/// An unknown word is quoted with its control characters escaped.
fn plain(argument: &str) -> String {
    quoted(argument).trim_matches('\'').to_owned()
}

fn text(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => texts.first().cloned(),
        _ => None,
    }
}
