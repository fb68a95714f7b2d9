//! What `--help` says after the options, and what the declaration of an option says of it.

use std::fmt::Write as _;

use clap::{Arg, ArgAction};

use crate::exit::status_meanings;

const EXAMPLES: &str = "\
Examples:
  A nightly job in the crontabs of all hosts, which runs on one of them:
    zk-leader-run -z zk1:2181,zk2:2181,zk3:2181 --slot $(date +%F) -- nightly.sh

  The same, if the others shall not wait until it is done:
    zk-leader-run -z zk1,zk2,zk3 --slot $(date +%F) --wait 0 --conflict-exit-code 0 -- nightly.sh

  A service that follows the leadership from host to host for ever:
    zk-leader-run -z zk1,zk2,zk3/prod --on-exit rejoin -- my-service --port 8080

  A service that is kept alive on one host, and moves to another one if it keeps failing there:
    zk-leader-run -z zk1,zk2,zk3/prod --on-exit restart --max-restarts 3 -- my-service --port 8080

  A service that is told by a signal when contact is lost, and when it is back:
    zk-leader-run -z zk1,zk2,zk3 --on-pause USR1 --on-resume USR2 -- my-service

  Every timing of a set of options, without connecting:
    zk-leader-run --session-timeout 30s --stop-reserve 10s --dry-run -- my-service";

const ENVIRONMENT: &str = "\
Environment:
  Each option has a variable ZK_LEADER_RUN_<OPTION>: ZK_LEADER_RUN_STOP_TIMEOUT=1m is
  --stop-timeout 1m. An empty variable counts as not set. Options without a value take true or false
  there. NO_COLOR turns colours off.

  An option overrides its variable, the variable overrides the configuration file (--config), and
  the file overrides the default; --print-config shows each value and where it came from.

  The command finds in its own environment: ZK_LEADER_TOKEN (the fencing token, which grows from
  leader to leader), ZK_LEADER_TERM, ZK_LEADER_ID, ZK_LEADER_PATH, ZK_LEADER_CANDIDATE,
  ZK_LEADER_SESSION, ZK_LEADER_SLOT (with --leaders), ZK_LEADER_TAKEOVER (clean, unclean or first)
  and ZK_LEADER_LEASE (a file that tells how long it may still act; see zk-leaderctl lease).";

const SIGNALS: &str = "\
Signals:
  TERM, INT and QUIT stop the command, hand over and end zk-leader-run; a second one kills the
  command at once.
  RTMIN+1 replaces zk-leader-run by the program that stands at its path now, while the command
  runs on. If that is not possible, the log says why, and nothing else happens.
  HUP, USR1, USR2, WINCH, CONT and the other real-time signals are passed on to the command; where
  none runs they are dropped. Only if zk-leader-run has a terminal, HUP means that it was closed,
  and ends a host that runs no command.";

/// The text after the options in `--help`.
pub fn after_help() -> String {
    let mut text = format!("{ENVIRONMENT}\n\n{SIGNALS}\n\nExit status:\n");
    for row in status_meanings() {
        writeln!(text, "  {:<7} {}", row.status, row.meaning).ok();
    }
    text + "\n" + EXAMPLES
}

/// `--help` and `--version` are questions, not settings.
pub fn has_variable(argument: &Arg) -> bool {
    argument.get_long().is_some() && !matches!(argument.get_action(), ArgAction::Help | ArgAction::Version)
}

/// A setting is neither a question nor the place of other settings.
pub fn is_setting(argument: &Arg) -> bool {
    const NO_SETTINGS: [&str; 3] = ["config", "print-config", "dry-run"];
    has_variable(argument) && argument.get_long().is_some_and(|long| !NO_SETTINGS.contains(&long))
}

/// The default that the help states in words.
pub fn default_in_words(argument: &Arg) -> String {
    let (_, default) = summary_and_default(argument);
    if default.is_empty() { "none".to_owned() } else { default }
}

/// The summary, and the default if it ends with `[default: words]`.
pub fn summary_and_default(argument: &Arg) -> (String, String) {
    let summary = argument.get_help().map(ToString::to_string).unwrap_or_default();
    match summary.split_once(" [default: ") {
        Some((first, default)) => (first.to_owned(), default.trim_end_matches(']').to_owned()),
        None => (summary, String::new()),
    }
}
