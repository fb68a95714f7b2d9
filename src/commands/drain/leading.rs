//! Whether a host leads an election, so that its command may run there.

use crate::commands::disable;
use crate::commands::slot_state::{self, SlotState};
use crate::core::time::Sighting;
use crate::zookeeper::admin::view::{ElectionView, SlotView};
use crate::zookeeper::schema::lease::Lease;

/// Whether its command may run. It may have lost its session or its candidate alone: its lease must run out first, also where
/// another one has taken the record and waits. Whoever still stops has a command, even if another one leads by now.
pub(super) fn leads(election: &ElectionView, host: &str, now: Sighting, seen: &mut Vec<(i64, Sighting)>) -> bool {
    let may_run = |slot: &SlotView| {
        let lease = slot.lease.as_ref();
        lives_on(host, slot, election)
            || lease.is_some_and(|(lease, facts)| !disable::is_over(lease, facts.mzxid, now, seen))
    };
    let is_led = may_run_under(election, host).any(may_run);
    is_led || election.members().any(|member| member.host == host && member.phase == "stopping")
}

/// The slots whose records say that a command may run on this host, now or after the wait of their holder, or do not say where.
pub(super) fn may_run_under<'a>(election: &'a ElectionView, host: &'a str) -> impl Iterator<Item = &'a SlotView> {
    let may_run = move |(lease, _): &(Lease, _)| slot_state::may_run_on(host, lease);
    let is_concerned =
        move |slot: &&SlotView| lives_on(host, slot, election) || slot.lease.as_ref().is_some_and(may_run);
    election.slots.iter().filter(is_concerned)
}

/// Why nobody knows whether it leads where a command may run on it: its lease has run out by the clocks, or the record, made anew,
/// does not say whose command may run.
pub(super) fn why_not_known(election: &ElectionView, host: &str) -> Option<String> {
    let why = |slot: &SlotView| {
        let is_told = slot.lease.as_ref().is_some_and(|(lease, _)| lease.last_to_run().is_some());
        slot_state::ran_out_in_words(slot).or_else(|| match slot_state::of(slot, election) {
            SlotState::CutOff { why } if !is_told => Some(why),
            _ => None,
        })
    };
    let whys: Option<Vec<_>> = may_run_under(election, host).map(why).collect();
    whys?.into_iter().next()
}

fn lives_on(host: &str, slot: &SlotView, election: &ElectionView) -> bool {
    slot_state::leader(slot, election).is_some_and(|holder| holder.host == host)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::zookeeper::admin::Facts;
    use crate::zookeeper::schema::member::Member;

    /// It is cut off from the servers, and its member and candidate are gone: others may vouch for it.
    #[test]
    fn a_host_that_is_gone_leads_until_its_lease_and_the_promises_for_it_have_run_out() {
        let mut seen = Vec::new();
        let mut leads = |host: &str, state: &str, seconds: u64| {
            let record = format!(
                r#"{{"v":1,"state":"{state}","lease_ms":15000,"vouch_ms":600000,"guarantee":"at-most-one, vouched",
                "holder":{{"id":"a","host":"db1","pid":1}}}}"#
            );
            let lease = Some((Lease::read(record.as_bytes()).unwrap(), Facts { mzxid: 9, ..Facts::default() }));
            let election =
                ElectionView { slots: vec![SlotView { lease, ..SlotView::default() }], ..ElectionView::default() };
            leads(&election, host, Sighting::ZERO.after(Duration::from_secs(seconds)), &mut seen)
        };
        assert!(leads("db1", "held", 0) && leads("db1", "held", 605) && !leads("db1", "held", 607));
        assert!(!leads("db2", "held", 0) && !leads("db1", "free", 0));
    }

    /// Another one has taken the record, and starts nothing before that lease is over.
    #[test]
    fn a_host_whose_lease_another_one_waits_for_leads_until_it_is_over_and_the_other_one_does_not() {
        let mut seen = Vec::new();
        let mut leads = |host: &str, rest: &str, seconds: u64| {
            let record = format!(r#"{{"v":1,"state":"held","lease_ms":15000,"guarantee":"at-most-one"{rest}}}"#);
            let lease = Some((Lease::read(record.as_bytes()).unwrap(), Facts { mzxid: 9, ..Facts::default() }));
            let election =
                ElectionView { slots: vec![SlotView { lease, ..SlotView::default() }], ..ElectionView::default() };
            leads(&election, host, Sighting::ZERO.after(Duration::from_secs(seconds)), &mut seen)
        };
        let holder = r#","holder":{"id":"b","host":"db2","pid":2,"nonce":"b0-1"},"waiting_on":5"#;
        let waiting =
            format!(r#"{holder},"waiting_for":"a0-3","unfenced":[{{"id":"a","host":"db1","pid":1,"nonce":"a0-3"}}]"#);
        assert!(leads("db1", &waiting, 0) && leads("db1", &waiting, 15) && !leads("db1", &waiting, 16));
        assert!(!leads("db2", &waiting, 0), "it gave way, and waited for the lease of another host");
        for nobody_knows_where in [holder, ""] {
            assert!(["db1", "db2"].iter().all(|host| leads(host, nobody_knows_where, 15)), "{nobody_knows_where}");
        }
    }

    #[test]
    fn a_host_that_still_stops_leads_even_if_another_one_holds_the_record() {
        let leads = |phase: &str| {
            let member = Member { host: "db1".into(), phase: phase.into(), ..Member::default() };
            let members = [("a".to_owned(), (member, Facts::default()))].into();
            let election = ElectionView { members, ..ElectionView::default() };
            leads(&election, "db1", Sighting::ZERO, &mut Vec::new())
        };
        assert!(leads("stopping") && !leads("following"));
    }
}
