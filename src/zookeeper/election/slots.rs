//! The znodes of an election with several leaders: `<base>/slots/<k>/{lease,term}` for each slot, and their number,
//! which stays for the life of the base.
//!
//! `<base>/lease` states the number as a held record without a holder: a participant with one leader reads it, differs,
//! and never takes it. `<base>/slots` states it too, in case that record is lost.

use std::time::Duration;

use crate::zookeeper::client::connection::{Connection, Error, Multi, MultiError, Stat};

use crate::core::lease::LEASE_LONGEST;
use crate::core::order::Slot;
use crate::zookeeper::client::ensure_path::{create_ancestors, create_election, parent};
use crate::zookeeper::client::error::{Fault, Right};
use crate::zookeeper::election::bootstrap::{self, Base, Creation, Found, Term};
use crate::zookeeper::schema::lease;
use crate::zookeeper::schema::paths::Paths;
use crate::zookeeper::schema::settings::Settings;

/// The state of our znodes.
struct Seen {
    base: Base,
    /// Missing znodes of the base outside the slots, with their contents.
    missing: Vec<(String, Vec<u8>)>,
    election: bool,
    slots: Vec<SeenSlot>,
}

struct SeenSlot {
    slot: Slot,
    home: bool,
    lease: bool,
    term: Term,
    term_version: Option<i32>,
}

/// Creates the missing znodes in one multi. A peer may be faster, so the caller reads again.
pub(crate) async fn repair(
    client: &Connection,
    paths: &Paths,
    settings: &Settings,
    own_lease: Duration,
) -> Result<(), Fault> {
    let Some(seen) = look(client, paths, settings).await? else { return Ok(()) };
    if seen.base == Base::Missing {
        create_ancestors(client, parent(&paths.base), &settings.chroot, &settings.acl).await?;
    }
    create(client, paths, settings, &seen, own_lease).await?;
    if !seen.election && !paths.election_is_inside() {
        create_election(client, &paths.election, &settings.chroot, &settings.acl).await?;
    }
    Ok(())
}

/// `None`: the base is for another number of leaders, and not ours to repair.
async fn look(client: &Connection, paths: &Paths, settings: &Settings) -> Result<Option<Seen>, Fault> {
    let home = paths.home_of_slots();
    let base = client.check_stat(&paths.base);
    let election = client.check_stat(&paths.election);
    let marker = client.get_data(&paths.lease);
    let term = client.check_stat(&paths.term);
    let home = client.get_data(&home);
    let (base, election, marker, term, home) = tokio::join!(base, election, marker, term, home);
    let (marker, home) = (if_there(marker)?, if_there(home)?);
    for (data, stat) in [&marker, &home].into_iter().flatten() {
        if !data.is_empty() && lease::parse(Slot(0), data, stat, settings).disagreement.is_some() {
            return Ok(None);
        }
    }
    let (base, election) = (bootstrap::judge(base?.as_ref()), election?.is_some());
    let says = lease::held_by_unknown(LEASE_LONGEST, settings);
    // In the order of creation.
    let parts = [
        (base != Base::Missing, paths.base.clone(), Vec::new()),
        (election || !paths.election_is_inside(), paths.election.clone(), Vec::new()),
        (marker.is_some(), paths.lease.clone(), says.clone()),
        (term?.is_some(), paths.term.clone(), lease::term_of_nobody(LEASE_LONGEST)),
        (home.is_some(), paths.home_of_slots(), says),
    ];
    let missing = parts.into_iter().filter(|(there, ..)| !there).map(|(_, path, data)| (path, data)).collect();
    let mut slots = Vec::new();
    for slot in paths.slots() {
        slots.push(look_at(client, paths, slot).await?);
    }
    Ok(Some(Seen { base, missing, election, slots }))
}

async fn look_at(client: &Connection, paths: &Paths, slot: Slot) -> Result<SeenSlot, Fault> {
    let of = paths.of(slot);
    let (home, term, lease) = (client.check_stat(&of.home), client.get_data(&of.term), client.check_stat(&of.lease));
    let (home, term, lease) = tokio::join!(home, term, lease);
    let (term, term_version) = bootstrap::judge_term(term).map_err(|fault| fault.without(Right::Read, &of.term))?;
    Ok(SeenSlot { slot, home: home?.is_some(), lease: lease?.is_some(), term, term_version })
}

fn if_there(read: Result<(Vec<u8>, Stat), Error>) -> Result<Option<(Vec<u8>, Stat)>, Fault> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(Error::NoNode) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// All or nothing, and a lost record only under the term that was read (see `bootstrap::create`).
async fn create(
    client: &Connection,
    paths: &Paths,
    settings: &Settings,
    seen: &Seen,
    own_lease: Duration,
) -> Result<(), Fault> {
    let mut multi = client.multi();
    let mut created = seen.missing.len();
    for (path, data) in &seen.missing {
        multi.create(path, data, &settings.acl.persistent());
    }
    for slot in &seen.slots {
        created += create_slot(&mut multi, paths, settings, seen.base, slot, own_lease);
    }
    if created == 0 {
        return Ok(());
    }
    match multi.commit().await {
        Ok(_) => {
            tracing::info!(base = settings.base, leaders = settings.leaders, "{created} missing znodes were created");
            Ok(())
        }
        // A peer created it, the parent was deleted, or a term began. The caller reads again.
        Err(MultiError::OperationFailed { source: Error::NodeExists | Error::NoNode | Error::BadVersion, .. }) => {
            Ok(())
        }
        Err(error) => Err(Fault::of_multi(&error, &[]).without(Right::Create, &paths.base)),
    }
}

/// Adds the missing znodes of one slot to the multi. Returns their number.
fn create_slot(
    multi: &mut Multi<'_>,
    paths: &Paths,
    settings: &Settings,
    base: Base,
    seen: &SeenSlot,
    own_lease: Duration,
) -> usize {
    let of = paths.of(seen.slot);
    let creations = missing(base, seen, own_lease);
    if let (Some(version), false) = (seen.term_version, creations.is_empty()) {
        multi.check(&of.term, version);
    }
    if !seen.home {
        multi.create(&of.home, &[], &settings.acl.persistent());
    }
    for creation in &creations {
        let (path, data) = match creation {
            Creation::FreeRecord(lease) => (&of.lease, lease::never_held(*lease, settings)),
            Creation::HeldRecord(lease) => (&of.lease, lease::held_by_unknown(*lease, settings)),
            Creation::Term(lease) => (&of.term, lease::term_of_nobody(*lease)),
            Creation::Base | Creation::Election => continue,
        };
        multi.create(path, &data, &settings.acl.persistent());
    }
    usize::from(!seen.home) + creations.len()
}

/// The rules of `bootstrap::missing` for each slot: a record is free only in a new base.
fn missing(base: Base, seen: &SeenSlot, own_lease: Duration) -> Vec<Creation> {
    // The base itself is created separately from its slots.
    let base = if base == Base::Missing { Base::Fresh } else { base };
    bootstrap::missing(&Found { base, election: true, lease: seen.lease, term: seen.term }, own_lease)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Duration = Duration::from_secs(15);
    const NONE: SeenSlot =
        SeenSlot { slot: Slot(1), home: false, lease: false, term: Term::Missing, term_version: None };

    #[test]
    fn the_slots_of_a_new_base_are_free() {
        for base in [Base::Missing, Base::Fresh] {
            assert_eq!(missing(base, &NONE, OWN), [Creation::FreeRecord(OWN), Creation::Term(OWN)]);
        }
    }

    #[test]
    fn a_lost_slot_of_a_used_base_is_held_for_as_long_as_any_lease_may_be() {
        let longest = [Creation::HeldRecord(LEASE_LONGEST), Creation::Term(LEASE_LONGEST)];
        assert_eq!(missing(Base::Used, &NONE, OWN), longest);
        let lost = SeenSlot { home: true, term: Term::Of(OWN * 2), term_version: Some(3), ..NONE };
        assert_eq!(missing(Base::Used, &lost, OWN), [Creation::HeldRecord(OWN * 2)]);
    }

    #[test]
    fn nothing_is_created_where_nothing_is_missing() {
        let whole = SeenSlot { home: true, lease: true, term: Term::Of(OWN), term_version: Some(3), ..NONE };
        assert_eq!(missing(Base::Used, &whole, OWN), []);
    }
}
