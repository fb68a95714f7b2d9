//! Which of our znodes are missing, and the contents with which each is created. No lease that may still run is
//! forgotten: only a base that never had a child gets a free record. Nothing is deleted here.
//!
//! A slot's home holds its record and its term. One leader is one slot whose home is the base. With several leaders, the
//! homes are `<base>/slots/<k>`, and the number of leaders stays for the life of the base: `<base>/lease` states it as a
//! held record without a holder, so a participant with one leader reads it, differs, and never takes it. `<base>/slots`
//! states it too, in case that record is lost.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use futures_util::future::join_all;

use crate::core::guard_messages::Slot;
use crate::core::lease::LEASE_LONGEST;
use crate::core::vouching::LIMIT_LONGEST;
use crate::zookeeper::client::connection::{Connection, Error, MultiError, Stat};
use crate::zookeeper::client::ensure_path::{create_ancestors, create_election, parent};
use crate::zookeeper::client::error::{Part, PathAccess, RequestError, Right, if_there, if_there_at};
use crate::zookeeper::schema::candidate_name;
use crate::zookeeper::schema::lease::{self, Longest};
use crate::zookeeper::schema::paths::{self, Paths, SlotPaths};
use crate::zookeeper::schema::settings::Settings;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Base {
    /// It does not exist, or never had a child.
    New,
    Used,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Term {
    Missing,
    Unreadable,
    Of(Longest),
}

/// The state of our znodes.
struct Found {
    base: Base,
    election: bool,
    /// There is a secret of hosts that vouch for one another: commands may live on promises.
    has_secret: bool,
    /// `<base>/slots`, which exists if the base is for several leaders.
    home_of_slots: Option<(Vec<u8>, Stat)>,
    /// What stands in the base itself: the only slot, or the placeholder of a base for several leaders.
    plain: FoundSlot,
    /// With several leaders.
    slots: Vec<FoundSlot>,
}

struct FoundSlot {
    paths: SlotPaths,
    home: Option<Stat>,
    lease: Option<(Vec<u8>, Stat)>,
    term: Term,
    term_version: Option<i32>,
}

/// One znode to create. The variants are in the order of creation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Creation {
    Home,
    /// The record of a new base.
    FreeRecord(Duration),
    /// Replaces a lost record, whose holder may run for this long.
    HeldRecord(Longest),
    Term(Longest),
    Slots,
    Election,
}

impl fmt::Display for Creation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Home => f.write_str("parent of the lease record"),
            Self::FreeRecord(_) => f.write_str("free lease record"),
            Self::HeldRecord(Longest { lease, vouched }) => {
                let longest = vouched.map_or(*lease, |limit| limit.max(*lease));
                write!(f, "lease record, held for {}", humantime::format_duration(longest))
            }
            Self::Term(_) => f.write_str("term"),
            Self::Slots => f.write_str("directory of the slots"),
            Self::Election => f.write_str("election directory"),
        }
    }
}

/// A znode to create: its path and its content.
type New = (Creation, String, Vec<u8>);

/// What a slot lacks.
fn missing(base: Base, slot: &FoundSlot, own_lease: Duration, has_secret: bool) -> Vec<Creation> {
    // A free record is only created together with the term: the multi fails if a peer created that base meanwhile.
    let new = base == Base::New && slot.term == Term::Missing;
    // A slot without its term does not say how long to wait. Our own limit would say nothing about its holder.
    let longest = match slot.term {
        Term::Of(longest) => Longest { lease: longest.lease.max(own_lease), ..longest },
        Term::Missing | Term::Unreadable => longest_of_all(has_secret),
    };
    let own = Longest { lease: own_lease, vouched: None };
    let record = if new { Creation::FreeRecord(own_lease) } else { Creation::HeldRecord(longest) };
    let term = Creation::Term(if new { own } else { longest });
    [(slot.home.is_some(), Creation::Home), (slot.lease.is_some(), record), (slot.term != Term::Missing, term)]
        .into_iter()
        .filter_map(|(exists, creation)| (!exists).then_some(creation))
        .collect()
}

/// What may run, where neither a record nor a term says it. Whoever lives on promises has made the secret before.
fn longest_of_all(has_secret: bool) -> Longest {
    Longest { lease: LEASE_LONGEST, vouched: has_secret.then_some(LIMIT_LONGEST) }
}

/// How long the command of a record that cannot be read may live on promises, by what its term says.
pub(crate) async fn vouched_under(
    client: &Connection,
    paths: &Paths,
    term: Option<&[u8]>,
) -> Result<Option<Duration>, RequestError> {
    match term.and_then(lease::longest_of_term) {
        Some(longest) => Ok(longest.vouched),
        None => Ok(longest_of_all(client.check_stat(&paths.vouch).await?.is_some()).vouched),
    }
}

/// Reads our znodes and creates the missing ones. A peer may be faster, so the caller reads again.
pub(crate) async fn repair(
    client: &Connection,
    paths: &Paths,
    settings: &Settings,
    own_lease: Duration,
) -> Result<(), RequestError> {
    let found = look(client, paths).await?;
    if found.is_of_another_number(paths, settings) {
        return restore_number(client, paths, settings, &found).await;
    }
    if found.plain.home.is_some() && found.plain.is_bare() && paths.election != paths.base {
        warn_of_strangers(client, &paths.base).await;
    }
    if found.plain.home.is_none() {
        create_ancestors(client, parent(&paths.base), &settings.chroot, &settings.acl).await?;
    }
    create(client, settings, &found, &found.creations(paths, settings, own_lease)).await?;
    // Outside of the base, other elections may share it. Inside, it must not exist before the record.
    if !found.election && !paths.election_is_inside() {
        create_election(client, &paths.election, &settings.chroot, &settings.acl).await?;
    }
    Ok(())
}

/// Makes the record anew that states the number of leaders, as others have it: so it is told that we disagree.
async fn restore_number(
    client: &Connection,
    paths: &Paths,
    settings: &Settings,
    found: &Found,
) -> Result<(), RequestError> {
    let (None, Some((number, _))) = (&found.plain.lease, &found.home_of_slots) else { return Ok(()) };
    let record = Creation::HeldRecord(longest_of_all(false));
    create(client, settings, found, &[(record, paths.lease.clone(), number.clone())]).await
}

/// We are the first of ours in a directory that is in use: of another library, if it has candidates as they name them.
async fn warn_of_strangers(client: &Connection, base: &str) {
    let Ok((children, _)) = client.get_children(base).await else { return };
    let Some(stranger) = children.iter().find(|name| candidate_name::is_of_a_library(name)) else { return };
    let ours = paths::LAYOUT.join(", ");
    tracing::warn!(
        "{base} is an election of another library: it holds the candidate {stranger}. The command will run beside the leader of that election. \
         Stop this process; then use --election-path {base} to take part there, or another --path. Once no process of ours has --path {base}, \
         delete what we have made there, which others take for contenders: {ours}"
    );
}

async fn look(client: &Connection, paths: &Paths) -> Result<Found, RequestError> {
    let election = client.check_stat(&paths.election);
    let (home_of_slots, secret) = (client.get_data(&paths.home_of_slots()), client.check_stat(&paths.vouch));
    let plain = look_at(client, paths.plain());
    let slots = paths.slots().filter(|_| paths.is_for_several()).map(|slot| look_at(client, paths.of(slot)));
    let (election, home_of_slots, secret, plain, slots) =
        tokio::join!(election, home_of_slots, secret, plain, join_all(slots));
    let (election, home_of_slots, plain) = (election?.is_some(), if_there(home_of_slots)?, plain?);
    Ok(Found {
        base: judge(plain.home.as_ref()),
        election,
        has_secret: secret?.is_some(),
        home_of_slots,
        plain,
        slots: slots.into_iter().collect::<Result<_, _>>()?,
    })
}

async fn look_at(client: &Connection, paths: SlotPaths) -> Result<FoundSlot, RequestError> {
    let home = client.check_stat(&paths.home);
    let (term, lease) = (client.get_data(&paths.term), client.get_data(&paths.lease));
    let (home, term, lease) = tokio::join!(home, term, lease);
    let (home, term, lease) = (home?, if_there_at(&paths.term, term)?, if_there_at(&paths.lease, lease)?);
    let term_version = term.as_ref().map(|(_, stat)| stat.version);
    let term = term.map_or(Term::Missing, |(data, _)| lease::longest_of_term(&data).map_or(Term::Unreadable, Term::Of));
    Ok(FoundSlot { paths, home, lease, term, term_version })
}

fn judge(base: Option<&Stat>) -> Base {
    if base.is_none_or(|stat| stat.cversion == 0 && stat.num_children == 0) { Base::New } else { Base::Used }
}

impl Found {
    /// The base is for another number of leaders than we, and not ours to repair, but for the record that states the
    /// number.
    fn is_of_another_number(&self, paths: &Paths, settings: &Settings) -> bool {
        let differs = |(data, stat): &(Vec<u8>, Stat)| {
            !data.is_empty() && lease::parse(Slot(0), data, stat, settings).disagreement.is_some()
        };
        paths.is_for_several() && self.plain.lease.iter().chain(&self.home_of_slots).any(differs)
    }

    fn creations(&self, paths: &Paths, settings: &Settings, own_lease: Duration) -> Vec<New> {
        let held = |longest| lease::held_by_unknown(longest, settings);
        let mut all;
        if paths.is_for_several() {
            all = self.plain.creations(Base::Used, (LEASE_LONGEST, false), held, settings);
            if self.home_of_slots.is_none() {
                all.push((Creation::Slots, paths.home_of_slots(), held(longest_of_all(false))));
            }
            all.extend(
                self.slots.iter().flat_map(|slot| slot.creations(self.base, (own_lease, false), held, settings)),
            );
        } else {
            let number = self.home_of_slots.as_ref().map(|(number, _)| number.clone());
            let held = |longest| number.clone().unwrap_or_else(|| held(longest));
            all = self.plain.creations(self.base, (own_lease, self.has_secret), held, settings);
        }
        if !self.election && paths.election_is_inside() {
            all.push((Creation::Election, paths.election.clone(), Vec::new()));
        }
        all
    }
}

impl FoundSlot {
    fn is_bare(&self) -> bool {
        self.lease.is_none() && self.term == Term::Missing
    }

    fn creations(
        &self,
        base: Base,
        (own_lease, has_secret): (Duration, bool),
        held: impl Fn(Longest) -> Vec<u8>,
        settings: &Settings,
    ) -> Vec<New> {
        let of = &self.paths;
        let new = |creation| {
            let (path, data) = match creation {
                Creation::FreeRecord(lease) => (&of.lease, lease::never_held(lease, settings)),
                Creation::HeldRecord(longest) => (&of.lease, held(longest)),
                Creation::Term(longest) => (&of.term, lease::term_of_nobody(longest)),
                Creation::Home | Creation::Slots | Creation::Election => (&of.home, Vec::new()),
            };
            (creation, path.clone(), data)
        };
        missing(base, self, own_lease, has_secret).into_iter().map(new).collect()
    }
}

/// Creates a base that does not exist, with all that belongs to it, if no look is needed for that: nobody can have led
/// under a base that this very multi creates. Sent now, so that what is sent next finds it; if it fails, [`repair`]
/// says why.
pub(crate) fn create_whole<'a>(
    client: &'a Connection,
    paths: &Paths,
    settings: &'a Settings,
    own_lease: Duration,
) -> impl Future<Output = ()> + Send + use<'a> {
    let nothing = FoundSlot { paths: paths.plain(), home: None, lease: None, term: Term::Missing, term_version: None };
    let found = Found {
        base: Base::New,
        election: false,
        has_secret: false,
        home_of_slots: None,
        plain: nothing,
        slots: Vec::new(),
    };
    let is_simple = !paths.is_for_several() && paths.election_is_inside();
    let all = if is_simple { found.creations(paths, settings, own_lease) } else { Vec::new() };
    let created = create(client, settings, &found, &all);
    async move {
        if let Err(error) = created.await {
            tracing::debug!(?error, "The base was not created without a look");
        }
    }
}

/// All or nothing, and a lost record only under the term that was read. A late creation, in a term with a longer lease
/// and after another deletion, would state too short a lease (found by tests/model). Sent now.
fn create<'a>(
    client: &'a Connection,
    settings: &'a Settings,
    found: &Found,
    all: &[New],
) -> impl Future<Output = Result<(), RequestError>> + Send + use<'a> {
    let (mut multi, mut touched) = (client.multi(), Vec::new());
    for slot in [&found.plain].into_iter().chain(&found.slots) {
        if let (Some(version), None) = (slot.term_version, &slot.lease) {
            multi.check(&slot.paths.term, version);
            touched.push((Right::Read, slot.paths.term.clone()));
        }
    }
    for (_, path, data) in all {
        multi.create(path, data, &settings.acl.persistent());
        touched.push((Right::Create, parent(path).to_owned()));
    }
    // Nobody waits for it.
    let is_placeholder = |path: &String| !found.slots.is_empty() && *path == found.plain.paths.lease;
    let what = |(creation, path, _): &New| match creation {
        Creation::HeldRecord(_) if is_placeholder(path) => "record of the number of leaders".to_owned(),
        _ => creation.to_string(),
    };
    let mut created: Vec<_> = all.iter().map(what).collect();
    let sent = (!all.is_empty()).then(|| multi.commit());
    async move {
        let Some(sent) = sent else { return Ok(()) };
        match sent.await {
            Ok(_) => {
                // Those of several slots are the same.
                created.sort();
                created.dedup();
                tracing::info!(base = settings.base, "Missing znodes were created: {}", created.join(", "));
                Ok(())
            }
            // A peer created it, the parent was deleted, or a term began. The caller reads again.
            Err(MultiError::OperationFailed {
                source: Error::NodeExists | Error::NoNode | Error::BadVersion, ..
            }) => Ok(()),
            Err(error) => {
                let steps: Vec<_> = touched.iter().map(|(right, path)| PathAccess(Part::Other, *right, path)).collect();
                Err(RequestError::of_multi(&error, &steps))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zookeeper::testing::{settings, stat};

    const OWN: Duration = Duration::from_secs(15);
    const F: Duration = Duration::from_secs(600);

    fn of(lease: Duration) -> Longest {
        Longest { lease, vouched: None }
    }

    fn whole() -> FoundSlot {
        let paths = Paths::new(&settings()).of(Slot(0));
        FoundSlot {
            paths,
            home: Some(stat()),
            lease: Some((Vec::new(), stat())),
            term: Term::Of(of(OWN)),
            term_version: Some(3),
        }
    }

    fn lost(term: Term) -> FoundSlot {
        FoundSlot { lease: None, term, ..whole() }
    }

    #[test]
    fn nothing_is_created_where_nothing_is_missing() {
        assert_eq!(missing(Base::Used, &whole(), OWN, false), []);
        assert_eq!(missing(Base::Used, &FoundSlot { term: Term::Unreadable, ..whole() }, OWN, false), []);
    }

    #[test]
    fn a_new_base_is_created_whole_and_free() {
        let content = [Creation::FreeRecord(OWN), Creation::Term(of(OWN))];
        assert_eq!(missing(Base::New, &lost(Term::Missing), OWN, false), content);
        let none = FoundSlot { home: None, ..lost(Term::Missing) };
        assert_eq!(missing(Base::New, &none, OWN, false), [&[Creation::Home], &content[..]].concat());
    }

    #[test]
    fn a_lost_record_costs_the_longer_of_the_two_leases() {
        let lost = |term| missing(Base::Used, &lost(term), OWN, false);
        assert_eq!(lost(Term::Of(of(OWN / 2))), [Creation::HeldRecord(of(OWN))]);
        assert_eq!(lost(Term::Of(of(OWN * 2))), [Creation::HeldRecord(of(OWN * 2))]);
        assert_eq!(lost(Term::Unreadable), [Creation::HeldRecord(of(LEASE_LONGEST))]);
    }

    #[test]
    fn a_lost_record_of_a_term_on_promises_costs_its_limit_and_one_without_a_term_the_longest() {
        let vouched = Longest { lease: OWN, vouched: Some(F) };
        for has_secret in [true, false] {
            let lost = |term| missing(Base::Used, &lost(term), OWN, has_secret);
            assert_eq!(lost(Term::Of(vouched)), [Creation::HeldRecord(vouched)]);
            assert_eq!(
                lost(Term::Of(of(OWN))),
                [Creation::HeldRecord(of(OWN))],
                "the term says that nobody lives on promises"
            );
            let longest = Longest { lease: LEASE_LONGEST, vouched: has_secret.then_some(LIMIT_LONGEST) };
            assert_eq!(lost(Term::Unreadable), [Creation::HeldRecord(longest)]);
            assert_eq!(lost(Term::Missing), [Creation::HeldRecord(longest), Creation::Term(longest)]);
        }
    }

    #[test]
    fn a_lost_term_is_the_loss_of_the_base() {
        let term = FoundSlot { term: Term::Missing, ..whole() };
        assert_eq!(missing(Base::Used, &term, OWN, false), [Creation::Term(of(LEASE_LONGEST))]);
        let both = [Creation::HeldRecord(of(LEASE_LONGEST)), Creation::Term(of(LEASE_LONGEST))];
        assert_eq!(missing(Base::Used, &lost(Term::Missing), OWN, false), both);
    }

    #[test]
    fn a_free_record_is_only_for_a_new_base_and_only_together_with_its_term() {
        for base in [Base::New, Base::Used] {
            for term in [Term::Missing, Term::Unreadable, Term::Of(of(OWN))] {
                let creations = missing(base, &lost(term), OWN, false);
                let free = creations.contains(&Creation::FreeRecord(OWN));
                assert_eq!(free, base == Base::New && term == Term::Missing);
                assert!(!free || creations.contains(&Creation::Term(of(OWN))));
            }
        }
    }

    fn found(leaders: u16, base: Base) -> (Found, Paths, Settings) {
        let settings = Settings { leaders, ..settings() };
        let (paths, none) = (Paths::new(&settings), |paths| FoundSlot { paths, home: None, ..lost(Term::Missing) });
        let slots = paths.slots().filter(|_| leaders > 1).map(|slot| none(paths.of(slot))).collect();
        (
            Found { base, election: false, has_secret: false, home_of_slots: None, plain: none(paths.plain()), slots },
            paths,
            settings,
        )
    }

    #[test]
    fn a_base_for_several_states_their_number_in_two_places_and_has_a_free_record_for_each() {
        let (found, paths, settings) = found(2, Base::New);
        let created: Vec<_> = found.creations(&paths, &settings, OWN).into_iter().map(|(one, ..)| one).collect();
        let placeholder = [Creation::Home, Creation::HeldRecord(of(LEASE_LONGEST)), Creation::Term(of(LEASE_LONGEST))];
        let slot = [Creation::Home, Creation::FreeRecord(OWN), Creation::Term(of(OWN))];
        let all = [&placeholder[..], &[Creation::Slots], &slot, &slot, &[Creation::Election]].concat();
        assert_eq!(created, all);
    }

    #[test]
    fn one_leader_restores_the_record_that_states_another_number() {
        let (found, paths, settings) = found(1, Base::Used);
        let of_two = lease::held_by_unknown(of(LEASE_LONGEST), &Settings { leaders: 2, ..settings.clone() });
        let found = Found { home_of_slots: Some((of_two.clone(), stat())), ..found };
        assert!(
            found
                .creations(&paths, &settings, OWN)
                .iter()
                .any(|(_, path, data)| *path == paths.lease && *data == of_two)
        );
        assert!(!found.is_of_another_number(&paths, &settings));
        let three = Settings { leaders: 3, ..settings };
        assert!(found.is_of_another_number(&Paths::new(&three), &three));
    }

    #[test]
    fn a_lost_election_directory_costs_nothing() {
        let (found, paths, settings) = found(1, Base::Used);
        let found = Found { plain: whole(), ..found };
        let created: Vec<_> = found.creations(&paths, &settings, OWN).into_iter().map(|(one, ..)| one).collect();
        assert_eq!(created, [Creation::Election]);
    }

    #[test]
    fn creations_are_told_in_words() {
        let all = [Creation::FreeRecord(OWN), Creation::HeldRecord(of(OWN)), Creation::Term(of(OWN))]
            .map(|one| one.to_string());
        assert_eq!(all, ["free lease record", "lease record, held for 15s", "term"]);
    }

    #[test]
    fn only_a_base_that_never_had_a_child_is_new() {
        assert_eq!(judge(None), Base::New);
        assert_eq!(judge(Some(&Stat { cversion: 0, num_children: 0, ..stat() })), Base::New);
        assert_eq!(judge(Some(&Stat { cversion: 2, num_children: 0, ..stat() })), Base::Used);
    }
}
