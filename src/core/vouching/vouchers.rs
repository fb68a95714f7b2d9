//! Whose promises a leader needs, what it has asked them, and since when all of them hold back.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Question, Reply, Roster};
use crate::core::lease::Timing;
use crate::core::time::Timestamp;

/// A reply to an older question than these is worth nothing.
const QUESTIONS: usize = 32;
/// Who does not answer is asked again after this part of an interval.
const REPEATS_PER_INTERVAL: u32 = 4;
/// So many instances that are gone are remembered. One that is forgotten and named again is asked in vain, as a host that
/// cannot be reached is.
const GONE: usize = 32;

/// What a leader knows of one host that it needs. Times are those of sendings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needed {
    pub instance: u64,
    /// The newest question to which it said yes.
    pub promised_at: Option<Timestamp>,
    /// The oldest question of those that it has not answered since its newest answer. `None`: it owes none.
    pub silent_since: Option<Timestamp>,
}

/// One host that is needed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Voucher {
    instance: u64,
    /// The sending of the newest question to which it said yes.
    promised_at: Option<Timestamp>,
    /// The sending of the newest question that it answered, with yes or no.
    answered_at: Option<Timestamp>,
    /// The oldest question since then; it may be older than those that are kept.
    #[serde(default)]
    silent_since: Option<Timestamp>,
    /// Number and sending of each question.
    asked: VecDeque<(u64, Timestamp)>,
    ask_at: Timestamp,
}

impl Voucher {
    fn new(instance: u64) -> Self {
        let (promised_at, answered_at, silent_since) = (None, None, None);
        Self { instance, promised_at, answered_at, silent_since, asked: VecDeque::new(), ask_at: Timestamp::ZERO }
    }
}

/// The vouchers of one term.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Vouchers {
    /// Named by the last acknowledged write, by a write sent since, or by our own record as it was read since; and not
    /// gone.
    needed: Vec<Voucher>,
    /// Instances that have said that they are gone. They never come back.
    gone: VecDeque<u64>,
    questions: u64,
}

impl Vouchers {
    /// A write with this roster is sent, or our own record was read with it: whoever it names is needed from now on.
    pub fn name(&mut self, roster: Roster) {
        for instance in roster.iter() {
            if !self.needs(instance) && !self.gone.contains(&instance) {
                self.needed.push(Voucher::new(instance));
            }
        }
    }

    /// A write with this roster is acknowledged: no earlier one can be applied any more.
    pub fn acknowledged(&mut self, roster: Roster) {
        self.needed.retain(|host| roster.names(host.instance));
        self.name(roster);
    }

    /// This instance has ended, and takes nothing over any more.
    pub fn is_gone(&mut self, instance: u64) {
        self.needed.retain(|host| host.instance != instance);
        if !self.gone.contains(&instance) {
            if self.gone.len() == GONE {
                self.gone.pop_front();
            }
            self.gone.push_back(instance);
        }
    }

    /// The questions that are due, and to whom.
    pub fn ask(&mut self, now: Timestamp, timing: &Timing, leader: u64, token: i64) -> Vec<(u64, Question)> {
        let mut due = Vec::new();
        for host in self.needed.iter_mut().filter(|host| now >= host.ask_at) {
            self.questions += 1;
            if host.asked.len() == QUESTIONS {
                host.asked.pop_front();
            }
            host.asked.push_back((self.questions, now));
            host.silent_since.get_or_insert(now);
            host.ask_at = now.after(timing.renewal_interval / REPEATS_PER_INTERVAL);
            due.push((host.instance, Question { leader, token, seq: self.questions, lease: timing.lease }));
        }
        due
    }

    /// When the next question is due.
    pub fn ask_at(&self) -> Timestamp {
        self.needed.iter().map(|host| host.ask_at).min().unwrap_or(Timestamp::NEVER)
    }

    /// A host has answered. A promise counts from the sending of its question.
    pub fn answered(&mut self, timing: &Timing, reply: Reply) {
        let Some(host) = self.needed.iter_mut().find(|host| host.instance == reply.member) else { return };
        let Some((_, sent_at)) = host.asked.iter().find(|(seq, _)| *seq == reply.seq).copied() else { return };
        host.ask_at = host.ask_at.max(sent_at.after(timing.renewal_interval));
        if host.answered_at < Some(sent_at) {
            host.answered_at = Some(sent_at);
            host.silent_since = host.asked.iter().map(|(_, asked_at)| *asked_at).find(|at| *at > sent_at);
        }
        if reply.promises {
            host.promised_at = host.promised_at.max(Some(sent_at));
        }
    }

    /// Since when everybody who is needed holds back, for one lease from then: the oldest of their newest promises. `now`
    /// if nobody is needed; `None` if somebody has promised nothing yet.
    pub fn vouched_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.needed.iter().try_fold(now, |oldest, host| Some(oldest.min(host.promised_at?)))
    }

    /// Everybody who is needed, for display.
    pub fn needed(&self) -> impl Iterator<Item = Needed> {
        self.needed.iter().map(|host| Needed {
            instance: host.instance,
            promised_at: host.promised_at,
            silent_since: host.silent_since,
        })
    }

    /// Whether nobody is needed.
    pub fn is_empty(&self) -> bool {
        self.needed.is_empty()
    }

    pub fn needs(&self, instance: u64) -> bool {
        self.needed.iter().any(|host| host.instance == instance)
    }

    /// The roster of the next write: these, the first in line; then those of before who have promised within a lease.
    pub fn roster(&self, line: Roster, now: Timestamp, lease: Duration) -> Roster {
        let answers = |host: &&Voucher| host.promised_at.is_some_and(|at| at.until(now) < lease);
        let kept = self.needed.iter().filter(answers).map(|host| host.instance);
        line.iter().chain(kept).filter(|instance| !self.gone.contains(instance)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::lease::Wishes;

    const LEADER: u64 = 1;
    const LEASE: Duration = Duration::from_secs(8);

    fn timing() -> Timing {
        Timing::new(LEASE, &Wishes::NONE).unwrap()
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_nanos(millis * 1_000_000)
    }

    fn roster<const N: usize>(instances: [u64; N]) -> Roster {
        instances.into_iter().collect()
    }

    fn needs<const N: usize>(instances: [u64; N]) -> Vouchers {
        let mut vouchers = Vouchers::default();
        vouchers.acknowledged(roster(instances));
        vouchers
    }

    /// Asks at `sent`, and hears a yes or no of this host to that.
    fn hears(vouchers: &mut Vouchers, sent: u64, member: u64, promises: bool) {
        let asked = vouchers.ask(at(sent), &timing(), LEADER, 9);
        let (_, question) = asked.into_iter().find(|(instance, _)| *instance == member).expect("it is asked");
        vouchers.answered(&timing(), Reply { member, leader: LEADER, token: 9, seq: question.seq, promises });
    }

    #[test]
    fn everybody_of_every_write_that_may_count_is_needed() {
        let mut vouchers = needs([2]);
        vouchers.name(roster([3]));
        assert!(vouchers.needs(2) && vouchers.needs(3));
        vouchers.acknowledged(roster([3, 4]));
        assert!(!vouchers.needs(2) && vouchers.needs(3) && vouchers.needs(4));
    }

    #[test]
    fn the_oldest_of_the_newest_promises_counts_from_its_question() {
        let mut vouchers = needs([2, 3]);
        assert_eq!(vouchers.vouched_at(at(0)), None);
        hears(&mut vouchers, 1_000, 2, true);
        assert_eq!(vouchers.vouched_at(at(1_500)), None, "one is not enough");
        hears(&mut vouchers, 2_000, 3, true);
        assert_eq!(vouchers.vouched_at(at(2_500)), Some(at(1_000)));
        hears(&mut vouchers, 3_000, 2, true);
        assert_eq!(vouchers.vouched_at(at(3_500)), Some(at(2_000)));
        hears(&mut vouchers, 4_000, 3, false);
        assert_eq!(vouchers.vouched_at(at(4_500)), Some(at(2_000)), "a no takes nothing back");
    }

    #[test]
    fn where_nobody_is_needed_it_counts_from_now() {
        assert_eq!(needs([]).vouched_at(at(7)), Some(at(7)));
        assert_eq!(needs([]).ask_at(), Timestamp::NEVER);
    }

    #[test]
    fn a_late_reply_counts_from_the_question_that_it_answers() {
        let mut vouchers = needs([2]);
        let first = vouchers.ask(at(0), &timing(), LEADER, 9)[0].1.seq;
        vouchers.ask(at(5_000), &timing(), LEADER, 9);
        vouchers.answered(&timing(), Reply { member: 2, leader: LEADER, token: 9, seq: first, promises: true });
        assert_eq!(vouchers.vouched_at(at(6_000)), Some(at(0)));
        vouchers.answered(&timing(), Reply { member: 2, leader: LEADER, token: 9, seq: 77, promises: true });
        assert_eq!(vouchers.vouched_at(at(6_000)), Some(at(0)), "nobody asked that");
    }

    #[test]
    fn a_reply_counts_after_thirty_one_later_questions_and_not_after_one_more() {
        let mut vouchers = needs([2]);
        let sent: Vec<_> = (0..33).map(|at| Timestamp::from_nanos(at * 1_000_000_000)).collect();
        let asked: Vec<_> = sent.iter().map(|at| vouchers.ask(*at, &timing(), LEADER, 9)[0].1.seq).collect();
        let reply = |seq| Reply { member: 2, leader: LEADER, token: 9, seq, promises: true };
        vouchers.answered(&timing(), reply(asked[0]));
        assert_eq!(vouchers.vouched_at(at(33_000)), None);
        vouchers.answered(&timing(), reply(asked[1]));
        assert_eq!(vouchers.vouched_at(at(33_000)), Some(sent[1]));
    }

    #[test]
    fn who_answers_is_asked_once_in_an_interval_and_who_does_not_four_times() {
        let mut vouchers = needs([2]);
        hears(&mut vouchers, 0, 2, true);
        assert_eq!(vouchers.ask_at(), at(1_000));
        vouchers.ask(at(1_000), &timing(), LEADER, 9);
        assert_eq!(vouchers.ask_at(), at(1_250));
    }

    #[test]
    fn who_is_gone_is_never_needed_again() {
        let mut vouchers = needs([2, 3]);
        vouchers.is_gone(2);
        vouchers.name(roster([2]));
        assert!(!vouchers.needs(2) && vouchers.needs(3));
        assert_eq!(vouchers.roster(roster([2, 4]), at(0), LEASE), roster([4]));
        (5..36).for_each(|instance| vouchers.is_gone(instance));
        assert_eq!(vouchers.roster(roster([2, 4, 35]), at(0), LEASE), roster([4]), "thirty-one others later, too");
    }

    #[test]
    fn who_owes_an_answer_owes_it_since_its_first_question_after_the_last_answer() {
        let silent_since = |vouchers: &Vouchers| vouchers.needed().next().unwrap().silent_since;
        let mut vouchers = needs([2]);
        assert_eq!(silent_since(&vouchers), None, "it was asked nothing");
        let first = vouchers.ask(at(0), &timing(), LEADER, 9)[0].1.seq;
        let second = vouchers.ask(at(250), &timing(), LEADER, 9)[0].1.seq;
        assert_eq!(silent_since(&vouchers), Some(at(0)));
        let reply = |seq| Reply { member: 2, leader: LEADER, token: 9, seq, promises: false };
        vouchers.answered(&timing(), reply(first));
        assert_eq!(silent_since(&vouchers), Some(at(250)), "a no is an answer, and one question is open");
        vouchers.answered(&timing(), reply(second));
        assert_eq!(silent_since(&vouchers), None);
        for question in 0..100 {
            vouchers.ask(at(2_000 + 250 * question), &timing(), LEADER, 9);
        }
        assert_eq!(silent_since(&vouchers), Some(at(2_000)), "however many questions are kept");
        vouchers.answered(&timing(), reply(first));
        assert_eq!(silent_since(&vouchers), Some(at(2_000)), "an old answer changes nothing");
    }

    #[test]
    fn room_in_the_roster_is_for_those_who_have_promised_of_late() {
        let mut vouchers = needs([2, 3]);
        hears(&mut vouchers, 1_000, 2, true);
        assert_eq!(vouchers.roster(roster([4]), at(2_000), LEASE), roster([4, 2]));
        assert_eq!(vouchers.roster(roster([4]), at(9_000), LEASE), roster([4]));
    }
}
