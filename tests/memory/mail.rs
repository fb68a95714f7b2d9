//! What servers say to each other, in order on each link; what is on its way when a link is cut waits until it is healed.

use std::sync::Arc;

use super::ensemble::{Ensemble, Happening};
use super::protocol::{ConnectionId, Id, Request, SessionId, Xid, Zxid};
use super::server::Phase;
use super::settings::Hello;
use super::state::{Entry, Origin};

/// What a server asks the leader to decide.
#[derive(Clone, Debug)]
pub enum Order {
    CreateSession { timeout_ms: u64 },
    Request(Request),
}

#[derive(Clone, Debug)]
pub enum Mail {
    // To the leader.
    Forward { origin: Origin, session: SessionId, who: Vec<Id>, order: Order },
    Revalidate { connection: ConnectionId, session: SessionId, timeout_ms: u64 },
    Ack(Zxid),
    Pong { touched: Vec<(SessionId, u64)> },
    // From the leader.
    Propose(Arc<Entry>),
    Commit(Zxid),
    Synced(Origin),
    Validated { connection: ConnectionId, is_valid: bool },
    Ping,
}

#[derive(Clone, Debug)]
pub struct Envelope {
    pub from: usize,
    pub to: usize,
    pub link: u64,
    pub mail: Mail,
}

/// What reaches a server.
#[derive(Clone, Debug)]
pub enum Input {
    Connect(ConnectionId, Hello),
    Submit(ConnectionId, Xid, Request),
    Reset(ConnectionId),
    Mail(Envelope),
}

impl Ensemble {
    pub(super) fn mail(&mut self, from: usize, to: usize, link: u64, mail: Mail) {
        let at = self.now + self.settings.hop;
        self.schedule(at, Happening::Mail(Envelope { from, to, link, mail }));
    }

    pub(super) fn mail_leader(&mut self, from: usize, mail: Mail) {
        if let Some((leader, link)) = self.servers[from].following() {
            self.mail(from, leader, link, mail);
        }
    }

    pub(super) fn mail_followers(&mut self, leader: usize, mail: &Mail) {
        let Some(leading) = self.servers[leader].leading() else { return };
        let links: Vec<_> = leading.followers.iter().map(|(to, follower)| (*to, follower.link)).collect();
        for (to, link) in links {
            self.mail(leader, to, link, mail.clone());
        }
    }

    pub(super) fn deliver(&mut self, envelope: Envelope) {
        if self.blocked.contains(&(envelope.from, envelope.to)) {
            self.held.push(envelope);
        } else {
            self.input(envelope.to, Input::Mail(envelope));
        }
    }

    pub(super) fn receive(&mut self, envelope: Envelope) {
        let Envelope { from, to, link, mail } = envelope;
        let now = self.now;
        match &mut self.servers[to].phase {
            Phase::Leading(leading) => match leading.followers.get_mut(&from) {
                Some(follower) if follower.link == link => follower.heard = now,
                _ => return,
            },
            Phase::Following { leader, link: present, heard, .. } if *leader == from && *present == link => {
                *heard = now;
            }
            _ => return,
        }
        match mail {
            Mail::Forward { origin, session, who, order } => self.decide_for(to, origin, session, &who, order),
            Mail::Revalidate { connection, session, timeout_ms } => {
                let is_valid = self.revalidate(to, from, session, timeout_ms);
                self.mail(to, from, link, Mail::Validated { connection, is_valid });
            }
            Mail::Ack(zxid) => self.acknowledge(to, from, zxid),
            Mail::Pong { touched } => self.touch_all(to, &touched),
            Mail::Propose(entry) => {
                let zxid = entry.zxid;
                self.servers[to].log.push(entry);
                self.mail_leader(to, Mail::Ack(zxid));
            }
            Mail::Commit(_) | Mail::Synced(_) => self.apply_later(to, mail),
            Mail::Validated { connection, is_valid } => self.finish_session(to, connection, is_valid),
            Mail::Ping => {
                let touched = std::mem::take(&mut self.servers[to].touched).into_iter().collect();
                self.mail_leader(to, Mail::Pong { touched });
            }
        }
    }

    /// A follower that lags has stored it, and applies it later.
    fn apply_later(&mut self, server: usize, mail: Mail) {
        let soonest = self.now + self.servers[server].lag;
        if let Phase::Following { applies, link, .. } = &mut self.servers[server].phase {
            *applies = soonest.max(*applies);
            let (at, link) = (*applies, *link);
            self.schedule(at, Happening::Apply { server, link, mail });
        }
    }

    pub(super) fn apply_now(&mut self, server: usize, link: u64, mail: &Mail) {
        if self.servers[server].following().is_none_or(|(_, present)| present != link) {
            return;
        }
        match mail {
            Mail::Commit(zxid) => self.apply_until(server, *zxid),
            Mail::Synced(origin) => self.answer_sync(server, *origin),
            _ => {}
        }
    }
}
