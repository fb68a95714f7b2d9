//! One value with its origin, so that an error can name both.

use std::fmt;

use crate::cli::environment_variable;
use crate::config::error::{ConfigError, quoted, suggestion};
use crate::config::source::file_settings::Location;
use crate::exit::Status;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// `--<option>` on the command line.
    Option(&'static str),
    /// The environment variable of that option.
    Environment(&'static str),
    /// The key of that option in the configuration file.
    File(&'static str, Location),
    /// A systemd credential that is the default of that option.
    Credential(&'static str),
    /// The default of `--<option>`.
    Default(&'static str),
    /// Another name: an argument, or a variable that belongs to no option.
    Argument(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option(option) | Self::Default(option) => write!(f, "--{option}"),
            Self::Credential(option) => write!(f, "systemd credential for --{option}"),
            Self::Environment(option) => f.write_str(&environment_variable(option)),
            Self::File(option, place) => write!(f, "{place}: {option}"),
            Self::Argument(name) => f.write_str(name),
        }
    }
}

/// One value as given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    pub origin: Origin,
    pub text: String,
}

impl Setting {
    /// Not by its default.
    pub const fn is_given(&self) -> bool {
        !matches!(self.origin, Origin::Default(_))
    }

    /// `<origin>: '<text>' <complaint>`. A mistake in a file is a configuration error.
    pub fn refused(&self, complaint: impl fmt::Display) -> ConfigError {
        self.refused_unseen(format_args!("{} {complaint}", quoted(&self.text)))
    }

    /// The same without the text, which may hold a secret.
    pub fn refused_unseen(&self, complaint: impl fmt::Display) -> ConfigError {
        let is_in_a_file = matches!(self.origin, Origin::File(..));
        let status = if is_in_a_file { Status::Configuration } else { Status::Usage };
        ConfigError::new(status, &self.origin, complaint)
    }

    /// The value is valid, and contradicts no other one, but cannot work: a timing that does not fit the others.
    pub fn unworkable(&self, complaint: impl fmt::Display) -> ConfigError {
        ConfigError::configuration(&self.origin, format_args!("{} {complaint}", quoted(&self.text)))
    }

    /// One of a few words.
    pub fn one_of<T: Copy>(&self, choices: &[(&'static str, T)]) -> Result<T, ConfigError> {
        let words = choices.iter().map(|(word, _)| *word);
        match choices.iter().find(|(word, _)| *word == self.text) {
            Some((_, meaning)) => Ok(*meaning),
            None => Err(self.refused(format_args!(
                "is not a choice; write {}{}",
                alternatives(&words.clone().collect::<Vec<_>>()),
                suggestion(&self.text, words)
            ))),
        }
    }
}

/// `a, b or c`.
fn alternatives(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => words.concat(),
    }
}
