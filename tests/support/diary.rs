//! What the witness wrote down: who ran when. All hosts of a test share one clock, `CLOCK_BOOTTIME`.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use super::wait;

pub struct Diary {
    directory: Arc<tempfile::TempDir>,
    name: String,
    read: Mutex<Pages>,
}

/// What was read so far, and the offset of what was not.
#[derive(Default)]
struct Pages {
    offset: u64,
    entries: Vec<Entry>,
}

/// One line of a diary.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub at: Duration,
    pub event: String,
    pub pid: i32,
    pub token: i64,
    pub id: String,
    /// What a start was told: `ZK_LEADER_TERM`, `_TAKEOVER`, `_CANDIDATE`, `_SESSION`. Of a sign of life: `until=…`.
    pub told: Vec<String>,
}

impl Entry {
    /// Until when the lease file said yes, if it did.
    pub fn lease_until(&self) -> Option<Duration> {
        self.told.first()?.strip_prefix("until=")?.parse().ok().map(Duration::from_nanos)
    }
}

/// Now, by the diaries' clock.
pub fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap().into()
}

impl Diary {
    pub fn new() -> Self {
        let directory = Arc::new(tempfile::tempdir().unwrap());
        Self { directory, name: "diary".to_owned(), read: Mutex::default() }
    }

    /// The diary of the commands in one slot: the witness is called with the path of this one, a dot and the slot's number.
    pub fn of_slot(&self, slot: usize) -> Self {
        let name = format!("{}.{slot}", self.name);
        Self { directory: Arc::clone(&self.directory), name, read: Mutex::default() }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join(&self.name)
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub fn entries(&self) -> Vec<Entry> {
        self.with_entries(<[Entry]>::to_vec)
    }

    pub fn starts(&self) -> Vec<Entry> {
        self.events("start")
    }

    /// All entries of one kind.
    pub fn events(&self, event: &str) -> Vec<Entry> {
        self.with_entries(|entries| entries.iter().filter(|entry| entry.event == event).cloned().collect())
    }

    pub fn has(&self, event: &str) -> bool {
        self.with_entries(|entries| entries.iter().any(|entry| entry.event == event))
    }

    /// Waits for the first entry of one kind.
    #[track_caller]
    pub fn until_noted(&self, event: &str) -> Entry {
        wait::for_some(&format!("the witness notes {event}"), || self.events(event).first().cloned())
    }

    /// When the process was last seen alive.
    pub fn last_seen(&self, pid: i32) -> Duration {
        self.with_entries(|entries| entries.iter().rev().find(|entry| entry.pid == pid).unwrap().at)
    }

    /// When anything of the term with this token was last seen alive.
    pub fn end_of(&self, token: i64) -> Duration {
        self.with_entries(|entries| entries.iter().rev().find(|entry| entry.token == token).unwrap().at)
    }

    /// The last start.
    pub fn last_start(&self) -> Entry {
        self.starts().pop().expect("somebody started")
    }

    /// Waits for the `count`-th start, and returns it.
    #[track_caller]
    pub fn until_started(&self, count: usize) -> Entry {
        let found = wait::held_within(wait::LIMIT, || self.starts().len() >= count);
        assert!(found, "never saw start number {count}; the diary says {:?}", self.starts());
        self.starts()[count - 1].clone()
    }

    /// Waits until somebody stamps who has not stamped before now: proof that the present command runs.
    #[track_caller]
    pub fn until_alive(&self) -> Entry {
        let since = now();
        wait::for_some("the command gives a sign of life", || {
            self.with_entries(|entries| entries.last().filter(|entry| entry.at > since).cloned())
        })
    }

    /// Whether anything that inherited the witness' lock is alive, in whatever PID namespace: asked without taking it.
    pub fn somebody_lives(&self) -> bool {
        let lock = PathBuf::from(format!("{}.lock", self.path().display()));
        let Ok(inode) = std::fs::metadata(lock).map(|metadata| metadata.ino()) else { return false };
        let inode = format!(":{inode} ");
        let is_listed = || {
            let locks = std::fs::read_to_string("/proc/locks").unwrap();
            locks.lines().any(|line| line.contains("FLOCK") && line.contains(&inode))
        };
        // The kernel counts lines from one read to the next: a lock that somebody else releases meanwhile hides one that is kept.
        (0..5).any(|_| is_listed())
    }

    /// Waits until the last process of every tree is gone.
    #[track_caller]
    pub fn until_nobody_lives(&self) {
        wait::until("the whole tree is gone", || !self.somebody_lives());
    }

    /// The promise: nobody found the lock taken, every process of one run was last seen before the next run started, and
    /// the tokens grow.
    #[track_caller]
    pub fn assert_no_overlap(&self) {
        assert!(!self.has("OVERLAP"), "two ran at once: {:?}", self.starts());
        let starts = self.starts();
        for pair in starts.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            // Started again in one term; its daemons hold the lock, if there are any.
            let again = before.token == after.token && before.id == after.id;
            let last = if again { self.last_seen(before.pid) } else { self.end_of(before.token) };
            assert!(last < after.at, "token {} still ran when {} started", before.token, after.token);
            assert!(before.token < after.token || again, "tokens do not grow: {starts:?}");
        }
    }

    /// The same where not everyone has tokens: nobody found the lock taken, and no command was seen after the next one started.
    #[track_caller]
    pub fn assert_one_at_a_time(&self) {
        assert!(!self.has("OVERLAP"), "two ran at once: {:?}", self.starts());
        for pair in self.starts().windows(2) {
            assert!(self.last_seen(pair[0].pid) < pair[1].at, "{} still ran when {} started", pair[0].id, pair[1].id);
        }
    }

    fn with_entries<T>(&self, look: impl FnOnce(&[Entry]) -> T) -> T {
        let mut pages = self.read.lock().unwrap();
        pages.read_on(&self.path());
        look(&pages.entries)
    }
}

impl Pages {
    fn read_on(&mut self, path: &Path) {
        let Ok(mut file) = std::fs::File::open(path) else { return };
        let mut text = String::new();
        file.seek(SeekFrom::Start(self.offset)).unwrap();
        file.read_to_string(&mut text).unwrap();
        // The last line may be half written.
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            self.offset += line.len() as u64;
            self.entries.extend(parse(line));
        }
    }
}

/// All that is written in one file.
pub fn entries_of(path: &Path) -> Vec<Entry> {
    let mut pages = Pages::default();
    pages.read_on(path);
    pages.entries
}

/// One line; `None` if it is empty or was torn: a write(2) across a page boundary ends early when SIGKILL is pending.
pub fn parse(line: &str) -> Option<Entry> {
    let mut words = line.trim_end().split(' ');
    let at = Duration::from_nanos(words.next()?.parse().ok()?);
    let event = words.next()?.to_owned();
    let mut value = |name: &str| words.next()?.strip_prefix(name).map(str::to_owned);
    let pid = value("pid=")?.parse().ok()?;
    let token = value("token=")?.parse().unwrap_or(0);
    let id = value("id=")?;
    Some(Entry { at, event, pid, token, id, told: words.map(str::to_owned).collect() })
}
