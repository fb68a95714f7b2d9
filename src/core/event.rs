//! The events that the supervisor's machine handles. Each answer carries the id of its request.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::guard_messages::{CandidateName, Report, Slot};
use super::settings::StepKind;
use super::time::Timestamp;
use super::vouching::{Vouching, Word};

/// One `ZooKeeper` session of this process: 1, 2, 3, … Not the server's session id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct SessionNumber(pub u32);

/// One attempt at the election, with one candidate znode. Answers to an earlier attempt are void (T51).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Candidacy(pub u32);

/// Identifies a record as ours: the process, and one *sending* of a take-over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Nonce {
    /// Drawn at random when the process starts.
    pub instance: u64,
    /// Counts the take-overs that this process has sent.
    pub sending: u64,
}

impl Nonce {
    /// The nonce of an unreadable or foreign record.
    pub const UNKNOWN: Self = Self { instance: 0, sending: 0 };
}

/// The position of our candidate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Place {
    /// It may take over the record that it is shown. With several leaders: one that no candidate before it will take.
    First,
    /// Next in line. It watches and re-reads the lease record, so that the wait is nearly over when its turn comes.
    Next,
    /// The number of candidates before ours (two or more).
    Behind(u32),
}

/// The last version of the record under which a command may have run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct LastRun {
    pub mzxid: i64,
    /// The nonce of that version; [`Nonce::UNKNOWN`] if the record does not say.
    pub nonce: Nonce,
}

/// The lease record as it was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    pub slot: Slot,
    /// Data version, for conditional writes.
    pub version: i32,
    /// Zxid of the last write. It identifies the version, even if the znode is deleted and created again.
    pub mzxid: i64,
    /// `false`: the last holder released it with an empty tree.
    pub held: bool,
    /// The earlier run whose lease this holder waits for. `None`: a command may run under this version, or the record
    /// is free.
    pub waiting_on: Option<LastRun>,
    /// The lease that may still be running: the earlier holder's, while the present one waits.
    pub lease: Duration,
    pub nonce: Nonce,
    /// The token of the term that wrote it, held or freed; zero if it is nobody's.
    pub token: i64,
    /// `None`: its holder does not live on promises.
    pub vouching: Option<Vouching>,
    /// Its guarantee, recipe and number of leaders are the same as ours.
    pub agrees: bool,
}

impl Record {
    /// The run that a successor's wait counts from. A waiting holder does not change it, so one wait is enough even if
    /// several successors die in it.
    pub fn last_run(&self) -> LastRun {
        self.waiting_on.unwrap_or(LastRun { mzxid: self.mzxid, nonce: self.nonce })
    }

    /// The mzxid of the last version under which a command may have run.
    pub fn last_run_under(&self) -> i64 {
        self.last_run().mzxid
    }
}

/// One look at the election. `term` was read before `record`, in one session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct View {
    pub place: Place,
    pub candidate: CandidateName,
    /// The server's id of the session that owns the candidate.
    pub session_id: i64,
    /// Data version of the term of the record's slot.
    pub term_version: i32,
    /// The record that we may take over, our own record, or the one that best shows that the present leaders live.
    pub record: Record,
    /// We are next in line, and the only leader's priority is lower than ours.
    pub outranks: bool,
    /// Another client asks us to yield.
    pub is_revoked: bool,
}

/// A request to `ZooKeeper`. At most one is pending.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Request {
    Enter,
    Look,
    Observe,
    TakeOver,
    Renew,
    Mark,
    Release,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ineligibility {
    /// The health command failed. We leave the queue or resign.
    Unhealthy,
    /// The eligibility command refused. We leave the queue or resign.
    Ineligible,
    /// An operator disabled the command. Every candidate keeps its place.
    Disabled,
    /// An operator moves the leadership. The leader stops and goes to the end of the queue; the others make room.
    HandingOver,
    /// An operator drains this host. We leave the queue or resign, and come back when the drain ends.
    Drained,
}

/// How a step around the command ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StepOutcome {
    /// With status 0.
    Succeeded,
    /// With another status, or killed.
    Failed,
    /// Its guard died, so it cannot be run again.
    GuardGone,
}

/// A definite refusal by the server.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Denial {
    /// The record or the term had another version, or was missing. Nothing was written.
    Conflict,
    /// Our candidate does not exist. Nothing was written.
    CandidateGone,
    /// The server refuses, for a lasting reason.
    Forbidden(Grounds),
}

/// Why the servers refuse us until an administrator changes something.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Grounds {
    /// Wrong credentials, or none where some are required.
    Credentials,
    /// The Kerberos login failed.
    Ticket,
    /// TLS fails with every server, for a lasting reason.
    Tls,
    /// An ACL denies us a permission.
    Right,
    /// The ACL that `--acl` sets on new znodes is invalid.
    Acl,
    /// The server is too old to support a request.
    TooOld,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// Time passed; a deadline may have been reached.
    Ticked,
    /// BOOTTIME − MONOTONIC jumped: the host was suspended, and the lease is over.
    ClockJumped,

    /// A new session was established; `negotiated` is the server's T.
    Connected { session: SessionNumber, negotiated: Duration },
    /// One attempt to open a session failed; no server was reached.
    Unreachable { session: SessionNumber },
    /// Every server refuses us.
    Rejected { session: SessionNumber, grounds: Grounds },
    /// The client reports that the connection is lost. A hint.
    ContactLost { session: SessionNumber },
    /// The client reports that the connection is back, in the same session. A hint.
    ContactRestored { session: SessionNumber },
    /// The session is over (expired or closed). A hint: it proves nothing about the lease.
    SessionOver { session: SessionNumber },

    /// Answer to `Enter` or `Look`.
    Seen { candidacy: Candidacy, view: View },
    /// Answer to `Observe`; the term was read before the record.
    Observed { candidacy: Candidacy, record: Record, term_version: i32 },
    /// This version of a record was read beside all requests. Nothing follows from it but that this version exists.
    Glimpsed { record: Record },
    /// A watch fired on our candidate or on one of those before it.
    LineChanged { candidacy: Candidacy },
    /// A watch fired on the lease record.
    RecordChanged { candidacy: Candidacy },
    /// The take-over that was sent at `sent_at` was committed.
    TookOver { candidacy: Candidacy, nonce: Nonce, sent_at: Timestamp, version: i32, token: i64, term: i32 },
    /// The renewal that was sent at `sent_at` was committed.
    Renewed { candidacy: Candidacy, sent_at: Timestamp, version: i32 },
    /// Answer to `Mark`. `is_fresh`: the marker is ours. Otherwise another run counts, and ours would be a duplicate.
    Marked { candidacy: Candidacy, is_fresh: bool },
    /// The record is free, and our candidate deleted (unless it was to be kept).
    Released { candidacy: Candidacy },
    /// The server refused.
    Denied { candidacy: Candidacy, request: Request, denial: Denial },
    /// The outcome is unknown: the request was applied, was not applied, or may still be.
    Unanswered { candidacy: Candidacy, request: Request },

    /// Another live participant has our id.
    IdTaken,

    /// Of hosts that vouch for one another.
    Vouching(Word),

    /// The fence command of the term with this token has ended. `is_fenced`: it succeeded in time.
    Fenced { token: i64, is_fenced: bool },
    /// A step of the term with this token has ended, and the last process of its tree is gone.
    StepEnded { step: StepKind, token: i64, outcome: StepOutcome },
    /// The guard of a check or of an idle step is gone: `--health-cmd`, say, or `--after-stop` cannot be run again. `stood_still`:
    /// the kernel killed it, because this host stood still until the time of the check was over.
    CheckGone { stood_still: bool },
    /// This reason for ineligibility begins, or (`on` false) ends.
    Ineligible { reason: Ineligibility, on: bool },

    /// The guard reported.
    Guard(Report),
    /// The guard process is gone.
    GuardGone,
    /// After the guard's death: the supervisor has killed and reaped every orphan of the tree.
    OrphansEnded,

    /// This process received SIGTERM, SIGINT or SIGQUIT.
    StopRequested,
    /// The terminal of this process was closed (SIGHUP): the command is told, or where none runs this process ends.
    HungUp,
    /// This process received another signal, which is for the command alone.
    SignalReceived { signal: i32 },
}
