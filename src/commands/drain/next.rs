//! Whether a drained host, which does not lead now, is about to: a drained host stays in an election that nobody else could lead.

use crate::commands::slot_state;
use crate::zookeeper::admin::view::ElectionView;
use crate::zookeeper::schema::member::Member;

const LEADER: &str = "leader";

/// Whether the next leader is this host: it is the next in line for a slot whose leader gives way, and nobody else could lead.
pub(super) fn leads_next(election: &ElectionView, host: &str) -> bool {
    let is_disabled = election.orders.disabled.is_some();
    let leaders = members(election).filter(|member| leads_on(election, member)).count();
    let free = election.slots.len().max(1).saturating_sub(leaders);
    let could_lead = |other: &Member| other.can_replace(host) && !is_drained(election, &other.host);
    !is_disabled && is_next_in_line(election, host, free) && !members(election).any(could_lead)
}

fn members(election: &ElectionView) -> impl Iterator<Item = &Member> {
    election.members.values().map(|(member, _)| member)
}

/// For so many slots. Leaders that give way are about to leave the line, and the others stay where they are.
fn is_next_in_line(election: &ElectionView, host: &str, slots: usize) -> bool {
    let member = |id: &str| election.members.get(id).map(|(member, _)| member);
    let is_leader = |id: &str| member(id).is_some_and(|member| member.role == LEADER);
    let next = election.line.iter().filter(|candidate| !is_leader(&candidate.id)).take(slots);
    next.filter_map(|candidate| member(&candidate.id)).any(|member| member.host == host)
}

fn leads_on(election: &ElectionView, member: &Member) -> bool {
    member.role == LEADER && !gives_way(election, member)
}

/// A leader that stops, or has not heard yet that its host is drained: nobody knows whether it stays.
fn gives_way(election: &ElectionView, member: &Member) -> bool {
    let has_heard = member.drained || !is_drained(election, &member.host);
    let is_steady = member.eligible && slot_state::runs(Some(&member.phase)) && has_heard;
    member.role == LEADER && !is_steady
}

fn is_drained(election: &ElectionView, host: &str) -> bool {
    election.drains.iter().any(|drain| drain.is_in_force && drain.host == host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zookeeper::admin::Facts;
    use crate::zookeeper::admin::view::{Candidate, DrainView, SlotView};
    use crate::zookeeper::schema::control::Disabled;
    use crate::zookeeper::schema::control::drain::Drain;

    /// Hosts in line in this order: name, phase, eligible, drained as it says itself. The first leads.
    fn election(hosts: &[(&str, &str, bool, bool)]) -> ElectionView {
        let mut election = ElectionView::default();
        for (place, &(host, phase, eligible, drained)) in hosts.iter().enumerate() {
            let role = if place == 0 { "leader" } else { "follower" };
            let (role, phase) = (role.to_owned(), phase.to_owned());
            let (id, host) = (format!("{host}:1"), host.to_owned());
            let member = Member { id: id.clone(), host, phase, role, eligible, drained, ..Member::default() };
            election.members.insert(id.clone(), (member, Facts::default()));
            election.line.push(Candidate { id, ..Candidate::default() });
        }
        election
    }

    fn with_drains(mut election: ElectionView, hosts: &[&str]) -> ElectionView {
        let drain = |host: &&str| {
            let drain = Drain { order: "1".into(), ..Drain::default() };
            DrainView { host: (*host).to_owned(), drain, written_at: 0, is_in_force: true }
        };
        election.drains = hosts.iter().map(drain).collect();
        election
    }

    #[test]
    fn who_stands_behind_a_leader_that_gives_way_leads_next_unless_another_can() {
        let stopping = ("a", "stopping", false, true);
        let next = |hosts: &[(&str, &str, bool, bool)]| leads_next(&election(hosts), "b");
        assert!(next(&[stopping, ("b", "following", true, true)]));
        assert!(!next(&[stopping, ("b", "following", true, true), ("c", "following", true, false)]));
        assert!(next(&[stopping, ("b", "following", true, true), ("c", "following", false, false)]));
        assert!(next(&[stopping, ("b", "following", true, true), ("c", "following", true, true)]));
        assert!(!next(&[stopping, ("c", "following", true, true), ("b", "following", true, true)]), "c is before it");
        assert!(!next(&[stopping]), "it is not in line");
    }

    #[test]
    fn a_drained_leader_that_stays_is_enough_once_it_has_heard() {
        let election = |drained| election(&[("a", "leading", true, drained), ("b", "following", true, true)]);
        assert!(!leads_next(&with_drains(election(true), &["a", "b"]), "b"));
        assert!(!leads_next(&with_drains(election(false), &["b"]), "b"), "it leads on");
        assert!(leads_next(&with_drains(election(false), &["a", "b"]), "b"), "it may stop, or stay");
    }

    #[test]
    fn of_two_leaders_one_that_gives_way_makes_room() {
        let hosts = [("a", "leading", true, true), ("b", "stopping", false, true), ("c", "following", true, true)];
        let mut election = with_drains(election(&hosts), &["a", "b", "c"]);
        if let Some((member, _)) = election.members.get_mut("b:1") {
            member.role = LEADER.to_owned();
        }
        assert!(!leads_next(&election, "c"), "there is one slot only");
        election.slots = vec![SlotView::default(), SlotView::default()];
        assert!(leads_next(&election, "c"));
    }

    #[test]
    fn nobody_leads_a_disabled_election_next() {
        let mut election = election(&[("a", "stopping", false, true), ("b", "following", true, true)]);
        assert!(leads_next(&election, "b"));
        election.orders.disabled = Some(Disabled::default());
        assert!(!leads_next(&election, "b"));
    }
}
