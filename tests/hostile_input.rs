//! Whatever is typed or found in the environment: never a panic; a refusal is one printable line that names the option and the
//! value; what is accepted means the same when it is written again.
//!
//! `HOSTILE_CASES=n` tries that many of each.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use clap::ArgAction;
use proptest::prelude::*;
use proptest::sample::select;
use zk_leader_run::cli::environment_variable;
use zk_leader_run::cli::{self, EarlyExit, Stream};
use zk_leader_run::config::error::quoted;
use zk_leader_run::config::source::process_environment::ProcessEnvironment;
use zk_leader_run::config::{Config, load};

fn cases() -> ProptestConfig {
    let cases = std::env::var("HOSTILE_CASES").map_or(300, |cases| cases.parse().unwrap());
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Long names of all options, and whether they take a value.
fn options() -> Vec<(String, bool)> {
    let command = cli::command();
    let options = command.get_arguments().filter(|argument| argument.get_long().is_some());
    let options = options.filter(|argument| !matches!(argument.get_action(), ArgAction::Help | ArgAction::Version));
    options.map(|argument| (argument.get_long().unwrap().to_owned(), argument.get_action().takes_values())).collect()
}

fn with_values() -> Vec<String> {
    options().into_iter().filter(|(_, takes_value)| *takes_value).map(|(name, _)| name).collect()
}

fn parse(typed: Vec<OsString>, variables: Vec<(OsString, OsString)>) -> Result<Config, EarlyExit> {
    let path = (OsString::from("PATH"), OsString::from("/usr/bin:/bin"));
    let variables = std::iter::once(path).chain(variables).collect();
    let process_environment =
        ProcessEnvironment { variables, host: "host".into(), pid: 4711, ..ProcessEnvironment::default() };
    load::load(std::iter::once("zk-leader-run".into()).chain(typed), &process_environment)
}

fn parse_option(option: &str, value: &str) -> Result<Config, EarlyExit> {
    parse(vec![format!("--{option}={value}").into(), "true".into()], Vec::new())
}

/// Pieces that look like what the parsers know, between pieces that do not.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => select(vec![
            "0", "1", "-", "+", ".", ",", ":", "/", "//", "..", "[", "]", "%", "@", " ", "=", "ms", "s", "m30s", "15s", "2m",
            "99999999999999999999", "4294967296", "65536", "2181", "h1:2181", "127.0.0.1", "::1", "fe80::1", "tcp://",
            "TERM", "SIG", "RTMIN+", "RTMAX-", "freeze", "run", "exit", "single", "zookeeper", "\0", "\n", "\u{1b}[2J",
            "\u{202e}", "\u{fffd}", "é", "日本", "💥",
        ])
        .prop_map(str::to_owned),
        2 => "[0-9]{1,25}".prop_map(|digits| digits),
        1 => any::<String>(),
        1 => (1_usize..2000).prop_map(|length| "x".repeat(length)),
    ];
    proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn bytes() -> impl Strategy<Value = OsString> {
    prop_oneof![text().prop_map(OsString::from), any::<Vec<u8>>().prop_map(OsString::from_vec)]
}

/// A refusal, as a user sees it.
fn one_printable_line(stop: &EarlyExit) -> Result<(), TestCaseError> {
    let line = stop.text.strip_suffix('\n');
    prop_assert!(line.is_some_and(|line| !line.contains(char::is_control)), "{:?}", stop.text);
    prop_assert!(stop.text.len() < 4000, "{} bytes", stop.text.len());
    prop_assert!(stop.stream == Stream::Stderr && [64, 78, 126, 127].contains(&stop.status), "{stop:?}");
    Ok(())
}

/// Timings that do not fit (78) are written as lengths, and the sum may be another option's fault; an option may be good, and lack
/// another one, or be longer than another one may be.
fn names(stop: &EarlyExit, option: &str, subject: &str, value: &str) -> Result<(), TestCaseError> {
    let lacks = format!("{subject}: requires --");
    let is_longer = format!("is shorter than --{option} {value};");
    if stop.status != 78 && !stop.text.contains(&lacks) && !stop.text.contains(&is_longer) {
        prop_assert!(
            stop.text.contains(&format!("{subject}: {}", quoted(value))),
            "{subject} {value:?}: {}",
            stop.text
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn any_value_of_any_option_is_accepted_or_named_in_one_line(option in select(with_values()), value in text()) {
        if let Err(stop) = parse_option(&option, &value) {
            one_printable_line(&stop)?;
            names(&stop, &option, &format!("--{option}"), &value)?;
        }
    }

    #[test]
    fn any_value_of_any_variable_is_accepted_or_named_in_one_line(option in select(options()), value in text()) {
        let variable = environment_variable(&option.0);
        let parsed = parse(vec!["true".into()], vec![(variable.clone().into(), value.clone().into())]);
        // A page that is asked for by a flag, as the settings, is no refusal.
        if let Some(stop) = parsed.err().filter(|stop| stop.status != 0 || stop.stream != Stream::Stdout) {
            one_printable_line(&stop)?;
            names(&stop, &option.0, &variable, &value)?;
        }
    }

    #[test]
    fn any_bytes_on_the_command_line_and_in_the_environment_are_taken_or_refused_in_one_line(
        words in proptest::collection::vec(
            prop_oneof![
                2 => select(options()).prop_map(|(name, _)| OsString::from(format!("--{name}"))),
                1 => select(vec!["-z", "-h", "-V", "--", "-", "--=", "-zz", "--help=no", "true"]).prop_map(OsString::from),
                3 => bytes(),
            ],
            0..8,
        ),
        variables in proptest::collection::vec((select(options()), bytes()), 0..3),
        stranger in bytes(),
    ) {
        let mut variables: Vec<_> = variables.into_iter().map(|((name, _), value)| (environment_variable(&name).into(), value)).collect();
        let name = [b"ZK_LEADER_RUN_", stranger.as_bytes()].concat();
        variables.push((OsString::from_vec(name), stranger));
        match parse(words, variables) {
            Ok(config) => {
                for notice in &config.notices {
                    prop_assert!(!notice.contains(char::is_control), "{notice:?}");
                }
            }
            Err(stop) if stop.stream == Stream::Stdout => prop_assert_eq!(stop.status, 0),
            Err(stop) => one_printable_line(&stop)?,
        }
    }

    #[test]
    fn an_ensemble_that_is_accepted_is_read_back_the_same(text in ensemble()) {
        if let Ok(config) = parse_option("connect", &text) {
            let again = config.servers.clone() + config.chroot.as_ref().map_or("", |chroot| chroot.as_str());
            let reread = parse_option("connect", &again).unwrap();
            prop_assert_eq!((reread.servers, reread.chroot), (config.servers, config.chroot));
        }
    }

    #[test]
    fn an_accepted_name_path_or_id_is_taken_as_it_is(text in text()) {
        if let Ok(config) = parse_option("name", &text) {
            prop_assert_eq!(config.name, text.clone());
            prop_assert_eq!(config.base.as_str(), format!("/zk-leader-run/{text}"));
        }
        if let Ok(config) = parse_option("id", &text) {
            prop_assert_eq!(config.id, text.clone());
        }
        let path = format!("/{text}");
        if let Ok(config) = parse_option("path", &path) {
            prop_assert_eq!(config.base.as_str(), path);
        }
    }

    #[test]
    fn a_length_of_time_is_read_back_as_it_was_written(millis in 0_u64..=366 * 24 * 3600 * 1000) {
        let length = std::time::Duration::from_millis(millis);
        let config = parse_option("wait", &humantime::format_duration(length).to_string()).unwrap();
        prop_assert_eq!(config.wait, Some(length));
    }

    #[test]
    fn an_accepted_signal_is_the_same_by_its_number(text in prop_oneof![text(), "(SIG)?[A-Z]{2,6}", "RTM(IN|AX)[+-][0-9]{1,2}"]) {
        if let Ok(config) = parse_option("stop-signal", &text) {
            let number = config.stop_signal;
            prop_assert!((1..=64).contains(&number));
            prop_assert_eq!(parse_option("stop-signal", &number.to_string()).unwrap().stop_signal, number);
        }
    }

    #[test]
    fn timings_that_are_accepted_leave_a_lease_that_holds(
        session in text_or_length(), lease in text_or_length(), reserve in text_or_length(), grace in text_or_length(),
    ) {
        let typed = [("session-timeout", session), ("lease", lease), ("stop-reserve", reserve), ("grace", grace)];
        let words = typed.map(|(option, value)| OsString::from(format!("--{option}={value}")));
        match parse([&words[..], &["true".into()]].concat(), Vec::new()) {
            Ok(config) => {
                let timing = config.requested_timing;
                prop_assert!(timing.lease <= config.session_timeout);
                prop_assert!(timing.usable() > timing.reserve + 2 * timing.renewal_interval);
            }
            Err(stop) => one_printable_line(&stop)?,
        }
    }
}

fn ensemble() -> impl Strategy<Value = String> {
    let server = prop_oneof![
        "[a-z0-9._-]{1,12}(:[0-9]{1,6})?",
        "[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}(:[0-9]{1,5})?",
        "\\[[0-9a-f:]{2,8}(%[a-z0-9]{0,4})?\\](:[0-9]{1,5})?",
    ];
    let chroot = prop_oneof![Just(String::new()), "(/[a-zé.]{1,4}){0,3}/?", text()];
    (proptest::collection::vec(server, 1..4), chroot).prop_map(|(servers, chroot)| servers.join(",") + &chroot)
}

fn text_or_length() -> impl Strategy<Value = String> {
    let length = (0_u64..150_000).prop_map(|millis| format!("{millis}ms"));
    prop_oneof![9 => length, 1 => text()]
}
