//! From what was typed to a [`Config`], or to the one text that ends the program: help, version, or what is wrong.
//!
//! Never: anything connected, written or started.

mod layers;
mod mistake;
#[expect(clippy::doc_markdown, reason = "its doc comments are what --help prints")]
mod options;
pub mod reference;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};

pub use self::layers::{Layers, Surroundings};
pub use self::options::{Typed, Watching};
use crate::config::refusal::Refusal;
use crate::config::{self, Config};

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

/// Reads the command line (with the program's name first) and the environment.
///
/// # Errors
/// Help or version was asked for, or something is wrong.
pub fn parse(arguments: impl IntoIterator<Item = OsString>, surroundings: &Surroundings) -> Result<Config, Stop> {
    let matches = command().try_get_matches_from(arguments).map_err(|error| stop(&error))?;
    let typed = Typed::from_arg_matches(&matches).map_err(|error| stop(&error))?;
    let mut config = config::read(&typed, &Layers { matches: &matches, surroundings })?;
    config.notices.extend(layers::unknown_twins(surroundings, &option_names()));
    Ok(config)
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
        _ => mistake::refusal(error).into(),
    }
}
