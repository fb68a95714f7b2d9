//! Describes this participant in `ZooKeeper`, for people: our member status, and each term of ours.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::core::action::{Action, PhaseName, Transition, Why};
use crate::core::event::Event;
use crate::core::guard_messages::{Cause, Report};
use crate::core::machine::{Ineligibilities, Snapshot};
use crate::core::time::{Now, Timestamp, milliseconds};
use crate::observe::words;
use crate::zookeeper::publish::MemberStatus;
use crate::zookeeper::schema::control::moment::moment;
use crate::zookeeper::schema::history::{NOT_RELEASED, Term};
use crate::zookeeper::schema::member::DRAINED;

/// The state that was published last.
#[derive(Debug, Default)]
pub(super) struct Reporter {
    status: MemberStatus,
    /// Our present term.
    term: Option<Term>,
    /// Our last term, if its record was left as it was. An earlier program would refuse it at an upgrade, so it is not handed over.
    left: Option<Term>,
    /// Why its command was stopped.
    ending: Option<Why>,
    /// When the guard kills its command, unless the lease is prolonged.
    kill_at: Option<Timestamp>,
    /// When the last process of its command was dead, by the time of day: a stopped supervisor learns of it later.
    dead_since: Option<i64>,
    /// Processes of its command survive SIGKILL.
    is_stuck: bool,
    guard_gone: bool,
    /// Until when it stands back: also in milliseconds since 1970, always the same for one end.
    stands_back: Option<(Timestamp, i64)>,
    /// Why it does, if this program has seen that.
    resigned: Option<Why>,
}

/// The part that outlives an upgrade.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandedOver {
    /// Milliseconds since 1970, when the phase began.
    since: i64,
    term: Option<Term>,
    /// See [`MemberStatus::left`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left: Option<i64>,
}

impl HandedOver {
    /// How long the phase has lasted, by the time of day; zero if that was set back.
    pub fn age(&self, now: i64) -> Duration {
        Duration::from_millis(u64::try_from(now.saturating_sub(self.since)).unwrap_or_default())
    }
}

/// What to publish now.
#[derive(Debug, Default)]
pub(super) struct News {
    pub status: Option<MemberStatus>,
    pub terms: Vec<Term>,
}

impl Reporter {
    pub fn hand_over(&self) -> HandedOver {
        HandedOver { since: self.status.since, term: self.term.clone(), left: self.status.left }
    }

    pub fn take_up(state: HandedOver, snapshot: &Snapshot) -> Self {
        let HandedOver { since, term, left } = state;
        let status = MemberStatus { phase: words::phase(snapshot.phase), since, left, ..MemberStatus::default() };
        Self { status, term, ..Self::default() }
    }

    /// Call it after each event that the machine has handled, with the time of day.
    pub fn update(
        &mut self,
        (clock, now): (Now, i64),
        event: &Event,
        snapshot: &Snapshot,
        ineligibilities: Ineligibilities,
        actions: &[Action],
    ) -> News {
        let mut news = News::default();
        if let Event::Guard(Report::TreeEnded { cause, .. }) = event {
            let deadline = self.kill_at.filter(|_| *cause == Cause::Deadline);
            let late = deadline.map_or(Duration::ZERO, |deadline| deadline.until(clock.lease));
            self.dead_since = Some(now.saturating_sub(milliseconds(late)));
        }
        if *event == Event::OrphansEnded {
            self.dead_since = Some(now);
        }
        self.kill_at =
            snapshot.held_term.and_then(|held| held.deadlines).map(|deadlines| deadlines.kill_at).or(self.kill_at);
        match event {
            Event::Guard(Report::Stuck { .. }) => self.is_stuck = true,
            Event::Guard(Report::TreeEnded { .. }) | Event::OrphansEnded => self.is_stuck = false,
            _ => {}
        }
        self.guard_gone |= *event == Event::GuardGone;
        let stands_back = self.stands_back((clock, now), ineligibilities, actions);
        let mut status = member_status(snapshot, ineligibilities, self.status.since, stands_back);
        status.protection = words::protection(snapshot, self.guard_gone);
        status.left = if status.token.is_none() { self.status.token.or(self.status.left) } else { None };
        if self.is_stuck {
            status.why_not.insert(0, STUCK.to_owned());
        }
        if status != self.status {
            let since = if status.phase == self.status.phase { self.status.since } else { now };
            self.status = MemberStatus { since, ..status };
            news.status = Some(self.status.clone());
        }
        for action in actions {
            if let Action::Announce(transition) = action {
                news.terms.extend(self.ended(now, transition));
            }
        }
        news.terms.extend(self.began(now, snapshot));
        news
    }

    /// The time of day until when this host stands back.
    fn stands_back(
        &mut self,
        (clock, now): (Now, i64),
        ineligibilities: Ineligibilities,
        actions: &[Action],
    ) -> Option<(i64, Option<Why>)> {
        let until = ineligibilities.stand_back_until;
        if self.stands_back.map(|(known, _)| known) != until {
            self.resigned = actions.iter().find_map(resigned);
            let left = |until| milliseconds(clock.lease.until(until));
            self.stands_back = until.map(|until| (until, now.saturating_add(left(until))));
        } else if until.is_some() {
            // A step comes before the end of the term is announced.
            self.resigned = self.resigned.or_else(|| actions.iter().find_map(resigned));
        }
        self.stands_back.map(|(_, end)| (end, self.resigned))
    }

    fn began(&mut self, now: i64, snapshot: &Snapshot) -> Option<Term> {
        let grant = snapshot.held_term.map(|held| held.grant)?;
        if self.term.as_ref().is_some_and(|term| term.token == grant.token) {
            return None;
        }
        let (token, term, takeover) = (grant.token, grant.term, grant.takeover.word().to_owned());
        (self.ending, self.dead_since, self.left) = (None, None, None);
        self.term = Some(Term { token, slot: grant.slot.0, term, since: now, takeover, ..Term::default() });
        self.term.clone()
    }

    fn ended(&mut self, now: i64, transition: &Transition) -> Option<Term> {
        let Transition { from, to, why, .. } = *transition;
        let led = matches!(
            from,
            PhaseName::Leading | PhaseName::Vouched | PhaseName::Paused | PhaseName::Preparing | PhaseName::Waiting
        );
        if led && matches!(to, PhaseName::Stopping | PhaseName::Releasing) {
            self.ending = Some(why);
        }
        if matches!(to, PhaseName::Preparing | PhaseName::Leading) {
            // An earlier run of this term has ended.
            (self.ending, self.dead_since) = (None, None);
        }
        if !matches!(to, PhaseName::Following | PhaseName::Done) {
            return None;
        }
        let Some(term) = self.term.take() else { return self.settled(transition) };
        let ending = words::reason_code(self.ending.take().unwrap_or(why));
        // Spared: the lease was another one's, who has released it.
        let is_free = matches!(why, Why::Released | Why::WaitSpared);
        let ended = if is_free { ending.to_owned() } else { format!("{ending}{NOT_RELEASED}") };
        let until = self.dead_since.take().unwrap_or(now).max(term.since);
        let term = Term { until: Some(until), ended: Some(ended), ..term };
        self.left = Some(term.clone()).filter(|_| !is_free);
        Some(term)
    }

    /// The record of a term whose end was told before is free now. When and why that term ended stays as it was told.
    fn settled(&mut self, transition: &Transition) -> Option<Term> {
        let is_settled = |term: &mut Term| transition.why == Why::Released && Some(term.token) == transition.token;
        self.left.take_if(is_settled).map(Term::released_later)
    }
}

/// The reason to resign that is announced.
fn resigned(action: &Action) -> Option<Why> {
    let Action::Announce(Transition { why, .. }) = *action else { return None };
    matches!(why, Why::CrashLoop | Why::BeforeStartFailed | Why::FenceFailed).then_some(why)
}

fn stands_back_in_words(end: i64, why: Option<Why>) -> String {
    let end = moment(end);
    // The rest is said of the moment.
    let why = why.and_then(|why| words::reason(why).split(';').next());
    why.map_or_else(
        || format!("stands back until {end}, as it has resigned"),
        |why| format!("stands back until {end}: {why}"),
    )
}

const STUCK: &str = "processes of its command survive SIGKILL";

fn member_status(
    snapshot: &Snapshot,
    ineligibilities: Ineligibilities,
    since: i64,
    stands_back: Option<(i64, Option<Why>)>,
) -> MemberStatus {
    let role = if snapshot.held_term.is_some() { "leader" } else { "follower" };
    let token = snapshot.held_term.map(|held| held.grant.token);
    let why_not = [
        (ineligibilities.unhealthy, "unhealthy"),
        (ineligibilities.ineligible, "not eligible by its own command"),
        (ineligibilities.handing_over, "makes room for a handover"),
        (ineligibilities.drained, DRAINED),
    ];
    let why_not = why_not.into_iter().filter(|(is, _)| *is).map(|(_, why)| why.to_owned());
    let stands_back = stands_back.map(|(end, why)| stands_back_in_words(end, why));
    let why_not = why_not.chain(stands_back).collect();
    MemberStatus { role, phase: words::phase(snapshot.phase), since, why_not, token, ..MemberStatus::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::guard_messages::{ChildStatus, RunId};
    use crate::observe::status::tests::{at, leading};

    fn passes(from: PhaseName, to: PhaseName, why: Why) -> Action {
        let (token, grant) = (Some(9), None);
        Action::Announce(Transition { from, to, why, token, grant, lease_left: None, next_in: None })
    }

    /// The guard killed the command at 6 s; the supervisor was stopped until 60 s.
    #[test]
    fn a_term_ended_when_its_command_was_dead_and_not_when_its_supervisor_woke_up() {
        let (begun, woken) = (at(Duration::ZERO), at(Duration::from_secs(60)));
        let snapshot = leading(begun, at(Duration::from_secs(5)).lease).snapshot;
        let mut reporter = Reporter::default();
        let first = reporter.update((begun, 1_000), &Event::Ticked, &snapshot, Ineligibilities::default(), &[]);
        assert_eq!(first.terms.len(), 1);
        let (run, status) = (RunId(1), ChildStatus::Signaled(9));
        let tree_ended = Event::Guard(Report::TreeEnded { run, status, cause: Cause::Deadline });
        let over = passes(PhaseName::Stopping, PhaseName::Following, Why::Deposed);
        let gone = Snapshot { held_term: None, ..snapshot };
        reporter.update((woken, 61_000), &tree_ended, &snapshot, Ineligibilities::default(), &[]);
        let told = reporter.update((woken, 61_000), &Event::Ticked, &gone, Ineligibilities::default(), &[over]);
        assert_eq!((told.terms[0].until, told.terms[0].ended.as_deref()), (Some(7_000), Some("deposed, not released")));
        let [led, follows] = [first, told].map(|news| news.status.map(|status| (status.token, status.left)).unwrap());
        assert_eq!((led.1, follows), (None, (None, led.0)), "it says which term it has left");
    }

    /// Its first run took too long. Its session ended while no command of it ran.
    #[test]
    fn a_term_ends_with_its_last_run_and_for_the_reason_of_that() {
        let begun = at(Duration::ZERO);
        let leads = leading(begun, at(Duration::from_secs(5)).lease).snapshot;
        let mut reporter = Reporter::default();
        let mut update = |now, event: &Event, snapshot: Snapshot, passed: &[Action]| {
            reporter.update((begun, now), event, &snapshot, Ineligibilities::default(), passed)
        };
        let ended = |run| {
            let (run, status) = (RunId(run), ChildStatus::Signaled(15));
            Event::Guard(Report::TreeEnded { run, status, cause: Cause::Ordered })
        };
        update(1_000, &Event::Ticked, leads, &[]);
        update(2_000, &Event::Ticked, leads, &[passes(PhaseName::Leading, PhaseName::Stopping, Why::TimedOut)]);
        update(3_000, &ended(1), leads, &[passes(PhaseName::Stopping, PhaseName::Preparing, Why::Restarting)]);
        update(4_000, &Event::Ticked, leads, &[passes(PhaseName::Preparing, PhaseName::Leading, Why::Restarted)]);
        // Its session ended while it waited for the start: no process of the command was there to end.
        let over = passes(PhaseName::Preparing, PhaseName::Following, Why::SessionOver);
        let told = update(9_000, &Event::Ticked, Snapshot { held_term: None, ..leads }, &[over]);
        assert_eq!(
            (told.terms[0].until, told.terms[0].ended.as_deref()),
            (Some(9_000), Some("session-over, not released"))
        );
    }

    /// Another host reads in its member why it could not take over.
    #[test]
    fn processes_that_survive_sigkill_are_told_for_as_long_as_they_do() {
        let begun = at(Duration::ZERO);
        let snapshot = leading(begun, at(Duration::from_secs(5)).lease).snapshot;
        let mut reporter = Reporter::default();
        let mut told =
            |event: &Event| reporter.update((begun, 1_000), event, &snapshot, Ineligibilities::default(), &[]).status;
        let (run, status, cause) = (RunId(1), ChildStatus::Signaled(9), Cause::Ordered);
        told(&Event::Ticked);
        let stuck = told(&Event::Guard(Report::Stuck { run, survivors: 1 }));
        assert_eq!(stuck.map(|status| status.why_not), Some(vec![STUCK.to_owned()]));
        for gone in [Event::Guard(Report::TreeEnded { run, status, cause }), Event::OrphansEnded] {
            told(&Event::Guard(Report::Stuck { run, survivors: 1 }));
            assert_eq!(told(&gone).map(|status| status.why_not), Some(vec![]), "{gone:?}");
        }
        told(&Event::Guard(Report::Stuck { run, survivors: 1 }));
        let unguarded = told(&Event::GuardGone).map(|status| status.why_not);
        assert_eq!(unguarded, Some(vec![STUCK.to_owned()]), "its guard's death ends none of them");
    }

    /// It has waited for another one's lease, which that one has released.
    #[test]
    fn a_term_that_only_waited_is_not_said_to_be_unreleased() {
        let begun = at(Duration::ZERO);
        let snapshot = leading(begun, at(Duration::from_secs(5)).lease).snapshot;
        let mut reporter = Reporter::default();
        let none = Ineligibilities::default();
        reporter.update((begun, 1_000), &Event::Ticked, &snapshot, none, &[]);
        let spared = passes(PhaseName::Waiting, PhaseName::Following, Why::WaitSpared);
        let gone = Snapshot { held_term: None, ..snapshot };
        let told = reporter.update((begun, 2_000), &Event::Ticked, &gone, none, &[spared]);
        assert_eq!(told.terms[0].ended.as_deref(), Some("wait-spared"));
    }

    /// Its lease has ended in an outage; afterwards it reads its record, which is still its own, or another leader's by now.
    #[test]
    fn the_end_of_a_term_stays_as_it_was_told_whenever_its_record_is_freed() {
        let (begun, none) = (at(Duration::ZERO), Ineligibilities::default());
        let leads = leading(begun, at(Duration::from_secs(5)).lease).snapshot;
        let in_phase = |phase| Snapshot { phase, held_term: None, ..leads };
        for (why, told_late) in [(Why::Released, Some("lease-ending, released later")), (Why::Deposed, None)] {
            let mut reporter = Reporter::default();
            let mut update = |now, snapshot: Snapshot, passed: &[Action]| {
                reporter.update((begun, now), &Event::Ticked, &snapshot, none, passed)
            };
            update(1_000, leads, &[]);
            let over = [
                passes(PhaseName::Leading, PhaseName::Stopping, Why::LeaseEnding),
                passes(PhaseName::Stopping, PhaseName::Following, Why::TreeEmpty),
            ];
            let told = update(7_000, in_phase(PhaseName::Following), &over);
            assert_eq!(
                (told.terms[0].until, told.terms[0].ended.as_deref()),
                (Some(7_000), Some("lease-ending, not released"))
            );
            let barred = passes(PhaseName::Following, PhaseName::Following, Why::Unhealthy);
            let again = passes(PhaseName::Following, PhaseName::Releasing, Why::ContactRestored);
            assert_eq!(update(60_000, in_phase(PhaseName::Releasing), &[barred, again]).terms, []);
            let settled = passes(PhaseName::Releasing, PhaseName::Following, why);
            let told = update(61_000, in_phase(PhaseName::Following), &[settled]).terms;
            assert!(told.iter().all(|term| term.until == Some(7_000)), "{told:?}");
            assert_eq!(told.first().and_then(|term| term.ended.as_deref()), told_late);
        }
    }

    /// The two clocks are read one after the other.
    #[test]
    fn a_host_that_stands_back_says_until_when_and_always_the_same() {
        let begun = at(Duration::ZERO);
        let leads = leading(begun, at(Duration::from_secs(5)).lease).snapshot;
        let snapshot = Snapshot { phase: PhaseName::Following, held_term: None, ..leads };
        let until = Some(at(Duration::from_secs(60)).lease);
        let bars = Ineligibilities { stand_back_until: until, ..Ineligibilities::default() };
        let mut reporter = Reporter::default();
        let mut told = |seconds, now| {
            reporter.update((at(Duration::from_secs(seconds)), now), &Event::Ticked, &snapshot, bars, &[]).status
        };
        let why_not = told(0, 1_795_229_940_000).map(|status| status.why_not);
        assert_eq!(why_not, Some(vec!["stands back until 2026-11-21 03:00:00 UTC, as it has resigned".to_owned()]));
        assert_eq!(told(10, 1_795_229_951_500), None);
    }

    #[test]
    fn a_host_that_stands_back_says_why() {
        let begun = at(Duration::ZERO);
        let leads = leading(begun, at(Duration::from_secs(5)).lease).snapshot;
        let snapshot = Snapshot { phase: PhaseName::Following, held_term: None, ..leads };
        let until = Some(at(Duration::from_secs(60)).lease);
        let bars = Ineligibilities { stand_back_until: until, ..Ineligibilities::default() };
        let told = |why| {
            let mut reporter = Reporter::default();
            let resigns = [passes(PhaseName::Preparing, PhaseName::Releasing, why)];
            let status = |reporter: &mut Reporter, actions: &[Action]| {
                reporter.update((begun, 1_795_229_940_000), &Event::Ticked, &snapshot, bars, actions).status
            };
            let told = status(&mut reporter, &resigns).map(|status| status.why_not.concat());
            assert_eq!(status(&mut reporter, &[]), None, "it goes on saying so");
            let mut late = Reporter::default();
            status(&mut late, &[]);
            assert_eq!(status(&mut late, &resigns).map(|status| status.why_not.concat()), told, "behind a step");
            let again = Ineligibilities { stand_back_until: Some(at(Duration::from_secs(120)).lease), ..bars };
            let news = reporter.update((begun, 1_795_229_940_000), &Event::Ticked, &snapshot, again, &[]);
            let unseen = news.status.map(|status| status.why_not.concat());
            assert_eq!(unseen.as_deref(), Some("stands back until 2026-11-21 03:01:00 UTC, as it has resigned"));
            told.unwrap()
        };
        let until = "stands back until 2026-11-21 03:00:00 UTC: ";
        let crash_loop = told(Why::CrashLoop);
        assert_eq!(crash_loop, format!("{until}the command failed more often than --max-restarts allows"));
        let step = told(Why::BeforeStartFailed);
        assert_eq!(step, format!("{until}the command of --before-start failed or took too long"));
        assert_eq!(told(Why::FenceFailed), format!("{until}the previous leader could not be fenced"));
    }

    #[test]
    fn the_next_program_goes_on_with_the_term_and_the_phase_and_begins_neither_anew() {
        let (begun, later) = (at(Duration::ZERO), at(Duration::from_secs(2)));
        let snapshot = leading(begun, at(Duration::from_secs(5)).lease).snapshot;
        let none = Ineligibilities::default();
        let mut before = Reporter::default();
        let told = before.update((begun, 1_000), &Event::Ticked, &snapshot, none, &[]);
        let mut next = Reporter::take_up(before.hand_over(), &snapshot);
        let told_again = next.update((later, 3_000), &Event::Ticked, &snapshot, none, &[]);
        assert_eq!(told_again.status, told.status, "the new program may have to write its member anew");
        assert_eq!(told_again.terms, []);
        assert_eq!(serde_json::to_value(next.hand_over()).unwrap(), serde_json::to_value(before.hand_over()).unwrap());
    }
}
