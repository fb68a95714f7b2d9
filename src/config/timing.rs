//! Whether the timings fit each other, before anything is connected; if not, the sum and the remedy. The arithmetic is
//! in `core::lease`.

use std::time::Duration;

use crate::config::error::ConfigError;
use crate::core::lease::{LEASE_LONGEST, Timing, TimingError, Wishes};
use crate::observe::words;

/// The name of an option in an error: the option, or the variable of its value.
type NameOf<'a> = &'a dyn Fn(&'static str) -> String;

/// The margins, if the ensemble grants the session timeout that we ask for.
pub fn check(session_timeout: Duration, wishes: &Wishes, name_of: NameOf) -> Result<Timing, ConfigError> {
    let timing =
        Timing::new(session_timeout, wishes).and_then(|timing| timing.bears_no_outage().map_or(Ok(timing), Err));
    timing.map_err(|error| misfit(session_timeout, wishes, &error, name_of))
}

fn misfit(session_timeout: Duration, wishes: &Wishes, error: &TimingError, name_of: NameOf) -> ConfigError {
    let refuse = |option: &'static str, value: Duration, remedy: String| {
        let complaint = format!("'{}' does not fit: {}; {remedy}", words::length(value), words::misfit(error));
        ConfigError::configuration(name_of(option), complaint)
    };
    match *error {
        TimingError::LeaseTooLong { lease, .. } if wishes.lease.is_some() => {
            refuse("lease", lease, format!("write at most {}", words::length(LEASE_LONGEST)))
        }
        TimingError::LeaseTooLong { .. } => refuse(
            "session-timeout",
            session_timeout,
            if fits(session_timeout, with_lease(wishes, LEASE_LONGEST)) {
                format!("write at most {0}, or add --lease {0}", words::length(LEASE_LONGEST))
            } else {
                format!("write at most {}", words::length(LEASE_LONGEST))
            },
        ),
        TimingError::PauseTooShort { max_pause, .. } => {
            refuse("max-pause", max_pause, "write at least that".to_owned())
        }
        TimingError::GraceTooLong { grace, longest } => refuse(
            "grace",
            grace,
            format!("write at most {}, or leave it out for all that the lease allows", words::length(longest)),
        ),
        TimingError::TooTight { .. } => {
            let (option, value) = culprit(session_timeout, wishes);
            refuse(option, value, remedies(session_timeout, wishes))
        }
    }
}

/// The option that the user probably set: the first of reserve, lease, session timeout.
fn culprit(session_timeout: Duration, wishes: &Wishes) -> (&'static str, Duration) {
    let reserve = wishes.reserve.map(|reserve| ("stop-reserve", reserve));
    let lease = wishes.lease.map(|lease| ("lease", lease));
    reserve.or(lease).unwrap_or(("session-timeout", session_timeout))
}

/// What to write if these wishes do not fit the session timeout that the ensemble has granted, which is the ensemble's to decide.
pub fn remedy(wishes: &Wishes, error: &TimingError) -> String {
    let lower = || "lower minSessionTimeout on the servers".to_owned();
    let granted = match *error {
        TimingError::LeaseTooLong { session_timeout, .. } => {
            let may_be_shorter = fits(session_timeout, with_lease(wishes, LEASE_LONGEST));
            return if may_be_shorter { format!("write --lease {}", words::length(LEASE_LONGEST)) } else { lower() };
        }
        TimingError::PauseTooShort { .. } => return "write --max-pause at least that".to_owned(),
        TimingError::GraceTooLong { longest, .. } => {
            return format!("write --grace at most {}, or leave it out", words::length(longest));
        }
        TimingError::TooTight { session_timeout, .. } => session_timeout,
    };
    // Of a pause that is too short, the next refusal tells.
    let wishes = &Wishes { max_pause: None, ..*wishes };
    let found = within(granted, wishes).join(", or ");
    let plain = Timing::new(granted, &Wishes { lease: None, reserve: None, ..*wishes });
    match (wishes.lease, wishes.reserve) {
        _ if matches!(plain, Err(TimingError::LeaseTooLong { .. })) => lower(),
        _ if plain.is_err() => "raise maxSessionTimeout on the servers".to_owned(),
        _ if found.is_empty() => "leave --lease and --stop-reserve out".to_owned(),
        (Some(_), Some(_)) => format!("write {found}"),
        _ => format!("write {found}, or leave it out"),
    }
}

/// Values that would fit, each found by trying with the other settings unchanged.
fn remedies(session_timeout: Duration, wishes: &Wishes) -> String {
    let longer = candidates()
        .skip_while(|longer| *longer <= session_timeout)
        .find(|longer| fits(*longer, *wishes))
        .map(|longer| format!("--session-timeout at least {}", words::least(longer)));
    let shorter = candidates()
        .take_while(|shorter| *shorter < session_timeout)
        .filter(|shorter| wishes.lease.is_some_and(|lease| lease <= *shorter) && fits(*shorter, *wishes))
        .last()
        .map(|shorter| format!("--session-timeout at most {}", words::length(shorter)));
    let found: Vec<_> = within(session_timeout, wishes).into_iter().chain(longer).chain(shorter).collect();
    if found.is_empty() {
        "write a shorter --stop-reserve".to_owned()
    } else {
        format!("write {}", found.join(", or "))
    }
}

fn fits(session_timeout: Duration, wishes: Wishes) -> bool {
    Timing::new(session_timeout, &wishes).is_ok()
}

/// Those that fit without another session timeout.
fn within(session_timeout: Duration, wishes: &Wishes) -> Vec<String> {
    let reserve = wishes.reserve.and_then(|setting| {
        candidates()
            .take_while(|less| *less < setting)
            .filter(|less| fits(session_timeout, with_reserve(wishes, *less)))
            .last()
    });
    let lease = wishes.lease.and_then(|setting| {
        let longer =
            candidates().skip_while(|longer| *longer <= setting).take_while(|longer| *longer <= session_timeout);
        longer.into_iter().find(|longer| fits(session_timeout, Wishes { lease: Some(*longer), ..*wishes }))
    });
    let reserve = reserve.map(|reserve| format!("--stop-reserve at most {}", words::length(reserve)));
    let lease = lease.map(|lease| format!("--lease at least {}", words::least(lease)));
    reserve.into_iter().chain(lease).collect()
}

fn with_lease(wishes: &Wishes, lease: Duration) -> Wishes {
    Wishes { lease: Some(lease), ..*wishes }
}

fn with_reserve(wishes: &Wishes, reserve: Duration) -> Wishes {
    Wishes { reserve: Some(reserve), ..*wishes }
}

/// Round values to try.
fn candidates() -> impl Iterator<Item = Duration> {
    (0..=12_000).map(|step| Duration::from_millis(10) * step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Status;

    const DEFAULTS: Wishes = Wishes::NONE;
    const T: Duration = Duration::from_secs(15);

    fn option(name: &'static str) -> String {
        format!("--{name}")
    }

    fn refused(session_timeout: Duration, wishes: &Wishes) -> String {
        let error = check(session_timeout, wishes, &option).unwrap_err();
        assert_eq!(error.status, Status::Configuration);
        error.sentence
    }

    #[test]
    fn a_reserve_that_is_too_long_is_refused_with_the_sum_and_a_reserve_that_fits() {
        let sentence = refused(T, &with_reserve(&DEFAULTS, Duration::from_secs(10)));
        assert_eq!(
            sentence,
            "--stop-reserve: '10s' does not fit: 15s lease - 150ms clock drift (1 %) - 200ms scheduling slack - 10s stop \
             reserve = 4.65s, but an outage needs at least 9.75s = 2 x 3s connection timeout + 2 x 1.875s renewal interval; \
             write --stop-reserve at most 4.9s, or --session-timeout at least 30s"
        );
        check(T, &with_reserve(&DEFAULTS, Duration::from_millis(4900)), &option).unwrap();
    }

    #[test]
    fn a_session_that_is_too_short_is_refused_with_one_that_fits() {
        let sentence = refused(Duration::from_millis(100), &DEFAULTS);
        assert!(sentence.starts_with("--session-timeout: '100ms' does not fit: "), "{sentence}");
        let remedy = sentence.rsplit("at least ").next().unwrap();
        check(humantime::parse_duration(remedy).unwrap(), &DEFAULTS, &option).unwrap();
    }

    #[test]
    fn a_session_of_more_than_a_minute_that_fits_is_told_so_that_it_fits() {
        let wishes = with_reserve(&DEFAULTS, Duration::from_secs(30));
        let sentence = refused(Duration::from_secs(60), &wishes);
        let remedy = sentence.rsplit("--session-timeout at least ").next().unwrap();
        check(humantime::parse_duration(remedy).unwrap(), &wishes, &option).unwrap();
    }

    #[test]
    fn a_lease_that_is_too_short_for_its_session_is_refused_with_both_ways_out() {
        let wishes = Wishes { lease: Some(Duration::from_secs(5)), ..DEFAULTS };
        let sentence = refused(T, &wishes);
        assert!(sentence.starts_with("--lease: '5s' does not fit: "), "{sentence}");
        assert!(
            sentence.contains("--lease at least ") && sentence.contains("--session-timeout at most "),
            "{sentence}"
        );
    }

    /// A second refusal must not be without a way out where the first one has led to it.
    #[test]
    fn what_does_not_fit_the_granted_session_is_told_with_values_that_do() {
        let (second, four) = (Duration::from_secs(1), Duration::from_secs(4));
        let of = |granted: Duration, wishes: Wishes| remedy(&wishes, &Timing::new(granted, &wishes).unwrap_err());
        let said = |wishes| of(four, wishes);
        let way_out = said(Wishes { lease: Some(second), ..DEFAULTS });
        let longer =
            way_out.strip_prefix("write --lease at least ").and_then(|end| end.strip_suffix(", or leave it out"));
        let longer = humantime::parse_duration(longer.expect(&way_out)).unwrap();
        check(four, &Wishes { lease: Some(longer), ..DEFAULTS }, &option).unwrap();
        assert_eq!(said(with_reserve(&DEFAULTS, 3 * second)), "write --stop-reserve at most 1.16s, or leave it out");
        assert_eq!(said(Wishes { grace: Some(four), ..DEFAULTS }), "write --grace at most 2.76s, or leave it out");
        let both = said(Wishes { lease: Some(second), reserve: Some(3 * second), ..DEFAULTS });
        assert_eq!(both, "leave --lease and --stop-reserve out");
        assert_eq!(of(second / 10, DEFAULTS), "raise maxSessionTimeout on the servers");
        let three_minutes = 180 * second;
        assert_eq!(of(three_minutes, DEFAULTS), "write --lease 2m");
        check(three_minutes, &with_lease(&DEFAULTS, LEASE_LONGEST), &option).unwrap();
        assert_eq!(of(2 * LEASE_LONGEST, DEFAULTS), "lower minSessionTimeout on the servers");
        assert_eq!(
            of(2 * LEASE_LONGEST, with_lease(&DEFAULTS, LEASE_LONGEST)),
            "lower minSessionTimeout on the servers"
        );
    }

    #[test]
    fn the_longest_lease_is_told() {
        let wishes = Wishes { lease: Some(Duration::from_secs(200)), ..DEFAULTS };
        assert!(refused(Duration::from_secs(300), &wishes).starts_with("--lease: '3m20s' does not fit: "));
        let sentence = refused(Duration::from_secs(180), &DEFAULTS);
        assert!(sentence.ends_with("write at most 2m, or add --lease 2m"), "{sentence}");
        let sentence = refused(Duration::from_secs(300), &DEFAULTS);
        assert!(sentence.ends_with("; write at most 2m"), "{sentence}");
    }

    #[test]
    fn a_grace_beyond_the_lease_is_refused() {
        let sentence = refused(T, &Wishes { grace: Some(T), ..DEFAULTS });
        assert!(sentence.contains("write at most 10.9s"), "{sentence}");
    }

    #[test]
    fn a_pause_must_leave_room_for_the_reserve() {
        let sentence = refused(T, &Wishes { max_pause: Some(Duration::from_secs(5)), ..DEFAULTS });
        assert!(sentence.contains("needs at least 13.5s = 3.75s stop reserve"), "{sentence}");
        assert!(sentence.ends_with("; write at least that"), "{sentence}");
    }

    /// The servers decide how long a session lasts: with this one, the command would be stopped again and again.
    #[test]
    fn a_pause_must_leave_room_for_the_reserve_of_the_session_that_is_granted() {
        let wishes = Wishes { max_pause: Some(T), ..DEFAULTS };
        check(T, &wishes, &option).unwrap();
        let error = Timing::new(Duration::from_secs(40), &wishes).unwrap_err();
        assert_eq!(remedy(&wishes, &error), "write --max-pause at least that");
        Timing::new(Duration::from_secs(18), &wishes).expect("it bears a shorter outage than it should, and works");
        let both = Wishes { lease: Some(T), max_pause: Some(Duration::from_secs(20)), ..DEFAULTS };
        let forty = Duration::from_secs(40);
        let way_out = remedy(&both, &Timing::new(forty, &both).unwrap_err());
        assert!(way_out.starts_with("write --lease at least "), "{way_out}");
    }
}
