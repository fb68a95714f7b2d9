//! Checks whether an outage of the ensemble would be lived through, and which host would spoil that.
//!
//! Whether hosts reach one another cannot be seen from here: the leader's `/status` says it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use super::{Finding, advice, good, wrong};
use crate::commands::slot_state::{self, SlotState};
use crate::observe::words;
use crate::zookeeper::admin::view::{ElectionView, SlotView};
use crate::zookeeper::schema::lease::Lease;
use crate::zookeeper::schema::member::Member;

const WHAT: &str = "outages";

/// None if nobody has `--vouch`.
pub(super) fn findings(election: &ElectionView) -> Vec<Finding> {
    let members: Vec<_> = election.members().collect();
    // After the last promise has run out, or where the leader gave way, no command runs on.
    let may_run =
        |slot: &&SlotView| matches!(slot_state::of(slot, election), SlotState::Led { .. } | SlotState::CutOff { .. });
    let leases = election.slots.iter().filter(may_run).filter_map(|slot| slot.lease.as_ref()).map(|(lease, _)| lease);
    let held = leases.into_iter().find(|lease| lease.is_held() && lease.waiting_on.is_none() && lease.holder.is_some());
    let limit = held.and_then(|lease| lease.vouch_ms).map(Duration::from_millis);
    if limit.is_none() && members.iter().all(|member| member.vouch.is_empty()) {
        return Vec::new();
    }
    let is_cut_off = |slot| matches!(slot_state::of(slot, election), SlotState::CutOff { .. });
    let is_cut_off = election.slots.iter().any(is_cut_off);
    let mut findings: Vec<_> = held.iter().filter_map(|lease| of_leader(lease, is_cut_off, limit)).collect();
    let leader = held.and_then(|lease| lease.holder.as_ref()).map(|holder| holder.id.as_str());
    for member in members.iter().filter(|member| member.vouch.is_empty() && Some(member.id.as_str()) != leader) {
        findings.push(without(member, limit));
    }
    let hosts: BTreeSet<_> = members.iter().map(|member| &member.host).collect();
    let elsewhere = |member: &&&Member| hosts.len() > 1 && is_loopback(&member.vouch);
    for Member { id, vouch, .. } in members.iter().filter(elsewhere) {
        let text = format!("{id} is to be asked at {vouch}, where no other host reaches it");
        findings.push(wrong(WHAT, format!("{text}; give it --vouch-address and an address that the others reach")));
    }
    findings.extend(leader.into_iter().flat_map(|leader| of_other_families(leader, &members)));
    findings
}

/// Neither reaches the other: the leader asks in vain.
fn of_other_families(leader: &str, members: &[&Member]) -> Vec<Finding> {
    let address = |member: &Member| member.vouch.parse::<SocketAddr>().ok();
    let own = members.iter().find(|member| member.id == leader).and_then(|member| address(member));
    let family = |address: SocketAddr| if address.is_ipv4() { "IPv4" } else { "IPv6" };
    let finding = |member: &&Member| {
        let (own, other) = (family(own?), family(address(member)?));
        let text = format!("{leader} has an {own} address and {} an {other} address for vouching", member.id);
        let remedy = "they cannot reach each other; give both --vouch-address of one family";
        (own != other).then(|| wrong(WHAT, format!("{text}: {remedy}")))
    };
    members.iter().filter_map(finding).collect()
}

fn of_leader(lease: &Lease, is_cut_off: bool, limit: Option<Duration>) -> Option<Finding> {
    let leader = &lease.holder.as_ref()?.id;
    let Some(limit) = limit.map(words::length) else {
        let text = format!("{leader} leads without --vouch: an outage of ZooKeeper stops its command after one lease");
        return Some(advice(WHAT, format!("{text}; add the option there, too")));
    };
    if is_cut_off {
        let text =
            format!("{leader} is cut off or dead: its command may run on promises, for {limit} after its last renewal");
        return Some(advice(WHAT, format!("{text}; zk-leaderctl status says until when, and its log what it does")));
    }
    if lease.roster.is_empty() {
        let text = format!("no other host vouches: in an outage of ZooKeeper the command runs on for {limit} at most");
        let remedy = "a host that comes then waits for that long; start a second one with --vouch";
        return Some(advice(WHAT, format!("{text}, and {remedy}")));
    }
    let asked: Vec<_> = lease.roster.iter().map(|host| format!("{} ({})", host.id, host.address)).collect();
    let asked = asked.join(", ");
    let text = format!("{leader} runs on for {limit} at most without ZooKeeper, while all of these hold back: {asked}");
    Some(good(WHAT, format!("{text}; its /status says whether they answer")))
}

/// It is asked nothing, so it does not end the run; it is slow to take over.
fn without(member: &Member, limit: Option<Duration>) -> Finding {
    let Member { id, version, .. } = member;
    let waits = limit.map_or_else(String::new, |limit| {
        format!("it waits for {} before it takes over from a leader that did not release, and ", words::length(limit))
    });
    let text = format!("{id} (version {version}) has no --vouch: {waits}under its lead an outage stops the command");
    advice(WHAT, format!("{text}; add the option there, after an upgrade if it does not know it"))
}

fn is_loopback(address: &str) -> bool {
    address.parse().is_ok_and(|address: SocketAddr| address.ip().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::super::Grade;
    use super::*;
    use crate::zookeeper::admin::Facts;
    use crate::zookeeper::admin::view::Candidate;

    const LEADER: &str = r#""v":1,"state":"held","lease_ms":15000,"holder":{"id":"a","host":"h1","pid":1}"#;
    const ASKS_B: &str =
        r#""vouch_ms":600000,"roster":[{"instance":"0000000000000002","id":"b","address":"10.0.0.2:4711"}]"#;

    fn election(record: &str, members: &[(&str, &str)]) -> ElectionView {
        let lease = Lease::read(record.as_bytes()).unwrap();
        let slots = vec![SlotView { lease: Some((lease, Facts::default())), ..SlotView::default() }];
        let member = |(index, (id, vouch)): (usize, &(&str, &str))| {
            let (id, host) = ((*id).to_owned(), format!("h{index}"));
            let member = Member {
                id: id.clone(),
                host,
                vouch: (*vouch).to_owned(),
                version: "0.1.0".into(),
                ..Member::default()
            };
            (id, (member, Facts::default()))
        };
        let line = members.iter().map(|(id, _)| Candidate { id: (*id).to_owned(), ..Candidate::default() }).collect();
        let members = members.iter().enumerate().map(member).collect();
        ElectionView { line, slots, members, ..ElectionView::default() }
    }

    fn graded(record: &str, members: &[(&str, &str)]) -> Vec<(Grade, String)> {
        findings(&election(record, members)).into_iter().map(|finding| (finding.grade, finding.said)).collect()
    }

    #[test]
    fn without_the_option_there_is_nothing_to_say() {
        assert_eq!(graded(&format!("{{{LEADER}}}"), &[("a", ""), ("b", "")]), []);
    }

    #[test]
    fn who_is_asked_and_for_how_long_is_told() {
        let said = graded(&format!("{{{LEADER},{ASKS_B}}}"), &[("a", "10.0.0.1:1"), ("b", "10.0.0.2:4711")]);
        let line = "a runs on for 10m at most without ZooKeeper, while all of these hold back: b (10.0.0.2:4711); its /status \
                    says whether they answer";
        assert_eq!(said, [(Grade::Good, line.to_owned())]);
    }

    #[test]
    fn a_leader_that_is_cut_off_is_nothing_good() {
        let said = graded(&format!("{{{LEADER},{ASKS_B}}}"), &[("b", "10.0.0.2:4711")]);
        assert_eq!((said.len(), said[0].0), (1, Grade::Advice));
        assert!(
            said[0].1.starts_with("a is cut off or dead: its command may run on promises, for 10m after"),
            "{said:?}"
        );
    }

    #[test]
    fn a_leader_whose_last_promise_has_run_out_does_not_run_on() {
        for members in [&[("b", "10.0.0.2:4711")][..], &[("a", "10.0.0.1:1"), ("b", "10.0.0.2:4711")]] {
            let mut election = election(&format!("{{{LEADER},{ASKS_B}}}"), members);
            election.slots[0].overdue_since = Some(1);
            assert_eq!(findings(&election), []);
        }
    }

    /// As when its fence command has failed.
    #[test]
    fn a_leader_that_gave_way_without_releasing_runs_nothing() {
        let mut election = election(&format!("{{{LEADER},{ASKS_B}}}"), &[("b", "10.0.0.2:4711"), ("a", "10.0.0.1:1")]);
        let (member, _) = election.members.get_mut("a").unwrap();
        (member.pid, member.left) = (1, Some(5));
        assert_eq!(findings(&election).len(), 1, "another term");
        election.slots[0].term = Some(Facts { mzxid: 5, ..Facts::default() });
        assert_eq!(findings(&election), []);
    }

    #[test]
    fn members_and_a_leader_without_the_option_are_named() {
        let said = graded(&format!("{{{LEADER},{ASKS_B}}}"), &[("a", "10.0.0.1:1"), ("b", "10.0.0.2:4711"), ("c", "")]);
        assert_eq!((said.len(), said[1].0), (2, Grade::Advice));
        assert!(said[1].1.starts_with("c (version 0.1.0) has no --vouch: it waits for 10m before it"), "{said:?}");
        let said = graded(&format!("{{{LEADER}}}"), &[("a", ""), ("b", "10.0.0.2:4711")]);
        assert_eq!((said.len(), said[0].0), (1, Grade::Advice));
        assert!(said[0].1.starts_with("a leads without --vouch: an outage of ZooKeeper stops"), "{said:?}");
    }

    #[test]
    fn a_leader_whom_nobody_can_replace_is_told_what_that_means() {
        let said = graded(&format!(r#"{{{LEADER},"vouch_ms":600000}}"#), &[("a", "10.0.0.1:1")]);
        assert_eq!((said.len(), said[0].0), (1, Grade::Advice));
        assert!(said[0].1.contains("a host that comes then waits for that long"), "{said:?}");
    }

    #[test]
    fn addresses_of_two_families_are_wrong() {
        let members = [("a", "10.0.0.1:1"), ("b", "10.0.0.2:4711"), ("d", "[fd00::4]:4711"), ("e", "")];
        let said = graded(&format!("{{{LEADER},{ASKS_B}}}"), &members);
        let text = "a has an IPv4 address and d an IPv6 address for vouching: they cannot reach each other; give both \
                    --vouch-address of one family";
        let wrong: Vec<_> = said.iter().filter(|(grade, _)| *grade == Grade::Wrong).map(|(_, said)| said).collect();
        assert_eq!(wrong, [text], "{said:?}");
    }

    #[test]
    fn an_address_that_no_other_host_reaches_is_wrong() {
        let members = [("a", "10.0.0.1:1"), ("b", "127.0.0.1:4711")];
        let said = graded(&format!("{{{LEADER},{ASKS_B}}}"), &members);
        assert!(
            said.iter()
                .any(|(grade, text)| *grade == Grade::Wrong && text.contains("b is to be asked at 127.0.0.1:4711"))
        );
        let alone = graded(&format!("{{{LEADER},{ASKS_B}}}"), &members[1..]);
        assert!(alone.iter().all(|(grade, _)| *grade != Grade::Wrong), "of one host only: {alone:?}");
    }
}
