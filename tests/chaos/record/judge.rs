//! The judge is `todc_utils::WGLChecker` (Wing and Gong, Lowe, Horn and Kroening): nobody here wrote it. This file says what
//! a record and its term are, and how a history is told to it.
//!
//! Writes must be linearizable: each takes effect at one moment between its request and its answer. A read may be old, as
//! `ZooKeeper`'s are, but shows what was there at some moment before its answer, and no connection goes back in time. What is
//! written must also be what the design allows ([`laws`]): a write against a law is refused like one that could not be.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use todc_utils::linearizability::WGLChecker;
use todc_utils::linearizability::history::{Action, History};
use todc_utils::specifications::Specification;

use super::history::Exchange;
use super::laws::{self, Asked, Before, Law, Past};
use super::protocol::{Op, Outcome, Stat};
use super::stream::Nanos;

const NO_NODE: i32 = -101;
const BAD_VERSION: i32 = -103;
const NODE_EXISTS: i32 = -110;

#[derive(Clone, Debug, Default)]
pub struct Verdict {
    pub writes: usize,
    pub reads: usize,
    /// Writes without an answer: they may have taken effect, or not.
    pub unanswered: usize,
    /// How long the oldest content had been overwritten when it was read.
    pub oldest_read: Duration,
    pub problems: Vec<String>,
    /// What the servers themselves had lost of what they had acknowledged: then there is no order.
    pub losses: Vec<String>,
    /// Servers that had other data than their leader.
    pub differing: Vec<String>,
}

/// The token and the host of every command that ran.
pub type Tokens = Vec<(i64, String)>;

/// `tokens`: by the directory of the slot's records.
pub fn judge(exchanges: &[Exchange], tokens: &BTreeMap<String, Tokens>) -> Verdict {
    let mut verdict = Verdict { problems: back_in_time(exchanges), ..Verdict::default() };
    let slots: BTreeSet<&str> = exchanges.iter().flat_map(Exchange::slots).collect();
    for slot in slots {
        let judged: Vec<Judged> = exchanges.iter().filter_map(|exchange| Judged::of(exchange, slot)).collect();
        let is_read = |one: &&Judged| matches!(one.step, Step::Read { .. });
        verdict.reads += judged.iter().filter(is_read).count();
        verdict.writes += judged.iter().filter(|one| !is_read(one)).count();
        verdict.unanswered += judged.iter().filter(|one| one.until == Nanos::MAX).count();
        let judged = with_old_reads(judged, &mut verdict.oldest_read);
        if !is_linearizable(&judged) {
            verdict.problems.push(format!("{slot}: {}, from {}", reason(&judged), first_bad(&judged)));
        }
        let written: BTreeSet<i64> = judged.iter().filter_map(Judged::tokens).collect();
        let given: BTreeSet<&(i64, String)> = tokens.get(slot).into_iter().flatten().collect();
        let strange = given.iter().filter(|(token, _)| !written.contains(token));
        verdict
            .problems
            .extend(strange.map(|(token, _)| format!("{slot}: no write of the term gave the token {token}")));
        let given: Vec<_> = given.into_iter().collect();
        let doubled = given.windows(2).filter(|pair| pair[0].0 == pair[1].0);
        verdict.problems.extend(doubled.map(|pair| {
            let [(token, one), (_, other)] = [pair[0], pair[1]];
            format!("{slot}: commands on {one} and on {other} had the token {token}")
        }));
    }
    verdict
}

/// When a server answered, up to which zxid, and what.
type Told<'a> = (Nanos, i64, &'a Exchange);

/// What a connection was told is never older than what it was told before.
fn back_in_time(exchanges: &[Exchange]) -> Vec<String> {
    let mut connections: BTreeMap<(&str, usize), Vec<Told>> = BTreeMap::new();
    for exchange in exchanges {
        let told = exchange.answered.zip(exchange.reply.as_ref()).filter(|(_, reply)| reply.zxid > 0);
        let connection = connections.entry((&exchange.server, exchange.connection)).or_default();
        connection.extend(told.map(|(answered, reply)| (answered, reply.zxid, exchange)));
    }
    let mut problems = Vec::new();
    for told in connections.values_mut() {
        told.sort_by_key(|(answered, ..)| *answered);
        let backwards = told.windows(2).filter(|pair| pair[1].1 < pair[0].1);
        problems.extend(backwards.map(|pair| format!("{:?} is older than what was said before", pair[1].2)));
    }
    problems
}

/// A znode as the sequential specification has it. What nobody was told yet is `None`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Znode {
    czxid: Option<i64>,
    mzxid: Option<i64>,
    version: i32,
    data: String,
}

/// The records of one slot.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Records {
    lease: Option<Znode>,
    term: Option<Znode>,
    past: Past,
    /// Nothing more is known: what has had no effect until now has none.
    is_over: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Which {
    Lease,
    Term,
    /// A condition of a write that is about something else.
    Other,
}

#[derive(Clone, Debug)]
enum Fate {
    Applied { zxid: i64, stats: Vec<Option<Stat>> },
    Refused { at: usize, code: i32 },
    Unknown,
}

#[derive(Clone, Debug)]
enum Step {
    Read { which: Which, seen: Option<(Stat, Option<String>)> },
    Write { ops: Vec<(Which, Op)>, fate: Fate, by: Asked, laws: &'static [Law] },
    End,
}

/// One request as the checker gets it.
#[derive(Clone, Debug)]
struct Judged {
    from: Nanos,
    until: Nanos,
    /// What the server had applied when it answered.
    zxid: i64,
    step: Step,
}

impl Judged {
    /// `None` for what tells nothing of this slot: what was refused for other reasons has had no effect.
    fn of(exchange: &Exchange, slot: &str) -> Option<Self> {
        let which = |op: &Op| match op.path().strip_prefix(slot) {
            Some("/lease") => Which::Lease,
            Some("/term") => Which::Term,
            _ => Which::Other,
        };
        let ops: Vec<(Which, Op)> = exchange.request.ops.iter().map(|op| (which(op), op.clone())).collect();
        let is_read = matches!(ops.first(), Some((_, Op::Read { .. })));
        if ops.iter().all(|(which, _)| *which == Which::Other) || is_read && exchange.reply.is_none() {
            return None;
        }
        let step = match &exchange.reply {
            Some(reply) if is_read => Step::Read { which: ops[0].0, seen: seen(reply.outcomes.first()?)? },
            reply => {
                let fate = reply.as_ref().map_or(Some(Fate::Unknown), |reply| fate(reply.zxid, &reply.outcomes))?;
                let by = Asked { at: exchange.asked, host: exchange.host.clone() };
                Step::Write { ops, fate, by, laws: &Law::ALL }
            }
        };
        let zxid = exchange.reply.as_ref().map_or(0, |reply| reply.zxid);
        Some(Self { from: exchange.asked, until: exchange.answered.unwrap_or(Nanos::MAX), zxid, step })
    }

    fn writes(&self) -> bool {
        matches!(self.step, Step::Write { fate: Fate::Applied { .. }, .. })
    }

    /// What the term's `mzxid` was known to be.
    fn tokens(&self) -> Option<i64> {
        match &self.step {
            Step::Read { which: Which::Term, seen: Some((stat, _)) } => Some(stat.mzxid),
            Step::Write { ops, fate: Fate::Applied { zxid, .. }, .. } => {
                let is_new = |(which, op): &(Which, Op)| {
                    *which == Which::Term && matches!(op, Op::Set { .. } | Op::Create { .. })
                };
                ops.iter().any(is_new).then_some(*zxid)
            }
            _ => None,
        }
    }
}

#[expect(clippy::option_option, reason = "what tells nothing, and what tells that there is nothing")]
fn seen(outcome: &Outcome) -> Option<Option<(Stat, Option<String>)>> {
    match outcome {
        Outcome::Stat(stat) => Some(Some((*stat, None))),
        Outcome::Data(stat, data) => Some(Some((*stat, Some(data.clone())))),
        Outcome::Failed(NO_NODE) => Some(None),
        Outcome::Failed(_) | Outcome::Done => None,
    }
}

fn fate(zxid: i64, outcomes: &[Outcome]) -> Option<Fate> {
    let codes = outcomes.iter().map(|outcome| if let Outcome::Failed(code) = outcome { *code } else { 0 });
    let failed = codes.enumerate().find(|(_, code)| *code != 0);
    let stat = |outcome: &Outcome| if let Outcome::Stat(stat) = outcome { Some(*stat) } else { None };
    match failed {
        None => Some(Fate::Applied { zxid, stats: outcomes.iter().map(stat).collect() }),
        Some((at, code)) if [NO_NODE, BAD_VERSION, NODE_EXISTS].contains(&code) => Some(Fate::Refused { at, code }),
        Some(_) => None,
    }
}

/// An old read may take effect at any time after the write that it shows began.
fn with_old_reads(mut judged: Vec<Judged>, oldest: &mut Duration) -> Vec<Judged> {
    let mut writes: Vec<(i64, Nanos, Nanos)> =
        judged.iter().filter(|one| one.writes()).map(|one| (one.zxid, one.from, one.until)).collect();
    writes.sort_unstable();
    let up_to = |zxid: i64| writes.partition_point(|(written, ..)| *written <= zxid);
    for one in &mut judged {
        if let Step::Read { seen, .. } = &one.step {
            let overwritten = writes.get(up_to(one.zxid)).map_or(Nanos::MAX, |(_, _, until)| *until);
            let age = u64::try_from(one.from.saturating_sub(overwritten)).unwrap_or(0);
            *oldest = (*oldest).max(Duration::from_nanos(age));
            let shown = seen.as_ref().map_or(one.zxid, |(stat, _)| stat.mzxid);
            let began = writes[..up_to(shown)].last().map_or(0, |(_, from, _)| *from);
            one.from = one.from.min(began);
        }
    }
    without_repetitions(judged)
}

/// Of reads that began at one moment and showed the same, the one that was answered first: where that one fits, the others do
/// just after it. Without this, the checker tries every set of them before it refuses anything.
fn without_repetitions(mut judged: Vec<Judged>) -> Vec<Judged> {
    judged.sort_by_key(|one| one.until);
    let mut known = BTreeSet::new();
    judged.retain(|one| match &one.step {
        Step::Read { which, seen } => known.insert((one.from, *which, seen.clone())),
        _ => true,
    });
    judged
}

fn is_linearizable(judged: &[Judged]) -> bool {
    let known = judged.iter().filter(|one| one.until != Nanos::MAX).map(|one| one.until).max().unwrap_or(0);
    let end = Judged { from: known + 1, until: known + 2, zxid: 0, step: Step::End };
    let mut moments: Vec<(Nanos, bool, usize, &Step)> = Vec::new();
    for (process, one) in judged.iter().chain([&end]).enumerate() {
        moments.push((one.from, false, process, &one.step));
        moments.push((one.until, true, process, &one.step));
    }
    // At the same moment, requests come first: then both orders are possible.
    moments.sort_by_key(|(at, is_answer, process, _)| (*at, *is_answer, *process));
    let actions = moments.into_iter().map(|(_, is_answer, process, step)| {
        (process, if is_answer { Action::Response(step.clone()) } else { Action::Call(step.clone()) })
    });
    WGLChecker::<Records>::is_linearizable(History::from_actions(actions.collect()))
}

/// Why it is refused: a law without which it would not be, or all of them together, or none.
fn reason(judged: &[Judged]) -> &'static str {
    let under = |laws: &'static [Law]| {
        let mut judged = judged.to_vec();
        for one in &mut judged {
            if let Step::Write { laws: asked, .. } = &mut one.step {
                *asked = laws;
            }
        }
        is_linearizable(&judged)
    };
    let culprit = Law::ALL.into_iter().zip(&OTHERS).find(|(_, others)| under(others));
    match culprit {
        Some((law, _)) => law.broken(),
        None if under(&[]) => "several laws of the design are broken",
        None => "not linearizable",
    }
}

/// For each law, all the others.
const OTHERS: [&[Law]; 5] = {
    use Law::{Candidate, Conditional, Holder, Term, Wait};
    [
        &[Candidate, Term, Holder, Wait],
        &[Conditional, Term, Holder, Wait],
        &[Conditional, Candidate, Holder, Wait],
        &[Conditional, Candidate, Term, Wait],
        &[Conditional, Candidate, Term, Holder],
    ]
};

/// The last request of the shortest beginning of the history that is refused.
fn first_bad(judged: &[Judged]) -> String {
    let mut sorted = judged.to_vec();
    sorted.sort_by_key(|one| one.until);
    let known: Vec<Judged> = sorted.iter().filter(|one| one.until != Nanos::MAX).cloned().collect();
    let beginning = |count: usize| -> Vec<Judged> {
        let until = known[count - 1].until;
        let later = sorted.iter().filter(|one| one.until > until && one.from < until);
        let open = later.filter_map(|one| match &one.step {
            Step::Write { ops, by, laws, .. } => {
                let step = Step::Write { ops: ops.clone(), fate: Fate::Unknown, by: by.clone(), laws };
                Some(Judged { until: Nanos::MAX, step, ..one.clone() })
            }
            _ => None,
        });
        known[..count].iter().cloned().chain(open).collect()
    };
    let (mut good, mut bad) = (0, known.len());
    while bad - good > 1 {
        let middle = usize::midpoint(good, bad);
        if is_linearizable(&beginning(middle)) { good = middle } else { bad = middle }
    }
    format!("{:?}", known[bad - 1])
}

impl Specification for Records {
    type State = Self;
    type Operation = Step;

    fn init() -> Self {
        Self::default()
    }

    fn apply(step: &Step, state: &Self) -> (bool, Self) {
        let after = match step {
            Step::Read { which, seen } => state.shown(*which, seen.as_ref()),
            Step::Write { ops, fate, by, laws } => {
                let is_lawful = || laws.iter().all(|law| laws::keeps(*law, state.before(), ops, by));
                match fate {
                    Fate::Applied { zxid, stats } => {
                        let after = state.written(ops, Some(by)).ok().and_then(|after| after.told(ops, *zxid, stats));
                        after.filter(|_| is_lawful())
                    }
                    Fate::Refused { at, code } => state.refused(ops, *at, *code).then(|| state.clone()),
                    Fate::Unknown => {
                        let after = state.perhaps_written(ops, by).filter(|_| is_lawful());
                        after.or_else(|| state.is_over.then(|| state.clone()))
                    }
                }
            }
            Step::End => Some(Self { is_over: true, ..state.clone() }),
        };
        (after.is_some(), after.unwrap_or_else(|| state.clone()))
    }
}

impl Records {
    fn before(&self) -> Before<'_> {
        Before {
            lease: self.lease.as_ref().map(|lease| lease.data.as_str()),
            token: self.term.as_ref().and_then(|term| term.mzxid),
            past: &self.past,
        }
    }

    fn znode_mut(&mut self, which: Which) -> &mut Option<Znode> {
        if which == Which::Term { &mut self.term } else { &mut self.lease }
    }

    /// With what was learnt, if that can be.
    fn shown(&self, which: Which, seen: Option<&(Stat, Option<String>)>) -> Option<Self> {
        let mut after = self.clone();
        match (after.znode_mut(which), seen) {
            (None, None) => {}
            (Some(znode), Some((stat, data))) => {
                let is_same = data.as_ref().is_none_or(|data| *data == znode.data);
                (is_same && znode.is_stated(stat)).then_some(())?;
            }
            _ => return None,
        }
        Some(after)
    }

    /// After these operations; or the first one that is not possible, and why.
    fn written(&self, ops: &[(Which, Op)], by: Option<&Asked>) -> Result<Self, (usize, i32)> {
        let mut after = self.clone();
        for (index, (which, op)) in ops.iter().enumerate() {
            if *which != Which::Other {
                let znode = after.znode_mut(*which);
                *znode = changed(znode.take(), op).map_err(|code| (index, code))?;
            }
            if let (Which::Lease, Op::Set { data, .. } | Op::Create { data, .. }, Some(by)) = (which, op, by) {
                after.past = after.past.after(data, by);
            }
        }
        Ok(after)
    }

    /// After them, if they are possible; nobody has said when they were done.
    fn perhaps_written(&self, ops: &[(Which, Op)], by: &Asked) -> Option<Self> {
        let mut after = self.written(ops, Some(by)).ok()?;
        for (which, op) in ops {
            if let (Op::Set { .. }, Some(znode)) = (op, after.znode_mut(*which)) {
                znode.mzxid = None;
            }
        }
        Some(after)
    }

    fn told(mut self, ops: &[(Which, Op)], zxid: i64, stats: &[Option<Stat>]) -> Option<Self> {
        for (index, (which, op)) in ops.iter().enumerate() {
            let is_write = matches!(op, Op::Create { .. } | Op::Set { .. }) && *which != Which::Other;
            let Some(znode) = self.znode_mut(*which).as_mut().filter(|_| is_write) else { continue };
            // Tokens and versions only grow.
            if znode.mzxid.is_some_and(|before| before >= zxid) {
                return None;
            }
            znode.mzxid = Some(zxid);
            if matches!(op, Op::Create { .. }) {
                znode.czxid = Some(zxid);
            }
            if stats.get(index).copied().flatten().is_some_and(|stat| !znode.is_stated(&stat)) {
                return None;
            }
        }
        Some(self)
    }

    /// All before the one that was refused were possible, and it was not, for this reason.
    fn refused(&self, ops: &[(Which, Op)], at: usize, code: i32) -> bool {
        let (Some(before), Some((which, _))) = (ops.get(..at), ops.get(at)) else { return false };
        let is_possible = self.written(before, None).is_ok();
        is_possible && (*which == Which::Other || self.written(&ops[..=at], None) == Err((at, code)))
    }
}

impl Znode {
    /// Whether it is what a server said it is; learns what was not known.
    fn is_stated(&mut self, stat: &Stat) -> bool {
        let (czxid, mzxid) = (*self.czxid.get_or_insert(stat.czxid), *self.mzxid.get_or_insert(stat.mzxid));
        (czxid, mzxid, self.version) == (stat.czxid, stat.mzxid, stat.version)
    }
}

fn changed(znode: Option<Znode>, op: &Op) -> Result<Option<Znode>, i32> {
    let expected = match (op, &znode) {
        (Op::Create { .. }, Some(_)) => return Err(NODE_EXISTS),
        (Op::Create { data, .. }, None) => {
            return Ok(Some(Znode { czxid: None, mzxid: None, version: 0, data: data.clone() }));
        }
        (_, None) => return Err(NO_NODE),
        (Op::Set { version, .. } | Op::Check { version, .. } | Op::Delete { version, .. }, _) => *version,
        (Op::Read { .. }, _) => -1,
    };
    if expected != -1 && znode.as_ref().is_some_and(|znode| znode.version != expected) {
        return Err(BAD_VERSION);
    }
    Ok(match op {
        Op::Delete { .. } => None,
        Op::Set { data, .. } => znode.map(|znode| Znode { version: znode.version + 1, data: data.clone(), ..znode }),
        _ => znode,
    })
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod judge_tests;
