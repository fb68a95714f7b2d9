//! The contenders at one look, with their places and phases.

use super::{foreign, is_of, leader, overdue};
use crate::core::settings::Recipe;
use crate::zookeeper::admin::view::{Candidate, ElectionView};
use crate::zookeeper::schema::member::Member;
use crate::zookeeper::schema::recipe;

/// One contender: in line, or known only as a member.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(in crate::commands) struct Contender {
    /// From 1; `None`: not in line.
    pub place: Option<usize>,
    pub candidate: Option<Candidate>,
    pub id: String,
    pub member: Option<Member>,
    pub leads: bool,
    /// It has let its lease run out: what it said of itself may be no longer true.
    pub is_overdue: bool,
    /// The record waits for its lease, or does not tell for whose: its command may run, whoever is elected by now.
    pub outlives_its_term: bool,
    /// Why it may not be elected.
    pub why_not: Vec<String>,
}

/// The contenders: those in line by their place, then the others.
pub(in crate::commands) fn contenders(election: &ElectionView) -> Vec<Contender> {
    let holders: Vec<_> = election.slots.iter().filter_map(|slot| leader(slot, election)).collect();
    let leads = |id: &str| holders.iter().any(|holder| holder.id == id);
    let overdue: Vec<_> = election.slots.iter().filter_map(|slot| overdue(slot, election)).collect();
    let (has_no_line, is_foreign) = (has_no_line(election), foreign(election).is_some());
    let is_overdue = |member: &Member| overdue.iter().any(|holder| is_of(member, holder));
    let contender = |at: Option<(usize, &Candidate)>, id: &str, member: Option<&Member>, leads: bool| {
        let (place, candidate) = at.unzip();
        let mut why_not = member.map(|member| member.why_not.clone()).unwrap_or_default();
        if candidate.is_some_and(|candidate| candidate.facts.owner == 0) {
            why_not.push("its candidate is persistent and has no owner".to_owned());
        }
        let is_overdue = member.is_some_and(is_overdue);
        if is_overdue {
            why_not.push(OVERDUE.to_owned());
        } else if candidate.is_none() && why_not.is_empty() && !(has_no_line && member.is_some_and(|it| it.eligible)) {
            why_not.push("not in line".to_owned());
        }
        let outlives_its_term = member.is_some_and(|member| outlives_its_term(member, election));
        let (id, candidate, member) = (id.to_owned(), candidate.cloned(), member.cloned());
        Contender { place, candidate, id, member, leads, is_overdue, outlives_its_term, why_not }
    };
    let in_line = election.line.iter().enumerate().map(|(index, candidate)| {
        let id = &candidate.id;
        let double = election.line.iter().take(index).any(|other| other.id == *id);
        let member = election.members.get(id).map(|(member, _)| member);
        let leads = if is_foreign { index == 0 } else { leads(id) && !double };
        contender(Some((index + 1, candidate)), id, member, leads)
    });
    let beside = election.members.iter().filter(|(id, _)| !election.line.iter().any(|candidate| candidate.id == **id));
    in_line.chain(beside.map(|(id, (member, _))| contender(None, id, Some(member), leads(id)))).collect()
}

/// Whether only its leader has a candidate: any of the others may be the next one.
pub(in crate::commands) fn has_no_line(election: &ElectionView) -> bool {
    let mut recipes = election.slots.iter().filter_map(|slot| slot.lease.as_ref()?.0.recipe.as_deref());
    recipes.any(|name| recipe::meaning(name) == Some(Recipe::Single))
}

/// The id of the participant with this id or, if there is none, of the only one on this host; else the text itself.
/// Several on one host are an error, which names them; so is a candidate that has not said yet on which host it is.
pub(in crate::commands) fn id_of(text: &str, election: &ElectionView) -> Result<String, String> {
    let contenders = contenders(election);
    let on_it = |contender: &&Contender| contender.member.as_ref().is_some_and(|member| member.host == text);
    let mut ids: Vec<_> = contenders.iter().filter(on_it).map(|contender| contender.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    let silent = contenders.iter().find(|contender| contender.member.is_none());
    match ids.as_slice() {
        _ if contenders.iter().any(|contender| contender.id == text) => Ok(text.to_owned()),
        [] => Ok(text.to_owned()),
        [only] => match silent {
            None => Ok((*only).to_owned()),
            Some(other) => {
                Err(format!("{only} is on {text}, but {} has not said its host; name an id, or try again", other.id))
            }
        },
        several => Err(format!("several participants are on {text}; name one of them: {}", several.join(", "))),
    }
}

/// Why the holder of a lease that ran out may not be elected.
const OVERDUE: &str = "its lease is overdue";

impl Contender {
    /// The phase of its member, whose znode is a moment behind the record. A host that was cut off, hangs or is dead has left
    /// its last words there for as long as its session lasts.
    pub fn phase(&self) -> Option<&str> {
        let member = self.member.as_ref()?;
        Some(match (self.leads, member.role.as_str()) {
            _ if self.is_overdue => "unknown",
            (true, "follower") => "leading",
            // Whoever still stops has a command, even if another one leads by now.
            (false, "leader") if member.phase != "stopping" && !self.outlives_its_term => "following",
            _ => &member.phase,
        })
    }
}

fn outlives_its_term(member: &Member, election: &ElectionView) -> bool {
    election.slots.iter().any(|slot| match &slot.lease {
        Some((lease, _)) => lease.is_held() && lease.last_to_run().is_none_or(|leader| is_of(member, &leader)),
        None => !election.was_never_led(slot),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::slot_state::tests::waiting;
    use crate::commands::slot_state::{SlotState, Whose, WhyNobody, of};
    use crate::zookeeper::admin::Facts;
    use crate::zookeeper::schema::lease::Lease;

    /// `a` holds the record, and waits for the lease of `b`, which has lost its candidate and may not know it yet.
    #[test]
    fn whose_lease_is_waited_for_is_shown_in_the_phase_of_its_own_words() {
        let phase = |record: &str| {
            let mut election = waiting(&["n1"], Some("waiting"));
            election.slots[0].lease = Lease::read(record.as_bytes()).ok().map(|lease| (lease, Facts::default()));
            let (role, phase) = ("leader".to_owned(), "leading".to_owned());
            let member = Member { id: "b".into(), host: "h2".into(), pid: 2, role, phase, ..Member::default() };
            election.members.insert("b".into(), (member, Facts::default()));
            election.slots[0].term = Some(Facts { version: 2, ..Facts::default() });
            let contender = contenders(&election).into_iter().find(|contender| contender.id == "b").unwrap();
            contender.phase().map(str::to_owned).unwrap()
        };
        let held = r#"{"v":1,"state":"held","lease_ms":15000,"holder":{"id":"a","host":"h","pid":1,"candidate":"n1"}"#;
        let waiting = |whose: &str| {
            let unfenced =
                r#"[{"id":"b","host":"h2","pid":2,"nonce":"b-1"},{"id":"c","host":"h3","pid":3,"nonce":"c-1"}]"#;
            phase(&format!(r#"{held},"waiting_on":9,"waiting_for":"{whose}-1","unfenced":{unfenced}}}"#))
        };
        assert_eq!((waiting("b").as_str(), waiting("x").as_str()), ("leading", "leading"), "its command may run");
        assert_eq!(waiting("c"), "following", "its own lease is over");
        assert_eq!(phase(&format!("{held}}}")), "following", "its member is a moment behind");
        assert_eq!(phase("garbage"), "leading", "nobody knows who leads");
    }

    /// An operator has disabled the election while it fenced the leader before: its candidate keeps its place.
    #[test]
    fn who_has_said_that_it_has_left_the_term_does_not_lead() {
        let why = |is_waiting: bool, left: i64, overdue_since| {
            let mut election = waiting(&["n1"], Some("following"));
            // Written after the record, whatever it says.
            election.members.values_mut().for_each(|(member, facts)| (member.left, facts.mzxid) = (Some(left), 9));
            let slot = &mut election.slots[0];
            (slot.overdue_since, slot.term) = (overdue_since, Some(Facts { mzxid: 8, ..Facts::default() }));
            let (lease, written) = slot.lease.as_mut().unwrap();
            (lease.waiting_on, written.mzxid) = (lease.waiting_on.filter(|_| is_waiting), 8);
            let contender = contenders(&election).remove(0);
            (of(&election.slots[0], &election), contender.leads, contender.phase().map(str::to_owned))
        };
        let gave_way =
            |whose, is_over| SlotState::Nobody { why: WhyNobody::GaveWay { id: "a".into(), whose, is_over } };
        for (is_waiting, whose) in [(false, Whose::Its), (true, Whose::Before)] {
            let seen = (gave_way(whose, false), false, Some("following".into()));
            assert_eq!(why(is_waiting, 8, None), seen, "{is_waiting}");
        }
        assert_eq!(why(false, 8, Some(1)).0, gave_way(Whose::Its, true), "it is neither cut off nor hung");
        assert!(matches!(why(false, 6, None).0, SlotState::Led { .. }), "its member is a moment behind");
        assert!(matches!(why(true, 6, None).0, SlotState::Waiting { .. }));
    }

    /// Two processes of one host line up with the id of the holder, whose candidate comes first.
    #[test]
    fn of_two_candidates_with_the_id_of_the_holder_only_the_first_leads() {
        let contenders = contenders(&waiting(&["n1", "n2"], Some("leading")));
        let seen: Vec<_> = contenders.iter().map(|contender| (contender.place, contender.leads)).collect();
        assert_eq!(seen, [(Some(1), true), (Some(2), false)]);
    }
}
