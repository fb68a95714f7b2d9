//! Questions, promises and answers on the direct network, which delivers late, twice, in any order, or never.
//!
//! What may arrive is kept by its age, and stays until something newer makes it worthless: so it may arrive again. Without
//! late datagrams a question, its promise and its answer are one step. For the rules as they are this is no less: whoever can
//! be asked late can be asked anew, which gives the leader more, and who hears late could have heard at once.
//!
//! Never: a write.

use super::leader::reckon;
use super::rules::{Mistake, Rules};
use super::world::{Ages, Host, Role, Tenure, World};

/// Asks everyone who is needed. Nobody needed: it counts at once.
pub fn ask(rules: &Rules, world: &mut World, leader: usize) {
    let Some(tenure) = world.hosts[leader].tenure() else { return };
    if rules.late_datagrams {
        tenure.questions = tenure.questions.with(0);
    }
    reckon(rules, leader, tenure);
}

/// Whether there is anything to ask, or to count.
pub fn can_ask(rules: &Rules, tenure: Tenure, leader: usize) -> bool {
    let mut then = tenure;
    reckon(rules, leader, &mut then);
    let ahead = rules.late_datagrams && !tenure.questions.has(0) && rules.hosts().any(|host| tenure.needed.has(host));
    asks(rules, tenure, leader) && (ahead || then.kill_at > tenure.kill_at)
}

fn asks(rules: &Rules, tenure: Tenure, leader: usize) -> bool {
    rules.vouches[leader] && (tenure.kill_at > 0 || rules.is(Mistake::AnswerAfterKillAtCounts))
}

/// The ages of the questions of this leader that this host may be asked now, and has not answered yet.
pub fn questions(rules: &Rules, leader: (usize, Tenure), host: usize, member: &Host) -> Ages {
    let (leader, tenure) = leader;
    let answers = tenure.answers[host];
    let newest = answers.under_way.newest().map_or(answers.vouched, |newest| newest.min(answers.vouched));
    if leader == host || member.left || !rules.vouches[host] || !tenure.needed.has(host) {
        return Ages::NONE;
    }
    let asked = if rules.late_datagrams { tenure.questions } else { Ages::NONE.with(0) };
    if asks(rules, tenure, leader) { asked.below(newest) } else { Ages::NONE }
}

/// In any phase: it will not take over for one lease from now, and says yes.
pub fn promise(rules: &Rules, world: &mut World, (leader, host): (usize, usize), age: u8) {
    let late = match rules.mistake {
        Some(Mistake::PromiseWithoutPromisedUntil) => rules.wait(rules.lease),
        // The clock was read one step before.
        Some(Mistake::PromiseDatedByAnOldReading) => rules.rates()[1],
        _ => 0,
    };
    let member = &mut world.hosts[host];
    member.promised = member.promised.max(rules.wait(rules.lease).saturating_sub(late));
    let Some(tenure) = world.hosts[leader].tenure() else { return };
    tenure.answers[host].under_way = tenure.answers[host].under_way.with(age);
    if !rules.late_datagrams {
        hear(rules, world, (leader, host), age);
    }
}

/// The leader hears of a yes, and counts it from the sending of the question.
pub fn hear(rules: &Rules, world: &mut World, (leader, host): (usize, usize), age: u8) {
    let Some(tenure) = world.hosts[leader].tenure() else { return };
    let counted = match rules.mistake {
        Some(Mistake::CountedFromTheAnswer) => 0,
        Some(Mistake::OldAnswerTakenForTheNewest) => tenure.questions.newest().unwrap_or(age),
        _ => age,
    };
    let answers = &mut tenure.answers[host];
    answers.vouched = answers.vouched.min(counted);
    answers.under_way = answers.under_way.below(answers.vouched);
    reckon(rules, leader, tenure);
}

/// Whether this leader may hear that this instance, or one that has ended, is gone.
pub fn may_hear_of_gone(tenure: Tenure, host: usize, member: &Host) -> bool {
    tenure.kill_at > 0 && member.left && tenure.needed.has(host)
}

/// The leader hears that an instance is gone: it is needed no longer.
pub fn hear_gone(rules: &Rules, world: &mut World, leader: usize, gone: super::world::Roster) {
    let Some(tenure) = world.hosts[leader].tenure() else { return };
    tenure.needed = tenure.needed.without(gone);
    if rules.is(Mistake::GoneCountsForTheHost) {
        tenure.gone |= gone;
    }
    reckon(rules, leader, tenure);
}

/// Time makes datagrams older, and those worthless that are as old as a lease.
pub fn grow_older(rules: &Rules, tenure: &mut Tenure, by: u8) {
    let worthless = rules.usable(rules.lease);
    tenure.questions = tenure.questions.older_by(by).below(worthless);
    for answers in &mut tenure.answers {
        answers.under_way = answers.under_way.older_by(by).below(worthless);
        answers.vouched = (answers.vouched + by).min(worthless);
    }
    tenure.ended = (tenure.ended + by).min(worthless);
}

/// Nobody hears what is said to a leader that has none of its lease left.
pub fn fall_silent(rules: &Rules, this: &mut Host) {
    if let Role::Leading(tenure) = &mut this.role {
        if tenure.kill_at == 0 && !rules.is(Mistake::AnswerAfterKillAtCounts) {
            let worthless = rules.usable(rules.lease);
            grow_older(rules, tenure, worthless);
            (tenure.acked, tenure.needed) = (0, super::world::Roster::EMPTY);
        }
    }
}
