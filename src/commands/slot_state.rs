//! The state of each slot at one look: who leads, and why each other contender does not.
//!
//! It is for people, from the records, the line and the members; no decision about who may run rests on it.
//!
//! Never: "nobody leads" where that is not known.

use std::fmt;

use crate::zookeeper::admin::Facts;
use crate::zookeeper::admin::view::{Candidate, ElectionView, SlotView};
use crate::zookeeper::schema::control::moment::moment;
use crate::zookeeper::schema::lease::{Holder, Lease};
use crate::zookeeper::schema::member::Member;

/// The state of one slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum SlotState {
    /// The command may run there.
    Led {
        holder: Holder,
        phase: String,
    },
    /// First in line in a shared election is a contender that is none of ours: by its place, it leads.
    Foreign {
        id: String,
    },
    /// The record is taken, but the lease before it must run out first.
    Waiting {
        holder: Holder,
    },
    /// The lease of this holder ran out at this time (milliseconds since 1970), and it is still written there.
    Overdue {
        holder: Holder,
        since: i64,
    },
    Nobody {
        why: WhyNobody,
    },
    /// The holder is gone, and others may vouch for it; or the record was lost, and who holds it is not known. Its command may run.
    CutOff {
        why: String,
    },
    /// The record cannot be read.
    Unknown,
}

impl SlotState {
    /// Whether a command may run there or not.
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::CutOff { .. } | Self::Unknown)
    }
}

/// Why no host leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum WhyNobody {
    Disabled {
        by: String,
    },
    /// The lease is free, and no host is in line: all are gone, or may not be elected.
    NoneInLine {
        members: usize,
        /// So many of them may not be elected, and say why.
        barred: usize,
    },
    /// The lease is free, and the first in line may take it.
    Free,
    RecordLost,
    /// This holder is gone.
    LeaseRunsOut {
        id: String,
        whose: Whose,
    },
    /// This holder is there and follows: it ended its term and could not release.
    GaveWay {
        id: String,
        whose: Whose,
        /// That lease has run out.
        is_over: bool,
    },
}

/// Which lease must run out under a holder that runs nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Whose {
    Its,
    /// It waited, and never had one of its own.
    Before,
}

impl Whose {
    pub const fn of(lease: &Lease) -> Self {
        if lease.waiting_on.is_some() { Self::Before } else { Self::Its }
    }
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Its => "its lease",
            Self::Before => "the lease before it",
        })
    }
}

impl WhyNobody {
    /// For programs: stable, to be matched on.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Disabled { .. } => "disabled",
            Self::NoneInLine { barred: 0, .. } => "no-contender",
            Self::NoneInLine { .. } => "none-eligible",
            Self::Free => "free",
            Self::RecordLost => "record-lost",
            Self::LeaseRunsOut { .. } => "lease-runs-out",
            Self::GaveWay { .. } => "gave-way",
        }
    }
}

impl fmt::Display for WhyNobody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disabled { by } => write!(f, "the lease is free, and {by} disabled the election"),
            Self::NoneInLine { members: 0, .. } => f.write_str("the lease is free, and no host takes part"),
            // As for a while after its last process was killed.
            Self::NoneInLine { barred: 0, .. } => f.write_str("the lease is free, and no host is in line"),
            Self::NoneInLine { .. } => {
                f.write_str("the lease is free, and no host may be elected (the reasons are below)")
            }
            Self::Free => f.write_str("the lease is free"),
            Self::RecordLost => f.write_str("the record was lost, and its unknown holder's lease has run out"),
            Self::LeaseRunsOut { id, whose } => write!(f, "{id} is gone, and {whose} must run out"),
            Self::GaveWay { id, whose, is_over } => {
                let end = if *is_over { "has run out" } else { "must run out" };
                write!(f, "{id} gave way without releasing, and {whose} {end}")
            }
        }
    }
}

/// One contender: in line, or known only as a member.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Contender {
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

/// Judges one slot.
pub(super) fn of(slot: &SlotView, election: &ElectionView) -> SlotState {
    let Some((lease, written)) = &slot.lease else { return SlotState::Unknown };
    if let Some(id) = stranger(election) {
        return SlotState::Foreign { id };
    }
    if !lease.is_held() {
        return SlotState::Nobody { why: why_free(election) };
    }
    let Some(holder) = lease.known_holder().cloned() else {
        return record_lost(slot, lease, written);
    };
    let whose = Whose::of(lease);
    if gave_way(&holder, written, election) {
        let is_over = slot.overdue_since.is_some();
        return SlotState::Nobody { why: WhyNobody::GaveWay { id: holder.id, whose, is_over } };
    }
    if let Some(since) = slot.overdue_since {
        return SlotState::Overdue { holder, since };
    }
    let (member, is_waiting) = (member_of(election, &holder), lease.waiting_on.is_some());
    let in_line = election.line.iter().any(|candidate| candidate.id == holder.id);
    match member {
        _ if is_waiting && waits(&holder, written, election) => SlotState::Waiting { holder },
        Some(member) if member.phase == "waiting" => SlotState::Waiting { holder },
        Some(member) if member.role == "leader" => SlotState::Led { holder, phase: member.phase.clone() },
        // Not written yet, or by a version that writes none.
        _ if in_line && !is_waiting => SlotState::Led { holder, phase: "leading".to_owned() },
        _ if lease.vouch_ms.is_some() && !is_waiting => SlotState::CutOff { why: cut_off(&holder.id, lease, written) },
        _ => SlotState::Nobody { why: WhyNobody::LeaseRunsOut { id: holder.id, whose } },
    }
}

/// Whoever held the record that was lost may be cut off from the servers, and run its command for as long as the new one says.
fn record_lost(slot: &SlotView, lease: &Lease, written: &Facts) -> SlotState {
    if slot.overdue_since.is_some() {
        return SlotState::Nobody { why: WhyNobody::RecordLost };
    }
    let until = moment(longest_until(lease, written));
    SlotState::CutOff {
        why: format!("the record was lost, and the command of its unknown holder may run until {until}"),
    }
}

fn cut_off(id: &str, lease: &Lease, written: &Facts) -> String {
    let until = moment(longest_until(lease, written));
    format!("{id} is cut off or dead; with --vouch its command may run until {until}")
}

/// Until when a command may run under a record that is not written again, by `ZooKeeper`'s clock.
pub(super) fn longest_until(lease: &Lease, written: &Facts) -> i64 {
    written.changed_at.saturating_add(i64::try_from(lease.longest().as_millis()).unwrap_or(i64::MAX))
}

/// Of a holder that waits.
pub(super) fn waits_in_words(id: &str) -> String {
    format!("{id} is elected, and waits until the lease before its own is over")
}

/// Whether the holder of a record that was written like this has said since then that it follows. A member that is a moment
/// behind the record has said so before.
pub(super) fn gave_way(holder: &Holder, written: &Facts, election: &ElectionView) -> bool {
    let member = election.members.get(&holder.id).filter(|(member, _)| is_of(member, holder));
    member.is_some_and(|(member, said)| member.role == "follower" && said.mzxid > written.mzxid)
}

/// Whether the holder of a record that waits is still there: it renews nothing, so only its candidate and its member tell.
pub(super) fn waits(holder: &Holder, written: &Facts, election: &ElectionView) -> bool {
    let is_its_own = |candidate: &Candidate| match &holder.candidate {
        Some(name) => candidate.name == *name,
        None => candidate.id == holder.id,
    };
    let says_so = member_of(election, holder).is_some_and(|member| member.phase == "waiting");
    !gave_way(holder, written, election) && (says_so || election.line.iter().any(is_its_own))
}

fn why_free(election: &ElectionView) -> WhyNobody {
    match &election.orders.disabled {
        Some(order) => WhyNobody::Disabled { by: order.by.clone() },
        None if election.line.is_empty() => {
            let is_barred = |(member, _): &&(Member, _)| !member.eligible || !member.why_not.is_empty();
            let (members, barred) = (election.members.len(), election.members.values().filter(is_barred).count());
            WhyNobody::NoneInLine { members, barred }
        }
        None => WhyNobody::Free,
    }
}

/// The first in line, if it is a contender of another library: by its id, or else by its name.
fn stranger(election: &ElectionView) -> Option<String> {
    let first = election.line.first().filter(|_| election.is_shared)?;
    let is_ours = |(member, _): &(Member, _)| member.id == first.id;
    let held_by_it = |slot: &SlotView| {
        let holder = slot.lease.as_ref().and_then(|(lease, _)| lease.holder.as_ref());
        holder.is_some_and(|holder| holder.candidate.as_ref() == Some(&first.name))
    };
    let is_ours = election.members.values().any(is_ours) || election.slots.iter().any(held_by_it);
    let id = if first.id.is_empty() { &first.name } else { &first.id };
    (!is_ours).then(|| id.clone())
}

/// The contenders: those in line by their place, then the others.
pub(super) fn contenders(election: &ElectionView) -> Vec<Contender> {
    let holders: Vec<_> = election.slots.iter().filter_map(|slot| leader(slot, election)).collect();
    let leads = |id: &str| holders.iter().any(|holder| holder.id == id);
    let overdue: Vec<_> = election.slots.iter().filter_map(|slot| overdue(slot, election)).collect();
    let is_overdue = |member: &Member| overdue.iter().any(|holder| is_of(member, holder));
    let mut contenders = Vec::new();
    for (index, candidate) in election.line.iter().enumerate() {
        let double = election.line.iter().take(index).any(|other| other.id == candidate.id);
        let member = election.members.get(&candidate.id).map(|(member, _)| member.clone());
        let mut why_not = member.as_ref().map(|member| member.why_not.clone()).unwrap_or_default();
        if candidate.facts.owner == 0 {
            why_not.push("its candidate is persistent and has no owner".to_owned());
        }
        let id = candidate.id.clone();
        let (leads, is_overdue) = (leads(&id) && !double, member.as_ref().is_some_and(is_overdue));
        if is_overdue {
            why_not.push(OVERDUE.to_owned());
        }
        let outlives_its_term = member.as_ref().is_some_and(|member| outlives_its_term(member, election));
        let (place, candidate) = (Some(index + 1), Some(candidate.clone()));
        contenders.push(Contender { place, candidate, id, member, leads, is_overdue, outlives_its_term, why_not });
    }
    for (id, (member, _)) in &election.members {
        if !election.line.iter().any(|candidate| candidate.id == *id) {
            let (mut why_not, is_overdue) = (member.why_not.clone(), is_overdue(member));
            if is_overdue {
                why_not.push(OVERDUE.to_owned());
            } else if why_not.is_empty() {
                why_not.push("not in line".to_owned());
            }
            let (leads, outlives_its_term) = (leads(id), outlives_its_term(member, election));
            let (id, member) = (id.clone(), Some(member.clone()));
            let (place, candidate) = (None, None);
            contenders.push(Contender { place, candidate, id, member, leads, is_overdue, outlives_its_term, why_not });
        }
    }
    contenders
}

/// The id of the participant with this id or, if there is none, of the only one on this host; else the text itself.
/// Several on one host are an error, which names them; so is a candidate that has not said yet on which host it is.
pub(super) fn id_of(text: &str, election: &ElectionView) -> Result<String, String> {
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

/// Whether a command may run on this host under this record, unless the lease is over.
pub(super) fn may_run_on(host: &str, lease: &Lease) -> bool {
    lease.is_held() && lease.last_to_run().is_none_or(|leader| leader.host == host)
}

/// The living holder of a slot.
pub(super) fn leader(slot: &SlotView, election: &ElectionView) -> Option<Holder> {
    match of(slot, election) {
        SlotState::Led { holder, .. } | SlotState::Waiting { holder } => Some(holder),
        _ => None,
    }
}

/// The holder of a slot whose lease ran out.
fn overdue(slot: &SlotView, election: &ElectionView) -> Option<Holder> {
    match of(slot, election) {
        SlotState::Overdue { holder, .. } => Some(holder),
        _ => None,
    }
}

/// By its own words it has heard of an order to stop. Before its command runs, it may not have.
pub(super) fn is_stopping(phase: &str) -> bool {
    matches!(phase, "stopping" | "releasing" | "done")
}

/// The phase of the holder of a slot, if it is there and has heard of an order to stop.
pub(super) fn stopping(slot: &SlotView, election: &ElectionView) -> Option<String> {
    match of(slot, election) {
        SlotState::Led { phase, .. } if is_stopping(&phase) => Some(phase),
        _ => None,
    }
}

/// What this holder itself says of the term with this token: `preparing`, `leading`, …; `None`: nothing yet.
pub(super) fn said_phase<'a>(holder: &Holder, token: i64, election: &'a ElectionView) -> Option<&'a str> {
    let member = member_of(election, holder).filter(|member| member.token == Some(token))?;
    Some(&member.phase)
}

/// Whether the command runs in a phase, and not only what must come before it.
pub(super) fn runs(phase: Option<&str>) -> bool {
    matches!(phase, Some("leading" | "vouched" | "paused"))
}

/// The member's record of a holder: of the same process.
fn member_of<'a>(election: &'a ElectionView, holder: &Holder) -> Option<&'a Member> {
    election.members.get(&holder.id).map(|(member, _)| member).filter(|member| is_of(member, holder))
}

/// Another process may have come with its id.
fn is_of(member: &Member, holder: &Holder) -> bool {
    member.id == holder.id && member.host == holder.host && member.pid == holder.pid
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An election whose record `a` wrote to wait, with this line and this phase of its member.
    fn waiting(line: &[&str], phase: Option<&str>) -> ElectionView {
        let record = r#"{"v":1,"state":"held","lease_ms":15000,"waiting_on":9,
            "holder":{"id":"a","host":"h","pid":1,"candidate":"n1"}}"#;
        let lease = Some((Lease::read(record.as_bytes()).unwrap(), Facts::default()));
        let candidate = |name: &&str| Candidate { name: (*name).to_owned(), id: "a".into(), facts: Facts::default() };
        let member = |phase: &str| Member {
            id: "a".into(),
            host: "h".into(),
            pid: 1,
            phase: phase.to_owned(),
            role: if phase == "following" { "follower" } else { "leader" }.to_owned(),
            ..Member::default()
        };
        ElectionView {
            slots: vec![SlotView { lease, ..SlotView::default() }],
            line: line.iter().map(candidate).collect(),
            members: phase.map(|phase| ("a".to_owned(), (member(phase), Facts::default()))).into_iter().collect(),
            ..ElectionView::default()
        }
    }

    #[test]
    fn reasons_are_below_only_if_a_member_gives_one() {
        let why = |members: &[(bool, &str)]| {
            let member = |(place, &(eligible, why)): (usize, &(bool, &str))| {
                let why_not = if why.is_empty() { Vec::new() } else { vec![why.to_owned()] };
                (place.to_string(), (Member { eligible, why_not, ..Member::default() }, Facts::default()))
            };
            let members = members.iter().enumerate().map(member).collect();
            let why = why_free(&ElectionView { members, ..ElectionView::default() });
            (why.word(), why.to_string())
        };
        let said = |word, end: &str| (word, format!("the lease is free, and {end}"));
        assert_eq!(why(&[]), said("no-contender", "no host takes part"));
        assert_eq!(why(&[(true, "")]), said("no-contender", "no host is in line"), "its process was killed");
        let reasons = "no host may be elected (the reasons are below)";
        assert_eq!(why(&[(true, ""), (false, "unhealthy")]), said("none-eligible", reasons));
        assert_eq!(why(&[(false, "")]), said("none-eligible", reasons), "an earlier build gives no reason");
    }

    /// Cut off from the servers alone: its session is over, and with it its member and its candidate.
    #[test]
    fn whether_a_leader_that_others_may_vouch_for_still_leads_is_not_known_until_its_limit_is_over() {
        let record =
            r#"{"v":1,"state":"held","lease_ms":15000,"vouch_ms":60000,"holder":{"id":"a","host":"h","pid":1}}"#;
        let written = Facts { changed_at: 1_795_226_400_000, ..Facts::default() };
        let mut election = waiting(&[], None);
        election.slots[0].lease = Some((Lease::read(record.as_bytes()).unwrap(), written));
        let why = "a is cut off or dead; with --vouch its command may run until 2026-11-21 02:01:00 UTC".to_owned();
        assert_eq!(of(&election.slots[0], &election), SlotState::CutOff { why }, "it may lead");
        election.slots[0].overdue_since = Some(written.changed_at + 60_000);
        assert!(matches!(of(&election.slots[0], &election), SlotState::Overdue { .. }));
    }

    /// An operator has disabled the election while it fenced the leader before: its candidate keeps its place.
    #[test]
    fn who_has_said_since_it_took_the_record_that_it_follows_does_not_lead() {
        let why = |is_waiting: bool, member: i64, overdue_since| {
            let mut election = waiting(&["n1"], Some("following"));
            election.members.values_mut().for_each(|(_, facts)| facts.mzxid = member);
            election.slots[0].overdue_since = overdue_since;
            let (lease, written) = election.slots[0].lease.as_mut().unwrap();
            (lease.waiting_on, written.mzxid) = (lease.waiting_on.filter(|_| is_waiting), 7);
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

    #[test]
    fn who_has_taken_the_record_waits_as_long_as_it_is_there() {
        let state = |line: &[&str], phase| {
            let election = waiting(line, phase);
            of(&election.slots[0], &election)
        };
        let is_waiting = |state: SlotState| matches!(state, SlotState::Waiting { .. });
        assert!(is_waiting(state(&["n1"], None)), "its member is not written yet");
        assert!(is_waiting(state(&["n1"], Some("following"))), "its member is a moment behind");
        assert!(is_waiting(state(&[], Some("waiting"))));
        assert!(matches!(state(&["n1"], Some("leading")), SlotState::Waiting { .. }));
        let is_gone = |state: SlotState| matches!(state, SlotState::Nobody { why: WhyNobody::LeaseRunsOut { id, .. } } if id == "a");
        assert!(is_gone(state(&[], None)), "its session has ended");
        assert!(is_gone(state(&[], Some("following"))), "it has left the line");
        assert!(is_gone(state(&["n2"], None)), "another process has come with its id");
    }
}
