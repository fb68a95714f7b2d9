//! Durations as people write them. A number needs a unit; a plain `0` is allowed where zero has a meaning.

use std::time::Duration;

use crate::config::error::{ConfigError, ValueError};
use crate::config::source::layers::Layers;
use crate::config::source::setting::Setting;
use crate::config::value::digits;
use crate::observe::words;

const EXAMPLES: &str = "write it like 1500ms, 5s or 1m30s";
const YEAR: Duration = Duration::from_secs(366 * 24 * 3600);

/// The meaning of `0` for an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Zero {
    Meaningful,
    /// What to write instead.
    Senseless(&'static str),
}

/// A duration of at most a year.
pub fn parse(setting: &Setting, zero: Zero) -> Result<Duration, ConfigError> {
    parse_up_to(YEAR, setting, zero)
}

/// A duration of at most `longest`.
pub fn parse_up_to(longest: Duration, setting: &Setting, zero: Zero) -> Result<Duration, ConfigError> {
    let length = read(&setting.text).map_err(|complaint| setting.refused(complaint))?;
    match zero {
        Zero::Senseless(remedy) if length.is_zero() => {
            Err(setting.refused(format_args!("makes no sense here; {remedy}")))
        }
        _ if length > longest => {
            Err(setting.refused(format_args!("is too long; write at most {}", words::length(longest))))
        }
        _ => Ok(length),
    }
}

/// The duration of an option that has a default.
pub fn required(layers: &Layers, option: &'static str, zero: Zero) -> Result<Duration, ConfigError> {
    parse(&layers.required(option)?, zero)
}

/// The duration of an option that may be left out.
pub fn optional(layers: &Layers, option: &'static str, zero: Zero) -> Result<Option<Duration>, ConfigError> {
    layers.given(option)?.map(|setting| parse(&setting, zero)).transpose()
}

fn read(text: &str) -> Result<Duration, ValueError> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    humantime::parse_duration(text).map_err(|error| {
        ValueError::from(match error {
            humantime::DurationError::NumberOverflow => format!("is out of range; {EXAMPLES}"),
            _ if digits::<u64>(text).is_some() => format!("has no unit; write {text}s or {text}ms"),
            _ if text.starts_with('-') && read(text.trim_start_matches('-')).is_ok() => {
                format!("is negative; {EXAMPLES}")
            }
            _ if text.is_empty() => format!("is empty; {EXAMPLES}"),
            _ => format!("is not a duration; {EXAMPLES}"),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::source::setting::Origin;

    fn parsed(text: &str) -> Result<Duration, String> {
        let setting = Setting { origin: Origin::Option("wait"), text: text.into() };
        parse(&setting, Zero::Meaningful).map_err(|error| error.sentence)
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, millis) in
            [("1500ms", 1500), ("5s", 5000), ("1m30s", 90_000), ("1m 30s", 90_000), ("0", 0), ("0s", 0)]
        {
            assert_eq!(parsed(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn each_mistake_has_its_own_remedy() {
        let cases = [
            ("abc", "--wait: 'abc' is not a duration; write it like 1500ms, 5s or 1m30s"),
            ("", "--wait: '' is empty; write it like 1500ms, 5s or 1m30s"),
            ("15", "--wait: '15' has no unit; write 15s or 15ms"),
            ("-5s", "--wait: '-5s' is negative; write it like 1500ms, 5s or 1m30s"),
            ("--dry-run", "--wait: '--dry-run' is not a duration; write it like 1500ms, 5s or 1m30s"),
            ("5 parsecs", "--wait: '5 parsecs' is not a duration; write it like 1500ms, 5s or 1m30s"),
            ("2000years", "--wait: '2000years' is too long; write at most 366d"),
            (
                "99999999999999999999s",
                "--wait: '99999999999999999999s' is out of range; write it like 1500ms, 5s or 1m30s",
            ),
        ];
        for (text, sentence) in cases {
            assert_eq!(parsed(text), Err(sentence.to_owned()));
        }
    }
}
