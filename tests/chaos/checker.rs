//! The judge: from the witnesses' diaries, the faults and what was seen of the servers to what was kept and what was broken.
//!
//! Never: a look at a log of the subject; only what the commands themselves wrote down counts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::calm::{self, Calm};
use super::fault::Kind;
use super::nemesis::Strike;
use super::world::{History, View};
use crate::support::diary::Entry;

/// Everything that is judged.
pub struct Evidence<'a> {
    /// One diary for each slot: what the commands of its leaders wrote.
    pub diaries: &'a [Vec<Entry>],
    /// Jobs that run once: the key and the token of each start.
    pub jobs: &'a [(String, i64)],
    /// The tokens of the leases that were given back, as servers heard it.
    pub given_back: &'a BTreeSet<i64>,
    pub strikes: &'a [Strike],
    pub history: &'a History,
    pub calms: &'a [Calm],
    /// Of the host whose lease is the longest.
    pub longest_lease: Duration,
    pub began: Duration,
    pub ended: Duration,
}

/// One run of the command: one term of one host.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub slot: usize,
    pub token: i64,
    pub host: String,
    pub began: Duration,
    /// The command's own last stamp, and the last one of any process of its tree.
    pub ended: Duration,
    pub tree_ended: Duration,
    /// The command was not told to.
    pub ended_by_itself: bool,
}

/// Two trees that lived at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlap {
    pub earlier: Run,
    pub later: Run,
    /// From the first to the last stamp of the earlier tree after the later command's start. Zero: it left no stamp, but
    /// still held the lock.
    pub length: Duration,
    /// The limit that is stated for this case, if it is one.
    pub apart: Option<&'static str>,
}

#[derive(Clone, Debug, Default)]
pub struct Findings {
    pub runs: Vec<Run>,
    pub overlaps: Vec<Overlap>,
    /// Processes without supervisor and guard: host, pid, seen for how long.
    pub orphans: Vec<(String, i32, Duration)>,
    /// Starts whose token is not greater than the one before.
    pub token_disorder: Vec<(i64, i64)>,
    /// Jobs that were started twice.
    pub repeated: Vec<String>,
    /// Lease files that said yes too late, or for too long.
    pub overlong: Vec<String>,
    /// How often one said yes.
    pub yes: usize,
    /// What upgrades alone have ended.
    pub lost: Vec<String>,
    pub watched: Duration,
    /// While a quorum and a whole host connected to it were there.
    pub possible: Duration,
    /// So long a command ran, and so long none did although it was possible.
    pub running: Duration,
    pub idle_though_possible: Duration,
    /// The times of which that is the sum.
    pub idle: Vec<Span>,
    /// From the healing of each fault to a running command.
    pub recoveries: Vec<Duration>,
}

/// A tree that lives so long after both of its keepers is an orphan, and not just slow to die.
const ORPHAN_GRACE: Duration = Duration::from_secs(3);
/// A thawed host needs at most so long to be scheduled, and to kill what it must.
const THAW: Duration = Duration::from_secs(3);
/// How long a lease that no lease file told of lasts at least from when its holder was in touch and then struck: the last
/// renewal was sent an eighth of it before; the rest is for a slow one.
fn surely_runs(lease: Duration) -> Duration {
    lease * 3 / 4
}

impl Findings {
    pub fn longest_idle(&self) -> Duration {
        self.idle.iter().map(|span| span.1.saturating_sub(span.0)).max().unwrap_or_default()
    }

    /// What breaks the promise.
    pub fn violations(&self) -> Vec<String> {
        let overlaps = self.overlaps.iter().filter(|overlap| overlap.apart.is_none()).map(|overlap| {
            let (earlier, later) = (&overlap.earlier, &overlap.later);
            format!(
                "token {} on {} still lived when token {} started on {} at {:?}: {:?}",
                earlier.token, earlier.host, later.token, later.host, later.began, overlap.length
            )
        });
        let orphans = self.orphans.iter().map(|(host, pid, length)| format!("orphan {pid} on {host} for {length:?}"));
        let tokens = self.token_disorder.iter().map(|(one, other)| format!("token {other} came after {one}"));
        let repeated = self.repeated.iter().map(|key| format!("job {key} was started twice"));
        let others = self.overlong.iter().chain(&self.lost).cloned();
        overlaps.chain(orphans).chain(tokens).chain(repeated).chain(others).collect()
    }
}

pub fn judge(evidence: &Evidence) -> Findings {
    let slots = evidence.diaries.iter().enumerate();
    let slots: Vec<Vec<Tree>> = slots.map(|(slot, entries)| trees(slot, entries)).collect();
    let mut runs: Vec<Run> = slots.iter().flatten().map(|tree| tree.run.clone()).collect();
    runs.sort_by_key(|run| run.began);
    let alive = spans(runs.iter().map(|run| (run.began, run.ended)));
    let possible = possible_spans(&evidence.history.views, evidence.ended);
    let idle = minus(&possible, &alive);
    let length = |spans: &[Span]| spans.iter().map(|span| span.1.saturating_sub(span.0)).sum();
    Findings {
        overlaps: slots.iter().flat_map(|trees| overlaps(trees, evidence)).collect(),
        orphans: orphans(evidence),
        token_disorder: slots.iter().flat_map(|trees| token_disorder(trees)).collect(),
        repeated: repeated(&runs, evidence),
        overlong: slots.iter().flat_map(|trees| overlong(trees, evidence)).collect(),
        yes: slots.iter().flatten().map(|tree| tree.leases.len()).sum(),
        lost: calm::losses(evidence.calms, &runs),
        watched: evidence.ended.saturating_sub(evidence.began),
        possible: length(&possible),
        running: length(&alive),
        idle_though_possible: length(&idle),
        idle,
        recoveries: recoveries(evidence, &alive),
        runs,
    }
}

/// One run with all stamps of its tree.
struct Tree {
    run: Run,
    stamps: Vec<Duration>,
    found_lock_taken: bool,
    is_signalled: bool,
    /// It was told that it takes over from somebody who has not released.
    is_unclean: bool,
    /// When the lease file said yes, and until when.
    leases: Vec<Span>,
}

impl Tree {
    /// With nothing but its place.
    fn of(slot: usize, first: &Entry) -> Self {
        let (token, host, at) = (first.token, first.id.clone(), first.at);
        let run = Run { slot, token, host, began: at, ended: at, tree_ended: at, ended_by_itself: false };
        let (found_lock_taken, is_signalled, is_unclean) = (false, false, false);
        Self { run, stamps: Vec::new(), found_lock_taken, is_signalled, is_unclean, leases: Vec::new() }
    }
}

/// A tree is known by its token and its host: two hosts with one token have two trees.
fn trees(slot: usize, entries: &[Entry]) -> Vec<Tree> {
    let mut trees: BTreeMap<(i64, &str), Tree> = BTreeMap::new();
    let mut daemons = BTreeSet::new();
    for entry in entries {
        let process = (entry.token, entry.id.as_str(), entry.pid);
        if entry.event == "orphan" {
            daemons.insert(process);
        }
        let tree = trees.entry((entry.token, entry.id.as_str())).or_insert_with(|| Tree::of(slot, entry));
        tree.stamps.push(entry.at);
        tree.is_unclean |= entry.event == "start" && entry.told.get(1).is_some_and(|how| how == "unclean");
        tree.leases.extend(entry.lease_until().map(|until| (entry.at, until)));
        tree.found_lock_taken |= entry.event == "OVERLAP";
        tree.run.began = tree.run.began.min(entry.at);
        tree.run.tree_ended = tree.run.tree_ended.max(entry.at);
        if !daemons.contains(&process) {
            tree.run.ended = tree.run.ended.max(entry.at);
            tree.is_signalled |= entry.event.starts_with("signal=");
            tree.run.ended_by_itself |= entry.event == "end" && !tree.is_signalled;
        }
    }
    let mut trees: Vec<Tree> = trees.into_values().collect();
    for tree in &mut trees {
        tree.stamps.sort_unstable();
    }
    trees.sort_by_key(|tree| tree.run.began);
    trees
}

fn overlaps(trees: &[Tree], evidence: &Evidence) -> Vec<Overlap> {
    let mut overlaps = Vec::new();
    for (index, later) in trees.iter().enumerate() {
        let mut seen = false;
        for earlier in &trees[..index] {
            let first = earlier.stamps.iter().find(|&&stamp| stamp >= later.run.began);
            if let Some(first) = first {
                seen = true;
                overlaps.push(Overlap {
                    earlier: earlier.run.clone(),
                    later: later.run.clone(),
                    length: earlier.run.tree_ended.saturating_sub(*first).max(Duration::from_micros(1)),
                    apart: stated_limit(earlier, &later.run, evidence),
                });
            }
        }
        // Two processes of one run do not contend for the lock; one of an earlier run holds it, alive but silent.
        if let (true, false, Some(earlier)) = (later.found_lock_taken, seen, trees[..index].last()) {
            let silent = trees[..index]
                .iter()
                .find_map(|tree| stated_limit(tree, &later.run, evidence).map(|limit| (&tree.run, limit)));
            overlaps.push(Overlap {
                earlier: silent.map_or(&earlier.run, |(run, _)| run).clone(),
                later: later.run.clone(),
                length: Duration::ZERO,
                apart: silent.map(|(_, limit)| limit),
            });
        }
    }
    overlaps
}

/// Overlaps that the design does not promise to prevent: how they must have come about, and how long they may last.
fn stated_limit(tree: &Tree, later: &Run, evidence: &Evidence) -> Option<&'static str> {
    let earlier = &tree.run;
    let befell = |strike: &&Strike| earlier.began < strike.ended && strike.began <= later.began;
    let suspended = |strike: &Strike| {
        // Who was told to stop just before is not in touch any more; but it knows when its lease ends.
        let slept_through_its_lease = match tree.leases.iter().map(|(_, until)| *until).max() {
            Some(until) => strike.began < until && until <= later.began,
            None => later.began >= strike.began + surely_runs(strike.lease),
        };
        let killed_on_waking = earlier.tree_ended.max(later.began) <= strike.ended + THAW;
        let is_the_host = strike.host == earlier.host && strike.involves(Kind::suspends_the_host);
        is_the_host && slept_through_its_lease && killed_on_waking
    };
    let deleted = |strike: &Strike| {
        let killed_with_its_lease = earlier.tree_ended <= strike.ended + evidence.longest_lease + THAW;
        killed_with_its_lease && is_on_a_new_base(later, strike, evidence)
    };
    let mut strikes = evidence.strikes.iter().filter(befell);
    strikes.find_map(|strike| match strike {
        _ if suspended(strike) => Some("whole host suspended"),
        _ if deleted(strike) => Some("whole base deleted"),
        _ => None,
    })
}

fn is_on_a_new_base(later: &Run, strike: &Strike, evidence: &Evidence) -> bool {
    let is_soon = later.began < strike.ended + 2 * evidence.longest_lease;
    strike.involves(|kind| kind == Kind::DeleteBase) && strike.began <= later.began && is_soon
}

/// A lease file says yes only until `kill_at`, whatever sleeps: never when the next one has started, and, if that one had
/// to wait for the lease, never for longer than until its start: what was not given back was waited for.
fn overlong(trees: &[Tree], evidence: &Evidence) -> Vec<String> {
    let mut found = Vec::new();
    for (index, later) in trees.iter().enumerate() {
        let start = later.run.began;
        if evidence.strikes.iter().any(|strike| is_on_a_new_base(&later.run, strike, evidence)) {
            continue;
        }
        for earlier in &trees[..index] {
            let is_waited_for = later.is_unclean && !evidence.given_back.contains(&earlier.run.token);
            let is_wrong = |(said, until): &&Span| *said >= start || is_waited_for && *until > start;
            if let Some((said, until)) = earlier.leases.iter().find(is_wrong) {
                let (run, next) = (&earlier.run, &later.run);
                found.push(format!(
                    "the lease of token {} on {} said at {said:?} that it lasts until {until:?}; token {} started on {} at {start:?}",
                    run.token, run.host, next.token, next.host
                ));
            }
        }
    }
    found
}

fn orphans(evidence: &Evidence) -> Vec<(String, i32, Duration)> {
    let seen = evidence.history.orphans.iter();
    let lasting = seen.map(|((host, pid), (first, last))| (host.clone(), *pid, last.saturating_sub(*first)));
    lasting.filter(|(_, _, length)| *length > ORPHAN_GRACE).collect()
}

fn token_disorder(trees: &[Tree]) -> Vec<(i64, i64)> {
    let pairs = trees.windows(2).map(|pair| (pair[0].run.token, pair[1].run.token));
    pairs.filter(|(one, other)| one >= other).collect()
}

/// A job whose marker was deleted in between may run again.
fn repeated(runs: &[Run], evidence: &Evidence) -> Vec<String> {
    let mut before: BTreeMap<&str, Duration> = BTreeMap::new();
    let mut repeated = Vec::new();
    for (key, token) in evidence.jobs {
        let Some(run) = runs.iter().find(|run| run.token == *token) else { continue };
        let Some(before) = before.insert(key, run.began) else { continue };
        let forgets = |strike: &Strike| {
            let between = strike.ended >= before && strike.began <= run.began;
            between && strike.involves(|kind| kind == Kind::DeleteBase)
        };
        if !evidence.strikes.iter().any(forgets) {
            repeated.push(key.clone());
        }
    }
    repeated
}

pub type Span = (Duration, Duration);

/// Sorted, and joined where they touch.
fn spans(of: impl Iterator<Item = Span>) -> Vec<Span> {
    let mut sorted: Vec<Span> = of.collect();
    sorted.sort_unstable();
    let mut joined: Vec<Span> = Vec::new();
    for span in sorted {
        match joined.last_mut() {
            Some(last) if span.0 <= last.1 => last.1 = last.1.max(span.1),
            _ => joined.push(span),
        }
    }
    joined
}

fn possible_spans(views: &[View], ended: Duration) -> Vec<Span> {
    let ends = views.iter().skip(1).map(|view| view.at).chain([ended]);
    spans(views.iter().zip(ends).filter(|(view, _)| view.possible).map(|(view, end)| (view.at, end)))
}

/// What of `spans` is not covered.
fn minus(spans: &[Span], cover: &[Span]) -> Vec<Span> {
    let mut left = Vec::new();
    for &(from, to) in spans {
        let mut bare = from;
        for &(begin, end) in cover.iter().filter(|span| span.1 > from && span.0 < to) {
            if begin > bare {
                left.push((bare, begin));
            }
            bare = bare.max(end);
        }
        if bare < to {
            left.push((bare, to));
        }
    }
    left
}

fn recoveries(evidence: &Evidence, alive: &[Span]) -> Vec<Duration> {
    let back = |strike: &Strike| {
        let next = alive.iter().find(|span| span.1 > strike.ended)?;
        Some(next.0.saturating_sub(strike.ended))
    };
    let mut recoveries: Vec<Duration> = evidence.strikes.iter().filter_map(back).collect();
    recoveries.sort_unstable();
    recoveries
}

#[cfg(test)]
#[path = "checker_tests.rs"]
mod tests;
