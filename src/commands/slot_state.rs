//! The state of each slot at one look: who leads, or why nobody does.
//!
//! It is for people, from the records, the line and the members; no decision about who may run rests on it.
//!
//! Never: "nobody leads" where that is not known.

pub(super) mod contenders;
pub(super) mod last_run;
mod why_nobody;

pub(super) use why_nobody::{Whose, WhyNobody};

use crate::core::time::milliseconds;
use crate::observe::words;
use crate::zookeeper::admin::Facts;
use crate::zookeeper::admin::view::{Candidate, ElectionView, SlotView};
use crate::zookeeper::schema::control::moment::moment;
use crate::zookeeper::schema::history::Term;
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
    if gave_way(&holder, slot, election) {
        let is_over = slot.overdue_since.is_some();
        return SlotState::Nobody { why: WhyNobody::GaveWay { id: holder.id, whose, is_over } };
    }
    if let Some(since) = slot.overdue_since {
        return SlotState::Overdue { holder, since };
    }
    let (member, is_waiting) = (member_of(election, &holder), lease.waiting_on.is_some());
    let in_line = election.line.iter().any(|candidate| candidate.id == holder.id);
    match member {
        _ if is_waiting && waits(&holder, slot, election) => SlotState::Waiting { holder },
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
    written.changed_at.saturating_add(milliseconds(lease.longest()))
}

/// Of a lease that has run out by the clocks of the servers and of this host, which may differ.
pub(super) fn ran_out_in_words(slot: &SlotView) -> Option<String> {
    let (since, (lease, _)) = (moment(slot.overdue_since?), slot.lease.as_ref()?);
    let whose = lease.known_holder().map_or("an unknown holder", |holder| holder.id.as_str());
    let which = match Whose::of(lease) {
        Whose::Its => format!("the lease of {whose}"),
        Whose::Before => format!("the lease before that of {whose}"),
    };
    let length = words::length(lease.longest());
    Some(if lease.dies_in_time() {
        format!(
            "{which} ran out at {since}; it takes {length} to be sure that nobody renews it, and --wait waits that long"
        )
    } else {
        format!("{which} ran out at {since}, and its command may still run")
    })
}

/// Of a holder that waits.
pub(super) fn waits_in_words(id: &str) -> String {
    format!("{id} is elected, and waits until the lease before its own is over")
}

/// Whether the holder of this slot says that it has left its present term. A member that follows and does not say so may be a
/// moment behind the record, even if its znode was written after it.
pub(super) fn gave_way(holder: &Holder, slot: &SlotView, election: &ElectionView) -> bool {
    let left = member_of(election, holder).and_then(|member| member.left);
    left.is_some_and(|left| slot.term.is_some_and(|term| term.mzxid == left))
}

/// Whether the holder of a record that waits is still there: it renews nothing, so only its candidate and its member tell.
pub(super) fn waits(holder: &Holder, slot: &SlotView, election: &ElectionView) -> bool {
    let is_its_own = |candidate: &Candidate| match &holder.candidate {
        Some(name) => candidate.name == *name,
        None => candidate.id == holder.id,
    };
    let says_so = member_of(election, holder).is_some_and(|member| member.phase == "waiting");
    !gave_way(holder, slot, election) && (says_so || election.line.iter().any(is_its_own))
}

fn why_free(election: &ElectionView) -> WhyNobody {
    match &election.orders.disabled {
        Some(order) => WhyNobody::Disabled { by: order.by.clone() },
        None if election.line.is_empty() => {
            let barred = election.members().filter(|member| member.is_barred()).count();
            let members = election.members.len();
            WhyNobody::NoneInLine { members, barred }
        }
        None => WhyNobody::Free,
    }
}

/// A command that may run under at-least-one beside that of whoever holds the record, or though it is free.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Outliving {
    pub why: String,
    /// `None`: nobody knows where.
    host: Option<String>,
}

impl Outliving {
    fn new(who: &str, host: Option<&String>, until: i64) -> Self {
        let until = moment(until);
        let why = format!("{who}; with --guarantee at-least-one its command may run until {until}");
        Self { why, host: host.cloned() }
    }

    pub fn may_be_on(&self, host: &str) -> bool {
        self.host.as_ref().is_none_or(|its| its == host)
    }
}

/// The commands that may run at this time of day, by `ZooKeeper`'s clock, since their leaders, cut off, have not said that they are dead.
pub(super) fn outliving(election: &ElectionView, now: i64) -> Vec<Outliving> {
    let slots = election.slots.iter().filter_map(|slot| Some((slot.lease.as_ref()?, slot.term)));
    let slots = slots.filter(|((lease, _), _)| !lease.dies_in_time());
    slots
        .flat_map(|((lease, _), term)| outliving_beside(lease, term.unwrap_or_default(), &election.terms, now))
        .collect()
}

fn outliving_beside(lease: &Lease, present: Facts, terms: &[Term], now: i64) -> Vec<Outliving> {
    let is_present = |term: &Term| Some(term.token) == lease.token || term.token == present.mzxid;
    let mut outliving = Vec::new();
    for term in terms {
        let until = term.outlives_until(now).filter(|until| now < *until && !is_present(term));
        outliving.extend(
            until.map(|until| Outliving::new(&format!("{} is cut off or dead", term.id), Some(&term.host), until)),
        );
        let is_before = |before: &Term| before.term == term.term - 1;
        let until = term.outlived_until().filter(|until| now < *until && !terms.iter().any(is_before));
        let who = || format!("the leader before {} has not written down its term", term.id);
        outliving.extend(until.map(|until| Outliving::new(&who(), None, until)));
    }
    if present.version > 1 && !terms.iter().any(is_present) {
        let why = "nobody has written down yet how the term before the last one ended: with --guarantee at-least-one its \
                   command may run";
        outliving.push(Outliving { why: why.to_owned(), host: None });
    }
    outliving
}

/// The contender of another library that leads.
pub(super) fn foreign(election: &ElectionView) -> Option<String> {
    election.slots.iter().find_map(|slot| match of(slot, election) {
        SlotState::Foreign { id } => Some(id),
        _ => None,
    })
}

/// The same, to whoever gives orders.
pub(super) fn foreign_in_words(election: &ElectionView) -> Option<String> {
    foreign(election).map(|id| format!("{id} leads, a contender of another library that hears no orders"))
}

/// The first in line, if it is a contender of another library: by its id, or else by its name.
fn stranger(election: &ElectionView) -> Option<String> {
    let first = election.line.first().filter(|_| election.is_shared)?;
    let held_by_it = |slot: &SlotView| {
        let holder = slot.lease.as_ref().and_then(|(lease, _)| lease.holder.as_ref());
        holder.is_some_and(|holder| holder.candidate.as_ref() == Some(&first.name))
    };
    let is_ours = election.members().any(|member| member.id == first.id) || election.slots.iter().any(held_by_it);
    let id = if first.id.is_empty() { &first.name } else { &first.id };
    (!is_ours).then(|| id.clone())
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
pub(super) fn overdue(slot: &SlotView, election: &ElectionView) -> Option<Holder> {
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
pub(super) fn is_of(member: &Member, holder: &Holder) -> bool {
    member.id == holder.id && member.host == holder.host && member.pid == holder.pid
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub(in crate::commands) fn record(text: &str) -> Option<(Lease, Facts)> {
        Some((Lease::read(text.as_bytes()).ok()?, Facts::default()))
    }

    /// An election whose record `a` wrote to wait, with this line and this phase of its member.
    pub(in crate::commands) fn waiting(line: &[&str], phase: Option<&str>) -> ElectionView {
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
        let reasons = "no host may be elected";
        assert_eq!(why(&[(true, ""), (false, "unhealthy")]), said("none-eligible", reasons));
        assert_eq!(why(&[(false, "")]), said("none-eligible", reasons), "an earlier build gives no reason");
    }

    /// The record is free, of the third term: of the terms before it, it is or is not written down how they ended.
    #[test]
    fn a_leader_that_is_cut_off_under_at_least_one_is_known_from_what_is_written_down() {
        let whys = |guarantee: &str, terms: &[(i32, &str, Option<&str>)], now: i64| {
            let record = format!(r#"{{"v":1,"state":"free","lease_ms":9,"guarantee":"{guarantee}","token":30}}"#);
            let lease = Some((Lease::read(record.as_bytes()).unwrap(), Facts::default()));
            let term = Some(Facts { version: 3, mzxid: 30, ..Facts::default() });
            let terms = terms.iter().map(|&(number, takeover, ended)| Term {
                token: i64::from(number) * 10,
                term: number,
                id: number.to_string(),
                host: format!("db{number}"),
                takeover: takeover.to_owned(),
                until: Some(0),
                ended: ended.map(str::to_owned),
                max_pause_ms: Some(60_000),
                ..Term::default()
            });
            let slots = vec![SlotView { lease, term, ..SlotView::default() }];
            let election = ElectionView { slots, terms: terms.collect(), ..ElectionView::default() };
            outliving(&election, now).into_iter().map(|it| (it.may_be_on("db1"), it.why)).collect::<Vec<_>>()
        };
        let (ended, may_run) = (Some("released"), "with --guarantee at-least-one its command may run");
        let told =
            |is_here: bool, who: &str| vec![(is_here, format!("{who}; {may_run} until 1970-01-01 00:01:00 UTC"))];
        let cut_off = [(1, "first", ended), (2, "clean", Some("unclean")), (3, "unclean", ended)];
        assert_eq!(whys("at-least-one", &cut_off, 0), told(false, "2 is cut off or dead"));
        assert!(whys("at-least-one", &cut_off, 60_000).is_empty() && whys("at-most-one", &cut_off, 0).is_empty());
        let now = 0;
        let unknown = whys("at-least-one", &[(1, "first", ended), (3, "unclean", ended)], now);
        assert_eq!(unknown, told(true, "the leader before 3 has not written down its term"));
        assert!(whys("at-least-one", &[(1, "first", ended), (2, "clean", ended), (3, "clean", None)], now).is_empty());
        let unsaid = whys("at-least-one", &[(1, "first", ended), (2, "clean", ended)], now);
        assert!(unsaid.len() == 1 && unsaid[0].0 && unsaid[0].1.ends_with(&format!(": {may_run}")), "{unsaid:?}");
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
