//! What the command-line parser complains about, in our own words.
//!
//! Never: the parser's own text, which has several lines and a usage.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::config::refusal::{Refusal, quoted};

/// The refusal of an error that is no request for help.
pub fn refusal(error: &Error, program: &str) -> Refusal {
    let argument = text(error, ContextKind::InvalidArg).unwrap_or_default();
    // `--wait <DURATION>`: the parser adds the value's name.
    let option = argument.split([' ', '=']).next().unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument => Refusal::usage(plain(&argument), unknown(error, program)),
        ErrorKind::InvalidValue | ErrorKind::WrongNumberOfValues | ErrorKind::TooFewValues => {
            Refusal::usage(option, format_args!("a value is missing; write {}", argument.replace(['<', '>'], "")))
        }
        ErrorKind::TooManyValues => {
            let value = text(error, ContextKind::InvalidValue).unwrap_or_default();
            Refusal::usage(option, format_args!("{} is too much; write {option} without a value", quoted(&value)))
        }
        ErrorKind::InvalidSubcommand => {
            let word = text(error, ContextKind::InvalidSubcommand).unwrap_or_default();
            let meant = text(error, ContextKind::SuggestedSubcommand);
            let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
            Refusal::usage(plain(&word), format_args!("no such command{meant}; {program} --help lists them"))
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = argument.replace(['<', '>'], "");
            Refusal::usage(&missing, format_args!("is missing; {program} --help tells what it is"))
        }
        kind => Refusal::usage(
            "command line",
            format_args!("{}; {program} --help lists all options", kind.as_str().unwrap_or("is wrong")),
        ),
    }
}

fn unknown(error: &Error, program: &str) -> String {
    match text(error, ContextKind::SuggestedArg) {
        Some(suggested) => format!("no such option; did you mean {suggested}?"),
        None => {
            format!("no such option; {program} --help lists all options, and options of the command stand after it")
        }
    }
}

/// An unknown word names itself; its control characters are shown, not obeyed.
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
