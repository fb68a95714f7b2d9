//! What the leader does: decides, proposes, commits, and expires sessions. A standalone server is a leader without followers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ensemble::{Ensemble, Happening, shuffle};
use super::expiry::Expiry;
use super::mail::{Mail, Order};
use super::prepare::prepare;
use super::protocol::{Code, Id, Request, SessionId, Zxid};
use super::settings::Time;
use super::state::{Entry, Origin, State, Txn};

#[derive(Clone, Debug)]
pub struct Follower {
    pub link: u64,
    pub heard: Time,
    pub acked: Zxid,
}

#[derive(Clone, Debug)]
pub struct Leading {
    /// Of this leadership.
    pub link: u64,
    pub followers: BTreeMap<usize, Follower>,
    pub expiry: Expiry,
    /// All that is decided, committed or not.
    pub decided: State,
    pub next_zxid: Zxid,
    /// Syncs that wait until this zxid is committed.
    pub syncs: Vec<(Zxid, Origin)>,
    /// The phase of its ticks.
    pub phase_ms: u64,
}

impl Leading {
    /// The clock by which sessions expire.
    pub fn clock_ms(&self, now: Time) -> u64 {
        now.as_millis() as u64 + self.phase_ms
    }
}

impl Ensemble {
    pub(super) fn decide_for(&mut self, leader: usize, origin: Origin, session: SessionId, who: &[Id], order: Order) {
        if let Order::Request(Request::Sync { .. }) = order {
            return self.sync(leader, origin);
        }
        self.decide(leader, Some(origin), session, who, order);
    }

    pub(super) fn decide(
        &mut self,
        leader: usize,
        origin: Option<Origin>,
        session: SessionId,
        who: &[Id],
        order: Order,
    ) {
        let now = self.now;
        let time = self.wall_ms(leader);
        let Some(leading) = self.servers[leader].leading_mut() else { return };
        let zxid = leading.next_zxid;
        leading.next_zxid += 1;
        let mut entry = Entry { zxid, time, session, origin, txn: Txn::Error(Code::Ok) };
        let clock_ms = leading.clock_ms(now);
        entry.txn = match order {
            Order::CreateSession { timeout_ms } => {
                leading.expiry.track(session, timeout_ms, origin.map(|origin| origin.server), clock_ms);
                Txn::CreateSession { timeout_ms }
            }
            Order::Request(request) if request == Request::Close => {
                leading.expiry.close(session);
                prepare(&leading.decided, &request, who, &entry)
            }
            Order::Request(request) => {
                match leading.expiry.check(session, origin.map_or(leader, |origin| origin.server)) {
                    Ok(()) => prepare(&leading.decided, &request, who, &entry),
                    Err(code) => refused(&request, code),
                }
            }
        };
        if let Txn::CloseSession { paths } = &mut entry.txn {
            // The order of a Java HashSet.
            shuffle(&mut self.rng, paths);
        }
        self.propose(leader, entry);
    }

    fn propose(&mut self, leader: usize, entry: Entry) {
        if let Some(leading) = self.servers[leader].leading_mut() {
            drop(leading.decided.apply(&entry));
        }
        let entry = Arc::new(entry);
        self.servers[leader].log.push(Arc::clone(&entry));
        self.mail_followers(leader, &Mail::Propose(entry));
        self.commit_what_a_quorum_has(leader);
    }

    pub(super) fn acknowledge(&mut self, leader: usize, from: usize, zxid: Zxid) {
        if let Some(leading) = self.servers[leader].leading_mut() {
            if let Some(follower) = leading.followers.get_mut(&from) {
                follower.acked = zxid;
            }
            self.commit_what_a_quorum_has(leader);
        }
    }

    pub(super) fn commit_what_a_quorum_has(&mut self, leader: usize) {
        loop {
            let server = &self.servers[leader];
            let (Some(leading), Some(entry)) = (server.leading(), server.log.get(server.applied)) else { return };
            let zxid = entry.zxid;
            let stored = 1 + leading.followers.values().filter(|follower| follower.acked >= zxid).count();
            if stored < self.settings.quorum() {
                return;
            }
            self.apply_until(leader, zxid);
            self.mail_followers(leader, &Mail::Commit(zxid));
            let Some(leading) = self.servers[leader].leading_mut() else { return };
            let (due, later) = std::mem::take(&mut leading.syncs).into_iter().partition(|(until, _)| *until <= zxid);
            leading.syncs = later;
            for (_, origin) in due {
                self.send_synced(leader, origin);
            }
        }
    }

    /// Answered behind everything that was decided before it. A leader that has lost its quorum does not notice.
    fn sync(&mut self, leader: usize, origin: Origin) {
        let server = &mut self.servers[leader];
        let outstanding = (server.applied < server.log.len()).then(|| server.stored());
        match (outstanding, server.leading_mut()) {
            (Some(zxid), Some(leading)) => leading.syncs.push((zxid, origin)),
            _ => self.send_synced(leader, origin),
        }
    }

    fn send_synced(&mut self, leader: usize, origin: Origin) {
        let follower = self.servers[leader].leading().and_then(|leading| leading.followers.get(&origin.server));
        if let Some(link) = follower.map(|follower| follower.link) {
            self.mail(leader, origin.server, link, Mail::Synced(origin));
        }
    }

    /// A client came back to `server` with this session.
    pub(super) fn revalidate(&mut self, leader: usize, server: usize, session: SessionId, timeout_ms: u64) -> bool {
        let now = self.now;
        let Some(leading) = self.servers[leader].leading_mut() else { return false };
        let clock_ms = leading.clock_ms(now);
        let is_valid = leading.expiry.touch(session, timeout_ms, clock_ms);
        leading.expiry.own(session, server);
        is_valid
    }

    pub(super) fn touch_all(&mut self, leader: usize, touched: &[(SessionId, u64)]) {
        let now = self.now;
        if let Some(leading) = self.servers[leader].leading_mut() {
            let clock_ms = leading.clock_ms(now);
            for (session, timeout_ms) in touched {
                leading.expiry.touch(*session, *timeout_ms, clock_ms);
            }
        }
    }

    /// The end of a tick.
    pub(super) fn expire(&mut self, server: usize, link: u64) {
        let now = self.now;
        let is_paused = self.servers[server].is_paused;
        let Some(leading) = self.servers[server].leading_mut().filter(|leading| leading.link == link) else { return };
        let clock_ms = leading.clock_ms(now);
        let expired = if is_paused { Vec::new() } else { leading.expiry.expired(clock_ms) };
        for session in expired {
            self.decide(server, None, session, &[], Order::Request(Request::Close));
        }
        self.schedule_tick(server);
    }

    pub(super) fn schedule_tick(&mut self, server: usize) {
        let tick_ms = self.settings.tick.as_millis() as u64;
        if let Some(leading) = self.servers[server].leading() {
            let link = leading.link;
            let left_ms = tick_ms - leading.clock_ms(self.now) % tick_ms;
            let at = Time::from_millis(self.now.as_millis() as u64 + left_ms);
            self.schedule(at, Happening::Tick { server, link });
        }
    }
}

/// In a multi it is the first operation that is refused.
fn refused(request: &Request, code: Code) -> Txn {
    match request {
        Request::Multi(ops) if !ops.is_empty() => {
            let mut codes = vec![Code::RuntimeInconsistent; ops.len()];
            codes[0] = code;
            Txn::Aborted(codes)
        }
        _ => Txn::Error(code),
    }
}
