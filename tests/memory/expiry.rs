//! When sessions expire: `SessionTrackerImpl` and `ExpiryQueue` of the leader, or of a standalone server.

use std::collections::BTreeMap;

use super::protocol::{Code, SessionId};

#[derive(Clone, Debug)]
struct Tracked {
    is_closing: bool,
    /// The server through which it was last opened.
    owner: Option<usize>,
    expires_ms: u64,
}

/// Sessions in buckets of one tick: a session expires at the end of the tick in which its timeout is over.
#[derive(Clone, Debug)]
pub struct Expiry {
    tick_ms: u64,
    sessions: BTreeMap<SessionId, Tracked>,
}

impl Expiry {
    /// A new leader gives every session its whole timeout again.
    pub fn new(tick_ms: u64, sessions: &BTreeMap<SessionId, u64>, now_ms: u64) -> Self {
        let mut expiry = Self { tick_ms, sessions: BTreeMap::new() };
        for (session, timeout_ms) in sessions {
            expiry.track(*session, *timeout_ms, None, now_ms);
        }
        expiry
    }

    fn bucket(&self, ms: u64) -> u64 {
        (ms / self.tick_ms + 1) * self.tick_ms
    }

    pub fn track(&mut self, session: SessionId, timeout_ms: u64, owner: Option<usize>, now_ms: u64) {
        let expires_ms = self.bucket(now_ms + timeout_ms);
        self.sessions.insert(session, Tracked { is_closing: false, owner, expires_ms });
    }

    /// Its client was heard. False if there is no such session, or it is being closed.
    pub fn touch(&mut self, session: SessionId, timeout_ms: u64, now_ms: u64) -> bool {
        let expires_ms = self.bucket(now_ms + timeout_ms);
        match self.sessions.get_mut(&session) {
            Some(tracked) if !tracked.is_closing => {
                tracked.expires_ms = expires_ms;
                true
            }
            _ => false,
        }
    }

    pub fn own(&mut self, session: SessionId, owner: usize) {
        if let Some(tracked) = self.sessions.get_mut(&session).filter(|tracked| !tracked.is_closing) {
            tracked.owner = Some(owner);
        }
    }

    /// Whether a request of this session, through this server, may be tried.
    pub fn check(&mut self, session: SessionId, owner: usize) -> Result<(), Code> {
        let tracked = self.sessions.get_mut(&session).ok_or(Code::UnknownSession)?;
        if tracked.is_closing {
            return Err(Code::SessionExpired);
        }
        if *tracked.owner.get_or_insert(owner) == owner { Ok(()) } else { Err(Code::SessionMoved) }
    }

    pub fn close(&mut self, session: SessionId) {
        if let Some(tracked) = self.sessions.get_mut(&session) {
            tracked.is_closing = true;
        }
    }

    pub fn remove(&mut self, session: SessionId) {
        self.sessions.remove(&session);
    }

    /// Those whose tick is over; they are closing now.
    pub fn expired(&mut self, now_ms: u64) -> Vec<SessionId> {
        let over = self.sessions.iter_mut().filter(|(_, one)| !one.is_closing && one.expires_ms <= now_ms);
        over.map(|(session, tracked)| {
            tracked.is_closing = true;
            *session
        })
        .collect()
    }
}
