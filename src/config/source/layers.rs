//! The value of an option with its origin: from the command line, else its variable, else its key in the file, else its
//! default.

use std::borrow::Cow;
use std::ffi::OsStr;

use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::cli::{self, ENVIRONMENT_PREFIX, environment_variable, reference};
use crate::config::error::{ConfigError, misspelt, quoted};
use crate::config::source::file_settings::{FileSettings, Location};
use crate::config::source::process_environment::{ProcessEnvironment, SECRET_VARIABLE};
use crate::config::source::setting::{Origin, Setting};

/// The layers of one command line.
pub struct Layers<'a> {
    pub matches: &'a ArgMatches,
    pub process_environment: &'a ProcessEnvironment,
    pub file: &'a FileSettings,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layer<'a> {
    Option,
    Environment,
    File(&'a Location),
    /// A systemd credential that is the option's default.
    Credential,
    Default,
}

impl Layers<'_> {
    /// The value of an option, by its long name. A variable that is set but empty counts as not set.
    pub fn given(&self, option: &'static str) -> Result<Option<Setting>, ConfigError> {
        let Some((layer, value)) = self.effective(option) else { return Ok(None) };
        let origin = match layer {
            Layer::Option => Origin::Option(option),
            Layer::Environment => Origin::Environment(option),
            Layer::File(place) => Origin::File(option, place.clone()),
            Layer::Credential => Origin::Credential(option),
            Layer::Default => Origin::Default(option),
        };
        match value.to_str() {
            Some(text) if is_another_word(text) => Err(Setting { origin, text: text.to_owned() }
                .refused("stands where its value should be; write the value (is a variable empty?)")),
            Some(text) => Ok(Some(Setting { origin, text: text.to_owned() })),
            None => Err(ConfigError::usage(
                origin,
                format_args!("{} is not UTF-8 text; write it in UTF-8", quoted(&value.to_string_lossy())),
            )),
        }
    }

    /// The effective value and its layer.
    pub fn effective<'a>(&'a self, option: &str) -> Option<(Layer<'a>, Cow<'a, OsStr>)> {
        let parsed = self.parsed(option);
        match (parsed, self.variable(option), self.file.general(option)) {
            (Some((ValueSource::CommandLine, value)), _, _) => Some((Layer::Option, value)),
            (_, Some(value), _) => Some((Layer::Environment, value.into())),
            (_, None, Some(set)) => Some((Layer::File(&set.place), OsStr::new(&set.text).into())),
            (Some((_, value)), None, None) => Some((Layer::Default, value)),
            (None, None, None) => self.credential(option).map(|path| (Layer::Credential, path.into())),
        }
    }

    /// The value of an option that has a default.
    pub fn required(&self, option: &'static str) -> Result<Setting, ConfigError> {
        let missing = || ConfigError::usage(format_args!("--{option}"), "has no value");
        self.given(option)?.ok_or_else(missing)
    }

    /// An option without a value; in the environment it has one.
    pub fn flag(&self, option: &'static str) -> Result<bool, ConfigError> {
        const WORDS: [(&str, bool); 8] = [
            ("true", true),
            ("false", false),
            ("1", true),
            ("0", false),
            ("yes", true),
            ("no", false),
            ("on", true),
            ("off", false),
        ];
        self.given(option)?.map_or(Ok(false), |setting| setting.one_of(&WORDS))
    }

    /// The name of an option in an error: that of the value's origin.
    pub fn name_of(&self, option: &'static str) -> String {
        match self.effective(option) {
            Some((Layer::Environment, _)) => Origin::Environment(option),
            Some((Layer::File(place), _)) => Origin::File(option, place.clone()),
            _ => Origin::Option(option),
        }
        .to_string()
    }

    fn credential(&self, option: &str) -> Option<&OsStr> {
        let mut known = self.process_environment.credentials.iter();
        known.find(|(known, _)| *known == option).map(|(_, path)| path.as_os_str())
    }

    /// An empty variable counts as not set.
    fn variable(&self, option: &str) -> Option<&OsStr> {
        self.process_environment.variable(&environment_variable(option)).filter(|value| !value.is_empty())
    }

    /// The parser's value, defaults included. Not every grammar has every option that is asked for.
    /// Several values of one option have a blank between them.
    fn parsed(&self, option: &str) -> Option<(ValueSource, Cow<'_, OsStr>)> {
        let id = option.replace('-', "_");
        let values: Vec<_> = self.matches.try_get_raw(&id).ok()??.collect();
        let value = match values.as_slice() {
            [] => return None,
            [only] => Cow::from(*only),
            several => Cow::from(several.join(OsStr::new(" "))),
        };
        Some((self.matches.value_source(&id)?, value))
    }
}

/// `--`, or an option: the value before it is missing, as where an unquoted variable of a shell is empty.
fn is_another_word(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("--") else { return false };
    let name = rest.split('=').next();
    name == Some("") || cli::command().get_arguments().any(|argument| argument.get_long() == name)
}

/// Refuses a misspelt variable, because the intended setting would be missing. Any other unknown variable gives only a
/// notice (Kubernetes sets `ZK_LEADER_RUN_SERVICE_HOST` for a service of that name).
pub fn check_variables(process_environment: &ProcessEnvironment) -> Result<Vec<String>, ConfigError> {
    let command = cli::command();
    let options = command.get_arguments().filter(|argument| reference::has_variable(argument));
    let options = options.filter_map(|argument| argument.get_long());
    let known: Vec<String> = options.map(environment_variable).chain([SECRET_VARIABLE.to_owned()]).collect();
    let set = process_environment.variables.iter().filter(|(_, value)| !value.is_empty());
    let names = set.map(|(name, _)| name.to_string_lossy());
    let unknown = names.filter(|name| name.starts_with(ENVIRONMENT_PREFIX) && !known.iter().any(|known| known == name));
    let unknown = unknown.map(|name| {
        let suffixes = known.iter().filter_map(|known| known.strip_prefix(ENVIRONMENT_PREFIX));
        match misspelt(name.trim_start_matches(ENVIRONMENT_PREFIX), suffixes) {
            Some(meant) => Err(ConfigError::usage(
                quoted(&name),
                format_args!("there is no such variable; did you mean {ENVIRONMENT_PREFIX}{meant}?"),
            )),
            None => Ok(format!("the variable {} is unknown and ignored", quoted(&name))),
        }
    });
    unknown.collect()
}
