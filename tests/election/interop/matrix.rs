//! Who can share a directory with whom: each of our recipes with each of their libraries, tried, and written down in
//! `docs/interoperation.md` (`UPDATE=1` writes it).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;

use super::{Arrival, PATIENCE, SupervisorConfig, stop};
use crate::support::golden::golden;
use crate::support::wait;

const DOCUMENT: &str = "docs/interoperation.md";
const BEGIN: &str = "<!-- written by a test: begin -->\n";
const END: &str = "<!-- written by a test: end -->\n";

const OURS: [&str; 4] = ["curator-latch", "curator-lock", "kazoo", "java-les"];

/// What `tests/peers/peer` calls them, and what they are called.
const THEIRS: [(&str, &str); 10] = [
    ("curator-latch", "Curator LeaderLatch"),
    ("curator-selector", "Curator LeaderSelector"),
    ("curator-mutex", "Curator InterProcessMutex"),
    ("kazoo-election", "kazoo Election"),
    ("kazoo-lock", "kazoo Lock"),
    ("kazoo-lock-latch", "kazoo Lock, `latch-` added"),
    ("kazoo-lock-lock", "kazoo Lock, `lock-` added"),
    ("go-lock", "go-zookeeper Lock"),
    ("zookeeper-election", "LeaderElectionSupport"),
    ("zookeeper-lock", "WriteLock"),
];

/// So many pairs are tried at once: they mostly wait for Java.
const AT_ONCE: usize = 5;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    TakeTurns,
    TheirsLeadsBesideOurs,
    TheirsGivesUp,
    OursLeadsBesideTheirs,
    OursGivesUp,
    NobodyFollows,
}

impl Verdict {
    fn cell(self) -> &'static str {
        match self {
            Self::TakeTurns => "**yes**",
            Self::TheirsLeadsBesideOurs => "no: theirs leads beside ours",
            Self::TheirsGivesUp => "no: theirs ends with an error",
            Self::OursLeadsBesideTheirs => "no: ours leads beside theirs",
            Self::OursGivesUp => "no: ours ends with an error",
            Self::NobodyFollows => "no: nobody follows",
        }
    }
}

#[test]
fn the_page_tells_who_can_share_a_directory_with_whom() {
    let pairs: Vec<_> = OURS.into_iter().flat_map(|ours| THEIRS.map(|(theirs, _)| (ours, theirs))).collect();
    let (left, verdicts) = (Mutex::new(pairs), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(pair) = left.lock().unwrap().pop() else { break };
                    let verdict = try_out(pair.0, pair.1);
                    verdicts.lock().unwrap().insert(pair, verdict);
                }
            });
        }
    });
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(DOCUMENT)).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let table = table(&verdicts.into_inner().unwrap());
    let written = format!("{before}{BEGIN}{table}{END}{after}");
    golden(DOCUMENT, &written);
}

fn table(verdicts: &BTreeMap<(&str, &str), Verdict>) -> String {
    let mut table = format!("| in one directory | `{}` |\n", OURS.map(|ours| format!("--recipe {ours}")).join("` | `"));
    writeln!(table, "|---|{}", "---|".repeat(OURS.len())).unwrap();
    for (theirs, name) in THEIRS {
        let cells = OURS.map(|ours| verdicts[&(ours, theirs)].cell()).join(" | ");
        writeln!(table, "| {name} | {cells} |").unwrap();
    }
    table
}

fn try_out(ours: &str, theirs: &str) -> Verdict {
    let company = SupervisorConfig::of(ours, theirs);
    let first = company.ours("ours-1");
    company.until_led_by("ours-1", 1);
    let known = company.candidates();
    let mut guest = company.theirs("theirs");
    match company.arrival(&known, 1, || guest.has_ended()) {
        Arrival::Leads => return Verdict::TheirsLeadsBesideOurs,
        Arrival::GivesUp => return Verdict::TheirsGivesUp,
        Arrival::Waits => stop(first),
    }
    if !leads_next(&company, 2) {
        return Verdict::NobodyFollows;
    }
    let known = company.candidates();
    let mut second = company.ours("ours-2");
    match company.arrival(&known, 2, || second.has_exited()) {
        Arrival::Leads => return Verdict::OursLeadsBesideTheirs,
        Arrival::GivesUp => return Verdict::OursGivesUp,
        Arrival::Waits => guest.stop(),
    }
    if !leads_next(&company, 3) {
        return Verdict::NobodyFollows;
    }
    stop(second);
    company.election.diary.assert_one_at_a_time();
    Verdict::TakeTurns
}

fn leads_next(company: &SupervisorConfig, turn: usize) -> bool {
    wait::held_within(PATIENCE, || company.election.diary.starts().len() >= turn)
}
