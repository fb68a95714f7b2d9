//! How an ensemble is built, and what a client says first.

use std::time::Duration;

use super::protocol::{Id, SessionId, Zxid};

/// Since the ensemble was made.
pub type Time = Duration;

/// The servers differ where clients see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// 3.8.0 with Debian's patches.
    V3_8,
    /// 3.9.3: `exists` takes the right to read, events tell their zxid, a create in a multi tells its stat.
    V3_9,
}

#[derive(Clone, Debug)]
pub struct Settings {
    pub version: Version,
    /// An odd number; one is a standalone server.
    pub servers: usize,
    /// `tickTime`.
    pub tick: Duration,
    /// `syncLimit`, in ticks: how long servers that hear nothing of each other go on.
    pub sync_limit: u32,
    pub min_session_timeout: Duration,
    pub max_session_timeout: Duration,
    /// How long a message between two servers takes.
    pub hop: Duration,
    /// How long an election takes.
    pub election: Duration,
    /// The servers' clocks when the ensemble is made: milliseconds since the Unix epoch.
    pub wall_ms: i64,
}

impl Settings {
    /// `ZooKeeper`'s defaults.
    pub fn of(servers: usize) -> Self {
        let tick = Duration::from_secs(2);
        Self {
            version: Version::V3_8,
            servers,
            tick,
            sync_limit: 5,
            min_session_timeout: 2 * tick,
            max_session_timeout: 20 * tick,
            hop: Duration::from_millis(1),
            election: Duration::from_millis(200),
            wall_ms: 1_700_000_000_000,
        }
    }

    pub fn with_version(self, version: Version) -> Self {
        Self { version, ..self }
    }

    /// The limits of session timeouts follow, as in `zoo.cfg`.
    pub fn with_tick(self, tick: Duration) -> Self {
        Self { tick, min_session_timeout: 2 * tick, max_session_timeout: 20 * tick, ..self }
    }

    pub fn quorum(&self) -> usize {
        self.servers / 2 + 1
    }
}

/// A connect request.
#[derive(Clone, Debug)]
pub struct Hello {
    pub timeout_ms: u64,
    /// 0 for a new session.
    pub session: SessionId,
    pub password: Vec<u8>,
    /// The last zxid that the client has seen.
    pub last_zxid: Zxid,
    /// What the server knows of the client without being told: its address, a name that SASL or TLS proved.
    pub identities: Vec<Id>,
}

impl Hello {
    /// For a new session, from 127.0.0.1.
    pub fn new(timeout_ms: u64) -> Self {
        let identities = vec![Id::new("ip", "127.0.0.1")];
        Self { timeout_ms, session: 0, password: vec![0; 16], last_zxid: 0, identities }
    }

    /// For a session that there is.
    pub fn again(timeout_ms: u64, session: SessionId, password: &[u8], last_zxid: Zxid) -> Self {
        Self { session, password: password.to_vec(), last_zxid, ..Self::new(timeout_ms) }
    }
}
