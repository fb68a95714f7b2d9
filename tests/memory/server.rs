//! One server: what it has stored and applied, and its clients.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::leading::Leading;
use super::mail::Input;
use super::protocol::{ConnectionId, Id, Request, SessionId, Xid, Zxid};
use super::settings::{Settings, Time};
use super::state::{Entry, State};
use super::watches::Watches;

#[derive(Clone, Debug)]
pub enum Phase {
    Down,
    /// Without a quorum, or not yet elected: takes no clients.
    Looking,
    Following {
        leader: usize,
        /// Of this life with this leader: what was sent in another one is not heard.
        link: u64,
        heard: Time,
        /// Nothing is applied before that.
        applies: Time,
    },
    Leading(Box<Leading>),
}

#[derive(Clone, Debug)]
pub struct Connection {
    pub session: SessionId,
    pub timeout_ms: u64,
    pub identities: Vec<Id>,
    pub is_open: bool,
    /// Requests that came before the session was open.
    pub early: Vec<(Xid, Request)>,
    /// Requests without a reply, in their order: a read waits for the writes before it.
    pub pending: VecDeque<Pending>,
}

#[derive(Clone, Debug)]
pub enum Pending {
    Write(Xid),
    Read { xid: Xid, request: Request, who: Vec<Id> },
}

#[derive(Clone, Debug)]
pub struct Server {
    pub phase: Phase,
    /// Stopped: it reads nothing and sends nothing, and its connections stay.
    pub is_paused: bool,
    /// What came while it was stopped.
    pub inbox: Vec<Input>,
    pub log: Vec<Arc<Entry>>,
    /// That of the newest leader that it has followed or been: it follows none of an earlier one (ZAB's `acceptedEpoch`).
    pub epoch: i64,
    /// How many of the log's transactions are applied.
    pub applied: usize,
    pub state: State,
    pub watches: Watches,
    pub connections: BTreeMap<ConnectionId, Connection>,
    /// Sessions that were heard of since the leader asked last, with their timeouts.
    pub touched: BTreeMap<SessionId, u64>,
    pub next_session: SessionId,
    /// How much later than it could it applies what is committed.
    pub lag: Duration,
    /// Its clock's error.
    pub skew_ms: i64,
}

impl Server {
    pub fn new(index: usize, settings: &Settings, seed: u64) -> Self {
        // As `SessionTrackerImpl.initializeNextSessionId`: the server's number, a time, and a count.
        let next_session = ((index as SessionId) << 56) | ((seed & 0xFFFF_FFFF) as SessionId + 1) << 16;
        Self {
            phase: Phase::Looking,
            is_paused: false,
            inbox: Vec::new(),
            log: Vec::new(),
            epoch: 0,
            applied: 0,
            state: State::new(settings.version),
            watches: Watches::default(),
            connections: BTreeMap::new(),
            touched: BTreeMap::new(),
            next_session,
            lag: Duration::ZERO,
            skew_ms: 0,
        }
    }

    pub fn is_up(&self) -> bool {
        !matches!(self.phase, Phase::Down)
    }

    pub fn is_looking(&self) -> bool {
        matches!(self.phase, Phase::Looking)
    }

    pub fn leading(&self) -> Option<&Leading> {
        if let Phase::Leading(leading) = &self.phase { Some(leading) } else { None }
    }

    pub fn leading_mut(&mut self) -> Option<&mut Leading> {
        if let Phase::Leading(leading) = &mut self.phase { Some(leading) } else { None }
    }

    /// Its leader and the link to it, if it follows one.
    pub fn following(&self) -> Option<(usize, u64)> {
        if let Phase::Following { leader, link, .. } = self.phase { Some((leader, link)) } else { None }
    }

    /// Of the last transaction that it has stored.
    pub fn stored(&self) -> Zxid {
        self.log.last().map_or(0, |entry| entry.zxid)
    }

    /// Makes its log that of `leader`: what it alone has stored was never committed.
    pub fn take_log_of(&mut self, leader: &[Arc<Entry>]) {
        let is_common = |at: &usize| leader.get(*at).is_some_and(|entry| entry.zxid == self.log[*at].zxid);
        let common = (0..self.log.len()).rev().find(is_common).map_or(0, |at| at + 1);
        self.log.truncate(common);
        self.log.extend(leader[common..].iter().cloned());
    }
}

/// Any server of the ensemble knows it.
pub fn password_of(session: SessionId) -> Vec<u8> {
    let mixed = (session as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    [session.to_be_bytes(), mixed.to_be_bytes()].concat()
}
