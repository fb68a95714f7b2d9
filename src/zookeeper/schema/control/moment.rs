//! The one way in which people are told a time of day.

use std::time::{Duration, UNIX_EPOCH};

/// The formatter ends with the year 9999.
const YEAR_10000: Duration = Duration::from_secs(253_402_300_800);

/// `2026-11-21 03:00:00 UTC`, from milliseconds since 1970; later than it can be written: `after the year 9999`.
pub fn moment(millis: i64) -> String {
    let since = Duration::from_millis(u64::try_from(millis).unwrap_or(0));
    match UNIX_EPOCH.checked_add(since) {
        Some(time) if since < YEAR_10000 => {
            humantime::format_rfc3339_seconds(time).to_string().replace('T', " ").replace('Z', " UTC")
        }
        _ => "after the year 9999".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_date_and_its_zone() {
        assert_eq!(moment(1_795_229_999_999), "2026-11-21 02:59:59 UTC");
        assert_eq!(moment(-1), "1970-01-01 00:00:00 UTC");
        assert_eq!(moment(253_402_300_799_999), "9999-12-31 23:59:59 UTC");
        assert!([253_402_300_800_000, i64::MAX].iter().all(|late| moment(*late) == "after the year 9999"));
    }
}
