//! Who has to give way: orders of operators, and the requests of a higher priority, with the real judges of both.

use std::time::Duration;

use zk_leader_run::core::event::{Event, Ineligibility};
use zk_leader_run::core::operator_orders::{Drain, Handover, Orders, Target};
use zk_leader_run::core::time::{Now, Timestamp};

use crate::clock::{MILLI, Real};
use crate::coverage::Given;
use crate::ensemble::SessionKey;
use crate::host::{Instance, Process};
use crate::world::{Occurrence, World};

/// What `control` says.
#[derive(Clone, Copy, Debug)]
pub struct StandingOrder {
    id: u64,
    to: Option<usize>,
    lasts: Real,
    token: i64,
}

/// What the znode of a host's drain says.
#[derive(Clone, Copy, Debug)]
pub struct StandingDrain {
    id: u64,
    until: Real,
    force: bool,
}

impl Instance {
    pub fn next_deadline(&self, now: Now) -> Option<Timestamp> {
        let (orders, preemption) = (self.docket.next_deadline(), self.preemption.next_deadline());
        let deadlines = [self.machine.next_deadline(now), orders, preemption];
        deadlines.into_iter().flatten().filter(|_| self.supervisor == Process::Running).min()
    }
}

impl World {
    /// What the supervisor does after each turn of its machine.
    pub fn heed_orders(&mut self, instance: usize) {
        if self.instances[instance].supervisor != Process::Running {
            return;
        }
        let now = self.clock_of(instance).lease;
        let this = &mut self.instances[instance];
        let mut snapshot = this.machine.snapshot();
        let token = snapshot.held_term.map(|held| held.grant.token);
        let is_asked = token.is_some() && this.orders.asked_for == token;
        for barred in this.docket.judge(now, token).into_iter().flatten() {
            if let (Event::Ineligible { reason: Ineligibility::HandingOver, on: true }, Some(_)) = (barred, token) {
                self.coverage.heed(if is_asked { Given::Request } else { Given::HandOver });
            }
            if let (Event::Ineligible { reason: Ineligibility::Drained, on: true }, Some(_)) = (barred, token) {
                self.coverage.heed(Given::Drain);
            }
            self.handle(instance, barred);
            snapshot = self.instances[instance].machine.snapshot();
        }
        let this = &mut self.instances[instance];
        if this.supervisor == Process::Running && this.preemption.judge(now, &snapshot) {
            self.note(|| format!("instance {instance}     => asks the leader to go"));
            self.ask(instance);
        }
    }

    /// The operator names the present term.
    pub fn order_handover(&mut self, to: Option<usize>, lasts: Real) {
        let Some(token) = self.ensemble.state().term.map(|term| term.mzxid) else { return };
        let id = self.standing_order.map_or(1, |order| order.id + 1);
        self.standing_order = Some(StandingOrder { id, to, lasts, token });
        for host in 0..self.hosts.len() {
            if let Some(instance) = self.hosts[host].instance {
                let at = self.now + self.latency(host);
                self.push(at, Occurrence::OrdersCome { instance });
            }
        }
    }

    /// The watch on them has fired, at the latest after a reconnect.
    pub fn orders_come(&mut self, instance: usize) {
        let host = self.instances[instance].host;
        if self.is_cut(host) {
            let at = self.hosts[host].weather.cut_until + self.latency(host);
            return self.push(at, Occurrence::OrdersCome { instance });
        }
        self.read_orders(instance);
        self.told(instance, Event::Ticked);
    }

    pub fn read_orders(&mut self, instance: usize) {
        let now = self.clock_of(instance).lease;
        let this = &mut self.instances[instance];
        let handover = self.standing_order.map(|StandingOrder { id, to, lasts, token }| Handover {
            id,
            lasts: Duration::from_nanos(lasts),
            token,
            target: match to {
                None => Target::Anyone,
                Some(host) if host == this.host => Target::Us,
                Some(_) => Target::Another,
            },
            stop: true,
        });
        this.orders = Orders { handover, ..this.orders };
        this.docket.hear(now, this.orders);
        self.read_drain(instance);
    }

    /// All who are told of members by a watch hear of a drain, and of its end: whether another host could lead may change.
    pub fn drain(&mut self, host: usize, lasts: Real, force: bool) {
        let id = self.hosts[host].drain.map_or(1, |drain| drain.id + 1);
        self.hosts[host].drain = Some(StandingDrain { id, until: self.now + lasts, force });
        for at in [self.now, self.now + lasts] {
            for instance in self.hosts.iter().filter_map(|host| host.instance).collect::<Vec<_>>() {
                let at = at + self.latency(self.instances[instance].host);
                self.push(at, Occurrence::OrdersCome { instance });
            }
        }
    }

    fn is_drained(&self, host: usize) -> bool {
        self.hosts[host].drain.is_some_and(|drain| self.now < drain.until)
    }

    /// A member is there with its process, and for a while longer: in doubt, others are counted that are none.
    fn read_drain(&mut self, instance: usize) {
        let (now, real, host) = (self.clock_of(instance).lease, self.now, self.instances[instance].host);
        let has_others = (0..self.hosts.len())
            .any(|other| other != host && !self.is_drained(other) && self.hosts[other].instance.is_some());
        let drain = self.hosts[host].drain.filter(|drain| real < drain.until);
        let drain = drain.map(|StandingDrain { id, until, force }| Drain {
            id,
            lasts: Some(Duration::from_nanos(until - real)),
            has_others,
            force,
        });
        let this = &mut self.instances[instance];
        this.orders = Orders { drain, ..this.orders };
        this.docket.hear(now, this.orders);
    }

    fn ask(&mut self, instance: usize) {
        let host = self.instances[instance].host;
        let session = self.instances[instance].client.filter(|client| !client.told_over).and_then(|client| client.key);
        if let Some(session) = session {
            let at = self.now + 2 * self.latency(host);
            self.push(at, Occurrence::Asks { instance, session });
        }
    }

    /// It reads the line and the record once more, and its write names the candidate and the term. If it is lost, it asks again later.
    pub fn asks(&mut self, instance: usize, session: SessionKey) {
        let host = self.instances[instance].host;
        if self.is_cut(host) || !self.ensemble.sessions[session].alive {
            return;
        }
        let lag = if self.now < self.hosts[host].weather.lag_until { 6 } else { 0 };
        let read = self.ensemble.seen_by(session, lag);
        let Some(token) = self.ensemble.outranked_by(session, &read) else { return };
        let present = self.ensemble.state();
        let stands = present.candidates.iter().any(|candidate| candidate.owner == session);
        let is_of_the_term = present.term.map(|term| term.version) == read.term.map(|term| term.version);
        let holder = present.record.and_then(|record| record.candidate).filter(|_| stands && is_of_the_term);
        if let Some((holder, _)) = holder {
            let instance = self.ensemble.sessions[holder].instance;
            let host = self.instances[instance].host;
            let at = self.now + 2 * self.latency(host);
            self.push(at, Occurrence::AskedFor { instance, token });
        }
    }

    /// The leader's watch on its place has fired.
    pub fn asked_for(&mut self, instance: usize, token: i64) {
        let host = self.instances[instance].host;
        if self.is_cut(host) {
            let at = self.hosts[host].weather.cut_until + MILLI;
            return self.push(at, Occurrence::AskedFor { instance, token });
        }
        let now = self.clock_of(instance).lease;
        let this = &mut self.instances[instance];
        this.orders.asked_for = Some(token);
        this.docket.hear(now, this.orders);
        self.told(instance, Event::Ticked);
    }
}
