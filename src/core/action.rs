//! The actions that the supervisor's machine asks for. `supervisor::effects` carries out each in one arm.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::event::{Candidacy, Grounds, LastRun, Nonce, SessionNumber};
use super::guard_messages::{ChildStatus, Deadlines, Grant, Order, Slot};
use super::lease::TimingError;
use super::settings::StepKind;
use super::time::Timestamp;
use super::vouching::{Question, Reply, Vouching};

/// The content of a write to the lease record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    pub nonce: Nonce,
    /// `None` until the take-over is answered.
    pub token: Option<i64>,
    /// The lease that may be running under this record: our own, or the inherited one in a record that waits.
    pub lease: Duration,
    /// The run whose end we wait for, see [`Record::last_run`](super::event::Record::last_run). `None` once the wait is
    /// over and we may run under the record.
    pub waiting_on: Option<LastRun>,
    /// In a held record that does not wait, if the command may live on promises.
    pub vouching: Option<Vouching>,
}

/// The versions that a write is conditional on, and the slot that they belong to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Conditions {
    pub slot: Slot,
    pub record: i32,
    pub term: i32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Open a new session and close the older one, if any.
    Connect { session: SessionNumber },
    /// Create our candidate, or find it again after a lost reply; then look. Creates the base if it is missing.
    Enter { candidacy: Candidacy },
    /// Read the term, the record, then the candidates, in this order. Watch our candidate and the two before it, and
    /// the record if we are first or next.
    Look { candidacy: Candidacy },
    /// Read the term and the record of this slot, in this order, and watch the record.
    Observe { candidacy: Candidacy, slot: Slot },
    /// One multi: check the candidate, set the term, set the record. `longest` is the longest lease of the term; the
    /// term keeps it in case the record is lost.
    TakeOver { candidacy: Candidacy, conditions: Conditions, entry: Entry, longest: Duration },
    /// One multi: check the candidate, check the term, set the record.
    Renew { candidacy: Candidacy, conditions: Conditions, entry: Entry },
    /// Read the run markers, then one multi: check the candidate, check the term, write the marker of this run.
    /// `is_first`: this process has not started the command yet.
    Mark { candidacy: Candidacy, conditions: Conditions, entry: Entry, is_first: bool },
    /// The marked run has ended. The release that follows completes its marker. `ok`: it ended by itself, successfully.
    /// `status`: [`TIMED_OUT`](super::restart::TIMED_OUT) if `--timeout` ended it.
    EndRun { status: ChildStatus, ok: bool },
    /// The marked run never began. The release that follows takes its marker back.
    WithdrawRun,
    /// One multi: check the term, set the record free, delete the candidate (unless `keeps_candidate`).
    Release { candidacy: Candidacy, conditions: Conditions, entry: Entry, keeps_candidate: bool },
    /// Go on with the same session over another connection: this server has missed or lost writes.
    LeaveServer,
    /// Ask this instance for a promise.
    Ask { to: u64, question: Question },
    /// Answer a question.
    Reply { reply: Reply },
    /// Forget in which terms we were asked: the ensemble has lost writes, and the next terms may have lower tokens.
    ForgetTerms,
    /// Run the fence command. It is answered by `Fenced` with this grant's token.
    Fence { grant: Grant },
    /// Kill the fence command; its answer is no longer needed.
    EndFence,
    /// Run a step around the command. Its guard ends its whole tree by these deadlines. It is answered by `StepEnded` with
    /// this grant's token.
    RunStep { step: StepKind, grant: Grant, why: Why, deadlines: Deadlines },
    /// A renewal was acknowledged: move the deadlines of the running step.
    ExtendStep { step: StepKind, deadlines: Deadlines },
    /// SIGTERM to the running step now, SIGKILL to its whole tree at `by`, or at its `kill_at` if that comes sooner.
    StopStep { step: StepKind, by: Timestamp },
    /// This step is left out, because the lease ended first.
    SkipStep { step: StepKind },
    /// Send an order to the guard.
    Guard(Order),
    /// Kill the guard, which does not act on its orders (stopped?). Its end is then reported as usual.
    EndGuard,
    /// The guard died: kill and reap the orphans of the tree.
    EndOrphans,
    /// Publish a change of phase.
    Announce(Transition),
    /// Close the session and end the process. Always the last action.
    Exit(ExitReason),
}

/// The phases, without what they hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PhaseName {
    Following,
    Waiting,
    Preparing,
    Leading,
    /// Without contact, and every host that could take over promises to hold back.
    Vouched,
    Paused,
    Stopping,
    Releasing,
    Done,
}

/// The reason for a change of phase.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Why {
    /// First in line; the record is ours; the previous lease must run out first.
    TookOver,
    /// First in a shared election; the record is ours; a second write must confirm it.
    Confirming,
    /// The record was free, or the previous lease is over.
    Elected,
    /// The previous leader saw its tree empty and freed the record, which ends our wait.
    WaitSpared,
    /// No renewal was acknowledged for half of the lease, or the client reported a disconnect.
    ContactLost,
    /// The same session answered in time.
    ContactRestored,
    /// No renewal is acknowledged, but every host that could take over promises to hold back.
    VouchedFor,
    /// `--grace` is over.
    GraceOver,
    /// The lease runs out: `stop_at` came without a renewal.
    LeaseEnding,
    /// Another candidate holds the record.
    Deposed,
    /// Our candidate was deleted, by hand or with its session.
    CandidateGone,
    /// The session is over.
    SessionOver,
    /// The host was suspended.
    ClockJumped,
    /// This process received SIGTERM, SIGINT or SIGQUIT.
    StopRequested,
    /// The command ended by itself.
    CommandEnded,
    /// The command ended by itself or by `--timeout`; it will be started again in this term.
    Restarting,
    /// The command was started again.
    Restarted,
    /// The command failed more often than `--max-restarts` allows.
    CrashLoop,
    /// `--timeout` is over.
    TimedOut,
    /// `--start-deadline` is over.
    TooLate,
    /// Another invocation runs, or has run, for the same slot of `--slot` or `--once-per`.
    Duplicate,
    /// The same, after a run of our own that was stopped.
    RunLost,
    /// The fence command failed, or took too long.
    FenceFailed,
    /// The command of `--before-start` failed, or took too long.
    BeforeStartFailed,
    /// The health command failed too often, or has not succeeded yet.
    Unhealthy,
    /// Another client asked the holder to yield, by Curator's revocation.
    Revoked,
    /// An operator ordered a handover, or a candidate of higher priority asked for one.
    HandingOver,
    /// An operator drains this host.
    Drained,
    /// The eligibility command refused.
    Ineligible,
    /// This process resigned recently; `--stand-back` is not over.
    StandingBack,
    /// An operator disabled the command.
    Disabled,
    /// Eligible again.
    EligibleAgain,
    /// The last process of a stopping tree is gone.
    TreeEmpty,
    /// The guard killed the tree at its deadline.
    DeadlineKill,
    /// Processes survive SIGKILL.
    Stuck,
    /// The guard process died.
    GuardGone,
    /// The guard of a health, eligibility or fence command died, or that of a step between two runs.
    CheckGone,
    /// The same, because this host stood still.
    CheckLate,
    /// This host stood still until the kernel's timer killed the guard, and with it the command, to keep the lease.
    StoodStill { length: Duration },
    /// The record was freed and the candidate deleted.
    Released,
    /// The release was not confirmed; the lease is left to run out.
    ReleaseUnconfirmed,
    /// `--wait` is over.
    WaitOver,
    /// The same, or `--start-deadline`, after a failed step of a host that was elected.
    NotPrepared,
    /// No server was reached within `--connect-timeout`.
    Unreachable,
    /// Every server refuses us, for a lasting reason.
    Forbidden(Grounds),
    /// The settings do not fit the ensemble or the other candidates.
    Misconfigured,
}

impl Why {
    /// Each of them; one that has a length or grounds with an example, or all of its grounds.
    pub const ALL: [Self; 51] = [
        Self::TookOver,
        Self::Confirming,
        Self::Elected,
        Self::WaitSpared,
        Self::ContactLost,
        Self::ContactRestored,
        Self::VouchedFor,
        Self::GraceOver,
        Self::LeaseEnding,
        Self::Deposed,
        Self::CandidateGone,
        Self::SessionOver,
        Self::ClockJumped,
        Self::StopRequested,
        Self::CommandEnded,
        Self::Restarting,
        Self::Restarted,
        Self::CrashLoop,
        Self::TimedOut,
        Self::TooLate,
        Self::Duplicate,
        Self::RunLost,
        Self::FenceFailed,
        Self::BeforeStartFailed,
        Self::Unhealthy,
        Self::Revoked,
        Self::HandingOver,
        Self::Drained,
        Self::Ineligible,
        Self::StandingBack,
        Self::Disabled,
        Self::EligibleAgain,
        Self::TreeEmpty,
        Self::DeadlineKill,
        Self::Stuck,
        Self::GuardGone,
        Self::CheckGone,
        Self::CheckLate,
        Self::StoodStill { length: Duration::ZERO },
        Self::Released,
        Self::ReleaseUnconfirmed,
        Self::WaitOver,
        Self::NotPrepared,
        Self::Unreachable,
        Self::Forbidden(Grounds::Credentials),
        Self::Forbidden(Grounds::Ticket),
        Self::Forbidden(Grounds::Tls),
        Self::Forbidden(Grounds::Right),
        Self::Forbidden(Grounds::Acl),
        Self::Forbidden(Grounds::TooOld),
        Self::Misconfigured,
    ];
}

/// One change of phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transition {
    pub from: PhaseName,
    pub to: PhaseName,
    pub why: Why,
    pub token: Option<i64>,
    /// The grant of the present term's command, started or not.
    pub grant: Option<Grant>,
    /// The rest of the lease (until `kill_at`); `None` without one.
    pub lease_left: Option<Duration>,
    /// Time until the command may be started (again) or must be stopped, or until this process may contend again or exits.
    pub next_in: Option<Duration>,
}

/// Why the program ends. `exit.rs` maps it to an exit status.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ExitReason {
    CommandEnded(ChildStatus),
    /// `None`: no command was running.
    StopRequested(Option<ChildStatus>),
    NotElected,
    /// This host was elected, but a step or the fence command before the start failed, and the time limit was over while it stood back.
    NotPrepared,
    /// `--timeout` ended the command.
    TimedOut,
    /// `--start-deadline` was over before the command could start.
    TooLate,
    /// The slot's run marker exists already.
    Duplicate,
    LeadershipLost,
    Unreachable,
    Forbidden(Grounds),
    BadTiming(TimingError),
    /// The record's guarantee, recipe or number of leaders differs from ours.
    Disagreement,
    /// Another live participant has our id.
    IdTaken,
    GuardGone,
    /// Leadership was lost, and the guard killed, while this host stood still. The program restarts itself and contends
    /// again.
    StoodStill,
}

impl ExitReason {
    /// The servers refuse us for good, whatever the command does.
    pub const fn is_refusal(self) -> bool {
        matches!(self, Self::Forbidden(_) | Self::BadTiming(_))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::Why;

    /// Grounds are six.
    #[test]
    fn every_reason_is_listed_once() {
        let (_, declared) = include_str!("action.rs").split_once("pub enum Why {").unwrap();
        let (declared, _) = declared.split_once("\n}\n").unwrap();
        let is_variant = |line: &&str| line.trim_start().starts_with(|first: char| first.is_ascii_uppercase());
        assert_eq!(Why::ALL.len(), declared.lines().filter(is_variant).count() + 5);
        assert_eq!(Why::ALL.iter().collect::<HashSet<_>>().len(), Why::ALL.len());
    }
}
