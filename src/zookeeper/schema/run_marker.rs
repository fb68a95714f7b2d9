//! The contents of run markers, and whether a run is a duplicate. Pure.
//!
//! `<base>/runs/last` describes the newest run and, in short, those before it; `<base>/runs/slot-<key>` the run of one
//! slot. While a run lasts, its start is the marker's mtime; when it ends, the start is stored and the end is the
//! mtime. Both are `ZooKeeper`'s clock; no host's clock is read.
//!
//! An unreadable marker counts as a run. At most once: in doubt nothing runs. With `--retry-failed`, at least once: in
//! doubt it runs again.

use std::collections::BTreeSet;

use crate::zookeeper::client::connection::Stat;
use serde::{Deserialize, Serialize};

use crate::core::event::Nonce;
use crate::core::guard_messages::ChildStatus;
use crate::core::time::milliseconds;
use crate::zookeeper::schema::json::{self, SchemaError, VERSION};
use crate::zookeeper::schema::lease::nonce_text;
use crate::zookeeper::schema::once::{Once, Per};
use crate::zookeeper::schema::settings::Settings;

/// How many earlier runs `last` lists, newest first; with the longest ids and keys about 80 kB.
const HISTORY: usize = 100;
const SLOT: &str = "slot-";

/// One run as stored.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug, Default)]
#[serde(default)]
pub(crate) struct Run {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    pub id: String,
    pub host: String,
    pub pid: u32,
    pub nonce: String,
    /// The fencing token of its term.
    pub token: i64,
    /// By `ZooKeeper`'s clock, milliseconds since 1970; missing: the marker's mtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<i64>,
    /// By the same clock; missing in the marker of a run that ended: its mtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<i64>,
    /// Whether it succeeded; missing: it has not ended, or was interrupted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// As in a shell: the exit status, or 128 plus the signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u8>,
}

#[derive(Serialize, Deserialize)]
struct MarkerJson {
    v: u32,
    #[serde(default)]
    run: Option<Run>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<Run>,
}

/// A marker as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Marker {
    /// The marker does not exist.
    Missing,
    Readable {
        version: i32,
        /// With its times filled in; `None`: nothing has run yet.
        run: Option<Run>,
        earlier: Vec<Run>,
    },
    /// The reason why it cannot be parsed, and when it was written.
    Unreadable { version: i32, written_ms: i64, complaint: SchemaError },
}

/// What to do about a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// No run counts: write the marker and start.
    Go,
    /// The marker is ours: the reply to its write was lost.
    Ours,
    Duplicate,
}

/// The process that asks to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    /// Of the present term.
    pub nonce: Nonce,
    /// This process has started nothing yet, so a marker from an earlier term of ours is of a run that never began.
    pub is_first: bool,
    /// The ctime of our first candidate.
    pub joined_ms: i64,
}

impl Run {
    /// A run that is about to start. The marker's mtime will be its start.
    pub fn new(once: &Once, nonce: Nonce, token: i64, settings: &Settings) -> Self {
        let slot = match &once.per {
            Per::Slot(key) => Some(key.clone()),
            Per::Period(_) => None,
        };
        let Settings { id, host, pid, .. } = settings.clone();
        Self { slot, id, host, pid, nonce: nonce_text(nonce), token, ..Self::default() }
    }

    /// The same after its end.
    #[must_use]
    pub fn ended(&self, started_ms: i64, status: ChildStatus, ok: bool) -> Self {
        Self { started_ms: Some(started_ms), ok: Some(ok), status: status.as_in_a_shell(), ..self.clone() }
    }

    pub fn is_interrupted(&self) -> bool {
        self.ok.is_none()
    }

    /// Whether this process wrote it.
    pub fn is_of(&self, instance: u64) -> bool {
        self.nonce.split_once('-').is_some_and(|(text, _)| text == format!("{instance:016x}"))
    }

    fn dated(self, written_ms: i64) -> Self {
        match self.ok {
            None => Self { started_ms: self.started_ms.or(Some(written_ms)), ..self },
            Some(_) => Self { ended_ms: self.ended_ms.or(Some(written_ms)), ..self },
        }
    }
}

impl Marker {
    pub fn read(data: &[u8], stat: &Stat) -> Self {
        let (version, written_ms) = (stat.version, stat.mtime);
        match json::read(data, |json: &MarkerJson| json.v) {
            Ok(MarkerJson { run, earlier, .. }) => {
                Self::Readable { version, run: run.map(|run| run.dated(written_ms)), earlier }
            }
            Err(complaint) => Self::Unreadable { version, written_ms, complaint },
        }
    }

    /// The version that a write is conditional on; `None`: the marker must not exist.
    pub fn version(&self) -> Option<i32> {
        match self {
            Self::Missing => None,
            Self::Readable { version, .. } | Self::Unreadable { version, .. } => Some(*version),
        }
    }

    pub fn run(&self) -> Option<&Run> {
        match self {
            Self::Readable { run, .. } => run.as_ref(),
            Self::Missing | Self::Unreadable { .. } => None,
        }
    }

    /// The earlier runs that the next marker lists.
    pub fn history(self) -> Vec<Run> {
        match self {
            Self::Readable { run, earlier, .. } => run.into_iter().chain(earlier).take(HISTORY).collect(),
            Self::Missing | Self::Unreadable { .. } => Vec::new(),
        }
    }
}

/// The runs that `last` lists, newest first, for display. What cannot be read lists none.
pub(crate) fn listed(data: &[u8]) -> Vec<Run> {
    let marker = json::read(data, |json: &MarkerJson| json.v).ok();
    marker.into_iter().flat_map(|json| json.run.into_iter().chain(json.earlier)).collect()
}

/// The newest run, for display.
///
/// # Errors
///
/// The marker makes no sense.
pub(crate) fn newest(data: &[u8], written_ms: i64) -> Result<Option<Run>, SchemaError> {
    let MarkerJson { run, .. } = json::read(data, |json: &MarkerJson| json.v)?;
    Ok(run.map(|run| run.dated(written_ms)))
}

/// Whether the caller may run. The slot's marker counts, or without a slot that of the last run.
pub(crate) fn judge(marker: &Marker, once: &Once, caller: Caller) -> Verdict {
    let started_ms = match marker {
        Marker::Missing | Marker::Readable { run: None, .. } => return Verdict::Go,
        Marker::Readable { run: Some(run), .. } if run.nonce == nonce_text(caller.nonce) => return Verdict::Ours,
        Marker::Readable { run: Some(run), .. } if never_began(run, &caller) => return Verdict::Go,
        // The record is ours and our wait is over, so the run of this marker has ended.
        Marker::Readable { run: Some(run), .. } if once.retry_failed && run.ok != Some(true) => return Verdict::Go,
        Marker::Readable { run: Some(run), .. } => run.started_ms.unwrap_or(i64::MAX),
        Marker::Unreadable { .. } if once.retry_failed => return Verdict::Go,
        Marker::Unreadable { written_ms, .. } => *written_ms,
    };
    let counts = match once.per {
        Per::Slot(_) => true,
        Per::Period(period) => started_ms > caller.joined_ms.saturating_sub(milliseconds(period / 2)),
    };
    if counts { Verdict::Duplicate } else { Verdict::Go }
}

/// A run without an end of a caller that has started nothing yet never began.
pub(crate) fn never_began(run: &Run, caller: &Caller) -> bool {
    caller.is_first && run.is_of(caller.nonce.instance) && run.is_interrupted()
}

/// Whether a caller whom this run makes a duplicate should be told that it did not end well. Who waited for it is not: the host of a run
/// that failed tells. That of an interrupted one may be dead.
pub(crate) fn was_in_vain(run: &Run, caller: &Caller) -> bool {
    match run.ok {
        Some(true) => false,
        Some(false) => run.ended_ms.is_none_or(|ended| ended < caller.joined_ms),
        None => true,
    }
}

pub(crate) fn encode(run: Option<&Run>, earlier: &[Run]) -> Vec<u8> {
    let json = MarkerJson { v: VERSION, run: run.cloned(), earlier: earlier.to_vec() };
    json::written(&json)
}

/// The name of a slot's marker. Characters that a znode must not contain, or that are hard to type, are
/// percent-encoded.
pub(crate) fn slot_name(key: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:+@=,".contains(&byte);
    let letter = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    format!("{SLOT}{}", key.bytes().map(letter).collect::<String>())
}

pub(crate) fn is_slot(name: &str) -> bool {
    name.starts_with(SLOT)
}

/// A marker: the zxid of its last write, its name, and its version.
type Known = (i64, String, i32);

/// Adds a marker to the newest ones that are known. If they are more than `keep` then, the oldest one is surplus.
pub(crate) fn surplus(newest: &mut BTreeSet<Known>, marker: Known, keep: usize) -> Option<(String, i32)> {
    newest.insert(marker);
    let oldest = (newest.len() > keep.max(1)).then(|| newest.pop_first());
    oldest.flatten().map(|(_, name, version)| (name, version))
}

/// The run that was marked in the present term.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct OpenRun {
    pub run: Run,
    pub started_ms: i64,
    /// The version of its term.
    pub term: i32,
    /// The path and the version of the slot's marker, if there is a slot.
    pub slot: Option<(String, i32)>,
    pub last: i32,
    pub earlier: Vec<Run>,
    /// The run that the slot's marker told of before.
    #[serde(default)]
    pub before: Option<Run>,
    /// How it ended, and whether it succeeded.
    pub end: Option<(ChildStatus, bool)>,
    /// It never began, and counts for nobody.
    #[serde(default)]
    pub is_withdrawn: bool,
}

impl OpenRun {
    pub fn end(&mut self, status: ChildStatus, ok: bool) {
        self.end = Some((status, ok));
    }

    /// What the markers of the slot and of the last run are to say now; `None`: what they say.
    pub fn outcome(&self) -> Option<[Vec<u8>; 2]> {
        if self.is_withdrawn {
            // As if it had never been marked.
            let (last, earlier) = self.earlier.split_first().unzip();
            return Some([encode(self.before.as_ref(), &[]), encode(last, earlier.unwrap_or_default())]);
        }
        let (status, ok) = self.end?;
        let run = self.run.ended(self.started_ms, status, ok);
        Some([encode(Some(&run), &[]), encode(Some(&run), &self.earlier)])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::time::Duration;

    use super::*;
    use crate::zookeeper::testing::{settings, stat};

    const NONCE: Nonce = Nonce { instance: 0xfeed_0000_0000_0001, sending: 7 };
    const OTHERS: Nonce = Nonce { instance: 0xbeef_0000_0000_0001, sending: 7 };
    const HOUR: i64 = 3_600_000;
    const CALLER: Caller = Caller { nonce: NONCE, is_first: true, joined_ms: 10 * HOUR };

    fn slot() -> Once {
        Once { per: Per::Slot("2026-11-21".to_owned()), retry_failed: false, keep_slots: 100 }
    }

    fn hourly() -> Once {
        Once { per: Per::Period(Duration::from_secs(3600)), ..slot() }
    }

    fn retrying(once: Once) -> Once {
        Once { retry_failed: true, ..once }
    }

    fn found(run: Option<&Run>, mtime: i64) -> Marker {
        Marker::read(&encode(run, &[]), &Stat { mtime, ..stat() })
    }

    fn run_of(nonce: Nonce) -> Run {
        Run::new(&slot(), nonce, 9, &settings())
    }

    fn ended(ok: bool) -> Run {
        run_of(OTHERS).ended(HOUR, ChildStatus::Exited(u8::from(!ok)), ok)
    }

    #[test]
    fn who_comes_after_a_run_that_failed_is_told_and_who_waited_for_it_is_not() {
        let dated = |run: Run, mtime| found(Some(&run), mtime).run().cloned().unwrap();
        assert!(was_in_vain(&dated(ended(false), 10 * HOUR - 1), &CALLER));
        assert!(!was_in_vain(&dated(ended(false), 10 * HOUR), &CALLER));
        assert!(!was_in_vain(&dated(ended(true), HOUR), &CALLER));
        assert!(was_in_vain(&dated(run_of(OTHERS), 11 * HOUR), &CALLER), "its host may be dead");
    }

    #[test]
    fn where_nothing_ran_it_may() {
        for once in [slot(), hourly(), retrying(slot())] {
            for marker in [Marker::Missing, found(None, 10 * HOUR)] {
                assert_eq!(judge(&marker, &once, CALLER), Verdict::Go);
            }
        }
    }

    #[test]
    fn at_most_once_a_slot_that_was_begun_is_a_duplicate_however_it_ended() {
        for run in [run_of(OTHERS), ended(true), ended(false)] {
            assert_eq!(judge(&found(Some(&run), 0), &slot(), CALLER), Verdict::Duplicate);
        }
    }

    #[test]
    fn at_least_once_only_a_success_counts() {
        for (run, verdict) in
            [(run_of(OTHERS), Verdict::Go), (ended(false), Verdict::Go), (ended(true), Verdict::Duplicate)]
        {
            assert_eq!(judge(&found(Some(&run), 0), &retrying(slot()), CALLER), verdict);
        }
    }

    #[test]
    fn our_own_marker_is_ours_and_one_of_an_earlier_term_counts_only_once_something_was_started() {
        let ours = found(Some(&run_of(NONCE)), 10 * HOUR);
        let earlier = found(Some(&run_of(Nonce { sending: 6, ..NONCE })), 10 * HOUR);
        for once in [slot(), hourly(), retrying(slot())] {
            assert_eq!(judge(&ours, &once, CALLER), Verdict::Ours);
            assert_eq!(judge(&earlier, &once, CALLER), Verdict::Go);
        }
        for once in [slot(), hourly()] {
            assert_eq!(judge(&earlier, &once, Caller { is_first: false, ..CALLER }), Verdict::Duplicate);
        }
    }

    #[test]
    fn within_half_a_period_before_we_joined_is_a_duplicate_and_so_is_all_that_came_later() {
        let half = HOUR / 2;
        for (started, verdict) in [
            (10 * HOUR - half - 1, Verdict::Go),
            (10 * HOUR - half, Verdict::Go),
            (10 * HOUR - half + 1, Verdict::Duplicate),
            (10 * HOUR, Verdict::Duplicate),
            (11 * HOUR, Verdict::Duplicate),
        ] {
            assert_eq!(judge(&found(Some(&run_of(OTHERS)), started), &hourly(), CALLER), verdict, "it runs: {started}");
            let run = run_of(OTHERS).ended(started, ChildStatus::Exited(0), true);
            assert_eq!(judge(&found(Some(&run), 20 * HOUR), &hourly(), CALLER), verdict, "it has ended: {started}");
        }
    }

    #[test]
    fn a_marker_that_cannot_be_read_counts_as_a_run_unless_failures_are_retried() {
        for text in ["", "garbage", "[]", r#"{"v":2}"#, r#"{"v":1,"run":5}"#] {
            let marker = Marker::read(text.as_bytes(), &Stat { mtime: 10 * HOUR, ..stat() });
            assert!(matches!(marker, Marker::Unreadable { version: 5, .. }), "{text}");
            assert_eq!(judge(&marker, &slot(), CALLER), Verdict::Duplicate);
            assert_eq!(judge(&marker, &hourly(), CALLER), Verdict::Duplicate);
            assert_eq!(judge(&marker, &retrying(slot()), CALLER), Verdict::Go);
        }
        let long_ago = Marker::read(b"?", &Stat { mtime: HOUR, ..stat() });
        assert_eq!(judge(&long_ago, &hourly(), CALLER), Verdict::Go);
    }

    #[test]
    fn the_json_is_the_documented_one_and_unknown_fields_are_ignored() {
        let run = run_of(NONCE).ended(5, ChildStatus::Signaled(9), false);
        let text = String::from_utf8(encode(Some(&run), &[])).unwrap();
        let expected = concat!(
            r#"{"v":1,"run":{"slot":"2026-11-21","id":"host:1","host":"host","pid":1,"nonce":"feed000000000001-7","#,
            r#""token":9,"started_ms":5,"ok":false,"status":137}}"#
        );
        assert_eq!(text, expected);
        let marker = Marker::read(br#"{"v":1,"shoe":44,"run":{"id":"a","hat":{}}}"#, &Stat { mtime: 3, ..stat() });
        let run = Run { id: "a".to_owned(), started_ms: Some(3), ..Run::default() };
        assert_eq!(marker.run(), Some(&run));
    }

    #[test]
    fn the_history_is_newest_first_dated_and_bounded() {
        let mut marker = found(Some(&ended(true)), 2 * HOUR);
        for turn in 0..200 {
            let next = Run { pid: turn, ..run_of(OTHERS) };
            let data = encode(Some(&next), &marker.history());
            marker = Marker::read(&data, &Stat { mtime: 3 * HOUR, ..stat() });
        }
        let history = marker.history();
        assert_eq!((history.len(), history[0].pid, history[99].pid), (HISTORY, 199, 100));
        let first = found(Some(&ended(true)), 2 * HOUR).history();
        assert_eq!((first[0].started_ms, first[0].ended_ms), (Some(HOUR), Some(2 * HOUR)));
    }

    #[test]
    fn a_slot_is_called_by_its_key_as_far_as_a_znode_may_be() {
        assert_eq!(slot_name("2026-11-21T01:49"), "slot-2026-11-21T01:49");
        assert_eq!(slot_name("a/b %ü"), "slot-a%2Fb%20%25%C3%BC");
    }

    #[test]
    fn the_oldest_are_trimmed_and_the_newest_never() {
        let trimmed = |zxids: &[i64], keep| -> Vec<_> {
            let mut newest = BTreeSet::new();
            let markers = zxids.iter().map(|zxid| (*zxid, format!("slot-{zxid}"), 7));
            markers.filter_map(|marker| surplus(&mut newest, marker, keep)).map(|(name, _)| name).collect()
        };
        assert_eq!(trimmed(&[3, 2, 1], 3), [""; 0]);
        assert_eq!(trimmed(&[5, 4, 1, 3, 2], 3), ["slot-1", "slot-2"]);
        assert_eq!(trimmed(&[1, 2, 3, 4, 5], 3), ["slot-1", "slot-2"]);
        assert_eq!(trimmed(&[2, 1], 0), ["slot-1"]);
    }

    proptest! {
        #[test]
        fn two_keys_never_share_a_marker(one: String, other: String) {
            prop_assert_eq!(slot_name(&one) == slot_name(&other), one == other);
            prop_assert!(slot_name(&one).bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/'));
        }

        #[test]
        fn at_most_once_nothing_but_silence_lets_a_slot_run(data: Vec<u8>) {
            let marker = Marker::read(&data, &stat());
            let silent = matches!(marker, Marker::Readable { run: None, .. });
            prop_assert_eq!(judge(&marker, &slot(), Caller { is_first: false, ..CALLER }) == Verdict::Go, silent);
        }
    }
}
