//! `disable`: no host may run the command until `enable`, or for a time.
//!
//! Never: "no command runs" while one may still run, or on the word of one server that a lease is over.

use std::time::Duration;

use serde_json::{Value, json};

use super::orders::following::{self, Given, Step, gone};
use super::orders::replacing::Present;
use super::orders::{self, Patience, Progress, ServerClock};
use super::slot_state::{self, SlotState, Whose, WhyNobody};
use super::{Answer, CommandContext, CommandError, DONE, NOT_DONE, millis};
use crate::clock;
use crate::core::lease::wait_over_at;
use crate::core::time::Sighting;
use crate::observe::words;
use crate::random;
use crate::zookeeper::admin::Facts;
use crate::zookeeper::admin::view::{ElectionView, SlotView};
use crate::zookeeper::schema::control::{Disabled, remedy};
use crate::zookeeper::schema::lease::Lease;

pub(super) async fn answer(
    context: &CommandContext<'_>,
    reason: &str,
    lasts: Option<Duration>,
    wait: Option<Duration>,
) -> Result<Answer, CommandError> {
    let election = context.election().await?;
    let order = Disabled {
        order: random::uuid().to_string(),
        reason: reason.to_owned(),
        by: context.asked.by.clone(),
        for_ms: lasts.map(millis),
        since: None,
    };
    let given = Given::now(lasts);
    let (since, replaced) = give(context, &election, &order).await?;
    let (order, clock) = (Disabled { since, ..order }, ServerClock::since(since));
    let ours = Ours { order, given, clock, replaced };
    let mut progress = Progress::new(context.output.format);
    if let Some(replaced) = &ours.replaced {
        progress.tell(&format!("this replaces {}", replaced.said()));
    }
    progress.tell(&format!("{} is disabled {}", election.base, end(&ours.order, &election.base)));
    let Some(limit) = wait else { return Ok(ours.told(context, "disabled", DONE, "", &Value::Null)) };
    let remedy = remedy::about_election("enable", &election.base);
    context.stands(format!("the election stays disabled; {remedy} takes it back"));
    until_nobody_runs(context, &ours, limit, &mut progress).await
}

/// The order that was given.
struct Ours {
    /// `since`: by `ZooKeeper`'s clock, if that could be read.
    order: Disabled,
    given: Given,
    clock: ServerClock,
    /// The one in force before.
    replaced: Option<Present>,
}

impl Ours {
    /// `may_run`: where a command may still run, if that was asked.
    fn told(&self, context: &CommandContext<'_>, state: &str, status: u8, line: &str, may_run: &Value) -> Answer {
        let (until, replaced) = (self.order.ends_at(), self.replaced.as_ref().map(Present::json));
        let object = json!({ "v": 1, "state": state, "until": until, "replaced": replaced, "may_run": may_run });
        Answer { text: context.output.told(&object, state, line), status }
    }
}

/// Since when it is in force, and the order in force that it replaces. That one ends no later, or the new one is refused. Which is
/// in force, `ZooKeeper`'s clock tells: ours may be fast.
async fn give(
    context: &CommandContext<'_>,
    election: &ElectionView,
    order: &Disabled,
) -> Result<(Option<i64>, Option<Present>), CommandError> {
    let (remedy, mut outcome) = (remedy::about_election("enable", &election.base), Ok(None));
    let status = remedy::about_election("status", &election.base);
    let may_stand =
        format!("the election may be disabled by now: {status} tells whether it is, and {remedy} takes it back");
    // Else no time matters before the write.
    let both_end = order.for_ms.and(election.disabled()).is_some_and(|standing| standing.for_ms.is_some());
    let now = if both_end { orders::time(context, election).await? } else { None };
    orders::change(context, election, Some(&may_stand), |orders| {
        let present = orders.disabled.as_ref().map(Present::disabled).filter(|present| present.stands_at(now));
        let at = now.unwrap_or_else(clock::time_of_day);
        let refusal = present.as_ref().map_or(Ok(()), |present| present.gives_way(at, order.lasts(), false, &remedy));
        if refusal.is_ok() {
            orders.disabled = Some(order.clone());
        }
        outcome = refusal.map(|()| present);
    })
    .await?;
    let (replaced, since) = (outcome?, orders::written_at(context, election).await);
    Ok((since, replaced.filter(|replaced| replaced.stands_at(since))))
}

/// When the order ends. It was given whether or not `ZooKeeper`'s time is known.
fn end(order: &Disabled, base: &str) -> String {
    match order.for_ms {
        Some(_) => order.end(),
        None => format!("until somebody ends it ({})", remedy::about_election("enable", base)),
    }
}

/// A record that is free says so; one that is not renewed any more for as long as its lease does so, too, if a quorum
/// confirms it.
async fn until_nobody_runs(
    context: &CommandContext<'_>,
    ours: &Ours,
    limit: Duration,
    progress: &mut Progress,
) -> Result<Answer, CommandError> {
    let mut seen: Vec<(i64, Sighting)> = Vec::new();
    following::until(context, &Patience::new(limit), progress, async |context, progress| {
        let election = context.election().await?;
        // After the record was read: a renewal that came before it must not be dated too early.
        let now = clock::now().observer;
        if !stands(&election, ours) {
            let status = remedy::about_election("status", &election.base);
            let text = gone("order", ours.order.for_ms.is_some(), &status);
            return Ok(Step::Done(ours.told(context, "enabled", NOT_DONE, &text, &Value::Null)));
        }
        let running: Vec<_> = election.slots.iter().filter(|slot| may_run(slot, &election, now, &mut seen)).collect();
        let mut running: Vec<_> = running.into_iter().map(|slot| (Some(slot), why_not_idle(slot, &election))).collect();
        if running.is_empty() {
            let outlives = runs_all_the_same(&election, ours.clock.now());
            running.extend(match (first_unconfirmed(context, &election.slots).await, outlives) {
                (Some(slot), _) => Some((Some(slot), why_not_confirmed(slot))),
                (None, Some(why)) => Some((None, (why, None))),
                (None, None) => None,
            });
        }
        let list = running.iter().map(|(slot, (why, _))| may_run_json(*slot, why, &election)).collect();
        let Some((_, (doing, holder))) = running.into_iter().next() else {
            return Ok(Step::Done(ours.told(context, "idle", DONE, "no command runs", &list)));
        };
        progress.tell(&doing);
        let text = unfinished(&doing, holder, limit);
        Ok(Step::NotYet(ours.told(context, "running", NOT_DONE, &text, &list)))
    })
    .await
}

/// For programs, with the names of `status`. `leader`: whose command may run.
fn may_run_json(slot: Option<&SlotView>, why: &str, election: &ElectionView) -> Value {
    let leader = slot.and_then(|slot| slot.lease.as_ref()?.0.last_to_run());
    let phase = slot.and_then(|slot| match slot_state::of(slot, election) {
        SlotState::Led { phase, .. } => Some(phase),
        _ => None,
    });
    let leader = leader.map(|it| json!({ "id": it.id, "host": it.host, "pid": it.pid, "phase": phase }));
    json!({ "slot": slot.and_then(|slot| slot.name.as_ref()), "leader": leader, "why": why })
}

/// Whether our order, or another one that took its place, is in force.
fn stands(election: &ElectionView, Ours { order, given, clock, .. }: &Ours) -> bool {
    let Some(present) = election.disabled() else { return false };
    if present.order == order.order { given.lasts() } else { Present::disabled(present).stands_at(Some(clock.now())) }
}

/// Who holds a slot, and the phase that it is in by its own words if it is stopping.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Holding {
    id: String,
    stopping: Option<String>,
}

/// When the time is over.
fn unfinished(doing: &str, holder: Option<Holding>, limit: Duration) -> String {
    let length = words::length(limit);
    match holder {
        None => format!("{doing} ({length} have passed)"),
        Some(Holding { id, stopping: Some(phase) }) => format!("{id} is still {phase} after {length}; it continues"),
        Some(Holding { id, stopping: None }) => {
            format!("{id} may still run the command after {length}; it may be cut off, or run an older version")
        }
    }
}

/// What goes on in a slot in which a command may run, and who holds it, if that is known.
fn why_not_idle(slot: &SlotView, election: &ElectionView) -> (String, Option<Holding>) {
    let Some((lease, _)) = &slot.lease else {
        let path = slot.lease_path();
        let sentence = format!(
            "the lease record {path} is missing or cannot be read, so a command may still run (zk-leaderctl doctor says why)"
        );
        return (sentence, None);
    };
    if let Some(sentence) = slot_state::ran_out_in_words(slot) {
        return (sentence, None);
    }
    let id = holder_of(lease);
    let length = words::length(lease.longest());
    let stopping = slot_state::stopping(slot, election);
    let sentence = match slot_state::of(slot, election) {
        SlotState::Waiting { .. } | SlotState::Nobody { why: WhyNobody::GaveWay { .. } } => {
            let whose = Whose::of(lease);
            return (format!("no command runs under {id}; {whose} must run out, within {length}"), None);
        }
        SlotState::CutOff { why } => return (why, None),
        SlotState::Nobody { .. } => {
            let whose = Whose::of(lease);
            let sentence = format!("{id} is gone; {whose} must run out, within {length}");
            if whose == Whose::Before {
                return (sentence, None);
            }
            sentence
        }
        _ if stopping.is_some() => format!("{id} is stopping its command"),
        _ => format!("{id} is told to stop its command"),
    };
    (sentence, Some(Holding { id, stopping }))
}

/// One server says that the lease is over.
fn why_not_confirmed(slot: &SlotView) -> (String, Option<Holding>) {
    let id = slot.lease.as_ref().map_or_else(String::new, |(lease, _)| holder_of(lease));
    let sentence = format!("one server says that the lease of {id} is over, and the others have not confirmed it");
    (sentence, Some(Holding { id, stopping: None }))
}

fn holder_of(lease: &Lease) -> String {
    lease.holder.as_ref().map_or("an unknown holder", |holder| holder.id.as_str()).to_owned()
}

/// Why a command runs at this time though no lease of ours is in force.
fn runs_all_the_same(election: &ElectionView, now: i64) -> Option<String> {
    let outliving = slot_state::outliving(election, now).into_iter().next();
    outliving.map(|command| command.why).or_else(|| slot_state::foreign_in_words(election))
}

/// Of slots whose leases are over as far as one server knows. A server that is cut off from the others answers reads for a
/// while, and knows nothing of their renewals.
pub(super) async fn first_unconfirmed<'a>(
    context: &CommandContext<'_>,
    slots: impl IntoIterator<Item = &'a SlotView>,
) -> Option<&'a SlotView> {
    for slot in slots {
        let held = slot.lease.as_ref().filter(|(lease, _)| lease.is_held());
        if let Some((_, Facts { version, .. })) = held {
            // Without an answer, nothing is confirmed.
            if !context.client.has_version(&slot.lease_path(), *version).await.unwrap_or(false) {
                return Some(slot);
            }
        }
    }
    None
}

/// Under a record that nobody can read, a command may run for any time.
fn may_run(slot: &SlotView, election: &ElectionView, now: Sighting, seen: &mut Vec<(i64, Sighting)>) -> bool {
    match &slot.lease {
        Some((lease, facts)) => !is_over(lease, facts.mzxid, now, seen),
        None => !election.was_never_led(slot),
    }
}

/// Under at-least-one, a command may outlive its lease: only its release counts there. One that lives on promises is not
/// renewed, and may run for its limit.
pub(super) fn is_over(lease: &Lease, mzxid: i64, now: Sighting, seen: &mut Vec<(i64, Sighting)>) -> bool {
    if !lease.is_held() {
        return true;
    }
    let first = seen.iter().find(|(known, _)| *known == mzxid).map(|(_, first)| *first);
    let first = first.unwrap_or_else(|| {
        seen.push((mzxid, now));
        now
    });
    now >= wait_over_at(first, lease.longest()) && lease.dies_in_time()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zookeeper::admin::view::{Candidate, Unreadable};
    use crate::zookeeper::schema::member::Member;

    #[test]
    fn under_a_record_that_cannot_be_read_a_command_may_run_unless_nobody_has_ever_led() {
        let may_run = |version, paths: &[&str]| {
            let term = Some(Facts { version, ..Facts::default() });
            let slot = SlotView { term_path: "/e/term".into(), term, ..SlotView::default() };
            let unreadable = |path: &&str| Unreadable { path: (*path).to_owned(), ..Unreadable::default() };
            let unreadable = paths.iter().map(unreadable).collect();
            let election = ElectionView { slots: vec![slot], unreadable, ..ElectionView::default() };
            may_run(&election.slots[0], &election, Sighting::ZERO, &mut Vec::new())
        };
        assert!(may_run(3, &["/e/lease"]) && may_run(0, &["/e/lease"]));
        assert!(may_run(3, &[]), "it was deleted");
        assert!(!may_run(0, &["/e/members/a"]), "the record of a new base is not written yet");
    }

    /// It has never run a command: it was elected, and an order came before that.
    #[test]
    fn under_a_holder_that_waits_or_gave_way_no_command_runs_and_it_is_not_cut_off() {
        let said = |waiting_on: &str, left| {
            let record = format!(
                r#"{{"v":1,"state":"held","lease_ms":15000{waiting_on},"holder":{{"id":"a","host":"h","pid":1}}}}"#
            );
            let lease = Some((Lease::read(record.as_bytes()).unwrap(), Facts::default()));
            let member = Member { id: "a".into(), host: "h".into(), pid: 1, left, ..Member::default() };
            let term = Some(Facts { mzxid: 7, ..Facts::default() });
            let slots = vec![SlotView { lease, term, ..SlotView::default() }];
            let mut election = ElectionView { slots, ..ElectionView::default() };
            election.members.insert("a".into(), (member, Facts::default()));
            election.line.push(Candidate { id: "a".into(), ..Candidate::default() });
            let (doing, holder) = why_not_idle(&election.slots[0], &election);
            (doing.clone(), unfinished(&doing, holder, Duration::from_secs(3)))
        };
        let both = |sentence: &str| (sentence.to_owned(), format!("{sentence} (3s have passed)"));
        let before = both("no command runs under a; the lease before it must run out, within 15s");
        assert_eq!(said(r#","waiting_on":5"#, None), before, "it waits");
        assert_eq!(said(r#","waiting_on":5"#, Some(7)), before, "it gave way");
        let fenced = both("no command runs under a; its lease must run out, within 15s");
        assert_eq!(said("", Some(7)), fenced, "it gave way while it fenced");
        let leads = said("", Some(6));
        assert_eq!(leads.0, "a is told to stop its command", "it may be dead, or cut off");
        assert!(leads.1.starts_with("a may still run the command after 3s; "), "{leads:?}");
    }

    #[test]
    fn of_a_leader_that_is_cut_off_it_is_said_until_when_its_command_may_run() {
        let record =
            r#"{"v":1,"state":"held","lease_ms":15000,"vouch_ms":60000,"holder":{"id":"a","host":"h","pid":1}}"#;
        let written = Facts { changed_at: 1_795_226_400_000, ..Facts::default() };
        let lease = Some((Lease::read(record.as_bytes()).unwrap(), written));
        let election =
            ElectionView { slots: vec![SlotView { lease, ..SlotView::default() }], ..ElectionView::default() };
        let (doing, holder) = why_not_idle(&election.slots[0], &election);
        assert_eq!(doing, "a is cut off or dead; with --vouch its command may run until 2026-11-21 02:01:00 UTC");
        assert_eq!(unfinished(&doing, holder, Duration::from_secs(3)), format!("{doing} (3s have passed)"));
    }

    /// `status` says the same of it, by the same clocks.
    #[test]
    fn of_a_lease_that_has_run_out_it_is_said_when_and_why_it_is_waited_for_all_the_same() {
        let said = |rest: &str| {
            let record = format!(r#"{{"v":1,"state":"held","lease_ms":15000{rest}}}"#);
            let lease = Some((Lease::read(record.as_bytes()).unwrap(), Facts::default()));
            let slot = SlotView { lease, overdue_since: Some(1_795_226_460_000), ..SlotView::default() };
            let election = ElectionView { slots: vec![slot], ..ElectionView::default() };
            let (doing, holder) = why_not_idle(&election.slots[0], &election);
            assert_eq!(holder, None, "it is not told to stop");
            doing
        };
        let (end, a) = ("ran out at 2026-11-21 02:01:00 UTC", r#","holder":{"id":"a","host":"h","pid":1}"#);
        let watched = format!("{end}; it takes 15s to be sure that nobody renews it, and --wait waits that long");
        let at_most = r#","guarantee":"at-most-one""#;
        assert_eq!(said(&format!("{at_most}{a}")), format!("the lease of a {watched}"));
        assert_eq!(said(&format!(r#"{at_most}{a},"waiting_on":5"#)), format!("the lease before that of a {watched}"));
        assert_eq!(said(at_most), format!("the lease of an unknown holder {watched}"));
        let at_least = said(&format!(r#","guarantee":"at-least-one"{a}"#));
        assert_eq!(at_least, format!("the lease of a {end}, and its command may still run"));
    }

    /// A command that lives on promises is not renewed, and runs.
    #[test]
    fn a_leader_that_others_vouch_for_is_idle_only_when_its_limit_is_over() {
        let over = |vouching: &str, guarantee: &str, seconds: u64| {
            let record = format!(r#"{{"v":1,"state":"held","lease_ms":15000,"guarantee":"{guarantee}"{vouching}}}"#);
            let mut seen = vec![(9, Sighting::ZERO)];
            let now = Sighting::ZERO.after(Duration::from_secs(seconds));
            is_over(&Lease::read(record.as_bytes()).unwrap(), 9, now, &mut seen)
        };
        assert!(over("", "at-most-one", 16) && !over("", "at-most-one", 15));
        let (vouching, guarantee) = (r#","vouch_ms":600000"#, "at-most-one, vouched");
        assert!(!over(vouching, guarantee, 605) && over(vouching, guarantee, 607));
        assert!(!over("", "at-least-one", 10_000), "only its release counts");
    }
}
