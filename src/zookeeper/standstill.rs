//! A process restarts itself after a standstill, in a new session: what its next program must know of this one.

use serde::{Deserialize, Serialize};

use super::Election;
use super::schema::history::Term;

/// Standstills in a row, with no other leader between them, of which the records are known to be ours.
const MOST: usize = 16;

/// See the module page.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Past {
    /// The records of these programs are of this process, which must not be fenced. Newest first.
    instances: Vec<u64>,
    /// When the process joined: a job's run belongs to that time.
    joined_ms: Option<i64>,
    /// Terms that the history lacks.
    unwritten: Vec<Term>,
}

impl Election {
    pub fn past(&self) -> Past {
        let mut instances = self.shared.instances();
        instances.truncate(MOST);
        Past { instances, joined_ms: self.shared.first_joined_ms(), unwritten: self.publisher.unwritten() }
    }

    /// The instances of all programs of this process that are remembered, newest first.
    pub fn instances(&self) -> Vec<u64> {
        self.shared.instances()
    }

    /// Before the first session.
    pub fn recall(&self, past: Past) {
        let Past { instances, joined_ms, unwritten } = past;
        self.shared.recall(instances, joined_ms);
        for term in unwritten {
            self.publisher.write_down(term);
        }
    }
}
