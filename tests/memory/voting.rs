//! Who leads: servers that lost each other look for a leader, and the one that has stored most is elected by a quorum.

use std::collections::BTreeMap;

use super::ensemble::{Ensemble, Happening};
use super::expiry::Expiry;
use super::leading::{Follower, Leading};
use super::mail::Mail;
use super::server::Phase;

impl Ensemble {
    /// Half a tick: the leader asks its followers whether they are there, and all look at how long they heard nothing.
    pub(super) fn beat(&mut self) {
        let limit = self.settings.tick * self.settings.sync_limit;
        let now = self.now;
        for server in (0..self.servers.len()).filter(|server| !self.servers[*server].is_paused).collect::<Vec<_>>() {
            if self.servers[server].leading().is_some() {
                self.mail_followers(server, &Mail::Ping);
                self.drop_silent_followers(server);
            } else if matches!(self.servers[server].phase, Phase::Following { heard, .. } if now > heard + limit) {
                self.look(server);
            }
        }
        let at = now + self.settings.tick / 2;
        self.schedule(at, Happening::Beat);
    }

    fn drop_silent_followers(&mut self, leader: usize) {
        let limit = self.settings.tick * self.settings.sync_limit;
        let now = self.now;
        let Some(leading) = self.servers[leader].leading_mut() else { return };
        let silent: Vec<usize> =
            leading.followers.iter().filter(|(_, one)| now > one.heard + limit).map(|(server, _)| *server).collect();
        for follower in silent {
            self.part(leader, follower);
        }
        self.check_quorum(leader);
    }

    /// A leader with too few followers steps down.
    fn check_quorum(&mut self, leader: usize) {
        let followers = self.servers[leader].leading().map_or(0, |leading| leading.followers.len());
        if 1 + followers < self.settings.quorum() {
            self.look(leader);
        }
    }

    /// The leader closes its connection to a follower, which notices if that gets through.
    fn part(&mut self, leader: usize, follower: usize) {
        let link = self.servers[leader].leading_mut().and_then(|leading| leading.followers.remove(&follower));
        let is_linked = link.is_some_and(|one| self.servers[follower].following() == Some((leader, one.link)));
        if is_linked && !self.blocked.contains(&(leader, follower)) && !self.servers[follower].is_paused {
            self.look(follower);
        }
    }

    /// It serves nobody until it follows or leads again.
    pub(super) fn look(&mut self, server: usize) {
        self.leave(server);
        self.servers[server].phase = Phase::Looking;
        self.schedule_election();
    }

    /// Its connections to clients and to other servers are closed.
    pub(super) fn leave(&mut self, server: usize) {
        for connection in self.servers[server].connections.keys().copied().collect::<Vec<_>>() {
            self.close(server, connection);
        }
        self.servers[server].touched.clear();
        let before = std::mem::replace(&mut self.servers[server].phase, Phase::Looking);
        match before {
            Phase::Leading(leading) => {
                for (follower, one) in leading.followers {
                    let is_linked = self.servers[follower].following() == Some((server, one.link));
                    if is_linked && !self.blocked.contains(&(server, follower)) && !self.servers[follower].is_paused {
                        self.look(follower);
                    }
                }
            }
            Phase::Following { leader, link, .. }
                if !self.blocked.contains(&(server, leader)) && !self.servers[leader].is_paused =>
            {
                let leading = self.servers[leader].leading_mut();
                let is_linked = |one: &Follower| one.link == link;
                if let Some(leading) = leading.filter(|leading| leading.followers.get(&server).is_some_and(is_linked)) {
                    leading.followers.remove(&server);
                    self.check_quorum(leader);
                }
            }
            _ => {}
        }
    }

    /// The other end may have closed a link while this server was stopped or cut off.
    pub(super) fn notice_closed_links(&mut self, server: usize) {
        if let Some((leader, link)) = self.servers[server].following() {
            let leading = self.servers[leader].leading();
            let is_linked = leading
                .and_then(|leading| leading.followers.get(&server))
                .is_some_and(|follower| follower.link == link);
            if !is_linked && !self.blocked.contains(&(leader, server)) {
                self.look(server);
            }
        } else if let Some(leading) = self.servers[server].leading() {
            let links: Vec<_> = leading.followers.iter().map(|(follower, one)| (*follower, one.link)).collect();
            for (follower, link) in links {
                let is_linked = self.servers[follower].following() == Some((server, link));
                if !is_linked && !self.blocked.contains(&(follower, server)) {
                    self.part(server, follower);
                }
            }
            self.check_quorum(server);
        }
    }

    pub(super) fn schedule_election(&mut self) {
        let at = self.now + self.settings.election;
        self.schedule(at, Happening::Election);
    }

    pub(super) fn elect(&mut self) {
        for server in self.looking() {
            let has_quorum = |leader: &usize| {
                let leading = self.servers[*leader].leading();
                leading.is_some_and(|leading| 1 + leading.followers.len() >= self.settings.quorum())
            };
            let may_follow = |leader: &usize| {
                self.are_linked(server, *leader) && self.servers[*leader].epoch >= self.servers[server].epoch
            };
            let leader = (0..self.servers.len()).filter(may_follow).find(has_quorum);
            if let Some(leader) = leader {
                self.join(server, leader);
                self.commit_what_a_quorum_has(leader);
            }
        }
        let electable = self.looking().into_iter().filter(|server| {
            let group = self.group_of(*server);
            let is_ahead = group.iter().all(|other| self.servers[*other].stored() <= self.servers[*server].stored());
            group.len() >= self.settings.quorum() && is_ahead
        });
        if let Some(leader) = electable.max_by_key(|server| (self.servers[*server].stored(), *server)) {
            self.lead(leader);
        }
    }

    fn looking(&self) -> Vec<usize> {
        let is_looking = |server: &usize| self.servers[*server].is_looking() && !self.servers[*server].is_paused;
        (0..self.servers.len()).filter(is_looking).collect()
    }

    fn are_linked(&self, one: usize, other: usize) -> bool {
        let is_paused = self.servers[one].is_paused || self.servers[other].is_paused;
        !is_paused && !self.blocked.contains(&(one, other)) && !self.blocked.contains(&(other, one))
    }

    fn group_of(&self, server: usize) -> Vec<usize> {
        self.looking().into_iter().filter(|other| self.are_linked(server, *other)).collect()
    }

    fn lead(&mut self, leader: usize) {
        let group = self.group_of(leader);
        self.links += 1;
        let link = self.links;
        // What the elected server has stored is committed by its election.
        self.apply_until(leader, i64::MAX);
        let is_standalone = self.servers.len() == 1;
        if !is_standalone {
            self.epoch += 1;
            self.servers[leader].epoch = self.epoch;
            self.servers[leader].state.last_zxid = self.epoch << 32;
        }
        let tick_ms = self.settings.tick.as_millis() as u64;
        let phase_ms = self.rng.below(tick_ms);
        let state = &self.servers[leader].state;
        let clock_ms = self.now.as_millis() as u64 + phase_ms;
        let leading = Leading {
            link,
            followers: BTreeMap::new(),
            expiry: Expiry::new(tick_ms, &state.sessions, clock_ms),
            decided: state.clone(),
            next_zxid: state.last_zxid + 1,
            syncs: Vec::new(),
            phase_ms,
        };
        self.servers[leader].phase = Phase::Leading(Box::new(leading));
        for follower in group.into_iter().filter(|server| *server != leader) {
            self.join(follower, leader);
        }
        self.schedule_tick(leader);
    }

    /// At once has stored what the leader has, and applied what it has applied.
    fn join(&mut self, follower: usize, leader: usize) {
        self.links += 1;
        let (link, now) = (self.links, self.now);
        let log = std::mem::take(&mut self.servers[leader].log);
        self.servers[follower].take_log_of(&log);
        self.servers[follower].epoch = self.servers[leader].epoch;
        self.servers[leader].log = log;
        let until = self.servers[leader].state.last_zxid;
        self.servers[follower].phase = Phase::Following { leader, link, heard: now, applies: now };
        self.apply_until(follower, until);
        self.servers[follower].state.last_zxid = until;
        let acked = self.servers[follower].stored();
        if let Some(leading) = self.servers[leader].leading_mut() {
            leading.followers.insert(follower, Follower { link, heard: now, acked });
        }
    }
}
