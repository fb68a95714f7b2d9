//! The sentence about a wait: our place in line, the leader, and since when.
//!
//! Never: a clock.

use std::time::Duration;

use super::super::words;
use crate::core::action::{PhaseName, Why};
use crate::core::machine::Snapshot;
use crate::core::time::{Sighting, milliseconds};
use crate::zookeeper::publish::leader_query::{Leader, LeaderReport};
use crate::zookeeper::schema::control::moment::moment;
use crate::zookeeper::schema::control::remedy;

/// The facts known while we wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Known {
    /// No server answers, for so long; these are tried.
    OutOfContact { servers: String, silent: Duration },
    /// A session, and no candidate of ours in line.
    NotInLine { leader: Option<Leader> },
    /// In line, at this place if the recipe has places.
    InLine { place: Option<u32>, leader: Option<Leader> },
    /// For this reason we may not lead, wherever we stand.
    Ineligible { why: Why, place: Option<u32>, base: String },
    /// `--vouch`: the last leader is gone or cut off, and we were not among those whom it asked, as far as is known.
    Unasked { left: Duration, leader: Option<Leader> },
    /// The record is ours; the lease of the one before must run out first.
    First,
}

impl Known {
    /// From what the machine holds at this time of its observer's clock, and the newest survey if there was an answer.
    pub fn new(
        now: Sighting,
        snapshot: &Snapshot,
        survey: Option<LeaderReport>,
        (servers, silent, base): (&str, Duration, &str),
    ) -> Self {
        match (snapshot.phase, snapshot.view, survey) {
            (PhaseName::Waiting, ..) => Self::First,
            (_, _, None) => Self::OutOfContact { servers: servers.to_owned(), silent },
            (_, view, Some(LeaderReport { place, leader })) => match (snapshot.barred, snapshot.unasked_until, view) {
                (Some(why), ..) => Self::Ineligible { why, place, base: base.to_owned() },
                (None, Some(until), _) => Self::Unasked { left: now.until(until), leader },
                (None, None, None) => Self::NotInLine { leader },
                (None, None, Some(_)) => Self::InLine { place, leader },
            },
        }
    }

    /// One line for the foot of a terminal. `now` is in milliseconds since 1970.
    pub fn line(&self, waited: Duration, now: i64) -> String {
        let waited = words::length(Duration::from_secs(waited.as_secs()));
        format!("zk-leader-run: waiting {waited}: {}", self.sentence(now))
    }

    /// Without an end.
    pub fn sentence(&self, now: i64) -> String {
        match self {
            Self::OutOfContact { servers, silent } => match silent.as_secs() {
                // Only our own question was in vain.
                0 => format!("no answer from {servers}"),
                seconds => format!("no answer from {servers} for {}", words::length(Duration::from_secs(seconds))),
            },
            Self::NotInLine { leader } => format!("not in line; {}", led_by(leader.as_ref(), now)),
            Self::InLine { place: None, leader } => led_by(leader.as_ref(), now),
            Self::InLine { place: Some(place), leader } => {
                format!("{} in line; {}", ordinal(*place), led_by(leader.as_ref(), now))
            }
            Self::Ineligible { why, place, base } => {
                let place = place.map_or_else(|| "not".to_owned(), ordinal);
                let remedy = match why {
                    Why::Disabled => format!("; {} ends that", remedy::about_election("enable", base)),
                    _ => String::new(),
                };
                format!("{place} in line; {}{remedy}", words::reason(*why))
            }
            Self::Unasked { left, leader } => {
                let end = moment(now.saturating_add(milliseconds(*left)));
                // The end first: a terminal cuts the line.
                let leader = match leader {
                    Some(Leader { id: None, .. }) => {
                        return format!("until {end}: {LOST}; its last leader may lead until then");
                    }
                    Some(Leader { id: Some(id), .. }) => id,
                    None => "the last leader",
                };
                format!("until {end} (--vouch-limit): {leader} is gone or cut off, and did not ask this host to vouch")
            }
            Self::First => "first in line; the lease of the leader before must run out first".to_owned(),
        }
    }
}

/// Of a record that counts as held by somebody who is not known.
const LOST: &str = "the lease record was lost or cannot be read";

fn led_by(leader: Option<&Leader>, now: i64) -> String {
    match leader {
        Some(Leader { id: None, .. }) => format!("who leads is not known: {LOST}"),
        Some(Leader { id: Some(id), is_away: true, .. }) => {
            format!("{id} is cut off or dead; with --vouch its command may run on")
        }
        Some(Leader { id: Some(id), since, .. }) => {
            let lead = if id.contains(", ") { "lead" } else { "leads" };
            format!("{id} {lead} since {}", since_when(*since, now))
        }
        None => "nobody leads".to_owned(),
    }
}

/// The time, without the date if that was less than half a day ago: `03:12:45 UTC`, `2026-11-20 03:12:45 UTC`.
fn since_when(since: i64, now: i64) -> String {
    const HALF_A_DAY: i64 = 12 * 3_600_000;
    let is_recent = now.saturating_sub(since.max(0)) < HALF_A_DAY;
    let text = moment(since);
    match text.split_once(' ') {
        Some((_, time)) if is_recent && time.ends_with("UTC") => time.to_owned(),
        _ => text,
    }
}

/// `1st`, `2nd`, `3rd`, `4th`, `11th`, `112th`.
fn ordinal(number: u32) -> String {
    let ending = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// How long after its beginning a wait is worth its n-th line in a log, from 0: after 10 s, 5 min, 15 min, 35 min, then every
/// hour.
pub fn due_after(told: u32) -> Duration {
    const FIRST: Duration = Duration::from_secs(10);
    const SECOND: Duration = Duration::from_secs(5 * 60);
    const DOUBLINGS: u32 = 3;
    if told == 0 {
        return FIRST;
    }
    let doubled = SECOND.saturating_mul((1 << told.min(DOUBLINGS)) - 1);
    doubled + Duration::from_secs(3600).saturating_mul(told.saturating_sub(DOUBLINGS))
}

/// The line after this one. Those that came due while the host was suspended are not caught up on.
pub fn next_line(told: u32, waited: Duration) -> u32 {
    (told + 1..=u32::MAX).find(|next| due_after(*next) > waited).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::super::status::tests::{at, leading};
    use super::*;

    /// 2026-11-21T03:12:45Z
    const SINCE: i64 = 1_795_230_765_000;

    const NOW: i64 = SINCE + 60_000;

    fn db1() -> Leader {
        Leader { id: Some("db1:4711".into()), since: SINCE, is_away: false }
    }

    #[test]
    fn a_wait_says_where_we_stand_who_leads_and_since_when() {
        let example = leading(at(Duration::ZERO), at(Duration::ZERO).lease).snapshot;
        let waits = Snapshot { phase: PhaseName::Following, held_term: None, ..example };
        let (absent, barred) = (Snapshot { view: None, ..waits }, Snapshot { barred: Some(Why::Disabled), ..waits });
        let first = Snapshot { phase: PhaseName::Waiting, ..waits };
        let survey = |place, leader| Some(LeaderReport { place, leader });
        let second = |count| Sighting::ZERO.after(Duration::from_secs(count));
        let unasked = Snapshot { unasked_until: Some(second(607)), ..absent };
        let of_election = ("zk1:2181,zk2:2181", Duration::from_millis(5_900), "/jobs/nightly");
        let known = |snapshot, survey| Known::new(second(7), snapshot, survey, of_election);
        let cases = [
            (known(&absent, None), "no answer from zk1:2181,zk2:2181 for 5s"),
            (known(&waits, None), "no answer from zk1:2181,zk2:2181 for 5s"),
            (known(&absent, survey(None, Some(db1()))), "not in line; db1:4711 leads since 03:12:45 UTC"),
            (known(&waits, survey(Some(3), Some(db1()))), "3rd in line; db1:4711 leads since 03:12:45 UTC"),
            (known(&waits, survey(None, Some(db1()))), "db1:4711 leads since 03:12:45 UTC"),
            (
                known(&waits, survey(Some(1), Some(Leader { is_away: true, ..db1() }))),
                "1st in line; db1:4711 is cut off or dead; with --vouch its command may run on",
            ),
            (known(&waits, survey(Some(2), None)), "2nd in line; nobody leads"),
            (
                known(&unasked, survey(None, Some(db1()))),
                "until 2026-11-21 03:23:45 UTC (--vouch-limit): db1:4711 is gone or cut off, and did not ask this host to vouch",
            ),
            (
                known(&barred, survey(Some(2), None)),
                "2nd in line; an operator disabled the election; zk-leaderctl enable --path /jobs/nightly ends that",
            ),
            (
                known(&first, survey(Some(1), Some(db1()))),
                "first in line; the lease of the leader before must run out first",
            ),
        ];
        for (known, sentence) in cases {
            assert_eq!(known.sentence(NOW), sentence);
        }
        let line = known(&waits, survey(Some(3), Some(db1()))).line(Duration::from_millis(95_700), NOW);
        assert_eq!(line, "zk-leader-run: waiting 1m35s: 3rd in line; db1:4711 leads since 03:12:45 UTC");
    }

    #[test]
    fn behind_a_record_that_was_lost_nobody_is_said_not_to_have_asked_us() {
        let lost = || Some(Leader { id: None, ..db1() });
        let known = Known::InLine { place: Some(2), leader: lost() };
        let sentence = "2nd in line; who leads is not known: the lease record was lost or cannot be read";
        assert_eq!(known.sentence(NOW), sentence);
        let known = Known::Unasked { left: Duration::from_secs(600), leader: lost() };
        let sentence = "until 2026-11-21 03:23:45 UTC: the lease record was lost or cannot be read; its last leader may lead until then";
        assert_eq!(known.sentence(NOW), sentence);
    }

    #[test]
    fn the_end_of_a_wait_of_a_day_has_its_date_and_fits_a_terminal() {
        let wait = Known::Unasked { left: Duration::from_secs(86_400), leader: Some(db1()) };
        let line = wait.line(Duration::from_secs(86_399), NOW);
        assert!(line[..80].contains("until 2026-11-22 03:13:45 UTC (--vouch-limit)"), "{line}");
    }

    #[test]
    fn what_was_long_ago_has_a_date() {
        assert_eq!(since_when(SINCE, NOW), "03:12:45 UTC");
        assert_eq!(since_when(SINCE, NOW + 86_400_000), "2026-11-21 03:12:45 UTC");
        assert_eq!(since_when(SINCE, 0), "03:12:45 UTC", "our clock may be behind");
        assert_eq!(since_when(-1, 0), "00:00:00 UTC");
        assert_eq!(since_when(253_402_300_799_999, NOW), "23:59:59 UTC", "it is in the future");
        for late in [253_402_300_800_000, i64::MAX] {
            assert_eq!(since_when(late, NOW), "after the year 9999");
        }
    }

    #[test]
    fn places_are_counted_as_people_count() {
        let counted = [1, 2, 3, 4, 11, 12, 13, 21, 101, 111].map(ordinal).join(" ");
        assert_eq!(counted, "1st 2nd 3rd 4th 11th 12th 13th 21st 101st 111th");
    }

    #[test]
    fn a_wait_that_a_suspend_has_made_long_is_told_once() {
        assert_eq!([10, 299].map(|waited| next_line(0, Duration::from_secs(waited))), [1, 1]);
        let after_three_days = next_line(1, Duration::from_secs(3 * 86_400));
        assert!(due_after(after_three_days - 1) <= Duration::from_secs(3 * 86_400));
        assert!(due_after(after_three_days) > Duration::from_secs(3 * 86_400));
    }

    #[test]
    fn a_long_wait_is_told_of_ever_more_rarely_but_at_least_every_hour() {
        assert_eq!(due_after(0), Duration::from_secs(10));
        let minutes = [1, 2, 3, 4, 5, 6].map(|told| due_after(told).as_secs() / 60);
        assert_eq!(minutes, [5, 15, 35, 95, 155, 215]);
    }
}
