//! The log: one line per event on standard error, exactly one per change of phase.
//!
//! Never: the command's output; a line that blocks the supervisor; a secret.

mod format;
pub mod journald;

use std::env;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, SystemTime};

use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry;

use self::format::Lines;
pub use self::format::{Format, Owner};
use self::journald::Journal;
use super::console::Stderr;
use super::words;
use crate::clock;
use crate::core::action::{PhaseName, Transition, Why};
use crate::core::guard_messages::Takeover;
use crate::core::time::milliseconds;
use crate::zookeeper::schema::control::moment::moment;

/// Starts the log of this process, of its panics too. A second start changes nothing.
pub fn start(format: Format, level: LevelFilter, owner: Owner) {
    let lines = Lines { format, coloured: format == Format::Human && colour_is_welcome(), owner, time: time_of_day };
    match format {
        Format::Human | Format::Json => begin(|| Stderr, lines, level),
        Format::Journald => begin(|| Journal, lines, level),
    }
    std::panic::set_hook(Box::new(|panic| tracing::error!("Internal error: {panic}")));
}

fn begin<W: for<'a> MakeWriter<'a> + Send + Sync + 'static>(writer: W, lines: Lines, level: LevelFilter) {
    let log = fmt::layer().with_writer(writer).log_internal_errors(false).event_format(lines);
    registry().with(log.with_filter(wanted(level))).try_init().ok();
}

/// Lines of other crates are for who debugs: warnings at debug, everything at trace.
fn wanted(level: LevelFilter) -> Targets {
    let others = match level {
        LevelFilter::TRACE => level,
        LevelFilter::DEBUG => LevelFilter::WARN,
        _ => LevelFilter::OFF,
    };
    Targets::new().with_target("zk_leader_run", level).with_default(others)
}

/// On a terminal, unless the user says otherwise (no-color.org).
fn colour_is_welcome() -> bool {
    let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    stderr().is_terminal() && !refused && env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
}

#[expect(clippy::disallowed_methods, reason = "the time of day of a log line decides nothing")]
fn time_of_day() -> String {
    stamp(SystemTime::now())
}

/// The formatter panics at times before 1970.
fn stamp(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time.max(SystemTime::UNIX_EPOCH)).to_string()
}

/// What a host does without contact: the words of a change of phase go by it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OutageSettings {
    /// `--vouch`.
    pub vouches: bool,
    /// `--on-pause freeze`.
    pub freezes: bool,
}

/// The one line of a change of phase. `others`: whose leases are the reason, if that is known.
pub fn transition(transition: &Transition, others: &[String], outage: OutageSettings) {
    macro_rules! say {
        ($level:expr) => {
            tracing::event!(
                $level,
                from = words::phase(transition.from),
                to = words::phase(transition.to),
                why = words::reason_code(transition.why),
                token = transition.token,
                lease_left_ms = transition.lease_left.map(words::millis),
                next_in_ms = transition.next_in.map(words::millis),
                "{}",
                sentence(transition, (others, outage), clock::time_of_day())
            )
        };
    }
    match level(transition.why) {
        Level::ERROR => say!(Level::ERROR),
        Level::WARN => say!(Level::WARN),
        _ => say!(Level::INFO),
    }
}

/// The time of day is in milliseconds since 1970.
fn sentence(transition: &Transition, about: (&[String], OutageSettings), time_of_day: i64) -> String {
    let Transition { from, to, why, next_in, .. } = *transition;
    // Only a host that stands back knows how long it follows.
    let stands_back = next_in.filter(|_| to == PhaseName::Following).map(|left| {
        let end = time_of_day.saturating_add(milliseconds(left));
        format!("stays out of the queue until {} (--stand-back)", moment(end))
    });
    let reason = reason(transition, about);
    let reason = match (why, stands_back) {
        (Why::StandingBack, Some(end)) => format!("this host resigned, and {end}; another host may lead"),
        (_, Some(end)) => format!("{reason}; this host {end}"),
        (_, None) => reason,
    };
    let reason = match next_in {
        Some(left) if to == PhaseName::Releasing => format!(
            "{reason}; ZooKeeper is away: this process stays until it is back, for {} at most, to free the lease for the next host; \
             SIGTERM ends the wait",
            words::length(left)
        ),
        _ => reason,
    };
    match (words::phase(from), words::phase(to)) {
        (from, to) if from == to => format!("{from}: {reason}"),
        (from, to) => format!("{from} -> {to}: {reason}"),
    }
}

/// The words of the reason, as far as the two phases change them.
fn reason(transition: &Transition, (others, outage): (&[String], OutageSettings)) -> String {
    let Transition { from, to, why, grant, next_in, .. } = *transition;
    match why {
        Why::WaitOver | Why::TooLate if !others.is_empty() => {
            let has = if others.len() > 1 { "have" } else { "has" };
            let in_vain = if why == Why::WaitOver { "not elected within --wait" } else { words::reason(why) };
            format!("{in_vain}; {} {has} the lease", others.join(", "))
        }
        Why::TookOver if !others.is_empty() => {
            format!("first in line; waiting for the lease of {} to run out", others.join(", "))
        }
        Why::StoodStill { length } => {
            let length = words::length(length);
            format!("this host stood still for {length}; the command was killed before its lease ended")
        }
        Why::Elected if grant.is_some_and(|grant| grant.takeover == Takeover::Unclean) => {
            let before = others.first().map_or("the leader before", String::as_str);
            format!("elected; {before} did not release its lease, which has run out")
        }
        // A process that stays to free its lease.
        Why::ContactLost if to == PhaseName::Releasing => "the command has ended".to_owned(),
        Why::ContactLost => contact_lost(from, next_in, outage.freezes),
        Why::LeaseEnding if from == PhaseName::Vouched => {
            "ZooKeeper was not back before the end of --vouch-limit, or of the promises; the command is stopped, and killed \
             when the lease ends"
                .to_owned()
        }
        Why::ReleaseUnconfirmed if !outage.vouches => UNCONFIRMED.to_owned(),
        Why::ReleaseUnconfirmed if to == PhaseName::Following => {
            format!("{UNCONFIRMED} (with --vouch, this process still frees it when ZooKeeper is back)")
        }
        Why::StopRequested if to != PhaseName::Stopping => "a signal asks us to stop".to_owned(),
        why => words::reason(why).to_owned(),
    }
}

const UNCONFIRMED: &str =
    "could not tell ZooKeeper that the command stopped; the next leader waits until the lease is over";

/// What is missing, what becomes of the command meanwhile, and until when it must be back.
fn contact_lost(from: PhaseName, stops_in: Option<Duration>, freezes: bool) -> String {
    let within = match stops_in {
        None => "in time".to_owned(),
        Some(Duration::ZERO) => "at once".to_owned(),
        Some(left) => format!("within {}", words::length(left)),
    };
    let (lost, back) = if from == PhaseName::Vouched {
        // ZooKeeper has been away for a while.
        ("not every host that could take over holds back any more", "all do again, or ZooKeeper")
    } else {
        (words::reason(Why::ContactLost), if freezes { "contact" } else { "it" })
    };
    let meanwhile = if freezes { ", and the command is frozen (--on-pause freeze)" } else { "" };
    format!("{lost}{meanwhile}; unless {back} is back {within}, the command is stopped, and killed when the lease ends")
}

/// A warning is for an operator to see; an error ends this process unexpectedly.
#[expect(clippy::too_many_lines, reason = "one arm for each reason")]
pub const fn level(why: Why) -> Level {
    match why {
        Why::GuardGone | Why::CheckGone | Why::Unreachable | Why::Forbidden(_) | Why::Misconfigured => Level::ERROR,
        Why::ContactLost
        | Why::GraceOver
        | Why::LeaseEnding
        | Why::Deposed
        | Why::CandidateGone
        | Why::SessionOver
        | Why::Stuck
        | Why::ClockJumped
        | Why::DeadlineKill
        | Why::StoodStill { .. }
        | Why::CheckLate
        | Why::CrashLoop
        | Why::VouchedFor
        | Why::TimedOut
        | Why::TooLate
        | Why::RunLost
        | Why::FenceFailed
        | Why::BeforeStartFailed
        | Why::Unhealthy
        | Why::Disabled
        | Why::Drained
        | Why::ReleaseUnconfirmed
        | Why::NotPrepared => Level::WARN,
        Why::TookOver
        | Why::Confirming
        | Why::Elected
        | Why::WaitSpared
        | Why::Revoked
        | Why::ContactRestored
        | Why::StopRequested
        | Why::CommandEnded
        | Why::Restarting
        | Why::Restarted
        | Why::Duplicate
        | Why::Ineligible
        | Why::HandingOver
        | Why::StandingBack
        | Why::EligibleAgain
        | Why::TreeEmpty
        | Why::Released
        | Why::WaitOver => Level::INFO,
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn a_clock_before_1970_costs_no_more_than_the_time_of_a_line() {
        let early = SystemTime::UNIX_EPOCH - std::time::Duration::from_secs(1);
        assert_eq!(stamp(early), "1970-01-01T00:00:00.000Z");
    }

    const PAUSED: Transition = Transition {
        from: PhaseName::Leading,
        to: PhaseName::Paused,
        why: Why::ContactLost,
        token: Some(4_294_967_301),
        grant: None,
        lease_left: Some(Duration::from_millis(9025)),
        next_in: Some(Duration::from_millis(6025)),
    };

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(format: Format, coloured: bool, level: LevelFilter, act: impl FnOnce()) -> String {
        let owner = Owner { election: "job".into(), id: "h1:7".into() };
        let lines = Lines { format, coloured, owner, time: || "2026-11-20T03:00:00.123Z".into() };
        let written = Shared::default();
        let to = written.clone();
        let log = fmt::layer().with_writer(move || to.clone()).event_format(lines).with_filter(wanted(level));
        tracing::subscriber::with_default(registry().with(log), act);
        String::from_utf8(written.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_transition_is_one_line_for_people() {
        let line =
            written(Format::Human, false, LevelFilter::INFO, || transition(&PAUSED, &[], OutageSettings::default()));
        assert_eq!(
            line,
            "2026-11-20T03:00:00.123Z zk-leader-run[job h1:7]: warning: leading -> paused: contact with ZooKeeper is lost; unless \
             it is back within 6.025s, the command is stopped, and killed when the lease ends token=4294967301 lease_left=9.025s \
             next_in=6.025s\n"
        );
    }

    #[test]
    fn a_transition_is_one_json_object() {
        let line =
            written(Format::Json, false, LevelFilter::INFO, || transition(&PAUSED, &[], OutageSettings::default()));
        assert_eq!(line.lines().count(), 1);
        let object: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            object,
            serde_json::json!({
                "time": "2026-11-20T03:00:00.123Z", "level": "warn",
                "message": "leading -> paused: contact with ZooKeeper is lost; unless it is back within 6.025s, the command is stopped, and killed when the lease ends",
                "from": "leading", "to": "paused", "why": "contact-lost",
                "token": 4_294_967_301_i64, "lease_left_ms": 9025, "next_in_ms": 6025, "election": "job", "id": "h1:7",
            })
        );
    }

    #[test]
    fn a_transition_is_one_entry_of_the_journal() {
        let entry =
            written(Format::Journald, false, LevelFilter::INFO, || transition(&PAUSED, &[], OutageSettings::default()));
        assert_eq!(
            entry,
            "SYSLOG_IDENTIFIER=zk-leader-run\nPRIORITY=4\n\
             MESSAGE=leading -> paused: contact with ZooKeeper is lost; unless it is back within 6.025s, the \
             command is stopped, and killed when the lease ends token=4294967301 lease_left=9.025s next_in=6.025s\n\
             ZK_LEADER_ELECTION=job\nZK_LEADER_ID=h1:7\nZK_LEADER_FROM=leading\nZK_LEADER_TO=paused\nZK_LEADER_WHY=contact-lost\nZK_LEADER_TOKEN=4294967301\n\
             ZK_LEADER_LEASE_LEFT_MS=9025\nZK_LEADER_NEXT_IN_MS=6025\n"
        );
        let entry = written(Format::Journald, false, LevelFilter::INFO, || tracing::info!(id = "a\nMESSAGE=b", "x\ny"));
        assert_eq!(entry.lines().count(), 5, "{entry}");
    }

    #[test]
    fn the_same_reason_has_other_words_in_another_phase() {
        let with_vouch = OutageSettings { vouches: true, ..OutageSettings::default() };
        let said = |from, to, why| sentence(&Transition { from, to, why, ..PAUSED }, (&[], with_vouch), 0);
        let (vouched, stopping) = (PhaseName::Vouched, PhaseName::Stopping);
        assert!(said(vouched, PhaseName::Paused, Why::ContactLost).contains("holds back any more"));
        assert!(said(vouched, stopping, Why::LeaseEnding).contains("before the end of --vouch-limit"));
        assert!(said(PhaseName::Paused, stopping, Why::LeaseEnding).contains("no renewal was acknowledged"));
        assert!(said(PhaseName::Leading, stopping, Why::StopRequested).contains("--stop-timeout"));
        let idle = said(PhaseName::Following, PhaseName::Done, Why::StopRequested);
        assert_eq!(idle, "following -> done: a signal asks us to stop", "no command runs");
        let unconfirmed = |to, outage| {
            let (from, why) = (PhaseName::Releasing, Why::ReleaseUnconfirmed);
            sentence(&Transition { from, to, why, next_in: None, ..PAUSED }, (&[], outage), 0)
        };
        assert!(
            unconfirmed(PhaseName::Following, with_vouch)
                .ends_with("(with --vouch, this process still frees it when ZooKeeper is back)")
        );
        assert!(
            unconfirmed(PhaseName::Done, with_vouch)
                .ends_with("(with --vouch, a host that was not asked waits for --vouch-limit)")
        );
        for to in [PhaseName::Following, PhaseName::Done] {
            assert!(
                unconfirmed(to, OutageSettings::default()).ends_with("waits until the lease is over"),
                "without --vouch"
            );
        }
    }

    #[test]
    fn of_a_command_that_is_frozen_without_contact_the_line_says_so() {
        let outage = OutageSettings { freezes: true, ..OutageSettings::default() };
        let said = |from| sentence(&Transition { from, ..PAUSED }, (&[], outage), 0);
        assert_eq!(
            said(PhaseName::Leading),
            "leading -> paused: contact with ZooKeeper is lost, and the command is frozen (--on-pause freeze); unless contact is back \
             within 6.025s, the command is stopped, and killed when the lease ends"
        );
        assert!(
            said(PhaseName::Vouched).contains("any more, and the command is frozen (--on-pause freeze); unless all do")
        );
    }

    #[test]
    fn a_host_that_stands_back_says_until_when() {
        let said = |from, why, next_in| {
            sentence(
                &Transition { from, to: PhaseName::Following, why, next_in, ..PAUSED },
                (&[], OutageSettings::default()),
                1_795_229_940_000,
            )
        };
        let (releasing, minute) = (PhaseName::Releasing, Some(Duration::from_secs(60)));
        let until = "stays out of the queue until 2026-11-21 03:00:00 UTC (--stand-back)";
        assert_eq!(
            said(releasing, Why::Released, minute),
            format!("releasing -> following: the lease is free; this host {until}")
        );
        assert_eq!(
            said(PhaseName::Following, Why::StandingBack, minute),
            format!("following: this host resigned, and {until}; another host may lead")
        );
        assert_eq!(said(releasing, Why::Released, None), "releasing -> following: the lease is free");
    }

    #[test]
    fn a_process_that_stays_to_free_its_lease_says_why_and_how_long() {
        let said = |from, why, next_in| {
            let to = PhaseName::Releasing;
            sentence(&Transition { from, to, why, next_in, ..PAUSED }, (&[], OutageSettings::default()), 0)
        };
        let (ended, nine_minutes) = (said(PhaseName::Vouched, Why::CommandEnded, None), Some(Duration::from_secs(540)));
        let later = said(PhaseName::Releasing, Why::ContactLost, nine_minutes);
        assert!(
            later.starts_with("releasing: the command has ended; ZooKeeper is away: this process stays"),
            "{later}"
        );
        assert_eq!(
            said(PhaseName::Vouched, Why::CommandEnded, nine_minutes),
            format!(
                "{ended}; ZooKeeper is away: this process stays until it is back, for 9m at most, to free the lease for the next host; \
                 SIGTERM ends the wait"
            )
        );
    }

    #[test]
    fn the_line_names_those_whose_leases_are_the_reason() {
        let said = |to, why, others: &[&str]| {
            let others: Vec<_> = others.iter().map(ToString::to_string).collect();
            sentence(
                &Transition { from: PhaseName::Following, to, why, next_in: None, ..PAUSED },
                (&others, OutageSettings::default()),
                0,
            )
        };
        let in_vain = said(PhaseName::Done, Why::WaitOver, &["a on x"]);
        assert_eq!(in_vain, "following -> done: not elected within --wait; a on x has the lease");
        assert!(said(PhaseName::Done, Why::TooLate, &["a", "b"]).ends_with("; a, b have the lease"));
        let waits = said(PhaseName::Waiting, Why::TookOver, &["a"]);
        assert_eq!(waits, "following -> waiting: first in line; waiting for the lease of a to run out");
    }

    #[test]
    fn without_a_lease_the_line_does_not_speak_of_one() {
        let following =
            Transition { from: PhaseName::Stopping, to: PhaseName::Following, why: Why::Released, ..PAUSED };
        let line = written(Format::Human, false, LevelFilter::INFO, || {
            transition(
                &Transition { token: None, lease_left: None, next_in: None, ..following },
                &[],
                OutageSettings::default(),
            );
        });
        assert!(line.ends_with("stopping -> following: the lease is free\n"), "{line}");
    }

    #[test]
    fn text_from_outside_can_neither_break_a_line_nor_move_the_cursor() {
        let line = written(Format::Human, false, LevelFilter::INFO, || {
            tracing::info!(id = "a\nb", host = "two words", "leader is \x1b[2J{}", "x\ny");
        });
        assert!(line.ends_with("leader is \\u{1b}[2Jx\\ny id=a\\nb host=\"two words\"\n"), "{line}");
        assert_eq!(line.lines().count(), 1);
    }

    #[test]
    fn text_from_outside_can_neither_fill_the_disk_nor_command_a_terminal_through_json() {
        let long = "x".repeat(1 << 20);
        for format in [Format::Human, Format::Json, Format::Journald] {
            let line =
                written(format, false, LevelFilter::INFO, || tracing::warn!(id = long, by = "\u{9b}2J", "{long}"));
            assert!(line.len() < 10_000, "{format:?}: {} bytes", line.len());
            assert!(line.contains("1048576 bytes"), "it says that it was cut");
            assert!(!line.replace('\n', "").contains(char::is_control), "{line:?}");
        }
    }

    #[test]
    fn other_crates_are_heard_at_debug_only_from_a_warning_on_and_named() {
        let chatter = || {
            tracing::info!(target: "zookeeper_client::session", "ping");
            tracing::warn!(target: "zookeeper_client::session", "no server answers");
        };
        let line = written(Format::Human, false, LevelFilter::DEBUG, chatter);
        assert!(line.ends_with("warning: no server answers target=zookeeper_client::session\n"), "{line}");
        assert_eq!(line.lines().count(), 1);
        assert_eq!(written(Format::Human, false, LevelFilter::TRACE, chatter).lines().count(), 2);
        for level in [LevelFilter::ERROR, LevelFilter::INFO] {
            assert_eq!(written(Format::Human, false, level, chatter), "");
        }
    }

    #[test]
    fn colour_marks_the_level_and_nothing_else_changes() {
        let plain =
            written(Format::Human, false, LevelFilter::INFO, || transition(&PAUSED, &[], OutageSettings::default()));
        let coloured =
            written(Format::Human, true, LevelFilter::INFO, || transition(&PAUSED, &[], OutageSettings::default()));
        assert!(coloured.contains("\x1b[33m warning:\x1b[0m"), "{coloured}");
        let stripped = coloured.replace("\x1b[0m", "").replace("\x1b[2m", "").replace("\x1b[33m", "");
        assert_eq!(stripped, plain);
    }
}
