//! The ACLs of the znodes that we create: one for all of them, another for their ancestors.
//!
//! The right to delete a znode comes from its parent's ACL (`PrepRequestProcessor`), so the base and everything below
//! it has the same ACL. An ancestor is shared with other elections: everyone may read it and create below it; the rest
//! is for the identities of the ACL.
//!
//! No other file names the client library's `Acls`.

use std::fmt;

pub use zookeeper_client::CreateMode;
use zookeeper_client::{Acl as Line, Acls, AuthId, CreateOptions, Permission};

/// The server puts this in the place of a digest's hash if the client may not change the ACL.
const MASKED: &str = "x";

/// A set of `ZooKeeper`'s five rights.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rights(Permission);

/// All but to read.
const CHANGES: [Permission; 4] = [Permission::CREATE, Permission::DELETE, Permission::WRITE, Permission::ADMIN];

/// The letters and their order are those of `zkCli.sh`.
const LETTERS: [(char, Permission); 5] = [
    ('c', Permission::CREATE),
    ('d', Permission::DELETE),
    ('r', Permission::READ),
    ('w', Permission::WRITE),
    ('a', Permission::ADMIN),
];

impl Rights {
    pub const ALL: Self = Self(Permission::ALL);

    /// From letters of `cdrwa`, at least one; `None` for any other letter.
    pub fn of(letters: &str) -> Option<Self> {
        let right = |letter| LETTERS.iter().find(|(known, _)| *known == letter).map(|(_, right)| *right);
        let rights = letters.chars().map(right).collect::<Option<Vec<_>>>()?;
        rights.into_iter().reduce(|one, other| one | other).map(Self)
    }

    /// Whether they include read, write, create and delete, which a participant needs.
    pub fn can_take_part(self) -> bool {
        [Permission::CREATE, Permission::DELETE, Permission::READ, Permission::WRITE].iter().all(|one| self.0.has(*one))
    }

    pub fn may_change_anything(self) -> bool {
        CHANGES.iter().any(|one| self.0.has(*one))
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        LETTERS.iter().filter(|(_, right)| self.0.has(*right)).try_for_each(|(letter, _)| write!(f, "{letter}"))
    }
}

/// One entry: an identity and its rights.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry(Line);

impl Entry {
    /// `digest`, `user:hash`; `sasl`, `user`.
    pub fn new(scheme: &str, id: &str, rights: Rights) -> Self {
        Self(Line::new(rights.0, AuthId::new(scheme, id)))
    }

    /// All identities of the session that creates; it must have one.
    pub fn creator() -> Self {
        Self(Line::new(Permission::ALL, AuthId::authed()))
    }

    pub fn anyone(rights: Rights) -> Self {
        Self(Line::new(rights.0, AuthId::anyone()))
    }

    pub(super) fn all_of(lines: Vec<Line>) -> Vec<Self> {
        lines.into_iter().map(Self).collect()
    }

    /// `world`, `auth`, `digest`, `sasl`, `x509` or `ip`.
    pub fn scheme(&self) -> &str {
        self.0.scheme()
    }

    /// As the server stores it, with the hash of a digest. Not for output.
    pub fn raw_id(&self) -> &str {
        self.0.id()
    }

    pub fn rights(&self) -> Rights {
        Rights(self.0.permission())
    }

    pub fn is_anyone(&self) -> bool {
        self.0.scheme() == "world"
    }

    /// Whether both give the same identity the same changes. Compares without the hash of a digest: the server may have masked it.
    fn is_like(&self, other: &Self) -> bool {
        let changes = |entry: &Self| CHANGES.map(|one| entry.0.permission().has(one));
        (changes(self), self.0.scheme(), self.id()) == (changes(other), other.0.scheme(), other.id())
    }

    fn is_masked(&self) -> bool {
        self.0.scheme() == "digest" && self.0.id().rsplit(':').next() == Some(MASKED)
    }

    /// Without a hash.
    fn id(&self) -> &str {
        match self.0.scheme() {
            "digest" => self.0.id().rsplit_once(':').map_or("", |(user, _)| user),
            _ => self.0.id(),
        }
    }
}

/// As in `zkCli.sh`, without a hash.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.0.scheme(), self.id(), self.rights())
    }
}

/// The ACL of our znodes, and that of their ancestors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Acl {
    own: Vec<Line>,
    ancestors: Vec<Line>,
}

impl Acl {
    /// Everyone may do everything.
    pub fn open() -> Self {
        Self::of(vec![Entry::anyone(Rights::ALL)])
    }

    /// An ancestor's ACL adds what everyone may do there.
    pub fn of(entries: Vec<Entry>) -> Self {
        let is_open = entries.iter().any(|entry| entry.is_anyone() && entry.rights() == Rights::ALL);
        let shared = (!is_open).then(|| Entry::anyone(Rights(Permission::CREATE | Permission::READ)));
        let acls = |entries: Vec<Entry>| entries.into_iter().map(|entry| entry.0).collect();
        Self { own: acls(entries.clone()), ancestors: acls(entries.into_iter().chain(shared).collect()) }
    }

    /// The ACL of a znode that exists. `None`: the server has masked a part of it.
    pub(crate) fn of_znode(entries: Vec<Entry>) -> Option<Self> {
        (!entries.iter().any(Entry::is_masked)).then(|| Self::of(entries))
    }

    /// Where the entry for everyone allows more, they may only read: for what stands below a shared ancestor and is not
    /// for everyone to create. An open one stays open.
    #[must_use]
    pub(crate) fn read_by_all(self) -> Self {
        if self.is_open() {
            return self;
        }
        let entries = Entry::all_of(self.own).into_iter();
        let closed = |entry: Entry| if entry.is_anyone() { Entry::anyone(Rights(Permission::READ)) } else { entry };
        Self::of(entries.map(closed).collect())
    }

    /// For what only those may read that may write; where everyone may do everything, it is as open.
    pub(crate) fn for_writers(&self) -> Create {
        let writers = self.own.iter().cloned().map(Entry).filter(|entry| entry.rights().0.has(Permission::WRITE));
        let acl = writers.map(|Entry(line)| Line::new(line.permission() | Permission::READ, line.auth_id().clone()));
        Create { mode: CreateMode::Persistent, acl: acl.collect() }
    }

    pub fn is_open(&self) -> bool {
        *self == Self::open()
    }

    pub fn ephemeral(&self) -> Create {
        self.own(CreateMode::Ephemeral)
    }

    pub fn ephemeral_sequential(&self) -> Create {
        self.own(CreateMode::EphemeralSequential)
    }

    /// For znodes that outlive every session.
    pub(crate) fn persistent(&self) -> Create {
        self.own(CreateMode::Persistent)
    }

    /// For znodes that other elections may share.
    pub(crate) fn ancestor(&self) -> Create {
        Create { mode: CreateMode::Persistent, acl: self.ancestors.clone() }
    }

    fn own(&self, mode: CreateMode) -> Create {
        Create { mode, acl: self.own.clone() }
    }
}

/// Kind and ACL of a znode to create.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Create {
    pub mode: CreateMode,
    acl: Vec<Line>,
}

impl Create {
    pub fn acl(&self) -> impl Iterator<Item = Entry> + '_ {
        self.acl.iter().cloned().map(Entry)
    }

    pub(super) fn options(&self) -> CreateOptions<'_> {
        self.mode.with_acls(Acls::new(&self.acl))
    }
}

/// The entries of `found` that may change a znode and have no right to by `expected`.
pub fn intruders<'a>(found: &'a [Entry], expected: &[Entry]) -> Vec<&'a Entry> {
    let is_expected = |entry: &Entry| expected.iter().any(|known| known.is_like(entry));
    found.iter().filter(|entry| entry.rights().may_change_anything() && !is_expected(entry)).collect()
}

/// The entries of `found` that may read a znode which is only for those who may write it, and may not write it.
pub fn mere_readers(found: &[Entry]) -> Vec<&Entry> {
    let is_one = |rights: Rights| rights.0.has(Permission::READ) && !rights.0.has(Permission::WRITE);
    found.iter().filter(|entry| is_one(entry.rights())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(letters: &str) -> Rights {
        Rights::of(letters).unwrap()
    }

    #[test]
    fn rights_are_the_letters_of_zkcli() {
        assert_eq!(rights("adwrc"), Rights::ALL);
        assert_eq!((rights("rc").to_string(), Rights::ALL.to_string()), ("cr".to_owned(), "cdrwa".to_owned()));
        for wrong in ["", "x", "R", "r w", "rwß"] {
            assert_eq!(Rights::of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn who_takes_part_needs_all_but_admin() {
        assert!(rights("crwd").can_take_part() && Rights::ALL.can_take_part());
        for missing in ["rwd", "cwd", "crd", "crw"] {
            assert!(!rights(missing).can_take_part(), "{missing}");
        }
    }

    #[test]
    fn what_stands_below_an_ancestor_everyone_may_read_and_no_more_unless_it_is_open() {
        let of_root = |own: Vec<Entry>| Acl::of_znode(Acl::of(own).ancestor().acl().collect()).unwrap().read_by_all();
        let said =
            of_root(vec![Entry::creator()]).persistent().acl().map(|entry| entry.to_string()).collect::<Vec<_>>();
        assert_eq!(said, [Entry::creator().to_string(), Entry::anyone(rights("r")).to_string()]);
        assert!(of_root(vec![Entry::anyone(Rights::ALL)]).is_open());
    }

    #[test]
    fn an_ancestor_lets_everyone_read_and_create_and_no_more() {
        let list = Acl::of(vec![Entry::creator()]);
        let said = |acls: &[Line]| acls.iter().map(|acl| Entry(acl.clone()).to_string()).collect::<Vec<_>>();
        assert_eq!(said(&list.own), ["auth::cdrwa"]);
        assert_eq!(said(&list.ancestors), ["auth::cdrwa", "world:anyone:cr"]);
        assert_eq!(said(&Acl::open().ancestors), ["world:anyone:cdrwa"]);
        assert!(Acl::open().is_open() && !list.is_open());
    }

    #[test]
    fn who_may_only_read_cannot_read_what_is_for_writers() {
        let said = |acl: Acl| acl.for_writers().acl().map(|entry| entry.to_string()).collect::<Vec<_>>();
        let operators = Entry::new("sasl", "op", rights("w"));
        let mixed = Acl::of(vec![Entry::creator(), operators, Entry::anyone(rights("r"))]);
        assert_eq!(said(mixed), ["auth::cdrwa", "sasl:op:rw"]);
        assert_eq!(said(Acl::open()), ["world:anyone:cdrwa"]);
    }

    #[test]
    fn who_may_read_what_is_for_writers_and_not_write_it_is_found() {
        let reader = Entry::anyone(rights("rc"));
        let found = [Entry::new("sasl", "op", rights("rw")), Entry::new("sasl", "w", rights("w")), reader.clone()];
        assert_eq!(mere_readers(&found), [&reader]);
        assert!(mere_readers(&[Entry::anyone(Rights::ALL), Entry::creator()]).is_empty(), "an open one is open");
    }

    #[test]
    fn a_hash_is_never_shown() {
        assert_eq!(Entry::new("digest", "u:secret=", rights("r")).to_string(), "digest:u:r");
    }

    #[test]
    fn an_intruder_may_change_something_that_only_others_should() {
        let ours = [Entry::new("digest", "u:hash=", Rights::ALL), Entry::anyone(rights("r"))];
        let none: [&Entry; 0] = [];
        assert_eq!(intruders(&ours, &ours), none);
        // As the server shows it to a client that may not change it.
        assert_eq!(intruders(&[Entry::new("digest", "u:x", Rights::ALL)], &ours), none);
        assert_eq!(intruders(&[Entry::anyone(rights("r"))], &ours[..1]), none);
        // A secret is for those who may write.
        let [writer, knows] = ["w", "rw"].map(|letters| Entry::new("sasl", "op", rights(letters)));
        assert_eq!(intruders(&[knows], &[writer]), none);
        for stranger in [Entry::anyone(rights("c")), Entry::new("sasl", "u", Rights::ALL), Entry::anyone(Rights::ALL)] {
            assert_eq!(intruders(&[ours[0].clone(), stranger.clone()], &ours), [&stranger]);
        }
    }
}
