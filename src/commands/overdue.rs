//! Which leases ran out: a record that says `held` is only as good as its last renewal.
//!
//! The age of a record is read from two clocks, `ZooKeeper`'s and ours. So a record that looks too old is watched for two
//! renewal intervals: a leader that lives renews it meanwhile, whatever our clock says.
//!
//! Never: a lease called overdue that was renewed while it was watched.

use std::cell::RefCell;
use std::time::Duration;

use tokio::time::sleep;

use super::orders::Patience;
use super::{CommandContext, CommandError, slot_state};
use crate::clock;
use crate::zookeeper::admin::fleet;
use crate::zookeeper::admin::view::{ElectionView, SlotView};
use crate::zookeeper::schema::lease::Holder;

/// Between two looks at a record.
const PAUSE: Duration = Duration::from_millis(100);
const SHORTEST_WATCH: Duration = Duration::from_secs(1);
const LONGEST_WATCH: Duration = Duration::from_secs(10);

/// The versions (mzxid) of records that were watched and not renewed: they need not be watched again.
pub(super) type Watched = RefCell<Vec<i64>>;

/// Sets `overdue_since` of each slot whose lease ran out. All are watched at the same time. An election in which a record
/// changes meanwhile is looked at once more: another host may lead by now.
pub(super) async fn mark<'a>(
    context: &CommandContext<'_>,
    elections: impl Iterator<Item = &'a mut ElectionView>,
) -> Result<(), CommandError> {
    let now = clock::time_of_day();
    let mut seen: Vec<_> = elections.map(|election| (suspects(election, now), election)).collect();
    let slots = seen.iter().flat_map(|(ends, election)| ends.iter().zip(&election.slots));
    let slots: Vec<_> = slots.filter_map(|(end, slot)| end.and(Some(slot))).collect();
    let mut unrenewed = watch(context, &slots).await?.into_iter();
    for (ends, election) in &mut seen {
        for (end, slot) in ends.iter_mut().zip(&mut election.slots).filter(|(end, _)| end.is_some()) {
            if unrenewed.next() == Some(true) {
                slot.overdue_since = end.take();
            }
        }
    }
    // What is left of the ends is of records that have changed.
    let changed = seen.into_iter().filter(|(ends, _)| ends.iter().any(Option::is_some));
    Ok(fleet::look_again(&context.client, changed.map(|(_, election)| election).collect()).await?)
}

/// For each slot when its lease ended, if that was before now.
fn suspects(election: &ElectionView, now: i64) -> Vec<Option<i64>> {
    election.slots.iter().map(|slot| ends_at(slot, election).filter(|end| now > *end)).collect()
}

/// When the lease, or the longest life on promises, ends unless it is renewed, by `ZooKeeper`'s clock; `None`: nobody leads by it.
/// The record of a holder that waits ends if the holder is gone: one that is there renews nothing meanwhile. Of one that was
/// lost, the holder is not known.
fn ends_at(slot: &SlotView, election: &ElectionView) -> Option<i64> {
    let (lease, written) = slot.lease.as_ref().filter(|(lease, _)| lease.is_held())?;
    let waits = |holder: &Holder| lease.waiting_on.is_some() && slot_state::waits(holder, slot, election);
    let is_over_some_day = !lease.holder.as_ref().is_some_and(waits);
    is_over_some_day.then(|| slot_state::longest_until(lease, written))
}

/// Whether each of these records stays as it was for two renewal intervals.
pub(super) async fn watch(context: &CommandContext<'_>, slots: &[&SlotView]) -> Result<Vec<bool>, CommandError> {
    let mut stays = Vec::new();
    let version = |slot: &SlotView| slot.lease.as_ref().map_or(0, |(_, written)| written.mzxid);
    let length = |slot: &SlotView| watch_length(slot.lease.as_ref().map_or(0, |(lease, _)| lease.lease_ms));
    let is_new: Vec<_> = slots.iter().map(|slot| !context.watched.borrow().contains(&version(slot))).collect();
    let mut open = is_new.clone();
    let patience: Vec<_> = slots.iter().map(|slot| Patience::new(length(slot))).collect();
    stays.resize(slots.len(), true);
    while open.contains(&true) {
        sleep(PAUSE).await;
        for (((slot, patience), open), stays) in slots.iter().zip(&patience).zip(&mut open).zip(&mut stays) {
            if *open {
                let found = context.client.read(&slot.lease_path()).await?;
                *stays = found.is_some_and(|znode| znode.facts.mzxid == version(slot));
                *open = *stays && patience.lasts();
            }
        }
    }
    let unrenewed = slots.iter().zip(is_new.iter().zip(&stays)).filter(|(_, (is_new, stays))| **is_new && **stays);
    context.watched.borrow_mut().extend(unrenewed.map(|(slot, _)| version(slot)));
    Ok(stays)
}

/// Two renewal intervals of a lease.
fn watch_length(lease_ms: u64) -> Duration {
    (Duration::from_millis(lease_ms) / 4).clamp(SHORTEST_WATCH, LONGEST_WATCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::lease::{Timing, Wishes};
    use crate::zookeeper::admin::Facts;
    use crate::zookeeper::admin::view::Candidate;
    use crate::zookeeper::schema::lease::Lease;

    #[test]
    fn whoever_renews_a_lease_does_so_while_it_is_watched() {
        for seconds in [2, 15, 40, 60, 120] {
            let timing = Timing::new(Duration::from_secs(seconds), &Wishes::NONE).unwrap();
            assert!(watch_length(seconds * 1000) >= 2 * timing.renewal_interval, "{seconds} s");
        }
    }

    #[test]
    fn a_lease_ends_its_length_after_it_was_written_if_somebody_leads_by_it() {
        let ends_at = |record: &str| {
            let lease = Lease::read(record.as_bytes()).unwrap();
            let written = Facts { changed_at: 7_000, ..Facts::default() };
            let slot = SlotView { lease: Some((lease, written)), ..SlotView::default() };
            let line = vec![Candidate { id: "a".into(), ..Candidate::default() }];
            let [there, gone] = [line, Vec::new()].map(|line| ElectionView { line, ..ElectionView::default() });
            [super::ends_at(&slot, &there), super::ends_at(&slot, &gone)]
        };
        let holder = r#""holder":{"id":"a","host":"h","pid":1}"#;
        assert_eq!(ends_at(&format!(r#"{{"v":1,"state":"held","lease_ms":15000,{holder}}}"#)), [Some(22_000); 2]);
        let vouched = format!(r#"{{"v":1,"state":"held","lease_ms":15000,"vouch_ms":600000,{holder}}}"#);
        assert_eq!(ends_at(&vouched), [Some(607_000); 2], "its command may live on promises");
        let waiting = format!(r#"{{"v":1,"state":"held","lease_ms":15000,"waiting_on":9,{holder}}}"#);
        assert_eq!(ends_at(&waiting), [None, Some(22_000)], "its holder renews nothing while it waits, if it is there");
        assert_eq!(ends_at(&format!(r#"{{"v":1,"state":"free","lease_ms":15000,{holder}}}"#)), [None; 2]);
        assert_eq!(ends_at(r#"{"v":1,"state":"held","lease_ms":15000}"#), [Some(22_000); 2], "its holder is not known");
    }
}
