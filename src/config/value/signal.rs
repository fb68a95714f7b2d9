//! Signals by name (with or without `SIG`, in any case) or by number. Refused: 0 and the signals that the C library
//! reserves.

use nix::sys::signal::Signal;

use crate::config::error::{ConfigError, suggestion};
use crate::config::source::setting::Setting;

/// The number of a signal.
pub fn parse(setting: &Setting) -> Result<i32, ConfigError> {
    parse_or(setting, &[])
}

/// The number of a signal, where the option also accepts `words`.
pub fn parse_or(setting: &Setting, words: &[&'static str]) -> Result<i32, ConfigError> {
    let name = setting.text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    number(name).ok_or_else(|| {
        let known = words.iter().copied().chain(Signal::iterator().map(plain_name));
        let choices = if words.is_empty() { String::new() } else { format!("{}, ", words.join(", ")) };
        setting.refused(format_args!(
            "is not a signal; write {choices}a name like TERM, USR1 or RTMIN+3, or a number from 1 to 31 or {} to {}{}",
            libc::SIGRTMIN(),
            libc::SIGRTMAX(),
            suggestion(name, known)
        ))
    })
}

fn number(name: &str) -> Option<i32> {
    let real_time = libc::SIGRTMIN()..=libc::SIGRTMAX();
    let offset = |text: &str, sign: &str| -> Option<i32> {
        if text.is_empty() { Some(0) } else { text.strip_prefix(sign)?.parse().ok() }
    };
    if let Some(rest) = name.strip_prefix("RTMIN") {
        return offset(rest, "+")?.checked_add(*real_time.start()).filter(|number| real_time.contains(number));
    }
    if let Some(rest) = name.strip_prefix("RTMAX") {
        return real_time.end().checked_sub(offset(rest, "-")?).filter(|number| real_time.contains(number));
    }
    if let Ok(number) = name.parse::<i32>() {
        return (Signal::try_from(number).is_ok() || real_time.contains(&number)).then_some(number);
    }
    let alias = match name {
        "IOT" => "ABRT",
        "CLD" => "CHLD",
        "POLL" => "IO",
        _ => name,
    };
    Signal::iterator().find(|signal| plain_name(*signal) == alias).map(|signal| signal as i32)
}

fn plain_name(signal: Signal) -> &'static str {
    signal.as_str().trim_start_matches("SIG")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::source::setting::Origin;

    fn parsed(text: &str) -> Result<i32, String> {
        let setting = Setting { origin: Origin::Option("stop-signal"), text: text.into() };
        parse(&setting).map_err(|error| error.sentence)
    }

    #[test]
    fn signals_have_names_and_numbers() {
        for (text, number) in [("TERM", 15), ("SIGTERM", 15), ("sigterm", 15), ("15", 15), ("usr1", 10), ("cld", 17)] {
            assert_eq!(parsed(text), Ok(number), "{text}");
        }
        assert_eq!(parsed("RTMIN+3"), Ok(libc::SIGRTMIN() + 3));
        assert_eq!(parsed("SIGRTMAX-1"), Ok(libc::SIGRTMAX() - 1));
    }

    #[test]
    fn what_is_no_signal_is_refused_and_the_nearest_name_suggested() {
        assert_eq!(
            parsed("SIGTREM").unwrap_err(),
            "--stop-signal: 'SIGTREM' is not a signal; write a name like TERM, USR1 or RTMIN+3, or a number from 1 to 31 or 34 \
             to 64; did you mean TERM?"
        );
        for text in ["", "SIG", "0", "-9", "65", "32", "RTMIN+99", "RTMAX+1", "RTMIN-1", "TERM ", "9999999999"] {
            assert!(parsed(text).is_err(), "{text}");
        }
    }
}
