//! What one program writes for the next one in the same process: JSON in a sealed memory file, because it holds the
//! session's password.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::memory_file;
use crate::core::action::Why;
use crate::core::machine::{self, Machine, Misfit, Settings};
use crate::core::operator_orders::OperatorOrders;
use crate::core::time::Timestamp;
use crate::guard::handle::upgrade as guard;
use crate::supervisor::reporter;
use crate::vouching::Memory;
use crate::zookeeper::upgrade as zookeeper;

/// Increase it with every change of the layout that a document of an earlier program does not fit, or of the meaning of a field.
pub const VERSION: u32 = 5;

/// Longer ones are not ours.
const LONGEST: u64 = 16 * 1024 * 1024;

/// See the module page.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    pub version: u32,
    /// The version of the program that wrote it.
    pub program: String,
    /// Where newer versions of the program are looked for.
    pub path: PathBuf,
    /// The settings that may not change, by name.
    pub fixed: BTreeMap<String, String>,
    /// The configuration file that was read, if any. Without it, most settings would be others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    pub machine: machine::HandedOver,
    pub election: zookeeper::HandedOver,
    pub guard: guard::HandedOver,
    /// The open socket at which other hosts reach this one, if they vouch for one another.
    pub socket: Option<i32>,
    /// What they and this one have said there.
    pub said: Option<Memory>,
    pub orders: OperatorOrders,
    pub reporter: reporter::HandedOver,
    /// Why the present phase began, and when; `None`: an earlier version knows it by the time of day only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The command, as the guard's child.
    pub command: Option<i32>,
    /// The command has run in this process.
    pub has_led: bool,
    /// This program or one before it had a terminal. It may be closed by now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub had_terminal: bool,
}

/// Why a program cannot go on.
#[derive(Debug)]
pub enum Unfit {
    /// These settings may not change.
    Changed(String),
    State(Misfit),
}

/// The part that is read first.
#[derive(Deserialize)]
struct Head {
    version: u32,
}

impl Document {
    /// A sealed memory file, at its beginning.
    ///
    /// # Errors
    /// If there is no memory, or a name is not UTF-8.
    pub fn write(&self) -> io::Result<File> {
        memory_file::write(c"zk-leader-run-upgrade", self)
    }

    /// # Errors
    /// Why it cannot be read, as a sentence.
    pub fn read(mut file: impl io::Read) -> Result<Self, String> {
        let mut text = Vec::new();
        file.by_ref().take(LONGEST).read_to_end(&mut text).map_err(|error| format!("no document: {error}"))?;
        let head: Head = serde_json::from_slice(&text).map_err(|error| format!("no document: {error}"))?;
        if head.version != VERSION {
            return Err(format!("the document is of version {}, and this program reads {VERSION}", head.version));
        }
        serde_json::from_slice(&text).map_err(|error| format!("the document cannot be read: {error}"))
    }

    /// Checks all that can be checked without taking over.
    ///
    /// # Errors
    /// Why a program with these settings cannot go on.
    pub fn check(&self, settings: &Settings, fixed: &BTreeMap<String, String>) -> Result<(), Unfit> {
        let options = self.fixed.keys().chain(fixed.keys());
        let changed: BTreeSet<_> = options.filter(|option| self.fixed.get(*option) != fixed.get(*option)).collect();
        if !changed.is_empty() {
            let changed: Vec<_> = changed.into_iter().map(String::as_str).collect();
            return Err(Unfit::Changed(changed.join(", ")));
        }
        let copy = Machine::take_up(settings, self.election.negotiated(), self.machine.clone());
        copy.map(drop).map_err(Unfit::State)
    }
}
