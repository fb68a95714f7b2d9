//! Which of our znodes are missing, and the contents with which each is created. No lease that may still run is
//! forgotten: only a base that never had a child gets a free record. Nothing is deleted here.

use std::fmt;
use std::time::Duration;

use crate::zookeeper::client::connection::{Connection, Error, MultiError, Stat};

use crate::core::lease::LEASE_LONGEST;
use crate::zookeeper::client::ensure_path::{create_ancestors, create_election, parent};
use crate::zookeeper::client::error::{Fault, Part, Right, Step};
use crate::zookeeper::schema::lease;
use crate::zookeeper::schema::paths::Paths;
use crate::zookeeper::schema::settings::Settings;

/// The state of our znodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    pub base: Base,
    pub election: bool,
    pub lease: bool,
    pub term: Term,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Base {
    Missing,
    /// It exists and never had a child.
    Fresh,
    Used,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Term {
    Missing,
    Unreadable,
    Of(Duration),
}

/// One znode to create. The variants are in the order of creation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Creation {
    Base,
    Election,
    /// The record of a new base.
    FreeRecord(Duration),
    /// Replaces a lost record, whose holder may run for this long.
    HeldRecord(Duration),
    Term(Duration),
}

impl fmt::Display for Creation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base => f.write_str("base"),
            Self::Election => f.write_str("election directory"),
            Self::FreeRecord(_) => f.write_str("free lease record"),
            Self::HeldRecord(lease) => {
                write!(f, "lease record, held for {}", humantime::format_duration(*lease))
            }
            Self::Term(_) => f.write_str("term"),
        }
    }
}

/// What to create, all in one multi.
pub(crate) fn missing(found: &Found, own_lease: Duration) -> Vec<Creation> {
    // A free record is only created together with the term: the multi fails if a peer created that base meanwhile.
    let new = found.base != Base::Used && found.term == Term::Missing;
    // A base without its term does not say how long to wait.
    let longest = match found.term {
        Term::Of(lease) => lease.max(own_lease),
        Term::Missing | Term::Unreadable => LEASE_LONGEST,
    };
    let mut creations = Vec::new();
    if found.base == Base::Missing {
        creations.push(Creation::Base);
    }
    if !found.election {
        creations.push(Creation::Election);
    }
    if !found.lease {
        creations.push(if new { Creation::FreeRecord(own_lease) } else { Creation::HeldRecord(longest) });
    }
    if found.term == Term::Missing {
        creations.push(Creation::Term(if new { own_lease } else { longest }));
    }
    creations
}

/// Reads our znodes and creates the missing ones. A peer may be faster, so the caller reads again.
pub(crate) async fn repair(
    client: &Connection,
    paths: &Paths,
    settings: &Settings,
    own_lease: Duration,
) -> Result<(), Fault> {
    let Look { found, term_version, of_several } = look(client, paths).await?;
    let (apart, creations): (Vec<_>, Vec<_>) = missing(&found, own_lease)
        .into_iter()
        .partition(|creation| *creation == Creation::Election && !paths.election_is_inside());
    if found.base == Base::Missing {
        create_ancestors(client, parent(&paths.base), &settings.chroot, &settings.acl).await?;
    }
    if !creations.is_empty() {
        let held = |lease| of_several.clone().unwrap_or_else(|| lease::held_by_unknown(lease, settings));
        create(client, paths, settings, &creations, term_version, held).await?;
    }
    // Outside of the base, other elections may share it. Inside, it must not exist before the record.
    if !apart.is_empty() {
        create_election(client, &paths.election, &settings.chroot, &settings.acl).await?;
    }
    Ok(())
}

struct Look {
    found: Found,
    /// The version of the term that was read.
    term_version: Option<i32>,
    /// The placeholder for a record, in a base for several leaders.
    of_several: Option<Vec<u8>>,
}

async fn look(client: &Connection, paths: &Paths) -> Result<Look, Fault> {
    let base = client.check_stat(&paths.base);
    let election = client.check_stat(&paths.election);
    let term = client.get_data(&paths.term);
    let lease = client.check_stat(&paths.lease);
    let slots = paths.home_of_slots();
    let slots = client.get_data(&slots);
    let (base, election, term, lease, slots) = tokio::join!(base, election, term, lease, slots);
    let (term, term_version) = judge_term(term).map_err(|fault| fault.without(Right::Read, &paths.term))?;
    let found = Found { base: judge(base?.as_ref()), election: election?.is_some(), lease: lease?.is_some(), term };
    Ok(Look { found, term_version, of_several: slots.ok().map(|(data, _)| data) })
}

/// The state of a term, and its version.
pub(crate) fn judge_term(term: Result<(Vec<u8>, Stat), Error>) -> Result<(Term, Option<i32>), Fault> {
    match term {
        Ok((data, stat)) => Ok((lease::lease_of_term(&data).map_or(Term::Unreadable, Term::Of), Some(stat.version))),
        Err(Error::NoNode) => Ok((Term::Missing, None)),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn judge(base: Option<&Stat>) -> Base {
    match base {
        None => Base::Missing,
        Some(stat) if stat.cversion == 0 && stat.num_children == 0 => Base::Fresh,
        Some(_) => Base::Used,
    }
}

/// All or nothing, and only under the term that was read. A late creation, in a term with a longer lease and after
/// another deletion, would state too short a lease (found by tests/model).
async fn create(
    client: &Connection,
    paths: &Paths,
    settings: &Settings,
    creations: &[Creation],
    term_version: Option<i32>,
    held: impl Fn(Duration) -> Vec<u8>,
) -> Result<(), Fault> {
    let mut multi = client.multi();
    if let Some(version) = term_version {
        multi.check(&paths.term, version);
    }
    let mut steps: Vec<_> = term_version.map(|_| Step(Part::Other, Right::Read, &paths.term)).into_iter().collect();
    for creation in creations {
        let (path, data) = match creation {
            Creation::Base => (&paths.base, Vec::new()),
            Creation::Election => (&paths.election, Vec::new()),
            Creation::FreeRecord(lease) => (&paths.lease, lease::never_held(*lease, settings)),
            Creation::HeldRecord(lease) => (&paths.lease, held(*lease)),
            Creation::Term(lease) => (&paths.term, lease::term_of_nobody(*lease)),
        };
        multi.create(path, &data, &settings.acl.persistent());
        steps.push(Step(Part::Other, Right::Create, parent(path)));
    }
    match multi.commit().await {
        Ok(_) => {
            let created: Vec<_> = creations.iter().map(Creation::to_string).collect();
            tracing::info!(base = settings.base, "Missing znodes were created: {}", created.join(", "));
            Ok(())
        }
        // A peer created it, the parent was deleted, or a term began. The caller reads again.
        Err(MultiError::OperationFailed { source: Error::NodeExists | Error::NoNode | Error::BadVersion, .. }) => {
            Ok(())
        }
        Err(error) => Err(Fault::of_multi(&error, &steps)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zookeeper::testing::stat;

    const OWN: Duration = Duration::from_secs(15);
    const WHOLE: Found = Found { base: Base::Used, election: true, lease: true, term: Term::Of(OWN) };

    #[test]
    fn nothing_is_created_where_nothing_is_missing() {
        assert_eq!(missing(&WHOLE, OWN), []);
        assert_eq!(missing(&Found { term: Term::Unreadable, ..WHOLE }, OWN), []);
    }

    #[test]
    fn a_new_base_is_created_whole_and_free() {
        let none = Found { base: Base::Missing, election: false, lease: false, term: Term::Missing };
        let content = [Creation::Election, Creation::FreeRecord(OWN), Creation::Term(OWN)];
        assert_eq!(missing(&Found { base: Base::Fresh, ..none }, OWN), content);
        assert_eq!(missing(&none, OWN), [&[Creation::Base], &content[..]].concat());
    }

    #[test]
    fn a_lost_record_costs_the_longer_of_the_two_leases() {
        let lost = |term| missing(&Found { lease: false, term, ..WHOLE }, OWN);
        assert_eq!(lost(Term::Of(OWN / 2)), [Creation::HeldRecord(OWN)]);
        assert_eq!(lost(Term::Of(OWN * 2)), [Creation::HeldRecord(OWN * 2)]);
        assert_eq!(lost(Term::Unreadable), [Creation::HeldRecord(LEASE_LONGEST)]);
    }

    #[test]
    fn a_lost_term_is_the_loss_of_the_base() {
        let lost = Found { term: Term::Missing, ..WHOLE };
        assert_eq!(missing(&lost, OWN), [Creation::Term(LEASE_LONGEST)]);
        let both = [Creation::HeldRecord(LEASE_LONGEST), Creation::Term(LEASE_LONGEST)];
        assert_eq!(missing(&Found { lease: false, ..lost }, OWN), both);
    }

    #[test]
    fn a_lost_election_directory_costs_nothing() {
        assert_eq!(missing(&Found { election: false, ..WHOLE }, OWN), [Creation::Election]);
    }

    #[test]
    fn a_free_record_is_only_for_a_new_base_and_only_together_with_its_term() {
        for base in [Base::Missing, Base::Fresh, Base::Used] {
            for term in [Term::Missing, Term::Unreadable, Term::Of(OWN)] {
                let creations = missing(&Found { base, election: true, lease: false, term }, OWN);
                let free = creations.contains(&Creation::FreeRecord(OWN));
                assert_eq!(free, base != Base::Used && term == Term::Missing);
                assert!(!free || creations.contains(&Creation::Term(OWN)));
            }
        }
    }

    #[test]
    fn creations_are_told_in_words() {
        let all =
            [Creation::FreeRecord(OWN), Creation::HeldRecord(OWN), Creation::Term(OWN)].map(|one| one.to_string());
        assert_eq!(all, ["free lease record", "lease record, held for 15s", "term"]);
    }

    #[test]
    fn only_a_base_that_never_had_a_child_is_fresh() {
        assert_eq!(judge(None), Base::Missing);
        assert_eq!(judge(Some(&Stat { cversion: 0, num_children: 0, ..stat() })), Base::Fresh);
        assert_eq!(judge(Some(&Stat { cversion: 2, num_children: 0, ..stat() })), Base::Used);
    }
}
