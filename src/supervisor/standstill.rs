//! A process that stood still says so. If that cost it its guard, it executes its own program anew, with new guards: what
//! that program must know of this one.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::upgrade::memory_file;
use crate::clock::{self, JUMP};
use crate::core::action::PhaseName;
use crate::core::guard_messages::Deadlines;
use crate::core::machine::{self, Snapshot};
use crate::core::time::{Now, Timestamp, milliseconds};
use crate::guard::handle::upgrade::take_descriptor;
use crate::observe::words;
use crate::zookeeper::schema::control::moment::moment;
use crate::zookeeper::standstill::Past;

/// A loop that wakes up so much later than it should is worth a line.
const STANDSTILL: Duration = Duration::from_secs(1);

/// The loop went to sleep then, for so long at most, and knows nothing yet of what has happened since.
pub(super) fn report(slept: Now, most: Duration, snapshot: &Snapshot) {
    let (now, time) = (clock::now(), clock::time_of_day());
    let late = slept.lease.after(most).until(now.lease);
    if late < STANDSTILL {
        return;
    }
    let was_suspended = now.suspended().abs_diff(slept.suspended()) > JUMP;
    let (how, meanwhile) = if was_suspended {
        ("the host was suspended", "Its guard kills the command, if one runs, as soon as it wakes up".to_owned())
    } else {
        ("stopped, frozen, or starved of CPU", meanwhile(snapshot, now.lease, time))
    };
    tracing::warn!(
        stood_still_ms = words::millis(late),
        why = "supervisor-stood-still",
        "This process stood still ({how}). {meanwhile}. Look for what stopped it"
    );
}

/// What the guard has done by itself, without an end. `time`: of day, in milliseconds since 1970.
fn meanwhile(snapshot: &Snapshot, now: Timestamp, time: i64) -> String {
    let deadlines = snapshot.held_term.filter(|_| snapshot.run.is_some()).and_then(|held| held.deadlines);
    let Some(Deadlines { stop_at, kill_at }) = deadlines else { return "No command ran".to_owned() };
    let moment = |deadline: Timestamp| moment(time.saturating_sub(milliseconds(deadline.until(now))));
    let is_stopping = snapshot.phase == PhaseName::Stopping;
    let stopped = (stop_at <= now && !is_stopping).then(|| format!("stop signal at {}", moment(stop_at)));
    let killed = (kill_at <= now).then(|| format!("SIGKILL for what was left at {} at the latest", moment(kill_at)));
    let steps: Vec<_> = [stopped, killed].into_iter().flatten().collect();
    match steps.as_slice() {
        [] if is_stopping => "Its command was already being stopped".to_owned(),
        [] => "The lease of its command is not over".to_owned(),
        steps => format!(
            "Meanwhile its guard ended the command, if that had not ended by itself: {}; the next lines tell that late",
            steps.join(", ")
        ),
    }
}

/// See the module page. Empty in the first program of a process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Memory {
    pub(super) election: Past,
    pub(super) machine: machine::Past,
    /// An upgrade was asked for, and is not done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) upgrade: bool,
    /// See [`super::SignalStream`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) had_terminal: bool,
    /// Where other hosts asked this one for promises.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The configuration file's path, and its settings as options: it is read once, and may have changed since. The supervisor
    /// does not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<(String, Vec<OsString>)>,
}

impl Memory {
    /// A sealed memory file, at its beginning.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn write(&self) -> io::Result<File> {
        memory_file::write(c"zk-leader-run-standstill", self)
    }

    /// Closes the descriptor.
    ///
    /// # Errors
    /// If it is none of such a file.
    pub fn read(descriptor: i32) -> io::Result<Self> {
        memory_file::read(File::from(take_descriptor(descriptor)?))
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::IntoRawFd as _;

    use serde_json::{from_value, json};

    use super::*;
    use crate::core::guard_messages::RunId;
    use crate::core::machine::Held;
    use crate::observe::status::tests::{at, leading};

    /// The supervisor learns of it when it wakes up, and another host may lead by then.
    #[test]
    fn after_a_standstill_the_times_are_told_at_which_the_guard_ended_the_command() {
        let (begun, kill_at) = (at(Duration::ZERO), at(Duration::from_secs(6)).lease);
        let leads = leading(begun, kill_at).snapshot;
        let stop_at = at(Duration::from_secs(4)).lease;
        let deadlines = Some(Deadlines { stop_at, kill_at });
        let held_term = leads.held_term.map(|held| Held { deadlines, ..held });
        let runs = Snapshot { held_term, run: Some(RunId(1)), ..leads };
        let told = |seconds: u64, snapshot: &Snapshot| {
            let now = at(Duration::from_secs(seconds)).lease;
            meanwhile(snapshot, now, 1_795_229_940_000 + 1000 * i64::try_from(seconds).unwrap())
        };
        assert_eq!(told(3, &runs), "The lease of its command is not over");
        let ended = |steps: &str| {
            let guard = "Meanwhile its guard ended the command, if that had not ended by itself";
            format!("{guard}: {steps}; the next lines tell that late")
        };
        let stopped = "stop signal at 2026-11-21 02:59:04 UTC";
        assert_eq!(told(5, &runs), ended(stopped));
        let killed = "SIGKILL for what was left at 2026-11-21 02:59:06 UTC at the latest";
        assert_eq!(told(60, &runs), ended(&format!("{stopped}, {killed}")));
        // The stop signal was sent before.
        let stops = Snapshot { phase: PhaseName::Stopping, ..runs };
        assert_eq!(
            (told(5, &stops), told(60, &stops)),
            ("Its command was already being stopped".into(), ended(killed))
        );
        assert_eq!(told(60, &Snapshot { run: None, ..runs }), "No command ran");
    }

    #[test]
    fn what_was_written_is_read_and_nothing_else_is() {
        let history = json!({ "started_at": 7, "in_a_row": 1, "failed_at": [8] });
        let machine = json!({ "history": history, "rest_until": 9, "stand_back_until": 10 });
        let memory = Memory { machine: from_value(machine).unwrap(), ..Memory::default() };
        let read = Memory::read(memory.write().unwrap().into_raw_fd()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{memory:?}"));
        let nothing = File::open("/dev/null").unwrap().into_raw_fd();
        assert!(Memory::read(nothing).is_err());
    }
}
