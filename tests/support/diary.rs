//! What the witness wrote down: who ran when. All hosts of a test share one clock, `CLOCK_BOOTTIME`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::wait;

pub struct Diary {
    directory: tempfile::TempDir,
}

/// One line of a diary.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub at: Duration,
    pub event: String,
    pub pid: i32,
    pub token: i64,
    pub id: String,
}

impl Diary {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("diary")
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub fn entries(&self) -> Vec<Entry> {
        entries_of(&self.path())
    }

    pub fn starts(&self) -> Vec<Entry> {
        self.entries().into_iter().filter(|entry| entry.event == "start").collect()
    }

    pub fn has(&self, event: &str) -> bool {
        self.entries().iter().any(|entry| entry.event == event)
    }

    /// When the process was last seen alive.
    pub fn last_seen(&self, pid: i32) -> Duration {
        self.entries().iter().filter(|entry| entry.pid == pid).map(|entry| entry.at).max().unwrap()
    }

    /// Waits for the `count`-th start, and returns it.
    #[track_caller]
    pub fn until_started(&self, count: usize) -> Entry {
        let found = wait::held_within(wait::LIMIT, || self.starts().len() >= count);
        assert!(found, "never saw start number {count}; the diary says {:?}", self.starts());
        self.starts()[count - 1].clone()
    }

    /// The promise: nobody found the lock taken, every process of one run was last seen before the next run started, and
    /// the tokens grow.
    #[track_caller]
    pub fn assert_no_overlap(&self) {
        let entries = self.entries();
        assert!(!entries.iter().any(|entry| entry.event == "OVERLAP"), "two ran at once: {:?}", self.starts());
        let starts = self.starts();
        for pair in starts.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            let last = entries.iter().filter(|entry| entry.token == before.token).map(|entry| entry.at).max().unwrap();
            assert!(last < after.at, "token {} still ran when {} started", before.token, after.token);
            assert!(before.token < after.token, "tokens do not grow: {starts:?}");
        }
    }
}

/// All that is written in one file.
pub fn entries_of(path: &Path) -> Vec<Entry> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    // The last line may be half written.
    text.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(parse).collect()
}

pub fn parse(line: &str) -> Entry {
    let mut words = line.split_whitespace();
    let at = Duration::from_nanos(words.next().unwrap().parse().unwrap());
    let event = words.next().unwrap().to_owned();
    let mut value = |name: &str| words.next().unwrap().strip_prefix(name).unwrap().to_owned();
    let pid = value("pid=").parse().unwrap();
    let token = value("token=").parse().unwrap_or(0);
    Entry { at, event, pid, token, id: value("id=") }
}
