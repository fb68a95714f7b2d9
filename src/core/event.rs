//! What the supervisor's machine is told: past-tense facts, each with the id of the question it answers.

use std::time::Duration;

use super::order::{CandidateName, Report, Slot};
use super::time::Timestamp;

/// One `ZooKeeper` session of this process: 1, 2, 3, … Not the server's session id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SessionNumber(pub u32);

/// One try at the election: one candidate znode. A new one never answers for an older one (T51).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Candidacy(pub u32);

/// Marks a record as ours: this process, and one *sending* of a take-over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Nonce {
    /// Drawn at random when the process starts.
    pub instance: u64,
    /// Counts the take-overs that this process has sent.
    pub sending: u64,
}

impl Nonce {
    /// What an unreadable or foreign record carries.
    pub const UNKNOWN: Self = Self { instance: 0, sending: 0 };
}

/// Where our candidate stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// It may take over the record that it is shown: with several leaders, one that nobody before it will take.
    First,
    /// Next in line: watches and re-reads the lease record, so that the wait is nearly over when its turn comes.
    Next,
    /// So many candidates stand before ours (two or more).
    Behind(u32),
}

/// The last version of the record under which a command may have run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LastRun {
    pub mzxid: i64,
    /// Whose it was; [`Nonce::UNKNOWN`] if that is not said.
    pub nonce: Nonce,
}

/// The lease record as it was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// Whose record it is.
    pub slot: Slot,
    /// Data version: what a conditional write names.
    pub version: i32,
    /// Zxid of its last write: tells one version from every other, across deletion too.
    pub mzxid: i64,
    /// `false`: the last holder released it with an empty tree.
    pub held: bool,
    /// It says that its holder waits for an earlier holder's lease to end. `None`: a command may run under this very
    /// version, or it is free.
    pub waiting_on: Option<LastRun>,
    /// The lease that may still be running under it: the earlier holder's, while the present one waits.
    pub lease: Duration,
    pub nonce: Nonce,
    /// Its guarantee, recipe and number of leaders are ours.
    pub agrees: bool,
}

impl Record {
    /// What a successor's wait counts from. A holder that waits does not change it, so that one wait is enough, however many
    /// successors die in it.
    pub fn last_run(&self) -> LastRun {
        self.waiting_on.unwrap_or(LastRun { mzxid: self.mzxid, nonce: self.nonce })
    }

    /// The mzxid of the last version under which a command may have run.
    pub fn last_run_under(&self) -> i64 {
        self.last_run().mzxid
    }
}

/// One consistent enough look at the election: `term` was read before `record`, on one session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct View {
    pub place: Place,
    pub candidate: CandidateName,
    /// The server's id of the session that owns the candidate.
    pub session_id: i64,
    /// Data version of the term of the record's slot.
    pub term_version: i32,
    /// The record to take over, our own, or what tells best that the present leaders live.
    pub record: Record,
    /// We are next in line, and the priority of the one leader is lower than ours.
    pub outranks: bool,
    /// Another contender asks us to yield.
    pub is_revoked: bool,
}

/// A request of ours to `ZooKeeper`. At most one is under way.
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

/// Why this process may not lead now.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ineligibility {
    /// The health command says so: leave the line, or resign.
    Unhealthy,
    /// The eligibility command says so: the same.
    Ineligible,
    /// An operator wants nobody to run the command: everyone keeps his place.
    Disabled,
    /// An operator moves the leadership: the leader stops and stands at the end of the queue, others make room.
    HandingOver,
}

/// A definite "no" of the server.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Denial {
    /// The record or the term had another version, or was gone. Nothing was written.
    Conflict,
    /// Our candidate does not exist (any more). Nothing was written.
    CandidateGone,
    /// It will not be done for us, on these grounds.
    Forbidden(Grounds),
}

/// On which grounds the servers refuse us for good: somebody has to change something.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Grounds {
    /// Bad credentials, or none where some are demanded.
    Credentials,
    /// There is no login by Kerberos.
    Ticket,
    /// There is no TLS with any server, for a reason that stays.
    Tls,
    /// An ACL lacks a right for us.
    Right,
    /// The ACL that `--acl` gives to new znodes.
    Acl,
    /// The server is too old to know a request.
    TooOld,
}

/// A fact for the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// Time passed; perhaps a deadline was reached.
    Ticked,
    /// BOOTTIME − MONOTONIC jumped: the host was suspended, and the lease is forfeit.
    ClockJumped,

    /// A new session was established; `negotiated` is the server's T.
    Connected { session: SessionNumber, negotiated: Duration },
    /// This try to open a session failed; the ensemble could not be reached.
    Unreachable { session: SessionNumber },
    /// No server takes us.
    Rejected { session: SessionNumber, grounds: Grounds },
    /// The client says that the connection is gone. A hint.
    ContactLost { session: SessionNumber },
    /// The client says that the connection is back, same session. A hint.
    ContactRestored { session: SessionNumber },
    /// The session is over (expired or closed). A hint, too: it proves nothing about the lease.
    SessionOver { session: SessionNumber },

    /// `Enter` or `Look` was answered.
    Seen { candidacy: Candidacy, view: View },
    /// `Observe` was answered; the term was read before the record.
    Observed { candidacy: Candidacy, record: Record, term_version: i32 },
    /// A watch fired on one of the candidates before ours, or on our own.
    LineChanged { candidacy: Candidacy },
    /// A watch fired on the lease record.
    RecordChanged { candidacy: Candidacy },
    /// The take-over that was sent at `sent_at` was committed.
    TookOver { candidacy: Candidacy, nonce: Nonce, sent_at: Timestamp, version: i32, token: i64, term: i32 },
    /// The renewal that was sent at `sent_at` was committed.
    Renewed { candidacy: Candidacy, sent_at: Timestamp, version: i32 },
    /// `Mark` was answered: the marker is ours (`is_fresh`), or of a run that counts, so that ours would be a duplicate.
    Marked { candidacy: Candidacy, is_fresh: bool },
    /// The record is free and our candidate deleted (unless it was to be kept).
    Released { candidacy: Candidacy },
    /// The server said no.
    Denied { candidacy: Candidacy, request: Request, denial: Denial },
    /// The outcome is unknown: applied, not applied, or still to be applied.
    Unanswered { candidacy: Candidacy, request: Request },

    /// Another live participant has our id.
    IdTaken,

    /// The fence command of the term with this token has ended: well, or with a failure or out of time.
    Fenced { token: i64, is_fenced: bool },
    /// From now on we may not lead for this reason, or (`on` false) not for this one.
    Barred { bar: Ineligibility, on: bool },

    /// The guard reported.
    Guard(Report),
    /// The guard process is gone.
    GuardGone,
    /// After the guard's death: every orphan of the tree was killed and reaped by the supervisor.
    OrphansEnded,

    /// SIGTERM, SIGINT or SIGQUIT to us.
    StopRequested,
    /// Another signal to us, which is the command's.
    SignalReceived { signal: i32 },
}
