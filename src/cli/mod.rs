//! From what was typed to a [`Config`], or to the one text that ends the program: help, version, or what is wrong.
//!
//! Never: anything connected, written or started.

#[expect(clippy::doc_markdown, reason = "its doc comments are what --help prints")]
pub mod ctl;
#[expect(clippy::doc_markdown, reason = "its doc comments are what --help prints")]
mod options;
pub mod reference;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};

pub use self::options::{AccessOptions, Crowd, HealthOptions, Typed, Watching};
use crate::config::error::Refusal;
use crate::config::source::file::{self, Found};
use crate::config::source::file_settings::{Key, Kind, Settled};
use crate::config::source::layers::{self, Layers, Surroundings};
use crate::config::source::{mistake, origins};
use crate::config::{self, Config, FileRead};

/// A text that ends the program before it has begun.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stop {
    pub text: String,
    pub stream: Stream,
    pub status: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    Stdout,
    Stderr,
}

impl Stop {
    /// Something that was asked for.
    pub fn answer(text: impl Into<String>) -> Self {
        let text: String = text.into().lines().flat_map(|line| [line.trim_end(), "\n"]).collect();
        Self { text, stream: Stream::Stdout, status: 0 }
    }

    /// Prints the text. A reader that is gone is no reason to fail.
    pub fn print(&self) -> ExitCode {
        let text = self.text.as_bytes();
        let _ = match self.stream {
            Stream::Stdout => std::io::stdout().write_all(text),
            Stream::Stderr => std::io::stderr().write_all(text),
        };
        ExitCode::from(self.status)
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        let text = format!("zk-leader-run: {}\n", refusal.sentence);
        Self { text, stream: Stream::Stderr, status: refusal.status.code() }
    }
}

/// The program name of a releaser, which is told by options what the file said when its supervisor started.
pub const RELEASER: &str = "zk-leader-run-releaser";

/// Reads the command line (with the program's name first), the environment and the configuration file.
///
/// # Errors
/// Help, the version or the settings were asked for, or something is wrong.
pub fn parse(arguments: impl IntoIterator<Item = OsString>, surroundings: &Surroundings) -> Result<Config, Stop> {
    let mut arguments = arguments.into_iter().peekable();
    let is_releaser = arguments.peek().is_some_and(|program| program == RELEASER);
    let grammar = command();
    let matches = grammar.clone().try_get_matches_from(arguments).map_err(|error| stop(&error))?;
    let typed = Typed::from_arg_matches(&matches).map_err(|error| stop(&error))?;
    let layers = Layers { matches: &matches, surroundings, file: &Settled::default() };
    let found = if is_releaser {
        Found::default()
    } else {
        file::read(typed.configuration.config.as_ref(), &layers, &keys(&grammar))?
    };
    let name = election_name(&typed, &Layers { file: &found.settled, ..layers })?;
    let settled = found.settled.of_election(&name);
    let layers = Layers { file: &settled, ..layers };
    if layers.flag("print-config", typed.configuration.print_config)? {
        return Err(Stop::answer(origins::page(&grammar, &layers, found.path.as_deref())));
    }
    if typed.command.is_empty() {
        return Err(mistake::no_command(&grammar, &matches).into());
    }
    let mut config = config::read(&typed, &layers)?;
    config.file = found.path.map(|path| FileRead { path, options: origins::from_file(&grammar, &layers) });
    config.notices.extend(found.notice);
    config.notices.extend(layers::unknown_twins(surroundings, &option_names()));
    Ok(config)
}

/// Which section of the file is ours, as far as that is known yet.
fn election_name(typed: &Typed, layers: &Layers) -> Result<String, Refusal> {
    let named = layers.given("name", typed.name.as_ref())?.map(|given| given.text);
    let program = || typed.command.first().and_then(|program| Path::new(program).file_name());
    Ok(named.unwrap_or_else(|| program().unwrap_or_default().to_string_lossy().into_owned()))
}

/// What a configuration file may say.
fn keys(grammar: &clap::Command) -> Vec<Key> {
    let options = grammar.get_arguments().filter(|argument| argument.get_long().is_some());
    let key = |argument: &clap::Arg| {
        let kind = match argument.get_value_names() {
            _ if !reference::is_setting(argument) => Kind::Question,
            Some([name, ..]) if argument.get_action().takes_values() => Kind::Value(name.to_string()),
            _ => Kind::Flag,
        };
        Key { name: argument.get_long().unwrap_or_default().to_owned(), kind }
    };
    options.map(key).collect()
}

/// The command line's grammar with all of its help.
pub fn command() -> clap::Command {
    Typed::command().after_help("`--help` tells more, with examples.").after_long_help(reference::after_help())
}

/// The long names of every option that has a twin in the environment.
fn option_names() -> Vec<String> {
    let command = command();
    let settings = command.get_arguments().filter(|argument| reference::has_twin(argument));
    settings.filter_map(|argument| argument.get_long().map(str::to_owned)).collect()
}

fn stop(error: &clap::Error) -> Stop {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Stop::answer(error.render().to_string()),
        _ => mistake::refusal(error, "zk-leader-run").into(),
    }
}
