//! The values of single arguments.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use super::Value;
use crate::config::error::{ConfigError, quoted};
use crate::config::source::setting::{Origin, Setting};
use crate::config::value::duration::{self, Zero};

pub(super) const NO_ZERO: Zero = Zero::Senseless("write a duration like 30s");

pub(super) fn within(timeout: Option<&OsString>) -> Result<Duration, ConfigError> {
    length("--timeout", timeout, NO_ZERO).map(Option::unwrap_or_default)
}

/// Orders that are too long are not read by the hosts that they are for.
const LONGEST_REASON: usize = 1000;

/// An operator who finds the election disabled, or a host drained, must learn why, so it is not empty. There is a default.
pub(super) fn reason(reason: Option<&OsString>) -> Result<String, ConfigError> {
    let missing = || ConfigError::usage("--reason", "is empty; write one, like --reason 'upgrade of the database'");
    let setting = text("--reason", reason)?.ok_or_else(missing)?;
    if setting.text.len() > LONGEST_REASON {
        let complaint = format!("is longer than {LONGEST_REASON} bytes; write a shorter one");
        return Err(ConfigError::usage("--reason", complaint));
    }
    if setting.text.trim().is_empty() { Err(missing()) } else { Ok(setting.text) }
}

pub(super) fn value_of(value: Option<&OsString>) -> Value {
    use std::os::unix::ffi::OsStrExt as _;
    match value {
        Some(value) if value != "-" => Value::Given(value.as_bytes().to_vec()),
        _ => Value::StandardInput,
    }
}

/// Without a number: all.
pub(super) fn how_many(lines: Option<&OsString>) -> Result<usize, ConfigError> {
    let Some(setting) = text("--lines", lines)? else { return Ok(usize::MAX) };
    let number = setting.text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| setting.refused("is not a number of terms; write one from 1 on"))
}

pub(super) fn number(setting: &Setting) -> Result<i64, ConfigError> {
    let token = setting.text.parse().ok().filter(|token| *token > 0);
    token.ok_or_else(|| setting.refused("is not a fencing token; a token is a positive number, as in ZK_LEADER_TOKEN"))
}

pub(super) fn length(
    what: &'static str,
    value: Option<&OsString>,
    zero: Zero,
) -> Result<Option<Duration>, ConfigError> {
    text(what, value)?.map(|setting| duration::parse(&setting, zero)).transpose()
}

pub(super) fn text(what: &'static str, value: Option<&OsString>) -> Result<Option<Setting>, ConfigError> {
    value.map(|value| given(what, value)).transpose()
}

pub(super) fn given(what: &'static str, value: &OsStr) -> Result<Setting, ConfigError> {
    let not_text = || {
        let complaint = format!("{} is not UTF-8 text; write it in UTF-8", quoted(&value.to_string_lossy()));
        ConfigError::usage(what, complaint)
    };
    let text = value.to_str().ok_or_else(not_text)?;
    Ok(Setting { origin: Origin::Argument(what), text: text.to_owned() })
}
