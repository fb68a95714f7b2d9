//! The reference pages, generated from the declarations behind `--help`: options, environment variables, exit statuses.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use clap::{Arg, Command};

use super::golden;
use zk_leader_run::cli::command;
use zk_leader_run::cli::reference::{has_variable, summary_and_default};
use zk_leader_run::core::action::PhaseName;
use zk_leader_run::core::event::SessionNumber;
use zk_leader_run::core::machine::{Snapshot, Vouched};
use zk_leader_run::core::time::{Now, Sighting, Timestamp};
use zk_leader_run::exit::status_meanings;
use zk_leader_run::observe::metrics::Metrics;
use zk_leader_run::observe::status::Status;

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

const METRICS: &str = "\
# Metrics

Generated from `src/observe/metrics/`; `UPDATE=1 cargo test --test cli` rewrites it.

Every metric has the labels `election` (`--name`) and `participant` (`--id`, or else the host). Without `--vouch` there are none with
`vouch` in their names. Counters begin at zero with the process, and at an upgrade in place.

| Metric | Type | Labels | Meaning |
|---|---|---|---|
";

#[test]
fn the_reference_pages_are_not_stale() {
    golden("docs/options.md", &options(&command()));
    golden("docs/exit-codes.md", &exit_codes());
    golden("docs/metrics.md", &metrics());
}

/// `docs/metrics.md`, from what a host shows that has begun.
fn metrics() -> String {
    let (mut page, text) = (METRICS.to_owned(), exposed());
    let said = |word| text.lines().filter_map(move |line| line.strip_prefix(word)?.strip_prefix(' ')?.split_once(' '));
    let types: BTreeMap<_, _> = said("# TYPE").collect();
    for (name, help) in said("# HELP") {
        let kind = types[name];
        let shown = match kind {
            "counter" => format!("{name}_total"),
            "info" => format!("{name}_info"),
            _ => name.to_owned(),
        };
        let series = text.lines().filter(|line| line.starts_with(&format!("{shown}{{")));
        let labels: BTreeSet<_> = series.flat_map(labels).collect();
        let labels = labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
        writeln!(page, "| `{shown}` | {kind} | {labels} | {} |", in_cell(help.trim_end_matches('.'))).ok();
    }
    page
}

/// Of one line, besides those that each has.
fn labels(line: &str) -> Vec<&str> {
    let pairs = line.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map_or("", |(pairs, _)| pairs);
    let labels = pairs.split(',').filter_map(|pair| Some(pair.split_once('=')?.0));
    labels.filter(|label| !["election", "participant"].contains(label)).collect()
}

/// All that there is to be shown.
fn exposed() -> String {
    let metrics = Metrics::new("job", "a");
    metrics.expect_auxiliary("--hook");
    metrics.datagrams_dropped("replay", 0);
    let now = Now { lease: Timestamp::ZERO, observer: Sighting::ZERO };
    let vouching = Some(Vouched {
        limit: Duration::from_secs(600),
        promised_until: Sighting::ZERO,
        promised_to: None,
        leads: None,
    });
    let snapshot = Snapshot {
        phase: PhaseName::Following,
        session: SessionNumber(1),
        timing: None,
        view: None,
        held_term: None,
        barred: None,
        disabled: false,
        run: None,
        frozen: false,
        grace_over_at: Timestamp::NEVER,
        is_ending: false,
        vouching,
        step: None,
        asks_from: Timestamp::ZERO,
        unasked_until: None,
    };
    metrics.text(&Status::new(now, snapshot), now)
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

64 or 78: 64 is a value that cannot be understood, or a combination that is not possible; 78 is a value that cannot work, because
the timings do not fit each other, the ensemble or the other contenders, or a key or a value of the configuration file that cannot
be understood or combined. Both are found before anything is connected, except for what only the
ensemble can tell. 126 and 127 are found before that, too; should the command or its interpreter turn out to be missing only later,
they are the status of the failed start.

A release that cannot be confirmed within 1 s is left to expiry: a warning in the log, the status unchanged. With --vouch, a
host whose command ended by itself or by --timeout tries until --vouch-limit is over.
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
