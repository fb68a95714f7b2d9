//! The words for people: phases, reasons, lengths of time, signals.
//!
//! Never: a decision that rests on a word.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::Signal;

use crate::core::action::{PhaseName, Why};
use crate::core::event::Grounds;
use crate::core::guard_messages::ChildStatus;
use crate::core::hooks::HookEvent;
use crate::core::lease::{self, LEASE_LONGEST, TimingError};
use crate::core::machine::Snapshot;
pub use crate::core::time::millis;

/// One word for a phase.
pub const fn phase(phase: PhaseName) -> &'static str {
    match phase {
        PhaseName::Following => "following",
        PhaseName::Waiting => "waiting",
        PhaseName::Preparing => "preparing",
        PhaseName::Leading => "leading",
        PhaseName::Vouched => "vouched",
        PhaseName::Paused => "paused",
        PhaseName::Stopping => "stopping",
        PhaseName::Releasing => "releasing",
        PhaseName::Done => "done",
    }
}

/// Who would kill the tree of the command, or of a step around it, at its deadline. A tree that may live has one (I7), held by the guard and
/// by a kernel timer.
pub const fn protection(snapshot: &Snapshot, guard_gone: bool) -> &'static str {
    match (guard_gone, snapshot.run.is_some() || snapshot.step.is_some()) {
        (true, _) => "gone",
        (false, true) => "armed",
        (false, false) => "ready",
    }
}

/// A reason for programs: stable, to be matched on.
#[expect(clippy::too_many_lines, reason = "one arm for each reason")]
pub const fn reason_code(why: Why) -> &'static str {
    match why {
        Why::TookOver => "took-over",
        Why::Confirming => "confirming",
        Why::Elected => "elected",
        Why::ContactLost => "contact-lost",
        Why::ContactRestored => "contact-restored",
        Why::VouchedFor => "vouched-for",
        Why::GraceOver => "grace-over",
        Why::LeaseEnding => "lease-ending",
        Why::Deposed => "deposed",
        Why::CandidateGone => "candidate-gone",
        Why::SessionOver => "session-over",
        Why::Stuck => "stuck",
        Why::WaitSpared => "wait-spared",
        Why::ClockJumped => "clock-jumped",
        Why::StopRequested => "stop-requested",
        Why::CommandEnded => "command-ended",
        Why::Restarting => "restarting",
        Why::Restarted => "restarted",
        Why::CrashLoop => "crash-loop",
        Why::TimedOut => "timed-out",
        Why::TooLate => "too-late",
        Why::Duplicate => "duplicate",
        Why::RunLost => "run-lost",
        Why::FenceFailed => "fence-failed",
        Why::BeforeStartFailed => "before-start-failed",
        Why::Unhealthy => "unhealthy",
        Why::Revoked => "revoked",
        Why::HandingOver => "handing-over",
        Why::Drained => "drained",
        Why::Ineligible => "ineligible",
        Why::StandingBack => "standing-back",
        Why::Disabled => "disabled",
        Why::EligibleAgain => "eligible-again",
        Why::TreeEmpty => "tree-empty",
        Why::DeadlineKill => "deadline-kill",
        Why::GuardGone => "guard-gone",
        Why::CheckGone => "check-gone",
        Why::CheckLate => "check-late",
        Why::StoodStill { .. } => "stood-still",
        Why::Released => "released",
        Why::ReleaseUnconfirmed => "release-unconfirmed",
        Why::WaitOver => "wait-over",
        Why::NotPrepared => "not-prepared",
        Why::Unreachable => "unreachable",
        Why::Forbidden(_) => "forbidden",
        Why::Misconfigured => "misconfigured",
    }
}

/// A reason for people.
#[expect(clippy::too_many_lines, reason = "one arm for each reason")]
pub const fn reason(why: Why) -> &'static str {
    match why {
        Why::TookOver => "first in line; waiting for the previous leader's lease to run out",
        Why::Confirming => "first in line; a second write to ZooKeeper must confirm it",
        Why::Elected => "elected",
        Why::ContactLost => "contact with ZooKeeper is lost",
        Why::ContactRestored => "ZooKeeper answers again",
        Why::VouchedFor => "ZooKeeper is away, and every host that could take over holds back",
        Why::GraceOver => "contact with ZooKeeper was lost for longer than --grace; the command is stopped",
        Why::LeaseEnding => {
            "no renewal was acknowledged in time; the command is stopped, and killed when the lease ends"
        }
        Why::Deposed => "another host holds the lease record, or it was lost",
        Why::CandidateGone => "our candidate znode is gone: an operator deleted it, or its session ended",
        Why::SessionOver => "the ZooKeeper session ended",
        Why::Stuck => "processes survive SIGKILL; the lease is not released, and runs out",
        Why::WaitSpared => "the previous leader's command has ended, and its lease is free",
        Why::ClockJumped => "the host was suspended, so the lease is no longer valid",
        Why::StopRequested => {
            "a signal asks us to stop; what runs has --stop-timeout for it, and a second signal kills it at once"
        }
        Why::CommandEnded => "the command ended by itself",
        Why::Restarting => "the command ended and will be restarted",
        Why::Restarted => "the command is restarted",
        Why::CrashLoop => "the command failed more often than --max-restarts allows; another host may lead",
        Why::TimedOut => "the command took longer than --timeout",
        Why::TooLate => "the command was not started within --start-deadline; this run is skipped",
        Why::Duplicate => "another run counts for this scheduled time",
        Why::RunLost => "leadership was lost during our own run, which was stopped and is not repeated",
        Why::FenceFailed => "the previous leader could not be fenced",
        Why::BeforeStartFailed => "the command of --before-start failed or took too long; another host may lead",
        Why::Unhealthy => "the health command reports that this host is unhealthy; another host may lead",
        Why::Revoked => "another contender asked for the lock (__REVOKE__)",
        Why::HandingOver => "a handover was requested",
        Why::Drained => "an operator drains this host",
        Why::Ineligible => "the eligibility command reports that this host may not lead",
        Why::StandingBack => "this host resigned, and stays out of the queue for --stand-back; another host may lead",
        Why::Disabled => "an operator disabled the election",
        Why::EligibleAgain => "eligible again",
        Why::TreeEmpty => "every process that ran under the lease has ended",
        Why::DeadlineKill => "the guard killed the command at its deadline",
        Why::GuardGone => "the guard process died",
        Why::CheckGone => "the guard process of a check or step of this host died",
        Why::CheckLate => {
            "this host stood still during a check, until the kernel killed the guard process of that check"
        }
        Why::StoodStill { .. } => "this host stood still; the command was killed before its lease ended",
        Why::Released => "the lease is free",
        Why::ReleaseUnconfirmed => {
            "could not tell ZooKeeper that the command stopped; the next leader waits until the lease is over (with --vouch, a host \
             that was not asked waits for --vouch-limit)"
        }
        Why::WaitOver => "not elected within --wait; zk-leaderctl status tells who leads",
        Why::NotPrepared => {
            "this host was elected, but --before-start or --fence-cmd failed, and no time is left to try again; a line above says why"
        }
        Why::Unreachable => "ZooKeeper was not reached in time (--connect-timeout, or else --wait or --start-deadline)",
        Why::Forbidden(grounds) => self::grounds(grounds),
        Why::Misconfigured => {
            "the settings do not fit the ensemble or the other contenders (the line before or after this one says which)"
        }
    }
}

/// Why the servers refuse us for good; a line before has said more.
pub const fn grounds(grounds: Grounds) -> &'static str {
    match grounds {
        Grounds::Credentials => "ZooKeeper refuses the credentials, or requires some; see --auth-file",
        Grounds::Ticket => "the Kerberos login failed (a line above says why for each server)",
        Grounds::Tls => "the TLS connection failed (a line above says why for each server)",
        Grounds::Right => "an ACL denies a right that is needed (a line above names the znode)",
        Grounds::Acl => "ZooKeeper rejects the ACL given by --acl",
        Grounds::TooOld => "ZooKeeper is too old: it lacks a request that is needed",
    }
}

/// `ZK_LEADER_EVENT` of a hook.
pub const fn hook_event(event: HookEvent) -> &'static str {
    match event {
        HookEvent::Standby => "standby",
        HookEvent::Elected => "elected",
        HookEvent::Fenced => "fenced",
        HookEvent::Started => "started",
        HookEvent::Vouched => "vouched",
        HookEvent::Paused => "paused",
        HookEvent::Resumed => "resumed",
        HookEvent::Stopping => "stopping",
        HookEvent::Lost => "lost",
        HookEvent::Released => "released",
    }
}

/// How the command itself ended.
pub fn ending(child: ChildStatus) -> String {
    format!("the command {}", fate(child))
}

/// How any command ended, after its name.
pub fn fate(child: ChildStatus) -> String {
    match child {
        ChildStatus::Exited(code) => format!("exited with status {code}"),
        ChildStatus::Signaled(number) => format!("was killed by {}", signal(i32::from(number))),
        ChildStatus::NotExecuted(errno) => match Errno::from_raw(errno) {
            Errno::ENODEV => {
                "could not be executed: the cgroup made for it was removed; restart zk-leader-run".to_owned()
            }
            Errno::ESTALE => "could not be executed: its working directory, or a file system, is gone".to_owned(),
            Errno::ENOENT => {
                "could not be executed: there is no such file, or not the interpreter that its first line names"
                    .to_owned()
            }
            errno => format!("could not be executed: {}", errno.desc()),
        },
    }
}

/// `SIGTERM`, or `signal 40` where there is no name.
pub fn signal(number: i32) -> String {
    Signal::try_from(number).map_or_else(|_| format!("signal {number}"), |signal| signal.as_str().to_owned())
}

/// A length of time, exact to the microsecond below a second, to the millisecond below a minute, and to the second above:
/// `250ms`, `1.875s`, `1m30s`, `2h`.
pub fn length(length: Duration) -> String {
    if length < Duration::from_secs(1) {
        return with_fraction(length.as_micros(), "ms");
    }
    if length < Duration::from_secs(60) {
        return with_fraction(length.as_millis(), "s");
    }
    let units = [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)];
    let mut rest = length.as_secs();
    let mut text = String::new();
    for (unit, seconds) in units {
        if rest >= seconds {
            write!(text, "{}{unit}", rest / seconds).ok();
            rest %= seconds;
        }
    }
    text
}

/// The same, but not less than it is: the least value that is allowed.
pub fn least(length: Duration) -> String {
    let unit: u32 = match length.as_secs() {
        0 => 1_000,
        1..60 => 1_000_000,
        _ => 1_000_000_000,
    };
    let beyond = length.subsec_nanos() % unit;
    let missing = if beyond == 0 { 0 } else { unit - beyond };
    self::length(length + Duration::from_nanos(missing.into()))
}

/// For programs, to the millisecond.
pub fn seconds(length: Duration) -> f64 {
    (length.as_secs_f64() * 1000.0).round() / 1000.0
}

/// `thousandths` / 1000, without trailing zeros.
fn with_fraction(thousandths: u128, unit: &str) -> String {
    let number = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
    format!("{}{unit}", number.trim_end_matches('0').trim_end_matches('.'))
}

/// Control characters are shown, never obeyed; also those that change the direction of the text after them, or end a line
/// in some readers (Unicode's `Bidi_Control`, U+2028 and U+2029).
pub fn printable(text: &str) -> String {
    let is_obeyed = |character: char| {
        character.is_control()
            || matches!(character, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_obeyed(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// A JSON text without the control characters that JSON permits and a terminal may obey: DEL, and those from U+0080 to
/// U+009F. They can stand in its strings only.
pub fn printable_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for character in json.chars() {
        if matches!(character, '\u{7f}'..='\u{9f}') {
            write!(shown, "\\u{:04x}", u32::from(character)).ok();
        } else {
            shown.push(character);
        }
    }
    shown
}

/// At most so many characters, with `...` at the end of a longer text.
pub fn cut(text: &str, longest: usize) -> Cow<'_, str> {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()).into(),
        None => text.into(),
    }
}

/// Timings that do not fit, with the whole sum.
pub fn misfit(error: &TimingError) -> String {
    match *error {
        TimingError::TooTight { lease, slack, reserve, left, connection_timeout, renewal_interval, .. } => format!(
            "{} lease - {} clock drift (1 %) - {} scheduling slack - {} stop reserve = {}, but an outage needs at least \
             {}",
            self::length(lease),
            self::length(lease::drift(lease)),
            self::length(slack),
            self::length(reserve),
            if left.is_zero() { "nothing".to_owned() } else { self::length(left) },
            needed(connection_timeout, renewal_interval),
        ),
        TimingError::LeaseTooLong { lease, .. } => {
            format!("a lease of {} is longer than the longest, {}", self::length(lease), self::length(LEASE_LONGEST))
        }
        TimingError::GraceTooLong { grace, longest } => {
            format!("a grace of {} is longer than the lease allows, {}", self::length(grace), self::length(longest))
        }
        TimingError::PauseTooShort { reserve, connection_timeout, renewal_interval, .. } => format!(
            "a pause needs at least {} = {} stop reserve + 2 x {} connection timeout + 2 x {} renewal interval",
            least(reserve + 2 * connection_timeout + 2 * renewal_interval),
            self::length(reserve),
            self::length(connection_timeout),
            self::length(renewal_interval),
        ),
    }
}

fn needed(connection_timeout: Option<Duration>, renewal_interval: Duration) -> String {
    let interval = self::length(renewal_interval);
    match connection_timeout {
        Some(timeout) => format!(
            "{} = 2 x {} connection timeout + 2 x {interval} renewal interval",
            self::length(2 * timeout + 2 * renewal_interval),
            self::length(timeout),
        ),
        None => format!("{} = 3 x {interval} renewal interval", self::length(3 * renewal_interval)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_short_and_exact() {
        let cases = [
            (0, "0ms"),
            (250_000, "250ms"),
            (1_500, "1.5ms"),
            (1_875_000, "1.875s"),
            (15_000_000, "15s"),
            (14_650_000, "14.65s"),
            (90_000_000, "1m30s"),
            (7_200_000_000, "2h"),
            (90_061_000_000, "1d1h1m1s"),
        ];
        for (micros, text) in cases {
            assert_eq!(length(Duration::from_micros(micros)), text);
        }
    }

    /// It is written in a remedy, and must not be refused.
    #[test]
    fn a_least_length_is_never_shown_shorter_than_it_is() {
        let cases = [
            (15_000_000_000, "15s"),
            (1_500_001, "1.501ms"),
            (9_750_200_000, "9.751s"),
            (60_000_000_000, "1m"),
            (68_140_000_000, "1m9s"),
        ];
        for (nanos, text) in cases {
            assert_eq!(least(Duration::from_nanos(nanos)), text);
        }
    }

    #[test]
    fn what_moves_text_about_is_shown_and_letters_stay() {
        assert_eq!(printable("größe 日本 💥"), "größe 日本 💥");
        assert_eq!(printable("a\u{1b}[2J\n\u{9b}"), "a\\u{1b}[2J\\n\\u{9b}");
        // Overrides of the direction can make one name look like another, and the separators end a line in some readers.
        assert_eq!(printable("\u{202e}nimda\u{2066}\u{200f}\u{2028}"), "\\u{202e}nimda\\u{2066}\\u{200f}\\u{2028}");
    }

    #[test]
    fn signals_have_names() {
        assert_eq!(signal(15), "SIGTERM");
        assert_eq!(signal(40), "signal 40");
    }

    #[test]
    fn a_directory_that_is_gone_is_no_program_that_is_missing() {
        let missing = "the command could not be executed: there is no such file, or not the interpreter that its first line names";
        assert_eq!(ending(ChildStatus::NotExecuted(2)), missing);
        assert!(ending(ChildStatus::NotExecuted(Errno::ESTALE as i32)).contains("working directory"));
    }

    #[test]
    fn a_misfit_writes_the_sum_out() {
        let error = TimingError::TooTight {
            session_timeout: Duration::from_secs(15),
            lease: Duration::from_secs(15),
            slack: Duration::from_millis(200),
            reserve: Duration::from_secs(10),
            left: Duration::from_millis(4650),
            connection_timeout: Some(Duration::from_secs(3)),
            renewal_interval: Duration::from_millis(1875),
        };
        assert_eq!(
            misfit(&error),
            "15s lease - 150ms clock drift (1 %) - 200ms scheduling slack - 10s stop reserve = 4.65s, but an outage needs at \
             least 9.75s = 2 x 3s connection timeout + 2 x 1.875s renewal interval"
        );
    }
}
