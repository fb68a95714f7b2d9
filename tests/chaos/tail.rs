//! The diary as it grows: who runs the command at present.
//!
//! Never: a judgement; that is the checker's.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use crate::support::diary::{Entry, now, parse};

/// A command that has not stamped for so long does not run, or is stopped.
const SILENCE: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Default, Debug)]
struct State {
    offset: u64,
    rest: String,
    daemons: BTreeSet<(i64, i32)>,
    starts: Vec<Entry>,
    last: Option<Entry>,
}

impl Tail {
    pub fn of(path: PathBuf) -> Self {
        Self { path, state: Mutex::default() }
    }

    pub fn path(&self) -> &PathBuf {
        &self.path
    }

    /// The last stamp of the command that runs now.
    pub fn running(&self) -> Option<Entry> {
        let mut state = self.state.lock().unwrap();
        state.read_on(&self.path);
        state.last.clone().filter(|last| now().saturating_sub(last.at) < SILENCE)
    }

    /// All of them, in order.
    pub fn starts(&self) -> Vec<Entry> {
        let mut state = self.state.lock().unwrap();
        state.read_on(&self.path);
        state.starts.clone()
    }
}

impl State {
    fn read_on(&mut self, path: &PathBuf) {
        let Ok(mut file) = File::open(path) else { return };
        file.seek(SeekFrom::Start(self.offset)).unwrap();
        let read = file.read_to_string(&mut self.rest).unwrap();
        self.offset += u64::try_from(read).unwrap();
        let whole = self.rest.rfind('\n').map_or(0, |at| at + 1);
        let lines: String = self.rest.drain(..whole).collect();
        for entry in lines.lines().filter_map(parse) {
            let process = (entry.token, entry.pid);
            match entry.event.as_str() {
                "orphan" => drop(self.daemons.insert(process)),
                "start" => self.starts.push(entry.clone()),
                _ => {}
            }
            if !self.daemons.contains(&process) {
                self.last = Some(entry);
            }
        }
    }
}
