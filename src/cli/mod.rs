//! The command lines of both programs: every option and subcommand with its help. Values stay text; `config` checks
//! them.

#[expect(clippy::doc_markdown, reason = "its doc comments are what --help prints")]
pub mod ctl;
mod early_exit;
mod environment;
#[expect(clippy::doc_markdown, reason = "its doc comments are what --help prints")]
mod options;
pub mod reference;

use clap::CommandFactory;

pub use self::early_exit::{EarlyExit, Stream};
pub use self::environment::{ENVIRONMENT_PREFIX, environment_variable};
use self::options::Options;

/// The command line's grammar with its help.
pub fn command() -> clap::Command {
    Options::command().after_help("`--help` tells more, with examples.").after_long_help(reference::after_help())
}
