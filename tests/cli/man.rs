//! Man pages: made from the declarations of the options and what `--help` says after them, committed, never stale.

use clap::Arg;
use roff::{Inline, Roff, bold, italic, roman};

use super::*;

#[test]
fn man_pages_are_not_stale() {
    for (name, text) in pages() {
        golden(&format!("docs/man/{name}.1"), &text);
    }
}

fn pages() -> [(&'static str, String); 2] {
    [
        ("zk-leader-run", page(&cli::command(), "zk-leaderctl")),
        ("zk-leaderctl", page(&cli::ctl::command(), "zk-leader-run")),
    ]
}

#[test]
fn man_finds_nothing_wrong_with_them_and_shows_every_option() {
    let directory = tempfile::tempdir().unwrap();
    for ((name, text), command) in pages().iter().zip([cli::command(), cli::ctl::command()]) {
        let path = directory.path().join(format!("{name}.1"));
        std::fs::write(&path, text).unwrap();
        let mut man = Command::new("man");
        man.args(["--warnings", "-E", "UTF-8", "-l"]).arg(path).env("MANWIDTH", "100");
        let output = man.output().expect("apt-get install man-db");
        let page = String::from_utf8(output.stdout).unwrap().replace(['\u{2010}', '\u{2212}'], "-");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{name}");
        for argument in command.get_arguments().filter_map(Arg::get_long) {
            assert!(page.contains(&format!("--{argument}")), "{name}: --{argument} is missing");
        }
        assert!(page.contains("SEE ALSO") && (*name == "zk-leaderctl" || page.contains("EXIT STATUS")), "{page}");
    }
}

fn page(command: &clap::Command, other: &str) -> String {
    let mut command = command.clone();
    command.build();
    let name = command.get_name().to_owned();
    let mut page = Roff::new();
    page.control("TH", [&*name, "1", " ", concat!("zk-leader-run ", env!("CARGO_PKG_VERSION")), "User Commands"]);
    // Commands are copied from here: neither words nor quotes may change in the copy.
    page.control("nh", []);
    page.control("ad", ["l"]);
    page.control("SH", ["NAME"]);
    page.text([roman(format!("{name} - {}", first_lowercase(&command.get_about().unwrap().to_string())))]);
    page.control("SH", ["SYNOPSIS"]);
    synopsis(&mut page, &command);
    page.control("SH", ["DESCRIPTION"]);
    paragraphs(&mut page, &command.get_long_about().unwrap().to_string());
    if command.has_subcommands() {
        page.control("SH", ["COMMANDS"]);
        for verb in command.get_subcommands() {
            verb_section(&mut page, verb);
        }
    }
    page.control("SH", ["OPTIONS"]);
    options(&mut page, &command);
    let rest = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string).unwrap_or_default();
    sections(&mut page, &rest);
    page.control("SH", ["FILES"]);
    page.control("TP", []);
    page.text([italic("/etc/zk-leader-run/config.toml")]);
    page.text([roman(
        "Settings in TOML, if no other file is named by --config: a key for each option of zk-leader-run.",
    )]);
    page.control("SH", ["SEE ALSO"]);
    page.text([bold(other), roman("(1). The promise, its premises and its limits: docs/design.md of the source.")]);
    page.render()
}

fn first_lowercase(text: &str) -> String {
    let mut letters = text.trim_end_matches('.').chars();
    letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect()
}

fn synopsis(page: &mut Roff, command: &clap::Command) {
    let name = command.get_name();
    if command.has_subcommands() {
        page.text([bold(name), roman(" "), italic("COMMAND"), roman(" [OPTIONS] [ARGS]")]);
    } else {
        let usage = command.get_overridden_usage().unwrap().to_string();
        page.text([bold(name), roman(usage.strip_prefix(name).unwrap().to_owned())]);
    }
}

fn verb_section(page: &mut Roff, verb: &clap::Command) {
    let positionals = verb.get_positionals().map(|argument| match (argument.is_required_set(), called(argument)) {
        (true, name) => format!(" {name}"),
        (false, name) => format!(" [{name}]"),
    });
    page.control("SS", [&*format!("{}{}", verb.get_name(), positionals.collect::<String>())]);
    let about = verb.get_long_about().or(verb.get_about()).unwrap().to_string();
    paragraphs(page, &about);
    for argument in verb.get_arguments().filter(|argument| !argument.is_global_set() && !is_help(argument)) {
        item(page, argument);
    }
}

fn options(page: &mut Roff, command: &clap::Command) {
    let mut heading = None;
    for argument in command.get_arguments().filter(|argument| argument.get_long().is_some()) {
        if heading != argument.get_help_heading() {
            heading = argument.get_help_heading();
            page.control("SS", [heading.unwrap_or_default()]);
        }
        item(page, argument);
    }
}

fn item(page: &mut Roff, argument: &Arg) {
    page.control("TP", []);
    let mut name: Vec<Inline> = Vec::new();
    if let Some(short) = argument.get_short() {
        name.extend([bold(format!("-{short}")), roman(", ")]);
    }
    match argument.get_long() {
        Some(long) if argument.get_action().takes_values() => {
            name.extend([bold(format!("--{long}")), roman(" "), italic(called(argument))]);
        }
        Some(long) => name.push(bold(format!("--{long}"))),
        None => name.push(italic(called(argument))),
    }
    page.text(name);
    let default =
        argument.get_default_values().first().map(|default| format!(" [default: {}]", default.to_string_lossy()));
    let default = default.filter(|_| argument.get_action().takes_values());
    let summary = argument.get_help().unwrap().to_string();
    let whole = argument.get_long_help().map(ToString::to_string).unwrap_or_default();
    page.text([roman(format!("{summary}{}", default.unwrap_or_default()))]);
    let rest = whole.strip_prefix(&summary).unwrap_or_default().trim();
    for paragraph in rest.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
        page.control("IP", []);
        page.text([roman(paragraph.split_whitespace().collect::<Vec<_>>().join(" "))]);
    }
}

fn called(argument: &Arg) -> String {
    argument.get_value_names().map(|names| names.join(" ")).unwrap_or_default()
}

fn is_help(argument: &Arg) -> bool {
    matches!(argument.get_long(), Some("help" | "version"))
}

fn paragraphs(page: &mut Roff, text: &str) {
    for (at, paragraph) in text.split("\n\n").enumerate() {
        if at > 0 {
            page.control("PP", []);
        }
        page.text([roman(paragraph.split_whitespace().collect::<Vec<_>>().join(" "))]);
    }
}

/// `Heading:` at the margin, text behind two blanks, what is typed behind four, and rows of a table of exit statuses.
fn sections(page: &mut Roff, text: &str) {
    let mut heading = "";
    let mut typed = false;
    for line in text.lines() {
        let is_typed = line.starts_with("    ");
        if typed != is_typed {
            page.control(if is_typed { "EX" } else { "EE" }, []);
            typed = is_typed;
        }
        match line {
            "" => {
                page.control("PP", []);
            }
            _ if !line.starts_with(' ') && line.ends_with(':') => {
                heading = line.trim_end_matches(':');
                page.control("SH", [&*heading.to_uppercase()]);
            }
            _ if heading == "Exit status" => {
                let (status, meaning) = line.trim().split_once(' ').unwrap();
                page.control("TP", ["8"]);
                page.text([bold(status)]);
                page.text([roman(meaning.trim())]);
            }
            _ if !heading.is_empty() => {
                page.text([roman(if is_typed { &line[2..] } else { line.trim() })]);
            }
            _ => {}
        }
    }
    if typed {
        page.control("EE", []);
    }
}
