//! What the command-line parser complains about, in our own words.
//!
//! Never: the parser's own text, which has several lines and a usage.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::config::refusal::{Refusal, quoted};

const HELP: &str = "zk-leader-run --help lists all options";

/// The refusal of an error that is no request for help.
pub fn refusal(error: &Error) -> Refusal {
    let argument = text(error, ContextKind::InvalidArg).unwrap_or_default();
    // `--wait <DURATION>`: the parser adds the value's name.
    let option = argument.split([' ', '=']).next().unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument => Refusal::usage(plain(&argument), unknown(error)),
        ErrorKind::InvalidValue | ErrorKind::WrongNumberOfValues | ErrorKind::TooFewValues => {
            Refusal::usage(option, format_args!("a value is missing; write {}", argument.replace(['<', '>'], "")))
        }
        ErrorKind::TooManyValues => {
            let value = text(error, ContextKind::InvalidValue).unwrap_or_default();
            Refusal::usage(option, format_args!("{} is too much; write {option} without a value", quoted(&value)))
        }
        kind => Refusal::usage("command line", format_args!("{}; {HELP}", kind.as_str().unwrap_or("is wrong"))),
    }
}

fn unknown(error: &Error) -> String {
    match text(error, ContextKind::SuggestedArg) {
        Some(suggested) => format!("no such option; did you mean {suggested}?"),
        None => format!("no such option; {HELP}, and options of the command stand after it"),
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
