//! The command lines of both programs: every option and subcommand with its help. Values stay text; `config` checks
//! them.

pub mod completion;
#[expect(clippy::doc_markdown, reason = "its doc comments are what --help prints")]
pub mod ctl;
mod early_exit;
mod environment;
#[expect(clippy::doc_markdown, reason = "its doc comments are what --help prints")]
mod options;
pub mod pages;
pub mod reference;

use clap::{Arg, CommandFactory};

pub use self::early_exit::{EarlyExit, Stream, unless_reader_is_gone, unwritten};
pub use self::environment::{ENVIRONMENT_PREFIX, environment_variable};
use self::options::Options;

/// Rarely used options: `-h` only names them.
const ADVANCED: [&str; 16] = [
    "election-path",
    "kerberos-server",
    "tls-any-name",
    "guarantee",
    "max-pause",
    "restart-delay",
    "restart-max-delay",
    "restart-window",
    "stand-back",
    "min-start-interval",
    "takeover-delay",
    "health-grace",
    "eligible-cmd",
    "eligible-timeout",
    "keep-slots",
    "ready-on",
];

/// The command line's grammar with its help.
pub fn command() -> clap::Command {
    let is_advanced = |argument: &Arg| argument.get_long().is_some_and(|long| ADVANCED.contains(&long));
    Options::command()
        .mut_args(|argument| if is_advanced(&argument) { argument.hide_short_help(true) } else { argument })
        .after_help(after_short_help())
        .after_long_help(reference::after_help())
}

fn after_short_help() -> String {
    let mut text = "Advanced:\n ".to_owned();
    let mut width = 0;
    for (at, option) in ADVANCED.iter().enumerate() {
        let end = if at + 1 == ADVANCED.len() { "" } else { "," };
        let word = format!(" --{option}{end}");
        if width + word.len() > 98 {
            text += "\n ";
            width = 0;
        }
        width += word.len();
        text += &word;
    }
    text + "\n\n`--help` tells more about each option, with examples. `zk-leader-run man` prints the manual page,\n\
            `zk-leader-run completions SHELL` what bash, fish or zsh needs to complete the options."
}
