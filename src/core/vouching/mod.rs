//! Vouching: while `ZooKeeper` is away, every host that could take over promises the leader, directly and for one lease
//! at a time, to hold back; so the leader's lease goes on (docs/decisions/0029).
//!
//! Nothing here reads a clock or sends anything. Hosts are told apart by *instance*: the random bits that a process draws
//! when it starts ([`Nonce::instance`](super::event::Nonce)).
mod promise;
mod roster;
mod vouchers;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use promise::Promise;
pub use roster::Roster;
pub use vouchers::{Needed, Vouchers};

/// The longest F, `--vouch-limit`; also that of a record that says more.
pub const LIMIT_LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The shortest F, in leases: an outage is noticed late, and a promise takes time.
pub const LIMIT_LEASES: u32 = 2;

/// What a leader asks a host: not to take over for one lease from when it hears this.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Question {
    /// The instance that asks.
    pub leader: u64,
    /// The token of its term.
    pub token: i64,
    /// Grows with each question of a term, whoever is asked.
    pub seq: u64,
    /// L of the leader: how long the promise binds, plus the margin for drift.
    pub lease: Duration,
}

/// A yes or a no to one question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The instance that answers.
    pub member: u64,
    pub leader: u64,
    pub token: i64,
    pub seq: u64,
    pub promises: bool,
}

/// What is heard of other hosts, directly or from their znodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    /// A leader asks for a promise.
    Asked(Question),
    /// A host answers a question of ours.
    Answered(Reply),
    /// This instance has ended, and takes nothing over.
    Left { instance: u64 },
    /// The hosts that could take over and can be asked, the first in line first; ours may be among them.
    Line(Roster),
}

/// What a lease record says about vouching.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Vouching {
    /// F, `--vouch-limit` of the holder: how long after this write the command may run on promises.
    pub limit: Duration,
    /// Whose promises the holder needs.
    pub roster: Roster,
}
