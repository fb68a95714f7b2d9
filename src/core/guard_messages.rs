//! The messages between the two machines: orders from the supervisor to the guard, reports from the guard.
//!
//! Every order about a command names its [`RunId`]; one with another id changes nothing (I6). Deadlines are absolute
//! instants, so that a late message can only shorten a run.

use std::borrow::Cow;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::time::Timestamp;

/// One start of the command by this supervisor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct RunId(pub u64);

/// How long the tree may live; both instants are on the holder's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Deadlines {
    /// The guard sends the stop signal to the command then, unless a renewal has moved this.
    pub stop_at: Timestamp,
    /// The guard sends SIGKILL to the whole tree then, unless a renewal has moved this. Never before `stop_at`.
    pub kill_at: Timestamp,
}

/// How the previous term ended, according to its record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum Takeover {
    /// There was no previous term.
    #[default]
    First,
    /// The record was free: the last holder had seen its tree empty.
    Clean,
    /// The record was held, and its lease had to be waited for.
    Unclean,
}

impl Takeover {
    /// For programs: stable, to be matched on.
    pub const fn word(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Clean => "clean",
            Self::Unclean => "unclean",
        }
    }
}

/// One of the commands that may run at the same time (`--leaders`): 0, 1, 2, … Each has its own lease record and term;
/// with one leader there is only slot 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Slot(pub u16);

/// The name of a candidate znode, without its directory: at most [`CandidateName::CAPACITY`] bytes, no NUL.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CandidateName {
    bytes: [u8; Self::CAPACITY],
    length: u8,
}

impl CandidateName {
    pub const CAPACITY: usize = 96;
    pub const EMPTY: Self = Self { bytes: [0; Self::CAPACITY], length: 0 };

    /// `None` if the name is too long or contains a NUL byte.
    pub fn new(name: &str) -> Option<Self> {
        let mut bytes = [0; Self::CAPACITY];
        bytes.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        let length = u8::try_from(name.len()).ok()?;
        (!name.as_bytes().contains(&0)).then_some(Self { bytes, length })
    }

    pub fn as_str(&self) -> &str {
        let name = self.bytes.get(..usize::from(self.length)).unwrap_or_default();
        std::str::from_utf8(name).unwrap_or_default()
    }
}

impl Default for CandidateName {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Serialize for CandidateName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_str().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CandidateName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        Self::new(&name).ok_or_else(|| D::Error::custom("no name of a candidate"))
    }
}

impl std::fmt::Debug for CandidateName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The term as the command sees it in its environment (`ZK_LEADER_*`). The default names no term: an auxiliary command
/// runs without one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Grant {
    /// The fencing token: the mzxid of `<base>/term`. Grows from term to term.
    pub token: i64,
    /// The data version of `<base>/term`: counts the terms.
    pub term: i32,
    /// The `ZooKeeper` session that holds the candidate.
    pub session: i64,
    pub takeover: Takeover,
    pub slot: Slot,
    pub candidate: CandidateName,
}

/// An order from the supervisor to the guard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Start the command, unless `deadlines.stop_at` has passed. Refused while a tree lives (I3).
    Start { run: RunId, deadlines: Deadlines, grant: Grant },
    /// A renewal was acknowledged: move both deadlines. Ignored if `kill_at` would come closer, if `kill_at` has
    /// passed, and once a stop for lack of a lease has begun (I5).
    Extend { run: RunId, deadlines: Deadlines },
    /// Send the stop signal to the command now (once, however often this is ordered) and SIGKILL to the whole tree at
    /// `by`, or at `kill_at` if that comes sooner. A later `Stop` can only bring `by` closer.
    Stop { run: RunId, by: Timestamp },
    /// Send SIGKILL to the whole tree now.
    Kill { run: RunId },
    /// Forward a signal to the command.
    Signal { run: RunId, signal: i32 },
    /// Freeze the whole tree.
    Freeze { run: RunId },
    /// Let a frozen tree run again.
    Thaw { run: RunId },
    /// Contact is lost; the deadlines stay. Only the lease file shows it.
    Pause { run: RunId },
    /// Contact is back.
    Resume { run: RunId },
    /// The term of this run, whose tree is gone, is over: the guard need not release it any more.
    Retire { run: RunId },
}

/// Why a tree ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cause {
    ItsOwn,
    /// The supervisor ordered it (`Stop` or `Kill`).
    Ordered,
    /// `stop_at` or `kill_at` was not moved in time, or the clock jumped.
    Deadline,
    /// The supervisor died.
    SupervisorGone,
}

/// How the command itself ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum ChildStatus {
    Exited(u8),
    /// Killed by this signal.
    Signaled(u8),
    /// It never ran: the `errno` of `execve(2)`, or of an earlier step.
    NotExecuted(i32),
}

impl ChildStatus {
    /// As in a shell: the exit status, or 128 plus the signal. `None`: it never ran.
    pub const fn as_in_a_shell(self) -> Option<u8> {
        match self {
            Self::Exited(code) => Some(code),
            Self::Signaled(signal) => Some(128_u8.saturating_add(signal)),
            Self::NotExecuted(_) => None,
        }
    }

    /// It never ran, for a reason that may pass by itself: another start may succeed.
    pub fn failed_for_now(self) -> bool {
        let Self::NotExecuted(errno) = self else { return false };
        matches!(errno, EIO | EAGAIN | ENOMEM | EBUSY | ENFILE | EMFILE | ETXTBSY | ENOSPC | ESTALE)
    }
}

// errno(3)
const EIO: i32 = 5;
/// Too many processes.
const EAGAIN: i32 = 11;
const ENOMEM: i32 = 12;
/// The cgroup shares out controllers.
const EBUSY: i32 = 16;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
/// The program is just being written.
const ETXTBSY: i32 = 26;
const ENOSPC: i32 = 28;
/// The working directory was removed.
const ESTALE: i32 = if cfg!(any(target_arch = "mips", target_arch = "mips64")) { 151 } else { 116 };

/// A report from the guard to the supervisor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Report {
    /// The guard took the start order; from now on it keeps the deadlines, however long `execve(2)` takes.
    Taken { run: RunId },
    /// `execve(2)` succeeded; `pid` as seen from the supervisor.
    Started { run: RunId, pid: i32 },
    /// The guard sent the stop signal by itself at `stop_at`.
    Stopping { run: RunId },
    /// The command ended; the rest of its tree is being killed.
    CommandEnded { run: RunId, status: ChildStatus },
    /// The last process of the tree is gone, and was reaped.
    TreeEnded { run: RunId, status: ChildStatus, cause: Cause },
    /// Processes are still alive some time after SIGKILL (uninterruptible sleep?). Repeated while that lasts.
    Stuck { run: RunId, survivors: u32 },
}
