//! The reference pages, generated from the declarations behind `--help`: options, environment variables, exit statuses.

use std::fmt::Write as _;

use clap::{Arg, Command};

use super::golden;
use zk_leader_run::cli::command;
use zk_leader_run::cli::reference::{has_variable, summary_and_default};
use zk_leader_run::exit::status_meanings;

const OPTIONS: &str = "\
# Options of zk-leader-run

Generated from `src/cli/options/`; `UPDATE=1 cargo test --test cli` rewrites it.

Every option has an environment variable: `ZK_LEADER_RUN_STOP_TIMEOUT` is that of `--stop-timeout`. Except `--dry-run`,
`--print-config` and `--config`, it also has a key of the same name in the configuration file. An option overrides its
variable, the variable the file, and the file the default; an empty variable counts as not set. A variable `ZK_LEADER_RUN_…`
that differs from a known one by one or two letters is refused; any other unknown one is reported and ignored. Options end at
the first argument that is not an option, or at `--`; the rest is the command.
";

const EXIT_CODES: &str = "\
# Exit status of zk-leader-run

Generated from `src/exit.rs`; `UPDATE=1 cargo test --test cli` rewrites it.

| Status | sysexits.h | Meaning |
|---|---|---|
";

#[test]
fn the_reference_pages_are_not_stale() {
    golden("docs/options.md", &options(&command()));
    golden("docs/exit-codes.md", &exit_codes());
}

/// `docs/exit-codes.md`.
fn exit_codes() -> String {
    let mut page = EXIT_CODES.to_owned();
    for row in status_meanings() {
        writeln!(page, "| {} | {} | {} |", row.status, row.name, row.meaning).ok();
    }
    page + "
Why a status was given is said on standard error: in one line when the program does not begin, else in one of the
last lines of the log. A command may itself exit with one of our statuses; the log tells the two apart.

64 or 78: 64 is a value that cannot be understood or contradicts another; 78 is a value that cannot work, because the timings
do not fit each other, the ensemble or the other contenders, or any mistake in the configuration file. Both are found before
anything is connected, except for what only the ensemble can tell. 126 and 127 are found before that, too;
should the command or its interpreter turn out to be missing only later, they are the status of the failed start.

A release that cannot be confirmed within 1 s is left to expiry: a warning in the log, the status unchanged.
"
}

/// `docs/options.md`.
fn options(command: &Command) -> String {
    let mut page = OPTIONS.to_owned();
    let mut heading = "";
    for argument in command.get_arguments().filter(|argument| has_variable(argument)) {
        let section = argument.get_help_heading().unwrap_or_default();
        if section != heading {
            write!(page, "\n## {section}\n\n| Option | Default | Meaning |\n|---|---|---|\n").ok();
            heading = section;
        }
        page.push_str(&row(argument));
    }
    page
}

fn row(argument: &Arg) -> String {
    let long = argument.get_long().unwrap_or_default();
    let short = argument.get_short().map_or_else(String::new, |short| format!("`-{short}`, "));
    let value = match argument.get_value_names() {
        Some([name, ..]) if argument.get_action().takes_values() => format!(" {name}"),
        _ => String::new(),
    };
    let (meaning, said) = meaning_and_default(argument);
    let default =
        argument.get_default_values().first().map_or(said, |default| format!("`{}`", default.to_string_lossy()));
    format!("| {short}`--{long}{value}` | {default} | {meaning} |\n")
}

/// The summary with the text after it, and the default if it is in words.
fn meaning_and_default(argument: &Arg) -> (String, String) {
    let summary = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let whole = argument.get_long_help().map(ToString::to_string).unwrap_or_default();
    let rest = whole.strip_prefix(&summary).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let (first, default) = summary_and_default(argument);
    let meaning = if rest.is_empty() { first } else { format!("{first}. {rest}") };
    (in_cell(&meaning), in_cell(&default))
}

/// A table cell must not contain `|` or a bare `<`.
fn in_cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}
