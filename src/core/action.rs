//! What the supervisor's machine asks for: imperatives, each carried out by one arm of `supervisor::effects`.

use std::time::Duration;

use super::event::{Candidacy, Grounds, LastRun, Nonce, SessionNumber};
use super::lease::TimingError;
use super::order::{ChildStatus, Grant, Order, Slot};

/// What a write to the lease record says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    pub nonce: Nonce,
    /// `None` until the take-over was answered.
    pub token: Option<i64>,
    /// The lease that may be running under it: ours, or, in a record that waits, the inherited one.
    pub lease: Duration,
    /// Whose end we wait for, as [`Record::last_run`](super::event::Record::last_run) says; `None` once the wait is
    /// over: it is ours to run under.
    pub waiting_on: Option<LastRun>,
}

/// The versions that a write is conditional on, and of which slot they are: one slot's say nothing about another's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conditions {
    pub slot: Slot,
    pub record: i32,
    pub term: i32,
}

/// One thing to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Open a new session (closing whatever is left of an older one).
    Connect { session: SessionNumber },
    /// Create our candidate, or find it again after a lost reply, and look. Creates the base when there is none.
    Enter { candidacy: Candidacy },
    /// Read the term, the record, then the line; watch the two candidates before ours (and our own),
    /// and the record if we are first or next.
    Look { candidacy: Candidacy },
    /// Read the term and the record of this slot, in this order, and watch the record.
    Observe { candidacy: Candidacy, slot: Slot },
    /// One multi: check the candidate, set the term, set the record. `longest`: the longest lease of the term, which it
    /// keeps in case that the record is lost.
    TakeOver { candidacy: Candidacy, conditions: Conditions, entry: Entry, longest: Duration },
    /// One multi: check the candidate, check the term, set the record.
    Renew { candidacy: Candidacy, conditions: Conditions, entry: Entry },
    /// Read the markers of runs, then one multi: check the candidate, check the term, write the marker of this run.
    /// `is_first`: nothing was started by this process yet.
    Mark { candidacy: Candidacy, conditions: Conditions, entry: Entry, is_first: bool },
    /// The marked run has ended: completed with the release that follows. `ok`: by itself, and well.
    EndRun { status: ChildStatus, ok: bool },
    /// One multi: check the term, set the record free, delete the candidate (unless it is to keep its place).
    Release { candidacy: Candidacy, conditions: Conditions, entry: Entry, keeps_candidate: bool },
    /// Run the fence command. Answer: `Fenced` with this grant's token.
    Fence { grant: Grant },
    /// Nobody waits for the fence command any more: end it.
    EndFence,
    /// Tell the guard.
    Guard(Order),
    /// The guard does not act on its orders (it was stopped?): kill it, so that it is reported gone.
    EndGuard,
    /// The guard died: kill and reap whatever of the tree has become ours.
    EndOrphans,
    /// Tell people and programs that the phase changed.
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
    Paused,
    Stopping,
    Releasing,
    Done,
}

/// Why a phase changed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Why {
    /// First in line, and the record is ours; the previous lease must run out first.
    TookOver,
    /// First in a shared election, and the record is ours; a second write must confirm it.
    Confirming,
    /// The record was free, or the previous lease is over.
    Elected,
    /// The leader that we waited for has seen its tree empty, and freed the record.
    WaitSpared,
    /// No renewal was acknowledged for two intervals, or the client reported a disconnect.
    ContactLost,
    /// The same session answered in time.
    ContactRestored,
    /// `--grace` is over.
    GraceOver,
    /// The lease runs out: `stop_at` came without a renewal.
    LeaseEnding,
    /// The record is someone else's.
    Deposed,
    /// Our candidate is gone: deleted by hand, or with its session.
    CandidateGone,
    /// The session is over.
    SessionOver,
    /// The host was suspended.
    ClockJumped,
    /// SIGTERM, SIGINT or SIGQUIT to us.
    StopRequested,
    /// The command ended by itself.
    CommandEnded,
    /// The command ended by itself or by `--timeout`, and will be started again in this term.
    Restarting,
    /// The command was started again.
    Restarted,
    /// The command failed more often than `--max-restarts` allows.
    CrashLoop,
    /// `--timeout` is over.
    TimedOut,
    /// `--start-deadline` is over.
    TooLate,
    /// Another call has run, or runs, for the same slot.
    Duplicate,
    /// The fence command failed, or took too long.
    FenceFailed,
    /// The health command says that we may not lead.
    Unhealthy,
    /// Somebody asked the holder to yield, in the way of Curator's locks.
    Revoked,
    /// A handover was ordered, or asked for by a higher priority.
    HandingOver,
    /// The eligibility command says that we may not lead.
    Ineligible,
    /// We resigned a short while ago.
    StandingBack,
    /// An operator wants nobody to run the command.
    Disabled,
    /// Nothing bars us any more.
    BarsLifted,
    /// The last process of a tree that was being stopped is gone.
    TreeEmpty,
    /// The guard ended the tree at its deadline.
    DeadlineKill,
    /// Processes survive SIGKILL.
    Stuck,
    /// The guard process died.
    GuardGone,
    /// This host stood still for so long that the kernel killed the guard, and the command with it, for the lease's sake.
    StoodStill { length: Duration },
    /// The record was freed and the candidate deleted.
    Released,
    /// The release could not be confirmed and is left to expiry.
    ReleaseUnconfirmed,
    /// `--wait` is over.
    WaitOver,
    /// The ensemble was not reached within `--connect-timeout`.
    Unreachable,
    /// The servers refuse us for good.
    Forbidden(Grounds),
    /// The settings do not fit the ensemble or the other contenders.
    Misconfigured,
}

/// One change of phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transition {
    pub from: PhaseName,
    pub to: PhaseName,
    pub why: Why,
    pub token: Option<i64>,
    /// What the command of the present term is told, or would be.
    pub grant: Option<Grant>,
    /// How long the lease still runs (until `kill_at`); `None` without one.
    pub lease_left: Option<Duration>,
    /// How long it is until the command may be started (again), or until we may stand in line again.
    pub next_in: Option<Duration>,
}

/// Why the program ends. `exit.rs` turns it into a status.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ExitReason {
    CommandEnded(ChildStatus),
    /// `None`: no command was running.
    StopRequested(Option<ChildStatus>),
    NotElected,
    /// `--timeout` ended the command.
    TimedOut,
    /// `--start-deadline` was over before the command could start.
    TooLate,
    /// The slot has its run already.
    Duplicate,
    LeadershipLost,
    Unreachable,
    Forbidden(Grounds),
    BadTiming(TimingError),
    /// The record's guarantee, recipe or number of leaders is not ours.
    Disagreement,
    /// Another live participant has our id.
    IdTaken,
    GuardGone,
    /// Leadership was lost while this host stood still, and the guard with it: start anew, and contend again.
    StoodStill,
}
