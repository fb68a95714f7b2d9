//! The state of the model: the lease record in `ZooKeeper`, the hosts with their promises, and what is on its way.
//! Every instant is kept as its distance from now, on the clock of the host that measures it; so the states are finite.
//!
//! Left out, because leaving it out only gives the adversary more: candidates, sessions and members (every host may believe at
//! any moment that it is first in line, a roster may name anyone, and each renewal may be that of a new session), and the
//! reasons for which a host does not promise (a question may be lost).
//!
//! Never: a step.

use std::hash::{Hash, Hasher};
use std::ops::{BitOr, BitOrAssign};

use crate::packed::{Packed, hashed, packed, word};
use crate::world::{Condition, HOSTS};

/// Places for writes that nobody waits for.
pub const LATE: usize = 2;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct World {
    /// `None`: an operator has deleted it.
    pub record: Option<Record>,
    /// The version before the present one: what a server that lags behind may still say. Only if servers lag.
    pub former: Option<Former>,
    /// The limit that `term` tells of. Only if records are deleted.
    pub term_limit: u8,
    pub hosts: [Host; HOSTS],
    /// Sorted.
    pub late: [Option<Write>; LATE],
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Record {
    pub free: bool,
    pub holder: Holder,
    /// `vouch_ms` in units; zero: it has none.
    pub limit: u8,
    pub roster: Roster,
    /// Its data version is 0. Only if records are deleted.
    pub untouched: bool,
}

/// Whose a record is, by who would know its nonce again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Holder {
    Nobody,
    /// By the nonce of this host's present tenure, or of the last take-over that it has sent.
    Host(u8),
}

/// Instances: the present one of each host, and those that are no more.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Debug)]
pub struct Roster(u8);

impl Roster {
    pub const EMPTY: Self = Self(0);
    /// An instance that ended without a word: nobody will ever answer for it.
    pub const DEAD: Self = Self(1 << HOSTS);
    /// An instance that ended and said so; its `gone` may yet be heard.
    pub const GONE: Self = Self(1 << (HOSTS + 1));

    pub fn of(host: usize) -> Self {
        Self(1 << host)
    }

    pub fn has(self, host: usize) -> bool {
        self.0 >> host & 1 == 1
    }

    pub fn includes(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Those that are no more.
    pub fn ended(self) -> Self {
        Self(self.0 & (Self::DEAD.0 | Self::GONE.0))
    }

    /// The instance of this host is no more: it counts among `ended`.
    pub fn ends(&mut self, host: usize, ended: Self) {
        if self.has(host) {
            *self = self.without(Self::of(host)) | ended;
        }
    }

    /// Whether it is in it, how many others are, and what has ended.
    pub fn as_seen_by(self, host: usize) -> Self {
        let others = (0..HOSTS).filter(|&other| other != host && self.has(other)).fold(0, |count, _| count + 1);
        Self(u8::from(self.has(host)) | others << 1) | self.ended()
    }

    /// Each host under the name that it gets.
    pub fn renamed(self, name: impl Fn(usize) -> usize) -> Self {
        (0..HOSTS).filter(|&host| self.has(host)).map(|host| Self::of(name(host))).fold(self.ended(), BitOr::bitor)
    }
}

impl BitOr for Roster {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Roster {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Former {
    pub record: Record,
    pub condition: Condition,
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
    /// This instance has said that it is gone; what is left is to restart.
    pub left: bool,
    pub known: Option<Known>,
    /// `promised_until`: how long it will not take over.
    pub promised: u8,
    pub role: Role,
    pub request: Option<Request>,
    /// The last take-over that was sent, when its answer did not come.
    pub sending: Option<Sending>,
    /// It was in a roster once. Only of a mistake.
    pub was_member: bool,
}

/// The record as it was read last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known {
    pub record: Record,
    pub condition: Condition,
    /// Since the first sight of this version.
    pub age: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    Following,
    Leading(Tenure),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tenure {
    /// How long the tree may live.
    pub kill_at: u8,
    /// Since the sending of the last acknowledged write.
    pub acked: u8,
    /// How long the own wait goes on. Only of a mistake.
    pub not_before: u8,
    pub condition: Condition,
    pub needed: Roster,
    pub tree: bool,
    /// The questions of this term that may yet arrive somewhere. Only if datagrams are late.
    pub questions: Ages,
    /// What came of them, for each host.
    pub answers: [Answers; HOSTS],
    /// The same of the instances in `needed` that have ended: of the one that was asked last.
    pub ended: u8,
    /// Hosts that are taken for gone. Only of a mistake.
    pub gone: Roster,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answers {
    /// Since the sending of the newest question that was answered with yes.
    pub vouched: u8,
    /// The questions that it said yes to, whose answers may yet arrive. Only if datagrams are late.
    pub under_way: Ages,
}

/// The ages of datagrams that may arrive: late, twice, in any order, or never.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Ages(u8);

impl Ages {
    pub const NONE: Self = Self(0);

    pub fn with(self, age: u8) -> Self {
        Self(self.0 | 1 << age)
    }

    pub fn has(self, age: u8) -> bool {
        self.0 >> age & 1 == 1
    }

    pub fn each(self) -> impl Iterator<Item = u8> {
        (0..8).filter(move |&age| self.has(age))
    }

    pub fn newest(self) -> Option<u8> {
        self.each().next()
    }

    /// Those that are younger; from that age on, they are worth nothing.
    pub fn below(self, age: u8) -> Self {
        if age >= 8 { self } else { Self(self.0 & ((1 << age) - 1)) }
    }

    pub fn older_by(self, by: u8) -> Self {
        Self(self.0.checked_shl(u32::from(by)).unwrap_or_default())
    }
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
    /// Only of a mistake.
    pub not_before: u8,
}

packed!(Record: free 1, holder 3, limit 4, roster 8, untouched 1);
packed!(Former: record 17, condition 4);
packed!(Write: sort 2, puts 17, condition 4);
packed!(Known: record 17, condition 4, age 8);
packed!(Sending: age 8, not_before 8);
packed!(Request: write 23, applied 1, sending 16);
packed!(Answers: vouched 8, under_way 8);
hashed!(
    Tenure: kill_at 8, acked 8, not_before 8, condition 4, needed 8, tree 1, questions 8, ended 8, gone 8;
    answers 48
);

impl Hash for Host {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u64(word!(self, left 1, was_member 1, promised 8, known 30));
        hasher.write_u64(word!(self, request 41, sending 17));
        self.role.hash(hasher);
    }
}

impl Packed for [Answers; HOSTS] {
    fn pack(&self) -> u64 {
        self.iter().fold(0, |word, answers| word << 16 | answers.pack())
    }
}

impl Packed for Holder {
    fn pack(&self) -> u64 {
        match self {
            Self::Nobody => 0,
            Self::Host(host) => 1 + host.pack(),
        }
    }
}

impl Packed for Sort {
    fn pack(&self) -> u64 {
        *self as u64
    }
}

impl Packed for Roster {
    fn pack(&self) -> u64 {
        self.0.pack()
    }
}

impl Packed for Ages {
    fn pack(&self) -> u64 {
        self.0.pack()
    }
}

impl Record {
    pub const FREE: Self =
        Self { free: true, holder: Holder::Nobody, limit: 0, roster: Roster::EMPTY, untouched: false };

    pub fn is_of(self, host: usize) -> bool {
        matches!(self.holder, Holder::Host(holder) if usize::from(holder) == host)
    }
}

impl Holder {
    pub fn host(host: usize) -> Self {
        Self::Host(u8::try_from(host).unwrap())
    }
}

impl Host {
    pub const NEW: Self = Self {
        left: false,
        known: None,
        promised: 0,
        role: Role::Following,
        request: None,
        sending: None,
        was_member: false,
    };

    pub fn tenure(&mut self) -> Option<&mut Tenure> {
        match &mut self.role {
            Role::Following => None,
            Role::Leading(tenure) => Some(tenure),
        }
    }
}

impl World {
    /// A new base: free, and nobody knows it.
    pub fn new(untouched: bool) -> Self {
        let record = Some(Record { untouched, ..Record::FREE });
        Self { record, former: None, term_limit: 0, hosts: [Host::NEW; HOSTS], late: [None; LATE] }
    }

    /// Everything that anybody remembers of versions.
    pub fn conditions(&mut self) -> impl Iterator<Item = &mut Condition> {
        let hosts = self.hosts.iter_mut().flat_map(|host| {
            let held = match &mut host.role {
                Role::Following => None,
                Role::Leading(tenure) => Some(&mut tenure.condition),
            };
            let known = host.known.as_mut().map(|known| &mut known.condition);
            held.into_iter().chain(known).chain(host.request.as_mut().map(|request| &mut request.write.condition))
        });
        let late = self.late.iter_mut().flatten().map(|write| &mut write.condition);
        hosts.chain(late).chain(self.former.as_mut().map(|former| &mut former.condition))
    }

    pub fn records(&mut self) -> impl Iterator<Item = &mut Record> {
        let hosts = self.hosts.iter_mut().flat_map(|host| {
            let known = host.known.as_mut().map(|known| &mut known.record);
            known.into_iter().chain(host.request.as_mut().map(|request| &mut request.write.puts))
        });
        let late = self.late.iter_mut().flatten().map(|write| &mut write.puts);
        hosts.chain(late).chain(self.record.as_mut()).chain(self.former.as_mut().map(|former| &mut former.record))
    }

    /// Everything that names instances.
    pub fn rosters(&mut self) -> impl Iterator<Item = &mut Roster> {
        let needed = self.hosts.iter_mut().flat_map(|host| {
            let known = host.known.as_mut().map(|known| &mut known.record.roster);
            let request = host.request.as_mut().map(|request| &mut request.write.puts.roster);
            let needed = match &mut host.role {
                Role::Following => None,
                Role::Leading(tenure) => Some(&mut tenure.needed),
            };
            known.into_iter().chain(request).chain(needed)
        });
        let late = self.late.iter_mut().flatten().map(|write| &mut write.puts.roster);
        let record = self.record.as_mut().map(|record| &mut record.roster);
        needed.chain(late).chain(record).chain(self.former.as_mut().map(|former| &mut former.record.roster))
    }

    /// Nobody knows the nonce of this host's last term or take-over any more.
    pub fn forget(&mut self, host: usize) {
        self.records().filter(|record| record.is_of(host)).for_each(|record| record.holder = Holder::Nobody);
    }

    pub fn tenure(&self, host: usize) -> Option<Tenure> {
        match self.hosts[host].role {
            Role::Following => None,
            Role::Leading(tenure) => Some(tenure),
        }
    }

    pub fn is_live(&self, host: usize) -> bool {
        self.tenure(host).is_some_and(|tenure| tenure.tree)
    }

    pub fn has_room(&self, late_writes: usize) -> bool {
        self.late.iter().flatten().count() < late_writes.min(LATE)
    }

    /// Nobody waits for it any more.
    pub fn add_late(&mut self, write: Write) {
        if let Some(place) = self.late.iter_mut().find(|place| place.is_none()) {
            *place = Some(write);
        }
        self.late.sort_unstable();
    }
}
