//! Every exit status of the program, in one table, and the sentence that says why it ended.
//!
//! Never: a status that is chosen anywhere else.

use std::time::Duration;

use nix::errno::Errno;

use crate::core::action::{ExitReason, Why};
use crate::core::guard_messages::ChildStatus;
use crate::core::restart::TIMED_OUT;
use crate::guard::handle;
use crate::observe::words;

/// The statuses that are ours, by their names in `sysexits.h` (which systemd prints); 126 and 127 are the shell's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Status {
    Usage = 64,
    Unavailable = 69,
    Software = 70,
    InputOutput = 74,
    TemporaryFailure = 75,
    Protocol = 76,
    NoPermission = 77,
    Configuration = 78,
    NotExecutable = 126,
    NotFound = 127,
}

impl Status {
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Of a guard that could not be started.
    pub fn of_guard(error: &handle::Error) -> Self {
        match error {
            handle::Error::Containment { .. } | handle::Error::Prerequisite(_) => Self::Configuration,
            handle::Error::Command(_) => Self::NotExecutable,
            handle::Error::Guard(_) => Self::Software,
        }
    }
}

/// One row of the table of exit statuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meaning {
    pub status: &'static str,
    /// In `sysexits.h`; empty where it has none.
    pub name: &'static str,
    pub meaning: &'static str,
}

const fn row(status: &'static str, name: &'static str, meaning: &'static str) -> Meaning {
    Meaning { status, name, meaning }
}

const MEANINGS: [Meaning; 16] = [
    row("0-255", "", "the command ended by itself: its own status, unchanged"),
    row("128+n", "", "the command was killed by signal n"),
    row("0", "", "a requested stop: the command exited 0, died of the stop signal, or was not running"),
    row("0", "", "nothing was run: too late for --start-deadline"),
    row("0", "", "nothing was run: the job of this --slot or --once-per has its run already"),
    row(
        "64",
        "USAGE",
        "an option, an argument or a variable cannot be understood, or contradicts another; another participant has our --id",
    ),
    row(
        "69",
        "UNAVAILABLE",
        "the ensemble was not reached within --connect-timeout, or else --wait or --start-deadline; or an address to listen at is in use or not there, or the certificate in --tls-cert is not valid today",
    ),
    row(
        "70",
        "SOFTWARE",
        "internal: a guard process died or could not be started (too few processes or open files, say), a process that stood still cannot restart itself, or a bug",
    ),
    row("74", "IOERR", "an answer (--help, --dry-run, man) could not be written to the end: the disk is full, say"),
    row(
        "75",
        "TEMPFAIL",
        "not elected within --wait (or the status given by --conflict-exit-code); or elected, but --before-start or --fence-cmd failed, and no time was left to try again",
    ),
    row("76", "PROTOCOL", "leadership was lost, with --on-loss exit, --slot or --once-per"),
    row(
        "77",
        "NOPERM",
        "ZooKeeper refuses us: the credentials, TLS, an ACL, or it is too old; the log says which, and the remedy",
    ),
    row(
        "78",
        "CONFIG",
        "the configuration file, timings, --acl, --contain, --http, --vouch-address, a file of --auth-file, --tls-ca, --tls-cert or --tls-key, journald or /proc cannot work, or contenders disagree",
    ),
    row("124", "", "the command was stopped because it took longer than --timeout"),
    row("126", "", "the command cannot be executed"),
    row("127", "", "the command was not found, or the interpreter that its first line names"),
];

/// The table, for `--help` and the documentation.
pub const fn status_meanings() -> &'static [Meaning] {
    &MEANINGS
}

/// What of the settings a status depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choices {
    /// `--conflict-exit-code`.
    pub not_elected: u8,
    /// `--stop-signal`.
    pub stop_signal: i32,
}

/// The status that the program ends with.
pub fn status(reason: &ExitReason, choices: Choices) -> u8 {
    match *reason {
        ExitReason::StopRequested(None) | ExitReason::TooLate | ExitReason::Duplicate => 0,
        ExitReason::StopRequested(Some(ChildStatus::Signaled(signal))) if i32::from(signal) == choices.stop_signal => 0,
        ExitReason::CommandEnded(child) | ExitReason::StopRequested(Some(child)) => status_of_child(child),
        ExitReason::NotElected => choices.not_elected,
        ExitReason::NotPrepared => Status::TemporaryFailure.code(),
        ExitReason::TimedOut => TIMED_OUT,
        ExitReason::LeadershipLost => Status::Protocol.code(),
        ExitReason::Unreachable => Status::Unavailable.code(),
        ExitReason::Forbidden(_) => Status::NoPermission.code(),
        ExitReason::BadTiming(_) | ExitReason::Disagreement => Status::Configuration.code(),
        ExitReason::IdTaken => Status::Usage.code(),
        // Only if we could not be started anew.
        ExitReason::GuardGone | ExitReason::StoodStill => Status::Software.code(),
    }
}

fn status_of_child(child: ChildStatus) -> u8 {
    match child {
        ChildStatus::Exited(code) => code,
        ChildStatus::Signaled(signal) => 128_u8.saturating_add(signal),
        ChildStatus::NotExecuted(errno) => not_executed(Errno::from_raw(errno)).code(),
    }
}

/// As shells do it: 127 if there is no such file, 126 if there is one that cannot be executed.
pub const fn not_executed(error: Errno) -> Status {
    match error {
        Errno::ENOENT | Errno::ENOTDIR => Status::NotFound,
        _ => Status::NotExecutable,
    }
}

/// Whether somebody has to mend something, and must read the sentence for it at any log level.
pub const fn wants_a_remedy(reason: &ExitReason) -> bool {
    match reason {
        ExitReason::BadTiming(_)
        | ExitReason::IdTaken
        | ExitReason::GuardGone => true,
        ExitReason::CommandEnded(_)
        | ExitReason::StopRequested(_)
        | ExitReason::NotElected
        // The failure was logged as an error.
        | ExitReason::NotPrepared
        | ExitReason::TimedOut
        | ExitReason::TooLate
        | ExitReason::Duplicate
        | ExitReason::LeadershipLost
        // Lines before have said all: what is refused, or which option of which host.
        | ExitReason::Forbidden(_)
        | ExitReason::Disagreement
        | ExitReason::StoodStill
        | ExitReason::Unreachable => false,
    }
}

/// Whether nobody may have heard of this end who wants to hear warnings only: this host has waited, in vain. With `--wait 0` it only
/// wanted to know whether the command runs elsewhere, and a status of 0 says that this is well.
pub fn is_worth_a_warning(reason: &ExitReason, choices: Choices, wait: Option<Duration>) -> bool {
    *reason == ExitReason::NotElected && choices.not_elected != 0 && wait.is_some_and(|wait| !wait.is_zero())
}

/// Why the program ended, for the last line of the log.
pub fn sentence(reason: &ExitReason) -> String {
    match *reason {
        ExitReason::CommandEnded(child) => words::ending(child),
        ExitReason::StopRequested(None) => "we were asked to stop, and no command was running".into(),
        ExitReason::StopRequested(Some(child)) => format!("we were asked to stop; {}", words::ending(child)),
        ExitReason::NotElected => words::reason(Why::WaitOver).into(),
        ExitReason::NotPrepared => words::reason(Why::NotPrepared).into(),
        ExitReason::TimedOut => words::reason(Why::TimedOut).into(),
        ExitReason::TooLate => words::reason(Why::TooLate).into(),
        ExitReason::Duplicate => "another host's run counts for this one; nothing was run".into(),
        ExitReason::LeadershipLost => {
            "leadership was lost, with --on-loss exit or in a job that runs at most once".into()
        }
        ExitReason::Unreachable => words::reason(Why::Unreachable).into(),
        ExitReason::Forbidden(grounds) => words::grounds(grounds).into(),
        ExitReason::BadTiming(error) => {
            format!("the timings do not fit the session timeout that the ensemble granted: {}", words::misfit(&error))
        }
        ExitReason::IdTaken => "another live participant has our id; give each its own with --id".into(),
        ExitReason::Disagreement => {
            "the contenders disagree: --guarantee, --recipe, --election-path and the number of leaders must be the same on every host"
                .into()
        }
        ExitReason::GuardGone => "a guard process died".into(),
        ExitReason::StoodStill => "rejoining, with new guards: this host stood still".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHOICES: Choices = Choices { not_elected: 42, stop_signal: 15 };

    #[test]
    fn the_commands_own_status_is_unchanged_and_a_signal_counts_from_128() {
        for code in 0..=255 {
            assert_eq!(status(&ExitReason::CommandEnded(ChildStatus::Exited(code)), CHOICES), code);
        }
        for signal in 1..=64 {
            assert_eq!(status(&ExitReason::CommandEnded(ChildStatus::Signaled(signal)), CHOICES), 128 + signal);
        }
    }

    #[test]
    fn a_wait_in_vain_is_worth_a_warning_unless_the_status_calls_it_a_success() {
        let (waited, well) = (Some(Duration::from_secs(9)), Choices { not_elected: 0, ..CHOICES });
        let worth = |choices, wait| is_worth_a_warning(&ExitReason::NotElected, choices, wait);
        assert!(worth(CHOICES, waited));
        assert!(!worth(well, waited) && !worth(CHOICES, Some(Duration::ZERO)));
        assert!(!is_worth_a_warning(&ExitReason::Duplicate, CHOICES, waited));
    }

    #[test]
    fn a_requested_stop_is_a_success_unless_the_command_says_otherwise() {
        let stopped = |child| status(&ExitReason::StopRequested(child), CHOICES);
        assert_eq!(stopped(None), 0);
        assert_eq!(stopped(Some(ChildStatus::Exited(0))), 0);
        assert_eq!(stopped(Some(ChildStatus::Signaled(15))), 0);
        assert_eq!(stopped(Some(ChildStatus::Signaled(9))), 137);
        assert_eq!(stopped(Some(ChildStatus::Exited(3))), 3);
        assert_eq!(status(&ExitReason::CommandEnded(ChildStatus::Signaled(15)), CHOICES), 143);
    }

    #[test]
    fn a_failed_exec_tells_not_found_from_not_executable() {
        let failed = |errno: Errno| status(&ExitReason::CommandEnded(ChildStatus::NotExecuted(errno as i32)), CHOICES);
        assert_eq!(failed(Errno::ENOENT), 127);
        assert_eq!(failed(Errno::ENOTDIR), 127);
        assert_eq!(failed(Errno::EACCES), 126);
        assert_eq!(failed(Errno::ENOEXEC), 126);
    }

    #[test]
    fn the_last_line_of_a_refusal_says_what_was_refused() {
        use crate::core::event::Grounds;
        for (grounds, said) in [
            (Grounds::Credentials, "credentials"),
            (Grounds::Ticket, "Kerberos"),
            (Grounds::Tls, "TLS"),
            (Grounds::Right, "a right"),
            (Grounds::Acl, "--acl"),
            (Grounds::TooOld, "too old"),
        ] {
            let reason = ExitReason::Forbidden(grounds);
            assert!(sentence(&reason).contains(said), "{}", sentence(&reason));
            assert_eq!(status(&reason, CHOICES), 77);
        }
    }

    #[test]
    fn every_status_of_ours_has_a_row() {
        use Status::*;
        for status in [
            Usage,
            Unavailable,
            Software,
            InputOutput,
            TemporaryFailure,
            Protocol,
            NoPermission,
            Configuration,
            NotExecutable,
            NotFound,
        ] {
            assert!(status_meanings().iter().any(|row| row.status == status.code().to_string()), "{status:?}");
        }
    }

    #[test]
    fn not_being_elected_has_the_status_that_was_asked_for() {
        assert_eq!(status(&ExitReason::NotElected, CHOICES), 42);
    }
}
