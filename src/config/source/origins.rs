//! `--print-config`: every effective setting as a line of TOML, followed by its origin. Secrets are masked.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;

use clap::{Arg, Command};

use crate::cli::environment_variable;
use crate::cli::reference::{default_in_words, is_setting};
use crate::config::error::printable;
use crate::config::source::layers::{Layer, Layers};
use crate::config::source::process_environment::SECRET_VARIABLE;

/// The column of the origins, if the values leave room.
const COLUMN: usize = 40;
const MASKED: &str = "********";

/// The whole page. `file`: the configuration file that was read. `notices`: what else is said of the settings.
pub fn page(command: &Command, layers: &Layers, (file, notices): (Option<&str>, &[String])) -> String {
    let file = file.map_or_else(|| "no configuration file was read".to_owned(), |file| format!("{file} was read"));
    let mut page = format!("# Settings of zk-leader-run, each with its origin; {file}.\n");
    for notice in notices {
        writeln!(page, "# Note: {}", printable(notice)).ok();
    }
    let mut heading = None;
    for argument in command.get_arguments().filter(|argument| is_setting(argument)) {
        if heading != argument.get_help_heading() {
            heading = argument.get_help_heading();
            writeln!(page, "\n# {}", heading.unwrap_or_default()).ok();
        }
        let (setting, origin) = line(argument, layers);
        writeln!(page, "{setting:<COLUMN$} # {origin}").ok();
    }
    page
}

fn line(argument: &Arg, layers: &Layers) -> (String, String) {
    let option = argument.get_long().unwrap_or_default();
    let Some((layer, value)) = layers.effective(option) else {
        return (format!("# {option}"), format!("default: {}", default_in_words(argument)));
    };
    let setting = format!("{option} = {}", in_toml(argument, &value.to_string_lossy()));
    // The origin; the key is on the same line. A default stays a comment: some options may not be given without
    // another.
    let origin = match layer {
        Layer::Default => return (format!("# {setting}"), "default".to_owned()),
        Layer::Credential => "systemd credential".to_owned(),
        Layer::Option => format!("--{option}"),
        Layer::Environment => environment_variable(option),
        Layer::File(place) => place.to_string(),
    };
    (setting, origin)
}

/// The settings from the file, as options. As an option, the file of the identities would count before their variable.
pub fn from_file(command: &Command, layers: &Layers) -> Vec<OsString> {
    let has_secret = layers.process_environment.variable(SECRET_VARIABLE).is_some_and(|secret| !secret.is_empty());
    let is_outdone = |argument: &Arg| has_secret && argument.get_long() == Some("auth-file");
    let settings = command.get_arguments().filter(|argument| is_setting(argument) && !is_outdone(argument));
    let from_file = settings.filter_map(|argument| match layers.effective(argument.get_long().unwrap_or_default()) {
        Some((Layer::File(_), value)) => as_option(argument, &value),
        _ => None,
    });
    from_file.collect()
}

fn as_option(argument: &Arg, value: &OsStr) -> Option<OsString> {
    let mut option = OsString::from(format!("--{}", argument.get_long().unwrap_or_default()));
    if argument.get_action().takes_values() {
        option.push("=");
        option.push(value);
    } else if value != "true" {
        return None;
    }
    Some(option)
}

fn in_toml(argument: &Arg, text: &str) -> String {
    match text {
        // Marks an option whose value is secret.
        _ if argument.is_hide_env_values_set() => quoted(MASKED),
        text if argument.get_action().takes_values() => quoted(text),
        "true" | "1" | "yes" | "on" => "true".to_owned(),
        "false" | "0" | "no" | "off" => "false".to_owned(),
        text => quoted(text),
    }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                write!(quoted, "\\u{:04X}", u32::from(letter)).ok();
            }
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::source::file_settings::FileSettings;
    use crate::config::source::process_environment::ProcessEnvironment;

    #[test]
    fn a_secret_is_masked_wherever_it_came_from() {
        let secret = Arg::new("password").long("password").hide_env_values(true);
        let command = Command::new("x").arg(secret.value_parser(clap::value_parser!(OsString)));
        let matches = command.clone().get_matches_from(["x", "--password", "hunter2"]);
        let process_environment = ProcessEnvironment::default();
        let layers =
            Layers { matches: &matches, process_environment: &process_environment, file: &FileSettings::default() };
        let page = page(&command, &layers, (None, &[]));
        assert!(page.contains("password = \"********\"") && !page.contains("hunter2"), "{page}");
    }
}
