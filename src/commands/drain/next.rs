//! Whether a drained host, which does not lead now, is about to: a drained host stays in an election that nobody else could lead.

use crate::commands::slot_state;
use crate::zookeeper::admin::view::ElectionView;
use crate::zookeeper::schema::member::{DRAINED, Member};

const LEADER: &str = "leader";

/// Whether the next leader is this host: it is the next in line for a slot whose leader gives way, or lines up for one that nobody is in
/// line for, and nobody else could lead.
pub(super) fn leads_next(election: &ElectionView, host: &str) -> bool {
    let is_disabled = election.orders.disabled.is_some();
    let leaders = election.members().filter(|member| leads_on(election, member)).count();
    let free = election.slots.len().max(1).saturating_sub(leaders);
    let could_lead = |other: &Member| other.can_replace(host) && !is_drained(election, &other.host);
    let is_next = is_next_in_line(election, host, free) || lines_up(election, host, free);
    !is_disabled && is_next && !election.members().any(could_lead)
}

/// For so many slots.
fn is_next_in_line(election: &ElectionView, host: &str, slots: usize) -> bool {
    let next = standbys(election).take(slots).filter_map(|id| election.members.get(id));
    next.into_iter().any(|(member, _)| member.host == host)
}

/// Whether the line is too short for so many slots, and only a drain keeps this host out of it, which holds only while others could
/// lead. Who has just released is in no line, and its member may not say yet that it leads no more.
fn lines_up(election: &ElectionView, host: &str, slots: usize) -> bool {
    let is_forced = || election.drains.iter().any(|drain| drain.is_in_force && drain.host == host && drain.drain.force);
    let can_lead = |member: &Member| member.host == host && (member.eligible || member.why_not == [DRAINED]);
    standbys(election).count() < slots && election.members().any(can_lead) && !is_forced()
}

/// Leaders that give way are about to leave the line, and the others stay where they are.
fn standbys(election: &ElectionView) -> impl Iterator<Item = &str> {
    let is_leader = |id: &str| election.members.get(id).is_some_and(|(member, _)| member.role == LEADER);
    election.line.iter().map(|candidate| candidate.id.as_str()).filter(move |id| !is_leader(id))
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

    /// Both were drained one right after the other, and their members still say what they were.
    #[test]
    fn who_has_just_released_lines_up_again_if_no_other_host_could_lead() {
        let released = |drained: bool| {
            let hosts = [("b", "stopping", !drained, drained), ("a", "following", true, drained)];
            let mut election = with_drains(election(&hosts), &["a", "b"]);
            election.line.clear();
            if let Some((member, _)) = election.members.get_mut("b:1") {
                member.why_not = if drained { vec![DRAINED.to_owned()] } else { Vec::new() };
            }
            election
        };
        assert!(leads_next(&released(false), "b") && leads_next(&released(true), "b"), "nobody else could");
        let mut behind = released(true);
        behind.line.push(Candidate { id: "a:1".into(), ..Candidate::default() });
        assert!(!leads_next(&behind, "b"), "a is in line");
        let mut barred = released(true);
        if let Some((member, _)) = barred.members.get_mut("b:1") {
            member.why_not.push("unhealthy".to_owned());
        }
        assert!(!leads_next(&barred, "b"));
        let mut forced = released(true);
        forced.drains.iter_mut().for_each(|drain| drain.drain.force = true);
        assert!(!leads_next(&forced, "b"), "it is obeyed even so");
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
