//! The judge: from the witnesses' diaries, the faults and what was seen of the servers to what was kept and what was broken.
//!
//! Never: a look at a log of the subject; only what the commands themselves wrote down counts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::nemesis::Strike;
use super::world::{History, View};
use crate::support::diary::Entry;

/// Everything that is judged.
pub struct Evidence<'a> {
    pub entries: &'a [Entry],
    pub strikes: &'a [Strike],
    pub history: &'a History,
    pub session_timeout: Duration,
    pub began: Duration,
    pub ended: Duration,
}

/// One run of the command: one term.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub token: i64,
    pub host: String,
    pub began: Duration,
    /// The command's own last stamp, and the last one of any process of its tree.
    pub ended: Duration,
    pub tree_ended: Duration,
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
    pub watched: Duration,
    /// While a quorum and a whole host connected to it were there.
    pub possible: Duration,
    /// So long a command ran, and so long none did although it was possible.
    pub running: Duration,
    pub idle_though_possible: Duration,
    pub longest_idle: Duration,
    /// From the healing of each fault to a running command.
    pub recoveries: Vec<Duration>,
}

/// A tree that lives so long after both of its keepers is an orphan, and not just slow to die.
const ORPHAN_GRACE: Duration = Duration::from_secs(1);
/// A thawed host needs so long to be scheduled, and to kill what it must.
const THAW: Duration = Duration::from_secs(1);

impl Findings {
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
        overlaps.chain(orphans).chain(tokens).collect()
    }
}

pub fn judge(evidence: &Evidence) -> Findings {
    let trees = trees(evidence.entries);
    let runs: Vec<Run> = trees.iter().map(|tree| tree.run.clone()).collect();
    let alive = spans(runs.iter().map(|run| (run.began, run.ended)));
    let possible = possible_spans(&evidence.history.views, evidence.ended);
    let idle = minus(&possible, &alive);
    let length = |spans: &[Span]| spans.iter().map(|span| span.1.saturating_sub(span.0)).sum();
    Findings {
        overlaps: overlaps(&trees, evidence),
        orphans: orphans(evidence),
        token_disorder: token_disorder(&runs),
        watched: evidence.ended.saturating_sub(evidence.began),
        possible: length(&possible),
        running: length(&alive),
        idle_though_possible: length(&idle),
        longest_idle: idle.iter().map(|span| span.1.saturating_sub(span.0)).max().unwrap_or_default(),
        recoveries: recoveries(evidence, &alive),
        runs,
    }
}

/// One run with all stamps of its tree.
struct Tree {
    run: Run,
    stamps: Vec<Duration>,
    found_lock_taken: bool,
}

fn trees(entries: &[Entry]) -> Vec<Tree> {
    let mut trees: BTreeMap<i64, Tree> = BTreeMap::new();
    let mut daemons = BTreeSet::new();
    for entry in entries {
        let process = (entry.token, entry.pid);
        if entry.event == "orphan" {
            daemons.insert(process);
        }
        let tree = trees.entry(entry.token).or_insert_with(|| Tree {
            run: Run {
                token: entry.token,
                host: entry.id.clone(),
                began: entry.at,
                ended: entry.at,
                tree_ended: entry.at,
            },
            stamps: Vec::new(),
            found_lock_taken: false,
        });
        tree.stamps.push(entry.at);
        tree.found_lock_taken |= entry.event == "OVERLAP";
        tree.run.began = tree.run.began.min(entry.at);
        tree.run.tree_ended = tree.run.tree_ended.max(entry.at);
        if !daemons.contains(&process) {
            tree.run.ended = tree.run.ended.max(entry.at);
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
                    apart: stated_limit(&earlier.run, &later.run, *first, evidence),
                });
            }
        }
        // Two processes of one run do not contend for the lock; one of an earlier run holds it, alive but silent.
        if let (true, false, Some(earlier)) = (later.found_lock_taken, seen, trees[..index].last()) {
            let silent = trees[..index].iter().find_map(|tree| {
                stated_limit(&tree.run, &later.run, later.run.began, evidence).map(|limit| (&tree.run, limit))
            });
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

/// Overlaps that the design does not promise to prevent.
fn stated_limit(earlier: &Run, later: &Run, first: Duration, evidence: &Evidence) -> Option<&'static str> {
    let strikes = evidence.strikes;
    let suspended = |strike: &Strike| {
        let kinds = [Some(strike.kind), strike.also];
        let suspends = kinds.into_iter().flatten().any(super::fault::Kind::suspends_the_host);
        let during = strike.began <= later.began && strike.ended + THAW >= first;
        suspends && during && strike.host == earlier.host && earlier.began < strike.ended
    };
    let deleted = |strike: &Strike| {
        let until = strike.ended + 2 * evidence.session_timeout;
        strike.kind == super::fault::Kind::DeleteBase && (strike.began..until).contains(&later.began)
    };
    if strikes.iter().any(suspended) {
        return Some("whole host suspended");
    }
    strikes.iter().any(deleted).then_some("whole base deleted")
}

fn orphans(evidence: &Evidence) -> Vec<(String, i32, Duration)> {
    let seen = evidence.history.orphans.iter();
    let lasting = seen.map(|((host, pid), (first, last))| (host.clone(), *pid, last.saturating_sub(*first)));
    lasting.filter(|(_, _, length)| *length > ORPHAN_GRACE).collect()
}

fn token_disorder(runs: &[Run]) -> Vec<(i64, i64)> {
    let pairs = runs.windows(2).map(|pair| (pair[0].token, pair[1].token));
    pairs.filter(|(one, other)| one >= other).collect()
}

type Span = (Duration, Duration);

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
mod tests {
    use super::*;
    use crate::ensemble::Mode;
    use crate::fault::Kind;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn run(host: &str, token: i64, from: u64, to: u64) -> Vec<Entry> {
        let entry = |at, event: &str| Entry {
            at: ms(at),
            event: event.to_owned(),
            pid: 1,
            token,
            id: host.to_owned(),
            told: Vec::new(),
        };
        [vec![entry(from, "start")], (from..=to).step_by(5).map(|at| entry(at, "alive")).collect()].concat()
    }

    fn judged(entries: &[Entry], strikes: &[Strike], history: &History) -> Findings {
        let session_timeout = ms(2000);
        judge(&Evidence { entries, strikes, history, session_timeout, began: ms(0), ended: ms(10_000) })
    }

    fn strike(kind: Kind, host: &str, began: u64, ended: u64) -> Strike {
        Strike {
            number: 1,
            kind,
            also: None,
            host: host.to_owned(),
            nodes: Vec::new(),
            hit_holder: true,
            began: ms(began),
            ended: ms(ended),
            missed: false,
        }
    }

    #[test]
    fn runs_one_after_the_other_are_no_violation() {
        let entries = [run("h0", 1, 0, 100), run("h1", 2, 110, 200)].concat();
        let findings = judged(&entries, &[], &History::default());
        assert_eq!(findings.violations(), Vec::<String>::new());
        assert_eq!(findings.running, ms(190));
    }

    #[test]
    fn an_overlap_is_found_with_its_length() {
        let entries = [run("h0", 1, 0, 150), run("h1", 2, 110, 200)].concat();
        let findings = judged(&entries, &[], &History::default());
        assert_eq!(findings.overlaps.len(), 1);
        assert_eq!(findings.overlaps[0].length, ms(40));
        assert_eq!(findings.violations().len(), 1);
    }

    #[test]
    fn a_daemon_that_lives_on_is_an_overlap_too() {
        let mut entries = [run("h0", 1, 0, 100), run("h1", 2, 110, 200)].concat();
        let daemon = |at, event: &str| Entry {
            at: ms(at),
            event: event.to_owned(),
            pid: 2,
            token: 1,
            id: "h0".to_owned(),
            told: Vec::new(),
        };
        entries.extend([daemon(50, "orphan"), daemon(130, "alive")]);
        let findings = judged(&entries, &[], &History::default());
        assert_eq!(findings.violations().len(), 1);
        assert_eq!(findings.runs[0].ended, ms(100));
    }

    #[test]
    fn a_lock_that_is_taken_is_a_violation_without_any_stamp() {
        let mut entries = [run("h0", 1, 0, 100), run("h1", 2, 110, 200)].concat();
        entries.push(Entry {
            at: ms(110),
            event: "OVERLAP".to_owned(),
            pid: 1,
            token: 2,
            id: "h1".to_owned(),
            told: Vec::new(),
        });
        assert_eq!(judged(&entries, &[], &History::default()).violations().len(), 1);
    }

    #[test]
    fn a_suspended_host_is_reported_apart_and_only_that_host() {
        let entries = [run("h0", 1, 0, 100), run("h1", 2, 3000, 4000), run("h0", 1, 3500, 3510)].concat();
        let suspended = judged(&entries, &[strike(Kind::FreezeHost, "h0", 100, 3490)], &History::default());
        assert_eq!(suspended.overlaps[0].length, ms(10));
        assert_eq!(suspended.violations(), Vec::<String>::new());
        let another = judged(&entries, &[strike(Kind::FreezeHost, "h1", 100, 3490)], &History::default());
        assert_eq!(another.violations().len(), 1);
    }

    #[test]
    fn tokens_that_do_not_grow_and_lasting_orphans_are_violations() {
        let entries = [run("h0", 2, 0, 100), run("h1", 1, 110, 200)].concat();
        let mut history = History::default();
        history.orphans.insert(("h0".to_owned(), 7), (ms(0), ms(1500)));
        history.orphans.insert(("h0".to_owned(), 8), (ms(0), ms(500)));
        assert_eq!(judged(&entries, &[], &history).violations().len(), 2);
    }

    #[test]
    fn only_what_was_possible_counts_as_missed() {
        let view = |at, possible| View { at: ms(at), modes: [Mode::Away; 3], possible };
        let history = History { views: vec![view(0, true), view(1000, false), view(2000, true)], ..History::default() };
        let entries = [run("h0", 1, 0, 500), run("h0", 2, 2500, 10_000)].concat();
        let findings = judged(&entries, &[], &history);
        assert_eq!(findings.idle_though_possible, ms(1000));
        assert_eq!(findings.longest_idle, ms(500));
        assert_eq!(findings.possible, ms(9000));
    }
}
