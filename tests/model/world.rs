//! The state of the model: the lease record and the term in `ZooKeeper`, the hosts, and the writes on their way.
//! Every instant is kept as its distance from now, on the clock of the host that measures it; so the states are finite.
//!
//! Left out, because leaving it out only gives the adversary more: candidates and sessions (every host may believe at any
//! moment that it is first in line), requests that are refused for want of a candidate (they are lost), guards that
//! are slow to start (a tree may start at any moment of its lease) or quick to kill (a tree may end at any moment).
//!
//! Never: a step.

use crate::packed::{Packed, hashed, packed};

/// Places for hosts; a host whose lease is zero does not exist.
pub const HOSTS: usize = 3;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct World {
    /// `None`: an operator has deleted it.
    pub record: Option<Record>,
    /// The version before the present one: what a server that lags behind may still say.
    pub former: Former,
    /// What `term` says of the leases that may be running.
    pub term_lease: u8,
    pub hosts: [Host; HOSTS],
    /// Writes that nobody waits for any more, and that may still be applied. Sorted.
    pub late: Vec<Write>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Record {
    pub state: State,
    pub nonce: Nonce,
    /// The longest lease that may be running under it.
    pub lease: u8,
    /// Of *waiting*: whose *held* version the wait counts from. Else nobody.
    pub waits_for: Nonce,
    /// Its data version is 0: nobody has written it since it was created.
    pub untouched: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum State {
    Free,
    Held,
    /// Only under decision 6: taken over, and no tree was started since the last *held* version.
    Waiting,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Former {
    pub record: Record,
    pub condition: Condition,
    /// For each host: whether what its wait counts from is the same in the present record.
    pub counts: [bool; HOSTS],
}

/// A nonce, by who would know it again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Nonce {
    /// Nobody: an unknown holder, a process that is gone, or an earlier sending.
    Stranger,
    /// The one of this host's present tenure, or of the last take-over that it has sent.
    Of(u8),
    /// The one of this host's last term, whose wait was over and whose tree was empty.
    FinishedOf(u8),
}

impl Nonce {
    pub fn of(host: usize) -> Self {
        Self::Of(u8::try_from(host).unwrap())
    }

    pub fn finished_of(host: usize) -> Self {
        Self::FinishedOf(u8::try_from(host).unwrap())
    }
}

/// A data version of the record that somebody remembers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Version {
    Present,
    /// Of this record, and over: versions only grow.
    Past {
        zero: bool,
    },
    /// Of a record that was deleted since: the next one counts from 0, so that the number may come round again.
    Lost {
        zero: bool,
    },
}

/// What a write is conditional on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Condition {
    pub record: Version,
    /// Whether the term's version is the present one. `term` is never deleted: once past, always past.
    pub term: bool,
}

impl Condition {
    pub const PRESENT: Self = Self { record: Version::Present, term: true };
    /// Can never be fulfilled again.
    pub const PAST: Self = Self { record: Version::Past { zero: false }, term: false };
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Write {
    pub sort: Sort,
    pub puts: Record,
    pub condition: Condition,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Sort {
    /// Sets the term, too.
    TakeOver,
    Renewal,
    Release,
    /// Of a record that is missing: held by unknown.
    Creation,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Host {
    pub known: Option<Known>,
    pub role: Role,
    pub request: Option<Request>,
    /// The last take-over that was sent, when its answer did not come.
    pub sending: Option<Sending>,
}

/// The record as it was read last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known {
    pub record: Record,
    pub condition: Condition,
    /// Since when (o): the age of the first sight of what the wait counts from.
    pub age: u8,
    /// Whether the record still says what the wait counts from.
    pub counts: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    Following,
    Holding(Tenure),
    /// The tree is empty; the record is being freed, by the supervisor or by a releaser.
    Releasing(Condition),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tenure {
    /// How long the tree may live; `None`: no write was acknowledged yet that gives a lease (decision 6 only).
    pub kill_at: Option<u8>,
    /// How long the previous lease may still run.
    pub not_before: u8,
    /// The longest lease that may be running.
    pub longest: u8,
    pub condition: Condition,
    pub tree: bool,
}

/// The one request of a host that is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Once it is applied, its condition is what the answer tells of the versions.
    pub write: Write,
    pub applied: bool,
    pub sending: Sending,
}

/// The instants of one sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sending {
    pub age: u8,
    pub not_before: u8,
    /// Only of a variant that counts the wait from the answer.
    pub waits: bool,
}

packed!(Record: state 2, nonce 4, lease 7, waits_for 4, untouched 1);
packed!(Condition: record 3, term 1);
packed!(Former: record 18, condition 4, counts 3);
packed!(Write: sort 2, puts 18, condition 4);
packed!(Known: record 18, condition 4, age 8, counts 1);
packed!(Tenure: kill_at 9, not_before 8, longest 8, condition 4, tree 1);
packed!(Sending: age 8, not_before 8, waits 1);
packed!(Request: write 24, applied 1, sending 17);
hashed!(Host: known 32, role 32; request 43, sending 18);

impl Packed for State {
    fn pack(&self) -> u64 {
        *self as u64
    }
}

impl Packed for Sort {
    fn pack(&self) -> u64 {
        *self as u64
    }
}

impl Packed for Nonce {
    fn pack(&self) -> u64 {
        match self {
            Self::Stranger => 0,
            Self::Of(host) => host.pack() << 2 | 1,
            Self::FinishedOf(host) => host.pack() << 2 | 2,
        }
    }
}

impl Packed for Version {
    fn pack(&self) -> u64 {
        match self {
            Self::Present => 0,
            Self::Past { zero } => 1 + zero.pack(),
            Self::Lost { zero } => 3 + zero.pack(),
        }
    }
}

impl Packed for Role {
    fn pack(&self) -> u64 {
        match self {
            Self::Following => 0,
            Self::Holding(tenure) => tenure.pack() << 2 | 1,
            Self::Releasing(condition) => condition.pack() << 2 | 2,
        }
    }
}

impl Former {
    /// Nothing that anybody could use.
    pub const BLANK: Self = Self { record: Record::BLANK, condition: Condition::PAST, counts: [false; HOSTS] };

    /// Of a record that is about to be written or deleted.
    pub fn of(record: Record) -> Self {
        let record = Record { untouched: false, ..record };
        Self { record, condition: Condition::PRESENT, counts: [true; HOSTS] }
    }
}

impl Record {
    pub const BLANK: Self =
        Self { state: State::Free, nonce: Nonce::Stranger, lease: 0, waits_for: Nonce::Stranger, untouched: false };

    /// Whose version under which a tree may live was the last.
    pub fn last_run(self) -> Nonce {
        if self.state == State::Waiting { self.waits_for } else { self.nonce }
    }
}

impl World {
    /// A new base: free, and nobody knows it.
    pub fn new() -> Self {
        let host = Host { known: None, role: Role::Following, request: None, sending: None };
        let record = Record { untouched: true, ..Record::BLANK };
        Self { record: Some(record), former: Former::BLANK, term_lease: 0, hosts: [host; HOSTS], late: Vec::new() }
    }

    /// Everything that anybody remembers of versions.
    pub fn conditions(&mut self) -> impl Iterator<Item = &mut Condition> {
        let hosts = self.hosts.iter_mut().flat_map(|host| {
            let held = match &mut host.role {
                Role::Following => None,
                Role::Holding(tenure) => Some(&mut tenure.condition),
                Role::Releasing(condition) => Some(condition),
            };
            let known = host.known.as_mut().map(|known| &mut known.condition);
            let asked = host.request.as_mut().map(|request| &mut request.write.condition);
            held.into_iter().chain(known).chain(asked)
        });
        hosts.chain(self.late.iter_mut().map(|write| &mut write.condition)).chain([&mut self.former.condition])
    }

    /// Everything that says whose a record is.
    fn nonces(&mut self) -> impl Iterator<Item = &mut Nonce> {
        self.records().flat_map(|record| [&mut record.nonce, &mut record.waits_for])
    }

    pub fn records(&mut self) -> impl Iterator<Item = &mut Record> {
        let hosts = self.hosts.iter_mut().flat_map(|host| {
            let known = host.known.as_mut().map(|known| &mut known.record);
            known.into_iter().chain(host.request.as_mut().map(|request| &mut request.write.puts))
        });
        let late = self.late.iter_mut().map(|write| &mut write.puts);
        hosts.chain(late).chain(self.record.iter_mut()).chain([&mut self.former.record])
    }

    /// From now on `nonce` is known as `now`.
    pub fn rename(&mut self, nonce: Nonce, now: Nonce) {
        self.nonces().filter(|found| **found == nonce).for_each(|found| *found = now);
    }

    pub fn has(&mut self, nonce: Nonce) -> bool {
        self.nonces().any(|found| *found == nonce)
    }

    pub fn tenure(&self, host: usize) -> Option<Tenure> {
        match self.hosts[host].role {
            Role::Holding(tenure) => Some(tenure),
            Role::Following | Role::Releasing(_) => None,
        }
    }

    pub fn is_live(&self, host: usize) -> bool {
        self.tenure(host).is_some_and(|tenure| tenure.tree)
    }
}
